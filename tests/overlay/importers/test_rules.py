"""Rewritings of operations: what each rule does, and that the checks find one that is not exact."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from bitloom.golden.limits import IMPORT_STEPS
from bitloom.golden.rewrite import Inexact, rewrite
from bitloom.overlay.importers.bends import clip
from bitloom.overlay.importers.budget import FRACTION_STEPS, OverBudget, budget, take
from bitloom.overlay.importers.canonical import canonical
from bitloom.overlay.importers.links import Line
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.importers.operations import Elementwise, Linear, Pooling
from bitloom.overlay.importers.quantisers import Rule
from bitloom.overlay.importers.rationals import fractions
from bitloom.overlay.importers.rules import (
    check_same,
    functions_of_one_tensor_become_one,
    pools_of_the_input_come_last,
    simplified,
    unread_operations_go,
)
from bitloom.overlay.importers.verify import verify
from tests.errors import value_error

from .against import import_chain
from .onnx_files import Chain, helper


def graph_of(chain):
    return canonical(to_graph(chain.bytes()))


def kinds(graph):
    return [type(operation).__name__ for operation in graph.operations]


def pooled(factor=0.5):
    chain = Chain((2, 6, 6)).node("MaxPool", kernel_shape=[2, 2], strides=[2, 1]).node("Mul", np.float32(factor))
    return graph_of(chain.quant(0.25, 3).node("Conv", np.ones((4, 2, 3, 3), np.float32)).quant(1, 3))


def test_pools_of_the_input_come_behind_its_quantiser():
    before = pooled()
    after = simplified(before)
    assert kinds(before) == ["Pooling", "Elementwise", "Levels", "Linear", "Levels"]
    assert kinds(after) == ["Elementwise", "Levels", "Pooling", "Linear", "Levels"]
    after.check()
    assert after.operations[3] is before.operations[3]
    x = np.random.default_rng(0).normal(0, 1, (3, 2, 6, 6))
    results = []
    for graph in (before, after):
        tensor = x
        for operation in graph.operations:
            tensor = operation.run(tensor)
        results.append(tensor)
    assert np.array_equal(*results)


def test_a_pool_stays_in_front_of_what_falls():
    before = pooled(-0.5)
    assert simplified(before) is before


def product(op="Mul", activation="Sigmoid"):
    """x of a quantiser, joined with an activation of it."""
    chain = Chain((2, 6, 6)).quant(0.25, 3)
    before = chain.here
    chain.node(activation).node("Mul", np.float32(0.5))
    chain.nodes.append(helper.make_node(op, [before, chain.here], ["joined"], "join"))
    chain.here = "joined"
    return graph_of(chain.quant(0.5, 3).node("Conv", np.ones((4, 2, 3, 3), np.float32)).quant(1, 3))


@pytest.mark.parametrize(("op", "activation"), [("Mul", "Sigmoid"), ("Mul", "Relu"), ("Add", "Tanh")])
def test_functions_of_one_tensor_become_one(op, activation):
    before = product(op, activation)
    after = simplified(before)
    assert kinds(after) == ["Levels", "Elementwise", "Levels", "Linear", "Levels"]
    joined = after.operations[1]
    x = np.linspace(-2, 2, 9)
    inner = {"Sigmoid": 1 / (1 + np.exp(-x)), "Relu": np.maximum(x, 0), "Tanh": np.tanh(x)}[activation] / 2
    wanted = x * inner if op == "Mul" else x + inner
    np.testing.assert_allclose(joined.run(x), wanted, rtol=1e-15)
    assert [float(joined.link.value(value)) for value in x] == pytest.approx(wanted, rel=1e-15)
    assert joined.link.name == (op if activation == "Relu" else activation)


def test_a_sum_with_a_bend_stays_a_sum():
    """An NPU adds two maps."""
    assert "Sum" in kinds(simplified(product("Add", "Relu")))


def test_a_wrong_function_is_found():
    before = product()
    after = functions_of_one_tensor_become_one(before)
    operations = [
        replace(operation, link=clip(0, None)) if operation.makes == "joined" else operation
        for operation in after.operations
    ]
    wrong = replace(after, operations=tuple(operations))
    with pytest.raises(Inexact, match="joined must stay the same"):
        check_same(before, wrong)


def curved(kind="MaxPool", factor=0.5):
    """A curve in front of a pool, a line, another order, and a quantiser."""
    chain = Chain((2, 6, 6)).quant(0.25, 3).node("Gelu").node(kind, kernel_shape=[2, 2], strides=[2, 1])
    chain.node("Mul", np.float32(factor)).node("Reshape", np.int64([1, -1]))
    chain.opset = 20
    return graph_of(chain.quant(0.25, 3).node("MatMul", np.ones((30, 4), np.float32)).quant(1, 3))


def test_max_pools_of_a_curve_come_behind_its_quantiser():
    before = curved()
    assert kinds(before)[1:6] == ["Elementwise", "Pooling", "Elementwise", "Layout", "Levels"]
    after = simplified(before)
    assert kinds(after)[1:6] == ["Elementwise", "Elementwise", "Levels", "Pooling", "Layout"]


@pytest.mark.parametrize("different", [{"kind": "AveragePool"}, {"factor": -0.5}])
def test_what_stays_behind_a_curve(different):
    """A mean, and a maximum in front of what falls."""
    before = curved(**different)
    assert simplified(before) is before


def clipped(low, bits=3, behind="GlobalAveragePool"):
    chain = Chain((2, 6, 6)).quant(0.25, bits).node("Mul", np.float32(0.5)).node("Clip", np.float32(low))
    return graph_of(chain.node(behind).node("Conv", np.ones((4, 2, 1, 1), np.float32)).quant(1, 3))


def test_a_clip_to_values_is_quantised():
    before = clipped(0.125)
    after = simplified(before)
    assert kinds(before) == ["Levels", "Elementwise", "Elementwise", "AxesReduction", "Linear", "Levels"]
    assert kinds(after) == ["Levels", "Elementwise", "Elementwise", "Levels", "AxesReduction", "Linear", "Levels"]
    levels = after.operations[3]
    assert [levels.base + levels.step * level for level in range(levels.levels + 1)] == [0.125, 0.25, 0.375]


@pytest.mark.parametrize("other", [{"low": 0.1}, {"low": -0.5}, {"low": 0.375}], ids=["no value", "nothing", "one"])
def test_a_clip_that_stays(other):
    """One to what is no value of the map, one that cuts nothing, and one that leaves one value."""
    before = clipped(**other)
    assert simplified(before) is before


@pytest.mark.parametrize("factor", [np.arange(1, 6), np.arange(1, 3).reshape(2, 1, 1)])
def test_a_pool_stays_in_front_of_what_differs_from_place_to_place(factor):
    """Of channels alone it may come behind."""
    before = pooled(factor)
    assert (simplified(before) is before) == (factor.ndim == 1)


def test_a_check_draws_on_the_budget_of_the_import():
    before = pooled()
    with budget(0):
        take(steps=IMPORT_STEPS.value)
        with pytest.raises(OverBudget, match="steps of work to import it must be <= "):
            simplified(before)
    with budget(0):
        simplified(before)


def steps_of(levels, scales):
    """The boundaries of a quantiser with so many levels, and with so many scales."""
    scale = np.full(scales, Fraction(1))
    return Rule(scale=scale, zero=Fraction(0), low=0, high=levels, rounding="ROUND").boundaries()


@pytest.mark.parametrize(
    "work",
    [lambda count: fractions(np.ones(count)), lambda count: steps_of(count, 1), lambda count: steps_of(1, count)],
    ids=["numbers", "levels", "scales"],
)
def test_each_fraction_draws_on_the_budget_of_the_import(work, monkeypatch):
    """A file of a few bytes may ask for many."""
    monkeypatch.setenv("BITLOOM_MAX_IMPORT_STEPS", str(100 * FRACTION_STEPS))
    with budget(0):
        work(100)
    with budget(0), pytest.raises(OverBudget, match="steps of work to import it must be <= "):
        work(101)


def test_operations_that_nobody_reads_go():
    before = pooled()
    name = "unread"
    tensor = before.operations[0].makes
    unread = Elementwise(name=name, op="Relu", reads=(tensor,), makes=name, link=clip(None, None))
    shapes = {**before.shapes, name: before.shapes[tensor]}
    graph = replace(before, operations=(*before.operations, unread), shapes=shapes)
    assert rewrite(graph, (unread_operations_go,), check_same).operations == before.operations
    assert unread_operations_go(before) is None


def changed(graph, kind, **fields):
    """The graph with other fields of its first operation of a kind."""
    place = next(k for k, operation in enumerate(graph.operations) if isinstance(operation, kind))
    operations = list(graph.operations)
    operations[place] = replace(operations[place], **fields)
    return replace(graph, operations=tuple(operations))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Elementwise, {"link": Line(multiply=np.array(-1, object), add=np.array(0, object))}),
        (Pooling, {"average": True}),
        (Linear, {"weight": np.zeros((4, 2, 3, 3), np.int64)}),
    ],
)
def test_a_step_that_is_not_exact_is_found(kind, fields):
    before = pooled()
    place = next(operation for operation in before.operations if isinstance(operation, kind))
    with value_error(f"{place.makes} must stay the same"):
        check_same(before, changed(before, kind, **fields))


def test_a_step_with_other_shapes_is_found():
    before = pooled()
    swapped = pools_of_the_input_come_last(before)
    with pytest.raises(ValueError, match="the shape must be"):
        check_same(before, replace(swapped, shapes=before.shapes))


@pytest.mark.parametrize("least", [1, -2])
def test_rounding_is_not_followed_through_sums_that_rise_and_fall(least):
    """Of such sums the ends are at no end of what they read: bounds would be too narrow, and hide what differs."""
    rng = np.random.default_rng(7)
    chain = Chain((2, 4, 4)).quant(0.5, 3).node("Conv", rng.integers(-2, 3, (3, 2, 2, 2)).astype(np.float32))
    chain.quant(2.0, 3).node("Conv", rng.integers(least, 3, (4, 3, 2, 2)).astype(np.float32)).quant(4.0, 3)
    imported = import_chain(chain)
    verify(imported)
    first, second = imported.graph.sections
    elsewhere = replace(second, reads=(replace(second.reading, tensor="another"),))  # golden's map is not put there
    unknown = replace(imported, graph=replace(imported.graph, sections=(first, elsewhere)))
    rule = "what it reads must be exact, as its results may rise and fall with it, got values with rounding"
    if least > 0:
        verify(unknown)
    else:
        with value_error(f"Conv_3: {rule}"):
            verify(unknown)

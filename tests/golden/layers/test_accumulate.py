from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.layers.accumulate import STRUCTURES, Accumulator, Cycle, value
from bitloom.golden.layers.conv import ACCUMULATIONS, Conv
from bitloom.golden.packing import to_bits
from bitloom.golden.runs import kernel_runs, valid_elements, window_runs
from tests.cases import case_map, random_values
from tests.errors import value_error


def accumulators(kind: str, products: int) -> list[Accumulator]:
    """Every structure with every number of lanes; of words of WORD products those that have whole words."""
    word = WORD if kind == "or_words" else 0
    lanes = range(word or 1, products + 1, word or 1)
    return [Accumulator(kind=kind, structure="parallel", products=products, lanes=products, word=word)] + [
        Accumulator(kind=kind, structure=s, products=products, lanes=n, word=word)
        for s in ("serial", "collect")
        for n in lanes
    ]


WORD = 2


def expected_of(kind: str, matches: list[bool]) -> int:
    """Results of the products of a window."""
    if kind == "or_words":
        return sum(any(matches[first : first + WORD]) for first in range(0, len(matches), WORD))
    return sum(matches) if kind == "popcount" else int(any(matches))


# Cycle by cycle: the window 1 0 0 1 1 against the kernel 1 1 0 0 1 has the products 1 0 1 0 1.

X, W = (1, 0, 0, 1, 1), (1, 1, 0, 0, 1)


def test_parallel_takes_one_cycle():
    unit = Accumulator(kind="popcount", structure="parallel", products=5, lanes=5)
    assert list(unit.run(X, W)) == [Cycle(X, W, (1, 0, 1, 0, 1), (), 3)]
    assert (unit.cycles(), unit.register_bits) == (1, 0)


def test_serial_holds_the_running_result():
    unit = Accumulator(kind="popcount", structure="serial", products=5, lanes=1)
    cycles = list(unit.run(X, W))
    assert [c.products for c in cycles] == [(1,), (0,), (1,), (0,), (1,)]
    assert [c.register for c in cycles] == [(1,), (1,), (2,), (2,), (3,)]
    assert [c.result for c in cycles] == [None, None, None, None, 3]
    assert (unit.cycles(), unit.register_bits) == (5, 3)


def test_serial_or_holds_one_bit():
    unit = Accumulator(kind="or", structure="serial", products=5, lanes=1)
    assert [c.register for c in unit.run((0, 0, 1, 0, 0), (1, 1, 1, 1, 1))] == [(0,), (0,), (1,), (1,), (1,)]
    assert unit.register_bits == 1


def test_serial_words_are_counted():
    """Products 1 0 | 1 0 | 1: a word each beat, and one that is left."""
    unit = Accumulator(kind="or_words", structure="serial", products=5, lanes=2, word=2)
    assert [c.register for c in unit.run(X, W)] == [(1,), (2,), (3,)]
    assert [c.register for c in unit.run((0, 0, 1, 1, 0), (1, 1, 1, 1, 0))] == [(0,), (1,), (2,)]
    assert unit.register_bits == 2


def test_lanes_left_over_add_nothing():
    unit = Accumulator(kind="popcount", structure="serial", products=5, lanes=2)
    cycles = list(unit.run(X, W))
    assert [(c.features, c.weights, c.products) for c in cycles] == [
        ((1, 0), (1, 1), (1, 0)),
        ((0, 1), (0, 0), (1, 0)),
        ((1, 0), (1, 1), (1, 0)),
    ]
    assert [c.register for c in cycles] == [(1,), (2,), (3,)]


def test_collect_reduces_the_whole_register_once():
    unit = Accumulator(kind="popcount", structure="collect", products=5, lanes=2)
    cycles = list(unit.run(X, W))
    assert [c.register for c in cycles] == [(1, 0, 0, 0, 0), (1, 0, 1, 0, 0), (1, 0, 1, 0, 1), (1, 0, 1, 0, 1)]
    assert cycles[-1] == Cycle((), (), (), (1, 0, 1, 0, 1), 3)
    assert [c.result for c in cycles[:-1]] == [None] * 3
    assert (unit.cycles(), unit.register_bits) == (4, 5)


# All are equal.


@pytest.mark.parametrize("kind", ACCUMULATIONS)
@pytest.mark.parametrize("products", [1, 2, 3, 4])
def test_every_structure_gives_the_same_for_every_window(kind, products):
    for bits in product((0, 1), repeat=2 * products):
        x, w = bits[:products], bits[products:]
        expected = expected_of(kind, [a == b for a, b in zip(x, w)])
        assert {u.result(x, w) for u in accumulators(kind, products)} == {expected}


@st.composite
def runs(draw):
    """(products, features, weights): the window may be shorter than the accumulator allows."""
    products = draw(st.integers(1, 40))
    count = draw(st.integers(1, products))
    bits = st.lists(st.integers(0, 1), min_size=count, max_size=count)
    return products, draw(bits), draw(bits)


@settings(max_examples=40)
@given(runs(), st.sampled_from(ACCUMULATIONS))
def test_every_structure_gives_the_same_in_the_cycles_it_states(run, kind):
    products, x, w = run
    results = set()
    for unit in accumulators(kind, products):
        cycles = list(unit.run(x, w))
        assert len(cycles) == unit.cycles(len(x)) <= unit.cycles()
        assert [c.result is not None for c in cycles] == [False] * (len(cycles) - 1) + [True]
        assert all(len(c.products) in (unit.lanes, 0) for c in cycles)
        results.add(cycles[-1].result)
    assert len(results) == 1


@pytest.mark.parametrize("kind", ACCUMULATIONS)
@pytest.mark.parametrize(("structure", "lanes"), [("parallel", 18), ("serial", 1), ("serial", 4), ("collect", 7)])
def test_windows_of_a_layer_accumulate_to_its_output(kind, structure, lanes):
    """With padding: short windows. The kernel of channel 1 is opposite to one window, so that OR is not always 1. Words
    are as long as a position, so that the last one of a tap is whole."""
    word = 3 if kind == "or_words" else 0
    window = {"kernel": (3, 2), "padding": (2, 0, 1, 1), "stride": (1, 2)}
    layer = Conv(name="c", out_channels=3, accumulate=kind, word_channels=word, **window)
    lanes = lanes if structure == "parallel" or not word else 3 * lanes if 3 * lanes <= 18 else 9
    source = case_map(4, 5, 3)
    rng = np.random.default_rng(1)
    x = random_values((1, *source.shape), BIPOLAR, rng)
    weight = random_values(layer.array_shapes(source)["weight"], BIPOLAR, rng)
    weight[1] = -x[0, 1:4, 2:4]
    unit = Accumulator(kind=kind, structure=structure, products=18, lanes=lanes, word=word)
    features = window_runs(to_bits(x[0], BIPOLAR)[..., 0], layer.window(source))
    kernels = kernel_runs(to_bits(weight, BIPOLAR)[..., 0])
    values = [
        [value(kind, unit.result(run.tolist(), kernel[met].tolist()), len(run) // (word or 1)) for kernel in kernels]
        for run, met in zip(features, valid_elements(source.shape, layer.window(source)))
    ]
    expected = layer.forward(x, {"weight": weight}, source)
    np.testing.assert_array_equal(np.array(values), expected.reshape(-1, 3))
    assert (expected <= -1).any()


UNIT = Accumulator(kind="or", structure="serial", products=3, lanes=2)


def unit(**more: object) -> Accumulator:
    return Accumulator(**{"kind": "or", "structure": "serial", "products": 9, "lanes": 2, **more})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: unit(kind="sum"), "accumulator: kind must be one of popcount, or, or_words, got 'sum'"),
        (lambda: unit(word=2), "accumulator: word must be 0 for kind or, got 2"),
        (lambda: unit(kind="or_words"), "accumulator: word must be >= 1 and divide 2 lanes, got 0"),
        (lambda: unit(kind="or_words", word=3), "accumulator: word must be >= 1 and divide 2 lanes, got 3"),
        (
            lambda: unit(structure="tree"),
            "accumulator: structure must be one of parallel, serial, collect, got 'tree'",
        ),
        (lambda: unit(products=0), "accumulator: products must be an integer >= 1, got 0"),
        (lambda: unit(lanes=10), "accumulator: lanes must be an integer 1..9, got 10"),
        (lambda: unit(structure="parallel"), "accumulator: parallel must have 9 lanes, one a product, got 2"),
        (
            lambda: UNIT.result([1] * 4, [1] * 4),
            "accumulator: a window must have 1..3 features and as many weights, got 4 and 4",
        ),
        (
            lambda: UNIT.result([1], [1, 0]),
            "accumulator: a window must have 1..3 features and as many weights, got 1 and 2",
        ),
        (lambda: UNIT.result([1, -1], [1, 1]), "accumulator: operands must be 0 or 1, got [1, -1] and [1, 1]"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()


def test_structures_are_three():
    assert {u.structure for u in accumulators("or", 2)} == set(STRUCTURES)

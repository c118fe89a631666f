"""Graphs of layers that rules rewrite: names, arrays, and the check that refuses an inexact step."""

import numpy as np
import pytest

from bitloom.golden.rewrite import rewrite
from bitloom.hls_gen.compiler.layer_graph import LayerGraph, check_same, copy_of_sums, copy_of_values, free_name
from tests.errors import value_error
from tests.networks import random_model

from .graph_cases import add, conv, residual

NETWORK = residual("conv_1 @input, conv_2 act_1, add_3 act_1 act_2")
MODEL = random_model(NETWORK, 3, 32)
GRAPH = LayerGraph.of(NETWORK, MODEL.arrays)


def with_copy(graph, change):
    """The graph whose addition reads a copy of its first map, after ``change`` of the copy's arrays."""
    source = graph.maps["act_1"]
    copy = copy_of_values(source, "act_1", "sums", "act_1_copy")
    layers = {**graph.layers, **copy.layers}
    layers["add_3"] = add("add_3", "act_1_copy", "act_2")
    return graph.with_layers(layers, {name: change(name, arrays) for name, arrays in copy.arrays.items()})


def same(name, arrays):
    return arrays


def added(name, arrays):
    return {**arrays, "bias": arrays["bias"] + 1} if name == "act_1_copy" else arrays


def test_a_copy_is_exact():
    check_same(GRAPH, with_copy(GRAPH, same))


def test_a_step_that_changes_values_is_refused():
    def a_copy_that_adds_1(graph):
        return with_copy(graph, added)

    with value_error("the rewriting a_copy_that_adds_1 must be exact: add_3 must stay the same"):
        rewrite(GRAPH, (a_copy_that_adds_1,), check_same)


def test_values_are_not_compared_where_arrays_are_not_known():
    check_same(LayerGraph.of(NETWORK, {}), with_copy(LayerGraph.of(NETWORK, {}), added))


def test_values_of_large_maps_are_not_compared(monkeypatch):
    monkeypatch.setattr("bitloom.hls_gen.compiler.layer_graph.MOST_PRODUCTS", 2 * 30 * 16 - 1)
    layers = dict(GRAPH.layers)
    weight = GRAPH.arrays["conv_2"]["weight"]
    changed = GRAPH.with_layers(layers, {"conv_2": {"weight": weight + 1}})
    check_same(GRAPH, changed)
    monkeypatch.setattr("bitloom.hls_gen.compiler.layer_graph.MOST_PRODUCTS", 2 * 30 * 16)
    with value_error("conv_2 must stay the same"):
        check_same(GRAPH, changed)


@pytest.mark.parametrize("arrays", [{}, MODEL.arrays])
def test_a_step_that_changes_a_size_is_refused(arrays):
    graph = LayerGraph.of(NETWORK, arrays)
    height, width, channels = graph.maps["add_3"].shape
    layers = dict(graph.layers)
    layers["add_4"] = add("add_4", "act_1", "act_2")
    layers["add_3"] = conv("add_3", "add_4", channels + 1)[0]
    with value_error(f"add_3 must stay a map of ({height}, {width}, {channels})"):
        check_same(graph, graph.with_layers(layers, {}))


def test_layers_of_another_kind_have_no_old_arrays():
    layers = {**GRAPH.layers, "act_2": add("act_2", "conv_2", "conv_2")}
    after = GRAPH.with_layers(layers, {"conv_1": {}})
    assert set(after.arrays) == set(GRAPH.arrays) - {"act_2"}
    assert after.arrays["conv_1"] is GRAPH.arrays["conv_1"]


def test_a_copy_of_sums():
    copy = copy_of_sums(GRAPH.maps["act_1"], "act_1", "sums")
    assert copy.layers["sums"].inputs == ("act_1",)
    np.testing.assert_array_equal(copy.arrays["sums"]["weight"][:, 0, 0], np.eye(GRAPH.maps["act_1"].channels))


def test_free_names():
    assert free_name({}, "conv_1", "copy") == "conv_1_copy"
    assert free_name({"conv_1_copy", "conv_1_copy_2"}, "conv_1", "copy") == "conv_1_copy_3"
    assert free_name({}, "c" * 64, "copy") == "c" * 59 + "_copy"

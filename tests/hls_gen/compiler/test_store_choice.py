"""hls_gen/compiler/ways.py alone: stores stay in order, and no layer takes both of its maps from one store."""

from types import SimpleNamespace

import pytest

from bitloom.hls_gen.compiler.ways import MapWay, chosen
from tests.errors import value_error


def layers(**joins):
    """a, b, c and d; of those named here, which map they read beside another."""
    return [SimpleNamespace(name=name, reads="input", joins=joins.get(name)) for name in "abcd"]


def loop(reader):
    return MapWay("loop", reader=reader)


def skip(reader):
    return MapWay("skip", skip_reader=reader)


HOST = MapWay("host")


def choose(options, which, npus=(0, 0, 0, 0)):
    return chosen("net", {name: options.get(name, [HOST]) for name in "abcd"}, which, dict(zip("abcd", npus)))


def test_the_first_way_of_each_that_keeps_the_order():
    """b's map is wanted before a's: one of the two must take the other store, and that is the later map."""
    ways = choose({"a": [loop("d"), skip("d")], "b": [loop("c"), skip("c")]}, layers())
    assert (ways["a"], ways["b"]) == (loop("d"), skip("c"))


def test_stores_of_two_npus_have_orders_of_their_own():
    assert choose({"a": [loop("d")], "b": [loop("c")]}, layers(), npus=(0, 1, 0, 0))["b"] == loop("c")


@pytest.mark.parametrize(("store", "kind"), [(loop, "map"), (skip, "skip")])
@pytest.mark.parametrize("second", ["c", "d"], ids=["before", "with"])
def test_maps_out_of_order(store, kind, second):
    """Two maps of one store can't be wanted in the other order, nor by the same layer."""
    rule = f"net: the {kind} store must hand maps on in the order in which they come, got b wanted before all of a"
    with value_error(rule):
        choose({"a": [store("d")], "b": [store(second)]}, layers())


def test_maps_side_by_side_come_from_both_stores():
    both = {"a": [loop("c"), skip("c")], "b": [loop("c"), skip("c")]}
    ways = choose(both, layers(c="b"))
    assert (ways["a"], ways["b"]) == (loop("c"), skip("c"))
    ways = choose({**both, "a": [skip("c")]}, layers(c="b"))
    assert (ways["a"], ways["b"]) == (skip("c"), loop("c"))


def test_maps_side_by_side_from_one_store():
    """Each comes in order, on an NPU of its own, but both from the map store."""
    rule = "net: of two maps that are concatenated one must come from each store in order, got input and b of c"
    with value_error(rule):
        choose({"a": [loop("c")], "b": [loop("c")]}, layers(c="b"), npus=(0, 1, 0, 0))

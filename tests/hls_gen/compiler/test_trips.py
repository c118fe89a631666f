"""Layers that may follow sums: the tails that the places of a trip allow."""

from bitloom.golden.layers.add import Add
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.hls_gen.compiler import trips
from bitloom.hls_gen.compiler.trips import Trip, needed, optional, tails_of


def test_a_place_is_needed_or_may_be_empty() -> None:
    places = (needed(Requantise), optional(Add, MaxPool))
    assert tails_of(places) == [("requantise",), ("requantise", "add"), ("requantise", "max_pool")]
    assert Trip(orders=(places,), rule="any").tails == tuple(tails_of(places))
    assert Trip(orders=((), places[:1]), rule="any").tails == ((), ("requantise",))
    assert Trip(orders=((optional(MaxPool),), places), rule="any").feature_kinds == ("requantise", "add")


def test_what_an_addition_and_a_depthwise_convolution_may_stand_behind() -> None:
    assert sorted(trips.BEFORE_ADD) == ["lookup", "requantise"]
    features = [("requantise",), ("requantise", "lookup")]
    both = [(*front, pair) for front in features for pair in ("add", "multiply")]
    assert sorted(trips.BEFORE_DEPTHWISE) == sorted(features + both)
    assert trips.DEPTHWISE == [("requantise",)]

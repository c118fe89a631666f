"""A network cut before each weighted layer (hls_gen/compiler/workloads.py), and lowered layers that name the
one they read."""

import numpy as np
import pytest

from bitloom.golden import zoo
from bitloom.golden.graph import INPUT
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.segments import segments
from bitloom.hls_gen.compiler.workloads import CutTarget
from tests.cases import random_model
from tests.errors import value_error
from tests.graph_text import network_of

BINARISED = network_of("2x3x2 u4", "threshold first, dense_1 3, threshold_1", name="n")


def test_segments_of_digits_cnn():
    cut = segments(zoo.load("digits-cnn").network)
    assert [(segment.name, segment.tail_kinds, segment.reads, segment.readers) for segment in cut] == [
        ("conv_1", ("threshold",), INPUT, ("conv_2",)),
        ("conv_2", ("threshold", "max_pool"), "conv_1", ("conv_3",)),
        ("conv_3", ("threshold",), "conv_2", ("dense_4",)),
        ("dense_4", (), "conv_3", ()),
    ]
    assert [segment.source.shape for segment in cut] == [(8, 8, 1), (8, 8, 16), (3, 3, 32), (3, 3, 64)]


def test_passes_name_the_pass_that_they_read():
    lowered = lower_alone(zoo.load("digits-cnn"))
    layers = [("conv_1", INPUT), ("conv_2", "conv_1"), ("conv_3", "conv_2"), ("dense_4", "conv_3")]
    assert [(p.name, p.reads) for p in lowered.layers] == layers


def test_what_a_binariser_makes_counts_as_the_input():
    (segment,) = segments(BINARISED, BINARISED.layers[0])
    assert (segment.name, segment.reads) == ("dense_1", INPUT)
    assert (segment.source, segment.tail) == (BINARISED.maps["first"], BINARISED.layers[2:])
    (layer,) = lower_alone(random_model(BINARISED, np.random.default_rng(1)), CutTarget(binariser_bits=5)).layers
    assert layer.reads == INPUT


def test_networks_without_segments_are_refused():
    with value_error("first: what an engine computes must begin with a conv or dense layer, got threshold"):
        segments(BINARISED)
    alone = Network(name="n", input=BINARISED.input, layers=BINARISED.layers[:1])
    with value_error("n: the engine needs a conv or dense layer, got none"):
        segments(alone, alone.layers[0])


@pytest.mark.parametrize("accumulate", ["popcount", "or"])
def test_sums_that_leave(accumulate):
    """Without an activation sums are the result; what is accumulated by OR are bits."""
    network = network_of("1x1x4", f"dense d 3 accumulate={accumulate}", name="n")
    (workload,) = lower_alone(random_model(network, np.random.default_rng(1))).workloads
    assert workload.raw == (accumulate == "popcount")

from dataclasses import replace

import pytest

from bitloom.golden.training.architecture import network_of
from bitloom.golden.zoo.digits import IMAGE, digits_cnn
from tests.errors import value_error
from tests.graph_text import layers_of, map_of

SOURCE = map_of("12x10x2 u4")


def test_digits_cnn_by_words():
    assert network_of("mine", IMAGE, "conv16,conv32p0,pool,conv64,dense10").layers == digits_cnn().layers


def test_words_of_a_convolution_and_pools():
    large = replace(SOURCE, height=24, width=20)
    network = network_of("mine", large, "conv4k5, pool3, conv5k2s2p1, avgpool, pool2, dense6, dense3", "int8", "4")
    act = "u4 relu=yes fraction=4"
    assert network.layers == layers_of(
        [
            f"conv_1 4 5x5 s8 padding=2, requantise_1 {act}, max_pool pool_1 3x3 3x3",
            f"conv_2 5 2x2 s8 stride=2 padding=1, requantise_2 {act}, avg_pool pool_2 2x2 2x2",
            f"max_pool pool_2_2 2x2 2x2, dense_3 6 s8, requantise_3 {act}, dense_4 3 s8",
        ]
    )


LEVELS = [("binary", "1", "b1", 1), ("binary", "ternary", "b1", 2)]
LEVELS += [("ternary", "2", "ternary", 3), ("ternary", "3", "ternary", 7)]


@pytest.mark.parametrize(("weights", "activations", "weight", "levels"), LEVELS)
def test_levels(weights, activations, weight, levels):
    network = network_of("mine", SOURCE, "dense5,dense3", weights, activations)
    assert network.layers == layers_of([f"dense_1 5 {weight}, threshold_1 levels={levels}, dense_2 3 {weight}"])


def test_residual_words():
    network = network_of("mine", SOURCE, "conv4k5,res,res,pool,dense3", "ternary")
    three = "4 3x3 ternary padding=1"
    addend = "s6 fraction=4"
    assert network.layers == layers_of(
        [
            f"conv_1 4 5x5 ternary padding=2, requantise_1 {addend}, threshold_1",
            f"conv_2 {three}, requantise_2 {addend}, add_2 requantise_2 requantise_1 s8, threshold_2",
            f"conv_3 {three}, requantise_3 {addend}, add_3 requantise_3 add_2 s8, threshold_3",
            "max_pool pool_3 2x2 2x2, dense_4 3 ternary",
        ]
    )


RULE = "must be as conv16, conv16k5s2p0, dense10, res, pool, pool3 or avgpool, got"


BESIDE = "layers: word 2 must stand beside binary or ternary weights and activations 1, got"
KINDS = "weights: must be one of binary, ternary, int2, int3, int4, int5, int6, int7, int8, got 'float'"
AVERAGE = "pool_1: an average needs a signed or unsigned map, got bipolar 1 bit (-1..1 in steps of 2)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["conv16,flatten,dense3"], f"layers: word 2 {RULE} 'flatten'"),
        (["conv,dense3"], f"layers: word 1 {RULE} 'conv'"),
        (["conv4k3k5,dense3"], f"layers: word 1 {RULE} 'conv4k3k5'"),
        (["dense3k3"], f"layers: word 1 {RULE} 'dense3k3'"),
        (["pool2s2,dense3"], f"layers: word 1 {RULE} 'pool2s2'"),
        (["res,dense3"], "layers: word 1 must follow a conv, dense or res, got the input before it"),
        (["conv4,pool,res,dense3"], "layers: word 3 must follow a conv, dense or res, got max_pool before it"),
        (["conv4,res4,dense3"], f"layers: word 2 {RULE} 'res4'"),
        (["conv4,res,dense3", "binary", "2"], f"{BESIDE} binary and 2"),
        (["conv4,res,dense3", "int4", "4"], f"{BESIDE} int4 and 4"),
        (["conv99999,dense3"], f"layers: word 1 {RULE} 'conv99999'"),
        (["conv4k\u0663,dense3"], f"layers: word 1 {RULE} 'conv4k\u0663'"),
        ([""], f"layers: word 1 {RULE} ''"),
        ([",".join(["dense3"] * 65)], "layers: must be 64 at most, got 65"),
        (["dense3", "float"], KINDS),
        (["dense3", "binary", "8"], "activations: must be one of 1, ternary, 2, 3 beside binary weights, got '8'"),
        (["dense3", "int4", "1"], "activations: must be one of 2, 3, 4, 5, 6, 7, 8 beside int4 weights, got '1'"),
        (["conv0,dense3"], "conv_1: out_channels must be an integer >= 1, got 0"),
        (["conv4,avgpool,dense3"], AVERAGE),
    ],
)
def test_words_that_make_no_network(arguments, message):
    with value_error(message):
        network_of("mine", SOURCE, *arguments)

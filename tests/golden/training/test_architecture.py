from dataclasses import replace

import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, signed, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.training.architecture import network_of
from bitloom.golden.zoo.digits import IMAGE, digits_cnn
from tests.errors import value_error

SOURCE = Map(height=12, width=10, channels=2, encoding=unsigned(4))


def test_digits_cnn_by_words():
    assert network_of("mine", IMAGE, "conv16,conv32p0,pool,conv64,dense10").layers == digits_cnn().layers


def test_words_of_a_convolution_and_pools():
    large = replace(SOURCE, height=24, width=20)
    network = network_of("mine", large, "conv4k5, pool3, conv5k2s2p1, avgpool, pool2, dense6, dense3", "int8", "4")
    act = {"encoding": unsigned(4), "relu": True, "fraction": 4}
    eight = signed(8)
    assert network.layers == (
        Conv(name="conv_1", out_channels=4, kernel=(5, 5), padding=(2, 2, 2, 2), weight=eight),
        Requantise(name="requantise_1", **act),
        MaxPool(name="pool_1", kernel=(3, 3), stride=(3, 3)),
        Conv(name="conv_2", out_channels=5, kernel=(2, 2), stride=(2, 2), padding=(1, 1, 1, 1), weight=eight),
        Requantise(name="requantise_2", **act),
        AvgPool(name="pool_2", kernel=(2, 2), stride=(2, 2)),
        MaxPool(name="pool_2_2", kernel=(2, 2), stride=(2, 2)),
        Dense(name="dense_3", out_channels=6, weight=eight),
        Requantise(name="requantise_3", **act),
        Dense(name="dense_4", out_channels=3, weight=eight),
    )


LEVELS = [("binary", "1", BIPOLAR, 1), ("binary", "ternary", BIPOLAR, 2), ("ternary", "2", TERNARY, 3)]


@pytest.mark.parametrize(("weights", "activations", "weight", "levels"), [*LEVELS, ("ternary", "3", TERNARY, 7)])
def test_levels(weights, activations, weight, levels):
    network = network_of("mine", SOURCE, "dense5,dense3", weights, activations)
    assert network.layers == (
        Dense(name="dense_1", out_channels=5, weight=weight),
        Threshold(name="threshold_1", levels=levels),
        Dense(name="dense_2", out_channels=3, weight=weight),
    )


def test_residual_words():
    network = network_of("mine", SOURCE, "conv4k5,res,res,pool,dense3", "ternary")
    padded = {"out_channels": 4, "weight": TERNARY}
    addend = {"encoding": signed(6), "fraction": 4}
    threshold = {"levels": 1}
    assert network.layers == (
        Conv(name="conv_1", kernel=(5, 5), padding=(2,) * 4, **padded),
        Requantise(name="requantise_1", **addend),
        Threshold(name="threshold_1", **threshold),
        Conv(name="conv_2", kernel=(3, 3), padding=(1,) * 4, **padded),
        Requantise(name="requantise_2", **addend),
        Add(name="add_2", encoding=signed(8), inputs=("requantise_2", "requantise_1")),
        Threshold(name="threshold_2", **threshold),
        Conv(name="conv_3", kernel=(3, 3), padding=(1,) * 4, **padded),
        Requantise(name="requantise_3", **addend),
        Add(name="add_3", encoding=signed(8), inputs=("requantise_3", "add_2")),
        Threshold(name="threshold_3", **threshold),
        MaxPool(name="pool_3", kernel=(2, 2), stride=(2, 2)),
        Dense(name="dense_4", out_channels=3, weight=TERNARY),
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

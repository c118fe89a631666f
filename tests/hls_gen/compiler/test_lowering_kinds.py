"""Models split by the kinds of their engines (hls_gen/compiler/lowering.py, lowering_integer.py), layer by layer
against the plain layers."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR, Encoding, bipolar, signed, unsigned
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool, Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.lowered_layers import LoweredLayer
from bitloom.hls_gen.compiler.lowering import Lowered, lower_alone
from bitloom.hls_gen.compiler.workloads import engines_of
from tests import networks as drawn
from tests.cases import case_map, integer_cases, random_images, random_model
from tests.errors import value_error

BINARY, INTEGER = Engine("binary"), Engine("integer", 8, 8)
ENGINES = {"binary": BINARY, "integer": INTEGER}
INT8 = signed(8)


def model_of(encoding: Encoding, *layers: Layer, seed: int = 0) -> Model:
    """A random model on a 5 x 6 map of 3 channels."""
    network = Network(name="net", input=case_map(5, 6, 3, encoding), layers=layers)
    return random_model(network, np.random.default_rng(seed))


def conv(number: int, weight: Encoding = BIPOLAR, channels: int = 5) -> Conv:
    return Conv(name=f"conv_{number}", out_channels=channels, kernel=(2, 3), padding=(1, 0, 0, 2), weight=weight)


def act(number: int, levels: int = 1) -> Threshold:
    return Threshold(name=f"act_{number}", levels=levels)


def pool(number: int, kind: type[Pool] = MaxPool) -> Pool:
    return kind(name=f"pool_{number}", kernel=(2, 2), stride=(1, 2), padding=(0, 1, 1, 0))


def values(result: np.ndarray, levels: int, complement: np.ndarray) -> np.ndarray:
    """(.., channels * levels) bits, of which some are complements -> (.., channels) bipolar values."""
    signs = np.where(complement, -1, 1) * (2 * result.astype(int) - 1)
    return signs.reshape(*result.shape[:3], -1, levels).sum(axis=-1)


def check(model: Model, kinds: Sequence[str], images: np.ndarray | None = None) -> Lowered:
    """Every lowered layer gives what ``Model.trace`` has there; sums, and with their bias, stay in ``biased_range``."""
    lowered = lower_alone(model, engines=[ENGINES[kind] for kind in kinds])
    if images is None:
        images = random_images(model, 3, np.random.default_rng(9))
    network = model.network
    trace, results = model.trace(images), lowered.trace(images)
    assert [not p.binary for p in lowered.layers] == [kind == "integer" for kind in kinds]
    starts = [i for i, layer in enumerate(network.layers) if isinstance(layer, Conv | Dense)]
    ends = [*(i - 1 for i in starts[1:]), len(network.layers) - 1]
    read = lowered.input_features(images)
    of_bits = False
    for p, result, start, end in zip(lowered.layers, results, starts, ends, strict=True):
        tail = network.layers[start + 1 : end + 1]
        integer = not p.binary
        if integer:
            check_range(p, 2 * read.astype(int) - 1 if of_bits else read)
        read = result
        of_bits = p.makes_bits
        for layer in tail:
            if isinstance(layer, Threshold):
                down = model.arrays[layer.name]["direction"] < 0
                before, after = isinstance(tail[0], MaxPool), isinstance(tail[-1], MaxPool)
                complement = (~down | after) if integer else down & before
                result = values(result, layer.levels, np.repeat(complement, layer.levels))
        np.testing.assert_array_equal(result, trace[end])
    return lowered


def check_range(p: LoweredLayer, features: np.ndarray) -> None:
    """Sums, and with their bias, of what the lowered layer reads stay in ``biased_range``."""
    sums = replace(p, actions=()).forward(features)[..., None]
    low, high = p.biased_range
    biased = sums if p.scale is None else sums + p.scale.bias
    assert low <= min(sums.min(), biased.min()) <= max(sums.max(), biased.max()) <= high


TO_BITS = {
    "plain": [act(1)],
    "levels": [act(1, 3)],
    "pool of bits": [act(1, 2), pool(1)],
    "pool of sums": [pool(1), act(1, 2)],
}


@pytest.mark.parametrize("tail", TO_BITS.values(), ids=TO_BITS)
@pytest.mark.parametrize("encoding", [INT8, unsigned(7), signed(2)], ids=str)
def test_bits_from_the_integer_engine(encoding, tail):
    """Both directions, thresholds at both ends of their reach and beyond it: tests.cases.random_model."""
    layers = [conv(1, signed(7)), *tail, conv(2), act(2)]
    p = check(model_of(encoding, *layers), ["integer", "binary"]).layers[0]
    assert p.scale is not None
    assert (p.makes_bits, p.scale.low, p.scale.high, p.raw) == (True, -1, 0, False)
    assert set(p.scale.multiplier.ravel().tolist()) == {1}
    assert set(p.scale.shift.ravel().tolist()) == {0}


@pytest.mark.parametrize("weight", [INT8, signed(2), unsigned(3), BIPOLAR, bipolar(3)], ids=str)
@pytest.mark.parametrize("tail", TO_BITS.values(), ids=TO_BITS)
def test_bits_to_the_integer_engine(tail, weight):
    """Thermometers, and complements behind a max pool of sums; weights are repeated, some with the other sign."""
    model = model_of(BIPOLAR, conv(1), *tail, conv(2, weight))
    if weight == INT8:
        model.arrays["conv_2"]["weight"][:] = np.maximum(model.arrays["conv_2"]["weight"], -127)
    lowered = check(model, ["binary", "integer"])
    levels = next(t.levels for t in tail if isinstance(t, Threshold))
    assert lowered.layers[1].weight.shape == (5, 6, 5 * levels)


def test_in_turn():
    """Integer, binary, integer, binary, integer: ends and middle, with an average between two integer layers."""
    requantised = Requantise(name="act_3", encoding=signed(6), relu=True)
    first = [conv(1, signed(5)), act(1, 2), pool(1), conv(2), act(2), conv(3, signed(6)), requantised]
    last = [Dense(name="dense_5", out_channels=7), act(5), Dense(name="dense_6", out_channels=4, weight=signed(8))]
    layers = [*first, pool(3, AvgPool), conv(4, signed(4)), act(4), *last]
    model = model_of(INT8, *layers)
    check(model, ["integer", "binary", "integer", "integer", "binary", "integer"])
    assert engines_of(model.network) == ["integer", "binary", "integer", "integer", "binary", "integer"]


def check_drawn(data):
    kinds = data.draw(st.lists(st.sampled_from(["binary", "integer"]), min_size=2, max_size=5))
    network, seed = data.draw(drawn.mixed_networks(kinds)), data.draw(st.integers(0, 2**32 - 1))
    check(drawn.random_model(network, seed, 32), kinds, drawn.random_images(network, 2, seed))


@drawn.few_and_many(15, 100)
def test_random_networks(count):
    drawn.check_draws(count, check_drawn, st.data())


@pytest.mark.parametrize(("name", "model"), integer_cases())
def test_the_integer_engine_alone(name, model):
    lowered = lower_alone(model, engines=Engine("integer", 9, 8))
    images = random_images(model, 3, np.random.default_rng(9))
    np.testing.assert_array_equal(lowered.forward(images), model.forward(images))
    assert not any(p.makes_bits for p in lowered.layers)


def test_signs_by_hand():
    """One kernel, 1 x 1 map: x = 5 * feature; x >= 10, and x <= 10 for the second kernel."""
    layers = (Dense(name="a", out_channels=2, weight=signed(4)), act(1), Dense(name="b", out_channels=1))
    network = Network(name="net", input=case_map(1, 1, 1, signed(4)), layers=layers)
    arrays = {
        "a": {"weight": np.full((2, 1, 1, 1), 5)},
        "act_1": {"threshold": np.array([[10], [10]]), "direction": np.array([1, -1])},
        "b": {"weight": np.array([1, -1]).reshape(1, 1, 1, 2)},
    }
    lowered = lower_alone(Model(network, arrays), engines=[Engine("integer", 4, 4), BINARY])
    first, second = lowered.layers
    assert first.scale.bias.tolist() == [[-10], [-11]]
    assert second.weight.ravel().tolist() == [0, 0]  # the first bit is a complement
    signs = lowered.trace(np.array([1, 2, 3]).reshape(3, 1, 1, 1))[0].reshape(3, 2)
    assert signs.tolist() == [[1, 1], [0, 1], [0, 0]]


def dense_model(threshold: int, direction: int, *tail: Layer) -> Model:
    """One product of 4 bits, -8 * x, above a threshold."""
    layers = (Dense(name="a", out_channels=1, weight=signed(4)), act(1), *tail, Dense(name="b", out_channels=1))
    network = Network(name="net", input=case_map(1, 1, 1, signed(4)), layers=layers)
    arrays = {
        "a": {"weight": np.full((1, 1, 1, 1), -8)},
        "act_1": {"threshold": np.array([[threshold]]), "direction": np.array([direction])},
        "b": {"weight": np.ones((1, 1, 1, 1), int)},
    }
    return Model(network, arrays)


@pytest.mark.parametrize("far", [0, 1000, (1 << 31) - 70])
@pytest.mark.parametrize(("threshold", "direction"), [(65, 1), (-56, 1), (64, -1), (-57, -1)])
def test_thresholds_out_of_reach(threshold, direction, far):
    """Sums are -56 .. 64; at the ends and beyond them a threshold is a constant, and costs no wider accumulator."""
    if threshold in (65, 64):
        threshold += far
    else:
        threshold -= far
    for tail in ([], [MaxPool(name="pool_1", kernel=(1, 1), stride=(1, 1))]):
        model = dense_model(threshold, direction, *tail)
        lowered = check(model, ["integer", "binary"], np.arange(-8, 8).reshape(16, 1, 1, 1))
        assert max(map(abs, lowered.layers[0].biased_range)) <= 2 * 64 + 1


def test_kinds_of_layers():
    """Integers are multiplied, and so is what is requantised or reads such a map; the input may come in bit planes."""
    requantised = Requantise(name="act_3", encoding=signed(4))
    layers = (conv(1), act(1), conv(2, signed(2)), act(2), conv(3), requantised, conv(4), act(4), conv(5, bipolar(2)))
    network = Network(name="net", input=case_map(9, 9, 3, INT8), layers=layers)
    assert engines_of(network) == ["binary", "integer", "integer", "integer", "binary"]


def test_weights_that_change_sign_must_fit():
    """-128 has no opposite in 8 bits: at x <= T before a max pool, and where bits are complements."""
    model = model_of(INT8, conv(1, INT8), act(1), pool(1), conv(2), act(2))
    weight, direction = model.arrays["conv_1"]["weight"], model.arrays["act_1"]["direction"]
    weight[:] = np.maximum(weight, -127)
    kinds = [INTEGER, BINARY]
    channel = int(np.flatnonzero(direction < 0)[0])
    weight[np.flatnonzero(direction > 0)[0], 0, 0, 0] = -128
    lower_alone(model, engines=kinds)
    weight[channel, 0, 0, 0] = -128
    with value_error("conv_1: weights that change sign must fit 8 bits in two's complement, got 128"):
        lower_alone(model, engines=kinds)
    model = model_of(BIPOLAR, conv(1), pool(1), act(1), conv(2, signed(4)))
    weight, direction = model.arrays["conv_2"]["weight"], model.arrays["act_1"]["direction"]
    weight[:] = np.maximum(weight, -7)
    channel = int(np.flatnonzero(direction < 0)[0])
    weight[2, 1, 1, channel] = -8
    lower_alone(model, engines=[BINARY, Engine("integer", 8, 5)])
    with value_error("conv_2: weights that change sign must fit 4 bits in two's complement, got 8"):
        lower_alone(model, engines=[BINARY, Engine("integer", 8, 4)])


def requantise(number: int) -> Requantise:
    return Requantise(name=f"act_{number}", encoding=INT8)


READ_BY_BINARY = (
    "what follows, where the binary engine reads it, must be threshold, threshold and max_pool, or max_pool "
)
READ_BY_BINARY += "and threshold"
READ_BY_OTHERS = "what follows, where no binary engine reads it, must be nothing, or requantise, perhaps lookup, and "
READ_BY_OTHERS += "perhaps a pool"
AVERAGED = [AvgPool(name="pool_2", kernel=(2, 2), stride=(2, 2)), requantise(2)]
LAST = Dense(name="dense", out_channels=2, weight=INT8)


@pytest.mark.parametrize(
    ("layers", "engines", "message"),
    [
        (
            [conv(1, INT8), requantise(1), conv(2), act(2)],
            [INTEGER, BINARY],
            f"conv_1: {READ_BY_BINARY}, got requantise",
        ),
        ([conv(1, INT8), conv(2), act(2)], [INTEGER, BINARY], f"conv_1: {READ_BY_BINARY}, got nothing"),
        ([conv(1, INT8), act(1), conv(2), act(2)], [INTEGER, INTEGER], f"conv_1: {READ_BY_OTHERS}, got threshold"),
        (
            [conv(1), act(1), conv(2, INT8), act(2), conv(3)],
            [BINARY] * 3,
            "conv_2: weight must be bipolar 1 bit or ternary, got signed 8 bit (-128..127)",
        ),
        ([conv(1), act(1), conv(2), act(2)], [BINARY, INTEGER], f"conv_2: {READ_BY_OTHERS}, got threshold"),
        (
            [conv(1), pool(1), act(1), conv(2, INT8), *AVERAGED, LAST],
            [BINARY, INTEGER, INTEGER],
            f"conv_2: {READ_BY_OTHERS}, got avg_pool, requantise",
        ),
    ],
)
def test_what_an_engine_cannot_do(layers, engines, message):
    encoding = BIPOLAR if engines[0] is BINARY else INT8
    network = Network(name="net", input=case_map(5, 6, 3, encoding), layers=tuple(layers))
    with value_error(message):
        lower_alone(drawn.random_model(network, 1, 32), engines=engines)


def test_a_map_must_be_wide_enough():
    with value_error("conv_1: its map must fit 8 bits in two's complement, got bipolar 1 bit (-1..1 in steps of 2)"):
        lower_alone(model_of(BIPOLAR, conv(1, INT8)), engines=[INTEGER])
    with value_error("conv_1: its weight must fit 3 bits in two's complement, got bipolar 4 bit (-4..4 in steps of 2)"):
        lower_alone(model_of(INT8, conv(1, bipolar(4))), engines=[Engine("integer", 8, 3)])


def test_a_network_without_weights():
    network = Network(name="net", input=case_map(2, 2, 1, INT8), layers=(requantise(1),))
    with value_error("act_1: what an engine computes must begin with a conv or dense layer, got requantise"):
        lower_alone(random_model(network, np.random.default_rng(0)), engines=Engine("integer", 8, 8))

"""Each rewriting of hls_gen/compiler/lowering_binary.py against plain layers, layer by layer; unused lanes as in
driver/layout."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, bipolar, signed, unsigned
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool, MinPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.actions import PoolAction, Sums, Thresholds
from bitloom.hls_gen.compiler.engine_rules import stored_bits
from bitloom.hls_gen.compiler.host_tail import split
from bitloom.hls_gen.compiler.lowered_layers import LoweredLayer
from bitloom.hls_gen.compiler.lowering import Lowered, lower_alone
from bitloom.hls_gen.compiler.workloads import CutTarget
from bitloom.hls_gen.design.pool_unit import LARGEST
from tests import networks as drawn
from tests.cases import case_map, random_images, random_model
from tests.errors import value_error
from tests.graph_text import network_of

from .foldings import CASES

PADDINGS = [(0, 0, 0, 0), (2, 1, 0, 1), (0, 0, 1, 2), (1, 2, 2, 0)]
INTEGERS = [TERNARY, *(signed(b) for b in range(2, 9)), *(unsigned(b) for b in range(1, 8))]


def conv(padding: tuple[int, int, int, int] = (0, 0, 0, 0), weight: Encoding = BIPOLAR, channels: int = 4) -> Conv:
    return Conv(name="conv_1", out_channels=channels, kernel=(3, 3), stride=(1, 2), padding=padding, weight=weight)


def model_of(encoding: Encoding, channels: int, *layers: Layer | str, seed: int = 0) -> Model:
    """A random model on a 4 x 6 map."""
    return random_model(network_of(case_map(4, 6, channels, encoding), *layers), np.random.default_rng(seed))


def pass_ends(network: Network) -> list[int]:
    """Index of the last layer of each lowered layer."""
    last = [i for i, layer in enumerate(network.layers[1:]) if isinstance(layer, Conv | Dense)]
    return [*last, len(network.layers) - 1]


def check(model: Model, n: int = 3, planes: int | None = None, images: np.ndarray | None = None) -> Lowered:
    """Every lowered layer gives what ``Model.trace`` has there: values, or bits, complemented after a max pool of sums.

    Also: values stay in ``sum_range``, thresholds too or just above, and unused lanes add nothing.
    """
    if images is None:
        images = random_images(model, n, np.random.default_rng(9))
    model, _ = split(model)  # the host's layers are none of a lowered model's
    network = model.network
    trace = model.trace(images)
    lowered = lower_alone(model, CutTarget(planes=planes))
    features = lowered.input_features(images)
    for p, end in zip(lowered.layers, pass_ends(network)):
        sums, result = plain(p).forward(features), p.forward(features)
        low, high = p.sum_range
        assert low <= sums.min() <= sums.max() <= high
        if isinstance(p.activation, Thresholds):
            assert low <= p.activation.limit.min() <= p.activation.limit.max() <= high + 1
            value = 2 * result.reshape(*result.shape[:3], p.out_channels, p.levels).sum(axis=-1, dtype=int) - p.levels
            value = value * turned(model, network.layers[: end + 1])
            np.testing.assert_array_equal(value, trace[end])
        else:
            np.testing.assert_array_equal(result, trace[end])
        unused = unused_lanes(p)
        wider = np.concatenate([features, np.zeros((*features.shape[:3], 2, features.shape[4]), np.uint8)], axis=3)
        np.testing.assert_array_equal(unused.forward(wider), result)
        features = result[..., None]
    np.testing.assert_array_equal(lowered.forward(images), result)
    return lowered


def turned(model: Model, layers: Sequence[Layer]) -> np.ndarray | int:
    """-1 for channels whose bits are complements: of x <= T behind a pool, and of a min pool's bits (not of both)."""
    begin = max((i for i, layer in enumerate(layers) if isinstance(layer, Conv | Dense)), default=-1) + 1
    tail = [layer for layer in layers[begin:] if isinstance(layer, Threshold | MaxPool | MinPool)]
    sign = -1 if any(isinstance(layer, MinPool) for layer in tail) else 1
    acts = [layer for layer in tail[1:] if isinstance(layer, Threshold)]
    return sign * model.arrays[acts[0].name]["direction"] if acts else sign


def plain(p: LoweredLayer) -> LoweredLayer:
    """The lowered layer without what comes after its sums."""
    return replace(p, actions=())


def unused_lanes(p: LoweredLayer) -> LoweredLayer:
    """The lowered layer with two channels more, weight bit 1, which with feature bit 0 must add nothing."""
    ones = np.ones((*p.weight.shape[:2], 2, p.weight.shape[3]), np.uint8)
    weight = np.concatenate([p.weight, ones], axis=2)
    return replace(p, arithmetic=replace(p.arithmetic, weight=weight))


def test_the_rule_on_a_tiny_pass():
    """One kernel, 1 x 1 map: features 1 0 1, weights 1 1 0: one match, two mismatches."""
    model = Model(network_of("1x1x3", "dense 1"), {"dense": {"weight": np.array([1, 1, -1]).reshape(1, 1, 1, 3)}})
    (p,) = lower_alone(model).layers
    assert p.weight.tolist() == [[[[1], [1], [0]]]]
    of = p.arithmetic
    assert (of.visits, of.coefficient.tolist(), of.double, of.tap_offset) == (1, [1], True, 3)
    assert (p.activation, p.pool, p.sum_range, p.levels, p.out_channels) == (
        Sums(beside_bits=True),
        None,
        (-3, 3),
        1,
        1,
    )
    image = np.array([1, -1, 1]).reshape(1, 1, 1, 3)
    assert check(model, images=image).forward(image).tolist() == [[[[2 * 1 - 3]]]]


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    check(CASES[name])


@settings(max_examples=25)
@given(st.data())
def test_random_networks(data):
    network, seed = data.draw(drawn.networks()), data.draw(st.integers(0, 2**32 - 1))
    check(drawn.random_model(network, seed), images=drawn.random_images(network, 2, seed))


@pytest.mark.parametrize("tail", ["", "act", "act levels=3"])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("encoding", [BIPOLAR, bipolar(2), bipolar(3), bipolar(5)])
def test_matches_and_thermometers(encoding, padding, tail):
    p = check(model_of(encoding, 5, conv(padding), tail)).layers[0]
    assert p.weight.shape == (4, 9, 5 * encoding.bits, 1)
    assert (p.visits, p.arithmetic.double, p.arithmetic.tap_offset) == (1, True, 5 * encoding.bits)


RAW = [(4, BIPOLAR), (5, bipolar(2)), (2, bipolar(3))]
WITH_THRESHOLDS = [*RAW, (1, BIPOLAR), (5, BIPOLAR), (3, bipolar(3))]


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize(
    ("channels", "encoding", "raw"), [*((*c, True) for c in RAW), *((*c, False) for c in WITH_THRESHOLDS)]
)
def test_ternary_weights(channels, encoding, padding, raw):
    even = channels * encoding.bits % 2 == 0
    model = model_of(encoding, channels, conv(padding, TERNARY), "" if raw else "act levels=2")
    p = check(model).layers[0]
    lanes = channels * encoding.bits
    of = p.arithmetic
    assert (of.visits, of.double, of.tap_offset) == ((2, False, lanes // 2) if even else (2, True, lanes))
    halves = np.repeat(model.arrays["conv_1"]["weight"].reshape(4, 9, channels), encoding.bits, axis=2)
    direction = np.ones(4) if raw else model.arrays["act"]["direction"]
    both = 2 * p.weight[..., 0].reshape(4, 9, 2, lanes).astype(int) - 1
    np.testing.assert_array_equal(both.sum(axis=2), 2 * halves * direction[:, None, None])


@pytest.mark.sample(20)
@pytest.mark.parametrize("raw", [False, True], ids=["thresholds", "raw"])
@pytest.mark.parametrize("padding", PADDINGS[:2])
@pytest.mark.parametrize("encoding", INTEGERS, ids=str)
def test_bit_planes(encoding, padding, raw):
    model = model_of(encoding, 3, conv(padding), "" if raw else "act levels=2")
    lowered = check(model, n=8)
    bits = encoding.bits + (encoding.kind == "unsigned")
    assert lowered.input_bits == stored_bits(encoding) == bits
    assert lowered.layers[0].weight.shape == (4, 9, 3, bits + 1)
    assert (lowered.layers[0].arithmetic.double, lowered.layers[0].arithmetic.tap_offset) == (False, 0)
    coefficient = lowered.layers[0].arithmetic.coefficient
    assert coefficient.tolist() == [*(2**k for k in range(bits - 1)), -(2 ** (bits - 1)), 1]


@pytest.mark.parametrize("encoding", INTEGERS, ids=str)
def test_every_value_by_its_planes(encoding):
    """Each value of the encoding once, against both weights, at one tap: no sum can hide a wrong plane."""
    values = np.arange(encoding.low, encoding.high + 1)
    network = network_of(case_map(1, 1, 1, encoding), "dense 2")
    model = Model(network, {"dense": {"weight": np.array([1, -1]).reshape(2, 1, 1, 1)}})
    result = lower_alone(model).forward(values.reshape(-1, 1, 1, 1))
    np.testing.assert_array_equal(result.reshape(-1, 2), np.stack([values, -values], axis=1))


POOL = MaxPool(name="pool", kernel=(2, 2), stride=(1, 2), padding=(1, 0, 0, 1))
WORDS = "conv words 6 accumulate=or_words word_channels=3"


def tail(pool_first: bool, levels: int = 1) -> Sequence[Layer]:
    act = Threshold(name="act", levels=levels)
    return (POOL, act) if pool_first else (act, POOL)


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("pooled", [False, True])
def test_accumulation_by_or(pooled, padding):
    """One match or none, beside padding too; its inputs may be complements, and its output is what the next reads."""
    some = f"conv some 5 3x3 accumulate=or padding={'/'.join(map(str, padding))}"
    pool = "max_pool pool_2 2x1 1x1" * pooled
    model = model_of(BIPOLAR, 3, "conv few 1 1x1", *tail(True), some, pool, "dense 2", seed=3)
    model.arrays["act"]["direction"][:], model.arrays["act"]["threshold"][:] = -1, -1  # features are mostly -1
    model.arrays["some"]["weight"][0] = 1
    p = check(model, n=200).layers[1]
    of = p.arithmetic
    assert (of.accumulate, of.double, of.tap_offset, p.sum_range, p.raw) == ("or", False, 0, (0, 1), False)
    assert p.activation.limit.tolist() == [[1]] * 5
    assert (p.pool is None) == (not pooled)
    bits = model.trace(random_images(model, 200, np.random.default_rng(0)))[3]
    assert set(np.unique(bits)) == {-1, 1}


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("pooled", [False, True])
def test_words(pooled, padding):
    """The second word of a tap is short; its inputs may be complements, and falling thresholds give complements, which
    the next layer's weights take back, also where that ORs words itself."""
    words = f"{WORDS} 3x3 padding={'/'.join(map(str, padding))}"
    pool = "max_pool pool_2 2x1 1x1" * pooled
    last = "threshold mid, dense again 4 accumulate=or_words word_channels=4"
    model = model_of(BIPOLAR, 3, "conv first 5 1x1", *tail(True), words, pool, last, seed=3)
    assert set(model.arrays["mid"]["direction"]) == {-1, 1}
    images = random_images(model, 20, np.random.default_rng(9))
    lowered = lower_alone(model)
    np.testing.assert_array_equal(lowered.forward(images), model.forward(images))
    middle, last = lowered.layers[1:]
    of = middle.arithmetic
    assert (of.accumulate, of.double, of.tap_offset, of.word_channels) == ("or_words", True, 2, 3)
    assert (last.raw, last.arithmetic.tap_offset, last.sum_range[1]) == (True, 2, 2 * last.height * last.width)
    values = plain(middle).forward(lowered.trace(images)[0][..., None])
    low, high = middle.sum_range
    assert low <= values.min() < values.max() <= high


@pytest.mark.parametrize(("pool", "fits"), [("max_pool", 1), ("min_pool", -1)])
def test_words_in_front_of_a_pool(pool, fits):
    """The pool unit ORs bits of large sums: the direction that fits is exact, the other one is refused."""
    model = model_of(BIPOLAR, 3, f"{WORDS} 2x2, act, {pool} pool 2x1 1x1, dense last 4")
    direction = model.arrays["act"]["direction"]
    direction[:] = fits
    images = random_images(model, 20, np.random.default_rng(9))
    np.testing.assert_array_equal(lower_alone(model).forward(images), model.forward(images))
    direction[1:3] = -fits
    with value_error(
        f"act: between accumulate or_words and a {pool} every direction must be {fits}, got {-fits} in 2 of 6 channels"
    ):
        lower_alone(model)


@pytest.mark.parametrize("direction", [-1, 1])
def test_words_never_have_a_min_pool_of_sums(direction):
    model = model_of(BIPOLAR, 3, f"{WORDS} 2x2, min_pool pool 2x1 1x1, act, dense last 4")
    model.arrays["act"]["direction"][:] = direction
    with value_error(
        "pool: accumulate or_words must have no min_pool before its threshold, got one: a pool behind the threshold "
        "needs directions of -1"
    ):
        lower_alone(model)


@pytest.mark.parametrize("next_weight", [BIPOLAR, TERNARY], ids=str)
@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize("encoding", [BIPOLAR, signed(4)], ids=str)
@pytest.mark.parametrize("pool_first", [False, True], ids=["threshold_pool", "pool_threshold"])
def test_directions_around_a_max_pool(pool_first, encoding, levels, next_weight):
    """A complement (pool first) is taken back by the next layer's weights, for each bit of the channel."""
    dense = Dense(name="dense", out_channels=5, weight=next_weight)
    model = model_of(encoding, 3, conv((1, 1, 0, 1)), *tail(pool_first, levels), dense, "threshold end")
    direction = model.arrays["act"]["direction"]
    assert set(direction) == {-1, 1}
    down = np.repeat(direction < 0, levels)
    layers = check(model, n=6).layers
    assert layers[0].pool == PoolAction(window=POOL.window, reduction=LARGEST)
    weight = model.arrays["dense"]["weight"].reshape(5, -1, 4) * model.arrays["end"]["direction"][:, None, None]
    repeated = np.repeat(weight, levels, axis=2)
    got = layers[1].weight[..., 0].reshape(5, repeated.shape[1], -1, 4 * levels) * 2.0 - 1  # (O, taps, visits, lanes)
    np.testing.assert_array_equal(got.mean(axis=2), repeated * np.where(down & pool_first, -1, 1))


@pytest.mark.sample(10)
@pytest.mark.parametrize("encoding", [BIPOLAR, bipolar(2), signed(5), unsigned(3)], ids=str)
@pytest.mark.parametrize("weight", [BIPOLAR, TERNARY], ids=str)
@pytest.mark.parametrize("pool_first", [None, False, True], ids=["no_pool", "threshold_pool", "pool_threshold"])
def test_thresholds_out_of_reach(pool_first, weight, encoding):
    """At, beyond and far beyond both ends, in both directions: constants, with narrow thresholds."""
    after = ("act",) if pool_first is None else tail(pool_first)
    layer = conv((1, 0, 2, 1), weight, channels=20)
    network = model_of(encoding, 3, layer, *after, "dense 3").network
    low, high = layer.accumulator_range(network.input)
    ends = [low - 1, low, low + 1, high - 1, high, high + 1, 0, low - 1000, 2**31 - 1, -(2**31)]
    rng = np.random.default_rng(2)
    arrays = dict(random_model(network, rng).arrays)
    arrays["act"] = {"threshold": np.array(ends * 2).reshape(-1, 1), "direction": np.repeat([1, -1], 10)}
    check(Model(network, arrays), n=5)


def test_values_at_both_ends_of_the_range():
    """All +1 and all -1 against such weights: the ends of sum_range occur, ternary weights' doubled too."""
    for weight in (BIPOLAR, TERNARY):
        for channels in (3, 4):
            layer = Dense(name="dense", out_channels=2, weight=weight)
            network = network_of(f"2x3x{channels}", layer, "act")
            ones = np.ones((2, 2, 3, channels), int)
            ones[1] = -1
            act = {"threshold": np.array([[6 * channels], [6 * channels]]), "direction": np.ones(2, int)}
            model = Model(network, {"dense": {"weight": ones}, "act": act})
            p = lower_alone(model).layers[0]
            features = lower_alone(model).input_features(ones)
            assert sorted(set(plain(p).forward(features).ravel().tolist())) == list(p.sum_range)
            check(model, images=ones)


TAIL = "what follows must be nothing, threshold, or threshold and a max_pool or min_pool in either order, got"
EVEN = (
    "conv_1: ternary weights without a threshold need a bipolar map with an even number of bits at each position, got"
)


@pytest.mark.parametrize(
    ("encoding", "layers", "planes", "message"),
    [
        (signed(8), [conv()], 7, "net: the input must have at most 7 bit planes, got 8"),
        (unsigned(7), [conv()], 7, "net: the input must have at most 7 bit planes, got 8"),
        (BIPOLAR, [POOL, "threshold a", conv()], None, f"pool_copy: {TAIL} threshold, max_pool, threshold"),
        (
            BIPOLAR,
            [conv(), "threshold a", POOL, "threshold b"],
            None,
            f"conv_1: {TAIL} threshold, max_pool, threshold",
        ),
        (BIPOLAR, [conv(), "avg_pool mean 1x1 1x1, dense 2"], None, f"conv_1: {TAIL} avg_pool"),
        (BIPOLAR, [conv(), POOL, "dense 2"], None, f"conv_1: {TAIL} max_pool"),
        (BIPOLAR, [conv(), "dense 2"], None, "conv_1: a threshold must follow before the next layer, got none"),
        (
            BIPOLAR,
            ["dense 2 accumulate=or, act, dense last 2"],
            None,
            "dense: what follows accumulate or must be nothing or max_pool, got threshold",
        ),
        (
            BIPOLAR,
            [replace(conv(), accumulate="or_words", word_channels=2), "act", POOL],
            None,
            "act: between accumulate or_words and a max_pool every direction must be 1, got -1 in 2 of 4 channels",
        ),
        (
            BIPOLAR,
            ["dense 4 accumulate=or_words word_channels=2, act"],
            None,
            "act: direction after accumulate or_words must be 1 in the last layer, got -1",
        ),
        (
            BIPOLAR,
            [conv(weight=signed(4))],
            None,
            "conv_1: weight must be bipolar 1 bit or ternary, got signed 4 bit (-8..7)",
        ),
        (bipolar(3), [conv(weight=TERNARY)], None, f"{EVEN} 3 channels of bipolar 3 bit (-3..3 in steps of 2)"),
        (signed(8), [conv(weight=TERNARY)], None, f"{EVEN} 3 channels of signed 8 bit (-128..127)"),
        (BIPOLAR, [conv(), *tail(True)], None, "act: direction after a max pool must be 1 in the last layer, got -1"),
    ],
)
def test_what_the_engine_cannot_do(encoding, layers, planes, message):
    model = model_of(encoding, 3, *layers)
    with value_error(message):
        lower_alone(model, CutTarget(planes=planes))


def test_forward_refuses_wrong_images():
    model = model_of(BIPOLAR, 3, conv())
    with value_error("net: images must have shape (N, 4, 6, 3), got (1, 4, 6, 2)"):
        lower_alone(model).forward(np.ones((1, 4, 6, 2), int))

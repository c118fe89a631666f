"""Averages and sums of sums, in front of thresholds and requantisations, and pools before all convolutions (spec A11):
rewritten exactly, or refused in one line."""

from itertools import product

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, bipolar, signed, unsigned
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, Pool, SumPool
from bitloom.golden.layers.rounding import rounded_quotient
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.taps import AddedSums, Taps, limits_of_sums
from bitloom.hls_gen.compiler.workloads import CutTarget, engines_of
from tests.cases import case_map, random_images, random_model
from tests.errors import value_error
from tests.graph_text import network_of

from .agreement import agree

INT8 = signed(8)
WHOLE = {"kernel": (2, 3), "stride": (2, 1)}
"""Every window of this pool has six taps."""
CUT = {"kernel": (2, 3), "stride": (1, 2), "padding": (1, 0, 0, 2)}
"""Windows of this one have one to six."""


def conv(weight: Encoding = BIPOLAR, **more: object) -> Conv:
    return Conv(name="conv_1", out_channels=6, kernel=(3, 2), padding=(1, 0, 1, 1), weight=weight, **more)


def network(source: Encoding, *layers: Layer | str, channels: int = 3) -> Network:
    return network_of(case_map(6, 7, channels, source), *layers)


def with_thresholds(net: Network, seed: int) -> Model:
    """A random model whose thresholds lie among the values that they are compared with, in both directions, and some
    next to and beyond their ends."""
    rng = np.random.default_rng(seed)
    model = random_model(net, rng)
    images = random_images(model, 8, rng)
    arrays = dict(model.arrays)
    for layer in net.layers:
        if isinstance(layer, Threshold):
            model = Model(net, arrays)
            (read,) = net.reads[layer.name]
            values = {INPUT: images, **dict(model.walk(images))}[read]
            shape = arrays[layer.name]["threshold"].shape
            threshold = rng.choice(values.ravel(), shape)
            low, high = int(values.min()), int(values.max())
            ends = [low, high, low - 1, high + 1, 0, -1, 1, -(2**31), 2**31 - 1]
            threshold.ravel()[: min(threshold.size, 2)] = rng.choice(ends, min(threshold.size, 2))
            arrays[layer.name] = {"threshold": threshold, "direction": rng.choice([-1, 1], shape[0])}
    return Model(net, arrays)


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 7, 36])
def test_thresholds_of_totals_are_those_of_averages(count: int, falls: bool) -> None:
    """For every total and every threshold in reach, and far out of it."""
    total = np.arange(-9 * count, 9 * count + 1)
    average = rounded_quotient(total, np.array(count))
    limits = np.array([*range(-12, 13), -(2**31), 2**31 - 1])[:, None]
    direction = np.full(len(limits), -1 if falls else 1)
    total_limits = limits_of_sums(limits, direction, count)
    wanted = average <= limits if falls else average >= limits
    np.testing.assert_array_equal(total <= total_limits if falls else total >= total_limits, wanted)


SOURCES = [(BIPOLAR, BIPOLAR, 1), (BIPOLAR, BIPOLAR, 3), (bipolar(3), TERNARY, 1), (signed(5), TERNARY, 1)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", [AvgPool, SumPool])
@pytest.mark.parametrize("window", [WHOLE, CUT], ids=["whole", "cut"])
@pytest.mark.parametrize("more", ["", "max_pool", "min_pool", "pool_behind"])
@pytest.mark.parametrize(("source", "weight", "levels"), [*SOURCES, (unsigned(4), BIPOLAR, 2)], ids=str)
def test_the_binary_engine_adds_up_sums_in_front_of_thresholds(source, weight, levels, more, window, kind) -> None:
    act = f"act_1 levels={levels}"
    tail = f"{act}, max_pool more 1x2 1x1" if more == "pool_behind" else f"{more} more 1x2 1x1, {act}" if more else act
    net = network(source, conv(weight), kind(name="pool_1", **window), tail, "dense 4")
    for seed in range(3):
        model = with_thresholds(net, seed)
        agree(model, lower_alone(model))


@pytest.mark.parametrize("kind", [AvgPool, SumPool])
def test_sums_of_words_that_are_ored_are_added_up(kind) -> None:
    words = conv(accumulate="or_words", word_channels=2)
    net = network(BIPOLAR, words, kind(name="pool_1", **CUT), "act_1, dense 4")
    model = with_thresholds(net, 1)
    agree(model, lower_alone(model))


@pytest.mark.parametrize("kind", [AvgPool, SumPool])
@pytest.mark.parametrize("between", [False, True])
def test_the_integer_engine_adds_up_sums_for_the_binary_one(between: bool, kind) -> None:
    tail = "max_pool more 1x2 1x1" * between, "act_1 levels=2, dense 4"
    net = network(INT8, conv(INT8), kind(name="pool_1", **CUT), *tail)
    model = with_thresholds(net, 2)
    agree(model, lower_alone(model, engines=[Engine("integer", 8, 9), Engine()]))


def test_a_sum_pool_in_front_of_a_requantisation() -> None:
    tail = "act_1 s8, max_pool pool_2 2x1 1x1, dense 4 s8"
    net = network(INT8, conv(INT8), SumPool(name="pool_1", **WHOLE), tail)
    arrays = dict(random_model(net, np.random.default_rng(3)).arrays)
    arrays["act_1"] = {"bias": np.arange(6), "multiplier": np.full(6, 1 << 20), "shift": np.full(6, 30)}
    model = Model(net, arrays)
    agree(model, lower_alone(model, engines=Engine("integer", 8, 8)))


@pytest.mark.parametrize("engine", ["binary", "integer"])
def test_the_last_sums_are_added_up_too(engine: str) -> None:
    """A sum pool of raw sums is the device's, from which fewer results leave."""
    encoding, weight = (BIPOLAR, BIPOLAR) if engine == "binary" else (INT8, INT8)
    net = network(encoding, conv(weight), SumPool(name="pool_1", **WHOLE), SumPool(name="pool_2", **CUT), channels=4)
    model = random_model(net, np.random.default_rng(5))
    lowered = lower_alone(model, engines=Engine() if engine == "binary" else Engine("integer", 8, 8))
    assert lowered.model.network == net
    agree(model, lowered)


def test_taps_go_through_the_kernel_again_and_again() -> None:
    """On three positions, the windows of two taps and the sum of two of them: the middle position is read twice."""
    window = Taps.of(Window(kernel=(1, 2)), (SumPool(name="pool", kernel=(1, 2), stride=(1, 1)),), (1, 3))
    assert (window.output_size(1, 3), window.places, window.sums, window.taps) == ((1, 1), 2, 2, 4)
    assert window.positions(1, 3).tolist() == [[0, 1, 1, 2]]
    average = AvgPool(name="pool", kernel=(1, 2), stride=(1, 2), padding=(0, 1, 0, 0))
    window = Taps.of(Window(kernel=(1, 1)), (average,), (1, 3))
    assert (window.pools[0].repeated, window.positions(1, 3).tolist()) == (2, [[0, 0], [1, 2]])


FIRST = {"bits": (BIPOLAR, ""), "thermometer": (bipolar(3), ""), "made_binary": (signed(6), "threshold entry")}


@pytest.mark.parametrize("kind", [MaxPool, MinPool])
@pytest.mark.parametrize("pools", [1, 2])
@pytest.mark.parametrize("name", FIRST)
def test_a_pool_of_bits_comes_first(name: str, pools: int, kind) -> None:
    source, entry = FIRST[name]
    first = [kind(name="pool_0", **CUT), kind(name="pool_9", kernel=(2, 1), stride=(1, 1))][:pools]
    model = with_thresholds(network(source, entry, *first, conv(), "act_1, dense 4"), 3)
    assert engines_of(model.network) == ["binary"] * 3
    lowered = lower_alone(model, CutTarget(binariser_bits=6 if entry else 0))
    assert [p.name for p in lowered.layers] == ["pool_0_copy", "conv_1", "dense"]
    agree(model, lowered)


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("kind", "source"),
    [*product((MaxPool, MinPool, AvgPool, SumPool), (signed(5), unsigned(3))), (MaxPool, TERNARY), (MinPool, TERNARY)],
    ids=str,
)
@pytest.mark.parametrize("window", [WHOLE, CUT], ids=["whole", "cut"])
def test_a_pool_of_integers_comes_first_and_a_threshold_behind_it(window, kind, source) -> None:
    net = network(source, kind(name="pool_0", **window), "act_0 levels=2", conv(), "act_1, dense 4")
    assert engines_of(net) == ["binary"] * 3
    for seed in range(2):
        model = with_thresholds(net, seed)
        agree(model, lower_alone(model))


@pytest.mark.parametrize("kind", [MaxPool, AvgPool])
def test_a_pool_of_integers_that_weights_read_needs_integers(kind) -> None:
    """The integer engine computes the copy and the layer behind the pool, the binary one what reads bits."""
    net = network(unsigned(7), kind(name="pool_0", **CUT), conv(), "act_1, dense 4")
    assert engines_of(net) == ["integer", "integer", "binary"]
    model = with_thresholds(net, 1)
    agree(model, lower_alone(model, engines=[Engine("integer", 8, 2), Engine("integer", 8, 2), Engine()]))


def pool(kind: type[Pool], number: int = 1) -> Pool:
    return kind(name=f"pool_{number}", **WHOLE)


AVERAGES = "avg_pool pool_1 2x1 1x1, avg_pool pool_2 2x1 1x1"
TAIL = "conv_1: what follows must be nothing, threshold, or threshold and a max_pool or min_pool in either order, got"


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([conv(), pool(MaxPool), pool(AvgPool, 2), "act, dense 2"], f"{TAIL} max_pool, avg_pool, threshold"),
        ([conv(), AVERAGES, "act, dense 2"], f"{TAIL} avg_pool, avg_pool, threshold"),
    ],
)
def test_what_is_not_exact_is_refused(layers, message) -> None:
    with value_error(message):
        lower_alone(random_model(network(BIPOLAR, *layers), np.random.default_rng(1)))


def test_windows_with_too_many_taps_are_refused() -> None:
    net = network_of("60x60x1", "conv_1 1 3x3 padding=1, avg_pool pool_1 7x7 1x1 padding=3, act, dense 2")
    rule = r"^pool_1: taps of all windows of a layer must be <= 4,194,304 .*got 5,715,360,000"
    with pytest.raises(ValueError, match=rule):
        lower_alone(random_model(net, np.random.default_rng(1)))


def test_sums_of_one_window_are_the_windows_sums() -> None:
    window = Window(kernel=(2, 3))
    assert Taps.of(window, (), (5, 5)).alone is window
    assert Taps(window, (AddedSums(Window(kernel=(2, 2))),)).kernel == (2, 3)


def test_integers_behind_a_first_pool_need_integer_npus() -> None:
    """The array of a binary NPU reads their bit planes from the host alone."""
    model = random_model(network(INT8, MaxPool(name="pool_1", **WHOLE), conv(), "act_1"), np.random.default_rng(1))
    rule = "on a binary NPU thresholds must follow a pool of the input's integers"
    with value_error(f"pool_1: {rule}, got conv_1; integer NPUs need none"):
        lower_alone(model, engines=[Engine()] * 2)

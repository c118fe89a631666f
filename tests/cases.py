"""Tables of small networks, binary and integer, for golden, hardware and driver, asymmetric on purpose.

Height and width differ, so do vertical and horizontal strides; channels are no multiple of a word; paddings differ on
all sides; thresholds lie at both ends of their reach and one step beyond.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from bitloom.golden.encoding import BIPOLAR, Encoding
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.requantise import Requantise, scale_to_multiplier
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from tests.graph_text import network_of


def case_map(height: int, width: int, channels: int, encoding: Encoding = BIPOLAR) -> Map:
    return Map(height=height, width=width, channels=channels, encoding=encoding)


def random_values(shape: Sequence[int], encoding: Encoding, rng: np.random.Generator) -> np.ndarray:
    """Uniform values of the encoding, int64; the first is the lowest and the last the highest."""
    count = (encoding.high - encoding.low) // encoding.step + 1
    values = encoding.low + encoding.step * rng.integers(0, count, tuple(shape))
    if values.size:
        values.flat[0], values.flat[-1] = encoding.low, encoding.high
    return values


def random_images(model: Model, n: int, rng: np.random.Generator) -> np.ndarray:
    """(n, H, W, C) int64 of the model's input encoding."""
    return random_values((n, *model.network.input.shape), model.network.input.encoding, rng)


def random_model(network: Network, rng: np.random.Generator) -> Model:
    """A model of ``network`` with random weights, and thresholds of which many fall inside what really occurs.

    Channel c of a Threshold layer is special, as far as there are so many: 0: threshold 0; 1 and 2: the ends of the
    reach; 3 and 4: just beyond them. Half of the directions, at random, are -1.
    """
    arrays: dict[str, dict[str, np.ndarray]] = {}
    before = None
    for index, (layer, source) in enumerate(network.chain("a case")):
        if isinstance(layer, Weighted):
            shape = layer.array_shapes(source)["weight"]
            arrays[layer.name] = {"weight": random_values(shape, layer.weight, rng)}
        elif isinstance(layer, Threshold):
            low, high = source.encoding.low, source.encoding.high
            if isinstance(before, Weighted):
                low, high = before.accumulator_range(*network.sources(before))
            spread = max(1, (high - low) // 8)
            threshold = np.clip(rng.integers(-spread, spread + 1, (source.channels, layer.levels)), low, high)
            for channel, value in enumerate((0, low, high, low - 1, high + 1)[: source.channels]):
                threshold[channel] = value
            threshold = np.clip(np.sort(threshold, axis=1), -(1 << 31), (1 << 31) - 1)
            direction = np.where(rng.permutation(source.channels) % 2 == 0, 1, -1)
            arrays[layer.name] = {"threshold": threshold, "direction": direction}
        elif isinstance(layer, Requantise):
            sums = _sums(network, index, arrays)
            arrays[layer.name] = _requantise_arrays(layer, sums, source, index, rng)
        before = layer
    return Model(network, arrays)


def _sums(network: Network, index: int, arrays: Mapping[str, Mapping[str, np.ndarray]]) -> np.ndarray:
    """(samples, C): what layer ``index`` reads when 32 random images come in."""
    x = random_values((32, *network.input.shape), network.input.encoding, np.random.default_rng(index))
    for layer, source in network.chain("a case")[:index]:
        x = layer.forward(x, arrays.get(layer.name, {}), source)
    return x.reshape(-1, x.shape[-1])


def _requantise_arrays(
    layer: Requantise, sums: np.ndarray, source: Map, index: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Random arrays with which the sums (samples, C) use the range of the encoding, a few beyond it.

    Every second channel, from the second on, is special in turn: bias as small or as large as is legal, the largest
    and the smallest scale, exact halves, values that stay as they are.
    """
    lowest, highest = -(1 << 31) + 1 - source.encoding.low, (1 << 31) - 1 - source.encoding.high
    special = [(highest, (1 << 16) - 1, 40), (0, 1, 1), (lowest, 40_000, 40), (0, (1 << 16) - 1, 0), (lowest, 1, 24)]
    special += [(0, 1, 0), (highest, 1 << 15, 40), (0, 3, 2), (lowest, (1 << 16) - 1, 0), (0, 1, 40)]
    rows = []
    for channel, values in enumerate(sums.T):
        mean = int(values.sum()) // len(values)
        distance = max(1, int(np.abs(values - mean).sum()) // len(values))
        bias = int(distance * rng.uniform(-0.2, 0.5)) - mean
        rows.append((bias, *scale_to_multiplier((layer.encoding.high + 0.5) / distance * rng.uniform(0.3, 0.7))))
        if channel % 2:
            rows[-1] = special[(channel // 2 + index) % len(special)]
    bias, multiplier, shift = np.array(rows, np.int64).T
    return {"bias": bias, "multiplier": multiplier, "shift": shift}


@cache
def cases() -> list[tuple[str, Model]]:
    """(id, model) of every case; the same on every call."""
    return _models(CASES, 0)


@cache
def integer_cases() -> list[tuple[str, Model]]:
    """(id, model) of small integer networks; the same on every call.

    All are of the form that the integer engine runs: weighted layers of signed 2..8 bit weights, each followed by a
    Requantise and perhaps a pool; only the last weighted layer may be raw. Features: signed 2..9 or unsigned 1..8 bit.
    """
    return _models(INTEGER_CASES, 100)


def _models(networks: Mapping[str, tuple[str, str]], seed: int) -> list[tuple[str, Model]]:
    """Models of networks, each with random arrays of a seed of its own."""
    return [
        (name, random_model(network_of(source, text, name=name), np.random.default_rng(seed + i)))
        for i, (name, (source, text)) in enumerate(networks.items())
    ]


CASES = {
    "fan_in_1": ("1x1x1", "dense_1 5, threshold_1"),
    "dense_33_31": ("1x1x33", "dense_1 31, threshold_1, dense_2 3"),
    "dense_of_a_map": ("2x3x5", "dense_1 7, threshold_1"),
    "conv_1x1": ("3x2x3", "conv_1 4 1x1, threshold_1"),
    "conv_strides": ("7x10x3", "conv_1 5 3x2 stride=2x3, threshold_1"),
    "conv_padding": ("5x4x31", "conv_1 6 3x3 padding=2/0/1/2, threshold_1"),
    "conv_padding_stride": ("6x9x1", "conv_1 33 2x4 stride=3x2 padding=1/3/0/2, threshold_1"),
    "conv_70_channels": ("4x3x70", "conv_1 9 3x3, threshold_1"),
    "one_window_with_padding": ("2x2x3", "conv_1 5 2x2 stride=3x3 padding=1/0/0/0, threshold_1"),
    "max_pool_of_bits": ("6x7x5", "conv_1 6 2x2, threshold_1, max_pool pool_1 3x2 1x2 padding=1/0/0/1"),
    "max_pool_of_sums": ("7x5x3", "conv_1 6 3x3 padding=1, max_pool pool_1 2x3 2x1, threshold_1"),
    "signed_8_input": ("5x6x3 s8", "conv_1 7 3x3 padding=0/1/2/0, threshold_1, dense_1 4"),
    "unsigned_4_input": ("4x7x2 u4", "conv_1 5 2x3, threshold_1"),
    "levels": (
        "4x6x5 b2",
        "conv_1 6 2x2, threshold_1 levels=3, max_pool pool_1 2x2 2x2, dense_1 9, threshold_2 levels=2",
    ),
    "ternary": ("4x5x3 ternary", "conv_1 6 2x3 ternary padding=1/0/0/2, threshold_1"),
    "int8": ("6x5x3 s8", "conv_1 4 3x3 s8 padding=1, avg_pool pool_1 3x2 2x1 padding=0/1/2/0"),
    "threshold_of_the_input": ("3x4x5 s8", "threshold_1 levels=2, max_pool pool_1 2x1 1x2, dense_1 3"),
    "small_cnn": (
        "9x12x3 s8",
        "conv_1 33 3x3, threshold_1, max_pool pool_1 2x2 2x2, conv_2 31 2x3 padding=1/1/0/0, threshold_2, "
        "dense_1 70, threshold_3, dense_2 10",
    ),
}
"""Images and layers as tests/graph_text.py has them."""
INTEGER_CASES = {
    "int_fan_in_1": ("1x1x1 s8", "dense_1 1 s8, requantise_1 s8"),
    "int_raw": ("1x1x9 u8", "dense_1 3 s8"),
    "int_dense_33": (
        "1x1x33 u8",
        "dense_1 33 s8, requantise_1 s8 relu=yes, dense_2 9 s8, requantise_2 s8, dense_3 3 s8",
    ),
    "int_dense_of_a_map": ("2x3x3 s8", "dense_1 9 s8, requantise_1 u8 relu=yes"),
    "int_conv_1x1": ("3x2x3 u2", "conv_1 9 1x1 s3, requantise_1 u1, conv_2 1 1x1 s2, requantise_2 s2"),
    "int_conv_strides": ("7x10x3 s8", "conv_1 9 3x2 s5 stride=2x3, requantise_1 s8"),
    "int_conv_padding": ("5x4x9 s4", "conv_1 3 3x3 s2 padding=2/0/1/2, requantise_1 s3 relu=yes"),
    "int_conv_33": ("4x3x33 s8", "conv_1 33 3x3 s8 padding=1, requantise_1 u8, dense_1 10 s8"),
    "int_max_pool": (
        "6x7x1 s8",
        "conv_1 9 2x2 s8, requantise_1 s8, max_pool pool_1 3x2 1x2 padding=1/0/0/1, conv_2 3 2x2 s8",
    ),
    "int_avg_pool": (
        "7x6x3 u4",
        "conv_1 9 2x1 s4, requantise_1 s6, avg_pool pool_1 2x3 2x1 padding=0/2/1/0, dense_1 3 s4, requantise_2 u3",
    ),
    "int_pool_last": ("5x8x3 s8", "conv_1 3 2x3 s8, requantise_1 u8, avg_pool pool_1 3x3 2x2 padding=0/0/1/1"),
    "int_widths": (
        "6x5x3 s2",
        "conv_1 9 2x1 s8, requantise_1 s3, conv_2 3 1x2 s7, requantise_2 s4 relu=yes, conv_3 9 2x2 s6, "
        "requantise_3 s5, conv_4 3 1x1 s5, requantise_4 s6, conv_5 9 1x2 s4, requantise_5 s7, "
        "conv_6 3 2x1 s3, requantise_6 s8, dense_7 3 s2",
    ),
    "int_unsigned_widths": (
        "5x6x9 u2",
        "conv_1 3 1x2 s2, requantise_1 u3, conv_2 9 2x1 s3, requantise_2 u4 relu=yes, conv_3 3 1x1 s4, "
        "requantise_3 u5, conv_4 9 2x2 s5, requantise_4 u6, conv_5 3 1x2 s6, requantise_5 u7, "
        "conv_6 9 2x1 s7, requantise_6 u8, dense_7 1 s8",
    ),
    "int_small_cnn": (
        "9x12x3 s8",
        "conv_1 33 3x3 s8 padding=1, requantise_1 s8 relu=yes, max_pool pool_1 3x3 2x2 padding=0/0/1/1, "
        "conv_2 9 3x2 s8 padding=1/1/0/0, requantise_2 s8, avg_pool pool_2 3x3 2x2 padding=0/0/1/1, "
        "dense_3 33 s8, requantise_3 s8 relu=yes, dense_4 10 s8",
    ),
    "int_zero_point": (
        "5x6x3 u8",
        "conv_1 9 2x3 s8, requantise_1 s9 clip=-200..55, avg_pool pool_1 2x2 1x2, dense_2 3 s8, "
        "requantise_2 u8 clip=3..251",
    ),
}

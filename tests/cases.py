"""Tables of small networks, binary and integer, for golden, hardware and driver, asymmetric on purpose.

Height and width differ, so do vertical and horizontal strides; channels are no multiple of a word; paddings differ on
all sides; thresholds lie at both ends of their reach and one step beyond.
"""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, bipolar, signed, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise, scale_to_multiplier
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network


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
    return [
        (name, random_model(Network(name=name, input=source, layers=tuple(layers)), np.random.default_rng(i)))
        for i, (name, source, layers) in enumerate(_networks())
    ]


@cache
def integer_cases() -> list[tuple[str, Model]]:
    """(id, model) of small integer networks; the same on every call.

    All are of the form that the integer engine runs: weighted layers of signed 2..8 bit weights, each followed by a
    Requantise and perhaps a pool; only the last weighted layer may be raw. Features: signed 2..9 or unsigned 1..8 bit.
    """
    return [
        (name, random_model(Network(name=name, input=source, layers=tuple(layers)), np.random.default_rng(100 + i)))
        for i, (name, source, layers) in enumerate(_integer_networks())
    ]


def _threshold(n: int, levels: int = 1) -> Threshold:
    return Threshold(name=f"threshold_{n}", levels=levels)


def _networks() -> list[tuple[str, Map, list[Layer]]]:
    c33, c22 = {"kernel": (3, 3)}, {"kernel": (2, 2), "stride": (2, 2)}
    return [
        ("fan_in_1", case_map(1, 1, 1), [Dense(name="dense_1", out_channels=5), _threshold(1)]),
        (
            "dense_33_31",
            case_map(1, 1, 33),
            [Dense(name="dense_1", out_channels=31), _threshold(1), Dense(name="dense_2", out_channels=3)],
        ),
        ("dense_of_a_map", case_map(2, 3, 5), [Dense(name="dense_1", out_channels=7), _threshold(1)]),
        ("conv_1x1", case_map(3, 2, 3), [Conv(name="conv_1", out_channels=4, kernel=(1, 1)), _threshold(1)]),
        (
            "conv_strides",
            case_map(7, 10, 3),
            [Conv(name="conv_1", out_channels=5, kernel=(3, 2), stride=(2, 3)), _threshold(1)],
        ),
        (
            "conv_padding",
            case_map(5, 4, 31),
            [Conv(name="conv_1", out_channels=6, **c33, padding=(2, 0, 1, 2)), _threshold(1)],
        ),
        (
            "conv_padding_stride",
            case_map(6, 9, 1),
            [Conv(name="conv_1", out_channels=33, kernel=(2, 4), stride=(3, 2), padding=(1, 3, 0, 2)), _threshold(1)],
        ),
        ("conv_70_channels", case_map(4, 3, 70), [Conv(name="conv_1", out_channels=9, **c33), _threshold(1)]),
        (
            "one_window_with_padding",
            case_map(2, 2, 3),
            [Conv(name="conv_1", out_channels=5, kernel=(2, 2), stride=(3, 3), padding=(1, 0, 0, 0)), _threshold(1)],
        ),
        (
            "max_pool_of_bits",
            case_map(6, 7, 5),
            [
                Conv(name="conv_1", out_channels=6, kernel=(2, 2)),
                _threshold(1),
                MaxPool(name="pool_1", kernel=(3, 2), stride=(1, 2), padding=(1, 0, 0, 1)),
            ],
        ),
        (
            "max_pool_of_sums",
            case_map(7, 5, 3),
            [
                Conv(name="conv_1", out_channels=6, **c33, padding=(1, 1, 1, 1)),
                MaxPool(name="pool_1", kernel=(2, 3), stride=(2, 1)),
                _threshold(1),
            ],
        ),
        (
            "signed_8_input",
            case_map(5, 6, 3, signed(8)),
            [
                Conv(name="conv_1", out_channels=7, **c33, padding=(0, 1, 2, 0)),
                _threshold(1),
                Dense(name="dense_1", out_channels=4),
            ],
        ),
        (
            "unsigned_4_input",
            case_map(4, 7, 2, unsigned(4)),
            [Conv(name="conv_1", out_channels=5, kernel=(2, 3)), _threshold(1)],
        ),
        (
            "levels",
            case_map(4, 6, 5, bipolar(2)),
            [
                Conv(name="conv_1", out_channels=6, kernel=(2, 2)),
                _threshold(1, 3),
                MaxPool(name="pool_1", **c22),
                Dense(name="dense_1", out_channels=9),
                _threshold(2, 2),
            ],
        ),
        (
            "ternary",
            case_map(4, 5, 3, TERNARY),
            [Conv(name="conv_1", out_channels=6, kernel=(2, 3), weight=TERNARY, padding=(1, 0, 0, 2)), _threshold(1)],
        ),
        (
            "int8",
            case_map(6, 5, 3, signed(8)),
            [
                Conv(name="conv_1", out_channels=4, **c33, weight=signed(8), padding=(1, 1, 1, 1)),
                AvgPool(name="pool_1", kernel=(3, 2), stride=(2, 1), padding=(0, 1, 2, 0)),
            ],
        ),
        (
            "threshold_of_the_input",
            case_map(3, 4, 5, signed(8)),
            [
                _threshold(1, 2),
                MaxPool(name="pool_1", kernel=(2, 1), stride=(1, 2)),
                Dense(name="dense_1", out_channels=3),
            ],
        ),
        (
            "small_cnn",
            case_map(9, 12, 3, signed(8)),
            [
                Conv(name="conv_1", out_channels=33, **c33),
                _threshold(1),
                MaxPool(name="pool_1", **c22),
                Conv(name="conv_2", out_channels=31, kernel=(2, 3), padding=(1, 1, 0, 0)),
                _threshold(2),
                Dense(name="dense_1", out_channels=70),
                _threshold(3),
                Dense(name="dense_2", out_channels=10),
            ],
        ),
    ]


def _requantise(n: int, encoding: Encoding, relu: bool = False) -> Requantise:
    return Requantise(name=f"requantise_{n}", encoding=encoding, relu=relu)


def _integer_networks() -> list[tuple[str, Map, list[Layer]]]:
    s2, s3, s4, s5, s6, s7, s8 = (signed(bits) for bits in range(2, 9))
    cut = {"kernel": (3, 3), "stride": (2, 2), "padding": (0, 0, 1, 1)}
    return [
        ("int_fan_in_1", case_map(1, 1, 1, s8), [Dense(name="dense_1", out_channels=1, weight=s8), _requantise(1, s8)]),
        ("int_raw", case_map(1, 1, 9, unsigned(8)), [Dense(name="dense_1", out_channels=3, weight=s8)]),
        (
            "int_dense_33",
            case_map(1, 1, 33, unsigned(8)),
            [
                Dense(name="dense_1", out_channels=33, weight=s8),
                _requantise(1, s8, True),
                Dense(name="dense_2", out_channels=9, weight=s8),
                _requantise(2, s8),
                Dense(name="dense_3", out_channels=3, weight=s8),
            ],
        ),
        (
            "int_dense_of_a_map",
            case_map(2, 3, 3, s8),
            [Dense(name="dense_1", out_channels=9, weight=s8), _requantise(1, unsigned(8), True)],
        ),
        (
            "int_conv_1x1",
            case_map(3, 2, 3, unsigned(2)),
            [
                Conv(name="conv_1", out_channels=9, kernel=(1, 1), weight=s3),
                _requantise(1, unsigned(1)),
                Conv(name="conv_2", out_channels=1, kernel=(1, 1), weight=s2),
                _requantise(2, s2),
            ],
        ),
        (
            "int_conv_strides",
            case_map(7, 10, 3, s8),
            [Conv(name="conv_1", out_channels=9, kernel=(3, 2), stride=(2, 3), weight=s5), _requantise(1, s8)],
        ),
        (
            "int_conv_padding",
            case_map(5, 4, 9, s4),
            [
                Conv(name="conv_1", out_channels=3, kernel=(3, 3), padding=(2, 0, 1, 2), weight=s2),
                _requantise(1, s3, True),
            ],
        ),
        (
            "int_conv_33",
            case_map(4, 3, 33, s8),
            [
                Conv(name="conv_1", out_channels=33, kernel=(3, 3), weight=s8, padding=(1, 1, 1, 1)),
                _requantise(1, unsigned(8)),
                Dense(name="dense_1", out_channels=10, weight=s8),
            ],
        ),
        (
            "int_max_pool",
            case_map(6, 7, 1, s8),
            [
                Conv(name="conv_1", out_channels=9, kernel=(2, 2), weight=s8),
                _requantise(1, s8),
                MaxPool(name="pool_1", kernel=(3, 2), stride=(1, 2), padding=(1, 0, 0, 1)),
                Conv(name="conv_2", out_channels=3, kernel=(2, 2), weight=s8),
            ],
        ),
        (
            "int_avg_pool",
            case_map(7, 6, 3, unsigned(4)),
            [
                Conv(name="conv_1", out_channels=9, kernel=(2, 1), weight=s4),
                _requantise(1, s6),
                AvgPool(name="pool_1", kernel=(2, 3), stride=(2, 1), padding=(0, 2, 1, 0)),
                Dense(name="dense_1", out_channels=3, weight=s4),
                _requantise(2, unsigned(3)),
            ],
        ),
        (
            "int_pool_last",
            case_map(5, 8, 3, s8),
            [
                Conv(name="conv_1", out_channels=3, kernel=(2, 3), weight=s8),
                _requantise(1, unsigned(8)),
                AvgPool(name="pool_1", **cut),
            ],
        ),
        (
            "int_widths",
            case_map(6, 5, 3, s2),
            [
                Conv(name="conv_1", out_channels=9, kernel=(2, 1), weight=s8),
                _requantise(1, s3),
                Conv(name="conv_2", out_channels=3, kernel=(1, 2), weight=s7),
                _requantise(2, s4, True),
                Conv(name="conv_3", out_channels=9, kernel=(2, 2), weight=s6),
                _requantise(3, s5),
                Conv(name="conv_4", out_channels=3, kernel=(1, 1), weight=s5),
                _requantise(4, s6),
                Conv(name="conv_5", out_channels=9, kernel=(1, 2), weight=s4),
                _requantise(5, s7),
                Conv(name="conv_6", out_channels=3, kernel=(2, 1), weight=s3),
                _requantise(6, s8),
                Dense(name="dense_7", out_channels=3, weight=s2),
            ],
        ),
        (
            "int_unsigned_widths",
            case_map(5, 6, 9, unsigned(2)),
            [
                Conv(name="conv_1", out_channels=3, kernel=(1, 2), weight=s2),
                _requantise(1, unsigned(3)),
                Conv(name="conv_2", out_channels=9, kernel=(2, 1), weight=s3),
                _requantise(2, unsigned(4), True),
                Conv(name="conv_3", out_channels=3, kernel=(1, 1), weight=s4),
                _requantise(3, unsigned(5)),
                Conv(name="conv_4", out_channels=9, kernel=(2, 2), weight=s5),
                _requantise(4, unsigned(6)),
                Conv(name="conv_5", out_channels=3, kernel=(1, 2), weight=s6),
                _requantise(5, unsigned(7)),
                Conv(name="conv_6", out_channels=9, kernel=(2, 1), weight=s7),
                _requantise(6, unsigned(8)),
                Dense(name="dense_7", out_channels=1, weight=s8),
            ],
        ),
        (
            "int_small_cnn",
            case_map(9, 12, 3, s8),
            [
                Conv(name="conv_1", out_channels=33, kernel=(3, 3), weight=s8, padding=(1, 1, 1, 1)),
                _requantise(1, s8, True),
                MaxPool(name="pool_1", **cut),
                Conv(name="conv_2", out_channels=9, kernel=(3, 2), weight=s8, padding=(1, 1, 0, 0)),
                _requantise(2, s8),
                AvgPool(name="pool_2", **cut),
                Dense(name="dense_3", out_channels=33, weight=s8),
                _requantise(3, s8, True),
                Dense(name="dense_4", out_channels=10, weight=s8),
            ],
        ),
        (
            "int_zero_point",
            case_map(5, 6, 3, unsigned(8)),
            [
                Conv(name="conv_1", out_channels=9, kernel=(2, 3), weight=s8),
                Requantise(name="requantise_1", encoding=signed(9), clip=(-200, 55)),
                AvgPool(name="pool_1", kernel=(2, 2), stride=(1, 2)),
                Dense(name="dense_2", out_channels=3, weight=s8),
                Requantise(name="requantise_2", encoding=unsigned(8), clip=(3, 251)),
            ],
        ),
    ]

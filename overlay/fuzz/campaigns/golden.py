"""Campaign golden: layers of integers in C++ must equal their definitions in numpy, bit for bit.

A case is a layer of any kind that golden/kernels/tiled/integers.py has, the maps that it reads, a seed for arrays and
values, whether these are corners of their encodings alone, and an instruction path.
"""

from dataclasses import asdict

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Array, Encoding, bipolar, signed, unsigned
from bitloom.golden.graph import INPUT
from bitloom.golden.kernels.tiled import cpu, integers
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import FACTOR_BITS, MAX_ADD_SHIFT, OFFSET_BITS, Add
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import DepthwiseConv, GroupedConv
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, SumPool
from bitloom.golden.layers.requantise import MAX_FRACTION, MAX_SHIFT, MULTIPLIER_BITS, SUM_BITS, Requantise
from bitloom.golden.layers.rounding import FIRST_SHIFT, PRODUCT_BITS, ROUNDINGS
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.overlay.fuzz.campaign import Case
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_networks import dilated, grown, maps, windows

NAME = "layer_1"
MOST_IMAGES = 5
GROUPS = (2, 3, 4)
FEATURE_BITS, SUM_MAP_BITS, WEIGHT_BITS = 16, 32, 16
"""Bits of features, of sums and of weights at most; some have too many for C++."""


def _encoding(pick: Pick, most_bits: int) -> Encoding:
    if pick.integer(0, 3) == 0:
        return pick.of([BIPOLAR, TERNARY, bipolar(pick.integer(2, 4))])
    bits = pick.integer(1, most_bits)
    return signed(bits) if pick.flip() else unsigned(bits)


def _features(pick: Pick) -> Encoding:
    """Of the results of a requantisation or an addition."""
    return signed(pick.integer(2, 9)) if pick.flip() else unsigned(pick.integer(1, 8))


def _clip(pick: Pick, encoding: Encoding) -> tuple[int, int] | None:
    if pick.flip():
        return None
    ends = [pick.integer(encoding.low, encoding.high), pick.integer(0, encoding.high)]
    return min(ends), max(ends)


def _layer(pick: Pick, kind: type[Layer]) -> tuple[Layer, Map]:
    """A layer of that kind, and the map that it reads, an addition twice."""
    source = maps(pick, _encoding(pick, SUM_MAP_BITS if kind in (Requantise, Threshold) else FEATURE_BITS))
    if kind is Dense:
        return Dense(name=NAME, out_channels=pick.integer(1, 70), weight=_encoding(pick, WEIGHT_BITS)), source
    if issubclass(kind, Conv):
        window = asdict(grown(pick, source, dilated(pick, source, windows(pick, source, 5))))
        weight = _encoding(pick, WEIGHT_BITS)
        groups = pick.of(GROUPS)
        if kind is DepthwiseConv:
            return DepthwiseConv(name=NAME, out_channels=source.channels, weight=weight, **window), source
        if kind is GroupedConv:
            source = Map(**{**vars(source), "channels": groups * pick.integer(1, 20)})
            outputs = groups * pick.integer(1, 20)
            return GroupedConv(name=NAME, out_channels=outputs, weight=weight, groups=groups, **window), source
        return Conv(name=NAME, out_channels=pick.integer(1, 70), weight=weight, **window), source
    if kind in (MaxPool, MinPool, AvgPool, SumPool):
        if kind in (AvgPool, SumPool) and source.encoding.kind not in ("signed", "unsigned"):
            source = Map(**{**vars(source), "encoding": signed(8)})
        return kind.of(NAME, windows(pick, source, 5)), source  # type: ignore[attr-defined]
    if kind is Threshold:
        return Threshold(name=NAME, levels=pick.integer(1, 5)), source
    encoding = _features(pick)
    if kind is Add:
        return Add(name=NAME, inputs=(INPUT, INPUT), encoding=encoding, clip=_clip(pick, encoding)), source
    rounding = pick.of(ROUNDINGS)
    fraction = pick.of([0, 0, pick.integer(1, MAX_FRACTION)])
    clip = _clip(pick, encoding)
    return (
        Requantise(name=NAME, encoding=encoding, clip=clip, relu=pick.flip(), fraction=fraction, rounding=rounding),
        source,
    )


def _values(encoding: Encoding, shape: tuple[int, ...], corners: bool, rng: np.random.Generator) -> Array:
    """Values of an encoding, all of them or its ends alone."""
    if corners:
        return rng.choice(np.array([encoding.low, encoding.high]), shape)
    count = (encoding.high - encoding.low) // encoding.step + 1
    return encoding.low + encoding.step * rng.integers(0, count, shape)


def _arrays(layer: Layer, source: Map, corners: bool, rng: np.random.Generator) -> dict[str, Array]:
    """Arrays that the layer's rules allow, up to their limits."""
    channels = source.channels
    if isinstance(layer, Weighted):
        return {"weight": _values(layer.weight, layer.array_shapes(source)["weight"], corners, rng)}
    if isinstance(layer, Threshold):
        low, high = source.encoding.low - 2, source.encoding.high + 2
        threshold = rng.integers(max(low, -(1 << 31)), min(high, (1 << 31) - 1) + 1, (channels, layer.levels))
        return {"threshold": threshold, "direction": rng.choice([-1, 1], channels)}
    if isinstance(layer, Add):
        factor = (1 << FACTOR_BITS - 1) - 1
        return {
            "multiplier": rng.integers(-factor, factor + 1, 2) >> rng.integers(0, FACTOR_BITS, 2),
            "bias": rng.integers(-1 << OFFSET_BITS - 1, 1 << OFFSET_BITS - 1, 1) >> rng.integers(0, OFFSET_BITS, 1),
            "shift": rng.integers(0, MAX_ADD_SHIFT + 1, 1),
        }
    if not isinstance(layer, Requantise):
        return {}
    low, high = (end << layer.fraction for end in (source.encoding.low, source.encoding.high))
    room = (1 << SUM_BITS - 1 + layer.fraction) - 1
    bias = (
        rng.integers(-room - low, room - high + 1, channels) if room - high >= -room - low else np.zeros(channels, int)
    )
    if not corners:
        bias >>= rng.integers(0, SUM_BITS + layer.fraction, channels)
        bias = np.clip(bias, -room - low, room - high)
    most = [((1 << PRODUCT_BITS - 1) - 1) // max(1, abs(low + b), abs(high + b)) for b in bias.tolist()]
    multiplier = [int(rng.integers(1, min(m, (1 << MULTIPLIER_BITS) - 1) + 1)) for m in most]
    if not corners:
        multiplier = [max(1, m >> int(rng.integers(0, MULTIPLIER_BITS))) for m in multiplier]
    if rng.random() < 0.25:  # powers of two, so that many results are exact halves
        multiplier = [1 << m.bit_length() - 1 for m in multiplier]
    least = FIRST_SHIFT if layer.rounding == "twice" else 0
    reach = [max(1, abs(low + b), abs(high + b)) * m for b, m in zip(bias.tolist(), multiplier)]
    shift = [
        int(np.clip(r.bit_length() - rng.integers(-1, 10), least, MAX_SHIFT)) for r in reach
    ]  # results of few bits
    return {"bias": bias, "multiplier": np.array(multiplier), "shift": np.array(shift)}


class GoldenCampaign:
    """Random layers."""

    def case(self, pick: Pick) -> Case:
        """A layer with its map."""
        kind = pick.of([Conv, Dense, GroupedConv, DepthwiseConv, MaxPool, MinPool, AvgPool, SumPool, Threshold,
                        Requantise, Requantise, Add])  # fmt: skip
        layer, source = _layer(pick, kind)
        return {
            "network": Network(name="fuzzed", input=source, layers=(layer,)).to_dict(),
            "images": pick.integer(1, MOST_IMAGES),
            "seed": pick.integer(0, 2**32 - 1),
            "corners": pick.integer(0, 3) == 0,
            "path": pick.of(list(cpu.PATHS)),
        }

    def run(self, case: Case) -> tuple[str, str]:
        """Run a case: "exact" if C++ equals the definition, "plain" if it doesn't take the layer, "unfit" if the rules
        don't; all else is a fault."""
        try:
            network = Network.from_dict(case["network"])
            rng = np.random.default_rng(case["seed"])
            (layer,) = network.layers
            model = Model(network, {NAME: _arrays(layer, network.input, case["corners"], rng)})
        except ValueError:
            return "unfit", ""
        sources = network.sources(layer)
        values = [_values(source.encoding, (case["images"], *source.shape), case["corners"], rng) for source in sources]
        path = case["path"] if case["path"] in cpu.paths() else "scalar"
        forward = integers.forward_of(layer, sources, network.output, model.arrays[NAME], path)
        if forward is None:
            return "plain", ""
        expected = layer.forward_of(values, model.arrays[NAME], sources)
        result = forward(*(x.astype(integers.value_dtype(source)) for x, source in zip(values, sources)))
        if result.shape != expected.shape or result.dtype != integers.value_dtype(network.output):
            return "wrong", f"{layer.kind}: results must be {expected.shape}, got {result.shape} of {result.dtype}"
        wrong = int((result != expected).sum())
        return (
            ("wrong", f"{layer.kind}, {path}: results must equal golden, got {wrong} others")
            if wrong
            else ("exact", "")
        )

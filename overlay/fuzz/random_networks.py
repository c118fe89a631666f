"""Random networks: of one engine, deep ones for rings, and a mapping on a design's NPUs.

A ``Pick`` makes the choices: one of its own for a campaign, Hypothesis for a test, which then finds a smaller example.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, bipolar, signed, unsigned
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import DepthwiseConv, GroupedConv
from bitloom.golden.layers.multiply import MultiplyMaps
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool, Pool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.golden.window import BESIDE, Window
from bitloom.hls_gen.compiler.taps import Taps
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.pool_unit import pools_of
from bitloom.hls_gen.design.widths import PLANES

from .pick import Pick

MAX_CHANNELS = 70
DEPTHWISE_CHANNELS, GROUPED_CHANNELS = 20, 24
"""Channels of a map at most, where there are depthwise or grouped convolutions."""
MAX_MACS = 400_000
"""Products a frame at most, from the second layer on: keeps simulation quick."""
MAX_WEIGHTS = 12_000
"""Weights of a layer at most: keeps kernel memories small."""
MAX_POOL_TAPS = 4_000
"""Taps of all windows of a pool wider than 3."""


def spans(pick: Pick, size: int, largest: int) -> tuple[int, int, int, int]:
    """One direction of a window that fits ``size``: kernel 1..largest, stride 1..3, padding before and after 0..2."""
    kernel = pick.integer(1, largest)
    stride = pick.integer(1, 3)
    before, after = (pick.integer(0, min(kernel - 1, 2)) for _ in range(2))
    if kernel > size + before + after:
        return size, stride, 0, 0
    return kernel, stride, before, after


def windows(pick: Pick, source: Map, largest: int) -> Window:
    """A window that fits the map; the two directions have nothing to do with each other."""
    (kh, sy, top, bottom), (kw, sx, left, right) = (
        spans(pick, source.height, largest),
        spans(pick, source.width, largest),
    )
    return Window(kernel=(kh, kw), stride=(sy, sx), padding=(top, left, bottom, right))


def dilated(pick: Pick, source: Map, window: Window) -> Window:
    """The window; in one of three cases its taps are further apart, if the window then fits the map."""
    if pick.integer(0, 2):
        return window
    wider = replace(window, dilation=(pick.integer(1, 3), pick.integer(1, 3)))
    fits = min(wider.output_size(source.height, source.width)) > 0 and wider.reaches(source.height, source.width)
    return wider if fits else window


def grown(pick: Pick, source: Map, window: Window) -> Window:
    """The window; in two of three cases the map grows by up to 3 before, and may go on beside itself, if each window
    then has a tap on it."""
    if pick.integer(0, 2) == 0:
        return window
    beside = pick.of(BESIDE)
    growth = (1, 1) if beside == "mirrored" else (pick.integer(1, 3), pick.integer(1, 3))
    larger = replace(window, growth=growth, repeats=pick.flip(), beside=beside)
    fits = min(larger.output_size(source.height, source.width)) > 0 and larger.reaches(source.height, source.width)
    return larger if fits else window


def maps(pick: Pick, encoding: Encoding, side: int = 9, most: int = MAX_CHANNELS) -> Map:
    """An input map of at most so many rows, columns and channels."""
    height = pick.integer(1, side)
    width = pick.integer(1, side)
    channels = pick.integer(1, most)
    return Map(height=height, width=width, channels=channels, encoding=encoding)


def most_planes(npu: Npu) -> int:
    """Bit planes at most of an integer input of an NPU with engine "binary"."""
    return npu.array.planes or min(PLANES, 1 << npu.value("shift_bits"))


def binary_network(pick: Pick, input_bits: int = 8) -> Network:
    """1 to 4 weighted layers, thresholds, max pools; the last may be raw. Inputs of at most ``input_bits`` planes.

    One network of six begins with a pool, of bits, or of integers with thresholds behind it, which has a copy of the
    input in front when it is compiled: such a network has a layer less. The sums of one layer of
    four are added up by an average or a sum pool."""
    kind = pick.of(["bipolar", "signed", "unsigned"])
    if kind == "bipolar":
        encoding = bipolar(pick.integer(1, 3))
    else:
        bits = pick.integer(2, input_bits) if kind == "signed" else pick.integer(1, input_bits - 1)
        encoding = signed(bits) if kind == "signed" else unsigned(bits)
    source = maps(pick, encoding)
    at = source
    macs = 0
    layers: list[Layer] = first_pool(pick, source) if pick.integer(0, 5) == 0 else []
    at = map_behind(layers, at)
    count = pick.integer(1, 3 if layers else 4)
    first = len(layers)
    for i in range(count):
        dense = pick.integer(0, 3) == 0
        channels = pick.integer(1, MAX_CHANNELS)
        is_last = i == count - 1
        raw = is_last and pick.flip()
        plain = at.encoding.kind == "bipolar" and (at.channels * at.encoding.bits % 2 == 0 or not raw)
        weight = pick.of([BIPOLAR, BIPOLAR, TERNARY]) if plain else BIPOLAR
        window = Window(kernel=(at.height, at.width)) if dense else windows(pick, at, 5)
        channels = min(channels, max(1, MAX_WEIGHTS // (window.taps * at.channels)))
        if dense:
            layer: Weighted = Dense(name=f"layer_{i}", out_channels=channels, weight=weight)
        else:
            layer = Conv(name=f"layer_{i}", out_channels=channels, weight=weight, **asdict(window))
        out = layer.output(at)
        macs += out.size * layer.fan_in(at)
        if macs > MAX_MACS and len(layers) > first:
            break
        added = adding_up(pick, layer, at, f"mean_{i}", (AvgPool, SumPool)) if pick.integer(0, 3) == 0 else []
        layers += [layer, *added]
        at = added[0].output(out) if added else out
        if raw:
            break
        levels = pick.of([1, 1, 1, 2, 3])
        tail: list[Layer] = [Threshold(name=f"act_{i}", levels=levels)]
        pooled = pick.integer(0, 2) == 0
        if pooled:
            w = windows(pick, at, 3)
            tail.insert(pick.integer(0, 1), MaxPool.of(f"pool_{i}", w))
        at = map_behind(tail, at)
        layers += tail
    return Network(name="random", input=source, layers=tuple(layers))


def first_pool(pick: Pick, source: Map) -> list[Layer]:
    """A pool that reads the input, and, of integers, thresholds behind it."""
    bits = source.encoding.kind == "bipolar"
    kinds: Sequence[type[Pool]] = (MaxPool, MinPool) if bits else (MaxPool, MinPool, AvgPool, SumPool)
    pool = pools(pick, source, "pool_first", kinds)
    return [pool] if bits else [pool, Threshold(name="act_first", levels=pick.of([1, 1, 2, 4]))]


def adding_up(pick: Pick, layer: Weighted, source: Map, name: str, kinds: Sequence[type[Pool]]) -> list[Pool]:
    """A pool of one of these kinds that adds up the sums of a layer, which reads ``source``; none where the array would
    have more products than MAX_MACS for it."""
    sums = layer.output(source)
    w = windows(pick, sums, 3)
    pool = pick.of(kinds).of(name, w)
    count = Taps.of(layer.window(source), (pool,), (source.height, source.width)).sums
    products = pool.output(sums).size * count * layer.fan_in(source)
    return [pool] if products <= MAX_MACS else []


def weighted(pick: Pick, at: Map, name: str, weight: Encoding) -> Weighted:
    """A dense layer (one of four) or a convolution."""
    dense = pick.integer(0, 3) == 0
    window = Window(kernel=(at.height, at.width)) if dense else windows(pick, at, 5)
    channels = min(pick.integer(1, MAX_CHANNELS), max(1, MAX_WEIGHTS // (window.taps * at.channels)))
    if dense:
        return Dense(name=name, out_channels=channels, weight=weight)
    return Conv(name=name, out_channels=channels, weight=weight, **asdict(window))


STORED = ("signed", "signed", "unsigned")
"""Kinds of the values that a requantisation gives; an entry that stands twice is picked twice as often."""


def encodings(pick: Pick, bits: int, kinds: Sequence[str] = (*STORED, "ternary")) -> Encoding:
    """Values that fit ``bits`` bits in two's complement."""
    kind = pick.of(kinds)
    if kind == "ternary":
        return TERNARY
    return signed(pick.integer(2, bits)) if kind == "signed" else unsigned(pick.integer(1, bits - 1))


@dataclass(frozen=True, kw_only=True)
class IntegerChoices:
    """The layers and encodings that networks for an integer engine may have."""

    feature_bits: int = 8
    weight_bits: int = 8
    """feature_bits, weight_bits: of the engine: two's complement, >= 3."""
    fraction: int = 0
    """Bits of a bias behind the point, at most."""
    roundings: Sequence[str] = ("once",)
    """How requantisations round, of golden.layers.requantise.ROUNDINGS."""
    behind: Sequence[type[FeatureLayer]] = ()
    """Kinds of layers that may stand behind a requantisation, in their order."""
    pools: Sequence[type[Pool]] = tuple(pool.layer for pool in pools_of("integer"))
    """Kinds of pools."""

    @classmethod
    def of(cls, npu: Npu) -> "IntegerChoices":
        """All that an NPU with engine "integer" can compute."""
        return cls(
            feature_bits=npu.array.feature_bits,
            weight_bits=npu.array.weight_bits,
            fraction=npu.results.bias_fraction_bits,
            roundings=npu.results.roundings,
            behind=[unit.layer for unit in npu.results.feature_units],
            pools=[pool.layer for pool in npu.pools] or cls.pools,
        )


def activation(pick: Pick, name: str, choices: IntegerChoices, inputs: tuple[str, ...] = ()) -> list[Layer]:
    """The layers that make features of sums, one behind the other, of which the last one has the name.

    That is a requantisation, and one half of the time each layer that may stand behind it. One requantisation of three
    has limits of its own, half of them bits of the bias behind the point, but none of those that round twice. The first
    layer reads ``inputs``.
    """
    encoding = encodings(pick, choices.feature_bits, STORED)
    relu = pick.flip()
    clip = None
    if pick.integer(0, 2) == 0:
        low = pick.integer(encoding.low, encoding.high - 1)
        clip = (low, pick.integer(1 + (max(low, 0) if relu else low), encoding.high))
    fraction = pick.integer(1, choices.fraction) if choices.fraction and pick.flip() else 0
    rounding = pick.of(choices.roundings) if len(choices.roundings) > 1 else choices.roundings[0]
    fraction = 0 if rounding == "twice" else fraction
    kinds = [kind for kind in choices.behind if pick.flip()]
    requantise = Requantise(
        name=name + "_of" * len(kinds),
        inputs=inputs,
        encoding=encoding,
        relu=relu,
        clip=clip,
        fraction=fraction,
        rounding=rounding,
    )
    names = [name + "_of" * left for left in reversed(range(len(kinds)))]
    named = zip(kinds, names)
    return [requantise, *(kind(name=at, encoding=encodings(pick, choices.feature_bits, STORED)) for kind, at in named)]


def map_behind(layers: Sequence[Layer], source: Map) -> Map:
    """The map that layers make of another one, each behind the one before."""
    for layer in layers:
        source = layer.output_of([source])
    return source


def pools(pick: Pick, at: Map, name: str, kinds: Sequence[type[Pool]]) -> Pool:
    """A pool of one of these kinds, of at most 9 x 9 taps, that fits the map."""
    w = windows(pick, at, 9)
    if int(np.prod(w.output_size(at.height, at.width))) * w.taps > MAX_POOL_TAPS:
        w = windows(pick, at, 3)
    return pick.of(kinds).of(name, w)


def integer_network(pick: Pick, choices: IntegerChoices) -> Network:
    """1 to 4 weighted layers for an integer engine; the last may be raw. Pools of at most 81 taps. One input of four
    has unsigned values as wide as may be."""
    bits = choices.feature_bits
    image = pick.integer(0, 3) == 0
    source = maps(pick, unsigned(bits - 1) if image else encodings(pick, bits))
    at = source
    macs = 0
    layers: list[Layer] = []
    count = pick.integer(1, 4)
    for i in range(count):
        layer = weighted(pick, at, f"layer_{i}", encodings(pick, choices.weight_bits))
        out = layer.output(at)
        macs += out.size * layer.fan_in(at)
        if macs > MAX_MACS and layers:
            break
        added = adding_up(pick, layer, at, f"sum_{i}", (SumPool,)) if pick.integer(0, 4) == 0 else []
        layers += [layer, *added]
        out = added[0].output(out) if added else out
        if i == count - 1 and pick.flip():
            break
        act = activation(pick, f"act_{i}", choices)
        layers += act
        at = map_behind(act, out)
        kind: type[Pool] | None = pick.of([None, *choices.pools])
        if kind:
            layers.append(pools(pick, at, f"pool_{i}", (kind,)))
            at = layers[-1].output(at)
    return Network(name="random", input=source, layers=tuple(layers))


def deep_network(pick: Pick, kind: str, most: int) -> Network:
    """3 layers to ``most``, with tall maps of one size: much goes round a ring, several times, and windows reach over
    little of it.

    Parameters
    ----------
    pick
        Makes the choices.
    kind
        Engine of all layers, "binary" or "integer".
    most
        Weighted layers at most, >= 3.
    """
    integer = kind == "integer"
    encoding: Encoding = signed(8) if integer else pick.of([BIPOLAR, BIPOLAR, signed(4)])
    weight: Encoding = signed(8) if integer else BIPOLAR
    height = pick.of([8, 20, 30, 40])
    width = pick.integer(3, 8)
    channels = pick.integer(1, 8)
    source = Map(height=height, width=width, channels=channels, encoding=encoding)
    layers: list[Layer] = []
    count = pick.integer(3, most)
    for i in range(count):
        channels = pick.integer(1, 8)
        size = pick.of([1, 1, 3])
        last = i == count - 1
        if last and pick.flip():
            layers.append(Dense(name=f"layer_{i}", out_channels=channels, weight=weight))
        else:
            padding = (size // 2,) * 4
            kernel = (size, size)
            layers.append(Conv(name=f"layer_{i}", out_channels=channels, kernel=kernel, padding=padding, weight=weight))
        if last and pick.flip():
            break
        layers.append(Requantise(name=f"act_{i}", encoding=signed(8)) if integer else Threshold(name=f"act_{i}"))
    return Network(name="random", input=source, layers=tuple(layers))


def depthwise_network(pick: Pick, choices: IntegerChoices, channels: int = DEPTHWISE_CHANNELS) -> Network:
    """2 to 5 layers, each a plain or a depthwise convolution with its requantisation and perhaps a pool, and at the end
    perhaps a dense layer, which may be raw.

    Parameters
    ----------
    pick
        Makes the choices.
    choices
        Of the integer engine.
    channels
        Of the input at most.
    """
    source = maps(pick, encodings(pick, choices.feature_bits), 8, channels)
    at = source
    layers = list[Layer]()
    for i in range(pick.integer(2, 5)):
        kind = pick.of([Conv, DepthwiseConv, DepthwiseConv])
        window = dilated(pick, at, windows(pick, at, 4))
        layer = kind(
            name=f"conv_{i}",
            out_channels=at.channels if kind is DepthwiseConv else pick.integer(1, DEPTHWISE_CHANNELS),
            weight=encodings(pick, choices.weight_bits),
            **asdict(window),
        )
        act = activation(pick, f"act_{i}", choices)
        layers += [layer, *act]
        at = map_behind(act, layer.output(at))
        if pick.integer(0, 3) == 0:
            layers.append(pools(pick, at, f"pool_{i}", choices.pools))
            at = layers[-1].output_of([at])
    if pick.flip():
        layers.append(
            Dense(name="dense_end", out_channels=pick.integer(1, 5), weight=encodings(pick, choices.weight_bits))
        )
        if pick.flip():
            layers += activation(pick, "act_end", choices)
    return Network(name="depthwise", input=source, layers=tuple(layers))


def grouped_network(pick: Pick, choices: IntegerChoices | None = None) -> Network:
    """1 to 4 convolutions, most of them grouped, into groups that fill words or share them. Each has its
    activation and perhaps a pool; the last may be raw.

    Parameters
    ----------
    pick
        Makes the choices.
    choices
        Of the integer engine; None: the network is one of bits.
    """
    encoding = encodings(pick, choices.feature_bits) if choices else BIPOLAR
    at = source = maps(pick, encoding, 7, GROUPED_CHANNELS)
    layers = list[Layer]()
    count = pick.integer(1, 4)
    for i in range(count):
        window = dilated(pick, at, windows(pick, at, 3))
        groups = pick.of([n for n in range(1, at.channels + 1) if at.channels % n == 0])
        kernels = groups * pick.integer(1, max(1, GROUPED_CHANNELS // groups))
        weight = encodings(pick, choices.weight_bits) if choices else pick.of([BIPOLAR, TERNARY])
        shape = {**asdict(window), "weight": weight, "out_channels": kernels}
        name = f"conv_{i}"
        layers.append(GroupedConv(name=name, groups=groups, **shape) if groups > 1 else Conv(name=name, **shape))
        out = layers[-1].output_of([at])
        if i == count - 1 and choices and pick.flip():
            break
        act = activation(pick, f"act_{i}", choices) if choices else [Threshold(name=f"act_{i}")]
        layers += act
        at = map_behind(act, out)
        if pick.integer(0, 3) == 0:
            layers.append(pools(pick, at, f"pool_{i}", choices.pools if choices else (MaxPool,)))
            at = layers[-1].output_of([at])
    return Network(name="grouped", input=source, layers=tuple(layers))


def gated_network(pick: Pick, network: Network) -> Network:
    """A network that multiplies some of the maps that it would add, half of them."""
    layers = [
        MultiplyMaps(name=layer.name, inputs=layer.inputs, encoding=layer.encoding, clip=layer.clip)
        if isinstance(layer, Add) and pick.flip()
        else layer
        for layer in network.layers
    ]
    return replace(network, layers=tuple(layers))


def grown_network(pick: Pick, network: Network) -> Network:
    """A network of which some convolutions read a map that has grown, wherever the layers behind still fit."""
    for place, layer in enumerate(network.layers):
        if not isinstance(layer, Conv):
            continue
        window = grown(pick, network.sources(layer)[0], layer.window(None))
        layers = (*network.layers[:place], replace(layer, **asdict(window)), *network.layers[place + 1 :])
        try:
            larger = replace(network, layers=layers)
        except ValueError:  # two maps that are joined have other sizes
            continue
        weights = [layer for layer in layers if isinstance(layer, Weighted)]
        sources = [larger.sources(layer)[0] for layer in weights]
        sizes = [layer.fan_in(source) for layer, source in zip(weights, sources)]
        macs = sum(larger.maps[layer.name].size * size for layer, size in zip(weights, sizes))
        most = max(layer.out_channels * size for layer, size in zip(weights, sizes))
        if macs <= MAX_MACS and most <= MAX_WEIGHTS:
            network = larger
    return network


def several_outputs(pick: Pick, network: Network, choices: IntegerChoices) -> Network:
    """A network whose output is one of several, at random places among these. The others are maps that other layers
    read, or heads of such maps: a convolution of 1 x 1, and perhaps an activation."""
    sums = set[str]()
    for layer in network.layers:
        if isinstance(layer, Weighted) or (isinstance(layer, Pool) and not sums.isdisjoint(network.reads[layer.name])):
            sums.add(layer.name)
    features = [layer.name for layer in network.layers if layer.name not in sums]
    if network.input.encoding != TERNARY:  # a copy has more values: extreme biases would not fit behind it
        features.append(INPUT)
    if not features:
        return network
    layers = [replace(layer, inputs=network.reads[layer.name]) for layer in network.layers]
    outputs = [network.layers[-1].name]
    for number in range(pick.integer(1, 3)):
        read = pick.of(features)
        if pick.integer(0, 2):
            name = f"head_{number}"
            weight = Encoding("signed", choices.weight_bits)
            layers.append(
                Conv(name=name, inputs=(read,), out_channels=pick.integer(1, 9), kernel=(1, 1), weight=weight)
            )
            acts = activation(pick, f"{name}_act", choices, inputs=(name,)) if pick.integer(0, 2) else []
            layers += acts
            read = layers[-1].name
        outputs.insert(pick.integer(0, len(outputs)), read)
    return replace(network, layers=(*layers, Outputs(name="outputs", inputs=tuple(outputs))), classes=())


def random_mapping(pick: Pick, design: Design, layers: int) -> list[int] | None:
    """An NPU for each layer, each reached from the one before; None where the last NPU leads to no other."""
    npus = design.npus
    numbers = [0]
    while len(numbers) < layers:
        here = numbers[-1]
        onward = [here] if "loop" in npus[here].ports.outlets else []
        after = (here + 1) % len(npus)
        if "ring" in npus[here].ports.outlets and "ring" in npus[after].ports.inlets:
            onward.append(after)
        if not onward:
            return None
        numbers.append(pick.of(onward))
    return numbers if npus[numbers[-1]].ports.sends_results else None

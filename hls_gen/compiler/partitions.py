"""A network that is larger than its device is computed in partitions: each is a network of its own, with a program of
its own, and the maps between them lie in the host's memory.

    image -> conv_1 .. requantise_4 | conv_5 .. requantise_8 | dense_9 -> output
             partition 0              partition 1              partition 2, in two slices: classes 0..499, 500..999

A partition holds the weights of its own layers alone, and of the maps that it reads only the rows that its windows
need. Where a single layer's weights are too many, slices of its channels are programs of their own.

Several maps may cross a cut, as behind the first convolution of a residual block. What a partition reads of them is its
input, channels behind channels: a convolution has weights of 0 for those of other maps, and a copy takes out what other
layers read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from bitloom.golden.encoding import Array, signed, smallest
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map, OneInput
from bitloom.golden.layers.add import Pairwise
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.grouped import ConvByGroups, DepthwiseConv
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.roles import FEATURE_WIDTHS
from bitloom.golden.names import NAME_LENGTH, shown
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.design.compiled_network import MapChannels
from bitloom.hls_gen.design.npu import Npu

Cuts = Mapping[str, int]
"""Layer that begins a partition -> programs by which its channels are computed, >= 1. The first layer of the network
begins one in any case; layers of other networks are left out."""
Channels = tuple[int, int]
"""First channel of a map that is meant, and the one behind the last."""
Arrays = Mapping[str, Array]
MOST_FEATURE_BITS = FEATURE_WIDTHS["signed"][1]
"""Bits of the widest features that a requantisation makes: a copy ends in one."""


@dataclass(frozen=True)
class ProgramModel:
    """The model of one program of a network in partitions, and its channels of the network's maps."""

    model: Model
    """The program's part of the network; its images are the maps' channels that it reads, side by side."""
    reads: tuple[MapChannels, ...]
    """Channels of maps in the host's memory."""
    gives: MapChannels
    """Channels of the map that it makes."""


def partitions(model: Model, cuts: Cuts, npus: Sequence[Npu]) -> tuple[ProgramModel, ...]:
    """Cut a model in front of some layers.

    Parameters
    ----------
    model
        The network.
    cuts
        Where partitions begin, and of how many slices they are.
    npus
        Of the design: slices end where groups of kernels end.

    Returns
    -------
    tuple of ProgramModel
        In the order in which they can be computed. Where no layer of the network begins a partition, it is the model
        itself alone.

    Raises
    ------
    ValueError
        Several maps are made in a partition for later ones, or its channels can't be computed by themselves. One line:
        layer, rule and value.
    """
    names = [layer.name for layer in model.network.layers]
    if not cuts.keys() & set(names):
        source, output = model.network.input, model.network.output
        whole = MapChannels(INPUT, 0, source.channels)
        return (ProgramModel(model, (whole,), MapChannels(names[-1], 0, output.channels)),)
    begins = [place for place, name in enumerate(names) if place == 0 or name in cuts]
    return tuple(
        program
        for begin, end in zip(begins, [*begins[1:], len(names)])
        for program in partition(model, begin, end, cuts.get(names[begin], 1), npus)
    )


def check_partitions(design: str, models: Sequence[Model], cuts: Cuts) -> None:
    """ValueError, which begins with the design's name, if no network has a layer that begins a partition."""
    known = {layer.name for model in models for layer in model.network.layers}
    for name in cuts:
        if name not in known:
            raise ValueError(f"{design}: a partition must begin with a layer of a network, got {shown(name)}")


def partition(model: Model, begin: int, end: int, slices: int, npus: Sequence[Npu]) -> tuple[ProgramModel, ...]:
    """The partition of the layers from place ``begin`` to ``end``, in slices; else as `partitions`."""
    layers, name, ranges = _slices(model.network, begin, end, slices, npus)
    names = [name] if slices == 1 else [f"{name}.{number}" for number in range(slices)]
    return tuple(_program_model(model, name, layers, output) for name, output in zip(names, ranges))


def widest_slice(model: Model, begin: int, end: int, slices: int, npus: Sequence[Npu]) -> ProgramModel:
    """The slice of a `partition` that has the most channels."""
    layers, name, ranges = _slices(model.network, begin, end, slices, npus)
    return _program_model(model, name, layers, max(ranges, key=lambda channels: channels[1] - channels[0]))


def _slices(
    network: Network, begin: int, end: int, slices: int, npus: Sequence[Npu]
) -> tuple[tuple[Layer, ...], str, list[Channels]]:
    """(layers, name of its program, channels of each slice) of a `partition`."""
    layers = network.layers[begin:end]
    within = {layer.name for layer in layers}
    later = {name for layer in network.layers[end:] for name in network.reads[layer.name]}
    given = sorted(within & later) if end < len(network.layers) else [layers[-1].name]
    if len(given) != 1 or given[0] != layers[-1].name:
        cut = network.layers[end].name
        rule = "in front of a cut one map alone may be made for layers behind it, that of the layer before"
        raise ValueError(f"{network.name}: {cut}: {rule}, {layers[-1].name}, got {', '.join(given)}")
    channels = network.maps[given[0]].channels
    ranges = slice_channels(network, layers[0].name, channels, slices, max(npu.array.kgp for npu in npus))
    return layers, program_name(network.name, layers[0].name), ranges


def program_name(network: str, layer: str) -> str:
    """Name of what begins with a layer of a network, as of a program; slices have their numbers behind it."""
    return f"{network[: NAME_LENGTH // 2]}.{layer[: NAME_LENGTH // 2 - 5]}"


def slice_channels(network: Network, layer: str, channels: int, count: int, granule: int) -> list[Channels]:
    """The channels of each slice of a partition that begins with ``layer``, ``channels`` together; all but the last are
    multiples of ``granule`` where there are so many."""
    if not 1 <= count <= channels:
        raise ValueError(f"{network.name}: {layer}: slices must be 1..{channels}, its channels, got {count}")
    unit = granule if -(-channels // granule) >= count else 1
    units = -(-channels // unit)
    ends = [min(channels, unit * (units * n // count)) for n in range(count + 1)]
    return list(pairwise(ends))


def _wanted(network: Network, layers: Sequence[Layer], output: Channels) -> dict[str, Channels]:
    """Which channels of each map are computed, for ``output`` of the last layer's map.

    ValueError where these take all channels of a map that is made in the partition: each slice would make it again.
    """
    wanted = {layers[-1].name: output}
    within = {layer.name for layer in layers}
    for layer in reversed(layers):
        here = wanted[layer.name]
        some = here != (0, network.maps[layer.name].channels)
        if (
            some
            and not _channelwise(layer)
            and not (_takes_any_map(layer) and within.isdisjoint(network.reads[layer.name]))
        ):
            rule = "slices are of one convolution or dense layer, and of what computes each channel by itself"
            raise ValueError(f"{network.name}: {layers[0].name}: {rule}, got {layer.name}")
        wanted |= {name: _needed(network, layer, here, name) for name in network.reads[layer.name] if name in within}
    return wanted


def _takes_any_map(layer: Layer) -> bool:
    """Whether the layer's kernels may be some of all, and read more channels with weights of 0."""
    return isinstance(layer, Weighted) and not isinstance(layer, ConvByGroups)


def _needed(network: Network, layer: Layer, channels: Channels, read: str) -> Channels:
    """Which channels of a map that it reads a layer needs for some of its own."""
    whole = channels == (0, network.maps[layer.name].channels)
    return channels if _channelwise(layer) and not whole else (0, network.maps[read].channels)


def _channelwise(layer: Layer) -> bool:
    """Whether each channel of the layer's map is computed of the same channel of the maps that it reads alone."""
    weights = isinstance(layer, Weighted) and not isinstance(layer, DepthwiseConv)
    return isinstance(layer, (OneInput, Pairwise)) and not weights


def _program_model(model: Model, name: str, layers: Sequence[Layer], output: Channels) -> ProgramModel:
    """The program model that computes some channels of the last of these layers."""
    network = model.network
    wanted = _wanted(network, layers, output)
    reads = _reads(network, layers, wanted)
    joined = _joined(name, [_map_of_channels(network.maps[read.map], (read.begin, read.end)) for read in reads])
    new = _reading_one_map(model, layers, wanted, reads, joined)
    partition_network = Network(name=name, input=joined, layers=tuple(layer for layer, _ in new))
    partition_model = Model(partition_network, {layer.name: arrays for layer, arrays in new if arrays})
    return ProgramModel(partition_model, reads, MapChannels(layers[-1].name, *output))


def _reads(network: Network, layers: Sequence[Layer], wanted: Mapping[str, Channels]) -> tuple[MapChannels, ...]:
    """Channels of other layers' maps that these layers read, where they compute the channels that are ``wanted``."""
    crossing = dict[str, list[Channels]]()
    for layer in layers:
        for read in network.reads[layer.name]:
            if read not in wanted:
                crossing.setdefault(read, []).append(_needed(network, layer, wanted[layer.name], read))
    return tuple(MapChannels(read, min(needs)[0], max(high for _, high in needs)) for read, needs in crossing.items())


def _reading_one_map(
    model: Model, layers: Sequence[Layer], wanted: Mapping[str, Channels], reads: Sequence[MapChannels], joined: Map
) -> list[tuple[Layer, Arrays]]:
    """The layers that compute the channels that are ``wanted``, with their arrays. In place of what it ``reads`` of
    other layers' maps each has the ``joined`` map, or a copy of the channels that it needs; copies are among the
    layers."""
    network = model.network
    ends = accumulate(read.end - read.begin for read in reads)
    begins = {read.map: end - read.end for read, end in zip(reads, ends)}  # of each map's channel 0 in the input
    new = list[tuple[Layer, Arrays]]()
    copies = dict[tuple[str, Channels], str]()  # channels of maps -> the layer whose map they are
    if len(reads) == 1:
        copies[reads[0].map, (reads[0].begin, reads[0].end)] = INPUT
    for layer in layers:
        here = wanted[layer.name]
        needed = [wanted.get(read) or _needed(network, layer, here, read) for read in network.reads[layer.name]]
        arrays = _sliced(model, layer, here, needed)
        inputs = []
        for read, channels in zip(network.reads[layer.name], needed):
            if read in wanted:
                inputs.append(read)
            elif (read, channels) in copies:
                inputs.append(copies[read, channels])
            elif isinstance(layer, Weighted) and _takes_any_map(layer):
                if layer.weight.kind == "bipolar":
                    rule = "weights for one of several maps that a partition reads must have a 0"
                    raise ValueError(f"{network.name}: {layer.name}: {rule}, got {layer.weight}")
                inputs.append(INPUT)
                before = begins[read]
                behind = joined.channels - before - channels[1]
                arrays["weight"] = np.pad(arrays["weight"], [(0, 0)] * 3 + [(before, behind)])
            else:
                label = f"part_of_{read.strip('@')}"[: NAME_LENGTH - 5]
                copy = _copy(label, network.maps[read], begins[read], channels, joined)
                new += copy
                copies[read, channels] = copy[-1][0].name
                inputs.append(copies[read, channels])
        new.append((replace(_of_channels(layer, here), inputs=tuple(inputs)), arrays))
    return new


def _of_channels(layer: Layer, channels: Channels) -> Layer:
    """The layer that makes these channels alone."""
    return replace(layer, out_channels=channels[1] - channels[0]) if isinstance(layer, Weighted) else layer


def _map_of_channels(source: Map, channels: Channels) -> Map:
    """A map of these channels alone."""
    return replace(source, channels=channels[1] - channels[0])


def _joined(name: str, maps: Sequence[Map]) -> Map:
    """The map of the channels of all these maps; ValueError if they aren't of one size."""
    if len(maps) == 1:
        return maps[0]
    sizes = {(each.height, each.width) for each in maps}
    if len(sizes) > 1:
        got = " and ".join(f"{height} x {width}" for height, width in sorted(sizes))
        raise ValueError(f"{name}: maps that a partition reads must have one height and width, got {got}")
    channels = sum(each.channels for each in maps)
    return replace(maps[0], channels=channels, encoding=smallest(name, [each.encoding for each in maps]))


def _copy(name: str, source: Map, begin: int, channels: Channels, joined: Map) -> list[tuple[Layer, Arrays]]:
    """Layers, with their arrays, that take the channels of one map out of all that a partition reads."""
    if joined.encoding.kind == "bipolar" or joined.encoding.bits > MOST_FEATURE_BITS:
        rule = f"several maps that a partition reads must be of integers of {MOST_FEATURE_BITS} bits at most"
        raise ValueError(f"{name}: {rule}, got {joined.encoding}")
    count = channels[1] - channels[0]
    weight = np.zeros((count, 1, 1, joined.channels), np.int8)
    weight[np.arange(count), 0, 0, begin + np.arange(*channels)] = 1
    conv = Conv(name=name, out_channels=count, kernel=(1, 1), weight=signed(2), inputs=(INPUT,))
    same = {
        "multiplier": np.ones(count, np.int64),
        "bias": np.zeros(count, np.int64),
        "shift": np.zeros(count, np.int64),
    }
    return [
        (conv, {"weight": weight}),
        (Requantise(name=f"{name}_same", encoding=source.encoding, inputs=(name,)), same),
    ]


def _sliced(model: Model, layer: Layer, channels: Channels, read: Sequence[Channels]) -> dict[str, Array]:
    """A layer's arrays for some channels of its map; ``read``: those of the maps that it reads."""
    sources = model.network.sources(layer)
    slice_layer = _of_channels(layer, channels)
    shapes = layer.array_shapes_of(sources)
    part_shapes = slice_layer.array_shapes_of([_map_of_channels(source, each) for source, each in zip(sources, read)])
    return {
        key: array[
            tuple(
                slice(*channels) if size != part_size else slice(None)
                for size, part_size in zip(shapes[key], part_shapes[key])
            )
        ]
        for key, array in model.arrays.get(layer.name, {}).items()
    }

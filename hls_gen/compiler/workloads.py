"""Workloads: a network cut in front of each weighted layer, without arrays, and the engine that each layer is for. An
engine computes a workload at once; mapping, copies and ways of maps (hls_gen/compiler/mapping.py) know workloads alone.

    model --rewrite--> layers as engines have them --segments--> --this, for engines--> workloads --mapping--> lowering

The segment of a workload keeps the golden layers, from which hls_gen/compiler/lowering.py makes a lowered layer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import TERNARY, Array
from bitloom.golden.flatten import with_flat_input
from bitloom.golden.graph import INPUT
from bitloom.golden.layers.grouped import ConvByGroups, as_plain
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.window import Pair
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.pool_unit import ReducedWindow
from bitloom.hls_gen.design.split_window import SplitWindow
from bitloom.hls_gen.design.widths import FEATURE_BITS, WEIGHT_BITS

from .depthwise import behind_copies, fused, plain_of, pooled
from .engine_form import engine_form, engine_form_of
from .engine_rules import BINARY_ENGINE, Engine, check_binary, check_integer, default_engine, stored_bits
from .host_tail import on_device, split
from .input_maps import input_name
from .pools import canonical
from .ranges import Range
from .segments import Segment, segments
from .taps import Taps
from .tuple_parts import WeightedLanes


@dataclass(frozen=True, kw_only=True, eq=False)
class MapReader:
    """A workload or its lowered layer: each of them reads a map, and makes one."""

    name: str
    """The weighted layer's, or the copy's. The map that it makes has the same name."""
    reads: str
    """Name of what makes the map that it reads, or `bitloom.golden.graph.INPUT`."""
    joins: str | None = None
    """Name of what makes a second map that it reads, whose channels follow at each position; None: it reads one map."""
    height: int
    width: int
    """height, width: size of the map that it reads."""
    window: Taps
    """Of the convolution, or of those whose sums are added up: their taps go through the places of the kernel again and
    again."""
    weighted_lanes: WeightedLanes | None = None
    """By kernel the lanes for which it has weights other than 0; None where every kernel has some for every lane."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Workload(MapReader):
    """A weighted layer with the layers behind it that an engine computes at once, or a copy of a map
    (hls_gen/compiler/copies.py)."""

    engine: Engine
    adds: str | None = None
    """Name of the workload whose map it adds to its results; None where it adds none."""
    lanes: int
    """Lanes of a tap: channels times bits of a value, or times bit planes, the constant one included."""
    joined_lanes: int = 0
    """Those of ``lanes`` that are of the second map, the last ones; 0 where it reads one map."""
    planes: int = 0
    """Bit planes of a value, without the constant one, where the binary engine reads an input of integers; else 0."""
    visits: int
    """Times that each valid tap is visited: 2 for ternary weights on the binary engine."""
    out_channels: int
    """Kernels."""
    levels: int = 1
    """Results that a kernel gives: thresholds, else 1."""
    pool: ReducedWindow | None = None
    """Of the pool unit: of a pool, or of a depthwise convolution that is fused with the workload."""
    output: int | None = None
    """Which of the network's outputs the map is that it makes; None where that map stays on the device."""
    values: Range | None = None
    """Smallest and largest integer of the map that it makes; None where that map has bits."""
    segment: Segment | None = None
    """The golden layers that it computes, with their names in the network; None of a copy."""
    with_former: "FormedWorkload | None" = None
    """This workload with its taps formed, as behind a window former; None where a former can't feed it."""
    with_lines: "FormedWorkload | None" = None
    """This workload with the taps of a line of its kernel side by side, as behind a line former; None where a former
    can't feed it."""

    @property
    def binary(self) -> bool:
        """Whether the binary engine computes it."""
        return self.engine.name == "binary"

    @property
    def raw(self) -> bool:
        """Whether its results are raw: sums that leave as they are."""
        return self.segment is not None and self.segment.raw

    @property
    def channels(self) -> int:
        """Channels of a tap, where a value has bit planes; else its lanes."""
        return self.lanes // (self.planes + 1) if self.planes else self.lanes

    @property
    def may_be_formed(self) -> bool:
        """Whether it reads windows that a window former could make."""
        window = self.window.alone
        return self.joins is None and window is not None and window.taps > 1 and window.plain

    def behind_former(self, npu: Npu) -> "Workload | None":
        """The workload as an NPU's window former lets the array see it; None where the NPU has no former, or the former
        can't feed the workload: where lanes share a weight they need the same channel; planes that follow one another
        need words of their own; and an array with planes side by side takes integers from its former, no bits."""
        other_planes = (self.planes > 0) != (npu.array.planes > 0)
        apart = self.binary and (npu.array.lanes_per_weight > 1 or other_planes)
        return self.with_former.workload if self.with_former and npu.former and not apart else None

    @property
    def map_size(self) -> Pair:
        """(rows, columns) of the map that it makes."""
        size = self.window.output_size(self.height, self.width)
        return self.pool.window.output_size(*size) if self.pool else size


class FormedWorkload(NamedTuple):
    """A workload behind a former."""

    split: SplitWindow
    """How the former splits the workload's window."""
    workload: Workload
    """The workload as it reads what the former makes."""


Workloads = Sequence[Workload]


@dataclass(frozen=True, kw_only=True)
class CutTarget:
    """The hardware that a network is cut for, beside the engines of its workloads."""

    planes: int | None = None
    """Bits that an integer input is sign-extended to, where the binary engine reads it; None: as many as it needs."""
    binariser_bits: int = 0
    """Bits of the features that a binariser in front of the engine takes; 0: there is none."""
    lanes: int = 1
    """Channels of an input word, by which a dense layer's input is one tuple or many (golden/flatten.py)."""
    depthwise: bool = False
    """Whether depthwise convolutions are fused with the workload before, for pool units with weights."""
    copy_depthwise: bool = False
    """Whether depthwise convolutions without a workload to follow follow a copy then."""
    repeat_input: bool = False
    """Whether the input is sent once for each layer that reads it."""
    shortcuts: str = "first"
    """When shorter ways to additions are computed (hls_gen/compiler/segments.py)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SegmentedModel:
    """A model cut into segments, before their engines are known."""

    given: Model
    """The model that the device computes."""
    model: Model
    """The same as it is rewritten."""
    target: CutTarget
    binariser: Threshold | None
    """The layer that makes the input binary before the first workload, where the target has a binariser."""
    segments: Sequence[Segment]
    """In the order in which they are computed."""
    engines: Sequence[str]
    """The engine that each of them is for, "binary" or "integer"."""

    @property
    def names(self) -> list[str]:
        """Names of the segments, and of the workloads that they become."""
        return [segment.name for segment in self.segments]

    def cut(self, engines: Sequence[Engine]) -> "CutModel":
        """The workloads for these engines, one for each segment.

        ValueError where an engine can't compute a segment. The message names the layer, the rule and the value.
        """
        kinds = dict(zip(self.names, engines, strict=True))
        binary = {name for name, engine in kinds.items() if engine.name == "binary"}
        planes = self._planes() if self.binariser is None and self.names[0] in binary else 0
        workloads = [self._workload(segment, kinds[segment.name], binary, planes) for segment in self.segments]
        lanes = {workload.name: workload.out_channels * workload.levels for workload in workloads}
        workloads = [
            replace(workload, joined_lanes=lanes[workload.joins]) if workload.joins else workload
            for workload in workloads
        ]
        readers = [workload.name for workload in workloads if workload.reads == INPUT]
        if self.target.repeat_input:
            names = {name: input_name(number) for number, name in enumerate(readers)}
            workloads = [replace(workload, reads=names.get(workload.name, workload.reads)) for workload in workloads]
        return CutModel(self, tuple(workloads))

    def _planes(self) -> int:
        """Planes of an integer input without the constant one: the target's, or as many as the encoding needs; 0 where
        the input has bits."""
        network = self.model.network
        if network.input.encoding.kind == "bipolar":
            return 0
        needs = stored_bits(network.input.encoding)
        planes = self.target.planes
        if planes is not None and planes < needs:
            raise ValueError(f"{network.name}: the input must have at most {planes} bit planes, got {needs}")
        return needs if planes is None else planes

    def _workload(self, segment: Segment, engine: Engine, binary: set[str], planes: int) -> Workload:
        """The workload of a segment on its engine."""
        reads_planes = engine.name == "binary" and segment.reads == INPUT
        return _workload(self.model, _computed(segment, engine, binary), engine, planes if reads_planes else 0)


@dataclass(frozen=True, eq=False)
class CutModel:
    """A model in workloads."""

    segmented_model: SegmentedModel
    """Whose arrays the workloads' segments name."""
    workloads: tuple[Workload, ...]
    """Each behind those that it reads and adds: the order in which they are computed."""

    @property
    def network(self) -> str:
        """Name of the network."""
        return self.segmented_model.given.network.name


def segmented(model: Model, target: CutTarget) -> SegmentedModel:
    """Rewrite a model and cut it in front of each weighted layer.

    Parameters
    ----------
    model : Model
        The layers with their arrays; what the host computes behind them (`split`) is left out.
    target : CutTarget

    Raises
    ------
    ValueError
        No engine can compute a layer where it stands. The message names the layer, the rule and the value.
    """
    given, _ = split(model)
    model = with_flat_input(engine_form(given, target.repeat_input), target.lanes)
    entry = model.network.next_layer(INPUT) if target.binariser_bits else None
    entry = entry if isinstance(entry, Threshold) else None
    if target.depthwise and target.copy_depthwise:
        model = behind_copies(model, entry)
    cut = segments(model.network, entry, target.shortcuts)
    engines = {segment.name: default_engine(segment) for segment in cut}
    if target.depthwise:
        cut = fused(cut, model)
    cut = [canonical(segment) for segment in cut]
    engine_names = [engines[segment.name] for segment in cut]
    return SegmentedModel(given=given, model=model, target=target, binariser=entry, segments=cut, engines=engine_names)


def engines_of(network: Network) -> list[str]:
    """The engine that each weighted layer is for (`engine_rules.default_engine`), in the order of computing.

    ValueError if no engine can compute the network.
    """
    network = engine_form_of(on_device(network))
    entry = network.next_layer(INPUT)
    return [default_engine(segment) for segment in segments(network, entry if isinstance(entry, Threshold) else None)]


def check_engines(network: Network, engines: Sequence[str]) -> None:
    """Check that weighted layers, which come in the order of computing, are computed by these engines by default.
    Copies of maps, which the network doesn't have, are computed by the engine that they are for.

    Raises
    ------
    ValueError
        If a layer is for another engine, or can't be computed by its own, whatever the NPU's widths. The message names
        the layer, the rule and the value.
    """
    names = {layer.name for layer in network.layers}
    network = engine_form_of(on_device(network))
    cut = [canonical(segment) for segment in segments(network)]
    given = iter(engines)
    defaults = engines_of(network)
    engines = [next(given) if each.name in names else default for each, default in zip(cut, defaults, strict=True)]
    for segment, engine, default in zip(cut, engines, defaults):
        if engine != default:
            raise ValueError(f"{segment.name}: its engine must be the {default} one, got {engine}")
    binary = {segment.name for segment, engine in zip(cut, engines) if engine == "binary"}
    widest = Engine("integer", FEATURE_BITS, WEIGHT_BITS)
    for segment in cut:
        _computed(segment, BINARY_ENGINE if segment.name in binary else widest, binary)


def _computed(segment: Segment, engine: Engine, binary: set[str]) -> Segment:
    """The segment as an engine computes it, where the binary engine computes the segments named ``binary``. ValueError
    if it can't."""
    if engine.name == "integer":
        to_bits = not binary.isdisjoint(segment.readers)
        check_integer(segment, engine, from_bits=segment.reads in binary, to_bits=to_bits)
        return segment
    if isinstance(segment.layer, ConvByGroups):
        segment = replace(segment, layer=as_plain(segment.layer))
    check_binary(segment)
    return segment


def _workload(model: Model, segment: Segment, engine: Engine, planes: int) -> Workload:
    """The workload of a segment that an engine computes, which reads ``planes`` bit planes of each value, or none."""
    layer = segment.layer
    source = segment.source
    ternary = engine.name == "binary" and layer.weight == TERNARY
    bits = planes + 1 if planes else source.encoding.bits if source.encoding.kind == "bipolar" else 1
    threshold = segment.behind_sums(Threshold)
    workload = Workload(
        name=segment.name,
        engine=engine,
        reads=segment.reads,
        joins=segment.joins,
        adds=segment.adds,
        height=source.height,
        width=source.width,
        window=segment.window,
        lanes=source.channels * bits,
        planes=planes,
        visits=2 if ternary else 1,
        out_channels=layer.out_channels,
        levels=threshold.levels if threshold else 1,
        pool=pooled(segment),
        output=segment.output,
        values=None if threshold else _values(segment),
        segment=segment,
    )
    weighted = None
    if engine.name == "integer" or (ternary and not planes):
        weighted = (plain_of(model, segment) != 0).reshape(layer.out_channels, -1, source.channels)
        if bits > 1:
            weighted = np.repeat(weighted, bits, axis=2)  # (kernels, taps, lanes)
        workload = replace(workload, weighted_lanes=_pattern(workload, weighted.any(axis=1)))
    if workload.may_be_formed and not layer.word_channels:
        window = workload.window.window
        lines = SplitWindow(window, columns=window.kernel[1])
        workload = replace(
            workload,
            with_former=_behind(workload, weighted, SplitWindow(window, *window.kernel)),
            with_lines=_behind(workload, weighted, lines) if lines.tuple_taps > 1 else None,
        )
    return workload


def _values(segment: Segment) -> Range | None:
    """Smallest and largest integer of the map that a segment makes; None where sums are the result."""
    tail = canonical(segment.depthwise).tail if segment.depthwise else segment.tail
    last = [(layer.low, layer.high) for layer in tail if isinstance(layer, FeatureLayer)]
    return last[-1] if last else None


def _pattern(workload: Workload, weighted: Array) -> WeightedLanes | None:
    """The lanes (kernels, lanes) for which kernels have weights; None where kernels have weights for all lanes. To a
    binary engine a weight of 0 is +1 in one visit and -1 in the other: one match in each lane, whatever the feature is.
    Where the number of lanes is even, the offset counts matches by twos."""
    if weighted.all():
        return None
    return WeightedLanes.of(weighted, same=workload.binary, even=workload.binary and workload.lanes % 2 == 0)


def _behind(workload: Workload, weighted: Array | None, split: SplitWindow) -> FormedWorkload:
    """A workload as a former lets the array see it, a window former (hls_gen/compiler/formed_taps.py) or a line former
    (hls_gen/compiler/lines.py); ``weighted``: (kernels, taps, lanes) where a kernel has weights, None: everywhere."""
    height, width = split.formed.output_size(workload.height, workload.width)
    lanes = split.tuple_taps * workload.lanes
    pattern = None
    if weighted is not None:
        of_tuples = split.dealt(weighted, axis=1).reshape(len(weighted), split.tuples, lanes)
        pattern = _pattern(workload, of_tuples.any(axis=1))
    return FormedWorkload(
        split,
        replace(workload, height=height, width=width, window=Taps(split.rest), lanes=lanes, weighted_lanes=pattern),
    )

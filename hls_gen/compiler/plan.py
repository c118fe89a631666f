"""Plan: everything a network needs of a chain of NPUs, before it is cut to the memories of particular ones (spec B1 to
B7).

    lowered layers --schedule--> orders --this--> planned layers --needs.py--> needs --> rows, which a program takes

A planned layer (planned_layer.py) knows whose words it reads and by which schedule; the words of the frame come from
frame_words.py. Rows (rows/) are made when a program is: a design is sized without them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.rows.array import check_shared_weights
from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import SKIP_BITS

from .choices import Chunk, CompileChoices, inner_groups, named_dataflow
from .fitted import MemoryBits, fitted, memory_bits, unsized
from .formed_taps import form_taps
from .frame_words import FrameWords, frame_words
from .input_maps import is_input
from .lines import form_array_lines, form_pool_lines
from .lowering import Lowered, array_former_name, lowered_for, pool_name
from .needs import Needs, NpuNeeds, merged, most_waiting, needs_of
from .partitions import partitions
from .planned_layer import MapWords, PlannedLayer, check_added, planned_layer, windows_read, words_read
from .schedule import AUTOMATIC, Schedule
from .ways import MapWay, onward


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """A network as a chain of NPUs computes it: its planned layers, and their needs."""

    lowered: Lowered
    """The network's lowered layers, with their taps formed where a window former does so."""
    schedule: Schedule
    """Orders of their maps."""
    frame: FrameWords
    """The map that comes from the host."""
    foldings: tuple[Npu, ...]
    """Of the NPUs, with skip stores where maps wait."""
    layers: tuple[PlannedLayer, ...]
    """The layers on their NPUs."""

    @property
    def outputs(self) -> list[PlannedLayer]:
        """The layers whose maps leave, in the order of the network's outputs."""
        by_name = {planned.layer.name: planned for planned in self.layers}
        return [by_name[name] for name in self.lowered.outputs]

    def formed(self, n: int) -> FormedWindows | None:
        """The windows that the window former of NPU ``n`` makes; None where it lets words pass, or there is none."""
        return next((planned.formed for planned in self.on(n) if planned.formed), None)

    @property
    def mapping(self) -> list[int]:
        """NPU of each layer."""
        return [planned.number for planned in self.layers]

    @property
    def ways(self) -> Mapping[str, MapWay]:
        """How each layer's map gets to who needs it, by the layer's name."""
        return self.lowered.ways

    @property
    def ideal(self) -> list[tuple[str, int]]:
        """Name and beats of each layer."""
        return [(planned.layer.name, planned.beats) for planned in self.layers]

    @property
    def dataflow(self) -> list[str]:
        """Dataflow of each layer, as a person writes it: "input_stationary:4" where four of more groups use a word in
        turn."""
        return [named_dataflow(planned.inner, planned.passes) for planned in self.layers]

    def on(self, n: int) -> list[PlannedLayer]:
        """The layers on NPU ``n``."""
        return [planned for planned in self.layers if planned.number == n]

    @cached_property
    def needs(self) -> list[NpuNeeds]:
        """The needs of the network on each NPU."""
        return [NpuNeeds(npu, self._needs(n)) for n, npu in enumerate(self.foldings)]

    def _needs(self, n: int) -> Needs:
        """The needs of the network on NPU ``n``: those of each of its layers, and those of all of them together."""
        of_frames = {"binariser_rows": len(self.frame.limits), "outputs": len(self.outputs)} if n == 0 else {}
        together = Needs.of(map_words=self._map_words(n), **of_frames)
        return merged([*map(needs_of, self.on(n)), together])

    def _map_words(self, n: int) -> int:
        """Most words of maps that lie in the map store of NPU ``n`` at a time. A map lies there from when its layer
        begins until its reader begins."""
        place = {planned.layer.name: i for i, planned in enumerate(self.layers)}
        waits = [
            (place[planned.layer.name], place[planned.way.reader], planned.map_words)
            for planned in self.on(n)
            if planned.way.target == "loop" and planned.way.reader
        ]
        return most_waiting(waits)

    def memory_bits(self) -> MemoryBits:
        """Bits of the memories that depend on the map order, of all NPUs, each with what this plan needs."""
        each = [memory_bits(fitted(unsized(needs.npu), [needs])) for needs in self.needs]
        return MemoryBits(sum(bits.tuples for bits in each), sum(bits.tables for bits in each))


def plan(
    model: Model,
    npus: Sequence[Npu],
    choices: CompileChoices | None = None,
    lowered: Lowered | None = None,
) -> Plan:
    """Lower a network, unless it is given as ``lowered`` for NPUs of these foldings, and plan it; parameters and errors
    are those of `lowered_for` and `plan_lowered`.

    ValueError, too, where lanes that share a weight need different ones.
    """
    choices = choices or CompileChoices()
    if choices.partitions:
        got = ", ".join(choices.partitions)
        raise ValueError(f"{model.network.name}: partitions are planned one by one, got the network with cuts at {got}")
    network_plan = plan_lowered(lowered or lowered_for(model, npus, choices), npus, choices)
    for planned in network_plan.layers:
        check_shared_weights(planned)
    return network_plan


def plans(model: Model, npus: Sequence[Npu], choices: CompileChoices | None = None) -> list[Plan]:
    """Plans of a network's partitions, in the order in which they are computed, or of the network alone; parameters and
    errors are those of `plan`, errors also those of `bitloom.hls_gen.compiler.partitions.partitions`."""
    choices = choices or CompileChoices()
    program_models = partitions(model, choices.partitions, npus)
    return [plan(program_model.model, npus, choices.of_partition) for program_model in program_models]


def plan_lowered(
    lowered: Lowered,
    npus: Sequence[Npu],
    choices: CompileChoices | None = None,
) -> Plan:
    """Plan a network.

    Parameters
    ----------
    lowered
        The network as it was lowered for NPUs of these foldings.
    npus
        Foldings of the NPUs, in their order; of capacities only those by which lanes share weights count.
    choices
        How the network is compiled; by default as ``CompileChoices()``. The mapping is that of the lowered network.

    Raises
    ------
    ValueError
        The engines can't compute the network. One line: layer, rule and value.
    """
    network = lowered.model.network.name
    choices = choices or CompileChoices()
    if choices.chunk and not any("ring" in npu.ports.inlets for npu in npus):
        raise ValueError(f"{network}: a chunk needs NPUs one behind the other, got {choices.chunk!r} for 1")
    orders = map_orders(network, choices)
    plans = {order: _plan_in_order(lowered, npus, replace(choices, map_order=order)) for order in orders}
    if len(plans) == 1:
        return plans[orders[0]]
    # a window former, and a line former, make windows row after row alone
    formed = [order for order in orders if any(planned.is_formed for planned in plans[order].layers)]
    best = min(formed or orders, key=lambda order: plans[order].memory_bits().total)  # the first one of equals
    return plans[best]


def map_orders(network: str, choices: CompileChoices) -> Sequence[str]:
    """The map orders in which a network is planned, of which the best is chosen: the one that ``choices`` name, or the
    one that their chunk needs. ValueError where these differ."""
    chunk = Chunk.of(choices.chunk)
    if choices.map_order == "auto":
        return AUTOMATIC if chunk.map_order is None else (chunk.map_order,)
    if chunk.map_order not in (None, choices.map_order):
        rule = f"a chunk of {chunk.kind} needs map_order {chunk.map_order}"
        raise ValueError(f"{network}: {rule}, got {choices.map_order}")
    return (choices.map_order,)


def _plan_in_order(lowered: Lowered, npus: Sequence[Npu], choices: CompileChoices) -> Plan:
    """The plan in the map order that ``choices`` name."""
    chunk = Chunk.of(choices.chunk)
    on = lowered.npu_of
    npus = with_skip_stores(lowered, npus)
    lowered, formed = form_taps(lowered, npus, choices.map_order)
    lowered, lines = form_array_lines(lowered, npus, choices.map_order)
    lowered, of_pools = form_pool_lines(lowered, npus, choices.map_order)
    orders = lowered.schedule(choices.map_order)
    frame = frame_words(lowered, npus[0], orders.input_orders, formed.get(lowered.layers[0].name))
    sent = MapWords(frame.layout, frame.codes, "host")
    maps = {layer.reads: sent for layer in lowered.layers if is_input(layer.reads)}
    tables = orders.by_stage
    layers = list[PlannedLayer]()
    for layer in lowered.layers:
        npu = npus[on[layer.name]]
        way = lowered.ways[layer.name]
        windows = formed.get(layer.name)
        read = words_read(layer, maps, lowered.ways)
        read = read if windows is None or is_input(layer.reads) else windows_read(read, windows)
        planned = planned_layer(
            layer,
            on[layer.name],
            npu,
            read=read,
            formed=windows,
            input_tables=tables[array_former_name(layer) if layer.former_taps else layer.name],
            inner=inner_groups(layer, npu, choices.dataflow),
            conv=tables[layer.name],
            pool=tables.get(pool_name(layer)),
            lines=lines.get(layer.name),
            pool_lines=of_pools.get(layer.name),
            way=way,
            reader_lanes=npus[on[way.reader or layer.name]].array.map_lanes,
        )
        if read.inlet == "ring":
            words = chunk.words(planned.input_tables, planned.coming_tuple_words, npu.ports.buffer_words)
            planned = replace(planned, chunk_words=words, sizes_buffers=chunk.sizes_buffers)
        layers.append(planned)
        maps[layer.name] = MapWords.of(planned.output, way.target)
        check_added(planned, maps)
    return Plan(lowered=lowered, schedule=orders, frame=frame, foldings=tuple(npus), layers=tuple(layers))


def with_skip_stores(lowered: Lowered, npus: Sequence[Npu]) -> list[Npu]:
    """The NPUs, with skip stores where maps of a network wait and where they are made. ValueError if one can't have
    any, or keeps integers in another store than the network needs."""
    network = lowered.model.network.name
    ways, on = lowered.ways, lowered.npu_of
    waiting = {n for name, way in ways.items() if way.skips for n in (on[name], way.skip_store_npu(on[name]))}
    joining = {on[layer.name] for layer in lowered.layers if layer.joins}
    kept = onward(ways, on, {layer.name for layer in lowered.layers if layer.binary})
    for n, wanted in kept.items():
        if npus[n].has_skip and npus[n].skips_onward != wanted:
            rule = f"NPU {n} must have skips_onward = {wanted} for the integers that it keeps"
            raise ValueError(f"{network}: {rule}, got {npus[n].skips_onward}")
    bits = {on[layer.name]: SKIP_BITS for layer in lowered.layers if layer.binary}
    stored = [
        _with_skip_store(network, npu, n in joining, bits.get(n, 0)) if n in waiting else npu
        for n, npu in enumerate(npus)
    ]
    return [npu.changed(skips_onward=kept[n]) if n in kept else npu for n, npu in enumerate(stored)]


def _with_skip_store(network: str, npu: Npu, joins: bool, bits: int) -> Npu:
    """The NPU with a skip store and a table of tuples that taps claim ahead, since each of a map's two readers lets the
    tuples pass that only the other one needs; if it ``joins`` maps, also with layers that read two maps. Sizes count
    for nothing; ``bits`` are those of the integers that a binary NPU keeps, else 0. ValueError if the NPU can't have a
    skip store.
    """
    try:
        if not npu.has_skip:
            npu = npu.changed(skip_words=flat.LEAST["skip_words"], skip_bits=bits, aheads=flat.LEAST["aheads"])
        return npu if npu.joined_words or not joins else npu.changed(joined_words=flat.LEAST["joined_words"])
    except ValueError as e:
        what = "concatenated" if joins else "added or have two readers"
        raise ValueError(f"{network}: maps that are {what} need a skip store: {e}") from None

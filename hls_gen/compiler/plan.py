"""Plan: everything a network needs of a chain of NPUs, before it is cut to the memories of particular ones (spec B1 to
B7).

    model --mapping, lowering--> lowered layers --schedule--> orders --this--> table rows, kernels, thresholds, layouts

Parts: frame_words.py (what the host sends), sum_rows.py and result_rows.py (a lowered layer),
npu_plan.py (what comes of them).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.golden.network import Model
from bitloom.hls_gen.design.folding import Folding
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import SKIP_BITS
from bitloom.hls_gen.design.window_former import FormedWindows

from .choices import CompileChoices
from .chunk import Chunk
from .dataflow import dataflow_of, inner_groups
from .fitted import MemoryBits, fitted, memory_bits, unsized
from .frame_words import FrameWords, frame_words, input_layout
from .joined_taps import formed_windows, joined_taps, pays
from .kept_ways import onward
from .layout import Layout
from .lowering import Lowered, lowered_for, pool_name
from .map_way import MapWay
from .npu_plan import NpuPlan
from .result_rows import append_results, check_added
from .schedule import AUTOMATIC, ORDERS, Schedule, StageTables
from .sum_rows import MapWords, append_sums, check_accumulation, words_read
from .tables import Tables


@dataclass(kw_only=True)
class Plan:
    """What a network needs of a chain of NPUs."""

    lowered: Lowered
    schedule: Schedule
    input_words: Layout
    """(frame words, word bits): input bit that each bit carries, or ZERO, ONE."""
    output: Layout
    """(words of a tuple, lanes): output lane in each place of what leaves for one window, or UNUSED."""
    npus: list[NpuPlan] = field(default_factory=list)
    mapping: list[int] = field(default_factory=list)
    """NPU of each layer."""
    ideal: list[tuple[str, int]] = field(default_factory=list)
    """Name and beats of each layer."""
    dataflow: list[str] = field(default_factory=list)
    """Dataflow of each layer."""
    ways: dict[str, MapWay] = field(default_factory=dict)
    """How each layer's map gets to who needs it, by the layer's name."""
    map_words: dict[str, int] = field(default_factory=dict)
    """Words of each layer's map, by the layer's name."""
    compared: dict[str, MemoryBits] = field(default_factory=dict)
    """What each map order needs, where "auto" chose."""
    formed: FormedWindows | None = None
    """What the window former of NPU 0 makes of a frame; None where it lets words pass, or there is none."""

    def memory_bits(self) -> MemoryBits:
        """Bits of the memories that depend on the map order, of all NPUs, each with what this plan needs."""
        found = [memory_bits(fitted(unsized(npu.folding), [npu])) for npu in self.npus]
        return MemoryBits(sum(one.tuples for one in found), sum(one.tables for one in found))


def plan(
    model: Model,
    npus: Sequence[Folding],
    choices: CompileChoices | None = None,
    *,
    chunk: int | None = None,
) -> Plan:
    """Lower a network and plan it; parameters and errors are those of `lowered_for` and `planned`."""
    choices = choices or CompileChoices()
    return planned(lowered_for(model, npus, choices.mapping), npus, choices, chunk=chunk)


def planned(
    lowered: Lowered,
    npus: Sequence[Folding],
    choices: CompileChoices | None = None,
    *,
    chunk: int | None = None,
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
    chunk
        Tuples of a chunk between neighbours, >= 1, in place of the choices' chunk.

    Raises
    ------
    ValueError
        The engines can't compute the network. One line: layer, rule and value.
    """
    network = lowered.model.network.name
    if chunk is not None and chunk < 1:
        raise ValueError(f"{network}: chunk must be >= 1 tuples, got {chunk}")
    choices = choices or CompileChoices()
    pieces = Chunk("tuples", chunk) if chunk is not None else Chunk.of(choices.chunk)
    if choices.chunk and not any("ring" in npu.inlets for npu in npus):
        raise ValueError(f"{network}: a chunk needs NPUs one behind the other, got {choices.chunk!r} for 1")
    choices = _with_order(network, choices, pieces)
    if choices.map_order not in (*ORDERS, "auto"):
        raise ValueError(f"plan: map_order must be one of {', '.join(ORDERS)}, auto, got {choices.map_order!r}")
    chain = [one if isinstance(one, Npu) else unsized(one) for one in npus]
    if choices.map_order != "auto":
        return _planned(lowered, chain, choices, pieces)
    plans = {order: _planned(lowered, chain, replace(choices, map_order=order), pieces) for order in AUTOMATIC}
    compared = {order: made.memory_bits() for order, made in plans.items()}
    formed = [order for order in AUTOMATIC if plans[order].formed]  # a window former makes windows in one order alone
    best = min(formed or AUTOMATIC, key=lambda order: compared[order].total)  # the first one if they are equal
    return replace(plans[best], compared=compared)


def _with_order(network: str, choices: CompileChoices, chunk: Chunk) -> CompileChoices:
    """The choices with the map order that the chunk needs; ValueError where another one is chosen."""
    if chunk.map_order is None or choices.map_order == chunk.map_order:
        return choices
    if choices.map_order != "auto":
        rule = f"a chunk of {chunk.kind} needs map_order {chunk.map_order}"
        raise ValueError(f"{network}: {rule}, got {choices.map_order}")
    return replace(choices, map_order=chunk.map_order)


def _planned(lowered: Lowered, npus: Sequence[Npu], choices: CompileChoices, chunk: Chunk) -> Plan:
    """The plan in the map order that ``choices`` name."""
    on = dict(zip((p.name for p in lowered.layers), lowered.mapping))  # lowered layer -> its NPU
    found = lowered.ways
    npus = _with_skip_stores(lowered.model.network.name, npus, lowered, found, on)
    lowered, orders, formed = _ordered(lowered, npus[0], choices.map_order)
    frame = frame_words(lowered, npus[0], orders.input_order, formed)
    made = _begin(lowered, orders, npus, frame)
    made.formed = made.npus[0].formed = formed
    made.mapping += lowered.mapping
    made.ways |= found
    maps = {INPUT: MapWords(frame.layout, frame.codes, "host")}
    tables = {t.stage.name: t for t in orders.tables}
    for p in lowered.layers:
        npu, read = made.npus[on[p.name]], words_read(p, maps, found)
        inner = inner_groups(p, npu.folding, dataflow_of(p, choices.dataflow))
        made.dataflow.append("input_stationary" if inner > 1 else "output_stationary")
        check_accumulation(p, npu.folding, read.layout)
        if read.inlet == "ring":
            _append_chunk(npu, len(read.layout), tables[p.name], chunk)
        npu.layers.append(p)
        made.ideal.append((p.name, append_sums(npu, p, tables[p.name], read, inner)))
        its = found[p.name]
        lanes = npus[on[its.reader or p.name]].kfp
        made.output = append_results(npu, p, tables.get(pool_name(p)), its, lanes)
        maps[p.name] = MapWords(made.output, np.zeros(len(made.output), np.int64), its.target)
        windows = tables.get(pool_name(p), tables[p.name]).output_order
        made.map_words[p.name] = len(windows) * len(made.output)
        npu.kept += [its.adder is not None] * npu.folding.keeps_steps
        check_added(p, maps, npu.folding)
    for n, npu in enumerate(made.npus):
        npu.map_words = max(npu.map_words, _map_words(made, n))
    return made


def _ordered(lowered: Lowered, npu: Npu, map_order: str) -> tuple[Lowered, Schedule, FormedWindows | None]:
    """The lowered layers, with joined taps where the window former of NPU 0 makes the first one faster, their schedule,
    and what the former makes."""
    orders, joined = lowered.schedule(map_order), joined_taps(lowered, npu)
    if joined is None:
        return lowered, orders, None
    other = joined.schedule(map_order)
    formed = formed_windows(joined, other, npu)
    if formed is None:
        return lowered, orders, None
    words = formed.words, len(input_layout(lowered, npu)[0])
    each = lowered.layers[0].visits * -(-lowered.layers[0].out_channels // npu.kgp)
    beats = [len(made.tables[0].index) * count * each for made, count in zip((other, orders), words)]
    return (joined, other, formed) if pays(formed, beats) else (lowered, orders, None)


def _with_skip_stores(
    network: str, npus: Sequence[Npu], lowered: Lowered, found: Mapping[str, MapWay], on: Mapping[str, int]
) -> list[Npu]:
    """The NPUs, with skip stores where maps wait and where they are made. ValueError if one can't have any, or keeps
    integers in another store than the network needs."""
    waiting = {n for name, one in found.items() if one.skips for n in (on[name], one.store(on[name]))}
    joining, kept = {on[p.name] for p in lowered.layers if p.joins}, onward(npus, found, on)
    for n, wanted in kept.items():
        if npus[n].skip_words and npus[n].skips_onward != wanted:
            rule = f"NPU {n} must have skips_onward = {wanted} for the integers that it keeps"
            raise ValueError(f"{network}: {rule}, got {npus[n].skips_onward}")
    made = [_with_skip_store(network, npu, n in joining) if n in waiting else npu for n, npu in enumerate(npus)]
    return [replace(npu, skips_onward=kept[n]) if n in kept else npu for n, npu in enumerate(made)]


def _with_skip_store(network: str, npu: Npu, joins: bool) -> Npu:
    """The NPU with a skip store, and a table of tuples that taps claim ahead: of a map with two readers each lets those
    come by that the other one needs; and with layers that read two maps, if it ``joins`` any. Sizes count for nothing.
    ValueError if the NPU can't have a skip store."""
    bits = SKIP_BITS if npu.engine == "binary" else 0
    try:
        npu = npu if npu.skip_words else replace(npu, skip_words=2, skip_bits=bits, aheads=2)
        return npu if npu.joined_words or not joins else replace(npu, joined_words=2)
    except ValueError as e:
        what = "concatenated" if joins else "added or have two readers"
        raise ValueError(f"{network}: maps that are {what} need a skip store: {e}") from None


def _map_words(made: Plan, n: int) -> int:
    """Words of the maps that are in the map store of NPU ``n`` together: of those that are made while a layer is
    computed or were before, and are read after it."""
    place = {p.name: i for i, p in enumerate(made.lowered.layers)}
    lasts = [(place[name], place[one.reader], made.map_words[name]) for name, one in made.ways.items()
             if one.target == "loop" and one.reader and made.mapping[place[name]] == n]  # fmt: skip
    return max((sum(words for first, last, words in lasts if first <= i < last) for i in place.values()), default=0)


def _append_chunk(npu: NpuPlan, words: int, read: StageTables, chunk: Chunk) -> None:
    """Append the words of a chunk of the map with tuples of ``words`` words that a layer reads from the NPU before."""
    stage = read.stage
    npu.chunks.append(chunk.words(read, words, npu.folding.buffer_words))
    npu.ring_words = max(npu.ring_words, stage.height * stage.width * words)
    if chunk.sizes_buffers:
        npu.buffer_words = max(npu.buffer_words, npu.chunks[-1])


def _begin(lowered: Lowered, orders: Schedule, npus: Sequence[Npu], frame: FrameWords) -> Plan:
    """A plan without layers."""
    made = Plan(lowered=lowered, schedule=orders, input_words=frame.words, output=frame.layout)
    for npu in npus:
        conv = Tables(kernel=True, raster=npu.raster, ahead=npu.aheads > 0)
        pool = Tables(kernel=npu.depthwise, raster=npu.raster)
        made.npus.append(NpuPlan(folding=npu, conv=conv, pool=pool))
    made.npus[0].binariser = frame.limits
    return made

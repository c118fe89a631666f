"""Memories of an NPU of the search: as large as sizing makes them, by the same functions (hls_gen/compiler/sizing.py).

    layers, NPU --planned_layer--> planned layers --needs_of--> Needs --merged, fitting, margins--> sizes

Of an NPU that is looked at the search doesn't know what leads to it and from it: a map that comes from another NPU lies
in as few words as can be, lane after lane. What maps must wait in a skip store for, only the flow model knows; here the
store holds them as a whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.compiler.extended import Npus, PlannedOnNpus, extended
from bitloom.hls_gen.compiler.fitted import UNSIZED, fitting, streamed
from bitloom.hls_gen.compiler.formed_taps import former_sizes
from bitloom.hls_gen.compiler.frame_words import input_layout
from bitloom.hls_gen.compiler.layout import lanes_in_words
from bitloom.hls_gen.compiler.margins import margins
from bitloom.hls_gen.compiler.needs import Needs, NpuNeeds, merged, most_waiting, needs_of
from bitloom.hls_gen.compiler.planned_layer import MapWords, PlannedLayer, planned_layer, windows_read, words_read
from bitloom.hls_gen.compiler.sharing import ReadValues
from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.npu import Npu

from .folding_keys import LAYER_NEEDS
from .layer_demand import LayerDemand

ROOM = 2
"""Tuples that a tuple memory has room for beyond those that windows keep, so that tuples come while a window is read.
A choice of the search: `bitloom explore digits-cnn --lut 8000 --points 4 --halvings 1` finds 247 cycles a frame with 2,
254 with 0 or 1, and 240 with 4 or 8, for 36 and 94 LUTs more than with 2."""
SMALL_MAP = 16
"""Tuples of a map that is small. For such a map the tuple memory has room for one more map beside what it must hold.
A choice, too: the same command finds designs of as many cycles with 0, and with 64 240 cycles for 99 LUTs and 1.5
BRAM36 more."""
KEPT = 1024
"""Planned layers that are kept."""
Indices = tuple[int, ...]
"""Numbers of an NPU's layers, rising."""


@dataclass(frozen=True, eq=False)
class _LayerOnNpu:
    """A layer on an NPU."""

    plan: PlannedLayer
    """Its plan."""
    output: MapWords
    """The map that it makes, as a layer of the same NPU reads it."""

    @cached_property
    def needs(self) -> Needs:
        """The needs of the layer on the NPU."""
        return needs_of(self.plan)


Planned = list[_LayerOnNpu]
"""Layers of a network on an NPU."""


class NpuMemories:
    """Finds how large the memories of NPUs are, and keeps what it has worked out.

    Parameters
    ----------
    layers
        The layers of one network, or of several.
    networks
        The numbers of each network's layers.
    streamed
        Whether weights come down the stream.
    """

    def __init__(self, layers: Sequence[LayerDemand], networks: Sequence[range], *, streamed: bool) -> None:
        self._layers = layers
        self._networks = networks
        self._streamed = streamed
        self._known: dict[tuple[Any, ...], dict[tuple[Any, ...], _LayerOnNpu]] = {}
        """Layers on NPUs, by what depends on an NPU, and by what differs between the layers there."""
        self._kept = 0

    def __getstate__(self) -> dict[str, Any]:
        """The state for another process, which works out the rest itself."""
        return {**vars(self), "_known": {}, "_kept": 0}

    def forget(self) -> None:
        """Let go of what was worked out."""
        self._known.clear()
        self._kept = 0

    def sized(self, indices: Indices, npu: Npu) -> Npu:
        """The NPU with memories that hold what layers need together, and with what it has for their sake besides.

        Parameters
        ----------
        indices
            Numbers of the layers.
        npu
            Its folding.

        Raises
        ------
        ValueError
            The NPU can't compute them.
        """
        npu = npu.unchecked(**UNSIZED | {"aheads": flat.LEAST["aheads"] * npu.has_skip})
        npu = npu.unchecked(**self._former(indices, npu))
        each = [
            of_network
            for of_network in (tuple(i for i in indices if i in numbers) for numbers in self._networks)
            if of_network
        ]
        layers = extended(_PlannedLayers(self, each, npu))
        npu, plans = layers.npu, layers.plans
        needs = [NpuNeeds(npu, self._together(of_network, plan, npu)) for of_network, plan in zip(each, plans)]
        sizes = fitting(npu, needs)
        sizes["tuple_words"] = max(sizes["tuple_words"], _roomy_words(chain(*plans)))
        if npu.has_skip:
            waiting = [self._skipping(of_network, plan, npu) for of_network, plan in zip(each, plans)]
            sizes["skip_words"] = max(flat.LEAST["skip_words"], 1 + max(waiting))
        npu = npu.unchecked(**sizes)
        return npu.unchecked(**margins(npu, needs))

    def _former(self, indices: Indices, npu: Npu) -> dict[str, int]:
        """Sizes of the window former that several networks have in common; nothing where taps are not formed."""
        formed = [layer.formed for i in indices if (layer := self._layers[i].seen_by(npu)).formed]
        return former_sizes(npu, formed) if formed else {}

    def planned(self, indices: Indices, npu: Npu) -> Planned:
        """Layers of a network on the NPU, in their order."""
        of_npu = self._known.setdefault(LAYER_NEEDS(npu), {})
        maps: dict[str, MapWords] = {}
        planned = []
        for i in indices:
            layer = self._layers[i].seen_by(npu)
            key = i, layer.formed is None, layer.lowered.reads in maps, layer.lowered.joins in maps
            on_npu = of_npu.get(key)
            if on_npu is None:
                on_npu = of_npu[key] = _layer_on(layer, npu, maps)
                self._kept += 1
            maps[layer.name] = on_npu.output
            planned.append(on_npu)
        if self._kept > KEPT:
            self.forget()
        return planned

    def values_read(self, indices: Indices, plan: Planned, npu: Npu) -> Iterator[ReadValues]:
        """The maps that layers read. Of a map that comes from another NPU, values lie lane after lane."""
        for i, on_npu in zip(indices, plan):
            layer = self._layers[i]
            apart = None if layer.reads is None else npu.results.ol if layer.reads in indices else 1
            yield ReadValues(layer.bits, apart, on_npu.plan.read.layout)

    def _together(self, indices: Indices, plan: Planned, npu: Npu) -> Needs:
        """The needs of a network's layers together."""
        first = self._layers[indices[0]].seen_by(npu)
        besides = first.formed_by(npu).needs() if first.formed else {}
        readers = ((i, self._layers[i].reader, layer.plan.map_words) for i, layer in zip(indices, plan))
        waits = [(i, last, words) for i, last, words in readers if last is not None and last in indices]
        if waits:
            besides["map_words"] = most_waiting(waits)
        need = merged([*(layer.needs for layer in plan), *([Needs.of(**besides)] if besides else [])])
        if not self._streamed:
            return need
        return streamed(need, npu, first.frame_words(npu) if first.reads is None else 0)

    def _skipping(self, indices: Indices, plan: Planned, npu: Npu) -> int:
        """Most words that wait in the skip store, if each map lies there as a whole."""
        words = {i: layer.plan.map_words for i, layer in zip(indices, plan)}
        if npu.keeps_steps:  # integers wait as they leave, also those of the NPU before
            words = {i: layer.windows * layer.steps(npu) for i, layer in enumerate(self._layers)}
        takers = ((i, self._layers[i].taker, count) for i, count in words.items())
        return most_waiting([(i, last, count) for i, last, count in takers if last is not None and last in indices])


@dataclass(frozen=True, eq=False)
class _PlannedLayers(PlannedOnNpus):
    """Layers of several networks, planned on one NPU."""

    memories: NpuMemories
    each: Sequence[Indices]
    """Numbers of each network's layers."""
    npu: Npu

    @property
    def npus(self) -> Npus:
        return (self.npu,)

    @cached_property
    def plans(self) -> list[Planned]:
        """The layers of each network on the NPU."""
        return [self.memories.planned(indices, self.npu) for indices in self.each]

    def on(self, npus: Npus) -> "_PlannedLayers":
        return replace(self, npu=npus[0])

    def tuple_part_npus(self) -> set[int]:
        return {0 for layer in chain(*self.plans) if layer.plan.gains_by_tuple_parts}

    def values_read(self, n: int) -> Iterator[ReadValues]:
        for indices, plan in zip(self.each, self.plans):
            yield from self.memories.values_read(indices, plan, self.npu)

    def beats(self) -> list[int]:
        return [layer.plan.beats for layer in chain(*self.plans)]


def _layer_on(layer: LayerDemand, npu: Npu, maps: Mapping[str, MapWords]) -> _LayerOnNpu:
    """A layer on an NPU; ``maps`` are those that the NPU makes itself, by the name of the layer that makes each."""
    network = layer.network
    p = layer.lowered
    read = dict(maps)
    if p.reads == INPUT:
        read[INPUT] = MapWords(*input_layout(network, npu, layer.formed and layer.formed_by(npu)), "host")
    else:
        for name, count in zip((p.reads, p.joins), layer.joined_channels or (p.map_channels,)):
            if name and name not in read:
                read[name] = MapWords.of(lanes_in_words(np.arange(count), npu.array.map_lanes), "ring")
    words = words_read(p, read, network.ways)
    if layer.formed and p.reads != INPUT:
        words = windows_read(words, layer.formed_by(npu))
    plan = planned_layer(
        p,
        0,
        npu,
        read=words,
        inner=1,
        conv=layer.conv,
        pool=layer.pool_tables(npu),
        lines=layer.lines,
        pool_lines=formed_pool.lines if (formed_pool := layer.formed_pool(npu)) else None,
        way=network.ways[p.name],
        reader_lanes=npu.array.map_lanes,
    )
    return _LayerOnNpu(plan, MapWords.of(plan.output, "loop"))


def _roomy_words(layers: Iterable[_LayerOnNpu]) -> int:
    """Words of the tuple memory with the room that the search gives it beyond what its layers need."""
    words = 0
    for plan in (layer.plan for layer in layers):
        counts = plan.on_array.counts
        room = max(ROOM, counts.tuples) if counts.tuples <= SMALL_MAP else ROOM
        words = max(words, (counts.hold + room) * plan.words)
    return 1 << (words - 1).bit_length()

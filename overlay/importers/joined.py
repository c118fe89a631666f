"""Importing a graph: each way becomes layers as a chain does, and an `Add` or `Concat` layer stands where ways meet.

All ways are cut first. Then it is decided once for each map between ways which integers it holds: where weights with
padding read it, 0 must be worth 0. Then the ways become layers, and these one network.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.network import Model, Network

from .boundaries import Ends, Line, joined
from .built import Built, Emitted
from .choose import EngineChoice, Held, choices, integers, padded, worth
from .emit import emit
from .errors import ImportRefused, Unsupported, node_line
from .held_maps import SeveralZeroPoints, held_between
from .joins import Concatenation, Join, Sum
from .operation_graph import OperationGraph
from .sections import Cut, Quantised, Section
from .sum_fit import SumFactors, fit_sum
from .sum_pairs import pairs_of
from .way_cuts import WayCut, cuts_of


@dataclass(frozen=True, kw_only=True, eq=False)
class WayLayers:
    """What a way became: a chain of its own, behind the sum that it begins with.

    Attributes
    ----------
    graph : OperationGraph
    cut : Cut
    choice : EngineChoice
    emitted : Emitted
        The model of the way's weighted layers, from the map that the first of them reads.
    """

    graph: OperationGraph
    cut: Cut
    choice: EngineChoice
    emitted: Emitted


@dataclass(frozen=True, kw_only=True, eq=False)
class JoinedGraph:
    """A graph as one network.

    Attributes
    ----------
    cut : Cut
        The first way's input, the last one's output, and all sections.
    choice : EngineChoice
        Of all sections.
    emitted : Emitted
    chains : tuple of WayLayers
        Those that have weights.
    """

    cut: Cut
    choice: EngineChoice
    emitted: Emitted
    chains: tuple[WayLayers, ...]


def join(graph: OperationGraph, source: Quantised | None, engine: str, name: str) -> JoinedGraph:
    """Import a graph of operations.

    Parameters
    ----------
    graph : OperationGraph
    source : Quantised or None
        What the input holds, where that is said.
    engine : str
        As `choose` has it; graphs are for the integer engine alone.
    name : str
        Of the network.

    Raises
    ------
    ImportRefused
        With a line for the first thing that can't be imported.
    """
    if engine == "binary":
        raise ImportRefused([f"maps that are {_how(graph)} need the integer engine, got --engine binary"])
    return _Joiner(*_held(graph, source), name).joined(graph)


def _held(graph: OperationGraph, source: Quantised | None) -> tuple[list[WayCut], dict[str, Held]]:
    """The ways, cut, and how the maps between them are held: means are pools where these allow it."""
    apart = frozenset[str]()
    while True:
        cuts = cuts_of(graph, source, apart)
        try:
            return cuts, held_between(cuts)
        except SeveralZeroPoints as e:
            if e.means <= apart:
                raise
            apart |= e.means


def _how(graph: OperationGraph) -> str:
    """How the maps of a graph are joined, for messages."""
    concatenated = [isinstance(one, Concatenation) for one in graph.operations if isinstance(one, Join)]
    if not any(concatenated):
        return "added"
    return "concatenated" if all(concatenated) else "added and concatenated"


class _Joiner:
    """Layers of all ways as they are added."""

    def __init__(self, cuts: Sequence[WayCut], held: dict[str, Held], name: str) -> None:
        self._cuts, self._held, self._name = cuts, held, name
        self._makers = {cuts[0].way.reads[0]: INPUT}  # tensor -> the layer that makes it
        self._quantised: dict[str, Quantised] = {}
        self._layers: list[Layer] = []
        self._maps: dict[str, Map] = {}
        self._arrays: dict[str, dict[str, Array]] = {}
        self._built: list[Built] = []
        self._chains: list[WayLayers] = []
        self._scores: Sequence[Line | Ends] = ()
        self._number = 1

    def joined(self, graph: OperationGraph) -> JoinedGraph:
        """All ways, one after another, as one network."""
        for one in self._cuts:
            try:
                self._add(one)
            except ImportRefused:
                raise
            except ValueError as e:
                operation = one.way.operations[0]
                raise ImportRefused([node_line(operation.name, operation.op, e)]) from None
        network = Network(name=self._name, input=self._maps[INPUT], layers=tuple(self._layers))
        first, last = self._cuts[0].cut, self._cuts[-1].cut
        sections = tuple(section for one in self._chains for section in one.cut.sections)
        whole = replace(
            first, sections=sections, chain=graph.operations, final=last.final, output_order=last.output_order,
            closing=last.closing,
        )  # fmt: skip
        choice = EngineChoice(
            engines=("integer",) * len(self._built),
            weights=tuple(weights for one in self._chains for weights in one.choice.weights),
            held=tuple(held for one in self._chains for held in one.choice.held),
            why=f"the integer engine computes all: maps are {_how(graph)}",
        )
        emitted = Emitted(model=Model(network, self._arrays), scores=tuple(self._scores), built=tuple(self._built))
        return JoinedGraph(cut=whole, choice=choice, emitted=emitted, chains=tuple(self._chains))

    def _add(self, one: WayCut) -> None:
        """The layers of a way."""
        last, held = one is self._cuts[-1], None
        if one.head is not None:
            add = self._add_sum if isinstance(one.way.join, Sum) else self._add_unchanged
            held = add(one, one.head)
        if one.cut.sections:
            self._add_chain(one, held)
        elif last and one.head is not None and one.head.made is not None and held is not None:
            channels = one.cut.final_size[2]
            line = Line(multiply=np.full(channels, Fraction(1), object), add=np.full(channels, Fraction(0), object))
            self._scores = joined([worth(line, one.head.made, held), *one.cut.final])
        self._makers[one.way.makes] = self._layers[-1].name
        if not last:
            self._quantised[one.way.makes] = one.made

    def _append(self, layer: Layer, arrays: dict[str, Array]) -> None:
        self._layers.append(layer)
        if arrays:
            self._arrays[layer.name] = arrays
        self._maps[layer.name] = layer.output_of([self._maps[name] for name in layer.inputs])

    def _add_chain(self, one: WayCut, held: Held | None) -> None:
        """The layers of a way's sections; ``held`` is how the map is held that its sum makes."""
        choice = choices(one.cut, "integer")[0]
        before = held or self._held.get(one.way.reads[0])
        ends = [*choice.held]
        if before is not None:
            if padded(one.cut.sections[0]) and ends[0].zero != before.zero:
                raise Unsupported("a padded tap must be worth 0 as the map's other readers have it")
            ends[0] = before
        if one.way.makes in self._held:
            ends[-1] = self._held[one.way.makes]
        choice = replace(choice, held=tuple(ends))
        emitted = emit(one.cut, choice, self._name, first=self._number)
        self._number += len(one.cut.sections)
        reads = self._layers[-1].name if one.head is not None else self._makers[one.way.reads[0]]
        self._maps.setdefault(INPUT, emitted.model.network.input)
        for layer in emitted.model.network.layers:
            self._append(replace(layer, inputs=(reads,)), dict(emitted.model.arrays.get(layer.name, {})))
            reads = layer.name
        self._built += emitted.built
        self._scores = emitted.scores
        self._chains.append(WayLayers(graph=one.graph, cut=one.cut, choice=choice, emitted=emitted))

    def _add_sum(self, one: WayCut, head: Section) -> Held:
        """The addition that a way begins with, and its pools; how what they make is held."""
        made = head.made
        assert made is not None
        held = self._held.get(one.way.makes)
        if one.cut.sections or held is None:
            held = integers(made, one.cut.sections[0] if one.cut.sections else None)
        sources = [(self._quantised[read], self._held[read]) for read in one.way.reads]
        pairs = pairs_of(one.way, sources, made, held)
        factors = fit_sum(pairs)
        inputs = tuple(self._makers[read] for read in one.way.reads)
        number, full = self._number, (held.encoding.low, held.encoding.high) == (pairs.low, pairs.high)
        clip = None if full else (pairs.low, pairs.high)
        layer = Add(name=f"add_{number}", inputs=inputs, encoding=held.encoding, clip=clip)
        self._append(layer, factors.arrays)
        names = self._add_pools(head, layer.name)
        self._number += 1
        self._built.append(_built(head, names, factors, layer.reach(factors.arrays, self._sources(inputs)), held))
        return held

    def _add_unchanged(self, one: WayCut, head: Section) -> Held:
        """The concatenation that a way begins with, if any, and its pools; how what they make is held."""
        assert head.made is not None
        held = self._held[one.way.operations[0].makes]
        inputs, begun = tuple(self._makers[read] for read in one.way.reads), len(self._layers)
        if one.way.join is not None:
            self._append(Concat(name=f"concat_{self._number}", inputs=inputs), {})
        self._add_pools(head, inputs[0] if one.way.join is None else self._layers[-1].name)
        names = tuple(layer.name for layer in self._layers[begun:])
        encoding = self._maps[names[0]].encoding
        self._number += 1
        row = Built(
            nodes=head.nodes, layers=names, engine="integer", weights="", made=str(encoding),
            range=(encoding.low, encoding.high), levels=head.made.levels, falling=0, used=1.0,
        )  # fmt: skip
        self._built.append(row)
        return held

    def _add_pools(self, head: Section, before: str) -> list[str]:
        """The pools behind a join, which follow layer ``before``; names of this one and of theirs."""
        names, made, number = [before], head.made, self._number
        assert made is not None
        for place, window in enumerate(head.pools):
            kind = AvgPool if made.averaged and place == len(head.pools) - 1 else MaxPool
            name = f"pool_{number}_{place + 1}"
            self._append(kind(name=name, inputs=(names[-1],), kernel=window.kernel, stride=window.stride,
                              padding=window.padding), {})  # fmt: skip
            names.append(name)
        return names

    def _sources(self, inputs: Sequence[str]) -> list[Map]:
        return [self._maps[name] for name in inputs]


def _built(
    head: Section, names: Sequence[str], factors: SumFactors, reach: tuple[int, int], held: Held
) -> Built:
    """The row of a sum for the explanation."""
    bits = max(abs(factor).bit_length() for factor in factors.multipliers)
    assert head.made is not None
    return Built(
        nodes=head.nodes, layers=tuple(names), engine="integer", weights=f"factors of {bits} bits",
        made=str(held.encoding), range=reach, levels=head.made.levels, falling=0, used=1.0, wrong=factors.wrong,
    )  # fmt: skip

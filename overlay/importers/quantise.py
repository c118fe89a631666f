"""The pass from operations to sections: a graph is cut at its quantisers.

    input quantiser | linear, chain, quantiser, pools | linear, chain, quantiser | linear, chain

A *way* is a run of operations, each of which reads the tensor of the one before. It begins at the input, at a tensor
with several readers, or with a join, which is a sum or a concatenation, and ends where the next way begins:

    input --way--> fork --way--> join --way--> output
                     `----------^
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.host import level_of

from .budget import OverBudget
from .errors import ImportRefused, Unsupported, merged_lines, node_line, printable
from .held import SeveralZeroPoints, zero_groups
from .indexes import Grown
from .links import Link, first_line
from .map_view import MapView
from .node_view import several_maps
from .operations import (
    Closing,
    Concatenation,
    Elementwise,
    Function,
    Join,
    Layout,
    Levels,
    Linear,
    Operation,
    OperationGraph,
    Pair,
    Pointwise,
)
from .rationals import same
from .rules import simplified
from .sections import (
    OutputMap,
    PairSection,
    PassSection,
    Quantised,
    Reading,
    Section,
    SectionGraph,
    SectionOutput,
    Size,
    golden_order,
)
from .source import MOST_CHANNELS
from .trail import Trail, Unlinked
from .walk import Walk


def quantise(graph: OperationGraph, source: Quantised | None = None) -> SectionGraph:
    """Cut a graph of operations into sections.

    Means are pools where the integers of their maps allow it, else convolutions.

    Parameters
    ----------
    graph : OperationGraph
    source : Quantised, optional
        What the input is, where nothing in front of the first weights quantises it.

    Raises
    ------
    ImportRefused
        With a line for the operation that can't be put into a section.
    """
    try:
        graph = simplified(graph)
    except OverBudget as e:
        raise ImportRefused([str(e)]) from None
    joins = [operation for operation in graph.operations if isinstance(operation, Pointwise)]
    left = [join for join in joins if not isinstance(join, Pair)]  # no layer computes these
    if left:
        raise ImportRefused(merged_lines([(each.name, each.op, several_maps(len(each.reads))) for each in left]))
    apart = frozenset[str]()
    while True:
        sections = _Sections(graph, source, apart).graph()
        try:
            zero_groups(sections)
        except SeveralZeroPoints as e:
            if e.means <= apart:
                raise
            apart |= e.means
        else:
            return sections


def quantises_input(graph: OperationGraph) -> bool:
    """Whether a quantiser comes in front of the first weights, pools and sums."""
    here = graph.source
    for operation in graph.operations:
        if operation.reads == (here,):
            if operation.reads_map or operation.makes_map:
                return isinstance(operation, Levels)
            here = operation.makes
    return False


@dataclass(frozen=True, kw_only=True)
class Way:
    """Operations each of which reads the tensor of the one before."""

    operations: tuple[Operation, ...]
    """In their order; the first one may be a join, no other. None if several ways begin at the input: then a way of no
    operation makes the input."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that it begins at: several if it begins with a join."""
        return self.operations[0].reads

    @property
    def makes(self) -> str:
        """The tensor that it ends with."""
        return self.operations[-1].makes


def ways(graph: OperationGraph) -> list[Way]:
    """Cut a graph into ways, each behind those whose tensors it reads."""
    operations = graph.operations
    readers = Counter(name for operation in operations for name in set(operation.reads))
    together = {name for operation in operations if isinstance(operation, Join) for name in operation.reads}
    cuts = {name for name, count in readers.items() if count > 1} | together | {*graph.outputs}
    following = {operation.reads[0]: operation for operation in operations if operation.reads[0] not in cuts}
    out = [Way(operations=())] if graph.source in cuts and len(operations) > 1 else []
    for operation in operations:
        if operation.reads[0] != graph.source and operation.reads[0] not in cuts:
            continue
        members = [operation]
        while members[-1].makes not in cuts:
            members.append(following[members[-1].makes])
        out.append(Way(operations=tuple(members)))
    known = {graph.source}
    sorted_ways = out[:1] if out and not out[0].operations else []
    out = out[len(sorted_ways) :]
    while out:  # operations are sorted, but a way goes on past the beginning of the next one
        ready = next(way for way in out if known.issuperset(way.reads))
        out.remove(ready)
        sorted_ways.append(ready)
        known.add(ready.makes)
    return sorted_ways


@dataclass(frozen=True, eq=False)
class _WayEnd:
    """What a way ends with: a map, the links behind it, and where the tensor's values lie in golden's map.

    ``source`` is None where sums end the way, which nothing can read.
    """

    map: int
    source: Quantised | None
    links: tuple[Link, ...]
    view: MapView
    closing: tuple[tuple[Closing, Array], ...]
    behind: tuple[Operation, ...]  # the map, on the way

    @property
    def output_map(self) -> OutputMap:
        """The map as the host reads it; ImportRefused if the host can't compute what lies behind it."""
        _check_host(self.behind)
        return OutputMap(map=self.map, source=self.source, links=self.links)

    @property
    def levels(self) -> Quantised:
        """The map as the next way reads it: its levels, and what they are worth behind the links."""
        line, behind = first_line(self.links, self.view.size[2])
        if self.source is None or behind:
            raise Unsupported("a map that several operators read, or that is joined, must be quantised")
        multiply = same(line.multiply)
        add = same(line.add)
        if multiply is None or add is None or multiply <= 0:
            raise Unsupported("a map that several operators read, or that is joined, must have one scale > 0")
        base = self.source.base * multiply + add
        return replace(self.source, base=base, step=self.source.step * multiply, averaged=False, rule=None)


class _Sections:
    """The sections of a graph as they are made, way by way."""

    def __init__(self, graph: OperationGraph, source: Quantised | None, apart: Collection[str]) -> None:
        self._graph = graph
        self._source = source
        self._apart = apart
        self._sections: list[Section] = []
        self._ends: dict[str, _WayEnd] = {}
        self._outputs: dict[str, SectionOutput] = {}  # those that the host puts together from several maps

    def graph(self) -> SectionGraph:
        """The whole graph."""
        first, *others = ways(self._graph) or [Way(operations=())]
        begin = self._walk_input(first)
        for way in others:
            try:
                if not self._joins_at_end(way):
                    self._walk(way)
            except ImportRefused:
                raise
            except ValueError as e:
                raise ImportRefused([node_line(way.operations[0].name, way.operations[0].op, e)]) from None
        return SectionGraph(
            operations=self._graph.operations,
            front=begin.front,
            source=self._input,
            size=self._size,
            order=self._order,
            sections=tuple(self._sections),
            outputs=tuple(self._output(tensor) for tensor in self._graph.outputs),
        )

    def _output(self, tensor: str) -> SectionOutput:
        """An output of the network."""
        if tensor in self._outputs:
            return self._outputs[tensor]
        end = self._ends[tensor]
        return _section_output(tensor, [end.output_map], end.view.index, end.closing)

    def _joins_at_end(self, way: Way) -> bool:
        """Whether a way is a concatenation at the network's end: then the maps leave as they are, and the host puts
        their values side by side. What follows each value for itself was put in front (rules.py)."""
        join, *behind = way.operations
        if not isinstance(join, Concatenation) or self._hindrance(way):
            return False
        ends = [self._ends[tensor] for tensor in way.reads]
        firsts = np.cumsum([0, *(end.view.index.size for end in ends)])
        index = join.run(*(first + end.view.index for first, end in zip(firsts, ends)))
        closing = list[tuple[Closing, Array]]()
        for operation in behind:
            if isinstance(operation, Layout):
                index = index.ravel()[operation.order.ravel()].reshape(operation.order.shape)
            elif isinstance(operation, Closing):
                closing.append((operation, index))
        maps = [end.output_map for end in ends]
        self._outputs[way.makes] = _section_output(way.makes, maps, index, closing)
        return True

    def _hindrance(self, way: Way) -> Operation | None:
        """The first operation behind a concatenation that the host can't compute of what it joins; None if the
        concatenation is at the network's end."""
        values = prod(self._graph.shapes[way.operations[0].makes])
        for operation in way.operations[1:]:
            whole = isinstance(operation, Layout) and operation.order.size == values
            if not whole and not isinstance(operation, Closing):
                return operation
        return next((operation for operation in self._graph.operations if way.makes in operation.reads), None)

    def _walk_input(self, way: Way) -> Trail:
        """The way that begins at the input."""
        operations = way.operations
        first = next((place for place, operation in enumerate(operations) if operation.reads_map), len(operations))
        makes = way.makes if operations else self._graph.source
        reader = next((operation for operation in self._graph.operations if makes in operation.reads), None)
        last = max((place for place in range(first) if isinstance(operations[place], Levels)), default=-1)
        weighted = _first(self._graph.operations, Linear) < len(self._graph.operations)
        if (first == len(operations) and reader is None) or not weighted:
            name = self._graph.name or "the network"
            raise ImportRefused([f"{name}: a convolution or a matrix product must come first, got none"])
        if last < 0 and self._source is None:
            why = "its input must be quantised, got real numbers; say what the network is fed with: --input"
            begin = operations[first] if first < len(operations) else reader
            assert begin is not None
            raise ImportRefused([node_line(begin.name, begin.op, why)])
        if last >= 0 and self._source is not None:
            why = "it quantises the input already, so leave out --input"
            raise ImportRefused([node_line(operations[last].name, operations[last].op, why)])
        if last >= 0:
            _check_host(operations[: _first(operations, Levels)])
        self._order, self._size = _input_order(self._graph, [*operations, *_behind(self._graph, makes)])
        if self._size[2] > MOST_CHANNELS:
            raise ImportRefused([f"the input must have at most {MOST_CHANNELS:,} channels, got {self._size[2]:,}"])
        view = MapView(index=self._order, size=self._size, channels_last=self._graph.channels_last)
        walk = self._begun(way, self._source, view, 0, self._graph.source)
        for place in range(len(operations)):
            walk.take(place)
            if place == last:  # so far the host computes
                walk.leave_to_host()
        if first == len(operations) and reader is not None:  # several read the input, or what the host makes of it
            walk.copy_map(reader)
        self._end(makes, walk, operations)
        head = self._sections[0]
        self._input = head.map if isinstance(head, PassSection) else head.reads[0].source
        return walk.trail

    def _walk(self, way: Way) -> None:
        """A way that begins at a fork or with a join."""
        walk = self._walk_join(way) if isinstance(way.operations[0], Join) else self._walk_fork(way)
        self._end(way.makes, walk, way.operations)

    def _walk_join(self, way: Way) -> Walk:
        """A way that begins with a sum or a concatenation, which is its first section."""
        join = way.operations[0]
        for tensor in way.reads:
            self._put_in_order(way, tensor)
        reads = [self._reading(tensor) for tensor in way.reads]
        if isinstance(join, Concatenation):
            section, index, taken = self._concatenation(way, join, reads)
        else:
            assert isinstance(join, Pair)
            section, index, taken = self._pair(way, join, reads)
        view = MapView(index=index, size=section.size, channels_last=self._graph.channels_last)
        walk = self._begun(way, section.quantised, view, len(self._sections) + 1)
        walk.trail.sections.append(section)
        walk.trail.number += 1
        walk.trail.unlinked = Unlinked(way.operations[taken - 1].makes, view)
        for place in range(taken, len(way.operations)):
            walk.take(place)
        return walk

    def _put_in_order(self, way: Way, tensor: str) -> None:
        """Copy a tensor in blocks in front of a way that joins it with others."""
        end = self._ends[tensor]
        if end.source is not None and not end.links and end.view.blocks(way.operations[0]):
            walk = self._begun(way, end.source, end.view, end.map, tensor)
            walk.copy_map(way.operations[0])
            trail = walk.trail
            self._sections += trail.sections
            self._ends[tensor] = replace(end, map=trail.map, source=trail.source, view=trail.view)

    def _walk_fork(self, way: Way) -> Walk:
        """A way of a map with several readers, whose levels it must leave as they are."""
        end = self._ends[way.reads[0]]
        levels = end.levels
        limits = np.array([[Fraction(level) for level in range(1, levels.levels + 1)]], object)
        levels = replace(levels, boundaries=limits, reached=np.ones(levels.levels, bool))
        walk = self._begun(way, levels, end.view, end.map)
        walk.trail.closing += end.closing
        for place in range(len(way.operations)):
            walk.take(place)
        return walk

    def _begun(self, way: Way, source: Quantised | None, view: MapView, number: int, tensor: str = "") -> Walk:
        """A walk along a way that begins at a tensor of a map with this number."""
        trail = Trail(
            operations=way.operations,
            tensor=tensor or way.reads[0],
            source=source,
            view=replace(view, padded_with=Fraction(0)),
            map=number,
            number=len(self._sections) + 1,
            apart=self._apart,
        )
        return Walk(trail)

    def _end(self, makes: str, walk: Walk, operations: Sequence[Operation]) -> None:
        """Take over the sections of a walk that has come to the end of a way."""
        walk.finish()
        last = max((place for place, operation in enumerate(operations) if operation.makes_map), default=-1)
        trail = walk.trail
        self._sections += trail.sections
        source = trail.last.quantised if trail.last else trail.source
        closing = tuple(trail.closing)
        behind = tuple(operations[last + 1 :])
        self._ends[makes] = _WayEnd(trail.map, source, walk.stand.links, trail.view, closing, behind)

    def _reading(self, tensor: str) -> Reading:
        """How a join reads what a way ends with."""
        end = self._ends[tensor]
        return Reading(map=end.map, source=end.levels, tensor=tensor, order=end.view.index)

    def _pair(self, way: Way, join: Pair, reads: Sequence[Reading]) -> tuple[Section, Array, int]:
        """The section of a sum or a product, the index of its result, and how many operations it takes, up to the
        quantiser."""
        first, second = reads
        if not np.array_equal(first.order.ravel(), second.order.ravel()):
            raise Unsupported(f"two maps that are {join.verb} must have their values in the same order")
        base = Fraction(0)
        step = Fraction(1)
        place = 0
        between: tuple[Elementwise, ...] = ()
        quantiser = None
        if join.table is not None:
            if any(reading.source.step != 1 or reading.source.base < join.table.first for reading in reads):
                raise Unsupported(f"maps that are {join.verb} must be as their quantisers made them")
            base = base + join.table.low
            levels = join.table.high - join.table.low
        else:
            place = _first(way.operations, Levels)
            between, quantiser = _quantiser_of_pair(way, join, place)
            base, step, levels = quantiser.base, quantiser.step, quantiser.levels
        section = PairSection(
            name=join.name,
            op=join.op,
            nodes=_names(way.operations[: place + 1]),
            reads=tuple(reads),
            size=self._ends[first.tensor].view.size,
            quantised=Quantised(name=join.name, base=base, step=step, levels=levels),
            join=join,
            between=between,
            quantiser=quantiser,
        )
        _ = section.zeros  # else refused here
        return section, first.order, place + 1

    def _of_one_scale(self, way: Way, reads: Sequence[Reading]) -> tuple[list[Reading], int]:
        """Maps of several scales as the quantiser behind their concatenation makes them, each by a copy of its own; and
        how many operations that takes."""
        place = _first(way.operations, Levels)
        functions = [op.anywhere for op in way.operations[1 : place + 1] if isinstance(op, Function) and op.is_uniform]
        if len(functions) < place:
            raise Unsupported("maps that are concatenated must have one scale and zero point, or be requantised to one")
        out = []
        for reading in reads:
            end = self._ends[reading.tensor]
            walk = self._begun(way, reading.source, end.view, end.map, reading.tensor)
            walk.quantise_copy(functions)
            self._sections += walk.trail.sections
            tensor = f"{reading.tensor}, requantised for {way.makes}"
            out.append(replace(reading, map=walk.trail.map, source=walk.trail.input, tensor=tensor))
        return out, place + 1

    def _concatenation(self, way: Way, join: Concatenation, reads: Sequence[Reading]) -> tuple[Section, Array, int]:
        """The section of a concatenation, as `_sum`: values of golden's maps lie behind one another at each
        position."""
        sizes = [self._ends[tensor].view.size for tensor in way.reads]
        if len({size[:2] for size in sizes}) > 1:
            got = " and ".join(f"{rows} x {columns}" for rows, columns, _ in sizes)
            hindrance = self._hindrance(way)
            assert hindrance is not None  # else the host joins them
            follows = f"{printable(hindrance.name)} ({printable(hindrance.op)}) follows"
            rule = f"maps that are concatenated must have one height and width, got {got}"
            raise Unsupported(rule, f"the host joins others at the network's end alone, and {follows}")
        channels = sum(size[2] for size in sizes)
        before = 0
        places = list[Array]()
        for reading, (_, _, count) in zip(reads, sizes):
            position, channel = np.divmod(reading.order, count)
            places.append(position * channels + before + channel)
            before += count
        if not _alike([reading.source for reading in reads]):
            reads, taken = self._of_one_scale(way, reads)
            maps = [reading.source for reading in reads]
            levels = replace(maps[0], name=join.name, boundaries=None, reached=None, rule=None)
            section = PassSection(
                name=join.name,
                op=join.op,
                nodes=_names(way.operations[:taken]),
                reads=tuple(reads),
                size=(*sizes[0][:2], channels),
                quantised=levels,
                shifts=(0,) * len(maps),
            )
            return section, join.run(*places), taken
        maps = [reading.source for reading in reads]
        step = maps[0].step
        base = min(quantised.base for quantised in maps)
        shifts = tuple(int((quantised.base - base) / step) for quantised in maps)
        ranges = [range(shift, shift + quantised.levels + 1) for shift, quantised in zip(shifts, maps)]
        highest = max(values[-1] for values in ranges)
        levels = Quantised(name=join.name, base=base, step=step, levels=highest)
        levels, taken = _same_levels(way, levels, ranges)
        section = PassSection(
            name=join.name,
            op=join.op,
            nodes=_names(way.operations[:taken]),
            reads=tuple(reads),
            size=(*sizes[0][:2], channels),
            quantised=levels,
            shifts=shifts,
        )
        return section, join.run(*places), taken


def _section_output(
    tensor: str, maps: Sequence[OutputMap], index: Array, closing: Sequence[tuple[Closing, Array]]
) -> SectionOutput:
    """An output with an index, and what ends it: operators, each with the index of what it reads."""
    places = np.empty(index.size, np.int64)  # of each value of the maps, in the output
    places[index.ravel()] = np.arange(index.size)
    classes = apart = 1
    for operation, before in closing:
        if operation.classes == 1:
            continue
        groups = np.sort(places[operation.groups(before)], axis=1)
        over = operation.classes, int(groups[0, 1] - groups[0, 0])
        steps = groups // over[1] % over[0] - np.arange(over[0])
        if (np.diff(groups, axis=1) != over[1]).any() or steps.any() or (classes > 1 and over != (classes, apart)):
            why = "what the network ends in must be over one axis of its output, got values in another order"
            raise ImportRefused([node_line(operation.name, operation.op, why)])
        classes, apart = over
    return SectionOutput(
        tensor=tensor,
        maps=tuple(maps),
        order=index.ravel(),
        closing=tuple(operation.op for operation, _ in closing),
        classes=classes,
        apart=apart,
    )


def _alike(maps: Sequence[Quantised]) -> bool:
    """Whether maps have one scale, and zero points that are whole numbers of it apart."""
    first = maps[0]
    return all(other.step == first.step and (other.base - first.base) % first.step == 0 for other in maps)


def _first(operations: Sequence[Operation], kind: type[Operation]) -> int:
    """The place of the first operation of a kind; how many operations there are, if none is."""
    return next((k for k, operation in enumerate(operations) if isinstance(operation, kind)), len(operations))


def _check_host(operations: Sequence[Operation]) -> None:
    """Refuse an operation at an end of the network that the host can't compute."""
    for operation in operations:
        if operation.host_refusal:
            raise ImportRefused([node_line(operation.name, operation.op, operation.host_refusal)])


def _names(operations: Sequence[Operation]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(operation.name for operation in operations))


def _quantiser_of_pair(way: Way, join: Pair, place: int) -> tuple[tuple[Elementwise, ...], Levels]:
    """The quantiser behind a sum or a product, which is the operation at a place of a way, and what lies between."""
    if place == len(way.operations):
        raise Unsupported(f"a {join.noun} of two maps must be quantised", "quantise before the next layer")
    quantiser = way.operations[place]
    assert isinstance(quantiser, Levels)
    between = list[Elementwise]()
    for operation in way.operations[1:place]:
        if not isinstance(operation, Elementwise) or not operation.monotone:
            raise Unsupported(f"between a {join.noun} and its quantiser only scales and activations may lie")
        if not operation.is_uniform:
            raise Unsupported(f"what lies between a {join.noun} and its quantiser must be the same in every channel")
        between.append(operation)
    if not quantiser.is_uniform:
        raise Unsupported(f"a {join.noun} of two maps must be quantised alike in all channels")
    return tuple(between), quantiser


def _same_levels(way: Way, quantised: Quantised, ranges: Sequence[range]) -> tuple[Quantised, int]:
    """The map that a concatenation makes, and how many operations that takes. A quantiser behind it counts if it keeps
    the levels of each map, ``ranges``, and changes only what they are worth."""
    values = quantised.values
    for place, operation in enumerate(way.operations[1:], 2):
        if not isinstance(operation, Function) or not operation.is_uniform:
            break
        if isinstance(operation, Levels):
            reached = level_of(np.array(values, object), operation.boundaries, operation.reached)
            apart = {int(reached[level]) - level for levels in ranges for level in levels}
            if len(apart) == 1 and not set(operation.boundaries[0]).intersection(values):
                base = operation.base + operation.step * apart.pop()
                return replace(quantised, base=base, step=operation.step), place
            break
        values = [operation.value(value) for value in values]
    return quantised, 1


def _behind(graph: OperationGraph, tensor: str) -> list[Operation]:
    """The operations behind a tensor, from each tensor to the first one that reads it, as far as a layout."""
    out = list[Operation]()
    for operation in graph.operations:
        if tensor in operation.reads and not any(isinstance(before, Layout) for before in out):
            out.append(operation)
            tensor = operation.makes
    return out


def _input_order(graph: OperationGraph, operations: Sequence[Operation]) -> tuple[Array, Size]:
    """`golden_order` of the input; if layouts come first, that of the map that the weights read, as far as that is one
    map that grows."""
    shape = graph.shapes[graph.source]
    places = made = np.arange(int(np.prod(shape))).reshape(shape)
    turned = False
    for operation in operations:
        if isinstance(operation, Layout):
            if operation.order.size < made.size:
                break
            made = made.ravel()[operation.order]
            try:
                places = Grown.of(made).index if made.size > prod(shape) else made
            except Unsupported:
                break
            turned = True
        elif not isinstance(operation, Function):
            break
    if graph.channels_last and not turned and len(shape) <= 4:
        return places, (*(1, 1, *shape[1:-1])[-2:], shape[-1])
    if places.ndim != 4 or not np.array_equal(np.sort(places, axis=None), np.arange(int(np.prod(shape)))):
        return golden_order(shape)
    there, size = golden_order(places.shape)
    order = np.empty(places.size, np.int64)
    order[places.ravel()] = there.ravel()
    return order.reshape(shape), size

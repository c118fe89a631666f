"""The pass from operations to sections: a graph is cut at its quantisers.

    input quantiser | linear, chain, quantiser, pools | linear, chain, quantiser | linear, chain

A *branch* is a run of operations, each of which reads the tensor of the one before (branches.py). A walk goes along it
and makes sections of it (walk.py); if the branch begins with a join, the join is its first section (joins.py).
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod

import numpy as np

from bitloom.golden.encoding import Array

from .branches import Branch, BranchEnd, branches, check_host
from .budget import OverBudget
from .errors import ImportRefused, Unsupported, merged_lines, node_line, printable
from .held import SeveralZeroPoints, zero_groups
from .input_view import input_view
from .joins import alike, concatenation, pair
from .links import Link
from .map_view import MapView
from .node_view import several_maps
from .operations import (
    Closing,
    Concatenation,
    Function,
    Join,
    Layout,
    Levels,
    Linear,
    Operation,
    OperationGraph,
    PairOperation,
    Pointwise,
)
from .rows import Boundaries
from .rules import simplified
from .sections import MapReading, PassSection, Quantised, Section, SectionGraph, SectionOutput
from .trail import Start, Trail, Unlinked
from .walk import Walk


def quantise(graph: OperationGraph, source: Quantised | None = None) -> SectionGraph:
    """Cut a graph of operations into sections.

    Means are pools where the integers of their maps allow it, else convolutions.

    Parameters
    ----------
    graph : OperationGraph
    source : Quantised, optional
        The input, where nothing in front of the first weights quantises it.

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
    left = [join for join in joins if not isinstance(join, PairOperation)]  # no layer computes these
    if left:
        raise ImportRefused(merged_lines([(each.name, each.op, several_maps(len(each.reads))) for each in left]))
    means_as_sums = frozenset[str]()
    while True:
        sections = _Sections(graph, source, means_as_sums).graph()
        try:
            zero_groups(sections)
        except SeveralZeroPoints as e:
            if e.means <= means_as_sums:
                raise
            means_as_sums |= e.means
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


class _Sections:
    """The sections of a graph as they are made, branch by branch."""

    def __init__(self, graph: OperationGraph, source: Quantised | None, means_as_sums: Collection[str]) -> None:
        self._graph = graph
        self._source = source
        self._means_as_sums = means_as_sums
        self._sections: list[Section] = []
        self._ends: dict[str, BranchEnd] = {}
        self._outputs: dict[str, SectionOutput] = {}  # those that the host puts together from several maps

    def graph(self) -> SectionGraph:
        """The whole graph."""
        first, *others = branches(self._graph) or [Branch(operations=())]
        front, view = self._walk_input(first)
        for branch in others:
            try:
                if not self._joins_at_end(branch):
                    self._walk(branch)
            except ImportRefused:
                raise
            except ValueError as e:
                raise ImportRefused([node_line(branch.operations[0].name, branch.operations[0].op, e)]) from None
        head = self._sections[0]
        return SectionGraph(
            operations=self._graph.operations,
            front=front,
            source=head.map if isinstance(head, PassSection) else head.reads[0].source,
            size=view.size,
            order=view.index,
            sections=tuple(self._sections),
            outputs=tuple(self._output(tensor) for tensor in self._graph.outputs),
        )

    def _output(self, tensor: str) -> SectionOutput:
        """An output of the network."""
        if tensor in self._outputs:
            return self._outputs[tensor]
        end = self._ends[tensor]
        return SectionOutput.of(tensor, [end.output_map], end.view.index, end.closing)

    def _joins_at_end(self, branch: Branch) -> bool:
        """Whether a branch is a concatenation at the network's end: then the maps leave as they are, and the host puts
        their values side by side. What follows each value for itself was put in front (rules.py)."""
        join, *behind = branch.operations
        if not isinstance(join, Concatenation) or self._hindrance(branch):
            return False
        ends = [self._ends[tensor] for tensor in branch.reads]
        firsts = np.cumsum([0, *(end.view.index.size for end in ends)])
        index = join.run(*(first + end.view.index for first, end in zip(firsts, ends)))
        closing = list[tuple[Closing, Array]]()
        for operation in behind:
            if isinstance(operation, Layout):
                index = index.ravel()[operation.order.ravel()].reshape(operation.order.shape)
            elif isinstance(operation, Closing):
                closing.append((operation, index))
        maps = [end.output_map for end in ends]
        self._outputs[branch.makes] = SectionOutput.of(branch.makes, maps, index, closing)
        return True

    def _hindrance(self, branch: Branch) -> Operation | None:
        """The first operation behind a concatenation that the host can't compute of what it joins; None if the
        concatenation is at the network's end."""
        values = prod(self._graph.shapes[branch.operations[0].makes])
        for operation in branch.operations[1:]:
            whole = isinstance(operation, Layout) and operation.order.size == values
            if not whole and not isinstance(operation, Closing):
                return operation
        return self._graph.first_reader(branch.makes)

    def _walk_input(self, branch: Branch) -> tuple[tuple[Link, ...], MapView]:
        """Walk along the branch that begins at the input; the links in front of the host's quantiser, and the input as
        map 0."""
        operations = branch.operations
        first = next((place for place, operation in enumerate(operations) if operation.reads_map), len(operations))
        makes = branch.makes if operations else self._graph.source
        reader = self._graph.first_reader(makes)
        last = max((place for place in range(first) if isinstance(operations[place], Levels)), default=-1)
        weighted = any(isinstance(operation, Linear) for operation in self._graph.operations)
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
            check_host(operations[: branch.first(Levels)])
        view = input_view(self._graph, branch)
        walk = Walk(self._trail(branch, Start(self._graph.source, view, self._source), 0))
        for place in range(len(operations)):
            walk.take(place)
            if place == last:  # so far the host computes
                walk.leave_to_host()
        if first == len(operations) and reader is not None:  # several read the input, or what the host makes of it
            walk.copy_map(reader)
        self._end(makes, walk, operations)
        return walk.trail.front, view

    def _walk(self, branch: Branch) -> None:
        """A branch that begins at a fork or with a join."""
        walk = self._walk_join(branch) if isinstance(branch.operations[0], Join) else self._walk_fork(branch)
        self._end(branch.makes, walk, branch.operations)

    def _walk_join(self, branch: Branch) -> Walk:
        """A branch that begins with a sum or a concatenation, which is its first section."""
        join = branch.operations[0]
        for tensor in branch.reads:
            self._put_in_order(branch, tensor)
        reads = [self._reading(tensor) for tensor in branch.reads]
        views = [self._ends[tensor].view for tensor in branch.reads]
        if isinstance(join, Concatenation):
            self._check_sizes(branch, views)
            reads, taken = self._of_one_scale(branch, reads)
            joined = concatenation(branch, join, reads, views, taken)
        else:
            assert isinstance(join, PairOperation)
            joined = pair(branch, join, reads, views[0])
        start = Start(branch.operations[joined.taken - 1].makes, joined.view, joined.section.quantised)
        walk = Walk(self._trail(branch, start, len(self._sections)).closed(joined.section))
        for place in range(joined.taken, len(branch.operations)):
            walk.take(place)
        return walk

    def _check_sizes(self, branch: Branch, views: Sequence[MapView]) -> None:
        """Refuse a concatenation of maps of several heights and widths."""
        sizes = [view.size[:2] for view in views]
        if len({*sizes}) > 1:
            got = " and ".join(f"{rows} x {columns}" for rows, columns in sizes)
            hindrance = self._hindrance(branch)
            assert hindrance is not None  # else the host joins them
            follows = f"{printable(hindrance.name)} ({printable(hindrance.op)}) follows"
            rule = f"maps that are concatenated must have one height and width, got {got}"
            raise Unsupported(rule, f"the host joins others at the network's end alone, and {follows}")

    def _put_in_order(self, branch: Branch, tensor: str) -> None:
        """Copy a tensor in blocks in front of a branch that joins it with others."""
        end = self._ends[tensor]
        if end.source is not None and not end.links and end.view.blocks(branch.operations[0]):
            walk = Walk(self._trail(branch, Start(tensor, end.view, end.source), end.map))
            walk.copy_map(branch.operations[0])
            trail = walk.trail
            self._sections += trail.sections
            self._ends[tensor] = replace(end, map=trail.map, source=trail.source, view=trail.view)

    def _walk_fork(self, branch: Branch) -> Walk:
        """A branch of a map with several readers, whose levels it must leave as they are."""
        end = self._ends[branch.reads[0]]
        levels = end.levels
        levels = replace(levels, boundaries=Boundaries.of([Fraction(level) for level in range(1, levels.levels + 1)]))
        trail = self._trail(branch, Start(branch.reads[0], end.view, levels), end.map)
        walk = Walk(replace(trail, closing=end.closing))
        for place in range(len(branch.operations)):
            walk.take(place)
        return walk

    def _trail(self, branch: Branch, start: Start, number: int) -> Trail:
        """The trail of a walk along a branch that begins at a tensor of the map with this number."""
        start = start._replace(view=replace(start.view, padded_with=Fraction(0)))
        return Trail(
            operations=branch.operations,
            start=start,
            source=start.source,
            view=start.view,
            unlinked=Unlinked(start.tensor, start.view),
            map=number,
            number=len(self._sections) + 1,
            means_as_sums=self._means_as_sums,
        )

    def _end(self, makes: str, walk: Walk, operations: Sequence[Operation]) -> None:
        """Take over the sections of a walk that has come to the end of a branch."""
        walk.finish()
        last = max((place for place, operation in enumerate(operations) if operation.makes_map), default=-1)
        trail = walk.trail
        self._sections += trail.sections
        source = trail.last.quantised if trail.last else trail.source
        behind = tuple(operations[last + 1 :])
        self._ends[makes] = BranchEnd(trail.map, source, walk.stand.links, trail.view, trail.closing, behind)

    def _reading(self, tensor: str) -> MapReading:
        """How a join reads what a branch ends with."""
        end = self._ends[tensor]
        return MapReading(map=end.map, source=end.levels, tensor=tensor, order=end.view.index)

    def _of_one_scale(self, branch: Branch, reads: Sequence[MapReading]) -> tuple[list[MapReading], int]:
        """Maps that are concatenated, of one scale: several scales become one by the quantiser behind the
        concatenation, for each map by a copy; and how many operations that takes."""
        if alike([reading.source for reading in reads]):
            return list(reads), 1
        place = branch.first(Levels)
        functions = [
            op.anywhere for op in branch.operations[1 : place + 1] if isinstance(op, Function) and op.is_uniform
        ]
        if len(functions) < place:
            raise Unsupported("maps that are concatenated must have one scale and zero point, or be requantised to one")
        out = []
        for reading in reads:
            end = self._ends[reading.tensor]
            walk = Walk(self._trail(branch, Start(reading.tensor, end.view, reading.source), end.map))
            walk.quantise_copy(functions)
            self._sections += walk.trail.sections
            tensor = f"{reading.tensor}, requantised for {branch.makes}"
            out.append(replace(reading, map=walk.trail.map, source=walk.trail.input, tensor=tensor))
        return out, place + 1

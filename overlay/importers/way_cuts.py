"""The pass from ways to sections: each way is cut at its quantisers."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array

from .boundaries import Line, joined
from .cut import cut, cut_on
from .errors import ImportRefused, Unsupported, node_line
from .joins import Concatenation, Sum
from .operation_graph import OperationGraph
from .operations import Levels, Linear, Pooling, Scaling
from .rationals import same
from .sections import Cut, Quantised, Section, Size, without_weights
from .ways import Way, ways


@dataclass(frozen=True, kw_only=True, eq=False)
class WayCut:
    """A way, cut into sections.

    Attributes
    ----------
    way : Way
    graph : OperationGraph
        The way's operations.
    cut : Cut
        Its sections, without that of a join it begins with.
    head : Section or None
        What the join makes, and the pools behind it; or the map that is pooled before weights read it, and the pools.
    shifts : tuple of int
        Of a concatenation: the level, of those that it makes, that level 0 of each of its maps has.
    """

    way: Way
    graph: OperationGraph
    cut: Cut
    head: Section | None
    shifts: tuple[int, ...] = ()

    @property
    def made(self) -> Quantised:
        """The map that the way ends with."""
        last = self.cut.sections[-1] if self.cut.sections else self.head
        assert last is not None
        links = joined(self.cut.final)
        if last.made is None or len(links) > 1 or (links and not isinstance(links[0], Line)):
            raise Unsupported("a map that several operators read, or that is joined, must be quantised")
        for link in links:  # a scale behind the quantiser: levels are worth that much
            multiply, add = same(link.multiply), same(link.add)
            if multiply is None or add is None or multiply <= 0:
                raise Unsupported("a map that several operators read, or that is joined, must have one scale > 0")
            base, step = last.made.base * multiply + add, last.made.step * multiply
            return replace(last.made, base=base, step=step, averaged=False, rule=None)
        return last.made


def cuts_of(graph: OperationGraph, source: Quantised | None, apart: Collection[str] = ()) -> list[WayCut]:
    """All ways, cut; means of the maps named in ``apart`` are convolutions."""
    out = list[WayCut]()
    makers: dict[str, WayCut] = {}
    for way in ways(graph):
        way = replace(way, apart=apart)
        own = replace(graph, source=way.reads[0], output=way.makes, operations=way.operations)
        try:
            before = makers.get(way.reads[0])
            read = source if before is None else before.made
            if way.join is None:
                _check_begin(way, before is None)
            if way.join is None and before is not None and _begins_with_pool(way):
                found = _cut_pool(way, own, before)
            elif way.join is None:
                made = cut(own, read, way.apart)
                if before is not None and not np.array_equal(made.order.ravel(), before.cut.output_order):
                    raise Unsupported("a map that several operators read must not be reshaped")
                found = WayCut(way=way, graph=own, cut=made, head=None)
            else:
                found = _cut_join(way, own, [makers[read] for read in way.reads])
        except ImportRefused:
            raise
        except ValueError as e:
            raise ImportRefused([node_line(way.operations[0].name, way.operations[0].op, e)]) from None
        makers[way.makes] = found
        out.append(found)
    return out


def _check_begin(way: Way, reads_input: bool) -> None:
    """Refuse a way of one map, unless weights read it, or a pool that doesn't read the input."""
    begin = next((one for one in way.operations if isinstance(one, Linear | Pooling)), None)
    if isinstance(begin, Linear) or (begin is not None and not reads_input):
        return
    one, why = way.operations[-1], "one operator must read the input, a convolution, got several"
    if begin is not None:
        one, why = begin, "a convolution must read the input first, got a pool"
    elif not reads_input:
        one, why = way.operations[0], "weights or a pool must read a map with several readers, got a way without any"
    raise ImportRefused([node_line(one.name, one.op, why)])


def _begins_with_pool(way: Way) -> bool:
    """Whether a pool comes before weights."""
    return isinstance(next((one for one in way.operations if isinstance(one, Linear | Pooling)), None), Pooling)


def _cut_pool(way: Way, graph: OperationGraph, before: WayCut) -> WayCut:
    """A way that begins with a pool of a map, whose levels it must leave as they are."""
    levels = before.made.levels
    limits = np.array([[Fraction(level) for level in range(1, levels + 1)]], object)
    made = replace(before.made, boundaries=limits, reached=np.ones(levels, bool), rule=None, averaged=False)
    index = before.cut.output_order.reshape(graph.shapes[way.reads[0]])
    found = _with_head(way, graph, (made, 0), before.cut.final_size, index)
    head = found.head
    assert head is not None
    assert head.made is not None
    if head.made.levels != levels:
        rule = f"what a pool makes of a map with several readers must keep its {levels + 1} values"
        raise Unsupported(f"{rule}, got {head.made.levels + 1}")
    return replace(found, shifts=(0,)) if head.pools else replace(found, head=None)


def _cut_join(way: Way, graph: OperationGraph, sources: Sequence[WayCut]) -> WayCut:
    """A way that begins with a join."""
    if isinstance(way.join, Concatenation):
        return _cut_concatenation(way, graph, sources)
    first, second = sources
    if not np.array_equal(first.cut.output_order, second.cut.output_order):
        raise Unsupported("two maps that are added must have their values in the same order")
    made, taken = _sum_made(way, [source.made for source in sources])
    index = first.cut.output_order.reshape(graph.shapes[way.reads[0]])
    return _with_head(way, graph, (made, taken), first.cut.final_size, index)


def _with_head(way: Way, graph: OperationGraph, head: tuple[Quantised, int], size: Size, index: Array) -> WayCut:
    """A way that begins with a join, of which ``head`` says what it makes and how many operations that takes; its map
    has this size, and ``index`` tells where in golden's map its values lie."""
    made, taken = head
    nodes = tuple(dict.fromkeys(operation.name for operation in way.operations[:taken]))
    section = without_weights(way.operations[0].name, made, size, nodes)
    found = cut_on(graph.name, way.operations, taken, section, index, way.apart)
    return WayCut(way=way, graph=graph, cut=replace(found, sections=found.sections[1:]), head=found.sections[0])


def _cut_concatenation(way: Way, graph: OperationGraph, sources: Sequence[WayCut]) -> WayCut:
    """A way that begins with a concatenation: values of golden's maps lie behind one another at each position."""
    join = way.join
    assert isinstance(join, Concatenation)
    sizes = [source.cut.final_size for source in sources]
    if len({size[:2] for size in sizes}) > 1:
        got = " and ".join(f"{rows} x {columns}" for rows, columns, _ in sizes)
        raise Unsupported(f"maps that are concatenated must have one height and width, got {got}")
    channels, before, places = sum(size[2] for size in sizes), 0, list[Array]()
    for source, read, (_, _, own) in zip(sources, way.reads, sizes):
        position, channel = np.divmod(source.cut.output_order, own)
        places.append((position * channels + before + channel).reshape(graph.shapes[read]))
        before += own
    maps = [source.made for source in sources]
    if len({one.step for one in maps}) > 1 or any((one.base - maps[0].base) % one.step for one in maps):
        raise Unsupported("maps that are concatenated must have one scale and zero point, or be requantised to one")
    step, base = maps[0].step, min(one.base for one in maps)
    shifts = tuple(int((one.base - base) / step) for one in maps)
    levels = max(shift + one.levels for shift, one in zip(shifts, maps))
    made = Quantised(name=join.name, base=base, step=step, boundaries=None, reached=None, levels=levels)
    head = _same_levels(way, made, [range(shift, shift + one.levels + 1) for shift, one in zip(shifts, maps)])
    size = (*sizes[0][:2], channels)
    return replace(_with_head(way, graph, head, size, join.together(places)), shifts=shifts)


def _same_levels(way: Way, made: Quantised, levels: Sequence[range]) -> tuple[Quantised, int]:
    """What a concatenation makes, and how many operations that takes: with a quantiser behind it that leaves the
    ``levels`` of each map as they are, but for what they are worth."""
    line = Line(multiply=np.array([Fraction(1)], object), add=np.array([Fraction(0)], object))
    for place, operation in enumerate(way.operations[1:], 2):
        if isinstance(operation, Scaling):
            multiply, add = same(operation.multiply.ravel()), same(operation.add.ravel())
            if multiply is None or add is None:
                break
            line = Line(multiply=line.multiply * multiply, add=line.add * multiply + add)
        elif isinstance(operation, Levels) and len(operation.boundaries) == 1:
            real = [made.base + made.step * level for level in range(made.levels + 1)]
            values = [value * line.multiply[0] + line.add[0] for value in real]
            found = np.searchsorted(operation.boundaries[0], np.array(values, object))
            apart = {int(found[level]) - level for its in levels for level in its}
            if len(apart) == 1 and not set(operation.boundaries[0]).intersection(values):
                base = operation.base + operation.step * apart.pop()
                return replace(made, base=base, step=operation.step), place
            break
        else:
            break
    return made, 1


def _sum_made(way: Way, sources: Sequence[Quantised]) -> tuple[Quantised, int]:
    """What a sum makes, and how many operations that takes: those up to its quantiser."""
    join = way.join
    assert isinstance(join, Sum)
    if join.table is not None:
        table = join.table
        if any(source.step != 1 or source.base < table.first for source in sources):
            raise Unsupported("maps that are added must be as their quantisers made them")
        levels = table.high - table.low
        made = Quantised(name=join.name, base=Fraction(table.low), step=Fraction(1), boundaries=None, reached=None,
                         levels=levels)  # fmt: skip
        return made, 1
    for place, operation in enumerate(way.operations):
        if isinstance(operation, Levels):
            return Quantised(name=join.name, base=operation.base, step=operation.step, boundaries=None, reached=None,
                             levels=operation.levels), place + 1  # fmt: skip
    raise Unsupported("a sum of two maps must be quantised", "quantise before the next layer")

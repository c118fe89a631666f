"""The pass from ways to sections: each way is cut at its quantisers, and maps between ways get their integers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from .boundaries import Line, joined
from .choose import Held, integers, padded
from .cut import cut, cut_on
from .errors import ImportRefused, Unsupported, node_line, printable
from .operation_graph import OperationGraph
from .operations import Levels
from .rationals import same
from .sections import Cut, Quantised, Section
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
        Its sections, without that of a sum it begins with.
    head : Section or None
        What the sum makes, and the pools behind it.
    """

    way: Way
    graph: OperationGraph
    cut: Cut
    head: Section | None

    @property
    def made(self) -> Quantised:
        """The map that the way ends with."""
        last = self.cut.sections[-1] if self.cut.sections else self.head
        assert last is not None
        links = joined(self.cut.final)
        if last.made is None or len(links) > 1 or (links and not isinstance(links[0], Line)):
            raise Unsupported("a map that several operators read, or that is added, must be quantised")
        for link in links:  # a scale behind the quantiser: levels are worth that much
            multiply, add = same(link.multiply), same(link.add)
            if multiply is None or add is None or multiply <= 0:
                raise Unsupported("a map that several operators read, or that is added, must have one scale > 0")
            base, step = last.made.base * multiply + add, last.made.step * multiply
            return replace(last.made, base=base, step=step, averaged=False, rule=None)
        return last.made


def cuts_of(graph: OperationGraph, source: Quantised | None) -> list[WayCut]:
    """All ways, cut."""
    out = list[WayCut]()
    makers: dict[str, WayCut] = {}
    for way in ways(graph):
        own = replace(graph, source=way.reads[0], output=way.makes, operations=way.operations)
        try:
            if way.join is None:
                before = makers.get(way.reads[0])
                made = cut(own, source if before is None else before.made)
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


def _cut_join(way: Way, graph: OperationGraph, sources: Sequence[WayCut]) -> WayCut:
    """A way that begins with a sum."""
    first, second = sources
    if not np.array_equal(first.cut.output_order, second.cut.output_order):
        raise Unsupported("two maps that are added must have their values in the same order")
    shape = graph.shapes[way.reads[0]]
    made, taken = _sum_made(way, [source.made for source in sources])
    nodes = tuple(dict.fromkeys(operation.name for operation in way.operations[:taken]))
    channels = first.cut.final_size[2]
    one, none = np.full(channels, Fraction(1), object), np.full(channels, Fraction(0), object)
    head = Section(
        name=way.operations[0].name, weight=np.zeros((0, 1, 1, channels), np.int64), scale=one[:0], window=None,
        size=first.cut.final_size, lead=Line(multiply=one, add=none), made=made, nodes=nodes,
    )  # fmt: skip
    index = first.cut.output_order.reshape(shape)
    found = cut_on(graph.name, way.operations, taken, head, index)
    return WayCut(way=way, graph=graph, cut=replace(found, sections=found.sections[1:]), head=found.sections[0])


def _sum_made(way: Way, sources: Sequence[Quantised]) -> tuple[Quantised, int]:
    """What a sum makes, and how many operations that takes: those up to its quantiser."""
    join = way.join
    assert join is not None
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


def held_between(cuts: Sequence[WayCut]) -> dict[str, Held]:
    """How each map between ways is held, by tensor."""
    readers: dict[str, list[Section]] = {}
    for one in cuts:
        if one.head is None:
            readers.setdefault(one.way.reads[0], []).append(one.cut.sections[0])
    out = {}
    for one in cuts[:-1]:
        made, sections = one.made, readers.get(one.way.makes, [])
        fixed = [integers(made, section) for section in sections if padded(section)]
        if made.averaged or made.rule is not None or not fixed:
            fixed.append(integers(made, sections[0] if sections else None))
        if any(held != fixed[0] for held in fixed):
            name = printable(one.way.operations[-1].name)
            raise ImportRefused([f"{name}: the operators that read its map must have one zero point, got several"])
        out[one.way.makes] = fixed[0]
    return out

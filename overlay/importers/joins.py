"""Sections of the operations that join maps: a layer of two maps, and a concatenation.

A branch begins with the join. Its section ends with the join's quantiser:

    join --links--> quantiser | what follows
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Array

from .branches import Branch
from .errors import Unsupported
from .map_view import MapView
from .operations import Concatenation, Elementwise, Function, Levels, PairOperation
from .sections import MapReading, PairSection, PassSection, Quantised, Section


class Joined(NamedTuple):
    """The section that a join becomes."""

    section: Section
    view: MapView
    """The tensor that the section makes."""
    taken: int
    """How many operations of the branch are in the section."""


def pair(branch: Branch, join: PairOperation, reads: Sequence[MapReading], view: MapView) -> Joined:
    """The section of a sum or a product; ``view`` is the tensor of the first map."""
    first, second = reads
    if not np.array_equal(first.order.ravel(), second.order.ravel()):
        raise Unsupported(f"two maps that are {join.verb} must have their values in the same order")
    place = 0
    between: tuple[Elementwise, ...] = ()
    quantiser = None
    if join.table is not None:
        if any(reading.source.step != 1 or reading.source.base < join.table.first for reading in reads):
            raise Unsupported(f"maps that are {join.verb} must be as their quantisers made them")
        base = Fraction(join.table.low)
        step = Fraction(1)
        levels = join.table.high - join.table.low
    else:
        place = branch.first(Levels)
        between, quantiser = _quantiser_of_pair(branch, join, place)
        base, step, levels = quantiser.base, quantiser.step, quantiser.levels
    section = PairSection(
        name=join.name,
        op=join.op,
        nodes=branch.names(place + 1),
        reads=tuple(reads),
        size=view.size,
        quantised=Quantised(name=join.name, base=base, step=step, levels=levels),
        join=join,
        between=between,
        quantiser=quantiser,
    )
    _ = section.zeros  # else refused here
    return Joined(section, view, place + 1)


def _quantiser_of_pair(branch: Branch, join: PairOperation, place: int) -> tuple[tuple[Elementwise, ...], Levels]:
    """The quantiser behind a sum or a product, which is the operation at a place of a branch, and what lies between."""
    if place == len(branch.operations):
        raise Unsupported(f"a {join.noun} of two maps must be quantised", "quantise before the next layer")
    quantiser = branch.operations[place]
    assert isinstance(quantiser, Levels)
    between = list[Elementwise]()
    for operation in branch.operations[1:place]:
        if not isinstance(operation, Elementwise) or not operation.monotone:
            raise Unsupported(f"between a {join.noun} and its quantiser only scales and activations may lie")
        if not operation.is_uniform:
            raise Unsupported(f"what lies between a {join.noun} and its quantiser must be the same in every channel")
        between.append(operation)
    if not quantiser.is_uniform:
        raise Unsupported(f"a {join.noun} of two maps must be quantised alike in all channels")
    return tuple(between), quantiser


def concatenation(
    branch: Branch, join: Concatenation, reads: Sequence[MapReading], views: Sequence[MapView], taken: int
) -> Joined:
    """The section of a concatenation: values of golden's maps lie behind one another at each position.

    Parameters
    ----------
    branch : Branch
        It begins with the concatenation.
    join : Concatenation
    reads : sequence of MapReading
        Maps of one height and width, which are `alike`.
    views : sequence of MapView
        Their tensors.
    taken : int
        How many operations of the branch are in the section, if the maps were quantised for it; else 1.
    """
    sizes = [view.size for view in views]
    channels = sum(size[2] for size in sizes)
    before = 0
    places = list[Array]()
    for reading, (_, _, count) in zip(reads, sizes):
        position, channel = np.divmod(reading.order, count)
        places.append(position * channels + before + channel)
        before += count
    maps = [reading.source for reading in reads]
    step = maps[0].step
    base = min(quantised.base for quantised in maps)
    shifts = tuple(int((quantised.base - base) / step) for quantised in maps)
    ranges = [range(shift, shift + quantised.levels + 1) for shift, quantised in zip(shifts, maps)]
    highest = max(values[-1] for values in ranges)
    levels = Quantised(name=join.name, base=base, step=step, levels=highest)
    if taken == 1:
        levels, taken = _same_levels(branch, levels, ranges)
    section = PassSection(
        name=join.name,
        op=join.op,
        nodes=branch.names(taken),
        reads=tuple(reads),
        size=(*sizes[0][:2], channels),
        quantised=levels,
        shifts=shifts,
    )
    return Joined(section, replace(views[0], index=join.run(*places), size=section.size), taken)


def alike(maps: Sequence[Quantised]) -> bool:
    """Whether maps have one scale, and zero points that are whole numbers of it apart."""
    first = maps[0]
    return all(other.step == first.step and (other.base - first.base) % first.step == 0 for other in maps)


def _same_levels(branch: Branch, quantised: Quantised, ranges: Sequence[range]) -> tuple[Quantised, int]:
    """The map that a concatenation makes, and how many operations that takes. A quantiser behind it counts if it keeps
    the levels of each map, ``ranges``, and changes only what they are worth."""
    values = quantised.values
    for place, operation in enumerate(branch.operations[1:], 2):
        if not isinstance(operation, Function) or not operation.is_uniform:
            break
        if isinstance(operation, Levels):
            reached = operation.boundaries.level(np.array(values, object))
            apart = {int(reached[level]) - level for levels in ranges for level in levels}
            if len(apart) == 1 and not set(operation.boundaries.limits[0]).intersection(values):
                base = operation.base + operation.step * apart.pop()
                return replace(quantised, base=base, step=operation.step), place
            break
        values = [operation.value(value) for value in values]
    return quantised, 1

"""The walk along a chain of operations, which makes sections of them: one function for each kind of operation.

Values are put into golden's order on the way, (rows, columns, channels): a tensor is known by the place in golden's map
that each of its values has, so that a transpose or a flatten costs nothing and permutes the weights of what reads it.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array

from .boundaries import Ends, Line, staircases
from .choose import MOST_THERMOMETER
from .errors import Unsupported
from .operations import Clip, Closing, Layout, Levels, Linear, Operation, Pooling, Scaling
from .padding import OUTSIDE, Padding, is_padded, level_value, same_value
from .rationals import same
from .section_begins import begin, begin_averaged, begin_copy, begin_mean
from .sections import Quantised, Section, golden_order
from .walk_state import Walk, is_rounded_mean, lead_of, take_padding


def _quantised(levels: Levels) -> Quantised:
    return Quantised(
        name=levels.name,
        base=levels.base,
        step=levels.step,
        boundaries=levels.boundaries,
        reached=levels.reached,
        levels=levels.levels,
        rule=levels.rule,
    )


def _channel_values(walk: Walk, values: Array, what: str) -> Array:
    """Numbers that spread over the tensor, as one for each channel of golden's map: (channels,)."""
    if values.size == 1:
        return np.full(walk.size[2], values.ravel()[0], object)
    numbers = {value: number for number, value in enumerate(values.ravel())}  # of equal values the last one's
    codes = np.array([numbers[value] for value in values.ravel()]).reshape(values.shape)
    spread, places = np.broadcast_to(codes, walk.index.shape).ravel(), walk.index.ravel()
    out, inside = np.empty(int(np.prod(walk.size)), np.int64), places != OUTSIDE
    out[places[inside]] = spread[inside]
    rows = out.reshape(-1, walk.size[2])
    if (rows != rows[0]).any():
        raise Unsupported(f"{what} must be the same at all places of a channel")
    return np.asarray(values.ravel()[rows[0]])


def _line(walk: Walk, operation: Scaling) -> Line:
    multiply = _channel_values(walk, operation.multiply, "what is multiplied with")
    return Line(multiply=multiply, add=_channel_values(walk, operation.add, "what is added"))


def _affine(walk: Walk, operation: Scaling) -> None:
    line = _line(walk, operation)
    walk.follow(line)
    if is_padded(walk.index):
        walk.padded_with = same_value(walk.padded_with * line.multiply + line.add)


def _clip(walk: Walk, operation: Clip) -> None:
    ends = Ends(low=operation.low, high=operation.high)
    walk.follow(ends)
    walk.padded_with = ends.of(walk.padded_with)


def _padding(walk: Walk, operation: Padding) -> None:
    if is_padded(walk.index) and walk.padded_with != operation.value:
        raise Unsupported("a map must be padded with one number, got two")
    walk.index = np.pad(walk.index, operation.widths, constant_values=OUTSIDE)
    walk.padded_with = operation.value


def _layout(walk: Walk, operation: Layout) -> None:
    walk.index = walk.index.ravel()[operation.order.ravel()].reshape(operation.order.shape)


def _closing(walk: Walk, operation: Closing) -> None:
    walk.closing.append(operation.op)


def _pooling(walk: Walk, operation: Pooling) -> None:
    _check_order(walk)
    rows, columns = operation.window.output_size(walk.size[0], walk.size[1])
    if operation.average:
        if walk.average is not None:
            raise Unsupported("a mean of means must be quantised between")
        if walk.open is not None:
            _add_up(walk, walk.open, operation)
        else:
            walk.average = operation
            walk.average_links, walk.average_index = len(walk.links), walk.index
    elif walk.open is not None:
        if walk.inner and walk.inner_at != len(walk.links):
            raise Unsupported("two max pools before a quantiser must follow each other")
        walk.inner.append(operation.window)
        walk.inner_at = len(walk.links)
    elif walk.done:
        # A clip never falls: the largest value's clip is the largest clip.
        if any(isinstance(link, Line) and any(m <= 0 for m in link.multiply) for link in walk.links):
            raise Unsupported("what lies between a quantiser and a max pool must rise in every channel")
        walk.done[-1] = replace(walk.done[-1], pools=(*walk.done[-1].pools, operation.window))
    else:
        raise Unsupported("a convolution or a matrix product must come before a pool")  # never: `cut` looks
    if walk.done and walk.open is None and not operation.average:  # the pool belongs to the section before
        walk.done[-1] = replace(walk.done[-1], nodes=(*walk.done[-1].nodes, *walk.nodes))
        walk.nodes = []
    walk.size = (rows, columns, walk.size[2])
    walk.index = golden_order((1, walk.size[2], rows, columns))[0]
    _copy_channels(walk)


def _add_up(walk: Walk, section: Section, operation: Pooling) -> None:
    """A mean of sums is their sum, and what follows takes up the division. What is added to sums before, or multiplied
    with, is the same behind the mean."""
    if walk.inner or any(isinstance(link, Ends) for link in walk.links):
        raise Unsupported("a mean of sums must come before a clip and a max pool", "quantise before it")
    window = operation.window
    counts = np.unique((window.positions(*walk.size[:2]) >= 0).sum(axis=1))
    if counts.tolist() != [window.taps]:
        rule = f"a mean of sums must have {window.taps} values in every window"
        raise Unsupported(f"{rule}, got {counts[0]} in some", "quantise before it")
    scale = section.scale / window.taps
    walk.open = replace(section, sums=(*section.sums, window), scale=scale)


def _check_order(walk: Walk) -> None:
    """Refuse a map whose values are in another order than (channels, rows, columns)."""
    if is_padded(walk.index):
        raise Unsupported(
            "a padded map must be read by a convolution",
            "give the pool its own padding (PyTorch: AvgPool2d with count_include_pad=False; Keras: padding='same')",
        )
    if not np.array_equal(walk.index, golden_order((1, walk.size[2], *walk.size[:2]))[0]):
        raise Unsupported("the map must have its channels, rows and columns in ONNX's order, got a reshaped one")


def _levels(walk: Walk, operation: Levels) -> None:
    _quantise(walk, operation)
    _copy_channels(walk)


def _copy_channels(walk: Walk) -> None:
    """Put weights between two quantisers, where the second one needs them."""
    quantised = walk.done and walk.open is None and walk.average is None
    if quantised and not is_padded(walk.index) and walk.differs_by_channel:
        begin_copy(walk, walk.chain[walk.place + 1])


def _quantise(walk: Walk, operation: Levels) -> None:
    boundaries = operation.boundaries
    if len(boundaries) > 1:
        order = _channel_values(walk, np.arange(len(boundaries)).reshape(_spread(walk, operation.axis)), "thresholds")
        boundaries = boundaries[order.astype(np.int64)]
        if operation.rule is not None:
            multipliers = tuple(operation.rule.multipliers[place] for place in order)
            operation = replace(operation, rule=replace(operation.rule, multipliers=multipliers))
    if walk.average is not None and is_rounded_mean(walk, operation):
        window, section = walk.average.window, walk.done[-1]
        halves = any(window.padding) or window.taps % 2 == 0
        walk.source = replace(walk.input, averaged=True, halves=halves)
        walk.done[-1] = replace(
            section,
            made=walk.source,
            pools=(*section.pools, window),
            nodes=(*section.nodes, *walk.nodes),
        )
        walk.average, walk.nodes = None, []
        return
    if walk.average is not None:
        begin_mean(walk, walk.average)
    if is_padded(walk.index):
        walk.padded_with = level_value(operation, walk.padded_with)
    if walk.open is not None:
        made = replace(_quantised(operation), boundaries=boundaries)
        section = replace(
            walk.open,
            chain=tuple(walk.links),
            inner=tuple(walk.inner),
            inner_at=walk.inner_at,
            made=made,
            nodes=tuple(walk.nodes),
        )
        walk.done.append(section)
        walk.open, walk.links, walk.inner, walk.inner_at, walk.nodes = None, [], [], 0, []
        walk.source = made
        return
    _merge(walk, replace(operation, boundaries=boundaries))


def _spread(walk: Walk, axis: int) -> tuple[int, ...]:
    shape = [1] * walk.index.ndim
    shape[axis] = -1
    return tuple(shape)


def _merge(walk: Walk, operation: Levels) -> None:
    """Two quantisers that follow each other become one, whose boundaries are some of the first one's."""
    if walk.source is None:  # the host's quantiser
        walk.source = replace(_quantised(operation), boundaries=operation.boundaries)
        walk.front, walk.links = tuple(walk.links), []
        return
    first = walk.input
    if first.boundaries is None:
        raise Unsupported("what was added or concatenated must be quantised once, got a second time")
    assert first.boundaries is not None
    assert first.reached is not None
    if len(operation.boundaries) > 1 or any(
        isinstance(link, Line) and None in (same(link.multiply), same(link.add)) for link in walk.links
    ):
        raise Unsupported("what lies between two quantisers must be the same in every channel")
    one = np.array([Fraction(1)], object)
    links = [Line(multiply=one * first.step, add=one * first.base), *walk.links]
    (stair,) = staircases(links, operation.boundaries, operation.reached, 1)
    if not stair.rising:
        raise Unsupported("a second quantiser must rise with the first one")
    base, kept = operation.base, []
    for limit, always in zip(stair.limits, stair.always):
        if always if limit is None else limit < 1:  # the lowest level has reached it: it counts into the base
            base += operation.step
        elif limit is not None and limit <= first.levels:
            kept.append(limit - 1)
    if not kept:
        raise Unsupported("a second quantiser must leave two levels at least")
    even = len({after - before for before, after in pairwise(kept)}) <= 1
    if walk.done and len(kept) > MOST_THERMOMETER and not even and _between(walk, operation):
        return
    made = replace(
        first,
        base=base,
        step=operation.step,
        boundaries=first.boundaries[:, kept],
        reached=first.reached[kept],
        levels=len(kept),
        rule=None,
    )
    walk.source, walk.links = made, []
    if walk.done:  # else the host has both
        section = walk.done[-1]
        walk.done[-1] = replace(section, made=made, nodes=(*section.nodes, *walk.nodes))
        walk.nodes = []


def _between(walk: Walk, operation: Levels) -> bool:
    """Put a copy of every channel between two quantisers, if it can be: both in one would have levels of any width, as
    thresholds may be, and not those of a requantisation."""
    if is_padded(walk.index) or any(isinstance(link, Ends) for link in walk.links):
        return False
    begin_copy(walk, operation)
    _quantise(walk, operation)
    return True


def _linear(walk: Walk, operation: Linear) -> None:
    if walk.open is not None:
        raise Unsupported("its input must be quantised, got sums of other weights", "quantise before it")
    if walk.average is not None:
        if operation.window is None and walk.size[:2] == (1, 1) and not any(walk.average.window.padding):
            begin_averaged(walk, operation, walk.average)
            return
        begin_mean(walk, walk.average)
        raise Unsupported("a mean must be quantised before weights read it, unless it is of the whole map")
    lead, index, window = lead_of(walk, walk.links), walk.index, operation.window
    if is_padded(index):
        window = take_padding(walk, window)
    real = operation.real
    if operation.window is None:
        weight, made = _placed(walk, operation.weight), (1, 1, len(operation.weight))
        real = None if real is None else _placed(walk, real)
    else:
        _check_order(walk)
        weight = operation.weight.transpose(0, 2, 3, 1)
        real = None if real is None else real.transpose(0, 2, 3, 1)
        assert window is not None
        made = (*window.output_size(walk.size[0], walk.size[1]), len(operation.weight))
    begin(
        walk,
        Section(
            name=operation.name, weight=weight, scale=operation.scale, window=window, size=made, lead=lead,
            reads=operation.reads, order=index, there=lead, real=real,
        ),
    )  # fmt: skip


def _placed(walk: Walk, matrix: Array) -> Array:
    """A matrix (outputs, inputs) as kernels of the whole map, (outputs, rows, columns, channels)."""
    flat = np.zeros((len(matrix), walk.index.size), matrix.dtype)
    flat[:, walk.index.ravel()] = matrix
    return flat.reshape(len(matrix), *walk.size)


RULES: dict[type[Operation], Callable[["Walk", Any], None]] = {
    Scaling: _affine,
    Clip: _clip,
    Layout: _layout,
    Closing: _closing,
    Pooling: _pooling,
    Levels: _levels,
    Padding: _padding,
    Linear: _linear,
}
"""Kind of an operation -> what the walk does there."""

"""Indexes: a tensor by the place in golden's map that each of its values has, and what it is of the map.

=========  ======================================================================
Grown      the map, grown and padded, as windows of it are read
Selection  some of its channels, rows and columns
Blocks     channels that became positions of a block, or the other way round
Copy       weights that make a map of any of these
=========  ======================================================================
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.window import Window

from .errors import Unsupported
from .operations import check_weights
from .sections import MapSize, in_order

OUTSIDE = -1
"""Place of a padded value."""


def has_each_once(index: Array) -> bool:
    """Whether no place comes again in an index."""
    return np.unique(index).size == index.size


def is_padded(index: Array) -> bool:
    """Whether a tensor with this index has padded places."""
    return bool((index == OUTSIDE).any())


@dataclass(frozen=True, kw_only=True)
class Grown:
    """A tensor as a smaller one that grows, and is padded then: each has a number an axis."""

    index: Array
    """Of the smaller one."""
    growth: tuple[int, ...]
    repeats: bool
    beside: str
    """growth, repeats, beside: as `bitloom.golden.window.Window` has them."""
    before: tuple[int, ...]
    behind: tuple[int, ...]
    """before, behind: how many places come around."""

    @classmethod
    def of(cls, index: Array) -> "Grown":
        """The smallest tensor that an index can be made of so."""
        inside = np.argwhere(index != OUTSIDE)
        if not len(inside):
            raise Unsupported("what is read of a padded map must have values of the map, got padding alone")
        first = inside.min(axis=0).tolist()
        last = (inside.max(axis=0) + 1).tolist()
        box = index[tuple(map(slice, first, last))]
        repeats = not is_padded(box)
        mirrored = [_mirrored(np.moveaxis(box, axis, 0)) for axis in range(box.ndim)]
        beside = "mirrored" if any(map(any, mirrored)) else "nearest"
        growth: tuple[int, ...] = (1,) * box.ndim
        edges: Sequence[tuple[int, int]] = mirrored
        if beside != "mirrored":
            growth, edges = zip(*(_growth(np.moveaxis(box, axis, 0), repeats) for axis in range(box.ndim)))
        sizes = zip(box.shape, growth, edges)
        grown = cls(
            index=box[tuple(slice(before, size - behind, step) for size, step, (before, behind) in sizes)],
            growth=growth,
            repeats=repeats,
            beside=beside if any(map(any, edges)) else "nothing",
            before=tuple(place + before for place, (before, _) in zip(first, edges)),
            behind=tuple(size - place + behind for size, place, (_, behind) in zip(index.shape, last, edges)),
        )
        if is_padded(grown.index) or not has_each_once(grown.index) or not np.array_equal(grown.again(), index):
            raise Unsupported("rows and columns must be padded, and grow, by the same numbers everywhere")
        return grown

    def again(self) -> Array:
        """The index of the tensor that grew."""
        grown = self.index
        for axis, size in enumerate(self.index.shape):
            window = Window(
                kernel=(1, 1),
                padding=(self.before[axis], 0, self.behind[axis], 0),
                growth=(self.growth[axis], 1),
                repeats=self.repeats,
                beside=self.beside,
            )
            places = window.positions(size, 1).ravel()
            grown = grown.take(places, axis=axis)
            grown[(slice(None),) * axis + (places == OUTSIDE,)] = OUTSIDE
        return grown

    def window(self, window: Window, axes: Sequence[int]) -> Window:
        """A window of the tensor as one of the map that it is made of; ``axes`` are those of channels, rows and
        columns."""
        channels, rows, columns = axes
        if self.growth[channels] > 1 or self.before[channels] or self.behind[channels]:
            raise Unsupported("only rows and columns can be padded, or grow")
        top, left, bottom, right = window.padding
        return replace(
            window,
            padding=(
                top + self.before[rows],
                left + self.before[columns],
                bottom + self.behind[rows],
                right + self.behind[columns],
            ),
            growth=(self.growth[rows], self.growth[columns]),
            repeats=self.repeats and self.growth != (1,) * len(self.growth),
            beside=self.beside,
        )


def _growth(slices: Array, repeats: bool) -> tuple[int, tuple[int, int]]:
    """By how much an axis grows, and how many places its first and its last position take beside the axis; ``slices``
    are those of the grown axis, from the first to the last one with places of the map."""
    apart = 1 if repeats else _gap(slices)
    places = slices[::apart]
    begins = [place for place, each in enumerate(places) if not place or (each != places[place - 1]).any()]
    runs = np.diff([*begins, len(places)]).tolist()
    times = (runs[1] if len(runs) > 2 else min(runs)) if repeats else 1
    first = max(runs[0] - times, 0) * apart
    last = max(runs[-1] - times, 0) * apart if len(runs) > 1 else 0
    return apart * times, (first, last)


def _mirrored(slices: Array) -> tuple[int, int]:
    """How many slices in front of a map's, and behind them, are the same as those as far from its first one and its
    last one on the other side."""
    firsts = slices.reshape(len(slices), -1)[:, 0]  # of each slice, by which it is known
    count = np.unique(firsts).size
    around = len(firsts) - count
    for before in range(around + 1) if count > 1 and around else ():
        window = Window(kernel=(1, 1), padding=(before, 0, around - before, 0), beside="mirrored")
        if np.array_equal(firsts[before:][window.positions(count, 1).ravel()], firsts):
            return before, around - before
    return 0, 0


def _gap(slices: Array) -> int:
    """How far the second of some slices that has places of the map is from the first one; 1 where there is none."""
    return next((place for place, each in enumerate(slices) if place and (each != OUTSIDE).any()), 1)


def reaching(index: Array, window: Window) -> tuple[Array, Window | None]:
    """The index (1, channels, rows, columns) of the map that a tensor is made of, and the window of that map; None
    where there is no such window: the padding is too large for it, or of two kinds."""
    grown = Grown.of(index)
    more = grown.window(window, (1, 2, 3))
    if more.beside != "nothing" and any(window.padding):
        return grown.index, None
    try:
        more.check("the window")
    except ValueError:
        return grown.index, None
    return grown.index, more


def whole(index: Array, size: MapSize) -> tuple[Array, Window]:
    """The index of a tensor in a map that has all its places, and the window of one tap that goes through these."""
    rows, columns, channels = size
    grown = Grown.of(_with_rows(index))
    for turn in AxisOrder.all(index.shape):
        if not np.array_equal(grown.index.transpose(turn.axes), in_order(size)):
            continue
        window = grown.window(Window(kernel=(1, 1)), turn.axes[1:])
        return turn.back(in_order((*window.output_size(rows, columns), channels))), window
    raise Unsupported("only rows and columns can be padded, or grow")


def _with_rows(index: Array) -> Array:
    """An index with four axes at least: a tensor without rows, or without rows and columns, has one of each, in front
    of its other axes, so that what grows in a map of one position are its columns."""
    return index.reshape(1, *(1,) * (4 - index.ndim), *index.shape[1:])


@dataclass(frozen=True, kw_only=True)
class AxisOrder:
    """A way in which a tensor's axes may be those of a map."""

    shape: tuple[int, ...]
    """Of the tensor."""
    axes: tuple[int, ...]
    """Of its axes, with four of them (`_with_rows`), those of images, channels, rows and columns."""

    @classmethod
    def all(cls, shape: tuple[int, ...]) -> "Iterator[AxisOrder]":
        """All ways, that in order first; none of tensors with more axes."""
        for axes in permutations((1, 2, 3)) if len(shape) <= 4 else ():
            yield cls(shape=shape, axes=(0, *axes))

    def back(self, index: Array) -> Array:
        """An index (1, channels, rows, columns) as that of such a tensor."""
        return index.transpose(np.argsort(self.axes)).reshape(self.shape)


@dataclass(frozen=True, kw_only=True, eq=False)
class Copy:
    """Weights that copy a map, or some of it: of the taps with a weight one is on the map in each window."""

    window: Window
    channels: Array | None = None
    """(outputs, rows, columns) int64: the channel of each output at each tap, -1 where there is none. None: all
    channels, in their order, at one tap."""
    tap: tuple[int, int] = (0, 0)
    """That tap."""

    def weight(self, channels: int) -> Array:
        """The weights for a map of so many channels: (outputs, rows, columns, channels / groups) int64; in as many
        groups as channels if all are copied."""
        if self.channels is not None:
            check_weights(self.channels.size * channels)
            return np.asarray(self.channels[..., None] == np.arange(channels), np.int64)
        check_weights(channels * self.window.taps)
        weight = np.zeros((channels, *self.window.kernel, 1), np.int64)
        weight[:, self.tap[0], self.tap[1]] = 1
        return weight


def copying(window: Window) -> Copy:
    """The copy of what a window of one tap reads, by a window of as many taps that each has one on the map."""
    top, left, bottom, right = window.padding
    around = (0, 0) if window.beside != "nothing" else (top + bottom, left + right)
    rows, columns = (
        max(places + 1, 1 if window.repeats else growth) - 1 for places, growth in zip(around, window.growth)
    )
    tap = (0, 0) if window.beside != "nothing" else (rows - top, columns - left)
    wider = replace(
        window,
        kernel=(rows + 1, columns + 1),
        padding=(top + tap[0], left + tap[1], bottom + rows - tap[0], right + columns - tap[1]),
    )
    return Copy(window=wider, tap=tap)


@dataclass(frozen=True, kw_only=True)
class EvenPlaces:
    """Rows, or columns, of a map that are as far apart as their neighbours."""

    first: int
    step: int
    count: int
    size: int
    """Of the map."""

    @classmethod
    def of(cls, places: Array, size: int) -> "EvenPlaces | None":
        """Some rows or columns of ``size``; None if they are not evenly apart, or go back."""
        steps = np.unique(np.diff(places))
        if len(steps) > 1 or (len(steps) and steps[0] < 1):
            return None
        step = int(steps[0]) if len(steps) else size - int(places[0])  # of one place: far enough that no second comes
        return cls(first=int(places[0]), step=step, count=len(places), size=size)

    @property
    def is_whole(self) -> bool:
        """Whether all are there."""
        return self.count == self.size

    @property
    def taps(self) -> tuple[int, int, int]:
        """(taps, dilation, number of the tap that counts) of a window with stride ``step`` that has one place for each
        row or column of the run: the fewest taps that do."""
        least = max(self.first + 1, self.size - self.count * self.step + 1)  # else there is a place more
        choices = []
        for apart in range(1, least + 1):
            taps = -(-(least - 1) // apart) + 1
            span = (taps - 1) * apart + 1
            fits = span <= self.size - (self.count - 1) * self.step
            if fits and self.first % apart == 0 and self.first // apart < taps:
                choices.append((taps, apart, self.first // apart))
        return min(choices)


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection:
    """A tensor as some channels of a map, in any order, at rows and columns that are evenly apart."""

    channels: Array
    rows: EvenPlaces
    columns: EvenPlaces
    of_map: int
    """Channels of the map."""
    turn: AxisOrder

    @classmethod
    def of(cls, index: Array, size: MapSize) -> "Selection | None":
        """The selection of a map that a tensor with this index is; None if it is none."""
        rows, columns, channels = size
        for turn in AxisOrder.all(index.shape):
            row, column, channel = np.unravel_index(_with_rows(index).transpose(turn.axes), size)
            alike = (
                (channel == channel[:, :, :1, :1]).all()
                and (row == row[:, :1, :, :1]).all()
                and (column == column[:, :1, :1, :]).all()
            )
            if not alike:
                continue
            runs = EvenPlaces.of(row[0, 0, :, 0], rows), EvenPlaces.of(column[0, 0, 0, :], columns)
            if runs[0] is not None and runs[1] is not None:
                of_each = channel[0, :, 0, 0]
                return cls(channels=of_each, rows=runs[0], columns=runs[1], of_map=channels, turn=turn)
        return None

    @property
    def has_all_positions(self) -> bool:
        """Whether it has all rows and columns."""
        return self.rows.is_whole and self.columns.is_whole

    @property
    def has_all_channels(self) -> bool:
        """Whether it has all channels, in their order."""
        return np.array_equal(self.channels, np.arange(self.of_map))

    @property
    def is_whole(self) -> bool:
        """Whether it is the map."""
        return self.has_all_positions and self.has_all_channels

    def whole(self) -> Array:
        """The tensor's index in a map that has its values alone."""
        return self.turn.back(in_order((self.rows.count, self.columns.count, len(self.channels))))

    def copy(self) -> Copy:
        """The copy that makes that map."""
        taps = self.rows.taps, self.columns.taps
        kernel, dilation, tap = ((rows, columns) for rows, columns in zip(*taps))
        window = Window(kernel=kernel, stride=(self.rows.step, self.columns.step), dilation=dilation)
        if self.has_all_channels:
            return Copy(window=window, tap=tap)
        channels = np.full((len(self.channels), *kernel), -1)
        channels[:, tap[0], tap[1]] = self.channels
        return Copy(window=window, channels=channels)


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """A tensor as a map in blocks: the channels of a position become positions of a block, as depth to space has them,
    or the positions of a block become channels of one."""

    channels: Array
    """(outputs, rows, columns) int64: the channel of the map that each output has at each place of a block; where
    positions become channels, -1 at all places but the output's own."""
    grows: bool
    """Whether channels become positions."""
    whole: Array
    """The tensor's index in a map that has its values in order."""

    @classmethod
    def of(cls, index: Array, size: MapSize, axes: tuple[int, ...] = (1, 2, 3)) -> "Blocks | None":
        """The blocks of a map that a tensor with this index has; None if the tensor doesn't have all values once, in
        blocks.

        ``axes``: those of channels, rows and columns, if they can be; of a map of one position several can."""
        rows, columns, channels = size
        if index.ndim != 4 or index.size != prod(size):
            return None
        turns = sorted(AxisOrder.all(index.shape), key=lambda turn: turn.axes[1:] != axes)
        if any(np.array_equal(index.transpose(turn.axes), in_order(size)) for turn in turns):
            return None
        for turn in turns:
            turned = index.transpose(turn.axes)[0]  # (outputs, rows, columns)
            outputs, *sizes = turned.shape
            grows = outputs < channels
            small, large = ((rows, columns), sizes) if grows else (sizes, (rows, columns))
            if outputs == channels or any(one % other for one, other in zip(large, small)):
                continue
            block = large[0] // small[0], large[1] // small[1]
            taken = (_of_channels_of_blocks if grows else _of_positions_of_blocks)(turned, size, block)
            if taken is not None:
                return cls(channels=taken, grows=grows, whole=turn.back(in_order((sizes[0], sizes[1], outputs))))
        return None

    def copy(self) -> Copy:
        """The copy that makes that map: of windows of a block; where channels become positions, of the map that has
        grown by a block, so that each window has one position of the map."""
        rows, columns = self.channels.shape[1:]
        if not self.grows:
            return Copy(window=Window(kernel=(rows, columns), stride=(rows, columns)), channels=self.channels)
        window = Window(
            kernel=(rows, columns),
            padding=(rows - 1, columns - 1, rows - 1, columns - 1),
            growth=(rows, columns),
        )
        return Copy(window=window, channels=self.channels[:, ::-1, ::-1])


def _of_channels_of_blocks(index: Array, size: MapSize, block: tuple[int, int]) -> Array | None:
    """Of an index (outputs, rows, columns) whose blocks are made of the channels of a position, `Blocks.channels`; None
    if they aren't."""
    rows, columns, channels = size
    apart = index.reshape(len(index), rows, block[0], columns, block[1])
    first = apart[:, 0, :, 0, :]
    places = np.arange(rows * columns).reshape(rows, 1, columns, 1) * channels
    alike = has_each_once(first) and (first >= 0).all() and (first < channels).all()
    return first if alike and np.array_equal(apart, first[:, None, :, None, :] + places) else None


def _of_positions_of_blocks(index: Array, size: MapSize, block: tuple[int, int]) -> Array | None:
    """Of an index (outputs, rows, columns) whose channels are the positions of blocks, `Blocks.channels`; None if they
    aren't."""
    _, columns, channels = size
    outputs, *sizes = index.shape
    row, column, channel = np.unravel_index(index[:, 0, 0], size)
    down = np.arange(sizes[0])[:, None] * block[0] * columns
    aside = np.arange(sizes[1]) * block[1]
    alike = has_each_once(index[:, 0, 0]) and (row < block[0]).all() and (column < block[1]).all()
    if not alike or not np.array_equal(index, index[:, :1, :1] + (down + aside) * channels):
        return None
    taken = np.full((outputs, *block), -1)
    taken[np.arange(outputs), row, column] = channel
    return taken

"""The walk along operations that follow one another, which makes sections of them: one method for each kind.

Values are put into golden's order on the way, (rows, columns, channels): a tensor is known by the place in golden's map
that each of its values has, so that a transpose or a flatten costs nothing and permutes the weights of what reads it.

A padded tensor has OUTSIDE at the places that golden's map doesn't have, around it or, where it has grown, between its
positions. What stands there is one number, which every operation on the way changes as it changes all others; a
convolution can take it where it is 0 in the end. Where a tensor has grown by upsampling, or is padded with its edges,
places come several times, and a convolution takes that, too.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import singledispatchmethod
from itertools import pairwise
from math import prod
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.host import level_of
from bitloom.golden.layers.lookup import ENTRIES
from bitloom.golden.window import Window

from .boundaries import Steps, staircases
from .errors import ImportRefused, Unsupported, node_line, printable
from .indexes import (
    OUTSIDE,
    Blocks,
    Copy,
    Grown,
    Selection,
    copying,
    has_each_once,
    is_padded,
    reaching,
    whole,
)
from .links import Chain, Line, Link, bend_name, falls, first_line, is_looked_up, is_uniform, worth_in
from .operations import (
    Closing,
    Elementwise,
    Function,
    Layout,
    Levels,
    Linear,
    Operation,
    Padding,
    Pooling,
    Reduction,
    check_weights,
)
from .rationals import same
from .rows import LevelTable
from .scaled_weights import with_scales
from .sections import (
    MOST_THERMOMETER,
    PassSection,
    Quantised,
    Reading,
    Section,
    Size,
    TableSection,
    WeightSection,
    golden_order,
)
from .tflite_rules import KernelRule
from .weights import MOST_WEIGHT
from .wide_weights import fitting, has_gaps, in_parts, needs_parts

ASIDE = (0, 1, 3, 2)
"""Axes of a tensor (1, channels, rows, columns) that is laid on its side."""
MOST_LINKS = 64
"""Links of a chain at most."""


class Unlinked(NamedTuple):
    """A tensor that has values of a map as its quantiser made them; behind a pool, what the links in front of it make
    of them."""

    tensor: str
    index: Array
    """As in `Walk`."""
    padded_with: Fraction = Fraction(0)
    """What stands at padded places."""
    links: tuple[Link, ...] = ()
    """The links in front of the pool."""


@dataclass
class Walk:
    """Where the walk is, and the sections that it has made."""

    operations: Sequence[Operation]  # that it goes along
    tensor: str  # the tensor that it begins with
    source: Quantised | None  # what the map holds; none while the host works on real numbers
    index: Array  # of the tensor: for each of its values the place in golden's map
    size: Size
    map: int  # number of the map that it stands at
    number: int  # of the map that the next section makes
    channels_last: bool = False  # whether tensors have their channels last, but for those that windows read
    apart: Collection[str] = ()  # names of the maps whose means are convolutions, not pools
    done: list[Section] = field(default_factory=list)
    place: int = 0  # of the operation that is taken
    front: tuple[Link, ...] = ()  # before the host's quantiser
    links: list[Link] = field(default_factory=list)  # since the last quantiser or the last weights
    unlinked: Unlinked = field(init=False)  # the last tensor in front of these, or behind a pool
    open: WeightSection | None = None  # a section whose quantiser hasn't come
    average: Pooling | None = None  # a mean that waits for what reads it
    average_links: int = 0  # how many links lie before it
    average_index: Array = field(default_factory=lambda: np.empty(0, np.int64))  # the index of what it reads
    closing: list[tuple[Closing, Array]] = field(default_factory=list)  # each with the index of what it reads
    inner: list[Window] = field(default_factory=list)
    inner_at: int = 0
    padded_with: Fraction = Fraction(0)  # what stands at padded places, where the tensor has any
    nodes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begin_with = self.source, self.index, self.size
        self.unlinked = Unlinked(self.tensor, self.index)

    def take(self, place: int) -> None:
        """One operation further.

        Raises
        ------
        ImportRefused
            With a line for an operation that can't be taken.
        """
        operation = self.operations[place]
        self.place = place
        before = self.nodes or (self.done[-1].nodes if self.done else ())  # a node may go on behind its quantiser
        if operation.name not in before[-1:]:
            self.nodes.append(operation.name)
        try:
            self._take(operation)
        except ValueError as e:
            raise ImportRefused([node_line(operation.name, operation.op, e)]) from None
        moves = isinstance(operation, Layout | Padding)  # the same values elsewhere: some, or padded, or several times
        pools = isinstance(operation, Pooling | Reduction)
        if pools or (not self.links and (self.has_each_once or not moves)):
            self.unlinked = Unlinked(operation.makes, self.index, self.padded_with, tuple(self.links))

    def quantise_copy(self, operations: Sequence[Operation]) -> None:
        """Quantise a copy of the map that the walk begins at, by scales, bends and a quantiser that follow where the
        map is joined with others."""
        *links, quantiser = operations
        for operation in links:
            self._take(operation)
        assert isinstance(quantiser, Levels)
        if not self._straight(quantiser):
            self._look_up(quantiser)
            return
        self._begin_copy(quantiser, Line.identity(self.size[2]))
        self._quantise(quantiser)

    def finish(self) -> None:
        """End the walk behind the last operation; ImportRefused if it can't end there."""
        if not self.has_each_once:
            last = self.operations[-1]
            for closing, _ in self.closing:
                if closing.classes > 1:
                    why = f"what it makes must leave whole, got some values, by {printable(last.name)}"
                    raise ImportRefused([node_line(closing.name, closing.op, why)])
            try:
                self.copy_map(last, at_end=True)
            except ValueError as e:
                raise ImportRefused([node_line(last.name, last.op, e)]) from None
        if self.average is not None:
            try:
                self._begin_mean(self.average)
            except ValueError as e:
                raise ImportRefused([node_line(self.average.name, self.average.op, e)]) from None
        if self.open is not None:
            if self.inner:
                why = "a max pool must be behind a quantiser or before one, got neither"
                raise ImportRefused([f"{self.open.name}: {why}"])
            self._close(replace(self.open, chain=tuple(self.links), nodes=tuple(self.nodes)))
            self.links = []

    @property
    def input(self) -> Quantised:
        """The levels of the map."""
        assert self.source is not None
        return self.source

    @property
    def has_each_once(self) -> bool:
        """Whether the tensor has each value of the map once: nothing is around it or between, or comes again."""
        return self.index.size == prod(self.size) and not is_padded(self.index)

    @property
    def is_cut(self) -> bool:
        """Whether the tensor has some values of the map, each once, and no others."""
        return self.index.size < prod(self.size) and not is_padded(self.index) and has_each_once(self.index)

    def blocks(self, following: Operation) -> "Blocks | None":
        """The tensor as a map in blocks, if it is one, in front of an operation."""
        first = isinstance(following, Linear | Pooling | Padding) or not self.channels_last
        return Blocks.of(self.index, self.size, (1, 2, 3) if first else (3, 1, 2))

    @property
    def pads_elsewhere(self) -> bool:
        """Whether the next weights have padding, which is worth 0, of a map that is worth something else at 0."""
        for operation in self.operations[self.place + 1 :]:
            if isinstance(operation, Elementwise) and isinstance(operation.link, Line) and any(operation.link.add.flat):
                return _pads(self.operations[self.place + 1 :])
            if operation.makes_map:
                break
        return False

    @property
    def pools_again(self) -> bool:
        """Whether a pool of the same map follows; a mean is the last one of a map."""
        for operation in self.operations[self.place + 1 :]:
            if operation.reads_map or operation.makes_map:
                return isinstance(operation, Pooling | Reduction)
        return False

    @property
    def differs_by_channel(self) -> bool:
        """Whether a quantiser comes before weights and means, and it, or a line before it, is a channel's own.

        Max pools that come before it are taken first, because only there a channel may still fall.
        """
        differs = bent = False
        index = self.index
        for operation in self.operations[self.place + 1 :]:
            if isinstance(operation, Layout):
                values = index.size
                index = index.ravel()[operation.order]
                if index.size < values or Blocks.of(index, self.size):
                    break  # what is cut, or in blocks, is copied anyway
            if isinstance(operation, Padding):
                index = operation.around(index, OUTSIDE)
            if isinstance(operation, Elementwise) and operation.link.looked_up:
                break  # a table has what follows
            if isinstance(operation, Function):
                if not _gives_one_each(operation, index):
                    break  # what comes again with another number is copied anyway
                differs = differs or not operation.is_uniform
            if isinstance(operation, Levels):
                return differs
            pools = isinstance(operation, Pooling | Reduction)
            if pools and not differs and not bent:
                break
            bent = bent or (isinstance(operation, Elementwise) and not isinstance(operation.link, Line))
            if isinstance(operation, Linear) or (pools and operation.average):
                break
        return False

    @singledispatchmethod
    def _take(self, operation: Operation) -> None:
        """Take an operation of a kind."""
        raise NotImplementedError(type(operation).__name__)

    def _follow(self, link: Link) -> None:
        """Another link of the chain; lines that follow each other become one."""
        apart = max(self.inner_at if self.inner else 0, self.average_links if self.average is not None else 0)
        one = link.joined(self.links[-1]) if len(self.links) > apart else None
        if one is None:
            self.links.append(link)
        else:
            self.links[-1] = one
        if len(self.links) > MOST_LINKS:
            rule = f"at most {MOST_LINKS} activations and scales may lie between two quantisers"
            raise Unsupported(f"{rule}, got more")

    @_take.register
    def _elementwise(self, operation: Elementwise) -> None:
        of_channels = _spreading(operation, self.index.ndim)
        if of_channels and (self.is_cut or self.blocks(operation) or not _gives_one_each(operation, self.index)):
            self.copy_map(operation)
        if operation.link.looked_up:
            if is_padded(self.index):
                self.copy_map(operation)
            if self.open is not None or self.average is not None:
                what = "sums of weights" if self.open is not None else "a mean"
                raise Unsupported(
                    f"what {operation.link.name} reads must be quantised, got {what}", "quantise before it"
                )
        link = operation.link.placed(lambda array: self._channel_values(array, "what it computes"))
        self._follow(link)
        if is_padded(self.index):
            self.padded_with = self._behind(link, self.padded_with)

    @_take.register
    def _padding(self, operation: Padding) -> None:
        if is_padded(self.index) and self.padded_with != operation.value:
            raise Unsupported("a map must be padded with one number, got two")
        index = operation.around(self.index, OUTSIDE)
        grows = not operation.growth or self.has_each_once or self._is_grown(index)
        if self.is_cut or self.blocks(operation) or not grows:
            self.copy_map(operation)
            index = operation.around(self.index, OUTSIDE)
        self.index = index
        self.padded_with = operation.value

    @_take.register
    def _layout(self, operation: Layout) -> None:
        index = self.index.ravel()[operation.order]
        changes = operation.order.size != self.index.size
        cuts = operation.order.size < self.index.size and self.is_cut
        blocks = changes and self.blocks(operation)
        stays = operation.order.ndim >= 3 and ((self.is_cut and not changes) or self._is_grown(index))
        if blocks or not (self.has_each_once or cuts or stays):
            self.copy_map(operation)
            index = self.index.ravel()[operation.order]
        self.index = index

    def _is_grown(self, index: Array) -> bool:
        """Whether a tensor with this index is the map as it grows, and is padded then."""
        try:
            return bool(Grown.of(index).index.size == prod(self.size))
        except Unsupported:
            return False

    @_take.register
    def _closing(self, operation: Closing) -> None:
        if not self.has_each_once:
            self.copy_map(operation)
        self.closing.append((operation, self.index))

    def _lies_aside(self, window: Window | None) -> bool:
        """Whether the tensor is the map on its side, rows of one being columns of the other, and a window asks for
        rows: as where columns alone are left of a map with one column."""
        plain = window is not None and self.index.ndim == 4 and self.has_each_once and not self._is_in_order
        if window is None or not plain or self._places_of(window) is not None:
            return False
        rows, columns, channels = self.size
        return np.array_equal(self.index.transpose(ASIDE), golden_order((1, channels, rows, columns))[0])

    def _take_aside(self, operation: Linear | Pooling) -> None:
        """Take an operation of a tensor that is the map on its side, by a window on its side."""
        self.index = self.index.transpose(ASIDE)
        self._take(operation.aside)
        self.index = self.index.transpose(ASIDE)
        if self.average is not None:
            self.average_index = self.average_index.transpose(ASIDE)
        if isinstance(operation, Linear) and self.open is not None:
            reads = tuple(replace(each, order=each.order.transpose(ASIDE)) for each in self.open.reads)
            self.open = replace(self.open, reads=reads)

    @_take.register
    def _pooling(self, operation: Pooling) -> None:
        if self._lies_aside(operation.window):
            self._take_aside(operation)
            return
        at_map = self.open is None and self.average is None and self.source is not None
        # No convolution is a padded average pool: where the map has integers that this can't read, it reads a copy.
        padded = operation.average and any(operation.window.padding)
        needs_copy = at_map and padded and (self.input.name in self.apart or self._is_shifted)
        if self.is_cut or self.blocks(operation) or needs_copy:
            self.copy_map(operation)
        if not self.has_each_once and self.open is None and self.average is None:
            operation = self._with_padding(operation)
        self._check_order()
        rows, columns = operation.window.output_size(self.size[0], self.size[1])
        self._pool_by(operation, golden_order((1, self.size[2], rows, columns))[0])

    @_take.register
    def _reduction(self, operation: Reduction) -> None:
        if not self.has_each_once:
            self.copy_map(operation)
        kernel, index = self._reduced(operation)
        window = Window(kernel=kernel)
        named = {"name": operation.name, "op": operation.op, "reads": operation.reads, "makes": operation.makes}
        self._pool_by(Pooling(**named, window=window, average=operation.average), index)

    def _reduced(self, operation: Reduction) -> tuple[tuple[int, int], Array]:
        """The window of golden's map that some axes of the tensor are, and the index of what is left."""
        rows, columns, channels = self.size
        axes = operation.axes
        last = range(-len(axes), 0)
        position, channel = np.divmod(np.moveaxis(self.index, axes, tuple(last)), channels)
        row, column = np.divmod(position, columns)
        channel, row, column = (
            place.reshape(*place.shape[: place.ndim - len(axes)], -1) for place in (channel, row, column)
        )
        alike = [bool((place == place[..., :1]).all()) for place in (channel, row, column)]
        kernel = 1 if alike[1] else rows, 1 if alike[2] else columns
        if not alike[0] or kernel[0] * kernel[1] != channel.shape[-1]:
            rule = "means and maxima must be over all rows, all columns or both, of each channel for itself"
            raise Unsupported(f"{rule}, got axes {axes}")
        first = [np.expand_dims(place[..., 0], axes) for place in (channel, row, column)]
        left = (first[1] if kernel[0] == 1 else 0) * (1 if kernel[1] > 1 else columns)
        index = (left + (first[2] if kernel[1] == 1 else 0)) * channels + first[0]
        return kernel, index

    def _pool_by(self, operation: Pooling, index: Array) -> None:
        """Let a pool follow, behind which the tensor has an index."""
        rows, columns = operation.window.output_size(self.size[0], self.size[1])
        if operation.average:
            if self.average is not None:
                raise Unsupported("a mean of means must be quantised between")
            if self.open is not None:
                self._add_up(self.open, operation)
            else:
                self.average = operation
                self.average_links = len(self.links)
                self.average_index = self.index
        elif self.open is not None:
            if self.inner and self.inner_at != len(self.links):
                raise Unsupported("two max pools before a quantiser must follow each other")
            self.inner.append(operation.window)
            self.inner_at = len(self.links)
        else:
            if falls(self.links):
                raise Unsupported("what lies between a quantiser and a max pool must rise in every channel")
            self._pool_map(operation)
        self.size = (rows, columns, self.size[2])
        self.index = index
        self._copy_channels()

    def _with_padding(self, operation: Pooling) -> Pooling:
        """A pool that takes the padding in front of it: a maximum where padding is no larger than any value of the map.
        Elsewhere the padded map is made before, by weights."""
        lowest = min(self._worth_of(self.input.base + self.input.step * level) for level in (0, self.input.levels))
        index, window = reaching(self.index, operation.window)
        fits = window is not None and window.growth == (1, 1) and window.beside == "nothing"
        if operation.average or self.padded_with > lowest or not fits:
            self.copy_map(operation)
            return operation
        assert window is not None
        self.index = index
        return replace(operation, window=window)

    def _worth_of(self, value: Fraction) -> Fraction:
        """What a value of the map is worth behind the links, which must be alike in all channels."""
        for link in self.links:
            value = self._behind(link, value)
        return value

    def _behind(self, link: Link, value: Fraction) -> Fraction:
        """What a link makes of a number, which must be the same in every channel."""
        channels = 1 if link.is_uniform else self.size[2]
        return _same_value(np.array([link.value(value, channel) for channel in range(channels)], object))

    def copy_map(self, following: Operation, at_end: bool = False) -> None:
        """Make the map again, padded, grown, cut and in blocks as the tensor is, by weights that copy values: of each
        window one counts. The copy is made in front of an operation, or ``at_end`` behind it."""
        if self.open is not None or self.average is not None or self.source is None:
            rule = "a map that is padded, cut or grows must be quantised before, or be read by a convolution"
            raise Unsupported(rule)
        first, behind = first_line(self.links, self.size[2])
        multiply = same(first.multiply)
        add = same(first.add)
        if behind or multiply is None or add is None or multiply <= 0:
            raise Unsupported("a map that is padded must have one scale > 0 behind its quantiser")
        before = [name for name in self.nodes if at_end or name != following.name]
        self.nodes = before or [following.name]
        source = self.input
        base = source.base * multiply + add
        step = source.step * multiply
        index = self.index
        copy = Copy(window=Window(kernel=(1, 1)))
        number = Fraction(0)
        selection = None if is_padded(index) else Selection.of(index, self.size)
        blocks = self.blocks(following)
        if selection is not None and not selection.is_whole:
            index, copy = selection.whole(), selection.copy()
        elif not self.has_each_once:
            index, window = whole(index, self.size)
            copy = copying(window, self.size)
        elif blocks is not None:
            index, copy = blocks.whole, blocks.copy()
        if is_padded(self.index):
            number = (self.padded_with - add) / multiply
            level = (number - source.base) / source.step
            if level.denominator != 1 or not 0 <= level <= source.levels:
                raise Unsupported(f"what a map is padded with must be one of its values, got {float(number):g}")
        # A padded tap adds 0: so the number that stands there is taken off in front of the weights, and added behind.
        line = Line.identity(self.size[2])
        self.links = [replace(line, add=line.add + number), *self.links]
        self._begin_copy(following, replace(line, add=line.add - number), copy)
        limits = np.array([[base + step * (level - Fraction(1, 2)) for level in range(1, source.levels + 1)]], object)
        reached = np.ones(source.levels, bool)
        named = {"name": following.name, "op": following.op, "reads": following.reads, "makes": following.makes}
        self.index = index
        self._quantise(Levels(**named, base=base, step=step, boundaries=limits, reached=reached))
        self.unlinked = Unlinked(following.reads[0], index)
        self.nodes = [following.name]

    def _pool_map(self, operation: Pooling) -> None:
        """Let a pool take the map, behind the section that makes the map or behind one that passes it on."""
        if not self.done:
            source, index, size = self._begin_with
            reading = Reading(map=self.map, source=source or self.input, tensor=self.tensor, order=index)
            head = PassSection(
                name=operation.name, op=operation.op, reads=(reading,), size=size, quantised=self.input, shifts=(0,)
            )
            self._close(head)
        section = self.done[-1]
        nodes = tuple(dict.fromkeys((*section.nodes, *self.nodes)))
        self.done[-1] = replace(section, quantised=self.source, pools=(*section.pools, operation.window), nodes=nodes)
        self.nodes = []

    def _add_up(self, section: WeightSection, operation: Pooling) -> None:
        """A mean of sums is their sum, and what follows takes up the division. What is added to sums before, or
        multiplied with, is the same behind the mean."""
        _, bent = first_line(self.links, self.size[2])
        if self.inner or bent:
            rule = f"a mean of sums must come before a {bend_name(bent) if bent else 'max pool'}"
            raise Unsupported(rule, "quantise before it")
        window = operation.window
        counts = np.unique((window.positions(*self.size[:2]) >= 0).sum(axis=1))
        if counts.tolist() != [window.taps]:
            rule = f"a mean of sums must have {window.taps} values in every window"
            raise Unsupported(f"{rule}, got {counts[0]} in some", "quantise before it")
        self.open = replace(section, sums=(*section.sums, window), scale=section.scale / window.taps)

    @property
    def _is_in_order(self) -> bool:
        """Whether the tensor has the map's values, with channels, rows and columns in this order."""
        return np.array_equal(self.index, golden_order((1, self.size[2], *self.size[:2]))[0])

    def _check_order(self) -> None:
        """Refuse a map whose values are in another order than (channels, rows, columns)."""
        if is_padded(self.index):
            raise Unsupported(
                "a padded map, or one that grows, must be read by a convolution",
                "give the pool its own padding (PyTorch: AvgPool2d with count_include_pad=False; Keras: "
                "padding='same')",
            )
        if not self._is_in_order:
            raise Unsupported("the map must have its channels, rows and columns in ONNX's order, got a reshaped one")

    @_take.register
    def _levels(self, operation: Levels) -> None:
        self._quantise(operation)
        self._copy_channels()

    def _copy_channels(self) -> None:
        """Put weights between two quantisers, where the second one needs them."""
        quantised = self.done and self.open is None and self.average is None
        if quantised and not is_padded(self.index) and self.differs_by_channel:
            self._begin_copy(self.operations[self.place + 1])

    def _quantise(self, operation: Levels) -> None:
        self._quantise_channels(self._of_channels(operation))

    def _of_channels(self, operation: Levels) -> Levels:
        """A quantiser whose numbers of each channel are in the order of golden's map."""
        boundaries = operation.boundaries
        if len(boundaries) > 1:
            if self.is_cut or self.blocks(operation) or not _gives_one_each(operation, self.index):
                self.copy_map(operation)
            (numbers,) = _spreading(operation, self.index.ndim)
            order = self._channel_values(numbers, "thresholds")
            boundaries = boundaries[order.astype(np.int64)]
            if operation.rule is not None:
                multipliers = tuple(operation.rule.multipliers[place] for place in order)
                operation = replace(operation, rule=replace(operation.rule, multipliers=multipliers))
        elif operation.rule is not None and len(operation.rule.multipliers) == 1:
            multipliers = operation.rule.multipliers * self.size[2]
            operation = replace(operation, rule=replace(operation.rule, multipliers=multipliers))
        return replace(operation, boundaries=boundaries)

    def _quantise_channels(self, operation: Levels) -> None:
        """Quantise; numbers of each channel are in the order of golden's map."""
        if self.average is not None and self._is_rounded_mean(operation):
            window = self.average.window
            halves = any(window.padding) or window.taps % 2 == 0
            apart = self.pads_elsewhere or self.pools_again or self.input.name in self.apart
            if not (apart or (halves and self._is_shifted)) or any(window.padding):
                self.source = replace(self.input, averaged=True, halves=halves)
                self._pool_map(self.average)
                self.average = None
                if apart and self.place + 1 < len(self.operations):
                    self.unlinked = Unlinked(operation.makes, self.index)
                    self.copy_map(self.operations[self.place + 1])
                return
        if self.average is not None:
            self._begin_mean(self.average)
        if is_padded(self.index):
            self.padded_with = _level_value(operation, self.padded_with)
        if self.open is None:
            self._merge(operation)
            return
        if self.open.copies and operation.rule is not None:
            self._multiply_weights(self.open, operation.rule)
        self.source = _quantised(operation)
        section = replace(
            self.open,
            chain=tuple(self.links),
            inner=tuple(self.inner),
            inner_at=self.inner_at,
            quantised=self.source,
            nodes=tuple(self.nodes),
        )
        self._close(section)

    def _multiply_weights(self, section: WeightSection, rule: KernelRule) -> None:
        """Multiply weights that copy with the whole numbers that follow, as a kernel's rule is for such products."""
        first = self.links[0] if self.links else None
        if isinstance(first, Line) and all(number.denominator == 1 for number in first.multiply):
            factors = np.array([int(number) for number in first.multiply], np.int64)
            product = replace(section, weight=section.weight * factors[:, None, None, None], copies=False)
            self.open = in_parts(product) if rule.needs_sums else product
            self.links[0] = Line(multiply=np.full(len(factors), Fraction(1), object), add=first.add)

    def _close(self, section: Section) -> None:
        """Add a section, behind which the walk stands."""
        self.done.append(fitting(section) if isinstance(section, WeightSection) else section)
        self.map = self.number
        self.number = self.number + 1
        if isinstance(section, WeightSection):
            self.open = None
            self.links = []
            self.inner = []
            self.inner_at = 0
            self.nodes = []

    def _merge(self, operation: Levels) -> None:
        """Two quantisers that follow each other become one, whose boundaries are some of the first one's."""
        if self.source is None:  # the host's quantiser
            self.source = _quantised(operation)
            self.front = tuple(self.links)
            self.links = []
            return
        if is_looked_up(self.links):
            self._look_up(operation)
            return
        try:
            kept = self._kept(operation)
        except Unsupported:
            if not self._between(operation):
                raise
            return
        if kept is None:
            return
        self.source = self._merged(operation, *kept)
        self.links = []
        if self.done:  # else the host has both
            section = self.done[-1]
            if isinstance(section, TableSection):
                section = replace(section, table=section.table.behind(kept[1]))
            self.done[-1] = replace(section, quantised=self.source, nodes=(*section.nodes, *self.nodes))
            self.nodes = []

    def _merged(self, operation: Levels, base: Fraction, kept: Sequence[int]) -> Quantised:
        """The map as two quantisers make it, with a value of its lowest level and some boundaries of the first one."""
        first = self.input
        assert first.boundaries is not None
        assert first.reached is not None
        cut = list(kept) == list(range(kept[0], kept[0] + len(kept))) and operation.step == first.step
        rule = None
        if first.rule is not None and cut and base == first.base + first.step * kept[0]:  # the kernel's, cut to fewer
            rule = replace(first.rule, low=first.rule.low + kept[0])
        return replace(
            first,
            base=base,
            step=operation.step,
            boundaries=first.boundaries[:, kept],
            reached=first.reached[kept],
            levels=len(kept),
            rule=rule,
        )

    def _kept(self, operation: Levels) -> tuple[Fraction, list[int]] | None:
        """What the lowest level of the map is worth behind a second quantiser, and which boundaries begin the other
        levels there, one for each; None where weights were put between both quantisers."""
        first = self.input
        if first.boundaries is None:
            verb = self.done[-1].verb if self.done else "quantised"
            raise Unsupported(f"what was {verb} must be quantised once, got a second time")
        if len(operation.boundaries) > 1 or not is_uniform(self.links):
            raise Unsupported("what lies between two quantisers must be the same in every channel")
        line = Line(multiply=np.array([first.step], object), add=np.array([first.base], object))
        chain = [link.of_channel(0) for link in self.links]
        (stair,) = staircases(chain, operation.boundaries, operation.reached, line)
        if not stair.rising:
            raise Unsupported("a second quantiser must rise with the first one")
        base = operation.base
        kept = []
        for limit, always in zip(stair.limits, stair.always):
            if always if limit is None else limit < 1:  # the lowest level has reached it: it counts into the base
                base += operation.step
            elif limit is not None and limit <= first.levels:
                kept.append(limit - 1)
        if not kept:
            raise Unsupported("a second quantiser must leave two levels at least")
        passes = isinstance(self.done[-1], PassSection) if self.done else self.map > 0
        if passes and kept != list(range(first.levels)):
            rule = f"a quantiser of a map with several readers must keep its {first.levels + 1} values"
            raise Unsupported(f"{rule}, each one step apart, got {len({*kept}) + 1} in {len(kept) + 1} steps")
        even = len({after - before for before, after in pairwise(kept)}) <= 1
        # A mean is rounded to the values of the first quantiser, and only then come those of the second one.
        apart = first.averaged and (len(kept), base, operation.step) != (first.levels, first.base, first.step)
        # A kernel's rule has no line, and is left where its values are merged otherwise than by a clip.
        rounds = first.rule is not None and first.rule.needs_sums
        bent = not even or (rounds and self._merged(operation, base, kept).rule is None)
        if self.done and (apart or (len(kept) > MOST_THERMOMETER and bent)) and self._between(operation):
            return None
        if apart:
            name = bend_name(self.links)
            raise Unsupported(f"a mean that is quantised twice must have no {name} between both quantisers")
        return base, kept

    def _between(self, operation: Levels) -> bool:
        """Put a copy of every channel between two quantisers, if it can be: both in one would have levels of any width,
        as thresholds may be, and not those of a requantisation. Where no line has the second one's levels either, a
        table has them."""
        if is_padded(self.index):
            return False
        if not self._straight(operation) or self._multiplies_by_more(operation):
            self._look_up(operation)
            return True
        line, bent = first_line(self.links, self.size[2])
        leads = not bent and same(line.multiply) not in (None, Fraction(0))
        self._begin_copy(operation, None if leads else Line.identity(self.size[2]))
        self._quantise_channels(operation)
        return True

    def _straight(self, operation: Levels) -> bool:
        """Whether a line in each channel has the levels of a quantiser behind another one."""
        if is_looked_up(self.links):
            return False
        channels = self.size[2]
        return Steps.of(tuple(self.links), operation.boundaries, operation.reached, channels).straight

    def _multiplies_by_more(self, operation: Levels) -> bool:
        """Whether a kernel multiplies by one whole number that is no weight, in all channels alike."""
        first = self.links[0] if self.links else None
        if operation.rule is None or not isinstance(first, Line) or not first.is_uniform:
            return False
        factor = first.multiply[0]
        return bool(factor.denominator == 1 and abs(factor) > MOST_WEIGHT)

    def _look_up(self, operation: Levels) -> None:
        """Let a table have what links and a quantiser make of each value of a map; of a map that a table makes, that
        one, where both are the same in all channels."""
        source = self.input
        if source.levels >= ENTRIES:
            name = bend_name(self.links)
            raise Unsupported(f"{name} must read at most {ENTRIES} values, got {source.levels + 1}")
        alike = is_uniform(self.links) and len(operation.boundaries) == 1
        channels = range(1 if alike else self.size[2])
        values = [[worth_in(self.links, value, channel) for channel in channels] for value in source.values]
        levels = level_of(np.array(values, object), operation.boundaries, operation.reached)
        table = LevelTable.of(levels.T)
        quantised = replace(_quantised(operation), rule=None)
        before = self.done[-1] if self.done else None
        if isinstance(before, TableSection) and not before.pools and before.table.is_uniform and table.is_uniform:
            nodes = (*before.nodes, *self.nodes)
            self.done[-1] = replace(before, quantised=quantised, table=before.table.through(table), nodes=nodes)
        else:
            section = TableSection(
                name=operation.name,
                op=operation.op,
                nodes=tuple(self.nodes),
                reads=(self._reading_unlinked(),),
                size=self.size,
                quantised=quantised,
                table=table,
            )
            self._close(section)
        self.source = quantised
        self.links = []
        self.nodes = []

    @property
    def _is_shifted(self) -> bool:
        """Whether a kernel makes the map by a rule that only integers less the file's zero point have."""
        source = self.input
        return source.rule is not None and source.rule.needs_sums and source.base != source.rule.low * source.step

    def _is_rounded_mean(self, operation: Levels) -> bool:
        """Whether a mean is rounded to the values that its map has, halves away from 0, as golden's average pool
        does."""
        source = self.input
        if self.links or source.averaged or len(operation.boundaries) > 1:
            return False
        first = source.base / source.step
        offset = (source.base - operation.base) / source.step
        if source.step != operation.step or first.denominator != 1 or offset.denominator != 1:
            return False
        # The quantiser may have more values below and above: no mean is there.
        below = int(offset)
        above = int(offset) + source.levels
        if not 0 <= below <= above <= operation.levels:
            return False
        values = [first + level for level in range(1, source.levels + 1)]
        middles = [(value - Fraction(1, 2)) * source.step for value in values]
        away = [value > 0 for value in values]
        return list(operation.boundaries[0][below:above]) == middles and operation.reached.tolist()[below:above] == away

    @_take.register
    def _linear(self, operation: Linear) -> None:
        if self.open is not None:
            raise Unsupported("its input must be quantised, got sums of other weights", "quantise before it")
        if self.average is not None:
            if operation.window is None and self.size[:2] == (1, 1) and not any(self.average.window.padding):
                self._begin_averaged(operation, self.average)
                return
            self._begin_mean(self.average)
            raise Unsupported("a mean must be quantised before weights read it, unless it is of the whole map")
        if self._lies_aside(operation.window):
            self._take_aside(operation)
            return
        window = operation.window
        inner = None
        channels = None
        if self.is_cut:
            channels = self._channels_of(operation)
        elif not self.has_each_once:
            inner, window = self._reach(operation)
        elif window is not None and self._places_of(window) is None:
            channels = self._channels_of(operation)
        lead = self._lead(self.links)
        index = self.index
        self.index = index if inner is None else inner
        real = operation.real
        size = (1, 1, len(operation.weight))
        places = None
        if operation.window is None:
            weight = self._placed(operation.weight)
            real = None if real is None or not self.has_each_once else self._placed(real)  # 0 is the sign of no number
        else:
            assert window is not None
            places = self._places_of(window)
            if places is None and channels is None:
                self._check_order()
            weight = _of_channels(operation.weight.transpose(0, 2, 3, 1), channels, self.size[2])
            real = None if real is None else _of_channels(real.transpose(0, 2, 3, 1), channels, self.size[2])
            size = (*window.output_size(self.size[0], self.size[1]), len(operation.weight))
        self._begin(
            WeightSection(
                name=operation.name,
                op=operation.op,
                reads=(self._reading(operation.reads[0], index, lead),),
                weight=weight,
                groups=operation.groups,
                scale=operation.scale,
                window=window,
                size=size,
                lead=lead,
                real=real,
            )
        )
        if places is not None:
            outputs = size[2]
            self.index = places * outputs + np.arange(outputs).reshape(1, -1, 1, 1)

    def _places_of(self, window: Window) -> Array | None:
        """Where in golden's map the positions of a tensor (1, channels, rows, columns) lie, (1, 1, rows, columns), if
        the window reads one position at a time, so that their order is free; None else."""
        channels = self.size[2]
        if window != Window(kernel=(1, 1)) or self.index.ndim != 4 or self.index.shape[1] != channels:
            return None
        places, numbers = np.divmod(self.index, channels)
        alike = (places == places[:, :1]).all() and (numbers == np.arange(channels).reshape(1, -1, 1, 1)).all()
        return places[:, :1] if alike else None

    def _reach(self, operation: Linear) -> tuple[Array | None, Window | None]:
        """The index of the map, and the window of weights that read it padded or grown, if the window can take that: if
        each one has a tap on the map, and what is padded with is worth 0; and if weights that are taken in parts find
        positions to repeat. Elsewhere the padded map is made before, and there is no such index."""
        window = operation.window
        if window is not None and (self.padded_with == 0 or not is_padded(self.index)):
            index, more = reaching(self.index, window)
            parts = more is None or not needs_parts(operation.weight) or not has_gaps(more)
            if more is not None and parts and more.reaches(*self.size[:2]):
                return index, more
        self.copy_map(operation)
        return None, window

    def _channels_of(self, operation: Linear) -> Array | None:
        """The channels of the map that a tensor has, at all positions of the map, if weights that read the tensor can
        read the map: others then have the weight 0. Elsewhere the tensor's map is made before. None if all channels are
        read, in their order."""
        if operation.window is None or self._is_in_order:
            return None
        if self.blocks(operation):
            self.copy_map(operation)
            return None
        selection = Selection.of(self.index, self.size)
        if selection is None or selection.is_whole:
            return None
        in_order = golden_order((1, self.size[2], *self.size[:2]))[0][:, selection.channels]
        if operation.groups == 1 and selection.has_all_positions and np.array_equal(self.index, in_order):
            return selection.channels
        self.copy_map(operation)
        return None

    def _placed(self, matrix: Array) -> Array:
        """A matrix (outputs, inputs) as kernels of the whole map, (outputs, rows, columns, channels)."""
        flat = np.zeros((len(matrix), prod(self.size)), matrix.dtype)
        flat[:, self.index.ravel()] = matrix
        return flat.reshape(len(matrix), *self.size)

    def _reading(self, tensor: str, index: Array, *links: Link, padded_with: Fraction = Fraction(0)) -> Reading:
        return Reading(
            map=self.map, source=self.input, tensor=tensor, order=index, links=links, padded_with=padded_with
        )

    def _reading_unlinked(self) -> Reading:
        """The reading of the map as its quantiser made it."""
        tensor, index, padded_with, links = self.unlinked
        return self._reading(tensor, index, *links, padded_with=padded_with)

    def _begin(self, section: WeightSection) -> None:
        """Begin a section."""
        section = with_scales(section)
        size = section.size
        self.open = replace(section, nodes=tuple(self.nodes))
        self.links = []
        self.size = size
        self.index = golden_order((1, size[2], size[0], size[1]))[0]
        if section.window is None:
            self.index = self.index.reshape(1, -1)

    def _begin_averaged(self, operation: Linear, mean: Pooling) -> None:
        """A dense layer on the means of a whole map is a dense layer on the map, its weights at every place."""
        before = self.links[: self.average_links]
        after = self.links[self.average_links :]
        _, bent = first_line((*before, *after), self.size[2])
        if bent:
            name = bend_name(bent)
            raise Unsupported(f"a {name} must not lie between a quantiser and a mean that weights read")
        rows, columns = mean.window.kernel
        check_weights(operation.weight.size * rows * columns)
        flat = np.zeros((len(operation.weight), self.size[2]), np.int64)
        flat[:, self.index.ravel()] = operation.weight
        weight = np.broadcast_to(flat[:, None, None, :], (len(flat), rows, columns, flat.shape[1])).copy()
        self.average = None
        self._begin(
            WeightSection(
                name=operation.name,
                op=operation.op,
                reads=(self._reading(mean.reads[0], self.average_index, self._lead(before)),),
                weight=weight,
                scale=operation.scale / (rows * columns),
                window=None,
                size=(1, 1, len(flat)),
                lead=self._lead(self.links),
            )
        )

    def _begin_mean(self, mean: Pooling) -> None:
        """A mean that is quantised is a convolution with weights of 0 and 1, each output of its own channel."""
        if any(mean.window.padding):
            raise Unsupported("a mean that is quantised must have no padding", "pad with zeros in a convolution")
        channels, (rows, columns) = self.size[2], mean.window.kernel
        check_weights(channels * rows * columns)
        before = self.links[: self.average_links]
        after = self.links[self.average_links :]
        index = self.index
        lead = self._lead(before)
        self._begin(
            WeightSection(
                name=mean.name,
                op=mean.op,
                reads=(self._reading(mean.reads[0], self.average_index, lead),),
                weight=np.ones((channels, rows, columns, 1), np.int64),
                groups=channels,
                scale=np.full(channels, Fraction(1, rows * columns), object),
                window=mean.window,
                size=self.size,
                lead=lead,
            )
        )
        self.links = list(after)
        self.index = index
        self.average = None

    def _begin_copy(
        self,
        following: Operation,
        lead: Line | None = None,
        copy: "Copy | None" = None,
    ) -> None:
        """Begin a section whose weights copy channels, for what may follow only weights; ``following`` is next.

        With a ``lead`` weights read the map as its quantiser made it, behind that line, and links stay behind them;
        else they read what the links make.
        """
        copy = copy or Copy(window=Window(kernel=(1, 1)))
        window = copy.window
        weight = copy.weight(self.size[2])
        channels = len(weight)
        of_each = copy.channels if copy.blocks is None else np.zeros(channels, np.int64)  # links are the same in all
        index = self.index
        if lead is None:
            lead = self._lead(self.links)
            reading = self._reading(following.reads[0], index, lead)
            links = []
        else:
            reading = self._reading_unlinked()
            links = self.links if of_each is None else [link.taken(of_each) for link in self.links]
        self._begin(
            WeightSection(
                name=following.name,
                op=following.op,
                reads=(reading,),
                weight=weight,
                copies=True,
                takes_one=copy.blocks is not None,
                groups=self.size[2] // weight.shape[3],
                scale=np.full(channels, Fraction(1), object),
                window=window,
                size=(*window.output_size(*self.size[:2]), channels),
                lead=lead,
            )
        )
        self.index = index
        self.links = list(links)

    def _lead(self, links: Chain) -> Line:
        """What the map is worth behind some links, as one line."""
        lead = Line.identity(self.size[2])
        for link in links:
            line = link.joined(lead)
            lead = line if isinstance(line, Line) else self._unbent(lead, link)
        if not all(lead.multiply):
            raise Unsupported("what is multiplied with between a quantiser and weights must not be 0")
        return lead

    def _unbent(self, lead: Line, link: Link) -> Line:
        """A line behind a quantiser, and a link behind it that must leave all its values as they are."""
        ends = (self.input.base, self.input.base + self.input.step * self.input.levels)
        worth = [(lead.value(end, channel), channel) for channel in range(self.size[2]) for end in ends]
        if link.looked_up or any(link.value(value, channel) != value for value, channel in worth):
            rule = f"a {link.name} behind a quantiser must be followed by a quantiser, or cut nothing"
            raise Unsupported(rule)
        return lead

    def _channel_values(self, values: Array, what: str) -> Array:
        """Numbers that spread over the tensor, as one for each channel of golden's map: (channels,)."""
        if values.size == 1:
            return np.full(self.size[2], values.ravel()[0], object)
        codes, places = _codes(values, self.index)
        out = np.empty(int(np.prod(self.size)), np.int64)
        out[places] = codes
        if (out[places] != codes).any():
            raise Unsupported(f"{what} must be the same wherever a value of the map comes again")
        rows = out.reshape(-1, self.size[2])
        if (rows != rows[0]).any():
            raise Unsupported(f"{what} must be the same at all places of a channel")
        return np.asarray(values.ravel()[rows[0]])


def _spreading(operation: Function, axes: int) -> list[Array]:
    """Numbers of a function that spread over what it reads, a tensor of so many axes, where these are several."""
    if isinstance(operation, Elementwise):
        return [array for array in operation.link.parameters if array.size > 1]
    if isinstance(operation, Levels) and len(operation.boundaries) > 1:
        shape = [1] * axes
        shape[operation.axis] = -1
        return [np.arange(len(operation.boundaries)).reshape(shape)]
    return []


def _codes(values: Array, index: Array) -> tuple[Array, Array]:
    """(n,) which of some numbers each value of a tensor with this index has, padding left out, and its place in
    golden's map."""
    numbers = {value: number for number, value in enumerate(values.ravel())}  # of equal values the last one's
    codes = np.array([numbers[value] for value in values.ravel()]).reshape(values.shape)
    inside = index != OUTSIDE
    return np.broadcast_to(codes, index.shape)[inside], index[inside]


def _gives_one_each(operation: Function, index: Array) -> bool:
    """Whether a function is one for each value of the map, where a tensor with this index has that several times."""
    for values in _spreading(operation, index.ndim):
        codes, places = _codes(values, index)
        first = dict(zip(places.tolist(), codes.tolist()))
        if len(first) < places.size and any(first[place] != code for place, code in zip(places.tolist(), codes)):
            return False
    return True


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


def _pads(operations: Sequence[Operation]) -> bool:
    """Whether the first weights have padding, their own or one before them."""
    for operation in operations:
        if isinstance(operation, Padding):
            return True
        if isinstance(operation, Linear):
            return operation.window is not None and any(operation.window.padding)
    return False


def _of_channels(weight: Array, channels: Array | None, count: int) -> Array:
    """Weights (outputs, rows, columns, inputs) of a map of ``count`` channels, of which the inputs are some; None: all
    of them, in their order."""
    if channels is None:
        return weight
    check_weights(weight[..., 0].size * count)
    whole = np.zeros((*weight.shape[:3], count), weight.dtype)
    whole[..., channels] = weight
    return whole


def _same_value(values: Array) -> Fraction:
    """What stands at padded places, which must be one number for all channels."""
    if (values != values[0]).any():
        raise Unsupported("what a map is padded with must stay the same number in every channel")
    return Fraction(values[0])


def _level_value(levels: Levels, value: Fraction) -> Fraction:
    """What a quantiser makes of a number."""
    counts = level_of(np.full(len(levels.boundaries), value, object), levels.boundaries, levels.reached)
    return _same_value(np.array([levels.base + levels.step * int(count) for count in counts], object))

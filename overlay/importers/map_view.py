"""Views: a tensor of the file as values of golden's map.

A tensor is known by the place in golden's map, (rows, columns, channels), that each of its values has, so that a
transpose or a flatten costs nothing and permutes the weights of what reads it:

    map (1, 2, 2):  0 1 2 3    tensor (1, 2, 1, 2):  channel 0: 0 2    channel 1: 1 3
                                                     index   [[[[0, 2]], [[1, 3]]]]

A padded tensor has OUTSIDE at the places that golden's map doesn't have, around it or, where it has grown, between its
positions. What stands there is one number. Where a tensor has grown by upsampling, or is padded with its edges, places
come several times.

What a tensor is of a map as a whole (indexes.py) says which operations can be taken of it as it is (`MapView.takes`);
in front of the others the map is copied, by weights (`MapView.copy`).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, singledispatchmethod
from math import prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.window import Window

from .errors import Unsupported
from .indexes import OUTSIDE, Blocks, Copy, Grown, Selection, copying, has_each_once, is_padded, reaching, whole
from .links import Link
from .operations import (
    AxesReduction,
    Closing,
    Elementwise,
    Function,
    Layout,
    Levels,
    Linear,
    Operation,
    Padding,
    Pooling,
)
from .sections import MapSize, in_order
from .weights import needs_parts, repeats_none


@dataclass(frozen=True, kw_only=True, eq=False)
class MapView:
    """A tensor as values of golden's map."""

    index: Array
    """int64 array of the tensor's shape: the place of each value in the map."""
    size: MapSize
    """Of the map."""
    padded_with: Fraction = Fraction(0)
    """Number at padded places, where the tensor has any."""
    channels_last: bool = False
    """Whether tensors of the file have their channels last, but for those that windows read."""

    def of_map(self, size: MapSize) -> "MapView":
        """The tensor of a new map of this size, (1, channels, rows, columns)."""
        return replace(self, index=in_order(size), size=size)

    @property
    def flat(self) -> "MapView":
        """The tensor as one row of values, (1, values)."""
        return self.with_index(self.index.reshape(1, -1))

    def with_index(self, index: Array) -> "MapView":
        """Another tensor of the same map."""
        return replace(self, index=index)

    # What the tensor is of the map

    @cached_property
    def is_padded(self) -> bool:
        """Whether the tensor has padded places."""
        return is_padded(self.index)

    @cached_property
    def has_each_once(self) -> bool:
        """Whether the tensor has each value of the map once: nothing is around them or between, or comes again."""
        return self.index.size == prod(self.size) and not self.is_padded

    @cached_property
    def is_cut(self) -> bool:
        """Whether the tensor has some values of the map, each once, and no others."""
        return self.index.size < prod(self.size) and not self.is_padded and has_each_once(self.index)

    @cached_property
    def is_in_order(self) -> bool:
        """Whether the tensor has the map's values, with channels, rows and columns in this order."""
        return np.array_equal(self.index, in_order(self.size))

    @cached_property
    def is_grown(self) -> bool:
        """Whether the tensor is the map as it grows, and is padded then."""
        try:
            return bool(Grown.of(self.index).index.size == prod(self.size))
        except Unsupported:
            return False

    @cached_property
    def selection(self) -> Selection | None:
        """The tensor as some channels, rows and columns of the map; None if it is none."""
        return None if self.is_padded else Selection.of(self.index, self.size)

    def blocks(self, following: Operation) -> Blocks | None:
        """The tensor as a map in blocks, in front of an operation; None if it is none."""
        first = isinstance(following, Linear | Pooling | Padding) or not self.channels_last
        return Blocks.of(self.index, self.size, (1, 2, 3) if first else (3, 1, 2))

    @property
    def is_in_blocks(self) -> bool:
        """Whether the tensor is a map in blocks, for readers with their channels first."""
        return Blocks.of(self.index, self.size) is not None

    def check_order(self) -> None:
        """Refuse a map whose values are in another order than (channels, rows, columns)."""
        if self.is_padded:
            raise Unsupported(
                "a padded map, or one that grows, must be read by a convolution",
                "give the pool its own padding (PyTorch: AvgPool2d with count_include_pad=False; Keras: "
                "padding='same')",
            )
        if not self.is_in_order:
            raise Unsupported("the map must have its channels, rows and columns in ONNX's order, got a reshaped one")

    # What moves the values

    def laid_out(self, layout: Layout) -> "MapView":
        """The tensor that a layout makes of this one."""
        return self.with_index(self.index.ravel()[layout.order])

    def around(self, padding: Padding) -> "MapView":
        """The tensor with padding."""
        return replace(self, index=padding.around(self.index, OUTSIDE), padded_with=padding.value)

    def behind(self, link: Link, value: Fraction) -> Fraction:
        """Number at padded places behind a link, in front of which it is ``value``: the same one in every channel."""
        channels = 1 if link.is_uniform else self.size[2]
        return _same_value(np.array([link.value(value, channel) for channel in range(channels)], object))

    def quantised(self, levels: Levels) -> "MapView":
        """The tensor behind a quantiser, which quantises what stands at padded places, too."""
        if not self.is_padded:
            return self
        counts = levels.boundaries.level(np.full(len(levels.boundaries.limits), self.padded_with, object))
        values = np.array([levels.base + levels.step * int(count) for count in counts], object)
        return replace(self, padded_with=_same_value(values))

    @property
    def aside(self) -> "MapView":
        """The tensor (1, channels, rows, columns) on its side, whose rows are the columns."""
        return self.with_index(self.index.transpose(0, 1, 3, 2))

    def lies_aside(self, window: Window | None) -> bool:
        """Whether the tensor is the map on its side, rows of one being columns of the other, and a window asks for
        rows: as where columns alone are left of a map with one column."""
        plain = window is not None and self.index.ndim == 4 and self.has_each_once and not self.is_in_order
        if window is None or not plain or self.places_of(window) is not None:
            return False
        return np.array_equal(self.aside.index, in_order(self.size))

    # Which operations take the tensor as it is

    @singledispatchmethod
    def takes(self, operation: Operation) -> bool:
        """Whether the operation can be taken of the tensor; else the map is to be copied in front of it."""
        raise NotImplementedError(type(operation).__name__)

    @takes.register
    def _takes_function(self, operation: Function) -> bool:
        if operation.reads_map and self.is_padded:
            return False
        if not spreading(operation, self.index.ndim):
            return True
        return not self.is_cut and not self.blocks(operation) and self.gives_one_each(operation)

    @takes.register
    def _takes_padding(self, operation: Padding) -> bool:
        if self.is_padded and self.padded_with != operation.value:
            return False  # one number stands around a map
        grows = not operation.growth or self.has_each_once or self.around(operation).is_grown
        return not self.is_cut and grows and not self.blocks(operation)

    @takes.register
    def _takes_layout(self, operation: Layout) -> bool:
        changes = operation.order.size != self.index.size
        if changes and self.blocks(operation):
            return False
        if self.has_each_once or (operation.order.size < self.index.size and self.is_cut):
            return True
        return operation.order.ndim >= 3 and ((self.is_cut and not changes) or self.laid_out(operation).is_grown)

    @takes.register(Closing)
    @takes.register(AxesReduction)
    def _takes_whole(self, operation: Closing | AxesReduction) -> bool:
        return self.has_each_once

    @takes.register
    def _takes_pooling(self, operation: Pooling) -> bool:
        return not self.is_cut and not self.blocks(operation)

    @takes.register
    def _takes_linear(self, operation: Linear) -> bool:
        window = operation.window
        if not self.is_cut and not self.has_each_once:
            return self.reach(operation) is not None
        if window is None or self.is_in_order or (not self.is_cut and self.places_of(window) is not None):
            return True
        if self.lies_aside(window):
            return True
        if self.blocks(operation):
            return False
        some = self.selection is not None and not self.selection.is_whole
        return not some or self.channels_of(operation) is not None

    def gives_one_each(self, operation: Function) -> bool:
        """Whether the function has one number for each value of the map, wherever the tensor has that value."""
        for values in spreading(operation, self.index.ndim):
            codes, places = self._codes(values)
            first = dict(zip(places.tolist(), codes.tolist()))
            if len(first) < places.size and any(first[place] != code for place, code in zip(places.tolist(), codes)):
                return False
        return True

    def copy(self, following: Operation) -> tuple[Copy, Array]:
        """The weights that make a map of the tensor's values alone, in front of an operation, and the tensor's index in
        that map."""
        if self.selection is not None and not self.selection.is_whole:
            return self.selection.copy(), self.selection.whole()
        if not self.has_each_once:
            index, window = whole(self.index, self.size)
            return copying(window), index
        blocks = self.blocks(following)
        if blocks is not None:
            return blocks.copy(), blocks.whole
        return Copy(window=Window(kernel=(1, 1))), self.index

    # What readers of the tensor ask

    def channel_values(self, values: Array, what: str) -> Array:
        """Numbers that spread over the tensor, as one for each channel of golden's map: (channels,)."""
        if values.size == 1:
            return np.full(self.size[2], values.ravel()[0], object)
        codes, places = self._codes(values)
        out = np.empty(prod(self.size), np.int64)
        out[places] = codes
        if (out[places] != codes).any():
            raise Unsupported(f"{what} must be the same wherever a value of the map comes again")
        rows = out.reshape(-1, self.size[2])
        if (rows != rows[0]).any():
            raise Unsupported(f"{what} must be the same at all places of a channel")
        return np.asarray(values.ravel()[rows[0]])

    def _codes(self, values: Array) -> tuple[Array, Array]:
        """(n,) which of some numbers each value of the tensor has, padding left out, and its place in the map."""
        numbers = {value: number for number, value in enumerate(values.ravel())}  # of equal values the last one's
        codes = np.array([numbers[value] for value in values.ravel()]).reshape(values.shape)
        inside = self.index != OUTSIDE
        return np.broadcast_to(codes, self.index.shape)[inside], self.index[inside]

    def reduced(self, axes: tuple[int, ...]) -> tuple[tuple[int, int], Array]:
        """The window of golden's map that some axes of the tensor are, and the index of what is left."""
        rows, columns, channels = self.size
        places = np.moveaxis(self.index, axes, tuple(range(-len(axes), 0)))
        places = places.reshape(*places.shape[: places.ndim - len(axes)], -1)
        row, column, channel = np.unravel_index(places, self.size)
        alike = [bool((place == place[..., :1]).all()) for place in (channel, row, column)]
        kernel = 1 if alike[1] else rows, 1 if alike[2] else columns
        if not alike[0] or kernel[0] * kernel[1] != channel.shape[-1]:
            rule = "means and maxima must be over all rows, all columns or both, of each channel for itself"
            raise Unsupported(f"{rule}, got axes {axes}")
        first = [np.expand_dims(place[..., 0], axes) for place in (channel, row, column)]
        left = (first[1] if kernel[0] == 1 else 0) * (1 if kernel[1] > 1 else columns)
        return kernel, (left + (first[2] if kernel[1] == 1 else 0)) * channels + first[0]

    def places_of(self, window: Window) -> Array | None:
        """Where in golden's map the positions of a tensor (1, channels, rows, columns) lie, (1, 1, rows, columns), if
        the window reads one position at a time, so that their order is free; None else."""
        channels = self.size[2]
        if window != Window(kernel=(1, 1)) or self.index.ndim != 4 or self.index.shape[1] != channels:
            return None
        places, numbers = np.divmod(self.index, channels)
        alike = (places == places[:, :1]).all() and (numbers == np.arange(channels).reshape(1, -1, 1, 1)).all()
        return places[:, :1] if alike else None

    def reach(self, operation: Linear) -> tuple["MapView", Window] | None:
        """The map that a padded tensor, or one that has grown, is made of, and the window of weights that read it, if
        the window can take that: if each one has a tap on the map, and what is padded with is worth 0; and if weights
        that are taken in parts find positions to repeat."""
        window = operation.window
        if window is None or (self.padded_with != 0 and self.is_padded):
            return None
        index, more = reaching(self.index, window)
        if more is None or (needs_parts(operation.weight) and repeats_none(more)) or not more.reaches(*self.size[:2]):
            return None
        return self.with_index(index), more

    def channels_of(self, operation: Linear) -> Array | None:
        """The channels of the map that the tensor has, at all positions of the map, if these are some of them: weights
        that read the tensor read the map, and have the weight 0 for others. None if all channels are read, in their
        order."""
        selection = self.selection
        if operation.window is None or self.is_in_order or selection is None or selection.is_whole:
            return None
        plain = np.array_equal(self.index, in_order(self.size)[:, selection.channels])
        return selection.channels if operation.groups == 1 and selection.has_all_positions and plain else None

    def placed(self, matrix: Array) -> Array:
        """A matrix (outputs, inputs) as kernels of the whole map, (outputs, rows, columns, channels)."""
        flat = np.zeros((len(matrix), prod(self.size)), matrix.dtype)
        flat[:, self.index.ravel()] = matrix
        return flat.reshape(len(matrix), *self.size)


def spreading(operation: Function, axes: int) -> list[Array]:
    """Numbers of a function that spread over what it reads, a tensor of so many axes, where these are several."""
    if isinstance(operation, Elementwise):
        return [array for array in operation.link.parameters if array.size > 1]
    if isinstance(operation, Levels) and not operation.boundaries.is_uniform:
        shape = [1] * axes
        shape[operation.axis] = -1
        return [np.arange(len(operation.boundaries.limits)).reshape(shape)]
    return []


def _same_value(values: Array) -> Fraction:
    """The number at padded places, which must be one for all channels."""
    if (values != values[0]).any():
        raise Unsupported("what a map is padded with must stay the same number in every channel")
    return Fraction(values[0])

"""How sections begin: with weights of the file, or with weights that stand for a mean or for a copy of the map."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

from bitloom.golden.window import Window

from .boundaries import Ends
from .errors import Unsupported
from .operations import Linear, Operation, Pooling
from .sections import Section, golden_order
from .walk_state import Walk, lead_of
from .windows import check_weights


def begin(walk: Walk, begun: Section) -> None:
    """Begin a section."""
    window, size = begun.window, begun.size
    walk.open = replace(begun, nodes=tuple(walk.nodes))
    walk.links, walk.size = [], size
    walk.index = golden_order((1, size[2], size[0], size[1]))[0]
    if window is None:
        walk.index = walk.index.reshape(1, -1)


def begin_averaged(walk: Walk, operation: Linear, mean: Pooling) -> None:
    """A dense layer on the means of a whole map is a dense layer on the map, its weights at every place."""
    before, after = walk.links[: walk.average_links], walk.links[walk.average_links :]
    if any(isinstance(link, Ends) for link in (*before, *after)):
        raise Unsupported("a clip must not lie between a quantiser and a mean that weights read")
    rows, columns = mean.window.kernel
    check_weights(operation.weight.size * rows * columns)
    flat = np.zeros((len(operation.weight), walk.index.size), np.int64)
    flat[:, walk.index.ravel()] = operation.weight
    weight = np.broadcast_to(flat[:, None, None, :], (len(flat), rows, columns, flat.shape[1])).copy()
    lead, there, count = lead_of(walk, walk.links), lead_of(walk, before), rows * columns
    walk.average = None
    begin(
        walk,
        Section(
            name=operation.name, weight=weight, scale=operation.scale / count, window=None, size=(1, 1, len(flat)),
            lead=lead, reads=mean.reads, order=walk.average_index, there=there,
        ),
    )  # fmt: skip


def begin_mean(walk: Walk, mean: Pooling) -> None:
    """A mean that is quantised is a convolution with weights of 0 and 1, each output of its own channel."""
    if any(mean.window.padding):
        raise Unsupported("a mean that is quantised must have no padding", "pad with zeros in a convolution")
    channels, (rows, columns) = walk.size[2], mean.window.kernel
    check_weights(channels * channels * rows * columns)
    weight = np.zeros((channels, rows, columns, channels), np.int64)
    weight[np.arange(channels), :, :, np.arange(channels)] = 1
    before, after = walk.links[: walk.average_links], walk.links[walk.average_links :]
    index, lead = walk.index, lead_of(walk, before)
    scale = np.full(channels, Fraction(1, rows * columns), object)
    begin(
        walk,
        Section(
            name=mean.name, weight=weight, scale=scale, window=mean.window, size=walk.size, lead=lead,
            reads=mean.reads, order=walk.average_index, there=lead,
        ),
    )  # fmt: skip
    walk.links, walk.index, walk.average = list(after), index, None


def begin_copy(walk: Walk, following: Operation) -> None:
    """Begin a section whose weights copy every channel, for what may follow only weights; ``following`` is next."""
    channels = walk.size[2]
    check_weights(channels * channels)
    weight = np.eye(channels, dtype=np.int64).reshape(channels, 1, 1, channels)
    index, lead = walk.index, lead_of(walk, walk.links)
    begin(
        walk,
        Section(
            name=following.name, weight=weight, scale=np.full(channels, Fraction(1), object),
            window=Window(kernel=(1, 1)), size=walk.size, lead=lead, reads=following.reads, order=index, there=lead,
        ),
    )  # fmt: skip
    walk.index = index

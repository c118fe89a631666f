"""Labelled images: an array that is there already, or pictures that are read when they are needed.

Pixels are put into the shape of a network's input. Either both have the same height, width and channels (of one
channel there may be no axis), or one of them is flat: then the values are taken row by row, channel fastest.
"""

from dataclasses import dataclass, field
from math import prod
from typing import Protocol

import numpy as np

from bitloom.golden.encoding import Array, refuse_masked
from bitloom.golden.names import shown
from bitloom.golden.network import Network


class LabelledImages(Protocol):
    """Images with their labels.

    Attributes
    ----------
    name
        Where they come from.
    labels
        (N,) int64, the number of each image's class.
    classes
        Name of each class; () if the data have no names.
    """

    @property
    def name(self) -> str: ...

    @property
    def labels(self) -> Array: ...

    @property
    def classes(self) -> tuple[str, ...]: ...

    def pixels(self, begin: int, end: int) -> Array:
        """Images ``begin`` to ``end``: (end - begin, H, W, C) integers in the shape of the network's input."""


@dataclass(frozen=True)
class ArrayImages:
    """Images that lie in memory."""

    name: str
    """Where they come from."""
    images: Array
    """(N, H, W, C) integers."""
    labels: Array
    """(N,) int64."""
    classes: tuple[str, ...] = field(default=())
    """Name of each class; () if the data have no names."""

    def pixels(self, begin: int, end: int) -> Array:
        """Images ``begin`` to ``end``."""
        return self.images[begin:end]


def of_arrays(name: str, images: Array, labels: Array, network: Network) -> ArrayImages:
    """Labelled images of two arrays.

    Parameters
    ----------
    name
        Where they come from, for messages.
    images
        Integers, in one of the shapes at the top of this file.
    labels
        N integers, (N,) or (N, 1).
    network
        Whose input the images are for, and whose outputs the labels.

    Raises
    ------
    ValueError
        If the shapes don't suit, or a label is none of the network's outputs.
    """
    return ArrayImages(name, _shaped(name, images, network), checked_labels(name, labels, len(images), network))


def _shaped(name: str, images: Array, network: Network) -> Array:
    """The images as (N, H, W, C) of the network's input."""
    shape = network.input.shape
    image_shape = images.shape[1:]
    same = image_shape == shape or (shape[2] == 1 and image_shape == shape[:2])
    flat = prod(image_shape) == prod(shape) and (len(image_shape) == 1 or shape[:2] == (1, 1))
    if images.ndim < 2 or len(images) < 1 or not (same or flat):
        height, width, channels = shape
        raise ValueError(
            f"{name}: images must have shape (N, {height}, {width}, {channels}) or (N, {prod(shape)}), N >= 1, "
            f"got {images.shape}"
        )
    return images.reshape(-1, *shape)


def checked_labels(name: str, labels: Array, count: int, network: Network) -> Array:
    """Labels as (N,) int64.

    Raises
    ------
    ValueError
        Unless they are ``count`` integers, each the number of an output of the network.
    """
    refuse_masked(f"{name}: labels", labels)
    if labels.shape not in ((count,), (count, 1)):
        raise ValueError(f"{name}: labels must have shape ({count},), one for each image, got {labels.shape}")
    if labels.dtype.kind not in "iu":
        raise ValueError(f"{name}: labels must be integers, got dtype {labels.dtype}")
    outputs = network.output.channels
    wrong = labels[(labels < 0) | (labels >= outputs)]
    if wrong.size:
        raise ValueError(
            f"{name}: labels must be 0..{outputs - 1}, the outputs of {network.name}, got {shown(int(wrong.flat[0]))}"
        )
    return labels.reshape(-1).astype(np.int64)

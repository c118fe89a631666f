"""The batches of an epoch: images in random order, and a rate that falls to 0 until training ends."""

from collections.abc import Iterator
from typing import NamedTuple

from bitloom.golden.encoding import Array

from .reproducible import random_order


class Batch(NamedTuple):
    """Images from which the parameters are changed at a time."""

    chosen: Array
    """(batch,) int64: the numbers of the images."""
    share: float
    """Of the first rate: 1 at the beginning of training, and falling to 0 without a corner at either end."""


def batches(images: int, batch: int, epoch: int, epochs: int, *key: int) -> Iterator[Batch]:
    """Go once through images, in whole batches; images that are left over take no part.

    Parameters
    ----------
    images : int
    batch : int
        Images of a batch.
    epoch : int
        The epoch's number, from 0 on.
    epochs : int
        In all.
    key : int
        Names the random stream, with the epoch's number behind it.
    """
    count = images // batch
    order: Array = random_order(images, *key, epoch)[: count * batch]
    for number, chosen in enumerate(order.reshape(count, batch)):
        done = (epoch * count + number) / (epochs * count)
        yield Batch(chosen, 1 - done * done * (3 - 2 * done))

"""Labelled images that a network learns from: what ``bitloom train`` takes for DATA."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bitloom.golden.encoding import BIPOLAR, MOST_BITS, Array, Encoding, signed, signed_bits, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.names import shown
from bitloom.golden.reading.archive import Archive, listed, read_archive
from bitloom.golden.reading.file import naming
from bitloom.golden.training.reproducible import random_order
from bitloom.golden.zoo.digits import IMAGE, load_digits

TEST, HELD_OUT = 3_000_000, 2_000_000
"""Purposes in the keys of random streams that split images; those of training have smaller numbers."""
MOST_CLASSES = 1 << 12


@dataclass(frozen=True)
class TrainingData:
    """Images to learn from and others to test with."""

    name: str
    """Where the images come from."""
    source: Map
    """One image."""
    images: Array
    """(N, H, W, C) integers, to learn from."""
    labels: Array
    """(N,) int64, from 0: the classes of ``images``."""
    test_images: Array
    """(N, H, W, C) integers, to test with."""
    test_labels: Array
    """(N,) int64: the classes of ``test_images``."""
    classes: tuple[str, ...] = ()
    """Name of each class; () if they have no names."""
    tested: str = "to test"
    """Words for the test images: ``to test`` or ``held out``."""
    kept: int = 0
    """How many of the source's training images are not in ``images``, because they are kept for tests or held out."""

    def check_batch(self, batch: int) -> None:
        """ValueError, with the numbers of images, if there are fewer training images than a batch has."""
        count = len(self.images)
        if count < batch:
            rest = f" of {count + self.kept}, of which {self.kept} are kept to test with or held out"
            raise ValueError(
                f"{self.name}: images to learn from must be a batch of {batch} at least (--batch), "
                f"got {count}{rest if self.kept else ''}"
            )

    def held_out(self) -> "TrainingData":
        """The training images split anew: four fifths at random to learn from, one fifth to test with.

        Whatever is chosen by an accuracy is chosen by this one, so that the test images take no part in it.
        """
        return replace(_split(self, HELD_OUT), tested="held out")


def training_data(source: str) -> TrainingData:
    """Images by name or path.

    Parameters
    ----------
    source
        ``digits``, scikit-learn's with 360 of them to test; or the path of an npz with integers x, (N, H, W, C),
        (N, H, W) or (N, inputs), and y, N labels from 0. It may hold x_test and y_test, too; otherwise a fifth of the
        images, chosen at random but always the same, is kept to test with.

    Raises
    ------
    ImportError
        If scikit-learn is needed and missing.
    OSError
        If there is no such file.
    ValueError
        If the file is damaged, or holds something else. One line.
    """
    if source == "digits":
        digits = load_digits()
        names = tuple(str(digit) for digit in range(10))
        return TrainingData(
            source, IMAGE, digits.train_images, digits.train_labels, digits.test_images, digits.test_labels, names
        )
    archive = read_archive(Path(source))
    with naming(os.fspath(source)):
        return _of_archive(source, archive)


def _of_archive(name: str, archive: Archive) -> TrainingData:
    """The images in an npz; a ValueError begins with ``must`` or the array's name."""
    if not {"x", "y"} <= set(archive.arrays):
        raise ValueError(f"must hold arrays x and y, got {listed(archive.arrays)}")
    tests = [test for test in ("x_test", "y_test") if test in archive.arrays]
    if len(tests) == 1:
        raise ValueError(f"must hold both x_test and y_test or none of them, got {tests[0]}")
    images, labels = _pair(archive, "x", "y")
    test_images, test_labels = _pair(archive, "x_test", "y_test") if tests else (images[:0], labels[:0])
    if test_images.shape[1:] != images.shape[1:]:
        raise ValueError(
            f"x_test: images must have shape {images.shape[1:]}, as those of x, got {test_images.shape[1:]}"
        )
    height, width, channels = images.shape[1:]
    source = Map(height=height, width=width, channels=channels, encoding=_encoding(images, test_images))
    data = TrainingData(name, source, images, labels, test_images, test_labels)
    return data if tests else _split(data, TEST)


def _pair(archive: Archive, x: str, y: str) -> tuple[Array, Array]:
    """Images as (N, H, W, C) and labels as (N,) int64."""
    images = archive.array(x, "biu")
    labels = archive.array(y, "biu")
    shape = {2: (1, 1, *images.shape[1:]), 3: (*images.shape[1:], 1), 4: images.shape[1:]}.get(images.ndim)
    if shape is None or images.size == 0:
        raise ValueError(
            f"{x}: images must have shape (N, H, W, C), (N, H, W) or (N, inputs), N >= 1, got {images.shape}"
        )
    if labels.shape not in ((len(images),), (len(images), 1)):
        raise ValueError(f"{y}: labels must have shape ({len(images)},), one for each image, got {labels.shape}")
    wrong = labels[(labels < 0) | (labels >= MOST_CLASSES)]
    if wrong.size:
        raise ValueError(f"{y}: labels must be 0..{MOST_CLASSES - 1}, got {shown(int(wrong.flat[0]))}")
    wide = images.astype(np.int16) if images.dtype.kind == "b" else images
    return wide.reshape(-1, *shape), labels.reshape(-1).astype(np.int64)


def _encoding(*images: Array) -> Encoding:
    """The narrowest encoding of all values that an input may have."""
    low = min(int(some.min()) for some in images if some.size)
    high = max(int(some.max()) for some in images if some.size)
    if low >= 0:
        encoding = unsigned(max(1, high.bit_length()))
    elif all(np.isin(some, (-1, 1)).all() for some in images):
        return BIPOLAR
    else:
        encoding = signed(min(MOST_BITS, max(2, signed_bits(low, high))))
    if encoding.bits > (8 if low >= 0 else 9):
        raise ValueError(f"x: values must be 0..255 or -256..255, got {low}..{high}")
    return encoding


def _split(data: TrainingData, purpose: int) -> TrainingData:
    """A fifth of the training images as test images."""
    order = random_order(len(data.images), 0, purpose)
    rest, learned = np.split(order, [-(-len(order) // 5)])
    return replace(
        data,
        images=data.images[learned],
        labels=data.labels[learned],
        test_images=data.images[rest],
        test_labels=data.labels[rest],
        kept=data.kept + len(rest),
    )

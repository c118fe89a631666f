"""Labelled images in files: npz, npy and IDX. The first bytes of a file tell its format, not its name."""

import os
from pathlib import Path

from bitloom.golden.encoding import Array
from bitloom.golden.names import shown
from bitloom.golden.network import Network
from bitloom.golden.reading.archive import Archive, listed
from bitloom.golden.reading.file import naming, read_file
from bitloom.golden.reading.idx import GZIP, parse_idx
from bitloom.golden.reading.idx import MAGIC as IDX
from bitloom.golden.reading.npy import MAGIC as NPY
from bitloom.golden.reading.npy import parse_npy

from .labelled import ArrayImages, of_arrays

ZIP = b"PK"
INTEGERS, REAL = "biu", "biuf"
"""Kinds of dtypes that images may have."""
PAIRS = (("x", "y"), ("images", "labels"), ("x_test", "y_test"))
"""Names of the arrays of images and labels in an npz."""


def read_labelled(path: Path, network: Network, labels: Path | None = None, real: bool = False) -> ArrayImages:
    """Labelled images in a file.

    Parameters
    ----------
    path
        An npz with images and labels, named as one of PAIRS; or an npy or IDX file of images. IDX files may be
        compressed by gzip.
    network
        Whose input the images are for.
    labels
        File of the labels, npy or IDX. Without it they are in the npz, or, for IDX, in the file beside it that has
        MNIST's name for it.
    real
        Whether images may be real numbers, too.

    Raises
    ------
    OSError
        If there is no such file.
    ValueError
        If a file is another one, or no labels are found.
    """
    data = read_file(path)
    if data.startswith(ZIP):
        with naming(os.fspath(path)):
            images, label_array = _of_archive(Archive(data), labels is None, real)
    else:
        images = _array(path, data, real)
        label_array = None
        labels = labels or _beside(path, data)
    if labels is not None:
        label_array = _array(labels, read_file(labels))
    if label_array is None:
        raise ValueError(f"{path}: must have labels: give their file, npy or IDX, with --labels")
    return of_arrays(str(path), images, label_array, network)


def _of_archive(archive: Archive, labelled: bool, real: bool) -> tuple[Array, Array | None]:
    """Images and, if they are ``labelled`` there, labels of an npz."""
    pairs = [pair for pair in PAIRS if pair[0] in archive.arrays and (pair[1] in archive.arrays or not labelled)]
    if len(pairs) != 1:
        rule = " or ".join(f"{x} and {y}" if labelled else x for x, y in PAIRS)
        raise ValueError(f"must hold arrays {rule}, one of these, got {listed(archive.arrays)}")
    images, labels = pairs[0]
    return archive.array(images, REAL if real else INTEGERS), archive.array(labels) if labelled else None


def _array(path: Path, data: bytes, real: bool = False) -> Array:
    """The array in the content of an npy or IDX file."""
    with naming(os.fspath(path)):
        if data.startswith(NPY):
            return parse_npy(data, REAL if real else INTEGERS)
        if data.startswith((IDX, GZIP)):
            return parse_idx(data)
        raise ValueError(f"must be npz, npy or IDX data, got {shown(data[:6])}")


def _beside(path: Path, data: bytes) -> Path | None:
    """The file of labels beside an IDX file of images: train-images-idx3-ubyte.gz -> train-labels-idx1-ubyte.gz."""
    name = path.name.replace("images", "labels").replace("idx3", "idx1").replace("idx4", "idx1")
    if data.startswith(NPY) or name == path.name:
        return None
    plain = name.removesuffix(".gz")
    return next(
        (
            file
            for file in (path.with_name(name), path.with_name(plain), path.with_name(f"{plain}.gz"))
            if file.exists()
        ),
        None,
    )

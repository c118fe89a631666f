"""Labelled images in files: npz, npy and IDX in their usual shapes; what doesn't fit is refused in one line."""

import gzip
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden.zoo.digits import digits_cnn, load_digits
from bitloom.overlay.evaluation.data import labelled_images
from bitloom.overlay.evaluation.files import read_labelled
from tests.errors import value_error

from .networks import network

NET = network()
X = np.arange(24, dtype=np.uint8).reshape(4, 2, 3, 1)
Y = np.array([2, 0, 1, 2])


def idx(values: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    return head + values.astype("u1").tobytes()


@pytest.mark.parametrize("shape", [(4, 2, 3, 1), (4, 2, 3), (4, 6)])
@pytest.mark.parametrize("labels", [Y, Y[:, None], Y.astype(">u2")])
def test_npy_with_labels(shape, labels, tmp_path):
    np.save(tmp_path / "x.npy", X.reshape(shape))
    np.save(tmp_path / "y.npy", labels)
    images = read_labelled(tmp_path / "x.npy", NET, tmp_path / "y.npy")
    np.testing.assert_array_equal(images.images, X)
    assert images.labels.tolist() == Y.tolist()


@pytest.mark.parametrize("pack", [False, True])
@pytest.mark.parametrize("pack_labels", [False, True])
@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "t10k-images.idx3-ubyte", "images"])
def test_idx_finds_its_labels(name, pack, pack_labels, tmp_path):
    def write(name, values, packed):
        path = tmp_path / (name + ".gz" * packed)
        path.write_bytes(gzip.compress(idx(values)) if packed else idx(values))
        return path

    write(name.replace("images", "labels").replace("idx3", "idx1"), Y, pack_labels)
    images = read_labelled(write(name, X[..., 0], pack), NET)
    np.testing.assert_array_equal(images.images, X)
    assert images.labels.tolist() == Y.tolist()


def test_labels_of_another_file(tmp_path):
    """They come first, before those of the npz and those beside."""
    np.savez(tmp_path / "a.npz", x=X)
    (tmp_path / "images").write_bytes(idx(X))
    (tmp_path / "labels").write_bytes(idx(Y))
    (tmp_path / "other").write_bytes(idx(np.array([1, 1, 1, 0])))
    assert read_labelled(tmp_path / "images", NET).labels.tolist() == Y.tolist()
    for name in ("a.npz", "images"):
        assert read_labelled(tmp_path / name, NET, tmp_path / "other").labels.tolist() == [1, 1, 1, 0]


ARRAYS = "must hold arrays x and y or images and labels or x_test and y_test, one of these, got"
KINDS = "x: must be an array of truth values or integers, got dtype"
IMAGES = "images must have shape (N, 2, 3, 1) or (N, 6), N >= 1, got"
LABELS = "labels must have shape (4,), one for each image, got"


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, f"{ARRAYS} x"),
        ({"x": X, "y": Y, "images": X, "labels": Y}, f"{ARRAYS} x, y, images, labels"),
        ({}, f"{ARRAYS} no member"),
        ({"x": X.astype(float), "y": Y}, f"{KINDS} '<f8'"),
        ({"x": np.array([None]), "y": Y}, f"{KINDS} '|O'"),
        ({"x": X[:, :1], "y": Y}, f"{IMAGES} (4, 1, 3, 1)"),
        ({"x": X.reshape(4, 3, 2, 1), "y": Y}, f"{IMAGES} (4, 3, 2, 1)"),
        ({"x": X[:0], "y": Y[:0]}, f"{IMAGES} (0, 2, 3, 1)"),
        ({"x": X.ravel(), "y": Y}, f"{IMAGES} (24,)"),
        ({"x": X, "y": Y[:3]}, f"{LABELS} (3,)"),
        ({"x": X, "y": np.eye(4, 3, dtype=int)}, f"{LABELS} (4, 3)"),
        ({"x": X, "y": Y > 0}, "labels must be integers, got dtype bool"),
        ({"x": X, "y": Y + 1}, "labels must be 0..2, the outputs of tiny, got 3"),
        ({"x": X, "y": Y - 1}, "labels must be 0..2, the outputs of tiny, got -1"),
    ],
)
def test_what_is_refused_of_an_npz(arrays, message, tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    with value_error(f"{path}: {message}"):
        read_labelled(path, NET)


def test_what_is_refused_of_other_files(tmp_path):
    images, labels = tmp_path / "x.npy", tmp_path / "y"
    np.save(images, X)
    with value_error(f"{images}: must have labels: give their file, npy or IDX, with --labels"):
        read_labelled(images, NET)
    labels.write_bytes(b"0,1,2,0\n")
    with value_error(f"{labels}: must be npz, npy or IDX data, got b'0,1,2,'"):
        read_labelled(images, NET, labels)
    labels.write_bytes(idx(Y)[:-1])
    with value_error(f"{labels}: an IDX array of uint8 and shape (4,) needs 4 bytes, got 3"):
        read_labelled(images, NET, labels)
    with value_error(f"{tmp_path}: must be a file, got a folder"):
        read_labelled(images, NET, tmp_path)
    with pytest.raises(FileNotFoundError, match=re.escape(str(tmp_path / "absent"))):
        read_labelled(tmp_path / "absent", NET)
    (tmp_path / "idx3").write_bytes(idx(X))
    with value_error(f"{tmp_path / 'idx3'}: must have labels: give their file, npy or IDX, with --labels"):
        read_labelled(tmp_path / "idx3", NET)


def test_data_with_a_name():
    digits = load_digits()
    for name in ("digits", None):
        labelled = labelled_images(name, digits_cnn())
        np.testing.assert_array_equal(labelled.pixels(0, 360), digits.test_images)
        np.testing.assert_array_equal(labelled.labels, digits.test_labels)
        assert labelled.name == "digits"


def test_options_that_mean_nothing_are_refused(tmp_path):
    with value_error("tiny: DATA must be given, a file, a folder or one of digits, mnist, got none"):
        labelled_images(None, NET)
    with value_error("digits: has its own labels, so --labels must be left out, got 'y'"):
        labelled_images("digits", NET, labels=Path("y"))
    with value_error(f"{tmp_path}: has its own labels, so --labels must be left out, got 'y'"):
        labelled_images(str(tmp_path), NET, labels=Path("y"))
    with value_error("digits: --resize is for a folder of pictures, got a name"):
        labelled_images("digits", NET, resize=True)
    with value_error("a.npz: --resize is for a folder of pictures, got a file"):
        labelled_images("a.npz", NET, resize=True)
    with value_error("digits: images must have shape (N, 2, 3, 1) or (N, 6), N >= 1, got (360, 8, 8, 1)"):
        labelled_images("digits", NET)

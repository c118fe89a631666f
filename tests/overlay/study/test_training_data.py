from pathlib import Path

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed, unsigned
from bitloom.overlay.study.training_data import training_data
from tests.errors import value_error

X = np.random.default_rng(1).integers(0, 7, (10, 3, 4, 2))
Y = np.arange(10) % 3


def saved(path: Path, **arrays: np.ndarray) -> str:
    np.savez(path, **arrays)
    return str(path)


def test_a_fifth_is_kept_to_test_with(tmp_path):
    name = saved(tmp_path / "d.npz", x=X, y=Y)
    data = training_data(name)
    assert (data.source.shape, data.source.encoding, data.tested) == ((3, 4, 2), unsigned(3), "to test")
    assert [len(v) for v in (data.images, data.labels, data.test_images, data.test_labels)] == [8, 8, 2, 2]
    seen = {image.tobytes(): label for image, label in zip(X.astype(np.int64), Y.tolist())}
    both = [*zip(data.images, data.labels), *zip(data.test_images, data.test_labels)]
    assert [seen[image.astype(np.int64).tobytes()] for image, _ in both] == [label for _, label in both]
    assert len({image.tobytes() for image, _ in both}) == len(seen)
    np.testing.assert_array_equal(training_data(name).test_images, data.test_images)


def test_fewer_images_than_a_batch(tmp_path):
    """Those that are kept are told, for the file has more."""
    name, both = saved(tmp_path / "d.npz", x=X, y=Y), saved(tmp_path / "t.npz", x=X, y=Y, x_test=X, y_test=Y)
    rule = "images to learn from must be a batch of {} at least (--batch), got {}"
    training_data(name).check_batch(8)
    with value_error(f"{name}: {rule.format(9, 8)} of 10, of which 2 are kept to test with or held out"):
        training_data(name).check_batch(9)
    with value_error(f"{name}: {rule.format(7, 6)} of 10, of which 4 are kept to test with or held out"):
        training_data(name).held_out().check_batch(7)
    with value_error(f"{both}: {rule.format(11, 10)}"):
        training_data(both).check_batch(11)


def test_test_images_of_the_file_stay_out_of_what_is_held_out(tmp_path):
    data = training_data(saved(tmp_path / "d.npz", x=X, y=Y[:, None], x_test=X[:1] + 8, y_test=Y[:1]))
    assert (data.source.encoding, len(data.images), len(data.test_images)) == (unsigned(4), 10, 1)
    held = data.held_out()
    assert (len(held.images), len(held.test_images), held.tested) == (8, 2, "held out")
    assert held.test_images.max() < 8


@pytest.mark.parametrize(
    ("x", "shape", "encoding"),
    [
        (X[..., 0], (3, 4, 1), unsigned(3)),
        (X[:, 0, :, 0], (1, 1, 4), unsigned(3)),
        (X % 2 == 1, (3, 4, 2), unsigned(1)),
        (X % 2 * 2 - 1, (3, 4, 2), BIPOLAR),
        (X - 3, (3, 4, 2), signed(3)),
        (X * 40, (3, 4, 2), unsigned(8)),
        (X * 85 - 256, (3, 4, 2), signed(9)),
    ],
)
def test_shapes_and_encodings(tmp_path, x, shape, encoding):
    data = training_data(saved(tmp_path / "d.npz", x=x, y=Y))
    assert (data.source.shape, data.source.encoding) == (shape, encoding)
    encoding.check("x", data.images)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "must hold arrays x and y, got x"),
        ({"x": X, "y": Y, "x_test": X}, "must hold both x_test and y_test or none of them, got x_test"),
        (
            {"x": X, "y": Y, "x_test": X[:, :2], "y_test": Y},
            "x_test: images must have shape (3, 4, 2), as those of x, got (2, 4, 2)",
        ),
        (
            {"x": X[:, 0, 0, 0], "y": Y},
            "x: images must have shape (N, H, W, C), (N, H, W) or (N, inputs), N >= 1, got (10,)",
        ),
        (
            {"x": X[:0], "y": Y[:0]},
            "x: images must have shape (N, H, W, C), (N, H, W) or (N, inputs), N >= 1, got (0, 3, 4, 2)",
        ),
        ({"x": X, "y": Y[:4]}, "y: labels must have shape (10,), one for each image, got (4,)"),
        ({"x": X, "y": Y - 1}, "y: labels must be 0..4095, got -1"),
        ({"x": X, "y": Y + 4095}, "y: labels must be 0..4095, got 4096"),
        ({"x": X * 100, "y": Y}, "x: values must be 0..255 or -256..255, got 0..600"),
        ({"x": X * 100 - 1, "y": Y}, "x: values must be 0..255 or -256..255, got -1..599"),
    ],
)
def test_data_that_do_not_suit(tmp_path, arrays, message):
    name = saved(tmp_path / "d.npz", **arrays)
    with value_error(f"{name}: {message}"):
        training_data(name)

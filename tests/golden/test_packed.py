import numpy as np
import pytest

from golden import packed
from golden.conv import Conv, Dense
from golden.encoding import BIPOLAR, Encoding, signed, unsigned
from golden.network import Model, Network
from golden.threshold import Threshold
from tests.cases import case_map, cases, integer_cases, random_images
from tests.errors import value_error

CASES = dict(cases() + integer_cases())


@pytest.mark.parametrize("name", CASES)
def test_every_layer_equals_the_plain_pass(name):
    model = CASES[name]
    x = random_images(model, 7, np.random.default_rng(1))
    plain = model.trace(x)
    for batch in (None, 3):
        fast = packed.trace(model, x, batch=batch)
        assert len(fast) == len(plain)
        for a, b in zip(plain, fast):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(packed.forward(model, x, batch=batch), plain[-1])


def one_layer(encoding: Encoding, weight: Encoding, w: list[int], threshold: int | None = None) -> Model:
    """A dense layer with the given weights of one kernel."""
    layers = (Dense(name="dense_1", out_channels=1, weight=weight), Threshold(name="threshold_1"))
    arrays = {"dense_1": {"weight": np.array(w).reshape(1, 1, 1, -1)}}
    if threshold is not None:
        arrays["threshold_1"] = {"threshold": np.array([[threshold]]), "direction": np.array([1])}
    source = case_map(1, 1, len(w), encoding)
    return Model(Network(name="one", input=source, layers=layers[: len(arrays)]), arrays)


@pytest.mark.parametrize(
    ("bits", "dtype"),
    [(22, np.float32), (23, np.float64), (24, np.float64), (51, np.float64), (52, np.int64), (53, np.int64)],
)
def test_sums_are_exact_at_the_limit_of_each_dtype(bits, dtype):
    """2^24 + 1 is not a float32 and 2^53 + 1 is not a float64."""
    model = one_layer(unsigned(bits), BIPOLAR, [1, 1])
    assert packed.value_dtype(model.network.output) == dtype
    x = np.array([2**bits - 1, 2]).reshape(1, 1, 1, 2)
    assert packed.forward(model, x).item() == 2**bits + 1


@pytest.mark.parametrize("bits", [20, 21, 30, 50])
def test_a_threshold_next_to_a_large_sum_is_exact(bits):
    top = 2 ** (bits - 1) - 1
    x = np.array([[top], [top - 1]]).reshape(2, 1, 1, 1)
    weight = -8 if bits < 28 else -1
    at = weight * (top - 1)  # the larger of both sums
    model = one_layer(signed(bits), signed(4), [weight], max(at, -(2**31)))
    np.testing.assert_array_equal(packed.forward(model, x), model.forward(x))


@pytest.mark.parametrize("threshold", [-(2**31), -129, -128, 127, 128, 2**31 - 1])
def test_thresholds_out_of_reach_stay_out_of_reach(threshold):
    arrays = {"threshold_1": {"threshold": np.full((2, 1), threshold), "direction": np.array([1, -1])}}
    layers = (Threshold(name="threshold_1"),)
    model = Model(Network(name="t", input=case_map(16, 16, 2, signed(8)), layers=layers), arrays)
    x = np.repeat(np.arange(-128, 128).reshape(1, 16, 16, 1), 2, axis=3)
    np.testing.assert_array_equal(packed.forward(model, x), model.forward(x))


def test_large_values_equal_the_plain_pass():
    for encoding in (signed(16), signed(24), signed(25), signed(26), unsigned(31), signed(54), signed(55)):
        conv = Conv(name="conv_1", out_channels=3, kernel=(2, 2), padding=(1, 0, 0, 1))
        layers = (conv, Threshold(name="threshold_1"))
        rng = np.random.default_rng(encoding.bits)
        arrays = {
            "conv_1": {"weight": rng.choice([-1, 1], (3, 2, 2, 2))},
            "threshold_1": {"threshold": rng.integers(-9, 9, (3, 1)), "direction": np.array([1, -1, 1])},
        }
        model = Model(Network(name="wide", input=case_map(3, 4, 2, encoding), layers=layers), arrays)
        for a, b in zip(model.trace(x := random_images(model, 3, rng)), packed.trace(model, x)):
            np.testing.assert_array_equal(a, b)


def test_no_images_give_an_empty_result():
    model = CASES["small_cnn"]
    x = random_images(model, 0, np.random.default_rng(1))
    assert packed.forward(model, x).shape == (0, 1, 1, 10)
    assert [a.shape[0] for a in packed.trace(model, x)] == [0] * 8


def test_progress_is_told_after_each_batch():
    model, seen = CASES["fan_in_1"], []
    x = random_images(model, 7, np.random.default_rng(1))
    packed.forward(model, x, batch=3, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 7), (6, 7), (7, 7)]


def test_the_default_batch_bounds_the_windows():
    # conv_1 of small_cnn: 7 x 10 windows of 27 values; conv_2: 3 x 4 windows of 6 * 33: the larger
    assert packed.default_batch(CASES["small_cnn"]) == packed.COLUMNS // (3 * 4 * 6 * 33)


def test_images_and_batch_are_checked():
    model = CASES["fan_in_1"]
    with value_error("fan_in_1: images must have shape (N, 1, 1, 1), got (1, 1)"):
        packed.forward(model, np.ones((1, 1), np.int8))
    with value_error("fan_in_1: batch must be >= 1, got 0"):
        packed.forward(model, np.ones((1, 1, 1, 1), np.int8), batch=0)

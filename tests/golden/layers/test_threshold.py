import numpy as np
import pytest

from bitloom.golden.encoding import bipolar, signed
from bitloom.golden.layers.threshold import Threshold
from tests.cases import case_map
from tests.errors import value_error


def outputs(threshold: list[list[int]], direction: list[int]) -> list[list[int]]:
    """Per channel, the layer's values for x = -3 .. 3."""
    layer = Threshold(name="threshold_1", levels=len(threshold[0]))
    source = case_map(1, 7, len(direction), signed(3))
    x = np.repeat(np.arange(-3, 4).reshape(1, 1, 7, 1), len(direction), axis=3)
    arrays = {"threshold": np.array(threshold), "direction": np.array(direction)}
    layer.check_arrays(arrays, source)
    assert layer.output(source) == case_map(1, 7, len(direction), bipolar(layer.levels))
    y = layer.forward(x, arrays, source)
    bits = layer.bits(x, arrays)
    np.testing.assert_array_equal(2 * bits.sum(axis=-1, dtype=int) - layer.levels, y)
    return y[0, 0].T.tolist()


def test_one_threshold_in_both_directions():
    assert outputs([[1], [1], [-3], [-4], [4], [3]], [1, -1, 1, -1, 1, -1]) == [
        [-1, -1, -1, -1, 1, 1, 1],
        [1, 1, 1, 1, 1, -1, -1],
        [1] * 7,
        [-1] * 7,
        [-1] * 7,
        [1] * 7,
    ]


def test_several_thresholds_give_their_sum():
    assert outputs([[-1, 0, 3], [-1, 0, 3], [2, 2, 2]], [1, -1, 1]) == [
        [-3, -3, -1, 1, 1, 1, 3],
        [3, 3, 3, 1, -1, -1, -1],
        [-3, -3, -3, -3, -3, 3, 3],
    ]


def test_bits_are_in_the_order_of_the_thresholds():
    layer = Threshold(name="t", levels=3)
    arrays = {"threshold": np.array([[5, -5, 0]]), "direction": np.array([1])}
    assert layer.bits(np.array([[0]]), arrays).tolist() == [[[0, 1, 1]]]


def check(threshold: np.ndarray, direction: np.ndarray) -> None:
    arrays = {"threshold": threshold, "direction": direction}
    Threshold(name="threshold_1", levels=2).check_arrays(arrays, case_map(1, 1, 3, signed(8)))


ZEROS = np.zeros((3, 2), int)
ONES = np.ones(3, int)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Threshold(name="threshold_1", levels=0), "threshold_1: levels must be 1..62, got 0"),
        (lambda: Threshold(name="threshold_1", levels=63), "threshold_1: levels must be 1..62, got 63"),
        (lambda: Threshold(name="threshold_1", levels=1.0), "threshold_1: levels must be 1..62, got 1.0"),
        (lambda: check(ZEROS[:, :1], ONES), "threshold_1.threshold: shape must be (3, 2), got (3, 1)"),
        (lambda: check(ZEROS, ONES[:2]), "threshold_1.direction: shape must be (3,), got (2,)"),
        (lambda: check(ZEROS, ONES * 0.5), "threshold_1.direction: dtype must be integer, got float64"),
        (lambda: check(ZEROS, ONES - 1), "threshold_1.direction: values must be -1 or 1, got 0"),
        (
            lambda: check(ZEROS + 2**31, ONES),
            "threshold_1.threshold: values must be signed 32 bit (-2147483648..2147483647), got 2147483648",
        ),
        (
            lambda: check(ZEROS - 2**31 - 1, ONES),
            "threshold_1.threshold: values must be signed 32 bit (-2147483648..2147483647), got -2147483649",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()


def test_thresholds_may_use_all_32_bits():
    check(np.array([[-(2**31), 2**31 - 1]] * 3), ONES)

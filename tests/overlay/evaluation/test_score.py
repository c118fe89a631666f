"""Scores by hand and by scikit-learn; classes by both rules; images in pieces."""

import numpy as np
import pytest

from bitloom.golden.layers.conv import Conv
from bitloom.golden.network import Network
from bitloom.golden.transform import Transform
from bitloom.overlay.evaluation.labelled import of_arrays
from bitloom.overlay.evaluation.score import Score, class_rule, classifier, evaluate, wilson
from tests.errors import value_error

from .networks import corners, network

PIXELS = np.array([[9, 9, 9, 9], [9, 9, 0, 0], [9, 0, 9, 0], [0, 0, 0, 0], [0, 0, 9, 9], [0, 9, 0, 9]], np.uint8)
"""Outputs (sums): 4 0 0; 0 4 0; 0 0 4; -4 0 0; 0 -4 0; 0 0 -4."""


def evaluated(rule: str, labels: list[int], bits: bool = False, **options) -> Score:
    model = corners(bits)
    data = of_arrays("made", PIXELS, np.array(labels), model.network)
    return evaluate(model, data, transform=Transform("threshold:5"), classify=classifier(rule), **options)


def test_the_largest_output_tells_the_class_of_equal_ones_the_first():
    score = evaluated("largest", [0, 1, 2, 1, 0, 0])
    assert (score.images, score.right, score.accuracy) == (6, 6, 1.0)
    assert score.confusion.tolist() == [[3, 0, 0], [0, 2, 0], [0, 0, 1]]
    assert score.classes == ("0", "1", "2")


def test_the_highest_output_that_is_set_tells_the_class():
    """With bits of sums >= 2: 0, 1, 2, and none for the others."""
    assert class_rule(corners(bits=True).network) == "highest-set"
    score = evaluated("highest-set", [0, 1, 2, 0, 0, 2], bits=True)
    assert score.confusion.tolist() == [[3, 0, 0], [0, 1, 0], [1, 0, 1]]
    assert score.confused(5) == [(2, 0, 1)]


def test_the_rule_follows_from_the_output():
    sums = corners().network
    assert class_rule(sums) == "largest"
    assert class_rule(sums, "highest-set") == "highest-set"


def test_a_class_needs_one_output():
    wide = Network(name="wide", input=network().input, layers=(Conv(name="conv", out_channels=4, kernel=(1, 1)),))
    with value_error("wide: the output must be 1 x 1 x classes to tell a class, got shape (2, 3, 4)"):
        class_rule(wide)


def test_figures_equal_those_of_scikit_learn():
    from sklearn.metrics import confusion_matrix, recall_score  # which take long to import

    rng = np.random.default_rng(3)
    labels, predictions = rng.integers(0, 6, 500), rng.integers(0, 7, 500)
    confusion = confusion_matrix(labels, predictions, labels=range(7))
    score = Score(tuple("abcdefg"), confusion)
    assert score.accuracy == pytest.approx((labels == predictions).mean())
    recall = recall_score(labels, predictions, labels=range(6), average=None)
    assert score.recall[:6] == pytest.approx(recall.tolist())
    assert score.recall[6] is None
    wrong = sorted(((row != column) * count, row, column) for (row, column), count in np.ndenumerate(confusion))
    assert [count for _, _, count in score.confused(9)] == [int(count) for count, _, _ in wrong[:-10:-1]]
    assert all(count == confusion[row, column] for row, column, count in score.confused(9))


@pytest.mark.parametrize(("right", "images"), [(0, 10), (10, 10), (1, 2), (0, 1), (354, 360), (9840, 10000)])
def test_wilson_equals_scipy(right, images):
    from scipy.stats import binomtest  # which takes long to import

    interval = binomtest(right, images).proportion_ci(0.95, method="wilson")
    assert wilson(right, images) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_values_that_the_input_cannot_have_are_refused():
    model = corners()
    data = of_arrays("made", PIXELS, np.zeros(6, int), model.network)
    with value_error("made: images with transform none: values must be bipolar 1 bit (-1..1 in steps of 2), got 9"):
        evaluate(model, data, transform=Transform("none"), classify=classifier("largest"))
    with value_error("made: transform fixed:8: pixels must be 0..255, got 0..900"):
        wide = of_arrays("made", PIXELS.astype(int) * 100, np.zeros(6, int), model.network)
        evaluate(model, wide, transform=Transform("fixed:8"), classify=classifier("largest"))
    with value_error("made: --limit must be <= 6, the images that there are, got 7"):
        evaluated("largest", [0] * 6, limit=7)

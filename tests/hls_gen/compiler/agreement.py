"""The check that lowered layers compute what golden computes."""

import numpy as np

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.lowering import Lowered
from tests.cases import random_images


def agree(model: Model, lowered: Lowered) -> None:
    """On 40 random images, whose results are not all the same."""
    images = random_images(model, 40, np.random.default_rng(4))
    golden = model.forward(images)
    assert len(np.unique(golden)) > 1
    np.testing.assert_array_equal(device_results(lowered, images), golden)


def device_results(lowered: Lowered, images: np.ndarray) -> np.ndarray:
    """Results of the lowered layers as golden has them: bits 0 and 1 stand for -1 and 1, and a value is the sum of its
    thermometer bits."""
    result = lowered.forward(images)
    if result.dtype != np.uint8:
        return result
    return (2 * result.astype(int) - 1).reshape(*result.shape[:3], -1, lowered.layers[-1].levels).sum(axis=4)

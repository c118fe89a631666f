"""The check that lowered layers compute what golden computes."""

import numpy as np

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.lowering import Lowered
from tests.cases import random_images


def agree(model: Model, lowered: Lowered) -> None:
    """On 40 random images, whose results are not all the same; bits 0 and 1 stand for -1 and 1."""
    images = random_images(model, 40, np.random.default_rng(4))
    golden = model.forward(images)
    assert len(np.unique(golden)) > 1
    result = lowered.forward(images)
    np.testing.assert_array_equal(2 * result.astype(int) - 1 if result.dtype == np.uint8 else result, golden)

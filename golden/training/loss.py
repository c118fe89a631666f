"""The loss, which training makes small."""

from math import fsum

import numpy as np

from bitloom.golden.encoding import Array

from .reproducible import to_grid


def hinge(output: Array, labels: Array, scale: float, margin: float) -> tuple[Array, Array]:
    """Squared hinge loss.

    The loss is the sum over classes of ``max(0, margin - t * scale * output)^2``, where t is +1 for the label's class
    and -1 for others.

    Parameters
    ----------
    output : (N, classes) float64
        Accumulators of the last layer.
    labels : (N,) integers
    scale, margin : float
        See `Recipe`.

    Returns
    -------
    (N,) float64
        Losses.
    (N, classes) float64
        Errors, on the grid: half the derivative by ``scale * output``, since Adam takes no notice of constant factors.
    """
    t = np.where(labels[:, None] == np.arange(output.shape[1]), 1.0, -1.0)
    gap = np.maximum(0.0, margin - t * (output * scale))
    return np.array([fsum(row) for row in (gap * gap).tolist()]), to_grid(-t * gap)

"""Losses, which training makes small: one number for each image of a batch."""

import numpy as np

from bitloom.golden.encoding import Array


def loss(name: str, output: Array, labels: Array) -> tuple[Array, Array]:
    """A loss and its derivative.

    Parameters
    ----------
    name : str
        "cross_entropy": of softmax. "squared_error": half the sum of squares of output less target, which is +1 for the
        label's class and -1 for others: the training machine's, with which its words are compared.
    output : (N, classes) float64 or float32
    labels : (N,) integers

    Returns
    -------
    (N,) of the same type
        Losses.
    (N, classes) of the same type
        Derivative of each image's loss by its output.
    """
    right = labels[:, None] == np.arange(output.shape[1])
    if name == "squared_error":
        gap = output - np.where(right, 1.0, -1.0).astype(output.dtype)
        return (gap * gap).sum(axis=1) / 2, gap
    shifted = output - output.max(axis=1, keepdims=True)
    powers = np.exp(shifted)
    total = powers.sum(axis=1, keepdims=True)
    return np.log(total[:, 0]) - shifted[right], powers / total - right

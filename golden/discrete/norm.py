"""Batch normalisation for training, over the batch or with preset mean and variance (C20).

n = gamma * (z - mean) / sqrt(variance + EPSILON) + beta
"""

from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.batch_norm import Moments

EPSILON = 1e-5


class NormTape(NamedTuple):
    """Values of a forward pass that the derivative needs."""

    hat: Array
    """(N, outputs), z less mean over deviation."""
    inverse: Array
    """(outputs,), 1 / sqrt(variance + EPSILON)."""
    moments: Moments
    """Mean and variance that were used."""
    preset: bool
    """Whether they were given, so that they don't depend on the batch."""


def moments(z: Array) -> Moments:
    """Mean and variance over a batch, (N, outputs) floats."""
    return Moments(z.mean(axis=0), z.var(axis=0))


def normalise(z: Array, gamma: Array, beta: Array, preset: Moments | None = None) -> tuple[Array, NormTape]:
    """Normalise a batch.

    Parameters
    ----------
    z : (N, outputs) floats
    gamma, beta : (outputs,) floats
    preset : Moments, optional
        By default those of the batch.

    Returns
    -------
    (N, outputs) floats
    NormTape
        For `normalise_backward`.
    """
    used = moments(z) if preset is None else preset
    inverse = 1 / np.sqrt(used.variance + EPSILON)
    hat = (z - used.mean) * inverse
    return hat * gamma + beta, NormTape(hat, inverse, used, preset is not None)


def normalise_backward(tape: NormTape, gamma: Array, gradient: Array) -> tuple[Array, Array, Array]:
    """The derivatives of `normalise`.

    Parameters
    ----------
    tape : NormTape
    gamma : (outputs,) floats
    gradient : (N, outputs) floats
        Derivatives of the loss by the result.

    Returns
    -------
    (N, outputs), (outputs,) and (outputs,) floats
        Derivatives by z, by gamma and by beta; those by gamma and beta are summed over the batch.
    """
    by_gamma = (gradient * tape.hat).sum(axis=0)
    by_beta = gradient.sum(axis=0)
    if not tape.preset:  # mean and variance move with each z of the batch
        gradient = gradient - (by_beta + tape.hat * by_gamma) / len(gradient)
    return gradient * (gamma * tape.inverse), by_gamma, by_beta

"""Activations of discrete training and their derivatives.

====  ==============  =======================
name  y               derivative
====  ==============  =======================
relu  max(x, 0)       1 where x > 0, else 0
clip  x within +-1    1 where |x| <= 1, else 0
none  x               1
====  ==============  =======================

PyTorch calls the clip hard tanh. A layer whose input is converted to one bit after a clip has sign activations with the
straight-through estimator: the converter takes the sign, and the clip's derivative says where it counts as x itself.
"""

import numpy as np

from bitloom.golden.encoding import Array

ACTIVATIONS = ("relu", "clip", "none")


def activate(name: str, x: Array, unity: float = 1) -> tuple[Array, Array]:
    """An activation and its derivative.

    Parameters
    ----------
    name : str
        One of `ACTIVATIONS`.
    x : (...) real numbers, or words
    unity : float
        Number that stands for 1: 1, or a format's word of 1.

    Returns
    -------
    y : (...), as x
    derivative : (...), as x
        0 or ``unity``.
    """
    if name == "relu":
        return np.maximum(x, 0), np.multiply(x > 0, unity, dtype=x.dtype)
    if name == "clip":
        return np.clip(x, -unity, unity), np.multiply(np.abs(x) <= unity, unity, dtype=x.dtype)
    return x, np.full_like(x, unity)

"""Everything low-bit is XNOR and popcount: layers as the binary engine computes them
(hls_gen/compiler/lowered_layers.py), exact rewritings of the plain ones.

The rewritings, each of which tests/hls_gen/compiler/test_lowering.py shows to be exact:

* *matches*: with bipolar features and weights, matches minus mismatches = 2 * matches - channels, per tap, also
  beside padding.
* *thermometer*: a bipolar value of k bits is k bipolar channels; its weight is repeated k times.
* *ternary weights* are the sum of two bipolar weights, halved: every tap is visited twice (``visits``). The halving
  goes into sum and offset, or, where that is not exact, into doubled thresholds.
* *bit planes*: an integer of b bits in two's complement is b planes with coefficients 1, 2, ..., -2^(b-1). With
  feature bits f and weights +-1, sum x w = sum of c_k popcount(XNOR(f_k, w)) + number of -1 weights, since the c_k add
  up to -1; that number is one more plane of coefficient 1, feature 1 and the weight bit inverted. An unsigned b-bit
  value is a signed one of b + 1 bits.
* *direction*: x <= T is -x >= -T: the kernel's weights change sign. After a max pool, where that is not exact, the
  complement x >= T + 1 is computed instead, and the next layer's weights for that channel are inverted. So it is where
  words are ORed: no other weights have the sum with its sign changed.
* *min pool*: the smallest bit is the complement of the largest of the complements, x < T, which the engine's OR finds.
  After a min pool x <= T is the OR of the bits x <= T.
"""

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Array, Encoding
from bitloom.golden.graph import INPUT
from bitloom.golden.layers.pool import MinPool, Pool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model

from . import signs
from .depthwise import plain_of
from .fixed_kernels import fixed_point, magnitudes
from .lowered_layers import BinaryLayer
from .parts import Part
from .pools import thresholds_of

TAILS = (
    (), ("threshold",), ("threshold", "max_pool"), ("max_pool", "threshold"), ("threshold", "min_pool"),
    ("min_pool", "threshold"),
)  # fmt: skip
"""Kinds of layers that may follow a weighted one and are lowered with it."""

OR_TAILS = ((), ("max_pool",))
"""The same where it accumulates by OR: what it gives are bits."""


def input_planes(encoding: Encoding) -> int:
    """Bits in two's complement that hold every value of a signed, unsigned or ternary encoding."""
    return encoding.bits + (encoding.kind == "unsigned")


def plane_coefficients(bits: int) -> Array:
    """Coefficients (bits + 1,) of the planes of a number in two's complement, and of the constant plane."""
    powers = np.left_shift(np.int64(1), np.arange(bits))
    powers[-1] = -powers[-1]
    return np.append(powers, 1)


def binariser(model: Model, layer: Threshold, bits: int) -> tuple[Array, Array]:
    """Turn the layer that makes the input binary into rising thresholds (spec A9).

    Parameters
    ----------
    model : Model
        Gives the arrays and the input map.
    layer : Threshold
        The layer that reads the input.
    bits : int
        Of the features that the binariser takes, in two's complement.

    Returns
    -------
    (channels,) int64
        Thresholds: a bit is 1 where x >= threshold.
    (channels,) bool
        Which of these bits are complements of the layer's.

    Raises
    ------
    ValueError
        If the layer has several levels, or the input doesn't fit the bits.
    """
    source = model.network.input.encoding
    if source.kind == "bipolar" or input_planes(source) > bits or layer.levels != 1:
        raise ValueError(
            f"{layer.name}: the binariser makes one bit of integers of {bits} bits in two's complement, "
            f"got {layer.levels} levels of {source}"
        )
    arrays = model.arrays[layer.name]
    down = arrays["direction"] < 0
    limits = arrays["threshold"][:, 0].astype(np.int64) + down
    return np.clip(limits, -(1 << (bits - 1)), 1 << (bits - 1)), down


def check(part: Part) -> None:
    """Raise ValueError unless the engine can compute this part."""
    layer, source, kinds = part.layer, part.source, part.tail_kinds
    if layer.accumulate == "or":
        if kinds not in OR_TAILS:
            raise ValueError(
                f"{layer.name}: what follows accumulate or must be nothing or max_pool, got {', '.join(kinds)}"
            )
        return
    if part.reads == INPUT and "requantise" in kinds and "threshold" not in kinds:
        _check_first_pool(part)
    if "requantise" in kinds:
        signs.check(part)
    elif kinds not in TAILS:
        raise ValueError(
            f"{layer.name}: what follows must be nothing, threshold, or threshold and a max_pool or min_pool in "
            f"either order, got {', '.join(kinds)}"
        )
    if not kinds and part.readers:
        raise ValueError(f"{layer.name}: a threshold must follow before the next layer, got none")
    if layer.weight not in (BIPOLAR, TERNARY):
        raise ValueError(f"{layer.name}: weight must be bipolar 1 bit or ternary, got {layer.weight}")
    even = source.encoding.kind == "bipolar" and source.channels * source.encoding.bits % 2 == 0
    if not kinds and layer.weight == TERNARY and not even:
        raise ValueError(
            f"{layer.name}: ternary weights without a threshold need a bipolar map with an even number of bits at "
            f"each position, got {source.channels} channels of {source.encoding}"
        )


def _check_first_pool(part: Part) -> None:
    """Raise ValueError if a part is a copy of the input's integers (hls_gen/compiler/tail_copies.py) for a pool whose
    results are integers again."""
    pool = next((layer for layer in part.tail if isinstance(layer, Pool)), None)
    if pool is not None:
        readers = " and ".join(part.readers) or "the host"
        raise ValueError(
            f"{pool.name}: on a binary NPU thresholds must follow a pool of the input's integers, got {readers}; "
            "integer NPUs need none"
        )


def binary_layer(model: Model, part: Part, inverted: Array, planes: int) -> tuple[BinaryLayer, Array]:
    """Rewrite one part.

    Parameters
    ----------
    model : Model
        Gives the arrays.
    part : Part
        What `check` accepts.
    inverted : (bits,) bool
        Which of the bits that the part reads are complements.
    planes : int
        Planes of an integer input without the constant one; 0 for a map of bits.

    Returns
    -------
    BinaryLayer
    (bits,) bool
        Which of the bits that the lowered layer makes are complements.
    """
    layer, source = part.layer, part.source
    window, any_match = part.window, layer.accumulate == "or"
    low, high = (0, 1) if any_match else part.accumulator_range
    rule = signs.rule(model, part) if "requantise" in part.tail_kinds else None
    weight, threshold, complement = _rising(model, part) if rule is None else signs.rising(model, part)
    halves = [weight]
    if layer.weight == TERNARY:
        halves = [np.where(weight > 0, 1, -1), np.where(weight < 0, -1, 1)]  # w = (a + b) / 2
    weight = np.stack(halves, axis=2).reshape(layer.out_channels, -1, source.channels)  # (O, taps * visits, C)
    lanes = _lanes(weight, source.encoding, planes, inverted)
    taps = layer.window(source).taps
    terms = layer.terms(source) // taps if layer.word_channels else lanes.shape[2]  # of a tap
    double, offset = (False, 0) if planes or any_match else (True, terms)
    if len(halves) == 2 and double and offset % 2 == 0:  # the visits' sum is twice the accumulator: halve both terms
        double, offset = False, offset // 2
    elif len(halves) == 2 and threshold is not None:
        low, high, threshold = 2 * low, 2 * high, np.minimum(2 * threshold, 2 * high + 1)  # high + 1: out of reach
        rule = None if rule is None else rule.of_doubled()
    made = BinaryLayer(
        name=part.name,
        reads=part.reads,
        joins=part.joins,
        height=source.height,
        width=source.width,
        window=window,
        visits=len(halves),
        weight=lanes,
        coefficient=plane_coefficients(planes) if planes else np.ones(1, np.int64),
        double=double,
        tap_offset=offset,
        threshold=threshold,
        pool=next((t.window for t in part.tail if isinstance(t, Pool)), None),
        value_range=(low, high),
        any_match=any_match,
        word_channels=layer.word_channels,
        scale=None if rule is None else rule.scale,
        addition=None if rule is None else rule.addition,
        magnitude=_magnitude(model, part, planes) if layer.real_weights else None,
    )
    return made, complement


def _magnitude(model: Model, part: Part, planes: int) -> Array:
    """(O, taps, channels, planes) magnitudes of real weights, in the lanes of these."""
    given = magnitudes(fixed_point(model.arrays[part.name]["weight"]))
    plain = given.reshape(len(given), -1, part.source.channels)
    if planes:
        return np.repeat(plain[..., None], planes + 1, axis=3)
    return np.repeat(plain, part.source.encoding.bits, axis=2)[..., None]


def _rising(model: Model, part: Part) -> tuple[Array, Array | None, Array]:
    """Weights (O, taps, C) and thresholds (O, levels) such that each bit is value >= threshold, and which of the bits
    (O * levels) are complements; no thresholds where values are the result. See "direction" in the module's text."""
    layer, source, arrays = part.layer, part.source, model.arrays
    weight = plain_of(model, part).reshape(layer.out_channels, -1, source.channels)
    if layer.accumulate == "or":
        return weight, np.ones((layer.out_channels, 1), np.int64), np.zeros(layer.out_channels, bool)
    act = next((layer for layer in part.tail if isinstance(layer, Threshold)), None)
    if act is None:
        return weight, None, np.zeros(0, bool)
    threshold, down = thresholds_of(model, part, act), arrays[act.name]["direction"] < 0
    pool = next((t for t in part.tail if isinstance(t, Pool)), None)
    pool_first = down & isinstance(part.tail[0], Pool)  # then the largest x makes the smallest bit
    complement = down if layer.word_channels and pool is None else pool_first ^ isinstance(pool, MinPool)
    falls = down ^ complement  # the bit that is computed is 1 for small x: the kernel changes sign
    if layer.word_channels and pool is not None:
        _check_words_pool(act, pool, part.tail[0] is pool, falls)
    weight = np.where(falls[:, None, None], -weight, weight)
    least = threshold + (complement & down)[:, None]
    most = threshold - (complement & ~down)[:, None]
    low, high = part.accumulator_range
    limit = np.clip(np.where(falls[:, None], -most, least), low, high + 1)
    return weight, limit, np.repeat(complement, act.levels)


def _check_words_pool(act: Threshold, pool: Pool, pool_first: bool, falls: Array) -> None:
    """ValueError where a pool behind ``accumulate="or_words"`` needs bits of small sums, as ``falls`` tells by channel.

    The engine's pool ORs bits that are 1 for large sums. Other weights that give the sum with its sign changed, which
    make a bit of small sums one of large sums elsewhere, words don't have.
    """
    if not falls.any():
        return
    if pool_first:
        raise ValueError(
            f"{pool.name}: accumulate or_words must have no {pool.kind} before its threshold, got one: a pool behind "
            "the threshold needs directions of -1"
        )
    fits = -1 if isinstance(pool, MinPool) else 1
    raise ValueError(
        f"{act.name}: between accumulate or_words and a {pool.kind} every direction must be {fits}, got {-fits} in "
        f"{int(falls.sum())} of {len(falls)} channels"
    )


def _lanes(weight: Array, encoding: Encoding, planes: int, inverted: Array) -> Array:
    """(O, places, C) weights of +-1 for a map of ``encoding`` -> (O, places, channels, planes) bits."""
    bits: Array = weight > 0
    if planes:
        lanes: Array = np.concatenate([np.repeat(bits[..., None], planes, axis=3), ~bits[..., None]], axis=3)
    else:
        lanes = (np.repeat(bits, encoding.bits, axis=2) ^ inverted)[..., None]
    return lanes.astype(np.uint8)

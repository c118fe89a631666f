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
  complement x >= T + 1 is computed instead, and the next layer's weights for that channel are inverted. The same is
  done where words are ORed, since no weights give that sum with its sign changed.
* *signs*: in residual networks bits are the signs of integers, x >= 0 or the complement of x <= -1
  (docs/decisions/0022).
* *min pool*: the smallest bit is the complement of the largest of the complements, x < T, which the engine's OR finds.
  After a min pool x <= T is the OR of the bits x <= T.
"""

from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import TERNARY, Array, Encoding
from bitloom.golden.layers.pool import MaxPool, MinPool, Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model

from .actions import Action, Scale, Thresholds, actions_of
from .depthwise import plain_of
from .engine_rules import stored_bits
from .fixed_kernels import fixed_point, magnitudes
from .lowered_layers import LoweredLayer, Xnor
from .ranges import Range
from .segments import Segment
from .workloads import Workload


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
    if source.kind == "bipolar" or stored_bits(source) > bits or layer.levels != 1:
        raise ValueError(
            f"{layer.name}: the binariser makes one bit of integers of {bits} bits in two's complement, "
            f"got {layer.levels} levels of {source}"
        )
    arrays = model.arrays[layer.name]
    down = arrays["direction"] < 0
    limits = arrays["threshold"][:, 0].astype(np.int64) + down
    return np.clip(limits, -(1 << (bits - 1)), 1 << (bits - 1)), down


def binary_layer(model: Model, workload: Workload, inverted: Array) -> tuple[LoweredLayer, Array]:
    """Rewrite one workload.

    Parameters
    ----------
    model : Model
        Gives the arrays.
    workload : Workload
        With a segment.
    inverted : (bits,) bool
        Which of the bits that the workload reads are complements.

    Returns
    -------
    LoweredLayer
    (bits,) bool
        Which of the bits that the lowered layer makes are complements.
    """
    segment = workload.segment
    planes = workload.planes
    assert segment is not None
    layer = segment.layer
    source = segment.source
    any_match = layer.accumulate == "or"
    falls, complement = _directions(model, segment)
    weight = plain_of(model, segment).reshape(layer.out_channels, -1, source.channels)
    positive, negative = weight > 0, weight < 0
    positive[falls], negative[falls] = negative[falls], positive[falls]
    halves = [positive]
    if layer.weight == TERNARY:  # w = (a + b) / 2: a is 1 where w is 1, and b -1 where w is -1
        halves = [positive, ~negative]
    bits = np.stack(halves, axis=2).reshape(layer.out_channels, -1, source.channels)  # (O, taps * visits, C)
    lanes = _lanes(bits, source.encoding, planes, inverted)
    taps = layer.window(source).taps
    terms = layer.terms(source) // taps if layer.word_channels else lanes.shape[2]  # of a tap
    odd = workload.lanes % 2 == 1
    doubled = workload.visits == 2 and (planes > 0 or odd)  # else the sum of both visits is halved, exactly
    halved = workload.visits == 2 and not doubled
    double = not (planes or any_match or halved)
    offset = 0 if planes or any_match else terms // 2 if halved else terms
    low, high = (0, 1) if any_match else segment.accumulator_range
    actions = [_rewritten(action, falls, (low, high), doubled) for action in actions_of(model, workload, segment.tail)]
    if any_match:
        actions.insert(0, Thresholds(np.ones((layer.out_channels, 1), np.int64)))
    arithmetic = Xnor(
        weight=lanes,
        coefficient=plane_coefficients(planes) if planes else np.ones(1, np.int64),
        visits=workload.visits,
        double=double,
        tap_offset=offset,
        accumulate=layer.accumulate,
        word_channels=layer.word_channels,
        magnitude=_magnitude(model, segment, planes) if layer.real_weights else None,
    )
    sum_range = (2 * low, 2 * high) if doubled else (low, high)
    return LoweredLayer.of(workload, arithmetic, actions, sum_range), complement


def copy(workload: Workload) -> LoweredLayer:
    """A copy of a map of bits: matches with a kernel's own bit count twice, all others once."""
    channels = workload.out_channels
    identity = np.eye(workload.out_channels, dtype=np.uint8)
    weight = np.stack([identity, np.ones_like(identity)], axis=1)[..., None]
    coefficient = np.ones(1, np.int64)
    arithmetic = Xnor(weight=weight, coefficient=coefficient, visits=workload.visits, double=False, tap_offset=0)
    return LoweredLayer.of(workload, arithmetic, [Thresholds(np.full((channels, 1), channels))], (0, 2 * channels))


def _magnitude(model: Model, segment: Segment, planes: int) -> Array:
    """(O, taps, channels, planes) magnitudes of real weights, in the lanes of these."""
    given = magnitudes(fixed_point(model.arrays[segment.name]["weight"]))
    plain = given.reshape(len(given), -1, segment.source.channels)
    if planes:
        return np.repeat(plain[..., None], planes + 1, axis=3)
    return np.repeat(plain, segment.source.encoding.bits, axis=2)[..., None]


def _rewritten(action: Action, falls: Array, sum_range: Range, doubled: bool) -> Action:
    """An action as the engine computes it: kernels change sign where ``falls`` is true, and the engine's sums may be
    twice those of ``sum_range``."""
    if isinstance(action, Thresholds):
        limit = action.turned(falls, sum_range).limit
        return Thresholds(np.minimum(2 * limit, 2 * sum_range[1] + 1) if doubled else limit)
    if isinstance(action, Scale) and doubled:
        return replace(action, bias=2 * action.bias, shift=action.shift + 1)
    return action


def _directions(model: Model, segment: Segment) -> tuple[Array, Array]:
    """(O,) bool, which kernels change sign, so that each bit is 1 for large sums, and (O * levels) bool, which of the
    bits are complements; none where sums are the result. See "direction" in the module's text."""
    layer = segment.layer
    rising = np.zeros(layer.out_channels, bool)
    act = segment.behind_sums(Threshold)
    if act is None:
        return rising, rising if layer.accumulate == "or" else rising[:0]
    down = model.arrays[act.name]["direction"] < 0
    if segment.behind_sums(Requantise) is not None:
        _check_signs(model, segment, act)
        return rising, down
    pool = segment.behind_sums(Pool)
    pool_first = down & isinstance(segment.tail[0], Pool)  # then the largest x makes the smallest bit
    complement = down if layer.word_channels and pool is None else pool_first ^ isinstance(pool, MinPool)
    falls = down ^ complement  # the bit that is computed is 1 for small x: the kernel changes sign
    if layer.word_channels and pool is not None:
        _check_words_pool(act, pool, segment.tail[0] is pool, falls)
    return falls, np.repeat(complement, act.levels)


def _check_words_pool(act: Threshold, pool: Pool, pool_first: bool, falls: Array) -> None:
    """ValueError where a pool behind ``accumulate="or_words"`` needs bits of small sums, as ``falls`` tells by channel.

    The engine's pool ORs bits that are 1 for large sums. Elsewhere a bit of small sums becomes a bit of large sums by
    weights that give the sum with its sign changed; where words are ORed there are no such weights.
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


def _check_signs(model: Model, segment: Segment, act: Threshold) -> None:
    """ValueError unless every threshold of what was requantised is a sign, and a pool finds what the engine's OR of
    bits does."""
    threshold = model.arrays[act.name]["threshold"].astype(np.int64)[:, 0]
    down = model.arrays[act.name]["direction"] < 0
    wrong = threshold != -down.astype(np.int64)
    if wrong.any():
        sign = "<=" if down[wrong][0] else ">="
        raise ValueError(
            f"{act.name}: a threshold of integers must be x >= 0 or x <= -1, got x {sign} {threshold[wrong][0]}"
        )
    pool = segment.tail[-1]
    if isinstance(pool, MaxPool | MinPool) and (down != isinstance(pool, MinPool)).any():
        rule = "x <= -1 before a min_pool" if isinstance(pool, MinPool) else "x >= 0 before a max_pool"
        raise ValueError(f"{act.name}: a threshold of integers must be {rule}, got the other one")


def _lanes(bits: Array, encoding: Encoding, planes: int, inverted: Array) -> Array:
    """(O, places, C) bits of weights, 1 for +1, for a map of ``encoding`` -> (O, places, channels, planes) bits."""
    if planes:
        lanes: Array = np.concatenate([np.repeat(bits[..., None], planes, axis=3), ~bits[..., None]], axis=3)
    else:
        lanes = ((bits if encoding.bits == 1 else np.repeat(bits, encoding.bits, axis=2)) ^ inverted)[..., None]
    return lanes.view(np.uint8)

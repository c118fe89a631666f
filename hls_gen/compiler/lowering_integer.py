"""Layers as the integer engine computes them (spec B11, B14; hls_gen/compiler/lowered_layers.py).

Requantised layers are what they are; unsigned features of b bits are signed ones of b + 1 bits to the engine. What
stands beside the binary engine is rewritten, exactly (tests/hls_gen/compiler/test_lowering_kinds.py):

* *thresholds* become signs: x >= T is x - T not negative, so the bias is -T, nothing is scaled, and the bit that
  leaves, 1 where negative, is the complement; x <= T is x - (T + 1) negative. Clipped to -1..0, a maximum keeps this
  true, but for x <= T before a max pool: there the kernel's weights change sign. k thresholds are k results a kernel.
* *bits* are read as +-1: a weight is repeated for each bit of a thermometer, and changes sign where the bit is a
  complement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bitloom.golden.encoding import Array, Encoding
from bitloom.golden.layer import Layer
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model
from bitloom.hls_gen.design.widths import COUNT_BITS

from .depthwise import lowered, plain_of, window_of
from .lowered_layers import Addition, IntegerLayer
from .parts import Engine, Part
from .pools import canonical, thresholds_of

TAILS = ((), ("requantise",), ("requantise", "max_pool"), ("requantise", "avg_pool"))
"""Kinds of layers that may follow a weighted one and are lowered with it."""
ADD_TAILS = tuple(("requantise", "add", *tail[1:]) for tail in TAILS[1:])
"""The same where another map is added."""
BIT_TAILS = (("threshold",), ("threshold", "max_pool"), ("max_pool", "threshold"))
"""The same where the binary engine computes the next one."""
MAX_AVERAGE = (1 << COUNT_BITS) - 1
"""Taps of an average's window."""


def stored_bits(encoding: Encoding) -> int:
    """Bits in two's complement that hold every value of the encoding."""
    return 1 + max(encoding.high.bit_length(), (~encoding.low).bit_length() if encoding.low < 0 else 0)


def check(part: Part, engine: Engine, *, from_bits: bool, to_bits: bool) -> None:
    """Raise ValueError unless the engine can compute this part.

    Parameters
    ----------
    part : Part
    engine : Engine
        Gives the widths of features and weights.
    from_bits, to_bits : bool
        Whether the binary engine makes the map that the part reads, and whether it reads the part's result.
    """
    layer, source, kinds = part.layer, part.source, part.tail_kinds
    if part.depthwise is not None:
        check(canonical(part.depthwise), engine, from_bits=False, to_bits=to_bits)
    if layer.accumulate != "popcount":
        raise ValueError(f"{layer.name}: accumulate must be popcount, got {layer.accumulate}")
    for t in part.tail:
        if isinstance(t, MinPool):
            raise ValueError(f"{t.name}: a min pool needs the binary engine, got the integer one")
    if to_bits and "add" not in kinds and kinds not in BIT_TAILS:
        raise ValueError(
            f"{layer.name}: what follows, where the binary engine reads it, must be threshold, threshold and max_pool, "
            f"or max_pool and threshold, got {', '.join(kinds) or 'nothing'}"
        )
    if "add" in kinds:
        if to_bits or kinds not in ADD_TAILS:
            raise ValueError(
                f"{layer.name}: what follows a layer before an add must be requantise, add, and a pool at most, read "
                f"by the integer engine, got {', '.join(kinds)}"
            )
    elif not to_bits and kinds not in TAILS:
        raise ValueError(
            f"{layer.name}: what follows, where no binary engine reads it, must be nothing, requantise, or requantise "
            f"and a pool, got {', '.join(kinds)}"
        )
    if not kinds and part.readers:
        raise ValueError(f"{layer.name}: a requantise must follow before the next layer, got none")
    bipolar = source.encoding.kind == "bipolar"
    if bipolar != from_bits or (not bipolar and stored_bits(source.encoding) > engine.feature_bits):
        raise ValueError(
            f"{layer.name}: its map must fit {engine.feature_bits} bits in two's complement, got {source.encoding}"
        )
    if stored_bits(layer.weight) > engine.weight_bits:
        raise ValueError(
            f"{layer.name}: its weight must fit {engine.weight_bits} bits in two's complement, got {layer.weight}"
        )
    for t in part.tail:
        if isinstance(t, Requantise | Add) and stored_bits(t.encoding) > engine.feature_bits:
            most = f"{engine.feature_bits} bits in two's complement"
            raise ValueError(f"{t.name}: encoding must fit {most}, got {t.encoding}")
        if isinstance(t, Requantise) and t.rounding == "twice" and t.fraction:
            rule = "fraction must be 0 with rounding twice on the integer engine"
            raise ValueError(f"{t.name}: {rule}, got {t.fraction}")
        if isinstance(t, AvgPool) and t.window.taps > MAX_AVERAGE:
            raise ValueError(f"{t.name}: an average must have at most {MAX_AVERAGE} taps, got {t.window.taps}")


def integer_layer(model: Model, part: Part, inverted: Array, weight_bits: int) -> tuple[IntegerLayer, Array]:
    """Rewrite one part.

    Parameters
    ----------
    model : Model
        Gives the arrays.
    part : Part
        What `check` accepts.
    inverted : (bits,) bool
        Which of the bits that the part reads are complements; of no meaning where it reads integers.
    weight_bits : int
        Bits of the engine's weights.

    Returns
    -------
    IntegerLayer
    (bits,) bool
        Which of the bits that the lowered layer makes are complements; empty where it makes integers.

    Raises
    ------
    ValueError
        If a weight has to change sign and then doesn't fit ``weight_bits``.
    """
    layer, source = part.layer, part.source
    rule = _rule(model, part, _weights(model, part, inverted))
    if rule.weight.max() >= 1 << (weight_bits - 1):
        most = f"{weight_bits} bits in two's complement"
        raise ValueError(f"{layer.name}: weights that change sign must fit {most}, got {rule.weight.max()}")
    made = IntegerLayer(
        name=part.name,
        reads=part.reads,
        joins=part.joins,
        height=source.height,
        width=source.width,
        window=part.window,
        weight=rule.weight,
        bias=rule.factors.get("bias"),
        multiplier=rule.factors.get("multiplier"),
        shift=rule.factors.get("shift"),
        low=rule.clip[0],
        high=rule.clip[1],
        pool=window_of(part),
        average=any(isinstance(layer, AvgPool) for layer in part.tail),
        sum_range=rule.reach,
        signs=len(rule.complement) > 0,
        addition=addition_of(model, part),
        fraction=rule.fraction,
        rounding=rule.rounding,
        depthwise=None if part.depthwise is None else lowered(model, part.depthwise),
    )
    return made, rule.complement


def addition_of(model: Model, part: Part) -> Addition | None:
    """The addition among the layers of a part, None where there is none."""
    layer = next((layer for layer in part.tail if isinstance(layer, Add)), None)
    if layer is None or part.adds is None:
        return None
    arrays, behind = model.arrays[layer.name], part.tail[part.tail.index(layer) - 1].name
    kept = model.network.reads[layer.name].index(behind)
    factors = arrays["multiplier"].tolist()
    return Addition(
        adds=part.adds,
        factor_kept=factors[kept],
        factor_added=factors[1 - kept],
        bias=int(arrays["bias"][0]),
        shift=int(arrays["shift"][0]),
        low=layer.low,
        high=layer.high,
    )


def _weights(model: Model, part: Part, inverted: Array) -> Array:
    """Weights (O, taps, C) for the map as the engine reads it: bits as +-1, some of which are ``inverted``."""
    layer, source = part.layer, part.source
    weight: Array = plain_of(model, part).reshape(layer.out_channels, -1, source.channels)
    if source.encoding.kind == "bipolar":
        weight = np.where(inverted, -1, 1) * np.repeat(weight, source.encoding.bits, axis=2)
    return weight


@dataclass(frozen=True, kw_only=True, eq=False)
class _Rule:
    """How the sums of a part become results."""

    weight: Array
    """(O, taps, C)"""
    reach: tuple[int, int]
    """Smallest and largest sum."""
    clip: tuple[int, int] = (0, 0)
    """Smallest and largest result."""
    fraction: int = 0
    """Bits of the biases behind the point."""
    rounding: str = "once"
    """How results are rounded."""
    factors: Mapping[str, Array] = field(default_factory=dict)
    """bias, multiplier and shift, each (O, levels); none where sums are the result."""
    complement: Array = field(default_factory=lambda: np.zeros(0, bool))
    """(O * levels) bool: which of the bits that leave are complements; none where integers leave."""


def _rule(model: Model, part: Part, weight: Array) -> _Rule:
    """The rule of a part, whose weights are ``weight`` before any change sign."""
    reach = part.accumulator_range
    act = next((layer for layer in part.tail if isinstance(layer, Requantise | Threshold)), None)
    if act is None:
        return _Rule(weight=weight, reach=reach)
    arrays = model.arrays[act.name]
    if isinstance(act, Requantise):
        factors = {key: value.astype(np.int64)[:, None] for key, value in arrays.items()}
        how = {"clip": (act.low, act.high), "fraction": act.fraction, "rounding": act.rounding}
        return _Rule(weight=weight, reach=reach, factors=factors, **how)  # type: ignore[arg-type]
    turned = _turned(arrays["direction"], part.tail)
    weight = np.where(turned[:, None, None], -weight, weight)
    if isinstance(part.tail[-1], MaxPool):  # whichever directions the thresholds have
        reach = min(reach[0], -reach[1]), max(reach[1], -reach[0])
    limits = np.clip(_limits(thresholds_of(model, part, act), arrays["direction"], turned), reach[0], reach[1] + 1)
    factors = {"bias": -limits, "multiplier": limits * 0 + 1, "shift": limits * 0}
    complement = np.repeat(turned | (arrays["direction"] > 0), act.levels)
    return _Rule(weight=weight, reach=reach, clip=(-1, 0), factors=factors, complement=complement)


def _turned(direction: Array, tail: Sequence[Layer]) -> Array:
    """Which kernels change sign: those that pool bits of x <= T."""
    turned: Array = (direction < 0) & isinstance(tail[-1], MaxPool)
    return turned


def _limits(threshold: Array, direction: Array, turned: Array) -> Array:
    """(O, levels) limits below which a sign is 1, of kernels of which some are ``turned``."""
    down = direction[:, None] < 0
    limits: Array = np.where(turned[:, None], -threshold, threshold + down)
    return limits

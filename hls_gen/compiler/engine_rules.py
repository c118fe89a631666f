"""Engines: which one a segment (hls_gen/compiler/segments.py) is for, and what each can compute: which layers may
follow a weighted one, as trips.py lists them, and which encodings they may have.
"""

from dataclasses import dataclass

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, signed_bits
from bitloom.golden.graph import INPUT
from bitloom.golden.layers.add import Add, Pairwise
from bitloom.golden.layers.pool import AvgPool, Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.layers.threshold import Threshold
from bitloom.hls_gen.design.widths import COUNT_BITS

from .pools import canonical
from .segments import Segment
from .trips import BINARY, BITS, INTEGER, INTEGER_ADD, OR, SIGNS

MAX_AVERAGE = (1 << COUNT_BITS) - 1
"""Most taps of an average's window."""


@dataclass(frozen=True)
class Engine:
    """An engine that computes workloads, with the widths of its integers."""

    name: str = "binary"
    """"binary" or "integer"."""
    feature_bits: int = 1
    weight_bits: int = 1
    """feature_bits, weight_bits: bits in two's complement of the integer engine's features and weights."""


BINARY_ENGINE = Engine()
"""The binary one, which has no widths."""


def default_engine(segment: Segment) -> str:
    """The engine that a segment is for, "binary" or "integer".

    That is the integer one if the layer has weights of several bits, reads a map of integers that is not the input,
    or is requantised, unless signs of what was requantised go on.
    """
    integers = segment.layer.weight.kind in ("signed", "unsigned")
    integers |= "requantise" in segment.tail_kinds and "threshold" not in segment.tail_kinds
    integers |= segment.reads != INPUT and segment.source.encoding.kind != "bipolar"
    return "integer" if integers else "binary"


def check_binary(segment: Segment) -> None:
    """Raise ValueError unless the binary engine can compute this segment."""
    layer = segment.layer
    source = segment.source
    kinds = segment.tail_kinds
    if layer.accumulate == "or":
        if kinds not in OR.tails:
            raise ValueError(f"{layer.name}: what follows accumulate or must be {OR.rule}, got {', '.join(kinds)}")
        return
    if segment.reads == INPUT and "requantise" in kinds and "threshold" not in kinds:
        _check_first_pool(segment)
    if "requantise" in kinds:
        _check_signs(segment)
    elif kinds not in BINARY.tails:
        raise ValueError(f"{layer.name}: what follows must be {BINARY.rule}, got {', '.join(kinds)}")
    if segment.raw and segment.readers:
        raise ValueError(f"{layer.name}: a threshold must follow before the next layer, got none")
    if layer.weight not in (BIPOLAR, TERNARY):
        raise ValueError(f"{layer.name}: weight must be bipolar 1 bit or ternary, got {layer.weight}")
    even = source.encoding.kind == "bipolar" and source.channels * source.encoding.bits % 2 == 0
    if segment.raw and layer.weight == TERNARY and not even:
        raise ValueError(
            f"{layer.name}: ternary weights without a threshold need a bipolar map with an even number of bits at "
            f"each position, got {source.channels} channels of {source.encoding}"
        )


def _check_first_pool(segment: Segment) -> None:
    """Raise ValueError if a segment is a copy of the input's integers (hls_gen/compiler/tail_copies.py) for a pool
    whose results are integers again."""
    pool = segment.behind_sums(Pool)
    if pool is not None:
        readers = " and ".join(segment.readers) or "the host"
        raise ValueError(
            f"{pool.name}: on a binary NPU thresholds must follow a pool of the input's integers, got {readers}; "
            "integer NPUs need none"
        )


def _check_signs(segment: Segment) -> None:
    """Raise ValueError unless the binary engine can compute this segment, which requantises."""
    name = segment.name
    kinds = segment.tail_kinds
    if kinds not in SIGNS.tails:
        raise ValueError(
            f"{name}: what follows, where the binary engine requantises, must be {SIGNS.rule}, got {', '.join(kinds)}"
        )
    for layer in segment.tail:
        if isinstance(layer, Threshold) and layer.levels != 1:
            raise ValueError(f"{layer.name}: a threshold of integers must have 1 level, got {layer.levels}")
        if isinstance(layer, Requantise) and layer.rounding == "twice":
            rule = "rounding must be once or even on the binary engine"
            raise ValueError(f"{layer.name}: {rule}, got {layer.rounding}")
    add = segment.behind_sums(Add)
    kind = segment.added.kind if segment.added else "the input"
    if add is not None and kind not in SIGNS.feature_kinds:
        makers = " or ".join(SIGNS.feature_kinds)
        raise ValueError(f"{add.name}: what is added to a binary layer must be made by {makers}, got {kind}")


def check_integer(segment: Segment, engine: Engine, *, from_bits: bool, to_bits: bool) -> None:
    """Raise ValueError unless the integer engine can compute this segment.

    Parameters
    ----------
    segment : Segment
    engine : Engine
        Gives the widths of features and weights.
    from_bits, to_bits : bool
        Whether the binary engine makes the map that the segment reads, and whether it reads the segment's result.
    """
    layer = segment.layer
    source = segment.source
    kinds = segment.tail_kinds
    if segment.depthwise is not None:
        check_integer(canonical(segment.depthwise), engine, from_bits=False, to_bits=to_bits)
    if layer.accumulate != "popcount":
        raise ValueError(f"{layer.name}: accumulate must be popcount, got {layer.accumulate}")
    for behind in segment.tail:
        if type(behind) in BINARY.layers and isinstance(behind, Pool) and type(behind) not in INTEGER.layers:
            raise ValueError(
                f"{behind.name}: a {behind.kind.replace('_', ' ')} needs the binary engine, got the integer one"
            )
    pair = segment.behind_sums(Pairwise)
    if pair is not None:
        if to_bits or kinds not in INTEGER_ADD.tails:
            raise ValueError(
                f"{layer.name}: what follows a layer before an add or a multiply must be {INTEGER_ADD.rule}, read by "
                f"the integer engine, got {', '.join(kinds)}"
            )
    elif to_bits:
        if kinds not in BITS.tails:
            raise ValueError(
                f"{layer.name}: what follows, where the binary engine reads it, must be {BITS.rule}, got "
                f"{', '.join(kinds) or 'nothing'}"
            )
    elif kinds not in INTEGER.tails:
        raise ValueError(
            f"{layer.name}: what follows, where no binary engine reads it, must be {INTEGER.rule}, got "
            f"{', '.join(kinds)}"
        )
    if segment.raw and segment.readers:
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
    for behind in segment.tail:
        if isinstance(behind, FeatureLayer) and stored_bits(behind.encoding) > engine.feature_bits:
            most = f"{engine.feature_bits} bits in two's complement"
            raise ValueError(f"{behind.name}: encoding must fit {most}, got {behind.encoding}")
        if isinstance(behind, Requantise) and behind.rounding == "twice" and behind.fraction:
            rule = "fraction must be 0 with rounding twice on the integer engine"
            raise ValueError(f"{behind.name}: {rule}, got {behind.fraction}")
        if isinstance(behind, AvgPool) and behind.window.taps > MAX_AVERAGE:
            raise ValueError(
                f"{behind.name}: an average must have at most {MAX_AVERAGE} taps, got {behind.window.taps}"
            )


def stored_bits(encoding: Encoding) -> int:
    """Bits in two's complement that hold every value of the encoding."""
    return signed_bits(encoding.low, encoding.high)

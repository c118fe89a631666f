"""Which engine computes each section, and which integers each map holds.

A map of levels 0..k can be held as

* *thermometer*, k bits of +-1 whose sum is 2 * level - k: what the binary engine reads;
* *integers*, level + z for a z of ours: what the integer engine reads.

Either is worth step * integer + offset. A padded tap adds 0 to the integers' sum, and is worth 0 in the file; so where
weights with padding read a map, its offset must be 0. Elsewhere the offset is a constant for each output, which goes
into what follows the sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import BIPOLAR, TERNARY, Array, Encoding, bipolar, signed, signed_bits, unsigned
from bitloom.hls_gen.design.widths import FEATURE_BITS

from .boundaries import Line
from .errors import ImportRefused, printable
from .rationals import same
from .sections import Cut, Quantised, Section

MOST_THERMOMETER = 15
"""Levels that the binary engine may be given as thermometer bits."""
MOST_BITS = 9
"""Bits in two's complement of maps that a layer makes for the integer engine, and of inputs of the binary one."""
ENGINES = ("auto", "binary", "integer")


@dataclass(frozen=True, kw_only=True)
class Held:
    """How a map is held.

    Attributes
    ----------
    encoding : Encoding
    zero : int
        z: the integer of level 0, for integers; for a thermometer of k bits -k.
    clip : (int, int) or None
        Smallest and largest integer, where these are not the encoding's.
    """

    encoding: Encoding
    zero: int
    clip: tuple[int, int] | None = None

    @property
    def stride(self) -> int:
        """Distance of the integers of neighbouring levels."""
        return self.encoding.step


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """A section's weights as they are built.

    Attributes
    ----------
    values : (outputs, rows, columns, channels) int64
        Divided by the greatest common divisor of each output.
    scale : (outputs,) array of Fraction
        What an integer weight is worth.
    encoding : Encoding
    """

    values: Array
    scale: Array
    encoding: Encoding


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineChoice:
    """What was chosen for a network.

    Attributes
    ----------
    engines : tuple of str
        Of each section, "binary" or "integer".
    weights : tuple of Weights
    held : tuple of Held
        The input, and what each section makes; nothing for sums at the end.
    why : str
        One sentence about the engines.
    """

    engines: tuple[str, ...]
    weights: tuple[Weights, ...]
    held: tuple[Held, ...]
    why: str


def choose(cut: Cut, engine: str = "auto") -> EngineChoice:
    """Choose engines and encodings.

    Parameters
    ----------
    cut : Cut
    engine : str
        "binary" or "integer" for all sections; "auto": the binary one if it can compute all, else the integer one if
        that can, else each where it can.

    Returns
    -------
    EngineChoice

    Raises
    ------
    ImportRefused
        With a line for each section that no engine, or not the one that is asked for, can compute.
    """
    weights = tuple(map(_built, cut.sections))
    sources = (cut.source, *(s.made for s in cut.sections if s.made is not None))
    binary = [_binary_refusal(s, w, q, k == 0) for k, (s, w, q) in enumerate(zip(cut.sections, weights, sources))]
    widths = [FEATURE_BITS, *[MOST_BITS] * len(cut.sections)]  # what comes in may be wider than what layers make
    integer = [_integer_refusal(s, q, bits) for s, q, bits in zip(cut.sections, sources, widths)]
    if engine == "binary" or (engine == "auto" and not any(binary)):
        _refuse([line for line in binary if line])
        return _choice(cut, weights, sources, ("binary",) * len(weights), "every layer's weights are binary or ternary")
    if engine == "integer" or (engine == "auto" and not any(integer)):
        _refuse([line for line in integer if line])
        reason = next((line for line in binary if line), "it was asked for")
        return _choice(cut, weights, sources, ("integer",) * len(weights), f"the integer engine computes all: {reason}")
    mixed = tuple("integer" if refusal else "binary" for refusal in binary)
    lines = [i for engine_, i in zip(mixed, integer) if engine_ == "integer" and i]
    _refuse(lines)
    return _choice(cut, weights, sources, mixed, "both engines: " + "; ".join(sorted({b for b in binary if b})))


def _built(section: Section) -> Weights:
    """`built`, whose errors name the section."""
    try:
        return built(section)
    except ValueError as e:
        raise ImportRefused([f"{printable(section.name)}: {e}"]) from None


def _refuse(lines: Sequence[str]) -> None:
    if lines:
        raise ImportRefused(list(lines))


def built(section: Section) -> Weights:
    """Weights in lowest terms, and the narrowest encoding that holds them."""
    flat = section.weight.reshape(len(section.weight), -1)
    divisor = np.maximum(np.gcd.reduce(flat, axis=1), 1)
    values = section.weight // divisor.reshape(-1, 1, 1, 1)
    scale = section.scale * np.array([Fraction(int(d)) for d in divisor], object)
    return Weights(values=values, scale=scale, encoding=weight_encoding(values))


def weight_encoding(values: Array) -> Encoding:
    """The narrowest encoding of weights: bipolar, ternary, or signed."""
    low, high = int(values.min()), int(values.max())
    if low >= -1 and high <= 1:
        return BIPOLAR if (values != 0).all() else TERNARY
    return signed(max(2, signed_bits(low, high)))


def padded(section: Section) -> bool:
    """Whether a section's window reaches beyond its map."""
    return section.window is not None and any(section.window.padding)


def worth(lead: Line, source: Quantised, held: Held) -> Line:
    """What an integer of a held map is worth, a channel: real = multiply * integer + add."""
    step = source.step * lead.multiply / held.stride
    return Line(multiply=step, add=lead.multiply * source.base + lead.add - step * held.zero)


def _binary_refusal(section: Section, weights: Weights, source: Quantised, is_input: bool) -> str:
    """Why the binary engine can't compute a section; empty if it can."""
    if source.averaged or (section.made is not None and section.made.averaged):
        return f"{printable(section.name)}: means are taken of its maps"
    if weights.encoding not in (BIPOLAR, TERNARY):
        return f"{printable(section.name)}: weights are {weights.encoding}"
    if is_input and source.levels > 1:
        return _integer_refusal(section, source)  # an integer input is read as bit planes
    if source.levels > MOST_THERMOMETER:
        return f"{printable(section.name)}: its map has {source.levels + 1} values, more than {MOST_THERMOMETER + 1}"
    if padded(section) and any(worth(section.lead, source, thermometer(source)).add):
        return f"{printable(section.name)}: a padded tap is worth 0, which is not in the middle of its map's values"
    return ""


def _integer_refusal(section: Section, source: Quantised, bits: int = MOST_BITS) -> str:
    """Why no engine that reads integers of so many bits can compute a section; empty if one can."""
    if source.levels >= 1 << bits - 1 and not (source.levels < 1 << bits and not padded(section)):
        most = 1 << bits - 1
        return f"{printable(section.name)}: its map must have at most {most} values, got {source.levels + 1}"
    if (padded(section) or source.averaged) and natural_zero(section, source, bits) is None:
        return f"{printable(section.name)}: a padded tap is worth 0, which is none of its map's integers"
    return ""


def natural_zero(section: Section, source: Quantised, bits: int = MOST_BITS) -> int | None:
    """The integer of level 0 with which the integer 0 is worth 0; None if there is none that fits so many bits."""
    lines = worth(section.lead, source, Held(encoding=unsigned(8), zero=0))
    offset = same(lines.add)
    if offset is None:
        return None
    zero = offset / lines.multiply[0]
    most = 1 << bits - 1
    if zero.denominator != 1 or not -most <= zero or not zero + source.levels < most:
        return None
    return int(zero)


def thermometer(source: Quantised) -> Held:
    """A map as thermometer bits."""
    return Held(encoding=bipolar(source.levels), zero=-source.levels)


def integers(source: Quantised, reader: Section | None, bits: int = MOST_BITS) -> Held:
    """A map as integers: worth 0 at 0 where the reader pads, or where it costs no bit; else signed and full.

    One whose values are rounded twice, to both sides of a zero point, is held less that.
    """
    low = natural_zero(reader, source, bits) if reader is not None else 0
    twice = source.rule is not None and source.rule.low < 0
    if source.averaged:
        low = int(source.base / source.step)
    elif source.rule is not None and twice and not (reader is not None and padded(reader)):
        low = source.rule.low
    needed, fixed = source.levels.bit_length(), source.averaged or twice or (reader is not None and padded(reader))
    if low is None or (not fixed and signed_bits(low, low + source.levels) > max(needed, 2)):
        low = -(1 << needed - 1) if needed > 1 else 0
    high = low + source.levels
    encoding = unsigned(high.bit_length()) if low >= 0 and high < 256 else signed(max(2, signed_bits(low, high)))
    full = (encoding.low, encoding.high) == (low, high)
    return Held(encoding=encoding, zero=low, clip=None if full else (low, high))


def _choice(
    cut: Cut, weights: tuple[Weights, ...], sources: Sequence[Quantised], engines: tuple[str, ...], why: str
) -> EngineChoice:
    held = []
    for number, source in enumerate(sources):
        reader = number if number < len(engines) else None
        section = cut.sections[reader] if reader is not None else None
        maker = engines[number - 1] if number else ""
        if number == 0:
            bits = source.levels == 1 and engines[0] == "binary"
        else:
            bits = maker == "binary" or (reader is not None and engines[reader] == "binary")
        held.append(thermometer(source) if bits else integers(source, section, MOST_BITS if number else FEATURE_BITS))
    return EngineChoice(engines=engines, weights=weights, held=tuple(held), why=why)

"""Which engine computes each section, and which integers each map holds.

A map of levels 0..k can be held as

* *thermometer*, k bits of +-1 whose sum is 2 * level - k: what the binary engine reads;
* *integers*, level + z for a z of ours: what the integer engine reads.

Either is worth step * integer + offset. A padded tap adds 0 to the integers' sum, and is worth 0 in the file; so where
weights with padding read a map, its offset must be 0. Elsewhere the offset is a constant for each output, which goes
into what follows the sums.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, bipolar, signed, signed_bits, unsigned
from bitloom.hls_gen.compiler.engine_rules import stored_bits
from bitloom.hls_gen.design.widths import FEATURE_BITS, WEIGHT_BITS

from .boundaries import Line
from .engine_cost import EngineCost, cost_of
from .errors import ImportRefused, printable
from .rationals import same
from .sections import Cut, Quantised, Section
from .weights import Weights, built

MOST_THERMOMETER = 15
"""Levels that the binary engine may be given as thermometer bits."""
MOST_BITS = 9
"""Bits in two's complement of maps that a layer makes for the integer engine, and of inputs of the binary one."""
MOST_BITS_OF_VALUE = 62
"""Thermometer bits of a value at a network's end, which no engine reads."""
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
    costs : dict
        By engine: what the network would cost on it alone, or why it can't compute all; under "both", what it costs
        on the two that were chosen. Nothing for maps that are added.
    """

    engines: tuple[str, ...]
    weights: tuple[Weights, ...]
    held: tuple[Held, ...]
    why: str
    costs: Mapping[str, "EngineCost | str"] = field(default_factory=dict)


def choices(cut: Cut, engine: str = "auto") -> list[EngineChoice]:
    """Choose engines and encodings.

    Parameters
    ----------
    cut : Cut
    engine : str
        "binary" or "integer" for all sections; "auto": the one that costs less, of those that can compute all; else
        both, each where it must, or where a run of sections costs less.

    Returns
    -------
    list of EngineChoice
        At least one; the second one is for where a model can't be made of the first.

    Raises
    ------
    ImportRefused
        With a line for each section that no engine, or not the one that is asked for, can compute.
    """
    weights = tuple(map(_built, cut.sections))
    sources = (cut.source, *(s.made for s in cut.sections if s.made is not None))
    binary = [_binary_refusal(s, w, q, k == 0) for k, (s, w, q) in enumerate(zip(cut.sections, weights, sources))]
    if cut.head is not None and cut.source.levels > 1:
        binary[0] = binary[0] or f"{printable(cut.head.name)}: a pool of integers comes before the first weights"
    widths = [FEATURE_BITS, *[MOST_BITS] * len(cut.sections)]  # what comes in may be wider than what layers make
    integer = [
        _weight_refusal(s, w) or _integer_refusal(s, q, bits)
        for s, w, q, bits in zip(cut.sections, weights, sources, widths)
    ]
    refused = {"binary": binary, "integer": integer}
    maker = _ChoiceMaker(cut, weights, sources)
    costs: dict[str, EngineCost | str] = {}
    for name, lines in refused.items():
        reason = next((line for line in lines if line), "")
        costs[name] = reason or maker.cost((name,) * len(weights))
    if engine != "auto":
        _refuse([line for line in refused[engine] if line])
        return [maker.choice((engine,) * len(weights), f"the {engine} engine computes all: it was asked for", costs)]
    able = {name: cost for name, cost in costs.items() if isinstance(cost, EngineCost)}
    if not able:
        return [maker.mixed(binary, integer, costs)]
    order = sorted(able, key=lambda name: able[name].price)
    missing = next((str(cost) for name, cost in costs.items() if name not in able), "it costs less")
    return [maker.choice((name,) * len(weights), f"the {name} engine computes all: {missing}", costs) for name in order]


def _built(section: Section) -> Weights:
    """`built`, whose errors name the section."""
    try:
        return built(section)
    except ValueError as e:
        raise ImportRefused([f"{printable(section.name)}: {e}"]) from None


def _refuse(lines: Sequence[str]) -> None:
    if lines:
        raise ImportRefused(list(lines))


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
    if section.made is not None and section.made.levels > MOST_BITS_OF_VALUE:
        values = section.made.levels + 1
        return f"{printable(section.name)}: the map behind it has {values} values, more than {MOST_BITS_OF_VALUE + 1}"
    if is_input and source.levels > 1:
        return _integer_refusal(section, source)  # an integer input is read as bit planes
    if source.levels > MOST_THERMOMETER:
        return f"{printable(section.name)}: its map has {source.levels + 1} values, more than {MOST_THERMOMETER + 1}"
    return _thermometer_refusal(section, source)


def _thermometer_refusal(section: Section, source: Quantised) -> str:
    """Why a section can't read a map as thermometer bits; empty if it can."""
    if padded(section) and any(worth(section.lead, source, thermometer(source)).add):
        return f"{printable(section.name)}: a padded tap is worth 0, which is not in the middle of its map's values"
    return ""


def _weight_refusal(section: Section, weights: Weights) -> str:
    """Why the integer engine can't hold a section's weights; empty if it can."""
    if stored_bits(weights.encoding) <= WEIGHT_BITS:
        return ""
    most = 1 << WEIGHT_BITS - 1
    return (
        f"{printable(section.name)}: weights less their zero point must fit {WEIGHT_BITS} bits, {-most}..{most - 1}, "
        f"got {weights.values.min()}..{weights.values.max()}; quantise them to int8, or to uint8 with zero point 128 "
        "(onnxruntime: extra_options={'WeightSymmetric': True})"
    )


def _integer_refusal(section: Section, source: Quantised, bits: int = MOST_BITS) -> str:
    """Why no engine that reads integers of so many bits can compute a section; empty if one can."""
    if source.levels >= 1 << bits - 1 and not (source.levels < 1 << bits and not padded(section)):
        most = 1 << bits - 1
        return f"{printable(section.name)}: its map must have at most {most} values, got {source.levels + 1}"
    if (padded(section) or source.averaged) and natural_zero(section, source, bits) is None:
        return f"{printable(section.name)}: a padded tap is worth 0, which is none of its map's integers"
    if section.made is not None and section.made.levels >= 1 << MOST_BITS:
        values = section.made.levels + 1
        return f"{printable(section.name)}: the map behind it must have at most {1 << MOST_BITS} values, got {values:,}"
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

    One that a kernel makes by its own rule is held less its zero point: so the rule is a requantisation's.
    """
    low = natural_zero(reader, source, bits) if reader is not None else 0
    pads = reader is not None and padded(reader)
    ruled = source.rule is not None and not source.halves
    if source.rule is not None and ruled and not pads:
        low = source.rule.low
    elif source.averaged and not pads:
        low = int(source.base / source.step)
    needed, fixed = source.levels.bit_length(), source.averaged or ruled or pads
    if low is None or (not fixed and signed_bits(low, low + source.levels) > max(needed, 2)):
        low = -(1 << needed - 1) if needed > 1 else 0
    return held_from(low, source.levels)


def held_from(low: int, levels: int) -> Held:
    """A map whose level 0 is the integer ``low``, in the encoding of fewest bits."""
    high = low + levels
    encoding = unsigned(high.bit_length()) if low >= 0 and high < 256 else signed(max(2, signed_bits(low, high)))
    full = (encoding.low, encoding.high) == (low, high)
    return Held(encoding=encoding, zero=low, clip=None if full else (low, high))


class _ChoiceMaker:
    """Makes choices for the sections of a network, once it is known which engines compute them."""

    def __init__(self, cut: Cut, weights: tuple[Weights, ...], sources: Sequence[Quantised]) -> None:
        self._cut, self._weights, self._sources = cut, weights, sources

    def choice(self, engines: tuple[str, ...], why: str, costs: Mapping[str, EngineCost | str]) -> EngineChoice:
        """The choice of these engines."""
        return EngineChoice(
            engines=engines, weights=self._weights, held=tuple(self._held(engines)), why=why, costs=dict(costs)
        )

    def cost(self, engines: tuple[str, ...]) -> EngineCost:
        """What these engines cost."""
        held = [one.encoding for one in self._held(engines)]
        return cost_of(self._cut.sections, self._weights, held, engines)

    def mixed(
        self, binary: Sequence[str], integer: Sequence[str], costs: Mapping[str, EngineCost | str]
    ) -> EngineChoice:
        """Both engines, by what refuses each section on either one."""
        _refuse([there for here, there in zip(binary, integer) if here and there])
        engines = ["integer" if refusal else "binary" for refusal in binary]
        free = [not here and not there for here, there in zip(binary, integer)]
        best = self._rank(engines)
        for run in _runs(free):
            # a layer that ends in bits for the binary engine is for that one by default
            may = run.stop == len(engines) or engines[run.stop] == "integer"
            for first in run if may else ():
                tried = engines[:first] + ["integer"] * (run.stop - first) + engines[run.stop :]
                if self._rank(tried) < best:
                    engines, best = tried, self._rank(tried)
        _refuse([line for line in self._read_refusals(engines) if line])
        whole = tuple(engines)
        why = "both engines: " + "; ".join(sorted({line for line in binary if line}))
        return self.choice(whole, why, {**costs, "both": self.cost(whole)})

    def _rank(self, engines: Sequence[str]) -> tuple[int, float]:
        """How good engines are, the smallest is the best: sections that can't read their maps, then the cost."""
        return sum(map(bool, self._read_refusals(engines))), self.cost(tuple(engines)).price

    def _read_refusals(self, engines: Sequence[str]) -> list[str]:
        """Why sections on the integer engine can't read what the binary engine makes; empty lines where they can."""
        lines = []
        for number in range(1, len(engines)):
            section, source = self._cut.sections[number], self._sources[number]
            crossing = engines[number - 1] == "binary" and engines[number] == "integer"
            lines.append(_thermometer_refusal(section, source) if crossing else "")
        return lines

    def _held(self, engines: tuple[str, ...]) -> Iterator[Held]:
        """How each map is held."""
        for number, source in enumerate(self._sources):
            reader = number if number < len(engines) else None
            section = self._cut.sections[reader] if reader is not None else None
            maker = engines[number - 1] if number else ""
            if number == 0:
                bits = source.levels == 1 and engines[0] == "binary"
            else:
                bits = maker == "binary" or (reader is not None and engines[reader] == "binary")
            yield thermometer(source) if bits else integers(source, section, MOST_BITS if number else FEATURE_BITS)


def _runs(free: Sequence[bool]) -> list[range]:
    """Places that are free, as runs of neighbours."""
    found = []
    for is_free, group in groupby(range(len(free)), lambda place: free[place]):
        places = list(group)
        if is_free:
            found.append(range(places[0], places[-1] + 1))
    return found

"""Which integers each map holds.

A map of levels 0..k can be held as

* *thermometer*, k bits of +-1 whose sum is 2 * level - k: what the binary engine reads;
* *integers*, level + z for a z of ours: what the integer engine reads.

Either is worth step * integer + offset. A padded tap adds 0 to the integers' sum, and is worth 0 in the file; so where
weights with padding read a map, its offset must be 0. Elsewhere the offset is a constant for each output, which goes
into what follows the sums. Maps that pass on as they are, to a pool or behind one another, hold the same integers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bitloom.golden.encoding import Encoding, bipolar, signed, signed_bits, unsigned
from bitloom.hls_gen.design.widths import FEATURE_BITS

from .errors import ImportRefused, printable
from .links import Line
from .rationals import same
from .sections import MADE_BITS, Quantised, Section, SectionGraph, WeightSection


@dataclass(frozen=True, kw_only=True)
class Held:
    """How a map is held."""

    encoding: Encoding
    zero: int
    """z: the integer of level 0, for integers; for a thermometer of k bits -k."""

    @property
    def stride(self) -> int:
        """Distance of the integers of neighbouring levels."""
        return self.encoding.step

    def clip(self, low: int, high: int) -> tuple[int, int] | None:
        """The integers to which a layer clips that makes some levels alone; None where its encoding ends there."""
        ends = self.zero + low, self.zero + high
        return None if ends == (self.encoding.low, self.encoding.high) else ends


class SeveralZeroPoints(ImportRefused):
    """Maps that must hold the same integers, while the operators that read and make them need different zero points.

    Parameters
    ----------
    name : str
        Of the node that makes the first one.
    means : frozenset of str
        Names of the maps whose means are golden's average pools; with convolutions in place of these pools the integers
        could be chosen freely.
    """

    def __init__(self, name: str, means: frozenset[str]) -> None:
        super().__init__([f"{printable(name)}: the operators that read its map must have one zero point, got several"])
        self.means = means


def worth(lead: Line, source: Quantised, held: Held) -> Line:
    """Real number that an integer of a held map stands for, for each channel: real = multiply * integer + add."""
    step = source.step * lead.multiply / held.stride
    return Line(multiply=step, add=lead.multiply * source.base + lead.add - step * held.zero)


def natural_zero(reader: WeightSection, bits: int = MADE_BITS) -> int | None:
    """The integer of level 0 with which the integer 0 stands for 0; None if none fits ``bits`` bits."""
    lines = worth(reader.lead, reader.source, Held(encoding=unsigned(8), zero=0))
    offset = same(lines.add)
    if offset is None:
        return None
    zero = offset / lines.multiply[0]
    most = 1 << bits - 1
    if zero.denominator != 1 or not -most <= zero or not zero + reader.source.levels < most:
        return None
    return int(zero)


def thermometer(source: Quantised) -> Held:
    """A map as thermometer bits."""
    return Held(encoding=bipolar(source.levels), zero=-source.levels)


def integers(source: Quantised, reader: WeightSection | None, bits: int = MADE_BITS) -> Held:
    """A map as integers: worth 0 at 0 where the reader pads, or where it costs no bit; else signed and full.

    A map that a TFLite kernel makes by its rule is held less its zero point, so that a requantisation has the rule.
    """
    low = natural_zero(reader, bits) if reader is not None else 0
    pads = reader is not None and reader.padded
    ruled = source.rule is not None and not source.halves
    if source.rule is not None and ruled and not pads:
        low = source.rule.low
    elif source.averaged and not pads:
        low = int(source.base / source.step)
    needed = source.levels.bit_length()
    fixed = source.averaged or ruled or pads
    if low is None or (not fixed and signed_bits(low, low + source.levels) > max(needed, 2)):
        low = -(1 << needed - 1) if needed > 1 else 0
    return held_from(low, source.levels)


def held_from(low: int, levels: int) -> Held:
    """A map whose level 0 is the integer ``low``, in the encoding of fewest bits."""
    high = low + levels
    encoding = unsigned(high.bit_length()) if low >= 0 and high < 256 else signed(max(2, signed_bits(low, high)))
    return Held(encoding=encoding, zero=low)


def bits_of(graph: SectionGraph, number: int) -> int:
    """Bits in two's complement of map ``number``, at most: the input and sums may be wider than other maps."""
    maker = _maker(graph, number)
    if maker is None:
        return FEATURE_BITS
    most = MADE_BITS if isinstance(maker, WeightSection) else FEATURE_BITS
    return min([most, *(bits_of(graph, reading.map) for reading, _ in zip(maker.reads, maker.shifts))])


def groups(graph: SectionGraph) -> Iterator[dict[int, int]]:
    """The maps that hold the same integers: in each group, by how much each map's level 0 is higher than the first's.

    Each group has the map of the smallest number first.
    """
    apart: dict[int, dict[int, int]] = {number: {} for number in graph.maps}
    for number, section in enumerate(graph.sections, 1):
        for reading, shift in zip(section.reads, section.shifts):
            apart[number][reading.map] = shift
            apart[reading.map][number] = -shift
    seen = set[int]()
    for number in apart:
        if number not in seen:
            group = _together(number, apart)
            seen.update(group)
            yield group


def _together(number: int, apart: Mapping[int, Mapping[int, int]]) -> dict[int, int]:
    """All maps that hold the same integers as one, itself included: by how much their level 0 is higher."""
    group = {number: 0}
    ahead = [number]
    while ahead:
        here = ahead.pop()
        for other, shift in apart[here].items():
            if other not in group:
                group[other] = group[here] + shift
                ahead.append(other)
    return group


def held_alike(graph: SectionGraph, group: Mapping[int, int]) -> dict[int, Held]:
    """How the maps of a group are held as integers: as padded taps, means, products and the rules of TFLite kernels
    need it, else as is best for the first reader. A single map whose reader has padded taps is held without its
    kernel's rule.

    Raises
    ------
    SeveralZeroPoints
        If no integers are right for all that make and read the maps.
    """
    maps = {number: graph.maps[number] for number in group}
    readers = {number: _readers(graph, number) for number in group}
    wanted = [
        (number, integers(maps[number], reader, bits_of(graph, number)))
        for number in group
        for reader in readers[number]
        if reader.padded
    ]
    ruled = len(group) > 1 or not wanted
    wanted += [
        (number, integers(quantised, None))
        for number, quantised in maps.items()
        if quantised.averaged or (ruled and quantised.rule is not None)
    ]
    wanted += [(number, held_from(zero, maps[number].levels)) for number, zero in _zeros(graph) if number in maps]
    if not wanted:
        read = next((number for number in group if readers[number]), next(iter(group)))
        reader = next(iter(readers[read]), None)
        wanted = [(read, integers(maps[read], reader, bits_of(graph, read)))]
    lowest = {held.zero - group[number] for number, held in wanted}  # the integer of level 0 of the first map
    if len(lowest) > 1:
        means = frozenset(quantised.name for quantised in maps.values() if quantised.averaged)
        maker = _maker(graph, next(iter(group)))
        raise SeveralZeroPoints(graph.source.name if maker is None else maker.nodes[-1], means)
    (low,) = lowest
    return {number: held_from(low + shift, maps[number].levels) for number, shift in group.items()}


def _zeros(graph: SectionGraph) -> Iterator[tuple[int, int]]:
    """The integer that level 0 of a map must be for a section that reads or makes it, with the map's number."""
    for number, section in enumerate(graph.sections, 1):
        yield from zip((*(reading.map for reading in section.reads), number), section.zeros)


def zero_groups(graph: SectionGraph) -> None:
    """Raise SeveralZeroPoints if maps can't be held as integers that are right for all that make and read them."""
    for group in groups(graph):
        held_alike(graph, group)


def held_maps(graph: SectionGraph, engines: Sequence[str]) -> dict[int, Held]:
    """By number of a map, how it is held if these engines compute the sections. Maps that the binary engine makes or
    reads are held as thermometer bits, but an input only if it has single bits."""
    out = dict[int, Held]()
    for group in groups(graph):
        makers = {engines[number - 1] for number in group if number - 1 in graph.weighted}
        read = {engines[reader] for number in group for reader in graph.readers[number]}
        if "binary" in makers or ("binary" in read and (0 not in group or graph.source.levels == 1)):
            out.update((number, thermometer(graph.maps[number])) for number in group)
        else:
            out.update(held_alike(graph, group))
    return dict(sorted(out.items()))


def _maker(graph: SectionGraph, number: int) -> Section | None:
    """The section that makes a map; None for the input."""
    return graph.sections[number - 1] if number else None


def _readers(graph: SectionGraph, number: int) -> list[WeightSection]:
    """The sections whose weights read a map."""
    sections = [graph.sections[reader] for reader in graph.readers[number]]
    return [section for section in sections if isinstance(section, WeightSection)]

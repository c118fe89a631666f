"""Sections: what lies between two quantisers of a network, in golden's order of values, as a graph.

    input --> section 0 --> section 1 --+--> section 2 --> section 3 --> scores
                                        `------------------^

Map 0 is the input, map k what section k - 1 makes. A chain of layers is a graph in which each map has one reader.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.window import Window

from .boundaries import Steps
from .errors import ImportRefused, Unsupported, node_line
from .links import Line, Link, bend_name, falls
from .operations import Closing, Elementwise, Levels, Operation, PairOperation
from .rows import Boundaries, LevelTable
from .tflite_rules import KernelRule

MapSize = tuple[int, int, int]
"""Rows, columns, channels."""
MADE_BITS = 9
"""Bits in two's complement of maps that a layer makes for the integer engine, and of inputs of the binary one."""
MOST_THERMOMETER = 15
"""Levels that the binary engine may be given as thermometer bits."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Quantised:
    """A map of levels: its real values are base + step * level."""

    name: str
    """Of the node that made it."""
    base: Fraction
    step: Fraction
    """base, step: step > 0."""
    boundaries: Boundaries | None = None
    """None where integers come in as they are."""
    levels: int
    """The highest level."""
    averaged: bool = False
    """Whether means of the map are taken, rounded to its own values, halves away from 0."""
    halves: bool = False
    """Whether such a mean may lie halfway between two values: its rounding depends on where the values' 0 is."""
    means_off: int = 0
    """How many sums there are, in a channel, of which such a mean is a level off: halves that the file rounds
    otherwise."""
    rule: KernelRule | None = None
    """See `operations.Levels`."""

    @property
    def values(self) -> list[Fraction]:
        """The number that each level stands for, level 0 first."""
        return [self.base + self.step * level for level in range(self.levels + 1)]


@dataclass(frozen=True, kw_only=True, eq=False)
class MapReading:
    """How a section reads a map."""

    map: int
    """The map's number."""
    source: Quantised
    """The map's levels, and what they are worth to this reader."""
    tensor: str
    """The tensor of the file that is read."""
    order: Array
    """int64 array: the place of each value of that tensor in golden's map."""
    links: tuple[Link, ...] = ()
    """Links between the map and that tensor, a channel."""
    padded_with: Fraction = Fraction(0)
    """Number at places of the tensor that are none of golden's map."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Section(ABC):
    """The part of a network between two quantisers; its kinds are below."""

    name: str
    op: str
    """name, op: of the node that it begins with, and that node's operator."""
    nodes: tuple[str, ...] = ()
    """Names of all nodes that the section was made of."""
    reads: tuple[MapReading, ...]
    """The maps that it reads."""
    size: MapSize
    """Of what it makes in front of pools."""
    quantised: Quantised | None = None
    """The map that the quantiser makes; None where sums go to the output."""
    pools: tuple[Window, ...] = ()
    """Pools behind the quantiser: of maxima, but for the last one where the map is averaged."""
    shifts: tuple[int, ...] = ()
    """Where the integers of the maps that it reads stay as they are, for each of these maps: the level, of those of
    what is made, that the map's level 0 has. Else empty."""

    @property
    def map(self) -> Quantised:
        """The map that it makes, where that is quantised."""
        assert self.quantised is not None
        return self.quantised

    @property
    @abstractmethod
    def verb(self) -> str:
        """Word for messages on what becomes of the maps that the section reads, such as "added"."""

    @property
    def integer_only(self) -> bool:
        """Whether it needs the integer engine, for all sections of the network, as everything that joins maps does."""
        return len(self.reads) > 1

    @property
    def zeros(self) -> tuple[int, ...]:
        """Of each map that it reads, and of the map that it makes: the integer that level 0 must be; empty where any
        integers will do."""
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightSection(Section):
    """Sums of weights times values, and their quantiser."""

    weight: Array
    """(outputs, rows, columns, channels / groups) int64: in golden's order."""
    groups: int = 1
    """Groups that channels and outputs are cut into, as `operations.Linear` has them."""
    scale: Array
    """(outputs,) array of Fraction: what an integer weight is worth."""
    window: Window | None
    """None for a dense layer, whose window is the whole map."""
    lead: Line
    """Real numbers of the map that weights read: real = multiply * (base + step * level) + add, a channel."""
    chain: tuple[Link, ...] = ()
    """From the sums to the quantiser, or to the output."""
    inner: tuple[Window, ...] = ()
    """Max pools before the quantiser."""
    inner_at: int = 0
    """How many links of the chain lie before these."""
    real: Array | None = None
    """Real numbers of which ``weight`` are the signs, in the same order."""
    copies: bool = False
    """Whether its weights only copy every channel: one tap of each kernel is 1, all others are 0."""
    takes_one: bool = False
    """Whether each sum has one value of the map: of its taps whose weights are not 0 all others are invalid."""
    sums: tuple[Window, ...] = ()
    """Of means that are taken of the sums, before all that the chain does."""

    @property
    def verb(self) -> str:
        return "multiplied"

    @property
    def reading(self) -> MapReading:
        """The one map that it reads."""
        return self.reads[0]

    @property
    def source(self) -> Quantised:
        """The levels of that map, and what they are worth in front of ``lead``."""
        return self.reads[0].source

    @property
    def count(self) -> int:
        """Number of sums of weights that are added up to one value for the chain: more than 1 if means of sums are
        taken. ``scale`` includes the division."""
        return prod(window.taps for window in self.sums)

    @property
    def padded(self) -> bool:
        """Whether its sums lack taps that are no position of the map."""
        return self.window is not None and self.window.padded and not self.takes_one

    @cached_property
    def steps(self) -> Steps:
        """Where the levels of its quantiser begin, on the real numbers that its sums are worth."""
        assert self.map.boundaries is not None
        return Steps.of(self.chain, self.map.boundaries, len(self.weight))

    @cached_property
    def thresholds_only(self) -> str:
        """Why only thresholds can have the levels of the section's quantiser; empty if the integer engine may have
        them."""
        if self.inner and falls(self.chain[self.inner_at :]):
            return "between a max pool and a quantiser nothing may fall, got a negative scale"
        return ""

    @cached_property
    def ramps_only(self) -> str:
        """Why a requantisation, which is one line a channel and one clip for all channels, can't have the levels of the
        section's quantiser, but a sum of ramps may (ramps.py); empty if one may. Whether there are factors that round
        as the file does, requantise_fit.py finds out later."""
        if not self.steps.straight:
            why = f"a requantisation has one slope, got a {bend_name(self.chain)} that bends between two levels"
            return f"{why}; only maps that binary layers make or read have thresholds"
        if not self.steps.ends_alike(self.scale):
            return "all channels must be clipped to the same values; clip before what scales each channel"
        return ""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairSection(Section):
    """A section of two maps: the layer that joins them value by value, such as a sum, and its quantiser."""

    join: PairOperation
    """The operation that makes one map of two."""
    between: tuple[Elementwise, ...] = ()
    """Links between the operation and its quantiser: lines and bends that are alike in all channels."""
    quantiser: Levels | None = None
    """Its quantiser, alike in all channels; None where the operation is a table of integers."""

    @property
    def verb(self) -> str:
        return self.join.verb

    @property
    def line(self) -> tuple[Fraction, Fraction]:
        """(slope, offset): bends, rounding and clips aside, a result has level slope * result + offset."""
        assert self.quantiser is not None
        slope, offset = self.quantiser.line
        for operation in reversed(self.between):
            offset = offset + slope * operation.link.offset(0)
            slope = slope * operation.link.slope(0)
        return slope, offset

    @property
    def zeros(self) -> tuple[int, ...]:
        if not self.join.needs_zero:
            return ()
        slope, offset = self.line
        if slope <= 0:
            raise Unsupported(f"between a {self.join.noun} and its quantiser nothing may fall, got a negative scale")
        zeros = [*(reading.source.base / reading.source.step for reading in self.reads), -offset]
        for zero, levels in zip(zeros, (*(reading.source.levels for reading in self.reads), self.map.levels)):
            if zero.denominator != 1 or not -(1 << MADE_BITS - 1) <= zero < (1 << MADE_BITS - 1) - levels:
                maps = f"maps that are {self.verb}, and of the {self.join.noun},"
                rule = f"{MADE_BITS}-bit integers of {maps} must have 0 for 0"
                raise Unsupported(f"{rule}, got 0 at level {float(-zero):g} of {levels + 1}")
        return tuple(map(int, zeros))


@dataclass(frozen=True, kw_only=True, eq=False)
class TableSection(Section):
    """Levels of a map, each of which becomes another level."""

    table: LevelTable
    """The level that is made of each level of the map."""

    @property
    def verb(self) -> str:
        return "looked up"

    @property
    def integer_only(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True, eq=False)
class PassSection(Section):
    """Maps behind one another, or one map, whose integers stay as they are, and pools."""

    @property
    def verb(self) -> str:
        return "concatenated" if len(self.reads) > 1 else "pooled"


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputMap:
    """A map that leaves, and what the host makes of it."""

    map: int
    """The map's number."""
    source: Quantised | None
    """The levels of the map, and what they are worth in front of ``links``; None of sums."""
    links: tuple[Link, ...]
    """Links that the host computes behind the map's real numbers, a channel."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SectionOutput:
    """An output of the network."""

    tensor: str
    """Its name in the operations."""
    maps: tuple[OutputMap, ...]
    """Maps of which it is put together: one, or those that a concatenation at the network's end joins."""
    order: Array
    """The place of each of its values among those of the maps, one map behind the other."""
    closing: tuple[str, ...]
    """Operators that the host computes at the end."""
    classes: int
    apart: int
    """classes, apart: over which values: see `HostOutput`."""

    @classmethod
    def of(
        cls, tensor: str, maps: Sequence[OutputMap], index: Array, closing: Sequence[tuple[Closing, Array]]
    ) -> "SectionOutput":
        """The output that a tensor is, whose ``index`` says where its values lie among those of the maps. ``closing``:
        the operators that end it, each with the index of what it reads.

        Raises
        ------
        ImportRefused
            With a line for an operator whose classes don't lie on one axis of the output.
        """
        places = np.empty(index.size, np.int64)  # of each value of the maps, in the output
        places[index.ravel()] = np.arange(index.size)
        classes = apart = 1
        for operation, before in closing:
            if operation.classes == 1:
                continue
            groups = np.sort(places[operation.groups(before)], axis=1)
            over = operation.classes, int(groups[0, 1] - groups[0, 0])
            steps = groups // over[1] % over[0] - np.arange(over[0])
            if (np.diff(groups, axis=1) != over[1]).any() or steps.any() or (classes > 1 and over != (classes, apart)):
                why = "what the network ends in must be over one axis of its output, got values in another order"
                raise ImportRefused([node_line(operation.name, operation.op, why)])
            classes, apart = over
        return cls(
            tensor=tensor,
            maps=tuple(maps),
            order=index.ravel(),
            closing=tuple(operation.op for operation, _ in closing),
            classes=classes,
            apart=apart,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SectionGraph:
    """A network as sections."""

    operations: tuple[Operation, ...]
    """All operations that an output depends on."""
    front: tuple[Link, ...]
    """Links that the host computes of an image, a channel, before it quantises the image; none where integers come
    in."""
    source: Quantised
    """Map 0, which the accelerator reads."""
    size: MapSize
    """Its rows, columns and channels."""
    order: Array
    """int64 array: of the input tensor's shape, with 1 in front: the place of each value in map 0."""
    sections: tuple[Section, ...]
    """Each behind those whose maps it reads."""
    outputs: tuple[SectionOutput, ...]
    """Those that depend on the input, in the file's order."""

    @cached_property
    def maps(self) -> Mapping[int, Quantised]:
        """All quantised maps by number: the input's and each section's. A section has none if its sums leave."""
        quantised = enumerate((section.quantised for section in self.sections), 1)
        return {0: self.source, **{number: levels for number, levels in quantised if levels is not None}}

    @cached_property
    def leaving(self) -> tuple[int, ...]:
        """Numbers of the maps that leave, each once."""
        return tuple(dict.fromkeys(each.map for output in self.outputs for each in output.maps))

    @cached_property
    def weighted(self) -> tuple[int, ...]:
        """Numbers of the sections with weights."""
        return tuple(number for number, section in enumerate(self.sections) if isinstance(section, WeightSection))

    @cached_property
    def readers(self) -> Mapping[int, Sequence[int]]:
        """By number of a map, the numbers of the sections whose weights read the map."""
        readers: dict[int, list[int]] = {number: [] for number in self.maps}
        for number, section in enumerate(self.sections):
            if isinstance(section, WeightSection):
                readers[section.reading.map].append(number)
        return readers

    @property
    def is_chain(self) -> bool:
        """Whether each section reads one map, and one map leaves. As all maps lead to it, each then has one reader."""
        return len(self.leaving) == 1 and all(len(section.reads) == 1 for section in self.sections)

    @property
    def integer_only(self) -> str:
        """Words for what its sections do with maps that needs the integer engine, such as "added and concatenated"; ""
        if nothing does."""
        verbs = {section.verb for section in self.sections if section.integer_only}
        return " and ".join(sorted({*verbs, *["sent as several outputs"] * (len(self.leaving) > 1)}))


def in_order(size: MapSize) -> Array:
    """The index of a whole map as a tensor (1, channels, rows, columns): the place of each value in golden's map, which
    is row-major over rows, columns, channels."""
    return np.arange(prod(size)).reshape(1, *size).transpose(0, 3, 1, 2)

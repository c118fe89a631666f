"""Results unit: it makes features of sums, OL at a time, by thresholds or by requantisation, looks them up in tables,
and adds maps."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from bitloom.golden.encoding import Array, signed_bits
from bitloom.golden.layers.add import Add, Pairwise
from bitloom.golden.layers.lookup import ENTRIES, Lookup
from bitloom.golden.layers.multiply import MultiplyMaps
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.layers.rounding import FIRST_SHIFT

from .parts import NpuPart, capacity, choice, number
from .rules import require
from .widths import FRACTION_BITS, MULTIPLIER_BITS

LUT_PRODUCTS = ("addition", "pool")
"""Units that may multiply in LUTs within 8 levels: an addition of maps has two products a lane of ol; of pool results,
whose product two DSP blocks make, LUTs multiply by the upper half of the multiplier."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """Numbers that a unit has in a field of a memory, in each row one: of a layer, of a channel, or of a table.

    ``bits`` and ``none`` are numbers, or name an attribute of an `Npu` that has the number: "results.multiplier_bits".
    """

    bits: int | str
    """Their width. Where it is 0 there is no such field. A width that is a capacity is as large as layers need it."""
    signed: bool = True
    """Whether they are in two's complement; else they are never negative."""
    of: str = ""
    """Of a feature unit: the array of golden's layer that has them, or an attribute of the layer."""
    together: bool = False
    """Of channels: whether the numbers of all lanes lie side by side in one field, that of lane 0 lowest."""
    none: int | str = 0
    """The number where the unit has nothing to do: of another layer, or of a lane without a channel."""

    def width_for(self, numbers: Array) -> int:
        """The width that a layer with these numbers needs; 0 where all are ``none``."""
        low, high = int(np.min(numbers)), int(np.max(numbers))
        if low == high == self.none:
            return 0
        return signed_bits(low, high) if self.signed else high.bit_length()


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A unit between sums and features: the numbers that it reads."""

    of_layer: Mapping[str, Column] = field(default_factory=dict)
    """By field of the layer's row, in memory ``results`` where nothing else is said."""
    of_channel: Mapping[str, Column] = field(default_factory=dict)
    """By field of a row of the activation's memory, which has one for each of OL lanes: ``bias`` is ``bias_0``,
    ``bias_1`` and so on."""


@dataclass(frozen=True, kw_only=True)
class ActivationUnit(Unit):
    """The unit that makes results of sums in the results unit. Sums that leave as they are pass it by.

        sums[OL] --> activation --results[OL]--> feature units, where it requantises

    The numbers of a layer come from its first action (`bitloom.hls_gen.compiler.actions.ActivationAction`).
    """

    memory: str
    """The memory with the numbers of channels: a row for each step of OL results."""
    stages: tuple[str, ...]
    """The register stages, in order: one step of the arithmetic each, so that none is deeper than 8 LUT levels."""


SUMS = Unit(of_layer={"raw": Column(bits="ports.sends_results", signed=False)})
"""Raw results, which pass the activation by, in an NPU with outlet "host": whether a layer has them."""
THRESHOLDS = ActivationUnit(
    memory="thresholds",
    stages=("value",),
    of_channel={"thresholds": Column(bits="array.acc_bits", together=True)},
)
"""Comparison with thresholds: a result is the bit whether the sum is at least the threshold."""
REQUANTISATION = ActivationUnit(
    memory="scales",
    stages=("value", "product", "half", "rounded", "shifted", "feature"),
    of_layer={
        "low": Column(bits="value_bits", none="lowest_value"),
        "high": Column(bits="value_bits", none="highest_value"),
        "half_even": Column(bits="results.half_even", signed=False),
        "round_twice": Column(bits="results.round_twice", signed=False),
    },
    of_channel={
        "bias": Column(bits="biased_bits"),
        "multiplier": Column(bits="results.multiplier_bits", signed=False, none=1),
        "shift": Column(bits="scale_shift_bits", signed=False, none="most_shift"),
    },
)
"""Requantisation, of the results unit, or of a pool unit with weights, which has memories of its own. In lanes without
a channel every sum becomes 0, as the binary engine needs it."""
ADDITION = Unit(
    of_layer={
        "multiplies": Column(bits="stores.skip.multiplies", signed=False),
        "factor_kept": Column(bits="stores.skip.factor_bits", none=1),
        "factor_skipped": Column(bits="stores.skip.factor_bits"),
        "bias": Column(bits="stores.skip.bias_bits"),
        "shift": Column(bits="add_shift_bits", signed=False),
        "low": Column(bits="value_bits", none="lowest_value"),
        "high": Column(bits="value_bits", none="highest_value"),
    }
)
"""Addition of a map, or the product with it, in an NPU with a skip store. Layers have their rows in memory
``additions``. With a row of a layer that adds nothing, results would leave as they came."""
PAIRS: Mapping[type[Pairwise], str] = {Add: "", MultiplyMaps: "multiplies"}
"""The layers that make one map of two, value by value, in the addition; of each the field of `ADDITION` that is 1 for
it, none for the sum. The compiler takes them from here."""


@dataclass(frozen=True, kw_only=True)
class UnitTable:
    """A memory of a feature unit, in which each lane reads a RAM of its own. The rows of layers lie one behind the
    other; the unit's capacity is their number, a multiple of a layer's."""

    memory: str
    """Its name."""
    rows: int
    """Rows of a layer, as many as golden's arrays have numbers: a power of two."""
    number: str
    """Name of the registers that carry the number of a layer's table."""
    base: str
    """Field of a layer's row of memory ``results``: where its rows begin."""
    columns: Mapping[str, Column]
    """By field."""


class LaneArea(NamedTuple):
    """Cells of a device that a lane of a feature unit takes, besides its memory."""

    lut: float
    ff: float
    dsp: int = 0


@dataclass(frozen=True, kw_only=True)
class FeatureUnit(Unit):
    """A unit that may stand behind a requantisation and makes other features of its features, in register stages of its
    own that move together with those of the requantisation.

        sums[OL] --> requantisation --features[OL]--> feature unit --features[OL]--> ... --> features[OL]

    It reads what it needs: numbers of the layer, numbers of each channel, rows of a table that the feature chooses.
    """

    layer: type[FeatureLayer]
    """Golden's layer, whose ``forward`` it is."""
    capacity: str
    """Field of `IntegerResults`; an NPU has the unit where it isn't 0."""
    mark: str
    """Field of a layer's row of memory ``results``: the layer is of this kind, else its features stay as they are."""
    stages: tuple[str, ...]
    """The register stages, in order."""
    means: str
    """The unit's function of features, as a sentence for the generated Verilog."""
    area: Callable[[int], LaneArea]
    """Cells of a lane, by the width of a feature."""
    table: UnitTable | None = None
    """None: it has no memory."""

    @property
    def of_a_layer(self) -> int:
        """The need of a layer for the unit's capacity."""
        return self.table.rows if self.table else 1


LOOKUP = FeatureUnit(
    layer=Lookup,
    capacity="lookup_rows",
    mark="looks_up",
    stages=("entry", "looked_up"),
    means="What a table has for the features, where the layer has one.",
    area=lambda bits: LaneArea(lut=bits, ff=2 * bits),  # between the feature and its entry, a LUT a bit
    table=UnitTable(
        memory="lookups",
        rows=ENTRIES,
        number="table_number",
        base="lookup_base",
        columns={"entry": Column(bits="value_bits", of="entries")},
    ),
)
"""Tables in which features are looked up. The stages are the table's entry, and the choice between it and the feature
of a layer without a table."""
FEATURE_UNITS = (LOOKUP,)
"""All feature units, in the order in which they stand. Compiler, memories and timing take them from here. No two of
them, nor one and `REQUANTISATION`, have a field, a mark or a stage of the same name."""


@dataclass(frozen=True, kw_only=True)
class Results(NpuPart):
    """The results unit: what all kinds have."""

    activation: ClassVar[ActivationUnit]
    """The unit that makes results of sums."""

    ol: int = number(1, means="Results that leave the array in a cycle, kgp at most.")
    levels: int = capacity(64, least=2)
    """Thresholds of an activation, >= 2."""
    threshold_rows: int = capacity(256, least=2, added=True)
    """Rows of ol thresholds, or of ol times bias, multiplier and shift, >= 2."""

    @property
    def feature_units(self) -> tuple[FeatureUnit, ...]:
        """The feature units that it has."""
        return ()


@dataclass(frozen=True, kw_only=True)
class ThresholdResults(Results):
    """The results unit of a binary NPU without a skip store: it compares sums with thresholds."""

    engine: ClassVar[str] = "binary"
    activation: ClassVar[ActivationUnit] = THRESHOLDS
    lut_products: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, kw_only=True)
class RequantisedResults(Results):
    """A results unit that requantises sums."""

    activation: ClassVar[ActivationUnit] = REQUANTISATION

    multiplier_bits: int = capacity(16, least=0, most=MULTIPLIER_BITS)
    """Width of the multipliers, 0..31; 0: all multipliers are 1, and there are none."""
    bias_fraction_bits: int = capacity(0, least=0, most=FRACTION_BITS, rare=True)
    """Bits of a bias behind the point, 0..16; the compiler shifts layers that have fewer."""
    half_even: int = capacity(0, least=0, most=1, rare=True)
    """Whether layers may round halves to the even neighbour, 0 or 1; without it all round them away from zero."""
    round_twice: int = capacity(0, least=0, most=1, rare=True)
    """Whether layers may round twice, as TFLite's kernels do, 0 or 1."""

    @property
    def roundings(self) -> tuple[str, ...]:
        """How layers may round (golden.layers.requantise.ROUNDINGS)."""
        return ("once", *["even"] * self.half_even, *["twice"] * self.round_twice)

    @property
    def first_shift(self) -> int:
        """Bits that the first of two roundings takes off, with those behind the bias's point."""
        return FIRST_SHIFT + self.bias_fraction_bits


@dataclass(frozen=True, kw_only=True)
class SignResults(RequantisedResults):
    """The results unit of a binary NPU with a skip store: integers are added, and their signs go on."""

    engine: ClassVar[str] = "binary"
    lut_products: ClassVar[tuple[str, ...]] = ()


@dataclass(frozen=True, kw_only=True)
class IntegerResults(RequantisedResults):
    """The results unit of an integer NPU."""

    engine: ClassVar[str] = "integer"

    lut_products: tuple[str, ...] = choice(
        (),
        LUT_PRODUCTS,
        rare=True,
        means="Units of the integer engine that multiply in LUTs, not in DSP blocks.",
    )
    lookup_rows: int = capacity(0, least=ENTRIES, or_zero=True, added=True, rare=True)
    """Entries of the tables in which layers look their features up, 256 a table; 0: there is none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for unit in self.feature_units:
            value = getattr(self, unit.capacity)
            require(
                value % unit.of_a_layer == 0, f"{unit.capacity} must be a multiple of {unit.of_a_layer}", str(value)
            )

    @property
    def feature_units(self) -> tuple[FeatureUnit, ...]:
        """The feature units that it has."""
        return tuple(unit for unit in FEATURE_UNITS if getattr(self, unit.capacity))


def results_kind(engine: str, *, adds: bool) -> type[ThresholdResults | SignResults | IntegerResults]:
    """The kind of results unit of an NPU of an engine; ``adds``: whether it has a skip store, and so an addition."""
    if engine == "integer":
        return IntegerResults
    return SignResults if adds else ThresholdResults

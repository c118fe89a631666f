"""Array: the processing elements (PEs) of an NPU and the memory of their weights.

KGP PEs work side by side, each on another kernel; a PE takes KFP channels of a map in a cycle. There are two kinds:
a `BinaryArray` counts where bits match (XNOR and popcount), an `IntegerArray` multiplies.
"""

from dataclasses import dataclass
from typing import ClassVar

from .lanes import lane_groups, plane_lanes, weight_of_lanes
from .packed_products import most_kernels
from .parts import Part, capacity, number, value
from .rules import require
from .widths import ACC_BITS, FEATURE_BITS, PLANES, WEIGHT_BITS, bits_for

ACCUMULATIONS = ("popcount", "or", "both", "or_words")
KERNEL_RAMS = ("auto", "block", "distributed")
MOST_ACCUMULATORS = 256
"""Accumulators of a PE at most: a small memory beside it."""


def weighs_planes(accumulate: str, collect: int = 0) -> bool:
    """Whether PEs that accumulate so can give matches the weight of a bit plane: those that count, beat by beat. Others
    have planes 0 and shift_bits 0."""
    return accumulate in ("popcount", "both") and not collect


@dataclass(frozen=True, kw_only=True)
class Array(Part):
    """What both kinds of array have.

    Attributes
    ----------
    kfp
        Input lanes: channels that a PE takes in a cycle, >= 1 (spec B, KFP).
    kgp
        PEs: kernels that work in parallel, >= 1 (KGP).
    accumulators
        Of each PE: 1, registers, for dataflow output_stationary; or a power of two of them, at most 256, in a small
        memory, which also allows input_stationary: at least the kernel groups of a layer, twice as many for overlap.
    kernel_ram
        What synthesis makes of the kernel memory: "block" RAM, "distributed" (LUT RAM), or "auto".
    one_memory
        Whether features and weights lie in one memory (hls_gen/rtl/array/operand_memory.py).
    acc_bits
        Width of the accumulators, 4..32. Sized.
    kernel_rows
        Rows of kgp * row_weights weights, kernel memories a and b together, >= 2. With ``one_memory`` rows of the one
        memory, of which features have the first ``tuple_words``. Sized.
    """

    engine: ClassVar[str]

    kfp: int = number(8)
    kgp: int = number(8)
    accumulators: int = number(1)
    kernel_ram: str = "auto"
    one_memory: bool = value(False, rare=True)
    acc_bits: int = capacity(16)
    kernel_rows: int = capacity(1024, least=2, added=True)

    def _check(self) -> None:
        """Raise ValueError unless the fields of both kinds are in their ranges."""
        ok = self.accumulators <= MOST_ACCUMULATORS and not self.accumulators & (self.accumulators - 1)
        require(ok, f"accumulators must be a power of two <= {MOST_ACCUMULATORS}", self.accumulators)
        require(self.kernel_ram in KERNEL_RAMS, "kernel_ram must be auto, block or distributed", repr(self.kernel_ram))
        require(4 <= self.acc_bits <= ACC_BITS, f"acc_bits must be 4..{ACC_BITS}", self.acc_bits)

    @property
    def slot_bits(self) -> int:
        """Width of the number of an accumulator in its PE."""
        return bits_for(self.accumulators - 1)

    @property
    def row_bits(self) -> int:
        """Width of a kernel row's address."""
        return bits_for(self.kernel_rows - 1)


@dataclass(frozen=True, kw_only=True)
class BinaryArray(Array):
    """Array of PEs that count where bits of features and weights match. Features and weights have 1 bit.

    Attributes
    ----------
    accumulate
        "popcount", "or" (a PE without popcount, for networks whose layers are all ``or``), "both", chosen by layer, or
        "or_words" (a PE that counts words, for networks whose layers are all ``or_words``).
    word_lanes
        Lanes whose products are ORed to the bit of a word, a divisor of kfp. With "popcount" and "both" layers may
        then choose ``or_words`` too; 0: none can. "or_words" needs at least 1, "or" has 0.
    collect
        0, or bits of a register in each PE that takes the products of a window before they are reduced at once: a
        multiple of kfp. With one accumulator, no planes and no shift_bits. Sizing makes one that is not 0 as wide as
        the networks need.
    planes
        0, or 2..9 bit planes side by side in a PE's lanes for integer inputs; needs kfp >= planes + 1.
    shift_bits
        0..4; where planes is 0, bit planes come one after another, shifted by 0..2^shift_bits - 1.
    kernel_binariser
        Whether weights come as integers of 8 bits, which are made binary on line, in front of the kernel memory: +1
        where the integer is at least 0 (spec A9).
    lanes_per_weight, lane_step
        Lanes of a word that share a weight, >= 1, and how far apart they lie, >= 1 (lanes.weight_of_lanes): where all
        maps have values of so many thermometer bits, a weight is stored once. More than 1 only without planes side by
        side. Sized.
    """

    engine: ClassVar[str] = "binary"
    feature_bits: ClassVar[int] = 1
    weight_bits: ClassVar[int] = 1
    kernels_per_multiplier: ClassVar[int] = 1

    accumulate: str = "popcount"
    word_lanes: int = number(0, least=0, rare=True)
    collect: int = number(0, least=0)
    planes: int = number(0, least=0)
    shift_bits: int = number(3, least=0, most=bits_for(PLANES - 1))
    kernel_binariser: bool = value(False, rare=True)
    lanes_per_weight: int = capacity(1, rare=True)
    lane_step: int = capacity(1, rare=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()
        self._check_planes()
        self._check_accumulation()
        least = self.least_acc_bits
        lanes = f"collect = {self.collect}" if self.collect else f"kfp = {self.kfp}"
        require(self.acc_bits >= least, f"acc_bits must be >= {least} for {lanes}", self.acc_bits)
        if self.lanes_per_weight > 1:
            block = self.lanes_per_weight * self.lane_step
            require(block <= self.kfp, f"lanes_per_weight * lane_step must be <= kfp = {self.kfp}", block)
            require(not self.planes, f"lanes_per_weight must be 1 for planes = {self.planes}", self.lanes_per_weight)

    def _check_planes(self) -> None:
        """Raise ValueError unless planes are as many as the lanes have room for."""
        ok = self.planes == 0 or (2 <= self.planes <= PLANES and self.kfp > self.planes)
        require(ok, f"planes must be 0 or 2..{PLANES} and below kfp = {self.kfp}", self.planes)

    def _check_accumulation(self) -> None:
        """Raise ValueError unless accumulate, word_lanes and collect go with the rest."""
        require(
            self.accumulate in ACCUMULATIONS,
            f"accumulate must be one of {', '.join(ACCUMULATIONS)}",
            repr(self.accumulate),
        )
        require(
            weighs_planes(self.accumulate) or not (self.planes or self.shift_bits),
            f"planes and shift_bits must be 0 for accumulate {self.accumulate}",
            f"{self.planes} and {self.shift_bits}",
        )
        lanes = self.word_lanes
        if self.accumulate == "or":
            require(lanes == 0, "word_lanes must be 0 for accumulate or", lanes)
        else:
            ok = self.accumulate != "or_words" if lanes == 0 else self.kfp % lanes == 0
            least = "" if self.accumulate == "or_words" else "be 0 or "
            require(ok, f"word_lanes must {least}divide kfp = {self.kfp}", lanes)
        require(self.collect % self.kfp == 0, f"collect must be 0 or a multiple of kfp = {self.kfp}", self.collect)
        needs = (self.accumulators, self.planes, self.shift_bits)
        rule = "collect needs accumulators 1, planes 0 and shift_bits 0"
        require(not self.collect or needs == (1, 0, 0), rule, "{}, {} and {}".format(*needs))

    @property
    def chooses_words(self) -> bool:
        """Whether layers choose between counting products and counting words."""
        return self.word_lanes > 0 and self.accumulate != "or_words"

    @property
    def terms(self) -> int:
        """What a PE counts at once at most: lanes, or products that it has collected; or their words."""
        return (self.collect or self.kfp) // (self.word_lanes if self.accumulate == "or_words" else 1)

    @property
    def least_acc_bits(self) -> int:
        """Width of an accumulator that holds what one beat adds, >= 4."""
        return 4 if self.accumulate == "or" else max(4, bits_for(self.terms) + 1)

    @property
    def word_bits(self) -> int:
        """Width of a word of the tuple memory."""
        return self.kfp

    @property
    def plane_lanes(self) -> int:
        """Channels of an input of integers, or of values of lanes_per_weight bits, in a word; lanes that are left over
        behind the last block of lanes that share weights have none."""
        if self.lanes_per_weight == 1:
            return plane_lanes(self.kfp, self.planes)
        return self.kfp // (self.lanes_per_weight * self.lane_step) * self.lane_step

    @property
    def lane_groups(self) -> list[tuple[int, int]]:
        """(first lane, lanes) of each lane group of a PE; one group without planes."""
        return lane_groups(self.kfp, self.planes)

    @property
    def weight_of_lanes(self) -> list[int]:
        """Number of the weight that each lane meets (lanes.weight_of_lanes)."""
        return weight_of_lanes(self.kfp, self.lanes_per_weight, self.lane_step)

    @property
    def row_weights(self) -> int:
        """Weights of a PE in a row of the kernel memory: kfp, or fewer where lanes share them."""
        blocks, rest = divmod(self.kfp, self.lanes_per_weight * self.lane_step)
        return blocks * self.lane_step + min(rest, self.lane_step)


@dataclass(frozen=True, kw_only=True)
class IntegerArray(Array):
    """Array of PEs that multiply features by weights, both in two's complement.

    Attributes
    ----------
    feature_bits, weight_bits
        Bits of a feature, 2..20, and of a weight, 2..8.
    kernels_per_multiplier
        Kernels whose weights one multiplier takes side by side, 1..kgp and as many as fit (packed_products.py): with 2,
        an array of 8-bit integers takes half the DSP blocks.
    """

    engine: ClassVar[str] = "integer"
    accumulate: ClassVar[str] = "popcount"
    word_lanes: ClassVar[int] = 0
    collect: ClassVar[int] = 0
    planes: ClassVar[int] = 0
    shift_bits: ClassVar[int] = 0
    kernel_binariser: ClassVar[bool] = False
    lanes_per_weight: ClassVar[int] = 1
    lane_step: ClassVar[int] = 1
    chooses_words: ClassVar[bool] = False

    feature_bits: int
    weight_bits: int
    kernels_per_multiplier: int = number(1, rare=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()
        for name, most in (("feature_bits", FEATURE_BITS), ("weight_bits", WEIGHT_BITS)):
            value = getattr(self, name)
            ok = type(value) is int and 2 <= value <= most
            require(ok, f"{name} must be 2..{most} for engine integer", repr(value))
        self._check_packing()
        least = self.least_acc_bits
        require(self.acc_bits >= least, f"acc_bits must be >= {least} for kfp = {self.kfp}", self.acc_bits)

    def _check_packing(self) -> None:
        """Raise ValueError unless a multiplier can take the weights of kernels_per_multiplier kernels."""
        name = "kernels_per_multiplier"
        kernels = self.kernels_per_multiplier
        require(kernels <= self.kgp, f"{name} must be <= kgp = {self.kgp}", kernels)
        most = most_kernels(self.feature_bits, self.weight_bits)
        sizes = f"features of {self.feature_bits} and weights of {self.weight_bits} bits"
        require(kernels <= most, f"{name} must be 1..{most} for {sizes}", kernels)

    @property
    def terms(self) -> int:
        """Products that a PE adds at once."""
        return self.kfp

    @property
    def least_acc_bits(self) -> int:
        """Width of an accumulator that holds what one beat adds, >= 4."""
        return max(4, bits_for(self.kfp) + self.feature_bits + self.weight_bits)

    @property
    def word_bits(self) -> int:
        """Width of a word of the tuple memory."""
        return self.kfp * self.feature_bits

    @property
    def plane_lanes(self) -> int:
        """Channels of the input in a word: one a lane."""
        return self.kfp

    @property
    def lane_groups(self) -> list[tuple[int, int]]:
        """(first lane, lanes) of each lane group of a PE: one group of all lanes."""
        return [(0, self.kfp)]

    @property
    def weight_of_lanes(self) -> list[int]:
        """Number of the weight that each lane meets: every lane has its own."""
        return list(range(self.kfp))

    @property
    def row_weights(self) -> int:
        """Weights of a PE in a row of the kernel memory."""
        return self.kfp

"""Array: the processing elements (PEs) of an NPU and the memory of their weights.

KGP PEs work side by side, each on another kernel; a PE takes KFP channels of a map in a cycle. There are two kinds:
a `BinaryArray` counts where bits match (XNOR and popcount), an `IntegerArray` multiplies.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from .lanes import lane_groups, plane_lanes, weight_of_lanes
from .packed_products import most_kernels
from .parts import RAM_STYLES, NpuPart, capacity, choice, number, value
from .reducer import BinaryReducer, ProductSum, Reducer, SerialPopcount
from .rules import require
from .split_window import BeatTaps
from .widths import ACC_BITS, FEATURE_BITS, WEIGHT_BITS, bits_for

MOST_ACCUMULATORS = 256
"""Accumulators of a PE at most: a small memory beside it."""


def kernel_groups(kernels: int, kgp: int) -> int:
    """Groups of KGP kernels that so many kernels are, the last of which may have fewer."""
    return -(-kernels // kgp)


@dataclass(frozen=True, kw_only=True)
class PeArray(NpuPart):
    """The values that arrays of both engines have."""

    most_visits: ClassVar[int]
    """Times that a layer visits a tap, one after another, at most."""
    zero_weights: ClassVar[bool]
    """Whether a weight may be 0, by which a lane adds nothing whatever its feature is."""

    kfp: int = number(8, means="Input channels that a PE takes in a cycle.")
    kgp: int = number(8, means="PEs: kernels that work in parallel.")
    line_taps: int = number(
        1,
        most=16,
        rare=True,
        means="Words of maps, of KFP / line_taps channels, side by side in a PE: taps of a line of the kernel.",
    )
    accumulators: int = number(
        1,
        least=1,
        most=MOST_ACCUMULATORS,
        power=True,
        means="Accumulators of a PE: kernel groups that share a word. Several allow dataflow input_stationary.",
    )
    kernel_ram: str = choice("auto", RAM_STYLES, means="What synthesis makes of the kernel memory.")
    one_memory: bool = value(
        False,
        rare=True,
        means="Kernels and features in one memory, a read a cycle; in all NPUs or in none, without streamed weights.",
    )
    acc_bits: int = capacity(16)
    """Width of the accumulators, 4..32. Sized."""
    kernel_rows: int = capacity(1024, least=2, added=True)
    """Rows of kgp * row_weights weights, kernel memories a and b together, >= 2. With ``one_memory`` rows of the one
    memory, of which features have the first ``tuple_words``. Sized."""

    if TYPE_CHECKING:  # each kind of array says them, by a field or for all of its arrays

        @property
        def feature_bits(self) -> int: ...
        @property
        def planes(self) -> int: ...
        @property
        def lanes_per_weight(self) -> int: ...
        @property
        def lane_step(self) -> int: ...

    def _check(self) -> None:
        """Raise ValueError unless the fields of both kinds are in their ranges."""
        require(4 <= self.acc_bits <= ACC_BITS, f"acc_bits must be 4..{ACC_BITS}", self.acc_bits)
        require(self.kfp % self.line_taps == 0, f"line_taps must divide kfp = {self.kfp}", self.line_taps)

    @property
    def beat(self) -> BeatTaps:
        """The taps that it takes in a beat, of a layer whose lines are formed; of others so many words of a tuple."""
        return BeatTaps(1, self.line_taps)

    @property
    def map_lanes(self) -> int:
        """Channels in a word of a map: where maps wait, and on their way from one NPU to another and to the host."""
        return self.kfp // self.line_taps

    def groups(self, kernels: int) -> int:
        """Kernel groups of so many kernels."""
        return kernel_groups(kernels, self.kgp)

    @property
    def slot_bits(self) -> int:
        """Width of the number of an accumulator in its PE."""
        return bits_for(self.accumulators - 1)

    @property
    def row_bits(self) -> int:
        """Width of a kernel row's address."""
        return bits_for(self.kernel_rows - 1)

    @property
    def word_bits(self) -> int:
        """Width of a word of the tuple memory."""
        return self.kfp * self.feature_bits

    @property
    def map_bits(self) -> int:
        """Width of a word of a map."""
        return self.map_lanes * self.feature_bits

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
class BinaryArray(PeArray):
    """Array of PEs that count where bits of features and weights match. Features and weights have 1 bit."""

    engine: ClassVar[str] = "binary"
    most_visits: ClassVar[int] = 2
    zero_weights: ClassVar[bool] = False
    feature_bits: ClassVar[int] = 1
    weight_bits: ClassVar[int] = 1
    kernels_per_multiplier: ClassVar[int] = 1
    most_kernels_per_multiplier: ClassVar[int] = 1

    reducer: BinaryReducer = field(default_factory=SerialPopcount)
    """The unit that makes one number of the products of a window."""
    kernel_binariser: bool = value(
        False,
        rare=True,
        means="Weights come as integers of 8 bits, which are made binary in front of the kernel memory.",
    )
    lanes_per_weight: int = capacity(1, rare=True)
    lane_step: int = capacity(1, rare=True)
    """lanes_per_weight, lane_step: lanes of a word that share a weight, >= 1, and how far apart they lie, >= 1
    (lanes.weight_of_lanes): where all maps have values of so many thermometer bits, a weight is stored once. More than
    1 only without planes side by side. Sized."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()
        self.reducer.check_lanes(self.kfp)
        collects = self.reducer.collects
        products = f"collect = {self.reducer.products(self.kfp)}"
        require(not collects or self.accumulators == 1, f"accumulators must be 1 for {products}", self.accumulators)
        least = self.reducer.least_acc_bits(self.kfp)
        lanes = products if collects else f"kfp = {self.kfp}"
        require(self.acc_bits >= least, f"acc_bits must be >= {least} for {lanes}", self.acc_bits)
        ok = self.line_taps == 1 or self.lanes_per_weight == 1
        require(ok, f"lanes_per_weight must be 1 for line_taps = {self.line_taps}", self.lanes_per_weight)
        if self.lanes_per_weight > 1:
            block = self.lanes_per_weight * self.lane_step
            require(block <= self.kfp, f"lanes_per_weight * lane_step must be <= kfp = {self.kfp}", block)
            require(not self.planes, f"lanes_per_weight must be 1 for planes = {self.planes}", self.lanes_per_weight)

    @property
    def may_share_weights(self) -> bool:
        """Whether lanes may share a weight."""
        return self.line_taps == 1 and not self.planes

    @property
    def planes(self) -> int:
        """Bit planes of an integer input that lie side by side in a word; 0: none do."""
        return self.reducer.planes if isinstance(self.reducer, SerialPopcount) else 0

    @property
    def offset_bits(self) -> int:
        """Width of what is taken off the sums of a window, which may count twice before; 0: sums stay as they are."""
        return self.acc_bits

    @property
    def least_acc_bits(self) -> int:
        """Width of an accumulator that holds what one beat adds, >= 4."""
        return self.reducer.least_acc_bits(self.kfp)


@dataclass(frozen=True, kw_only=True)
class IntegerArray(PeArray):
    """Array of PEs that multiply features by weights, both in two's complement."""

    engine: ClassVar[str] = "integer"
    most_visits: ClassVar[int] = 1
    zero_weights: ClassVar[bool] = True
    offset_bits: ClassVar[int] = 0
    reducer: ClassVar[Reducer] = ProductSum()
    planes: ClassVar[int] = 0
    kernel_binariser: ClassVar[bool] = False
    may_share_weights: ClassVar[bool] = False
    lanes_per_weight: ClassVar[int] = 1
    lane_step: ClassVar[int] = 1

    feature_bits: int = number(
        least=2, most=FEATURE_BITS, means="Bits of a feature: 2 to 20 in the integer engine, 1 in the binary engine."
    )
    weight_bits: int = number(
        least=2, most=WEIGHT_BITS, means="Bits of a weight: 2 to 8 in the integer engine, 1 in the binary engine."
    )
    kernels_per_multiplier: int = number(
        1,
        most=most_kernels(2, 2),
        rare=True,
        means="Kernels of the integer engine whose weights share a multiplier: as many as fit, kgp at most.",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()
        self._check_packing()
        least = self.least_acc_bits
        require(self.acc_bits >= least, f"acc_bits must be >= {least} for kfp = {self.kfp}", self.acc_bits)

    def _check_packing(self) -> None:
        """Raise ValueError unless a multiplier can take the weights of kernels_per_multiplier kernels."""
        name = "kernels_per_multiplier"
        kernels = self.kernels_per_multiplier
        require(kernels <= self.kgp, f"{name} must be <= kgp = {self.kgp}", kernels)
        most = self.most_kernels_per_multiplier
        sizes = f"features of {self.feature_bits} and weights of {self.weight_bits} bits"
        require(kernels <= most, f"{name} must be 1..{most} for {sizes}", kernels)

    @property
    def most_kernels_per_multiplier(self) -> int:
        """Kernels at most whose weights one multiplier takes."""
        return most_kernels(self.feature_bits, self.weight_bits)

    @property
    def least_acc_bits(self) -> int:
        """Width of an accumulator that holds what one beat adds, >= 4."""
        return max(4, bits_for(self.kfp) + self.feature_bits + self.weight_bits)

"""Folding: how parallel an NPU is, which engine it has and what leads into it and out of it. A person chooses it.

A network is not in it. With capacities, which sizing finds (capacities.py), a folding becomes an NPU (npu.py).
"""

from dataclasses import dataclass, field, fields

from bitloom.golden.integers import make_fields_plain

from .lanes import lane_groups, plane_lanes
from .rules import check_depthwise, check_least, check_packing, check_power, require
from .widths import COUNT_BITS, FEATURE_BITS, PLANES, RECIPROCAL_BITS, WEIGHT_BITS, bits_for

ENGINES = ("binary", "integer")
ACCUMULATIONS = ("popcount", "or", "both", "or_words")
KERNEL_RAMS = ("auto", "block", "distributed")
MOST_ACCUMULATORS = 256
"""Accumulators of a PE at most: a small memory beside it."""
INLETS = ("host", "ring", "loop")
OUTLETS = ("ring", "loop", "host")
"""Ways into and out of an NPU; a field ``source`` or ``target`` counts those that it has, in this order, and then the
skip store (`Npu.sources`, `Npu.targets`)."""
SOURCES = (*INLETS, "skip")
"""Where an NPU's words may come from; register STATE shows a place among these."""
INLET_BITS = bits_for(len(SOURCES) - 1)
"""Width of such a place."""


def weighs_planes(accumulate: str, collect: int = 0) -> bool:
    """Whether PEs that accumulate so can give matches the weight of a bit plane: those that count, beat by beat. Others
    have planes 0 and shift_bits 0."""
    return accumulate in ("popcount", "both") and not collect


@dataclass(frozen=True, kw_only=True)
class Folding:
    """How one NPU is folded. Checked when it is made; ValueError ``npu: field, rule, value``.

    Attributes
    ----------
    engine
        "binary" (XNOR, popcount, thresholds, pool by OR) or "integer" (multiply, bias, requantise, max and average
        pool).
    feature_bits, weight_bits
        Bits of a feature and of a weight: 1 for binary; for integer, in two's complement, 2..20 and 2..8.
    kfp
        Input lanes: channels that a PE takes in a cycle, >= 1 (spec B, KFP).
    kgp
        PEs: kernels that work in parallel, >= 1 (KGP).
    pfp
        Channels that the pool unit takes in a cycle, >= 1 (PFP).
    ol
        Results that leave the array in a cycle, 1..kgp.
    accumulate
        "popcount", "or" (a PE without popcount, for networks whose layers are all ``or``), "both", chosen by layer, or
        "or_words" (a PE that counts words, for networks whose layers are all ``or_words``). All but "popcount" are
        binary only.
    word_lanes
        Lanes whose products are ORed to the bit of a word, a divisor of kfp. With "popcount" and "both" layers may
        then choose ``or_words`` too; 0: none can. "or_words" needs at least 1, "or" has 0.
    collect
        0, or bits of a register in each PE that takes the products of a window before they are reduced at once: a
        multiple of kfp. Binary only, with one accumulator, no planes and no shift_bits. Sizing makes one that is not 0
        as wide as the networks need.
    accumulators
        Of each PE: 1, registers, for dataflow output_stationary; or a power of two of them, at most 256, in a small
        memory, which also allows input_stationary: at least the kernel groups of a layer, twice as many for overlap.
    planes
        0, or 2..9 bit planes side by side in a PE's lanes for integer inputs; needs kfp >= planes + 1. Binary only.
    shift_bits
        0..4; where planes is 0, bit planes come one after another, shifted by 0..2^shift_bits - 1. Binary only.
    binariser_bits
        0, or 2..9: inputs of so many bits are made binary on line, by thresholds, in front of the NPU.
    buffer_words
        Words of kfp features in each of the two buffers of inlet "ring", a power of two.
    kernel_ram
        What synthesis makes of the kernel memory: "block" RAM, "distributed" (LUT RAM), or "auto".
    inlets
        Where words come from: "host" (frames), "ring" (the NPU before), "loop" (its own output).
    outlets
        Where results go: "ring" (the NPU after), "loop", "host". Every NPU has one of each at least.
    pool
        Whether there is a pool unit; without, no layer may have a pool.
    raster
        Whether counters run through the taps of layers in raster order, which then need no tables
        (hls_gen/rtl/sequencer/raster.py).
    stream_weights
        Whether weights may come down the stream while frames are computed (hls_gen/compiler/streamed_weights.py).
    kernels_per_multiplier
        Kernels whose weights one multiplier takes side by side, 1..kgp and as many as fit (packed_products.py): with 2,
        an array of 8-bit integers takes half the DSP blocks. Integer only. 1 is not written.
    one_memory
        Whether kernels and features lie in one memory, a read a cycle: a word costs a cycle beside the beats that use
        it (spec A7, A10). Not with ``stream_weights``. False is not written.
    kernel_binariser
        Whether weights come as integers of 8 bits, which are made binary on line, in front of the kernel memory: +1
        where the integer is at least 0 (spec A9). Binary only. False is not written.
    depthwise
        Whether the pool unit has weights (hls_gen/rtl/pool/pool_depthwise.py). Integer only. False is not written.
    window_former
        Whether a window former (window_former.py) may join the taps of first layers. False is not written.
    lut_products
        Units that multiply in LUTs, not in DSP blocks: "addition" (of maps; two products a lane of ol). Integer only.
        None by default, and then not written.
    """

    engine: str = "binary"
    feature_bits: int = 1
    weight_bits: int = 1
    kfp: int = 8
    kgp: int = 8
    pfp: int = 8
    ol: int = 1
    accumulate: str = "popcount"
    word_lanes: int = field(default=0, metadata={"written_if_set": True})
    collect: int = 0
    accumulators: int = 1
    planes: int = 0
    shift_bits: int = 3
    binariser_bits: int = 0
    buffer_words: int = 16
    kernel_ram: str = "auto"
    inlets: tuple[str, ...] = ("host", "loop")
    outlets: tuple[str, ...] = ("loop", "host")
    pool: bool = True
    raster: bool = False
    stream_weights: bool = False
    kernels_per_multiplier: int = field(default=1, metadata={"written_if_set": True})
    one_memory: bool = field(default=False, metadata={"written_if_set": True})
    kernel_binariser: bool = field(default=False, metadata={"written_if_set": True})
    depthwise: bool = field(default=False, metadata={"written_if_set": True})
    window_former: bool = field(default=False, metadata={"written_if_set": True})
    lut_products: tuple[str, ...] = field(default=(), metadata={"written_if_set": True})

    def __post_init__(self) -> None:
        make_fields_plain(self)
        self._check_engine()
        self._check_ways()
        self._check_numbers()
        self._check_accumulation()
        check_packing(self)
        check_depthwise(self)

    def _check_engine(self) -> None:
        """Raise ValueError unless engine, feature_bits, weight_bits, planes and shift_bits go together."""
        require(self.engine in ENGINES, "engine must be binary or integer", repr(self.engine))
        for name, most in (("feature_bits", FEATURE_BITS), ("weight_bits", WEIGHT_BITS)):
            value, (low, high) = getattr(self, name), (1, 1) if self.engine == "binary" else (2, most)
            ok = type(value) is int and low <= value <= high
            require(ok, f"{name} must be {low}..{high} for engine {self.engine}", repr(value))
        ok = self.engine == "binary" or not (self.planes or self.shift_bits)
        rule = "planes and shift_bits must be 0 for engine integer"
        require(ok, rule, f"{self.planes} and {self.shift_bits}")

    def _check_ways(self) -> None:
        """Raise ValueError unless inlets and outlets go together, and what is yes or no is so."""
        for name, known in (("inlets", INLETS), ("outlets", OUTLETS)):
            ways = getattr(self, name)
            ok = bool(ways) and tuple(w for w in known if w in ways) == tuple(ways)
            require(ok, f"{name} must be some of {', '.join(known)}, in this order", repr(ways))
        if ("loop" in self.inlets) != ("loop" in self.outlets):
            raise ValueError(f"npu: loop must be inlet and outlet or neither, got {self.inlets} and {self.outlets}")
        require(not self.binariser_bits or "host" in self.inlets, "a binariser needs inlet host", self.inlets)
        rule = "kernel_ram must be auto, block or distributed"
        require(self.kernel_ram in KERNEL_RAMS, rule, repr(self.kernel_ram))
        for name in (one.name for one in fields(Folding) if type(one.default) is bool):
            require(isinstance(getattr(self, name), bool), f"{name} must be True or False", repr(getattr(self, name)))
        ok = not (self.one_memory and self.stream_weights)
        require(ok, "one_memory must be False for stream_weights", self.one_memory)
        ok = self.engine == "binary" or not self.kernel_binariser
        require(ok, "kernel_binariser must be False for engine integer", self.kernel_binariser)

    def _check_numbers(self) -> None:
        """Raise ValueError unless every number is in its range."""
        for name in ("kfp", "kgp", "pfp", "ol", "accumulators", "buffer_words"):
            check_least(self, name, 1)
        for name in ("collect", "planes", "shift_bits", "binariser_bits", "word_lanes"):
            check_least(self, name, 0)
        check_power(self, "buffer_words")
        require(self.ol <= self.kgp, f"ol must be <= kgp = {self.kgp}", self.ol)
        ok = self.accumulators <= MOST_ACCUMULATORS and not self.accumulators & (self.accumulators - 1)
        require(ok, f"accumulators must be a power of two <= {MOST_ACCUMULATORS}", self.accumulators)
        ok = self.planes == 0 or (2 <= self.planes <= PLANES and self.kfp > self.planes)
        require(ok, f"planes must be 0 or 2..{PLANES} and below kfp = {self.kfp}", self.planes)
        ok = not self.binariser_bits or (self.engine == "binary" and 2 <= self.binariser_bits <= 9)
        require(ok, "binariser_bits must be 0, or 2..9 for engine binary", self.binariser_bits)
        most = bits_for(PLANES - 1)
        require(self.shift_bits <= most, f"shift_bits must be 0..{most}", self.shift_bits)

    def _check_accumulation(self) -> None:
        """Raise ValueError unless accumulate, word_lanes and collect go with the rest."""
        rule = f"accumulate must be one of {', '.join(ACCUMULATIONS)}"
        require(self.accumulate in ACCUMULATIONS, rule, repr(self.accumulate))
        ok = self.accumulate == "popcount" or self.engine == "binary"
        require(ok, "accumulate must be popcount for engine integer", self.accumulate)
        require(
            weighs_planes(self.accumulate) or not (self.planes or self.shift_bits),
            f"planes and shift_bits must be 0 for accumulate {self.accumulate}",
            f"{self.planes} and {self.shift_bits}",
        )
        self._check_word_lanes()
        require(self.collect % self.kfp == 0, f"collect must be 0 or a multiple of kfp = {self.kfp}", self.collect)
        needs = (self.engine, self.accumulators, self.planes, self.shift_bits)
        rule = "collect needs engine binary, accumulators 1, planes 0 and shift_bits 0"
        require(not self.collect or needs == ("binary", 1, 0, 0), rule, "{}, {}, {} and {}".format(*needs))

    def _check_word_lanes(self) -> None:
        """Raise ValueError unless word_lanes goes with the rest."""
        lanes = self.word_lanes
        if self.engine == "integer" or self.accumulate == "or":
            what = "engine integer" if self.engine == "integer" else "accumulate or"
            require(lanes == 0, f"word_lanes must be 0 for {what}", lanes)
            return
        ok = self.accumulate != "or_words" if lanes == 0 else self.kfp % lanes == 0
        least = "" if self.accumulate == "or_words" else "be 0 or "
        require(ok, f"word_lanes must {least}divide kfp = {self.kfp}", lanes)

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
        if self.accumulate == "or":
            return 4
        signed = 1 if self.engine == "binary" else self.feature_bits + self.weight_bits
        return max(4, bits_for(self.terms) + signed)

    @property
    def pulses(self) -> tuple[str, ...]:
        """What the counters count: every cycle is one of these."""
        own = [name for name, has in (("wait_weights", self.stream_weights), ("wait_memory", self.one_memory)) if has]
        return ("beat", "wait_input", "wait_room", "wait_table", *own)

    @property
    def slot_bits(self) -> int:
        """Width of the number of an accumulator in its PE."""
        return bits_for(self.accumulators - 1)

    @property
    def word_bits(self) -> int:
        """Width of a word of the tuple memory."""
        return self.kfp * self.feature_bits

    @property
    def host_word_bits(self) -> int:
        """Width of a word of a frame: kfp features, as the binariser takes them where there is one."""
        return self.kfp * (self.binariser_bits or self.feature_bits)

    @property
    def pool_word_bits(self) -> int:
        """Width of a word of the pool's tuple memory."""
        return self.pfp * self.feature_bits

    @property
    def pool_sum_bits(self) -> int:
        """Width of a sum of 2^COUNT_BITS features, of which an average is made."""
        return self.feature_bits + COUNT_BITS

    @property
    def reciprocal_bits(self) -> int:
        """Width of the reciprocals by which averages are divided: with it no quotient is wrong.

        With ``depthwise`` averages are requantised: a reciprocal is 2^(this width - 1) / count, rounded up.
        """
        return RECIPROCAL_BITS + max(0, self.feature_bits - 8) + self.depthwise

    @property
    def units(self) -> int:
        """Steps in which the results of kgp PEs leave, ol at a time."""
        return -(-self.kgp // self.ol)

    @property
    def code_bits(self) -> int:
        """Bits beside the weights in a kernel row: 1 for plane groups, unless all that comes is an integer input; sign
        and shift for planes one after another; on top of these, 1 where a layer may choose OR, and 1 where it may
        choose to count words."""
        choice = int(self.accumulate == "both") + self.chooses_words
        if self.planes:
            return 0 if self.inlets == ("host",) and not choice else choice + 1
        return choice + (1 + self.shift_bits if self.shift_bits else 0)

    @property
    def plane_lanes(self) -> int:
        """Channels of an integer input in a word (lanes.plane_lanes)."""
        return plane_lanes(self.kfp, self.planes)

    @property
    def lane_groups(self) -> list[tuple[int, int]]:
        """(first lane, lanes) of each lane group of a binary PE; one group without planes."""
        return lane_groups(self.kfp, self.planes)

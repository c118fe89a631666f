"""Capacities: how large the memories of an NPU are and how far its counters reach. Sizing finds them for given networks
(hls_gen/compiler/sizing.py)."""

from dataclasses import dataclass, field, fields

from bitloom.golden.integers import make_fields_plain

from .rules import check_least, check_power, require
from .widths import ACC_BITS, ADD_BIAS_BITS, ADD_FACTOR_BITS, FRACTION_BITS, LAYER_BITS, MULTIPLIER_BITS, SKIP_BITS

POWERS_OF_TWO = ("tuple_words", "pool_words")
"""Capacities that must be powers of two: of memories that are used as rings."""

FORMER = ("former_channels", "former_column", "former_columns", "former_line")
"""Capacities of the window former."""
MAY_BE_0 = (
    "multiplier_bits",
    "bias_fraction_bits",
    "half_even",
    "round_twice",
    "skip_words",
    "joined_words",
    "skip_bits",
    "skips_onward",
    "aheads",
    "tuple_parts",
    *FORMER,
)
"""Capacities that may be 0; others are 1 or 2 at least."""
MAY_BE_1 = ("pool_tuple_words", "lanes_per_weight", "lane_step")
"""Capacities that may be 1."""


@dataclass(frozen=True, kw_only=True)
class Capacities:
    """What an NPU has room for. Checked when it is made; ValueError ``npu: field, rule, value``.

    Attributes
    ----------
    acc_bits
        Width of the accumulators, 4..32.
    multiplier_bits
        Width of the multipliers of a requantisation, 0..31; 0: all multipliers are 1, and there are none. This and the
        three that follow mean nothing in an NPU of engine "binary" without a skip store.
    bias_fraction_bits
        Bits of a requantisation's bias behind the point, 0..16; the compiler shifts layers that have fewer. 0 is not
        written.
    half_even
        Whether layers may round halves to the even neighbour, 0 or 1; without it all round them away from zero. 0 is
        not written.
    round_twice
        Whether layers may round twice, as TFLite's kernels do, 0 or 1. 0 is not written.
    lanes_per_weight, lane_step
        Lanes of a word that share a weight, >= 1, and how far apart they lie, >= 1 (lanes.weight_of_lanes): where all
        maps have values of so many thermometer bits, a weight is stored once. More than 1 of engine "binary" alone,
        without planes side by side. Left out of a description where they are 1.
    binariser_rows
        Words of an input tuple that the binariser has thresholds for, >= 2.
    layers
        Layers that a network may have, 2..256.
    windows, window_taps, groups, levels
        Windows of a layer, taps of a window without a table, passes over a window for its kernels, thresholds of an
        activation; each >= 2.
    input_words
        Words of a map, >= 2.
    tuple_words, pool_words
        Capacity of the tuple memories, in words of kfp and pfp features, powers of two >= 2.
    pool_tuple_words
        Words of pfp features of the longest tuple that the pool unit takes, >= 1: rows of its queue. Never more than
        pool_words.
    taps, olds, jumps, pool_taps, pool_olds
        Rows of the sequencers' tables, each >= 2.
    aheads
        Rows of the table by which taps of the array's sequencer claim tuples that they don't read, any number at once,
        >= 2; 0: there is no such table, and each of these tuples costs a cycle in every pass. 0 is not written.
    tuple_parts
        Whether the kernel groups of a layer may read a part of each tuple only, 0 or 1: of grouped convolutions. It
        needs the table ``aheads``. 0 is not written.
    kernel_rows
        Rows of kgp * row_weights weights, kernel memories a and b together, >= 2. With ``one_memory`` rows of the one
        memory, of which features have the first ``tuple_words``.
    threshold_rows
        Rows of ol thresholds, or of ol times bias, multiplier and shift, >= 2.
    map_words
        Words of kfp features in the map store of outlet "loop", >= 2.
    skip_words
        Words of kfp features in the skip store, where a map waits for an addition or for its second reader, >= 2; 0:
        no skip store and no addition. Of engine "binary" words are steps of ol integers. 0 is not written.
    joined_words
        Words of a tuple that a layer takes of either of two maps which it reads side by side, at most, >= 2; 0: layers
        read one map. Of an integer NPU with a skip store alone. 0 is not written.
    skip_bits
        Bits of the integers that a binary NPU with a skip store requantises sums to and adds, 2..9, and of which it
        makes signs; 0, and not written, in any other NPU.
    skips_onward
        Whether the integers that a binary NPU keeps wait in the skip store of the NPU after, not in its own, 0 or 1. 0
        is not written.
    pool_jumps, pool_kernel_rows, pool_scale_rows
        Rows of a pool unit with weights, each >= 2: of its sequencer's table of jumps, of pfp weights, and of ol times
        bias, multiplier and shift. Without ``depthwise`` they mean nothing, and are not written.
    add_factor_bits, add_bias_bits
        Width of an addition's factors, 2..25, and of its bias, 2..40, in two's complement. Without a skip store they
        mean nothing.
    former_channels, former_column, former_columns, former_line
        Of the window former (window_former.py): channels of a position; lanes of a column of taps, its rows' channels
        side by side; columns of a window; positions of a row, those beside the map included. All are 0, and not
        written, where there is no former; else >= 1, and former_line >= 2.
    """

    acc_bits: int = 16
    multiplier_bits: int = 16
    bias_fraction_bits: int = field(default=0, metadata={"written_if_set": True})
    half_even: int = field(default=0, metadata={"written_if_set": True})
    round_twice: int = field(default=0, metadata={"written_if_set": True})
    lanes_per_weight: int = field(default=1, metadata={"written_if_set": True})
    lane_step: int = field(default=1, metadata={"written_if_set": True})
    binariser_rows: int = 2
    layers: int = 8
    windows: int = 1 << 20
    window_taps: int = 1 << 16
    groups: int = 1 << 16
    levels: int = 64
    input_words: int = (1 << 24) - 1
    tuple_words: int = 256
    pool_words: int = 256
    pool_tuple_words: int = 256
    taps: int = 1024
    olds: int = 1024
    jumps: int = 256
    aheads: int = field(default=0, metadata={"written_if_set": True})
    tuple_parts: int = field(default=0, metadata={"written_if_set": True})
    pool_taps: int = 256
    pool_olds: int = 256
    kernel_rows: int = 1024
    threshold_rows: int = 256
    map_words: int = 256
    pool_jumps: int = field(default=256, metadata={"written_if_set": True})
    pool_kernel_rows: int = field(default=256, metadata={"written_if_set": True})
    pool_scale_rows: int = field(default=256, metadata={"written_if_set": True})
    skip_words: int = field(default=0, metadata={"written_if_set": True})
    joined_words: int = field(default=0, metadata={"written_if_set": True})
    skip_bits: int = field(default=0, metadata={"written_if_set": True})
    skips_onward: int = field(default=0, metadata={"written_if_set": True})
    add_factor_bits: int = field(default=ADD_FACTOR_BITS, metadata={"written_if_set": True})
    add_bias_bits: int = field(default=ADD_BIAS_BITS, metadata={"written_if_set": True})
    former_channels: int = field(default=0, metadata={"written_if_set": True})
    former_column: int = field(default=0, metadata={"written_if_set": True})
    former_columns: int = field(default=0, metadata={"written_if_set": True})
    former_line: int = field(default=0, metadata={"written_if_set": True})

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for one in fields(Capacities):
            check_least(self, one.name, 0 if one.name in MAY_BE_0 else 1)
        for name in POWERS_OF_TWO:
            check_power(self, name)
        for one in fields(Capacities):
            if one.name not in ("acc_bits", *MAY_BE_0, *MAY_BE_1, *POWERS_OF_TWO):
                require(getattr(self, one.name) >= 2, f"{one.name} must be >= 2", getattr(self, one.name))
        require(4 <= self.acc_bits <= ACC_BITS, f"acc_bits must be 4..{ACC_BITS}", self.acc_bits)
        widest = {
            "multiplier_bits": MULTIPLIER_BITS,
            "bias_fraction_bits": FRACTION_BITS,
            "half_even": 1,
            "round_twice": 1,
            "skip_bits": SKIP_BITS,
            "skips_onward": 1,
            "tuple_parts": 1,
        }
        for name, most in widest.items():
            require(getattr(self, name) <= most, f"{name} must be 0..{most}", getattr(self, name))
        for name, most in (("add_factor_bits", ADD_FACTOR_BITS), ("add_bias_bits", ADD_BIAS_BITS)):
            require(getattr(self, name) <= most, f"{name} must be 2..{most}", getattr(self, name))
        for name in ("skip_words", "joined_words", "aheads"):
            require(getattr(self, name) != 1, f"{name} must be 0 or >= 2", getattr(self, name))
        rule = "joined_words must be 0 without a skip store"
        require(self.skip_words > 0 or not self.joined_words, rule, self.joined_words)
        rule = "tuple_parts must be 0 without a table aheads"
        require(self.aheads > 0 or not self.tuple_parts, rule, self.tuple_parts)
        require(self.layers <= 1 << LAYER_BITS, f"layers must be <= {1 << LAYER_BITS}", self.layers)

"""Timing: latencies, credits, depths of FIFOs and other limits of the hardware that several rooms read.

    timing --> generator (hls_gen/rtl): so many registers, so deep a FIFO
           `-> flow model (hls_gen/compiler/flow), search (overlay/explore): so many cycles, so many words

Who reads a number takes it through the module (``timing.CREDITS``), so that a changed number reaches all of them. What
is a number of registers that stand in the text of a module (a PE's stages) can't follow a change here; the modules'
own tests measure those latencies. The cycle or two of a register or a FIFO of a stream stand in the flow model's
processes alone, but for those of the skip store.
"""

from dataclasses import dataclass

from .array import BinaryArray
from .npu import Npu
from .reducer import Or, ProductSum
from .results import REQUANTISATION
from .signed_sum import signed_stages
from .widths import bits_for

# Array

ARRAY_READ = 1
"""Cycles from a beat of the sequencer to its kernel row and its word at the PEs: the memories are read in a cycle."""
POPCOUNT_LANES = 64
"""Lanes that are counted in one register stage; more would be deeper than 8 LUT levels. Wider words are counted in
parts, which one more stage adds up."""
SUM_TERMS = 4
"""Terms that one register stage of the integer PE's adder tree adds: two LUT levels of carry chains."""


def sum_stages(npu: Npu) -> int:
    """Register stages of the integer PE's adder tree, >= 1."""
    stages = 1
    terms = -(-npu.array.kfp // SUM_TERMS)
    while terms > 1:
        stages = stages + 1
        terms = -(-terms // SUM_TERMS)
    return stages


def counts_in_parts(npu: Npu) -> bool:
    """Whether a binary PE counts more lanes at once than one register stage can take."""
    array = npu.array
    return isinstance(array, BinaryArray) and array.reducer.counter_terms(array.kfp) > POPCOUNT_LANES


def pe_latency(npu: Npu) -> int:
    """Cycles from the word of a window's last beat at a PE to the PE's result.

    Parameters
    ----------
    npu
        The NPU. The kind of its reducer chooses the kind of PE.

    Returns
    -------
    int
        Of the integer engine operand, product and accumulator, a cycle each, and the stages of the adder tree; of
        integers with binary weights operands and accumulator, and the stages of the sum; where the PE knows only OR the
        matches and the accumulator; else count, weighed count and accumulator, and one cycle
        more where a word is counted in parts.
    """
    if isinstance(npu.array.reducer, ProductSum):
        return 3 + sum_stages(npu)
    if npu.adds_integers:
        return 2 + signed_stages(npu.array.plane_lanes)
    if isinstance(npu.array.reducer, Or):
        return 2
    return 3 + counts_in_parts(npu)


def array_latency(npu: Npu) -> int:
    """Cycles from a window's last beat to its results at the results unit."""
    return ARRAY_READ + pe_latency(npu)


# Sequencer

FIRST_STEP = 1
"""Cycle after the start in which the first tap is taken from the tables: the layer's row is read in the one before."""
GIVE_BACK = 2
"""Cycles from the tap that gives a word of a tuple memory back to the write that may take its place: the count of free
words is a register, and so is the writer's permission."""
WORDS_FOR_ONE_A_CYCLE = GIVE_BACK + 2
"""Words of a tuple memory with which a word may come in each cycle: it is used two cycles after it came, at the
earliest, and then given back."""


def fetch_cycles(npu: Npu) -> int:
    """Cycles in which the one memory is read for a word before the beats that use it; 0 where tuples have a memory of
    their own."""
    return int(npu.array.one_memory)


# Results unit

CREDITS = 2
"""Kernel groups whose results may be on their way or waiting, with one accumulator a PE: one in the queue of results,
one in the PEs. (With several accumulators each is a credit.)"""


def activation_stages(npu: Npu) -> tuple[str, ...]:
    """Register stages of the results unit's activation, and of the feature units behind it, in order."""
    return (*npu.results.activation.stages, *(stage for unit in npu.results.feature_units for stage in unit.stages))


# Addition

ADD_STAGES = ("operand", "product", "partial", "total", "rounded", "shifted", "sum")
"""Register stages of an addition, in order, behind the register in which a step waits for what is added to it. Operands
are one more register in front of the second product, so that a DSP block's adder adds one product to the other."""


# Pool unit

POOL_ENTRY = 1
"""Cycles from a beat of the pool's sequencer to the pool unit's operands: its tuple memory is read in a cycle."""
DIVIDE_LATENCY = 4
"""Cycles of the division of an average: operands, numerator, product, quotient."""
DEPTHWISE_LATENCY = 2
"""Cycles from a word to its products with the weights of a depthwise convolution: sums of two bits' products each, and
of these."""


def tap_stages(npu: Npu) -> int:
    """Register stages between the word of a beat, or its products with weights, and the queue of a pool unit. Integers
    have one for each level of the tree that merges the values of a beat's taps, and one where there is a single tap: it
    keeps the comparison apart from the block RAM. Bits need none, nor does a beat of one tap whose product comes from a
    register and has no line to share lanes."""
    if npu.engine == "binary" or (npu.depthwise and not npu.pool_forms_lines):
        return 0
    return bits_for(npu.pool_unit.beat.taps - 1) if npu.pool_unit is not None else 1


def lane_stages(npu: Npu) -> int:
    """Register stages behind the `tap_stages`, in which integers of lines that share lanes are merged."""
    return int(npu.engine == "integer" and npu.pool_unit is not None and npu.pool_unit.lane_lines > 1)


def pool_activation_stages(npu: Npu) -> tuple[str, ...]:
    """Register stages of the activation of a pool unit with weights, in order; none where the unit has none."""
    return REQUANTISATION.stages if npu.depthwise else ()


# Units together


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Cycles that the units of an NPU take."""

    array: int
    """From the last beat of a window to its results at the results unit."""
    activation: int
    """From a step of results to its features: a comparison with a threshold, or the requantisation's stages, and those
    of feature units."""
    addition: int = 0
    """From a step of results behind the activation to the same step behind the addition; 0: there is none."""
    pool: int
    """From a beat of the pool unit to its output FIFO."""
    pool_activation: int = 0
    """From a step of a pool unit with weights to its features; 0: the unit has none."""


def latencies(npu: Npu) -> Latencies:
    """Latencies of the units of an NPU."""
    divides = npu.averages and not npu.depthwise
    return Latencies(
        array=array_latency(npu),
        activation=len(activation_stages(npu)),
        addition=1 + len(ADD_STAGES) if npu.has_skip else 0,
        pool=POOL_ENTRY
        + DEPTHWISE_LATENCY * npu.depthwise
        + tap_stages(npu)
        + lane_stages(npu)
        + DIVIDE_LATENCY * divides,
        pool_activation=len(pool_activation_stages(npu)),
    )


# FIFOs and buffers

LUT_RAM_WORDS = 64
"""Words up to which a FIFO or a pair of buffers is LUT RAM, which is read at once: a LUT holds 64 bits. Larger ones are
block RAM, and their ``ready`` is a register that keeps a word free."""
BLOCK_WORDS = 512
"""Words that a block of RAM has room for where words are as wide as its rows can be."""
SKIP_WORD = 3
"""Cycles from a word that comes into the skip store to the same word at the store's output: its FIFO takes two, the
register behind the FIFO one."""
FIFO_MARGIN = 4
"""Words that a FIFO can still take when its ``room`` falls, where nothing else is said."""


def room_words(depth: int, margin: int) -> int:
    """Words in a FIFO of ``depth`` words from which on its ``room`` is 0: ``room`` is a register, hence one less."""
    return max(depth - margin - 1, 1)


@dataclass(frozen=True, kw_only=True)
class FifoSize:
    """A FIFO behind a pipeline that can't stop."""

    words: int
    """Capacity: room for what is on its way when ``room`` falls, and as much again to keep the reader busy until it
    rises."""
    margin: int
    """Words that it can still take when its ``room`` falls: at least those on their way, one a cycle of the pipeline's
    latency and one for the register ``room``."""

    @property
    def room(self) -> int:
        """Words in it from which on its ``room`` is 0."""
        return room_words(self.words, self.margin)


def pool_fifo(npu: Npu) -> FifoSize:
    """The FIFO behind the pool unit of an NPU: of one size where results may be divided, and of another one where none
    are. It is larger where its margin would lack room for the words that are on their way there: one for each cycle of
    the unit, and one for the register ``room``."""
    words, margin = (24, 10) if npu.averages else (16, FIFO_MARGIN)
    more = max(0, latencies(npu).pool + 1 - margin)
    return FifoSize(words=words + 2 * more, margin=margin + more)


# Counters


def counter_rows(counters: int) -> int:
    """Rows of the memory that holds so many counters, which is also the cycles from a counter's turn to its next one:
    a power of two, so that turns count by themselves, and 4 at least."""
    return 1 << max(2, bits_for(counters - 1))


# Host

JUDGING = 2
"""Cycles from a header's last word to its acceptance: a cycle for sums, one for the verdict."""
FRAMES_IN_FLIGHT = 16
"""Frames whose flag ``last`` the loader keeps until their results leave; one more waits in the output register."""
FLAG_PLACE = 1
"""Cycles from a frame's last result to the acceptance of a frame that waited for the place of its flag: the flag goes a
cycle earlier, with the last word, and whether there is a place stands in two registers, one behind the other."""
MAP_HELD = 4
"""Words of a last map that wait in front of the output: they keep the host's ready apart from the NPU's."""

"""Widths and times of the generated training machine, beside its parameters and instructions (golden/discrete/machine).

Names that end in LATENCY count cycles from a unit's inputs to the register that is its output; after the colon stand
the unit's register stages. Names that end in AT count cycles from a beat at a slave's input to a register in it.
"""

from dataclasses import dataclass

from bitloom.golden.discrete.lfsr import DRAW_BITS
from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.parameters import ADDRESS_BITS, MachineParameters
from bitloom.golden.discrete.machine.table_words import PLACES_BITS

from .widths import bits_for

INSTRUCTION_PLACE_BITS = ADDRESS_BITS + 1
"""Bits of an instruction's address, and of the one behind the last."""
PAYLOAD_BITS = 32 * (isa.WORDS - 1)
"""Bits of words 1 to 3 of an instruction."""
FAULT_BITS = 4
"""Bits of a fault's code, 0 for none."""
KIND_BITS = isa.FIELDS["kind_a"][1]
"""Bits of an operand's kind: the number of its table, 0 for a continuous one."""
CACHES = {"weights": isa.LOAD_WEIGHTS, "codes": isa.LOAD_CODES, "gradients": isa.LOAD_GRADIENTS}
"""Caches of a slave that IO loads and stores, by their number in the function of IO."""
ZONE_BITS = 2
"""Bits of a zone, 1 or 2."""
ENTRY_BITS = 6
"""Bits of a table's entry in a unit: five for the places, one for the sign."""
OPERAND_LATENCY = 2
"""Cycles of an operand's value: the code's entry in its table, the value."""
PRODUCT_LATENCY = 5
"""Cycles of a product: entry, operand, coarse shift or partial products, fine shift or their sum, saturation."""
SHIFT_LATENCY = 2
"""Cycles of a shift to the right: coarse, fine."""
SUM_LATENCY = 3
"""Cycles of a sum of two words: two's complement, sum, saturation."""
CONVERTER_LATENCY = 7
"""Cycles of a conversion of a word into a code: two's complement, comparisons, rank, shifts of z, two sums, code."""
PAIR_CONVERTER_LATENCY = 9
"""Cycles of a conversion by a converter with a multiplier: the zone, comparisons, rank, offsets, distances, their sum,
product, comparison, code."""
ROOT_LATENCY = 4
"""Cycles of an inverse root: the first bit, the bits behind it, the table's root, the shift."""
SERIAL_DOT_LATENCY = 4
"""Cycles of a plane of a bit-serial sum: bits of products, their count in two cycles, the sum of the pass."""
LIMB_BITS = 17
"""Bits of a magnitude that one DSP block multiplies without sign."""


def converter_latency(machine: MachineParameters) -> int:
    """Cycles of a conversion in a machine."""
    return {"shifting": CONVERTER_LATENCY, "multiplying": PAIR_CONVERTER_LATENCY}[machine.converter]


def divider_cycles(machine: MachineParameters) -> int:
    """Cycles from a division of words to the next one: the operands are taken, then a cycle for each bit."""
    return machine.form.bits


def divider_latency(machine: MachineParameters) -> int:
    """Cycles from the operands of a division to the quotient: they are taken, a cycle a bit, the quotient saturated."""
    return machine.form.bits + 1


def sum_bits(machine: MachineParameters) -> int:
    """Bits of a sum of products: as many as the longest vector has elements."""
    terms = max(machine.neuron_words, machine.column_words * machine.slaves)
    return machine.form.sum_bits(terms)


def slave_bits(machine: MachineParameters) -> int:
    """Bits of a slave's number."""
    return bits_for(machine.slaves - 1)


def tree_levels(machine: MachineParameters) -> int:
    """Levels of adders of the tree."""
    return machine.slaves.bit_length() - 1


# A slave

READ = 1
"""Cycles from a row's number to what the cache holds there."""
PRODUCT_AT = READ + PRODUCT_LATENCY
"""The product of the beat's factors."""
RESULT_AT = PRODUCT_AT + 3
"""A sum that leaves: the product in two's complement, the sum, the output."""


@dataclass(frozen=True)
class LearnTimes:
    """When a slave knows what LEARN computes of a beat: cycles from the beat."""

    gradient: int
    """The weight gradient dw: the product converted, the code's value, and the choice between it and the product."""
    slope: int
    """Slope of the weight: dw + mu * dw' (UPDATE; dw' is the gradient before) or the velocity v (APPLY); and what the
    cache of gradients keeps."""
    step: int
    """Decrease of the weight: rate * slope."""
    weight: int
    """The new weight."""
    code: int
    """The code of the new weight."""


def learn_times(machine: MachineParameters) -> LearnTimes:
    """The times of a machine: they depend on its converters."""
    gradient = PRODUCT_AT + converter_latency(machine) + OPERAND_LATENCY + 1
    slope = gradient + SUM_LATENCY
    step = slope + SHIFT_LATENCY
    weight = step + SUM_LATENCY
    return LearnTimes(gradient, slope, step, weight, weight + converter_latency(machine))


NONE, SCATTER, FORWARD, BACKWARD, LEARN, LOAD, STORE, FILL = range(8)
"""Kinds of beats, which go down the tree. LEARN is UPDATE, ACCUMULATE or APPLY: the settings say which. FILL brings a
row of the table of products."""
BEAT_BITS = 3
"""Bits of a beat's kind."""


def beat_widths(machine: MachineParameters) -> dict[str, int]:
    """Parts of a beat, as they go down the tree, and their bits.

    kind; row of the slaves' caches; column of the slave; slave: whose turn it is (SCATTER, LOAD, STORE), or the last
    one that takes part; first and last of a sum; data: an operand, or what is loaded; draw_d, draw_w: numbers of the
    generator for dw and the weights.
    """
    return {
        "kind": BEAT_BITS,
        "row": bits_for(machine.weight_words - 1),
        "column": bits_for(machine.column_words - 1),
        "slave": slave_bits(machine),
        "first": 1,
        "last": 1,
        "data": machine.form.bits,
        "draw_d": DRAW_BITS,
        "draw_w": DRAW_BITS,
    }


def operand_widths(machine: MachineParameters) -> dict[str, int]:
    """Bits of the signals that tell a unit an operand's kind: whether it is a code; entries of the code's table; bits
    of a code, as a mask."""
    return {"coded": 1, "entries": ENTRY_BITS << machine.code_bits, "mask": machine.code_bits}


def setting_widths(machine: MachineParameters) -> dict[str, int]:
    """Bits of the settings, which stand while the slaves work on an instruction.

    left and right: kinds of the factors of products, where no table holds these. w: of weights, d: of weight gradients,
    with all that their converters need. w_zone: to which zone new weights are clipped, 0 for none. accumulates,
    applies: LEARN is this instruction; else it is UPDATE. cache: which one is loaded or stored, a number of `CACHES`.
    """
    codes = machine.code_bits
    ranks = 1 << machine.code_bits
    widths: dict[str, int] = {}
    factors = () if machine.table_rows else ("left", "right")
    for name in (*factors, "w", "d"):
        widths |= {f"{name}_{part}": w for part, w in operand_widths(machine).items()}
    for name in ("w", "d"):
        widths |= {
            f"{name}_thresholds": (ranks - 1) * (machine.form.bits + 1),
            f"{name}_ranked": ranks * ENTRY_BITS,
            f"{name}_order": ranks * codes,
            f"{name}_chance": 1,
        }
        if machine.converter == "multiplying":
            widths |= {f"{name}_pair": 1, f"{name}_wide": 1}
    widths |= {"w_zone": ZONE_BITS, "master": 1, "accumulates": 1, "applies": 1}
    return widths | {"rate": PLACES_BITS, "mu": PLACES_BITS, "mu_on": 1, "cache": isa.CACHE_BITS}


# The array, the master's unit and the data access unit


def array_drain(machine: MachineParameters) -> dict[int, int]:
    """Cycles from the last beat of each kind until all that it does is done."""
    levels = tree_levels(machine)
    results = 2 * levels + RESULT_AT + 5
    return {
        SCATTER: levels + 3,
        FORWARD: results + machine.slaves - 1,  # slaves give their sums one after the other
        BACKWARD: results,
        LEARN: levels + learn_times(machine).code + 3,
        LOAD: levels + 3,
        STORE: 2 * levels + 8,
    }


def accumulate_drain(machine: MachineParameters) -> int:
    """`array_drain` of a LEARN that is ACCUMULATE, which ends with the cache of gradients."""
    at = learn_times(machine)
    return array_drain(machine)[LEARN] - (at.code - at.slope)


def store_latency(machine: MachineParameters) -> int:
    """Cycles from a beat of STORE, before its register, to the word that leaves the array."""
    return 2 * tree_levels(machine) + 4


VECTOR_SUM_AT = READ + OPERAND_LATENCY + SHIFT_LATENCY + SUM_LATENCY
"""Cycles from an element of the master's own arithmetic to its sum, which must come no earlier than the product."""
VECTOR_FIFO = 32
"""Results of the master's unit that wait for the neuron cache."""


def vector_at(machine: MachineParameters) -> int:
    """Cycles from an element of the master's own arithmetic to its result."""
    return READ + OPERAND_LATENCY + converter_latency(machine) + 1


def output_margin(machine: MachineParameters) -> int:
    """Words on their way to the output FIFO when it says that it has no room."""
    return store_latency(machine) + 4


# Top module

STREAM_BITS = 32
"""Width of the streams."""
TOP = "training_top"
"""Name of the top module."""

"""What the generated training machine is, beside its parameters and instructions (golden/discrete/machine).

Latencies are cycles from a unit's inputs to the register that is its output.
"""

from bitloom.golden.discrete.lfsr import DRAW_BITS
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.table_words import PLACES_BITS

from .widths import bits_for

ENTRY_BITS = 6
"""Bits of a table's entry in a unit: five for the places, one for the sign."""
OPERAND_LATENCY = 2
"""Of an operand's value: entry of the table, value."""
PRODUCT_LATENCY = 5
"""Of a product: entry, operand, coarse shift or partial products, fine shift or their sum, saturation."""
SHIFT_LATENCY = 2
"""Of a shift to the right: coarse, fine."""
SUM_LATENCY = 3
"""Of a sum of two words: two's complement, sum, saturation."""
CONVERTER_LATENCY = 7
"""Of a conversion."""
LIMB_BITS = 17
"""Bits of a magnitude that one DSP block multiplies without sign."""


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


# A slave, in cycles from a beat at its input

READ = 1
"""Of a row of a cache."""
PRODUCT_AT = READ + PRODUCT_LATENCY
"""Of the product."""
GRADIENT_AT = PRODUCT_AT + CONVERTER_LATENCY + OPERAND_LATENCY + 1
"""Of dw: converted, its value, the choice between both."""
STEP_AT = GRADIENT_AT + SUM_LATENCY + SHIFT_LATENCY
"""Of rate * (dw + mu * dw')."""
WEIGHT_AT = STEP_AT + SUM_LATENCY
"""Of the new weight."""
CODE_AT = WEIGHT_AT + CONVERTER_LATENCY
"""Of its code."""
RESULT_AT = PRODUCT_AT + 3
"""Of a sum that leaves: product in two's complement, sum, output."""

NONE, SCATTER, FORWARD, BACKWARD, UPDATE, LOAD, STORE = range(7)
"""Kinds of beats, which go down the tree."""
BEAT_BITS = 3


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


def setting_widths(machine: MachineParameters) -> dict[str, int]:
    """What stands while the slaves work on an instruction, and its bits.

    left and right: kinds of the factors of products. w: of weights, d: of weight gradients, with all that their
    converters need. cache: what is loaded or stored, 1 words, 2 codes, 3 gradients.
    """
    codes, ranks = machine.code_bits, 1 << machine.code_bits
    made: dict[str, int] = {}
    for name in ("left", "right", "w", "d"):
        made |= {f"{name}_coded": 1, f"{name}_entries": ranks * ENTRY_BITS, f"{name}_mask": codes}
    for name in ("w", "d"):
        made |= {
            f"{name}_thresholds": (ranks - 1) * (machine.form.bits + 1),
            f"{name}_ranked": ranks * ENTRY_BITS,
            f"{name}_order": ranks * codes,
            f"{name}_chance": 1,
        }
    return made | {"master": 1, "rate": PLACES_BITS, "mu": PLACES_BITS, "mu_on": 1, "cache": 2}


# The array, the master's unit and the data access unit


def array_drain(machine: MachineParameters) -> dict[int, int]:
    """Cycles from the last beat of each kind until all that it does is done."""
    levels = tree_levels(machine)
    results = 2 * levels + RESULT_AT + 5
    return {
        SCATTER: levels + 3,
        FORWARD: results + machine.slaves - 1,  # slaves give their sums one after the other
        BACKWARD: results,
        UPDATE: levels + CODE_AT + 3,
        LOAD: levels + 3,
        STORE: 2 * levels + 8,
    }


def store_latency(machine: MachineParameters) -> int:
    """Cycles from a beat of STORE, before its register, to the word that leaves the array."""
    return 2 * tree_levels(machine) + 4


VECTOR_SUM_AT = READ + OPERAND_LATENCY + SHIFT_LATENCY + SUM_LATENCY
"""Cycles from an element's beat to its sum, as late as the product at least."""
VECTOR_AT = READ + OPERAND_LATENCY + CONVERTER_LATENCY + 1
"""To its result."""
VECTOR_FIFO = 32
"""Results of the master's unit that wait for the neuron cache."""


def output_margin(machine: MachineParameters) -> int:
    """Words on their way to the output FIFO when it says that it has no room."""
    return store_latency(machine) + 4



# Packets

PROGRAM, RUN = 4, 5
"""Kinds of packets: instructions for the cache; a run of the program, with the words that IO takes."""
STREAM_BITS = 32
"""Width of the streams."""
TOP = "training_top"
"""Name of the top module."""

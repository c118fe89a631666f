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
    results = levels + RESULT_AT + machine.slaves + levels + 4
    return {
        SCATTER: levels + 3,
        FORWARD: results,
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

# Packets and registers

PROGRAM, RUN = 4, 5
"""Kinds of packets: instructions for the cache; a run of the program, with the words that IO takes."""
TOP = "training_top"
"""Name of the top module."""
IDENT = 0x424C5431
"""Content of register IDENT: "BLT1" in ASCII, by which the driver knows the machine."""
VERSION = (0, 1, 0)
"""Content of register VERSION: major, minor and patch number of the interface."""
REGISTERS = {
    "IDENT": (0x000, "RO", f'0x{IDENT:08X}, "BLT1"'),
    "VERSION": (0x004, "RO", "major << 16, minor << 8, patch"),
    "DIGEST_0": (0x008, "RO", "bytes 0..3 of the digest"),
    "DIGEST_1": (0x00C, "RO", "bytes 4..7"),
    "DIGEST_2": (0x010, "RO", "bytes 8..11"),
    "DIGEST_3": (0x014, "RO", "bytes 12..15"),
    "GEOMETRY": (0x018, "RO", "7..0 slaves, 15..8 bits of a word, 23..16 its fraction, 31..24 bits of a code"),
    "SCRATCH": (0x01C, "RW", "gives back what was written: to try the bus"),
    "CONTROL": (0x020, "RW", "1 SOFT_RESET, 2 CLEAR_COUNTERS: write 1, clears itself"),
    "STATUS": (0x024, "RO", "0 IDLE: no packet has begun; 1 ERROR: a fault stopped the machine"),
    "ERROR_CODE": (0x028, "RO", "the rule that was broken, 0 for none"),
    "ERROR_PLACE": (0x02C, "RO", "address of the instruction at fault"),
    "IRQ_ENABLE": (0x040, "RW", "0 RESULT, 1 ERROR, 2 END: enabled interrupts"),
    "IRQ_STATUS": (0x044, "RW1C", "0 RESULT: a word with tlast has left; 1 ERROR; 2 END: a program has ended"),
    "CYCLES": (0x050, "RO", "cycles in which a program runs, since CLEAR_COUNTERS"),
    "RUNS": (0x054, "RO", "programs that have ended"),
    "WORDS_IN": (0x058, "RO", "stream words taken"),
    "WORDS_OUT": (0x05C, "RO", "stream words given"),
    "ARRAY": (0x060, "RO", "cycles with a beat for the slaves"),
    "VECTOR": (0x064, "RO", "results of the master's own arithmetic"),
}
"""Name -> byte offset, access and content of each register; offsets are those of the inference engine where both have
it (docs/reference/device.md)."""

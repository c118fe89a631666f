"""Every rule of an instruction, broken and just kept; afterwards the machine works as before."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.faults import FAULTS, MachineFault
from bitloom.golden.discrete.machine.instruction import Instruction
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.table_words import config_table
from bitloom.golden.discrete.table import ONE_BIT, THREE_BITS, CodeTable
from bitloom.golden.discrete.word import WordFormat
from tests.errors import value_error

MACHINE = MachineParameters(slaves=4, neuron_words=100, weight_words=50, column_words=3, instructions=20, code_bits=2)
WITHOUT = MachineParameters(slaves=4, neuron_words=100, weight_words=50, column_words=3, products="shifter")
TABLE = config_table(1, CodeTable((1, -0.5, 0.5, -1)), 1)


def table(**fields: int) -> Instruction:
    return Instruction(**{**{name: getattr(TABLE, name) for name in TABLE.__dataclass_fields__}, **fields})


BROKEN = {
    "no operation": (Instruction(operation=0), "BAD_INSTRUCTION"),
    "unknown operation": (Instruction(operation=7), "BAD_INSTRUCTION"),
    "unknown function": (Instruction(operation=3, function=5), "BAD_INSTRUCTION"),
    "unused bits": (Instruction(operation=1, unused=1), "BAD_INSTRUCTION"),
    "neurons": ("IO LOAD_NEURONS d=90 rows=11", "BAD_ADDRESS"),
    "no rows": ("IO LOAD_NEURONS d=90", "BAD_ADDRESS"),
    "far neurons": ("IO STORE_NEURONS a=65535 rows=65535", "BAD_ADDRESS"),
    "operand b": ("COMPUTE ADD a=0 b=91 d=0 rows=10", "BAD_ADDRESS"),
    "weights": ("IO LOAD_WEIGHTS w=1 rows=25 columns=5", "BAD_ADDRESS"),
    "no columns": ("IO LOAD_WEIGHTS w=1 rows=25", "BAD_ADDRESS"),
    "columns of a slave": ("IO LOAD_WEIGHTS rows=1 columns=13", "BAD_ADDRESS"),
    "columns of a slave, in vain": ("MOVE SCATTER columns=13", "BAD_ADDRESS"),
    "inputs of gradients": ("COMPUTE ACCUMULATE a=99 rows=2 columns=2", "BAD_ADDRESS"),
    "applied weights": ("COMPUTE APPLY w=49 rows=2 columns=2", "BAD_ADDRESS"),
    "half overlap": ("MOVE COPY a=10 d=11 rows=2", "BAD_ADDRESS"),
    "results over inputs": ("COMPUTE FORWARD a=10 d=10 rows=2 columns=2", "BAD_ADDRESS"),
    "target": ("JUMP LOOP d=20", "BAD_ADDRESS"),
    "loaded instructions": ("IO LOAD_PROGRAM d=19 rows=2", "BAD_ADDRESS"),
    "no instructions": ("IO LOAD_PROGRAM d=19", "BAD_ADDRESS"),
    "far instructions": ("IO LOAD_PROGRAM d=65535 rows=65535", "BAD_ADDRESS"),
    "counter": ("JUMP LOOP a=4", "BAD_ADDRESS"),
    "table that isn't loaded": ("COMPUTE FORWARD a=0 d=10 rows=2 columns=2 kind_w=2", "BAD_TABLE"),
    "conversion to words": ("COMPUTE CONVERT a=0 d=10 rows=2", "BAD_TABLE"),
    "number of a table": (config_table(4, ONE_BIT, 1), "BAD_TABLE"),
    "too many bits": (config_table(1, THREE_BITS, 1), "BAD_TABLE"),
    "no bits": (table(kind_b=0), "BAD_TABLE"),
    "another order": (table(a=TABLE.a ^ 0x40), "BAD_TABLE"),
    "a value too small": (config_table(1, CodeTable((1, 2.0**-13)), 1), "BAD_TABLE"),
    "no divider": ("COMPUTE DIVIDE rows=2 kind_b=1", "NO_UNIT"),
    "no root": ("COMPUTE INVERSE_ROOT rows=2", "NO_UNIT"),
    "no converter of results": ("COMPUTE CONVERT rows=2 kind_d=1 chance_d=1 pair_d=1", "NO_UNIT"),
    "no converter of weights": ("COMPUTE APPLY rows=2 columns=2 kind_w=1 chance_w=1 pair_w=1", "NO_UNIT"),
    "zone": (table(kind_w=3), "BAD_ZONE"),
    "zone that doesn't cover the table": (table(a=TABLE.a & ~31), "BAD_ZONE"),
    "rate": ("CONFIG RATE a=32", "BAD_CONSTANT"),
    "mu": ("CONFIG RATE b=32 kind_b=1", "BAD_CONSTANT"),
    "seed": ("CONFIG SEED", "BAD_CONSTANT"),
}
KEPT = {
    "neurons": "IO LOAD_NEURONS d=90 rows=10",
    "weights": "IO LOAD_WEIGHTS w=2 rows=24 columns=5",
    "columns": "MOVE SCATTER columns=12",
    "applied weights": "COMPUTE APPLY w=48 rows=2 columns=2",
    "in place": "MOVE COPY a=10 d=10 rows=2",
    "beside": "COMPUTE FORWARD a=10 d=12 rows=2 columns=2",
    "seed": "CONFIG SEED b=1",
}


def program(instruction: Instruction | str, before: int = 3) -> list[Instruction]:
    instructions = [instruction] if isinstance(instruction, Instruction) else assemble(instruction)
    return [TABLE] * before + instructions + assemble("NOP END")


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_is_named(case):
    instruction, name = BROKEN[case]
    compiled = program(instruction)
    fault = next(fault for fault in FAULTS if fault.name == name)
    with pytest.raises(MachineFault) as error:
        Interpreter(MACHINE, compiled).run(np.arange(200))
    assert str(error.value) == f"instruction 3: {name}: {fault.rule}, got {compiled[3]}"
    assert error.value.fault is fault


@pytest.mark.parametrize("case", KEPT)
def test_a_rule_that_is_just_kept(case):
    compiled = program(KEPT[case])
    words = {"neurons": 10, "weights": 120}.get(case, 0)
    Interpreter(MACHINE, compiled).run(np.arange(words))


def test_a_program_has_an_end():
    with pytest.raises(MachineFault, match=r"^instruction 20: BAD_ADDRESS: "):
        Interpreter(MACHINE, [TABLE] * 20).run()


@pytest.mark.parametrize(
    "text",
    [
        "COMPUTE FORWARD d=10 rows=2 columns=2 {a} {w}",
        "COMPUTE BACKWARD d=10 rows=2 columns=2 {b} {w}",
        "COMPUTE UPDATE rows=2 columns=2 {a} {b}",
        "COMPUTE ACCUMULATE rows=2 columns=2 {a} {b}",
    ],
)
def test_by_tables(text):
    """Both factors of slaves are codes; those of the master's products need not be."""
    machine = MachineParameters(slaves=4, neuron_words=100, weight_words=64, column_words=3, products="table")
    names = {name: f"kind_{name}=1" for name in "abw" if f"{{{name}}}" in text}
    for lacking in names:
        with pytest.raises(MachineFault, match=r"^instruction 3: NO_UNIT: "):
            Interpreter(machine, program(text.format(**{**names, lacking: ""}))).run()
    Interpreter(machine, program(text.format(**names))).run()
    Interpreter(machine, program("COMPUTE MULTIPLY rows=2 kind_b=1")).run()
    with pytest.raises(MachineFault, match=r"^instruction 3: NO_UNIT: "):
        Interpreter(machine, program("COMPUTE MULTIPLY rows=2")).run()
    with value_error("machine: weight_words must be >= 64 for a table of products of 3 bits, got 63"):
        MachineParameters(weight_words=63, products="table")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("COMPUTE FORWARD a=0 d=10 rows=2 columns=2", "kind_w=1"),
        ("COMPUTE BACKWARD d=10 rows=2 columns=2", "kind_b=1"),
        ("COMPUTE UPDATE rows=2 columns=2", "kind_a=1"),
        ("COMPUTE ACCUMULATE rows=2 columns=2", "kind_b=1"),
        ("COMPUTE MULTIPLY rows=2", "kind_b=1"),
    ],
)
def test_without_multiplier(text, kept):
    with pytest.raises(MachineFault, match=r"^instruction 3: NO_UNIT: "):
        Interpreter(WITHOUT, program(text)).run()
    Interpreter(WITHOUT, program(f"{text} {kept}")).run()
    Interpreter(MACHINE, program(text)).run()


def test_words_of_a_packet():
    machine = Interpreter(MACHINE, assemble("IO LOAD_NEURONS d=0 rows=3\nIO STORE_NEURONS a=0 rows=3\nNOP END"))
    rule = "IO takes no more words than the packet has"
    with value_error(f"instruction 0: NO_DATA: {rule}, got 2 words for IO LOAD_NEURONS rows=3"):
        machine.run([1, 2])
    message = "instruction 2: DATA_LEFT: IO takes all words of the packet before the program ends, got 1 words left"
    with value_error(message):
        machine.run([1, 2, 3, 4])
    assert [words.tolist() for words in machine.run([5, 1 << 17, 7])] == [[5, 0, 7]]  # minus zero is zero


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"slaves": 3}, "slaves must be a power of two, got 3"),
        ({"slaves": 128}, "slaves must be 1..64, got 128"),
        ({"slaves": 0}, "slaves must be 1..64, got 0"),
        ({"code_bits": 0}, "code_bits must be 1..3, got 0"),
        ({"code_bits": 4}, "code_bits must be 1..3, got 4"),
        ({"tables": 0}, "tables must be 1..7, got 0"),
        ({"tables": 8}, "tables must be 1..7, got 8"),
        ({"instructions": 1}, "instructions must be 2..65536, got 1"),
        ({"instructions": 65537}, "instructions must be 2..65536, got 65537"),
        ({"neuron_words": 65537}, "neuron_words must be 2..65536, got 65537"),
        ({"weight_words": 1}, "weight_words must be 2..65536, got 1"),
        ({"weight_words": 65537}, "weight_words must be 2..65536, got 65537"),
        ({"column_words": 0}, "column_words must be 1..65536, got 0"),
        ({"column_words": 65537}, "column_words must be 1..65536, got 65537"),
        ({"neuron_words": 1}, "neuron_words must be 2..65536, got 1"),
        ({"form": WordFormat(8, 6)}, "fraction must be 0..5 for 8 bits, so that 2.0 is a word, got 6"),
    ],
)
def test_parameters(fields, message):
    with value_error(f"machine: {message}"):
        MachineParameters(**fields)


def test_parameters_at_their_limits():
    sizes = ("instructions", "neuron_words", "weight_words", "column_words")
    most = MachineParameters(slaves=64, code_bits=3, tables=7, **dict.fromkeys(sizes, 65536))
    least = MachineParameters(slaves=1, code_bits=1, tables=1, **dict.fromkeys(sizes, 2))
    assert (most.columns_each(65), least.columns_each(65)) == (2, 65)
    assert (most.table_rows, replace(most, products="table").table_rows) == (0, 64)

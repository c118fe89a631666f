"""Encoding, assembler and disassembler."""

import random

import pytest

from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.assembler import assemble, disassemble
from bitloom.golden.discrete.machine.instruction import FIELDS, FUNCTIONS, USED, Instruction, decode, encode
from bitloom.golden.discrete.machine.table_words import config_table, table_of
from bitloom.golden.discrete.table import THREE_BITS, CodeTable
from bitloom.golden.discrete.word import WordFormat
from tests.errors import value_error


def instructions() -> list[Instruction]:
    """Every instruction, with random numbers in the fields that it uses."""
    draw = random.Random(0)
    drawn = []
    for operation, functions in FUNCTIONS.items():
        for function in functions.values():
            fields = {name: draw.randrange(1 << FIELDS[name][1]) for name in USED[operation, function]}
            drawn.append(Instruction(operation=operation, function=function, **fields))
    return drawn


def test_a_word_by_hand():
    instruction = Instruction(
        operation=isa.COMPUTE,
        function=isa.BACKWARD,
        kind_b=2,
        kind_w=1,
        d=0x123,
        w=0xFFFF,
        columns=10,
        rows=64,
        master=1,
    )
    assert encode([instruction]).tolist() == [1 << 23 | 1 << 15 | 2 << 12 | 1 << 4 | 3, 0, 0xFFFF0123, 64 << 16 | 10]


def test_fields_fill_the_words_without_overlap():
    taken = sorted(FIELDS.values())
    assert [low for low, _ in taken] == [0, *(low + width for low, width in taken[:-1])]
    assert sum(taken[-1]) == 32 * isa.WORDS


def test_what_is_encoded_is_decoded():
    encoded = instructions()
    assert decode(encode(encoded)) == encoded
    with value_error("instruction: words must be a multiple of 4, got 3"):
        decode([0, 0, 0])
    with value_error("instruction: rows must be 0..65535, got 65536"):
        Instruction(operation=1, rows=65536)


def test_assembler_and_disassembler():
    assert assemble(disassemble(instructions())) == instructions()
    text = "# two\nfirst: sample:\n  IO LOAD_NEURONS d=3 rows=4 # inputs\n\nJUMP LOOP d=sample rows=2\nNOP END\n"
    load = Instruction(operation=isa.IO, function=isa.LOAD_NEURONS, d=3, rows=4)
    assert assemble(text) == [load, Instruction(operation=isa.JUMP, rows=2), Instruction(operation=isa.NOP, function=1)]


@pytest.mark.parametrize(
    ("line", "message"),
    {
        "HALT": "operation must be one of NOP, CONFIG, COMPUTE, IO, MOVE, JUMP, got 'HALT'",
        "NOP": "function of NOP must be one of WAIT, END, got ''",
        "MOVE SWAP": "function of MOVE must be one of COPY, SCATTER, got 'SWAP'",
        "NOP END a=1": "fields of END are none, once each, got 'a=1'",
        "MOVE SCATTER a=1 rows=2": "fields of SCATTER are a, columns, once each, got 'rows=2'",
        "MOVE SCATTER a=1 a=1": "fields of SCATTER are a, columns, once each, got 'a=1'",
        "MOVE SCATTER a=65536": "a must be a number 0..65535, got '65536'",
        "MOVE SCATTER a=x": "a must be a number 0..65535, got 'x'",
        "JUMP LOOP d=nowhere": "d must be a number 0..65535, got 'nowhere'",
        "1x: NOP END": "a label must be a new name, got '1x'",
        "x: x: NOP END": "a label must be a new name, got 'x'",
    }.items(),
)
def test_lines_that_are_no_instruction(line, message):
    with value_error(f"line 2: {message}"):
        assemble("NOP END\n" + line)


def test_tables_in_instructions():
    form = WordFormat(18, 12)
    for table, zone in ((THREE_BITS, 1), (CodeTable((2, -2)), 2), (CodeTable((0.5, -(2.0**-12), 2, 1)), 2)):
        instruction = config_table(3, table, zone)
        assert (instruction.kind_a, instruction.kind_b, instruction.kind_w) == (3, table.bits, zone)
        assert table_of(decode(encode([instruction]))[0], form, 3) == table
    message = "table 1: zone must be 1 or 2 and cover the table, whose largest magnitude is 2, got 1"
    with value_error(message):
        config_table(1, CodeTable((2, -1)), 1)

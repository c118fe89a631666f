"""The loader: takes the stream apart into packets (docs/explanation/training-machine.md, "Packets").

    s_axis --> header, judged --> PROGRAM: instruction cache
                             `--> RUN: starts the controller; words of data, until the program has ended
                                       `--> LOAD_PROGRAM of the controller: instruction cache

After a fault, its own or the controller's, every word is taken and dropped until a reset.
"""

from veriloggen import Cat

from bitloom.golden.discrete.machine import faults
from bitloom.golden.discrete.machine.instruction import WORDS
from bitloom.golden.discrete.machine.parameters import ADDRESS_BITS, MachineParameters
from bitloom.hls_gen.design.headers import HEADER_WORDS, MAGIC, PROGRAM, RUN, word_0
from bitloom.hls_gen.design.training import FAULT_BITS, STREAM_BITS
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    any_of,
    bits,
    choose,
    const,
    eq,
    nonzero,
    resize,
    sub,
    width,
)
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.register_word import field_of
from bitloom.hls_gen.rtl.primitives.states import StateMachine
from bitloom.hls_gen.rtl.primitives.text import Header

from .verdict import first_broken

LEFT_BITS = 32 + bits_for(WORDS - 1)
"""Bits of the number of words in a packet of 2^32 - 1 instructions."""
STATES = ("HEADER", "RANGE", "JUDGE", "PROGRAM", "RUN", "FAULTED")


def loader(library: Library, machine: MachineParameters) -> Block:
    """The module ``loader``."""
    header = Header(
        __doc__,
        rate="a stream word a cycle; two cycles more for a header",
        latency="0 cycles from s_axis to data",
        parameters={"instructions": machine.instructions},
    )
    b = Block("loader", header)
    data = b.input("s_axis_tdata", STREAM_BITS)
    valid = b.input("s_axis_tvalid")
    ready = b.output("s_axis_tready")
    last = b.input("s_axis_tlast")
    finished = b.input("finished", means="pulse: the program has ended")
    stopped = b.input("stopped", means="the controller stands still after a fault")

    # # #

    machine_state = StateMachine.of(b, STATES)
    at = machine_state.at
    go = machine_state.go
    taken = b.wire("taken", 1, all_of(valid, ready))
    words, complete, ended, begun = _header(b, at["HEADER"] & taken, data, last)
    left = b.reg("left", LEFT_BITS, init=None)  # words of the payload
    some = b.wire("some_left", 1, nonzero(left))
    verdict, is_program = _judged(b, machine, words, ended)
    loading = b.reg("loading")  # LOAD_PROGRAM takes words of the run
    instruction_word = b.wire("instruction_word", 1, taken & any_of(at["PROGRAM"], all_of(at["RUN"], loading)))
    _program(b, machine, instruction_word, data, (at["JUDGE"], words[1]), loading)
    ready.assign(any_of(at["HEADER"], at["PROGRAM"], at["FAULTED"], _data(b, at["RUN"], some, valid, data, loading)))
    payload = b.wire("payload_taken", 1, all_of(taken, any_of(at["PROGRAM"], at["RUN"])))
    b.on(payload, (left, sub(left, 1, LEFT_BITS)))
    b.on(at["JUDGE"], (left, choose(is_program, _times_words(words[2]), words[2], LEFT_BITS)))
    b.comment("States.")
    broken = b.wire("broken", 1, nonzero(verdict))
    early = b.wire(
        "early_last", 1, any_of(all_of(payload, last, ~eq(left, 1)), all_of(at["HEADER"], taken, last, ~complete))
    )
    go(complete, "RANGE", "HEADER")
    go(None, "JUDGE", "RANGE")
    go(is_program & ~broken, "PROGRAM", "JUDGE")
    go(~any_of(is_program, broken), "RUN", "JUDGE")
    go(payload & eq(left, 1), "HEADER", "PROGRAM")
    go(finished, "HEADER", "RUN")
    start = b.output_reg("start", means="pulse: a program begins")
    b.on(None, (start, all_of(at["JUDGE"], ~is_program, ~broken)))
    b.output("first", ADDRESS_BITS, bits(words[1], 0, ADDRESS_BITS), means="address of its first instruction")
    code = b.output_reg("fault", FAULT_BITS, means="the rule that a packet broke, 0 for none")
    b.on(all_of(at["JUDGE"], broken), (code, verdict))
    b.on(early, (code, b.localparam("TRUNCATED", faults.TRUNCATED.code, FAULT_BITS)))
    go(broken, "FAULTED", "JUDGE")
    go(any_of(early, stopped), "FAULTED")
    machine_state.close()
    b.output("idle", 1, all_of(at["HEADER"], ~begun), means="no packet has begun")
    b.output("word_taken", 1, taken)
    return b


def _data(b: Block, running: Signal, some: Signal, valid: Signal, data: Signal, loading: Signal) -> Signal:
    """Words of a RUN on their way to IO; expression: the one that is there is taken, by a unit or by LOAD_PROGRAM."""
    asked = b.input("data_ready")
    b.output("data_valid", 1, all_of(running, valid, some, ~loading))
    b.output("data_data", STREAM_BITS, data)
    b.output("data_left", 1, some, means="the packet has words that were not taken")
    b.output("running", 1, running, means="a program runs")
    b.output("dry", 1, all_of(running, ~some), means="the packet has no more words")
    b.output("wants_program", 1, loading, means="LOAD_PROGRAM wants a word")
    return all_of(running, some, any_of(asked, loading))


def _times_words(length: Signal) -> Signal:
    """32-bit words of so many instructions."""
    return Cat(length, const(0, bits_for(WORDS - 1)))


def _header(b: Block, take: Signal, data: Signal, last: Signal) -> tuple[list[Signal], Signal, Signal, Signal]:
    """(words, pulse: the last of them is taken, register: it ended the transfer, wire: one was taken)."""
    b.comment("Header.")
    place = b.reg("header_place", bits_for(HEADER_WORDS - 1))
    words = []
    for k in range(HEADER_WORDS):
        word = b.reg(f"header_{k}", 32, init=None)
        b.on(take & eq(place, k), (word, data))
        words.append(word)
    b.on(take, (place, add(place, 1, bits_for(HEADER_WORDS - 1))))
    complete = b.wire("header_complete", 1, take & eq(place, HEADER_WORDS - 1))
    ended = b.reg("ended", init=None)
    b.on(take, (ended, last))
    return words, complete, ended, b.wire("header_begun", 1, nonzero(place))


def _judged(b: Block, machine: MachineParameters, words: list[Signal], ended: Signal) -> tuple[Signal, Signal]:
    """(wire: the rule that is broken, register: the packet is PROGRAM), from registers that state RANGE writes."""
    b.comment("Judge.")
    names = ("whole", "is_program", "is_run", "fits", "starts", "empty")
    whole, is_program, is_run, fits, starts, empty = (b.reg(name, init=None) for name in names)
    kind_field = word_0("KIND")
    magic_field = word_0("MAGIC")
    magic = b.localparam("MAGIC", MAGIC, magic_field.width, base=16)
    end = b.wire("end_row", 33, resize(words[1], 33) + resize(words[2], 33))
    depth = b.localparam("INSTRUCTIONS", machine.instructions, 33)
    kind = field_of(words[0], kind_field)
    parity = words[0] ^ words[1] ^ words[2]
    unused = kind_field.lsb + kind_field.width  # what is between the two fields means nothing here
    zero = b.wire("unused_is_0", 1, eq(bits(words[0], unused, magic_field.lsb - unused), 0))
    b.on(
        None,
        (whole, all_of(eq(field_of(words[0], magic_field), magic), zero, eq(words[3], ~parity))),
        (is_program, eq(kind, b.localparam("PROGRAM", PROGRAM, width(kind)))),
        (is_run, eq(kind, b.localparam("RUN", RUN, width(kind)))),
        (fits, all_of(nonzero(words[2]), end <= depth)),
        (starts, resize(words[1], 33) < depth),
        (empty, eq(words[2], 0)),
    )
    rules = [
        (~whole, faults.BAD_HEADER),
        (~any_of(is_program, is_run), faults.BAD_PACKET),
        (~choose(is_program, fits, starts, 1), faults.BAD_RANGE),
        (all_of(ended, ~empty), faults.TRUNCATED),
    ]
    return first_broken(b, rules), is_program


def _program(
    b: Block, machine: MachineParameters, take: Signal, data: Signal, packet: tuple[Signal, Signal], loading: Signal
) -> None:
    """Instructions on their way to the cache: those of a packet (it begins; its address), and those of LOAD_PROGRAM,
    while which the register ``loading`` is 1."""
    b.comment("Instructions.")
    begin, address = packet
    bank_bits = bits_for(WORDS - 1)
    row_bits = bits_for(machine.instructions - 1)
    start = b.input("program_start", means="LOAD_PROGRAM begins")
    first = b.input("program_first", row_bits, means="address of its first instruction")
    count = b.input("program_rows", ADDRESS_BITS, means="its instructions")
    done = b.output_reg("program_done", means="pulse: its instructions are in the cache")
    bank = b.reg("bank", bank_bits, init=None)
    row = b.reg("row", row_bits, init=None)
    rows_left = b.reg("rows_left", ADDRESS_BITS, init=None)  # of LOAD_PROGRAM
    whole = b.wire("whole_instruction", 1, take & eq(bank, WORDS - 1))
    b.on(take, (bank, add(bank, 1, bank_bits)))
    b.on(whole, (row, add(row, 1, row_bits)), (rows_left, sub(rows_left, 1, ADDRESS_BITS)))
    b.on(begin, (bank, 0), (row, bits(address, 0, row_bits)))
    b.on(start, (loading, 1), (bank, 0), (row, first), (rows_left, count))
    over = b.wire("program_over", 1, all_of(loading, whole, eq(rows_left, 1)))
    b.on(over, (loading, 0))
    b.on(None, (done, over))
    b.output("write", 1, take, means="a word of an instruction is there")
    b.output("write_bank", bank_bits, bank, means="which word of it")
    b.output("write_row", row_bits, row, means="address of the instruction")
    b.output("write_data", STREAM_BITS, data, means="the word")

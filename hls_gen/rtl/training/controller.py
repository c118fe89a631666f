"""The controller: fetches instructions, holds them to the rules, issues them to the units (C21, C23, C24).

    instruction cache --> decode --> rules --> dependency unit --> array, vector, access, tables, loader
          ^-- words from the loader       `--> NOP, JUMP and CONFIG, which the controller does itself

Golden twin: golden/discrete/machine/interpreter.py. One instruction is at hand at a time; while it waits for its unit
or for what it reads, the units work on those before. After a fault the controller stands still until a reset.
"""

from dataclasses import dataclass

from veriloggen import Cat

from bitloom.golden.discrete.lfsr import STATE_BITS
from bitloom.golden.discrete.machine import faults
from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.parameters import ADDRESS_BITS, MachineParameters
from bitloom.golden.discrete.machine.table_words import PLACES_BITS
from bitloom.golden.discrete.machine.units import UNITS
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.design.training import BEAT_BITS, FAULT_BITS, INSTRUCTION_PLACE_BITS, PAYLOAD_BITS
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    any_of,
    bits,
    choose,
    eq,
    nonzero,
    resize,
    side_by_side,
)
from bitloom.hls_gen.rtl.primitives.memory import Library, ram
from bitloom.hls_gen.rtl.primitives.states import StateMachine
from bitloom.hls_gen.rtl.primitives.text import Header

from .decode import Decoded, DecodeSteps, decode, function_is, operation_is
from .dependency import Dependency, dependency
from .port_means import passed_on
from .vector import COPY, FUNCTION_BITS

STATES = ("IDLE", "FETCH", "DECODE", "ADD_UP", "MULTIPLY", "COMPARE", "JUDGE", "ISSUE", "TABLE", "PROGRAM", "FAULTED")


@dataclass(frozen=True)
class _Controller:
    """The controller under construction."""

    b: Block
    states: StateMachine
    place: Signal
    """Register: address of the instruction at hand."""

    @property
    def at(self) -> dict[str, Signal]:
        """Wires: the state is this one."""
        return self.states.at


def controller(library: Library, machine: MachineParameters) -> Block:
    """The module ``controller``."""
    cycles = STATES.index("ISSUE") - 1 + bits_for(machine.column_words)
    header = Header(
        __doc__,
        rate=f"an instruction in {cycles} cycles at most, without waits",
        latency=f"{cycles} cycles at most from the fetch of an instruction to its issue, without waits",
        parameters={"instructions": machine.instructions},
    )
    b = Block("controller", header)
    start = b.input("start", means="a program begins")
    first = b.input("first", ADDRESS_BITS, means="address of its first instruction")
    data_left = b.input("data_left", means="the packet has words that were not taken")
    loaded = b.input("tables_loaded", machine.tables, means="tables that are loaded")
    no_data = b.input("no_data", means="IO wants a word, and the packet has no more")
    done = {unit: b.input(f"{unit}_done", means=f"pulse: the instruction of {unit} is finished") for unit in UNITS}

    # # #

    states = StateMachine.of(b, STATES, rests=True)
    place = b.reg("place", INSTRUCTION_PLACE_BITS, init=None)
    k = _Controller(b, states, place)
    row = _cache(library, machine, k)
    outside = b.wire("outside", 1, place > b.localparam("LAST_PLACE", machine.instructions - 1, INSTRUCTION_PLACE_BITS))
    multiplied = b.wire("multiplied")
    at = k.at
    steps = DecodeSteps(at["DECODE"], at["ADD_UP"], at["MULTIPLY"], at["COMPARE"], multiplied)
    i = decode(b, machine, row, steps, (loaded, outside))
    issue = b.wire("issue")
    on_slaves = b.reg("io_on_slaves")  # the data access unit is busy as long as the array is
    b.on(issue & i.classes["on_io"], (on_slaves, i.classes["on_array"]))
    ends = {**done, "io": b.wire("io_over", 1, any_of(done["io"], all_of(done["array"], on_slaves)))}
    waits = dependency(b, i, issue, ends)
    b.comment("States.")
    for before, after in (("FETCH", "DECODE"), ("DECODE", "ADD_UP"), ("COMPARE", "JUDGE")):
        states.go(None, after, before)
    # rows times columns matter where rows of the slaves are used
    states.go(~i.classes["uses_w"], "COMPARE", "ADD_UP")
    states.go(i.classes["uses_w"], "MULTIPLY", "ADD_UP")
    states.go(multiplied, "COMPARE", "MULTIPLY")
    b.on(start, (place, first))
    states.go(start, "FETCH")
    end = _issue(k, i, waits, issue, data_left)
    _outputs(b, machine, i, issue, bits(row, 32, PAYLOAD_BITS))
    _faults(k, i, issue, no_data, all_of(end, data_left))
    states.close()
    return b


def _cache(library: Library, machine: MachineParameters, k: _Controller) -> Signal:
    """Wire: the instruction at ``place``, from FETCH on."""
    b = k.b
    depth = machine.instructions
    b.comment("Instruction cache, a bank for each word.")
    row_bits = bits_for(depth - 1)
    write = b.input("write", means="a word of an instruction is there")
    bank = b.input("write_bank", bits_for(isa.WORDS - 1), means="which word of it")
    row = b.input("write_row", row_bits, means="address of the instruction")
    data = b.input("write_data", 32, means="the word")
    words = []
    for n in range(isa.WORDS):
        word = b.wire(f"word_{n}", 32)
        b.instance(
            ram(library, 32, depth, latency=1),
            f"instructions_{n}",
            write=b.wire(f"write_{n}", 1, all_of(write, eq(bank, n))),
            write_row=row,
            write_data=data,
            read=k.at["FETCH"],
            read_row=bits(k.place, 0, row_bits),
            read_data=word,
        )
        words.append(word)
    return b.wire("instruction", 32 * isa.WORDS, side_by_side(words))


def _issue(k: _Controller, i: Decoded, waits: Dependency, issue: Signal, data_left: Signal) -> Signal:
    """Issues an instruction that keeps the rules; wire: the instruction is END and is issued."""
    b = k.b
    f = i.fields
    c = i.classes
    b.comment("Issue.")
    may = b.wire("may_issue", 1, k.at["ISSUE"])
    units = b.wire("for_units", 1, any_of(*[c[f"on_{unit}"] for unit in UNITS]))
    issue.assign(all_of(may, units, ~waits.blocked))
    jump = b.wire("jumps", 1, all_of(may, operation_is(b, f, isa.JUMP)))
    idle = b.wire("idle_issue", 1, all_of(may, ~units, ~waits.working))
    nop = b.wire("nops", 1, all_of(idle, operation_is(b, f, isa.NOP)))
    config = b.wire("configures", 1, all_of(idle, c["is_config"]))
    program = b.wire("program_begins", 1, all_of(idle, c["loads_program"]))
    table = b.wire("loads_table", 1, all_of(config, function_is(b, f, isa.CONFIG, isa.TABLE)))
    end = b.wire("ends", 1, all_of(nop, function_is(b, f, isa.NOP, isa.END)))
    again = _loop(k, f, jump)
    following = b.wire("following", INSTRUCTION_PLACE_BITS, add(k.place, 1, INSTRUCTION_PLACE_BITS))
    table_done = b.input("table_done", means="pulse: the table is loaded, or not")
    program_done = b.input("program_done", means="pulse: the instructions of LOAD_PROGRAM are in the cache")
    loaded = any_of(all_of(k.at["TABLE"], table_done), all_of(k.at["PROGRAM"], program_done))
    goes_on = any_of(issue, jump, nop, all_of(config, ~table), loaded)
    b.on(goes_on, (k.place, choose(all_of(jump, again), f["d"], following, INSTRUCTION_PLACE_BITS)))
    k.states.go(goes_on, "FETCH")
    k.states.go(table, "TABLE")
    k.states.go(program, "PROGRAM")
    k.states.go(end, "IDLE")
    finished = b.output_reg("finished", means="pulse: the program has ended")
    b.on(None, (finished, all_of(end, ~data_left)))
    b.output("table_start", 1, table, means="a table is to be loaded")
    b.output("program_start", 1, program, means="field_rows instructions are to be loaded, from address field_d on")
    b.comment("Constants.")
    rate = b.output_reg("rate", PLACES_BITS, init=0, means="places of the learning rate")
    mu = b.output_reg("mu", PLACES_BITS, init=0, means="places of mu")
    mu_on = b.output_reg("mu_on", means="mu is not 0")
    sets = all_of(config, function_is(b, f, isa.CONFIG, isa.RATE))
    b.on(sets, (rate, bits(f["a"], 0, PLACES_BITS)), (mu, bits(f["b"], 0, PLACES_BITS)))
    b.on(sets, (mu_on, nonzero(f["kind_b"])))
    seeds = all_of(config, function_is(b, f, isa.CONFIG, isa.SEED))
    b.output("seed_set", 1, seeds, means="the generator gets a state")
    b.output("seed", STATE_BITS, Cat(f["b"], f["a"]), means="that state")
    return end


def _loop(k: _Controller, f: dict[str, Signal], jump: Signal) -> Signal:
    """Register: the loop's body runs again. One counter for each number."""
    b = k.b
    counters = [b.reg(f"loop_{n}", ADDRESS_BITS) for n in range(isa.COUNTERS)]
    start = b.m.io_variable["start"]
    runs_before: Signal = counters[0]
    for n, counter in enumerate(counters[1:], 1):
        runs_before = choose(eq(f["a"], n), counter, runs_before, ADDRESS_BITS)
    # registers cut the path from the instruction: it has been at hand for some cycles when it is its turn
    runs = b.reg("runs", ADDRESS_BITS, init=None)
    again = b.reg("again", init=None)
    always = eq(f["rows"], isa.ALWAYS)
    before = b.wire("runs_before", ADDRESS_BITS, runs_before)
    b.on(None, (runs, add(before, 1, ADDRESS_BITS)), (again, any_of(always, runs < f["rows"])))
    counted = choose(all_of(again, ~always), runs, 0, ADDRESS_BITS)
    for n, counter in enumerate(counters):
        b.on(all_of(jump, eq(f["a"], n)), (counter, counted))
        b.on(start, (counter, 0))
    return again


def _outputs(b: Block, machine: MachineParameters, i: Decoded, issue: Signal, payload: Signal) -> None:
    """The instruction, as the units want it."""
    f = i.fields
    c = i.classes
    b.comment("What the units are told.")
    for unit in UNITS:
        b.output(f"start_{unit}", 1, all_of(issue, c[f"on_{unit}"]), means=f"an instruction for {unit} begins")
    for name in passed_on(machine):
        b.output(f"field_{name}", isa.FIELDS[name][1], f[name], means=f"field {name} of the instruction")
    b.output("payload", PAYLOAD_BITS, payload, means="words 1 to 3 of the instruction")
    b.output("each", ADDRESS_BITS, i.each, means="columns of a slave")
    b.output("last_slave", facts.slave_bits(machine), i.last_slave, means="slave of the last column")
    io = c["on_io"]
    scatter = all_of(~io, ~operation_is(b, f, isa.COMPUTE))
    kinds = {
        name: b.localparam(f"BEAT_{name}", getattr(facts, name), BEAT_BITS)
        for name in ("SCATTER", "FORWARD", "BACKWARD", "LEARN", "LOAD", "STORE")
    }
    stores = bits(f["function"], isa.STORE_BIT, 1)
    for_slaves = choose(stores, kinds["STORE"], kinds["LOAD"], BEAT_BITS)
    computed = kinds["FORWARD"]
    for name, function in (("BACKWARD", function_is(b, f, isa.COMPUTE, isa.BACKWARD)), ("LEARN", c["learns"])):
        computed = choose(function, kinds[name], computed, BEAT_BITS)
    beat = choose(scatter, kinds["SCATTER"], computed, BEAT_BITS)
    b.output("beat_kind", BEAT_BITS, choose(io, for_slaves, beat, BEAT_BITS), means="kind of the array's beats")
    b.output("stores", 1, stores, means="IO: it gives words")
    b.output("cache", isa.CACHE_BITS, bits(f["function"], 0, isa.CACHE_BITS), means="IO: which cache of the slaves")
    b.output("array_rows", ADDRESS_BITS, choose(scatter, 1, f["rows"], ADDRESS_BITS), means="rows, for the array")
    copy = b.localparam("COPY", COPY, FUNCTION_BITS)
    function = choose(operation_is(b, f, isa.MOVE), copy, resize(f["function"], FUNCTION_BITS), FUNCTION_BITS)
    b.output("vector_function", FUNCTION_BITS, function, means="function of the master's own arithmetic")
    b.output("on_slaves", 1, c["on_array"], means="IO: words of the slaves' caches")


def _faults(k: _Controller, i: Decoded, issue: Signal, no_data: Signal, left_over: Signal) -> None:
    """The first fault, and where it was."""
    b = k.b
    at = k.at
    b.comment("Faults.")
    code = b.output_reg("fault", FAULT_BITS, means="the rule that was broken, 0 for none")
    where = b.output_reg("fault_place", INSTRUCTION_PLACE_BITS, init=None, means="address of the instruction at fault")
    io_place = b.reg("io_place", INSTRUCTION_PLACE_BITS, init=None)
    b.on(issue & i.classes["on_io"], (io_place, k.place))
    table_fault = b.input("table_fault", FAULT_BITS, means="with table_done: the rule that the table breaks")
    table_done = b.m.io_variable["table_done"]
    judged = i.verdict
    broken = nonzero(i.verdict)
    k.states.go(~broken, "ISSUE", "JUDGE")
    for condition, value in (
        (all_of(at["JUDGE"], broken), judged),
        (all_of(at["TABLE"], table_done, nonzero(table_fault)), table_fault),
        (left_over, b.localparam("DATA_LEFT", faults.DATA_LEFT.code, FAULT_BITS)),
    ):
        b.on(condition, (code, value), (where, k.place))
        k.states.go(condition, "FAULTED")
    asks = choose(at["PROGRAM"], k.place, io_place, INSTRUCTION_PLACE_BITS)
    missing = b.localparam("NO_DATA", faults.NO_DATA.code, FAULT_BITS)
    b.on(all_of(no_data, ~at["FAULTED"]), (code, missing), (where, asks))
    k.states.go(no_data, "FAULTED")

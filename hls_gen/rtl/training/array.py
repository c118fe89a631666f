"""The master's lead of the slaves: beats for an instruction, and what comes up the tree (C13 to C17, C22).

    instruction --> counters --> beat + operand of the neuron cache --> tree --> saturate --> neuron cache
    words from outside ------------'                                       `--> words to outside

FORWARD goes through the rows of a column, column after column, and takes as many cycles for one as there are slaves at
least, since the slaves give their sums one after the other. All others go through the columns of a row, row after row;
SCATTER, LOAD and STORE slave by slave. An instruction is done a fixed number of cycles after its last beat.
"""

from dataclasses import dataclass

from bitloom.golden.discrete.lfsr import DRAW_BITS
from bitloom.golden.discrete.machine.parameters import ADDRESS_BITS, MachineParameters
from bitloom.hls_gen.design import training as facts
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
    sub,
    width,
)
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.context import place

from .port_means import BEAT
from .table_filler import table_filler
from .word import saturated

_GIVEN = {
    "kind": (facts.BEAT_BITS, "kind of the instruction's beats"),
    "a": (ADDRESS_BITS, "address of the operand in the neuron cache"),
    "d": (ADDRESS_BITS, "address of the results there"),
    "w": (ADDRESS_BITS, "first row in the slaves' caches"),
    "rows": (ADDRESS_BITS, "rows; 1 for SCATTER"),
    "each": (ADDRESS_BITS, "columns of a slave"),
    "last_slave": (None, "slave of the last column"),
    "accumulates": (1, "LEARN is ACCUMULATE"),
    "draws_d": (1, "weight gradients need numbers of the generator"),
    "draws_w": (1, "weights need numbers of the generator"),
}


def given_ports(machine: MachineParameters) -> dict[str, tuple[int, str]]:
    """Ports by which the array gets an instruction: name -> bits and meaning."""
    fills = {"fills": (1, "the slaves' tables of products are filled first")} if machine.table_rows else {}
    return {name: (w or facts.slave_bits(machine), text) for name, (w, text) in {**_GIVEN, **fills}.items()}


@dataclass(frozen=True)
class _BeatPlace:
    """Where the beats stand: registers, and wires that compare them."""

    held: dict[str, Signal]
    """The instruction."""
    row: Signal
    """Row of the slaves' caches."""
    column: Signal
    """Number of the column in its slave, from 0 on."""
    slave: Signal
    """Number of the slave, from 0 on."""
    x_row: Signal
    """Row of the operand in the neuron cache."""
    row_number: Signal
    """Number of the row in the instruction, from 0 on."""
    at: dict[str, Signal]
    """Wires: the instruction's beats are of this kind."""
    step: Signal
    """Wire: there is a beat."""
    end: Signal
    """Wire: the beat is the last one."""
    ends: dict[str, Signal]
    """Wires: the last column, the last slave of a column."""


def array(library: Library, machine: MachineParameters) -> Block:
    """The module that leads the slaves: module ``array``."""
    header = Header(
        __doc__,
        rate="a beat a cycle",
        latency=f"done {min(facts.array_drain(machine).values())} to {max(facts.array_drain(machine).values())} cycles "
        "after the last beat",
        parameters={"slaves": machine.slaves, "neuron_words": machine.neuron_words},
    )
    b = Block("array", header)
    start = b.input("start", means="an instruction begins")
    given = {name: b.input(name, w, means=text) for name, (w, text) in given_ports(machine).items()}
    done = b.output_reg("done", means="pulse: the instruction is done")

    # # #

    fill = _filler(b, library, machine, start, given) if machine.table_rows else None
    at_hand = _counters(b, machine, start, given, fill)
    _beats(b, machine, at_hand, fill)
    _up(b, machine, at_hand, start)
    b.comment("Done: so many cycles after the last beat that nothing is under way.")
    drain = facts.array_drain(machine)
    left_bits = bits_for(max(drain.values()))
    left = b.reg("left", left_bits, init=None)
    draining = b.reg("draining")
    count: Signal = const(0, left_bits)
    for name, at in at_hand.at.items():
        count = choose(at, b.localparam(f"DRAIN_{name}", drain[getattr(facts, name)], left_bits), count, left_bits)
    accumulate = b.localparam("DRAIN_ACCUMULATE", facts.accumulate_drain(machine), left_bits)
    count = choose(all_of(at_hand.at["LEARN"], at_hand.held["accumulates"]), accumulate, count, left_bits)
    over = b.wire("over", 1, all_of(draining, eq(left, 0)))
    b.on(draining, (left, sub(left, 1, left_bits)))
    b.on(over, (draining, 0))
    b.on(at_hand.end, (draining, 1), (left, b.wire("drain", left_bits, count)))
    b.on(None, (done, over))
    return b


def _filler(
    b: Block, library: Library, machine: MachineParameters, start: Signal, given: dict[str, Signal]
) -> dict[str, Signal]:
    """Outputs of the filler of the slaves' tables of products, by port."""
    factors = {
        f"{side}_{part}": b.input(f"{side}_{part}", w, means=f"{side} factor: {part} of its table")
        for side in ("left", "right")
        for part, w in facts.operand_widths(machine).items()
    }
    begins = b.wire("fill_begins", 1, all_of(start, given["fills"]))
    return place(b, library.get(table_filler, library, machine), "filler", "fill_", start=begins, **factors)


def _counters(
    b: Block,
    machine: MachineParameters,
    start: Signal,
    given: dict[str, Signal],
    fill: dict[str, Signal] | None,
) -> _BeatPlace:
    """Rows, columns and slaves of the beats."""
    b.comment("Counters.")
    slave_w = facts.slave_bits(machine)
    s = machine.slaves
    held = {
        name: b.reg(f"held_{name}", width(signal), init=None)
        for name, signal in given.items()
        if name not in ("a", "d", "w", "fills")
    }
    b.on(start, *[(register, given[name]) for name, register in held.items()])
    again = b.reg("first_x", ADDRESS_BITS, init=None)  # where each pass of FORWARD begins
    b.on(start, (again, given["a"]))
    at = {}
    for name in ("SCATTER", "FORWARD", "BACKWARD", "LEARN", "LOAD", "STORE"):
        number = b.localparam(name, getattr(facts, name), facts.BEAT_BITS)
        at[name] = b.wire(f"at_{name.lower()}", 1, eq(held["kind"], number))
    running = b.reg("running")
    io_valid = b.input("load_valid", means="a word for LOAD is there")
    room = b.input("store_room", means="what STORE gives will be taken")
    step = b.wire("step", 1, all_of(running, any_of(~at["LOAD"], io_valid), any_of(~at["STORE"], room)))
    b.output("load_ready", 1, all_of(running, at["LOAD"]), means="LOAD takes a word")
    forward = at["FORWARD"]
    one_by_one = b.wire("one_by_one", 1, any_of(at["SCATTER"], at["LOAD"], at["STORE"]))
    j, c = (b.reg(name, ADDRESS_BITS, init=None) for name in ("row_number", "column"))
    k = b.reg("slave", slave_w, init=None)
    final_c = b.reg("final_column", ADDRESS_BITS, init=None)  # of a slave
    b.on(start, (final_c, sub(given["each"], 1, ADDRESS_BITS)))
    last_c = b.wire("last_column", 1, eq(c, final_c))
    last = b.localparam("LAST_SLAVE", s - 1, slave_w)
    last_here = b.wire("last_here", slave_w, choose(last_c, held["last_slave"], last, slave_w))
    end_k = b.wire("end_of_slaves", 1, any_of(~one_by_one, eq(k, last_here)))
    final_j = b.reg(
        "final_row_number", ADDRESS_BITS, init=None
    )  # a pass of FORWARD has as many rows as slaves at least
    kind = b.localparam("FORWARD", facts.FORWARD, facts.BEAT_BITS)
    slaves = b.localparam("SLAVES", s, ADDRESS_BITS)
    short = all_of(eq(given["kind"], kind), given["rows"] < slaves)
    b.on(start, (final_j, choose(short, s - 1, sub(given["rows"], 1, ADDRESS_BITS), ADDRESS_BITS)))
    last_j = b.wire("last_row", 1, eq(j, final_j))
    after_c = b.wire("after_column", 1, all_of(end_k, last_c))
    end = b.wire("final_beat", 1, all_of(step, choose(forward, last_c, after_c, 1), last_j))
    b.on(end, (running, 0))
    b.on(start if fill is None else all_of(start, ~given["fills"]), (running, 1))
    if fill is not None:
        b.on(fill["done"], (running, 1))
    b.on(start, (j, 0), (c, 0), (k, 0))
    row, base, x_row = (b.reg(n, ADDRESS_BITS, init=None) for n in ("row", "column_base", "x_place"))
    b.on(start, (row, given["w"]), (base, given["w"]), (x_row, given["a"]))

    def more(signal: Signal, by: Signal | int = 1) -> Signal:
        return add(signal, by, ADDRESS_BITS)

    b.comment("FORWARD: rows, then columns.")
    forth = b.wire("forth", 1, all_of(step, forward))
    passed = b.wire("passed", 1, all_of(step, forward, last_j))
    b.on(forth, (j, more(j)), (row, more(row, held["each"])), (x_row, more(x_row)))
    b.on(passed, (j, 0), (c, more(c)), (base, more(base)), (row, more(base)), (x_row, again))
    b.comment("Others: slaves, columns, then rows.")
    other = b.wire("other", 1, all_of(step, ~forward))
    b.on(other, (k, add(k, 1, slave_w)))
    b.on(all_of(other, any_of(end_k)), (k, 0), (c, more(c)), (row, more(row)))
    b.on(all_of(other, after_c), (c, 0), (j, more(j)))
    b.on(all_of(other, any_of(after_c, at["SCATTER"])), (x_row, more(x_row)))
    ends = {"column": last_c, "slave": last_here, "one_by_one": one_by_one}
    return _BeatPlace(held, row, c, k, x_row, j, at, step, end, ends)


def _beats(b: Block, machine: MachineParameters, p: _BeatPlace, fill: dict[str, Signal] | None) -> None:
    """The beat, a cycle after the counters: the neuron cache is read meanwhile."""
    b.comment("Beats.")
    widths = facts.beat_widths(machine)
    rows = p.held["rows"]
    x_bits = bits_for(machine.neuron_words - 1)
    b.output("x_row", x_bits, bits(p.x_row, 0, x_bits), means="row of the neuron cache, read in this cycle")
    x_data = b.input("x_data", machine.form.bits, means="what the row read a cycle ago holds")
    load = b.input("load_data", machine.form.bits, means="the word for LOAD")
    one_by_one = p.ends["one_by_one"]
    last_c = p.ends["column"]
    here = b.wire("beat_here", 1, all_of(p.step, any_of(~p.at["FORWARD"], p.row_number < rows)))
    final_row = eq(p.row_number, b.wire("final_row", ADDRESS_BITS, sub(rows, 1, ADDRESS_BITS)))
    values = {
        "kind": choose(here, p.held["kind"], facts.NONE, facts.BEAT_BITS),
        "row": bits(p.row, 0, widths["row"]),
        "column": bits(p.column, 0, widths["column"]),
        "slave": choose(one_by_one, p.slave, p.ends["slave"], widths["slave"]),
        "first": choose(p.at["FORWARD"], eq(p.row_number, 0), eq(p.column, 0), 1),
        "last": choose(p.at["FORWARD"], final_row, last_c, 1),
    }
    if fill is not None:
        values["kind"] = choose(fill["fills"], facts.FILL, values["kind"], facts.BEAT_BITS)
        values["row"] = choose(fill["fills"], fill["row"], values["row"], widths["row"])
        values["first"] = choose(fill["fills"], p.at["LEARN"], values["first"], 1)  # part of the table
    for name, value in values.items():
        out = b.output_reg(f"down_{name}", widths[name], init=0 if name == "kind" else None, means=BEAT[name])
        b.on(None, (out, value))
    loaded = b.reg("loaded_word", machine.form.bits, init=None)
    loads = b.reg("loads", init=None)
    b.on(None, (loaded, load), (loads, p.at["LOAD"]))
    data = choose(loads, loaded, x_data, widths["data"])
    if fill is not None:
        filled = b.reg("filled", init=None)
        b.on(None, (filled, fill["fills"]))
        data = choose(filled, fill["data"], data, widths["data"])
    b.output("down_data", widths["data"], data, means=BEAT["data"])
    b.comment("Numbers of the generator: new ones for each row.")
    fresh = b.wire("fresh", 1, all_of(p.step, p.at["LEARN"], eq(p.column, 0)))
    both = b.wire("both", 1, all_of(p.held["draws_d"], p.held["draws_w"]))
    b.output("take_two", 1, all_of(fresh, both), means="two numbers are taken")
    b.output("take_one", 1, all_of(fresh, p.held["draws_d"] ^ p.held["draws_w"]), means="a number is taken")
    numbers = [b.input(name, DRAW_BITS, means=f"the {name} number") for name in ("first", "second")]
    for name, value in (("draw_d", numbers[0]), ("draw_w", choose(both, numbers[1], numbers[0], DRAW_BITS))):
        out = b.output_reg(f"down_{name}", DRAW_BITS, init=None, means=BEAT[name])
        b.on(fresh, (out, value))


def _up(b: Block, machine: MachineParameters, p: _BeatPlace, start: Signal) -> None:
    """Sums become words of the neuron cache; what is stored leaves."""
    b.comment("What comes up the tree.")
    form = machine.form
    valid = b.input("up_valid", means="up_data is of use")
    data = b.input("up_data", facts.sum_bits(machine), means="a sum, or a stored word")
    total = b.reg("sum", facts.sum_bits(machine), init=None)
    here = b.reg("sum_valid")
    b.on(None, (total, data), (here, valid))
    word = b.output_reg("write_data", form.bits, init=None, means="a result")
    b.on(None, (word, saturated(b, "result", total, form.bits)))
    write = b.output_reg("write", means="write_data goes to the neuron cache")
    b.on(None, (write, all_of(here, ~p.at["STORE"])))
    d_bits = bits_for(machine.neuron_words - 1)
    d_row = b.reg("d_row", ADDRESS_BITS, init=None)
    b.on(write, (d_row, add(d_row, 1, ADDRESS_BITS)))
    b.on(start, (d_row, b.m.io_variable["d"]))
    b.output("write_row", d_bits, bits(d_row, 0, d_bits), means="row of the neuron cache")
    b.output("store_valid", 1, all_of(here, p.at["STORE"]), means="a word of STORE is there, and must be taken")
    b.output("store_data", form.bits, bits(total, 0, form.bits), means="the word of STORE")
    last_stored = delayed(b, p.end, "final_beat", facts.store_latency(machine), init=0)[-1]
    b.output("store_last", 1, last_stored, means="it is the last one")

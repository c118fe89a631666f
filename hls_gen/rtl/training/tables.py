"""Tables of codes: CONFIG TABLE is checked and worked out here, value by value in rising order.

    payload --> code of the rank --> its entry --> its value, checked --> thresholds --> table 1, 2, ...

Golden twin: table_of in golden/discrete/machine/table_words.py, whose rules it has.
"""

from dataclasses import dataclass

from veriloggen import Cat

from bitloom.golden.discrete.machine.faults import BAD_TABLE, BAD_ZONE
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.table_words import CODE_BITS, PLACES_BITS, RANK_BIT
from bitloom.golden.discrete.machine.table_words import ENTRY_BITS as CODE_PART_BITS
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.design.training import ENTRY_BITS
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    any_of,
    bits,
    by_number,
    const,
    eq,
    nonzero,
    side_by_side,
    signed_at_least,
    width,
)
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .arithmetic import constant, leave
from .verdict import FAULT_BITS, first_broken
from .word import twos

PHASES = ("CODE", "ENTRY", "VALUE", "OUTCOME")
"""Phases of a rank, a cycle each, by what is found: its code, the code's entry, the value, and what follows of the
value."""


def table_widths(machine: MachineParameters) -> dict[str, int]:
    """Parts of a table as units use them, and their bits."""
    settings = facts.setting_widths(machine)
    widths = {name: settings[f"w_{name}"] for name in ("entries", "mask", "ranked", "order")}
    widths["zone"] = facts.ZONE_BITS
    return {**widths, "near": settings["w_thresholds"], "chance": settings["w_thresholds"]}


@dataclass(frozen=True)
class _TableWalk:
    """Where loading stands."""

    phase: dict[str, Signal]
    """Wires: a table is loaded, and it is in this phase (`PHASES`)."""
    rank: Signal
    """Register."""
    last: Signal
    """The rank is the last one."""


@dataclass(frozen=True)
class _RankedValue:
    """The value of the rank at hand: registers."""

    entry: Signal
    """Its entry."""
    value: Signal
    below: Signal
    """value, below: it and the value of the rank before, two's complement."""


def tables(library: Library, machine: MachineParameters) -> Block:
    """The module that holds the tables.

    Module ``tables``; outputs ``<part>_<number>`` for each table, see `table_widths`.
    """
    header = Header(
        __doc__,
        rate=f"a table in {len(PHASES)} cycles a value",
        latency=f"{len(PHASES)} cycles a value, from start to done",
        parameters={"tables": machine.tables, "code_bits": machine.code_bits},
    )
    b = Block("tables", header)
    start = b.input("start", means="load a table; what describes it stands until done")
    number = b.input("number", facts.KIND_BITS, means="number of the table, 1 or more")
    code_bits = b.input("code_bits", facts.KIND_BITS, means="bits of its codes")
    zone = b.input("zone", facts.KIND_BITS, means="its zone")
    payload = b.input("payload", facts.PAYLOAD_BITS, means="words 1 to 3 of the instruction")
    done = b.output_reg("done", means="pulse: loaded, or not")
    fault = b.output_reg("fault", FAULT_BITS, init=None, means="with done: the rule that was broken, 0 for none")
    loaded = b.output("loaded", machine.tables, means="tables that are loaded, table 1 low")

    # # #

    codes = machine.code_bits
    ranks = 1 << machine.code_bits
    for k in range(facts.PAYLOAD_BITS // CODE_PART_BITS):
        used = RANK_BIT + CODE_BITS if k < ranks else 0
        leave(b, f"payload_{k}", bits(payload, CODE_PART_BITS * k + used, CODE_PART_BITS - used))
    b.comment("Walk: rank after rank.")
    busy = b.reg("busy")
    mask = b.wire("last_rank", codes, b.wire("masks", codes, by_number(bits(code_bits, 0, 2), _masks(machine), codes)))
    walk = _walk(b, codes, (start, busy, mask))
    wrong, value = _checked(b, machine, walk, payload, (code_bits, zone, mask))
    b.comment("The table as units use it.")
    parts = {name: b.wire(f"made_{name}", w) for name, w in table_widths(machine).items()}
    _work(b, machine, walk, (parts, start), value)
    parts["entries"].assign(side_by_side([bits(payload, CODE_PART_BITS * k, ENTRY_BITS) for k in range(ranks)]))
    parts["order"].assign(side_by_side([bits(payload, CODE_PART_BITS * k + RANK_BIT, codes) for k in range(ranks)]))
    parts["mask"].assign(mask)
    parts["zone"].assign(bits(zone, 0, facts.ZONE_BITS))
    over = b.wire("over", 1, all_of(walk.phase["OUTCOME"], any_of(nonzero(wrong), walk.last)))
    b.on(None, (done, over), (fault, wrong))
    b.on(over, (busy, 0))
    good = b.reg("good")  # what the last value adds stands a cycle later
    b.on(None, (good, all_of(over, eq(wrong, 0))))
    loaded.assign(side_by_side([_kept(b, k, (start, good, number), parts) for k in range(1, machine.tables + 1)]))
    return b


def _walk(b: Block, codes: int, when: tuple[Signal, Signal, Signal]) -> _TableWalk:
    """Goes through the ranks up to the last one while a table is loaded, and through the phases of each."""
    start, busy, mask = when
    w = bits_for(len(PHASES) - 1)
    rank = b.reg("rank", codes, init=None)
    phase = b.reg("phase", w, init=None)
    phases = {}
    for number, name in enumerate(PHASES):
        here = eq(phase, b.localparam(f"PHASE_{name}", number, w))
        phases[name] = b.wire(f"in_{name.lower()}", 1, all_of(busy, here))
    b.on(busy, (phase, add(phase, 1, w)))  # wraps: there are as many phases as numbers
    b.on(phases["OUTCOME"], (rank, add(rank, 1, codes)))
    b.on(start, (busy, 1), (phase, 0), (rank, 0))
    return _TableWalk(phases, rank, eq(rank, mask))


def _kept(b: Block, k: int, when: tuple[Signal, Signal, Signal], parts: dict[str, Signal]) -> Signal:
    """Registers of table ``k``; the result says whether it is loaded."""
    start, good, number = when
    is_there = b.reg(f"loaded_{k}")
    addressed = eq(number, k)
    b.on(all_of(start, addressed), (is_there, 0))
    take = b.wire(f"take_{k}", 1, all_of(good, addressed))
    b.on(take, (is_there, 1))
    for name, signal in parts.items():
        held = b.output_reg(f"{name}_{k}", width(signal), init=None, means=f"table {k}: {name}")
        b.on(take, (held, signal))
    return is_there


def _masks(machine: MachineParameters) -> list[Signal]:
    """The last rank of tables of 0 to 3 bits."""
    return [const((1 << min(k, machine.code_bits)) - 1, machine.code_bits) for k in range(4)]


def _checked(
    b: Block, machine: MachineParameters, walk: _TableWalk, payload: Signal, shape: tuple[Signal, Signal, Signal]
) -> tuple[Signal, _RankedValue]:
    """In the last phase: wire, the rule that is broken, 0 for none; and the value of the rank."""
    form = machine.form
    codes = machine.code_bits
    code_bits, zone, mask = shape
    code = b.reg("code", CODE_BITS, init=None)
    ranked = [bits(payload, CODE_PART_BITS * k + RANK_BIT, CODE_BITS) for k in range(1 << codes)]
    b.on(walk.phase["CODE"], (code, b.wire("code_found", CODE_BITS, by_number(walk.rank, ranked, CODE_BITS))))
    entry = b.reg("entry", ENTRY_BITS, init=None)
    entries = [bits(payload, CODE_PART_BITS * k, ENTRY_BITS) for k in range(1 << codes)]
    entry_found = b.wire("entry_found", ENTRY_BITS, by_number(bits(code, 0, codes), entries, ENTRY_BITS))
    b.on(walk.phase["ENTRY"], (entry, entry_found))
    value, below = b.reg("value", form.bits, init=None), b.reg("below", form.bits, init=None)  # two's complement
    b.on(walk.phase["VALUE"], (value, twos(constant(b, machine, "value", entry), form.bits)))
    b.on(walk.phase["OUTCOME"], (below, value))
    places = bits(entry, 0, PLACES_BITS)
    first = eq(walk.rank, 0)
    bad_bits = any_of(eq(code_bits, 0), code_bits > const(codes, facts.KIND_BITS))
    bad_zone = all_of(~eq(zone, 1), ~eq(zone, 2))
    far = code > _wide(mask, CODE_BITS)
    falls = all_of(~first, signed_at_least(below, value))
    small = places > b.localparam("MOST_PLACES", form.fraction + 1, PLACES_BITS)
    outside = all_of(eq(places, 0), eq(zone, 1))
    rules = [
        (bad_bits, BAD_TABLE),
        (bad_zone, BAD_ZONE),
        (any_of(far, small), BAD_TABLE),
        (outside, BAD_ZONE),
        (falls, BAD_TABLE),
    ]
    return first_broken(b, rules), _RankedValue(entry, value, below)


def _wide(signal: Signal, w: int) -> Signal:
    """A variable in w bits or more."""
    return signal if width(signal) == w else Cat(const(0, w - width(signal)), signal)


def _work(
    b: Block,
    machine: MachineParameters,
    walk: _TableWalk,
    out: tuple[dict[str, Signal], Signal],
    rank_value: _RankedValue,
) -> None:
    """Thresholds and entries in rising order, in registers that the last phase of each rank writes."""
    w = machine.form.bits + 1
    codes = machine.code_bits
    parts, start = out
    entry, value, below = rank_value.entry, rank_value.value, rank_value.below
    wide = [Cat(bits(v, w - 2, 1), v) for v in (value, below)]
    total = b.wire("neighbours", w, wide[0] + wide[1])
    never = b.localparam("NEVER", (1 << (w - 1)) - 1, w)
    rows: dict[str, list[Signal]] = {"near": [], "chance": [], "ranked": []}
    for k in range(1 << codes):
        here = b.wire(f"at_rank_{k}", 1, all_of(walk.phase["OUTCOME"], eq(walk.rank, k)))
        ranked = b.reg(f"ranked_entry_{k}", ENTRY_BITS, init=None)
        b.on(here, (ranked, entry))
        rows["ranked"].append(ranked)
        if k:
            near = b.reg(f"near_at_{k}", w, init=None)
            chance = b.reg(f"chance_at_{k}", w, init=None)
            b.on(start, (near, never), (chance, never))
            b.on(here, (near, total), (chance, Cat(value, const(0, 1))))
            rows["near"].append(near)
            rows["chance"].append(chance)
    for name, values in rows.items():
        parts[name].assign(side_by_side(values))

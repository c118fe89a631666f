"""The master with its slaves: caches, units and tables, told what to do by the controller (C21).

    access <--> neuron cache <--> array <--> tree of slaves
                     ^--> vector          tables, generator --> both

Golden twin: golden/discrete/machine/master.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.golden.discrete.lfsr import STATE_BITS
from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.parameters import ADDRESS_BITS, MachineParameters
from bitloom.golden.discrete.machine.table_words import PLACES_BITS
from bitloom.golden.discrete.machine.units import UNITS
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    all_of,
    any_of,
    choose,
    const,
    eq,
    nonzero,
    width,
)
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.context import place

from .access import access
from .array import array
from .generator import generator
from .neuron_cache import neuron_cache
from .port_means import BY_CHANCE, passed_on
from .tables import tables
from .tree import branch
from .vector import FUNCTION_BITS, vector


def told_widths(machine: MachineParameters) -> dict[str, int]:
    """Bits of the controller's outputs, which are inputs here, by name; ``last_slave`` besides."""
    return {
        **{f"start_{unit}": 1 for unit in UNITS},
        **{f"field_{name}": isa.FIELDS[name][1] for name in passed_on(machine)},
        "each": ADDRESS_BITS,
        "array_rows": ADDRESS_BITS,
        "beat_kind": facts.BEAT_BITS,
        "vector_function": FUNCTION_BITS,
        "on_slaves": 1,
        "stores": 1,
        "cache": isa.CACHE_BITS,
        "rate": PLACES_BITS,
        "mu": PLACES_BITS,
        "mu_on": 1,
        "seed_set": 1,
        "seed": STATE_BITS,
        "table_start": 1,
    }


@dataclass(frozen=True)
class _MasterBlock:
    """The master under construction."""

    b: Block
    library: Library
    machine: MachineParameters
    told: dict[str, Signal]
    """Signals of the controller."""
    table: dict[str, Signal]
    """Ports of the tables."""

    def held(self, name: str, signal: Signal, start: Signal) -> Signal:
        """Register: what a signal is as an instruction begins."""
        register = self.b.reg(name, width(signal), init=None)
        self.b.on(start, (register, signal))
        return register

    def part_of(self, name: str, kind: Signal) -> Signal:
        """A part of the table that ``kind`` names."""
        chosen = self.table[f"{name}_1"]
        for number in range(2, self.machine.tables + 1):
            hit = eq(kind, self.b.localparam(f"TABLE_{number}", number, facts.KIND_BITS))
            chosen = choose(hit, self.table[f"{name}_{number}"], chosen, width(chosen))
        return chosen

    def operand(self, prefix: str, kind: Signal, out: dict[str, Signal]) -> None:
        """Registers for an operand of that kind: ``<prefix>_coded``, ``_entries``, ``_mask``."""
        values = {"coded": nonzero(kind), **{name: self.part_of(name, kind) for name in ("entries", "mask")}}
        for name, value in values.items():
            register = self.b.reg(f"{prefix}_{name}", width(value), init=None)
            self.b.on(None, (register, value))
            out[f"{prefix}_{name}"] = register

    def conversion(self, prefix: str, kind: Signal, by: Sequence[Signal], out: dict[str, Signal]) -> None:
        """Registers for a converter: ``<prefix>_thresholds``, ``_ranked``, ``_order``, ``_chance`` and, of one with a
        multiplier, ``_pair``, ``_wide``. ``by``: by chance; with a multiplier also: of
        the two nearest."""
        near = self.part_of("near", kind)
        far = self.part_of("chance", kind)
        chance, *pair = by
        around = all_of(chance, *(~nearest for nearest in pair))
        more = {"pair": pair[0], "wide": eq(self.part_of("zone", kind), 2)} if pair else {}
        values = {
            "thresholds": choose(around, far, near, width(near)),
            "chance": chance,
            "ranked": self.part_of("ranked", kind),
            "order": self.part_of("order", kind),
            **more,
        }
        for name, value in values.items():
            register = self.b.reg(f"{prefix}_{name}", width(value), init=None)
            self.b.on(None, (register, value))
            out[f"{prefix}_{name}"] = register


def master(library: Library, machine: MachineParameters) -> Block:
    """The module ``master``, with the slaves inside."""
    header = Header(
        __doc__,
        rate="an instruction for each unit at a time",
        latency="that of the units",
        parameters={"slaves": machine.slaves, "word_bits": machine.form.bits, "code_bits": machine.code_bits},
    )
    b = Block("master", header)
    told = {name: b.input(name, w, means=f"controller: {name}") for name, w in told_widths(machine).items()}
    told["last_slave"] = b.input("last_slave", facts.slave_bits(machine), means="controller: slave of the last column")
    streams = {
        f"{s}_{part}": (b.input if (part == "ready") == (s == "results") else b.output)(f"{s}_{part}", w)
        for s, parts in (
            ("data", (("valid", 1), ("data", facts.STREAM_BITS), ("ready", 1))),
            ("results", (("valid", 1), ("data", facts.STREAM_BITS), ("last", 1), ("ready", 1))),
        )
        for part, w in parts
    }
    outs = {
        name: b.output(name, w, means=text)
        for name, w, text in (
            ("io_done", 1, "pulse: IO of the neuron cache is finished"),
            ("array_done", 1, "pulse: the array is finished"),
            ("vector_done", 1, "pulse: the master's own arithmetic is finished"),
            ("table_done", 1, "pulse: the table is loaded, or not"),
            ("table_fault", facts.FAULT_BITS, "with table_done: the rule that it breaks"),
            ("tables_loaded", machine.tables, "tables that are loaded"),
            ("wanted", 1, "IO wants a word"),
            ("beat", 1, "the slaves have a beat"),
            ("vector_result", 1, "the master's own arithmetic has a result"),
        )
    }

    # # #

    table = _tables(b, library, machine, told, outs)
    m = _MasterBlock(b, library, machine, told, table)
    numbers = place(b, library.get(generator, library), "generator", "number_", set=told["seed_set"], seed=told["seed"])
    cells = place(b, library.get(neuron_cache, library, machine), "neuron_cache", "cell_")
    io = _access(m, streams, outs, cells)
    lead = _array(m, outs, cells, numbers, io)
    vector_ports = _vector(m, outs, cells, numbers)
    numbers["take_one"].assign(any_of(lead["take_one"], vector_ports["take_one"]))
    numbers["take_two"].assign(lead["take_two"])
    outs["beat"].assign(nonzero(lead["down_kind"]))
    outs["vector_result"].assign(all_of(cells["vector_write"], cells["vector_write_ready"]))
    return b


def _tables(
    b: Block, library: Library, machine: MachineParameters, told: dict[str, Signal], outs: dict[str, Signal]
) -> dict[str, Signal]:
    """The tables, loaded from the fields of CONFIG TABLE."""
    return place(
        b,
        library.get(tables, library, machine),
        "tables",
        "table_",
        start=told["table_start"],
        number=told["field_kind_a"],
        code_bits=told["field_kind_b"],
        zone=told["field_kind_w"],
        payload=b.input("payload", facts.PAYLOAD_BITS, means="controller: words 1 to 3 of the instruction"),
        done=outs["table_done"],
        fault=outs["table_fault"],
        loaded=outs["tables_loaded"],
    )


def _access(
    m: _MasterBlock, streams: dict[str, Signal], outs: dict[str, Signal], cells: dict[str, Signal]
) -> dict[str, Signal]:
    """The data access unit, at the neuron cache."""
    told = m.told
    stores = told["stores"]
    wires = {
        "start": told["start_io"],
        "store": stores,
        "on_slaves": told["on_slaves"],
        "mark_last": told["field_last"],
        "address": choose(stores, told["field_a"], told["field_d"], ADDRESS_BITS),
        "rows": told["field_rows"],
        "done": outs["io_done"],
        "wanted": outs["wanted"],
        "write": cells["access_write"],
        "write_row": cells["access_write_row"],
        "write_data": cells["access_write_data"],
        "write_ready": cells["access_write_ready"],
        "read_row": cells["access_row"],
        "read_data": cells["access_data"],
    }
    return place(m.b, m.library.get(access, m.library, m.machine), "access", "io_", **streams, **wires)


def _array(
    m: _MasterBlock,
    outs: dict[str, Signal],
    cells: dict[str, Signal],
    numbers: dict[str, Signal],
    io: dict[str, Signal],
) -> dict[str, Signal]:
    """The array and the tree, with settings that stand while it is at work; what is connected to the array."""
    b = m.b
    told = m.told
    machine = m.machine
    start = told["start_array"]
    b.comment("Settings of the slaves.")
    kinds = {
        name: m.held(f"array_{name}", told[f"field_{name}"], start)
        for name in ("kind_a", "kind_b", "kind_w", "kind_d", "master", *BY_CHANCE[machine.converter])
    }
    beat = m.held("array_beat", told["beat_kind"], start)
    settings: dict[str, Signal] = {}
    backward, learn = (
        eq(beat, b.localparam(f"BEAT_{name}", getattr(facts, name), facts.BEAT_BITS)) for name in ("BACKWARD", "LEARN")
    )
    left = b.wire("left_kind", facts.KIND_BITS, choose(backward, kinds["kind_b"], kinds["kind_a"], facts.KIND_BITS))
    right = b.wire("right_kind", facts.KIND_BITS, choose(learn, kinds["kind_b"], kinds["kind_w"], facts.KIND_BITS))
    factors: dict[str, Signal] = {}
    for prefix, kind, out in (
        ("left", left, factors),
        ("right", right, factors),
        ("w", kinds["kind_w"], settings),
        ("d", kinds["kind_d"], settings),
    ):
        m.operand(prefix, kind, out)
    for prefix in ("w", "d"):
        by = [kinds[name] for name in BY_CHANCE[machine.converter] if name.endswith(prefix)]
        m.conversion(prefix, kinds[f"kind_{prefix}"], by, settings)
    settings |= {"master": kinds["master"], "cache": m.held("array_cache", told["cache"], start)}
    accumulates, applies = _learning(m, start, kinds["kind_w"], settings)
    draws = {
        f"draws_{n}": b.wire(
            f"draws_{n}", 1, all_of(converts, nonzero(told[f"field_kind_{n}"]), told[f"field_chance_{n}"])
        )
        for n, converts in (("d", ~applies), ("w", ~accumulates))
    }
    given = {
        "kind": told["beat_kind"],
        "a": told["field_a"],
        "d": told["field_d"],
        "w": told["field_w"],
        "rows": told["array_rows"],
        "each": told["each"],
        "last_slave": told["last_slave"],
        "accumulates": accumulates,
        **draws,
    }
    if machine.table_rows:  # the array fills tables, which know nothing of kinds
        given |= {"fills": _fills(m, start, applies), **factors}
    else:
        settings |= factors
    lead = place(
        b,
        m.library.get(array, m.library, machine),
        "array",
        "array_",
        start=start,
        **given,
        done=outs["array_done"],
        x_row=cells["array_row"],
        x_data=cells["array_data"],
        write=cells["array_write"],
        write_row=cells["array_write_row"],
        write_data=cells["array_write_data"],
        first=numbers["first"],
        second=numbers["second"],
        load_valid=io["load_valid"],
        load_ready=io["load_ready"],
        load_data=io["load_data"],
        store_room=io["store_room"],
        store_valid=io["store_valid"],
        store_data=io["store_data"],
        store_last=io["store_last"],
    )
    down = {f"down_{name}": lead[f"down_{name}"] for name in facts.beat_widths(machine)}
    b.instance(
        m.library.get(branch, m.library, machine, facts.tree_levels(machine)),
        "tree",
        number=const(0, facts.slave_bits(machine)),
        **down,
        **settings,
        up_valid=lead["up_valid"],
        up_data=lead["up_data"],
    )
    return lead


def _fills(m: _MasterBlock, start: Signal, applies: Signal) -> Signal:
    """Wire: the instruction that begins has other kinds of factors than the last one, of those for sums or of those for
    weight gradients, so that the slaves' tables of products are filled first."""
    b = m.b
    told = m.told
    at = {
        name: b.wire(f"begins_{name.lower()}", 1, eq(told["beat_kind"], getattr(facts, name)))
        for name in ("FORWARD", "BACKWARD", "LEARN")
    }
    kinds = {
        "left": choose(at["BACKWARD"], told["field_kind_b"], told["field_kind_a"], facts.KIND_BITS),
        "right": choose(at["LEARN"], told["field_kind_b"], told["field_kind_w"], facts.KIND_BITS),
    }
    known = []
    parts = {"sums": ~at["LEARN"], "gradients": at["LEARN"]}
    for part, here in parts.items():
        valid = b.reg(f"{part}_valid")
        filled = {side: b.reg(f"{part}_{side}", facts.KIND_BITS, init=None) for side in kinds}
        known.append(all_of(here, valid, *[eq(filled[side], kind) for side, kind in kinds.items()]))
        parts[part] = here, [(valid, 1), *[(filled[side], kind) for side, kind in kinds.items()]]
        b.on(told["table_start"], (valid, 0))
    fills = b.wire("array_fills", 1, all_of(any_of(*at.values()), ~applies, ~any_of(*known)))
    for here, values in parts.values():
        b.on(all_of(start, fills, here), *values)
    return fills


def _learning(m: _MasterBlock, start: Signal, kind_w: Signal, settings: dict[str, Signal]) -> tuple[Signal, Signal]:
    """Settings of UPDATE, ACCUMULATE and APPLY; wires: the instruction that begins is ACCUMULATE, APPLY."""
    b = m.b
    told = m.told
    function = told["field_function"]
    begins = {}
    for name, number in (("accumulates", isa.ACCUMULATE), ("applies", isa.APPLY)):
        begins[name] = b.wire(
            f"begins_{name}", 1, eq(function, b.localparam(f"FUNCTION_{name.upper()}", number, width(function)))
        )
        settings[name] = m.held(f"array_{name}", begins[name], start)
    accumulates, applies = settings["accumulates"], settings["applies"]
    # ACCUMULATE adds all of the velocity; APPLY subtracts all of it where mu is off
    whole = any_of(accumulates, ~told["mu_on"])
    values = {
        "mu": choose(whole, 0, told["mu"], PLACES_BITS),
        "mu_on": any_of(told["mu_on"], accumulates, applies),
        "w_zone": choose(nonzero(kind_w), m.part_of("zone", kind_w), 0, facts.ZONE_BITS),
    }
    for name, value in values.items():
        settings[name] = b.reg(f"slaves_{name}", width(value), init=None)
        b.on(None, (settings[name], value))
    settings["rate"] = told["rate"]
    return begins["accumulates"], begins["applies"]


def _vector(
    m: _MasterBlock, outs: dict[str, Signal], cells: dict[str, Signal], numbers: dict[str, Signal]
) -> dict[str, Signal]:
    """The master's own arithmetic, with settings that stand while it is at work; what is connected to it."""
    b = m.b
    told = m.told
    machine = m.machine
    start = told["start_vector"]
    b.comment("Settings of the master's own arithmetic.")
    settings: dict[str, Signal] = {}
    for side in ("a", "b"):
        m.operand(f"vector_{side}", m.held(f"vector_kind_{side}", told[f"field_kind_{side}"], start), settings)
    kind = m.held("vector_kind_d", told["field_kind_d"], start)
    names = [name for name in BY_CHANCE[machine.converter] if name.endswith("d")]
    by = [m.held(f"vector_{name}", told[f"field_{name}"], start) for name in names]
    m.conversion("vector_d", kind, by, settings)
    mask = b.reg("vector_d_mask", machine.code_bits, init=None)
    b.on(None, (mask, m.part_of("mask", kind)))
    settings["vector_d_mask"] = mask
    if machine.divider == "words":
        divides = eq(told["vector_function"], b.localparam("DIVIDE", isa.DIVIDE, FUNCTION_BITS))
        settings["vector_by_words"] = b.wire("vector_by_words", 1, all_of(divides, eq(told["field_kind_b"], 0)))
    converts = eq(told["vector_function"], b.localparam("CONVERT", isa.CONVERT, FUNCTION_BITS))
    return place(
        b,
        m.library.get(vector, m.library, machine),
        "vector",
        "vector_",
        start=start,
        operation=told["vector_function"],
        address_a=told["field_a"],
        address_b=told["field_b"],
        address_d=told["field_d"],
        rows=told["field_rows"],
        draws=b.wire("vector_draws", 1, all_of(converts, told["field_chance_d"])),
        done=outs["vector_done"],
        rate=told["rate"],
        mu=told["mu"],
        mu_on=told["mu_on"],
        a_row=cells["a_row"],
        a_data=cells["a_data"],
        b_row=cells["b_row"],
        b_data=cells["b_data"],
        write=cells["vector_write"],
        write_row=cells["vector_write_row"],
        write_data=cells["vector_write_data"],
        write_ready=cells["vector_write_ready"],
        first=numbers["first"],
        **{name.removeprefix("vector_"): signal for name, signal in settings.items()},
    )

"""A slave: caches of its columns and an arithmetic unit.  Golden twin: golden/discrete/machine/slave.py.

    beat --> caches --> product --+--> sum of products --> up
                ^                 `--> dw --> +- mu dw' or v --> x rate --> weight - --> converter --.
                `------------------------------------'-----------------------------------------------'

UPDATE, ACCUMULATE and APPLY are beats of one kind, LEARN, and go one way: its first adder adds dw and what the cache
of gradients holds, its second one the weight and the step.

Nothing stalls: a beat a cycle, and what it makes of the caches is written a fixed number of cycles later. FORWARD
gives a sum of each slave in turn, slave 0 first; BACKWARD gives those of all slaves at once. The beats of a sum come
without a pause, and none is marked as last before the slaves have given the sum; all other beats may come at any time.
"""

from dataclasses import dataclass

from veriloggen import Cat

from bitloom.golden.discrete.converter import ZONES
from bitloom.golden.discrete.lfsr import DRAW_BITS
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    all_of,
    any_of,
    bits,
    choose,
    const,
    eq,
    nonzero,
    sub,
    width,
)
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library, ram
from bitloom.hls_gen.rtl.primitives.text import Header

from .arithmetic import CodedOperand, decoded, shifted, word_sum
from .converter import ConversionPorts
from .converters import converter_of
from .port_means import BEAT, SETTINGS
from .product import product_unit
from .product_table import product_table
from .word import twos


@dataclass(frozen=True)
class SlaveContext:
    """The slave under construction."""

    b: Block
    library: Library
    machine: MachineParameters
    number: Signal
    """Input: the slave's number."""
    settings: dict[str, Signal]
    beat: dict[str, Signal]
    """settings, beat: inputs, by name."""
    kinds: dict[str, Signal]
    """Wires: the beat is of this kind, and the slave takes part."""

    def late(self, name: str, signal: Signal, cycles: int, w: int = 1) -> Signal:
        """A data signal some cycles later."""
        return delayed(self.b, signal, name, cycles, w)[-1]

    def at_cache(self, name: str) -> Signal:
        """Whether this cache is loaded or stored; its number is a constant ``CACHE_<name>``."""
        setting = self.settings["cache"]
        return eq(setting, self.b.localparam(f"CACHE_{name.upper()}", facts.CACHES[name], width(setting)))


def slave(library: Library, machine: MachineParameters) -> Block:
    """The module of a slave, ``slave``. All are alike; port ``number`` says which one it is."""
    header = Header(
        __doc__,
        rate="a beat a cycle; FORWARD needs as many cycles a sum as there are slaves",
        latency=f"{facts.RESULT_AT} cycles from a sum's last beat to up (FORWARD: and the slave's number), "
        f"{facts.learn_times(machine).code} from LEARN to the caches",
        parameters={"slaves": machine.slaves, "word_bits": machine.form.bits, "weight_words": machine.weight_words},
    )
    b = Block("slave", header)
    beat = {name: b.input(f"down_{name}", w, means=BEAT[name]) for name, w in facts.beat_widths(machine).items()}
    settings = {name: b.input(name, w, means=SETTINGS[name]) for name, w in facts.setting_widths(machine).items()}
    number = b.input("number", facts.slave_bits(machine), means="number of the slave")
    up = (
        b.output_reg("up_valid", means="up_data is of use"),
        b.output_reg("up_data", facts.sum_bits(machine), init=None, means="part of a sum; 0 where up_valid is 0"),
    )

    # # #

    context = SlaveContext(b, library, machine, number, settings, beat, _kinds(b, machine, number, beat))
    caches = _Caches(context)
    product = _product(context, caches)
    _results(context, caches, product, up)
    _learn(context, caches, product)
    return b


def _kinds(b: Block, machine: MachineParameters, number: Signal, beat: dict[str, Signal]) -> dict[str, Signal]:
    """Kinds of beats that this slave takes part in."""
    has_turn = b.wire("mine", 1, eq(number, beat["slave"]))
    active = b.wire("active", 1, number <= beat["slave"])
    kinds = {}
    names = ["SCATTER", "FORWARD", "BACKWARD", "LEARN", "LOAD", "STORE"]
    for name in [*names, "FILL"] if machine.table_rows else names:
        kind_number = b.localparam(name, getattr(facts, name), facts.BEAT_BITS)
        part = active if name == "LEARN" else has_turn
        here = eq(beat["kind"], kind_number)
        kinds[name] = b.wire(f"is_{name.lower()}", 1, here if name in ("FORWARD", "BACKWARD", "FILL") else here & part)
    return {**kinds, "active": active}


class _Caches:
    """Weights, codes, gradients: read at once, or later by LEARN; written by LOAD and LEARN.

    Attributes
    ----------
    words, codes, gradients : Signal
        Wires: the row that was read.
    learns : list of Signal
        learns[n]: the beat of n cycles ago was one of LEARN; behind the slope only if the weights move, since the array
        waits no longer for ACCUMULATE.
    rows : list of Signal
        rows[n]: the row that the beat of n cycles ago named.
    """

    def __init__(self, c: SlaveContext) -> None:
        b = c.b
        machine = c.machine
        self.c = c
        b.comment("Caches.")
        at = facts.learn_times(machine)
        self.learns = delayed(b, c.kinds["LEARN"], "learn", at.slope, init=0)
        moves = b.wire("moves", 1, all_of(self.learns[-1], ~c.settings["accumulates"]))
        self.learns += delayed(b, moves, "moves", at.code - at.slope, init=0)[1:]
        self.rows = delayed(b, c.beat["row"], "row", at.code, facts.beat_widths(machine)["row"])
        self.words = b.wire("weight_word", machine.form.bits)
        self.codes = b.wire("weight_code", machine.code_bits)
        self.gradients = b.wire("last_gradient", machine.form.bits)

    def place(self, name: str, out: Signal, read_at: int, write: tuple[int, Signal, Signal]) -> None:
        """One cache: LEARN reads it ``read_at`` cycles after its beat, and writes (when, whether, what)."""
        c = self.c
        b = self.c.b
        at, allowed, data = write
        load = b.wire(f"load_{name}", 1, all_of(c.kinds["LOAD"], c.at_cache(name)))
        w = out.width or 1
        depth = c.machine.weight_words
        row_bits = facts.beat_widths(c.machine)["row"]
        learn = self.learns[read_at]
        b.instance(
            ram(c.library, w, depth, latency=1),
            name,
            write=b.wire(f"write_{name}", 1, any_of(load, all_of(self.learns[at], allowed))),
            write_row=b.wire(f"write_row_{name}", row_bits, choose(load, self.rows[0], self.rows[at], row_bits)),
            write_data=b.wire(f"write_data_{name}", w, choose(load, bits(c.beat["data"], 0, w), data, w)),
            read=const(1, 1),
            read_row=b.wire(f"read_row_{name}", row_bits, choose(learn, self.rows[read_at], self.rows[0], row_bits)),
            read_data=out,
        )


def _product(c: SlaveContext, caches: _Caches) -> Signal:
    """Wire: the product of the beat's factors."""
    b = c.b
    machine = c.machine
    form = c.machine.form
    w = machine.code_bits if machine.table_rows else form.bits
    b.comment("Input gradients of its columns, and products.")
    data = bits(c.beat["data"], 0, w)
    neuron = b.wire("neuron_found", w)
    b.instance(
        ram(c.library, w, machine.column_words, latency=0),
        "neurons",
        write=c.kinds["SCATTER"],
        write_row=c.beat["column"],
        write_data=data,
        read_row=c.beat["column"],
        read_data=neuron,
    )
    gradient = b.reg("input_gradient", w, init=None)
    x = b.reg("x", w, init=None)
    backward = c.late("backward", c.kinds["BACKWARD"], facts.READ)
    learn = caches.learns[facts.READ]
    b.on(None, (gradient, neuron), (x, data))
    weight = caches.codes
    if not machine.table_rows:
        code = Cat(const(0, form.bits - machine.code_bits), caches.codes)
        weight = choose(c.settings["right_coded"], code, caches.words, form.bits)
    factors = {
        "left": b.wire("left_factor", w, choose(backward, gradient, x, w)),
        "right": b.wire("right_factor", w, choose(learn, gradient, weight, w)),
    }
    product = b.wire("product", form.bits)
    if machine.table_rows:
        b.instance(
            c.library.get(product_table, c.library, machine),
            "products",
            part=learn,
            **factors,
            write=c.kinds["FILL"],
            write_row=Cat(c.beat["first"], bits(c.beat["row"], 0, 2 * machine.code_bits)),
            write_data=c.beat["data"],
            product=product,
        )
        return product
    unused = {name: b.wire(f"{name}_unused", form.bits) for name in ("left_value", "right_value")}
    kinds = {
        f"{side}_{part}": c.settings[f"{side}_{part}"] for side in factors for part in facts.operand_widths(machine)
    }
    unit = c.library.get(product_unit, c.library, machine)
    b.instance(unit, "arithmetic", **factors, **kinds, product=product, **unused)
    return product


def _results(c: SlaveContext, caches: _Caches, product: Signal, up: tuple[Signal, Signal]) -> None:
    """Sums of products on their way up, and what is stored."""
    b = c.b
    w = facts.sum_bits(c.machine)
    at = facts.PRODUCT_AT
    b.comment("Sums.")
    addend = b.reg("addend", w, init=None)
    total = b.reg("total", w, init=None)
    held = b.reg("held", w, init=None)
    taking = c.late("taking", c.kinds["active"], at)
    b.on(None, (addend, choose(taking, twos(product, w), 0, w)))
    first, last = (c.late(name, c.beat[name], at + 1) for name in ("first", "last"))
    now = b.wire("total_now", w, addend + choose(first, 0, total, w))
    b.on(None, (total, now))
    b.on(last, (held, now))  # as it is until the next sum is whole: slaves give theirs one after the other
    ends = {}
    for name in ("FORWARD", "BACKWARD"):
        line = delayed(b, c.kinds[name], f"sum_{name.lower()}", at + 1, init=0)
        ends[name] = b.reg(f"{name.lower()}_done")
        b.on(None, (ends[name], all_of(line[-1], last)))
    taken = c.late("taking_last", taking, 2)
    b.comment("FORWARD: wait for as many cycles as the slave's number says.")
    number = c.number
    waits = b.reg("waits")
    turn = b.reg("turn", facts.slave_bits(c.machine), init=None)
    has_turn = b.wire("my_turn", 1, all_of(ends["FORWARD"], taken, eq(number, 0)) | all_of(waits, eq(turn, 0)))
    b.on(waits, (turn, sub(turn, 1, facts.slave_bits(c.machine))))
    b.on(has_turn, (waits, 0))
    later = all_of(ends["FORWARD"], taken, nonzero(number))
    b.on(later, (waits, 1), (turn, sub(number, 1, facts.slave_bits(c.machine))))
    stored = b.reg("stored")
    b.on(None, (stored, c.kinds["STORE"]))
    wide = c.machine.form.bits
    word = choose(c.at_cache("gradients"), caches.gradients, caches.words, wide)
    code = Cat(const(0, wide - c.machine.code_bits), caches.codes)
    word = b.wire("stored_word", wide, choose(c.at_cache("codes"), code, word, wide))
    sums = b.wire("gives_sum", 1, any_of(has_turn, ends["BACKWARD"]))
    given = choose(stored, word, choose(sums, held, 0, w), w)
    b.on(None, (up[0], any_of(stored, sums)), (up[1], given))


def _converted(c: SlaveContext, name: str, word: Signal, draw: Signal) -> Signal:
    """Wire: code of a word, by the converter of the weights (w) or of their gradients (d)."""
    b = c.b
    machine = c.machine
    code = b.wire(f"{name}_made", machine.code_bits)
    table = ConversionPorts(**{part: c.settings[f"{name}_{part}"] for part in ConversionPorts.widths(machine)})
    unit = c.library.get(converter_of(machine), c.library, machine)
    b.instance(unit, f"converter_{name}", word=word, draw=draw, code=code, **table.to())
    return code


def _neuron_bits(c: SlaveContext) -> Signal:
    """A neuron's number, 16 bits in reverse order: its low bits are the slave's number, the others the column's."""
    low = [bits(c.number, k, 1) for k in range(facts.tree_levels(c.machine))]
    column = c.beat["column"]
    high = [bits(column, k, 1) for k in range(facts.beat_widths(c.machine)["column"])]
    places = (low + high)[:DRAW_BITS]
    rest = DRAW_BITS - len(places)
    return Cat(*places, *([const(0, rest)] if rest else []))


def _learn(c: SlaveContext, caches: _Caches, product: Signal) -> None:
    """Hardware of LEARN: the word of the cache of gradients, the new weight, its code. Each is written as soon as it is
    known.

    ==========  =====  =============================  ================  ==========
    function    start  slope = start +- share         gradients keep    weight
    ==========  =====  =============================  ================  ==========
    UPDATE      dw     dw + mu dw'                    start             - slope
    ACCUMULATE  dw     dw + v                         slope             stays
    APPLY       v      v - mu v; v - v where mu is 0  slope             - start
    ==========  =====  =============================  ================  ==========
    """
    b = c.b
    machine = c.machine
    form = c.machine.form
    s = c.settings
    at = facts.learn_times(machine)
    b.comment("dw, with its value as a code.")
    turned = b.wire("neuron_reversed", DRAW_BITS, _neuron_bits(c))
    draw_d = c.late("draw_d", c.beat["draw_d"] ^ turned, facts.PRODUCT_AT, DRAW_BITS)
    code = _converted(c, "d", product, draw_d)
    cell = b.wire("gradient_code", form.bits, Cat(const(0, form.bits - machine.code_bits), code))
    coded_value = decoded(b, machine, "coded", CodedOperand(cell, const(1, 1), s["d_entries"], s["d_mask"]))
    plain = c.late("plain_dw", product, at.gradient - 1 - facts.PRODUCT_AT, form.bits)
    velocity = c.late("velocity", caches.gradients, facts.SHIFT_LATENCY - 1, form.bits)
    dw = choose(s["d_coded"], coded_value.word, plain, form.bits)
    start = b.reg("start", form.bits, init=None)
    b.on(None, (start, choose(s["applies"], velocity, dw, form.bits)))
    b.comment("The new word of the cache of gradients, and the slope that the weight falls by.")
    with_mu = shifted(b, "mu_last", caches.gradients, s["mu"])
    share = b.wire("share", form.bits, choose(s["mu_on"], with_mu, 0, form.bits))
    total = word_sum(b, "slope", start, share, s["applies"])
    start_late = c.late("start", start, facts.SUM_LATENCY, form.bits)
    keeps_total = b.wire("keeps_total", 1, any_of(s["accumulates"], s["applies"]))
    gradient = choose(keeps_total, total, start_late, form.bits)
    fall = b.wire("fall", form.bits, choose(s["applies"], start_late, total, form.bits))
    step = shifted(b, "step", fall, s["rate"])
    b.comment("The new weight, and its code.")
    codes_alone = b.wire("codes_alone", 1, s["w_coded"] & ~s["master"])
    old_code = Cat(const(0, form.bits - machine.code_bits), caches.codes)
    cell = b.wire("weight_before", form.bits, choose(codes_alone, old_code, caches.words, form.bits))
    old = decoded(b, machine, "old", CodedOperand(cell, codes_alone, s["w_entries"], s["w_mask"]))
    zones = [(b.wire(f"has_zone_{k}", 1, eq(s["w_zone"], k)), form.fraction + k - 1) for k in ZONES]
    new = word_sum(b, "new_weight", old.word, step, const(1, 1), zones)
    draw_w = c.late("draw_w", c.beat["draw_w"] ^ turned, at.weight, DRAW_BITS)
    new_code = _converted(c, "w", new, draw_w)
    read_weight = at.step - facts.OPERAND_LATENCY - facts.READ
    caches.place("weights", caches.words, read_weight, (at.weight, ~codes_alone, new))
    caches.place("codes", caches.codes, read_weight, (at.code, s["w_coded"], new_code))
    read_gradient = at.gradient - facts.SHIFT_LATENCY - facts.READ
    caches.place("gradients", caches.gradients, read_gradient, (at.slope, const(1, 1), gradient))

"""Decoding: what an instruction needs, and whether it keeps the rules.

    instruction --> classes --> ends of what it reads and writes --> comparisons --> verdict

Golden twins: needs in golden/discrete/machine/units.py, broken_rule in golden/discrete/machine/rules.py. The product of
rows and columns is added up bit by bit, so that this needs no multiplier.
"""

from dataclasses import dataclass

from veriloggen import Cat

from bitloom.golden.discrete.machine import faults
from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.parameters import ADDRESS_BITS, MOST_TABLES, MachineParameters
from bitloom.golden.discrete.machine.rules import MOST_PLACES
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
    resize,
    sub,
    width,
)

from .verdict import first_broken

END_BITS = ADDRESS_BITS + 1
"""Bits of the address behind the last word of a vector."""
CODE_BITS = isa.FIELDS["operation"][1] + isa.FIELDS["function"][1]
"""Bits that tell instructions apart: function and operation."""


@dataclass(frozen=True)
class Decoded:
    """The instruction at hand, in registers that stand until the next one is decoded."""

    fields: dict[str, Signal]
    """Its fields (wires of the instruction cache)."""
    classes: dict[str, Signal]
    """Kinds of instructions to which it belongs, and what it needs, a bit each by name: see `_classes`."""
    ends: dict[str, Signal]
    """Behind operand a, operand b, the results d, the rows w."""
    each: Signal
    last_slave: Signal
    """each, last_slave: columns of a slave; slave of the last column."""
    verdict: Signal
    """Wire: the rule that is broken, 0 for none."""


@dataclass(frozen=True)
class DecodeSteps:
    """Wires: the controller's state is one of these."""

    decode: Signal
    add_up: Signal
    multiply: Signal
    compare: Signal
    multiplied: Signal
    """To be assigned: the last bit of the product is being added."""


def fields_of(b: Block, row: Signal) -> dict[str, Signal]:
    """Wires: the fields of an instruction, and ``code``, which is function and operation side by side."""
    fields = {name: b.wire(f"i_{name}", w, bits(row, low, w)) for name, (low, w) in isa.FIELDS.items()}
    return {**fields, "code": b.wire("i_code", CODE_BITS, Cat(fields["function"], fields["operation"]))}


def operation_is(b: Block, f: dict[str, Signal], operation: int) -> Signal:
    """Whether the instruction is of this operation, whose number is a constant ``OPERATION_<name>``."""
    name = next(name for name, number in isa.OPERATIONS.items() if number == operation)
    return eq(f["operation"], b.localparam(f"OPERATION_{name}", operation, width(f["operation"])))


def function_is(b: Block, f: dict[str, Signal], operation: int, function: int) -> Signal:
    """Whether an instruction of this operation has this function, whose number is a constant ``FUNCTION_<name>``."""
    _, name = _names(operation, function)
    return eq(f["function"], b.localparam(f"FUNCTION_{name}", function, width(f["function"])))


def _is(b: Block, f: dict[str, Signal], operation: int, function: int) -> Signal:
    """Whether the instruction is this one, whose code is a constant ``<OPERATION>_<FUNCTION>``."""
    code = function << isa.FIELDS["operation"][1] | operation
    return eq(f["code"], b.localparam("_".join(_names(operation, function)), code, CODE_BITS, base=16))


def _names(operation: int, function: int) -> tuple[str, str]:
    """Names of an operation and of one of its functions."""
    return (
        next(name for name, number in isa.OPERATIONS.items() if number == operation),
        next(name for name, number in isa.FUNCTIONS[operation].items() if number == function),
    )


def decode(
    b: Block, machine: MachineParameters, row: Signal, steps: DecodeSteps, known: tuple[Signal, Signal]
) -> Decoded:
    """The decoder inside the controller.

    Parameters
    ----------
    b : Block
    machine : MachineParameters
    row : Signal
        The instruction, as the cache holds it.
    steps : DecodeSteps
    known : tuple of Signal
        Tables that are loaded; the address is outside of the instruction cache.
    """
    b.comment("Decoding.")
    f = fields_of(b, row)
    loaded, outside = known
    c = {}
    for name, signal in _classes(b, machine, f, loaded).items():
        c[name] = b.reg(name, init=None)
        b.on(steps.decode, (c[name], signal))
    length_a, length_d = (b.reg(f"length_{n}", ADDRESS_BITS, init=None) for n in "ad")
    b.on(
        steps.decode,
        (length_a, choose(_is(b, f, isa.MOVE, isa.SCATTER), f["columns"], f["rows"], ADDRESS_BITS)),
        (length_d, choose(_is(b, f, isa.COMPUTE, isa.FORWARD), f["columns"], f["rows"], ADDRESS_BITS)),
    )
    ends = {name: b.reg(f"end_{name}", END_BITS, init=None) for name in "abd"}
    levels = facts.tree_levels(machine)
    less = b.wire("columns_less", ADDRESS_BITS, sub(f["columns"], 1, ADDRESS_BITS))
    each = b.reg("columns_each", ADDRESS_BITS, init=None)
    last_slave = b.reg("slave_last", facts.slave_bits(machine), init=None)
    b.on(
        steps.add_up,
        *[(ends[n], add(f[n], length, END_BITS)) for n, length in (("a", length_a), ("b", f["rows"]), ("d", length_d))],
        (each, add(bits(less, levels, ADDRESS_BITS - levels), 1, ADDRESS_BITS)),
        (last_slave, bits(less, 0, levels) if levels else const(0, 1)),
    )
    ends["w"] = _end_of_rows(b, machine, f, each, steps)
    lengths = {"a": length_a, "b": f["rows"], "d": length_d}
    bad = _compared(b, machine, (f, c, ends, lengths), each, steps)
    return Decoded(f, c, ends, each, last_slave, _verdict(b, c, bad, outside))


def _classes(b: Block, machine: MachineParameters, f: dict[str, Signal], loaded: Signal) -> dict[str, Signal]:
    """Kinds to which the instruction belongs, and things that it needs, one bit each."""

    def one_of(operation: int, *functions: int) -> Signal:
        return any_of(*[_is(b, f, operation, function) for function in functions])

    def loads(kind: str) -> Signal:
        hits = [all_of(eq(f[kind], k + 1), bits(loaded, k, 1)) for k in range(machine.tables)]
        return any_of(uncoded[kind], *hits)

    forward, backward, update, accumulate, apply = (
        b.wire(f"is_{n}", 1, _is(b, f, isa.COMPUTE, k))
        for k, n in enumerate(("forward", "backward", "update", "accumulate", "apply"))
    )
    multiplies = b.wire("is_dw", 1, any_of(update, accumulate))
    moves = b.wire("is_step", 1, any_of(update, apply))
    learn = any_of(multiplies, apply)
    vector_compute = [k for k in isa.FUNCTIONS[isa.COMPUTE].values() if k not in isa.ON_SLAVES]
    scatter, load, store, program = (
        b.wire(n, 1, _is(b, f, op, k))
        for n, op, k in (
            ("is_scatter", isa.MOVE, isa.SCATTER),
            ("is_load", isa.IO, isa.LOAD_NEURONS),
            ("is_store", isa.IO, isa.STORE_NEURONS),
            ("is_load_program", isa.IO, isa.LOAD_PROGRAM),
        )
    )
    vector = b.wire("is_vector", 1, any_of(one_of(isa.COMPUTE, *vector_compute), _is(b, f, isa.MOVE, isa.COPY)))
    compute, io = (operation_is(b, f, operation) for operation in (isa.COMPUTE, isa.IO))
    io_slaves = b.wire("is_io_slaves", 1, all_of(io, ~load, ~store, ~program))
    uncoded = {k: b.wire(f"{k}_is_0", 1, eq(f[k], 0)) for k in ("kind_a", "kind_b", "kind_w", "kind_d")}
    divide = one_of(isa.COMPUTE, isa.DIVIDE)
    of_words = any_of if machine.table_rows else all_of  # a slave's factors that it can't multiply
    products = any_of(
        all_of(forward, of_words(uncoded["kind_a"], uncoded["kind_w"])),
        all_of(backward, of_words(uncoded["kind_b"], uncoded["kind_w"])),
        all_of(multiplies, of_words(uncoded["kind_a"], uncoded["kind_b"])),
        all_of(one_of(isa.COMPUTE, isa.MULTIPLY), uncoded["kind_a"], uncoded["kind_b"]),
    )
    missing = [] if machine.multiplier else [products]
    missing += {"none": [divide], "codes": [all_of(divide, uncoded["kind_b"])], "words": []}[machine.divider]
    missing += [one_of(isa.COMPUTE, isa.INVERSE_ROOT)] if machine.root == "none" else []
    missing += [all_of(compute, any_of(f["pair_d"], f["pair_w"]))] if machine.converter == "shifting" else []
    convert = one_of(isa.COMPUTE, isa.CONVERT)
    draws_d, draws_w = (
        all_of(converts, ~uncoded[f"kind_{n}"], f[f"chance_{n}"]) for n, converts in (("d", multiplies), ("w", moves))
    )
    every = [one_of(op, *functions.values()) for op, functions in isa.FUNCTIONS.items()]
    too_many = [] if machine.tables == MOST_TABLES else [f["kind_a"] > const(machine.tables, facts.KIND_BITS)]
    return {
        "exists": all_of(any_of(*every), eq(f["unused"], 0)),
        "is_config": operation_is(b, f, isa.CONFIG),
        "loads_program": program,
        "on_io": all_of(io, ~program),
        "on_array": any_of(forward, backward, learn, scatter, io_slaves),
        "on_vector": vector,
        "reads_a": any_of(forward, multiplies, scatter, vector, store),
        "reads_b": one_of(isa.COMPUTE, *isa.TWO_OPERANDS),
        "writes_d": any_of(forward, backward, vector, load, program),
        "learns": learn,
        "uses_w": any_of(forward, backward, learn, io_slaves),
        "in_slaves": any_of(forward, backward, learn, io_slaves, scatter),
        "whole_vectors": forward,
        "draws": any_of(draws_d, draws_w, all_of(convert, f["chance_d"])),
        "bad_table": any_of(
            all_of(compute, ~all_of(*[loads(kind) for kind in uncoded])),
            all_of(convert, uncoded["kind_d"]),
            all_of(one_of(isa.CONFIG, isa.TABLE), any_of(uncoded["kind_a"], *too_many)),
        ),
        "no_unit": any_of(const(0, 1), *missing),
        **_numbers(b, machine, f),
    }


def _numbers(b: Block, machine: MachineParameters, f: dict[str, Signal]) -> dict[str, Signal]:
    """Whether the numbers that an instruction has in place of addresses break a rule."""
    places = b.localparam("MOST_PLACES", MOST_PLACES, ADDRESS_BITS)
    counter = b.localparam("LAST_COUNTER", isa.COUNTERS - 1, ADDRESS_BITS)
    target = b.localparam("LAST_TARGET", machine.instructions - 1, ADDRESS_BITS)
    rate = any_of(f["a"] > places, f["b"] > places)
    return {
        "bad_constant": any_of(
            all_of(_is(b, f, isa.CONFIG, isa.RATE), rate),
            all_of(_is(b, f, isa.CONFIG, isa.SEED), eq(f["a"], 0), eq(f["b"], 0)),
        ),
        "bad_jump": all_of(operation_is(b, f, isa.JUMP), any_of(f["a"] > counter, f["d"] > target)),
    }


def _end_of_rows(
    b: Block, machine: MachineParameters, f: dict[str, Signal], each: Signal, steps: DecodeSteps
) -> Signal:
    """Register: w + rows * each, a bit of ``each`` in a cycle."""
    count = bits_for(machine.column_words)
    w = ADDRESS_BITS + count + 1
    total = b.reg("end_w", w, init=None)
    term = b.reg("term", w, init=None)
    rest = b.reg("rest", count, init=None)
    left = b.reg("bits_left", bits_for(count), init=None)
    fresh = b.reg("fresh_product")
    b.on(steps.add_up, (total, f["w"]), (term, f["rows"]), (left, count), (fresh, 1))
    b.on(steps.multiply, (fresh, 0))
    now = b.wire("rest_now", count, choose(fresh, bits(each, 0, count), rest, count))
    b.on(
        steps.multiply,
        (total, choose(bits(now, 0, 1), total + term, total, w)),
        (term, Cat(bits(term, 0, w - 1), const(0, 1))),
        (rest, Cat(const(0, 1), bits(now, 1, count - 1)) if count > 1 else const(0, 1)),
        (left, sub(left, 1, bits_for(count))),
    )
    steps.multiplied.assign(eq(left, 1))
    return total


def _compared(
    b: Block, machine: MachineParameters, at_hand: tuple[dict[str, Signal], ...], each: Signal, steps: DecodeSteps
) -> Signal:
    """Wire: an address is outside of its cache, or results overlap an operand. Registers behind comparisons."""
    f, c, ends, lengths = at_hand
    wrong = []

    def keep(name: str, condition: Signal) -> None:
        register = b.reg(f"bad_{name}", init=None)
        b.on(steps.compare, (register, condition))
        wrong.append(register)

    words = b.localparam("NEURON_WORDS", machine.neuron_words, END_BITS)
    instructions = b.localparam("INSTRUCTIONS", machine.instructions, END_BITS)
    depth = choose(c["loads_program"], instructions, words, END_BITS)
    for name, used, most in (("a", c["reads_a"], words), ("b", c["reads_b"], words), ("d", c["writes_d"], depth)):
        keep(name, all_of(used, any_of(eq(lengths[name], 0), ends[name] > most)))
    for name, used in (("a", c["reads_a"]), ("b", c["reads_b"])):
        same = all_of(eq(f[name], f["d"]), ~c["whole_vectors"])
        meets = all_of(resize(f["d"], END_BITS) < ends[name], resize(f[name], END_BITS) < ends["d"])
        keep(f"overlap_{name}", all_of(used, c["writes_d"], meets, ~same))
    rows = b.localparam("WEIGHT_WORDS", machine.weight_words, END_BITS)
    over = ends["w"] > resize(rows, ends["w"].width)
    keep("w", all_of(c["uses_w"], any_of(eq(f["rows"], 0), eq(f["columns"], 0), over)))
    most = b.localparam("COLUMN_WORDS", machine.column_words, END_BITS)
    keep("columns", all_of(c["in_slaves"], resize(each, END_BITS) > most))
    return any_of(*wrong)


def _verdict(b: Block, c: dict[str, Signal], bad_address: Signal, outside: Signal) -> Signal:
    """Wire: the first rule that is broken."""
    rules = [
        (outside, faults.BAD_ADDRESS),
        (~c["exists"], faults.BAD_INSTRUCTION),
        (c["bad_table"], faults.BAD_TABLE),
        (c["bad_constant"], faults.BAD_CONSTANT),
        (c["bad_jump"], faults.BAD_ADDRESS),
        (c["no_unit"], faults.NO_UNIT),
        (bad_address, faults.BAD_ADDRESS),
    ]
    return first_broken(b, rules)

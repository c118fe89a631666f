"""The master's own arithmetic, element by element.  Golden twin: _by_element in golden/discrete/machine/master.py.

    neuron cache a, b --> values --+--> sum, product or activation --+--> FIFO --> neuron cache
                                   '--> converter -------------------'

An element a cycle enters as long as the FIFO has room for its result. A division by a word takes a cycle a bit.
"""

from veriloggen import Cat

from bitloom.golden.discrete.lfsr import DRAW_BITS
from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.parameters import ADDRESS_BITS, MachineParameters
from bitloom.golden.discrete.machine.table_words import PLACES_BITS
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
    nonzero,
    sub,
    width,
)
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .arithmetic import shifted, word_sum
from .converter import ConversionPorts
from .converters import converter_of
from .inverse_root import inverse_root
from .product import product_unit
from .quotient import quotient_unit
from .word import magnitude_of, sign_of
from .word_divider import word_divider

COPY = 1 << isa.FIELDS["function"][1]
"""Number of MOVE COPY here: the one behind the functions of COMPUTE."""
FUNCTION_BITS = bits_for(COPY)


def given_ports(machine: MachineParameters) -> dict[str, tuple[int, str]]:
    """Ports by which the unit gets an instruction: name -> bits and meaning."""
    by_words = {"by_words": (1, "DIVIDE divides by words")} if machine.divider == "words" else {}
    return {**_GIVEN, **by_words}


_GIVEN = {
    "operation": (FUNCTION_BITS, f"function of COMPUTE, {COPY} for COPY"),
    "address_a": (ADDRESS_BITS, "address of operand a"),
    "address_b": (ADDRESS_BITS, "address of operand b"),
    "address_d": (ADDRESS_BITS, "address of the results"),
    "rows": (ADDRESS_BITS, "elements"),
    "draws": (1, "elements are converted by chance"),
}


def vector(library: Library, machine: MachineParameters) -> Block:
    """The module that computes element by element: module ``vector``."""
    header = Header(
        __doc__,
        rate="an element a cycle",
        latency=f"{facts.vector_at(machine)} cycles from an element to the FIFO",
        parameters={"word_bits": machine.form.bits, "neuron_words": machine.neuron_words},
    )
    b = Block("vector", header)
    start = b.input("start", means="an instruction begins")
    given = {name: b.input(name, w, means=text) for name, (w, text) in given_ports(machine).items()}
    done = b.output_reg("done", means="pulse: the last result is in the neuron cache")
    rate = b.input("rate", PLACES_BITS, means="places of the learning rate")
    mu = b.input("mu", PLACES_BITS, means="places of mu"), b.input("mu_on", means="mu is not 0")

    # # #

    kept = [name for name in given if name in ("operation", "draws", "by_words")]
    held = {name: b.reg(f"held_{name}", width(given[name]), init=None) for name in kept}
    b.on(start, *[(register, given[name]) for name, register in held.items()])
    names = ["ADD", "SUBTRACT", "MULTIPLY", "MOMENTUM", "DESCEND", "RELU", "RELU_SLOPE", "CLIP", "GATE", "CONVERT"]
    if machine.divider != "none":
        names.append("DIVIDE")
    if machine.root != "none":
        names.append("INVERSE_ROOT")
    at = {}
    for name, function in (*((name, getattr(isa, name)) for name in names), ("COPY", COPY)):
        number = b.localparam(name, function, FUNCTION_BITS)
        at[name] = b.wire(f"at_{name.lower()}", 1, eq(held["operation"], number))
    room = b.wire("room")
    step = b.wire("step")
    _elements(b, machine, held, (start, room, step))
    result, operands = _results(b, library, machine, at, (rate, *mu))
    valid = _valid(b, machine, held, step)
    if machine.divider == "words":
        valid, result = _divided(b, library, machine, held["by_words"], (step, operands), (valid, result))
    _written(b, library, machine, (start, room, valid, result, done))
    return b


def _elements(b: Block, machine: MachineParameters, held: dict[str, Signal], go: tuple[Signal, Signal, Signal]) -> None:
    """Addresses of operands, a pair a cycle."""
    b.comment("Elements.")
    start, room, step = go
    x_bits = bits_for(machine.neuron_words - 1)
    running = b.reg("running")
    left = b.reg("left", ADDRESS_BITS, init=None)
    step.assign(all_of(running, room, *_divider_is_free(b, machine, held, step)))
    b.on(step, (left, sub(left, 1, ADDRESS_BITS)))
    b.on(all_of(step, eq(left, 1)), (running, 0))
    b.on(start, (running, 1), (left, b.m.io_variable["rows"]))
    for name in ("a", "b"):
        row = b.reg(f"{name}_row_now", ADDRESS_BITS, init=None)
        b.on(step, (row, add(row, 1, ADDRESS_BITS)))
        b.on(start, (row, b.m.io_variable[f"address_{name}"]))
        b.output(f"{name}_row", x_bits, bits(row, 0, x_bits), means=f"row of operand {name}, read in this cycle")
    b.output("take_one", 1, all_of(step, held["draws"]), means="a number of the generator is taken")


def _divider_is_free(b: Block, machine: MachineParameters, held: dict[str, Signal], step: Signal) -> list[Signal]:
    """Signals for which an element waits besides: the division of the words before it is done."""
    if machine.divider != "words":
        return []
    most = facts.divider_cycles(machine) - 1
    w = bits_for(most)
    pause = b.reg("pause", w)
    free = b.wire("divider_free", 1, eq(pause, 0))
    b.on(~free, (pause, sub(pause, 1, w)))
    b.on(all_of(step, held["by_words"]), (pause, most))
    return [free]


def _valid(b: Block, machine: MachineParameters, held: dict[str, Signal], step: Signal) -> Signal:
    """The result of `_results` is there; those of divisions by words are not among them."""
    element = all_of(step, ~held["by_words"]) if machine.divider == "words" else step
    return delayed(b, element, "element", facts.vector_at(machine) - 1, init=0)[-1]


def _divided(
    b: Block,
    library: Library,
    machine: MachineParameters,
    by_words: Signal,
    element: tuple[Signal, tuple[Signal, Signal]],
    other: tuple[Signal, Signal],
) -> tuple[Signal, Signal]:
    """(a result is there, the result), quotients of words among them."""
    b.comment("Division of words.")
    form = machine.form
    step, (left, right) = element
    late = facts.READ + facts.OPERAND_LATENCY
    start = delayed(b, b.wire("divides", 1, all_of(step, by_words)), "divides", late, init=0)[-1]
    done, quotient = b.wire("divided"), b.wire("word_quotient", form.bits)
    unit = library.get(word_divider, library, machine)
    b.instance(unit, "divider", start=start, left=left, right=right, done=done, quotient=quotient)
    valid, result = other
    return any_of(valid, done), b.wire("final_result", form.bits, choose(by_words, quotient, result, form.bits))


def _results(
    b: Block, library: Library, machine: MachineParameters, at: dict[str, Signal], places: tuple[Signal, Signal, Signal]
) -> tuple[Signal, tuple[Signal, Signal]]:
    """Wires: the result, vector_at - 1 cycles after its element's addresses; the operands' words, earlier."""
    form = machine.form
    b.comment("Values, and what becomes of them.")
    operands = {}
    for side, name in (("left", "a"), ("right", "b")):
        cell = b.input(f"{name}_data", form.bits, means=f"what the row of operand {name} holds, a cycle later")
        parts = {
            part: b.input(f"{name}_{part}", w, means=f"operand {name}: {part} of its table")
            for part, w in facts.operand_widths(machine).items()
        }
        operands |= {side: cell, **{f"{side}_{part}": signal for part, signal in parts.items()}}
    x, y, product = (b.wire(name, form.bits) for name in ("x", "y", "product"))
    block = library.get(product_unit, library, machine)
    b.instance(block, "arithmetic", **operands, left_value=x, right_value=y, product=product)
    rate, mu, mu_on = places
    scaled = any_of(at["MOMENTUM"], at["DESCEND"])
    amount = b.wire("amount", PLACES_BITS, choose(scaled, choose(at["DESCEND"], rate, mu, PLACES_BITS), 0, PLACES_BITS))
    used = b.wire("addend", form.bits, choose(at["MOMENTUM"] & ~mu_on, 0, y, form.bits))
    step = shifted(b, "step", used, amount)
    x_late = delayed(b, x, "x", facts.SHIFT_LATENCY, form.bits)[-1]
    minus = b.wire("minus", 1, any_of(at["SUBTRACT"], at["DESCEND"]))
    total = word_sum(b, "total", x_late, step, minus)
    value = b.wire("activated", form.bits, _activation(b, machine, at, x, y))
    sum_late = facts.VECTOR_SUM_AT - facts.READ - facts.OPERAND_LATENCY
    active = delayed(b, value, "activated", sum_late, form.bits)[-1]
    if machine.root != "none":
        root = b.wire("root", form.bits)
        b.instance(library.get(inverse_root, library, machine), "roots", word=x, root=root)
        root_late = delayed(b, root, "root", sum_late - facts.ROOT_LATENCY, form.bits)[-1]
        active = b.wire("active", form.bits, choose(at["INVERSE_ROOT"], root_late, active, form.bits))
    multiplies = at["MULTIPLY"]
    if machine.divider != "none":
        quotient = b.wire("quotient", form.bits)
        b.instance(library.get(quotient_unit, library, machine), "quotients", **operands, quotient=quotient)
        product = b.wire("scaled", form.bits, choose(at["DIVIDE"], quotient, product, form.bits))
        multiplies = any_of(multiplies, at["DIVIDE"])
    product_late = delayed(b, product, "product", facts.VECTOR_SUM_AT - facts.PRODUCT_AT, form.bits)[-1]
    summed = any_of(at["ADD"], at["SUBTRACT"], scaled)
    computed = choose(multiplies, product_late, choose(summed, total, active, form.bits), form.bits)
    computed = b.wire("computed", form.bits, computed)
    computed = delayed(b, computed, "computed", facts.vector_at(machine) - 1 - facts.VECTOR_SUM_AT, form.bits)[-1]
    number = b.input("first", DRAW_BITS, means="the next number of the generator")
    draw = delayed(b, number, "draw", facts.READ + facts.OPERAND_LATENCY, DRAW_BITS)[-1]
    code = b.wire("code", machine.code_bits)
    table = ConversionPorts.ports(b, machine, "d_")
    b.instance(
        library.get(converter_of(machine), library, machine), "converter", word=x, draw=draw, code=code, **table.to()
    )
    wide = Cat(const(0, form.bits - machine.code_bits), code)
    copied = b.wire("left_cell", form.bits, operands["left"])
    copy = delayed(b, copied, "copied", facts.vector_at(machine) - 1 - facts.READ, form.bits)[-1]
    computed = choose(at["CONVERT"], wide, choose(at["COPY"], copy, computed, form.bits), form.bits)
    return b.wire("result", form.bits, computed), (x, y)


def _activation(b: Block, machine: MachineParameters, at: dict[str, Signal], x: Signal, y: Signal) -> Signal:
    """Of the values: RELU, its slope, CLIP, its slope, GATE."""
    form = machine.form
    unit = b.localparam("ONE", form.one, form.bits)
    positive = all_of(~sign_of(x), nonzero(x))
    size = b.localparam("ONE_MAGNITUDE", form.one, form.bits - 1)
    above = b.wire("above_one", 1, magnitude_of(x) > size)
    clipped = choose(above, Cat(sign_of(x), size), x, form.bits)
    passes = choose(at["RELU"], ~sign_of(x), nonzero(magnitude_of(y)), 1)
    slope = choose(at["RELU_SLOPE"], positive, ~above, 1)
    let = choose(passes, x, 0, form.bits)
    sloped = choose(slope, unit, 0, form.bits)
    return choose(any_of(at["RELU"], at["GATE"]), let, choose(at["CLIP"], clipped, sloped, form.bits), form.bits)


def _written(b: Block, library: Library, machine: MachineParameters, go: tuple[Signal, ...]) -> None:
    """The FIFO, and the results' way to the neuron cache."""
    b.comment("Results wait for their turn at the neuron cache.")
    start, room, valid, result, done = go
    form = machine.form
    taken = b.input("write_ready", means="the neuron cache takes a result")
    wait = b.wire("write_valid_now")
    data = b.wire("write_data_now", form.bits)
    unused = b.wire("fifo_ready_unused")
    block = fifo(library, form.bits, facts.VECTOR_FIFO, facts.vector_at(machine) + 2)
    b.instance(
        block,
        "results",
        in_valid=valid,
        in_ready=unused,
        in_data=result,
        out_valid=wait,
        out_ready=taken,
        out_data=data,
        room=room,
    )
    b.output("write", 1, wait, means="a result is there")
    b.output("write_data", form.bits, data, means="the result")
    x_bits = bits_for(machine.neuron_words - 1)
    row = b.reg("d_row", ADDRESS_BITS, init=None)
    left = b.reg("to_write", ADDRESS_BITS, init=None)
    b.output("write_row", x_bits, bits(row, 0, x_bits), means="its row of the neuron cache")
    written = b.wire("written", 1, all_of(wait, taken))
    b.on(written, (row, add(row, 1, ADDRESS_BITS)), (left, sub(left, 1, ADDRESS_BITS)))
    b.on(start, (row, b.m.io_variable["address_d"]), (left, b.m.io_variable["rows"]))
    b.on(None, (done, all_of(written, eq(left, 1))))

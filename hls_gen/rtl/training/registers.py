"""AXI4-Lite registers of the training machine (hls_gen/design/training_registers.py has the map).

s_axi --> registers --> soft reset, interrupt
             ^-- status, faults, counters
"""

from veriloggen import Cat

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.design.registers import ADDRESS_BITS, DIGEST_REGISTERS, VERSION_REGISTER
from bitloom.hls_gen.design.training import FAULT_BITS, INSTRUCTION_PLACE_BITS
from bitloom.hls_gen.design.training_registers import IDENT, REGISTERS, VERSION, training_register
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, all_of, bits, choose, const, eq, nonzero
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.axi_lite import DATA_BITS, AxiLite, axi_lite

COUNTED = {
    "CYCLES": "running",
    "RUNS": "finished",
    "WORDS_IN": "word_taken",
    "WORDS_OUT": "word_given",
    "ARRAY_BEATS": "beat",
    "VECTOR_BEATS": "vector_result",
}
"""Register -> input that it counts."""
IRQS = len(training_register("IRQ_ENABLE").fields)
"""Interrupts."""


def registers(library: Library, machine: MachineParameters, digest: str) -> Block:
    """The module ``registers``.

    Parameters
    ----------
    digest : str
        64 hex digits, of which registers show the first 32.
    """
    header = Header(
        __doc__,
        rate="a read and a write at a time",
        latency="2 cycles a write, 3 a read",
        parameters={"slaves": machine.slaves},
    )
    b = Block("registers", header)
    meanings = {
        "running": "a program runs",
        "finished": "pulse: a program has ended",
        "beat": "the slaves have a beat",
        "vector_result": "the master's own arithmetic has a result",
    }
    counted = {name: b.input(signal, means=meanings.get(signal, "")) for name, signal in COUNTED.items()}
    idle = b.input("idle")
    left = b.input("result_left")
    fault = b.input("fault", FAULT_BITS, means="the rule that was broken, 0 for none")
    place = b.input("fault_place", INSTRUCTION_PLACE_BITS, means="address of the instruction at fault")
    bus = axi_lite(b)

    # # #

    address = {r.name: b.localparam(f"{r.name}_ADDRESS", r.offset, ADDRESS_BITS, base=16) for r in REGISTERS}

    wrong = b.wire("faulted", 1, nonzero(fault))
    soft_reset, clear, shown = _control(b, bus, address, (left, wrong, counted["RUNS"]))
    b.comment("Counters.")
    for name, pulse in counted.items():
        counter = b.reg(f"count_{name.lower()}", DATA_BITS)
        b.on(pulse, (counter, add(counter, 1, DATA_BITS)))
        b.on(clear, (counter, 0))
        shown[name] = counter
    form = machine.form
    sizes = {
        "SLAVES": machine.slaves,
        "WORD_BITS": form.bits,
        "FRACTION": form.fraction,
        "CODE_BITS": machine.code_bits,
    }
    geometry = sum(field.at(sizes[field.name]) for field in training_register("GEOMETRY").fields)
    version = sum(field.at(VERSION[field.name]) for field in VERSION_REGISTER.fields)
    for name, number in (("IDENT", IDENT), ("GEOMETRY", geometry), ("VERSION", version)):
        shown[name] = b.localparam(name, number, DATA_BITS, base=16)
    for k in range(DIGEST_REGISTERS):
        shown[f"DIGEST_{k}"] = b.localparam(f"DIGEST_{k}", int(digest[8 * k : 8 * k + 8], 16), 32, base=16)
    shown |= {"STATUS": Cat(wrong, idle), "ERROR_CODE": fault, "ERROR_PLACE": place, "CONTROL": soft_reset}
    b.comment("Reads.")
    value: Signal = const(0, DATA_BITS)
    for name, signal in shown.items():
        value = choose(eq(bus.read_address, address[name]), signal, value, DATA_BITS)
    bus.shown.assign(value)
    bus.can_show.assign(const(1, 1))
    return b


def _control(
    b: Block, bus: AxiLite, address: dict[str, Signal], events: tuple[Signal, Signal, Signal]
) -> tuple[Signal, Signal, dict[str, Signal]]:
    """(soft reset, counters become 0, what registers show), and the interrupt."""
    left, wrong, ended = events

    def write(name: str) -> Signal:
        return bus.write(b, f"write_{name.lower()}", address[name])

    b.comment("Control.")
    control = write("CONTROL")
    soft_reset = b.output_reg("soft_reset")
    clear = b.reg("clear")
    for register, field in ((soft_reset, "SOFT_RESET"), (clear, "CLEAR_COUNTERS")):
        b.on(None, (register, all_of(control, bus.write_data[training_register("CONTROL").field(field).lsb])))
    scratch = b.reg("scratch", DATA_BITS)
    b.on(write("SCRATCH"), (scratch, bus.write_data))
    enable = b.reg("irq_enable", IRQS)
    pending = b.reg("irq_pending", IRQS)
    b.on(write("IRQ_ENABLE"), (enable, bits(bus.write_data, 0, IRQS)))
    was_wrong = b.reg("was_faulted")
    b.on(None, (was_wrong, wrong))
    cleared = choose(write("IRQ_STATUS"), bits(bus.write_data, 0, IRQS), 0, IRQS)
    new = Cat(ended, wrong & ~was_wrong, left)
    b.on(None, (pending, (pending & ~b.wire("irq_cleared", IRQS, cleared)) | new))
    irq = b.output_reg("irq")
    b.on(None, (irq, nonzero(b.wire("irq_wanted", IRQS, enable & pending))))
    return soft_reset, clear, {"SCRATCH": scratch, "IRQ_ENABLE": enable, "IRQ_STATUS": pending}

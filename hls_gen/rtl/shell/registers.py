"""AXI4-Lite register block (docs/reference/device.md, "Registers"; the map is hls_gen/design/registers.py).

    s_axi --> registers --> start, soft reset, interrupt
                 ^-- status, errors, counters

A write takes 2 cycles at least; a read takes 3, of a counter a round of counters more
(hls_gen/rtl/primitives/counters.py). Reads of unused addresses give 0; writes to them and to read-only registers do
nothing; a write with a partial strobe is refused with SLVERR, and so is an address that is no multiple of 4.

Parts: axi_lite.py in hls_gen/rtl/shell; register_word.py in hls_gen/rtl/primitives.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from veriloggen import Repeat

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.headers import ERROR_BITS
from bitloom.hls_gen.design.loader import STATE_BITS
from bitloom.hls_gen.design.registers import (
    ADDRESS_BITS,
    DIGEST_REGISTERS,
    IDENT,
    NPU_BASE,
    NPU_STRIDE,
    OWNER_BITS,
    VERSION,
    Register,
    counter_name,
    register_map,
    state_bits,
)
from bitloom.hls_gen.design.signature import BITS as SIGNATURE_BITS
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, bits, choose, eq, nonzero, resize
from bitloom.hls_gen.rtl.primitives.counters import counters
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.register_word import field_of, word_of
from bitloom.hls_gen.rtl.primitives.text import Header

from .axi_lite import DATA_BITS, AxiLite, axi_lite

SHOWN = {
    "computing": 1,
    "idle": 1,
    "loaded": 1,
    "loader_state": STATE_BITS,
    "error_code": ERROR_BITS,
    "error_header": 32,
    "error_address": 32,
    "error_length": 32,
    "signature": SIGNATURE_BITS,
}
"""Inputs from the loader that registers show: name and width in bits."""
OF_ERROR = ("ERROR_HEADER", "ERROR_ADDRESS", "ERROR_LENGTH")
"""Registers that show what the loader has at hand, as long as there is an error."""
PULSES = ("frame_left", "word_taken", "word_given", "result_left", "load_begins")
"""Inputs that are counted, raise an interrupt, or take the device from its owner."""


@dataclass(frozen=True)
class RegisterContext:
    """The register block under construction."""

    b: Block
    """Its module."""
    bus: AxiLite
    """Its AXI4-Lite slave."""
    map: Mapping[str, Register]
    """All registers of the design, by name."""
    inputs: Mapping[str, Signal]
    """``error``, `SHOWN` and `PULSES`."""

    def address(self, name: str) -> Signal:
        """The byte offset of a register, as a constant ``<name>_ADDRESS`` of the module."""
        return self.b.localparam(f"{name}_ADDRESS", self.map[name].offset, ADDRESS_BITS, base=16)

    def write(self, name: str) -> Signal:
        """Register, a pulse: a register is written."""
        return self.bus.write(self.b, f"write_{name.lower()}", self.address(name))

    def written(self, name: str, field: str) -> Signal:
        """Value that is written to a field of a register."""
        part = self.map[name].field(field)
        return self.b.wire(f"written_{field.lower()}", part.width, field_of(self.bus.write_data, part))

    def word(self, name: str, **values: Signal) -> Signal:
        """A register's word from its fields; those that are not given are 0."""
        return resize(word_of(self.map[name].fields, values), DATA_BITS)

    def constant(self, name: str, **values: int) -> Signal:
        """The word of a register whose fields never change."""
        return self.number(name, sum(self.map[name].field(field).at(value) for field, value in values.items()))

    def number(self, name: str, value: int) -> Signal:
        """The word of a register that never changes, as a constant ``<name>`` of the module."""
        return self.b.localparam(name, value, DATA_BITS, base=16)


def registers(library: Library, design: Design, digest: str) -> Block:
    """The register block of a design.

    Parameters
    ----------
    design : Design
        The design, of which the registers show the size, and counters and state of each NPU.
    digest : str
        64 hex digits, of which the DIGEST registers show the first 32.

    Returns
    -------
    Block
        Module ``registers_block``: slave ``s_axi``, interrupt ``irq``, outputs ``start`` and ``soft_reset``; inputs
        called like what is shown or counted.
    """
    header = Header(
        __doc__,
        rate="one write and one read at a time",
        latency="2 cycles a write, 3 a read, of a counter a round of counters more",
        parameters={"npus": len(design.npus)},
    )
    b = Block("registers_block", header)
    bus = axi_lite(b)
    inputs = {"error": b.input("error")}
    irq = b.output("irq")
    inputs |= {name: b.input(name, w) for name, w in SHOWN.items()}
    start = b.output_reg("start")
    soft_reset = b.output_reg("soft_reset")
    clear = b.wire("clear_counters")
    inputs |= {name: b.input(name) for name in PULSES}

    # # #

    c = RegisterContext(b, bus, {r.name: r for r in register_map(design)}, inputs)
    values = _control(c, start, soft_reset, clear)
    values |= _interrupts(c, irq, soft_reset) | _owner(c, soft_reset)
    values |= _constants(c, design, digest) | _status(c)
    counted = {
        "CYCLES": inputs["computing"],
        "FRAMES": inputs["frame_left"],
        "WORDS_IN": inputs["word_taken"],
        "WORDS_OUT": inputs["word_given"],
    }
    for n, npu in enumerate(design.npus):
        for name in npu.pulses:  # between frames an NPU waits for its input, which says nothing
            counted[counter_name(n, name)] = inputs["computing"] & b.input(f"npu{n}_{name}")
        values[f"NPU{n}_STATE"] = resize(b.input(f"npu{n}_state", state_bits(npu)), DATA_BITS)
    b.comment("The register that is read: compared in one cycle, chosen in the next.")
    shown = [_shown(c, name, values[name]) for name in c.map if name in values]  # at most one is not 0
    is_counter = _is_counter(c, design)
    b.comment("Counters.")
    by_address = [(c.address(name), pulse) for name, pulse in counted.items()]
    done = counters(b, library, by_address, clear, bus.read_address, bus.reading & is_counter)
    bus.can_show.assign(done | ~is_counter)
    shown.append(Repeat(done, DATA_BITS) & b.m.variable["counter_value"])
    bus.shown.assign(any_of(*shown))
    return b


def _control(c: RegisterContext, start: Signal, soft_reset: Signal, clear: Signal) -> dict[str, Signal]:
    """CONTROL and SCRATCH; what a read of them gives."""
    b = c.b
    b.comment("CONTROL and SCRATCH.")
    control = c.write("CONTROL")
    b.on(None, (soft_reset, control & c.written("CONTROL", "SOFT_RESET")))  # a pulse: it clears itself
    b.on(control, (start, c.written("CONTROL", "START")))
    clear.assign(control & c.written("CONTROL", "CLEAR_COUNTERS"))
    scratch = b.reg("scratch", DATA_BITS)
    b.on(c.write("SCRATCH"), (scratch, c.bus.write_data))
    return {"SCRATCH": scratch, "CONTROL": c.word("CONTROL", START=start)}


def _interrupts(c: RegisterContext, irq: Signal, soft_reset: Signal) -> dict[str, Signal]:
    """IRQ_ENABLE and IRQ_STATUS, and the interrupt; what a read of them gives."""
    b = c.b
    fields = c.map["IRQ_STATUS"].fields
    b.comment("Interrupts.")
    count = len(fields)
    enable = b.reg("irq_enable", count)
    pending = b.reg("irq_status", count)
    written = b.wire("written_interrupts", count, bits(c.bus.write_data, 0, count))
    b.on(c.write("IRQ_ENABLE"), (enable, written))
    error_before = b.reg("error_before")  # an error lasts until reset: its beginning is what is told
    b.on(None, (error_before, c.inputs["error"]))
    events = {"RESULT": c.inputs["result_left"], "ERROR": c.inputs["error"] & ~error_before}
    raised = b.wire("irq_raised", count, word_of(fields, events))
    acknowledged = b.wire("irq_acknowledged", count, choose(c.write("IRQ_STATUS"), written, 0, count))
    b.on(None, (pending, (pending & ~acknowledged) | raised))  # one that comes while it is acknowledged isn't lost
    b.on(soft_reset, (pending, 0))
    irq.assign(nonzero(b.wire("irq_active", count, pending & enable)))
    return {"IRQ_ENABLE": resize(enable, DATA_BITS), "IRQ_STATUS": resize(pending, DATA_BITS)}


def _owner(c: RegisterContext, soft_reset: Signal) -> dict[str, Signal]:
    """OWNER; what a read of it gives. A LOAD sets it to 0, so that it is 0 for a loader that doesn't write it."""
    c.b.comment("Owner of the parameters.")
    owner = c.b.reg("owner_number", OWNER_BITS)
    c.b.on(c.write("OWNER"), (owner, c.written("OWNER", "OWNER")))
    c.b.on(any_of(soft_reset, c.inputs["load_begins"]), (owner, 0))
    return {"OWNER": resize(owner, DATA_BITS)}


def _constants(c: RegisterContext, design: Design, digest: str) -> dict[str, Signal]:
    """Registers that say what design this is."""
    values = {
        "IDENT": c.number("IDENT", IDENT),
        "VERSION": c.constant("VERSION", **VERSION),
        "GEOMETRY": c.constant("GEOMETRY", NPUS=len(design.npus), STREAM_BITS=design.stream_bits),
    }
    for k in range(DIGEST_REGISTERS):
        values[f"DIGEST_{k}"] = c.number(f"DIGEST_{k}", int(digest[8 * k : 8 * k + 8], 16))
    for n, npu in enumerate(design.npus):
        values[f"NPU{n}_LANES"] = c.constant(f"NPU{n}_LANES", KFP=npu.array.kfp, KGP=npu.array.kgp)
        values[f"NPU{n}_WIDTHS"] = c.constant(f"NPU{n}_WIDTHS", PFP=npu.value("pfp"), OL=npu.results.ol)
    return values


def _status(c: RegisterContext) -> dict[str, Signal]:
    """STATUS, SIGNATURE and the registers that tell of a malformed packet."""
    shown = c.inputs
    status = c.word(
        "STATUS", IDLE=shown["idle"], ERROR=shown["error"], LOADED=shown["loaded"], LOADER_STATE=shown["loader_state"]
    )
    numbers = ("error_code", "error_header", "error_address", "error_length", "signature")
    return {"STATUS": status} | {name.upper(): resize(shown[name], DATA_BITS) for name in numbers}


def _shown(c: RegisterContext, name: str, value: Signal) -> Signal:
    """``value`` while its register is read, else 0. The header of a packet is shown where that packet was malformed."""
    hit = eq(c.bus.read_address, c.address(name))
    if name in OF_ERROR:
        hit = hit & c.inputs["error"]
    is_read = _decoded(c.b, f"reads_{name.lower()}", hit)
    return Repeat(is_read, DATA_BITS) & value


def _is_counter(c: RegisterContext, design: Design) -> Signal:
    """Whether the register that is read is a counter, by parts of its address: the design's counters and the first four
    of an NPU fill blocks of 16 bytes, an NPU's fifth counter lies by itself. Only multiples of 4 are registers: a
    read of another address would wait for ever for the turn of a counter."""
    address = c.bus.read_address
    count = len(design.npus)
    least = NPU_BASE // NPU_STRIDE
    of_design = c.map["CYCLES"].offset
    of_npu = c.map["NPU0_BEATS"].offset - NPU_BASE
    stride = bits_for(NPU_STRIDE - 1)  # bits of an address within an NPU's registers
    n = bits(address, stride, ADDRESS_BITS - stride)
    first, end = (
        c.b.localparam(name, number, ADDRESS_BITS - stride, base=16)
        for name, number in (("FIRST_NPU", least), ("NPUS_END", least + count))
    )
    exists = (n >= first) & (n < end)
    place = eq(bits(address, 4, stride - 4), c.b.localparam("NPU_COUNTERS", of_npu >> 4, stride - 4, base=16))
    for pulse in design.npus[0].pulses[4:]:  # one at most: streamed weights and one memory don't go together
        waits = (c.map[counter_name(0, pulse)].offset - NPU_BASE) >> 2
        waits_place = c.b.localparam(f"NPU_{pulse.upper()}", waits, stride - 2, base=16)
        place = place | eq(bits(address, 2, stride - 2), waits_place)
    counters_of_design = c.b.localparam("DESIGN_COUNTERS", of_design >> 4, ADDRESS_BITS - 4, base=16)
    is_counter = eq(bits(address, 4, ADDRESS_BITS - 4), counters_of_design) | (exists & place)
    return _decoded(c.b, "reads_counter", c.bus.read_aligned & is_counter)


def _decoded(b: Block, name: str, hit: Signal) -> Signal:
    """Register: ``hit``, the comparison of an address that has stood for a cycle. So the comparison and the choice of
    the value are in different cycles."""
    register = b.reg(name)
    b.on(None, (register, hit))
    return register

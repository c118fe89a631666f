"""AXI4-Lite register block (docs/reference/device.md, "Registers"): the map for the manifest, and the hardware.

    s_axi --> registers --> start, soft reset, interrupt
                 ^-- status, errors, counters

A write needs address and data, in any order, and takes 2 cycles at least; a read takes 3, of a counter a round of
counters more (counters.py). Reads of unused addresses
give 0; writes to them and to read-only registers do nothing; a write with a partial strobe is refused with SLVERR.
"""

from veriloggen import Cat, Repeat

from bitloom.hls_gen.design.npu import Design
from bitloom.hls_gen.design.registers import (
    ADDRESS_BITS,
    IDENT,
    NPU_BASE,
    VERSION,
    counter_name,
    register_map,
)
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of, bits, choose, const, eq, nonzero, resize
from bitloom.hls_gen.rtl.primitives.counters import counters
from bitloom.hls_gen.rtl.primitives.memory import Library


def registers(library: Library, design: Design, digest: str) -> Block:
    """The register block; ``digest`` is 64 hex digits."""
    b = Block("registers_block")
    bus = _Axi(b)
    error, irq = b.input("error"), b.output("irq")
    computing = b.input("computing")
    status = {name: b.input(name, w) for name, w in (("idle", 1), ("loaded", 1), ("loader_state", 3))}
    faults = {
        name: b.input(name, w)
        for name, w in (("error_code", 4), ("error_header", 32), ("error_address", 32), ("error_length", 32))
    }
    start, soft_reset, clear = b.output_reg("start"), b.output_reg("soft_reset"), b.wire("clear_counters")
    pulses = {name: b.input(name) for name in ("frame_left", "word_taken", "word_given", "result_left")}

    # # #

    v = {r.name: r for r in register_map(design)}
    wrote = lambda name: b.wire(f"write_{name.lower()}", 1, bus.write & eq(bus.write_address, v[name].offset))  # noqa: E731
    control = wrote("CONTROL")
    b.on(None, (soft_reset, control & bits(bus.write_data, 1, 1)))
    b.on(control, (start, bits(bus.write_data, 0, 1)))
    clear.assign(control & bits(bus.write_data, 2, 1))
    scratch = b.reg("scratch", 32)
    b.on(wrote("SCRATCH"), (scratch, bus.write_data))
    enable, pending = b.reg("irq_enable", 2), b.reg("irq_status", 2)
    b.on(wrote("IRQ_ENABLE"), (enable, bits(bus.write_data, 0, 2)))
    error_before = b.reg("error_before")
    b.on(None, (error_before, error))
    raised = b.wire("irq_raised", 2, Cat(error & ~error_before, pulses["result_left"]))
    acknowledged = choose(wrote("IRQ_STATUS"), bits(bus.write_data, 0, 2), 0, 2)
    b.on(None, (pending, (pending & ~b.wire("irq_acknowledged", 2, acknowledged)) | raised))
    b.on(soft_reset, (pending, 0))
    irq.assign(nonzero(b.wire("irq_active", 2, pending & enable)))

    counted = {
        "CYCLES": computing,
        "FRAMES": pulses["frame_left"],
        "WORDS_IN": pulses["word_taken"],
        "WORDS_OUT": pulses["word_given"],
    }
    values: dict[str, Signal] = {
        "IDENT": const(IDENT, 32),
        "VERSION": const(VERSION[0] << 16 | VERSION[1] << 8 | VERSION[2], 32),
        **{f"DIGEST_{k}": const(int(digest[8 * k : 8 * k + 8], 16), 32) for k in range(4)},
        "GEOMETRY": const(len(design.npus) | design.stream_bits << 8, 32),
        "SCRATCH": scratch,
        "CONTROL": resize(start, 32),
        "STATUS": resize(Cat(status["loader_state"], const(0, 1), status["loaded"], error, status["idle"]), 32),
        "ERROR_CODE": resize(faults["error_code"], 32),
        "ERROR_HEADER": faults["error_header"],
        "ERROR_ADDRESS": faults["error_address"],
        "ERROR_LENGTH": faults["error_length"],
        "IRQ_ENABLE": resize(enable, 32),
        "IRQ_STATUS": resize(pending, 32),
    }
    for n, npu in enumerate(design.npus):
        values[f"NPU{n}_LANES"] = const(npu.kfp | npu.kgp << 16, 32)
        values[f"NPU{n}_WIDTHS"] = const(npu.pfp | npu.ol << 16, 32)
        for name in npu.pulses:
            counted[counter_name(n, name)] = computing & b.input(f"npu{n}_{name}")
        values[f"NPU{n}_STATE"] = resize(b.input(f"npu{n}_state", npu.state_bits), 32)
    chosen = [
        Repeat(_decoded(b, f"reads_{name.lower()}", eq(bus.read_address, v[name].offset)), 32) & value
        for name, value in values.items()
    ]  # at most one is not 0
    by_offset = {v[name].offset: pulse for name, pulse in counted.items()}
    done = counters(
        b, library, by_offset, clear, bus.read_address, bus.reading & _is_counter(b, design, bus.read_address)
    )
    bus.can_show.assign(done | ~b.m.variable["reads_counter"])
    bus.shown.assign(choose(done, b.m.variable["counter_value"], b.wire("register_value", 32, any_of(*chosen)), 32))
    return b


def _is_counter(b: Block, design: Design, address: Signal) -> Signal:
    """Whether the register at ``address`` is a counter: 0x050 to 0x05C, or 0x10 to 0x1C of an NPU, and 0x24 where its
    weights are streamed."""
    npu = bits(address, 6, 6)
    exists = (npu >= const(NPU_BASE >> 6, 6)) & (npu < const((NPU_BASE >> 6) + len(design.npus), 6))
    place = eq(bits(address, 4, 2), 1)
    if design.npus[0].stream_weights:
        place = place | eq(bits(address, 2, 4), 0x24 >> 2)
    return _decoded(b, "reads_counter", eq(bits(address, 4, 8), 0x05) | (exists & place))


def _decoded(b: Block, name: str, hit: Signal) -> Signal:
    """Register: whether the address, which has stood for a cycle, is this one."""
    register = b.reg(name)
    b.on(None, (register, hit))
    return register


class _Axi:
    """AXI4-Lite slave: ``write`` pulses with address and data; while ``reading``, the read of ``read_address`` gives
    ``shown`` as soon as ``can_show``."""

    def __init__(self, b: Block):
        awaddr, awvalid, awready = (
            b.input("s_axi_awaddr", ADDRESS_BITS),
            b.input("s_axi_awvalid"),
            b.output("s_axi_awready"),
        )
        wdata, wstrb = b.input("s_axi_wdata", 32), b.input("s_axi_wstrb", 4)
        wvalid, wready = b.input("s_axi_wvalid"), b.output("s_axi_wready")
        bresp, bvalid, bready = b.output_reg("s_axi_bresp", 2), b.output_reg("s_axi_bvalid"), b.input("s_axi_bready")
        araddr, arvalid, arready = (
            b.input("s_axi_araddr", ADDRESS_BITS),
            b.input("s_axi_arvalid"),
            b.output("s_axi_arready"),
        )
        rdata, rresp = b.output_reg("s_axi_rdata", 32), b.output("s_axi_rresp", 2, const(0, 2))
        rvalid, rready = b.output_reg("s_axi_rvalid"), b.input("s_axi_rready")
        del rresp
        have_address, have_data = b.reg("have_address"), b.reg("have_data")
        self.write_address, self.write_data = b.reg("write_address", ADDRESS_BITS), b.reg("write_data", 32)
        strobe = b.reg("write_strobe", 4)
        awready.assign(~have_address)
        wready.assign(~have_data)
        b.on(awvalid & awready, (have_address, 1), (self.write_address, awaddr))
        b.on(wvalid & wready, (have_data, 1), (self.write_data, wdata), (strobe, wstrb))
        go = b.wire("write_go", 1, all_of(have_address, have_data, ~bvalid))
        whole = b.wire("write_whole", 1, eq(strobe, 15))
        self.write = b.wire("write", 1, go & whole)
        b.on(bready, (bvalid, 0))
        b.on(go, (have_address, 0), (have_data, 0), (bvalid, 1), (bresp, choose(whole, 0, 2, 2)))
        self.read_address = b.reg("read_address", ADDRESS_BITS)
        decoding = b.reg("decoding")
        self.reading = reading = b.reg("reading")
        arready.assign(~any_of(decoding, reading, rvalid))
        b.on(rready, (rvalid, 0))
        b.on(arvalid & arready, (decoding, 1), (self.read_address, araddr))
        self.shown, self.can_show = b.wire("shown", 32), b.wire("can_show")
        b.on(decoding, (decoding, 0), (reading, 1))
        b.on(reading & self.can_show, (reading, 0), (rvalid, 1), (rdata, self.shown))

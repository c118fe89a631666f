"""AXI4-Lite slave: one write and one read at a time (part of hls_gen/rtl/shell/registers.py).

    aw, w --> held until both are there --> a pulse for the register at the address, a cycle later --> b
    ar --> held --> decoding: a cycle in which the address stands --> reading, until there is a value --> r

Each response waits in registers until the master takes it. A write needs address and data, in any order, and takes 2
cycles at least; one with a partial strobe does nothing and is answered with SLVERR, since a register is written whole.
A read takes 3 cycles at least. An address that is no multiple of 4 is no register's: reads of it give 0, writes do
nothing, and both are answered with SLVERR.
"""

from dataclasses import dataclass

from bitloom.hls_gen.design.registers import ADDRESS_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of, bits, choose, eq

DATA_BITS = 32
OKAY, SLVERR = 0, 2
"""Values of bresp and rresp: done, refused (AMBA AXI specification, A3.4.4)."""
RESPONSE_BITS = 2
ALL_BYTES = 0b1111
"""Strobe of a write of all four bytes."""


@dataclass(frozen=True)
class AxiLite:
    """Signals by which the AXI4-Lite slave reads and writes the registers."""

    write_next: Signal
    """In the next cycle ``write_data`` is for the register at ``write_address``. Both stand in this cycle, too."""
    write_address: Signal
    write_data: Signal
    """write_address, write_data: registers, a byte address and 32 bits."""
    read_address: Signal
    """Register: byte address of the register that is read. It has stood for a cycle when ``reading`` rises."""
    read_aligned: Signal
    """That address is a multiple of 4."""
    reading: Signal
    """A read waits for its value."""
    can_show: Signal
    """Wire, to be assigned: ``shown`` is the value, and the read may end."""
    shown: Signal
    """Wire, to be assigned, 32 bits."""

    def write(self, b: Block, name: str, address: Signal) -> Signal:
        """Register ``name`` in ``b``, a pulse: ``write_data`` is for the register at ``address``. So the address is
        compared in the cycle before, and what a write does begins at a register."""
        pulse = b.reg(name)
        b.on(None, (pulse, self.write_next & eq(self.write_address, address)))
        return pulse


def axi_lite(b: Block) -> AxiLite:
    """Slave ``s_axi`` in ``b``, which gets its ports."""
    awaddr = b.input("s_axi_awaddr", ADDRESS_BITS)
    awvalid = b.input("s_axi_awvalid")
    awready = b.output("s_axi_awready")
    wdata = b.input("s_axi_wdata", DATA_BITS)
    wstrb = b.input("s_axi_wstrb", DATA_BITS // 8)
    wvalid = b.input("s_axi_wvalid")
    wready = b.output("s_axi_wready")
    bresp = b.output_reg("s_axi_bresp", RESPONSE_BITS, init=None)
    bvalid = b.output_reg("s_axi_bvalid")
    bready = b.input("s_axi_bready")
    araddr = b.input("s_axi_araddr", ADDRESS_BITS)
    arvalid = b.input("s_axi_arvalid")
    arready = b.output("s_axi_arready")
    rdata = b.output_reg("s_axi_rdata", DATA_BITS, init=None)
    okay, slverr = (b.localparam(n, v, RESPONSE_BITS) for n, v in (("OKAY", OKAY), ("SLVERR", SLVERR)))
    rresp = b.output_reg("s_axi_rresp", RESPONSE_BITS, init=None)
    rvalid = b.output_reg("s_axi_rvalid")
    rready = b.input("s_axi_rready")

    b.comment("Writes: address and data wait for each other.")
    have_address = b.reg("have_address")
    have_data = b.reg("have_data")
    write_address = b.reg("write_address", ADDRESS_BITS, init=None)
    write_data = b.reg("write_data", DATA_BITS, init=None)
    strobe = b.reg("write_strobe", DATA_BITS // 8, init=None)
    awready.assign(~have_address)
    wready.assign(~have_data)
    b.on(awvalid & awready, (have_address, 1), (write_address, awaddr))
    b.on(wvalid & wready, (have_data, 1), (write_data, wdata), (strobe, wstrb))
    go = b.wire("write_go", 1, all_of(have_address, have_data, ~bvalid))  # the answer before has been taken
    all_bytes = eq(strobe, b.localparam("ALL_BYTES", ALL_BYTES, DATA_BITS // 8, base=16))
    whole = b.wire("write_whole", 1, all_bytes & _aligned(b, write_address))
    # the write comes with the answer: address and data still stand, as nothing is taken over them before
    write_next = b.wire("write_next", 1, go & whole)
    b.on(bready, (bvalid, 0))
    b.on(go, (have_address, 0), (have_data, 0), (bvalid, 1), (bresp, choose(whole, okay, slverr, RESPONSE_BITS)))

    b.comment("Reads: the address stands for a cycle before it is looked at.")
    read_address = b.reg("read_address", ADDRESS_BITS, init=None)
    decoding, reading = b.reg("decoding"), b.reg("reading")  # a cycle for the registers that compare the address
    arready.assign(~any_of(decoding, reading, rvalid))
    b.on(rready, (rvalid, 0))
    b.on(arvalid & arready, (decoding, 1), (read_address, araddr))
    shown = b.wire("shown", DATA_BITS)
    can_show = b.wire("can_show")
    b.on(decoding, (decoding, 0), (reading, 1))
    aligned = b.wire("read_aligned", 1, _aligned(b, read_address))
    answer = choose(aligned, okay, slverr, RESPONSE_BITS)
    b.on(reading & can_show, (reading, 0), (rvalid, 1), (rdata, shown), (rresp, answer))
    return AxiLite(write_next, write_address, write_data, read_address, aligned, reading, can_show, shown)


def _aligned(b: Block, address: Signal) -> Signal:
    """Whether ``address`` is a multiple of 4, the bytes of a register."""
    within = DATA_BITS // 8 - 1  # the bits that count bytes in a register are ones of this number
    return eq(bits(address, 0, within.bit_length()), b.localparam("FIRST_BYTE", 0, within.bit_length()))

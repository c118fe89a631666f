"""From the processor of a Zynq-7000 to registers: AXI3 bursts become accesses by AXI4-Lite, one after another.

    s_axi3: aw, w, b --> a word --> NAME: aw, w, b     one write at a time, and one read at a time beside it
            ar, r    --> an ask --> NAME: ar, r

Port M_AXI_GP0 of the processor has IDs and bursts of up to 16 words; AXI4-Lite has neither. A burst must count up: each
of its words goes to the core in whose 4 KB its address lies. Others, and bursts of another type, are answered without
an access, with DECERR and SLVERR. The answer to a write is the worst of its words' answers.
"""

from collections.abc import Mapping, Sequence

from bitloom.hls_gen.design.registers import ADDRESS_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, all_of, any_of, bits, choose, const, eq, sub
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.shell.axi_lite import DATA_BITS, OKAY, RESPONSE_BITS, SLVERR
from bitloom.hls_gen.rtl.shell.top import AXI

from .burst import INCREMENT

DECERR = 3
"""Value of bresp and rresp: no core has the address."""
ID_BITS = 12
"""Bits of an ID of port M_AXI_GP0 (AMD UG585, "AXI_GP Interfaces")."""
LENGTH_BITS = 4
"""Bits of the beats of an AXI3 burst, less 1."""
PLACE_BITS = 32 - ADDRESS_BITS
"""High bits of an address, which say whose register it is."""


def axi3_bridge(library: Library, bases: Mapping[str, int]) -> Block:
    """The module ``axi3_bridge``; ``bases`` are the addresses of the cores, multiples of 4 KB, by what the names of
    their ports begin with."""
    header = Header(
        __doc__,
        rate="an access at a time in each direction",
        latency="a cycle more than the core's, to the core and back each",
        parameters={name: f"0x{base:08X}" for name, base in bases.items()},
    )
    b = Block("axi3_bridge", header)
    write, read = _request(b, "aw"), _request(b, "ar")
    wdata = b.input("s_axi3_wdata", DATA_BITS, means="a word to be written")
    wstrb = b.input("s_axi3_wstrb", DATA_BITS // 8, means="its bytes that are written")
    wvalid = b.input("s_axi3_wvalid", means="there is a word")
    wready = b.output("s_axi3_wready", means="the word is taken")
    bid = b.output("s_axi3_bid", ID_BITS, means="ID of the burst that is answered")
    bresp = b.output_reg("s_axi3_bresp", RESPONSE_BITS, means="0: written; 2, 3: not all of it")
    bvalid = b.output_reg("s_axi3_bvalid", means="a burst was written")
    bready = b.input("s_axi3_bready", means="the answer is taken")
    rid = b.output("s_axi3_rid", ID_BITS, means="ID of the burst whose word this is")
    rdata = b.output_reg("s_axi3_rdata", DATA_BITS, init=None, means="a word that was read")
    rresp = b.output_reg("s_axi3_rresp", RESPONSE_BITS, init=None, means="0: read; 2, 3: not")
    rlast = b.output("s_axi3_rlast", means="the burst's last word")
    rvalid = b.output_reg("s_axi3_rvalid", means="there is a word")
    rready = b.input("s_axi3_rready", means="the word is taken")
    cores = {name: _core_ports(b, name) for name in bases}

    # # #

    b.comment("Writes: a word is with its core until it is answered.")
    burst = _Burst(b, "write", write, bases)
    word = b.reg("word_there")
    address_sent, data_sent = b.reg("address_sent"), b.reg("data_sent")
    data, strobe = b.reg("word", DATA_BITS, init=None), b.reg("strobe", DATA_BITS // 8, init=None)
    write["ready"].assign(~any_of(burst.busy, bvalid))
    wready.assign(burst.busy & ~word)
    b.on(wvalid & wready, (word, 1), (data, wdata), (strobe, wstrb), (address_sent, 0), (data_sent, 0))
    answers = []
    for name, ports in cores.items():
        here = b.wire(f"write_to_{name}", 1, word & burst.at[name])
        ports["awaddr"].assign(bits(burst.address, 0, ADDRESS_BITS))
        ports["awvalid"].assign(here & ~address_sent)
        ports["wdata"].assign(data)
        ports["wstrb"].assign(strobe)
        ports["wvalid"].assign(here & ~data_sent)
        ports["bready"].assign(here)
        b.on(here & ports["awready"], (address_sent, 1))
        b.on(here & ports["wready"], (data_sent, 1))
        answers.append((here & ports["bvalid"], ports["bresp"]))
    answered = b.wire("word_answered", 1, any_of(word & burst.nowhere, *(came for came, _ in answers)))
    answer = b.wire("word_answer", RESPONSE_BITS, _chosen(answers, burst.refusal, RESPONSE_BITS))
    b.on(bready, (bvalid, 0))
    b.on(write["valid"] & write["ready"], (bresp, OKAY))
    b.on(answered, (word, 0), (bresp, bresp | answer))  # of OKAY, SLVERR and DECERR the worst
    b.on(answered & burst.last, (bvalid, 1))
    burst.goes_on(answered)
    bid.assign(burst.id)

    b.comment("Reads: a word is asked for when the one before has been taken.")
    burst = _Burst(b, "read", read, bases)
    asked = b.reg("asked")
    read["ready"].assign(~burst.busy)
    wanted = b.wire("word_wanted", 1, burst.busy & ~rvalid)
    answers, values = [], []
    for name, ports in cores.items():
        here = b.wire(f"read_from_{name}", 1, wanted & burst.at[name])
        ports["araddr"].assign(bits(burst.address, 0, ADDRESS_BITS))
        ports["arvalid"].assign(here & ~asked)
        ports["rready"].assign(here & asked)
        b.on(all_of(here, ~asked, ports["arready"]), (asked, 1))
        came = all_of(here, asked, ports["rvalid"])
        answers.append((came, ports["rresp"]))
        values.append((came, ports["rdata"]))
    answered = b.wire("ask_answered", 1, any_of(wanted & burst.nowhere, *(came for came, _ in answers)))
    b.on(answered, (asked, 0), (rvalid, 1))
    b.on(answered, (rdata, _chosen(values, const(0, DATA_BITS), DATA_BITS)))
    b.on(answered, (rresp, _chosen(answers, burst.refusal, RESPONSE_BITS)))
    given = b.wire("word_given", 1, rvalid & rready)
    b.on(given, (rvalid, 0))
    burst.goes_on(given)
    rlast.assign(burst.last)
    rid.assign(burst.id)
    return b


class _Burst:
    """The burst of one direction, word by word.

    Attributes
    ----------
    busy
        Register: it has words left.
    id
        Register: its ID.
    address
        Register: of the word at hand.
    last
        Wire: that word is the last one.
    at
        Wires: that word is a core's, by the core's name.
    nowhere
        Wire: the word is no core's, or the burst doesn't count up.
    refusal
        Answer to such a word.
    """

    def __init__(self, b: Block, name: str, request: Mapping[str, Signal], bases: Mapping[str, int]) -> None:
        self.b = b
        self.busy = b.reg(f"{name}_busy")
        self.id = b.reg(f"{name}_id", ID_BITS, init=None)
        self.address = b.reg(f"{name}_place", 32, init=None)
        self.left = b.reg(f"{name}_left", LENGTH_BITS, init=None)
        counts = b.reg(f"{name}_counts", init=None)
        taken = b.wire(f"{name}_begins", 1, request["valid"] & request["ready"])
        up = eq(request["burst"], b.localparam("INCREMENT", INCREMENT, 2))
        b.on(taken, (self.busy, 1), (self.id, request["id"]), (self.address, request["addr"]))
        b.on(taken, (self.left, request["len"]), (counts, up))
        place = bits(self.address, ADDRESS_BITS, PLACE_BITS)
        self.at = {}
        for core, base in bases.items():
            here = b.localparam(f"{core}_place".upper(), base >> ADDRESS_BITS, PLACE_BITS, base=16)
            self.at[core] = b.wire(f"{name}_at_{core}", 1, counts & eq(place, here))
        self.nowhere = b.wire(f"{name}_nowhere", 1, ~any_of(*self.at.values()))
        codes = {"SLVERR": SLVERR, "DECERR": DECERR}
        refused, absent = (b.localparam(code, value, RESPONSE_BITS) for code, value in codes.items())
        self.refusal = choose(counts, absent, refused, RESPONSE_BITS)
        self.last = b.wire(f"{name}_last", 1, eq(self.left, 0))

    def goes_on(self, done: Signal) -> None:
        """With ``done`` the word at hand is over."""
        self.b.on(done, (self.left, sub(self.left, 1, LENGTH_BITS)), (self.address, add(self.address, 4, 32)))
        self.b.on(done & self.last, (self.busy, 0))


def _request(b: Block, channel: str) -> dict[str, Signal]:
    """Channel "aw" or "ar", without the signals that registers have no use for."""
    name = f"s_axi3_{channel}"
    return {
        "id": b.input(f"{name}id", ID_BITS, means="ID of a burst"),
        "addr": b.input(f"{name}addr", 32, means="byte address of its first word"),
        "len": b.input(f"{name}len", LENGTH_BITS, means="its words, less 1"),
        "burst": b.input(f"{name}burst", 2, means="1: addresses count up"),
        "valid": b.input(f"{name}valid", means="there is a burst"),
        "ready": b.output(f"{name}ready", means="the burst is taken"),
    }


def _core_ports(b: Block, name: str) -> dict[str, Signal]:
    """Master for a core's AXI4-Lite slave."""
    return {
        signal: (b.output if direction == "in" else b.input)(
            f"{name}_{signal}", w, means=f"as s_axi_{signal} of the core {name}"
        )
        for signal, direction, w in AXI
    }


def _chosen(cases: Sequence[tuple[Signal, Signal]], other: Signal, w: int) -> Signal:
    """The value whose condition holds, at most one; else ``other``."""
    value = other
    for condition, result in cases:
        value = choose(condition, result, value, w)
    return value

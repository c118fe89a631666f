"""Top module of a design: stream in, stream out, registers (docs/reference/device.md, "Ports of the top module").

    s_axis -> loader -> NPU 0 -> NPU 1 -> ... -> NPU N-1 -(spill store)-> NPU 0
                           `------------------------`-> raw values / map words -> output register -> m_axis
    s_axi  -> registers

Parts: hls_gen/rtl/loader, hls_gen/rtl/ports/result_words.py; npu.py, ring.py, registers.py in hls_gen/rtl/shell.
"""

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.design.memories.loader import settings
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.registers import ADDRESS_BITS
from bitloom.hls_gen.rtl.loader import loader, weights_ports
from bitloom.hls_gen.rtl.ports.result_words import output_register, result_words
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus, Target, write_port
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header

from .axi_lite import DATA_BITS, RESPONSE_BITS
from .context import RingWords, place
from .npu import npu
from .registers import registers
from .ring import ring

AXI = (
    ("awaddr", "in", ADDRESS_BITS),
    ("awvalid", "in", 1),
    ("awready", "out", 1),
    ("wdata", "in", DATA_BITS),
    ("wstrb", "in", DATA_BITS // 8),
    ("wvalid", "in", 1),
    ("wready", "out", 1),
    ("bresp", "out", RESPONSE_BITS),
    ("bvalid", "out", 1),
    ("bready", "in", 1),
    ("araddr", "in", ADDRESS_BITS),
    ("arvalid", "in", 1),
    ("arready", "out", 1),
    ("rdata", "out", DATA_BITS),
    ("rresp", "out", RESPONSE_BITS),
    ("rvalid", "out", 1),
    ("rready", "in", 1),
)
"""Ports of the AXI4-Lite slave, after ``s_axi_``: name, direction, width in bits."""


def _contract(design: Design) -> str:
    """Text of the header: the chain of this design."""
    chain = " -> ".join(["loader", *(f"NPU {n}" for n in range(len(design.npus)))])
    back = f" -> {'spill store -> ' * bool(design.spill_words)}NPU 0" * design.closed
    return f"""Top module of a design: stream in, stream out, registers (docs/reference/device.md, "Ports of the
top module").

    s_axis -> {chain}{back}
              words of the last map, or raw values of the last layer -> output register -> m_axis
    s_axi  -> registers

A network's last layer is computed by {"any of the NPUs" if len(design.npus) > 1 else "the NPU"}.
"""


def top(design: Design, digest: str, target: Target = "simulation") -> Block:
    """The top module of a design.

    Parameters
    ----------
    design : Design
        All NPUs, the stream's width and the spill store.
    digest : str
        64 hex digits, of which the DIGEST registers show the first 32.
    target : str
        Tool for which the modules are made, "simulation" or "synthesis".

    Returns
    -------
    Block
        Ports: AXI4-Stream slave ``s_axis`` and master ``m_axis``, AXI4-Lite slave ``s_axi``, interrupt ``irq``.
    """
    library = Library(design.stream_bits, target, design.npus)
    header = Header(
        _contract(design),
        rate="one stream word a cycle each way at most; frames as fast as the slowest NPU",
        latency="that of the network: see register CYCLES",
        parameters={"design": design.name, "npus": len(design.npus), "stream_bits": design.stream_bits},
    )
    b = Block(TOP, header)
    s_axis = Stream(
        data=b.input("s_axis_tdata", design.stream_bits),
        valid=b.input("s_axis_tvalid"),
        ready=b.output("s_axis_tready"),
        last=b.input("s_axis_tlast"),
    )
    m_axis = Stream(
        data=b.output("m_axis_tdata", design.stream_bits),
        valid=b.output("m_axis_tvalid"),
        ready=b.input("m_axis_tready"),
        last=b.output("m_axis_tlast"),
    )
    axi = {
        f"s_axi_{name}": (b.input if direction == "in" else b.output)(f"s_axi_{name}", w) for name, direction, w in AXI
    }
    irq = b.output("irq")

    # # #

    soft_reset = b.wire("soft_reset")
    reset = b.wire("reset", 1, any_of(b.rst, soft_reset))  # of all but the registers, one of which asks for it
    program = {f"s_axis_t{part}": signal for part, signal in s_axis.parts()}
    load = place(b, library.get(loader, library, design), "loader", "", rst=reset, **program)
    npus = [_npu(b, library, design, n, load) for n in range(len(design.npus))]
    # the spill store is emptied where the NPUs restart, before another network runs
    ring(b, library, design, npus, load["restart"])
    flags = Stream(load["flag_valid"], load["flag_ready_out"], load["flag_data"])
    late = b.reg("late_reset", init=1)  # the NPUs restart a cycle after the loader, by its register
    b.on(None, (late, soft_reset))
    reset_results = b.wire("reset_results", 1, any_of(reset, late))
    results = result_words(b, library, design, npus, reset_results)
    pulses = output_register(b, library, results, flags, m_axis, reset_results, load.get("last_output"))
    load["frame_left"].assign(pulses.pop("frame_left"))
    # the registers' ports are called like what they show
    of_npus = {f"npu{n}_{port}": signal for n, ports in enumerate(npus) for port, signal in ports.items()}
    known = {**of_npus, **load, **pulses, "soft_reset": soft_reset, "irq": irq, **axi}
    block = registers(library, design, digest)
    b.instance(block, "registers", **{port: known[port] for port in block.m.io_variable if port in known})
    return b


def _npu(b: Block, library: Library, design: Design, n: int, load: dict[str, Signal]) -> dict[str, Signal]:
    """NPU ``n``, connected to what the loader drives (``load``); what is connected to each of its ports."""
    params = design.npus[n]
    integer = params.engine == "integer"
    words = RingWords(
        design.next_word_bits(n),
        from_bits=integer and "ring" in params.ports.inlets and design.changes_engine(n - 1),
        to_bits=integer and "ring" in params.ports.outlets and design.changes_engine(n),
        skipped=design.keeper(n) != n,
    )
    block = library.get(npu, library, params, words)
    writes = {m.name: load[f"npu{n}_{write_port(m.name)}"] for m in memory_map(params) if m.name != "network"}
    bus = LoadBus(writes, load.get("load_bank"), load["load_row"], load["load_data"])
    given = {**bus.to(block), **{name: load[f"npu{n}_{name}"] for name, _ in settings(params)}}
    if n == 0:
        given |= Stream.of(load, "words").ports("host")
    if params.loader.stream_weights:  # the loader counts layers with this NPU
        given |= {name: load[port] for name, port in weights_ports(len(design.npus))[n].items()}
    return place(b, block, f"npu_{n}", f"npu{n}_", rst=load["restart"], **given)

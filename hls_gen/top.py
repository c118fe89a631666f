"""Top module of a design: stream in, stream out, registers (docs/reference/device.md, "Ports of the top module").

s_axis -> loader -> NPU <-> map store
                     `-> raw values / map words -> output register -> m_axis
s_axi  -> registers
"""

from veriloggen import Cat

from .design import Design
from .fifo import fifo
from .gearbox import chain, collector, gearbox
from .loader import loader
from .memory import Library
from .npu import npu
from .popcount import Body
from .registers import ADDRESS_BITS, registers
from .rtl import Block, Signal, any_of, bits, choose, sign_extend, width

TOP = "bitloom_top"
MAP_HELD = 4
"""Words of a last map that wait for the host: they keep its ready apart from the NPU's."""
AXI = (
    ("awaddr", "in", ADDRESS_BITS),
    ("awvalid", "in", 1),
    ("awready", "out", 1),
    ("wdata", "in", 32),
    ("wstrb", "in", 4),
    ("wvalid", "in", 1),
    ("wready", "out", 1),
    ("bresp", "out", 2),
    ("bvalid", "out", 1),
    ("bready", "in", 1),
    ("araddr", "in", ADDRESS_BITS),
    ("arvalid", "in", 1),
    ("arready", "out", 1),
    ("rdata", "out", 32),
    ("rresp", "out", 2),
    ("rvalid", "out", 1),
    ("rready", "in", 1),
)


def top(design: Design, digest: str, popcount_body: Body = "countones") -> Block:
    """The whole design; ``digest`` (64 hex digits) is what its DIGEST registers show."""
    library = Library(design.stream_bits, popcount_body)
    params, stream = design.npus[0], design.stream_bits
    b = Block(TOP)
    s_axis = {
        name: (b.output if name == "tready" else b.input)(f"s_axis_{name}", stream if name == "tdata" else 1)
        for name in ("tdata", "tvalid", "tready", "tlast")
    }
    m_axis = {
        name: (b.input if name == "tready" else b.output)(f"m_axis_{name}", stream if name == "tdata" else 1)
        for name in ("tdata", "tvalid", "tready", "tlast")
    }
    axi = {f"s_axi_{name}": (b.input if way == "in" else b.output)(f"s_axi_{name}", w) for name, way, w in AXI}
    irq = b.output("irq")

    # # #

    soft_reset = b.wire("soft_reset")
    reset = b.wire("reset", 1, any_of(b.rst, soft_reset))
    made: dict[str, Signal] = {}

    def place(block: Block, name: str, rst: Signal, **ports: Signal) -> dict[str, Signal]:
        """Instance whose unnamed ports are wires shared by name over the whole top module."""
        out = dict(ports)
        for port, variable in block.m.io_variable.items():
            if port in ("clk", "rst") or port in out:
                continue
            if port not in made:
                made[port] = b.wire(port, width(variable))
            out[port] = made[port]
        b.instance(block, name, **{**out, "rst": rst})
        return out

    made["soft_reset"] = soft_reset
    load = place(library.get(loader, library, design), "loader", reset, **{f"s_axis_{k}": v for k, v in s_axis.items()})
    core = library.get(npu, library, params)
    state = b.wire("npu0_state", params.state_bits)
    made["npu0_state"] = state
    pulses = {n: b.wire(f"npu0_{n}") for n in params.pulses}
    made.update({f"npu0_{n}": w for n, w in pulses.items()})
    restart = b.wire("restart", 1, any_of(reset, ~load["run"]))
    engine = place(
        core,
        "npu_0",
        reset,
        host_valid=load["words_valid"],
        host_ready=load["words_ready"],
        host_data=load["words_data"],
        state=state,
        **pulses,
    )
    store_room = b.wire("store_room_unused")
    b.instance(
        library.get(fifo, library, params.word_bits, params.map_words),
        "map_store",
        rst=restart,
        in_valid=engine["ring_out_valid"],
        in_ready=engine["ring_out_ready"],
        in_data=engine["ring_out_data"],
        out_valid=engine["ring_valid"],
        out_ready=engine["ring_ready"],
        out_data=engine["ring_data"],
        room=store_room,
    )
    _output(b, library, design, engine, load, m_axis, made, reset)
    place(registers(design, digest), "registers", b.rst, irq=irq, **axi)
    return b


def _output(
    b: Block,
    library: Library,
    design: Design,
    engine: dict[str, Signal],
    load: dict[str, Signal],
    m_axis: dict[str, Signal],
    made: dict[str, Signal],
    reset: Signal,
) -> None:
    """Raw values and map words, one of which a network sends, into stream words; tlast by the frame's flag."""
    params, stream = design.npus[0], design.stream_bits
    values = chain(
        b,
        library.get(gearbox, params.ol * params.acc_bits, params.acc_bits),
        "raw_values",
        {k: engine[f"raw_{k}"] for k in ("valid", "ready", "data", "last")},
        rst=reset,
    )
    raw = chain(
        b, library.get(gearbox, 32, stream), "raw_words", {**values, "data": sign_extend(values["data"], 32)}, rst=reset
    )
    held = {"valid": b.wire("map_held"), "ready": b.wire("map_taken"), "data": b.wire("map_word", params.word_bits + 1)}
    b.instance(
        library.get(fifo, library, params.word_bits + 1, MAP_HELD),
        "map_held_words",
        rst=reset,
        in_valid=engine["map_valid"],
        in_ready=engine["map_ready"],
        in_data=Cat(engine["map_last"], engine["map_data"]),
        **{f"out_{k}": signal for k, signal in held.items()},
        room=b.wire("map_room_unused"),
    )
    held["last"] = bits(held["data"], params.word_bits, 1)
    held["data"] = bits(held["data"], 0, params.word_bits)
    maps = chain(b, library.get(gearbox, params.word_bits, stream), "map_words", held, rst=reset)
    ready = b.wire("result_ready")
    gate = b.wire("result_gate", 1, ready & load["flag_valid"])
    either = b.wire("result_valid", 1, any_of(raw["valid"], maps["valid"]))
    raw["ready"].assign(gate)
    maps["ready"].assign(gate & ~raw["valid"])
    end = b.wire("result_end", 1, choose(raw["valid"], raw["last"], maps["last"], 1))
    out = chain(
        b,
        library.get(collector, stream, stream, 1, 1),
        "output_register",
        {
            "valid": b.wire("result_given", 1, either & load["flag_valid"]),
            "ready": ready,
            "data": choose(raw["valid"], raw["data"], maps["data"], stream),
            "last": b.wire("result_tlast", 1, end & load["flag_data"]),
            "side": end,
        },
        rst=reset,
    )
    b.m.variable["flag_ready_out"].assign(b.wire("frame_end", 1, gate & either & end))
    m_axis["tdata"].assign(out["data"])
    m_axis["tvalid"].assign(out["valid"])
    m_axis["tlast"].assign(out["last"])
    out["ready"].assign(m_axis["tready"])
    given = b.wire("word_given", 1, out["valid"] & m_axis["tready"])
    made["word_given"] = given
    made["result_left"] = b.wire("result_left", 1, given & out["last"])
    b.m.variable["frame_left"].assign(given & bits(out["side"], 0, 1))

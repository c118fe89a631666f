"""Top module of a design: stream in, stream out, registers (docs/reference/device.md, "Ports of the top module").

s_axis -> loader -> NPU 0 -> NPU 1 -> ... -> NPU N-1 -(spill store)-> NPU 0
                       `------------------------`-> raw values / map words -> output register -> m_axis
s_axi  -> registers
"""

from veriloggen import Cat

from bitloom.hls_gen.design.npu import Design, Npu
from bitloom.hls_gen.rtl.array.popcount import Body
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of, bits, choose, resize, sign_extend, width
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.gearbox import chain, collector, gearbox
from bitloom.hls_gen.rtl.primitives.memory import Library

from .loader import loader
from .npu import npu
from .registers import ADDRESS_BITS, registers

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
    library = Library(design.stream_bits, popcount_body, design.npus)
    stream = design.stream_bits
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
    made: dict[str, Signal] = {"soft_reset": soft_reset}

    def place(block: Block, name: str, rst: Signal, rename: str = "", **ports: Signal) -> dict[str, Signal]:
        """Instance whose unnamed ports are wires shared by name over the whole top module; the name begins with
        ``rename``, except that of a wire of all."""
        out = dict(ports)
        for port, variable in block.m.io_variable.items():
            if port in ("clk", "rst") or port in out:
                continue
            own = f"{rename}{port}"
            shared = own if own in made or port not in made else port
            if shared not in made:
                made[shared] = b.wire(shared, width(variable))
            out[port] = resize(made[shared], width(variable))
        b.instance(block, name, **{**out, "rst": rst})
        return out

    load = place(library.get(loader, library, design), "loader", reset, **{f"s_axis_{k}": v for k, v in s_axis.items()})
    host = {f"host_{k}": load[f"words_{k}"] for k in ("valid", "ready", "data")}
    engines = []
    for n, params in enumerate(design.npus):
        integer = params.engine == "integer"
        from_bits = integer and "ring" in params.inlets and design.changes_engine(n - 1)
        to_bits = integer and "ring" in params.outlets and design.changes_engine(n)
        block = library.get(npu, library, params, design.next_word_bits(n), from_bits, to_bits)
        engines.append(place(block, f"npu_{n}", reset, f"npu{n}_", **(host if n == 0 else {})))
    _ring(b, library, design, engines, any_of(reset, ~load["run"]))
    _output(b, library, design, engines, load, m_axis, made, reset)
    place(registers(library, design, digest), "registers", b.rst, irq=irq, **axi)
    return b


def _ring(b: Block, library: Library, design: Design, engines: list[dict[str, Signal]], restart: Signal) -> None:
    """What leaves an NPU by outlet "ring" into the next one; at the closing edge through the spill store (D8)."""
    for n, params in enumerate(design.npus):
        if "ring" not in params.outlets:
            continue
        after, reader = (n + 1) % len(design.npus), engines[(n + 1) % len(design.npus)]
        given = {k: engines[n][f"to_ring_{k}"] for k in ("valid", "ready", "data", "last")}
        if after == 0 and design.spill_words:
            w = width(given["data"])
            stored = {"valid": b.wire("spilt_valid"), "ready": b.wire("spilt_ready"), "data": b.wire("spilt", w + 1)}
            b.instance(
                library.get(fifo, library, w + 1, design.spill_words),
                "spill_store",
                rst=b.wire("restart", 1, restart),
                in_valid=given["valid"],
                in_ready=given["ready"],
                in_data=Cat(given["last"], given["data"]),
                room=b.wire("spill_room_unused"),
                **{f"out_{k}": signal for k, signal in stored.items()},
            )
            given = {**stored, "data": bits(stored["data"], 0, w), "last": bits(stored["data"], w, 1)}
        for k in ("valid", "data", "last"):
            reader[f"ring_{k}"].assign(given[k])
        given["ready"].assign(reader["ring_ready"])


def _output(
    b: Block,
    library: Library,
    design: Design,
    engines: list[dict[str, Signal]],
    load: dict[str, Signal],
    m_axis: dict[str, Signal],
    made: dict[str, Signal],
    reset: Signal,
) -> None:
    """Raw values and map words into stream words; tlast by the frame's flag. Of all NPUs one sends results, in one of
    the two forms."""
    stream = design.stream_bits
    results = [
        part
        for n, (params, engine) in enumerate(zip(design.npus, engines))
        if "host" in params.outlets
        for part in _results(b, library, stream, n, params, engine, reset)
    ]
    ready = b.wire("result_ready")
    gate = b.wire("result_gate", 1, ready & load["flag_valid"])
    either = b.wire("result_valid", 1, any_of(*[part["valid"] for part in results]))
    data, last = results[-1]["data"], results[-1]["last"]
    for part in results[-2::-1]:
        data, last = choose(part["valid"], part["data"], data, stream), choose(part["valid"], part["last"], last, 1)
    for k, part in enumerate(results):  # never two at a time; if so, none is lost
        part["ready"].assign(all_of(gate, *[~before["valid"] for before in results[:k]]))
    end = b.wire("result_end", 1, last)
    out = chain(
        b,
        library.get(collector, stream, stream, 1, 1),
        "output_register",
        {
            "valid": b.wire("result_given", 1, either & load["flag_valid"]),
            "ready": ready,
            "data": data,
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


def _results(
    b: Block, library: Library, stream: int, n: int, params: Npu, engine: dict[str, Signal], reset: Signal
) -> list[dict[str, Signal]]:
    """The stream words of NPU ``n``: of its raw values, and of its map words."""
    values = chain(
        b,
        library.get(gearbox, params.ol * params.acc_bits, params.acc_bits),
        f"npu{n}_raw_values",
        {k: engine[f"raw_{k}"] for k in ("valid", "ready", "data", "last")},
        rst=reset,
    )
    block, data = library.get(gearbox, 32, stream), sign_extend(values["data"], 32)
    raw = chain(b, block, f"npu{n}_raw_words", {**values, "data": data}, rst=reset)
    w, name = params.word_bits, f"npu{n}_map_held"
    held = {"valid": b.wire(f"{name}_valid"), "ready": b.wire(f"{name}_ready"), "data": b.wire(name, w + 1)}
    b.instance(
        library.get(fifo, library, w + 1, MAP_HELD),
        f"{name}_words",
        rst=reset,
        in_valid=engine["to_host_valid"],
        in_ready=engine["to_host_ready"],
        in_data=Cat(engine["to_host_last"], engine["to_host_data"]),
        room=b.wire(f"{name}_room_unused"),
        **{f"out_{k}": signal for k, signal in held.items()},
    )
    words = {**held, "data": bits(held["data"], 0, w), "last": bits(held["data"], w, 1)}
    return [raw, chain(b, library.get(gearbox, w, stream), f"npu{n}_map_words", words, rst=reset)]

"""NPU: one subsystem of the specification (spec B, blocks), which computes a network layer by layer.

    host words -+
                +-> sequencer -> convolver -> results -> gearbox -> pool sequencer -> pool unit -> gearbox -+-> ring words
    ring words -+                                `-> raw values to the host                                 +-> map words to the host

The layers are data: every stage keeps its own place in its table of layers. ``rst`` is also the engine's restart.
"""

from veriloggen import Cat

from .convolver import convolver
from .design import Npu
from .gearbox import chain, gearbox
from .memory import Library, LoadBus
from .pool import SIDE, pool_unit
from .results import results
from .rtl import Block, Signal, bits, width
from .sequencer import Kind, sequencer


def npu(library: Library, params: Npu) -> Block:
    """The NPU with ``params``."""
    b = Block("npu")
    bus = LoadBus.ports(b, library.stream_bits, [m for m in params.memories() if m.name != "network"])
    run = b.input("run")
    last_layer, last_pool_layer = b.input("last_layer", 8), b.input("last_pool_layer", 8)
    streams = {}
    for name in ("host", "ring"):
        streams[name] = (b.input(f"{name}_valid"), b.output(f"{name}_ready"), b.input(f"{name}_data", params.kfp))

    # # #

    restart = b.wire("restart", 1, b.rst | ~run)
    conv = _wires(
        b,
        library.get(sequencer, library, params, Kind(pool=False)),
        "conv_sequencer",
        restart,
        bus,
        last_layer=last_layer,
        **{f"{n}_{k}": s for n, triple in streams.items() for k, s in zip(("valid", "ready", "data"), triple)},
    )
    array = _wires(
        b,
        library.get(convolver, library, params),
        "convolver",
        restart,
        bus,
        beat=conv["beat"],
        first=conv["first"],
        last=conv["last"],
        kernel_row=conv["kernel_row"],
        offset=conv["offset"],
        features=conv["word"],
    )
    raw_ready, bits_ready = b.input("raw_ready"), b.wire("bits_ready")
    out = _wires(
        b,
        library.get(results, library, params),
        "results_unit",
        restart,
        bus,
        last_layer=last_layer,
        taken=conv["beat"] & conv["last"],
        result_valid=array["result_valid"],
        results=array["results"],
        result_offset=array["result_offset"],
        raw_ready=raw_ready,
        bits_ready=bits_ready,
    )
    b.m.variable["conv_sequencer_room"].assign(out["room"])
    for name in ("valid", "data", "last"):
        b.output(f"raw_{name}", width(out[f"raw_{name}"]), out[f"raw_{name}"])
    packed = chain(
        b,
        library.get(gearbox, params.ol, params.pfp),
        "to_pool",
        {"valid": out["bits_valid"], "ready": bits_ready, "data": out["bits_data"], "last": out["bits_last"]},
        unused=("last",),
        rst=restart,
    )
    pool = _wires(
        b,
        library.get(sequencer, library, params, Kind(pool=True)),
        "pool_sequencer",
        restart,
        bus,
        last_layer=last_pool_layer,
        in_valid=packed["valid"],
        in_ready=packed["ready"],
        in_data=packed["data"],
    )
    pooled_ready = b.wire("pooled_ready")
    pooled = _wires(
        b,
        library.get(pool_unit, library, params),
        "pool_unit",
        restart,
        None,
        out_ready=pooled_ready,
        beat=pool["beat"],
        first=pool["first"],
        last=pool["last"],
        tuple_last=pool["tuple_last"],
        map_last=pool["map_last"],
        to_host=pool["to_host"],
        index=pool["index"],
        word=pool["word"],
    )
    b.m.variable["pool_sequencer_room"].assign(pooled["room"])
    side = bits(pooled["out_data"], params.pfp, SIDE)
    words = chain(
        b,
        library.get(gearbox, params.pfp, params.kfp, 2),
        "to_ring",
        {
            "valid": pooled["out_valid"],
            "ready": pooled_ready,
            "data": bits(pooled["out_data"], 0, params.pfp),
            "last": bits(pooled["out_data"], params.pfp, 1),
            "side": bits(pooled["out_data"], params.pfp + 1, 2),
        },
        rst=restart,
    )
    del side
    ring_out_ready, map_ready = b.input("ring_out_ready"), b.input("map_ready")
    to_host = b.wire("to_host", 1, bits(words["side"], 1, 1))
    b.output("ring_out_valid", 1, words["valid"] & ~to_host)
    b.output("ring_out_data", params.kfp, words["data"])
    b.output("map_valid", 1, words["valid"] & to_host)
    b.output("map_data", params.kfp, words["data"])
    b.output("map_last", 1, words["last"] & bits(words["side"], 0, 1))
    words["ready"].assign((to_host & map_ready) | (~to_host & ring_out_ready))
    for name in ("beat", "wait_input", "wait_room", "wait_table"):
        b.output(name, 1, conv[name])
    b.output(
        "state",
        21,
        Cat(
            streams["ring"][0],
            streams["host"][0],
            conv["wait_room"],
            conv["wait_input"],
            run,
            pool["layer"],
            conv["layer"],
        ),
    )
    return b


def _wires(
    b: Block, block: Block, name: str, restart: Signal, bus: LoadBus | None, **ports: Signal
) -> dict[str, Signal]:
    """Instance of ``block``; its ports not given become wires ``name_port``, all of which are returned."""
    known = block.m.io_variable
    made = {**ports, **(bus.to(block) if bus else {})}
    for port, variable in known.items():
        if port not in made and port not in ("clk", "rst"):
            made[port] = b.wire(f"{name}_{port}", width(variable))
    b.instance(block, name, **{**made, "rst": restart})
    return made

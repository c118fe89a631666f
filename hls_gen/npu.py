"""NPU: one subsystem of the specification (spec B, blocks), which computes a network layer by layer.

    host words -+
                +-> sequencer -> convolver -> results -> gearbox -> pool -> gearbox -+-> ring words
    ring words -+                                `-> raw values to host                     +-> map words

The layers are data: every stage keeps its own place in its table of layers. ``rst`` is also the engine's restart.
"""

from veriloggen import Cat

from .binariser import binariser
from .convolver import convolver
from .design import Npu
from .gearbox import chain, gearbox
from .memory import Library, LoadBus
from .pool import pool_unit
from .pool_integer import pool_unit_integer
from .results import results
from .rtl import Block, Signal, bits, bits_for, width
from .sequencer import Kind, sequencer


def npu(library: Library, params: Npu) -> Block:
    """The NPU with ``params``."""
    b = Block("npu")
    bus = LoadBus.ports(b, library.stream_bits, [m for m in params.memories() if m.name != "network"])
    run = b.input("run")
    last_layer, last_pool_layer = b.input("last_layer", 8), b.input("last_pool_layer", 8)
    streams = {}
    for name, w in (("host", params.host_word_bits), ("ring", params.word_bits)):
        streams[name] = (b.input(f"{name}_valid"), b.output(f"{name}_ready"), b.input(f"{name}_data", w))

    # # #

    binary = params.kind == "binary"
    restart = b.wire("restart", 1, b.rst | ~run)
    drain_slot = b.wire("drain_slot", params.slot_bits) if params.accumulators > 1 else None
    conv_room, pool_room = b.wire("conv_room"), b.wire("pool_room")
    waiting = Cat(streams["ring"][0], streams["host"][0])  # words of a map, of a frame, for the STATE register
    if params.binariser_bits:
        streams["host"] = _binarised(b, library, params, streams["host"], restart, bus)
    conv = _wires(
        b,
        library.get(sequencer, library, params, Kind(pool=False)),
        "conv_sequencer",
        restart,
        bus,
        last_layer=last_layer,
        room=conv_room,
        **({"weights_there": b.input("weights_there")} if params.stream_weights else {}),
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
        features=conv["word"],
        **({"slot": conv["slot"], "drain_slot": drain_slot} if drain_slot is not None else {}),
        **({"offset": conv["offset"]} if binary else {}),
    )
    raw_ready, features_ready = b.input("raw_ready"), b.wire("features_ready")
    out = _wires(
        b,
        library.get(results, library, params),
        "results_unit",
        restart,
        bus,
        last_layer=last_layer,
        taken=conv["beat"] & conv["last" if drain_slot is None else "first"],
        **({"drain_slot": drain_slot} if drain_slot is not None else {}),
        result_valid=array["result_valid"],
        results=array["results"],
        raw_ready=raw_ready,
        features_ready=features_ready,
        **({"result_offset": array["result_offset"]} if binary else {}),
    )
    conv_room.assign(out["room"])
    for name in ("valid", "data", "last"):
        b.output(f"raw_{name}", width(out[f"raw_{name}"]), out[f"raw_{name}"])
    packed = chain(
        b,
        library.get(gearbox, params.ol * params.feature_bits, params.pool_word_bits),
        "to_pool",
        {**{key: out[f"features_{key}"] for key in ("valid", "data", "last")}, "ready": features_ready},
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
        room=pool_room,
        in_valid=packed["valid"],
        in_ready=packed["ready"],
        in_data=packed["data"],
    )
    pooled_ready = b.wire("pooled_ready")
    pooled = _wires(
        b,
        library.get(pool_unit if binary else pool_unit_integer, library, params),
        "pool_unit",
        restart,
        None if binary else bus,
        out_ready=pooled_ready,
        **{
            name: pool[name] for name in ("beat", "first", "last", "tuple_last", "map_last", "to_host", "index", "word")
        },
        **({} if binary else {name: pool[name] for name in ("average", "taps")}),
    )
    pool_room.assign(pooled["room"])
    words = chain(
        b,
        library.get(gearbox, params.pool_word_bits, params.word_bits, 2),
        "to_ring",
        {
            "valid": pooled["out_valid"],
            "ready": pooled_ready,
            "data": bits(pooled["out_data"], 0, params.pool_word_bits),
            "last": bits(pooled["out_data"], params.pool_word_bits, 1),
            "side": bits(pooled["out_data"], params.pool_word_bits + 1, 2),
        },
        rst=restart,
    )
    ring_out_ready, map_ready = b.input("ring_out_ready"), b.input("map_ready")
    to_host = b.wire("to_host", 1, bits(words["side"], 1, 1))
    b.output("ring_out_valid", 1, words["valid"] & ~to_host)
    b.output("ring_out_data", params.word_bits, words["data"])
    b.output("map_valid", 1, words["valid"] & to_host)
    b.output("map_data", params.word_bits, words["data"])
    b.output("map_last", 1, words["last"] & bits(words["side"], 0, 1))
    words["ready"].assign((to_host & map_ready) | (~to_host & ring_out_ready))
    for name in (*params.pulses, *(("weights_begun", "weights_done") if params.stream_weights else ())):
        b.output(name, 1, conv[name])
    b.output(
        "state",
        params.state_bits,
        Cat(
            *([conv["wait_weights"]] if params.stream_weights else []),
            waiting,
            conv["wait_room"],
            conv["wait_input"],
            run,
            pool["layer"],
            conv["layer"],
        ),
    )
    return b


def _binarised(
    b: Block, library: Library, params: Npu, host: tuple[Signal, ...], restart: Signal, bus: LoadBus
) -> tuple[Signal, ...]:
    """The (valid, ready, data) of a frame's words behind the binariser."""
    out = (b.wire("binary_valid"), b.wire("binary_ready"), b.wire("binary_data", params.kfp))
    names = ("in_valid", "in_ready", "in_data", "out_valid", "out_ready", "out_data")
    last = b.input("binariser_last", bits_for(params.binariser_rows - 1))
    ports = dict(zip(names, (*host, *out)))
    _wires(b, library.get(binariser, library, params), "binariser", restart, bus, last_row=last, **ports)
    return out


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

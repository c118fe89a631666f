"""NPU: one subsystem of the specification (spec B, blocks), which computes its layers of a network one by one.

    host words -(binariser)-+
    ring words --ping-pong--+-> sequencer -> convolver -> results -> gearbox -> pool -> gearbox -+-> ring words
    loop words --map store--+                                `-> raw values to host              +-> loop words
         ^-----------------------------------------------------------------------------------<---+-> map words to host

The layers are data: every stage keeps its own place in its table of layers. ``rst`` is also the engine's restart.
Without a pool unit what leaves the results goes straight to the last gearbox.

Between NPUs of different kind ring words are bits (hls_gen/compiler/passes.py): of an integer NPU the signs of its
features, in front of the gearbox; to an integer NPU +1 or -1, behind the ping-pong pair.
"""

from veriloggen import Cat, Repeat

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.array.convolver import convolver
from bitloom.hls_gen.rtl.pool.pool import pool_unit, side_bits
from bitloom.hls_gen.rtl.pool.pool_integer import pool_unit_integer
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, bits, const, eq, width
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.gearbox import chain, gearbox
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.ping_pong import ping_pong
from bitloom.hls_gen.rtl.results.results import results
from bitloom.hls_gen.rtl.results.step import join
from bitloom.hls_gen.rtl.sequencer.sequencer import SequencerSpec, sequencer

from .binariser import binariser

Stream = dict[str, Signal]
"""valid, ready, data, and perhaps last and side."""


def npu(library: Library, params: Npu, ring_bits: int, from_bits: bool = False, to_bits: bool = False) -> Block:
    """The NPU with ``params``. ring_bits : width of a word of outlet "ring".  from_bits, to_bits : of an integer NPU:
    inlet, outlet "ring" has bits."""
    name = library.name("npu", params)
    if "ring" in params.outlets and ring_bits != params.word_bits:
        name += f"_to_{ring_bits}"
    b = Block(name + "_from_bits" * from_bits + "_to_bits" * to_bits)
    bus = LoadBus.ports(b, library.stream_bits, [m for m in params.memories() if m.name != "network"])
    run = b.input("run")
    settings = {name: b.input(name, w) for name, w in params.settings}

    # # #

    restart = b.wire("restart", 1, b.rst | ~run)
    loop = _stream(b, "loop_in", params.word_bits) if "loop" in params.inlets else None
    inlets = _inlets(b, library, params, restart, bus, settings, loop, from_bits)
    conv, out = _engine(b, library, params, restart, bus, settings, inlets)
    features = {**{k: out[f"features_{k}"] for k in ("valid", "ready", "data", "last")}}
    pool_layer = const(0, 8)
    if params.pool:
        pool, maps = _pooled(b, library, params, restart, bus, settings["last_pool_layer"], features)
        pool_layer = pool["layer"]
    else:
        maps = {**features, "side": out["features_side"]}
    signs = _signs(b, maps["data"], params) if to_bits else None
    waiting = _outlets(b, library, params, restart, maps, signs, ring_bits, loop)
    for name in (*params.pulses, *(("weights_begun", "weights_done") if params.stream_weights else ())):
        b.output(name, 1, conv[name])
    there = [inlets[n]["valid"] if n in inlets else const(0, 1) for n in ("host", "ring", "loop")]
    state = [run, conv["wait_input"], conv["wait_room"], *there, *waiting, conv["inlet"]]
    if params.stream_weights:
        state.append(conv["wait_weights"])
    b.output("state", params.state_bits, Cat(*reversed(state), pool_layer, conv["layer"]))
    return b


def _stream(b: Block, name: str, w: int) -> Stream:
    """Wires of a stream."""
    return {"valid": b.wire(f"{name}_valid"), "ready": b.wire(f"{name}_ready"), "data": b.wire(f"{name}_data", w)}


def _inlets(
    b: Block,
    library: Library,
    params: Npu,
    restart: Signal,
    bus: LoadBus,
    settings: dict[str, Signal],
    loop: Stream | None,
    from_bits: bool,
) -> dict[str, Stream]:
    """What the sequencer may take, by inlet."""
    found: dict[str, Stream] = {}
    for name in params.inlets:
        if name == "loop":
            assert loop is not None
            found[name] = loop
            continue
        w = params.host_word_bits if name == "host" else params.kfp if from_bits else params.word_bits
        given = {
            "valid": b.input(f"{name}_valid"),
            "ready": b.output(f"{name}_ready"),
            "data": b.input(f"{name}_data", w),
        }
        found[name] = given
        if name == "host" and not params.binariser_bits:
            continue
        if name == "host":
            block, made = library.get(binariser, library, params), _stream(b, "binary", params.word_bits)
            extra = {"last_row": settings["binariser_last"]}
        else:
            block, made = library.get(ping_pong, library, params, w), _stream(b, "chunked", w)
            extra = {"in_last": b.input("ring_last"), "last_chunk": settings["last_chunk"]}
        ports = {**{f"in_{k}": s for k, s in given.items()}, **{f"out_{k}": s for k, s in made.items()}, **extra}
        _wires(b, block, "binariser" if name == "host" else "ping_pong", restart, bus, **ports)
        found[name] = {**made, "data": _features(b, made["data"], params)} if from_bits and name == "ring" else made
    return found


def _features(b: Block, word: Signal, params: Npu) -> Signal:
    """A feature for each bit: +1 where it is 1, else -1."""
    high = params.feature_bits - 1
    lanes = []
    for k in range(params.kfp):
        minus = b.wire(f"minus_{k}", 1, ~bits(word, k, 1))
        lanes.append(Cat(Repeat(minus, high) if high > 1 else minus, const(1, 1)))
    return b.wire("features", params.word_bits, join(lanes))


def _signs(b: Block, word: Signal, params: Npu) -> Signal:
    """A bit for each feature of a word of a map: 1 where it is negative."""
    w = params.feature_bits
    lanes = [bits(word, low, w) for low in range(0, width(word), w)]
    if params.outlets == ("ring",):
        b.wire("magnitudes_unused", len(lanes) * (w - 1), join([bits(lane, 0, w - 1) for lane in lanes]))
    return b.wire("signs", len(lanes), join([bits(lane, w - 1, 1) for lane in lanes]))


def _engine(
    b: Block,
    library: Library,
    params: Npu,
    restart: Signal,
    bus: LoadBus,
    settings: dict[str, Signal],
    inlets: dict[str, Stream],
) -> tuple[dict[str, Signal], dict[str, Signal]]:
    """From words to features and raw values: (ports of the sequencer, of the results unit)."""
    binary = params.engine == "binary"
    drain_slot = b.wire("drain_slot", params.slot_bits) if params.accumulators > 1 else None
    conv_room = b.wire("conv_room")
    conv = _wires(
        b,
        library.get(sequencer, library, SequencerSpec(params, pool=False)),
        "conv_sequencer",
        restart,
        bus,
        last_layer=settings["last_layer"],
        room=conv_room,
        **({"weights_there": b.input("weights_there")} if params.stream_weights else {}),
        **{f"{name}_{k}": signal for name, stream in inlets.items() for k, signal in stream.items()},
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
    raw: dict[str, Signal] = {}
    if "host" in params.outlets:
        raw = {
            "raw_valid": b.output("raw_valid"),
            "raw_ready": b.input("raw_ready"),
            "raw_data": b.output("raw_data", params.ol * params.acc_bits),
            "raw_last": b.output("raw_last"),
        }
    out = _wires(
        b,
        library.get(results, library, params),
        "results_unit",
        restart,
        bus,
        last_layer=settings["last_layer"],
        taken=conv["beat"] & conv["last" if drain_slot is None else "first"],
        **({"drain_slot": drain_slot} if drain_slot is not None else {}),
        result_valid=array["result_valid"],
        results=array["results"],
        **({"result_offset": array["result_offset"]} if binary else {}),
        **raw,
    )
    conv_room.assign(out["room"])
    return conv, out


def _pooled(
    b: Block,
    library: Library,
    params: Npu,
    restart: Signal,
    bus: LoadBus,
    last_pool_layer: Signal,
    features: Stream,
) -> tuple[dict[str, Signal], Stream]:
    """(ports of the pool's sequencer, its words)."""
    binary, pool_room = params.engine == "binary", b.wire("pool_room")
    packed = chain(
        b,
        library.get(gearbox, params.ol * params.feature_bits, params.pool_word_bits),
        "to_pool",
        features,
        unused=("last",),
        rst=restart,
    )
    pool = _wires(
        b,
        library.get(sequencer, library, SequencerSpec(params, pool=True)),
        "pool_sequencer",
        restart,
        bus,
        last_layer=last_pool_layer,
        room=pool_room,
        in_valid=packed["valid"],
        in_ready=packed["ready"],
        in_data=packed["data"],
    )
    names = ["beat", "first", "last", "tuple_last", "map_last", "index", "word"]
    names += ["target"] * (params.target_bits > 0) + ([] if binary else ["average", "taps"])
    pooled = _wires(
        b,
        library.get(pool_unit if binary else pool_unit_integer, library, params),
        "pool_unit",
        restart,
        None if binary else bus,
        **{name: pool[name] for name in names},
    )
    pool_room.assign(pooled["room"])
    word = params.pool_word_bits
    return pool, {
        "valid": pooled["out_valid"],
        "ready": pooled["out_ready"],
        "data": bits(pooled["out_data"], 0, word),
        "last": bits(pooled["out_data"], word, 1),
        "side": bits(pooled["out_data"], word + 1, side_bits(params) - 1),
    }


def _outlets(
    b: Block,
    library: Library,
    params: Npu,
    restart: Signal,
    maps: Stream,
    signs: Signal | None,
    ring_bits: int,
    loop: Stream | None,
) -> list[Signal]:
    """Map words to their outlets, in the words of who takes them; returns where a word waits: [ring, loop, host].

    A word's side bits: last of its map, outlet. Outlets with words of the same width share a gearbox. signs : what
    goes to outlet "ring" in place of the features.
    """
    groups: dict[tuple[int, bool], list[str]] = {}
    for name in params.outlets:
        w = ring_bits if name == "ring" else params.word_bits
        groups.setdefault((w, name == "ring" and signs is not None), []).append(name)
    map_last = bits(maps["side"], 0, 1)
    target = bits(maps["side"], 1, params.target_bits) if params.target_bits else None
    goes = lambda target, name: eq(target, params.outlets.index(name))  # noqa: E731
    ready: list[Signal] = []
    waits = {name: const(0, 1) for name in ("ring", "loop", "host")}
    for (w, of_signs), names in groups.items():
        given, joined = {**maps, **({"data": signs} if of_signs else {})}, "_".join(names)
        if len(groups) > 1:
            mine, taken = (
                b.wire(f"for_{joined}", 1, any_of(*[goes(target, n) for n in names])),
                b.wire(f"takes_{joined}"),
            )
            given |= {"valid": b.wire(f"given_{joined}", 1, maps["valid"] & mine), "ready": taken}
            ready.append(mine & taken)
        ends = [map_last] * (names != ["loop"])
        side = [*ends, *([target] * (len(names) > 1))]
        given["side"] = join(side) if side else None
        block = library.get(gearbox, width(given["data"]), w, sum(width(s) for s in side))
        words = chain(b, block, f"words_to_{joined}", given, unused=() if ends else ("last",), rst=restart)
        accepted = []
        for name in names:
            valid, last = words["valid"], None
            if len(names) > 1:
                chosen = b.wire(f"chooses_{name}", 1, goes(bits(words["side"], 1, params.target_bits), name))
                valid = b.wire(f"gives_{name}", 1, valid & chosen)
            if ends:
                last = words["last"] & bits(words["side"], 0, 1)
            taker = _taker(b, library, params, restart, name, valid, last, words["data"], loop)
            waits[name] = valid & ~taker
            accepted.append(chosen & taker if len(names) > 1 else taker)
        words["ready"].assign(any_of(*accepted))
    if len(groups) > 1:
        maps["ready"].assign(any_of(*ready))
    return [b.wire(f"waits_{name}", 1, signal) for name, signal in waits.items()]


def _taker(
    b: Block,
    library: Library,
    params: Npu,
    restart: Signal,
    name: str,
    valid: Signal,
    last: Signal | None,
    data: Signal,
    loop: Stream | None,
) -> Signal:
    """Who takes the words of outlet ``name``; returns its ready."""
    if name != "loop":
        b.output(f"to_{name}_valid", 1, valid)
        b.output(f"to_{name}_data", width(data), data)
        b.output(f"to_{name}_last", 1, last)
        return b.input(f"to_{name}_ready")
    assert loop is not None
    ready = b.wire("store_ready")
    b.instance(
        library.get(fifo, library, params.word_bits, params.map_words),
        "map_store",
        rst=restart,
        in_valid=valid,
        in_ready=ready,
        in_data=data,
        room=b.wire("store_room_unused"),
        **{f"out_{k}": signal for k, signal in loop.items()},
    )
    return ready


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

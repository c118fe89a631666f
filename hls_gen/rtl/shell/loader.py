"""Loader: takes the stream program apart (docs/reference/device.md, "Packets"; spec B8).

    s_axis --> header --> check --> LOAD:  load bus to the memories of the NPUs
                                `-> WEIGHTS: the same to the kernel memory, while the NPU computes (streamed_weights.py)
                                `-> FRAME: words[KFP] to the first NPU, a flag to the output
                                `-> malformed: error, then everything is dropped until reset

Order of arrival is kept: a LOAD waits until no frame is in flight, then holds the NPUs in reset (``run`` 0); a FRAME
sets ``run``.
"""

from dataclasses import dataclass

from veriloggen import Cat

from bitloom.hls_gen.design import headers, timing
from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.npu import MEMORY_BITS, TAIL_BITS, Design
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    all_of,
    any_of,
    bits,
    choose,
    const,
    eq,
    nonzero,
    resize,
    sub,
)
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.gearbox import collector, divider
from bitloom.hls_gen.rtl.primitives.memory import Library, split

from .streamed_weights import unfinished_layers

STATES = ("HEADER", "RANGE", "JUDGE", "LOAD", "FRAME", "DRAIN")


@dataclass(frozen=True)
class LoadPort:
    """Widths of the load bus: of a row's bank in the loader, of that on the bus (0: no port) and of a row's number."""

    bank_bits: int
    bus_bank_bits: int
    row_bits: int

    @classmethod
    def of(cls, design: Design) -> "LoadPort":
        """Wide enough for every memory of the design; the network rows stay in the loader."""
        memories = [m for npu in design.npus for m in npu.memories()]
        banks = [(m.name, -(-m.width // design.stream_bits)) for m in memories]
        outside = max(n for name, n in banks if name != "network")
        bus_bank_bits = bits_for(outside - 1) if outside > 1 else 0
        return cls(bits_for(max(n for _, n in banks) - 1), bus_bank_bits, max(bits_for(m.depth - 1) for m in memories))


def loader(library: Library, design: Design) -> Block:
    """The loader of ``design``."""
    b = Block("loader")
    width, npu, port = design.stream_bits, design.npus[0], LoadPort.of(design)
    valid, ready = b.input("s_axis_tvalid"), b.output("s_axis_tready")
    data, tlast = b.input("s_axis_tdata", width), b.input("s_axis_tlast")
    start, frame_left = b.input("start"), b.input("frame_left")

    # # #

    state = b.reg("state", 3)
    at = {name: b.wire(f"in_{name.lower()}", 1, eq(state, k)) for k, name in enumerate(STATES)}
    take = b.wire("take", 1, valid & ready)
    early = b.reg("early_last")  # tlast came before the end of a packet: a cycle in which nothing is taken
    given = b.wire("given", 1, valid & ~early)  # what is taken wherever every word is
    header, header_done = _header(b, at, given, data, width)
    final, gearbox_ready = b.wire("payload_final"), b.wire("gearbox_ready")
    error, code = b.output_reg("error"), b.output_reg("error_code", 4)
    fault = b.wire("fault")
    fault_code = b.wire("fault_code", 4)

    # LOAD payload
    kind, memory, npu_number = bits(header[0], 0, 4), bits(header[0], 8, 8), bits(header[0], 16, 8)
    is_weights = b.wire("is_weights", 1, eq(kind, headers.WEIGHTS)) if npu.stream_weights else None
    if is_weights is not None:
        memory = b.wire("target_memory", 8, choose(is_weights, npu.memory("kernels").id, memory, 8))
    depth, banks = _memory_shape(b, design, npu_number, memory, port)
    bank, row = b.reg("bank", port.bank_bits), b.reg("row", port.row_bits)
    rows_left, beats_left = (
        b.reg("rows_left", port.row_bits + 1),
        b.reg("beats_left", dict(npu.network_fields)["frame_beats"]),
    )
    bank_last = b.wire("bank_last", 1, eq(bank, banks))
    load = b.wire("load", 1, at["LOAD"] & given)
    b.on(load, (bank, choose(bank_last, 0, add(bank, 1, port.bank_bits), port.bank_bits)))
    b.on(load & bank_last, (row, add(row, 1, port.row_bits)), (rows_left, sub(rows_left, 1, port.row_bits + 1)))
    for n in range(len(design.npus)):
        mine = load if len(design.npus) == 1 else load & eq(npu_number, n)
        b.on(None, (b.output_reg(f"npu{n}_load_valid"), mine))
    for name, w, value in (
        ("memory", MEMORY_BITS, memory),
        *([("bank", port.bus_bank_bits, bank)] if port.bus_bank_bits else []),
        ("row", port.row_bits, row),
        ("data", width, data),
    ):
        b.on(None, (b.output_reg(f"load_{name}", w, init=None), value))
    payload = {"load": load, "memory": memory, "bank": bank, "bank_last": bank_last, "data": data}
    rows = [_network(b, design, n, npu_number, **payload) for n in range(len(design.npus))]
    network, loaded = rows[0][0], b.output("loaded", 1, all_of(*[loaded for _, loaded in rows]))

    # judgement: one cycle for sums, one for the verdict
    end_ok, whole = b.reg("end_ok", init=None), b.reg("header_ok", init=None)
    frame_ok = b.reg("frame_ok", init=None)
    end = b.wire("end_row", 33, resize(header[1], 33) + resize(header[2], 33))
    b.on(
        None,
        (end_ok, all_of(nonzero(header[2]), end <= resize(depth, 33))),
        (whole, eq(bits(header[0], 24, 8), headers.MAGIC) & eq(header[3], ~(header[0] ^ header[1] ^ header[2]))),
        (frame_ok, eq(header[2], network["frame_words"])),
    )
    is_load, is_frame = b.reg("is_load", init=None), b.reg("is_frame", init=None)
    other_npu, no_memory = b.reg("other_npu", init=None), b.reg("no_memory", init=None)
    b.on(
        None,
        (is_load, eq(kind, headers.LOAD)),
        (is_frame, eq(kind, headers.FRAME)),
        (other_npu, npu_number > const(len(design.npus) - 1, 8)),
        (no_memory, eq(depth, 0)),
    )
    rows = is_load if is_weights is None else is_load | is_weights
    needs_network = is_frame if is_weights is None else is_frame | is_weights
    rules = [
        (~whole, headers.BAD_HEADER),
        (~any_of(is_load, is_frame, *([] if is_weights is None else [is_weights])), headers.BAD_KIND),
        (other_npu, headers.BAD_NPU),
        (is_load & no_memory, headers.BAD_MEMORY),
        (rows & ~end_ok, headers.BAD_RANGE),
        (needs_network & ~loaded, headers.NOT_LOADED),
        (is_frame & ~frame_ok, headers.BAD_FRAME),
    ]
    verdict: Signal = const(0, 4)
    for broken, number in reversed(rules):
        verdict = choose(broken, number, verdict, 4)
    verdict = b.wire("verdict", 4, verdict)
    passed = b.wire("passed", 1, eq(verdict, 0))  # nothing is taken while judging, so no other fault can come
    b.on(None, (early, all_of(take, tlast, ~final, ~at["DRAIN"])))
    fault_code.assign(choose(at["JUDGE"], verdict, choose(early, headers.TRUNCATED, 0, 4), 4))
    fault.assign(nonzero(fault_code))

    # frames in flight
    flight_bits = bits_for(timing.FRAMES_IN_FLIGHT + 2)
    in_flight = b.reg("in_flight", flight_bits)
    idle = b.wire("no_frame", 1, eq(in_flight, 0))
    flag_ready = b.wire("flag_ready")
    accept_load = b.wire("accept_load", 1, all_of(at["JUDGE"], passed, is_load, idle))
    accept_frame = b.wire("accept_frame", 1, all_of(at["JUDGE"], passed, is_frame, start, flag_ready))
    b.on(accept_frame & ~frame_left, (in_flight, add(in_flight, 1, flight_bits)))
    b.on(~accept_frame & frame_left, (in_flight, sub(in_flight, 1, flight_bits)))
    flag_room = b.wire("flag_room_unused")
    b.instance(
        library.get(fifo, library, 1, timing.FRAMES_IN_FLIGHT),
        "last_flags",
        in_valid=accept_frame,
        in_ready=flag_ready,
        in_data=bits(header[0], 4, 1),
        out_valid=b.output("flag_valid"),
        out_ready=b.input("flag_ready_out"),
        out_data=b.output("flag_data"),
        room=flag_room,
    )
    run = b.output_reg("run")
    b.on(
        accept_load,
        (run, 0),
        (bank, 0),
        (row, bits(header[1], 0, port.row_bits)),
        (rows_left, bits(header[2], 0, port.row_bits + 1)),
    )
    b.on(accept_frame, (run, 1), (beats_left, network["frame_beats"]))

    accept_weights = None
    if is_weights is not None:
        completes = all_of(load, bank_last, eq(rows_left, 1), is_weights, bits(header[0], 4, 1))
        room = unfinished_layers(b, ahead=bits(header[0], 8, 8), completes=completes, restart=accept_load)
        accept_weights = b.wire("accept_weights", 1, all_of(at["JUDGE"], passed, is_weights, room))
        b.on(
            accept_weights,
            (bank, 0),
            (row, bits(header[1], 0, port.row_bits)),
            (rows_left, bits(header[2], 0, port.row_bits + 1)),
        )

    # FRAME payload
    frame_take = b.wire("frame_take", 1, all_of(at["FRAME"], given, gearbox_ready))
    b.on(frame_take, (beats_left, sub(beats_left, 1, 24)))
    beat_last = b.wire("beat_last", 1, eq(beats_left, 1))
    _frame_words(
        b,
        library,
        npu.host_word_bits,
        width,
        at["FRAME"] & given,
        gearbox_ready,
        data,
        beat_last,
        network.get("frame_tail"),
    )

    final.assign(any_of(at["LOAD"] & bank_last & eq(rows_left, 1), at["FRAME"] & beat_last))
    can_take = b.wire("can_take", 1, any_of(at["HEADER"], at["LOAD"], at["FRAME"] & gearbox_ready, at["DRAIN"]))
    ready.assign(can_take & ~early)
    number = {name: k for k, name in enumerate(STATES)}
    b.on(header_done, (state, number["RANGE"]))
    b.on(at["RANGE"], (state, number["JUDGE"]))
    b.on(accept_load, (state, number["LOAD"]))
    if accept_weights is not None:
        b.on(accept_weights, (state, number["LOAD"]))
    b.on(accept_frame, (state, number["FRAME"]))
    b.on(take & final, (state, number["HEADER"]))
    b.on(fault, (state, number["DRAIN"]), (error, 1), (code, fault_code), (run, 0))
    for k, name in enumerate(("header", "address", "length")):
        b.output(f"error_{name}", 32, choose(error, header[k], 0, 32))  # in DRAIN the header stays
    b.output("idle", 1, all_of(idle, at["HEADER"]))
    b.output("computing", 1, ~idle)
    b.output("loader_state", 3, state)
    b.output("word_taken", 1, take)
    return b


def _header(b: Block, at: dict[str, Signal], take: Signal, data: Signal, width: int) -> tuple[list[Signal], Signal]:
    """The four header words, and the pulse that says that all are there."""
    per_beat = width // 32
    beats = headers.HEADER_WORDS // per_beat
    place = b.reg("header_place", bits_for(beats - 1))
    words = []
    here = b.wire("header_take", 1, at["HEADER"] & take)
    for k in range(headers.HEADER_WORDS):
        word = b.reg(f"header_{k}", 32)
        b.on(here & eq(place, k // per_beat), (word, bits(data, 32 * (k % per_beat), 32)))
        words.append(word)
    b.on(here, (place, add(place, 1, bits_for(beats - 1))))  # beats is a power of two: wraps
    return words, b.wire("header_done", 1, here & eq(place, beats - 1))


def _memory_shape(
    b: Block, design: Design, npu_number: Signal, memory: Signal, port: LoadPort
) -> tuple[Signal, Signal]:
    """(depth, banks - 1) of the memory with this id; depth 0 if there is none. Registers: word 0 of a header has stood
    for a cycle when the header is complete."""
    depth_bits = port.row_bits + 1
    depths, last_banks = [], []  # a term each memory, of which at most one is not 0
    for n, npu in enumerate(design.npus):
        for m in npu.memories():
            hit = b.wire(f"npu{n}_is_{m.name}", 1, eq(memory, m.id) & eq(npu_number, n))
            depths.append(choose(hit, m.depth, 0, depth_bits))
            last_banks.append(choose(hit, -(-m.width // design.stream_bits) - 1, 0, port.bank_bits))
    depth, banks = any_of(*depths), any_of(*last_banks)
    shape = b.reg("memory_depth", depth_bits, init=None), b.reg("memory_banks", port.bank_bits, init=None)
    b.on(None, (shape[0], depth), (shape[1], banks))
    return shape


def _network(
    b: Block,
    design: Design,
    n: int,
    npu_number: Signal,
    *,
    load: Signal,
    memory: Signal,
    bank: Signal,
    bank_last: Signal,
    data: Signal,
) -> tuple[dict[str, Signal], Signal]:
    """The network row of NPU ``n``, in registers, and whether it was loaded; what the NPU looks at as ports."""
    npu, width = design.npus[n], design.stream_bits
    m = npu.memory("network")
    mine = b.wire(f"npu{n}_network_load", 1, all_of(load, eq(memory, m.id), eq(npu_number, n)))
    parts = []
    for i, low in enumerate(range(0, m.width, width)):
        w = min(width, m.width - low)
        part = b.reg(f"npu{n}_network_{i}", w)
        b.on(mine & eq(bank, i), (part, bits(data, 0, w)))
        parts.append(part)
    loaded = b.reg(f"npu{n}_is_loaded")
    b.on(mine & bank_last, (loaded, 1))
    # where a word takes several stream words there is no tail
    fields = [
        (name if name != "frame_tail" or npu.host_word_bits <= width else f"{name}_unused", w) for name, w in m.fields
    ]
    row = split(b, b.wire(f"npu{n}_network_row", m.width, Cat(*reversed(parts))), fields, f"npu{n}_network_")
    for name, w in npu.settings:
        b.output(f"npu{n}_{name}", w, row[name])
    return row, loaded


def _frame_words(b, library, word, width, valid, ready, data, last, tail) -> None:
    """Stream words of a frame to words of KFP bits, on the ports ``words_*``."""
    pieces, together = gear(word, width)  # how the host put words into stream words is undone here
    if word <= width:
        block = library.get(divider, width, word, pieces, tail_bits=TAIL_BITS)
        extra = {"in_tail": tail}
    else:
        block, extra = library.get(collector, width, word, together), {}
    unused = b.wire("words_last_unused")
    b.instance(
        block,
        "frame_gearbox",
        in_valid=valid,
        in_ready=ready,
        in_data=data,
        in_last=last,
        out_valid=b.output("words_valid"),
        out_ready=b.input("words_ready"),
        out_data=b.output("words_data", word),
        out_last=unused,
        **extra,
    )

"""Sequencer: tuple memory, tables and the order of work (spec B9, B10, B13).  Golden twin: golden/schedule.

    words in --> tuple memory (ring) ---------------------> word, a cycle after its beat
                    ^ address
    layer rows --> tap source <-- flags, olds, jumps
                    | one tap a cycle
                   issuer --> beat (first, last, kernel row, ...)

Order ``output`` (B9): for each window, each kernel group, each valid tap, each word of its tuple. One beat a cycle;
the next window, layer or frame starts in the cycle after the last beat of this one, if its words are there and there
is room.

The ring holds words of several layers at once: a layer's tuples follow those of the layer before, so that words for
the next layer come in while this one is computed. Tables hold addresses relative to the first word of the layer.

A tap's flags: ``last`` tap of its window; ``new``: the next tuple to arrive (else ``old``: address from its table);
``skip``: a tuple that arrives now and is read later, no beat (raster order); ``jump``: the next tap's kernel row
comes from its table. With ``direct`` there are no tables: every tap is new and a window ends after a fixed number of
them (dense layers).

The writer and the reader meet in two counts: ``arrived`` (words written and not yet claimed by a new tap) and
``free`` (words that may be overwritten). A tuple is given back when the reader arrives at the new tuple ``hold``
further on (B6).
"""

from dataclasses import dataclass

from .design import COUNT_BITS, GROUP_BITS, MAP_BITS, TAP_BITS, WINDOW_BITS, Memory, Npu
from .memory import Library, LoadBus, ram
from .rtl import Block, Signal, add, all_of, any_of, bits, bits_for, choose, const, eq, fit, nonzero, sub, width


@dataclass(frozen=True)
class Kind:
    """Which of the two sequencers: the convolution's (kernel groups, kernel rows, two sources) or the pool's."""

    pool: bool

    @property
    def prefix(self) -> str:
        """Prefix of its memories' names."""
        return "pool_" if self.pool else ""

    def memories(self, npu: Npu) -> list[Memory]:
        """Its loadable memories."""
        names = ["inputs", "layers", "flags", "olds"] + ([] if self.pool else ["jumps"])
        return [npu.memory(self.prefix + name) for name in names]

    def width(self, npu: Npu) -> int:
        """Bits of a word."""
        return npu.pool_word_bits if self.pool else npu.word_bits

    def words(self, npu: Npu) -> int:
        """Capacity of the ring."""
        return npu.pool_words if self.pool else npu.tuple_words


def sequencer(library: Library, npu: Npu, kind: Kind) -> Block:
    """The convolution's or the pool's sequencer of ``npu``."""
    b = Block("pool_sequencer" if kind.pool else "conv_sequencer")
    bus = LoadBus.ports(b, library.stream_bits, kind.memories(npu))
    last_layer = b.input("last_layer", 8)
    room = b.input("room")
    ring = bits_for(kind.words(npu) - 1)

    # # #

    writer = _writer(b, library, npu, kind, bus, last_layer)
    tap = _tap_source(b, library, npu, kind, bus, last_layer, ring)
    _issuer(b, library, npu, kind, tap, writer, room, ring)
    return b


def layer_counter(b: Block, name: str, last_layer: Signal, advance: Signal) -> Signal:
    """Number of the layer that comes after the present one; steps on ``advance``, round and round."""
    upcoming = b.reg(name, 8)
    b.on(advance, (upcoming, choose(eq(upcoming, last_layer), 0, add(upcoming, 1, 8), 8)))
    return upcoming


@dataclass(frozen=True)
class Writer:
    """``write`` puts ``word`` into the ring; the issuer drives ``has_free``."""

    write: Signal
    word: Signal
    has_free: Signal


def _writer(b: Block, library: Library, npu: Npu, kind: Kind, bus: LoadBus, last_layer: Signal) -> Writer:
    """Takes the words of layer after layer from its source into the ring while there is free room."""
    w = kind.width(npu)
    memory = npu.memory(f"{kind.prefix}inputs")
    sources = ["in"] if kind.pool else ["host", "ring"]
    ports = {s: (b.input(f"{s}_valid"), b.output(f"{s}_ready"), b.input(f"{s}_data", w)) for s in sources}
    has_free = b.wire("has_free")
    left = b.reg("words_left", MAP_BITS)
    loaded = b.reg("writer_loaded")
    from_ring = None if kind.pool else b.reg("from_ring")
    take = b.wire("write")
    word = b.wire("write_word", w)
    final = b.wire("write_final", 1, take & eq(left, 1))
    advance = b.wire("writer_advance", 1, any_of(~loaded, final))
    upcoming = layer_counter(b, "writer_upcoming", last_layer, advance)
    part = library.loadable(b, memory, bus, fit(upcoming, bits_for(memory.depth - 1)))
    b.on(take, (left, sub(left, 1, MAP_BITS)))
    b.on(advance, (left, part["words"]), (loaded, 1))
    can = b.wire("can_write", 1, loaded & has_free)
    if kind.pool:
        valid, ready, data = ports["in"]
        ready.assign(can)
        take.assign(valid & can)
        word.assign(data)
    else:
        b.on(advance, (from_ring, part["from_ring"]))
        (host_valid, host_ready, host_data), (ring_valid, ring_ready, ring_data) = ports["host"], ports["ring"]
        host_ready.assign(can & ~from_ring)
        ring_ready.assign(can & from_ring)
        take.assign(can & choose(from_ring, ring_valid, host_valid, 1))
        word.assign(choose(from_ring, ring_data, host_data, w))
    return Writer(take, word, has_free)


def _tap_source(
    b: Block, library: Library, npu: Npu, kind: Kind, bus: LoadBus, last_layer: Signal, ring: int
) -> dict[str, Signal]:
    """Runs through the tables, one tap a cycle; returns the tap now at hand and what the next one is made of."""
    reading = npu.memory(f"{kind.prefix}layers")
    widths = dict(reading.fields)
    step = b.wire("step")  # the issuer takes the tap at hand
    have = b.reg("have_tap")
    layer_end = b.wire("layer_end")
    begin = b.wire("begin_layer", 1, any_of(~have, step & layer_end))
    upcoming = layer_counter(b, "layer_upcoming", last_layer, begin)
    b.output("layer", 8, upcoming)
    nxt = library.loadable(b, reading, bus, fit(upcoming, bits_for(reading.depth - 1)))
    keep = [
        name for name, _ in reading.fields if name not in ("flags_base", "old_base", "jump_base", "start_row", "hold")
    ]
    now = {name: b.reg(f"layer_{name}", widths[name], init=None) for name in keep}
    b.on(begin, (have, 1), *[(now[name], nxt[name]) for name in keep])
    move = b.wire("move", 1, any_of(begin, step))

    # the tap at hand: table rows, read a cycle ago
    def table(name: str, pointer_next: Signal) -> dict[str, Signal]:
        return library.loadable(b, npu.memory(kind.prefix + name), bus, pointer_next, read=move)

    flag_next = b.wire("flag_pointer_next", widths["flags_base"])
    old_next = b.wire("old_pointer_next", widths["old_base"])
    flags = table("flags", flag_next)
    old = table("olds", old_next)["word"]
    direct = now["direct"]
    tap_count = b.reg("tap_count", TAP_BITS)
    last = b.wire("tap_last", 1, choose(direct, eq(tap_count, now["window_taps_minus_1"]), flags["last"], 1))
    new = b.wire("tap_new", 1, direct | flags["new"])
    skip = b.wire("tap_skip", 1, ~direct & flags["skip"])
    group_last, first_pass = _groups(b, kind, now, step, last, begin)
    window_end = b.wire("window_end", 1, last & group_last)
    rewind = b.wire("rewind", 1, last & ~group_last)
    window = b.reg("window", WINDOW_BITS)
    layer_end.assign(window_end & eq(window, now["windows_minus_1"]))
    b.on(step, (tap_count, choose(last, 0, add(tap_count, 1, TAP_BITS), TAP_BITS)))
    b.on(step & window_end, (window, add(window, 1, WINDOW_BITS)))
    b.on(begin, (window, 0))

    # pointers; at the end of a window they are saved, at the end of a pass they go back
    def pointer(name: str, w: int, stepped: Signal, start: Signal | None, out: Signal | None = None) -> Signal:
        value, saved = b.reg(name, w), b.reg(f"{name}_saved", w)
        after = b.wire(f"{name}_after", w, choose(rewind, saved, stepped(value), w))
        target = after if start is None else b.wire(f"{name}_target", w, choose(begin, start, after, w))
        if out is not None:
            out.assign(target)
        b.on(step, (value, after))
        b.on(step & window_end, (saved, after))
        if start is not None:
            b.on(begin, (value, start), (saved, start))
        return value

    pointer("flag_pointer", widths["flags_base"], lambda v: add(v, 1, width(v)), nxt["flags_base"], flag_next)
    use_old = b.wire("use_old", 1, ~new)
    pointer("old_pointer", widths["old_base"], lambda v: add(v, use_old, width(v)), nxt["old_base"], old_next)
    tuple_words = b.wire("tuple_words", ring, add(now["words_minus_1"], 1, ring))
    claimed = b.wire("claimed", ring, choose(new, tuple_words, 0, ring))
    new_word = pointer("new_word", ring, lambda v: v + claimed, None)
    layer_word = b.reg("layer_word", ring)  # ring address of the layer's first word
    new_word_after = b.wire("layer_word_next", ring, new_word + claimed)
    b.on(step & layer_end, (layer_word, new_word_after))
    address = b.wire("tap_address", ring, choose(new, new_word, layer_word + old, ring))
    tap = {
        "have": have,
        "step": step,
        "begin": begin,
        "skip": skip,
        "last": last,
        "layer_end": layer_end,
        "address": address,
        "claim": b.wire("tap_claim", 1, new & first_pass),
        "words_minus_1": now["words_minus_1"],
        "tail": now["tail"],
        "tuple_words": tuple_words,
        "next_hold": nxt["hold"],
    }
    if kind.pool:
        tap["to_host"] = now["to_host"]
        if npu.kind == "integer":
            tap["average"] = now["average"]
    else:
        if npu.kind == "binary":
            tap["offset"] = now["tap_offset"]
        tap["row"] = _kernel_rows(b, library, npu, bus, tap, now, nxt, flags["jump"], window_end, rewind, move)
    return tap


def _groups(
    b: Block, kind: Kind, now: dict[str, Signal], step: Signal, last: Signal, begin: Signal
) -> tuple[Signal, Signal]:
    """(is it the last kernel group of this window, is it the first)."""
    if kind.pool:
        return b.wire("group_last", 1, const(1, 1)), b.wire("group_first", 1, const(1, 1))
    group = b.reg("group", GROUP_BITS)
    group_last = b.wire("group_last", 1, eq(group, now["groups_minus_1"]))
    b.on(step & last, (group, choose(group_last, 0, add(group, 1, GROUP_BITS), GROUP_BITS)))
    b.on(begin, (group, 0))
    return group_last, b.wire("group_first", 1, eq(group, 0))


def _kernel_rows(b, library, npu, bus, tap, now, nxt, jump, window_end, rewind, move) -> Signal:
    """Kernel row of the tap at hand: counts up, takes the jump target at a jump mark (spec B10)."""
    w = width(now["kernel_base"])
    step, begin, direct = tap["step"], tap["begin"], now["direct"]
    jump_width = width(nxt["jump_base"])
    row, group_row, start = b.reg("row", w), b.reg("group_row", w), b.reg("start_row", w)
    jumps = b.wire("tap_jump", 1, ~direct & jump)
    pointer, saved = b.reg("jump_pointer", jump_width), b.reg("jump_pointer_saved", jump_width)
    after = b.wire("jump_pointer_after", jump_width, choose(rewind, saved, add(pointer, jumps, jump_width), jump_width))
    pointer_next = b.wire("jump_pointer_next", jump_width, choose(begin, nxt["jump_base"], after, jump_width))
    b.on(step, (pointer, after))
    b.on(step & window_end, (saved, after))
    b.on(begin, (pointer, nxt["jump_base"]), (saved, nxt["jump_base"]))
    target = library.loadable(b, npu.memory("jumps"), bus, pointer_next, read=move)["row"]
    landing = b.wire("landing", w, choose(jumps, target, 0, w))
    next_group_row = b.wire("next_group_row", w, group_row + now["group_rows"])
    onward = b.wire("onward", w, choose(jumps, group_row + target, add(row, tap["words_minus_1"], w) + const(1, w), w))
    walking = ~tap["skip"]
    b.on(step & walking, (row, onward))
    b.on(step & rewind, (row, next_group_row + start), (group_row, next_group_row))
    b.on(step & window_end, (row, now["kernel_base"] + landing), (group_row, now["kernel_base"]), (start, landing))
    b.on(
        begin, (row, nxt["kernel_base"] + nxt["start_row"]), (group_row, nxt["kernel_base"]), (start, nxt["start_row"])
    )
    return row


def _issuer(
    b: Block, library: Library, npu: Npu, kind: Kind, tap: dict[str, Signal], writer: Writer, room: Signal, ring: int
) -> None:
    """Turns the tap at hand into beats, one a word, as words arrive and room allows."""
    count, write = ring + 2, writer.write
    busy = b.reg("busy")
    held = {
        name: b.reg(f"at_{name}", width(tap[name]), init=None)
        for name in ("skip", "claim", "last", "layer_end", "address", "words_minus_1", "tail")
    }
    left = b.reg("left", ring, init=None)
    arrived, free = b.reg("arrived", count), b.reg("free", count, init=kind.words(npu))
    first_tap = b.reg("first_tap", init=None)  # of its pass
    word_last = b.wire("word_last", 1, eq(left, 0))
    negative = bits(arrived, count - 1, 1)
    there = b.wire("there", 1, choose(held["claim"], ~negative & nonzero(arrived), ~negative, 1))
    needs_room = held["last"] if kind.pool else held["last"] & word_last
    clear = b.wire("clear", 1, any_of(room, ~needs_room))
    beat = b.output("beat", 1)
    beat.assign(all_of(busy, ~held["skip"], there, clear))
    done = b.wire("tap_done", 1, all_of(busy, any_of(held["skip"], beat & word_last)))
    tap["step"].assign(tap["have"] & any_of(~busy, done))
    step = tap["step"]
    b.on(beat, (left, sub(left, 1, ring)), (held["address"], add(held["address"], 1, ring)))
    b.on(done, (busy, 0))
    b.on(step, (busy, 1), (left, tap["words_minus_1"]), *[(held[name], tap[name]) for name in held])
    starting = b.reg("starting", init=1)  # the next tap with beats is the first of its pass
    b.on(step, (starting, choose(tap["last"], 1, starting & tap["skip"], 1)), (first_tap, starting))

    # arrived and free, in words
    skipped = b.wire(
        "skipped",
        count,
        choose(all_of(busy, held["skip"], held["claim"]), add(held["words_minus_1"], 1, count), 0, count),
    )
    b.on(None, (arrived, add(arrived, write, count) - fit(beat & held["claim"], count) - skipped))
    hold = b.reg("hold", ring + 1)  # new tuples still to come before the first is given back
    holding = b.wire("holding", 1, nonzero(hold))
    b.on(all_of(step, tap["claim"], holding), (hold, sub(hold, 1, ring + 1)))
    b.on(tap["begin"], (hold, tap["next_hold"]))
    given = b.wire(
        "given", count, choose(all_of(step, tap["claim"], ~holding), add(tap["words_minus_1"], 1, count), 0, count)
    )
    ended = b.wire("ended", count, choose(done & held["layer_end"], held["tail"], 0, count))
    b.on(None, (free, free - fit(write, count) + given + ended))
    writer.has_free.assign(all_of(~bits(free, count - 1, 1), nonzero(free)))
    write_row = b.reg("write_row", ring)
    b.on(write, (write_row, add(write_row, 1, ring)))
    w = kind.width(npu)
    word = b.output("word", w)
    b.instance(
        library.get(ram, w, kind.words(npu), latency=1),
        "tuple_memory",
        write=write,
        write_row=write_row,
        write_data=writer.word,
        read=beat,
        read_row=held["address"],
        read_data=word,
    )

    # what goes with a beat
    b.output("last", 1, held["last"] & word_last if not kind.pool else held["last"])
    if kind.pool:
        b.output("first", 1, first_tap)
        b.output("tuple_last", 1, word_last)
        b.output("map_last", 1, held["layer_end"])
        for name in ("to_host", "average"):
            if name in tap:
                flag = b.reg(f"at_{name}", init=None)
                b.on(step, (flag, tap[name]))
                b.output(name, 1, flag)
        if npu.kind == "integer":
            taps = b.output_reg("taps", COUNT_BITS, init=None)  # of this window so far, this one included
            counted = b.wire("counted", COUNT_BITS, add(choose(starting, 0, taps, COUNT_BITS), 1, COUNT_BITS))
            b.on(step & ~tap["skip"], (taps, counted))
        index = b.output_reg("index", ring, init=None)  # word of the tuple
        b.on(beat, (index, add(index, 1, ring)))
        b.on(step, (index, 0))
    else:
        word_first = b.reg("word_first", init=None)
        b.on(beat, (word_first, 0))
        b.on(step, (word_first, 1))
        b.output("first", 1, first_tap & word_first)
        row = b.reg("at_row", width(tap["row"]), init=None)
        b.on(beat, (row, add(row, 1, width(row))))
        b.on(step, (row, tap["row"]))
        b.output("kernel_row", width(row), row)
        if npu.kind == "binary":
            _offsets(b, npu.acc_bits, tap["offset"], step, beat, first_tap, word_first)

    # where cycles go: every cycle is one of beat and these three
    if kind.pool:
        return
    waiting = b.wire("waiting", 1, busy & ~held["skip"])
    b.output("wait_input", 1, waiting & ~there)
    b.output("wait_room", 1, all_of(waiting, there, ~clear))
    b.output("wait_table", 1, ~waiting)


def _offsets(
    b: Block, w: int, offset: Signal, step: Signal, beat: Signal, first_tap: Signal, word_first: Signal
) -> None:
    """Output ``offset``: the taps' offsets of this pass so far, added up once a tap."""
    held, total = b.reg("at_offset", w, init=None), b.reg("offset_total", w, init=None)
    b.on(step, (held, offset))
    begun = choose(first_tap, 0, total, w) + held
    now = b.wire("offset_now", w, choose(word_first, begun, total, w))
    b.on(beat, (total, now))
    b.output("offset", w, now)

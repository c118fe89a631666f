"""Tap source: runs through the tables, one tap a cycle (part of hls_gen/rtl/sequencer/sequencer.py; spec B3, B4, B9,
B10).

A tap's flags: ``last`` tap of its window; ``new``: the next tuple to arrive (else ``old``: address from its table);
``skip``: a tuple that arrives now and is read later, no beat (raster order); ``jump``: the next tap's kernel row
comes from its table. With ``direct`` there are no tables: every tap is new and a window ends after a fixed number of
them (dense layers). With ``by_counters``, in an NPU with ``raster``, hls_gen/rtl/sequencer/raster.py makes the taps.
"""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, all_of, any_of, choose, const, eq, resize, width
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.shell.streamed_weights import layer_begins

from .kind import Kind, layer_counter
from .raster import BEGIN_ONLY, Counters


def tap_source(
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
    nxt = library.loadable(b, reading, bus, resize(upcoming, bits_for(reading.depth - 1)))
    begin_only = ("flags_base", "old_base", "jump_base", "start_row", "hold", *BEGIN_ONLY)
    keep = [name for name, _ in reading.fields if name not in begin_only]
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
    tap_bits, window_bits = widths["window_taps_minus_1"], widths["windows_minus_1"]
    tap_count = b.reg("tap_count", tap_bits)
    counters = Counters(b, npu, kind, now, nxt, ring) if npu.raster else None
    counted = None if counters is None else now["by_counters"]
    tabled = ~direct if counters is None else ~direct & ~counted
    last_flag = choose(direct, eq(tap_count, now["window_taps_minus_1"]), flags["last"], 1)
    last = b.wire("tap_last", 1, last_flag if counters is None else choose(counted, counters.last, last_flag, 1))
    new_flag = direct | flags["new"]
    new = b.wire("tap_new", 1, new_flag if counters is None else choose(counted, counters.new, new_flag, 1))
    skip = b.wire("tap_skip", 1, tabled & flags["skip"])
    group_last, first_pass = _groups(b, kind, now, step, last, begin)
    window_end = b.wire("window_end", 1, last & group_last)
    rewind = b.wire("rewind", 1, last & ~group_last)
    window = b.reg("window", window_bits)
    layer_end.assign(window_end & eq(window, now["windows_minus_1"]))
    b.on(step, (tap_count, choose(last, 0, add(tap_count, 1, tap_bits), tap_bits)))
    b.on(step & window_end, (window, add(window, 1, window_bits)))
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
    address = None if counters is None else b.wire("tap_address", ring)

    def new_after(v: Signal) -> Signal:  # counters need it at the end of the layer alone, where the last tuple is read
        return v + claimed if counters is None else choose(counted, address + tuple_words, v + claimed, ring)

    new_word = pointer("new_word", ring, new_after, None)
    layer_word = b.reg("layer_word", ring)  # ring address of the layer's first word
    new_word_after = b.wire("layer_word_next", ring, new_after(new_word))
    b.on(step & layer_end, (layer_word, new_word_after))
    if counters is None:
        address = b.wire("tap_address", ring, choose(new, new_word, layer_word + old, ring))
    else:
        relative = b.wire("relative_word", ring, choose(counted, counters.word, old, ring))
        address.assign(choose(new & ~counted, new_word, layer_word + relative, ring))
        counters.advance(step, begin, rewind, window_end, tuple_words)
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
        "next_hold": nxt["hold" if counters is None else "tail"],
    }
    if counters is not None:
        ahead = all_of(counted, counters.gap, first_pass)
        tap["gap_words"] = b.wire("gap_claimed", ring + 1, choose(ahead, now["gap_words"], 0, ring + 1))
    if kind.pool:
        if "target" in now:
            tap["target"] = now["target"]
        if npu.engine == "integer":
            tap["average"] = now["average"]
    else:
        if npu.engine == "binary":
            tap["offset"] = now["tap_offset"]
        if npu.accumulators > 1:
            tap["inner"] = now["inner_groups_minus_1"]
        jump = tabled & flags["jump"]
        if npu.stream_weights:
            layer_begins(b, tap, now["kernel_stream"])
        tap["row"] = _kernel_rows(b, library, npu, bus, tap, now, nxt, jump, window_end, rewind, move, counters)
    return tap


def _groups(
    b: Block, kind: Kind, now: dict[str, Signal], step: Signal, last: Signal, begin: Signal
) -> tuple[Signal, Signal]:
    """(is it the last kernel group of this window, is it the first)."""
    if kind.pool:
        return b.wire("group_last", 1, const(1, 1)), b.wire("group_first", 1, const(1, 1))
    w = width(now["groups_minus_1"])
    group = b.reg("group", w)
    group_last = b.wire("group_last", 1, eq(group, now["groups_minus_1"]))
    b.on(step & last, (group, choose(group_last, 0, add(group, 1, w), w)))
    b.on(begin, (group, 0))
    return group_last, b.wire("group_first", 1, eq(group, 0))


def _kernel_rows(b, library, npu, bus, tap, now, nxt, jump, window_end, rewind, move, counters) -> Signal:
    """Kernel row of the tap at hand: counts up, takes the jump target at a jump mark (spec B10)."""
    w = width(now["kernel_base"])
    step, begin = tap["step"], tap["begin"]
    jump_width = width(nxt["jump_base"])
    row, group_row, start = b.reg("row", w), b.reg("group_row", w), b.reg("start_row", w)
    jumps = b.wire("tap_jump", 1, jump)
    pointer, saved = b.reg("jump_pointer", jump_width), b.reg("jump_pointer_saved", jump_width)
    after = b.wire("jump_pointer_after", jump_width, choose(rewind, saved, add(pointer, jumps, jump_width), jump_width))
    pointer_next = b.wire("jump_pointer_next", jump_width, choose(begin, nxt["jump_base"], after, jump_width))
    b.on(step, (pointer, after))
    b.on(step & window_end, (saved, after))
    b.on(begin, (pointer, nxt["jump_base"]), (saved, nxt["jump_base"]))
    target = library.loadable(b, npu.memory("jumps"), bus, pointer_next, read=move)["row"]
    landed = choose(jumps, target, 0, w)
    if counters is not None:
        landed = choose(now["by_counters"], counters.landing(step, begin, window_end, w), landed, w)
    landing = b.wire("landing", w, landed)
    next_group_row = b.wire("next_group_row", w, group_row + now["group_rows"])
    tap_rows = now.get("tap_rows_minus_1", tap["words_minus_1"])
    next_row = choose(jumps, group_row + target, add(row, tap_rows, w) + const(1, w), w)
    firsts = [row]  # both begin at the first tap of a pass
    if counters is not None:
        line = b.reg("line_row", w)  # kernel row of the first valid tap of this row of the window
        line_next = b.wire("line_row_next", w, line + now["line_rows"])
        next_row = choose(now["by_counters"] & counters.line_end, line_next, next_row, w)
        b.on(step & counters.line_end, (line, line_next))
        firsts.append(line)
    onward = b.wire("onward", w, next_row)
    walking = ~tap["skip"]
    first, group = nxt["kernel_base"] + nxt["start_row"], now["kernel_base"]
    b.on(step & walking, (row, onward))
    b.on(step & rewind, *[(r, next_group_row + start) for r in firsts], (group_row, next_group_row))
    b.on(step & window_end, *[(r, group + landing) for r in firsts], (group_row, group), (start, landing))
    b.on(begin, *[(r, first) for r in firsts], (group_row, nxt["kernel_base"]), (start, nxt["start_row"]))
    return row

"""Results unit: accumulators leave one after another, through the activation or as they are (design, "Results
leave").

    results[KGP] --> held --> shift register --> activation (threshold.py, requantise.py) --> features[OL] --> pool
                                                       `--------------------------------> raw values[OL] --> host

A step takes OL results of a window; with k levels each step is repeated k times, against k thresholds. One step a
cycle. Two windows' results fit (credits): ``room`` says whether another window may end. With several accumulators a
PE a result waits in its place, at ``drain_slot``, and ``room`` says whether another one is free.
"""

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
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
    width,
)
from bitloom.hls_gen.rtl.primitives.layer_counter import layer_counter
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus

from .requantise import requantise
from .step import Step
from .threshold import threshold


def results(library: Library, npu: Npu) -> Block:
    """The results unit of ``npu``."""
    b = Block(library.name("results_unit", npu))
    rows, factors = npu.memory("results"), npu.memory("thresholds" if npu.engine == "binary" else "scales")
    bus = LoadBus.ports(b, library.stream_bits, [rows, factors])
    last_layer = b.input("last_layer", 8)
    taken = b.input("taken")  # a window's last beat was issued
    room = b.output("room")
    arrived = b.input("result_valid")
    sums = b.input("results", npu.kgp * npu.acc_bits)
    sums_offset = b.input("result_offset", npu.acc_bits) if npu.engine == "binary" else None
    acc, lanes, units = npu.acc_bits, npu.ol, bits_for(npu.units - 1)

    # # #

    several = npu.accumulators > 1
    finish, load = b.wire("finish"), b.wire("load")
    count = npu.slot_bits + 1 if several else 2
    credits, given_back = (
        b.reg("credits", count, init=npu.accumulators if several else timing.CREDITS),
        load if several else finish,
    )
    b.on(taken & ~given_back, (credits, sub(credits, 1, count)))
    b.on(~taken & given_back, (credits, add(credits, 1, count)))
    room.assign(nonzero(credits))

    # the layer at work
    loaded = b.reg("loaded")
    layer_end = b.wire("layer_end")
    begin = b.wire("begin_layer", 1, any_of(~loaded, layer_end))
    upcoming = layer_counter(b, "layer_upcoming", last_layer, begin)
    nxt = library.loadable(b, rows, bus, resize(upcoming, bits_for(rows.depth - 1)))
    now = {name: b.reg(f"layer_{name}", w, init=None) for name, w in rows.widths.items()}
    b.on(begin, (loaded, 1), *[(now[name], nxt[name]) for name in now])

    # shift register
    full, busy = b.reg("full", count if several else 1), b.reg("busy")
    load.assign(all_of(loaded, any_of(nonzero(full), arrived), any_of(~busy, finish)))
    total = npu.units * lanes * acc
    queue = b.reg("queue", total, init=None)
    unit, level, group, window = (
        b.reg("unit", units),
        b.reg("level", width(now["levels_minus_1"])),
        b.reg("group", width(now["groups_minus_1"])),
        b.reg("window", width(now["windows_minus_1"])),
    )
    go = b.wire("go")  # a step leaves
    level_last = b.wire("level_last", 1, eq(level, now["levels_minus_1"]))
    group_last = b.wire("group_last", 1, eq(group, now["groups_minus_1"]))
    last_unit = choose(group_last, now["last_units_minus_1"], npu.units - 1, units)
    unit_last = b.wire("unit_last", 1, eq(unit, b.wire("last_unit", units, last_unit)))
    finish.assign(all_of(go, level_last, unit_last))
    tuple_last = b.wire("tuple_last", 1, all_of(level_last, unit_last, group_last))
    map_last = b.wire("map_last", 1, tuple_last & eq(window, now["windows_minus_1"]))
    layer_end.assign(go & map_last)
    if several:
        b.on(arrived & ~load, (full, add(full, 1, count)))
        b.on(~arrived & load, (full, sub(full, 1, count)))
        drain = b.output_reg("drain_slot", npu.slot_bits)
        b.on(load, (drain, add(drain, 1, npu.slot_bits)))
    else:
        b.on(arrived, (full, 1))
        b.on(load, (full, 0))
    b.on(finish, (busy, 0))
    b.on(go, (level, choose(level_last, 0, add(level, 1, width(level)), width(level))))
    b.on(go & level_last, (unit, choose(unit_last, 0, add(unit, 1, units), units)))
    if npu.units > 1:
        b.on(go & level_last, (queue, Cat(const(0, lanes * acc), bits(queue, lanes * acc, total - lanes * acc))))
    b.on(finish, (group, choose(group_last, 0, add(group, 1, width(group)), width(group))))
    b.on(finish & group_last, (window, choose(map_last, 0, add(window, 1, width(window)), width(window))))
    b.on(load, (busy, 1), (queue, sums))

    # factors: a row of thresholds or scales a step, from the start for each window
    pointer_bits = bits_for(factors.depth - 1)
    pointer, base = b.reg("pointer", pointer_bits), now["threshold_base"]
    onward = choose(tuple_last, base, add(pointer, 1, pointer_bits), pointer_bits)
    pointer_next = b.wire("pointer_next", pointer_bits, choose(begin, nxt["threshold_base"], onward, pointer_bits))
    move = b.wire("move", 1, begin | go)
    b.on(move, (pointer, pointer_next))
    row = library.loadable(b, factors, bus, pointer_next, read=move)

    step = Step(
        go=go,
        busy=busy,
        sums=[b.wire(f"sum_{k}", acc, bits(queue, k * acc, acc)) for k in range(lanes)],
        row=row,
        layer=now,
        tuple_last=tuple_last,
        map_last=map_last,
    )
    if sums_offset is not None:
        offset = b.reg("offset", acc, init=None)
        b.on(load, (offset, sums_offset))
        threshold(b, npu, step, offset)
    else:
        requantise(b, npu, step)
    return b

"""Results unit: accumulators leave one after another, through thresholds or as they are (design, "Results leave").

    results[KGP] --> held --> shift register --> minus offset --> >= threshold --> bits[OL]  --> pool
                                                       `--------> raw values[OL]  --> host

``value = (sum << double) - offset``: with bipolar lanes the sum counts matches and the value is matches minus mismatches.
A step takes OL results of a window; with k levels each step is repeated k times, against k thresholds. One step a cycle.
Two windows' results fit (credits): ``room`` says whether another window may end. Golden twin: golden/threshold.py.
"""

from veriloggen import Cat

from .design import GROUP_BITS, WINDOW_BITS, Npu
from .memory import Library, LoadBus
from .rtl import (
    Block,
    add,
    all_of,
    any_of,
    bits,
    bits_for,
    choose,
    const,
    eq,
    fit,
    nonzero,
    signed_at_least,
    sub,
)
from .sequencer import layer_counter

CREDITS = 2


def results(library: Library, npu: Npu) -> Block:
    """The results unit of ``npu``."""
    b = Block("results_unit")
    rows, thresholds = npu.memory("results"), npu.memory("thresholds")
    bus = LoadBus.ports(b, library.stream_bits, [rows, thresholds])
    last_layer = b.input("last_layer", 8)
    taken = b.input("taken")  # a window's last beat was issued
    room = b.output("room")
    arrived = b.input("result_valid")
    sums, sums_offset = b.input("results", npu.kgp * npu.acc_bits), b.input("result_offset", npu.acc_bits)
    acc, lanes, units = npu.acc_bits, npu.ol, bits_for(npu.units - 1)

    # # #

    credits = b.reg("credits", 2, init=CREDITS)
    finish = b.wire("finish")
    b.on(taken & ~finish, (credits, sub(credits, 1, 2)))
    b.on(~taken & finish, (credits, add(credits, 1, 2)))
    room.assign(nonzero(credits))

    # the layer at work
    loaded = b.reg("loaded")
    layer_end = b.wire("layer_end")
    begin = b.wire("begin_layer", 1, any_of(~loaded, layer_end))
    upcoming = layer_counter(b, "layer_upcoming", last_layer, begin)
    nxt = library.loadable(b, rows, bus, fit(upcoming, bits_for(rows.depth - 1)))
    now = {name: b.reg(f"layer_{name}", w, init=None) for name, w in rows.fields}
    b.on(begin, (loaded, 1), *[(now[name], nxt[name]) for name in now])

    # shift register
    full, busy = b.reg("full"), b.reg("busy")
    load = b.wire("load", 1, all_of(loaded, any_of(full, arrived), any_of(~busy, finish)))
    total = npu.units * lanes * acc
    queue = b.reg("queue", total, init=None)
    offset = b.reg("offset", acc, init=None)
    unit, level, group, window = (
        b.reg("unit", units),
        b.reg("level", 6),
        b.reg("group", GROUP_BITS),
        b.reg("window", WINDOW_BITS),
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
    b.on(arrived, (full, 1))
    b.on(load, (full, 0))
    b.on(finish, (busy, 0))
    b.on(go, (level, choose(level_last, 0, add(level, 1, 6), 6)))
    b.on(go & level_last, (unit, choose(unit_last, 0, add(unit, 1, units), units)))
    if npu.units > 1:
        b.on(go & level_last, (queue, Cat(const(0, lanes * acc), bits(queue, lanes * acc, total - lanes * acc))))
    b.on(finish, (group, choose(group_last, 0, add(group, 1, GROUP_BITS), GROUP_BITS)))
    b.on(finish & group_last, (window, choose(map_last, 0, add(window, 1, WINDOW_BITS), WINDOW_BITS)))
    b.on(load, (busy, 1), (queue, sums), (offset, sums_offset))

    # thresholds: a row a step, from the start for each window
    pointer_bits = bits_for(thresholds.depth - 1)
    pointer, base = b.reg("pointer", pointer_bits), now["threshold_base"]
    onward = choose(tuple_last, base, add(pointer, 1, pointer_bits), pointer_bits)
    pointer_next = b.wire("pointer_next", pointer_bits, choose(begin, nxt["threshold_base"], onward, pointer_bits))
    move = b.wire("move", 1, begin | go)
    b.on(move, (pointer, pointer_next))
    limits = library.loadable(b, thresholds, bus, pointer_next, read=move)["thresholds"]

    # value, then bit
    value_valid, value_ready = b.reg("value_valid"), b.wire("value_ready")
    go.assign(all_of(busy, any_of(~value_valid, value_ready)))
    b.on(value_ready, (value_valid, 0))
    b.on(go, (value_valid, 1))
    side = {name: b.reg(f"value_{name}", init=None) for name in ("tuple_last", "map_last", "raw")}
    b.on(go, (side["tuple_last"], tuple_last), (side["map_last"], map_last), (side["raw"], now["raw"]))
    values, verdicts = [], []
    for k in range(lanes):
        one = b.wire(f"sum_{k}", acc, bits(queue, k * acc, acc))
        twice = Cat(bits(one, 0, acc - 1), const(0, 1))
        value = b.reg(f"value_{k}", acc, init=None)
        limit = b.reg(f"limit_{k}", acc, init=None)
        b.on(go, (value, choose(now["double"], twice, one, acc) - offset), (limit, bits(limits, k * acc, acc)))
        values.append(value)
        verdicts.append(b.wire(f"bit_{k}", 1, signed_at_least(value, limit)))
    join = lambda parts: Cat(*reversed(parts)) if lanes > 1 else parts[0]  # noqa: E731
    raw_ready, bits_ready = b.input("raw_ready"), b.input("bits_ready")
    b.output("raw_valid", 1, value_valid & side["raw"])
    b.output("raw_data", lanes * acc, join(values))
    b.output("raw_last", 1, side["map_last"])
    b.output("bits_valid", 1, value_valid & ~side["raw"])
    b.output("bits_data", lanes, join(verdicts))
    b.output("bits_last", 1, side["tuple_last"])
    value_ready.assign(choose(side["raw"], raw_ready, bits_ready, 1))
    return b

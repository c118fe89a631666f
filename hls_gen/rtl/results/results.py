"""Results unit: accumulators leave one after another, through the activation (threshold.py, requantise.py) or, in an
NPU whose sums leave, as they are. What each NPU's module says of itself: `_contract`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from veriloggen import Cat

from bitloom.golden.layers.lookup import Lookup
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.memories.results import number_bits
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import LAYER_BITS, bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    add,
    any_of,
    bits,
    choose,
    const,
    eq,
    last_repeated,
    resize,
    sub,
    width,
)
from bitloom.hls_gen.rtl.primitives.countdown import Countdown
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.pipeline import Ready
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header

from .feature_unit import Lane, PlaceUnit, unit_placer
from .layer_at_work import LayerAtWork
from .lookup import lookup
from .requantise import requantise
from .step import Step, give, ready_ahead
from .threshold import matches_value, threshold

LANES: Mapping[type[FeatureLayer], Lane] = {Lookup: lookup}
"""The module of a lane of each feature unit, by its layer."""
COUNTED = ("level", "group", "window")
"""Things of which a layer says how many there are, in fields such as ``levels_minus_1``."""
LEVELS = """Where a feature has several levels (k thresholds) each step is repeated k times, against one threshold after
the other."""
SKID = "Features that aren't taken wait in the skid register."
SKID_AHEAD = SKID + " So whether stages move is a register, not logic."
ROOM_OF_WINDOWS = """``room`` says whether another window may end: two windows' results fit, one in the queue and one
that the array holds."""
ROOM_OF_ACCUMULATORS = """A result waits in its accumulator, at ``drain_slot``, until the queue takes it; ``room`` says
whether an accumulator is free."""
"""LEVELS, SKID, SKID_AHEAD, ROOM_OF_WINDOWS, ROOM_OF_ACCUMULATORS: what the Verilog says of some NPUs."""
MOST_ONES = 4
"""Counts of windows up to this one are as many ones; larger ones are binary, in fewer registers."""


@dataclass(frozen=True)
class _StepPlace:
    """Where the step at hand stands."""

    go: Signal
    """The step leaves in this cycle; the activation says so."""
    level_last: Signal
    """It is the last one against the same OL results."""
    window_last: Signal
    """It is its window's last one."""
    tuple_last: Signal
    map_last: Signal
    """tuple_last, map_last: the tuple, the map ends with it."""


def results(library: Library, npu: Npu) -> Block:
    """The results unit of an NPU, with its activation: module ``results_unit``."""
    b = Block(library.name("results_unit", npu), _header(npu))
    acc = npu.array.acc_bits
    rows = memory_of(npu, "results")
    factors = memory_of(npu, npu.results.activation.memory)
    units = npu.results.feature_units
    tables = [memory_of(npu, unit.table.memory) for unit in units if unit.table]
    bus = LoadBus.ports(b, library.stream_bits, [rows, factors, *tables])
    last_layer = b.input("last_layer", LAYER_BITS, means="number of the network's last layer")
    taken = b.input("taken", means="a beat takes the place of another window's results")
    room = b.output("room", means="there is a place for another window's results")
    arrived = b.input("result_valid", means="results of a window are there, from this cycle on")
    sums = b.input("results", npu.array.kgp * acc, means="results of the window, kernel 0 low")
    has_offset = npu.array.offset_bits > 0
    sums_offset = b.input("result_offset", acc, means="what is taken from each of them") if has_offset else None

    # # #

    finish = b.wire("finish")
    load = b.wire("load")
    room.assign(_credits(b, npu, taken, load if npu.array.accumulators > 1 else finish))
    free, free_before = b.wire("free"), b.wire("free_before")
    go = b.wire("go")
    map_last = b.reg("map_last", init=None)  # the step at hand ends its map
    b.comment("The layer at work.")
    layer = LayerAtWork.of(b, library, bus, rows, last_layer, go, map_last, begins=["windows_minus_1"])
    number = None
    if npu.has_skip:
        number = b.reg("layer_number", number_bits(npu), init=None)
        b.on(layer.begin, (number, resize(layer.upcoming, number_bits(npu))))

    b.comment("The window at work: its results stay in their places, of which each step takes OL.")
    busy = b.reg("busy")
    full = _waiting(b, npu, arrived, load)
    walk = _walk(b, npu, layer, (finish, go), map_last)
    waits = b.wire("waits", 1, layer.loaded & any_of(full, arrived))
    load.assign(waits & any_of(~busy, free_before & walk.window_last))
    idle = b.reg("idle", init=1)  # not busy: a register of its own for the queue's many bits
    b.on(any_of(~busy, free_before & walk.window_last), (busy, waits), (idle, ~waits))
    go.assign(busy & free_before)  # ``free_before`` comes late
    queue = _queue(b, npu, idle, free & walk.level_last, free & walk.window_last, sums)
    step = Step(
        free=free,
        free_before=free_before,
        busy=busy,
        sums=[b.wire(f"sum_{k}", acc, total) for k, total in enumerate(queue)],
        row=layer.factors(b, library, bus, factors, "threshold_base", free_before, busy, walk.tuple_last),
        layer=layer.now,
        tuple_last=walk.tuple_last,
        map_last=walk.map_last,
        number=number,
        to_outlets=npu.gives_ways,
    )
    placers = [unit_placer(unit, LANES[unit.layer], b, library, npu, bus) for unit in units]
    ready = ready_ahead(b) if _looks_ahead(npu) else Ready(b.wire("step_ready"))
    give(b, library, _features(b, npu, step, load, sums_offset, placers, ready), ready)
    return b


def _header(npu: Npu) -> Header:
    """The module's header."""
    activation = timing.latencies(npu).activation
    sizes = {
        **npu.values("kgp", "ol", "acc_bits"),
        "value_bits" if npu.keeps_steps else "feature_bits": npu.value_bits,
        "accumulators": npu.array.accumulators,
    }
    latency = f"{activation} cycle{'s' * (activation > 1)} from a step to its features"
    return Header(
        _contract(npu),
        rate="one step of OL results a cycle",
        latency=latency + ", 1 to its raw values" * npu.ports.sends_results,
        parameters=sizes,
    )


def _contract(npu: Npu) -> str:
    """The module's text."""
    activation = "requantisation" if npu.requantises else "thresholds"
    first = f"Results unit: accumulators leave one after another, through {activation}"
    picture = f"    results[KGP] --> queue --> OL of them --> {activation} --> skid register --> features"
    if npu.ports.sends_results:
        first += " or as they are"
        picture += "\n" + " " * picture.index("--> " + activation) + "`--> raw values"
    told = [
        "A step takes OL results of a window, by their place in the queue.",
        *([] if npu.requantises else [LEVELS]),
        SKID_AHEAD if _looks_ahead(npu) else SKID,
        ROOM_OF_ACCUMULATORS if npu.array.accumulators > 1 else ROOM_OF_WINDOWS,
    ]
    return f"{first}.\n\n{picture}\n\n{' '.join(told)}\n"


def _looks_ahead(npu: Npu) -> bool:
    """Whether stages of the activation know in the cycle before whether they move. Thresholds have one stage: where raw
    values leave it, too, nobody knows ahead whether what is in it will be taken."""
    return npu.requantises or not npu.ports.sends_results


def _features(
    b: Block,
    npu: Npu,
    step: Step,
    load: Signal,
    sums_offset: Signal | None,
    units: Sequence[PlaceUnit],
    ready: Ready,
) -> Stream:
    """Features of the step at hand, by thresholds or by requantisation.

    Parameters
    ----------
    load : Signal
        The next window's results enter the queue.
    sums_offset : Signal or None
        Number that is taken from each of these results, ``acc_bits``: in a binary NPU; None in any other.
    units : sequence of PlaceUnit
        The feature units behind the requantisation.
    ready : Ready
        Whether the stage behind takes the features.
    """
    if sums_offset is not None:
        offset = b.reg("offset", npu.array.acc_bits, init=None)
        b.on(load, (offset, sums_offset))
        if not npu.requantises:
            return threshold(b, npu, step, offset, ready)
        values = [matches_value(step, total, offset) for total in step.sums]
        sums = [b.wire(f"matches_value_{k}", npu.array.acc_bits, value) for k, value in enumerate(values)]
        step = replace(step, sums=sums)
    stages = timing.activation_stages(npu)
    return requantise(b, npu, step, stages, ready, units=units)


def _credits(b: Block, npu: Npu, taken: Signal, given_back: Signal) -> Signal:
    """Register: another window may end. One credit a window, from its last beat until its place is free."""
    count = npu.array.accumulators if npu.array.accumulators > 1 else timing.CREDITS
    return _some(b, "credits", (count, count), given_back, taken)


def _some(b: Block, name: str, counts: tuple[int, int], more: Signal, less: Signal) -> Signal:
    """Register: a count is not 0. It goes up with ``more`` and down with ``less``; ``counts`` are the first and the
    most.

    ``more`` and ``less`` come late, so that neither a sum nor a comparison may stand behind them. A small count is as
    many ones, the low ones; beside a larger one a register says whether it is 0, from the count and where it goes.
    """
    first, most = counts
    if most > MOST_ONES:
        w = bits_for(most)
        count = b.reg(name, w, init=first)
        some = b.reg(f"some_{name}", init=int(first > 0))
        b.on(~more & less, (count, sub(count, 1, w)), (some, ~eq(count, 1)))
        b.on(more & ~less, (count, add(count, 1, w)), (some, 1))
        return some
    ones = b.reg(name, most, init=(1 << first) - 1)
    one_less = [const(0, 1)]
    one_more = [const(1, 1)]
    if most > 1:
        one_less = [*one_less, bits(ones, 1, most - 1)]
        one_more = [bits(ones, 0, most - 1), *one_more]
    b.on(~more & less, (ones, Cat(*one_less)))
    b.on(more & ~less, (ones, Cat(*one_more)))
    return b.wire(f"some_{name}", 1, bits(ones, 0, 1))


def _waiting(b: Block, npu: Npu, arrived: Signal, load: Signal) -> Signal:
    """Register: a window's results are there and not yet in the queue; makes the port ``drain_slot``."""
    if npu.array.accumulators == 1:
        full = b.reg("full")
        b.on(None, (full, any_of(full, arrived) & ~load))
        return full
    full = _some(b, "full", (0, npu.array.accumulators), arrived, load)
    drain = b.output_reg("drain_slot", npu.array.slot_bits, means="accumulator whose results are looked at")
    b.on(load, (drain, add(drain, 1, npu.array.slot_bits)))  # windows end in the order of their accumulators
    return full


def _walk(b: Block, npu: Npu, layer: LayerAtWork, events: tuple[Signal, Signal], map_last: Signal) -> _StepPlace:
    """Count levels, units of OL results, kernel groups and windows of the layer. ``events``: a window is done, which is
    assigned here; a step leaves. ``map_last``: the register of that name."""
    finish, go = events
    units = bits_for(npu.group_steps - 1)
    now = layer.now
    following = layer.next
    level, group, window = (Countdown(b, f"{name}s", width(following[f"{name}s_minus_1"])) for name in COUNTED)
    unit = Countdown(b, "units", units)
    # registers, as those of the counts: the step at hand ends its window, its tuple
    window_last, tuple_last = (b.reg(f"{name}_last", init=None) for name in ("window", "tuple"))
    finish.assign(go & window_last)
    starts = layer.starts  # and not ``layer.begin``, which comes late: a layer's last step is one of its window, too
    change = layer.change
    moves = any_of(starts, go)
    level_next = level.advance(moves, change, following["levels_minus_1"], now["levels_minus_1"])
    group_next = group.advance(any_of(starts, finish), change, following["groups_minus_1"], now["groups_minus_1"])
    map_next = window.advance(any_of(starts, go & tuple_last), change, following["windows_minus_1"])
    units_minus_1 = b.localparam("UNITS_MINUS_1", npu.group_steps - 1, units)
    # behind the group at hand: whether that is the layer's last one is known before ``change``
    leaves = b.wire("next_of_layer", 1, any_of(~layer.loaded, group.last & window.last))
    more = choose(group.last, eq(now["groups_minus_1"], 0), group.before_last, 1)
    next_last = b.wire("next_group_last", 1, choose(leaves, eq(following["groups_minus_1"], 0), more, 1))
    last_units = choose(leaves, following["last_units_minus_1"], now["last_units_minus_1"], units)
    of_next = b.wire("units_of_next", units, choose(next_last, last_units, units_minus_1, units))
    unit_next = unit.advance(any_of(starts, go & level.last), any_of(~layer.loaded, unit.last), of_next)
    window_ends = level_next & choose(any_of(starts, level.last), unit_next, unit.last, 1)
    window_ends = b.wire("window_ends", 1, window_ends)
    group_ends = choose(any_of(starts, window_last), group_next, group.last, 1)
    tuple_ends = b.wire("tuple_ends", 1, window_ends & group_ends)
    map_ends = tuple_ends & choose(any_of(starts, tuple_last), map_next, window.last, 1)
    b.on(moves, (window_last, window_ends), (tuple_last, tuple_ends), (map_last, map_ends))
    return _StepPlace(go, level.last, window_last, tuple_last, map_last)


def _queue(b: Block, npu: Npu, idle: Signal, goes_on: Signal, ends: Signal, sums: Signal) -> list[Signal]:
    """The queue: a window's results, as they came; the result is OL of them, those of the step at hand.

    Parameters
    ----------
    idle : Signal
        No window is at work.
    goes_on, ends : Signal
        If one is: it goes on to the next OL results; or this was its last step. They come late, so that they only
        enable: where no results wait the queue takes what means nothing.
    sums : Signal
        Results of the next window.
    """
    acc, ol = npu.array.acc_bits, npu.results.ol
    step = ol * acc
    queue = b.reg("queue", npu.group_steps * step, init=None)
    takes = any_of(idle, ends)
    b.on(takes, (queue, resize(sums, npu.group_steps * step)))
    if npu.group_steps == 1:
        return [bits(queue, k * acc, acc) for k in range(ol)]
    place = b.reg("place", bits_for(npu.group_steps - 1), init=None)
    b.on(goes_on, (place, add(place, 1, width(place))))
    b.on(takes, (place, 0))
    each = [[bits(queue, unit * step + k * acc, acc) for unit in range(npu.group_steps)] for k in range(ol)]
    return [last_repeated(place, parts) for parts in each]

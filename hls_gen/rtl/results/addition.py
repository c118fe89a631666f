"""Addition: to the results of a layer comes the map that waits in the skip store.  Golden twin: golden/layers/add.py.

    in[OL] -+-> row --> x factor_kept --> + bias --+
            |                                      + --> + half --> >> shift --> clip --+--> skid --> features[OL]
            |   skip[skip_lanes] --> step[OL] --> x factor_skipped                       |
            `-> layers that add nothing, while the stages are empty ---------------------'

A step of a layer that adds waits in the register ``row`` until what belongs to it is there. Steps of other layers pass
the stages by, as they are, from the second cycle on after the steps before them have left these. Whether its layer
adds, and which row of memory ``additions`` is the layer's, comes with each step, so that layers may follow one another.

A total is rounded to nearest, halves away from zero: half of 2^shift is added, or one less to a negative total. Then it
is clipped to the layer's ``low`` and ``high``. All stages move together, when the last one is free. Steps that aren't
taken wait in the skid register, so that whether the stages move is a register, not logic.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from veriloggen import Cat, Repeat
from veriloggen.core.vtypes import Srl

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.memories.results import added_side_bits, number_bits
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
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
    product,
    resize,
    side_by_side,
    sign_extend,
    signed_at_least,
    sub,
    width,
)
from bitloom.hls_gen.rtl.primitives.gearbox import collected
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.pipeline import Pipeline
from bitloom.hls_gen.rtl.primitives.rows import product_in_luts
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header

from .step import give, ready_ahead

STAGES = timing.ADD_STAGES
CUT = """
A word of the skip store is cut into steps of OL lanes, the low ones first; what is left of it after a tuple's last step
goes with that.
"""
"""Added to the header where a word of the skip store has several steps."""
COLLECTED = """
{words} words of the skip store make a step, the first one in the low lanes.
"""
"""Added to the header where a step has several words of the skip store."""
DSP_PRODUCTS = """
Products and sums are registers as DSP blocks have them: the second product comes a stage after the first one, so that
one block's adder takes the sum of the other.
"""
"""Added to the header where DSP blocks multiply."""
LUT_PRODUCTS = """
LUTs multiply. The second product comes a stage after the first one.
"""
"""Added to the header where LUTs multiply."""
OF_STEPS = """
In a binary NPU a word of the skip store is a step: integers of ``value_bits`` bits. Above the side bits of ``features``
stands whether the layer's results are kept in the skip store.
"""
"""Added to the header in a binary NPU."""
OF_PRODUCTS = """
Where a layer multiplies two maps, the multipliers follow one another: kept x skipped, then x factor_skipped, + bias, or
- bias where kept x skipped is below 0. Halves of such a total are rounded upwards.
"""
"""Added to the header where layers may multiply two maps."""


@dataclass(frozen=True)
class _AdditionSignals:
    """Signals that all lanes of the addition read."""

    pipe: Pipeline
    """The stages."""
    late: dict[str, dict[str, Signal]]
    """Fields of the row of the step at hand, by name and stage: a register in time with that stage."""
    half_less_1: Signal
    """Half of 2^shift, less 1, in time with the totals; 0 without a shift."""
    shifts: Signal
    """There is a shift, in time with the totals."""
    upwards: Signal | None
    """There is a shift, and halves go upwards, in time with the totals; None in an NPU without products of maps."""


def addition(library: Library, npu: Npu) -> Block:
    """The addition of an NPU with a skip store.

    Module ``addition``. Streams ``in`` and ``features`` of steps, whose side bits at ``in`` have the layer's number and
    its marks above those that go on; stream ``skip`` of words of the skip store.
    """
    steps = npu.keeps_steps
    together, pieces = gear(npu.skip_lanes, npu.results.ol)
    text = __doc__ + CUT * (pieces > 1) + COLLECTED.format(words=together) * (together > 1)
    text += LUT_PRODUCTS if "addition" in npu.results.lut_products else DSP_PRODUCTS
    sizes = {
        "skip_lanes": npu.skip_lanes,
        **npu.values("ol"),
        "value_bits" if steps else "feature_bits": npu.value_bits,
        **npu.values("add_factor_bits", "add_bias_bits"),
    }
    header = Header(
        text + OF_STEPS * steps + OF_PRODUCTS * npu.multiplies_maps,
        rate="one step of OL results a cycle" + f", every {together} cycles where added" * (together > 1),
        latency=f"{timing.latencies(npu).addition} cycles from in to features where what is added is there, "
        "0 where nothing is added",
        parameters=sizes,
    )
    b = Block(library.name("addition", npu), header)
    memory = memory_of(npu, "additions")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    side = npu.result_side_bits
    source = Stream.input(b, "in", npu.results.ol * npu.value_bits, last=True, side_bits=side + added_side_bits(npu))
    skip = Stream.input(b, "skip", npu.skip_word_bits)
    waits = b.output("waits", means="a step waits for a word of the skip store")

    # # #

    b.comment("The step that waits for what is added to it, and the row of its layer.")
    fields = library.loadable(b, memory, bus, bits(source.side, side, number_bits(npu)))
    valid = b.reg("row_valid")
    # a bit of the step, since much waits for it: the layer's row is looked up in this cycle
    adds = b.wire("adds", 1, bits(source.side, side + number_bits(npu), 1))
    take = b.wire("take", 1, source.taken & adds)
    row = {name: b.reg(f"row_{name}", w, init=None) for name, w in memory.widths.items()}
    kept = b.reg("row_data", source.data_bits, init=None)
    goes = side_by_side(
        [source.last]
        + ([bits(source.side, 0, side)] if side else [])
        + ([bits(source.side, side + number_bits(npu) + 1, 1)] if steps else [])
    )
    ends = b.reg("row_side", width(goes), init=None)
    b.on(take, *[(row[name], fields[name]) for name in row], (kept, source.data), (ends, goes))
    step = _step(b, library, npu, skip, bits(ends, 0, 1))
    pipe = Pipeline(b, STAGES, b.wire("move_on"))
    ready = ready_ahead(b, "skid_ready")
    moves = pipe.control(ready)
    step.ready.assign(all_of(valid, moves.now))
    free = b.wire("row_free", 1, any_of(~valid, step.valid & moves.now))
    waits.assign(all_of(valid, ~step.valid))
    b.on(free, (valid, 0))
    b.on(take, (valid, 1))

    b.comment("The layer's row, as late as the stages that need its fields.")
    shared = _shared(b, npu, pipe, row)
    w = npu.value_bits
    parts = [[bits(data, k * w, w) for data in (kept, step.data)] for k in range(npu.results.ol)]
    sums = side_by_side([_lane(b, npu, shared, k, *two) for k, two in enumerate(parts)])
    pipe.enter(valid & step.valid)
    b.comment("A step that is not added to passes by, while the stages are empty.")
    empty = b.reg("empty", init=1)
    b.on(None, (empty, all_of(~any_of(valid, *pipe.valid.values()), ~take)))
    passes = b.wire("passes", 1, all_of(source.valid, ~adds, empty))
    source.ready.assign(choose(adds, free, empty & ready.now, 1))
    # whether a step passes comes late, and the many bits of a step would wait for it
    summed = pipe.valid["sum"]
    ends = b.wire("ends", width(goes), choose(summed, pipe.beside("side", ends), goes, width(goes)))
    values = Stream(
        valid=b.wire("values_valid", 1, any_of(passes, summed)),
        ready=ready.now,
        data=b.wire("values", source.data_bits, choose(summed, sums, source.data, source.data_bits)),
        last=bits(ends, 0, 1),
        side=bits(ends, 1, width(goes) - 1) if width(goes) > 1 else None,
    )
    give(b, library, values, ready)
    return b


def _step(b: Block, library: Library, npu: Npu, skip: Stream, tuple_last: Signal) -> Stream:
    """Words of the skip store as steps of OL lanes; ``tuple_last`` says that the step at hand ends its tuple. Words
    wait in a register, or in a collector, since much follows from whether they are there."""
    step_bits = npu.results.ol * npu.value_bits
    together, pieces = gear(npu.skip_lanes, npu.results.ol)
    words = collected(
        b, library, "added", skip.replace(last=const(0, 1)), together * npu.skip_word_bits, together, ("last",)
    )
    if pieces == 1:
        return words
    step = Stream(words.valid, b.wire("step_ready"), b.wire("step_data", step_bits))
    b.comment("A word is cut into steps, and leaves with its last one, or with that of its tuple.")
    w = bits_for(pieces - 1)
    piece = b.reg("piece", w)
    last = any_of(eq(piece, b.localparam("LAST_PIECE", pieces - 1, w)), tuple_last)
    word_last = b.wire("word_last", 1, last)
    b.on(step.ready & words.valid, (piece, choose(word_last, 0, add(piece, 1, w), w)))
    words.ready.assign(step.ready & word_last)
    step.data.assign(_chosen(piece, [bits(words.data, k * step_bits, step_bits) for k in range(pieces)]))
    return step


def _chosen(number: Signal, parts: Sequence[Signal]) -> Signal:
    """The part with this number: a tree of choices, one level a bit of the number."""
    level = 0
    choices = list(parts)
    while len(choices) > 1:
        odd = bits(number, level, 1)
        pairs = zip(choices[1::2], choices[::2])
        choices = [*[choose(odd, high, low, width(low)) for high, low in pairs], *choices[len(choices) & ~1 :]]
        level += 1
    return choices[0]


def _shared(b: Block, npu: Npu, pipe: Pipeline, row: dict[str, Signal]) -> _AdditionSignals:
    """The fields of the row, each as late as the stage that needs it."""
    needed = {"factor_kept": "operand", "factor_skipped": "product", "bias": "product", "shift": "rounded"}
    needed |= {"multiplies": "partial"} if npu.multiplies_maps else {}
    limits = {"low": "shifted", "high": "shifted"}
    late = {name: pipe.late(name, row[name], stage) for name, stage in (needed | limits).items()}
    wide = npu.add_total_bits + 1
    shift = late["shift"]["product"]
    narrow = width(shift)
    less = pipe.register("partial_shift_less", narrow, sub(shift, 1, narrow))
    some = pipe.register("partial_shifts", 1, nonzero(shift))
    ones = b.wire("ones_above", wide, Repeat(const(1, 1), wide) << less)
    half_less_1 = pipe.register("total_half_less_1", wide, choose(some, ~ones, 0, wide))
    shifts = pipe.register("total_shifts", 1, some)
    upwards = None
    if npu.multiplies_maps:
        upwards = b.reg("total_upwards", init=None)
        b.on(pipe.move, (upwards, all_of(some, late["multiplies"]["partial"])))
    return _AdditionSignals(pipe, late, half_less_1, shifts, upwards)


def _lane(b: Block, npu: Npu, shared: _AdditionSignals, k: int, kept: Signal, skipped: Signal) -> Signal:
    """The sum of lane ``k``, a register."""
    b.comment(f"Lane {k}: products, total, rounding, shift, limits.")
    late = shared.late
    f = npu.value_bits
    w = npu.add_total_bits
    wide = npu.add_total_bits + 1

    def stage(name: str, bits_: int, value: Signal) -> Signal:
        return shared.pipe.register(f"{name}_{k}", bits_, value)

    operand_kept = stage("operand_kept", f, kept)
    operand_skipped = stage("operand_skipped", f, skipped)
    both = f + present(npu.stores.skip).factor_bits
    bias = sign_extend(late["bias"]["product"], w)

    def times(name: str, operand: Signal, factor: Signal) -> Signal:
        in_luts = "addition" in npu.results.lut_products
        return product_in_luts(b, f"{name}_{k}", operand, factor) if in_luts else product(operand, factor)

    if npu.multiplies_maps:  # the first product is that of both features, the second one has it for its operand
        factor_bits = max(f, present(npu.stores.skip).factor_bits)
        several = [sign_extend(value, factor_bits) for value in (operand_skipped, late["factor_kept"]["operand"])]
        multiplies = late["multiplies"]["operand"]
        factor = b.wire(f"factor_kept_{k}", factor_bits, choose(multiplies, *several, factor_bits))
        product_kept = stage("product_kept", f + factor_bits, times("kept", operand_kept, factor))
        product_skipped = sign_extend(stage("product_operand", f, operand_skipped), 2 * f)
        multiplies = late["multiplies"]["product"]
        chosen = choose(multiplies, bits(product_kept, 0, 2 * f), product_skipped, 2 * f)
        product_operand = b.wire(f"product_chosen_{k}", 2 * f, chosen)
        negative = b.wire(f"negative_{k}", 1, all_of(multiplies, bits(product_kept, 2 * f - 1, 1)))
        bias = bias ^ Repeat(negative, w)  # - bias = ~bias + 1
        added = choose(multiplies, resize(negative, w), sign_extend(product_kept, w), w)
        both = both + f
    else:
        product_kept = stage("product_kept", both, times("kept", operand_kept, late["factor_kept"]["operand"]))
        product_operand = stage("product_operand", f, operand_skipped)
        added = sign_extend(product_kept, w)
    partial = stage("partial", w, added + bias)
    partial_skipped = stage(
        "partial_skipped", both, times("skipped", product_operand, late["factor_skipped"]["product"])
    )
    total = stage("total", w, partial + sign_extend(partial_skipped, w))
    half = shared.shifts & ~bits(total, w - 1, 1)  # a negative total gets one less, but where halves go upwards
    up = b.wire(f"up_{k}", 1, half if shared.upwards is None else any_of(half, shared.upwards))
    # one adder for three numbers: the lowest bit of each makes the carry
    doubled = b.wire(f"doubled_{k}", wide + 1, Cat(sign_extend(total, wide), up) + Cat(shared.half_less_1, up))
    b.wire(f"carry_unused_{k}", 1, bits(doubled, 0, 1))
    rounded = stage("rounded", wide, bits(doubled, 1, wide))
    most = npu.most_add_shift
    moved = b.wire(f"moved_{k}", wide + most, Srl(sign_extend(rounded, wide + most), late["shift"]["rounded"]))
    b.wire(f"moved_above_unused_{k}", most, bits(moved, wide, most))  # signs, of which the shift takes as it needs
    shifted = stage("shifted", wide, bits(moved, 0, wide))
    return stage("sum", f, _clipped(b, k, shifted, late["low"]["shifted"], late["high"]["shifted"]))


def _clipped(b: Block, k: int, value: Signal, low: Signal, high: Signal) -> Signal:
    """``value`` of lane ``k``, clipped to ``low`` and ``high``. A value that doesn't fit the width of these limits is
    beyond one of them, so that only narrow numbers are compared."""
    f = width(low)
    wide = width(value)
    sign = bits(value, wide - 1, 1)
    above = bits(value, f - 1, wide - f + 1)
    fits = b.wire(f"fits_{k}", 1, ~nonzero(b.wire(f"beyond_{k}", wide - f + 1, above ^ Repeat(sign, wide - f + 1))))
    narrow = b.wire(f"narrow_{k}", f, bits(value, 0, f))
    at_high = b.wire(f"at_high_{k}", 1, choose(fits, signed_at_least(narrow, high), ~sign, 1))
    at_low = b.wire(f"at_low_{k}", 1, choose(fits, signed_at_least(low, narrow), sign, 1))
    return choose(at_high, high, choose(at_low, low, narrow, f), f)

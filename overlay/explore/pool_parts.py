"""The parts of an NPU's pool: its sequencer and its unit, with what makes features where that has weights."""

from collections.abc import Iterator

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.sequencer_kind import NpuSequencer
from bitloom.hls_gen.design.widths import COUNT_BITS, bits_for

from .area_part import AreaPart, fifo, gear, sequencer_modules
from .products import multiplier_dsps, requantise_sizes


def pool_parts(npu: Npu, n: int) -> Iterator[AreaPart]:
    """The parts of the pool of NPU ``n``, without gearboxes at its ends; none where it has no pool unit."""
    sequencer = npu.pool_sequencer
    if not sequencer:
        return
    kind = sequencer.kind
    ring = sequencer.address_bits
    tables = bits_for(sequencer.taps - 1) + bits_for(sequencer.olds - 1)
    counted = {"raster": kind.counters, "raster_ring": ring * kind.counters}
    counts = sum(bits_for(n) for n in (npu.sequencer.windows, npu.sequencer.window_taps, npu.sequencer.input_words))
    values = {"one": 1, "ring": ring, "counts": counts, "tables": tables, "average": npu.engine == "integer"}
    rows = dict(zip(("lut", "ff"), kernel_row_bits(sequencer))) if kind.kernel_rows else {}
    modules = sequencer_modules("pool")
    yield AreaPart("pool_sequencer", "pool_sequencer", {**values, **counted}, n, modules=modules, **rows)
    if npu.depthwise:
        yield from _depthwise(npu, n)
        return
    unit = {"one": 1, "word": npu.pool_word_bits, "index": present(npu.pool_unit).index_bits}
    integer = npu.engine == "integer"
    yield AreaPart(f"pool_unit_{npu.engine}", "pool_unit_integer" if integer else "pool_unit", unit, n)
    yield _output(npu, npu.pool_word_bits + npu.pool_side_bits, n)
    if integer:
        yield AreaPart(
            "divide", "divide", {"one": 1, "bits": npu.array.feature_bits}, n, present(npu.pool_unit).pfp, dsp=1
        )


def _output(npu: Npu, width: int, n: int) -> AreaPart:
    """The FIFO behind a pool unit."""
    return fifo(width, timing.pool_fifo_words(npu), n, timing.pool_fifo_margin(npu))


def _depthwise(npu: Npu, n: int) -> Iterator[AreaPart]:
    """A pool unit with weights, its FIFO, the gearbox behind that, and what makes features."""
    lut, ff = unit_bits(npu)
    yield AreaPart("pool_unit_depthwise", "pool_unit_depthwise", {}, n, lut=lut, ff=ff)
    sums = present(npu.pool_unit).pfp * npu.array.acc_bits
    steps = npu.results.ol * npu.array.acc_bits
    side = npu.pool_side_bits + COUNT_BITS
    yield _output(npu, sums + side, n)
    yield from gear(sums, steps, side - 1, n)
    pointer = bits_for(present(npu.pool_weights).scale_rows - 1)
    wide = npu.unchecked(multiplier_bits=max(npu.results.multiplier_bits, npu.reciprocal_bits))
    values = {"one": 1, "pointer": pointer, "lanes": npu.results.ol * npu.array.acc_bits, **requantise_sizes(wide)}
    chosen = npu.results.ol * (
        wide.biased_bits + wide.results.multiplier_bits + wide.scale_shift_bits
    )  # row of scales or average
    yield AreaPart("results_integer", "pool_results", values, n, dsp=npu.results.ol * multiplier_dsps(wide), lut=chosen)


def unit_bits(npu: Npu) -> tuple[int, int]:
    """LUTs and flip-flops of a pool unit with weights, by rule: a LUT for each bit of an adder or a choice.

    Of a lane: the weight or 1; a sum for each two of its bits, and the sums of these; in front of the queue a sum, a
    comparison, and the choice of what stays.
    """
    f = npu.array.feature_bits
    w = npu.array.weight_bits
    pairs = -(-w // 2)
    product = w + pairs * (f + 2) + (pairs - 1) * (f + w) * 3 // 4
    registers = pairs * (f + 2) + f + w
    merged = npu.array.acc_bits * 7 // 2
    late = present(npu.pool_unit).index_bits + npu.pool_side_bits + COUNT_BITS + 4
    return present(npu.pool_unit).pfp * (product + merged) + late, present(
        npu.pool_unit
    ).pfp * registers + 3 * late // 2


def kernel_row_bits(sequencer: NpuSequencer) -> tuple[int, int]:
    """LUTs and flip-flops by which the sequencer of a pool unit with weights counts rows of weights and jumps, by rule:
    four registers of a row's address, each a choice of sums, and a pointer into the table of jumps."""
    row = sequencer.row_bits
    jump = bits_for(sequencer.jumps - 1)
    counters = sequencer.kind.counters
    return 6 * row + 2 * jump + 4 * row * counters, 6 * row + 2 * jump + 6 * row * counters

"""Area of the pool unit: its sequencer and the unit itself, with what makes features where the unit has weights."""

from collections.abc import Iterator

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.sequencer import bases
from bitloom.hls_gen.design.npu import Npu, NpuSequencer
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.pool_unit import PoolUnit, PoolWeights
from bitloom.hls_gen.design.sequencer_kind import JUMPS
from bitloom.hls_gen.design.split_product import split_product
from bitloom.hls_gen.design.widths import COUNT_BITS, bits_for

from .area_block import AreaBlock, fifo, gear, sequencer_modules, skid
from .line_former import line_former_blocks, line_former_stores
from .products import PRODUCT_LUTS
from .results import multiplier_dsps, requantise_sizes
from .store import Store


def pool_unit_blocks(npu: Npu, n: int) -> Iterator[AreaBlock]:
    """The pool unit of NPU ``n``, what stands in front of it, and the way past it; nothing without a pool unit."""
    pool_unit = npu.pool_unit
    sequencer = npu.pool_sequencer
    if not pool_unit or not sequencer:
        return
    yield _sequencer(sequencer, n)
    if pool_unit.weights:
        yield from _depthwise(npu, pool_unit, pool_unit.weights, n)
    else:
        yield from _pooling(npu, pool_unit, n)
    yield from gear(npu.results.ol * npu.array.feature_bits, npu.pool_word_bits, 0, n)
    yield from line_former_blocks(sequencer, n)
    if npu.passes_by:
        steps = npu.results.ol * npu.array.feature_bits + npu.map_mark_bits
        yield AreaBlock(
            "pass_by", "pass_by", {}, n, lut=steps + 3 * bits_for(pool_unit.words), ff=bits_for(pool_unit.words)
        )


def pool_unit_stores(npu: Npu) -> Iterator[Store]:
    """The tuple memory, the queue of windows under way, the FIFO behind the unit, and what a line former holds."""
    pool_unit = npu.pool_unit
    if not pool_unit:
        return
    yield Store("pool_tuples", npu.pool_line_bits, pool_unit.words, 1)
    yield from line_former_stores(present(npu.pool_sequencer))
    yield Store("pool_queue", npu.pool_queue_bits, 1 << pool_unit.index_bits, 0)
    yield Store("pool_fifo", npu.pool_out_bits, timing.pool_fifo(npu).words, 0)


def _sequencer(sequencer: NpuSequencer, n: int) -> AreaBlock:
    """The pool unit's sequencer; with weights it counts their rows, too."""
    npu = sequencer.npu
    kind = sequencer.kind
    ring = sequencer.address_bits
    counts = (npu.sequencer.windows, npu.sequencer.window_taps, npu.sequencer.input_words)
    tables = [table for table in kind.tables if table != JUMPS]  # jumps are counted with kernel rows
    sizes = {
        "one": 1,
        "ring": ring,
        "counts": sum(bits_for(count) for count in counts),
        "tables": sum(bits for _, bits in bases(sequencer, tables)),
        "average": npu.averages,
        "raster": kind.counters,
        "raster_ring": ring * kind.counters,
    }
    lut, ff = _kernel_row_bits(sequencer) if kind.kernel_rows else (0, 0)
    modules = sequencer_modules("pool")
    return AreaBlock("pool_sequencer", "pool_sequencer", sizes, n, modules=modules, lut=lut, ff=ff)


def _pooling(npu: Npu, pool_unit: PoolUnit, n: int) -> Iterator[AreaBlock]:
    """A pool unit without weights, and its FIFO."""
    sizes = {"one": 1, "word": npu.pool_word_bits, "index": pool_unit.index_bits}
    lut, ff = _merged_taps(npu, pool_unit, npu.array.feature_bits)
    name = f"pool_unit_{npu.engine}"
    yield AreaBlock(name, name if npu.engine == "integer" else "pool_unit", sizes, n, lut=lut, ff=ff)
    yield _fifo(npu, n)
    if npu.averages:
        yield AreaBlock("divide", "divide", {"one": 1, "bits": npu.array.feature_bits}, n, pool_unit.pfp, dsp=1)


def _depthwise(npu: Npu, pool_unit: PoolUnit, weights: PoolWeights, n: int) -> Iterator[AreaBlock]:
    """A pool unit with weights, its FIFO, the gearbox behind that, and what makes features, which end in a skid
    register."""
    ol = npu.results.ol
    lut, ff = unit_bits(npu, pool_unit)
    yield AreaBlock("pool_unit_depthwise", "pool_unit_depthwise", {}, n, lut=lut, ff=ff)
    yield _fifo(npu, n)
    sums = npu.pool_values_bits
    number = npu.pool_last_piece_bits
    yield from gear(sums, ol * npu.array.acc_bits, npu.pool_out_bits - sums - 1 - number, n, number)
    wide = npu.of_pool_results
    sizes = {
        "one": 1,
        "pointer": bits_for(weights.scale_rows - 1),
        "lanes": ol * npu.array.acc_bits,
        **requantise_sizes(wide),
    }
    row_or_average = ol * (wide.biased_bits + wide.requantisation.multiplier_bits + wide.scale_shift_bits)
    dsp = ol * multiplier_dsps(wide)
    lut = row_or_average
    split = split_product(wide)
    if split and split.rest and "pool" in npu.results.lut_products:
        dsp -= ol
        lut += round(ol * PRODUCT_LUTS * (split.rest + 1) * (wide.biased_bits - split.apart))
    yield AreaBlock("results_integer", "pool_results", sizes, n, dsp=dsp, lut=lut)
    yield skid(ol * npu.array.feature_bits, npu.map_mark_bits, n)


def _merged_taps(npu: Npu, pool_unit: PoolUnit, value_bits: int) -> tuple[int, int]:
    """LUTs and flip-flops by which the values of a beat's taps are merged, and those of lines that share lanes, by
    rule: of integers a sum, a comparison and a choice, and a register; of bits an OR. What lines that share lanes give
    is chosen, in each lane."""
    pfp, beat = pool_unit.pfp, pool_unit.beat
    merges = pool_unit.beat_lanes - pfp // beat.lane_lines
    chosen = pfp * (beat.lane_lines > 1)
    if npu.engine == "binary":
        return merges + chosen, 0
    wide = value_bits + bits_for(beat.taps * beat.lane_lines - 1) * (merges > 0)
    registers = timing.tap_stages(npu) + timing.lane_stages(npu)
    return merges * wide * 7 // 2 + chosen * wide, pfp * wide * registers


def _fifo(npu: Npu, n: int) -> AreaBlock:
    """The FIFO behind a pool unit."""
    size = timing.pool_fifo(npu)
    return fifo(npu.pool_out_bits, size.words, n, size.margin)


def unit_bits(npu: Npu, pool_unit: PoolUnit) -> tuple[int, int]:
    """LUTs and flip-flops of a pool unit with weights, by rule: a LUT for each bit of an adder or a choice.

    Of a lane: the weight or 1; a sum for each two of its bits, and the sums of these; in front of the queue a sum, a
    comparison, and the choice of what stays.
    """
    feature = npu.array.feature_bits
    weight = npu.array.weight_bits
    pairs = -(-weight // 2)
    product = weight + pairs * (feature + 2) + (pairs - 1) * (feature + weight) * 3 // 4
    registers = pairs * (feature + 2) + feature + weight
    merged = npu.array.acc_bits * 7 // 2
    late = pool_unit.index_bits + npu.pool_side_bits + COUNT_BITS + 4
    taps_lut, taps_ff = _merged_taps(npu, pool_unit, feature + weight)
    lanes = pool_unit.beat_lanes
    lut = lanes * product + pool_unit.pfp * merged + taps_lut + late
    return lut, lanes * registers + taps_ff + 3 * late // 2


def _kernel_row_bits(sequencer: NpuSequencer) -> tuple[int, int]:
    """LUTs and flip-flops by which the sequencer of a pool unit with weights counts rows of weights and jumps, by rule:
    four registers of a row's address, each a choice of sums, and a pointer into the table of jumps."""
    row = sequencer.row_bits
    ((_, jump),) = bases(sequencer, [JUMPS])
    moves = row * sequencer.kind.counters
    return 6 * row + 2 * jump + 4 * moves, 6 * row + 2 * jump + 6 * moves

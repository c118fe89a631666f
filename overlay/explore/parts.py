"""The blocks of a design, and of each block the sizes by which its area goes (features), without generating it.

What a block's module is made of stands in hls_gen/rtl. Memories are not among the parts: they go by rule (memory.py,
stores.py).
"""

from collections.abc import Iterator

from bitloom.hls_gen.design import gearbox, timing
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.design.memories.memory_map import kernel_store, memory_map, memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.registers import state_bits
from bitloom.hls_gen.design.widths import TAIL_BITS, bits_for
from bitloom.overlay.area.netlist import sized_name

from .area_part import AreaPart, collector, fifo, gear, sequencer_modules
from .kernel_parts import by_rule, two_maps_in_turn
from .memory import mapped
from .packed_parts import multiplier_bits, sharing, sum_bits
from .pool_parts import pool_parts
from .products import addition_products, dsps, multiplier_dsps, narrow_product_luts, requantise_sizes, sum_sizes


def parts(design: Design) -> list[AreaPart]:
    """All parts of a design."""
    out = [*_shell(design)]
    for n, npu in enumerate(design.npus):
        out += npu_parts(npu, design.next_word_bits(n), design.stream_bits, n)
    return out


def npu_parts(npu: Npu, ring_bits: int, stream_bits: int, n: int = 0) -> list[AreaPart]:
    """The parts that come with an NPU.

    Parameters
    ----------
    npu
        The NPU.
    ring_bits
        Width of a word at its outlet "ring".
    stream_bits
        Width of the streams.
    n
        Its number.
    """
    return [*core_parts(npu, stream_bits, n), *outlet_parts(npu, ring_bits, n)]


def core_parts(npu: Npu, stream_bits: int, n: int = 0) -> list[AreaPart]:
    """The parts of an NPU that don't depend on the NPU after it."""
    return [*_engine(npu, stream_bits, n), *_ways(npu, n), *_host(npu, stream_bits, n)]


def outlet_parts(npu: Npu, ring_bits: int, n: int = 0) -> list[AreaPart]:
    """The gearboxes at the outlets of an NPU, whose outlet "ring" has words of ``ring_bits``."""
    width = npu.pool_word_bits if npu.pool_unit and not npu.depthwise else npu.results.ol * npu.array.feature_bits
    words = {name: ring_bits if name == "ring" else npu.array.word_bits for name in npu.targets}
    out: list[AreaPart] = []
    for w in dict.fromkeys(words.values()):
        names = [name for name, v in words.items() if v == w]
        marks = not {"loop", "skip"}.issuperset(names)  # stores alone don't look at a map's end
        side = marks + npu.target_bits * (len(names) > 1) + 2 * ("skip" in names)
        out += gear(width, w, side, n)
    return out


def _shell(design: Design) -> Iterator[AreaPart]:
    """Loader, registers and top module, with what stands between the streams and the NPUs."""
    stream = design.stream_bits
    first = design.npus[0]
    memories = [m for npu in design.npus for m in memory_map(npu)]
    rows = max(bits_for(m.depth - 1) for m in memories)
    network = sum(memory_of(npu, "network").width for npu in design.npus)
    yield AreaPart(
        "loader",
        "loader",
        {
            "one": 1,
            "npus": len(design.npus),
            "memories": len(memories),
            "rows": rows,
            "network": network,
            "stream": stream,
        },
    )
    pulses = sum(len(npu.pulses) for npu in design.npus)
    state = sum(state_bits(npu) for npu in design.npus)
    registers = {"one": 1, "npus": len(design.npus), "pulses": pulses, "state": state}
    yield AreaPart("registers", "registers_block", registers)
    yield AreaPart("top", TOP, {"one": 1, "npus": len(design.npus), "stream": stream})
    word = first.host_word_bits
    pieces, together = gearbox.gear(word, stream)  # how the host put words into stream words is undone
    if word > stream:
        yield collector(stream, together, word, 0)
    else:
        sizes = {"IN_WIDTH": stream, "OUT_WIDTH": word, "LAST_PIECE": pieces - 1, "TAIL_WIDTH": TAIL_BITS}
        name = sized_name("frame_divider", sizes)
        if pieces == 1:  # a register, which is estimated as a divider, too
            name = sized_name("stream_register", {"WIDTH": stream, "SIDE_WIDTH": 1})
        yield AreaPart("divider", name, {"one": 1, "width": stream, "pieces": bits_for(pieces)})
    yield fifo(1, timing.FRAMES_IN_FLIGHT)
    if design.spill_words:
        yield fifo(first.array.word_bits + 1, design.spill_words)
    yield collector(stream, 1, stream, 1)


def _engine(npu: Npu, stream_bits: int, n: int) -> Iterator[AreaPart]:
    """The parts from the tuple memory to the pool unit."""
    acc = npu.array.acc_bits
    several = npu.array.accumulators > 1
    sequencer = npu.array_sequencer
    kind = sequencer.kind
    ring = sequencer.address_bits
    yield from array_parts(npu, n)
    banks = -(-kernel_store(npu).width // stream_bits)
    slot = npu.array.slot_bits if several else 0
    convolver = {"one": 1, "acc": acc * (npu.engine == "binary"), "banks": banks, "slot": slot, "code": npu.code_bits}
    yield AreaPart("convolver", "convolver", convolver, n)
    for name, sizes in by_rule(npu, stream_bits):
        yield AreaPart(name, name, {}, n, **sizes)
    row = sequencer.row_bits
    tables = sum(
        bits_for(rows - 1) for rows in (sequencer.taps, sequencer.olds, sequencer.jumps, sequencer.aheads) if rows
    )
    source = npu.array.word_bits * (len(npu.sources) - 1)
    counts = sum(
        bits_for(n)
        for n in (npu.sequencer.windows, npu.sequencer.window_taps, npu.sequencer.groups, npu.sequencer.input_words)
    )
    common = {
        "one": 1,
        "ring": ring,
        "counts": counts,
        "row": row,
        "tables": tables,
        "several": several,
        "slot": slot,
        "acc": acc * (npu.engine == "binary"),
        "source": source,
        "inlets": len(npu.sources) - 1,
    }
    counted = {
        "raster": kind.counters,
        "raster_ring": ring * kind.counters,
        "raster_row": row * kind.counters,
    }
    turns = two_maps_in_turn(npu)
    modules = sequencer_modules("conv")
    yield AreaPart("conv_sequencer", "conv_sequencer", {**common, **counted}, n, modules=modules, **turns)
    queue = npu.array.kgp * acc * (npu.units > 1)
    pointer = bits_for(npu.results.threshold_rows - 1)
    raw = "host" in npu.ports.outlets
    counts = sum(bits_for(n) for n in (npu.sequencer.windows, npu.sequencer.groups, npu.results.levels))
    values = {
        "one": 1,
        "counts": counts,
        "queue": queue,
        "lanes": npu.results.ol * acc,
        "pointer": pointer,
        "slot": slot,
        "several": several,
        "raw": npu.results.ol * acc * raw,
    }
    values |= requantise_sizes(npu) if npu.requantises else {}
    kind = "results_integer" if npu.requantises else "results_binary"
    yield AreaPart(kind, "results_unit", values, n, dsp=npu.results.ol * multiplier_dsps(npu))
    if npu.has_skip:
        yield from _addition(npu, n)
    yield from pool_parts(npu, n)


def _addition(npu: Npu, n: int) -> Iterator[AreaPart]:
    """The addition, the fork of maps, or of steps, and the skip store."""
    row = memory_of(npu, "additions").width
    cut = npu.skip_word_bits * (npu.skip_lanes > npu.results.ol)
    values = {"one": 1, "wide": npu.results.ol * npu.add_total_bits, "row": row, "cut": cut}
    yield AreaPart("addition", "addition", values, n, **addition_products(npu))
    if npu.results.ol > npu.skip_lanes:
        yield collector(
            npu.array.word_bits, npu.results.ol // npu.array.kfp, npu.results.ol * npu.array.feature_bits, 0, n
        )
    yield AreaPart("map_fork", "map_fork" if npu.forks_maps else "signs", {"one": 1}, n)
    yield fifo(npu.skip_word_bits + npu.forks_maps, present(npu.stores.skip).words, n)


def array_parts(npu: Npu, n: int) -> Iterator[AreaPart]:
    """The PEs."""
    acc = npu.array.acc_bits
    lanes = npu.array.kfp
    several = npu.array.accumulators > 1
    choice = 2 * mapped(acc, npu.array.accumulators, 0).resources.lut if several else 0
    if npu.array.kernels_per_multiplier > 1:
        yield from _sharing(npu, n)
    own = npu.array.kgp if npu.array.kernels_per_multiplier == 1 else sharing(npu).count(1)
    if npu.engine == "integer":
        bits = npu.array.feature_bits + npu.array.weight_bits
        each = dsps(npu.array.feature_bits, npu.array.weight_bits)
        products = 0.0 if each else lanes * narrow_product_luts(npu.array.feature_bits, npu.array.weight_bits)
        features = {
            "one": 1,
            "lanes": lanes * bits,
            "acc": acc,
            "products": products,
            "several": several * acc,
            "alone": acc * (not several),
            "choice": choice,
            **sum_sizes(npu),
        }
        kind = "pe_integer_dsp" if each else "pe_integer_lut"
        if own:
            yield AreaPart(kind, "pe_", features, n, own, True, dsp=lanes * each)
        return
    if npu.array.word_lanes:
        yield _words(npu, n)
    if npu.array.accumulate == "or_words":
        return
    if npu.array.collect:
        yield AreaPart("pe_collect", "pe_", {"one": 1, "lanes": npu.array.collect, "acc": acc}, n, npu.array.kgp, True)
        return
    if npu.array.accumulate == "or":
        yield AreaPart("pe_or", "pe_", {"one": 1, "lanes": lanes, "acc": acc}, n, npu.array.kgp, True)
        return
    found = npu.array.lane_groups
    chunks = sum(-(-size // timing.POPCOUNT_LANES) for _, size in found)
    features = {
        "one": 1,
        "lanes": lanes,
        "acc": acc,
        "bits": sum(bits_for(size) for _, size in found),
        "triples": sum(size // 3 for _, size in found),
        "singles": sum(size % 3 for _, size in found),
        "several": acc * several,
        "alone": acc * (not several),
        "choice": choice,
        "chunks": chunks * bits_for(lanes) * timing.counts_in_parts(npu),
        "both": acc * (npu.array.accumulate == "both"),
    }
    if npu.array.planes:
        features |= {"planes": npu.array.planes, "plain": lanes * bool(npu.code_bits)}
        yield AreaPart("pe_planes", "pe_", features, n, npu.array.kgp, True)
        return
    features |= {"shift": npu.array.shift_bits * acc, "shifts": bool(npu.array.shift_bits)}
    yield AreaPart("pe_popcount", "pe_", features, n, npu.array.kgp, True)


def _sharing(npu: Npu, n: int) -> Iterator[AreaPart]:
    """Multipliers that PEs share, and these PEs; all by rule (packed_parts.py)."""
    adders, registers = sum_bits(npu)
    for kernels in sharing(npu):
        if kernels > 1:
            lut, ff = multiplier_bits(npu, kernels)
            yield AreaPart(
                "multipliers", f"multipliers_{npu.array.kfp}x{kernels}", {}, n, dsp=npu.array.kfp, lut=lut, ff=ff
            )
            for name, times in ((f"pe_sums_{npu.array.kfp}", 1), (f"pe_sums_carried_{npu.array.kfp}", kernels - 1)):
                yield AreaPart("sums", name, {}, n, times, True, lut=adders, ff=registers)


def _words(npu: Npu, n: int) -> AreaPart:
    """What counts words: the PE, or what it has for them beside counting products."""
    lanes = npu.array.collect or npu.array.kfp
    features = {"lanes": lanes, "words": lanes // npu.array.word_lanes}
    if npu.array.accumulate == "or_words":
        features |= {"one": 1, "acc": npu.array.acc_bits, "several": npu.array.acc_bits * (npu.array.accumulators > 1)}
        return AreaPart("pe_or_words", "pe_", features, n, npu.array.kgp, True)
    return AreaPart("pe_words", "pe_", {**features, "acc": npu.array.acc_bits}, n, npu.array.kgp)


def _ways(npu: Npu, n: int) -> Iterator[AreaPart]:
    """What lies between the engine and its neighbours, without the gearboxes at the outlets."""
    outlets = len(npu.targets)
    yield AreaPart("npu", "npu", {"one": 1, "word": npu.array.word_bits * (outlets - 1), "outlets": outlets}, n)
    if npu.pool_unit:
        yield from gear(npu.results.ol * npu.array.feature_bits, npu.pool_word_bits, 0, n)
    if "loop" in npu.ports.inlets:
        yield fifo(npu.array.word_bits, npu.stores.map_words, n)
    if "ring" in npu.ports.inlets:
        place = bits_for(npu.ports.buffer_words - 1)
        yield AreaPart("ping_pong", "ping_pong", {"one": 1, "place": place, "word": npu.array.word_bits}, n)
    if npu.ports.binariser:
        yield AreaPart(
            "binariser", "binariser", {"one": 1, "lanes": npu.array.kfp * present(npu.ports.binariser).bits}, n
        )


def _host(npu: Npu, stream: int, n: int) -> Iterator[AreaPart]:
    """What turns an NPU's results into stream words."""
    if "host" not in npu.ports.outlets:
        return
    yield from gear(npu.results.ol * npu.array.acc_bits, npu.array.acc_bits, 0, n)
    yield from gear(32, stream, 0, n)
    yield fifo(npu.array.word_bits + 1, timing.MAP_HELD, n)
    yield from gear(npu.array.word_bits, stream, 0, n)

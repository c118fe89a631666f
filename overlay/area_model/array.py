"""Area of the array: PEs, and what stands around the kernel memory.

Of integer PEs that share multipliers (hls_gen/rtl/array/multipliers.py, pe_sums.py) a DSP block holds the product and
one addition of weights; each bit of another adder takes a LUT. tests/overlay/area_model/test_array.py has Yosys'
figures.
"""

from collections.abc import Iterator
from typing import Any

from bitloom.hls_gen.design import packed_products, timing
from bitloom.hls_gen.design.array import IntegerArray
from bitloom.hls_gen.design.memories.memory_map import kernel_bits, memory_of, operand_bits
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.reducer import Or, OrWords, Popcount, SerialPopcount
from bitloom.hls_gen.design.signed_sum import register_bits, row_bits, signed_sum, uses
from bitloom.hls_gen.design.widths import KERNEL_BITS, bits_for

from .area_block import AreaBlock
from .memory import mapped
from .products import dsps, narrow_product_luts
from .store import SUMS, Store


def array_blocks(npu: Npu, stream_bits: int, n: int) -> Iterator[AreaBlock]:
    """The array of NPU ``n``."""
    yield from pe_blocks(npu, n)
    banks = -(-kernel_bits(npu) // stream_bits)
    sizes = {
        "one": 1,
        "acc": npu.array.offset_bits,
        "banks": banks,
        "slot": slot_bits(npu),
        "code": npu.code_bits,
    }
    yield AreaBlock("convolver", "convolver", sizes, n)
    if npu.array.one_memory:
        yield AreaBlock("operand_memory", "operand_memory", {}, n, **_operand_memory(npu, stream_bits))
    if npu.array.kernel_binariser:
        yield AreaBlock("kernel_binariser", "kernel_binariser", {}, n, **_binariser(npu, stream_bits))


def array_stores(npu: Npu) -> Iterator[Store]:
    """The accumulators where a PE has several; the kernel memory is one that packets fill."""
    if npu.array.accumulators > 1:
        width = 1 if isinstance(npu.array.reducer, Or) else npu.array.acc_bits
        yield Store(SUMS, width, npu.array.accumulators, 0, 2 * npu.array.kgp, registered=True)
        if npu.array.offset_bits:
            yield Store("offsets", npu.array.offset_bits, npu.array.accumulators, 0, registered=True)


def slot_bits(npu: Npu) -> int:
    """Width of the number of an accumulator in its PE; 0 where there is one."""
    return npu.array.slot_bits if npu.array.accumulators > 1 else 0


def pe_blocks(npu: Npu, n: int) -> Iterator[AreaBlock]:
    """The PEs of an NPU."""
    acc = npu.array.acc_bits
    lanes = npu.array.kfp
    several = npu.array.accumulators > 1
    choice = 2 * mapped(acc, npu.array.accumulators, 0).resources.lut if several else 0
    if npu.adds_integers:
        yield from _signed(npu, n, choice)
        return
    if npu.array.kernels_per_multiplier > 1:
        yield from _sharing(npu, n)
    unshared = npu.array.kgp if npu.array.kernels_per_multiplier == 1 else sharing(npu).count(1)
    array = npu.array
    if isinstance(array, IntegerArray):
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
        if unshared:
            yield AreaBlock(kind, "pe_", features, n, unshared, True, dsp=lanes * each)
        return
    reducer = array.reducer
    if isinstance(reducer, (Popcount, OrWords)) and reducer.word_lanes:
        yield _words(npu, reducer, n)
    if isinstance(reducer, OrWords):
        return
    if reducer.collects:
        products = reducer.products(lanes)
        yield AreaBlock("pe_collect", "pe_", {"one": 1, "lanes": products, "acc": acc}, n, npu.array.kgp, True)
        return
    if isinstance(reducer, Or):
        yield AreaBlock("pe_or", "pe_", {"one": 1, "lanes": lanes, "acc": acc}, n, npu.array.kgp, True)
        return
    assert isinstance(reducer, SerialPopcount), "of the kinds of reducer one is left"
    groups = array.lane_groups
    chunks = sum(-(-size // timing.POPCOUNT_LANES) for _, size in groups)
    features = {
        "one": 1,
        "lanes": lanes,
        "acc": acc,
        "bits": sum(bits_for(size) for _, size in groups),
        "triples": sum(size // 3 for _, size in groups),
        "singles": sum(size % 3 for _, size in groups),
        "several": acc * several,
        "alone": acc * (not several),
        "choice": choice,
        "chunks": chunks * bits_for(lanes) * timing.counts_in_parts(npu),
        "both": acc * ("or" in reducer.choices),
    }
    if reducer.planes:
        features |= {"planes": reducer.planes, "plain": lanes}
        yield AreaBlock("pe_planes", "pe_", features, n, npu.array.kgp, True)
        return
    features |= {"shift": reducer.shift_bits * acc, "shifts": bool(reducer.shift_bits)}
    yield AreaBlock("pe_popcount", "pe_", features, n, npu.array.kgp, True)


def _signed(npu: Npu, n: int, choice: float) -> Iterator[AreaBlock]:
    """PEs that add or subtract integers, and what they share; all by rule. An addition is a LUT a bit, and one for the
    sign; a pair's sum and difference have the lowest bit in common, and the sum of two highest bits."""
    planes, lanes, acc = npu.array.planes, npu.array.plane_lanes, npu.array.acc_bits
    tree = signed_sum(lanes)
    several = npu.array.accumulators > 1
    rows = [min(acc, w) for w in row_bits(planes, tree)]
    held = [min(acc, w) for w in register_bits(planes, tree)]
    late = sum(stage * len(part.lanes) for stage, part in uses(tree))
    lut = sum(rows) + len(rows) + acc * (1 + several) + 2 + choice
    ff = sum(held) + late + 1 + acc * 2 * (not several)
    yield AreaBlock("pe_signed", "pe_", {}, n, npu.array.kgp, True, lut=lut, ff=ff)
    pairs = [stage for stage, part in uses(tree) if len(part.lanes) == 2]
    singles = [stage for stage, part in uses(tree) if len(part.lanes) == 1]
    registers = sum(pairs) * (2 * planes + 1) + sum(singles) * planes
    yield AreaBlock("lane_pairs", "lane_pairs", {}, n, lut=2 * planes * len(pairs), ff=registers)


def _sharing(npu: Npu, n: int) -> Iterator[AreaBlock]:
    """Multipliers that PEs share, and these PEs; all by rule (`sum_bits`)."""
    adders, registers = sum_bits(npu)
    for kernels in sharing(npu):
        if kernels > 1:
            lut, ff = multiplier_bits(npu, kernels)
            yield AreaBlock(
                "multipliers", f"multipliers_{npu.array.kfp}x{kernels}", {}, n, dsp=npu.array.kfp, lut=lut, ff=ff
            )
            for name, times in ((f"pe_sums_{npu.array.kfp}", 1), (f"pe_sums_carried_{npu.array.kfp}", kernels - 1)):
                yield AreaBlock("sums", name, {}, n, times, True, lut=adders, ff=registers)


def _words(npu: Npu, reducer: Popcount | OrWords, n: int) -> AreaBlock:
    """Area of counting words: the PE itself, or the part that it has beside counting products."""
    lanes = reducer.products(npu.array.kfp)
    features = {"lanes": lanes, "words": lanes // reducer.word_lanes}
    if isinstance(reducer, OrWords):
        features |= {"one": 1, "acc": npu.array.acc_bits, "several": npu.array.acc_bits * (npu.array.accumulators > 1)}
        return AreaBlock("pe_or_words", "pe_", features, n, npu.array.kgp, True)
    return AreaBlock("pe_words", "pe_", {**features, "acc": npu.array.acc_bits}, n, npu.array.kgp)


def _operand_memory(npu: Npu, stream_bits: int) -> dict[str, Any]:
    """Choices of what is written and which row is read, and a register with the word at work."""
    banks = -(-operand_bits(npu) // stream_bits)
    return {
        "lut": npu.array.word_bits + npu.array.row_bits + bits_for(npu.sequencer.tuple_words - 1) + banks + 3,
        "ff": npu.array.word_bits + 1,
    }


def _binariser(npu: Npu, stream_bits: int) -> dict[str, Any]:
    """A LUT for each bit of a bank, and a register where it waits for others."""
    words = min(-(-memory_of(npu, "kernels").width // stream_bits), KERNEL_BITS)
    bank = min(kernel_bits(npu), stream_bits)
    return {"lut": bank + words + 3, "ff": (words - 1) * stream_bits // KERNEL_BITS}


def sharing(npu: Npu) -> list[int]:
    """How many PEs share their multipliers, group by group; 1: one that is left over, with multipliers of its own."""
    full, rest = divmod(npu.array.kgp, npu.array.kernels_per_multiplier)
    return [npu.array.kernels_per_multiplier] * full + [rest] * (rest > 0)


def sum_bits(npu: Npu) -> tuple[int, int]:
    """Bits of the adders and of the registers of a PE without multipliers. Carries go into adders at no cost."""
    adders = registers = 0
    for terms, w in _stages(npu):
        for first in range(0, terms, timing.SUM_TERMS):
            count = min(timing.SUM_TERMS, terms - first)
            wide = min(npu.array.acc_bits, w + (bits_for(count - 1) if count > 1 else 0))
            adders += (count - 1) * wide
            registers += wide
    totals = npu.array.acc_bits * (2 if npu.array.accumulators == 1 else 0)
    return adders + npu.array.acc_bits, registers + totals


def multiplier_bits(npu: Npu, kernels: int) -> tuple[int, int]:
    """LUTs and flip-flops of the multipliers of ``kernels`` PEs, beside DSP blocks.

    Of the additions of weights one is a DSP block's, and so is the register of one weight. Where products lie as close
    as they can, both smallest operands are looked for, and no weight's register is the block's. Registers of features,
    those of all groups, are not counted: they are the blocks', or there once.
    """
    f = npu.array.feature_bits
    w = npu.array.weight_bits
    apart = packed_products.spacing(kernels, f, w)
    lut = (kernels - 2) * packed_products.operand_bits(kernels, apart, w)
    close = apart < f + w
    return npu.array.kfp * (lut + 4 * close), npu.array.kfp * (kernels * w + 1 if close else (kernels - 1) * w)


def _stages(npu: Npu) -> Iterator[tuple[int, int]]:
    """Terms of each stage of the adder tree, and their bits."""
    terms = npu.array.kfp
    w = npu.array.feature_bits + npu.array.weight_bits
    for _ in range(timing.sum_stages(npu)):
        yield terms, w
        most = min(timing.SUM_TERMS, terms)
        terms = -(-terms // timing.SUM_TERMS)
        w = min(npu.array.acc_bits, w + (bits_for(most - 1) if most > 1 else 0))


def sum_sizes(npu: Npu) -> dict[str, float]:
    """Bits of an integer PE's adders and sums, also without the first stage, which DSP blocks do.

    Each stage adds up to SUM_TERMS terms, and its sums have two bits more than they.
    """
    sizes = {"adders": 0.0, "sums": 0.0, "late_adders": 0.0, "late_sums": 0.0}
    terms = npu.array.kfp
    bits = npu.array.feature_bits + npu.array.weight_bits
    for stage in range(timing.sum_stages(npu)):
        sums = -(-terms // timing.SUM_TERMS)
        bits = min(npu.array.acc_bits, bits + 2)
        for name in ("", "late_") if stage else ("",):
            sizes[f"{name}adders"] += (terms - sums) * bits
            sizes[f"{name}sums"] += sums * bits
        terms = sums
    return sizes

"""Area of the results unit, with feature units and the addition of maps."""

from collections.abc import Iterator
from typing import Any

from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.memories.memory_map import memory_rows
from bitloom.hls_gen.design.memories.results import added_side_bits
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.split_product import split_product
from bitloom.hls_gen.design.stores import SkipStore
from bitloom.hls_gen.design.widths import bits_for

from .area_block import AreaBlock, collector, skid
from .array import slot_bits
from .products import PRODUCT_LUTS, dsps


def results_blocks(npu: Npu, n: int) -> Iterator[AreaBlock]:
    """The results unit of NPU ``n``, its feature units and the skid register behind them, and its addition where it has
    one."""
    acc = npu.array.acc_bits
    ol = npu.results.ol
    counts = (npu.sequencer.windows, npu.sequencer.groups, npu.results.levels)
    sizes = {
        "one": 1,
        "counts": sum(bits_for(count) for count in counts),
        "queue": npu.array.kgp * acc * (npu.group_steps > 1),
        "lanes": ol * acc,
        "pointer": bits_for(npu.results.threshold_rows - 1),
        "slot": slot_bits(npu),
        "several": npu.array.accumulators > 1,
        "raw": ol * acc * npu.ports.sends_results,
        **(requantise_sizes(npu) if npu.requantises else {}),
    }
    kind = "results_integer" if npu.requantises else "results_binary"
    yield AreaBlock(kind, "results_unit", sizes, n, dsp=ol * multiplier_dsps(npu))
    for unit in npu.results.feature_units:
        kind = unit.layer.kind
        yield AreaBlock(kind, kind, {}, n, ol, **unit.area(npu.value_bits)._asdict())
    yield skid(ol * npu.value_bits, npu.result_side_bits + added_side_bits(npu), n)
    if npu.stores.skip:
        yield from _addition(npu, npu.stores.skip, n)


def _addition(npu: Npu, skip: SkipStore, n: int) -> Iterator[AreaBlock]:
    """The addition, the gearbox in front of it, and the skid register in which it ends."""
    ol = npu.results.ol
    row = memory_rows(npu)["additions"].width
    cut = npu.skip_word_bits * (npu.skip_lanes > ol)
    sizes = {"one": 1, "wide": ol * npu.add_total_bits, "row": row, "cut": cut}
    yield AreaBlock("addition", "addition", sizes, n, **_addition_products(npu, skip))
    together, _ = gear(npu.skip_lanes, ol)
    yield collector(npu.skip_word_bits, together, together * npu.skip_word_bits, 0, n)
    yield skid(ol * npu.value_bits, npu.result_side_bits + npu.keeps_steps, n)


def _addition_products(npu: Npu, skip: SkipStore) -> dict[str, Any]:
    """DSP blocks and LUTs, by ``dsp`` and ``lut``, of the products of an addition of maps."""
    widths = npu.value_bits, npu.value_bits * (1 + npu.multiplies_maps)
    right = skip.factor_bits
    ol = npu.results.ol
    if "addition" in npu.results.lut_products:
        return {"dsp": 0, "lut": ol * PRODUCT_LUTS * sum(widths) * right}
    return {"dsp": ol * sum(dsps(left, right) for left in widths), "lut": 0.0}


def multiplier_dsps(npu: Npu) -> int:
    """DSP blocks of the product of a lane's requantisation; 0 where all multipliers are 1."""
    multiplies = npu.requantises and npu.requantisation.multiplier_bits
    if multiplies and (split := split_product(npu)) is not None:
        return 1 + (split.rest > 0)
    return dsps(npu.biased_bits, npu.requantisation.multiplier_bits + 1) if multiplies else 0


def requantise_sizes(npu: Npu) -> dict[str, float]:
    """Features of requantisation: its stages are as wide as the product, which several DSP blocks give in pieces; one
    block alone has the product's registers, too, and so have those of a product that is split between them."""
    ol = npu.results.ol
    wide = npu.product_bits
    blocks = multiplier_dsps(npu)
    split = split_product(npu) is not None
    apart = blocks != 1 and not split
    return {
        "wide": ol * wide,
        "apart": ol * wide * apart,
        "pieces": ol * wide * max(0, blocks - 1),
        "even": ol * wide * npu.requantisation.half_even,
        "factor": ol * npu.requantisation.multiplier_bits,
        "fraction": ol * npu.requantisation.bias_fraction_bits,
        "twice": ol * (wide - npu.requantisation.first_shift + 1) * npu.requantisation.round_twice * (not split),
    }

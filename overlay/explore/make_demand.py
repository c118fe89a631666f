"""A lowered layer of the compiler becomes a layer as the search sees it (layer_demand.py)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bitloom.hls_gen.compiler.binary_scales import requantisation
from bitloom.hls_gen.compiler.lowered_layers import Addition, LoweredLayer, Xnor
from bitloom.hls_gen.compiler.margins import roomy_acc_bits, roomy_multiplier_bits
from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.hls_gen.compiler.value_ranges import held_bits, signed_bits

from .layer_demand import LayerDemand
from .reading_demand import tabled


@dataclass(frozen=True)
class ReadingWays:
    """By what means NPUs of the search read maps.

    Attributes
    ----------
    counters
        Whether they have counters for raster order.
    ahead
        Whether taps claim tuples ahead by a table, as NPUs with a skip store do.
    depthwise
        Whether pool units have weights.
    """

    counters: bool = False
    ahead: bool = False
    depthwise: bool = False


def layer_demand(
    p: LoweredLayer, conv: StageTables, pool: StageTables | None, *, planes: int, by: ReadingWays
) -> LayerDemand:
    """The demand of a lowered layer of the compiler.

    Parameters
    ----------
    p
        The layer.
    conv, pool
        The schedules of its convolution and, where it has one, of its pool.
    planes
        Bit planes of its input, if that is one of integers to the binary engine; else 0.
    by
        How NPUs read maps.
    """
    visits = p.visits
    places = int(p.weight.shape[1])
    arithmetic = p.arithmetic
    binary = isinstance(arithmetic, Xnor)
    channels = int(p.weight.shape[2]) if planes else int(np.prod(p.weight.shape[2:]))
    windows = len(conv.output_order) if pool is None else len(pool.output_order)
    return LayerDemand(
        name=p.name,
        engine="binary" if binary else "integer",
        channels=channels,
        planes=planes,
        kernels=p.out_channels,
        levels=p.levels,
        places=places,
        taps=np.bincount(conv.window) * visits,
        reading={again: tabled(conv, visits, again, raster=by.counters, ahead=by.ahead) for again in (False, True)},
        pool=None if pool is None else tabled(pool, 1, False, kernel=by.depthwise, raster=by.counters),
        pool_taps=0 if pool is None else len(pool.index),
        pool_places=p.pool.window.taps if p.pool else 0,
        pool_burst=1 if pool is None else _burst(conv, pool),
        raw=p.raw,
        any_match=isinstance(arithmetic, Xnor) and arithmetic.accumulate == "or",
        word_channels=arithmetic.word_channels if isinstance(arithmetic, Xnor) else 0,
        value_bits=_value_bits(p),
        weighted=arithmetic.weighted,
        signs=binary and p.scale is not None,
        weight_bits=1 if binary else _weight_bits(p),
        macs=len(conv.index) * channels * p.out_channels,
        output_windows=windows,
        **(_of_signs(p) if binary and by.ahead else {} if binary else _of_integers(p)),
    )


def _burst(conv: StageTables, pool: StageTables) -> int:
    """Rows of a map for each row of its pool's windows (`LayerDemand.pool_burst`)."""
    in_rows, several = (np.diff(conv.output_order) > 0).all(), (pool.output_order == 1).any()
    return int(pool.stage.window.stride[0]) if in_rows and several else 1


def _of_integers(p: LoweredLayer) -> dict[str, Any]:
    """What only layers of the integer engine have, by attribute of `LayerDemand`."""
    joined = p.depthwise
    found_scales = [scale for scale in (p.scale, joined and joined.scale) if scale is not None]
    roundings = {scale.rounding for scale in found_scales}
    found: dict[str, Any] = {
        "multiplier_bits": roomy_multiplier_bits(max((scale.multiplier_bits for scale in found_scales), default=0)),
        "bias_fraction_bits": max((scale.fraction for scale in found_scales), default=0),
        "rounding": {"half_even": int("even" in roundings), "round_twice": int("twice" in roundings)},
        "depthwise": joined is not None,
    }
    return found | {"add_widths": _add_widths(p.addition)}


def _of_signs(p: LoweredLayer) -> dict[str, Any]:
    """What binary layers have besides on an NPU that requantises, by attribute of `LayerDemand`."""
    of = requantisation(p, np.arange(p.out_channels * p.levels)[:, None])
    limits = [of.low, of.high, *((p.addition.low, p.addition.high) if p.addition else ())]
    return {
        "multiplier_bits": roomy_multiplier_bits(p.scale.multiplier_bits if p.scale else 0),
        "bias_fraction_bits": of.fraction,
        "rounding": {"half_even": int(of.rounding == "even"), "round_twice": int(of.rounding == "twice")},
        "biased_bits": roomy_acc_bits(held_bits([p.biased_range]), held_bits([p.roomy_range])),
        "kept_bits": max(map(signed_bits, limits)),
        "add_widths": _add_widths(p.addition),
    }


def _add_widths(addition: Addition | None) -> dict[str, int]:
    """Capacities that an addition needs."""
    if addition is None:
        return {}
    factors = addition.factor_kept, addition.factor_added
    return {"add_factor_bits": max(map(signed_bits, factors)), "add_bias_bits": signed_bits(addition.bias)}


def _value_bits(p: LoweredLayer) -> int:
    """Width of an accumulator for the values of the layer, and of the depthwise convolution that joined it, as sizing
    makes it."""
    if isinstance(p.arithmetic, Xnor):
        low, high = p.sum_range
        return held_bits([(low, high + 1)])
    parts = [p] if p.depthwise is None else [p, p.depthwise]
    needed, roomy = [part.biased_range for part in parts], [part.roomy_range for part in parts]
    return roomy_acc_bits(*(held_bits((low, high + 1) for low, high in ranges) for ranges in (needed, roomy)))


def _weight_bits(p: LoweredLayer) -> int:
    """Bits of two's complement that hold all weights of the layer; 2 at the least."""
    weights = [p.weight] if p.depthwise is None else [p.weight, p.depthwise.weight]
    low, high = min(int(w.min()) for w in weights), max(int(w.max()) for w in weights)
    return max(2, 1 + max(high.bit_length(), (~low if low < 0 else low).bit_length()))

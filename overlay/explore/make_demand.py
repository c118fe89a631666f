"""A lowered layer of the compiler becomes a layer as the search sees it (layer_demand.py)."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bitloom.hls_gen.compiler.lowered_layers import LoweredLayer, Xnor
from bitloom.hls_gen.compiler.margins import roomy_acc_bits, roomy_multiplier_bits
from bitloom.hls_gen.compiler.needs import accumulator_widths, scale_widths
from bitloom.hls_gen.compiler.schedule import StageTables
from bitloom.hls_gen.design.memories import ROUNDING

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
        value_bits=_acc_bits(p, keeps_steps=False),
        weighted=p.weighted,
        signs=binary and p.scale is not None,
        weight_bits=1 if binary else _weight_bits(p),
        macs=len(conv.index) * channels * p.out_channels,
        output_windows=windows,
        depthwise=p.depthwise is not None,
        **(_scales(p) if by.ahead or not binary else {}),
    )


def _burst(conv: StageTables, pool: StageTables) -> int:
    """Rows of a map for each row of its pool's windows (`LayerDemand.pool_burst`)."""
    in_rows = (np.diff(conv.output_order) > 0).all()
    several = (pool.output_order == 1).any()
    return int(pool.stage.window.window.stride[0]) if in_rows and several else 1


def _scales(p: LoweredLayer) -> dict[str, Any]:
    """What layers have besides on an NPU that requantises, by attribute of `LayerDemand`."""
    widths = scale_widths(p)
    return {
        "multiplier_bits": roomy_multiplier_bits(widths["multiplier_bits"]),
        "bias_fraction_bits": widths["bias_fraction_bits"],
        "rounding": {name: widths[name] for name in ROUNDING},
        "biased_bits": _acc_bits(p, keeps_steps=True),
        "kept_bits": widths["skip_bits"],
        "add_widths": {name: widths[name] for name in ("add_factor_bits", "add_bias_bits")},
    }


def _acc_bits(p: LoweredLayer, *, keeps_steps: bool) -> int:
    """Width of an accumulator for the values of the layer, as sizing makes it."""
    widths = accumulator_widths(p, keeps_steps=keeps_steps)
    return roomy_acc_bits(widths["acc_bits"], widths["roomy_acc_bits"])


def _weight_bits(p: LoweredLayer) -> int:
    """Bits of two's complement that hold all weights of the layer; 2 at the least."""
    weights = [p.weight] if p.depthwise is None else [p.weight, p.depthwise.weight]
    low = min(int(w.min()) for w in weights)
    high = max(int(w.max()) for w in weights)
    return max(2, 1 + max(high.bit_length(), (~low if low < 0 else low).bit_length()))

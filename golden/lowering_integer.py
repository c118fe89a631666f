"""A model as passes of the integer engine (spec B11, B14): the plain layers, grouped; nothing is rewritten.

    sum    = over valid taps and channels of feature[c] * weight[o, tap, c]
    result = requantised sum (golden/requantise.py), then maximum or average over the pool window's valid taps

A pass without a requantisation is the last, and gives the sums themselves. Unsigned features of b bits are signed ones
of b + 1 bits to the engine.
"""

from dataclasses import dataclass

import numpy as np

from .conv import Weighted
from .encoding import Array, Encoding
from .flat import flat
from .layer import Layer, Map
from .network import Model
from .pool import AvgPool, Pool
from .requantise import Requantise
from .window import Window

TAILS = ((), ("requantise",), ("requantise", "max_pool"), ("requantise", "avg_pool"))
MAX_AVERAGE = 127
"""Taps of an average's window."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IntegerPass:
    """One trip through the integer engine; see the module's text.

    name : the weighted layer's.  height, width : input map.  window : of the convolution.
    weight : (out_channels, taps, channels) integers.
    bias, multiplier, shift : (out_channels,) int64, or None: the sums themselves are the result.
    low, high : smallest and largest feature.  pool : window, or None.  average : the pool is an average.
    value_range : smallest and largest sum, and sum plus bias, for any features.
    """

    name: str
    height: int
    width: int
    window: Window
    weight: Array
    bias: Array | None
    multiplier: Array | None
    shift: Array | None
    low: int
    high: int
    pool: Window | None
    average: bool
    value_range: tuple[int, int]

    visits = 1
    levels = 1

    @property
    def out_channels(self) -> int:
        """Kernels (DON)."""
        return len(self.weight)

    @property
    def raw(self) -> bool:
        """Whether sums are the result."""
        return self.bias is None


@dataclass(frozen=True, kw_only=True, eq=False)
class LoweredInteger:
    """A model as integer passes."""

    model: Model
    source: Map
    """The input as the first pass reads it (golden/flat.py)."""
    passes: tuple[IntegerPass, ...]


def stored_bits(encoding: Encoding) -> int:
    """Bits in two's complement that hold every value of the encoding."""
    return 1 + max(encoding.high.bit_length(), (~encoding.low).bit_length() if encoding.low < 0 else 0)


def lower_integer(model: Model, feature_bits: int, weight_bits: int, lanes: int = 1) -> LoweredInteger:
    """Passes of ``model`` for an engine with these widths. lanes : channels of a word (golden/flat.py).

    ValueError, naming layer, rule and value, where the engine can't compute the network.
    """
    given, model = model, flat(model, lanes)
    chain: list[tuple[Weighted, Map, list[Layer]]] = []
    for layer, source in model.network:
        if isinstance(layer, Weighted):
            chain.append((layer, source, []))
        elif chain:
            chain[-1][2].append(layer)
        else:
            raise ValueError(
                f"{layer.name}: a pass of the engine must begin with a conv or dense layer, got {layer.kind}"
            )
    passes = []
    for number, (layer, source, tail) in enumerate(chain):
        _check(layer, source, tail, number == len(chain) - 1, feature_bits, weight_bits)
        passes.append(_pass(model, layer, source, tail))
    return LoweredInteger(model=given, source=model.network.input, passes=tuple(passes))


def _check(layer: Weighted, source: Map, tail: list[Layer], is_last: bool, feature_bits: int, weight_bits: int) -> None:
    """Raise ValueError unless the engine can compute this layer and what follows it."""
    kinds = tuple(t.kind for t in tail)
    if layer.accumulate != "popcount":
        raise ValueError(f"{layer.name}: accumulate must be popcount, got {layer.accumulate}")
    if kinds not in TAILS:
        raise ValueError(
            f"{layer.name}: what follows must be nothing, requantise, or requantise and a pool, got {', '.join(kinds)}"
        )
    if not kinds and not is_last:
        raise ValueError(f"{layer.name}: a requantise must follow before the next layer, got none")
    for what, encoding, most in (("map", source.encoding, feature_bits), ("weight", layer.weight, weight_bits)):
        if encoding.kind == "bipolar" or stored_bits(encoding) > most:
            raise ValueError(f"{layer.name}: its {what} must fit {most} bits in two's complement, got {encoding}")
    for t in tail:
        if isinstance(t, Requantise) and stored_bits(t.encoding) > feature_bits:
            raise ValueError(f"{t.name}: encoding must fit {feature_bits} bits in two's complement, got {t.encoding}")
        if isinstance(t, AvgPool) and t.window.taps > MAX_AVERAGE:
            raise ValueError(f"{t.name}: an average must have at most {MAX_AVERAGE} taps, got {t.window.taps}")


def _pass(model: Model, layer: Weighted, source: Map, tail: list[Layer]) -> IntegerPass:
    window = layer.window(source)
    weight = model.arrays[layer.name]["weight"].astype(np.int64)
    act = next((t for t in tail if isinstance(t, Requantise)), None)
    pool = next((t for t in tail if isinstance(t, Pool)), None)
    arrays = {key: value.astype(np.int64) for key, value in model.arrays[act.name].items()} if act else {}
    low, high = layer.accumulator_range(source)
    if act:
        low, high = min(low, low + int(arrays["bias"].min())), max(high, high + int(arrays["bias"].max()))
        low, high = min(low, int(arrays["bias"].min())), max(high, int(arrays["bias"].max()))
    return IntegerPass(
        name=layer.name,
        height=source.height,
        width=source.width,
        window=window,
        weight=weight.reshape(layer.out_channels, window.taps, source.channels),
        bias=arrays.get("bias"),
        multiplier=arrays.get("multiplier"),
        shift=arrays.get("shift"),
        low=act.low if act else 0,
        high=act.high if act else 0,
        pool=pool.window if pool else None,
        average=isinstance(pool, AvgPool),
        value_range=(low, high),
    )

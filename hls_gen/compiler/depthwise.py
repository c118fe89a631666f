"""Depthwise convolutions, in which kernel k reads channel k alone: computed by a pool unit with weights, right behind
the layer before (hls_gen/rtl/pool/pool_depthwise.py).

    conv_1  requantise_1 | conv_2 (depthwise)  requantise_2 | conv_3   -->   conv_1 ... requantise_2 | conv_3

A plain convolution with weights of 0 for other channels than a kernel's own is a depthwise one, too. One that doesn't
stand where the pool unit could take it stays a convolution of its own, to the array a plain one (`plain_of`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.conv import Conv, product_range
from bitloom.golden.layers.depthwise import DepthwiseConv, is_depthwise, own_weights
from bitloom.golden.layers.grouped import ungrouped_weights
from bitloom.golden.layers.pool import Pool
from bitloom.golden.layers.requantise import Requantise, rounded
from bitloom.golden.network import Model
from bitloom.golden.window import Window

from .pools import canonical
from .segments import Segment
from .value_ranges import Range, with_any_biases, with_biases

BEFORE = (("requantise",), ("requantise", "add"))
"""Kinds of layers behind a weighted one that a depthwise convolution may follow in the same trip."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Depthwise:
    """A depthwise convolution behind a lowered layer of the integer engine:

        sum    = over valid taps of feature[c] * weight[tap, c], for each channel c
        result = requantised sum (golden/layers/requantise.py)

    Attributes
    ----------
    name : str
        The convolution's.
    weight : (taps, channels) int64
    bias, multiplier, shift : (channels,) int64
    fraction : int
        Bits of the bias behind the point.
    rounding : str
        As of `bitloom.golden.layers.requantise.Requantise`.
    low, high : int
        Smallest and largest result.
    sum_range : tuple of int
        Smallest and largest sum, for any features and weights.
    """

    name: str
    weight: Array
    bias: Array
    multiplier: Array
    shift: Array
    fraction: int
    rounding: str
    low: int
    high: int
    sum_range: Range

    @property
    def value_range(self) -> Range:
        """Smallest and largest sum, bias, and sum plus bias, for any features; what is behind the point is cut off."""
        return with_biases(self.sum_range, self.bias >> self.fraction)

    @property
    def roomy_range(self) -> Range:
        """``value_range`` with room for other biases."""
        return with_any_biases(self.sum_range, self.bias >> self.fraction)

    def forward(self, values: Array, positions: Array) -> Array:
        """The results for values that are read by windows.

        Parameters
        ----------
        values : (N, positions of the map, channels) int64
        positions : (outputs, taps) int64
            Position of each tap, -1 for an invalid one.

        Returns
        -------
        (N, outputs, channels) int64
        """
        padded = np.concatenate([values, np.zeros_like(values[:, :1])], axis=1)  # position -1: a tap that adds 0
        total = (padded[:, positions] * self.weight).sum(axis=2)
        product = ((total << self.fraction) + self.bias) * self.multiplier
        result: Array = np.clip(rounded(product, self.shift, self.rounding), self.low, self.high)
        return result


def plain_of(model: Model, segment: Segment) -> Array:
    """Weights (O, rows, columns, C) of a segment's layer, with zeros for channels that a kernel doesn't read."""
    weight = model.weights(segment.name)
    return ungrouped_weights(weight, segment.source.channels) if weight.shape[3] < segment.source.channels else weight


def joined(cut: Sequence[Segment], model: Model) -> list[Segment]:
    """Parts, each with the depthwise convolution that a pool unit with weights can compute behind it.

    Parameters
    ----------
    cut : sequence of Segment
        All parts of the network.
    model : Model
        Gives the weights.

    Returns
    -------
    list of Segment
        Those that are left; their names, and what they read and add, are names of these.
    """
    by_name = {segment.name: segment for segment in cut}
    taken: dict[str, str] = {}  # depthwise convolution -> the segment that it joins
    for segment in map(canonical, cut):
        before = by_name.get(segment.reads)
        if before is not None and before.name not in taken and _follows(canonical(before), segment, model):
            taken[segment.name] = before.name
    maker = {segment.name: taken.get(segment.name, segment.name) for segment in cut}
    follower = {before: name for name, before in taken.items()}
    made = []
    for segment in cut:
        if segment.name in taken:
            continue
        its = by_name[follower[segment.name]] if segment.name in follower else None
        made.append(replace(
            segment,
            reads=maker.get(segment.reads, segment.reads),
            joins=None if segment.joins is None else maker[segment.joins],
            readers=tuple(maker[name] for name in (its or segment).readers),
            adds=None if segment.adds is None else maker[segment.adds],
            depthwise=its,
        ))  # fmt: skip
    return made


def _follows(before: Segment, segment: Segment, model: Model) -> bool:
    """Whether a pool unit can compute ``segment`` as it takes the results of ``before``."""
    plain = before.tail_kinds in BEFORE and segment.tail_kinds == ("requantise",) and segment.adds is None
    alone = segment.joins is None and before.readers == (segment.name,)
    if not plain or segment.sums or not alone or not isinstance(segment.layer, Conv):
        return False
    return isinstance(segment.layer, DepthwiseConv) or is_depthwise(plain_of(model, segment))


def lowered(model: Model, segment: Segment) -> Depthwise:
    """The depthwise convolution that joined another segment, ``segment`` being its own."""
    layer, source = segment.layer, segment.source
    act = next(t for t in canonical(segment).tail if isinstance(t, Requantise))
    arrays = {key: value.astype(np.int64) for key, value in model.arrays[act.name].items()}
    own = own_weights(plain_of(model, segment)).reshape(layer.out_channels, -1).T  # (taps, channels)
    low, high = product_range(source.encoding, layer.weight)
    return Depthwise(
        name=layer.name,
        weight=own,
        **arrays,
        fraction=act.fraction,
        rounding=act.rounding,
        low=act.low,
        high=act.high,
        sum_range=(min(low * len(own), 0), max(high * len(own), 0)),
    )


def window_of(segment: Segment) -> Window | None:
    """The window that the pool unit reads for a segment: of its pool, or of the depthwise convolution that joined."""
    if segment.depthwise is not None:
        return segment.depthwise.layer.window(segment.depthwise.source)
    pool = next((layer for layer in segment.tail if isinstance(layer, Pool)), None)
    return pool.window if pool else None

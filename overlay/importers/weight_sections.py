"""Sections with weights: what weights of the file become of a view of a map, in golden's order.

===============  ==========================================================
of_linear        weights of the file, of a tensor that is some view of a map
of_mean          a mean of each window: weights of 1, each channel for itself
of_linear_mean   weights of the means of a whole map: weights of all of it
of_copy          weights that copy values of a map
===============  ==========================================================
"""

from fractions import Fraction

import numpy as np

from bitloom.golden.encoding import Array

from .errors import Unsupported
from .indexes import Copy
from .links import Line, Link, LinkChain
from .map_view import MapView
from .operations import Linear, Operation, Pooling, check_weights
from .sections import MapReading, MapSize, Quantised, WeightSection


def lead_of(links: LinkChain, source: Quantised, channels: int) -> Line:
    """Real numbers of a map that weights read behind some links, as one line."""
    lead = Line.identity(channels)
    for link in links:
        line = link.joined(lead)
        lead = line if isinstance(line, Line) else _unbent(lead, link, source, channels)
    if not all(lead.multiply):
        raise Unsupported("what is multiplied with between a quantiser and weights must not be 0")
    return lead


def _unbent(lead: Line, link: Link, source: Quantised, channels: int) -> Line:
    """A line behind a quantiser, and a link behind it that must leave all its values as they are."""
    ends = (source.base, source.base + source.step * source.levels)
    worth = [(lead.value(end, channel), channel) for channel in range(channels) for end in ends]
    if link.looked_up or any(link.value(value, channel) != value for value, channel in worth):
        rule = f"a {link.name} behind a quantiser must be followed by a quantiser, or cut nothing"
        form = "QuantFormat.QDQ" if link.name == "clip" else f"{link.name} in op_types_to_quantize"
        raise Unsupported(rule, f"quantise what it makes, in onnxruntime by {form}")
    return lead


def of_linear(operation: Linear, view: MapView, reading: MapReading, lead: Line) -> tuple[WeightSection, MapView]:
    """The section of weights that read a tensor, and the tensor of sums; the view takes them (`MapView.takes`)."""
    if view.lies_aside(operation.window):
        section, sums = of_linear(operation.aside, view.aside, reading, lead)
        return section, sums.aside
    outputs = len(operation.weight)
    window = operation.window
    real = operation.real
    if window is None:
        size = (1, 1, outputs)
        sums = view.of_map(size).flat
        weight = view.placed(operation.weight)
        real = None if real is None or not view.has_each_once else view.placed(real)  # 0 is the sign of no number
    else:
        channels = None
        if not view.is_cut and not view.has_each_once:
            reached = view.reach(operation)
            assert reached is not None
            view, window = reached
        elif view.is_cut or view.places_of(window) is None:
            channels = view.channels_of(operation)
        places = view.places_of(window)
        if places is None and channels is None:
            view.check_order()
        weight = _of_channels(operation.weight.transpose(0, 2, 3, 1), channels, view.size[2])
        real = None if real is None else _of_channels(real.transpose(0, 2, 3, 1), channels, view.size[2])
        size = (*window.output_size(*view.size[:2]), outputs)
        sums = view.of_map(size)
        if places is not None:
            sums = sums.with_index(places * outputs + np.arange(outputs).reshape(1, -1, 1, 1))
    section = WeightSection(
        name=operation.name,
        op=operation.op,
        reads=(reading,),
        weight=weight,
        groups=operation.groups,
        scale=operation.scale,
        window=window,
        size=size,
        lead=lead,
        real=real,
    )
    return section, sums


def _of_channels(weight: Array, channels: Array | None, count: int) -> Array:
    """Weights (outputs, rows, columns, inputs) of a map of ``count`` channels, of which the inputs are some; None: all
    of them, in their order."""
    if channels is None:
        return weight
    check_weights(weight[..., 0].size * count)
    whole = np.zeros((*weight.shape[:3], count), weight.dtype)
    whole[..., channels] = weight
    return whole


def of_mean(mean: Pooling, size: MapSize, reading: MapReading, lead: Line) -> WeightSection:
    """The section of a mean that is quantised: a convolution with weights of 0 and 1, each output of its own channel.
    ``size`` is that of the means."""
    if any(mean.window.padding):
        rule = "padded means that don't count padded values must be quantised as their map is, got another scale"
        instead = (
            "count these (count_include_pad=1), or quantise by onnxruntime's QuantFormat.QDQ, which keeps the scale"
        )
        raise Unsupported(rule, instead)
    channels = size[2]
    taps = mean.window.taps
    check_weights(channels * taps)
    return WeightSection(
        name=mean.name,
        op=mean.op,
        reads=(reading,),
        weight=np.ones((channels, *mean.window.kernel, 1), np.int64),
        groups=channels,
        scale=np.full(channels, Fraction(1, taps), object),
        window=mean.window,
        size=size,
        lead=lead,
    )


def of_linear_mean(operation: Linear, mean: Pooling, view: MapView, reading: MapReading, lead: Line) -> WeightSection:
    """The section of a dense layer on the means of a whole map: a dense layer on the map, its weights at every place.
    ``view`` is the tensor of means."""
    rows, columns = mean.window.kernel
    check_weights(operation.weight.size * rows * columns)
    flat = np.zeros((len(operation.weight), view.size[2]), np.int64)
    flat[:, view.index.ravel()] = operation.weight
    return WeightSection(
        name=operation.name,
        op=operation.op,
        reads=(reading,),
        weight=np.broadcast_to(flat[:, None, None, :], (len(flat), rows, columns, flat.shape[1])).copy(),
        scale=operation.scale / (rows * columns),
        window=None,
        size=(1, 1, len(flat)),
        lead=lead,
    )


def of_copy(following: Operation, copy: Copy, size: MapSize, reading: MapReading, lead: Line) -> WeightSection:
    """The section of weights that copy values of a map of this size, for an operation that comes next."""
    weight = copy.weight(size[2])
    return WeightSection(
        name=following.name,
        op=following.op,
        reads=(reading,),
        weight=weight,
        copies=True,
        takes_one=copy.channels is not None,
        groups=size[2] // weight.shape[3],
        scale=np.full(len(weight), Fraction(1), object),
        window=copy.window,
        size=(*copy.window.output_size(*size[:2]), len(weight)),
        lead=lead,
    )

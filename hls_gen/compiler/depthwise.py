"""Depthwise convolutions, in which kernel k reads channel k alone: computed by a pool unit with weights, right behind
the layer before (hls_gen/rtl/pool_unit/pool_depthwise.py).

    conv_1  requantise_1 | conv_2 (depthwise)  requantise_2 | conv_3   -->   conv_1 ... requantise_2 | conv_3

A plain convolution whose weights are 0 for other channels than a kernel's own is a depthwise one, too. The array
computes a depthwise convolution where the pool unit can't, as a plain convolution (`plain_of`). Where there is no layer
before that it could follow, as at a network's begin or behind a pool, it may follow a copy of the map that it reads.
"""

from collections.abc import Sequence
from dataclasses import replace

from bitloom.golden.encoding import Array
from bitloom.golden.layer import OneInput
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import DepthwiseConv, is_depthwise, ungrouped_weights
from bitloom.golden.layers.pool import Pool
from bitloom.golden.limits import MB, PLAIN_MB
from bitloom.golden.network import Model
from bitloom.golden.rewrite import rewrite
from bitloom.hls_gen.design.pool_unit import PRODUCTS, ReducedWindow

from .layer_graph import LayerGraph, check_same, copy_of_values, free_name
from .pools import canonical, reduction_of
from .segments import Segment, segments
from .trips import BEFORE_DEPTHWISE, DEPTHWISE


def plain_of(model: Model, segment: Segment) -> Array:
    """Weights (O, rows, columns, C) of a segment's layer, with zeros for channels that a kernel doesn't read.

    Raises
    ------
    ValueError
        If the weights with these zeros take more memory than PLAIN_MB allows.
    """
    weight = model.weights(segment.name)
    channels = segment.source.channels
    if weight.shape[3] == channels:
        return weight
    PLAIN_MB.check(segment.name, weight.nbytes // weight.shape[3] * channels / MB)
    return ungrouped_weights(weight, channels)


def fused(cut: Sequence[Segment], model: Model) -> list[Segment]:
    """Segments, each with the depthwise convolution that a pool unit with weights can compute behind it.

    Parameters
    ----------
    cut : sequence of Segment
        All segments of the network.
    model : Model
        Gives the weights.

    Returns
    -------
    list of Segment
        The segments that are left. What they read and add are names of segments that are left, too.
    """
    by_name = {segment.name: segment for segment in cut}
    taken: dict[str, str] = {}  # depthwise convolution -> the segment that it is fused with
    for segment in map(canonical, cut):
        before = by_name.get(segment.reads)
        if before is not None and before.name not in taken and _follows(canonical(before), segment, model):
            taken[segment.name] = before.name
    maker = {segment.name: taken.get(segment.name, segment.name) for segment in cut}
    follower = {before: name for name, before in taken.items()}
    segments = []
    for segment in cut:
        if segment.name in taken:
            continue
        behind = by_name[follower[segment.name]] if segment.name in follower else None
        segments.append(
            replace(
                segment,
                reads=maker.get(segment.reads, segment.reads),
                joins=None if segment.joins is None else maker[segment.joins],
                readers=tuple(maker[name] for name in (behind or segment).readers),
                adds=None if segment.adds is None else maker[segment.adds],
                output=(behind or segment).output,
                depthwise=behind,
            )
        )
    return segments


def behind_copies(model: Model, binariser: OneInput | None = None) -> Model:
    """A model with a copy in front of each depthwise convolution that a pool unit could compute, but has no segment
    to follow: a pool unit then computes it behind the copy. The array, which would take each of its taps as a plain
    convolution, copies each position once. ``binariser``: what is computed in front of the first segment, if anything
    is.
    """

    def a_depthwise_convolution_follows_a_copy(graph: LayerGraph) -> LayerGraph | None:
        there = _model_of(graph, model)
        cut = segments(there.network, binariser)
        left = {segment.name for segment in fused(cut, there)}
        alone = (segment for segment in map(canonical, cut) if segment.name in left)
        copied = (segment for segment in alone if _computable(segment, there) and _fewer_by_copy(segment))
        segment = next(copied, None)
        return None if segment is None else _with_copy(graph, segment)

    given = LayerGraph.of(model.network, model.arrays)
    graph = rewrite(given, (a_depthwise_convolution_follows_a_copy,), check_same)
    return model if graph is given else _model_of(graph, model)


def _model_of(graph: LayerGraph, model: Model) -> Model:
    """The model of a graph that ``model`` became."""
    return Model(replace(model.network, layers=tuple(graph.layers.values())), graph.arrays)


def _with_copy(graph: LayerGraph, segment: Segment) -> LayerGraph:
    """The graph in which the layer of a segment reads a copy of its map."""
    layer = graph.layers[segment.name]
    (read,) = layer.inputs
    followed = free_name(graph.layers, layer.name, "of")
    copy = copy_of_values(segment.source, read, free_name(graph.layers, layer.name, "copy"), followed)
    layers = {**graph.layers, **copy.layers, layer.name: replace(layer, inputs=(followed,))}
    return graph.with_layers(layers, copy.arrays)


def _fewer_by_copy(segment: Segment) -> bool:
    """Whether a map has fewer positions than the windows of the segment's layer have taps, and a copy of the map has
    the same values: of a ternary map the copy would have more."""
    window = segment.layer.window(segment.source)
    rows, columns = window.output_size(segment.source.height, segment.source.width)
    fewer = segment.source.height * segment.source.width < rows * columns * window.taps
    return fewer and segment.source.encoding.kind in ("signed", "unsigned")


def _follows(before: Segment, segment: Segment, model: Model) -> bool:
    """Whether a pool unit can compute ``segment`` as it takes the results of ``before``."""
    alone = before.tail_kinds in BEFORE_DEPTHWISE and before.readers == (segment.name,)
    return alone and _computable(segment, model)


def _computable(segment: Segment, model: Model) -> bool:
    """Whether a pool unit can compute ``segment``, wherever it stands."""
    plain = segment.tail_kinds in DEPTHWISE and segment.adds is None and segment.joins is None
    if not plain or segment.sums or not isinstance(segment.layer, Conv):
        return False
    return isinstance(segment.layer, DepthwiseConv) or is_depthwise(plain_of(model, segment))


def pooled(segment: Segment) -> ReducedWindow | None:
    """Window that the pool unit reduces for a segment, and the reduction: of the segment's pool, or the depthwise
    convolution fused with the segment; None where the segment has neither."""
    if segment.depthwise is not None:
        return ReducedWindow(segment.depthwise.layer.window(segment.depthwise.source), PRODUCTS)
    pool = segment.behind_sums(Pool)
    return ReducedWindow(pool.window, reduction_of(pool)) if pool else None

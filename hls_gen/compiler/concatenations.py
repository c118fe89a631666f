"""Rules for concatenations: an NPU takes those of two maps that one conv or dense layer reads (docs/decisions/0023).

    convs of one map, acts, concat   -->  conv, act                where kernels slide alike; both engines have that
    concat of concat                 -->  one concat               where nothing else reads the inner one
    sums, concat, requantise         -->  requantise, concat       where nothing else reads the maps; thresholds, too
    concat, pool                     -->  pools, concat            where nothing else reads the maps
    concat of a, b, c                -->  concat of (copy of concat of a, b), c
    concat, anything but one layer   -->  concat, copy

Copies: hls_gen/compiler/layer_graph.py.
"""

from dataclasses import replace

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layer import Layer
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.pool import Pool
from bitloom.golden.layers.roles import Activation, FeatureLayer

from .layer_graph import LayerGraph, copy_of_sums, copy_of_values, free_name


def inner_concatenations_open(graph: LayerGraph) -> LayerGraph | None:
    """A concatenation that only another concatenation reads is left out: the other one reads its maps."""
    for inner in _concatenations(graph):
        readers = graph.readings[inner.name]
        outer = graph.layers[readers[0]] if len(readers) == 1 else None
        if isinstance(outer, Concat):
            place = outer.inputs.index(inner.name)
            layers = dict(graph.layers)
            inputs = (*outer.inputs[:place], *inner.inputs, *outer.inputs[place + 1 :])
            layers[outer.name] = replace(outer, inputs=inputs)
            del layers[inner.name]
            return graph.with_layers(layers, {})
    return None


def convolutions_side_by_side_become_one(graph: LayerGraph) -> LayerGraph | None:
    """Two convolutions of one map become one where they and their activations differ in channels alone, and their maps
    stand side by side in a concatenation. A concatenation of these two maps alone is left out, too."""
    for concat in _concatenations(graph):
        for place, (first, second) in enumerate(zip(concat.inputs, concat.inputs[1:])):
            if _alike(graph, first, second):
                return _stacked(graph, concat, place)
    return None


def _alike(graph: LayerGraph, first: str, second: str) -> bool:
    """Whether two maps are made by activations, and these of convolutions, that differ in channels alone and are
    needed once."""
    activations = [graph.layers.get(name) for name in (first, second)]
    convs = [graph.layers.get(act.inputs[0]) for act in activations if isinstance(act, Activation)]
    if len(convs) < 2 or not all(type(conv) is Conv for conv in convs):
        return False
    makers = [layer for layer in (*activations, *convs) if layer is not None]
    if any(len(graph.readings[layer.name]) != 1 for layer in makers):
        return False
    plain_convs = {replace(conv, name="a", out_channels=1) for conv in convs if isinstance(conv, Conv)}
    plain_activations = {replace(act, name="a", inputs=()) for act in activations if act is not None}
    return len(plain_convs) == 1 and len(plain_activations) == 1


def _stacked(graph: LayerGraph, concat: Layer, place: int) -> LayerGraph:
    """Make one convolution of those of the maps ``place`` and ``place`` + 1 of a concatenation; kernels and channels of
    the second map stand behind those of the first."""
    first, second = (graph.layers[name] for name in concat.inputs[place : place + 2])
    conv, other = (graph.layers[act.inputs[0]] for act in (first, second))
    assert isinstance(conv, Conv)
    assert isinstance(other, Conv)
    layers = dict(graph.layers)
    layers[conv.name] = replace(conv, out_channels=conv.out_channels + other.out_channels)
    del layers[other.name], layers[second.name]
    activation = first
    if len(concat.inputs) == 2:
        del layers[first.name]
        activation = replace(first, name=concat.name)
        layers[concat.name] = activation
    else:
        inputs = (*concat.inputs[: place + 1], *concat.inputs[place + 2 :])
        layers[concat.name] = replace(concat, inputs=inputs)
    arrays = {
        conv.name: _one_behind_the_other(graph, conv.name, other.name),
        activation.name: _one_behind_the_other(graph, first.name, second.name),
    }
    return graph.with_layers(layers, arrays)


def _one_behind_the_other(graph: LayerGraph, first: str, second: str) -> dict[str, Array]:
    """The arrays of two layers, as those of one; none where they are not known."""
    behind = graph.arrays.get(second, {})
    return {name: np.concatenate([values, behind[name]]) for name, values in graph.arrays.get(first, {}).items()}


def concatenations_become_those_of_two_maps(graph: LayerGraph) -> LayerGraph | None:
    """A concatenation that an NPU doesn't take: its reader comes before it, or maps are copied."""
    for concat in _concatenations(graph):
        readers = graph.readers(concat.name)
        if len(readers) == 1 and all(_may_come_before(graph, readers[0], read) for read in concat.inputs):
            return _before_concatenation(graph, concat, readers[0])
        if len(concat.inputs) > 2 or len(readers) != 1 or not isinstance(readers[0], Weighted):
            return _with_copies(graph, concat)
    return None


def _may_come_before(graph: LayerGraph, reader: Layer, read: str) -> bool:
    """Whether a layer that reads a concatenation may read one of its maps instead, and be lowered with the layer that
    makes it: a pool behind an activation or an addition, an activation behind sums."""
    maker = graph.layers.get(read)
    if maker is None or len(graph.readers(read)) != 1:
        return False
    if isinstance(reader, Pool):
        return isinstance(maker, Activation | FeatureLayer)
    if isinstance(maker, Pool):
        maker = graph.layers.get(maker.inputs[0])
    return isinstance(reader, Activation) and isinstance(maker, Weighted)


def _before_concatenation(graph: LayerGraph, concat: Layer, reader: Layer) -> LayerGraph:
    """Let the one reader of a concatenation read each of its maps; the concatenation then has the reader's name."""
    layers = dict(graph.layers)
    arrays = dict[str, dict[str, Array]]()
    names = list[str]()
    first = 0
    for read in concat.inputs:
        behind = first + graph.maps[read].channels
        name = free_name(layers, reader.name, "of")
        layers[name] = replace(reader, name=name, inputs=(read,))
        arrays[name] = {array: values[first:behind] for array, values in graph.arrays.get(reader.name, {}).items()}
        names.append(name)
        first = behind
    del layers[concat.name]
    layers[reader.name] = Concat(name=reader.name, inputs=tuple(names))
    return graph.with_layers(layers, arrays)


def _with_copies(graph: LayerGraph, concat: Layer) -> LayerGraph:
    """Let a concatenation have two maps that one conv or dense layer reads."""
    while len(concat.inputs) > 2:
        graph = _first_two_become_one(graph, concat)
        concat = graph.layers[concat.name]
    readers = graph.readers(concat.name)
    return graph if len(readers) == 1 and isinstance(readers[0], Weighted) else _copied(graph, concat)


def _first_two_become_one(graph: LayerGraph, concat: Layer) -> LayerGraph:
    """Let a concatenation have, in place of its first two maps, a copy of their concatenation."""
    both = free_name(graph.layers, concat.name, "maps")
    pair = Concat(name=both, inputs=concat.inputs[:2])
    inputs = (both, *concat.inputs[2:])
    graph = graph.with_layers({**graph.layers, both: pair, concat.name: replace(concat, inputs=inputs)}, {})
    return _copied(graph, pair)


def _copied(graph: LayerGraph, concat: Layer) -> LayerGraph:
    """Let the readers of a concatenation read a copy of it, which takes over its name."""
    maps = free_name(graph.layers, concat.name, "maps")
    layers = {**graph.layers, maps: replace(concat, name=maps)}
    source = graph.maps[concat.name]
    readers = graph.readers(concat.name)
    if len(readers) == 1 and isinstance(readers[0], Activation):
        copy = copy_of_sums(source, maps, concat.name)
    else:
        copy = copy_of_values(source, maps, free_name(layers, concat.name, "copy"), concat.name)
    return graph.with_layers({**layers, **copy.layers}, copy.arrays)


def _concatenations(graph: LayerGraph) -> list[Layer]:
    """The concatenations of a graph."""
    return [layer for layer in graph.layers.values() if isinstance(layer, Concat)]


RULES = (
    (inner_concatenations_open,),
    (convolutions_side_by_side_become_one,),
    (concatenations_become_those_of_two_maps,),
)
"""Each group is applied until none of its rules applies, then the next group."""

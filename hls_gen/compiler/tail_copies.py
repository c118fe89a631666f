"""Rules for layers without weights that have no convolution to follow: copies of the maps that they read.

    act_1 read by conv_2 and pool_3      -->  act_1, pool_3_copy (a convolution), pool_3_of (a requantisation), pool_3
    add_4 of two maps that others read   -->  copy of one of them, which add_4 follows
    act_1, act_2                         -->  act_1, act_2_copy, act_2
    the input read by conv_1 and conv_2  -->  input_copy, input_of, read by both
    act_1 read by conv_2 and the outputs -->  a copy of act_1, which the outputs read
    outputs of sums, and of features     -->  a copy of the features, whose sums the outputs read

In a network with bits a pool that comes before all convolutions takes one, too, and no other layer does:

    bits, pool_1                         -->  pool_1_copy (a convolution), pool_1_of (a threshold), pool_1
    integers, pool_1, threshold_1        -->  pool_1_copy (a convolution), pool_1, threshold_1

What an engine computes begins with a convolution, and behind its sums there is room for one requantisation, one
addition and one pool; no other layer may read a map in between. Everything else takes a copy
(hls_gen/compiler/layer_graph.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bitloom.golden.encoding import TERNARY
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer
from bitloom.golden.layers.add import Pairwise
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.layers.pool import Pool, SumPool
from bitloom.golden.layers.roles import Activation
from bitloom.golden.layers.threshold import Threshold

from .layer_graph import LayerGraph, copy_of_sums, copy_of_values, free_name
from .pools import canonical
from .segments import FollowedMaps, Segment
from .trips import INTEGER, INTEGER_ADD


def first_pools_of_bits_follow_copies(graph: LayerGraph) -> LayerGraph | None:
    """A pool of the input, or of what a binariser makes of it, in a network with bits."""
    if not _has_bits(graph):
        return None
    for pool in graph.layers.values():
        if isinstance(pool, Pool) and _comes_first(graph, pool.inputs[0]):
            return _with_copy_for(graph, pool)
    return None


def _has_bits(graph: LayerGraph) -> bool:
    """Whether a network has a map of bits."""
    return any(read.encoding.kind == "bipolar" for read in graph.maps.values())


def _comes_first(graph: LayerGraph, read: str) -> bool:
    """Whether a map that one layer reads is the input, or what a binariser makes of it."""
    entry = graph.layers.get(read)
    first = read == INPUT or (isinstance(entry, Threshold) and entry.inputs == (INPUT,))
    return first and len(graph.readers(read)) == 1


def _with_copy_for(graph: LayerGraph, pool: Layer) -> LayerGraph:
    """Let a pool follow a copy of the map that it reads. Where thresholds of integers follow the pool, they are
    thresholds of the copy's sums."""
    (read,) = pool.inputs
    source = graph.maps[read]
    behind = pool
    while isinstance(behind, Pool) and len(graph.readers(behind.name)) == 1:
        (behind,) = graph.readers(behind.name)
    sums = free_name(graph.layers, pool.name, "copy")
    if source.encoding.kind != "bipolar" and isinstance(behind, Threshold):
        followed = sums
        copy = copy_of_sums(source, read, sums, TERNARY)
    else:
        followed = free_name(graph.layers, pool.name, "of")
        copy = copy_of_values(source, read, sums, followed)
    layers = {**graph.layers, **copy.layers, pool.name: replace(pool, inputs=(followed,))}
    return graph.with_layers(layers, copy.arrays)


def the_input_is_copied(graph: LayerGraph) -> LayerGraph | None:
    """An input of integers that several layers read, or one without weights."""
    return None if len(graph.readers(INPUT)) == 1 and _read_by_weights(graph) else _with_copied_input(graph)


def the_input_of_others_is_copied(graph: LayerGraph) -> LayerGraph | None:
    """An input of integers that a layer without weights reads."""
    return None if _read_by_weights(graph) else _with_copied_input(graph)


def _read_by_weights(graph: LayerGraph) -> bool:
    """Whether layers with weights alone read the input."""
    return all(isinstance(layer, Weighted) for layer in graph.readers(INPUT))


def _with_copied_input(graph: LayerGraph) -> LayerGraph | None:
    """The graph with a copy of the input of integers, where it has layers with weights."""
    weighted = any(isinstance(layer, Weighted) for layer in graph.layers.values())
    return _with_copy(graph, INPUT, "input", graph.readers(INPUT)) if weighted and not _has_bits(graph) else None


def outputs_are_maps_of_their_own(graph: LayerGraph) -> LayerGraph | None:
    """A map of a network with several outputs that is the input, or that another layer reads; or features, where
    another output is sums: all leave the device in one form."""
    outputs = next((layer for layer in graph.layers.values() if isinstance(layer, Outputs)), None)
    if outputs is None:
        return None
    sums = [_is_sums(graph, name) for name in outputs.inputs]
    for place, (name, raw) in enumerate(zip(outputs.inputs, sums)):
        if name != INPUT and len(graph.readings[name]) == 1 and raw == any(sums):
            continue
        copied = free_name(graph.layers, "input" if name == INPUT else name, "copy")
        copy = copy_of_sums(graph.maps[name], name, copied)
        if not any(sums):
            copied = free_name(graph.layers, "input" if name == INPUT else name, "out")
            (copied_sums,) = copy.layers
            copy = copy_of_values(graph.maps[name], name, copied_sums, copied)
        inputs = (*outputs.inputs[:place], copied, *outputs.inputs[place + 1 :])
        layers = {**graph.layers, **copy.layers, outputs.name: replace(outputs, inputs=inputs)}
        return graph.with_layers(layers, copy.arrays)
    return None


def _is_sums(graph: LayerGraph, name: str) -> bool:
    """Whether a map is sums of weights as they are, or sums of those."""
    while name != INPUT and isinstance(graph.layers[name], SumPool):
        (name,) = graph.layers[name].inputs
    return name != INPUT and isinstance(graph.layers[name], Weighted)


def layers_without_weights_follow_copies(graph: LayerGraph) -> LayerGraph | None:
    """A layer without weights that can't follow the map that it reads, in a network without bits; or a concatenation of
    two maps that one convolution makes."""
    if _has_bits(graph) or not any(isinstance(layer, Weighted) for layer in graph.layers.values()):
        return None
    tails = _Tails(graph, FollowedMaps(graph.readings), {})
    for layer in _in_order(graph):
        read = tails.copied_for(layer)
        if read is not None:
            return _with_copy(graph, read, layer.name, [layer])
        tails.take(layer)
    return None


def _with_copy(graph: LayerGraph, read: str, name: str, readers: Sequence[Layer]) -> LayerGraph:
    """Let readers of a map read a copy of it, whose layers are called after ``name``. A layer that reads the map in
    several places reads the copy of the input in all of them, the copy of another map in the last one."""
    source = graph.maps[read]
    sums = free_name(graph.layers, name, "copy")
    if len(readers) == 1 and isinstance(readers[0], Activation | SumPool):
        followed = sums
        copy = copy_of_sums(source, read, sums)
    else:
        followed = free_name(graph.layers, name, "of")
        copy = copy_of_values(source, read, sums, followed)
    layers = {**graph.layers, **copy.layers}
    for layer in readers:
        places = [place for place, other in enumerate(layer.inputs) if other == read]
        inputs = list(layer.inputs)
        for place in places if read == INPUT else places[-1:]:
            inputs[place] = followed
        layers[layer.name] = replace(layer, inputs=tuple(inputs))
    return graph.with_layers(layers, copy.arrays)


def _in_order(graph: LayerGraph) -> list[Layer]:
    """The layers as they are listed, but each one behind those that it reads."""
    order = dict[str, Layer]()
    ahead = list(graph.layers.values())[::-1]
    while ahead:
        missing = [name for name in ahead[-1].inputs if name != INPUT and name not in order]
        if missing:
            ahead.append(graph.layers[missing[0]])
        else:
            layer = ahead.pop()
            order[layer.name] = layer
    return list(order.values())


@dataclass(frozen=True)
class _Tails:
    """The weighted layers of a graph with the layers behind each, as far as the graph's layers have been taken, in
    their order."""

    graph: LayerGraph
    followed: FollowedMaps
    """The maps that additions follow."""
    tails: dict[str, tuple[Weighted, tuple[Layer, ...]]]
    """Map -> the weighted layer that it comes from, and the layers behind that."""

    def copied_for(self, layer: Layer) -> str | None:
        """The map of which the next layer needs a copy; None where it begins a segment, or follows a map."""
        if isinstance(layer, Weighted | Outputs):
            return None
        if isinstance(layer, Concat):
            first, *others = layer.inputs
            beside = (read for read in others if read in self.tails and self._begun(read) == self._begun(first))
            return next(beside, None)
        followed = self._followed(layer)
        return None if self._may_follow(layer, followed) else followed

    def take(self, layer: Layer) -> None:
        """Take the next layer, which needs no copy."""
        self.followed.take(layer, layer.inputs)
        if isinstance(layer, Weighted):
            self.tails[layer.name] = (layer, ())
        elif not isinstance(layer, Concat | Outputs):
            followed = self._followed(layer)
            if followed in self.tails:
                begun, tail = self.tails[followed]
                self.tails[layer.name] = begun, (*tail, layer)

    def _begun(self, name: str) -> str:
        """The weighted layer that a map comes from."""
        return self.tails[name][0].name if name in self.tails else name

    def _followed(self, layer: Layer) -> str:
        """The map that a layer follows; of an addition that can follow none of its maps, the one that it follows a copy
        of."""
        return self.followed.of(layer.name, layer.inputs) or self.followed.deepest(layer.inputs)

    def _alone(self, name: str) -> bool:
        """Whether one layer reads a map, and reads it once."""
        return len(self.graph.readings[name]) == 1

    def _may_follow(self, layer: Layer, read: str) -> bool:
        """Whether a layer needs no copy of the map ``read``: it can be computed behind the map; or a copy would not
        help, since sums are not copied."""
        if read not in self.tails or not isinstance(layer, (*INTEGER_ADD.layers, SumPool)):
            return True
        begun, tail = self.tails[read]
        if not any(isinstance(behind, Activation) for behind in tail):
            return True
        source = self.graph.maps[begun.inputs[0]]
        segment = Segment(layer=begun, source=source, tail=(*tail, layer), reads="", readers=())
        joins = isinstance(layer, Pairwise) and read in self.followed.joining
        return self._alone(read) and canonical(segment).tail_kinds in (*INTEGER.tails, *INTEGER_ADD.tails) and not joins


def rules(repeat_input: bool) -> tuple[tuple[Callable[[LayerGraph], LayerGraph | None], ...], ...]:
    """Groups of rules, each applied until none of its rules applies, then the next group. ``repeat_input``: whether
    several layers with weights may read the input."""
    of_input = the_input_of_others_is_copied if repeat_input else the_input_is_copied
    return (
        (outputs_are_maps_of_their_own,),
        (first_pools_of_bits_follow_copies, of_input, layers_without_weights_follow_copies),
    )

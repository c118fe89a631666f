"""Concatenations as an NPU takes them: of two maps, read by one conv or dense layer (docs/decisions/0023). What a
network writes otherwise is rewritten, exactly.

    convs of one map, acts, concat   -->  conv, act                where kernels slide alike; both engines have that
    concat of concat                 -->  one concat               where nothing else reads the inner one
    sums, concat, requantise         -->  requantise, concat       where nothing else reads the maps; thresholds, too
    concat, pool                     -->  pools, concat            where nothing else reads the maps
    concat of a, b, c                -->  concat of (copy of concat of a, b), c
    concat, anything but one layer   -->  concat, copy

A *copy* is a convolution of 1 x 1 taps whose kernel k is 1 for channel k and 0 for all others. Its sums are the values;
in front of a requantisation or thresholds of one reader no more is needed, else one that changes nothing follows.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from bitloom.golden.encoding import TERNARY, Array, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.pool import Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.names import NAME_LENGTH
from bitloom.golden.network import Model, Network

Arrays = dict[str, dict[str, Array]]


def placed(model: Model) -> Model:
    """Rewrite the concatenations of a model so that each is of two maps and read by one conv or dense layer.

    Parameters
    ----------
    model : Model

    Returns
    -------
    Model
        With the same output; the model itself where there is nothing to rewrite.
    """
    graph = _Placing(model.network)
    network = graph.rewritten()
    if network is model.network:
        return model
    left = {layer.name for layer in network.layers if not isinstance(layer, Concat)}
    arrays = {name: its for name, its in model.arrays.items() if name in left}
    for name, (source, channels) in graph.parts.items():
        arrays[name] = {what: values[channels] for what, values in model.arrays[source].items()}
    for name, sources in graph.stacks.items():
        if name in left:
            kinds = model.arrays[sources[0]]
            arrays[name] = {what: np.concatenate([model.arrays[one][what] for one in sources]) for what in kinds}
    return Model(network, {**arrays, **graph.arrays})


def placed_network(network: Network) -> Network:
    """The network of the model that `placed` gives, whatever its arrays are."""
    return _Placing(network).rewritten()


@dataclass
class _Placing:
    """Layers that are being rewritten. Each names the maps that it reads; their order doesn't count."""

    network: Network
    layers: dict[str, Layer] = field(default_factory=dict)
    maps: dict[str, Map] = field(default_factory=dict)
    arrays: Arrays = field(default_factory=dict)
    """Of layers that came in."""
    parts: dict[str, tuple[str, slice]] = field(default_factory=dict)
    """Layers whose arrays are those of another layer for some of its channels."""
    stacks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Layers whose arrays are those of several layers, one behind the other."""

    def rewritten(self) -> Network:
        """The network; the same object where there is nothing to do."""
        network = self.network
        if not any(isinstance(layer, Concat) for layer in network.layers):
            return network
        self.layers = {layer.name: replace(layer, inputs=network.reads[layer.name]) for layer in network.layers}
        self.maps = dict(network.maps)
        before = dict(self.layers)
        self._flatten()
        for name in self._concatenations():
            self._stack(name)
        for name in self._concatenations():
            self._place(name)
        return network if self.layers == before else replace(network, layers=tuple(self.layers.values()))

    def _concatenations(self) -> list[str]:
        """Names of the concatenations that there are now."""
        return [name for name, layer in self.layers.items() if isinstance(layer, Concat)]

    def _readers(self, name: str) -> list[Layer]:
        """The layers that read a map."""
        return [layer for layer in self.layers.values() if name in layer.inputs]

    def _put(self, layer: Layer) -> None:
        """Put a layer in, perhaps in the place of the one of its name."""
        self.layers[layer.name] = layer
        self.maps[layer.name] = layer.output_of([self.maps[read] for read in layer.inputs])

    def _new(self, name: str, what: str) -> str:
        """A name for a layer that comes in."""
        ends = (f"_{what}", *(f"_{what}_{number}" for number in range(2, len(self.layers) + 3)))
        return next(made for end in ends if (made := name[: NAME_LENGTH - len(end)] + end) not in self.layers)

    def _flatten(self) -> None:
        """Let each concatenation have the maps of those that it alone reads."""
        for name in self._concatenations():
            its = self._readers(name)
            if len(its) == 1 and isinstance(its[0], Concat) and its[0].inputs.count(name) == 1:
                inputs, place = its[0].inputs, its[0].inputs.index(name)
                inputs = (*inputs[:place], *self.layers[name].inputs, *inputs[place + 1 :])
                self._put(replace(its[0], inputs=inputs))
                del self.layers[name]

    def _stack(self, name: str) -> None:
        """Make one convolution of those of one map that a concatenation has side by side."""
        layer, inputs = self.layers[name], list[str]()
        for read in layer.inputs:
            if inputs and self._alike(inputs[-1], read):
                inputs[-1] = self._stacked(inputs[-1], read)
            else:
                inputs.append(read)
        if len(inputs) > 1:
            self._put(replace(layer, inputs=tuple(inputs)))
            return
        act = self.layers.pop(inputs[0])
        self.stacks[name] = self.stacks.pop(act.name)
        self._put(replace(act, name=name))

    def _alike(self, first: str, second: str) -> bool:
        """Whether two maps are made by activations, and these of convolutions, that differ in channels alone and are
        needed for one concatenation alone."""
        acts = [self.layers.get(name) for name in (first, second)]
        if first == second or not all(isinstance(act, Requantise | Threshold) for act in acts):
            return False
        convs = [self.layers.get(act.inputs[0]) for act in acts if act is not None]
        alone = all(len(self._readers(one.name)) == 1 for one in (*acts, *convs) if one is not None)
        if not alone or not all(type(conv) is Conv for conv in convs):
            return False
        plain = {replace(conv, name="a", out_channels=1) for conv in convs if isinstance(conv, Conv)}
        return len(plain) == 1 and len({replace(act, name="a", inputs=()) for act in acts if act is not None}) == 1

    def _stacked(self, first: str, second: str) -> str:
        """Put the kernels and channels of the second of two maps that are alike behind those of the first one; the name
        of their common map."""
        one, other = self.layers[first], self.layers[second]
        for below, behind in ((one.inputs[0], other.inputs[0]), (first, second)):
            self.stacks[below] = self.stacks.get(below, (below,)) + self.stacks.pop(behind, (behind,))
        conv, more = self.layers[one.inputs[0]], self.layers.pop(other.inputs[0])
        assert isinstance(conv, Conv)
        assert isinstance(more, Conv)
        self._put(replace(conv, out_channels=conv.out_channels + more.out_channels))
        self._put(one)
        del self.layers[second]
        return first

    def _place(self, name: str) -> None:
        """Rewrite a concatenation, and those that come of it, until each is as an NPU takes it."""
        layer, its = self.layers[name], self._readers(name)
        if len(its) == 1 and all(self._may_come_before(its[0], read) for read in layer.inputs):
            self._bring_before(layer, its[0])
            self._place(its[0].name)
            return
        while len(layer.inputs) > 2:
            both = self._new(name, "maps")
            self._put(Concat(name=both, inputs=layer.inputs[:2]))
            layer = replace(layer, inputs=(both, *layer.inputs[2:]))
            self._put(layer)
            self._copy(both)
        if not (len(its) == 1 and isinstance(its[0], Weighted)):
            self._copy(name)

    def _may_come_before(self, reader: Layer, read: str) -> bool:
        """Whether a layer that reads a concatenation may read one of its maps instead, and be lowered with the layer
        that makes it: a pool behind an activation or an addition, an activation behind sums."""
        maker = self.layers.get(read)
        if maker is None or len(self._readers(read)) != 1:
            return False
        if isinstance(reader, Pool):
            return isinstance(maker, Requantise | Threshold | Add)
        if isinstance(maker, Pool):
            maker = self.layers.get(maker.inputs[0])
        return isinstance(reader, Requantise | Threshold) and isinstance(maker, Weighted)

    def _bring_before(self, layer: Layer, reader: Layer) -> None:
        """Let the one reader of a concatenation read each of its maps; the concatenation then has the reader's name."""
        inputs, first = list[str](), 0
        for read in layer.inputs:
            behind = first + self.maps[read].channels
            inputs.append(self._new(reader.name, "of"))
            self._put(replace(reader, name=inputs[-1], inputs=(read,)))
            if reader.array_shapes_of([self.maps[read]]):
                self.parts[inputs[-1]] = (reader.name, slice(first, behind))
            first = behind
        del self.layers[layer.name]
        self._put(Concat(name=reader.name, inputs=tuple(inputs)))

    def _copy(self, name: str) -> None:
        """Put a copy behind a concatenation: its readers then read what the copy makes, which has the old name."""
        its, maps = self._readers(name), self._new(name, "maps")
        self._put(replace(self.layers[name], name=maps))
        if len(its) == 1 and isinstance(its[0], Requantise | Threshold):
            self._identity(name, maps)
            return
        sums, made = self._new(name, "copy"), self.maps[maps]
        self._identity(sums, maps)
        if made.encoding.kind == "bipolar":
            levels = 2 * np.arange(made.encoding.bits) + 1 - made.encoding.bits  # a value k steps up reaches k of them
            self._put(Threshold(name=name, inputs=(sums,), levels=made.encoding.bits))
            rising = np.ones(made.channels, np.int64)
            self.arrays[name] = {"threshold": np.tile(levels, (made.channels, 1)), "direction": rising}
            return
        self._put(Requantise(name=name, inputs=(sums,), encoding=made.encoding))
        values = {"bias": 0, "multiplier": 1, "shift": 0}
        self.arrays[name] = {what: np.full(made.channels, value, np.int64) for what, value in values.items()}

    def _identity(self, name: str, reads: str) -> None:
        """Put in a convolution whose sums are the values that it reads."""
        source = self.maps[reads]
        weight = TERNARY if source.encoding.kind == "bipolar" else unsigned(1)
        self._put(Conv(name=name, inputs=(reads,), out_channels=source.channels, kernel=(1, 1), weight=weight))
        self.arrays[name] = {"weight": np.eye(source.channels, dtype=np.int64)[:, None, None]}

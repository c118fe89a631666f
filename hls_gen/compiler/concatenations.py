"""Concatenations as an NPU takes them: of two maps, read by one conv or dense layer (docs/decisions/0023). What a
network writes otherwise is rewritten, exactly.

    convs of one map, acts, concat   -->  conv, act                where kernels slide alike; both engines have that
    concat of concat                 -->  one concat               where nothing else reads the inner one
    sums, concat, requantise         -->  requantise, concat       where nothing else reads the maps; thresholds, too
    concat, pool                     -->  pools, concat            where nothing else reads the maps
    concat of a, b, c                -->  concat of (copy of concat of a, b), c
    concat, anything but one layer   -->  concat, copy

Copies: hls_gen/compiler/rewriting.py.
"""

from dataclasses import dataclass, replace

from bitloom.golden.layer import Layer
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.pool import Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold

from .rewriting import Rewriting


@dataclass
class Concatenations(Rewriting):
    """Rewrites the concatenations of a network so that each is of two maps and read by one conv or dense layer."""

    def place(self) -> None:
        """Do so."""
        self._flatten()
        for name in self._concatenations():
            self._stack(name)
        for name in self._concatenations():
            self._place(name)

    def _concatenations(self) -> list[str]:
        """Names of the concatenations that there are now."""
        return [name for name, layer in self.layers.items() if isinstance(layer, Concat)]

    def _flatten(self) -> None:
        """Let each concatenation have the maps of those that it alone reads."""
        for name in self._concatenations():
            its = self.readers(name)
            if len(its) == 1 and isinstance(its[0], Concat) and its[0].inputs.count(name) == 1:
                inputs = its[0].inputs
                place = its[0].inputs.index(name)
                inputs = (*inputs[:place], *self.layers[name].inputs, *inputs[place + 1 :])
                self.put(replace(its[0], inputs=inputs))
                del self.layers[name]

    def _stack(self, name: str) -> None:
        """Make one convolution of those of one map that a concatenation has side by side."""
        layer = self.layers[name]
        inputs = list[str]()
        for read in layer.inputs:
            if inputs and self._alike(inputs[-1], read):
                inputs[-1] = self._stacked(inputs[-1], read)
            else:
                inputs.append(read)
        if len(inputs) > 1:
            self.put(replace(layer, inputs=tuple(inputs)))
            return
        act = self.layers.pop(inputs[0])
        self.stacks[name] = self.stacks.pop(act.name)
        self.put(replace(act, name=name))

    def _alike(self, first: str, second: str) -> bool:
        """Whether two maps are made by activations, and these of convolutions, that differ in channels alone and are
        needed for one concatenation alone."""
        acts = [self.layers.get(name) for name in (first, second)]
        if first == second or not all(isinstance(act, Requantise | Threshold) for act in acts):
            return False
        convs = [self.layers.get(act.inputs[0]) for act in acts if act is not None]
        alone = all(len(self.readers(one.name)) == 1 for one in (*acts, *convs) if one is not None)
        if not alone or not all(type(conv) is Conv for conv in convs):
            return False
        plain = {replace(conv, name="a", out_channels=1) for conv in convs if isinstance(conv, Conv)}
        return len(plain) == 1 and len({replace(act, name="a", inputs=()) for act in acts if act is not None}) == 1

    def _stacked(self, first: str, second: str) -> str:
        """Put the kernels and channels of the second of two maps that are alike behind those of the first one; the name
        of their common map."""
        one = self.layers[first]
        other = self.layers[second]
        for below, behind in ((one.inputs[0], other.inputs[0]), (first, second)):
            self.stacks[below] = self.stacks.get(below, (below,)) + self.stacks.pop(behind, (behind,))
        conv = self.layers[one.inputs[0]]
        more = self.layers.pop(other.inputs[0])
        assert isinstance(conv, Conv)
        assert isinstance(more, Conv)
        self.put(replace(conv, out_channels=conv.out_channels + more.out_channels))
        self.put(one)
        del self.layers[second]
        return first

    def _place(self, name: str) -> None:
        """Rewrite a concatenation, and those that come of it, until each is as an NPU takes it."""
        layer = self.layers[name]
        its = self.readers(name)
        if len(its) == 1 and all(self._may_come_before(its[0], read) for read in layer.inputs):
            self._bring_before(layer, its[0])
            self._place(its[0].name)
            return
        while len(layer.inputs) > 2:
            both = self.new(name, "maps")
            self.put(Concat(name=both, inputs=layer.inputs[:2]))
            layer = replace(layer, inputs=(both, *layer.inputs[2:]))
            self.put(layer)
            self._copy(both)
        if not (len(its) == 1 and isinstance(its[0], Weighted)):
            self._copy(name)

    def _may_come_before(self, reader: Layer, read: str) -> bool:
        """Whether a layer that reads a concatenation may read one of its maps instead, and be lowered with the layer
        that makes it: a pool behind an activation or an addition, an activation behind sums."""
        maker = self.layers.get(read)
        if maker is None or len(self.readers(read)) != 1:
            return False
        if isinstance(reader, Pool):
            return isinstance(maker, Requantise | Threshold | Add)
        if isinstance(maker, Pool):
            maker = self.layers.get(maker.inputs[0])
        return isinstance(reader, Requantise | Threshold) and isinstance(maker, Weighted)

    def _bring_before(self, layer: Layer, reader: Layer) -> None:
        """Let the one reader of a concatenation read each of its maps; the concatenation then has the reader's name."""
        inputs = list[str]()
        first = 0
        for read in layer.inputs:
            behind = first + self.maps[read].channels
            inputs.append(self.new(reader.name, "of"))
            self.put(replace(reader, name=inputs[-1], inputs=(read,)))
            if reader.array_shapes_of([self.maps[read]]):
                self.parts[inputs[-1]] = (reader.name, slice(first, behind))
            first = behind
        del self.layers[layer.name]
        self.put(Concat(name=reader.name, inputs=tuple(inputs)))

    def _copy(self, name: str) -> None:
        """Put a copy behind a concatenation: its readers then read what the copy makes, which has the old name."""
        its = self.readers(name)
        maps = self.new(name, "maps")
        self.put(replace(self.layers[name], name=maps))
        if len(its) == 1 and isinstance(its[0], Requantise | Threshold):
            self.identity(name, maps)
            return
        sums = self.new(name, "copy")
        self.identity(sums, maps)
        self.same_values(name, sums, self.maps[maps].encoding)

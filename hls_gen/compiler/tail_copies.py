"""Copies of maps in front of layers without weights that have no convolution to follow.

    act_1 read by conv_2 and pool_3      -->  act_1, pool_3_copy (a convolution), pool_3_of (a requantisation), pool_3
    add_4 of two maps that others read   -->  copy of one of them, which add_4 follows
    act_1, act_2                         -->  act_1, act_2_copy, act_2
    the input read by conv_1 and conv_2  -->  input_copy, input_of, read by both

In a network with bits a pool that comes before all convolutions takes one, too:

    bits, pool_1                         -->  pool_1_copy (a convolution), pool_1_of (a threshold), pool_1
    integers, pool_1, threshold_1        -->  pool_1_copy (a convolution), pool_1, threshold_1

What an engine computes begins with a convolution, and behind its sums there is room for one requantisation, one
addition and one pool, whose map nobody needs as it is in between. Everything else takes a copy
(hls_gen/compiler/rewriting.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bitloom.golden.encoding import TERNARY
from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import AvgPool, MaxPool, Pool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold

from .engine_rules import ADD_TAILS, INTEGER_TAILS
from .pools import canonical
from .rewriting import Rewriting
from .segments import Segment, deepest


@dataclass
class TailCopies(Rewriting):
    """Puts copies in front of layers without weights."""

    depth: dict[str, int] = field(default_factory=lambda: {INPUT: 0})
    """Map -> weighted layers on the longest way to it."""
    tails: dict[str, tuple[Weighted, tuple[Layer, ...]]] = field(default_factory=dict)
    """Map -> the weighted layer that it comes from, and the layers behind that."""

    def place(self) -> None:
        """Do so. Of networks with bits what a first pool reads is copied, and no other map."""
        if any(made.encoding.kind == "bipolar" for made in self.maps.values()):
            for layer in self.network.layers:
                if isinstance(layer, Pool) and self._comes_first(self.network.reads[layer.name][0]):
                    self._copy_for(layer.name)
            return
        its = self.readers(INPUT)
        if not any(isinstance(layer, Weighted) for layer in self.layers.values()):
            return
        if len(its) > 1 or not isinstance(its[0], Weighted):
            self._copy(INPUT, "input", its)
        for layer in self.network.layers:
            self._take(layer.name)

    def _comes_first(self, read: str) -> bool:
        """Whether a map that one layer reads is the input, or what a binariser makes of it."""
        entry = self.layers.get(read)
        first = read == INPUT or (isinstance(entry, Threshold) and entry.inputs == (INPUT,))
        return first and len(self.readers(read)) == 1

    def _copy_for(self, pool: str) -> None:
        """Let a pool follow a copy of the map that it reads. Where thresholds of integers follow the pool, they are
        thresholds of the copy's sums."""
        layer = self.layers[pool]
        sums = self.new(pool, "copy")
        (read,), behind = layer.inputs, layer
        while isinstance(behind, Pool) and len(self.readers(behind.name)) == 1:
            (behind,) = self.readers(behind.name)
        made = sums
        encoding = self.maps[read].encoding
        as_sums = encoding.kind != "bipolar" and isinstance(behind, Threshold)
        self.identity(sums, read, TERNARY if as_sums else None)
        if not as_sums:
            made = self.new(pool, "of")
            self.same_values(made, sums, encoding)
        self.layers[pool] = replace(layer, inputs=(made,))

    def _take(self, name: str) -> None:
        """Let a layer begin a segment, or follow a map, or a copy of it; those in front of it are done."""
        layer = self.layers[name]
        if isinstance(layer, Concat):
            first, *others = layer.inputs
            for read in others:
                if read in self.tails and self._begun(read) == self._begun(first):
                    self._copy(read, name, [layer])
        elif not isinstance(layer, Weighted):
            followed = self._followed(layer)
            if not self._may_follow(layer, followed):
                followed = self._copy(followed, name, [layer])
            if followed in self.tails:
                begun, tail = self.tails[followed]
                self.tails[name] = begun, (*tail, layer)
        self._note(self.layers[name])

    def _note(self, layer: Layer) -> None:
        """Note the depth of a layer's map, and that it begins a segment if it does."""
        self.depth[layer.name] = max(self.depth[read] for read in layer.inputs) + isinstance(layer, Weighted)
        if isinstance(layer, Weighted):
            self.tails[layer.name] = (layer, ())

    def _begun(self, name: str) -> str:
        """The weighted layer that a map comes from."""
        return self.tails[name][0].name if name in self.tails else name

    def _followed(self, layer: Layer) -> str:
        """The map that a layer follows: of an addition's two one that a requantisation makes for it alone, if any; else
        the deepest."""
        names = list(layer.inputs)
        alone = [one for one in names if isinstance(self.layers.get(one), Requantise) and self._alone(one, layer)]
        return deepest(alone or names, self.depth)

    def _alone(self, name: str, layer: Layer) -> bool:
        """Whether a layer is the only reader of a map, and reads it once."""
        return self.readers(name) == [layer] and layer.inputs.count(name) == 1

    def _may_follow(self, layer: Layer, read: str) -> bool:
        """Whether a layer can be computed behind the map ``read``, or no copy would help: sums are not copied."""
        if read not in self.tails or not isinstance(layer, Requantise | MaxPool | AvgPool | SumPool | Add):
            return True
        begun, tail = self.tails[read]
        if not any(isinstance(one, Requantise) for one in tail):
            return True
        segment = Segment(layer=begun, source=self.maps[begun.inputs[0]], tail=(*tail, layer), reads="", readers=())
        joins = isinstance(layer, Add) and isinstance(self.layers.get(begun.inputs[0]), Concat)
        return self._alone(read, layer) and canonical(segment).tail_kinds in (*INTEGER_TAILS, *ADD_TAILS) and not joins

    def _copy(self, read: str, name: str, readers: Sequence[Layer]) -> str:
        """Let readers of a map read a copy of it, which is called after ``name``: of the input in all places, of other
        maps in the last one. Returns the copy's map."""
        sums = self.new(name, "copy")
        made = self.new(name, "of")
        if len(readers) == 1 and isinstance(readers[0], Requantise | SumPool):
            made = sums
        self.identity(sums, read)
        if made != sums:
            self.same_values(made, sums, self.maps[read].encoding)
        for layer in readers:
            places = [place for place, its in enumerate(layer.inputs) if its == read]
            inputs = list(layer.inputs)
            for place in places if read == INPUT else places[-1:]:
                inputs[place] = made
            self.layers[layer.name] = replace(layer, inputs=tuple(inputs))
        for one in dict.fromkeys((sums, made)):
            self._note(self.layers[one])
        begun = self.tails[sums][0]
        self.tails[made] = begun, (self.layers[made],) * (made != sums)
        return made

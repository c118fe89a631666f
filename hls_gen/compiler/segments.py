"""Segments: a network cut before each weighted layer. An engine computes a segment at once, as one lowered
layer (hls_gen/compiler/lowered_layers.py).

    conv_1  threshold_1  pool_1 | conv_2  threshold_2 | dense_3

An addition belongs to the segment whose result it takes first, and names the other map that it adds:

    conv_1  requantise_1 | conv_2  requantise_2  add_3 (+ conv_1) | dense_4

A concatenation of two maps belongs to the segment that reads it, which names both:

    conv_1  requantise_1 | conv_2  requantise_2 | (conv_1, conv_2) dense_4

Of a map of integers that is added a segment may go on with the signs (docs/decisions/0022):

    conv_1  requantise_1  threshold_1 | conv_2  requantise_2  add_2 (+ requantise_1)  threshold_2 | dense_3
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Layer, Map, OneInput
from bitloom.golden.layers.add import Pairwise
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.layers.pool import Pool
from bitloom.golden.layers.roles import Activation
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.design.results import PAIRS

from .taps import Taps
from .trips import BEFORE_ADD

Role = TypeVar("Role", bound=Layer)

SHORTCUTS = ("first", "last")
"""When the shorter way from a fork to an addition is computed: before the longer one, or as the last but the addition.
"""


@dataclass(frozen=True)
class AddedMaps:
    """The two maps of an addition."""

    followed: str
    """The map that the addition follows: no other layer reads it, and an addition may stand right behind the layer that
    makes it (trips.py)."""
    added: str
    """The other one."""


class FollowedMaps:
    """The map that each addition follows, of layers that are taken in their order.

    Of the maps that a layer makes for the addition alone, and behind which an addition may stand, the addition follows
    the one with the most weighted layers before it, so that the shorter way's map waits; of those the last one. A
    map of a layer that reads a concatenation is followed only where there is no other: the two stores of an NPU have no
    third map for such a layer.

    Parameters
    ----------
    readers : mapping of str to sequence of str
        Map -> names of the layers that read it. A layer that reads a map twice stands there twice.

    Attributes
    ----------
    joining : set of str
        Maps of weighted layers that read a concatenation, and of the layers behind these that read one map.
    """

    def __init__(self, readers: Mapping[str, Sequence[str]]):
        self.joining = set[str]()
        self._readers = readers
        self._layers: dict[str, Layer] = {}
        self._depth = {INPUT: 0}
        """Map -> weighted layers on the longest way to it."""

    def take(self, layer: Layer, reads: Sequence[str]) -> None:
        """Take the next layer, which reads these maps."""
        weighted = isinstance(layer, Weighted)
        self._layers[layer.name] = layer
        self._depth[layer.name] = max(self._depth[name] for name in reads) + weighted
        joins = isinstance(self._layers.get(reads[0]), Concat) if weighted else reads[0] in self.joining
        if layer.input_count == 1 and joins:
            self.joining.add(layer.name)

    def of(self, addition: str, reads: Sequence[str]) -> str | None:
        """The map of ``reads`` that an addition follows; None where no layer makes one for it alone."""
        alone = [name for name in reads if name in self._layers and self._readers[name] == (addition,)]
        possible = [name for name in alone if self._layers[name].kind in BEFORE_ADD]
        return self.deepest([name for name in possible if name not in self.joining] or possible) if possible else None

    def deepest(self, names: Sequence[str]) -> str:
        """Of some maps the one with the most weighted layers before it; of those the one that was taken last."""
        order = {name: number for number, name in enumerate(self._depth)}
        return max(names, key=lambda name: (self._depth[name], order[name]))


def added_maps(network: Network) -> Mapping[str, AddedMaps]:
    """Choose for each addition the map that it follows (`FollowedMaps`).

    Returns
    -------
    mapping of str to AddedMaps
        By the addition's name.

    Raises
    ------
    ValueError
        If neither map of an addition is made, for it alone, by a layer that it may stand behind.
    """
    followed = FollowedMaps(network.readers)
    by_addition = dict[str, AddedMaps]()
    for layer in network.layers:
        names = network.reads[layer.name]
        if isinstance(layer, Pairwise):
            chosen = followed.of(layer.name, names)
            if chosen is None:
                kinds = " or ".join(sorted(BEFORE_ADD))
                raise ValueError(
                    f"{layer.name}: a {kinds} must make one of its maps for it alone, got {' and '.join(names)}"
                )
            by_addition[layer.name] = AddedMaps(chosen, names[names[0] == chosen])
        followed.take(layer, names)
    return by_addition


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A weighted layer and the layers that work on its sums, which are lowered together."""

    layer: Weighted
    """Its name is the segment's, the lowered layer's and that of the map which this makes."""
    source: Map
    """The map that the weighted layer reads, a concatenation as one map."""
    tail: tuple[Layer, ...]
    """The layers that follow, up to the next weighted one."""
    reads: str
    """The segment whose result the layer reads, or `bitloom.golden.graph.INPUT`."""
    readers: tuple[str, ...]
    """The segments that read or add the result, in the order in which they are computed."""
    adds: str | None = None
    """The segment whose result the addition among the layers of ``tail`` adds; None where there is no addition."""
    joins: str | None = None
    """The segment whose result the layer reads behind that of ``reads``, channel by channel one map; None where it
    reads one result."""
    output: int | None = None
    """Which of the network's outputs the result is; None where it stays on the device."""
    added: Layer | None = None
    """The layer that makes what is added; None where there is no addition."""
    depthwise: "Segment | None" = None
    """The segment of a depthwise convolution fused with this one, behind its tail (hls_gen/compiler/depthwise.py)."""
    sums: tuple[Pool, ...] = ()
    """Pools in front of the tail that add up the layer's sums (hls_gen/compiler/taps.py)."""

    @property
    def window(self) -> Taps:
        """Taps that one sum reads: a window of the layer, or all those whose sums are added up."""
        return Taps.of(self.layer.window(self.source), self.sums, (self.source.height, self.source.width))

    @property
    def accumulator_range(self) -> tuple[int, int]:
        """Smallest and largest sum that any weights and any features can give."""
        low, high = self.layer.accumulator_range(self.source)
        return low * self.window.sums, high * self.window.sums

    @property
    def name(self) -> str:
        """Name of the weighted layer."""
        return self.layer.name

    @property
    def raw(self) -> bool:
        """Whether its results are raw: no layer makes others of its sums, and it accumulates no bits by OR."""
        return self.behind_sums(Activation) is None and self.layer.accumulate != "or"

    @property
    def tail_kinds(self) -> tuple[str, ...]:
        """Kinds of the layers that follow."""
        return tuple(layer.kind for layer in self.tail)

    def behind_sums(self, role: type[Role]) -> Role | None:
        """The first layer behind the sums that is of a class; None where none is."""
        return next((layer for layer in self.tail if isinstance(layer, role)), None)


def segments(network: Network, binariser: OneInput | None = None, shortcuts: str = "first") -> list[Segment]:
    """Cut a network before each weighted layer.

    Parameters
    ----------
    network : Network
    binariser : OneInput or None
        The layer that is computed in front of the first segment, if there is one: what it makes counts as the input.
    shortcuts : str
        One of SHORTCUTS. A shorter way comes first in any case where a map waits for another reader on one of the ways.

    Returns
    -------
    list of Segment
        In the order in which they are computed: each behind those whose results it needs, and of two ways from a map
        to an addition the shorter one where ``shortcuts`` says. Where layers are a chain, this is the network's order.

    Raises
    ------
    ValueError
        If a map has readers that no engine can serve, if a layer without weights comes before the first weighted
        one, or if there is no weighted one.
    """
    cutter = _Cutter(network, binariser)
    for layer in network.layers:
        cutter.take(layer)
    if not cutter.sources:
        raise ValueError(f"{network.name}: the engine needs a conv or dense layer, got none")
    order = cutter.order(shortcuts)
    needs = {name: (cutter.reads[name], cutter.joins.get(name), cutter.adds.get(name)) for name in order}
    readers = {name: tuple(other for other in order if name in needs[other]) for name in order}
    layers = {layer.name: layer for layer in network.layers}
    outputs = cutter.outputs
    cut = []
    for name in order:
        layer = layers[name]
        assert isinstance(layer, Weighted)
        segment = Segment(
            layer=layer,
            source=cutter.sources[name],
            tail=tuple(cutter.tails[name]),
            reads=cutter.reads[name],
            readers=readers[name],
            adds=cutter.adds.get(name),
            joins=cutter.joins.get(name),
            output=outputs.index(name) if name in outputs else None,
            added=layers.get(cutter.added.get(name, "")),
        )
        cut.append(segment)
    return cut


class _Cutter:
    """A network being cut: what is known of the segments after each of its layers."""

    def __init__(self, network: Network, binariser: OneInput | None):
        self._network = network
        self._binariser = binariser
        self._added_maps: Mapping[str, AddedMaps] = added_maps(network)
        self._maker = {INPUT: INPUT}
        """Map -> the segment that makes it."""
        self._pairs: dict[str, tuple[str, str]] = {}
        """Concatenation -> the segments that make its maps."""
        self._depth = {INPUT: 0}
        """Segment -> segments on the longest way to its result."""
        self.sources: dict[str, Map] = {}
        self.reads: dict[str, str] = {}
        self.tails: dict[str, list[Layer]] = {}
        self.adds: dict[str, str] = {}
        self.joins: dict[str, str] = {}
        self.added: dict[str, str] = {}
        """By segment, the attributes of `Segment` of these names; ``added`` has the layer's name."""

    @property
    def outputs(self) -> list[str]:
        """The segments that make the outputs."""
        return [self._maker[name] for name in self._network.outputs]

    def take(self, layer: Layer) -> None:
        """Let a layer begin a segment, or follow the layers of one."""
        network = self._network
        names = self._network.reads[layer.name]
        if isinstance(layer, Weighted):
            self._begin(layer, names[0])
            return
        if isinstance(layer, Concat):
            self._join(layer)
            return
        if isinstance(layer, Outputs):
            if readers := network.readers[layer.name]:
                raise ValueError(f"{layer.name}: outputs must be the last layer, got {' and '.join(readers)} behind it")
            return
        if layer.input_count > 1 and not isinstance(layer, Pairwise):
            raise ValueError(
                f"{layer.name}: a layer that reads several maps must be {', '.join(pair.kind for pair in PAIRS)} or "
                f"concat, got {layer.kind}"
            )
        followed = self._added_maps[layer.name].followed if isinstance(layer, Pairwise) else names[0]
        segment = self._maker[layer.name] = self._maker[followed]
        readers = network.readers[followed]
        if len(readers) > 1 and layer is not self._binariser and not self._forks(layer, followed):
            raise ValueError(
                f"{layer.name}: a map with several readers must be read by conv and dense layers and additions, got "
                f"{followed} read by {' and '.join(readers)}"
            )
        if segment == INPUT:
            if layer is not self._binariser:
                raise ValueError(
                    f"{layer.name}: what an engine computes must begin with a conv or dense layer, got {layer.kind}"
                )
            return
        self.tails[segment].append(layer)
        if isinstance(layer, Pairwise):
            self._add(layer, segment)

    def _begin(self, layer: Weighted, read: str) -> None:
        """Begin a segment, which reads one map or two."""
        name = layer.name
        self._maker[name], self.sources[name], self.tails[name] = name, self._network.maps[read], []
        first, *others = self._pairs.get(read) or (self._maker[read],)
        self.reads[name] = first
        self.joins.update((name, other) for other in others)
        self._depth[name] = 1 + max(self._depth[maker] for maker in (first, *others))

    def _join(self, layer: Concat) -> None:
        """Note which segments make the maps of a concatenation (hls_gen/compiler/concatenations.py)."""
        first, second = (self._maker[name] for name in self._network.reads[layer.name])
        if INPUT in (first, second) or first == second:
            got = "the input" if first != second else f"{first} twice"
            raise ValueError(f"{layer.name}: what is concatenated must be made by two conv or dense layers, got {got}")
        self._pairs[layer.name] = first, second

    def _add(self, layer: Pairwise, segment: str) -> None:
        """Note what the addition of a segment adds."""
        other = self._added_maps[layer.name].added
        if segment in self.adds:
            raise ValueError(f"{layer.name}: one addition must follow a conv or dense layer, got a second one")
        if self._maker[other] == INPUT:
            raise ValueError(f"{layer.name}: what is added must be made by a conv or dense layer, got the input")
        self.adds[segment] = self._maker[other]
        self.added[segment] = other
        self._depth[segment] = max(self._depth[segment], 1 + self._depth[self._maker[other]])

    def _forks(self, layer: Layer, name: str) -> bool:
        """Whether a layer may go on with map ``name`` though others read it: the layer makes bits, the others add."""
        others = [other for other in self._network.readers[name] if other != layer.name]
        added = all(other in self._added_maps and self._added_maps[other].added == name for other in others)
        return isinstance(layer, Threshold) and added

    def order(self, shortcuts: str) -> list[str]:
        """The segments in the order in which they are computed. Each follows the segments that make the map which it
        adds and the maps which it reads: those of the added map come first, or last where ``shortcuts`` are last. Of
        two maps that a segment reads, or of several outputs, the one on the shorter way comes first."""
        late = {name for name in self.adds if shortcuts == "last" and self._ways_are_plain(name)}
        order = dict[str, None]()
        ahead = sorted(self.outputs, key=self._depth.__getitem__, reverse=True)
        while ahead:
            read = [self.reads[ahead[-1]], *([self.joins[ahead[-1]]] if ahead[-1] in self.joins else [])]
            needs = [self.adds.get(ahead[-1]), *sorted(read, key=self._depth.__getitem__)]
            needs = needs[::-1] if ahead[-1] in late else needs
            missing = next((name for name in needs if name not in (None, INPUT) and name not in order), None)
            if missing is None:
                order[ahead.pop()] = None
            else:
                ahead.append(missing)
        return list(order)

    def _ways_are_plain(self, name: str) -> bool:
        """Whether both ways to the addition of a segment come from one map that nothing else reads, and no map on them
        is added, joined or read twice: then no other map waits in a store while they are computed."""
        longer, shorter = self._way(self.reads[name]), self._way(self.adds[name])
        fork = next((maker for maker in longer if maker in shorter), None)
        if fork is None:
            return False
        between = [*longer[: longer.index(fork)], *shorter[: shorter.index(fork)]]
        plain = all(maker not in self.adds and maker not in self.joins for maker in between)
        return plain and self._readers(fork) == 2 and all(self._readers(maker) == 1 for maker in between)

    def _way(self, name: str) -> list[str]:
        """The segments from that one back to the input."""
        way = []
        while name != INPUT:
            way.append(name)
            name = self.reads[name]
        return way

    def _readers(self, name: str) -> int:
        """How often the map of a segment is read, joined or added."""
        return sum([*needs.values()].count(name) for needs in (self.reads, self.joins, self.adds))

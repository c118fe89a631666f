"""Partitions of a network for a board: as few programs as its block RAM allows (hls_gen/compiler/partitions.py)."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.partitions import slice_channels, widest_slice
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.array import kernel_groups
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area_model.blocks import stores
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.steps import step

MOST_SLICES = 64
"""Slices of a partition at most: each is a program, for which the partition's map is sent again."""
LEAST_SKIP_WORDS = flat.LEAST["skip_words"]
"""Words of the smallest skip store."""
FRAMES = 2
"""Frames for which a partition is simulated while cuts are tried; the design that is made of them is simulated for
more."""
LARGE = 1 / 16
"""A memory is made smaller only where it takes this share of the board's block RAM or more, or as many blocks as there
are too many."""
TRIES = 8
"""How often cuts are looked for, at most: where a design for all of them, sized exactly, doesn't fit, for fewer blocks
again."""
MemoryBlocks = Mapping[str, float]
"""Memory -> blocks of RAM that it takes, of 36 Kbit."""


def fitting_partitions(
    model: Model, npus: Sequence[Npu], bram36: float, choices: CompileChoices, stream_bits: int
) -> dict[str, int]:
    """Cut a network so that one design, made for all partitions, has no more block RAM than a board.

    Parameters
    ----------
    model
        The network.
    npus
        Foldings of the NPUs.
    bram36
        Blocks of RAM of the board, of 36 Kbit.
    choices
        How partitions are compiled.
    stream_bits
        Width of the stream, 32 or 64.

    Returns
    -------
    dict
        `CompileChoices.partitions`; none where the network fits as it is.

    Raises
    ------
    ValueError
        A layer doesn't fit, not even in slices, or no cuts are found for which all memories together fit.
    """
    cutter = _Partitioner(model, npus, choices, stream_bits)
    most = bram36
    got = inf
    with step("cutting the network into partitions"):
        if cutter.fits_whole(bram36):
            return {}
        for _ in range(TRIES):
            try:
                partitions = cutter.fewest(most)
            except ValueError:
                if most < bram36:
                    break  # what is told is the board's blocks, not as few as were tried
                raise
            got = cutter.together(partitions, bram36)
            if got <= bram36:
                return partitions
            most -= max(1.0, got - bram36)
    rule = f"memories of all partitions must fit {bram36:g} BRAM36"
    raise ValueError(f"{model.network.name}: {rule}, got {got:g} at last")


@dataclass(frozen=True)
class _Partitioning:
    """Partitions of the whole network."""

    partitions: dict[str, int]
    """As of `CompileChoices.partitions`."""
    blocks: MemoryBlocks
    """Memory blocks of a design for all partitions: of each memory the largest."""
    more_groups: int
    """Kernel groups that slices compute beyond those of the whole layers: each takes cycles, for kernels that nobody
    needs."""

    @property
    def programs(self) -> int:
        """Programs of all partitions."""
        return sum(self.partitions.values())

    @property
    def total(self) -> float:
        """Blocks of all memories."""
        return sum(self.blocks.values())


class _Partitioner:
    """Cuts a network, and remembers what its pieces take; parameters are those of `fitting_partitions`."""

    def __init__(self, model: Model, npus: Sequence[Npu], choices: CompileChoices, stream_bits: int) -> None:
        self._model = model
        self._npus = npus
        self._choices = choices
        self._stream_bits = stream_bits
        self._blocks = dict[tuple[int, int, int, bool], MemoryBlocks | None]()
        self._refused = dict[tuple[int, int, int], str]()  # first layer, end, slices -> why it can't be computed
        layers = model.network.layers
        begins = [isinstance(layer, Weighted) and not isinstance(layer, DepthwiseConv) for layer in layers]
        self._places = [place for place, begin in enumerate(begins) if begin and place] + [len(layers)]

    def fewest(self, most: float) -> dict[str, int]:
        """Partitions for which a design takes ``most`` blocks, as few programs as are found.

        Each partition goes as far as it fits. Where the memories of all together are too large, one of them gets
        smaller by a step in all partitions: the one that saves most blocks for each program more, of those by which
        fewest kernel groups are computed beyond those of the network.
        """
        limits = dict[str, float]()
        cut = self._cut(limits, most)
        while (excess := cut.total - most) > 0:
            choices = list[tuple[int, float, float, str, _Partitioning]]()
            for name, blocks in cut.blocks.items():
                if blocks < min(LARGE * most, excess):
                    continue
                try:
                    smaller = self._cut({**limits, name: blocks - 0.5}, most)
                except ValueError:
                    continue
                saved = min(cut.total - smaller.total, excess)
                if saved > 0:
                    cost = max(0, smaller.more_groups - cut.more_groups), (smaller.programs - cut.programs) / saved
                    choices.append((*cost, -saved, name, smaller))
            if not choices:
                rule = f"memories of all partitions must fit {most:g} BRAM36"
                raise ValueError(f"{self._model.network.name}: {rule}, got {cut.total:g} at last")
            *_, name, smaller = min(choices, key=lambda choice: choice[:-1])
            limits[name] = cut.blocks[name] - 0.5
            cut = smaller
        return {} if list(cut.partitions.values()) == [1] else cut.partitions

    def _cut(self, limits: MemoryBlocks, most: float) -> _Partitioning:
        """Partitions that take ``most`` blocks each at most, and of a memory no more than its limit."""
        layers = self._model.network.layers
        partitions = dict[str, int]()
        together = dict[str, float]()
        begin = more_groups = 0
        while begin < len(layers):
            end, slices = self._longest(begin, limits, most) or self._sliced(begin, limits, most)
            partitions[layers[begin].name] = slices
            for name, blocks in (self._blocks_between(begin, end, slices, exact=True) or {}).items():
                together[name] = max(blocks, together.get(name, 0))
            more_groups += self._more_groups(begin, end, slices)
            begin = end
        return _Partitioning(partitions, together, more_groups)

    def _more_groups(self, begin: int, end: int, slices: int) -> int:
        """Kernel groups of all slices, less those of the whole."""
        kgp = max(npu.array.kgp for npu in self._npus)
        network = self._model.network
        channels = self._channels(end)
        ranges = slice_channels(network, network.layers[begin].name, channels, slices, kgp)
        return sum(kernel_groups(behind - first, kgp) for first, behind in ranges) - kernel_groups(channels, kgp)

    def together(self, partitions: dict[str, int], most: float) -> float:
        """Blocks of one design for all these partitions, exactly: as many, or more than ``most``."""
        choices = replace(self._choices, partitions=partitions)
        design = self._size([self._model], choices, Sizing(skip_words=LEAST_SKIP_WORDS))
        least = estimate(design).bram36
        if least > most or not _has_skip_stores(design):
            return least
        return estimate(self._size([self._model], choices, Sizing())).bram36

    def fits_whole(self, most: float) -> bool:
        """Whether the network can be computed without cuts, in ``most`` blocks. A part of it may need more."""
        try:
            return self.together({}, most) <= most
        except ValueError:  # a part may be possible where the whole isn't
            return False

    def _longest(self, begin: int, limits: MemoryBlocks, most: float) -> tuple[int, int] | None:
        """(end, 1) of the longest partition from a place on that fits; None where none does."""
        longest = None
        for end in self._ends(begin):
            fits = self._fits(begin, end, 1, limits, most)
            if fits:
                longest = end, 1
            elif fits is not None:
                break
        return longest

    def _sliced(self, begin: int, limits: MemoryBlocks, most: float) -> tuple[int, int]:
        """(end, slices) of the shortest partition from a place on that fits in slices, as few as do."""
        least = inf
        for end in self._ends(begin):
            low, high = 2, min(MOST_SLICES, self._channels(end))
            if low > high or self._fits(begin, end, 2, limits, most) is None:
                continue
            fewest = 0
            while low <= high:  # more slices take less; too many may be none that can be computed
                middle = (low + high) // 2
                fits = self._fits(begin, end, middle, limits, most)
                if fits:
                    fewest = middle
                elif fits is False:
                    least = min(least, self._least(begin, end, middle))
                low, high = (middle + 1, high) if fits is False else (low, middle - 1)
            if fewest:
                return end, fewest
        layer = self._model.network.layers[begin].name
        ends = self._ends(begin)
        rules = (self._refused.get((begin, end, 1)) for end in (ends[-1], ends[0]))  # the folding's fault, mostly
        got = f"{least:g}" if least < inf else next(filter(None, rules), None) or next(reversed(self._refused.values()))
        rule = f"what begins with {layer} must fit {most:g} BRAM36 in at most {MOST_SLICES} slices"
        raise ValueError(f"{self._model.network.name}: {rule}, got {got}")

    def _ends(self, begin: int) -> list[int]:
        """The places behind ``begin`` in front of which a partition may end, and the end of the network."""
        return [place for place in self._places if place > begin]

    def _channels(self, end: int) -> int:
        """Channels of the map with which a partition ends."""
        network = self._model.network
        return network.maps[network.layers[end - 1].name].channels

    def _least(self, begin: int, end: int, slices: int) -> float:
        """Blocks of a piece without its skip store."""
        return sum((self._blocks_between(begin, end, slices, exact=False) or {"": inf}).values())

    def _fits(self, begin: int, end: int, slices: int, limits: MemoryBlocks, most: float) -> bool | None:
        """Whether the layers from ``begin`` to ``end`` fit; None where they can't be computed."""
        for exact in (False, True):
            blocks = self._blocks_between(begin, end, slices, exact=exact)
            if blocks is None:
                return None
            if sum(blocks.values()) > most or any(blocks.get(name, 0) > limit for name, limit in limits.items()):
                return False
        return True

    def _blocks_between(self, begin: int, end: int, slices: int, exact: bool) -> MemoryBlocks | None:
        """Blocks of a design for the layers from ``begin`` to ``end`` alone; None where they can't be computed. Unless
        ``exact`` without skip stores, whose words only the flow model knows."""
        key = begin, end, slices, exact
        if key not in self._blocks:
            one = replace(self._choices, repeat_input=True, mapping=None, dataflow=CompileChoices().dataflow)
            try:
                widest = widest_slice(self._model, begin, end, slices, self._npus)
                sizing = Sizing(skip_words=None if exact else LEAST_SKIP_WORDS, frames=FRAMES)
                design = self._size([widest.model], one, sizing)
                self._blocks[key] = _blocks(design)
                if not _has_skip_stores(design):
                    self._blocks[begin, end, slices, True] = self._blocks[key]
            except ValueError as e:
                self._blocks[key] = None
                self._refused[begin, end, slices] = str(e)
        return self._blocks[key]

    def _size(self, models: Sequence[Model], choices: CompileChoices, sizing: Sizing) -> Design:
        """The design for some networks."""
        name = self._model.network.name
        return size_memories(name, models, self._npus, choices, stream_bits=self._stream_bits, sizing=sizing)


def _has_skip_stores(design: Design) -> bool:
    """Whether a design has skip stores, whose words only the flow model knows."""
    return any(npu.has_skip for npu in design.npus)


def _blocks(design: Design) -> MemoryBlocks:
    """Blocks of RAM that each memory of a design takes."""
    blocks = defaultdict[str, float](float)
    for store in stores(design):
        blocks[store.name] += store.mapped().bram36 * store.times
    return {name: count for name, count in blocks.items() if count}

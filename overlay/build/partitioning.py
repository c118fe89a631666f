"""Partitions of a network for a board: as few as its block RAM allows (hls_gen/compiler/partitions.py)."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.partitions import partition
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.steps import step

MOST_SLICES = 64
"""Slices of a partition at most: each is a program, for which the partition's map is sent again."""
SMALLER = 0.92
"""Where the memories of all partitions together are too large, each gets so much less, and all are cut again."""
TRIES = 12
LEAST_SKIP_WORDS = 2
"""Words of a skip store: the fewest that there can be."""


def fitting_partitions(
    model: Model, npus: Sequence[Npu], bram36: float, choices: CompileChoices, stream_bits: int
) -> dict[str, int]:
    """Cut a network so that one design, made for all partitions, has no more block RAM than a board.

    Each partition goes as far as it fits, by the area model.

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
        A layer doesn't fit, in slices neither.
    """
    cutter = _Cutter(model, npus, choices, stream_bits)
    most = bram36
    with step("cutting the network into partitions"):
        for _ in range(TRIES):
            found = cutter.cut(most)
            got = cutter.together(found, bram36)
            if got <= bram36:
                return found
            most *= SMALLER
    rule = f"memories of all partitions must fit {bram36:g} BRAM36"
    raise ValueError(f"{model.network.name}: {rule}, got {got:g} at last")


class _Cutter:
    """Cuts a network, and remembers what its pieces take; parameters are those of `fitting_partitions`."""

    def __init__(self, model: Model, npus: Sequence[Npu], choices: CompileChoices, stream_bits: int) -> None:
        self._model = model
        self._npus = npus
        self._choices = choices
        self._stream_bits = stream_bits
        self._blocks = dict[tuple[int, int, int, bool], float]()
        self._refused = dict[tuple[int, int, int], str]()  # first layer, end, slices -> why it can't be computed
        layers = model.network.layers
        begins = [isinstance(layer, Weighted) and not isinstance(layer, DepthwiseConv) for layer in layers]
        self._places = [place for place, begin in enumerate(begins) if begin and place] + [len(layers)]

    def cut(self, most: float) -> dict[str, int]:
        """Partitions that take ``most`` blocks each at most."""
        layers = self._model.network.layers
        found = dict[str, int]()
        begin = 0
        while begin < len(layers):
            end, slices = self._longest(begin, most) or self._sliced(begin, most)
            found[layers[begin].name] = slices
            begin = end
        return {} if list(found.values()) == [1] else found

    def together(self, partitions: dict[str, int], most: float) -> float:
        """Blocks of one design for all these partitions: as many, or more than ``most``."""
        choices = replace(self._choices, partitions=partitions)
        least = self._size([self._model], choices, Sizing(skip_words=LEAST_SKIP_WORDS))
        return least if least > most else self._size([self._model], choices, Sizing())

    def _longest(self, begin: int, most: float) -> tuple[int, int] | None:
        """(end, 1) of the longest partition from a place on that fits; None where none does."""
        longest = None
        for end in self._ends(begin):
            blocks = self._taken(begin, end, 1, most)
            if blocks <= most:
                longest = end, 1
            elif blocks < inf:
                break
        return longest

    def _sliced(self, begin: int, most: float) -> tuple[int, int]:
        """(end, slices) of the shortest partition from a place on that fits in slices, as few as do."""
        blocks = inf
        end = slices = 0
        for end in self._ends(begin):
            for slices in range(2, MOST_SLICES + 1):
                blocks = min(blocks, self._taken(begin, end, slices, most))
                if blocks <= most:
                    return end, slices
                if self._taken(begin, end, slices, most) == inf:
                    break
        layer = self._model.network.layers[begin].name
        whole = begin, len(self._model.network.layers), 1  # refused: mostly the folding's fault, not that of the cuts
        got = f"{blocks:g}" if blocks < inf else self._refused.get(whole) or self._refused[begin, end, slices]
        rule = f"what begins with {layer} must fit {most:g} BRAM36 in at most {MOST_SLICES} slices"
        raise ValueError(f"{self._model.network.name}: {rule}, got {got}")

    def _ends(self, begin: int) -> list[int]:
        return [place for place in self._places if place > begin]

    def _taken(self, begin: int, end: int, slices: int, most: float) -> float:
        """Blocks of a design for the layers from ``begin`` to ``end`` alone: as many, or more than ``most``. Infinite
        where they can't be computed."""
        least = self._known(begin, end, slices, exact=False)
        return least if least > most else self._known(begin, end, slices, exact=True)

    def _known(self, begin: int, end: int, slices: int, exact: bool) -> float:
        """Blocks as of `_taken`; unless ``exact`` without skip stores, whose words only the flow model knows."""
        key = begin, end, slices, exact
        if key not in self._blocks:
            one = replace(self._choices, repeat_input=True, mapping=None, dataflow=CompileChoices().dataflow)
            try:
                parts = partition(self._model, begin, end, slices, self._npus)
                sizing = Sizing(skip_words=None if exact else LEAST_SKIP_WORDS)
                self._blocks[key] = self._size([part.model for part in parts], one, sizing)
            except ValueError as e:
                self._blocks[key] = inf
                self._refused[begin, end, slices] = str(e)
        return self._blocks[key]

    def _size(self, models: Sequence[Model], choices: CompileChoices, sizing: Sizing) -> float:
        """Blocks of a design for some networks."""
        name = self._model.network.name
        design = size_memories(name, models, self._npus, choices, stream_bits=self._stream_bits, sizing=sizing)
        return estimate(design).bram36

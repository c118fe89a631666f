"""Weights that come down the stream while frames are computed (spec B10, B18): which layers, where they lie, and when.

    stream of a frame:  W(0) FRAME W(1) W(2) ...  W(0) FRAME ...        row 0 ┌──────────┬──────┬──────────┐ depth
                                                                              │ a: up    │ down :b│ resident │
    engine:                     layer 0, layer 1, ...                         └──────────┴──────┴──────────┘

As many layers as there is room for stay in the kernel memory; the others take turns at its two ends: kernel memory a
grows from the first row up, b from the last one down. A packet of weights says how many layers may still be unfinished
when it is written (``ahead``: those before it that share no row with it), and a layer begins once its weights are
whole (hls_gen/rtl/loader/weights.py). `check_placement` shows that no row is overwritten in use and that the order
can't block.

Times are estimates, made to choose by; results don't depend on them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design.headers import HEADER_BITS

ESTIMATED_FRAMES = 4
"""Frames that an estimate plays through; the last one counts."""


@dataclass(frozen=True)
class WeightLayer:
    """A layer with weights, as a placement sees it: its rows and its cycles."""

    name: str
    """The layer's name."""
    rows: int
    """Its rows of the kernel memory."""
    beats: int
    """Cycles that it takes in a frame."""


@dataclass(frozen=True, kw_only=True)
class WeightStream:
    """The stream that brings frames and weights."""

    bits: int
    """Width of a stream word."""
    row_words: int
    """Stream words of a kernel row."""
    frame_words: int
    """Stream words of a frame, without its header."""
    absorbed: bool
    """Whether the tuple memory holds a whole frame, so that what follows the frame in the stream needn't wait until
    layer 0 has used it."""

    @property
    def header_words(self) -> int:
        """Stream words of a packet's header."""
        return HEADER_BITS // self.bits


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where the weights of each layer lie, and how they come."""

    base: tuple[int, ...]
    """First row of each layer."""
    streamed: tuple[int, ...] = ()
    """Numbers of the layers whose weights come down the stream, in the order of their packets. The others are
    resident."""
    ahead: tuple[int, ...] = ()
    """For each streamed layer: how many streamed layers before it may be unfinished when its rows are written."""
    before: int = 0
    """How many of the packets come before the frame; the others come after it."""


class StreamBlocked(Exception):
    """A packet waits for a layer that waits for a later packet. The message is the end of a sentence."""


def check_placement(
    network: str, layers: Sequence[WeightLayer], placement: Placement, depth: int, stream: WeightStream
) -> None:
    """Check a placement: every row stays until it was used, and no packet can wait for ever.

    Parameters
    ----------
    network
        The network's name, for messages.
    layers
        All layers, in their order.
    placement
        The placement.
    depth
        Rows of the kernel memory.
    stream
        The stream.

    Raises
    ------
    ValueError
        One of the rules is broken. One line: layer, rule and value.
    """
    count = len(placement.streamed)
    names = [layer.name for layer in layers]
    for i, layer in enumerate(layers):
        if not 0 <= placement.base[i] <= depth - layer.rows:
            end = placement.base[i] + layer.rows
            raise ValueError(
                f"{network}: {layer.name} must lie in rows 0..{depth - 1}, got {placement.base[i]}..{end - 1}"
            )
        for k in range(i):
            resident = i not in placement.streamed or k not in placement.streamed
            if resident and share_rows(layers, placement.base, i, k):
                raise ValueError(f"{network}: a resident layer must share no row, got {names[k]} and {names[i]}")
    for s, ahead in enumerate(placement.ahead):
        for distance in range(1, ahead + 1):
            i = placement.streamed[s]
            k = placement.streamed[(s - distance) % count]
            if distance >= count or share_rows(layers, placement.base, i, k):
                raise ValueError(
                    f"{network}: the weights of {names[i]} must wait until {names[k]} is done, "
                    f"got ahead = {ahead} where they share rows"
                )
    try:
        estimated_cycles(layers, placement, stream)
    except StreamBlocked as e:
        raise ValueError(f"{network}: the order of the stream must not block, got {e}") from None


def estimated_cycles(layers: Sequence[WeightLayer], placement: Placement, stream: WeightStream) -> int:
    """Estimate the cycles of a frame when frames follow each other.

    The engine is lazy here: a layer is played only when a packet has to wait for it, and what has been taken stays so.
    If this order of events goes through, every other order does.

    Parameters
    ----------
    layers
        All layers, in their order.
    placement
        The placement.
    stream
        The stream.

    Returns
    -------
    int
        About how many cycles.

    Raises
    ------
    StreamBlocked
        A packet may wait for ever.
    """
    play = _Play(layers, placement)
    count = len(placement.streamed)
    time = 0
    for frame in range(ESTIMATED_FRAMES):
        for item in range(count + 1):
            if item == placement.before:
                # the writer comes to the frame when the last layer's own words are in, and its last word may be taken
                # only when layer 0 has used the others
                what = f"frame {frame}"
                first = frame * len(layers)
                time = max(time, play.end(first - 2, what))
                play.frames.append(time)
                play.end(first, what)
                time += stream.header_words + stream.frame_words
                if not stream.absorbed:
                    time = max(time, play.end(first, what))
            if item < count:
                waits_for = frame * count + item - 1 - placement.ahead[item]
                if waits_for >= 0:
                    layer = waits_for // count * len(layers) + placement.streamed[waits_for % count]
                    time = max(time, play.end(layer, f"the weights of {layers[placement.streamed[item]].name}"))
                time += stream.header_words + layers[placement.streamed[item]].rows * stream.row_words
                play.ready.append(time)
    final = ESTIMATED_FRAMES * len(layers) - 1
    return play.end(final, "the end") - play.end(final - len(layers), "the end")


class _Play:
    """The engine: layers of all frames one after another; each waits for its weights and its frame."""

    def __init__(self, layers: Sequence[WeightLayer], placement: Placement):
        self._layers = layers
        self._streamed = {layer: s for s, layer in enumerate(placement.streamed)}
        self.ready: list[int] = []
        """Times when the weights of the streamed layers were whole."""
        self.frames: list[int] = []
        """Times when frames began to come."""
        self._ends: list[int] = []

    def end(self, number: int, what: str) -> int:
        """Time when layer ``number``, counted over the frames, is done: ``what`` waits for it. 0 before the first."""
        while len(self._ends) <= number:
            frame, layer = divmod(len(self._ends), len(self._layers))
            time = self._ends[-1] if self._ends else 0
            if layer in self._streamed:
                place = frame * len(self._streamed) + self._streamed[layer]
                if place >= len(self.ready):
                    raise StreamBlocked(f"{what} before the weights of {self._layers[layer].name}, which it waits for")
                time = max(time, self.ready[place])
            if layer == 0:
                if frame >= len(self.frames):
                    raise StreamBlocked(f"{what} before frame {frame}, which it waits for")
                time = max(time, self.frames[frame])
            self._ends.append(time + self._layers[layer].beats)
        return self._ends[number] if number >= 0 else 0


def share_rows(layers: Sequence[WeightLayer], base: Sequence[int], i: int, k: int) -> bool:
    """Whether layers ``i`` and ``k`` share rows."""
    return base[i] < base[k] + layers[k].rows and base[k] < base[i] + layers[i].rows

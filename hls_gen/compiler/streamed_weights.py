"""Weights that come down the stream while frames are computed (spec B10, B18): which layers, where they lie, and when.

    stream of a frame:  W(0) FRAME W(1) W(2) ...  W(0) FRAME ...        row 0 ┌──────────┬──────┬──────────┐ depth
                                                                              │ a: up    │ down :b│ resident │
    engine:                     layer 0, layer 1, ...                         └──────────┴──────┴──────────┘

As many layers as there is room for stay in the kernel memory; the others take turns at its two ends: kernel memory a
grows from the first row up, b from the last one down. A packet of weights says how many layers may still be unfinished
when it is written (``ahead``: those before it that share no row with it), and a layer begins once its weights are
whole (hls_gen/rtl/shell/loader/weights.py). ``check`` shows that no row is overwritten in use and that the order
can't block.

Times are estimates, made to choose by; results don't depend on them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from bitloom.hls_gen.design.headers import HEADER_BITS

MOST_AHEAD = 255
FRAMES = 4
"""Frames that an estimate plays through; the last one counts."""


@dataclass(frozen=True)
class WeightLayer:
    """What counts of a layer: its name, rows of the kernel memory, and beats."""

    name: str
    rows: int
    beats: int


@dataclass(frozen=True, kw_only=True)
class WeightStream:
    """The stream, in its own words: of ``bits`` each; of a kernel row and of a frame without their headers.

    absorbed : the tuple memory holds a whole frame, so that what follows it in the stream needn't wait for layer 0.
    """

    bits: int
    row_words: int
    frame_words: int
    absorbed: bool

    @property
    def header_words(self) -> int:
        """Of a packet."""
        return HEADER_BITS // self.bits


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where the weights of each layer lie and how they come.

    base : first row of each layer.  streamed : numbers of the layers that come down the stream, in order; the others
    are resident.  ahead : of these, how many streamed layers before it may be unfinished.  before : how many of these
    stand before the frame.
    """

    base: tuple[int, ...]
    streamed: tuple[int, ...] = ()
    ahead: tuple[int, ...] = ()
    before: int = 0


class StreamBlocked(Exception):
    """A packet waits for a layer that waits for a later packet. The message is the end of a sentence."""


def place(network: str, layers: Sequence[WeightLayer], depth: int, stream: WeightStream) -> Placement:
    """The best placement in a kernel memory of ``depth`` rows that we know.

    ValueError if a layer is larger than the memory.
    """
    largest = max(layers, key=lambda layer: layer.rows)
    if largest.rows > depth:
        raise ValueError(f"{network}: kernel_rows must be >= {largest.rows} for {largest.name}, got {depth}")
    if sum(layer.rows for layer in layers) <= depth:
        ends = list(accumulate(layer.rows for layer in layers))
        return Placement(base=(0, *ends[:-1]))
    resident: frozenset[int] = frozenset()
    best = _best(layers, _placed(layers, resident, depth), stream, 2)
    while True:  # the layer that is best made resident, then the next
        more = []
        for i in sorted(set(range(len(layers))) - resident):
            if _fits(layers, resident | {i}, depth):
                more.append((*_best(layers, _placed(layers, resident | {i}, depth), stream, 2), i))
        if not more:
            break
        found = min(more, key=lambda entry: entry[0])
        best, resident = found[:2], resident | {found[2]}
    _, made = _best(layers, best[1], stream, len(layers))
    check(network, layers, made, depth, stream)
    return made


def check(network: str, layers: Sequence[WeightLayer], made: Placement, depth: int, stream: WeightStream) -> None:
    """ValueError unless every row stays until it was used and no packet can wait for ever."""
    count, names = len(made.streamed), [layer.name for layer in layers]
    for i, layer in enumerate(layers):
        if not 0 <= made.base[i] <= depth - layer.rows:
            end = made.base[i] + layer.rows
            raise ValueError(f"{network}: {layer.name} must lie in rows 0..{depth - 1}, got {made.base[i]}..{end - 1}")
        for k in range(i):
            if (i not in made.streamed or k not in made.streamed) and _overlap(layers, made.base, i, k):
                raise ValueError(f"{network}: a resident layer must share no row, got {names[k]} and {names[i]}")
    for s, ahead in enumerate(made.ahead):
        for distance in range(1, ahead + 1):
            i, k = made.streamed[s], made.streamed[(s - distance) % count]
            if distance >= count or _overlap(layers, made.base, i, k):
                raise ValueError(
                    f"{network}: the weights of {names[i]} must wait until {names[k]} is done, "
                    f"got ahead = {ahead} where they share rows"
                )
    try:
        cycles(layers, made, stream)
    except StreamBlocked as e:
        raise ValueError(f"{network}: the order of the stream must not block, got {e}") from None


def cycles(layers: Sequence[WeightLayer], made: Placement, stream: WeightStream) -> int:
    """About how many cycles a frame takes when frames follow each other.

    ``StreamBlocked`` if a packet may wait for ever.

    The engine is lazy here (a layer is played only when a packet has to wait for it), and what has been taken stays so:
    if this order of events goes through, every other does.
    """
    play = _Play(layers, made)
    count, time = len(made.streamed), 0
    for frame in range(FRAMES):
        for item in range(count + 1):
            if item == made.before:
                # the writer comes to the frame when the last layer's own words are in, and its last word may be taken
                # only when layer 0 has used the others
                what, first = f"frame {frame}", frame * len(layers)
                time = max(time, play.end(first - 2, what))
                play.frames.append(time)
                play.end(first, what)
                time += stream.header_words + stream.frame_words
                if not stream.absorbed:
                    time = max(time, play.end(first, what))
            if item < count:
                waits_for = frame * count + item - 1 - made.ahead[item]
                if waits_for >= 0:
                    layer = waits_for // count * len(layers) + made.streamed[waits_for % count]
                    time = max(time, play.end(layer, f"the weights of {layers[made.streamed[item]].name}"))
                time += stream.header_words + layers[made.streamed[item]].rows * stream.row_words
                play.ready.append(time)
    final = FRAMES * len(layers) - 1
    return play.end(final, "the end") - play.end(final - len(layers), "the end")


class _Play:
    """The engine: layers of all frames one after another; each waits for its weights and its frame."""

    def __init__(self, layers: Sequence[WeightLayer], made: Placement):
        self._layers = layers
        self._streamed = {layer: s for s, layer in enumerate(made.streamed)}
        self.ready: list[int] = []
        """Times when the weights of the streamed layers were whole."""
        self.frames: list[int] = []
        """Times when frames began to come."""
        self._ends: list[int] = []

    def end(self, number: int, what: str) -> int:
        """When layer ``number``, counted over the frames, is done; ``what`` waits for it. 0 before the first."""
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


def _fits(layers: Sequence[WeightLayer], resident: frozenset[int], depth: int) -> bool:
    """Whether the others fit, one at a time, into what these leave."""
    room = depth - sum(layers[i].rows for i in resident)
    return all(layer.rows <= room for i, layer in enumerate(layers) if i not in resident) and room >= 0


def _placed(layers: Sequence[WeightLayer], resident: frozenset[int], depth: int) -> Placement:
    """Resident layers at the end of the memory, the others in turn at both ends of the rest."""
    base, room = [0] * len(layers), depth
    for i in sorted(resident):
        room -= layers[i].rows
        base[i] = room
    streamed = [i for i in range(len(layers)) if i not in resident]
    first = _first_after_a_pair(layers, streamed)
    for s in range(len(streamed)):
        i = streamed[(first + s) % len(streamed)]
        base[i] = room - layers[i].rows if s % 2 else 0
    ahead = []
    for s, i in enumerate(streamed):
        free = 0
        while free < min(len(streamed) - 1, MOST_AHEAD) and not _overlap(layers, base, i, streamed[s - 1 - free]):
            free += 1
        ahead.append(free)
    return Placement(base=tuple(base), streamed=tuple(streamed), ahead=tuple(ahead))


def _first_after_a_pair(layers: Sequence[WeightLayer], streamed: Sequence[int]) -> int:
    """Which streamed layer the turns begin with.

    An odd number of them closes its circle with two neighbours at the same end; best where the beats of resident layers
    between the two hide the most of the second one's rows.
    """
    count = len(streamed)
    if count % 2 == 0:
        return 0

    def gain(s: int) -> int:
        before, own = streamed[s - 1], streamed[s]
        between = range(before + 1, own if own > before else own + len(layers))
        return sum(layers[i % len(layers)].beats for i in between) - layers[own].rows

    return max(range(count), key=gain)


def _best(
    layers: Sequence[WeightLayer], made: Placement, stream: WeightStream, most: int
) -> tuple[tuple[int, int], Placement]:
    """((cycles a frame, rows that are streamed), the placement with the frame where it costs least: after at most
    ``most`` packets of weights)."""
    found = []
    for before in range(min(most, len(made.streamed)) + 1):
        candidate = replace(made, before=before)
        try:
            found.append((cycles(layers, candidate, stream), before))
        except StreamBlocked:
            if found:
                break
    time, before = min(found)
    return (time, sum(layers[i].rows for i in made.streamed)), replace(made, before=before)


def _overlap(layers: Sequence[WeightLayer], base: Sequence[int], i: int, k: int) -> bool:
    return base[i] < base[k] + layers[k].rows and base[k] < base[i] + layers[i].rows

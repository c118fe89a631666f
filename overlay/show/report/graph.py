"""The picture of a network's graph: a box for each layer, an arrow for each map. An <svg> element, laid out by hand.

    [ input          ]
           | 8 x 8 x 1
    [ conv_1   conv  ]--+
           | 8 x 8 x 16 |
    [ conv_2   conv  ]  |
           | 8 x 8 x 16 |
    [ add            ]<-+

Layers stand below one another in their order. An arrow that passes layers runs on the right, on a track of its own: it
leaves and reaches boxes at their sides, and what is written stands inside and between boxes, so no line crosses it.
"""

from collections.abc import Iterator
from html import escape

from bitloom.golden.graph import INPUT
from bitloom.golden.network import Network

from .text import TIMES

LEFT, BOX_WIDTH, HEIGHT, GAP = 8, 280, 24, 22
"""Left edge, width and height of a box, and room between two."""
CENTRE = LEFT + 40
"""Where arrows to the next layer run; shapes stand on their right."""
TRACK = 14
"""Distance of two tracks."""
LETTERS = 18
"""Letters of a layer's name at most; the whole name is in the box's title."""


def picture(network: Network) -> str:
    """The <svg> element."""
    names = [INPUT, *(layer.name for layer in network.layers)]
    kinds = ["", *(layer.kind for layer in network.layers)]
    row = {name: place for place, name in enumerate(names)}
    passing = [
        (row[source], row[name])
        for name, sources in network.reads.items()
        for source in dict.fromkeys(sources)
        if row[name] - row[source] > 1
    ]
    tracks = tracks_of(passing)
    parts = []
    for place, (name, kind) in enumerate(zip(names, kinds)):
        parts += _layer(place, name.removeprefix("@"), kind)
        if place + 1 < len(names):
            shape = f" {TIMES} ".join(map(str, network.maps[name].shape))
            direct = name in network.reads[names[place + 1]]
            parts += _down(place, shape, direct)
    for (source, target), track in zip(passing, tracks):
        parts.append(_around(source, target, track))
    width = LEFT + BOX_WIDTH + TRACK * (max(tracks, default=-1) + 2)
    height = _top(len(names) - 1) + HEIGHT + 8
    return (
        f'<svg class="blocks graph" viewBox="0 0 {width} {height}" style="max-width:{width}px" role="img" '
        f'aria-label="{len(network.layers)} layers and the maps between them">'
        '<defs><marker id="graph-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 8 4 0 8z" class="head"/></marker></defs>' + "".join(parts) + "</svg>"
    )


def tracks_of(arrows: list[tuple[int, int]]) -> list[int]:
    """A track for each arrow between two rows, so that arrows on one track share no row; short arrows on inner tracks.

    Parameters
    ----------
    arrows
        (first row, last row) of each.

    Returns
    -------
    list of int
        Track of each arrow, from 0, the inner one.
    """
    taken: list[list[tuple[int, int]]] = []
    tracks = dict.fromkeys(range(len(arrows)), 0)
    for number in sorted(tracks, key=lambda n: (arrows[n][1] - arrows[n][0], n)):
        first, last = arrows[number]
        free = (k for k, track in enumerate(taken) if all(last < begin or end < first for begin, end in track))
        track = next(free, len(taken))
        if track == len(taken):
            taken.append([])
        taken[track].append((first, last))
        tracks[number] = track
    return [tracks[number] for number in range(len(arrows))]


def _top(place: int) -> int:
    """Upper edge of a box."""
    return 8 + place * (HEIGHT + GAP)


def _layer(place: int, name: str, kind: str) -> Iterator[str]:
    """A box with the layer's name and kind."""
    y = _top(place)
    short = name if len(name) <= LETTERS else f"{name[: LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
    yield f"<g><title>{escape(name)}</title>"
    yield f'<rect x="{LEFT}" y="{y}" width="{BOX_WIDTH}" height="{HEIGHT}" class="npu"/>'
    yield f'<text x="{LEFT + 8}" y="{y + 16}" class="name">{escape(short)}</text>'
    yield f'<text x="{LEFT + BOX_WIDTH - 8}" y="{y + 16}" class="end small">{escape(kind)}</text>' if kind else ""
    yield "</g>"


def _down(place: int, shape: str, direct: bool) -> Iterator[str]:
    """The shape of a layer's map below its box, and the arrow to the next layer, if that reads it."""
    y = _top(place) + HEIGHT
    if direct:
        yield f'<path d="M{CENTRE} {y}v{GAP}" class="edge" marker-end="url(#graph-arrow)"/>'
    yield f'<text x="{CENTRE + 10}" y="{y + 15}" class="small">{escape(shape)}</text>'


def _around(source: int, target: int, track: int) -> str:
    """An arrow that passes the layers between, on the right of all boxes."""
    right = LEFT + BOX_WIDTH
    x = LEFT + BOX_WIDTH + TRACK * (track + 1)
    begin = _top(source) + HEIGHT - 7
    end = _top(target) + 7
    return f'<path d="M{right} {begin}H{x}V{end}H{right}" class="edge" marker-end="url(#graph-arrow)"/>'

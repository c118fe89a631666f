"""The picture of the NPUs: what each computes, and what lies between them. An <svg> element, laid out by hand.

    host --> NPU 0 --+
              |      | loop
            NPU 1 <--+

NPUs stand below one another. A loop leads back to its own NPU on the right; the edge that closes a ring runs on the far
right, from the last NPU up to the first. Edges that the network doesn't use are dashed.
"""

from collections.abc import Iterator
from html import escape

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present

from .report import NpuCycles, Report
from .text import TIMES

WIDTH = 620
BOX, BOX_WIDTH = 84, 350
"""Left edge and width of an NPU."""
CENTRE = BOX + BOX_WIDTH // 2
HEADER = 28
LINE = 17
FOOT = 14
GAP = 58
FAR = WIDTH - 10
"""Where the edge that closes a ring runs."""


def picture(report: Report) -> str:
    """The <svg> element."""
    design = report.design
    tops = []
    y = GAP if report.design.closed else 12
    for npu in report.npus:
        tops.append(y)
        y += _height(npu) + GAP
    height = y if design.closed else y - GAP + 12
    parts = [part for npu, top in zip(report.npus, tops) for part in _npu(report, npu, top)]
    if design.closed:
        parts += _closing(report, tops[0], y - GAP)
    label = f"{len(tops)} NPUs and the layers that they compute"
    return (
        f'<svg class="blocks" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">'
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 8 4 0 8z" class="head"/></marker></defs>' + "".join(parts) + "</svg>"
    )


def _height(npu: NpuCycles) -> int:
    """Height of an NPU, which has a line for each layer."""
    return HEADER + LINE * max(1, len(npu.layers)) + FOOT


def _npu(report: Report, npu: NpuCycles, top: int) -> Iterator[str]:
    """An NPU, and the edges that lead to it."""
    n = npu.npu
    height = _height(npu)
    params = report.design.npus[n]
    beats = {w.label: w.beats for w in report.work}
    yield f'<rect x="{BOX}" y="{top}" width="{BOX_WIDTH}" height="{height}" class="npu"/>'
    share = npu.spent["beats"] / npu.cycles
    yield f'<rect x="{BOX}" y="{top + height - 5}" width="{BOX_WIDTH * share:.1f}" height="5" class="fed"/>'
    yield _text(BOX + 10, top + 19, f"NPU {n}", "name")
    yield _text(BOX + BOX_WIDTH - 10, top + 19, _lanes(params), "end")
    for k, layer in enumerate(npu.layers or ("no layer of this network",)):
        y = top + HEADER + 12 + LINE * k
        yield _text(BOX + 10, y, layer, "")
        if layer in beats:
            yield _text(BOX + BOX_WIDTH - 10, y, f"{beats[layer]:,} beats", "end")
    if "host" in params.ports.inlets:
        yield _path(f"M{BOX - 60} {top + 18}h60", True)
        yield _text(BOX - 64, top + 10, "frames", "small")
    if params.ports.sends_results:
        used = report.mapping[-1] == n
        yield _path(f"M{BOX} {top + height - 16}h-60", used)
        if used:
            yield _text(BOX - 64, top + height - 24, "results", "small")
    if "ring" in params.ports.inlets and n:
        yield _path(f"M{CENTRE} {top - GAP}v{GAP}", (n - 1, n) in report.crossings)
        yield from _store(CENTRE, top - GAP // 2, _pair(params))
    right = BOX + BOX_WIDTH
    if "loop" in params.ports.inlets:
        yield _path(f"M{right} {top + height - 16}h30V{top + 18}h-30", (n, n) in report.crossings)
        yield _text(right + 36, top + height / 2 - 1, "map store", "small")
        yield _text(
            right + 36,
            top + height / 2 + 13,
            f"{params.stores.map_words:,} {TIMES} {params.array.map_bits} bit",
            "small",
        )
    if params.has_skip:
        words = f"skip store {present(params.stores.skip).words:,} {TIMES} {params.skip_word_bits} bit"
        yield _text(right + 36, top + height / 2 + 27, words, "small")


def _closing(report: Report, top: int, bottom: int) -> Iterator[str]:
    """The edge from the last NPU, which ends at ``bottom``, up to NPU 0."""
    design = report.design
    last = len(report.npus) - 1
    down = GAP // 2
    up = GAP // 2 - 16
    used = (last, 0) in report.crossings
    yield _path(f"M{CENTRE} {bottom}v{down}H{FAR}V{top - GAP // 2 - up}H{CENTRE}V{top}", used)
    yield from _store(CENTRE, top - GAP // 2 + 4, _pair(design.npus[0]))
    if design.spill_words:
        words = f"spill store {design.spill_words:,} {TIMES} {design.npus[0].array.map_bits} bit"
        yield from _store(CENTRE + 130, bottom + down, words)


def _lanes(npu: Npu) -> str:
    """An NPU's folding in words."""
    pool = f", pool {npu.pool_unit.pfp}" if npu.pool_unit else ""
    return f"{npu.array.kfp} {TIMES} {npu.array.kgp} lanes, {npu.engine}{pool}"


def _pair(npu: Npu) -> str:
    """The ping-pong pair in front of an NPU, in words."""
    return f"ping-pong 2 {TIMES} {npu.ports.buffer_words:,} words of {npu.array.map_bits} bit"


def _path(d: str, used: bool) -> str:
    """An edge with an arrow at its end."""
    return f'<path d="{d}" class="edge{"" if used else " unused"}" marker-end="url(#arrow)"/>'


def _store(x: int, y: int, text: str) -> Iterator[str]:
    """A store on an edge, with ``text`` in it."""
    width = 7 * len(text) + 16
    yield f'<rect x="{x - width / 2}" y="{y - 11}" width="{width}" height="22" rx="4" class="store"/>'
    yield _text(x, y + 4, text, "middle small")


def _text(x: float, y: float, text: str, css: str) -> str:
    """A piece of text."""
    return f'<text x="{x:g}" y="{y:g}" class="{css}">{escape(text)}</text>'

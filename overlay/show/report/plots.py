"""The pictures of a report that are plots: each draws on axes of matplotlib, in the colours of a light page."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bitloom.overlay.explore.plot import draw

from .colours import LIGHT, SPENT
from .report import Report
from .roofline_plot import roofline
from .text import numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LIGHT["muted"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["muted"],
    "xtick.labelcolor": LIGHT["ink"],
    "ytick.color": LIGHT["muted"],
    "ytick.labelcolor": LIGHT["ink"],
    "grid.color": LIGHT["line"],
    "legend.frameon": False,
    "legend.fontsize": 8,
    "svg.fonttype": "none",
    "svg.hashsalt": "bitloom",
}
"""matplotlib's settings for these pictures."""

FRAME = 1
"""The frame that the timeline shows in colour: the first one that follows another."""
HELD: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("weights", "beats", ("kernels",)),
    ("thresholds, scales", "wait_weights", ("thresholds", "scales", "binariser", "reciprocals")),
    ("tuples", "wait_input", ("tuples", "pool_tuples", "pool_queue", "pool_fifo")),
    ("maps between layers", "wait_room", ("map_store", "buffers", "spill_store", "map_held")),
    ("tables and the rest", "wait_table", ()),
)
"""Content of memories, its colour, and the memories' names; the last entry is for all other memories."""
NAMED = {name for _, _, names in HELD for name in names}
LEGIBLE = 0.025
"""Part of a plot's width that a bar must have for a number in it."""


def utilisation(axes: "Axes", report: Report) -> None:
    """Stacked bars: where the cycles of each NPU go in a frame."""
    names = [f"NPU {npu.npu}" for npu in report.npus]
    left = [0.0] * len(names)
    for key, label in SPENT.items():
        spent = [npu.spent.get(key, 0.0) for npu in report.npus]
        if not any(key in npu.spent for npu in report.npus):  # of weights that are streamed
            continue
        axes.barh(names, spent, left=left, color=LIGHT[key], label=label, height=0.62)
        left = [a + b for a, b in zip(left, spent)]
    _bars(axes, "cycles a frame, steady stream", len(names))


def lanes(axes: "Axes", report: Report) -> None:
    """Bars: beats of each layer, cut into lanes at work and lanes that have no channel or no kernel."""
    names = _names(report)
    busy = [w.beats * w.busy for w in report.work]
    axes.barh(names, busy, color=LIGHT["beats"], label="lanes at work", height=0.62)
    idle = [w.beats - b for w, b in zip(report.work, busy)]
    axes.barh(names, idle, left=busy, color=LIGHT["idle"], label="lanes without a channel or a kernel", height=0.62)
    _bars(axes, "beats a frame, by the part of the lanes", len(names))


def memory(axes: "Axes", report: Report) -> None:
    """Stacked bars: bits of each NPU's memories, by what they hold."""
    owners = list(dict.fromkeys(m.npu for m in report.memories))
    left = [0.0] * len(owners)
    for label, colour, names in HELD:
        held = [m for m in report.memories if (m.name in names if names else m.name not in NAMED)]
        sizes = [sum(m.bits for m in held if m.npu == owner) / 1024 for owner in owners]
        axes.barh(range(len(owners)), sizes, left=left, color=LIGHT[colour], label=label, height=0.62)
        left = [a + b for a, b in zip(left, sizes)]
    axes.set_yticks(range(len(owners)), ["shared" if owner is None else f"NPU {owner}" for owner in owners])
    _bars(axes, "Kbit", len(owners))


def _names(report: Report) -> list[str]:
    """Names of the weighted layers, with their NPU where there are several."""
    several = len(report.npus) > 1
    return [f"{w.label}, NPU {w.npu}" if several else w.label for w in report.work]


def _bars(axes: "Axes", label: str, count: int) -> None:
    """Give a plot of ``count`` horizontal bars its look: the first bar on top, thousands on the axis, a legend
    above."""
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlabel(label)
    axes.xaxis.set_major_formatter(numbers())
    axes.grid(axis="x", linewidth=0.6)
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=6, borderaxespad=0.2, handlelength=1, columnspacing=1)


def timeline(axes: "Axes", report: Report) -> None:
    """Bars: when each NPU is at work for each layer, frame after frame."""
    times = report.timeline
    for span in times.spans:
        width = span.end + 1 - span.begin
        shown = span.frame == FRAME
        axes.barh(
            span.layer,
            width,
            left=span.begin,
            height=0.66,
            color=LIGHT["beats" if shown else "idle"],
            edgecolor=LIGHT["page"],
            linewidth=0.5,
        )
        if width >= LEGIBLE * times.left[-1]:
            colour = LIGHT["page" if shown else "ink"]
            axes.text(
                span.begin + width / 2,
                span.layer,
                str(span.frame),
                color=colour,
                fontsize=8,
                ha="center",
                va="center_baseline",
            )
    for begin, end in times.loads:
        axes.axvspan(begin, end + 1, color=LIGHT["line"], linewidth=0, zorder=0)
    for left in times.left:
        axes.axvline(left + 1, color=LIGHT["muted"], linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
    axes.set_yticks(range(len(report.work)), _names(report))
    axes.set_ylim(len(report.work) - 0.5, -0.5)
    axes.set_xlim(0, times.left[-1] + 2)
    axes.set_xlabel("cycles from the acceptance of the first frame; dashed: a frame has left")
    axes.xaxis.set_major_formatter(numbers())
    axes.tick_params(axis="y", length=0)


def explored(axes: "Axes", report: Report) -> None:
    """The Pareto front of the search."""
    assert report.front is not None
    draw(axes, report.front)


Draw = Callable[["Axes", Report], None]


@dataclass(frozen=True)
class Picture:
    """A plot."""

    name: str
    """For identifiers."""
    title: str
    """For people."""
    draw: Draw
    """Draws it on axes."""
    width: float
    height: float
    """width, height: in inches."""
    bars: int = 0
    """Horizontal bars with a legend above them; 0: it is another plot."""


HALF, WHOLE = 7.2, 14.6
"""Widths: two pictures side by side, or one."""
BAR, AROUND = 0.28, 1.0
"""Inches of a bar with its gap, and of legend and axis around the bars."""


def pictures(report: Report) -> list[Picture]:
    """The plots of a report, in their order."""

    def bars(name: str, title: str, draw: Draw, count: int) -> Picture:
        return Picture(name, title, draw, HALF, AROUND + BAR * count, count)

    front = [] if report.front is None else [Picture("front", "Designs to choose from", explored, HALF, 4.2)]
    return [
        bars("utilisation", "Where the cycles of each NPU go", utilisation, len(report.npus)),
        bars("lanes", "Lanes at work, layer by layer", lanes, len(report.work)),
        Picture("timeline", "Frames on their way", timeline, WHOLE, 0.7 + BAR * len(report.work)),
        *front,
        Picture("roofline", "Roofline", roofline, HALF, 4.2),
        bars("memory", "Memories", memory, len({m.npu for m in report.memories})),
    ]

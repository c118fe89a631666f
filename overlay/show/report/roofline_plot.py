"""The roofline as a plot of matplotlib: points under roofs, on logarithmic axes, with labels that cross nothing."""

from math import log
from typing import TYPE_CHECKING

from .colours import LIGHT
from .labels import Box, along, around, placed, size_of
from .report import Report
from .roofline import Point
from .text import numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FONT = 8
PLANE = (430.0, 245.0)
"""Width and height of the plot's area in points, a little less than it has on the page: labels find room in it."""


def roofline(axes: "Axes", report: Report) -> None:
    """Points under roofs, on logarithmic axes; a stem leads from each point to the roof of its own."""
    device = report.points[0]
    points = _shown(report)
    ridge = device.lanes / device.bytes_per_cycle
    low = min(ridge / 8, *(p.intensity / 3 for p in (device, *points)))
    high = max(ridge, *(p.intensity for p in (device, *points))) * 4
    roof = [low * device.bytes_per_cycle, device.lanes, device.lanes]
    bottom = min(roof[0], *(p.rate for p in (device, *points))) / 2
    top = device.lanes * 2
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(low, high),
        ylim=(bottom, top),
        xlabel="operations a byte",
        ylabel="operations a cycle",
    )
    axes.plot([low, ridge, high], roof, color=LIGHT["ink"], linewidth=1.4, zorder=1)
    for p in points:
        axes.plot([p.intensity] * 2, [p.rate, p.roof], color=LIGHT["muted"], linewidth=0.8, zorder=1)
        axes.plot([p.intensity], [p.roof], marker="_", color=LIGHT["muted"], markersize=9, zorder=1)
        alone = p.kind == "layer"
        axes.plot(
            [p.intensity],
            [p.rate],
            "o",
            color=LIGHT["beats"],
            markersize=6 if alone else 13,
            markerfacecolor=LIGHT["page" if alone else "beats"],
        )
        if not alone:
            axes.annotate(
                str(p.npu), (p.intensity, p.rate), color=LIGHT["page"], fontsize=FONT, ha="center", va="center_baseline"
            )
    axes.plot([device.intensity], [device.rate], "D", color=LIGHT["wait_room"], markersize=7)
    above = {"textcoords": "offset points", "ha": "right", "fontsize": FONT}
    axes.annotate(_lanes(device), (high, device.lanes), xytext=(0, 4), **above)
    axes.annotate(_stream(device), (ridge, device.lanes), xytext=(-8, 4), **above)
    _label(axes, device, points, (low, bottom, high, top))
    _decades(axes)


def _lanes(device: Point) -> str:
    """Text on the flat part of the roof."""
    return f"{device.lanes:,} lanes"


def _stream(device: Point) -> str:
    """Text on the slope of the roof."""
    return f"stream, {device.bytes_per_cycle:g} bytes a cycle"


def _label(axes: "Axes", device: Point, points: list[Point], limits: Box) -> None:
    """Names of the device and of layers, each where it crosses no line, no point and no other name."""
    low, bottom, high, top = limits
    width, height = PLANE

    def at(x: float, y: float) -> tuple[float, float]:
        return width * log(x / low) / log(high / low), height * log(y / bottom) / log(top / bottom)

    ridge = device.lanes / device.bytes_per_cycle
    taken = [
        *along(*at(low, low * device.bytes_per_cycle), *at(ridge, device.lanes)),
        *along(*at(ridge, device.lanes), *at(high, device.lanes)),
    ]
    for text, x, left in ((_lanes(device), high, 0), (_stream(device), ridge, -8)):
        size = size_of(text, FONT)
        right, y = at(x, device.lanes)
        taken.append((right + left - size[0], y + 2, right + left, y + 4 + size[1]))
    for p in (device, *points):
        taken.append(around(*at(p.intensity, p.rate), 13, 13))
        taken += along(*at(p.intensity, p.rate), *at(p.intensity, p.roof)) if p is not device else []
    named = [device, *(p for p in points if p.kind == "layer")]
    names = ["device", *(p.name for p in named[1:])]
    places = placed(
        [at(p.intensity, p.rate) for p in named], [size_of(name, FONT) for name in names], taken, (0, 0, width, height)
    )
    for p, name, place in zip(named, names, places):
        colour = LIGHT["wait_room" if p is device else "ink"]
        axes.annotate(
            name,
            (p.intensity, p.rate),
            xytext=place,
            textcoords="offset points",
            fontsize=FONT,
            ha="center",
            va="center",
            color=colour,
        )


def _shown(report: Report) -> list[Point]:
    """Points beside the device's: its NPUs, and the layers of NPUs that have several; of one NPU only the layers."""
    several = [npu.npu for npu in report.npus if len(npu.layers) > 1]
    return [
        p
        for p in report.points[1:]
        if (p.kind == "npu" and len(report.npus) > 1) or (p.kind == "layer" and p.npu in several)
    ]


def _decades(axes: "Axes") -> None:
    """Labels 1, 2, 5, 10, ... with thousands' commas, and a grid there, on logarithmic axes."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
        axis.set_major_formatter(numbers())
        axis.set_minor_formatter(NullFormatter())
    axes.grid(which="major", linewidth=0.6)

"""Plots as inline SVG for the page, and all of them on one PNG sheet. Needs matplotlib.

Bytes depend on the report and on matplotlib's version only: there are no dates, and identifiers have a fixed salt.
"""

import io
import re
from importlib.util import find_spec
from pathlib import Path

from bitloom.golden.atomic import write_bytes
from bitloom.golden.distribution import pip_install

from .colours import LIGHT
from .plots import AROUND, BAR, STYLE, WHOLE, Picture, pictures
from .report import Report

MISSING = f"report needs jinja2 and matplotlib: {pip_install('report')}"


def check_extra(png: Path | None = None) -> None:
    """Check beforehand that a report can be written.

    Raises
    ------
    ImportError
        If a package of the extra ``report`` is missing.
    ValueError
        If ``png`` has another ending.
    """
    for package in ("jinja2", "matplotlib"):
        if find_spec(package) is None:
            raise ImportError(MISSING)
    if png is not None and png.suffix != ".png":
        raise ValueError(f"--png: file name must end with .png, got {png}")


def svg(report: Report, picture: Picture) -> str:
    """A picture as an <svg> element. Colours are CSS variables, and identifiers begin with the picture's name."""
    from matplotlib import style
    from matplotlib.figure import Figure

    with style.context(["default", STYLE]):
        figure = Figure(figsize=(picture.width, picture.height), layout="constrained")
        picture.draw(figure.add_subplot(), report)
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)  # the page's parser knows them
    text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{picture.name}-", text)
    text = re.sub(r"font: ([^;\"]*?)px [^;\"]*", r"font: \1px sans-serif", text)
    for meaning, colour in LIGHT.items():
        text = text.replace(colour, f"var(--{meaning})")
    return re.sub(r"[ \t]+\n|\n\s*\n", "\n", text)


def sheet(report: Report, path: Path) -> None:
    """Write all pictures and the main figures as one PNG file."""
    from matplotlib import style
    from matplotlib.figure import Figure

    all_pictures = pictures(report)
    rows = [all_pictures[:2], *([p] for p in all_pictures[2:-2]), all_pictures[-2:]]
    heights = [max(p.height for p in row) for row in rows]
    with style.context(["default", STYLE, {"figure.facecolor": LIGHT["page"]}]):
        figure = Figure(figsize=(WHOLE, sum(heights) + 0.3 * len(rows) + 0.5), dpi=120, layout="constrained")
        figure.suptitle(_heading(report), x=0.01, ha="left", fontsize=12)
        parts = figure.subfigures(len(rows), 1, height_ratios=heights, squeeze=False)[:, 0]
        for part, row in zip(parts, rows):
            for axes, picture in zip(part.subplots(1, len(row), squeeze=False)[0], row):
                picture.draw(axes, report)
                axes.set_title(picture.title, pad=22)
                if picture.bars:  # as thick everywhere
                    axes.set_ylim((max(p.height for p in row) - AROUND) / BAR - 0.5, -0.5)
        picture = io.BytesIO()
        figure.savefig(picture, format="png", metadata={"Software": None})
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, picture.getvalue())


def _heading(report: Report) -> str:
    """The sheet's first line."""
    f = report.figures
    return (
        f"{report.network.name} on {report.design.name}, {f['npus']} NPU{'s' * (f['npus'] > 1)}, {f['lanes']:,} lanes: "
        f"{f['cycles_per_frame']:,.10g} cycles a frame, {f['frames_per_second']:,.0f} frames/s at {report.clock_mhz:g} "
        f"MHz, latency {f['latency_cycles']:,} cycles, {f['bit_exact_frames']} of {f['frames']} frames bit-exact"
    )

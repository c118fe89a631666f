"""The HTML page: one file that loads nothing. Needs jinja2 and matplotlib."""

from itertools import groupby
from pathlib import Path

from bitloom.overlay.platform.boards import BOARDS, RESOURCES, taken
from bitloom.overlay.timing.design_clock import HOW

from . import blocks, graph
from .colours import DARK, LIGHT, SPENT
from .figures import svg
from .plots import pictures
from .report import Report
from .text import number, percent

FOLDER = Path(__file__).parent


def page(report: Report, date: str = "") -> str:
    """Text of the page; the same text for equal reports and dates."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "percent": percent}
    plots = {picture.name: (picture.title, Markup(svg(report, picture))) for picture in pictures(report)}
    return environment.get_template("page.html").render(
        r=report,
        figures=report.figures,
        plots=plots,
        blocks=Markup(blocks.picture(report)),
        graph=Markup(graph.picture(report.network)),
        date=date,
        units=[(npu, list(group)) for npu, group in groupby(report.area.units, key=lambda unit: unit.npu)],
        light=LIGHT,
        dark=DARK,
        spent=SPENT,
        memories=[
            ("shared" if npu is None else f"NPU {npu}", list(group))
            for npu, group in groupby(report.memories, key=lambda memory: memory.npu)
        ],
        points=[p for p in report.points if p.kind != "layer" or len(report.npus[p.npu or 0].layers) > 1],
        boards={board.part: board for board in reversed(BOARDS.values())}.values(),  # one of each device
        taken=taken(report.area.resources),
        resources=RESOURCES,
        clock_how=HOW,
    )

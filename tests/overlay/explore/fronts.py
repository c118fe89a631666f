"""Designs that searches found before: a line for each, with its cycles a frame, latency in cycles, LUTs, flip-flops,
LUT RAM, block RAM and DSP blocks.

A search that is meant to find something else gets its new lines in fronts.json from the message of the test.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from bitloom.overlay.explore.tries import Row

FRONTS: dict[str, list[str]] = json.loads(Path(__file__).with_name("fronts.json").read_text())
"""The lines by search."""


def lines(rows: Iterable[Row]) -> list[str]:
    """The lines of designs."""
    texts = []
    for row in rows:
        figures = row.figures
        area = row.figures.area
        numbers = (figures.cycles, figures.latency, area.lut, area.ff, area.lutram, area.bram36, area.dsp)
        texts.append(" ".join(f"{number:g}" for number in numbers))
    return texts

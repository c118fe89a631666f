"""MLPerf Tiny on one design: every frame as golden has it, and the cycles and the area that the page states."""

import json
import re
from functools import cache
from types import SimpleNamespace

import pytest

from bitloom.golden.network import Model
from bitloom.golden.zoo import mlperf_tiny as networks
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, ring
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.platform.boards import BOARDS
from bitloom.overlay.study import mlperf_tiny
from bitloom.overlay.study.mlperf_tiny import BOARD, NPU, NPUS, STREAM_BITS, choices_for, entry, measure
from tests.commands import call
from tests.errors import value_error
from tests.paths import ROOT
from tests.printed import row

MANY = (ROOT / "docs" / "how-to" / "many-npus.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "explanation" / "mlperf-tiny.md").read_text(encoding="utf-8")


def test_an_unknown_network():
    with value_error("mlperf-tiny: a network must be one of ic, kws, vww, ad, sww, got 'kw'"):
        measure(["kw"], 2, ROOT)


@pytest.mark.parametrize("options", [[], ["--area"]])
def test_the_command_prints_the_area(monkeypatch, options):
    """By the model; by Yosys where that is asked for."""
    design = Design(name="small", npus=(Npu.of(kfp=8, kgp=4, ol=2),))
    cycles = {"latency_cycles": 1529, "cycles_per_frame": 1399, "ideal_cycles_per_frame": 1040, "utilisation": 0.74}
    figures = {"name": "ad", "weights": "seeded", "frames": 2, "mismatches": 0, **cycles}
    by_yosys = {"lut": 23_456, "paired_lut": 20_001, "lutram": 7, "ff": 8, "bram36": 2.5, "dsp": 3, "levels": 6}
    monkeypatch.setattr(mlperf_tiny, "measure", lambda *_, **__: ([figures], SimpleNamespace(design=design)))
    monkeypatch.setattr("bitloom.overlay.study.design_figures.area_figures", lambda _: by_yosys)
    modelled = estimate(design).figures
    command = ["bench", "mlperf-tiny", "ad", *options]
    shown = call(*command, catch_exceptions=False).output
    assert row(shown, "area model", 6)[0] == f"{modelled['lut']:,}"
    assert row(shown, "Yosys") == (["23,456", "20,001", "7", "8", "2.5", "3", "6"] if options else [])
    told = json.loads(call(*command, "--json", catch_exceptions=False).output)
    assert told["model"] == modelled
    assert {key: told.get(key) for key in by_yosys} == (by_yosys if options else dict.fromkeys(by_yosys))


JOINED = [
    ("", BOARD, (), None, ""),
    ("--board zcu104", "ZCU104", (), None, "-zcu104"),
    ("--topology ring", BOARD, ring([NPU] * 2), None, "-ring2"),
    ("--topology ring --board ZCU104", "ZCU104", ring([NPUS["ZCU104"]] * 2), None, "-zcu104-ring2"),
    ("--topology cascade --npus 3 --chunk rows:4", BOARD, cascade([NPU] * 3), "rows:4", "-chain3"),
]
JOINED = [(words.split(), *joined, f"mlperf-tiny{kind}") for words, *joined, kind in JOINED]


@pytest.mark.parametrize(("options", "board", "npus", "chunk", "name"), JOINED)
def test_the_command_joins_npus(monkeypatch, options, board, npus, chunk, name):
    """The first one alone has a window former: another one would stand behind the words that a ring brings, where the
    array takes several taps a beat."""
    asked = []

    def measured(*_, **given):
        asked.append(given)
        raise ValueError("enough")

    monkeypatch.setattr(mlperf_tiny, "measure", measured)
    call("bench", "mlperf-tiny", "ic", *options)
    assert asked == [{"board": board, "npus": npus, "chunk": chunk}]
    npus = npus or (NPUS[board],)
    assert mlperf_tiny.design_name(npus, board) == name
    assert [bool(npu.former) for npu in npus] == [True, *[False] * (len(npus) - 1)]


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--npus", "3"], "several NPUs need a topology, cascade or ring, got 3 without"),
        (["--chunk", "rows:4"], "chunks need a topology, cascade or ring, got rows:4 without"),
        (["--frames", "3"], "frames must be an even number >= 2, got 3"),
    ],
)
def test_the_command_drops_no_option(options, rule):
    ran = call("bench", "mlperf-tiny", "ic", *options)
    assert (ran.exit_code, ran.output) == (1, f"bitloom: mlperf-tiny: {rule}\n")


def stated(board: str) -> dict[str, list[int]]:
    """Latency, cycles a frame and beats of each network as the page has them, in the columns of the board."""
    first = 3 * list(NPUS).index(board)
    cycles = PAGE.partition("\n## Cycles\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\w+), [^|]+ \| [\d,]+ \| ([\d,]+(?: \| [\d,]+)+) \|$", cycles, re.M)
    numbers = {name: [int(cell.replace(",", "")) for cell in cells.split(" | ")] for name, cells in rows}
    assert {len(each) for each in numbers.values()} == {3 * len(NPUS)}
    return {name: each[first : first + 3] for name, each in numbers.items()}


@cache
def seeded() -> dict[str, Model]:
    """All networks with seeded weights."""
    return {name: networks.seeded(network()) for name, network in networks.NETWORKS.items()}


@pytest.mark.sample(1)
@pytest.mark.parametrize("board", NPUS)
def test_cycles_by_the_flow_model(board):
    """Of all networks on the board's design, with seeded weights; that hardware takes as many is tested below."""
    models = seeded()
    choices = choices_for([*models])
    npus = size_memories("tiny", [*models.values()], NPUS[board], choices, stream_bits=STREAM_BITS).npus
    plans = {name: plan(model, npus, choices) for name, model in models.items()}
    flows = {name: simulate(system(each, npus, stream_bits=STREAM_BITS), 2) for name, each in plans.items()}
    beats = {name: sum(count for _, count in each.ideal) for name, each in plans.items()}
    assert {name: [flow.latency, flow.cycles_per_frame, beats[name]] for name, flow in flows.items()} == stated(board)


@pytest.mark.slow  # five networks of up to 268,000 cycles a frame
@pytest.mark.parametrize("board", NPUS)
def test_five_networks_on_one_design(board, tmp_path):
    measured, build = measure(["ic", "kws", "vww", "ad", "sww"], 2, tmp_path, board=board)
    assert len(build.design.npus) == 1
    keys = ("latency_cycles", "cycles_per_frame", "ideal_cycles_per_frame")
    assert {one["name"]: [round(one[key]) for key in keys] for one in measured} == stated(board)
    assert [one["mismatches"] for one in measured] == [0, 0, 0, 0, 0]
    area = estimate(build.design)
    assert BOARDS[board].holds(area)
    weights = "seeded" if measured[0]["weights"] == "seeded" else "trained"
    named = "" if board == BOARD else f"{board}, "
    cells = re.search(rf"^\| {named}{weights}, by the area model \| (.+) \| *\|$", PAGE, re.M)
    assert cells is not None
    assert cells.group(1).split(" | ") == [f"{value:,}".removesuffix(".0") for value in area.figures.values()]


SHAPES = [("ring of 2", ring, 2, None), ("chain of 2", cascade, 2, "rows:32"), ("chain of 3", cascade, 3, "rows:32")]


@pytest.mark.slow  # ResNet-8 on arrays of 256 lanes each
@pytest.mark.parametrize(("shape", "join", "count", "chunk"), SHAPES)
def test_resnet_8_on_several_npus(shape, join, count, chunk, tmp_path):
    """Every frame is golden's, and cycles are the flow model's and those that the page states."""
    (measured,), build = measure(["ic"], 8, tmp_path, npus=join([NPU] * count), chunk=chunk)
    assert measured["mismatches"] == 0
    network_plan = plan(entry("ic").model, build.design.npus, choices_for(["ic"], chunk, join([NPU] * count)))
    flow = simulate(system(network_plan, build.design.npus, stream_bits=64, spill_words=build.design.spill_words))
    cycles = measured["latency_cycles"], measured["cycles_per_frame"]
    assert cycles == (flow.latency, flow.cycles_per_frame)
    (stated,) = re.findall(rf"^\| {shape}[^|]* \| ([\d,]+) \| ([\d,]+) \|", MANY, re.M)
    assert [round(value) for value in cycles] == [int(cell.replace(",", "")) for cell in stated]

"""The numbers of a report: those of the run's counters, adding up, and those of the network counted by hand."""

from collections.abc import Callable
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from bitloom.driver.frames import loads
from bitloom.golden import zoo as networks
from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.grouped import GroupedConv
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build.build import build, load
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.measured import Measured, check_even, measure
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.show.report import gather as gathering
from bitloom.overlay.show.report.compiled import Compiled, compiled
from bitloom.overlay.show.report.gather import gather
from bitloom.overlay.show.report.layer_work import layers
from bitloom.overlay.show.report.report import Report
from bitloom.overlay.show.report.text import TIMES
from tests.errors import value_error

from .conftest import FRAMES

Made = Callable[[str], Compiled]


def test_counters_add_up(report: Report) -> None:
    cycles = report.run.counters[4]["cycles"] - report.run.counters[2]["cycles"]
    assert len(report.npus) == len(report.design.npus)
    for n, npu in enumerate(report.npus):
        assert npu.npu == n
        assert 2 * npu.cycles == cycles
        for counters in report.run.counters.values():
            assert sum(counters[f"npu{n}_{key}"] for key in npu.spent) == counters["cycles"]
        assert npu.spent["beats"] == npu.ideal == sum(w.beats for w in report.work if w.npu == n)
        assert npu.layers == tuple(w.label for w in report.work if w.npu == n)


def test_figures_follow_from_the_counters(report: Report) -> None:
    few, many = report.run.counters[2], report.run.counters[4]
    f = report.figures
    cycles = (many["cycles"] - few["cycles"]) / 2
    assert f["cycles_per_frame"] == cycles
    assert f["latency_cycles"] == report.run.counters[1]["cycles"]
    assert f["latency_us"] == pytest.approx(f["latency_cycles"] / 100)
    loads = sum(p.load_words for p in report.programs) / f["frames_per_round"] if report.programs else 0
    assert f["frames_per_second"] == pytest.approx(1e8 / (cycles + loads))
    assert (f["bit_exact_frames"], f["frames"]) == (FRAMES, FRAMES)
    assert f["ideal_cycles_per_frame"] == max(npu.ideal for npu in report.npus) <= cycles
    fed = sum((many[f"npu{n}_beats"] - few[f"npu{n}_beats"]) / 2 * npu.lanes for n, npu in enumerate(report.npus))
    assert f["utilisation"] == pytest.approx(fed / cycles / f["lanes"])
    assert 0 < f["utilisation"] <= 1
    assert f["operations_per_cycle"] == pytest.approx(279_744 / cycles)


def test_layers_counted_by_hand(one: Report) -> None:
    """conv_1: 22 x 22 valid taps of 1 channel in 7 planes; conv_2: 36 windows of 9; conv_3: 7 x 7; dense_4: 9."""
    work = {w.name: w for w in one.work}
    names = ("conv_1", "conv_2", "conv_3", "dense_4")

    def of_layers(*values):
        return dict(zip(names, values))

    operations = of_layers(484 * 1 * 16, 324 * 16 * 32, 49 * 32 * 64, 9 * 64 * 10)
    assert {n: w.operations for n, w in work.items()} == operations
    assert {n: w.beats for n, w in work.items()} == of_layers(484, 324 * 2, 49 * 4, 9 * 2)
    lanes = of_layers((7 / 32, 1), (16 / 32, 1), (1, 1), (1, 10 / 16))
    assert {n: (w.lanes_in, w.lanes_out) for n, w in work.items()} == lanes
    words = of_layers((64, 1, 1), (64, 1, 2), (9, 1, 4), (18, 2, 1))
    assert {n: (w.words, w.tuple_words, w.groups) for n, w in work.items()} == words
    facts = {layer.name: layer for layer in one.layers}
    assert (facts["pool_2"].what, facts["pool_2"].output, facts["pool_2"].weights) == (
        f"2 {TIMES} 2, stride 2",
        (3, 3, 32),
        0,
    )
    assert (facts["conv_1"].what, facts["conv_1"].weights) == (f"3 {TIMES} 3, padding 1", 144)
    assert facts["conv_1"].weight_encoding == "bipolar 1"
    assert sum(layer.weights for layer in one.layers) == 28_944


def test_products_of_a_grouped_convolution_are_those_of_a_kernels_own_channels() -> None:
    """Each kernel of conv_1 reads 2 of 8 channels: half of the lanes of the one word that a kernel group reads."""
    conv = GroupedConv(name="conv_1", out_channels=8, groups=4, kernel=(1, 2), weight=signed(4))
    source = Map(height=3, width=5, channels=8, encoding=signed(4))
    network = Network(name="grouped", input=source, layers=(conv,))
    model = Model(network, {"conv_1": {"weight": np.ones((8, 1, 2, 2), np.int64)}})
    folding = Npu.of(engine="integer", feature_bits=4, weight_bits=4, shift_bits=0, kfp=4, kgp=4, pfp=4, ol=2)
    design = size_memories("grouped", [model], folding)
    fake = SimpleNamespace(plans=[plan(model, design.npus)], names=[""], build=SimpleNamespace(design=design))
    (work,) = layers(cast(Compiled, fake))
    assert (work.beats, work.operations, work.busy) == (3 * 4 * 2 * 1 * 2, 3 * 4 * 2 * 2 * 8, 0.5)
    assert work.beats * work.busy * 4 * 4 == work.operations


def test_programs_of_a_network_in_partitions(compiled_network: Made, run: Callable[[str], Measured]) -> None:
    """Loading is counted once a round: 64 MB of frames of 8 x 8 x 16 bytes, the largest map that a program reads."""
    partitions = compiled_network("partitions")
    report = gather(partitions, run("partitions"))
    assert [(p.name, p.layers, p.bound) for p in report.programs] == [
        ("conv_1", ("conv_1",), "array"),
        ("conv_2", ("conv_2", "conv_3"), "array"),
        ("dense_4.0", ("dense_4",), "array"),
        ("dense_4.1", ("dense_4",), "array"),
    ]
    assert [w.label for w in report.work] == ["conv_1", "conv_2", "conv_2/conv_3", "dense_4.0", "dense_4.1"]
    sent = [sum(map(len, loads(each, partitions.manifest, 1 << 26))) for each in partitions.network.programs]
    assert [p.load_words for p in report.programs] == sent
    assert report.figures["frames_per_round"] == (1 << 26) // (8 * 8 * 16)
    assert report.figures["load_cycles_per_round"] == sum(sent)
    assert sum(p.cycles for p in report.programs) == report.figures["cycles_per_frame"]
    assert sum(p.share for p in report.programs) == pytest.approx(1)
    kernels = next(m for m in report.memories if m.name == "kernels")
    assert (kernels.program, kernels.used) == ("conv_2", 54)


def test_roofline(report: Report) -> None:
    device, *points = report.points
    words = (report.run.counters[4]["words_in"] - report.run.counters[2]["words_in"]) / 2
    assert device.bytes == 4 * words
    assert device.lanes == report.figures["lanes"]
    assert sum(p.operations for p in points if p.kind == "npu") == device.operations
    assert sum(p.operations for p in points if p.kind == "layer") == device.operations == 279_744
    for p in report.points:
        assert p.rate == p.operations / p.cycles <= p.roof
        assert p.roof == min(p.lanes, p.bytes_per_cycle * p.operations / p.bytes)
    for p in (p for p in points if p.kind == "layer"):
        work = next(w for w in report.work if w.label == p.name)
        assert (p.cycles, p.bytes) == (work.beats, work.words * report.design.npus[work.npu].array.kfp / 8)


@pytest.mark.parametrize("name", ["digits-cnn", "digits-cnn-pipeline", "partitions"])
def test_the_flow_model_says_what_the_counters_say(
    name: str, compiled_network: Made, run: Callable[[str], Measured]
) -> None:
    report = gather(compiled_network(name), run(name))
    times, figures = report.timeline, report.figures
    assert (times.cycles_per_frame, times.latency) == (figures["cycles_per_frame"], figures["latency_cycles"])
    programs = [list(group) for _, group in groupby(range(len(report.work)), key=lambda i: report.work[i].program)]
    assert [(s.frame, s.layer) for s in times.spans] == [(f, i) for own in programs for f in range(4) for i in own]
    for s in times.spans:
        assert s.end + 1 - s.begin >= report.work[s.layer].beats
        assert s.npu == report.work[s.layer].npu
        assert s.end < times.left[s.frame]
        assert all(s.end < begin or s.begin > end for begin, end in times.loads)
    for n in range(len(report.npus)):
        own = [s for s in times.spans if s.npu == n]
        assert all(a.end < b.begin for a, b in pairwise(own))


@pytest.mark.slow
def test_the_timeline_of_streamed_weights_is_that_of_hardware(compiled_network: Made) -> None:
    streamed = compiled_network("streamed")
    report = gather(streamed, measure(streamed.build, streamed.model, random_images(streamed.model.network, 4, 0)))
    times, figures = report.timeline, report.figures
    assert report.npus[0].spent["wait_weights"] > 0
    assert (times.cycles_per_frame, times.latency) == (figures["cycles_per_frame"], figures["latency_cycles"])


def test_layers_wait_for_streamed_weights(compiled_network: Made, run: Callable[[str], Measured]) -> None:
    report = gather(compiled_network("streamed"), run("streamed"))
    assert len(compiled_network("streamed").network.programs[0].weights)
    times = report.timeline
    resident = gather(compiled_network("digits-cnn"), run("digits-cnn")).timeline
    assert [(s.frame, s.layer) for s in times.spans] == [(f, i) for f in range(4) for i in range(4)]
    assert all(a.end < b.begin for a, b in pairwise(times.spans))
    gaps, before = ([b.begin - a.end for a, b in pairwise(t.spans[:4])] for t in (times, resident))
    assert max(gaps) > max(before) + 10, "a layer whose weights had not come"
    assert times.cycles_per_frame > resident.cycles_per_frame
    assert report.npus[0].spent["wait_weights"] == 5
    kernels = next(m for m in report.memories if m.name == "kernels")
    assert (kernels.used, kernels.depth) == (72, 72)  # twice the largest layer; those of two take turns at row 0
    tuples = next(m for m in report.memories if m.name == "tuples")
    assert (tuples.used, tuples.depth) == (64, 64)


def test_memories(report: Report) -> None:
    assert sum(m.bram36 for m in report.memories) == estimate(report.design).bram36
    for m in report.memories:
        assert m.used is None or 0 <= m.used <= m.depth
    for n, npu in enumerate(report.design.npus):
        own = {m.name: m for m in report.memories if m.npu == n}
        for memory in memory_map(npu):
            if memory.name != "network":
                assert (own[memory.name].depth, own[memory.name].width) == (memory.depth, memory.width)
        assert (own["tuples"].depth, own["tuples"].width) == (npu.sequencer.tuple_words, npu.array.kfp)
        assert ("buffers" in own) == ("ring" in npu.ports.inlets)


def test_rows_used(one: Report) -> None:
    """As many as the layers need: the design was made for this network; only powers of two leave room."""
    used = {m.name: m.used for m in one.memories if m.npu == 0}
    assert (used["kernels"], used["thresholds"], used["layers"], used["pool_layers"]) == (81, 28, 4, 3)
    assert used["pool_olds"] == 0  # no pool window reads a tuple twice
    assert used["map_store"] is not None
    assert used["map_store"] > 32
    assert used["pool_fifo"] is None


def test_area_by_the_model_or_by_yosys(
    compiled_network: Made, run: Callable[[str], Measured], one: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (one.area.source, one.area.resources) == ("model", estimate(one.design))

    class Synthesised:
        total = Resources(lut=1, ff=2, bram36=3, lutram=4, dsp=5)
        blocks = ()

    monkeypatch.setattr(gathering, "area", lambda design: Synthesised)
    area = gather(compiled_network("digits-cnn"), run("digits-cnn"), synthesise=True).area
    assert (area.source, area.resources) == ("yosys", Synthesised.total)


# the commands


def test_map_order_and_dataflow_are_those_of_the_build(tmp_path: Path) -> None:
    model = networks.load("digits-cnn")
    choices = CompileChoices(map_order="raster", dataflow={"conv_3": "input_stationary"})
    design = size_memories("d", [model], DIGITS.changed(accumulators=8), choices)
    build(tmp_path / "b", design, [model], choices=choices)
    reloaded = compiled(load(tmp_path / "b"), model)
    assert reloaded.plans[0].schedule.map_order == "raster"
    (only,) = reloaded.plans
    assert only.dataflow == [
        "output_stationary",
        "output_stationary",
        "input_stationary",
        "output_stationary",
    ]


# what doesn't belong together


def test_another_model_is_refused(compiled_network: Made) -> None:
    digits = compiled_network("digits-cnn")
    arrays = {name: dict(own) for name, own in digits.model.arrays.items()}
    arrays["dense_4"]["weight"] = -arrays["dense_4"]["weight"]
    with pytest.raises(ValueError, match=r"digits-cnn was compiled from \w{16}, got the model \w{16}: build again$"):
        compiled(digits.build, Model(digits.model.network, arrays))


def test_another_network_is_refused(compiled_network: Made) -> None:
    build = compiled_network("digits-cnn").build
    with value_error(f"{build.folder}: network must be one of digits-cnn, got 'digits-or'"):
        compiled(build, networks.load("digits-or"))


@pytest.mark.parametrize("what", ["network", "design", "model"])
def test_a_run_of_something_else_is_refused(what: str, compiled_network: Made, run: Callable[[str], Measured]) -> None:
    digits, done = compiled_network("digits-cnn"), run("digits-cnn")
    field, got = (what, "lfc") if what == "network" else (f"{what}_digest", "ab" * 8)
    expected = getattr(done, field)[:16]
    with value_error(f"{digits.build.folder}: the run must be of {what} {expected}, got {got}"):
        gather(digits, replace(done, **{field: got}))


@pytest.mark.parametrize("frames", [0, 1, 3, -2])
def test_frames_are_even(frames: int) -> None:
    with value_error(f"report: frames must be an even number >= 2, got {frames}"):
        check_even("report", frames)

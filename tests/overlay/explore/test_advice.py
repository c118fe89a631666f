"""Advice that makes a design faster: as fast, and as large, as a build with that option is."""

import json
import re
from dataclasses import replace
from pathlib import Path

from bitloom.golden import zoo
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build.build import load
from bitloom.overlay.build.chosen_design import Wanted, chosen_design
from bitloom.overlay.build.reference_designs import DIGITS, REFERENCE_DESIGNS
from bitloom.overlay.evaluation.hardware import cycles_by_flow
from bitloom.overlay.explore.advice import LEAST_GAIN, Advice, advice, advice_rows
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.platform.boards import BOARDS
from tests.commands import call


def test_figures_are_those_of_a_build_with_the_option() -> None:
    model = zoo.load("digits-cnn")
    start = chosen_design(model)
    design = start.design("digits-cnn", [model])
    before = cycles_by_flow(model, design, start.choices).cycles_per_frame
    changes = advice(model, design, start.choices)
    assert [change.option for change in changes] == ["--kgp 32", "--window-former"]
    for change in changes:
        key, _, value = change.option.removeprefix("--").replace("-", "_").partition(" ")
        built = chosen_design(model, Wanted(design="digits-cnn", folding={key: int(value) if value else True}))
        changed = built.design("digits-cnn", [model])
        assert change.cycles == cycles_by_flow(model, changed, built.choices).cycles_per_frame
        assert change.gain == before / change.cycles >= LEAST_GAIN
        size = estimate(design)
        area = estimate(changed)
        assert change.lut == area.device_lut - size.device_lut
        assert (change.bram36, change.dsp) == (area.bram36 - size.bram36, area.dsp - size.dsp)


def test_a_board_holds_what_is_advised() -> None:
    model = zoo.load("digits-cnn")
    start = chosen_design(model)
    design = start.design("digits-cnn", [model])
    wider, former = advice(model, design, start.choices)
    luts = int(estimate(design).device_lut)
    assert wider.lut != former.lut
    small = replace(BOARDS["Pynq-Z2"], lutram=luts, lut=luts + min(wider.lut, former.lut) + 1)
    assert advice(model, design, start.choices, small) == [min(wider, former, key=lambda change: change.lut)]
    assert advice(model, design, start.choices, replace(small, lut=luts)) == []


def test_of_a_network_in_partitions_cycles_are_those_of_all_programs() -> None:
    model = zoo.load("digits-cnn")
    choices = CompileChoices(partitions={"conv_2": 1, "dense_4": 2})
    design = size_memories("digits", [model], DIGITS, choices)
    before = cycles_by_flow(model, design, choices).cycles_per_frame
    first, *_ = advice(model, design, choices)
    assert first.option == "--kgp 32"
    changed = size_memories("digits", [model], DIGITS.changed(kgp=32), choices)
    assert first.cycles == cycles_by_flow(model, changed, choices).cycles_per_frame == before / first.gain


def test_build_says_it_where_it_is_asked(tmp_path: Path) -> None:
    words = ["build", "digits-cnn", "--out", str(tmp_path / "build")]
    data = json.loads(call(*words, "--advice", "--json").stdout)
    changes = [Advice(**change) for change in data["advice"]]
    assert [change.option for change in changes] == ["--kgp 32", "--window-former"]
    assert load(tmp_path / "build").command == ("bitloom", *words)  # it is the same build
    shown = call(*words, "--advice").stdout
    for label, text in advice_rows(changes).items():
        assert re.search(rf"{label} +│ +{text} ", shown)


def test_of_several_npus_the_one_with_most_beats_is_changed() -> None:
    reference = REFERENCE_DESIGNS["digits-cnn-pipeline"]
    (model,) = reference.models()
    design = reference.design("digits-cnn-pipeline", [model])
    changes = advice(model, design, reference.choices)
    assert changes
    assert len({change.npu for change in changes}) == 1
    number = changes[0].npu
    wider = design.npus[number].changed(kgp=2 * design.npus[number].array.kgp)
    npus = (*design.npus[:number], wider, *design.npus[number + 1 :])
    (by_kernels,) = [change for change in changes if "--kgp" in change.option]
    assert by_kernels.option == f"--npu {number} --kgp {wider.array.kgp}"
    asked = Wanted(design="digits-cnn-pipeline", npu=number, folding={"kgp": wider.array.kgp})
    sized = chosen_design(model, asked).design("wider", [model])
    assert [npu.array.kgp for npu in sized.npus] == [npu.array.kgp for npu in npus]
    assert by_kernels.cycles == cycles_by_flow(model, sized, reference.choices).cycles_per_frame


def test_it_is_followed_behind_a_foldings_file(tmp_path: Path) -> None:
    reference = REFERENCE_DESIGNS["digits-cnn-pipeline"]
    (model,) = reference.models()
    candidate = Candidate("digits-cnn", reference.npus, (0, 1, 2, 3))
    first, *_ = advice(model, candidate.design(model), candidate.choices)
    (tmp_path / "foldings.json").write_text(json.dumps(candidate.to_dict()))
    words = ("build", "digits-cnn", "--foldings", str(tmp_path / "foldings.json"), *first.option.split())
    done = call(*words, "--out", tmp_path / "build")
    assert done.exit_code == 0, done.output
    design = load(tmp_path / "build").design
    assert cycles_by_flow(model, design, candidate.choices).cycles_per_frame == first.cycles
    key = first.option.split()[2].removeprefix("--")
    assert [n for n, npu in enumerate(design.npus) if npu.value(key) != reference.npus[n].value(key)] == [first.npu]

"""The fit of some kinds of blocks anew, in a world where a block's figures are known."""

import json
from collections.abc import Collection
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bitloom.hls_gen.design.design import Design
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area.synthesis import Area, BlockArea, area
from bitloom.overlay.area_model.blocks import area_blocks
from bitloom.overlay.area_model.estimate import coefficients
from tests.overlay.area.test_area import needs_yosys

from . import refit
from .blocks import blocks
from .least_squares import matched
from .samples import samples


def recorded() -> dict[str, dict[str, float]]:
    """The recorded areas."""
    return json.loads(refit.RECORDED.read_text())


def call(*arguments: str) -> Result:
    return CliRunner().invoke(refit.main, arguments)


@pytest.fixture
def linear(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A divider of the pool has 5 LUTs a bit and 20 more, and 2 flip-flops a bit; three designs are recorded."""
    small = ("digits-cnn", "digits-cnn-pipeline", "bnn-int8-ends")
    (tmp_path / "areas.json").write_text(json.dumps({name: recorded()[name] for name in small}))
    monkeypatch.setattr(refit, "RECORDED", tmp_path / "areas.json")

    def divide(design: Design, kinds: Collection[str]) -> Area:
        assert kinds == ("divide",)
        dividers = [block for block in area_blocks(design) if block.kind == "divide"]
        kinds_of_npus = list(dict.fromkeys(design.npus))
        resources = {}
        for block in dividers:
            bits = int(block.features["bits"])
            number = f"_npu_{kinds_of_npus.index(design.npus[block.npu])}" if len(kinds_of_npus) > 1 else ""
            resources["divide" + number] = Resources(lut=20 + 5 * bits, ff=2 * bits)
        return Area(Resources(), tuple(BlockArea(name, 1, r, r) for name, r in resources.items()), ())

    monkeypatch.setattr(refit, "blocks", divide)


def test_chosen_kinds_are_renewed_and_no_others(linear: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = coefficients()["blocks"]
    old = {**coefficients(), "blocks": {**blocks, "divide": {"lut": {"unseen": 7.0, "one": 1.0}, "ff": {}}}}
    monkeypatch.setattr(refit, "coefficients", lambda: old)
    result = call("--kinds", "divide", "--designs", "8", "--out", str(tmp_path / "made.json"))
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "made.json").read_text())
    assert data["blocks"]["divide"]["lut"].pop("unseen") == 7  # no sample has that size
    weights = data["blocks"]["divide"]
    for bits in (2, 8):
        for key, wanted in {"lut": 20 + 5 * bits, "ff": 2 * bits}.items():
            value = weights[key].get("one", 0) + weights[key].get("bits", 0) * bits
            assert value == pytest.approx(wanted, rel=0.1, abs=1)
    assert {k: v for k, v in data["blocks"].items() if k != "divide"} == {
        k: v for k, v in old["blocks"].items() if k != "divide"
    }
    assert data["flat"] == old["flat"]
    assert data["made_with"]["alone"]["divide"]["designs"] == 8
    assert data == refit.with_pairs(data)


def test_a_kind_that_no_sample_has_is_refused_before_any_synthesis(tmp_path: Path) -> None:
    result = call("--kinds", "divide,adder", "--designs", "2", "--out", str(tmp_path / "made.json"))
    kinds = ", ".join(sorted({block.kind for design in samples(2, 1) for block in area_blocks(design)}))
    assert str(result.exception) == f"bitloom: --kinds: with 2 designs it must be some of {kinds}, got 'adder'"
    assert not (tmp_path / "made.json").exists()


@needs_yosys
@pytest.mark.slow
def test_a_block_alone_is_as_large_as_in_its_design() -> None:
    design = samples(8, 1)[7]
    kinds = ("divide", "pe_integer_lut", "collector")
    alone, whole = (
        [(block.kind, area) for block, area in matched(design, one) if block.kind in kinds]
        for one in (blocks(design, kinds), area(design))
    )
    assert alone == whole

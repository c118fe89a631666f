"""The reference designs: bit-exact, and as fast as stated. Cycles are exact, so any change of them is a change here."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden import zoo as networks
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.topology import cascade
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS, ReferenceDesign, reference_design
from bitloom.overlay.study.design_figures import FigureTable, measure_design
from bitloom.overlay.study.map_orders import map_orders
from tests.cases import integer_cases
from tests.commands import call
from tests.errors import value_error

KEYS = {"name", "npus", "lanes", "xnor_lanes", "frames", "mismatches", "utilisation", "latency_cycles"}
KEYS |= {"cycles_per_frame", "ideal_cycles_per_frame", "beats_per_frame"}
KEYS |= {f"wait_{what}_per_frame" for what in ("input", "room", "table")}
IDEAL = 220_512
"""Spec B20: beats a frame of its network with KFP = KGP = 8."""


def figures_of(name: str, folder: Path, order: str | None = None, frames: int = 2) -> FigureTable:
    design = reference_design(name)
    choices = replace(design.choices, map_order=order or design.choices.map_order)
    return measure_design(name, replace(design, choices=choices), frames, folder)[0]


def check(figures: FigureTable, cycles: int, latency: int) -> None:
    """Bit-exact; cycles as stated; every cycle accounted for."""
    assert set(figures) == KEYS
    assert figures["mismatches"] == 0
    assert (figures["cycles_per_frame"], figures["latency_cycles"]) == (cycles, latency)
    assert figures["beats_per_frame"] == figures["ideal_cycles_per_frame"]
    parts = ("beats", "wait_input", "wait_room", "wait_table")
    assert sum(figures[f"{part}_per_frame"] for part in parts) == figures["cycles_per_frame"]
    assert figures["utilisation"] == figures["ideal_cycles_per_frame"] / cycles


def test_digits_cnn(tmp_path: Path) -> None:
    figures = figures_of("digits-cnn", tmp_path, frames=8)
    check(figures, cycles=1358, latency=1378)
    assert (figures["npus"], figures["lanes"], figures["xnor_lanes"], figures["frames"]) == (1, 512, 512, 8)
    assert figures["ideal_cycles_per_frame"] == 1346


@pytest.mark.slow
@pytest.mark.parametrize(("order", "cycles", "latency"), [("pull", 220_538, 220_561), ("raster", 221_011, 221_035)])
def test_cifar_quick_int8(order: str, cycles: int, latency: int, tmp_path: Path) -> None:
    figures = figures_of("cifar-quick-int8", tmp_path, order)
    check(figures, cycles, latency)
    assert (figures["lanes"], figures["xnor_lanes"], figures["ideal_cycles_per_frame"]) == (64, 0, IDEAL)
    assert cycles <= 1.02 * IDEAL


class Twice(ReferenceDesign):
    """The network, and the same one under another name."""

    def models(self) -> list[Model]:
        (model,) = super().models()
        return [model, Model(replace(model.network, name="again"), model.arrays)]


def test_several_npus_and_several_networks(tmp_path: Path) -> None:
    """Figures of each NPU; those of the design are of the busiest one. The second network is the first one again."""
    npu = Npu.of(kfp=16, kgp=8, pfp=8, ol=4, planes=6)
    design = Twice(network="digits-cnn", npus=cascade([npu, npu]))
    figures = measure_design("two", design, 4, tmp_path)[0]
    assert set(figures) == KEYS | {"per_npu", "also"}
    assert (figures["npus"], figures["lanes"], figures["xnor_lanes"], figures["mismatches"]) == (2, 256, 256, 0)
    cycles, npus = figures["cycles_per_frame"], figures["per_npu"]
    assert [sum(npu.values()) for npu in npus] == [cycles, cycles]
    busiest = max(npus, key=lambda npu: npu["beats"])
    assert {f"{key}_per_frame": value for key, value in busiest.items()}.items() <= figures.items()
    assert figures["ideal_cycles_per_frame"] == busiest["beats"] <= cycles
    assert figures["utilisation"] == sum(npu["beats"] for npu in npus) / (2 * cycles)
    (also,) = figures["also"]
    assert (also["network"], also["frames"], also["mismatches"]) == ("again", 4, 0)
    assert also["cycles_per_frame"] > cycles  # the first frame's latency is in it


def test_an_odd_number_of_frames_is_refused(tmp_path: Path) -> None:
    with value_error("bench: frames must be an even number >= 2, got 3"):
        figures_of("digits-cnn", tmp_path, frames=3)


def test_command(tmp_path: Path) -> None:
    result = call("bench", "digits-cnn", "--frames", "4", "--out", str(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    (figures,) = json.loads(result.stdout)
    assert set(figures) == KEYS
    assert (tmp_path / "digits-cnn" / "build.json").is_file()
    shown = call("bench", "digits-cnn", "--frames", "4", "--out", str(tmp_path))
    assert f"{figures['cycles_per_frame']:,}" in shown.stdout


def test_command_with_another_name() -> None:
    result = call("bench", "digits-cnn", "nonet", "--json")
    assert result.exit_code == 1
    assert str(result.exception) == f"bitloom: design: name must be one of {', '.join(REFERENCE_DESIGNS)}, got 'nonet'"


def test_mismatches_fail_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    forward = packed.forward

    def wrong_first(model: Model, images: np.ndarray) -> np.ndarray:
        out = forward(model, images)
        out[0, 0, 0, 0] += 1
        return out

    monkeypatch.setattr(packed, "forward", wrong_first)
    result = call("bench", "digits-cnn", "--frames", "4", "--out", str(tmp_path), "--json")
    assert '"mismatches": 1' in result.stdout
    assert str(result.exception) == "bitloom: bench: every frame must equal golden, got others in digits-cnn (1)"


def test_map_orders_of_the_reference_network() -> None:
    """Tuples of B7: without re-reading 335 in pull order; raster needs fewer. Here windows are passed several times."""
    orders = map_orders(networks.load("cifar-quick-int8"), REFERENCE_DESIGNS["cifar-quick-int8"].npus[0])
    first = orders["layers"][0]
    assert (first["pull"]["tuples_one_pass"], first["raster"]["tuples_one_pass"]) == (335, 132)
    assert (first["pull"]["tuples"], first["raster"]["tuples"]) == (336, 133)
    for order, totals in orders["totals"].items():
        assert totals["memory_bits"] == totals["tuple_memory_bits"] + totals["table_bits"]
        design = REFERENCE_DESIGNS["cifar-quick-int8"]
        npu = replace(design, choices=CompileChoices(map_order=order)).design("d", design.models()).npus[0]
        assert totals["tuple_memory_bits"] == 8 * (
            8 * npu.sequencer.tuple_words + present(npu.pool_unit).pfp * present(npu.pool_unit).words
        )  # 8 bits a feature
        built = [memory_of(npu, name) for name in ("flags", "olds", "jumps", "pool_flags", "pool_olds")]
        assert totals["table_bits"] == sum(memory.depth * memory.width for memory in built)
    assert (
        orders["auto"] == min(("pull", "raster"), key=lambda order: orders["totals"][order]["memory_bits"]) == "raster"
    )
    assert map_orders(networks.load("digits-cnn"), REFERENCE_DESIGNS["digits-cnn"].npus[0])["auto"] == "pull"


def test_build_of_a_model_file(tmp_path: Path) -> None:
    """A network of 8 bits that has no reference design gets the integer engine."""
    model = dict(integer_cases())["int_small_cnn"]
    file.save(model, tmp_path / "mine.npz")
    result = call("build", str(tmp_path / "mine.npz"), "--kfp", "16", "--out", str(tmp_path / "mine"), "--json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert (facts["kfp"], facts["kgp"], facts["lanes"]) == (16, 8, 128)

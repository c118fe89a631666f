"""Orders of work: "input" is exact, needs less tuple memory, and is refused where accumulators are missing."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.sizing import fit
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build.build import build
from bitloom.overlay.build.designs import DIGITS
from bitloom.overlay.build.run import random_images, run
from bitloom.overlay.study.work import work
from tests.cases import cases, integer_cases
from tests.errors import value_error

BINARY = Npu(kfp=5, kgp=3, pfp=2, ol=2, acc_bits=24, accumulators=64)
INTEGER = Npu(
    kind="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32, kfp=3, kgp=4, pfp=1, accumulators=32
)
CHOSEN = ("conv_70_channels", "max_pool_of_bits", "levels", "ternary", "signed_8_input", "small_cnn")
CHOSEN_INTEGER = ("int_conv_padding", "int_avg_pool", "int_small_cnn")


def named(table: list[tuple[str, Model]], names: tuple[str, ...]) -> list[Model]:
    found = dict(table)
    return [Model(replace(found[n].network, name=n), found[n].arrays) for n in names]


@pytest.mark.parametrize("kind", ["binary", "integer"])
def test_order_input_is_exact(kind: str, tmp_path: Path) -> None:
    models = named(cases(), CHOSEN) if kind == "binary" else named(integer_cases(), CHOSEN_INTEGER)
    folding = BINARY if kind == "binary" else INTEGER
    made = build(tmp_path / "build", fit(kind, models, folding, work="input"), models, work="input")
    for model in models:
        done = run(made, model, random_images(model.network, 4, 1), stall=0.3, seed=2)
        assert done.bit_exact_frames == 4
        assert done.counters["npu0_beats"] == 4 * done.program.ideal_cycles


def test_what_layers_gain_is_measured(tmp_path: Path) -> None:
    found = work(networks.load("digits-cnn"), DIGITS, tmp_path, frames=2)
    layers = {layer["name"]: layer for layer in found["layers"]}
    assert {name: layer["groups"] for name, layer in layers.items()} == {"conv_2": 2, "conv_3": 4}
    assert all(layer["tuple_words_input"] < layer["tuple_words_output"] for layer in layers.values())
    assert all(abs(layer["cycles_gained"]) < 20 for layer in layers.values())


def test_without_accumulators_it_is_refused() -> None:
    model = networks.load("digits-cnn")
    with value_error("conv_2: order of work input needs accumulators >= 2, the NPU has 1"):
        fit("digits", [model], DIGITS, work={"conv_2": "input"})
    with value_error("conv_1: order of work must be one of output, input, auto, got 'both'"):
        fit("digits", [model], DIGITS, work="both")


def test_few_accumulators_are_enough_for_order_output(tmp_path: Path) -> None:
    """Two accumulators a PE instead of registers: the same result and no more cycles than a few a layer."""
    model = networks.load("digits-cnn")
    made = build(tmp_path / "build", fit("digits", [model], replace(DIGITS, accumulators=2)), [model])
    done = run(made, model, random_images(model.network, 8, 1))
    assert done.bit_exact_frames == 8
    assert done.cycles_per_frame < 1.02 * np.float64(done.program.ideal_cycles)

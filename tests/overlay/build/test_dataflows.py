"""Dataflows: input_stationary is exact, needs less tuple memory, and is refused where accumulators are missing."""

from dataclasses import replace
from pathlib import Path

import pytest

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build.build import build
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.build.run import Conditions, run
from tests.cases import cases, integer_cases
from tests.errors import value_error
from tests.rows import npu_rows

BINARY = Npu.of(kfp=5, kgp=3, pfp=2, ol=2, acc_bits=24, accumulators=64)
INTEGER = Npu.of(
    engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32, kfp=3, kgp=4, pfp=1, accumulators=32
)
CHOSEN = ("conv_70_channels", "max_pool_of_bits", "levels", "ternary", "signed_8_input", "small_cnn")
CHOSEN_INTEGER = ("int_conv_padding", "int_avg_pool", "int_small_cnn")


def named(table: list[tuple[str, Model]], names: tuple[str, ...]) -> list[Model]:
    models = dict(table)
    return [Model(replace(models[n].network, name=n), models[n].arrays) for n in names]


@pytest.mark.sample(1)
@pytest.mark.parametrize("dataflow", ["input_stationary", "input_stationary:3"])
@pytest.mark.parametrize("kind", ["binary", "integer"])
def test_input_stationary_is_exact(kind: str, dataflow: str, tmp_path: Path) -> None:
    models = named(cases(), CHOSEN) if kind == "binary" else named(integer_cases(), CHOSEN_INTEGER)
    folding = BINARY.changed(kgp=4) if kind == "binary" else INTEGER  # 2 or 3 divides the groups of each layer
    choices = CompileChoices(dataflow=dataflow)
    design = size_memories(kind, models, folding, choices)
    finished = build(tmp_path / "build", design, models, choices=choices)
    for model in models:
        done = run(finished, model, random_images(model.network, 4, 1), conditions=Conditions(stall=0.3, seed=2))
        assert done.bit_exact_frames == 4
        assert done.counters["npu0_beats"] == 4 * done.program.ideal_cycles


def test_tuple_memories_become_smaller() -> None:
    """One pass takes all kernels: a window's tuples are let go after it, not after the last kernel group."""
    model = networks.load("digits-cnn")
    roomy = DIGITS.changed(accumulators=16)
    plans = {name: plan(model, [roomy], CompileChoices(dataflow=name)) for name in ("output_stationary", "auto")}
    held = {
        name: [rows.row("layers")["hold_tuples"] for rows in npu_rows(network_plan)]
        for name, network_plan in plans.items()
    }
    groups = [roomy.array.groups(layer.out_channels) for layer in plans["auto"].lowered.layers]
    assert [after < before for after, before in zip(held["auto"], held["output_stationary"])] == [
        count > 1 for count in groups
    ]


def test_a_pass_takes_as_many_groups_as_divide_all_of_them() -> None:
    model = networks.load("digits-cnn")
    npu = BINARY.changed(accumulators=4)
    for count, passes in {2: (3, 2), 3: (2, 3), 5: (2, 3)}.items():
        network_plan = plan(model, [npu], CompileChoices(dataflow={"conv_1": f"input_stationary:{count}"}))
        assert (network_plan.layers[0].passes, network_plan.layers[0].inner) == passes
        assert network_plan.dataflow[0] == f"input_stationary:{passes[1]}"
    with value_error("conv_1: dataflow input_stationary:12 needs accumulators >= 6, the NPU has 4"):
        plan(model, [npu], CompileChoices(dataflow="input_stationary:12"))


def test_a_pass_that_would_take_one_group_is_refused() -> None:
    """A layer of one group has nothing to divide."""
    model = networks.load("digits-cnn")
    npu = BINARY.changed(accumulators=4)
    rule = "dataflow must be one of output_stationary, input_stationary, input_stationary:N (N >= 2), auto"
    with value_error(f"{rule}, got 'input_stationary:1'"):
        plan(model, [npu], CompileChoices(dataflow="input_stationary:1"))
    choices = CompileChoices(dataflow={"dense_4": "input_stationary:4"})
    with value_error(
        "dense_4: dataflow input_stationary:4 needs a divisor of its 5 kernel groups from 2 to 4, got none"
    ):
        plan(model, [npu.changed(kgp=2)], choices)
    assert plan(model, [npu.changed(kgp=10)], choices).dataflow[3] == "output_stationary"


def test_without_accumulators_it_is_refused() -> None:
    model = networks.load("digits-cnn")
    with value_error("conv_2: dataflow input_stationary needs accumulators >= 2, the NPU has 1"):
        size_memories("digits", [model], DIGITS, CompileChoices(dataflow={"conv_2": "input_stationary"}))
    with value_error(
        "dataflow must be one of output_stationary, input_stationary, input_stationary:N (N >= 2), auto, got 'both'"
    ):
        size_memories("digits", [model], DIGITS, CompileChoices(dataflow="both"))

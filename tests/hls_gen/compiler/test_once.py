"""A network is lowered and planned once for a design; planned again where only a plan says what NPUs lack."""

import pytest
from click.testing import CliRunner

from bitloom.golden import zoo
from bitloom.golden.zoo import mlperf_tiny
from bitloom.hls_gen.compiler import emit, lowering, plan, sizing, workloads
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_network
from bitloom.hls_gen.compiler.host_tail import split
from bitloom.hls_gen.compiler.plan import plan_lowered
from bitloom.hls_gen.compiler.schedule import schedule
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories, sized_design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.build.small_npu import small_npu
from bitloom.overlay.cli.group import bitloom
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_models import random_model
from bitloom.overlay.fuzz.random_networks import IntegerChoices, grouped_network
from bitloom.overlay.study.mlperf_tiny import NPU


@pytest.fixture
def counted(monkeypatch):
    """How often each pass runs, by its name."""
    runs = {"split": 0, "lower": 0, "schedule": 0, "plan_lowered": 0}

    def count(module, function):
        name = function.__name__

        def run(*arguments):
            runs[name] += 1
            return function(*arguments)

        monkeypatch.setattr(module, name, run)

    count(lowering, lowering.lower)
    count(lowering, schedule)
    count(sizing, plan_lowered)
    count(plan, plan_lowered)
    count(workloads, split)
    count(emit, split)
    return runs


def test_sizing_lowers_and_plans_each_network_once(counted):
    """Two networks of MLPerf Tiny on one NPU, in two map orders. Both begin with windows that the window former may
    make, ResNet-8 has kernels whose lines a line former makes, and DS-CNN has depthwise convolutions behind another
    one, so that it has schedules of its own for that."""
    models = [mlperf_tiny.seeded(mlperf_tiny.NETWORKS[name]()) for name in ("ic", "kws")]
    size_memories("tiny", models, NPU)
    assert counted == {"split": 2, "lower": 2, "schedule": 12, "plan_lowered": 2}


def test_parts_of_tuples_are_found_in_a_plan(counted):
    """Then networks are planned again, by the same schedules, one for each of two map orders."""
    model = random_model(grouped_network(Pick("replay", 0), IntegerChoices()), 0, 32)
    size_memories("grouped", [model], small_npu(model).changed(kfp=2, kgp=3, pfp=3, ol=1))
    assert counted == {"split": 1, "lower": 1, "schedule": 2, "plan_lowered": 2}


def test_a_build_compiles_the_networks_that_sizing_lowered(counted, tmp_path):
    """Then each is planned once more, with the sizes of memories, by the schedules that there are."""
    result = CliRunner().invoke(bitloom, ["build", "digits-cnn", "--out", str(tmp_path / "digits")])
    assert result.exit_code == 0, result.output
    assert counted == {"split": 2, "lower": 1, "schedule": 2, "plan_lowered": 2}


def test_programs_of_partitions_are_those_that_sizing_lowered(counted):
    model = zoo.load("digits-cnn")
    choices = CompileChoices(partitions={"conv_2": 1, "dense_4": 2})
    design, (lowered,) = sized_design("digits", [model], (DIGITS,), choices, 32, Sizing())
    manifest = Manifest.of(design, "0" * 64)
    program = compile_network(model, manifest, choices, lowered=lowered)
    assert counted["lower"] == len(program.programs) == 4
    assert program.to_bytes() == compile_network(model, manifest, choices).to_bytes()

"""A perceptron that learned with golden.discrete runs on hardware."""

from pathlib import Path

import pytest

from bitloom.golden.discrete.data import DATA
from bitloom.golden.discrete.export import to_model
from bitloom.golden.discrete.learn import LearnPlan, learn
from bitloom.golden.discrete.setting import SETTINGS
from bitloom.golden.network import Model
from bitloom.golden.zoo import digits
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.run import run


def learned(plan: LearnPlan) -> tuple[Model, float]:
    """A network of integers, and the accuracy of the perceptron that it was made of."""
    data = DATA["digits"]()
    done = learn(SETTINGS["hardware"], plan, data)
    preset = done.mlp.preset(data.real(data.train))
    return to_model("learned", done.mlp, preset, digits.IMAGE, data.half), done.curve[-1].test_accuracy


def test_a_small_one_runs_bit_exact(tmp_path: Path) -> None:
    model, accuracy = learned(LearnPlan(hidden=(48,), epochs=6))
    folding = Npu.of(kfp=16, kgp=8, pfp=8, ol=2, planes=6)
    build = builds.build(tmp_path / "build", size_memories("learned", [model], folding), [model])
    data = digits.load_digits()
    done = run(build, model, data.test_images)
    assert done.bit_exact_frames == done.frames == 360
    report = done.report(data.test_labels)
    assert report["accuracy_hardware"] == report["accuracy_golden"] == pytest.approx(accuracy)
    assert accuracy > 0.8

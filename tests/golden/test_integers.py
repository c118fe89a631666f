"""Numbers of numpy, wherever a description takes a number: what is made equals what Python's numbers make, and holds
Python's numbers."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.dense import DenseSpec
from bitloom.golden.discrete.learn import LearnPlan
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.training import DenseLayer, SourceRule, TensorKind, Training, VelocityRule
from bitloom.golden.discrete.table import CodeTable
from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.encoding import Encoding, signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool
from bitloom.golden.layers.requantise import Requantise, scale_to_multiplier
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.training.train import Recipe
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu

LAYER = {"inputs": 2, "outputs": 3}
DESCRIPTIONS = {
    "map": lambda n, b: Map(height=n(2), width=n(3), channels=n(4), encoding=Encoding("signed", n(5))),
    "window": lambda n, b: Window(kernel=(n(2), n(3)), stride=[n(1), n(2)], padding=(n(0), n(1), n(0), n(1))),
    "conv": lambda n, b: Conv(name="c", out_channels=n(2), kernel=(n(2), n(3)), padding=(n(1),) * 4),
    "dense": lambda n, b: Dense(name="d", out_channels=n(2)),
    "max pool": lambda n, b: MaxPool(name="m", kernel=(n(2), n(2)), stride=(n(2), n(1))),
    "average pool": lambda n, b: AvgPool(name="a", kernel=(n(2), n(2)), stride=(n(2), n(1))),
    "threshold": lambda n, b: Threshold(name="t", levels=n(3)),
    "requantise": lambda n, b: Requantise(name="r", encoding=signed(8), relu=b(True), clip=(n(0), n(7)), fraction=n(2)),
    "scale": lambda n, b: scale_to_multiplier(0.3, n(8)),
    "npu": lambda n, b: Npu.of(kfp=n(7), kgp=n(3), ol=n(2), planes=n(6), pool=b(False), raster=b(True), taps=n(64)),
    "design": lambda n, b: Design(name="d", stream_bits=n(64), spill_words=n(0)),
    "choices": lambda n, b: CompileChoices(mapping=[n(0), n(1)]),
    "training": lambda n, b: Recipe(epochs=n(2), batch=n(16), seed=n(200)),
    "word": lambda n, b: WordFormat(n(16), n(8)),
    "machine": lambda n, b: MachineParameters(slaves=n(2), neuron_words=n(64)),
    "machine's layer": lambda n, b: DenseLayer(**{key: n(value) for key, value in LAYER.items()}, master=b(True)),
    "machine's training": lambda n, b: Training(layers=(DenseLayer(**LAYER),), seed=n(7)),
    "kind": lambda n, b: TensorKind(n(1), b(True)),
    "discrete layer": lambda n, b: DenseSpec(outputs=n(4), norm=b(False)),
    "rule": lambda n, b: SourceRule(rate_places=n(3), mu_places=n(1)),
    "rule of velocities": lambda n, b: VelocityRule(rate_places=n(3), decay_places=n(1), batch=n(4)),
    "learning": lambda n, b: LearnPlan(hidden=(n(4), n(5)), epochs=n(3), seed=n(200), held_out=b(True)),
    "converter": lambda n, b: Converter(table=CodeTable((-1.0, 1.0)), zone=n(2)),
    "draws": lambda n, b: (Lfsr(n(200)).draw(9).tolist(), Lfsr.seeded(n(255)).draw(9).tolist()),
}

UNCHECKED = ("window", "choices", "machine's layer", "machine's training", "kind", "converter", "draws")
"""Of DESCRIPTIONS those that others check: a window its layer, a mapping the compiler."""


@pytest.mark.parametrize("integer", [np.uint8, np.int64])
@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_integers_of_numpy_are_integers(name: str, integer: type) -> None:
    """uint8 would wrap around at once, int64 can't be written as JSON."""
    description, wanted = DESCRIPTIONS[name](integer, np.bool_), DESCRIPTIONS[name](int, bool)
    assert description == wanted
    if hasattr(description, "__dataclass_fields__"):
        assert json.dumps(asdict(description)) == json.dumps(asdict(wanted))


@pytest.mark.parametrize("name", [name for name in DESCRIPTIONS if name not in UNCHECKED])
def test_a_truth_value_is_no_integer(name: str) -> None:
    """True would be 1, and stay True in the file."""
    with pytest.raises(ValueError, match=r"must be .*, got \(?True") as refusal:
        DESCRIPTIONS[name](lambda value: True, bool)
    assert "\n" not in str(refusal.value)


def test_a_mapping_may_be_an_array() -> None:
    assert CompileChoices(mapping=np.array([0, 1])) == CompileChoices(mapping=[0, 1])

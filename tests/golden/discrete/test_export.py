from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.data import LearnData
from bitloom.golden.discrete.dense import DenseSpec, DiscreteTensors
from bitloom.golden.discrete.export import to_model
from bitloom.golden.discrete.mlp import MlpTrainer
from bitloom.golden.discrete.rule import UpdateRule
from bitloom.golden.discrete.setting import SETTINGS
from bitloom.golden.discrete.table import ONE_BIT, TWO_BITS
from bitloom.golden.encoding import unsigned
from bitloom.golden.layer import Map
from tests.errors import value_error

SOURCE = Map(height=3, width=2, channels=2, encoding=unsigned(5))
SPECS = SETTINGS["hardware"].specs(12, (9, 7), 4)


def data() -> LearnData:
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 17, (200, 12)), rng.integers(0, 4, 200)
    return LearnData("random", images, labels, images, labels, 8.0)


def trained(specs: list[DenseSpec], steps: int = 30) -> MlpTrainer:
    mlp = MlpTrainer(12, specs, seed=3)
    of = data()
    for step in range(steps):
        part = slice(step % 4 * 50, step % 4 * 50 + 50)
        mlp.learn(of.real(of.train[part]), of.train_labels[part], "cross_entropy", UpdateRule("velocity", 0.5, 0.9))
    return mlp


def test_the_network_computes_what_the_perceptron_does():
    """The last layer's sums, up to their scale, of all images; gammas of both signs."""
    mlp = trained(SPECS)
    of = data()
    mlp.layers[0].params["gamma"][:3] *= -1
    preset = mlp.preset(of.real(of.train))
    model = to_model("learned", mlp, preset, SOURCE, of.half)
    sums = model.forward(of.test.reshape(-1, 3, 2, 2)).reshape(200, 4)
    magnitude = 2.0 ** -SPECS[-1].places
    np.testing.assert_array_equal(sums * magnitude, mlp.outputs(of.real(of.test), preset))
    assert len(np.unique(sums)) > 3
    names = ["dense_1", "threshold_1", "dense_2", "threshold_2", "dense_3"]
    assert [layer.name for layer in model.network.layers] == names


def without(**changes: object) -> DiscreteTensors:
    return replace(SETTINGS["hardware"].rest, **changes)


SIGNS = "layer 2: inputs must be converted to +1 and -1 for hardware"
LAST = "layer 3: the last layer must have neither normalisation, bias nor activation for hardware"
HIDDEN = "hidden layers must have normalisation and activation clip for hardware"
TWO_MAGNITUDES = "layer 2: weights must have one magnitude for hardware, got 1 and others"


@pytest.mark.parametrize(
    ("layer", "change", "message"),
    [
        (0, {"tensors": without()}, "layer 1: inputs of the first layer must be continuous for hardware"),
        (1, {"tensors": without(inputs=None)}, SIGNS),
        (1, {"tensors": without(inputs=Converter(table=TWO_BITS))}, SIGNS),
        (1, {"norm": False}, f"layer 2: {HIDDEN}"),
        (0, {"activation": "relu"}, f"layer 1: {HIDDEN}"),
        (2, {"norm": True}, LAST),
        (2, {"bias": True}, LAST),
        (1, {"tensors": without(weights=Converter(table=TWO_BITS))}, TWO_MAGNITUDES),
    ],
)
def test_what_hardware_cannot_have(layer, change, message):
    specs = list(SPECS)
    specs[layer] = replace(specs[layer], **change)
    mlp = MlpTrainer(12, specs, seed=0)
    of = data()
    with value_error(message):
        to_model("learned", mlp, mlp.preset(of.real(of.train)), SOURCE, of.half)


def test_codes_without_a_master_copy_do_as_well():
    codes = Converter(table=ONE_BIT, rounding="stochastic")
    specs = [replace(spec, tensors=replace(spec.tensors, weights=codes, master=False)) for spec in SPECS]
    mlp = trained(specs)
    of = data()
    preset = mlp.preset(of.real(of.train))
    sums = to_model("learned", mlp, preset, SOURCE, of.half).forward(of.test.reshape(-1, 3, 2, 2)).reshape(200, 4)
    np.testing.assert_array_equal(sums * 2.0 ** -specs[-1].places, mlp.outputs(of.real(of.test), preset))

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.cost import training_cost
from bitloom.golden.discrete.dense import DenseSpec, Tensors
from bitloom.golden.discrete.loss import loss
from bitloom.golden.discrete.mlp import MlpTrainer
from bitloom.golden.discrete.setting import SETTINGS

from .plain_steps import PlainLayer, PlainTrainer, real

INPUTS, HIDDEN, CLASSES, BATCH = 5, (6, 4), 3, 4


def to_nearest(tensors: Tensors) -> Tensors:
    """The same with conversions to the nearest."""
    converters = {name: value for name, value in vars(tensors).items() if isinstance(value, Converter)}
    return replace(tensors, **{name: replace(value, rounding="nearest") for name, value in converters.items()})


def nearest_specs(name: str) -> list[DenseSpec]:
    specs = SETTINGS[name].specs(INPUTS, HIDDEN, CLASSES)
    return [replace(spec, tensors=to_nearest(spec.tensors)) for spec in specs]


@pytest.mark.parametrize("name", SETTINGS)
def test_products_and_memory_are_those_of_a_trainer_that_counts(name):
    """Plain Python counts each product and each bit that it keeps; its parameters are those of the trainer."""
    rule = SETTINGS[name].rule
    specs = nearest_specs(name)
    mlp = MlpTrainer(INPUTS, specs, seed=1)
    layers = []
    for spec, layer in zip(specs, mlp.layers):
        others = {key: [real(v) for v in value] for key, value in layer.params.items() if key != "weight"}
        layers.append(PlainLayer(spec, [[real(v) for v in row] for row in layer.params["weight"]], others))
    plain = PlainTrainer(layers, rule)
    rng = np.random.default_rng(0)
    steps = 2
    for _ in range(steps):
        x = rng.uniform(-1, 1, (BATCH, INPUTS))
        labels = rng.integers(0, CLASSES, BATCH)
        plain.learn(x.tolist(), lambda y, labels=labels: loss("cross_entropy", np.array(y), labels)[1].tolist())
        mlp.learn(x, labels, "cross_entropy", rule)
    for layer, ours in zip(plain.layers, mlp.layers):
        found = {"weight": layer.weight, **layer.others}
        for key, numbers in found.items():
            values = [[n.value for n in row] for row in numbers] if key == "weight" else [n.value for n in numbers]
            np.testing.assert_allclose(values, ours.params[key], rtol=1e-9, atol=1e-11, err_msg=key)

    cost = training_cost(INPUTS, specs, rule, BATCH)
    counts = [plain.products[codes] / (BATCH * steps) for codes in range(3)]
    np.testing.assert_allclose([cost.multiplications, cost.shifts, cost.look_ups], counts, rtol=1e-12)
    assert cost.batch_bits * steps == plain.batch_bits
    np.testing.assert_allclose(cost.parameter_bits, plain.parameter_bits() / plain.parameters(), rtol=1e-12)


def test_discrete_training_multiplies_for_biases_alone():
    """And what it keeps of a weight is a code of it and one of its velocity."""
    setting = SETTINGS["discrete-codes-1"]
    specs = setting.specs(64, (256, 256), 10)
    cost = training_cost(64, specs, setting.rule, setting.batch)
    assert cost.multiplications == 2 * (256 + 256 + 10) / 64
    weights = 64 * 256 + 256 * 256 + 256 * 10
    assert cost.shifts == 2 * weights / 64 + 512
    assert cost.look_ups == 3 * weights - 64 * 256
    assert cost.parameter_bits == (4 * weights + 64 * 522) / (weights + 522)
    assert cost.batch_bits == 64 * (3 * (64 + 256 + 256) + 512)

"""An epoch of digits on the generated hardware: weights as in the interpreter, and what it learned."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.fixed import FixedTrainer, first_state
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.training import (
    DenseLayer,
    MovingRule,
    SourceRule,
    TensorKind,
    Training,
    VelocityRule,
)
from bitloom.golden.discrete.machine.words import first_words, read_states, sample_words
from bitloom.golden.discrete.table import THREE_BITS, TWO_BITS
from bitloom.golden.zoo.digits import load_digits
from bitloom.overlay.virtual.training_machine import SimulatedMachine

RULES = {
    "sample": (SourceRule(rate_places=6), 0.85),
    "batch": (VelocityRule(rate_places=7, bias_places=7, batch=16), 0.75),
}
"""Rule, and the share of test images that one epoch gets right at least."""


def flat(images: np.ndarray) -> np.ndarray:
    """Images as rows of pixels."""
    return images.reshape(len(images), -1)


def training(rule: MovingRule) -> Training:
    """Two layers; those of a training by batches are centred."""
    centred = isinstance(rule, VelocityRule)
    layers = (
        DenseLayer(inputs=64, outputs=32, centred=centred),
        DenseLayer(inputs=32, outputs=10, activation="clip"),
    )
    return Training(layers=layers, rule=rule)


@pytest.mark.slow
@pytest.mark.parametrize("slaves", [1, 8])
@pytest.mark.parametrize("name", RULES)
def test_an_epoch_of_digits(name, slaves):
    """1,424 images, two layers; cycles a sample stay below the ideal and a fixed number for all that is not shared."""
    rule, right = RULES[name]
    t = training(rule)
    machine = MachineParameters(slaves=slaves, weight_words=4096)
    form = machine.form
    rng = np.random.default_rng(0)
    digits = load_digits()
    x, y = flat(digits.train_images[:1424]) / 16, digits.train_labels[:1424]
    weights = [rng.normal(0, (2 / layer.inputs) ** 0.5, (layer.outputs, layer.inputs)) for layer in t.layers]
    start = [first_state(form, t, layer, weight).whole(form, t, layer) for layer, weight in zip(t.layers, weights)]
    data = [first_words(t, form, start), sample_words(t, form, form.words(x), form.words(2 * np.eye(10)[y] - 1))]
    program = ProgramWriter(machine, t).program(len(x))
    words = np.concatenate(data)
    interpreter = Interpreter(machine, program)
    (expected,) = interpreter.run(words)
    with SimulatedMachine(machine, program) as hardware:
        (got,) = hardware.run(words)
        cycles = hardware.cycles / len(x)
    np.testing.assert_array_equal(got, expected)
    scores = FixedTrainer(form, t, read_states(t, form, got)).scores(form.words(flat(digits.test_images) / 16))
    assert (scores.argmax(axis=1) == digits.test_labels).mean() > right
    ideal = t.multiplications / slaves
    assert ideal < cycles < ideal + 600
    least = interpreter.cycles / len(x)
    assert ideal < least < cycles
    print(f"{name}, {slaves} slaves: {cycles:.0f} cycles a sample, interpreter {least:.0f}, ideal {ideal:.0f}")


CODES = {
    "weights": TensorKind(1),
    "master": True,
    "weight_gradients": TensorKind(2, True),
    "errors": TensorKind(2, True),
}
UNITS = {
    "shifters": {"products": "shifter"},
    "tables": {"products": "table"},
    "shifters, converters with multipliers": {"products": "shifter", "converter": "multiplying"},
    "words": {},
    "words, converters with multipliers": {"converter": "multiplying"},
}
"""Choices of units; all factors are codes but for those of words."""


@pytest.mark.slow
@pytest.mark.parametrize("name", UNITS)
def test_cycles_by_units(name):
    """The first 160 images with 8 slaves. Tables take no more than a hundredth longer, once they are filled."""
    t = training(VelocityRule(rate_places=7, bias_places=7, batch=16))
    if not name.startswith("words"):
        first, last = (replace(layer, **CODES) for layer in t.layers)
        layers = replace(first, results=TensorKind(2)), last
        t = replace(t, layers=layers, tables={1: (TWO_BITS, 1), 2: (THREE_BITS, 1)}, inputs=TensorKind(2), seed=5)
    machine = MachineParameters(slaves=8, weight_words=4096, **UNITS[name])
    form = machine.form
    rng = np.random.default_rng(0)
    digits = load_digits()
    x, y = form.words(flat(digits.train_images[:160]) / 8 - 1), digits.train_labels[:160]
    if t.inputs.table:
        x = Converter(table=THREE_BITS).word_codes(form, x)
    weights = [rng.normal(0, (2 / layer.inputs) ** 0.5, (layer.outputs, layer.inputs)) for layer in t.layers]
    start = [first_state(form, t, layer, weight).whole(form, t, layer) for layer, weight in zip(t.layers, weights)]
    words = np.concatenate([first_words(t, form, start), sample_words(t, form, x, form.words(2 * np.eye(10)[y] - 1))])
    program = ProgramWriter(machine, t).program(len(x))
    (expected,) = Interpreter(machine, program).run(words)
    with SimulatedMachine(machine, program) as hardware:
        (got,) = hardware.run(words)
        cycles = hardware.cycles / len(x)
    np.testing.assert_array_equal(got, expected)
    most = {"shifters": 1210, "tables": 1222, "words": 1110}.get(name, 1230)
    assert cycles < most
    print(f"{name}: {cycles:.0f} cycles a sample")

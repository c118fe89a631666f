"""An epoch of digits on the generated hardware: weights as in the interpreter, and what it learned."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.training import DenseLayer, SourceRule, Training
from bitloom.golden.discrete.machine.words import LayerState, first_words, read_states, sample_words
from bitloom.overlay.virtual.training_machine import SimulatedMachine

TRAINING = Training(
    layers=(DenseLayer(inputs=64, outputs=32), DenseLayer(inputs=32, outputs=10, activation="none")),
    rule=SourceRule(rate_places=4),
)


@pytest.mark.slow
@pytest.mark.parametrize("slaves", [1, 8])
def test_an_epoch_of_digits(slaves):
    """1,437 images, two layers; cycles a sample stay below the ideal and a fixed number for all that is not shared."""
    machine = MachineParameters(slaves=slaves, weight_words=4096)
    form, rng = machine.form, np.random.default_rng(0)
    images, labels = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split(images / 16, labels, test_size=360, random_state=0, stratify=labels)
    start = [
        LayerState(
            form.words(rng.normal(0, (2 / layer.inputs) ** 0.5, (layer.outputs, layer.inputs))),
            None,
            np.zeros(layer.outputs, np.int64),
        )
        for layer in TRAINING.layers
    ]
    data = [
        first_words(TRAINING, form, start),
        sample_words(TRAINING, form, form.words(x), form.words(np.eye(10)[y])),
    ]
    program, words = ProgramWriter(machine, TRAINING).program(len(x)), np.concatenate(data)
    interpreter = Interpreter(machine, program)
    (expected,) = interpreter.run(words)
    with SimulatedMachine(machine, program) as hardware:
        (got,) = hardware.run(words)
        cycles = hardware.cycles / len(x)
    np.testing.assert_array_equal(got, expected)
    first, last = read_states(TRAINING, form, got)
    hidden = np.maximum(x_test @ form.values(first.weights).T + form.values(first.biases), 0)
    outputs = hidden @ form.values(last.weights).T + form.values(last.biases)
    assert (outputs.argmax(axis=1) == y_test).mean() > 0.85
    ideal = TRAINING.multiplications / slaves
    assert ideal < cycles < ideal + 850
    least = interpreter.cycles / len(x)
    assert ideal < least < cycles
    print(f"{slaves} slaves: {cycles:.0f} cycles a sample, interpreter {least:.0f}, ideal {ideal:.0f}")

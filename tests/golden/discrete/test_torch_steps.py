import numpy as np
import pytest

from bitloom.golden.discrete.mlp import MlpTrainer

from .torch_steps import CASES, FILE, record, start


def trainer(name: str, precision: str = "float64") -> tuple[MlpTrainer, dict[str, np.ndarray]]:
    """A case's perceptron before training, with its images and labels."""
    case = CASES[name]
    arrays = start(name)
    mlp = MlpTrainer(case.sizes[0], case.specs, seed=0, precision=precision)
    for n, layer in enumerate(mlp.layers):
        layer.params = {key: arrays[f"{n}.{key}"].astype(precision) for key in layer.params}
    return mlp, arrays


@pytest.mark.parametrize("name", CASES)
def test_training_steps_equal_those_of_pytorch(name):
    """Losses, outputs and all parameters after each of four updates; recorded by torch_steps.py."""
    case = CASES[name]
    mlp, arrays = trainer(name)
    with np.load(FILE) as data:
        recorded = {key.partition("/")[2]: data[key] for key in data.files if key.startswith(f"{name}/")}
    for step, (x, labels) in enumerate(zip(arrays["x"], arrays["labels"])):
        losses, outputs = mlp.learn(x, labels, case.criterion, case.rule)
        ours = {f"{n}.{key}": value for n, layer in enumerate(mlp.layers) for key, value in layer.params.items()}
        for key, value in {"losses": losses, "outputs": outputs, **ours}.items():
            np.testing.assert_allclose(value, recorded[key][step], rtol=1e-9, atol=1e-11, err_msg=f"{key}, step {step}")
    assert recorded.keys() == {"losses", "outputs", *ours}


@pytest.mark.parametrize("name", CASES)
def test_single_precision_stays_single_and_near(name):
    """All numbers of an update are float32, and near to those of PyTorch's float64."""
    case = CASES[name]
    mlp, arrays = trainer(name, "float32")
    with np.load(FILE) as data:
        recorded = {key.partition("/")[2]: data[key][0] for key in data.files if key.startswith(f"{name}/")}
    x = arrays["x"][0].astype(np.float32)
    labels = arrays["labels"][0]
    tapes = []
    y = x
    for layer in mlp.layers:
        y, tape = layer.forward(y)
        tapes.append(tape)
    for tape in tapes:
        kept = [tape.x, tape.weights, tape.derivative, *(tape.norm[:2] if tape.norm else ())]
        assert {array.dtype for array in kept} == {np.dtype(np.float32)}
    losses, outputs = mlp.learn(x, labels, case.criterion, case.rule)
    ours = {f"{n}.{key}": value for n, layer in enumerate(mlp.layers) for key, value in layer.params.items()}
    for key, value in {"losses": losses, "outputs": outputs, **ours}.items():
        assert value.dtype == np.float32, key
        np.testing.assert_allclose(value, recorded[key], rtol=1e-4, atol=1e-5, err_msg=key)
    assert {array.dtype for layer in mlp.layers for array in layer.memory.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize("name", CASES)
def test_pytorch_still_gives_what_was_recorded(name, torch):
    recorded = record(torch, name)
    with np.load(FILE) as data:
        for key, value in recorded.items():
            np.testing.assert_allclose(value, data[f"{name}/{key}"], rtol=1e-9, atol=1e-11, err_msg=key)

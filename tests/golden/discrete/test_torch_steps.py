import numpy as np
import pytest

from bitloom.golden.discrete.mlp import MlpTrainer

from .torch_steps import CASES, FILE, record, start


def trainer(name: str) -> tuple[MlpTrainer, dict[str, np.ndarray]]:
    """A case's perceptron before training, with its images and labels."""
    case, arrays = CASES[name], start(name)
    mlp = MlpTrainer(case.sizes[0], case.specs, seed=0)
    for n, layer in enumerate(mlp.layers):
        layer.params = {key: arrays[f"{n}.{key}"].copy() for key in layer.params}
    return mlp, arrays


@pytest.mark.parametrize("name", CASES)
def test_training_steps_equal_those_of_pytorch(name):
    """Losses, outputs and all parameters after each of four updates; recorded by torch_steps.py."""
    case, (mlp, arrays) = CASES[name], trainer(name)
    with np.load(FILE) as data:
        recorded = {key.partition("/")[2]: data[key] for key in data.files if key.startswith(f"{name}/")}
    for step, (x, labels) in enumerate(zip(arrays["x"], arrays["labels"])):
        losses, outputs = mlp.learn(x, labels, case.criterion, case.rule)
        ours = {f"{n}.{key}": value for n, layer in enumerate(mlp.layers) for key, value in layer.params.items()}
        for key, value in {"losses": losses, "outputs": outputs, **ours}.items():
            np.testing.assert_allclose(value, recorded[key][step], rtol=1e-9, atol=1e-11, err_msg=f"{key}, step {step}")
    assert recorded.keys() == {"losses", "outputs", *ours}


@pytest.mark.parametrize("name", CASES)
def test_pytorch_still_gives_what_was_recorded(name, torch):
    found = record(torch, name)
    with np.load(FILE) as data:
        for key, value in found.items():
            np.testing.assert_allclose(value, data[f"{name}/{key}"], rtol=1e-9, atol=1e-11, err_msg=key)

"""The table of cases is what it says: tests elsewhere rely on it."""

import numpy as np

from golden.conv import Conv, Weighted
from golden.file import model_digest
from golden.pool import Pool
from golden.threshold import Threshold
from tests.cases import cases, random_images

CASES = dict(cases())


def test_names_are_unique_and_models_are_the_same_on_every_call():
    assert len(CASES) == len(cases())
    assert [model_digest(m) for _, m in cases()] == [model_digest(m) for m in CASES.values()]


def test_the_odd_is_there():
    layers = [(layer, source, model) for model in CASES.values() for layer, source in model.network]
    windows = [layer for layer, _, _ in layers if isinstance(layer, Conv | Pool)]
    inputs = [model.network.input for model in CASES.values()]
    assert all(m.height != m.width or m.positions <= 4 for m in inputs)
    assert any(w.stride[0] > w.stride[1] for w in windows)
    assert any(w.stride[0] < w.stride[1] for w in windows)
    assert any(len({*w.padding}) == 4 for w in windows)
    assert {1, 3, 31, 33, 70} <= {source.channels for _, source, _ in layers}
    assert {1, 2, 3} <= {layer.levels for layer, _, _ in layers if isinstance(layer, Threshold)}
    assert 1 in {layer.fan_in(source) for layer, source, _ in layers if isinstance(layer, Weighted)}


def test_thresholds_lie_at_both_ends_of_the_reach_and_beyond():
    model = CASES["dense_33_31"]
    assert model.arrays["threshold_1"]["threshold"][:5, 0].tolist() == [0, -33, 33, -34, 34]
    for name, model in CASES.items():
        for layer in model.network.layers:
            if isinstance(layer, Threshold) and model.network.maps[-1].channels > 1:
                assert set(model.arrays[layer.name]["direction"].tolist()) == {-1, 1}, name


def test_every_case_tells_inputs_apart():
    """A case whose output never changes would show nothing."""
    for name, model in CASES.items():
        outputs = model.forward(random_images(model, 64, np.random.default_rng(1)))
        assert len(np.unique(outputs.reshape(64, -1), axis=0)) > 1, name

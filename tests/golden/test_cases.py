"""The table of cases is what it says: tests elsewhere rely on it."""

import re

import numpy as np

from bitloom.golden.encoding import signed, unsigned
from bitloom.golden.file import model_digest
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.pool import AvgPool, MaxPool, Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from tests.cases import cases, integer_cases, random_images

CASES = dict(cases())
INTEGER_CASES = dict(integer_cases())


def test_names_are_unique_and_models_are_the_same_on_every_call():
    assert len({**CASES, **INTEGER_CASES}) == len(cases() + integer_cases())
    assert [model_digest(m) for _, m in integer_cases()] == [model_digest(m) for m in INTEGER_CASES.values()]
    assert [model_digest(m) for _, m in cases()] == [model_digest(m) for m in CASES.values()]


def test_the_odd_is_there():
    layers = [(layer, source, model) for model in CASES.values() for layer, source in model.network.chain("a case")]
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
            if isinstance(layer, Threshold) and model.network.output.channels > 1:
                assert set(model.arrays[layer.name]["direction"].tolist()) == {-1, 1}, name


def test_every_case_tells_inputs_apart():
    """A case whose output never changes would show nothing."""
    for name, model in {**CASES, **INTEGER_CASES}.items():
        outputs = model.forward(random_images(model, 64, np.random.default_rng(1)))
        assert len(np.unique(outputs.reshape(64, -1), axis=0)) > 1, name


def test_integer_cases_have_every_width_and_the_odd():
    layers = [(layer, source, m) for m in INTEGER_CASES.values() for layer, source in m.network.chain("a case")]
    weighted = [(layer, source) for layer, source, _ in layers if isinstance(layer, Weighted)]
    requantise = [layer for layer, _, _ in layers if isinstance(layer, Requantise)]
    windows = [layer for layer, _, _ in layers if isinstance(layer, Conv | Pool)]
    features = {signed(bits) for bits in range(2, 10)} | {unsigned(bits) for bits in range(1, 9)}
    assert {layer.weight for layer, _ in weighted} == {signed(bits) for bits in range(2, 9)}
    assert {source.encoding for _, source in weighted} == features
    assert {layer.encoding for layer in requantise} >= features - {unsigned(2)}
    assert {layer.relu for layer in requantise} == {False, True}
    assert any(layer.clip for layer in requantise)
    assert {1, 3, 9, 33} == {source.channels for _, source in weighted}
    assert {1, 3, 9, 33, 10} == {layer.out_channels for layer, _ in weighted}
    assert {MaxPool, AvgPool} <= {type(layer) for layer in windows}
    assert any(w.stride[0] > w.stride[1] for w in windows)
    assert any(w.stride[0] < w.stride[1] for w in windows)
    assert any(w.padding == (0, 0, 1, 1) for w in windows)
    assert any(m.network.input.positions == 1 for m in INTEGER_CASES.values())


def test_integer_cases_are_of_the_form_that_they_promise():
    for name, model in INTEGER_CASES.items():
        kinds = ["w" if isinstance(layer, Weighted) else "p" if isinstance(layer, Pool) else "r"
                 for layer in model.network.layers]  # fmt: skip
        assert re.fullmatch("(wrp?)*(wr?p?|w)", "".join(kinds)), name


def test_requantisation_goes_to_its_ends():
    found: dict[str, set[int]] = {"bias": set(), "multiplier": set(), "shift": set()}
    sums = set()
    for model in INTEGER_CASES.values():
        for layer, source in model.network.chain("a case"):
            if isinstance(layer, Requantise):
                for key, values in found.items():
                    values.update(model.arrays[layer.name][key].tolist())
                bias = model.arrays[layer.name]["bias"]
                sums |= {int(bias.min()) + source.encoding.low, int(bias.max()) + source.encoding.high}
    assert {1, 65535} <= found["multiplier"]
    assert {0, 1, 40} <= found["shift"]
    assert {-(2**31) + 1, 2**31 - 1} <= sums


def test_most_channels_of_integer_cases_change():
    """And no layer is dead: few channels are constant, those that are special on purpose."""
    for name, model in INTEGER_CASES.items():
        outputs = model.trace(random_images(model, 64, np.random.default_rng(2)))
        for layer, y in zip(model.network.layers, outputs):
            if isinstance(layer, Requantise):
                changing = y.reshape(-1, y.shape[-1]).std(axis=0) > 0
                assert changing[::2].all(), f"{name}: {layer.name}"

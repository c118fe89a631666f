"""The reference network of spec B20: shapes, schedule figures, how alive it is, and its digest."""

import numpy as np
import pytest

from bitloom.golden.file import load, model_digest, save
from bitloom.golden.kernels import packed
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import Pool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.network import Model
from bitloom.golden.zoo.cifar_quick import cifar_quick, cifar_quick_int8, random_images
from bitloom.hls_gen.compiler.schedule import ORDERS, ideal_cycles, schedule, stages

DIGEST = "43740651362534ca6db692376123b27118ce3c44108a277e4260985db79b24e0"
FIRST_SCORES = [18671, -1452, -21539, 13372, -21500, -25172, -10399, 13111, -12066, 1147]
"""fc_2's outputs for the first of random_images(1, 1)."""


@pytest.fixture(scope="module")
def model() -> Model:
    return cifar_quick_int8()


def test_the_model_is_the_same_everywhere(model):
    assert model_digest(model) == DIGEST
    assert model.forward(random_images(1, 1)).ravel().tolist() == FIRST_SCORES


def test_maps_are_those_of_the_table():
    assert {name: target.shape for name, target in cifar_quick().maps.items()} == {
        "@input": (32, 32, 3),
        "conv_1": (32, 32, 32), "requantise_1": (32, 32, 32), "pool_1": (16, 16, 32),
        "conv_2": (16, 16, 32), "requantise_2": (16, 16, 32), "pool_2": (8, 8, 32),
        "conv_3": (8, 8, 64), "requantise_3": (8, 8, 64), "pool_3": (4, 4, 64),
        "fc_1": (1, 1, 64), "requantise_4": (1, 1, 64), "fc_2": (1, 1, 10)}  # fmt: skip
    kinds = [layer.kind for layer in cifar_quick().layers if isinstance(layer, Pool)]
    assert kinds == ["max_pool", "avg_pool", "avg_pool"]


@pytest.mark.parametrize("order", ORDERS)
def test_valid_taps_and_ideal_cycles_are_those_of_the_table(order):
    network = cifar_quick()
    tables = schedule(stages(network), order).tables
    assert [len(t.index) for t in tables] == [23_716, 2_209, 5_476, 529, 1_156, 121, 16, 1]
    windows = [(layer, source) for layer, source in network.chain("a test") if not isinstance(layer, Requantise)]
    cycles = [
        ideal_cycles(t, source.channels, layer.out_channels, 8, 8)
        for t, (layer, source) in zip(tables, windows)
        if isinstance(layer, Weighted)
    ]
    assert sum(cycles) == 220_512


def test_every_layer_is_alive(model):
    """On 64 random images that took no part in the calibration. Figures in %: zeros, values that are -128 or 127."""
    outputs = packed.trace(model, random_images(64, 2))
    found = {}
    for layer, y in zip(model.network.layers, outputs, strict=True):
        target = model.network.maps[layer.name]
        if isinstance(layer, Requantise | Pool):
            ends = (y == target.encoding.low) | (y == target.encoding.high)
            found[layer.name] = (round(100 * float((y == 0).mean()), 1), round(100 * float(ends.mean()), 1))
            assert (y.reshape(-1, target.channels).std(axis=0) > 0).all(), f"{layer.name}: a channel never changes"
        else:
            assert (y == 0).mean() < 0.01
    assert found == {
        "requantise_1": (42.6, 0.0), "pool_1": (0.1, 0.3),
        "requantise_2": (41.7, 0.0), "pool_2": (5.2, 0.0),
        "requantise_3": (42.8, 0.0), "pool_3": (6.7, 0.0),
        "requantise_4": (42.1, 0.2)}  # fmt: skip
    winners = np.unique(outputs[-1].reshape(64, 10).argmax(axis=1))
    assert len(winners) >= 5


def test_weights_use_all_values(model):
    for name in ("conv_1", "conv_2", "conv_3", "fc_1"):
        assert len(np.unique(model.arrays[name]["weight"])) == 256
    shifts = [model.arrays[f"requantise_{n}"]["shift"] for n in range(1, 5)]
    assert all(len(np.unique(s)) > 1 for s in shifts)  # scales are per channel


def test_fast_equals_plain(model):
    x = random_images(2, 3)
    for a, b in zip(model.trace(x), packed.trace(model, x)):
        np.testing.assert_array_equal(a, b)


def test_the_file_comes_back(model, tmp_path):
    save(model, tmp_path / "model.npz")
    assert model_digest(load(tmp_path / "model.npz")) == DIGEST


def test_it_equals_pytorch(model, torch):
    """The whole network by PyTorch in float64, where nothing is rounded but by the rules of B11 and B14."""

    def real(a: np.ndarray):
        return torch.tensor(a.astype(np.float64))

    def rounded(y):  # halves away from zero
        return torch.sign(y) * torch.floor(torch.abs(y) + 0.5)

    functional = torch.nn.functional
    images = random_images(2, 4)
    x = real(images).permute(0, 3, 1, 2)
    for layer, ours in zip(model.network.layers, model.trace(images), strict=True):
        values = model.arrays.get(layer.name, {})
        if layer.kind == "conv":
            x = functional.conv2d(x, real(values["weight"]).permute(0, 3, 1, 2), padding=2)
        elif layer.kind == "dense":
            x = functional.conv2d(x, real(values["weight"]).permute(0, 3, 1, 2))
        elif layer.kind == "max_pool":
            x = functional.max_pool2d(x, 3, 2, ceil_mode=True)
        elif layer.kind == "avg_pool":
            x = rounded(functional.avg_pool2d(x, 3, 2, ceil_mode=True, count_include_pad=False))
        else:
            bias, multiplier, shift = (real(values[what])[:, None, None] for what in ("bias", "multiplier", "shift"))
            x = torch.clamp(rounded(torch.relu(x + bias) * multiplier / 2.0**shift), max=127)
        np.testing.assert_array_equal(ours, x.permute(0, 2, 3, 1).numpy(), err_msg=layer.name)

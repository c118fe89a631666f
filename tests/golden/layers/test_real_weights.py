"""Real weights, of which a layer takes the signs (spec A): +1 where z >= 0, else -1."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden.encoding import BIPOLAR, TERNARY, signed
from bitloom.golden.kernels import packed
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import DepthwiseConv, GroupedConv
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from tests.cases import case_map, random_images
from tests.errors import value_error

EDGES = np.array([0.0, -0.0, 5e-324, -5e-324, 1e300, -1e300, 0.25, -0.25])
"""Numbers around 0 and far from it."""


def model(first: Conv | None = None, dtype: type = np.float64) -> tuple[Model, Model]:
    """A network with real weights, and the same with their signs."""
    first = first or Conv(name="first", out_channels=6, kernel=(2, 3), padding=(1, 0, 0, 2), real_weights=True)
    layers = (first, Threshold(name="act"), Dense(name="last", out_channels=3, real_weights=True))
    network = Network(name="real", input=case_map(5, 4, 6), layers=layers)
    rng = np.random.default_rng(1)
    arrays = {"act": {"threshold": rng.integers(-4, 4, (6, 1)), "direction": rng.choice([-1, 1], 6)}}
    signs = dict(arrays)
    for layer, source in network.chain("this test"):
        if layer.name in ("first", "last"):
            shape = layer.array_shapes(source)["weight"]
            with np.errstate(over="ignore", under="ignore"):
                drawn = np.where(rng.random(shape) < 0.5, rng.choice(EDGES, shape), rng.normal(size=shape))
                weight = np.nan_to_num(drawn.astype(dtype))
            arrays[layer.name] = {"weight": weight}
            signs[layer.name] = {"weight": np.where(weight >= 0, 1, -1)}
    plain = tuple(replace(one, real_weights=False) if hasattr(one, "real_weights") else one for one in layers)
    return Model(network, arrays), Model(replace(network, layers=plain), signs)


LAYERS = {
    "conv": None,
    "depthwise": DepthwiseConv(name="first", out_channels=6, kernel=(2, 2), real_weights=True),
    "grouped": GroupedConv(name="first", out_channels=6, kernel=(2, 2), groups=2, real_weights=True),
    "or": Conv(name="first", out_channels=6, kernel=(2, 2), accumulate="or_words", word_channels=4, real_weights=True),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("name", LAYERS)
def test_the_signs_are_the_weights(name: str, dtype: type) -> None:
    real, signs = model(LAYERS[name], dtype)
    images = random_images(real, 5, np.random.default_rng(2))
    wanted = signs.forward(images)
    np.testing.assert_array_equal(real.forward(images), wanted)
    np.testing.assert_array_equal(packed.forward(real, images), wanted)
    assert set(np.unique(real.weights("first"))) == {-1, 1}


def test_a_convolution_equals_pytorchs(torch) -> None:
    real, _ = model()
    layer = real.network.layers[0]
    weight = real.arrays["first"]["weight"]
    x = random_images(real, 4, np.random.default_rng(3)).astype(np.int64)
    signs = torch.where(torch.tensor(weight) >= 0, 1.0, -1.0).permute(0, 3, 1, 2).double()
    nchw = torch.nn.functional.pad(torch.tensor(x).double().permute(0, 3, 1, 2), (0, 2, 1, 0))
    wanted = torch.nn.functional.conv2d(nchw, signs).permute(0, 2, 3, 1).numpy()
    np.testing.assert_array_equal(layer.forward(x, real.arrays["first"], real.network.input), wanted)


def test_a_file_keeps_the_numbers(tmp_path: Path) -> None:
    for dtype, stored in ((np.float64, "<f8"), (np.float32, "<f4"), (np.int32, "<i4")):
        real, _ = model()
        weight = np.arange(-30, 6 * 2 * 3 * 6 - 30).reshape(6, 2, 3, 6) * (70_000 if dtype is np.int32 else 0.1)
        typed = Model(real.network, {**real.arrays, "first": {"weight": weight.astype(dtype)}})
        file.save(typed, tmp_path / "real.npz")
        again = file.load(tmp_path / "real.npz")
        assert again.network == typed.network
        assert again.arrays["first"]["weight"].dtype.str == stored
        np.testing.assert_array_equal(again.arrays["first"]["weight"], typed.arrays["first"]["weight"])
        assert file.to_bytes(again) == file.to_bytes(typed)


BITS = "conv: real_weights need weights of bipolar 1 bit (-1..1 in steps of 2), got"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"weight": TERNARY}, f"{BITS} ternary 2 bit (-1..1)"),
        ({"weight": signed(8)}, f"{BITS} signed 8 bit (-128..127)"),
        ({"real_weights": 1}, "conv: real_weights must be True or False, got 1"),
    ],
)
def test_what_the_layer_refuses(more: dict, message: str) -> None:
    with value_error(message):
        Conv(**{"name": "conv", "out_channels": 1, "kernel": (1, 1), "real_weights": True, **more})


def test_what_the_array_must_be() -> None:
    layer = Conv(name="conv", out_channels=1, kernel=(1, 1), real_weights=True)
    source = case_map(2, 2, 2)
    for wrong in (np.inf, -np.inf, np.nan):
        with value_error(f"conv.weight: real numbers must be finite, got {wrong}"):
            layer.check_arrays({"weight": np.array([1, wrong]).reshape(1, 1, 1, 2)}, source)
    with value_error("conv.weight: dtype must be integer, got complex128"):
        layer.check_arrays({"weight": np.ones((1, 1, 1, 2), complex)}, source)
    with value_error("conv.weight: shape must be (1, 1, 1, 2), got (2,)"):
        layer.check_arrays({"weight": np.ones(2)}, source)
    with value_error("conv.weight: dtype must be integer, got float64"):
        replace(layer, real_weights=False, weight=BIPOLAR).check_arrays({"weight": np.ones((1, 1, 1, 2))}, source)
    layer.check_arrays({"weight": np.array([-3, 0]).reshape(1, 1, 1, 2)}, source)

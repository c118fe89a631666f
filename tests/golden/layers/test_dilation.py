"""Dilated convolutions, with rectangular kernels: golden against onnxruntime, files, taps that miss the map, and what a
device computes of them."""

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.kernels.tiled.conv import from_golden
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import DepthwiseConv
from bitloom.golden.network import Model, Network
from bitloom.golden.window import Window
from tests.cases import case_map, random_values
from tests.errors import value_error

from .agreement import by_onnxruntime, check_model


def drawn(seed: int):
    """(layer, source, x (N, H, W, C), weight) with everything unequal; every third layer is a depthwise one, every
    fourth one binary."""
    rng = np.random.default_rng(seed)
    source_encoding, weight_encoding = (BIPOLAR, BIPOLAR) if seed % 4 == 3 else (signed(4), signed(5))
    kh, kw, down, aside = (int(v) for v in rng.integers(1, 4, 4))
    spans = (kh - 1) * down + 1, (kw - 1) * aside + 1
    size = (int(rng.integers(max(span, apart), span + 6)) for span, apart in zip(spans, (down, aside)))
    source = case_map(*size, 3, source_encoding)
    (top, bottom), (left, right) = (rng.integers(0, span, 2).tolist() for span in spans)
    kind, outputs = (DepthwiseConv, 3) if seed % 3 == 2 else (Conv, 2)
    window = {"kernel": (kh, kw), "padding": (top, left, bottom, right), "dilation": (down, aside)}
    stride = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    layer = kind(name="conv_1", out_channels=outputs, weight=weight_encoding, stride=stride, **window)
    x = random_values((2, *source.shape), source_encoding, rng)
    return layer, source, x, random_values(layer.array_shapes(source)["weight"], weight_encoding, rng)


@pytest.mark.parametrize("seed", range(12))
def test_equals_onnxruntime(seed, tmp_path):
    layer, source, x, weight = drawn(seed)
    groups = 3 if isinstance(layer, DepthwiseConv) else 1
    window = {"kernel_shape": layer.kernel, "strides": layer.stride, "pads": layer.padding}
    node = ("Conv", ["x", "w"], ["y"], {**window, "dilations": layer.dilation, "group": groups})
    inputs = {name: array.transpose(0, 3, 1, 2).astype(np.float32) for name, array in (("x", x), ("w", weight))}
    wanted = by_onnxruntime(node, **inputs).transpose(0, 2, 3, 1)
    model = Model(Network(name="dilated", input=source, layers=(layer,)), {"conv_1": {"weight": weight}})
    check_model(model, x, wanted, tmp_path)


def test_a_map_between_two_taps():
    window = Window(kernel=(2, 1), dilation=(4, 1), padding=(2, 0, 2, 0))
    assert (window.span, window.dilated) == ((5, 1), True)
    assert window.reaches(4, 2)  # taps at rows -2 and 2, -1 and 3, 0 and 4, 1 and 5
    assert not window.reaches(3, 2)  # -1 and 3 lie on both sides
    assert not Window(kernel=(1, 3), dilation=(9, 1)).dilated


def binary():
    layer = Conv(name="c", out_channels=1, kernel=(2, 2), dilation=(1, 2))
    from_golden(layer, case_map(4, 4, 1, BIPOLAR), np.ones((1, 2, 2, 1), np.int8), word_bits=32)


def conv(kernel=(2, 2), **more):
    return Conv(name="c", out_channels=1, kernel=kernel, **more)


SPAN = "c: padding (top, left, bottom, right) must be smaller than the dilated kernel (4, 2), got (4, 0, 0, 0)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conv(dilation=(0, 1)), "c: dilation must be >= 1, got (0, 1)"),
        (lambda: conv(dilation=3), "c: dilation must be 2 integers, got 3"),
        (lambda: conv(dilation=(3, 1), padding=(4, 0, 0, 0)), SPAN),
        (
            lambda: conv((2, 1), dilation=(4, 1), padding=(2, 0, 2, 0)).output(case_map(1, 2, 1)),
            "c: every window must have a tap on the map, got dilation (4, 1) on 1 x 2",
        ),
        (binary, "c: dilation must be (1, 1), got (1, 2)"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()

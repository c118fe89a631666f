"""Products of two maps, and of a map with a vector, in TFLite and ONNX files."""

from importlib.util import find_spec

import numpy as np
import pytest

from bitloom.golden.layers.multiply import MultiplyMaps
from tests.errors import refusal

from . import onnx_files
from .against import by_onnxruntime, outputs
from .against import check as check_onnx
from .against import import_chain as import_onnx_chain
from .test_tflite import by_kernels, import_chain, scores
from .test_tflite_forms import check
from .tflite_files import Chain
from .tflite_real import kernels


def multiplied(chain, other, grid, activation=0):
    """The product of the map of now and tensor ``other``."""
    shape = tuple(max(sizes) for sizes in zip(chain.now.shape, chain.tensors[other].shape))
    return chain.operator("MUL", shape, grid, (other,), "MulOptions", FusedActivationFunction=activation)


def products(imported):
    """The layers that multiply."""
    return [layer for layer in imported.model.network.layers if isinstance(layer, MultiplyMaps)]


def channel(chain, source, number, zero):
    """One of two channels of a tensor, its integers as they are, with another zero point."""
    chain.here = source
    (scale,), (before,) = chain.now.scale, chain.now.zero
    weight = np.zeros((1, 1, 1, 2), np.int8)
    weight[..., number] = 64
    constants = chain.constant(weight, (1 / 64,)), chain.constant(np.array([64 * (before - zero)], np.int32), (1.0,))
    fields = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1, "Padding": 1}
    shape = (*chain.now.shape[:3], 1)
    return chain.operator("CONV_2D", shape, (scale, zero), constants, "Conv2DOptions", **fields).here


def all_pairs(zeros, scale, result):
    """A file that multiplies two channels, and an image with all pairs of int8."""
    chain = Chain((256, 256, 2), scale, 5)
    first = channel(chain, 0, 0, zeros[0])
    channel(chain, 0, 1, zeros[1])
    image = np.stack(np.meshgrid(*[np.arange(-128, 128)] * 2, indexing="ij"), axis=-1).astype(np.int8)
    return multiplied(chain, first, result), image[None]


PAIRS = [
    ((-128, -128), 0.0625, (0.9173, -128)),
    ((-128, 11), 0.0625, (0.5173, 3)),
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in [
            ((7, -100), 0.03217, (0.131, 127)),
            ((0, 0), 0.5, (32.0, 0)),  # halves
            ((127, -128), 0.0017, (0.0017, -5)),
        ]
    ),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize(("zeros", "scale", "result"), PAIRS)
def test_every_pair_of_tflite(zeros, scale, result):
    chain, image = all_pairs(zeros, scale, result)
    imported = import_chain(chain)
    wanted = by_kernels(imported.source, image)
    if find_spec("ai_edge_litert") is not None:
        np.testing.assert_array_equal(kernels(chain.bytes(), image)[-1].reshape(wanted.shape), wanted)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    np.testing.assert_array_equal(scores(imported, image), wanted)
    assert len(products(imported)) == 1
    assert len(np.unique(wanted)) > 20


@pytest.mark.sample(2)
@pytest.mark.parametrize("place", range(4))
def test_factors_for_random_scales(place):
    """Any scales of int8 have factors with the right result for every pair."""
    rng = np.random.default_rng(place)
    zeros = tuple(rng.integers(-128, 128, 2).tolist())
    chain = Chain((1, 2, 2), float(rng.uniform(0.01, 0.1)), 5)
    first = channel(chain, 0, 0, zeros[0])
    channel(chain, 0, 1, zeros[1])
    result = chain.now.scale[0] ** 2 * 2.0 ** rng.uniform(5, 10), int(rng.integers(-128, 128))
    imported = import_chain(multiplied(chain, first, result))
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


def pairs_of_onnx(zeros, scales):
    """A file that multiplies two channels of a map of 8 bits, and an image with all pairs."""
    chain = onnx_files.Chain((2, 256, 256), opset=19)
    chain.qdq(1.0, 0, np.uint8)
    begin = chain.here
    maps = []
    for number in range(2):
        chain.here = begin
        weight = np.eye(2, dtype=np.float32)[number].reshape(1, 2, 1, 1)
        chain.node("Conv", weight, np.array([-zeros[number]], np.float32), kernel_shape=[1, 1])
        chain.node("Mul", np.float32(scales[number]))
        maps.append(chain.qdq(scales[number], zeros[number], np.uint8).here)
    image = np.stack(np.meshgrid(*[np.arange(256)] * 2, indexing="ij")).astype(np.float32)
    chain.node("Mul", maps[0], out="product").qdq(scales[2], zeros[2], np.uint8)
    return chain, image[None]


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("zeros", "scales"),
    [((0, 128, 100), (0.0391736, 0.0173149, 0.0513337)), ((0, 0, 0), (0.0041, 1 / 255, 0.004))],
)
def test_every_pair_of_onnx(zeros, scales):
    chain, image = pairs_of_onnx(zeros, scales)
    imported = import_onnx_chain(chain)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    wanted = by_onnxruntime(chain, image)
    got = outputs(imported, image)
    assert len(products(imported)) == 1
    assert np.abs(got - wanted).max() < 1e-6
    assert len(np.unique(wanted)) > 20


def test_halves_of_onnx_say_how_many_pairs_are_off():
    """ONNX rounds halves to the even integer, a product upwards."""
    chain, _ = pairs_of_onnx((128, 128, 128), (0.125, 0.125, 1.0))
    wrong = [built.wrong for built in import_onnx_chain(chain).emitted.built]
    x = np.arange(-128, 128)
    products = np.multiply.outer(x, x)
    halves = (products % 64 == 32) & (np.rint(products / 64) != np.floor(products / 64 + 0.5))
    kept = np.clip(products / 64, -128, 127) == products / 64
    assert wrong[-1] == (int((halves & kept).sum()), 1)


def excited(chain, rng, vector):
    """Squeeze and excite: a map times a vector that is made of the map's means."""
    before = chain.here
    channels = chain.now.shape[3]
    chain.mean((0.02, -118), keep=True).conv(rng, 3, (1, 1), (0.03, -128), activation="RELU")
    vector(chain.conv(rng, channels, (1, 1), (0.01, 5)))
    return multiplied(chain, before, (0.011, -106))


VECTORS = {
    "a sigmoid": lambda chain: chain.operator("LOGISTIC", chain.now.shape, (1 / 256, -128)),
    "none": lambda chain: chain,
}


def mobile(rng, vector):
    """A block as of MobileNetV3: expansion, depthwise convolution, squeeze and excite, projection, and the block's map
    added."""
    chain = Chain((6, 5, 3), 0.02, 11).conv(rng, 4, (3, 3), (0.03, 2))
    begin = chain.here
    chain.conv(rng, 6, (1, 1), (0.04, -3)).operator("HARD_SWISH", (*chain.now.shape[:3], 6), (0.03, -110))
    chain.conv(rng, 6, (3, 3), (0.02, 7), depth=1).operator("HARD_SWISH", chain.now.shape, (0.015, -105))
    excited(chain, rng, vector)
    return chain.conv(rng, 4, (1, 1), (0.0213, 4)).add(begin, (0.0437, 2)).conv(rng, 3, (3, 3), (0.02, 1), (2, 2))


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", VECTORS)
def test_a_map_times_a_vector(name):
    imported, _ = check(mobile(np.random.default_rng(6), VECTORS[name]))
    assert len(products(imported)) == 1


def excited_onnx(rng, sizes):
    """Squeeze and excite as exporters write it: a mean, two convolutions of 1 x 1, a HardSigmoid and a product. The map
    has rows and columns, or columns alone: ``sizes``."""
    chain = onnx_files.Chain((3, *sizes), opset=19)

    def conv(outputs, inputs, size, result, relu=False):
        kernel = [size] * len(sizes)
        weight = chain.dequantised(rng.integers(-5, 6, (outputs, inputs, *kernel)), 0.0371)
        chain.node("Conv", weight, kernel_shape=kernel, pads=[size // 2] * 2 * len(sizes))
        (chain.node("Relu") if relu else chain).qdq(*result)

    chain.qdq(0.0317, 128)
    conv(6, 3, 3, (0.0151, 120))
    before = chain.here
    chain.node("GlobalAveragePool").qdq(0.00913, 128)
    conv(3, 6, 1, (0.00411, 0), relu=True)
    conv(6, 3, 1, (0.00313, 117))
    chain.node("HardSigmoid", alpha=1 / 6, beta=0.5).qdq(1 / 255, 0)
    chain.node("Mul", before).qdq(0.0129, 122)
    conv(4, 6, 3, (0.01917, 110))
    return chain


@pytest.mark.sample(1)
@pytest.mark.parametrize("sizes", [(6, 5), (11,)])
def test_squeeze_and_excite_of_onnx(sizes):
    imported = check_onnx(excited_onnx(np.random.default_rng(5), sizes), by_onnxruntime)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


def test_integers_times_integers_of_onnx():
    """QLinearMul, of a map and of a vector."""
    rng = np.random.default_rng(9)
    chain = onnx_files.Chain((3, 4, 5), opset=19)
    chain.qdq(0.0317, 128)
    weight = chain.dequantised(rng.integers(-5, 6, (4, 3, 1, 1)), 0.917)
    chain.node("Conv", weight, kernel_shape=[1, 1])
    chain.node("QuantizeLinear", np.float32(0.0913), chain.constant(120, np.uint8))
    first = chain.here
    scales = [chain.constant(np.float32(scale)) for scale in (0.0913, 0.0913, 0.1517)]
    zeros = [chain.constant(zero, np.uint8) for zero in (120, 120, 99)]
    chain.node("MaxPool", kernel_shape=[4, 5])
    inputs = scales[0], zeros[0], first, scales[1], zeros[1], scales[2], zeros[2]
    chain.node("QLinearMul", *inputs, domain="com.microsoft").node("DequantizeLinear", scales[2], zeros[2])
    imported = check_onnx(chain.node("Flatten").node("Gemm", np.eye(80, dtype=np.float32)), by_onnxruntime)
    assert len(products(imported)) == 1


def two(rng):
    """Two quantised maps of ONNX: the one that is here, and the name of the other."""
    chain = onnx_files.Chain((2, 3, 4), opset=19)
    chain.qdq(0.0317, 128)
    chain.node("Conv", rng.integers(-5, 6, (4, 2, 1, 1)).astype(np.float32), kernel_shape=[1, 1])
    chain.qdq(0.0913, 120)
    begin = chain.here
    chain.node("Conv", rng.integers(-5, 6, (4, 4, 1, 1)).astype(np.float32), kernel_shape=[1, 1])
    return chain.qdq(0.117, 77), begin


ZEROS = "9-bit integers of maps that are multiplied, and of the product, must have 0 for 0"
REFUSED = {
    "no quantiser": (
        lambda chain, begin: chain.node("Mul", begin, out="z"),
        "Mul_8 (Mul): a product of two maps must be quantised; quantise before the next layer",
    ),
    "no integer is worth 0": (
        lambda chain, begin: chain.node("Add", np.float32(0.25)).node("Mul", begin).qdq(0.3, 128),
        f"Mul_9 (Mul): {ZEROS}, got 0 at level 74.8632 of 256",
    ),
    "a number is added to the product": (
        lambda chain, begin: chain.node("Mul", begin).node("Add", np.float32(0.3)).qdq(0.25, 128),
        f"Mul_8 (Mul): {ZEROS}, got 0 at level 129.2 of 256",
    ),
    "falls": (
        lambda chain, begin: chain.node("Mul", begin).node("Neg").qdq(0.3, 128),
        "Mul_8 (Mul): between a product and its quantiser nothing may fall, got a negative scale",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    build, line = REFUSED[name]
    chain = build(*two(np.random.default_rng(1)))
    with refusal(line):
        import_onnx_chain(chain)


def test_a_value_a_position():
    """Spatial attention: each position of a map is multiplied with a number of its own."""
    rng = np.random.default_rng(4)
    chain = Chain((5, 4, 3), 0.02, 11).conv(rng, 6, (3, 3), (0.03, 2))
    before = chain.here
    chain.conv(rng, 1, (3, 3), (0.01, 5)).operator("LOGISTIC", chain.now.shape, (1 / 256, -128))
    imported, _ = check(multiplied(chain, before, (0.021, -16)))
    assert len(products(imported)) == 1

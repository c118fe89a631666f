"""Networks quantised after training, in onnxruntime's two formats, beside onnxruntime; and what ends a network."""

import numpy as np
import pytest

from bitloom.overlay.importers.references import reference
from bitloom.overlay.importers.source import SourceNode
from bitloom.overlay.importers.verify import real_inputs, sample_inputs, verify
from tests.errors import refusal

from .against import by_images, by_onnxruntime, by_qonnx, by_reference, check, features, import_chain, outputs
from .onnx_files import QONNX, Chain, TensorProto, helper, numpy_helper

KINDS = [(np.uint8, 128), (np.uint8, 0), (np.int8, 0), (np.int8, -3)]


@pytest.mark.sample(4)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("dtype", "zero"), KINDS)
def test_quantised_and_dequantised(dtype, zero, per_channel):
    """Scores in float32: to a step of the last quantiser, where sums of floats decide at a boundary, which is rare."""
    rng = np.random.default_rng(1)
    chain = Chain((2, 6, 6)).qdq(0.0390625, zero, dtype)
    weight = chain.constant(rng.integers(-100, 101, (4, 2, 3, 3)), np.int8)
    scales = chain.constant(rng.uniform(0.01, 0.02, 4) if per_channel else 0.013)
    zeros = chain.constant(np.zeros(4 if per_channel else (), np.int8), np.int8)
    weight = chain.weight("DequantizeLinear", weight, scales, zeros, axis=0)
    chain.node("Conv", weight, rng.normal(size=4), pads=[1, 1, 1, 1]).node("Relu").qdq(0.11, 0, np.uint8)
    chain.node("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).qdq(0.11, 0, np.uint8)
    weight = chain.dequantised(rng.integers(-100, 101, (36, 5)), 0.01, zero=7)
    chain.node("Flatten").node("MatMul", weight).node("Add", rng.normal(size=5)).qdq(0.31, 3, np.int8)
    imported = import_chain(chain)
    if zero in (128, -3) or dtype == np.int8:
        assert imported.choice.engines == ("integer", "integer")
    images = rng.uniform(-4, 4, (40, 2, 6, 6)).astype(np.float32)
    different = np.rint((outputs(imported, images) - by_onnxruntime(chain, images)) / 0.31)
    assert np.abs(different).max() <= 1
    assert (different != 0).mean() < 0.02


@pytest.mark.parametrize("scale", [0.0231, 0.07])
@pytest.mark.parametrize("op", ["Identity", "GlobalAveragePool"])
def test_quantised_twice(op, scale):
    """By other scales, finer or coarser: a copy of every channel lies between, so that each rounds for itself."""
    rng = np.random.default_rng(12)
    chain = Chain((2, 4, 4)).qdq(0.02, 0, np.uint8)
    chain.node("Conv", chain.dequantised(rng.integers(-100, 101, (8, 2, 1, 1)), 0.01))
    chain.node("Relu").qdq(0.04, 0, np.uint8).node(op).qdq(0.04, 0, np.uint8)
    chain.node("Flatten").qdq(scale, 0, np.uint8)
    imported = import_chain(chain)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    images = rng.uniform(-1, 6, (60, 2, 4, 4)).astype(np.float32)
    different = np.rint((outputs(imported, images) - by_onnxruntime(chain, images)) / scale)
    assert np.abs(different).max() <= 2  # float32 of one step of the first decides up to two of the second
    assert (different != 0).mean() < 0.02


def as_pytorch(cast):
    """As PyTorch exports it: parameters are nodes of their own, and quantised values are cast to their own type."""
    rng = np.random.default_rng(11)
    chain = Chain((2, 6, 6))
    zero = chain.weight("Constant", value=numpy_helper.from_array(np.uint8(3)))
    chain.node("QuantizeLinear", np.float32(0.04), zero).node("Cast", to=cast)
    chain.node("DequantizeLinear", np.float32(0.04), zero)
    chain.node("Conv", chain.dequantised(rng.integers(-100, 101, (4, 2, 3, 3)), 0.01))
    return chain.node("Relu").qdq(0.11, 0, np.uint8)


def test_as_pytorch_exports_it():
    chain = as_pytorch(TensorProto.UINT8)
    imported = import_chain(chain)
    images = np.random.default_rng(4).uniform(-1, 10, (40, 2, 6, 6)).astype(np.float32)
    different = np.rint((outputs(imported, images) - by_onnxruntime(chain, images)) / 0.11)
    assert np.abs(different).max() <= 1
    assert (different != 0).mean() < 0.02


def test_casts_that_change_integers():
    """255 is no int8."""
    rule = "a map must be cast to float32 or float64, got type 3; quantise with QuantizeLinear"
    with refusal(f"Cast_2 (Cast): {rule}"):
        import_chain(as_pytorch(TensorProto.INT8))


def integer_conv(rng, chain, inputs, outputs_, *, scale, result, dtype=np.uint8, per_channel=False, **attributes):
    """QLinearConv behind scale (real, zero point), making integers of scale ``result``."""

    def zero_of(value):
        return chain.constant(value, dtype)

    scales = rng.uniform(0.01, 0.02, outputs_) if per_channel else 0.015
    zeros = np.zeros(outputs_ if per_channel else (), np.int8)
    weight = chain.constant(rng.integers(-127, 128, (outputs_, inputs, 3, 3)), np.int8)
    weights = (weight, chain.constant(scales), chain.constant(zeros, np.int8))
    bias = chain.constant(rng.integers(-500, 500, outputs_), np.int32)
    reads, makes = (np.float32(scale[0]), zero_of(scale[1])), (np.float32(result[0]), zero_of(result[1]))
    return chain.node("QLinearConv", *reads, *weights, *makes, bias, **attributes)


def integers_only(per_channel, dtype):
    """Integers in, QLinearConv twice, a mean, QLinearMatMul, integers out."""
    rng = np.random.default_rng(2)
    kind = TensorProto.UINT8 if dtype == np.uint8 else TensorProto.INT8
    chain = Chain((3, 6, 6), dtype=kind, output_type=kind)
    at = dict(dtype=dtype, per_channel=per_channel)
    first, second, third, last = (0.02, 0), (0.1, 5), (0.2, 0), (0.5, 100)
    integer_conv(rng, chain, 3, 6, scale=first, result=second, strides=[2, 2], pads=[1, 1, 1, 1], **at)
    integer_conv(rng, chain, 6, 4, scale=second, result=third, **at)
    mean = (*numbers(chain, third, dtype), *numbers(chain, third, dtype))
    chain.node("QLinearGlobalAveragePool", *mean, domain="com.microsoft")
    chain.node("Flatten")
    weight = chain.constant(rng.integers(-127, 128, (4, 5)), np.int8)
    weight = (weight, np.float32(0.03), chain.constant(2, np.int8))
    return chain.node("QLinearMatMul", *numbers(chain, third, dtype), *weight, *numbers(chain, last, dtype))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_joins_of_integers(dtype):
    """QLinearAdd, QLinearConcat and QLinearAveragePool: at most one step apart from onnxruntime, and seldom."""
    rng = np.random.default_rng(4)
    middle = 128 if dtype == np.uint8 else 0
    at = {"dtype": dtype, "per_channel": False}
    scales = (0.02, middle), (0.1, 5 + middle), (0.13, middle - 9), (0.2, middle + 3), (0.187, middle)
    chain = Chain((3, 6, 6), dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    chain.output_type = chain.dtype
    integer_conv(rng, chain, 3, 4, scale=scales[0], result=scales[1], pads=[1, 1, 1, 1], **at)
    fork = chain.here
    integer_conv(rng, chain, 4, 4, scale=scales[1], result=scales[2], pads=[1, 1, 1, 1], **at)
    one = chain.here
    first, second, third, fourth = (numbers(chain, scale, dtype) for scale in scales[1:])
    chain.node("QLinearAdd", *second, fork, *first, *third, domain="com.microsoft")
    added, chain.here = chain.here, chain.constant(third[0])
    chain.node("QLinearConcat", third[1], added, *third, one, *second, domain="com.microsoft", axis=1)
    chain.node("QLinearAveragePool", *third, *fourth, domain="com.microsoft", kernel_shape=[2, 2], strides=[2, 2])
    integer_conv(rng, chain, 8, 3, scale=scales[4], result=(0.9, middle), **at)
    imported = import_chain(chain)
    verify(imported, 2)
    kind = np.iinfo(dtype)
    images = rng.integers(kind.min, kind.max + 1, (20, 3, 6, 6))
    wanted = by_onnxruntime(chain, images)
    assert len(np.unique(wanted)) > 10
    different = outputs(imported, images) - wanted
    assert np.abs(different).max() <= 1
    assert (different != 0).mean() < 0.1


@pytest.mark.parametrize("constant", ["a channel", "one first"])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_joins_of_integers_with_a_constant(op, constant):
    """As batch normalisation behind a ReLU, or GELU written as several operators, are quantised."""
    rng = np.random.default_rng(6)
    chain = Chain((3, 6, 6), dtype=TensorProto.UINT8, output_type=TensorProto.UINT8)
    first, second = (0.1, 5), (0.0807, 30)
    integer_conv(rng, chain, 3, 4, scale=(0.02, 9), result=first)
    values = chain.constant(77 if constant == "one first" else rng.integers(1, 256, (4, 1, 1)), np.uint8)
    scale, zero = np.float32(0.0131), chain.constant(3, np.uint8)
    if constant == "one first":
        inputs, chain.here = (scale, zero, chain.here, *numbers(chain, first, np.uint8)), values
    else:
        inputs = *numbers(chain, first, np.uint8), values, scale, zero
    chain.node(op, *inputs, *numbers(chain, second, np.uint8), domain="com.microsoft")
    imported = import_chain(chain)
    verify(imported, 2)
    images = rng.integers(0, 256, (20, 3, 6, 6))
    wanted = by_onnxruntime(chain, images)
    assert len(np.unique(wanted)) > 10
    different = outputs(imported, images) - wanted
    assert np.abs(different).max() <= 1
    assert (different != 0).mean() < 0.02


def test_means_of_integers_without_rows():
    """Of Conv1d: QLinearGlobalAveragePool takes all axes behind the channels."""
    rng = np.random.default_rng(7)
    chain = Chain((3, 12), dtype=TensorProto.UINT8, output_type=TensorProto.UINT8)
    weight = chain.constant(rng.integers(-127, 128, (4, 3, 3)), np.int8)
    first, second, third = (0.02, 9), (0.05, 5), (0.0223, 7)
    around = weight, np.float32(0.015), chain.constant(0, np.int8)
    chain.node("QLinearConv", *numbers(chain, first, np.uint8), *around, *numbers(chain, second, np.uint8))
    scales = *numbers(chain, second, np.uint8), *numbers(chain, third, np.uint8)
    imported = import_chain(chain.node("QLinearGlobalAveragePool", *scales, domain="com.microsoft"))
    verify(imported, 2)
    images = rng.integers(0, 256, (20, 3, 12))
    assert np.array_equal(outputs(imported, images), by_onnxruntime(chain, images))


def numbers(chain, scale, dtype):
    return np.float32(scale[0]), chain.constant(scale[1], dtype)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_integers_only(dtype, per_channel):
    """onnxruntime multiplies in float32; at most one step apart, and seldom."""
    chain = integers_only(per_channel, dtype)
    imported = import_chain(chain)
    rng = np.random.default_rng(3)
    kind = np.iinfo(dtype)
    images = rng.integers(kind.min, kind.max + 1, (30, 3, 6, 6))
    images[:2] = np.array([kind.min, kind.max]).reshape(2, 1, 1, 1)
    wanted = by_onnxruntime(chain, images)
    assert len(np.unique(wanted)) > 10
    different = outputs(imported, images) - wanted
    assert np.abs(different).max() <= 1
    assert (different != 0).mean() < 0.02


@pytest.mark.parametrize("groups", [2, 4])
def test_groups_of_integers(groups):
    """Depthwise convolutions, too, as onnxruntime's QOperator format has them."""
    rng = np.random.default_rng(13)
    chain = Chain((4, 6, 6), dtype=TensorProto.UINT8, output_type=TensorProto.UINT8)
    integer_conv(rng, chain, 4 // groups, 8, scale=(0.02, 0), result=(0.05, 5), group=groups, per_channel=True)
    images = rng.integers(0, 256, (12, 4, 6, 6))
    different = outputs(import_chain(chain), images) - by_onnxruntime(chain, images)
    assert np.abs(different).max() <= 1
    assert (different != 0).mean() < 0.02


CLIPPED = [(np.uint8, 0, 0, 15), (np.uint8, 3, 2, 5), (np.int8, 0, -4, 3), (np.int8, -128, -128, -113)]


@pytest.mark.sample(4)
@pytest.mark.parametrize("engine", ["auto", "integer"])
@pytest.mark.parametrize(("dtype", "zero", "low", "high"), CLIPPED)
def test_fewer_bits_by_a_clip(dtype, zero, low, high, engine):
    """As Brevitas writes 2 to 7 bits for runtimes without its operators: QuantizeLinear, Clip, DequantizeLinear."""
    rng = np.random.default_rng(14)

    def clipped(chain, scale):
        zero_point = chain.constant(zero, dtype)
        chain.node("QuantizeLinear", np.float32(scale), zero_point)
        chain.node("Clip", chain.constant(low, dtype), chain.constant(high, dtype))
        return chain.node("DequantizeLinear", np.float32(scale), zero_point)

    chain = clipped(Chain((2, 6, 6)), 0.25)
    chain.node("Conv", rng.integers(-1, 2, (4, 2, 3, 3)).astype(np.float32), np.float32([0.0625] * 4))
    clipped(chain, 0.5).node("Flatten")
    chain.node("MatMul", rng.integers(-1, 2, (64, 5)).astype(np.float32))
    imported = check(chain, by_onnxruntime, near=0, engine=engine)
    assert imported.model.network.input.encoding.bits <= 5
    assert imported.host.boundaries.shape == (1, high - low)


def test_a_type_instead_of_a_zero_point():
    chain = Chain((2, 4, 4), opset=21).node("QuantizeLinear", np.float32(0.25), output_dtype=TensorProto.INT8)
    chain.node("DequantizeLinear", np.float32(0.25))
    chain.node("Conv", np.random.default_rng(15).integers(-1, 2, (4, 2, 3, 3)).astype(np.float32)).node("Flatten")
    check(chain, by_reference, near=0)


def test_a_scale_far_below_the_sums():
    """All sums but 0 lie at the quantiser's ends."""
    rng = np.random.default_rng(15)
    chain = Chain((2, 4, 4)).qdq(0.25, 128, np.uint8)
    chain.node("Conv", rng.integers(-1, 2, (4, 2, 2, 2)).astype(np.float32))
    chain.qdq(2.0**-40, 100, np.uint8).node("Conv", rng.integers(-1, 2, (4, 4, 3, 3)).astype(np.float32))
    imported = check(chain.node("Flatten"), by_onnxruntime, near=0)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


def test_integers_that_are_quantised_again():
    """An input of 8 bits is what the file's quantiser reads, not what the accelerator does."""
    rng = np.random.default_rng(16)
    chain = Chain((3, 6, 6), dtype=TensorProto.UINT8).node("Cast", to=1).node("Div", np.float32(256))
    chain = chain.qdq(1 / 32, 128, np.uint8)
    chain.node("Conv", rng.integers(-3, 4, (4, 3, 3, 3)).astype(np.float32)).node("Flatten")
    images = rng.integers(0, 256, (12, 3, 6, 6))
    assert np.array_equal(outputs(import_chain(chain), images), by_onnxruntime(chain, images))


@pytest.mark.sample(4)
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("result", ["integers", "numbers"])
@pytest.mark.parametrize("transposed", [0, 1])
def test_q_gemm(bias, result, transposed):
    rng = np.random.default_rng(4)
    chain = Chain((12,)).node("QuantizeLinear", *numbers_of(0.05, 120))
    weight = rng.integers(-127, 128, (5, 12) if transposed else (12, 5))
    scales = rng.uniform(0.01, 0.02, 5)
    zeros = np.zeros(5, np.int8)
    inputs = [np.float32(0.05), chain.constant(120, np.uint8)]
    inputs += [chain.constant(weight, np.int8), scales, chain.constant(zeros, np.int8)]
    inputs.append(chain.constant(rng.integers(-500, 500, 5), np.int32) if bias else "")
    if result == "integers":
        inputs += numbers(chain, (0.25, 128), np.uint8)
    chain.nodes[0].input[2] = inputs[1]
    chain.node("QGemm", *inputs, domain="com.microsoft", transB=transposed)
    if result == "integers":
        chain.node("DequantizeLinear", *numbers(chain, (0.25, 128), np.uint8))
    check(chain, by_onnxruntime, near=1e-5)


@pytest.mark.parametrize("reads", ["channels last", "a list of tokens", "places first"])
def test_a_matrix_product_of_a_map(reads):
    """Of the last axis, as in transformers: a convolution of 1 x 1, whatever order positions are in."""
    rng = np.random.default_rng(7)

    def weight(*shape):
        return chain.dequantised(rng.integers(-99, 99, shape), 0.010703)

    chain = Chain((2, 5, 4))
    chain.qdq(0.051371, 120).node("Conv", weight(6, 2, 2, 1)).qdq(0.113117, 99)
    if reads == "channels last":
        chain.node("Transpose", perm=[0, 2, 3, 1])
    elif reads == "a list of tokens":
        chain.node("Reshape", np.int64([0, 6, 16])).node("Transpose", perm=[0, 2, 1])
    else:
        chain.node("Transpose", perm=[0, 2, 3, 1]).node("Reshape", np.int64([-1, 6]))
    chain.node("MatMul", weight(6, 7)).node("Add", rng.normal(size=7)).qdq(0.137719, 101)
    chain.node("Gemm" if reads == "places first" else "MatMul", weight(7, 3)).qdq(0.121327, 110)
    if reads == "places first":
        chain.node("Reshape", np.int64([-1, 4, 4, 3])).node("Transpose", perm=[0, 3, 1, 2])
        chain.node("Conv", weight(5, 3, 2, 2)).qdq(0.221327, 110)
    check(chain.node("Flatten"), by_onnxruntime, near=1e-5)


def test_softmax_of_places_that_come_first():
    """Its axis is counted without one of images."""
    rng = np.random.default_rng(7)
    chain = Chain((3, 4, 2)).quant(0.25, 4).node("Conv", rng.integers(-3, 4, (3, 3, 2, 2)).astype(np.float32))
    chain.quant(0.5, 4).node("Reshape", np.int64([-1, 3])).node("Softmax", axis=1)
    imported = import_chain(chain)
    verify(imported, 4)
    x = real_inputs(imported, sample_inputs(imported, 6, seed=3))
    got = imported.host.closed(imported.model.forward(features(imported, x)))
    np.testing.assert_allclose(got.reshape(len(x), -1), by_qonnx(chain, x), rtol=1e-5)
    assert (imported.host.only.shape, imported.host.only.classes, imported.host.only.apart) == ((3, 3), 3, 1)


def test_scales_of_channels_of_places_that_come_first():
    """The axis of the channels is counted without one of images: as many places as channels, which would fit, too."""
    rng = np.random.default_rng(7)
    chain = Chain((2, 3, 2)).quant(0.25, 4).node("Conv", rng.integers(-3, 4, (4, 2, 2, 1)).astype(np.float32))
    chain.node("Transpose", perm=[0, 2, 3, 1]).node("Reshape", np.int64([-1, 4]))
    channels = chain.constant([0.5, 1, 2, 1], np.float32), chain.constant(np.zeros(4), np.int8)
    for op in ("QuantizeLinear", "DequantizeLinear"):
        chain.node(op, *channels, axis=1)
    check(chain.node("MatMul", rng.integers(-3, 4, (4, 5)).astype(np.float32)), by_images(by_qonnx), images=2, near=0)


@pytest.mark.parametrize(
    ("op", "constants", "attributes"),
    [
        ("Quant", (0.5, 0, 3), {"domain": QONNX, "signed": 1, "narrow": 0, "rounding_mode": "ROUND"}),
        ("BipolarQuant", (0.5,), {"domain": QONNX}),
        ("Sign", (), {}),
        ("Trunc", (0.5, 0, 4, 2), {"domain": QONNX, "rounding_mode": "FLOOR"}),
    ],
)
def test_quantisers_of_places_that_come_first(op, constants, attributes):
    """Of QONNX: what they make of each value doesn't depend on where the value stands."""
    rng = np.random.default_rng(7)
    chain = Chain((2, 3, 2)).quant(0.25, 4).node("Conv", rng.integers(-3, 4, (4, 2, 2, 1)).astype(np.float32))
    chain.quant(0.5, 4).node("Transpose", perm=[0, 2, 3, 1]).node("Reshape", np.int64([-1, 4]))
    chain.node(op, *map(np.float32, constants), **attributes)
    check(chain.node("MatMul", rng.integers(-1, 2, (4, 5)).astype(np.float32)), by_images(by_qonnx), images=2, near=0)


def numbers_of(scale, zero):
    """A scale, and a zero point that is put in later."""
    return np.float32(scale), np.float32(zero)


CLOSINGS = {
    "Softmax": {"axis": -1},
    "LogSoftmax": {"axis": 1},
    "Sigmoid": {},
    "ArgMax": {"axis": 1, "keepdims": 0},
}


@pytest.mark.parametrize("op", CLOSINGS)
def test_what_the_host_does_at_the_end(op):
    """The scores before it have the class that it has."""
    rng = np.random.default_rng(5)
    chain = Chain((12,)).quant(0.25, 4).node("MatMul", rng.integers(-3, 4, (12, 6)).astype(np.float32))
    plain = import_chain(chain)
    closed = import_chain(chain.node(op, **CLOSINGS[op]))
    assert closed.host.only.closing == (op,)
    images = rng.uniform(-2, 2, (20, 12))
    got = outputs(closed, images)
    assert (got == outputs(plain, images)).all()
    for image, scores in zip(images.astype(np.float32), got):
        wanted = by_end(chain, image[None])
        assert scores[int(wanted[0, 0]) if op == "ArgMax" else wanted[0].argmax()] == scores.max()


@pytest.mark.parametrize("format_", ["QDQ", "QOperator"])
def test_softmax_in_front_of_a_quantiser(format_):
    """As onnxruntime's quantiser writes classifiers: the host's softmax is that to half a step of the quantiser."""
    rng = np.random.default_rng(6)
    chain = Chain((12,))
    scales = [chain.constant(0.05), chain.constant(120, np.uint8), chain.constant(0.05), chain.constant(7, np.int8)]
    probability = [chain.constant(1 / 256), chain.constant(-128, np.int8)]
    chain.node("QuantizeLinear", *scales[:2]).node("DequantizeLinear", *scales[:2])
    weight = [chain.constant(rng.integers(-127, 128, (12, 6)), np.int8), chain.constant(0.02)]
    chain.node("MatMul", chain.weight("DequantizeLinear", *weight)).node("QuantizeLinear", *scales[2:])
    if format_ == "QDQ":
        chain.node("DequantizeLinear", *scales[2:]).node("Softmax", axis=1).node("QuantizeLinear", *probability)
    else:
        chain.node("QLinearSoftmax", *scales[2:], *probability, domain="com.microsoft", axis=-1, opset=13)
    imported = import_chain(chain.node("DequantizeLinear", *probability))
    assert imported.host.only.closing == ("Softmax",)
    verify(imported, 4)
    x = real_inputs(imported, sample_inputs(imported, 12, seed=3))
    got = imported.host.closed(imported.model.forward(features(imported, x)))
    wanted = by_onnxruntime(chain, x)
    assert len(np.unique(wanted)) > 20
    fits = (got < 255.5 / 256).all(axis=1)  # onnxruntime 1.23 makes 0 of what rounds to 256 / 256
    assert np.abs(got - wanted)[fits].max() <= 1 / 512 + 1e-6
    assert fits.sum() > 5


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_of_older_files(op):
    """Without an axis it is over all of them from the second on."""
    chain = Chain((3, 2, 2), opset=11).quant(0.25, 4).node("Conv", np.eye(5, 12, dtype=np.float32).reshape(5, 3, 2, 2))
    assert import_chain(chain.node(op)).host.only.closing == (op,)


@pytest.mark.parametrize("opset", [11, 19])
def test_logarithms_of_shares_that_float32_has_no_room_for(opset):
    """ONNX's reference takes the logarithm of a share; the import's check, the operator and onnxruntime don't."""
    chain = Chain((3, 1, 2), opset=opset)
    scale = chain.constant(np.float32(1)), chain.constant(120, np.uint8)
    weight = chain.weight("DequantizeLinear", chain.constant(np.eye(3).reshape(3, 3, 1, 1), np.int8), np.float32(1))
    chain.node("QuantizeLinear", *scale).node("DequantizeLinear", *scale).node("Conv", weight)
    chain.node("LogSoftmax", axis=1)
    imported = import_chain(chain)
    verify(imported, 4)
    x = real_inputs(imported, sample_inputs(imported, 12, seed=3))
    got = imported.host.closed(imported.model.forward(features(imported, x)))
    wanted = np.concatenate([by_onnxruntime(chain, image[None]) for image in x])
    assert wanted.min() < -150
    assert np.abs(got.reshape(wanted.shape) - wanted).max() <= 1e-4


def by_end(chain, images, other=by_reference):
    """The end by ONNX's reference or another, behind our quantiser, which ONNX has no operator for."""
    from onnx import helper

    model = chain.model()
    (quantiser,) = [node for node in model.graph.node if node.op_type == "Quant"]
    values = np.clip(np.rint(images / np.float32(0.25)), -8, 7) * np.float32(0.25)
    model.graph.node.remove(quantiser)
    model.graph.node[0].input[0] = "x"
    del model.opset_import[:]
    model.opset_import.append(helper.make_opsetid("", chain.opset))
    methods = {"model": staticmethod(lambda: model), "bytes": staticmethod(lambda: model.SerializeToString())}
    return other(type("Made", (), methods), values)


@pytest.mark.parametrize("place", [0, 1])
def test_top_k(place):
    """Either of its outputs may be the network's."""
    rng = np.random.default_rng(6)
    chain = Chain((12,)).quant(0.25, 4).node("MatMul", rng.integers(-3, 4, (12, 6)).astype(np.float32))
    chain.node("TopK", chain.constant([3], np.int64), axis=-1)
    chain.nodes[-1].output.append("places")
    chain.here, chain.output_type = [(chain.here, TensorProto.FLOAT), ("places", TensorProto.INT64)][place]
    imported = import_chain(chain)
    assert imported.host.only.closing == ("TopK",)
    images = rng.uniform(-2, 2, (20, 12)).astype(np.float32)
    for image, scores in zip(images, outputs(imported, images)):
        wanted = by_end(chain, image[None], by_onnxruntime).ravel()
        order = np.argsort(-scores, kind="stable")[:3]  # of equal ones the first
        assert np.array_equal(wanted, order if place else scores[order])


@pytest.mark.sample(4)
@pytest.mark.parametrize("opset", [9, 10, 11, 12, 13, 15, 18, 21])
def test_older_and_newer_exporters(opset):
    """The same network as exporters wrote it: attributes became inputs over the years."""

    def import_opset(version):
        rng = np.random.default_rng(7)
        chain = Chain((2, 8, 8), opset=version).quant(0.25, 4)
        chain.node("Conv", rng.integers(-1, 2, (4, 2, 3, 3)).astype(np.float32), pads=[1, 1, 1, 1])
        chain.batch_norm(rng, 4)
        if version < 11:
            chain.node("Clip", min=0.0, max=6.0)
        else:
            chain.node("Clip", np.float32(0), np.float32(6))
        chain.quant(0.5, 3, signed=0)
        widths = [0, 0, 1, 0, 0, 0, 0, 1]
        if version < 11:
            chain.node("Pad", pads=widths, mode="constant", value=0.0)
        else:
            chain.node("Pad", chain.constant(widths, np.int64))
        chain.node("Conv", rng.integers(-1, 2, (4, 4, 3, 3)).astype(np.float32)).quant(1.0, 3)
        if version < 18:
            chain.node("ReduceMean", axes=[2, 3], keepdims=1)
        else:
            chain.node("ReduceMean", chain.constant([2, 3], np.int64))
        if version < 13:
            chain.node("Squeeze", axes=[2, 3])
        else:
            chain.node("Squeeze", chain.constant([2, 3], np.int64))
        chain.node("Dropout", **({"ratio": 0.5} if version < 12 else {}))
        return import_chain(chain.node("Gemm", rng.integers(-1, 2, (4, 5)).astype(np.float32), rng.normal(size=5)))

    from bitloom.golden.file import model_digest

    assert model_digest(import_opset(opset).model) == model_digest(import_opset(17).model)


def between_powers_of_two(last):
    """Imports of sums of integers and a quantiser whose scale is 2: the model's part, and its layer's own results
    for each channel's sums, as (sums, results less their zero) a channel."""
    rng = np.random.default_rng(8)
    weight = rng.integers(-7, 8, (16, 8)).astype(np.float32)
    imported = import_chain(last(Chain((16,)).quant(1.0, 4).node("MatMul", weight)), engine="integer")
    (built,) = imported.emitted.built
    layer = imported.model.network.layers[1]
    every = []
    images = rng.integers(-8, 8, (400, 16)).astype(np.float64)
    for k, column in enumerate(weight.T.astype(int)):
        rising, falling = column.clip(0).sum(), column.clip(None, 0).sum()
        sums = np.arange(-8 * rising + 7 * falling, 7 * rising - 8 * falling + 1)
        arrays = {key: values[[k]] for key, values in imported.model.arrays[layer.name].items()}
        every.append((sums, layer.forward(sums[:, None], arrays, imported.model.network.input)[:, 0]))
    return built, layer, every, (outputs(imported, images), images @ weight)


@pytest.mark.parametrize("bits", [3, 8])
def test_ties_become_even(bits):
    """As in the file, for every sum; a layer asks for it where halves away from zero would differ."""
    built, layer, every, (scores, wanted) = between_powers_of_two(lambda chain: chain.quant(2.0, bits))
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    assert (built.wrong, layer.rounding, layer.low, layer.high) == ((0, 0), "even", low, high)
    for sums, results in every:
        assert np.array_equal(results, np.clip(np.rint(sums / 2), low, high))
    assert np.array_equal(scores, 2 * np.clip(np.rint(wanted / 2), low, high))


def test_ties_that_a_requantisation_cannot_have():
    """A zero point that is odd, where no bit is left for it: halves would have to become odd. What differs is told."""
    built, layer, every, (scores, wanted) = between_powers_of_two(lambda chain: chain.qdq(2.0, 3, np.uint8))
    different = [np.abs(results + 128 - np.clip(np.rint(sums / 2) + 3, 0, 255)) for sums, results in every]
    assert (sum(map(np.count_nonzero, different)), max(d.max() for d in different)) == built.wrong
    assert built.wrong[1] == 1
    assert layer.rounding == "once"
    off = np.abs(scores / 2 - np.clip(np.rint(wanted / 2), -3, 252))
    assert off.max() == 1
    assert ((off > 0) <= (wanted % 2 == 1)).all()


ROUNDING = {
    "QLinearAdd": {},
    "QLinearMul": {},
    "QLinearAveragePool": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "QLinearAveragePool of all": {"kernel_shape": [2, 4], "strides": [2, 2]},
    "QLinearGlobalAveragePool": {},
}


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("name", ROUNDING)
def test_halves_with_an_odd_zero_point(name, dtype):
    """Some operators add the zero point before they round halves to even, and some behind: as onnxruntime does, so does
    the definition that imports are compared with."""
    rng = np.random.default_rng(3)
    op = name.split()[0]
    kind = np.iinfo(dtype)
    middle = int(kind.max + kind.min + 1) // 2
    maps = 2 if op in ("QLinearAdd", "QLinearMul") else 1
    x, y = (rng.integers(kind.min, kind.max + 1, (1, 64, 2, 4)) for _ in range(2))
    scales = np.float32(0.25), np.float32(0.125), np.float32(0.25 * 2 ** (maps == 1))
    zeros = middle + 3, middle - 6, middle + 5
    chain = Chain((64, 2, 4), dtype=helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
    chain.output_type = chain.dtype
    pairs = [part for scale, zero in zip(scales, zeros) for part in (scale, chain.constant(zero, dtype))]
    others = [*pairs[:2], chain.constant(y, dtype), *pairs[2:]] if maps == 2 else [*pairs[:2], *pairs[4:]]
    chain.node(op, *others, domain="com.microsoft", **ROUNDING[name])
    wanted = by_onnxruntime(chain, x)
    node = chain.nodes[-1]
    attributes = {each.name: list(each.ints) for each in node.attribute}
    source = SourceNode(name="", op=op, inputs=tuple(node.input), outputs=("y",), attributes=attributes)
    constants = {each.name: numpy_helper.to_array(each) for each in chain.constants}
    got = reference(source, [constants.get(name, x.astype(dtype)) for name in node.input], chain.opset)
    assert got.ravel().tolist() == wanted.ravel().tolist()

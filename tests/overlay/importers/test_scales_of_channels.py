"""Maps whose channels have scales of their own, as MobileNet-v1 of Brevitas has them in front of depthwise
convolutions."""

import numpy as np
import pytest

from bitloom.overlay.importers.verify import real_inputs, sample_inputs, verify
from tests.errors import refusal

from .against import by_onnxruntime, by_qonnx, check, import_chain, outputs
from .onnx_files import Chain

SCALES = np.float32([0.25, 0.375, 0.3125, 0.5625])
ANY = np.float32([0.1, 0.3, 0.7, 0.2])
"""Of single precision, so that they are no small multiples of one number."""
DOUBLED = np.float32([0.25, 0.5, 0.125, 1])


def ternary(rng, *shape):
    values = rng.integers(-1, 2, shape)
    values.reshape(shape[0], -1)[:, 0] = 1  # no output is always 0
    return values.astype(np.float32)


def begun(rng, scales=SCALES, bits=4, **quantiser):
    """Sums, and a quantiser with a scale for each of four channels."""
    chain = Chain((2, 8, 7)).quant(0.25, 3)
    chain.node("Conv", ternary(rng, 4, 2, 3, 3), np.float32([0.3125, 0.0625, -0.5625, 1.0625]), kernel_shape=[3, 3])
    return chain.quant(scales.reshape(1, 4, 1, 1), bits, **quantiser)


def depthwise(chain, rng, **attributes):
    scale = np.float32([0.25, 0.5, 0.125, 0.25]).reshape(4, 1, 1, 1)
    weight = chain.quant_weight(rng.integers(-7, 8, (4, 1, 3, 3)) * scale, scale, 4)
    return chain.node("Conv", weight, group=4, kernel_shape=[3, 3], **attributes)


def summed(chain, rng, shape=(3, 4, 2, 2), low=-7):
    scale = np.float32([0.25, 0.5, 0.125, 1])[: shape[0]].reshape(-1, *[1] * (len(shape) - 1))
    weight = chain.quant_weight(rng.integers(low, 8, shape) * scale, scale, 4)
    if len(shape) == 2:
        return chain.node("Gemm", weight, transB=1)
    return chain.node("Conv", weight, kernel_shape=shape[2:])


def ended(chain, rng):
    return summed(chain.quant(0.5, 4), rng)


READERS = {
    "a depthwise convolution": lambda rng: ended(depthwise(begun(rng), rng), rng),
    "padding, and no sign": lambda rng: ended(
        depthwise(begun(rng, signed=0).node("Relu"), rng, pads=[1, 1, 1, 1]), rng
    ),
    "a maximum between": lambda rng: ended(depthwise(begun(rng).node("MaxPool", kernel_shape=[2, 1]), rng), rng),
    "what is added and multiplied": lambda rng: ended(
        depthwise(
            begun(rng)
            .node("Mul", np.float32([1, -2, 1.5, 0.5]).reshape(4, 1, 1))
            .node("Add", np.float32([0.26, 0.49, -1.02, 0.03]).reshape(4, 1, 1)),
            rng,
        ),
        rng,
    ),
    "another quantiser": lambda rng: summed(begun(rng).quant(0.75, 3), rng),
    "another one with scales": lambda rng: ended(
        depthwise(begun(rng).quant(SCALES[::-1].reshape(4, 1, 1), 3), rng), rng
    ),
    "a mean that is quantised": lambda rng: summed(
        begun(rng).node("AveragePool", kernel_shape=[2, 3]).quant(0.31, 4), rng, (3, 4, 1, 1)
    ),
    "sums of doubled ones": lambda rng: ended(
        depthwise(summed(begun(rng, DOUBLED), rng, (4, 4, 2, 2)).quant(0.5, 4), rng), rng
    ),
    "sums of multiples of a sixteenth": lambda rng: summed(begun(rng), rng),
    "sums of doubled ones, as weights of 10 bits": lambda rng: summed(begun(rng, DOUBLED * [1, 16, 1, 1]), rng),
    "a dense layer of doubled ones": lambda rng: summed(begun(rng, DOUBLED).node("Flatten"), rng, (3, 120)),
    "a mean and a dense layer of doubled ones": lambda rng: summed(
        begun(rng, DOUBLED).node("GlobalAveragePool").node("Flatten"), rng, (3, 4)
    ),
    "the host": lambda rng: begun(rng),
    "the host, behind a maximum": lambda rng: begun(rng).node("MaxPool", kernel_shape=[2, 2]),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", READERS)
def test_readers(name):
    imported = check(READERS[name](np.random.default_rng(7)), by_qonnx, engine="integer", near=1e-6)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


def test_weights_of_a_depthwise_convolution_stay_as_they_are():
    rng = np.random.default_rng(7)
    imported = import_chain(ended(depthwise(begun(rng, ANY), rng), rng))
    section = imported.graph.sections[1]
    assert np.abs(section.weight).max() == 7
    assert [float(scale) for scale in section.scale] == pytest.approx(ANY / ANY[0] * [0.25, 0.5, 0.125, 0.25])


@pytest.mark.parametrize("axis", [1, -3])
@pytest.mark.parametrize("clip", [False, True], ids=["", "with a clip between, as Brevitas writes few bits"])
def test_scales_of_quantize_linear(axis, clip):
    rng = np.random.default_rng(8)
    chain = Chain((2, 8, 7))
    one = np.float32(0.1), chain.constant(0, np.int8)
    chain.node("QuantizeLinear", *one).node("DequantizeLinear", *one)
    weight = chain.constant(rng.integers(-9, 9, (4, 2, 3, 3)), np.int8)
    chain.node("Conv", chain.weight("DequantizeLinear", weight, *one))
    each = ANY * np.float32(1.03), chain.constant(np.zeros(4), np.int8)
    chain.node("QuantizeLinear", *each, axis=axis)
    if clip:
        chain.node("Clip", chain.constant(-8, np.int8), chain.constant(7, np.int8))
    chain.node("DequantizeLinear", *each, axis=axis)
    weight = chain.constant(rng.integers(-99, 99, (4, 1, 3, 3)), np.int8)
    chain.node("Conv", chain.weight("DequantizeLinear", weight, *one), group=4)
    imported = check(chain, by_onnxruntime)
    bits = ["signed 5 bit (-16..15)", "signed 8 bit (-128..127)"]
    assert [built.weights for built in imported.emitted.built] == bits


def quantised(chain, scales, **attributes):
    """QuantizeLinear and its inverse."""
    pair = np.float32(scales), chain.constant(np.zeros(np.shape(scales)), np.int8)
    return chain.node("QuantizeLinear", *pair, **attributes).node("DequantizeLinear", *pair, **attributes)


def places_first(rng, scales, axis, channels_first):
    """A map whose places stand where images do, as many as channels, with scales along an axis."""
    chain = quantised(Chain((2, 4, 4)), 0.11)
    one = np.float32(0.1), chain.constant(0, np.int8)
    weight = chain.constant(rng.integers(-9, 9, (4, 2, 3, 3)), np.int8)
    chain.node("Conv", chain.weight("DequantizeLinear", weight, *one))
    chain.node("Transpose", perm=[1, 0, 2, 3] if channels_first else [0, 2, 3, 1]).node("Reshape", np.int64([4, 4]))
    quantised(chain, scales, **({} if axis is None else {"axis": axis}))
    if channels_first:
        chain.node("Transpose", perm=[1, 0])
    weight = chain.constant(rng.integers(-9, 9, (4, 3)), np.int8)
    return chain.node("MatMul", chain.weight("DequantizeLinear", weight, *one))


@pytest.mark.parametrize(("axis", "channels_first"), [(None, False), (1, False), (-1, False), (0, True), (-2, True)])
def test_scales_where_places_come_first(axis, channels_first):
    """The axis is counted without one of images."""
    chain = places_first(np.random.default_rng(8), DOUBLED * np.float32(0.83), axis, channels_first)
    imported = import_chain(chain)
    verify(imported, 4)
    images = real_inputs(imported, sample_inputs(imported, 12, seed=3))
    got = outputs(imported, images)
    wanted = np.concatenate([by_onnxruntime(chain, image[None]).reshape(1, -1) for image in images])
    np.testing.assert_allclose(got, wanted, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("is_joined", [False, True])
def test_channels_in_another_order(is_joined):
    """Channels that are shuffled in front of a second quantiser: its scales are put in golden's order once."""
    rng = np.random.default_rng(3)
    chain = Chain((2, 6, 5)).quant(0.25, 3)
    source = chain.here
    chain.node("Conv", ternary(rng, 3, 2, 3, 3)).quant(0.25, 5)
    if is_joined:
        first, chain.here = chain.here, source
        chain.node("Conv", ternary(rng, 3, 2, 3, 3)).quant(0.25, 5).node("Concat", first, axis=1)
    else:
        chain.node("Conv", ternary(rng, 6, 3, 1, 1)).quant(0.25, 5)
    chain.node("Reshape", np.int64([0, 2, 3, 4, 3])).node("Transpose", perm=[0, 2, 1, 3, 4])
    chain.node("Reshape", np.int64([0, 6, 4, 3]))
    chain.quant(np.float32([0.27, 0.54, 1.08, 2.16, 0.54, 0.27]).reshape(6, 1, 1), 3)
    check(summed(chain.node("Flatten"), rng, (3, 72)), by_qonnx, near=1e-6)


def test_what_a_check_allows_behind_scales_of_channels():
    """A requantisation that is a level off: also where the line of the scales is what it begins with."""
    rng = np.random.default_rng(10)
    scales = np.float32(rng.uniform(0.1, 0.4, (4, 1, 1)))
    chain = begun(rng, scales, 8, zero=float(rng.integers(-90, 90)))
    chain.node("Mul", np.float32(rng.uniform(0.4, 2, (4, 1, 1))))
    chain.quant(np.float32(rng.uniform(0.05, 2)), int(rng.integers(2, 8)), rounding="UP")
    imported = import_chain(summed(chain, rng), engine="integer")
    assert imported.emitted.built[1].wrong[1] == 1
    assert sum(checked.ties for checked in verify(imported, 12) if checked.name == imported.emitted.built[1].layers[-1])


REFUSED = {
    "sums": (
        lambda rng: summed(begun(rng, ANY), rng),
        "Conv_4 (Conv): scales of channels that weights add up must be small multiples of one number, got some "
        "93,952,408 times as large; give all channels of the map one scale",
    ),
    "along two axes": (
        lambda rng: begun(rng).quant(np.float32([[0.5, 0.25]] * 5 + [[1, 2]]), 4),
        "Quant_3 (Quant): a map's scale must be one number, or one a channel, got shape (6, 2)",
    ),
    "of images": (
        lambda rng: begun(rng).quant(np.float32([0.5, 0.25]).reshape(2, 1, 1, 1), 4),
        "Quant_3 (Quant): a map's scale must be one number, or one a channel, got shape (2, 1, 1, 1)",
    ),
    "of rows": (
        lambda rng: summed(begun(rng).quant(np.float32([0.5, 0.25, 1, 1, 1, 1]).reshape(6, 1), 4), rng),
        "Quant_3 (Quant): thresholds must be the same at all places of a channel",
    ),
    "a zero point of each channel": (
        lambda rng: begun(rng).node("DequantizeLinear", np.float32(1), np.float32([0, 1, 0, 0])),
        "DequantizeLinear_3 (DequantizeLinear): a map's zero point must be one number, got one a channel",
    ),
    "scales of places that come first": (
        lambda rng: places_first(rng, DOUBLED, 1, channels_first=True),
        "QuantizeLinear_6 (QuantizeLinear): thresholds must be the same at all places of a channel",
    ),
    "scales of another number of channels": (
        lambda rng: begun(rng).node("DequantizeLinear", np.float32([1, 2])),
        "DequantizeLinear_3 (DequantizeLinear): scales must be one, or one for each of axis 1 of (1, 4, 6, 5), got "
        "(2,)",
    ),
    "several readers": (
        lambda rng: joined(begun(rng)),
        "Relu_3 (Relu): a map that several operators read, or that is joined, must have one scale > 0",
    ),
}


def joined(chain):
    """A sum of a map and of what is made of it."""
    before = chain.here
    return chain.node("Relu").node("Add", before).quant(1, 4)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    make, line = REFUSED[name]
    with refusal(line):
        import_chain(make(np.random.default_rng(7)))


def mobilenet(rng):
    """The beginning of Brevitas' MobileNet-v1, with fewer channels: scales of each channel in front of depthwise
    convolutions, one in front of others."""
    chain = Chain((3, 12, 10)).quant(np.float32(1 / 255), 8, signed=0)
    channels = 3
    for kernels, kernel, group, stride in ((8, 3, 1, 2), (8, 3, 8, 1), (12, 1, 1, 1), (12, 3, 12, 2), (8, 1, 1, 1)):
        scale = rng.uniform(0.1, 0.2, (kernels, 1, 1, 1)).astype(np.float32)
        weight = chain.quant_weight(rng.normal(0, 0.6, (kernels, channels // group, kernel, kernel)), scale, 4)
        chain.node("Conv", weight, group=group, strides=[stride, stride], pads=[kernel // 2] * 4)
        chain.batch_norm(rng, kernels).node("Relu")
        chain.quant(0.1 if group > 1 else rng.uniform(0.05, 0.2, (1, kernels, 1, 1)), 4, signed=0)
        channels = kernels
    return chain.node("GlobalAveragePool").quant(0.1, 4, signed=0).node("Flatten")


def test_a_mobilenet():
    imported = check(mobilenet(np.random.default_rng(9)), by_qonnx)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}

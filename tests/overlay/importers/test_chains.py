"""Imported chains equal what others compute: QONNX's execution, onnxruntime, and ONNX's reference."""

import numpy as np
import pytest

from .against import by_onnxruntime, by_qonnx, check
from .onnx_files import QONNX, Chain


def bipolar_cnn(rng, padding=0, levels=1):
    chain = Chain((2, 9, 8))
    chain.quant(0.25, 8)
    for number, (inputs, outputs_) in enumerate(((2, 12), (12, 16))):
        weight = chain.weight("BipolarQuant", rng.normal(size=(outputs_, inputs, 3, 3)), 0.125, domain=QONNX)
        chain.node("Conv", weight, kernel_shape=[3, 3], pads=[padding] * 4)
        chain.batch_norm(rng, outputs_)
        if levels == 1:
            chain.node("BipolarQuant", 1.0, domain=QONNX)
        else:
            chain.quant(0.5, 2, narrow=1)
        if number == 0:
            chain.node("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    size = 16 * ((7 + 2 * padding) // 2 + 2 * padding - 2) * ((6 + 2 * padding) // 2 + 2 * padding - 2)
    weight = chain.weight("BipolarQuant", rng.normal(size=(5, size)), 1.0, domain=QONNX)
    return chain.node("Flatten", axis=1).node("Gemm", weight, rng.normal(size=5), transB=1)


@pytest.mark.parametrize(("padding", "levels"), [(0, 1), (1, 1), (1, 2)])
def test_binary_convolutions(padding, levels):
    made = check(bipolar_cnn(np.random.default_rng(1), padding, levels), by_qonnx)
    assert set(made.choice.engines) == {"binary"}
    assert not made.host.keeps_order  # the last layer's bias is the host's


@pytest.mark.sample(4)
@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("padding", [0, 1])
def test_few_bits(bits, padding):
    rng = np.random.default_rng(bits)
    chain = Chain((3, 7, 6)).quant(1 / 16, 8)
    weight = chain.quant_weight(rng.normal(size=(8, 3, 3, 3)), np.float32(0.37) ** bits, bits)
    chain.node("Conv", weight, kernel_shape=[3, 3], pads=[padding] * 4).batch_norm(rng, 8).node("Relu")
    chain.quant(np.float32(0.1), bits, signed=0)
    weight = chain.quant_weight(rng.normal(size=(6, 8, 3, 3)), np.float32(0.21), bits)
    chain.node("Conv", weight, kernel_shape=[3, 3], pads=[padding] * 4).batch_norm(rng, 6).node("Relu")
    chain.quant(np.float32(0.3), bits, signed=0).node("GlobalAveragePool").node("Flatten", axis=1)
    weight = chain.quant_weight(rng.normal(size=(4, 6)), np.float32(0.31), bits)
    chain.node("Gemm", weight, rng.normal(size=4), transB=1)
    made = check(chain, by_qonnx)
    assert [built.wrong for built in made.emitted.built] == [(0, 0)] * 3


def dequantised(chain, scale, zero, dtype):
    zero = chain.constant(zero, dtype)
    return chain.node("QuantizeLinear", scale, zero).node("DequantizeLinear", scale, zero)


@pytest.mark.parametrize(
    ("dtype", "zeros"), [(np.uint8, (128, 0, 0)), (np.int8, (0, -128, -128)), (np.uint8, (120, 37, 90))]
)
def test_quantize_linear(dtype, zeros):
    rng = np.random.default_rng(7)
    chain = dequantised(Chain((3, 8, 8)), np.float32(0.05), zeros[0], dtype)
    for outputs_, inputs, zero in ((8, 3, zeros[1]), (6, 8, zeros[2])):
        weight = chain.constant(rng.integers(-127, 128, (outputs_, inputs, 3, 3)), np.int8)
        scales = rng.uniform(0.002, 0.004, outputs_).astype(np.float32)
        zeros_of_weights = chain.constant(np.zeros(outputs_), np.int8)
        weight = chain.weight("DequantizeLinear", weight, chain.constant(scales), zeros_of_weights, axis=0)
        chain.node("Conv", weight, rng.normal(size=outputs_), kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
        if zero in (0, -128):
            chain.node("Relu")
        dequantised(chain, np.float32(0.031), zero, dtype)
    weight = chain.constant(rng.integers(-127, 128, (24, 4)), np.int8)
    weight = chain.weight("DequantizeLinear", weight, np.float32(0.004), chain.constant(0, np.int8))
    chain.node("Reshape", chain.constant([0, -1], np.int64)).node("MatMul", weight)
    made = check(chain, by_onnxruntime, near=2e-2)
    assert [built.wrong for built in made.emitted.built] == [(0, 0)] * 3

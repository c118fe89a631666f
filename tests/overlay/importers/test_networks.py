"""Networks of known shapes in QONNX's form, with random weights, beside qonnx."""

from itertools import pairwise

import numpy as np
import pytest

from .against import by_qonnx, check
from .onnx_files import QONNX, Chain


class Brevitas(Chain):
    """A chain as Brevitas exports it: weights and activations of some bits, batch normalisation between them."""

    def weights(self, rng, bits, *shape):
        values = rng.normal(size=shape)
        if bits == 1:
            return self.weight("BipolarQuant", values, np.float32(0.1), domain=QONNX)
        return self.quant_weight(values, np.float32(0.5), bits)

    def act(self, rng, bits, channels):
        self.batch_norm(rng, channels)
        if bits == 1:
            return self.node("BipolarQuant", np.float32(1), domain=QONNX)
        return self.node("Relu").quant(np.float32(0.5), bits, signed=0)


def vgg(rng, weight_bits, bits):
    """Convolutions with zero padding, pools of maxima, a mean of the map."""
    chain = Brevitas((3, 8, 8)).quant(1 / 128, 8)
    inputs = 3
    for outputs, pooled in ((6, False), (6, True), (8, True)):
        weights = chain.weights(rng, weight_bits, outputs, inputs, 3, 3)
        chain.node("Conv", weights, kernel_shape=[3, 3], pads=[1, 1, 1, 1]).act(rng, bits, outputs)
        if pooled:
            chain.node("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
        inputs = outputs
    chain.node("AveragePool", kernel_shape=[2, 2]).node("Flatten")
    return chain.node("Gemm", chain.weights(rng, weight_bits, 5, inputs), rng.normal(size=5), transB=1)


def cnv(rng, weight_bits, bits):
    """CNV of BNN-PYNQ."""
    chain = Brevitas((3, 32, 32)).quant(1 / 128, 8)
    inputs = 3
    for place, outputs in enumerate((64, 64, 128, 128, 256, 256)):
        weights = chain.weights(rng, weight_bits, outputs, inputs, 3, 3)
        chain.node("Conv", weights, kernel_shape=[3, 3]).act(rng, bits, outputs)
        if place in (1, 3):
            chain.node("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
        inputs = outputs
    chain.node("Flatten")
    return dense(chain, rng, weight_bits, bits, (256, 512, 512, 10))


def mlp(rng, width, weight_bits, bits):
    """TFC, SFC and LFC of BNN-PYNQ are of width 64, 256 and 1024."""
    chain = Brevitas((1, 28, 28)).quant(1.0, 1).node("Flatten")
    return dense(chain, rng, weight_bits, bits, (784, width, width, width, 10))


def dense(chain, rng, weight_bits, bits, sizes):
    for place, (inputs, outputs) in enumerate(pairwise(sizes)):
        chain.node("Gemm", chain.weights(rng, weight_bits, outputs, inputs), transB=1)
        if place < len(sizes) - 2:
            chain.act(rng, bits, outputs)
    return chain


@pytest.mark.sample(2)
@pytest.mark.parametrize(("weight_bits", "bits"), [(1, 2), (2, 2), (3, 3), (4, 4), (8, 8)])
def test_small_vgg(weight_bits, bits):
    imported = check(vgg(np.random.default_rng(1), weight_bits, bits), by_qonnx, images=6)
    assert [built.wrong for built in imported.emitted.built] == [(0, 0)] * 4


@pytest.mark.parametrize(("width", "weight_bits", "bits"), [(64, 1, 1), (256, 1, 2)])
def test_dense_networks(width, weight_bits, bits):
    check(mlp(np.random.default_rng(2), width, weight_bits, bits), by_qonnx, images=4)


@pytest.mark.slow
@pytest.mark.parametrize(("weight_bits", "bits"), [(1, 1), (1, 2), (2, 2)])
def test_cnv(weight_bits, bits):
    imported = check(cnv(np.random.default_rng(3), weight_bits, bits), by_qonnx, images=2)
    assert set(imported.choice.engines) == {"binary"}

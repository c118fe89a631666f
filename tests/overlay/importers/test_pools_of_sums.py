"""Means of sums, which what follows divides, and pools of the input: equal to qonnx, bit for bit, or refused."""

import numpy as np
import pytest

from bitloom.golden.layers.pool import AvgPool, MaxPool, SumPool
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.workloads import engines_of
from tests.errors import refusal

from .against import by_qonnx, check, import_chain
from .onnx_files import QONNX, Chain
from .test_operators import begun, ended, size_of, ternary

EACH = np.float32([0.5, -0.25, 2, 1]).reshape(1, 4, 1, 1)
MEANS = {
    "AveragePool": (lambda c: c.node("AveragePool", kernel_shape=[2, 3], strides=[2, 1]), 16),
    "overlapping": (lambda c: c.node("AveragePool", kernel_shape=[3, 2], strides=[1, 2]), 16),
    "GlobalAveragePool": (lambda c: c.node("GlobalAveragePool"), 4),
    "bias before": (lambda c: c.node("Add", EACH).node("AveragePool", kernel_shape=[2, 2], strides=[2, 2]), 16),
    "negative scales": (
        lambda c: c.node("Mul", -EACH).node("AveragePool", kernel_shape=[2, 1], strides=[2, 1]).node("Add", EACH),
        32,
    ),
    "max pool behind": (
        lambda c: c.node("AveragePool", kernel_shape=[2, 1], strides=[1, 1]).node(
            "MaxPool", kernel_shape=[1, 2], strides=[1, 2]
        ),
        24,
    ),
}


def kinds(imported):
    return [layer.kind for layer in imported.model.network.layers]


def bipolar(chain):
    return chain.node("BipolarQuant", np.float32(1), domain=QONNX)


@pytest.mark.sample(6)
@pytest.mark.parametrize("engine", ["binary", "integer"])
@pytest.mark.parametrize("name", MEANS)
def test_means_of_sums(name, engine):
    rng = np.random.default_rng(3)
    chain = MEANS[name][0](begun(rng))
    size = MEANS[name][1]
    imported = check(ended(chain, rng, size, step=0.125), by_qonnx, engine=engine, near=1e-6)
    assert set(imported.choice.engines) == {engine}
    assert kinds(imported)[:2] == ["conv", "sum_pool"]


def test_a_mean_of_sums_in_front_of_a_sign():
    """As in binary networks: one threshold a channel, which has the division in it."""
    rng = np.random.default_rng(4)
    chain = begun(rng, pads=[1, 0, 1, 1]).batch_norm(rng, 4)
    chain = bipolar(chain.node("AveragePool", kernel_shape=[2, 2], strides=[2, 2])).node("Flatten", axis=1)
    imported = check(chain.node("Gemm", ternary(rng, 5, 24), transB=1), by_qonnx, engine="binary", near=1e-6)
    assert kinds(imported) == ["conv", "sum_pool", "threshold", "dense"]
    assert [p.levels for p in lower_alone(imported.model).layers] == [1, 1]


def test_a_mean_of_the_last_sums():
    rng = np.random.default_rng(4)
    imported = check(begun(rng).node("GlobalAveragePool").node("Flatten", axis=1), by_qonnx, near=1e-6)
    assert kinds(imported) == ["conv", "sum_pool"]


FIRST = {
    "max pool": (lambda c: c.quant(0.25, 3).node("MaxPool", kernel_shape=[2, 3], pads=[1, 0, 0, 1]), ["max_pool"]),
    "max pool before the quantiser": (
        lambda c: c.node("MaxPool", kernel_shape=[2, 2], strides=[2, 1]).node("Mul", np.float32(0.5)).quant(0.25, 3),
        ["max_pool"],
    ),
    "two": (
        lambda c: c.quant(0.25, 3).node("MaxPool", kernel_shape=[2, 1]).node("MaxPool", kernel_shape=[1, 2]),
        ["max_pool", "max_pool"],
    ),
    "rounded mean": (
        lambda c: c.quant(0.25, 3).node("AveragePool", kernel_shape=[3, 1]).quant(0.25, 3, rounding="HALF_UP"),
        ["avg_pool"],
    ),
}


@pytest.mark.parametrize("name", FIRST)
def test_pools_of_integers_that_come_first(name):
    rng = np.random.default_rng(6)
    chain = FIRST[name][0](Chain((2, 6, 6)))
    chain = chain.node("Conv", ternary(rng, 4, 2, 3, 3)).quant(0.5, 4).node("Flatten", axis=1)
    imported = check(chain.node("Gemm", ternary(rng, 5, size_of(chain)), transB=1), by_qonnx, near=1e-6)
    assert kinds(imported)[: len(FIRST[name][1])] == FIRST[name][1]
    assert imported.choice.engines[0] == "integer"
    assert isinstance(imported.model.network.layers[0], MaxPool | AvgPool)


def test_a_max_pool_of_bits_comes_first():
    rng = np.random.default_rng(7)
    chain = bipolar(Chain((3, 6, 6))).node("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    signs = np.where(ternary(rng, 4, 3, 2, 2) < 0, -1, 1).astype(np.float32)
    chain = bipolar(chain.node("Conv", signs)).node("Flatten", axis=1)
    imported = check(chain.node("Gemm", np.sign(ternary(rng, 5, 16) - np.float32(0.5)), transB=1), by_qonnx, near=1e-6)
    assert set(imported.choice.engines) == {"binary"}
    assert "costs less" in imported.choice.why
    assert kinds(imported) == ["max_pool", "conv", "threshold", "dense"]
    assert engines_of(imported.model.network) == ["binary"] * 3
    assert [p.name for p in lower_alone(imported.model).layers] == ["pool_0_copy", "conv_1", "dense_2"]


def test_a_mean_of_the_input_in_front_of_a_sign():
    """It is a convolution with weights of 0 and 1, as other means of quantised values are."""
    rng = np.random.default_rng(8)
    chain = bipolar(Chain((3, 6, 6)).quant(0.25, 4).node("AveragePool", kernel_shape=[2, 2], strides=[2, 2]))
    chain = bipolar(chain.node("Conv", ternary(rng, 4, 3, 2, 2))).node("Flatten", axis=1)
    imported = check(chain.node("Gemm", ternary(rng, 5, 16), transB=1), by_qonnx, engine="binary", near=1e-6)
    assert SumPool not in {type(layer) for layer in imported.model.network.layers}


PADDED = dict(kernel_shape=[2, 2], strides=[1, 1], pads=[1, 0, 0, 0], count_include_pad=0)


@pytest.mark.parametrize(
    ("chain", "line"),
    [
        (
            lambda: begun(np.random.default_rng(0)).node("AveragePool", **PADDED),
            "AveragePool_2 (AveragePool): a mean of sums must have 4 values in every window, got 2 in some; quantise "
            "before it",
        ),
        (
            lambda: begun(np.random.default_rng(0)).node("MaxPool", kernel_shape=[2, 2]).node("GlobalAveragePool"),
            "GlobalAveragePool_3 (GlobalAveragePool): a mean of sums must come before a max pool; quantise before it",
        ),
        (
            lambda: Chain((2, 6, 6)).quant(0.25, 3).node("MaxPool", kernel_shape=[2, 2]),
            "chain: a convolution or a matrix product must come first, got none",
        ),
    ],
)
def test_what_is_refused(chain, line):
    with refusal(line):
        import_chain(chain())


@pytest.mark.parametrize("first", [False, True])
def test_a_rounded_mean_that_is_quantised_again(first):
    """The mean has the first quantiser's values, then come fewer: a copy of each channel lies between both."""
    rng = np.random.default_rng(1)
    chain = Chain((2, 6, 6)).quant(0.25, 3)
    if not first:
        chain = chain.node("Conv", ternary(rng, 4, 2, 3, 3)).quant(0.25, 3)
    chain.node("AveragePool", kernel_shape=[2, 2]).quant(0.25, 3, rounding="HALF_UP").quant(0.5, 2)
    if first:
        chain = chain.node("Conv", ternary(rng, 4, 2, 3, 3)).quant(0.25, 3)
    chain = chain.node("Flatten", axis=1)
    imported = check(chain.node("Gemm", ternary(rng, 5, 36), transB=1), by_qonnx, near=1e-6)
    assert "avg_pool" in kinds(imported)
    assert kinds(imported)[kinds(imported).index("avg_pool") + 1 :][:2] == ["depthwise_conv", "requantise"]


def test_a_rounded_mean_that_is_cut_and_quantised_again():
    """A copy of every channel lies between both quantisers."""
    rng = np.random.default_rng(1)
    chain = Chain((2, 6, 6)).quant(0.25, 3).node("Conv", ternary(rng, 4, 2, 3, 3)).quant(0.25, 3)
    chain.node("AveragePool", kernel_shape=[2, 2]).quant(0.25, 3, rounding="HALF_UP").node("Relu").quant(0.5, 2)
    imported = check(chain.node("Flatten", axis=1).node("Gemm", ternary(rng, 5, 36), transB=1), by_qonnx, near=1e-6)
    assert kinds(imported)[kinds(imported).index("avg_pool") + 1 :][:2] == ["depthwise_conv", "requantise"]

"""ONNX's integers of 2 and 4 bits, beside onnxruntime: features, weights a channel, and what reads them."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from .against import check, import_chain
from .onnx_files import Chain

TYPES = {"int4": (21, -8, 7), "uint4": (21, 0, 15), "int2": (25, -2, 1), "uint2": (25, 0, 3)}
"""Type -> the version of ONNX's operators that has it, and its ends."""


def by_onnxruntime(chain, images):
    """Without optimising: it fuses convolutions of these types into ones of 8 bits, and refuses or falsifies them."""
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(chain.bytes(), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": images.astype(np.float32)})[0].astype(np.float64).reshape(len(images), -1)


def element(kind):
    """The number of a type, where the installed onnx can compute with it."""
    number = getattr(TensorProto, kind.upper(), 0)
    if not number or helper.tensor_dtype_to_np_dtype(number).name != kind:
        pytest.skip(f"onnx {onnx.__version__} has no numbers of type {kind}")
    return number


def typed(chain, kind, values):
    """A constant of a type, its bits packed as ONNX has them."""
    name = f"c{len(chain.constants)}"
    values = np.asarray(values)
    number = element(kind)
    chain.constants.append(helper.make_tensor(name, number, values.shape, values.ravel().tolist()))
    return name


def quantised(chain, kind, scale, zero):
    zero = typed(chain, kind, zero)
    return chain.node("QuantizeLinear", np.float32(scale), zero).node("DequantizeLinear", np.float32(scale), zero)


def network(kind, weight_kind="", dtype=""):
    """A padded convolution and a dense layer, of powers of two, so that float32 is exact."""
    version, low, high = TYPES[kind]
    rng = np.random.default_rng(4)
    zero = low + (high - low) // 2
    chain = quantised(Chain((2, 5, 4), opset=version), kind, 0.5, zero)
    _, first, last = TYPES[weight_kind or kind]
    integers = rng.integers(first, last + 1, (4, 2, 3, 3))
    zeros = typed(chain, weight_kind or kind, [0] * 4)
    scales = np.float32([0.5, 0.25, 1, 0.125])
    weight = typed(chain, weight_kind or kind, integers)
    weight = chain.weight("DequantizeLinear", weight, scales, zeros, axis=0)
    chain.node("Conv", weight, np.float32([0.3, -0.4, 1.7, 0.6]), pads=[1, 1, 1, 1]).node("Relu")
    quantised(chain, kind, 2.0, zero)
    chain.node("Flatten")
    values = rng.normal(size=(80, 5))
    step = np.float32(0.25)
    if dtype:  # quantised in the file, without a zero point
        weight = chain.weight("QuantizeLinear", values, step, output_dtype=element(dtype))
        weight = chain.weight("DequantizeLinear", weight, step)
    else:
        zero = typed(chain, kind, 0)
        weight = chain.weight("DequantizeLinear", typed(chain, kind, rng.integers(low, high + 1, (80, 5))), step, zero)
    return chain.node("MatMul", weight)


@pytest.mark.parametrize("kind", TYPES)
def test_narrow_types(kind):
    imported = check(network(kind), by_onnxruntime, images=6, near=0)
    assert [built.levels for built in imported.emitted.built] == [TYPES[kind][2] - TYPES[kind][1], 0]
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_weights_that_are_quantised_without_a_zero_point(dtype):
    """Their type is output_dtype's; without it it would be uint8, and no weight below 0."""
    imported = check(network("int4", dtype=dtype), by_onnxruntime, images=6, near=0)
    assert imported.choice.weights[1].values.min() < 0


def test_a_cast_that_keeps_them():
    """A wider type of integers holds all of a narrow one's."""
    chain = Chain((6,), opset=21)
    zero = typed(chain, "int4", 0)
    chain.node("QuantizeLinear", np.float32(0.5), zero).node("Cast", to=TensorProto.INT8).node("Cast", to=1)
    chain.node("MatMul", np.random.default_rng(0).integers(-3, 4, (6, 5)).astype(np.float32))
    check(chain, by_onnxruntime, near=0)


def test_input_of_narrow_integers_is_refused():
    chain = Chain((6,), opset=21, dtype=element("int4")).node("DequantizeLinear", np.float32(0.5))
    with pytest.raises(ValueError, match=r"^input x: must be a tensor of numbers, got int4$"):
        import_chain(chain)


def test_an_onnx_that_holds_narrow_integers_in_wider_types(monkeypatch):
    """As onnx 1.18 and older do, which can't compute with them."""
    chains = [Chain((6,), opset=21, dtype=TensorProto.INT4).node("DequantizeLinear", np.float32(0.5)), Chain((6,))]
    constant = helper.make_tensor("c", TensorProto.INT4, (1,), [0])
    chains[1].constants.append(constant)
    chains[1].node("QuantizeLinear", np.float32(0.5), "c")
    of = helper.tensor_dtype_to_np_dtype
    monkeypatch.setattr(
        helper,
        "tensor_dtype_to_np_dtype",
        lambda number: of(TensorProto.INT8 if number == TensorProto.INT4 else number),
    )
    for chain, what in zip(chains, ("input x", "constant c"), strict=True):
        with pytest.raises(ValueError, match=rf"^{what}: type int4 needs the package onnx 1.19 or later, got [0-9.]+$"):
            import_chain(chain)

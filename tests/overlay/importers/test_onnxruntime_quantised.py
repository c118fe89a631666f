"""Files that onnxruntime's quantiser makes of a small network that reads digits: imported, beside onnxruntime."""

import logging
from functools import cache
from itertools import product

import numpy as np
import pytest

from bitloom.golden.zoo.digits import load_digits
from bitloom.overlay.importers.imported import import_file
from bitloom.overlay.importers.verify import verify

from .against import outputs
from .onnx_files import Chain, TensorProto, numpy_helper, onnx

ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.fixture(autouse=True)
def _scikit_learn():
    """The images and the last layer come from scikit-learn, which takes long to import."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")


QUICK = {
    ("QDQ", "QUInt8", "tensor", "asymmetric", "prepared"),
    ("QDQ", "QInt8", "channel", "symmetric", "prepared"),
    ("QOperator", "QUInt8", "channel", "asymmetric", "prepared"),
    ("QOperator", "QInt8", "tensor", "symmetric", "prepared"),
    ("QDQ", "QUInt8", "tensor", "symmetric", "as it is"),
    ("QOperator", "QInt8", "channel", "asymmetric", "as it is"),
}
"""Together they have each choice in both formats; all others are of the slow tier."""
CHOICES = product(
    ("QDQ", "QOperator"),
    ("QUInt8", "QInt8"),  # activations; weights are QInt8
    ("tensor", "channel"),  # what has a scale of its own in the weights
    ("asymmetric", "symmetric"),  # activations
    ("prepared", "as it is"),  # quant_pre_process folds the batch normalisation into the convolution
)
CASES = [pytest.param(*choice, marks=() if choice in QUICK else pytest.mark.slow) for choice in CHOICES]


def pixels(images):
    return images.transpose(0, 3, 1, 2).astype(np.float32) / np.float32(16)


def run(file, images, *, fast=False, exact=False):
    """onnxruntime's output.

    fast : by its integer kernels, else node by node, in float32 behind each DequantizeLinear.
    exact : without instructions of 8 bits that saturate on some processors (it can't be had for signed activations).
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    if not fast:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(file, options, providers=["CPUExecutionProvider"]).run(None, {"x": images})[0]


@cache
def trained(pool="MaxPool"):
    """Two fixed convolutions, and a last layer by logistic regression on what they make: ONNX's bytes."""
    from sklearn import linear_model

    data = load_digits()
    rng = np.random.default_rng(0)
    images = pixels(data.train_images)
    chain = Chain((1, 8, 8))
    around = dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    chain.node("Conv", rng.normal(size=(8, 1, 3, 3)) / 3, rng.normal(size=8) / 4, **around).node("Relu")
    chain.node(pool, kernel_shape=[2, 2], strides=[2, 2])
    chain.node("Conv", rng.normal(size=(16, 8, 3, 3)) / 9, **around)
    sums = run(chain.bytes(), images)
    mean = sums.mean(axis=(0, 2, 3))
    variance = sums.var(axis=(0, 2, 3))
    chain.node("BatchNormalization", np.ones(16), np.full(16, 0.25), mean, variance).node("Relu").node("Flatten")
    regression = linear_model.LogisticRegression(C=0.1, tol=1e-3).fit(run(chain.bytes(), images), data.train_labels)
    return chain.node("Gemm", regression.coef_, regression.intercept_, transB=1).bytes()


def quantised(folder, form, kind, scales, zeros, prepared, pool="MaxPool"):
    """The file that onnxruntime's quantiser writes, calibrated with 200 of the training images."""
    quantization = pytest.importorskip("onnxruntime.quantization")
    images = pixels(load_digits().train_images)

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.batches = iter([images[:100], images[100:200]])

        def get_next(self):
            batch = next(self.batches, None)
            return None if batch is None else {"x": batch}

    source = folder / "float.onnx"
    target = folder / f"{form}.onnx"
    source.write_bytes(trained(pool))
    if prepared == "prepared":
        from onnxruntime.quantization.shape_inference import quant_pre_process

        quant_pre_process(str(source), str(folder / "prepared.onnx"), skip_symbolic_shape=True)
        source = folder / "prepared.onnx"
    kinds = {"activation_type": quantization.QuantType[kind], "weight_type": quantization.QuantType.QInt8}
    kinds |= {"per_channel": scales == "channel", "extra_options": {"ActivationSymmetric": zeros == "symmetric"}}
    form = quantization.QuantFormat[form]
    quantization.quantize_static(str(source), str(target), Reader(), quant_format=form, **kinds)
    return target


def output_step(path):
    """The scale of the last DequantizeLinear."""
    graph = onnx.load(path).graph
    (scale,) = [one for one in graph.initializer if one.name == graph.node[-1].input[1]]
    return float(numpy_helper.to_array(scale))


def in_float64(path, images):
    """The same nodes by ONNX's reference with all real numbers in float64; what float64 brings within 1e-9 of a half
    before a quantiser is that half, which goes to the even integer."""
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.op_run import OpRun

    class QuantizeLinear(OpRun):
        def _run(self, x, scale, zero, **_):
            steps = x / scale
            limits = np.iinfo(zero.dtype)
            half = np.rint(2 * steps) / 2
            steps = np.rint(np.where(np.abs(steps - half) < 1e-9, half, steps))
            return (np.clip(steps + zero, limits.min, limits.max).astype(zero.dtype),)

    class DequantizeLinear(OpRun):  # the reference's own goes through float32
        def _run(self, x, scale, zero, axis=1, **_):
            shape = [-1 if n == axis % x.ndim else 1 for n in range(x.ndim)] if np.size(scale) > 1 else ()
            return ((x.astype(np.float64) - np.reshape(zero, shape)) * np.reshape(scale, shape),)

    model = onnx.load(path)
    (version,) = [one for one in model.opset_import if not one.domain]
    version.version = 19  # the reference's first; these nodes are as they were
    for one in model.graph.initializer:
        if one.data_type == TensorProto.FLOAT:
            one.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(one).astype(np.float64), one.name))
    reference = ReferenceEvaluator(model, new_ops=[QuantizeLinear, DequantizeLinear])
    return reference.run(None, {"x": images.astype(np.float64)})[0]


def skip_where_it_saturates():
    """Some processors add two products of 8 bits in 16; onnxruntime's signed kernels then give other sums."""
    chain = Chain((64,), dtype=TensorProto.INT8, output_type=TensorProto.INT8)
    zero, weight = chain.constant(0, np.int8), chain.constant(np.full((64, 1), 127), np.int8)
    chain.node("QLinearMatMul", np.float32(1), zero, weight, np.float32(1), zero, np.float32(2**14), zero)
    if run(chain.bytes(), np.full((1, 64), 127, np.int8)).item() != 63:
        pytest.skip("onnxruntime's kernels for signed integers saturate on this processor")


def test_the_network_reads_digits():
    data = load_digits()
    right = (run(trained(), pixels(data.test_images)).argmax(axis=1) == data.test_labels).sum()
    print(f"float: {right} of 360 right")
    assert right > 0.95 * 360


@pytest.mark.sample(2)
@pytest.mark.parametrize(("form", "kind", "scales", "zeros", "prepared"), CASES)
def test_equals_onnxruntime(tmp_path, caplog, form, kind, scales, zeros, prepared):
    """Scores of all 360 test images are onnxruntime's, but for images with a value on a half before a quantiser.

    There float32 decides as its rounding has it, and what follows may move by a step or two. Such images are counted;
    in float64 the file has the scores of the import.
    """
    caplog.set_level(logging.ERROR)
    choice = (kind, scales, zeros, prepared)
    path = quantised(tmp_path, form, *choice)
    data = load_digits()
    imported = import_file(path)
    images = pixels(data.test_images)
    assert set(imported.choice.engines) == {"integer"}
    verify(imported, 4)
    if form == "QOperator" and kind == "QInt8":
        skip_where_it_saturates()
    wanted = run(str(path), images, fast=form == "QOperator", exact=form == "QOperator" and kind == "QUInt8")
    got = outputs(imported, images)
    step = output_step(path)
    steps = np.abs(got - wanted) / step
    tied = np.flatnonzero((steps > 0.01).any(axis=1))
    right = [int((scores.argmax(axis=1) == data.test_labels).sum()) for scores in (got, wanted)]
    apart = f"{(steps > 0.01).sum()} of 3,600 scores in {len(tied)} images apart, at most {steps.max():.2f} steps"
    print(f"{form} {' '.join(choice)}: {right[0]} right, onnxruntime {right[1]}; {apart}")
    assert len(np.unique(np.rint(wanted / step))) > 100
    assert len(tied) <= 4
    assert steps.max() < 2.01
    apart = np.flatnonzero(got.argmax(axis=1) != wanted.argmax(axis=1))
    assert np.isin(apart, tied).all()
    assert min(right) > 0.95 * 360
    if len(tied):  # both formats hold the same numbers; ONNX's reference knows the nodes of one
        exact = in_float64(quantised(tmp_path, "QDQ", *choice), images[tied])
        assert np.abs(got[tied] - exact).max() < 0.01 * step


@pytest.mark.slow
@pytest.mark.parametrize("zeros", ["asymmetric", pytest.param("symmetric", marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["QUInt8", pytest.param("QInt8", marks=pytest.mark.slow)])
def test_means_that_are_halves(tmp_path, caplog, kind, zeros):
    """One mean of four values in four is a half, which no precision decides: float32 decides by its rounding errors.

    The import rounds the exact mean to the even integer, and counts such values. So does the file in float64, where
    what is a half but for rounding errors is taken for one.
    """
    caplog.set_level(logging.ERROR)
    path = quantised(tmp_path, "QDQ", kind, "tensor", zeros, "as it is", "AveragePool")
    imported = import_file(path)
    data = load_digits()
    ties = {checked.name: (checked.ties, checked.values) for checked in verify(imported, 8)}
    images = pixels(data.test_images)
    step = output_step(path)
    got, wanted = outputs(imported, images), run(str(path), images)
    steps = np.abs(got - wanted) / step
    classes = int((got.argmax(axis=1) != wanted.argmax(axis=1)).sum())
    right = [int((scores.argmax(axis=1) == data.test_labels).sum()) for scores in (got, wanted)]
    tied, values = max(ties.values())
    apart = int((steps > 0.01).any(axis=1).sum())
    print(f"QDQ {kind} {zeros}: {apart} of 360 images apart, at most {steps.max():.0f} steps, {classes} classes")
    print(f"{right[0]} right, onnxruntime {right[1]}; {tied} of {values} means tied")
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    assert (0.05 if zeros == "asymmetric" else 0) <= tied / values < 0.3
    assert np.abs(got - in_float64(path, images)).max() < 0.01 * step
    assert min(right) >= 0.95 * 360

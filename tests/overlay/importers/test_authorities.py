"""Networks of others, and what others computed with them (`BITLOOM_DATA`)."""

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.kernels import packed
from bitloom.golden.reading.idx import read_idx
from bitloom.overlay.importers.imported import import_file, parse_input
from bitloom.overlay.importers.verify import verify
from tests.board_data import file as data

from .against import features

pytest.importorskip("onnx", reason="the extra import is not installed")


def scores(imported, images):
    return imported.host.scores(packed.forward(imported.model, features(imported, images)))


def test_tfc_on_mnist():
    """QONNX's model zoo states 92.96 % of the 10,000 test images."""
    imported = import_file(data("tfc_1w1a.onnx"))
    verify(imported, 4)
    images = read_idx(data("t10k-images-idx3-ubyte.gz"))[:, None] / np.float32(255)
    labels = read_idx(data("t10k-labels-idx1-ubyte.gz"))
    assert (scores(imported, images).argmax(axis=1) == labels).sum() == 9296


@pytest.mark.slow  # qonnx takes a minute for 1,000 images
def test_tfc_equals_qonnx():
    modelwrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx is not installed")
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.fold_constants import FoldConstants
    from qonnx.transformation.infer_shapes import InferShapes

    path = data("tfc_1w1a.onnx")
    images = (read_idx(data("t10k-images-idx3-ubyte.gz"))[:1000, None, None] / np.float32(255)).astype(np.float32)
    model = modelwrapper.ModelWrapper(str(path)).transform(InferShapes()).transform(FoldConstants())
    name, result = model.graph.input[0].name, model.graph.output[0].name
    wanted = np.concatenate([execute_onnx(model, {name: image})[result] for image in images])
    got = scores(import_file(path), images[:, 0])
    assert np.abs(got - wanted).max() < 1e-4
    assert (got.argmax(axis=1) == wanted.argmax(axis=1)).all()


def test_sfc_equals_pytorch():
    recorded = np.load(data("sfc_1w2a_untrained.io.npz"))
    got = scores(import_file(data("sfc_1w2a_untrained.onnx")), recorded["x"])
    assert np.abs(got - recorded["y"]).max() < 1e-5


def test_intrusion_detection():
    recorded = np.load(data("qonnx/unsw_nb15_w2a2.io.npz"))
    imported = import_file(data("qonnx/unsw_nb15-mlp-w2a2.onnx"), spec=parse_input("unsigned1"))
    verify(imported, 4)
    assert [built.wrong for built in imported.emitted.built] == [(0, 0)] * 4
    assert (scores(imported, recorded["x"]) == recorded["y"]).all()


def jets(bits):
    """The network whose input nobody quantised, fed with fixed-point numbers of -4 .. 4; what qonnx recorded."""
    recorded = np.load(data("qonnx/qkeras_jettagging.io.npz"))
    imported = import_file(data("qonnx/qkeras_jettagging.onnx"), spec=parse_input(f"signed{bits}:1/{1 << bits - 3}"))
    return imported, recorded["x"], recorded["y"]


def softmax(values):
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("bits", "worse"), [(12, 28), (16, 2), (20, 0)])
def test_jet_tagging(bits, worse):
    """Inputs are rounded to the bits that are asked for; from there on all is exact, halves to even included."""
    imported, x, wanted = jets(bits)
    verify(imported, 2)
    assert imported.model.network.input.encoding == signed(bits)
    assert [built.wrong for built in imported.emitted.built] == [(0, 0)] * 4
    assert imported.host.only.closing == ("Softmax",)
    shares = softmax(scores(imported, x))
    assert (shares.argmax(axis=1) == wanted.argmax(axis=1)).all()
    assert (np.abs(shares - wanted).max(axis=1) > 1e-3).sum() == worse

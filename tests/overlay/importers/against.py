"""Imported chains beside what others compute of the same file: QONNX's execution, onnxruntime, and ONNX's reference."""

import numpy as np
import pytest

from bitloom.overlay.importers.imported import import_graph, parse_input
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.importers.verify import real_inputs, sample_inputs, verify


def import_chain(chain, spec=None, engine="auto"):
    return import_graph(to_graph(chain.bytes()), spec=spec and parse_input(spec), engine=engine, name="chain")


def features(imported, images):
    """The integers of images of the file."""
    return imported.host.to_input(images, imported.model.network.input.shape)


def outputs(imported, images):
    dtype = imported.source.source.dtype
    images = images.astype(dtype) if dtype.kind in "iu" else images
    return imported.host.scores(imported.model.forward(features(imported, images)))


def by_qonnx(chain, images):
    """QONNX's own operators by qonnx, all others by onnxruntime, node by node."""
    modelwrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx is not installed")
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.infer_shapes import InferShapes

    model = chain.model()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = len(images)
    wrapped = modelwrapper.ModelWrapper(model).transform(InferShapes())
    return execute_onnx(wrapped, {"x": images.astype(np.float32)})[chain.here].reshape(len(images), -1)


def by_onnxruntime(chain, images):
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = ort.InferenceSession(chain.bytes(), providers=["CPUExecutionProvider"])
    feed = images.astype(session_type(session))
    return np.asarray(session.run(None, {"x": feed})[0], np.float64).reshape(len(images), -1)


def session_type(session):
    """The input's type of a session of onnxruntime."""
    types = {"tensor(float)": np.float32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8}
    return types[session.get_inputs()[0].type]


def by_reference(chain, images):
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(chain.model()).run(None, {"x": images.astype(np.float32)})[0].reshape(len(images), -1)


def by_images(other):
    """Another's result, an image at a time: for files whose number of images is 1."""
    return lambda chain, images: np.concatenate([other(chain, image[None]) for image in images])


def check(chain, other, spec=None, engine="auto", images=12, near=1e-4):
    """Compare scores on random and extreme images; near is relative to the largest one, 0 where floats are exact."""
    imported = import_chain(chain, spec, engine)
    verify(imported, 4)
    x = real_inputs(imported, sample_inputs(imported, images, seed=3))
    wanted = other(chain, x)
    got = outputs(imported, x)
    assert np.abs(got - wanted).max() <= near * max(1, np.abs(wanted).max())
    assert len(np.unique(wanted)) > 4  # else nothing was compared
    return imported

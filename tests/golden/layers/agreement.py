"""Models against others' results: each way in which golden computes them, and onnxruntime as the authority."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model


def by_onnxruntime(*nodes: tuple[Any, ...], **inputs: np.ndarray) -> np.ndarray:
    """Array y, of ONNX nodes (operator, inputs, outputs, attributes) that read arrays by name."""
    helper = pytest.importorskip("onnx").helper
    onnxruntime = pytest.importorskip("onnxruntime")
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    ends = [helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items()]
    result = helper.make_tensor_value_info("y", kinds[next(iter(kinds))], None)
    made = [helper.make_node(kind, *names, **attributes) for kind, *names, attributes in nodes]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(made, "g", ends, [result]), opset_imports=opsets, ir_version=8)
    (y,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)
    return y


def check_model(model: Model, x: np.ndarray, wanted: np.ndarray, folder: Path) -> None:
    """The model gives what is wanted, and so do packed layers and the model that is read from its file."""
    np.testing.assert_array_equal(model.forward(x), wanted)
    np.testing.assert_array_equal(packed.forward(model, x), wanted)
    file.save(model, folder / "model.npz")
    read = file.load(folder / "model.npz")
    assert read.network == model.network
    np.testing.assert_array_equal(read.forward(x), wanted)

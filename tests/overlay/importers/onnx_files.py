"""Small ONNX files, made here: a chain of nodes with their constants."""

from dataclasses import dataclass, field

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the extra import is not installed")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

QONNX = "qonnx.custom_op.general"
OLD_DOMAINS = ("onnx.brevitas", "finn.custom_op.general")
"""Where QONNX's operators were in older files."""


@dataclass
class Chain:
    """A model that grows node by node: each reads what the one before made."""

    shape: tuple[int, ...]
    opset: int = 17
    dtype: int = TensorProto.FLOAT
    nodes: list = field(default_factory=list)
    constants: list = field(default_factory=list)
    here: str = "x"
    output_type: int = TensorProto.FLOAT
    qonnx_version: int = 1

    def constant(self, values, dtype=None):
        dtype = dtype or (np.int64 if getattr(values, "dtype", None) == np.int64 else np.float32)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name

    def node(self, op, *inputs, domain="", out=None, **attributes):
        """Append a node; inputs are names, or arrays that become constants. The first one is what is here."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        tensor = out or f"t{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(op, [self.here, *names], [tensor], f"{op}_{len(self.nodes)}", domain=domain, **attributes)
        )
        self.here = tensor
        return self

    def reversed(self, op, value):
        """Append a node that reads a constant, then what is here."""
        tensor = f"t{len(self.nodes)}"
        names = [self.constant(value), self.here]
        self.nodes.append(helper.make_node(op, names, [tensor], f"{op}_{len(self.nodes)}"))
        self.here = tensor
        return self

    def weight(self, op, *inputs, domain="", **attributes):
        """A node on constants alone; its output's name."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        tensor = f"w{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [tensor], f"{op}_{len(self.nodes)}", domain=domain, **attributes))
        return tensor

    def quant(self, scale, bits, *, signed=1, narrow=0, rounding="ROUND", zero=0.0):
        return self.node(
            "Quant", scale, zero, float(bits), domain=QONNX, signed=signed, narrow=narrow, rounding_mode=rounding
        )

    def qdq(self, scale, zero, dtype=np.uint8):
        """Quantised to integers, and back to real numbers."""
        names = self.constant(np.float32(scale)), self.constant(zero, dtype)
        return self.node("QuantizeLinear", *names).node("DequantizeLinear", *names)

    def dequantised(self, values, scale, zero=0, dtype=np.int8):
        """The name of weights in real numbers, which the file has as 8-bit integers."""
        integers, zero = (self.constant(given, dtype) for given in (values, zero))
        return self.weight("DequantizeLinear", integers, np.float32(scale), zero)

    def quant_weight(self, values, scale, bits, *, signed=1, narrow=1):
        return self.weight(
            "Quant", values, scale, 0.0, float(bits), domain=QONNX, signed=signed, narrow=narrow, rounding_mode="ROUND"
        )

    def batch_norm(self, rng, channels):
        gamma, beta = rng.normal(size=channels), rng.normal(size=channels)
        return self.node("BatchNormalization", gamma, beta, rng.normal(size=channels), rng.uniform(0.5, 4, channels))

    def model(self):
        graph = helper.make_graph(
            self.nodes,
            "chain",
            [helper.make_tensor_value_info("x", self.dtype, ["N", *self.shape])],
            [helper.make_tensor_value_info(self.here, self.output_type, None)],
            self.constants,
        )
        versions = [helper.make_opsetid("", self.opset), helper.make_opsetid(QONNX, self.qonnx_version)]
        versions += [helper.make_opsetid(domain, 1) for domain in ("com.microsoft", *OLD_DOMAINS)]
        return helper.make_model(graph, opset_imports=versions, ir_version=8)

    def bytes(self):
        return self.model().SerializeToString()

"""ONNX files while they are drawn: nodes, constants, and the twin of a file that computes on integers alone."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .pick import Pick
from .random_files import Drawing

Shape = tuple[int, ...]
QONNX = "qonnx.custom_op.general"
MICROSOFT = "com.microsoft"
OPSETS = (13, 17, 21)
IR_VERSION = 10
NARROW_OPSET = 21
"""The first of OPSETS with integers of 4 bits."""


@dataclass(frozen=True, kw_only=True)
class OnnxMap:
    """A map of a file: integers, or in QONNX's form the real numbers that a quantiser has made."""

    name: str
    shape: Shape
    """Of one image: (channels, rows, columns), (channels, columns) or (values,)."""
    low: float
    high: float
    """low, high: from where to where its real numbers reach, about."""
    scale: float = 1.0
    zero: int = 0
    kind: str = "INT8"
    """scale, zero, kind: of the integers."""
    pair: tuple[str, ...] = ()
    """Names of its scale and its zero point."""

    @property
    def rms(self) -> float:
        """About the root mean square of its values."""
        return max(abs(self.low), abs(self.high)) / 2


class OnnxWriter(Drawing[OnnxMap]):
    """An ONNX file that is written node by node.

    Parameters
    ----------
    pick
        Makes all choices.
    form
        ``"qdq"``, ``"qoperator"`` or ``"qonnx"``.
    """

    def __init__(self, pick: Pick, form: str) -> None:
        from onnx import TensorProto

        super().__init__(pick)
        self.form = form
        self.opset = pick.of(OPSETS)
        self.kind = pick.of(["INT8", "UINT8"])
        self.symmetric = pick.flip()
        self.exact = self.powers
        """Whether floating point has been exact so far."""
        self.has_narrow = form == "qdq" and self.opset >= NARROW_OPSET
        """Whether there are integers of 4 bits."""
        self._types = TensorProto
        self._nodes: list[Any] = []
        self._twin: list[Any] = []
        self._targets = [self._nodes, self._twin]
        self._constants: list[Any] = []
        self._count = 0
        self._source: tuple[int, Shape] = (TensorProto.FLOAT, ())
        self._kinds: dict[str, int] = {}  # of tensors that are no real numbers

    def _file(self, nodes: Sequence[Any], outputs: Sequence[str]) -> bytes:
        from onnx import helper

        kind, shape = self._source
        real = self._types.FLOAT
        graph = helper.make_graph(
            nodes,
            "random",
            [helper.make_tensor_value_info("x", kind, ["N", *shape])],
            [helper.make_tensor_value_info(name, self._kinds.get(name, real), None) for name in dict.fromkeys(outputs)],
            self._constants,
        )
        versions = [helper.make_opsetid("", self.opset)]
        versions += [helper.make_opsetid(QONNX, 1)] if self.form == "qonnx" else [helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=versions, ir_version=IR_VERSION)
        return model.SerializeToString(deterministic=True)  # type: ignore[no-any-return]

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        """The name of a constant; ``dtype`` is numpy's type, or the word of one of ONNX's."""
        from onnx import helper, numpy_helper

        name = f"c{len(self._constants)}"
        if isinstance(dtype, str) and dtype.endswith("4"):
            values = np.asarray(values)
            kind = getattr(self._types, dtype)
            self._constants.append(helper.make_tensor(name, kind, values.shape, values.ravel().tolist()))
        else:
            array = np.asarray(values, dtype.lower() if isinstance(dtype, str) else dtype)
            self._constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, *inputs: str, domain: str = "", out: str = "", kind: str = "", **attributes: Any) -> str:
        """Append a node with one result; gives its name. ``kind`` is the result's type, of real numbers none."""
        return self.several(op, inputs, [out or self._name()], domain, kind, **attributes)[0]

    def several(
        self, op: str, inputs: Sequence[str], out: Sequence[str], domain: str = "", kind: str = "", **attributes: Any
    ) -> list[str]:
        """Append a node with several results."""
        from onnx import helper

        name = f"{op}_{self._count}"
        self._count += 1
        for nodes in self._targets:
            nodes.append(helper.make_node(op, inputs, out, name, domain=domain, **attributes))
        if kind:
            self._kinds.update(dict.fromkeys(out, getattr(self._types, kind)))
        return list(out)

    def _name(self) -> str:
        self._count += 1
        return f"t{self._count}"

    @contextmanager
    def _only(self, nodes: list[Any]) -> Iterator[None]:
        """In the block, nodes are appended to these alone."""
        before, self._targets = self._targets, [nodes]
        yield
        self._targets = before

    def by_integers(self) -> bool:
        """Whether the next operator is one on integers."""
        return self.form == "qoperator" and not self.chance(4)

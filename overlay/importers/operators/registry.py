"""The registry of operators."""

from collections.abc import Callable

from bitloom.overlay.importers.node_view import NodeView

Operator = Callable[[NodeView], None]

OPERATORS: dict[str, Operator] = {}
"""Name of an operator -> the function that rewrites its nodes."""

DOMAINS = frozenset(
    ("", "com.microsoft", "onnx.brevitas", "qonnx.custom_op.general", "qonnx.custom_op.channels_last",
     "finn.custom_op.general")
)  # fmt: skip
"""Domains whose operators have the meaning that the registry gives to their names."""


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Register a function for operators of these names."""

    def register(function: Operator) -> Operator:
        for name in names:
            OPERATORS[name] = function
        return function

    return register

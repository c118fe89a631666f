"""The registry of operators."""

from collections.abc import Callable

from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.source import STANDARD, TFLITE

Operator = Callable[[NodeView], None]

OPERATORS: dict[tuple[str, str], Operator] = {}
"""Domain and name of an operator -> the function that rewrites its nodes."""

ONNX = (STANDARD,)
"""Domain of ONNX's own operators."""
QONNX = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
"""Domains of QONNX's operators, today's and older files' ones."""
MICROSOFT = ("com.microsoft",)
"""Domain of onnxruntime's operators."""
TENSORFLOW = (TFLITE,)
"""Domain of TFLite's operators."""


def operator(*names: str, domains: tuple[str, ...] = ONNX) -> Callable[[Operator], Operator]:
    """Register a function for operators of these names and domains."""

    def register(function: Operator) -> Operator:
        OPERATORS.update({(domain, name): function for domain in domains for name in names})
        return function

    return register


INSTEAD = {
    **dict.fromkeys(("ConvTranspose", "Resize", "Upsample"), "there is no hardware that makes maps larger"),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), "recurrent layers have no hardware: use convolutions"),
    **dict.fromkeys(("Elu", "Gelu", "HardSwish", "LeakyRelu", "PRelu", "Selu", "Tanh"), "use Relu, or a quantiser"),
    **dict.fromkeys(("If", "Loop", "Scan"), "export the network without control flow"),
    **dict.fromkeys(("Split", "Slice", "Gather"), "what takes maps apart has no hardware"),
}
"""What to do instead of operators that are not imported."""

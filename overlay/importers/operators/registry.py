"""The registry of operators."""

from collections.abc import Callable

from bitloom.overlay.importers.errors import ACTIVATION
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
    **dict.fromkeys(
        ("ConvTranspose", "Resize", "Upsample", "TRANSPOSE_CONV", "RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"),
        "there is no hardware that makes maps larger",
    ),
    **dict.fromkeys(
        ("LSTM", "GRU", "RNN", "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN", "SVDF"),
        "recurrent layers have no hardware: use convolutions",
    ),
    **dict.fromkeys(
        ("Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "PRelu", "Selu", "Softplus", "Tanh"),
        ACTIVATION,
    ),
    **dict.fromkeys(("ELU", "GELU", "HARD_SWISH", "LEAKY_RELU", "PRELU", "TANH"), "use RELU, RELU6 or RELU_N1_TO_1"),
    **dict.fromkeys(("If", "Loop", "Scan", "IF", "WHILE"), "export the network without control flow"),
    **dict.fromkeys(
        ("Split", "Slice", "Gather", "SPLIT", "SPLIT_V", "SLICE", "STRIDED_SLICE", "GATHER", "UNPACK"),
        "what takes maps apart has no hardware",
    ),
    "MUL": "the scale of a channel belongs into the weights of the layer before or behind",
    "REDUCE_MAX": "use MAX_POOL_2D over the whole map",
    "TRANSPOSE": "convert a network whose maps have their channels last",
    **dict.fromkeys(("SHAPE", "PACK"), "convert the network with a fixed number of images, 1"),
}
"""What to do instead of operators that are not imported."""

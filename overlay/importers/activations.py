"""Activations by name: what the import does with each one, in ONNX's files and in TFLite's.

To import another activation that never falls and consists of straight lines, give its entry a bend (bends.py):

    Activation(onnx="Relu", bend=lambda node: clip(Fraction(0), None))

What the host computes at a network's end are the words of `bitloom.golden.host.host.CLOSINGS`. All others are refused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from bitloom.golden.host.host import CLOSINGS

from .bends import Bend, clip
from .errors import Unsupported
from .node_view import NodeView
from .rationals import fractions, same
from .source import STANDARD, TFLITE

ADVICE = {STANDARD: "use Relu, or a quantiser", TFLITE: "use RELU, RELU6 or RELU_N1_TO_1"}
"""By domain, what to do instead of an activation that is not imported."""


@dataclass(frozen=True, kw_only=True)
class Activation:
    """An activation, as an operator of its own."""

    onnx: str = ""
    tflite: str = ""
    """onnx, tflite: names of the operator, each empty where the format has none."""
    bend: Callable[[NodeView], Bend] | None = None
    """``bend(node)`` is the activation in ONNX's files, where it is imported."""
    over_classes: bool = False
    """Whether it is a function of all classes together, for which no activation of each value can stand."""
    product: str = ""
    """The activation that exporters write with it, as several nodes: a product with its input."""

    @property
    def at_the_end(self) -> bool:
        """Whether the host computes it at a network's end."""
        return self.onnx in CLOSINGS


def _hard_tanh(node: NodeView) -> Bend:
    """min(max(x, -1), 1), or other ends."""
    return clip(Fraction(float(node.attribute("min_val", -1.0))), Fraction(float(node.attribute("max_val", 1.0))))


def _leaky_relu(node: NodeView) -> Bend:
    """x, or alpha x below 0."""
    return _leaky("LeakyRelu", float(node.attribute("alpha", 0.01)))


def _prelu(node: NodeView) -> Bend:
    """The same, alpha being an input: one for all channels."""
    slope = same(fractions(node.constant(1, "the slope")))
    if slope is None:
        raise Unsupported("the slope must be the same in every channel", ADVICE[STANDARD])
    return _leaky("PRelu", float(slope))


def _leaky(name: str, alpha: float) -> Bend:
    if not alpha >= 0:
        raise Unsupported(f"alpha must be >= 0, got {alpha:g}", ADVICE[STANDARD])
    return Bend(name=name, corners=((Fraction(0), Fraction(0)),), slopes=(Fraction(alpha), Fraction(1)))


ACTIVATIONS = (
    Activation(onnx="Relu", bend=lambda node: clip(Fraction(0), None)),
    Activation(onnx="HardTanh", bend=_hard_tanh),
    Activation(onnx="Hardtanh", bend=_hard_tanh),
    Activation(onnx="Softmax", tflite="SOFTMAX", over_classes=True),
    Activation(onnx="LogSoftmax", tflite="LOG_SOFTMAX", over_classes=True),
    Activation(onnx="Sigmoid", tflite="LOGISTIC", product="SiLU"),
    Activation(onnx="Elu", tflite="ELU"),
    Activation(onnx="Erf", product="GELU"),
    Activation(onnx="Gelu", tflite="GELU"),
    Activation(onnx="HardSigmoid", product="HardSwish"),
    Activation(onnx="HardSwish", tflite="HARD_SWISH"),
    Activation(onnx="LeakyRelu", tflite="LEAKY_RELU", bend=_leaky_relu),
    Activation(onnx="Mish"),
    Activation(onnx="PRelu", tflite="PRELU", bend=_prelu),
    Activation(onnx="Selu"),
    Activation(onnx="Softplus", product="Mish"),
    Activation(onnx="Tanh", tflite="TANH", product="GELU"),
)
"""All activations that the import knows by name."""

AT_THE_END = {activation.tflite: activation.onnx for activation in ACTIVATIONS if activation.at_the_end}
"""What the host computes at a network's end: TFLite's name -> ONNX's, which is the host's word."""

OF_EACH_VALUE = {name for a in ACTIVATIONS if not a.over_classes for name in (a.onnx, a.tflite) if name}
"""Operators of activations that are functions of each value for itself."""

PRODUCTS = {name: a.product for a in ACTIVATIONS if a.product for name in (a.onnx, a.tflite) if name} | {"Pow": "GELU"}
"""Operator -> the activation that exporters write with it, as several nodes (`Activation.product`)."""

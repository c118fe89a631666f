"""Activations by name: what the import does with each one, in ONNX's files and in TFLite's.

To import another activation, add its entry to the table. It says what its function is in ONNX's files: a bend, if it
never falls and consists of straight lines and jumps (bends.py), else a curve (curves.py). And it says what TFLite's
kernel makes of int8 values (tflite_curves.py):

    ActivationFunction(onnx="Relu", function=lambda node: clip(Fraction(0), None))
    ActivationFunction(onnx="Exp", tflite="EXP", function=lambda node: curve("Exp", math.exp))

What the host computes at a network's end are the words of `bitloom.golden.host.host.CLOSINGS`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.host.host import CLOSINGS

from .bends import Bend, bend, clip
from .curves import (
    Curve,
    Formula,
    curve,
    elu,
    gelu,
    gelu_by_tanh,
    hard_swish,
    leaky,
    mish,
    sigmoid,
    softplus,
    softsign,
    uniform_curve,
)
from .errors import Unsupported
from .links import Link
from .node_view import NodeView
from .rationals import fractions, same
from .rows import row_of
from .tflite_curves import (
    ScaleAndZero,
    TableKernel,
    abs_kernel,
    by_floats,
    gelu_kernel,
    hard_swish_kernel,
    leaky_kernel,
    prelu_kernel,
    single_log,
    single_logistic,
)
from .tflite_rules import HIGH, LOW, TensorScale

ADVICE = "use Relu, or a quantiser"
"""Advice instead of an activation that is not imported."""
MOST_POWER = 8
"""Exponent of a power at most."""


@dataclass(frozen=True, kw_only=True)
class ActivationFunction:
    """An activation function, as an operator of its own."""

    onnx: str = ""
    tflite: str = ""
    """onnx, tflite: names of the operator, each empty where the format has none."""
    function: Callable[[NodeView], Link] | None = None
    """``function(node)`` is the activation in ONNX's files; None of those over classes, which the host alone
    computes."""
    qlinear: bool = False
    """Whether onnxruntime has it of integers with their scales, too: Sigmoid is QLinearSigmoid then."""
    kernel: TableKernel | None = None
    """Table that TFLite's kernel computes; None of functions that have no kernel, or that the host alone computes."""
    constants: tuple[str, ...] = ()
    """Further inputs, in their order, each of one number or of one a channel: options of TFLite's kernel."""
    drawn: Callable[[np.random.Generator], Mapping[str, Any]] | None = None
    """``drawn(rng)`` are attributes that the import takes, for random ONNX files; None: numbers near the defaults of
    ONNX, each drawn by itself."""

    @property
    def at_the_end(self) -> bool:
        """Whether the host computes it at a network's end."""
        return self.onnx in CLOSINGS


def _leaky_relu(node: NodeView) -> Link:
    """x, or alpha x below 0."""
    return _leaky("LeakyRelu", fractions(np.array(float(node.attribute("alpha", 0.01)))))


def _prelu(node: NodeView) -> Link:
    """x, or alpha x below 0, where alpha is an input of the node: one number, or one for each channel."""
    return _leaky("PRelu", fractions(node.constant(1, "the slope")))


def _leaky(name: str, alpha: Array) -> Link:
    return leaky(name, alpha) if (alpha < 0).any() else bend(name, [(0, 0)], (alpha, 1))


def _hard_sigmoid(node: NodeView) -> Bend:
    """min(max(alpha x + beta, 0), 1)."""
    alpha, beta = (Fraction(float(node.attribute(name, default))) for name, default in (("alpha", 0.2), ("beta", 0.5)))
    if alpha <= 0:
        raise Unsupported(f"alpha must be > 0, got {float(alpha):g}", ADVICE)
    return bend("HardSigmoid", [(-beta / alpha, 0), ((1 - beta) / alpha, 1)], (0, 0))


def _elu(node: NodeView) -> Curve:
    alpha = float(node.attribute("alpha", 1.0))
    return curve("Elu", lambda x: elu(x, alpha))


def _selu(node: NodeView) -> Curve:
    alpha = float(node.attribute("alpha", 1.67326319217681884765625))
    gamma = float(node.attribute("gamma", 1.05070102214813232421875))
    return curve("Selu", lambda x: gamma * elu(x, alpha))


def _gelu(node: NodeView) -> Curve:
    return curve("Gelu", gelu_by_tanh if node.attribute("approximate", "none") == "tanh" else gelu)


def _power(node: NodeView) -> Curve:
    """x to a constant whole power."""
    exponent = same(fractions(node.constant(1, "the exponent")))
    if exponent is None or exponent.denominator != 1 or not 0 <= exponent <= MOST_POWER:
        raise Unsupported(f"the exponent must be one whole number of 0 to {MOST_POWER}")
    power = int(exponent)
    return uniform_curve("Pow", Formula.of_both(lambda x: x**power))


def _celu(node: NodeView) -> Curve:
    alpha = float(node.attribute("alpha", 1.0))
    return curve("Celu", lambda x: x if x > 0 else alpha * math.expm1(x / alpha))


def _thresholded(node: NodeView) -> Link:
    """x above alpha, else 0."""
    alpha = Fraction(float(node.attribute("alpha", 1.0)))
    if alpha < 0:  # it falls
        return uniform_curve("ThresholdedRelu", Formula.of_both(lambda x: x * (x > float(alpha))))
    return bend("ThresholdedRelu", [(alpha, 0), (alpha, alpha)] if alpha else [(0, 0)], (0, 1))


ACTIVATIONS = (
    ActivationFunction(onnx="Relu", function=lambda node: clip(Fraction(0), None)),
    ActivationFunction(
        onnx="Abs",
        tflite="ABS",
        function=lambda node: uniform_curve("Abs", Formula.of_both(abs)),
        kernel=abs_kernel,
    ),
    ActivationFunction(onnx="Celu", function=_celu),
    ActivationFunction(
        onnx="Log", tflite="LOG", function=lambda node: curve("Log", math.log), kernel=by_floats(single_log)
    ),
    ActivationFunction(onnx="Reciprocal", function=lambda node: curve("Reciprocal", lambda x: 1 / x)),
    ActivationFunction(onnx="Sqrt", tflite="SQRT", function=lambda node: curve("Sqrt", math.sqrt)),
    ActivationFunction(onnx="ThresholdedRelu", function=_thresholded),
    ActivationFunction(onnx="Softmax", tflite="SOFTMAX"),
    ActivationFunction(onnx="LogSoftmax", tflite="LOG_SOFTMAX"),
    ActivationFunction(
        onnx="Sigmoid",
        tflite="LOGISTIC",
        function=lambda node: curve("Sigmoid", sigmoid),
        qlinear=True,
        kernel=by_floats(single_logistic),
    ),
    ActivationFunction(onnx="Elu", tflite="ELU", function=_elu, kernel=by_floats(lambda x: elu(x, 1.0))),
    ActivationFunction(onnx="Erf", function=lambda node: curve("Erf", math.erf)),
    ActivationFunction(
        onnx="Exp", tflite="EXP", function=lambda node: curve("Exp", math.exp), kernel=by_floats(math.exp)
    ),
    ActivationFunction(
        onnx="Gelu",
        tflite="GELU",
        function=_gelu,
        kernel=gelu_kernel,
        drawn=lambda rng: {"approximate": ("none", "tanh")[rng.integers(2)]},
    ),
    ActivationFunction(onnx="HardSigmoid", function=_hard_sigmoid),
    ActivationFunction(
        onnx="HardSwish", tflite="HARD_SWISH", function=lambda node: hard_swish(), kernel=hard_swish_kernel
    ),
    ActivationFunction(
        onnx="LeakyRelu",
        tflite="LEAKY_RELU",
        function=_leaky_relu,
        qlinear=True,
        kernel=leaky_kernel,
        drawn=lambda rng: {"alpha": float(np.float32(rng.uniform(0, 1.2)))},
    ),
    ActivationFunction(onnx="Mish", function=lambda node: curve("Mish", mish)),
    ActivationFunction(onnx="PRelu", tflite="PRELU", function=_prelu, kernel=prelu_kernel, constants=("slope",)),
    ActivationFunction(onnx="Pow", function=_power),
    ActivationFunction(onnx="Selu", function=_selu),
    ActivationFunction(onnx="Softsign", function=lambda node: uniform_curve("Softsign", Formula.of_both(softsign))),
    ActivationFunction(onnx="Softplus", function=lambda node: curve("Softplus", softplus)),
    ActivationFunction(
        onnx="Tanh", tflite="TANH", function=lambda node: curve("Tanh", math.tanh), kernel=by_floats(math.tanh)
    ),
)
"""All activation functions that the import knows by name."""

AT_THE_END = {activation.tflite: activation.onnx for activation in ACTIVATIONS if activation.at_the_end}
"""Functions that the host computes at a network's end: TFLite's name -> ONNX's, which is the host's word."""
OVER_CLASSES = tuple(activation.onnx for activation in ACTIVATIONS if activation.function is None)
"""Functions of all classes together, which the host alone computes."""
CURVES = {activation.tflite: activation for activation in ACTIVATIONS if activation.kernel}
"""Those that are a table in TFLite's files, by TFLite's name."""


def curve_table(kind: str, source: ScaleAndZero, result: ScaleAndZero, options: Mapping[str, Any]) -> Array:
    """The results of a kernel for -128 .. 127: (256,) int64.

    Parameters
    ----------
    kind : str
        TFLite's operator, one of `CURVES`.
    source, result : (float, int)
        Of the tensor that the operator reads, and of the one that it makes.
    options : mapping
        The operator's, such as ``alpha`` of LEAKY_RELU; of ``constants`` an integer and its scale.

    Raises
    ------
    Unsupported
        If the kernel refuses the scales.
    """
    kernel = CURVES[kind].kernel
    assert kernel is not None
    return np.clip(kernel(source, result, options), LOW, HIGH)


def node_table(kind: str, attributes: Mapping[str, Any], constants: Sequence[Array]) -> Array:
    """The results of a node of a TFLite file for -128 .. 127, by its attributes, with scales, and the values of its
    ``constants``: a row for each channel, or one row, (channels or 1, 256)."""
    scales: Sequence[TensorScale] = attributes["scales"]
    source, result = scales[0].per_tensor("the input"), attributes["result_scale"].per_tensor("the result")
    of_channels = [
        _numbers(name, values, scale) for name, values, scale in zip(CURVES[kind].constants, constants, scales[1:])
    ]
    channels = max((len(numbers) for numbers in of_channels), default=1)
    numbers = [tuple(row_of(each, channel) for each in of_channels) for channel in range(channels)]
    rows = {}
    for each in {*numbers}:
        options = dict(zip(CURVES[kind].constants, each))
        rows[each] = curve_table(kind, source, result, {**attributes, **options})
    return np.array([rows[each] for each in numbers])


def _numbers(name: str, values: Array, scale: TensorScale) -> list[tuple[int, float]]:
    """Of a constant the integer of each channel, or the one of all, less the zero point, each with the scale."""
    step, zero = scale.per_tensor(f"the {name}")
    if values.dtype != np.int8 or values.size not in (1, *values.shape[-1:]):
        rule = f"the {name} must be of type INT8 and one number, or one for each channel"
        raise Unsupported(f"{rule}, got {values.dtype} of shape {values.shape}")
    return [(int(value) - zero, step) for value in values.ravel()]

"""The registry of operators: which function rewrites an operator, and what to do instead of those without one."""

from collections.abc import Callable

from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.source import STANDARD, TFLITE

Operator = Callable[[NodeView], None]

OPERATORS: dict[tuple[str, str], Operator] = {}
"""Domain and name of an operator -> the function that rewrites its nodes."""
EVERYWHERE: set[tuple[str, str]] = set()
"""Operators that may read a map whose first axis isn't that of the images: they do the same at all places of a map, or
put its values elsewhere as the file's shape has them."""

ONNX = (STANDARD,)
"""Domain of ONNX's own operators."""
QONNX = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
"""Domains of QONNX's operators, today's and older files' ones."""
MICROSOFT = ("com.microsoft",)
"""Domain of onnxruntime's operators."""
TENSORFLOW = (TFLITE,)
"""Domain of TFLite's operators."""


def operator(*names: str, domains: tuple[str, ...] = ONNX, everywhere: bool = False) -> Callable[[Operator], Operator]:
    """Register a function for operators of these names and domains; ``everywhere``: see `EVERYWHERE`.

    Raises
    ------
    ValueError
        If one of them has a function already, or is refused.
    """

    def register(function: Operator) -> Operator:
        for key in ((domain, name) for domain in domains for name in names):
            if key in OPERATORS:
                raise ValueError(f"{key[1]}: an operator must have one function, got a second one")
            OPERATORS[key] = function
            EVERYWHERE.update([key] if everywhere else [])
        _check_apart()
        return function

    return register


INSTEAD: dict[str, str] = {}
"""Name of an operator that is not imported -> what to do instead."""


def refused(*names: str, instead: str) -> None:
    """Say what to do instead of operators that are not imported.

    Raises
    ------
    ValueError
        If one of them is imported, in any domain.
    """
    INSTEAD.update(dict.fromkeys(names, instead))
    _check_apart()


def _check_apart() -> None:
    """Raise ValueError if an operator is imported and refused."""
    both = {name for _, name in OPERATORS} & INSTEAD.keys()
    if both:
        raise ValueError(f"{min(both)}: an operator must be imported or refused, got both")


refused("If", "Loop", "Scan", "IF", "WHILE", instead="export the network without control flow")
refused(
    "CUSTOM TFLite_Detection_PostProcess",
    instead="it must be the last one, with three inputs, and all its four results outputs of the file",
)

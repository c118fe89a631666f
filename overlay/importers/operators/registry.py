"""The registry of operators: how each one that is imported is rewritten, and what to do instead of others."""

from collections.abc import Callable
from dataclasses import dataclass

from bitloom.overlay.importers.node_view import NodeView
from bitloom.overlay.importers.source import STANDARD, TFLITE

Rewriting = Callable[[NodeView], None]


@dataclass(frozen=True)
class Operator:
    """An operator that is imported."""

    rewrite: Rewriting
    """Rewrites its nodes."""
    everywhere: bool
    """Whether it may read a map whose first axis isn't that of the images: it does the same at all places of a map, or
    puts its values elsewhere as the file's shape has them."""


OPERATORS: dict[tuple[str, str], Operator] = {}
"""Operators by domain and name."""

ONNX = (STANDARD,)
"""Domain of ONNX's own operators."""
QONNX = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
"""Domains of QONNX's operators, today's and older files' ones."""
MICROSOFT = ("com.microsoft",)
"""Domain of onnxruntime's operators."""
TENSORFLOW = (TFLITE,)
"""Domain of TFLite's operators."""


def operator(
    *names: str, domains: tuple[str, ...] = ONNX, everywhere: bool = False
) -> Callable[[Rewriting], Rewriting]:
    """Enter operators of these names and domains in the table, with the function that rewrites their nodes;
    ``everywhere``: see `Operator`.

    Raises
    ------
    ValueError
        If one of them has a function already, or is refused.
    """

    def register(function: Rewriting) -> Rewriting:
        for key in ((domain, name) for domain in domains for name in names):
            if key in OPERATORS:
                raise ValueError(f"{key[1]}: an operator must have one function, got a second one")
            OPERATORS[key] = Operator(function, everywhere)
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

"""Whether what a person chooses of compiling changes any of the networks: a choice without effect is refused."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from bitloom.hls_gen.design.npu import Npu

from .choices import CompileChoices
from .lowering import Lowered
from .mapping import target_of
from .workloads import segmented

RULES = {
    "shortcuts": "an addition of two ways from one map, with convolutions on both and no other map that waits",
    "copy_depthwise": "a depthwise convolution that has no convolution right before it, and NPUs with depthwise",
}
"""Choices of how networks are cut, each with what must be there so that it changes anything."""


def check_effects(name: str, networks: Sequence[Lowered], npus: Sequence[Npu], choices: CompileChoices) -> None:
    """Check that each choice that is not the default has an effect on one of the networks at least.

    Parameters
    ----------
    name
        Of the design.
    networks
        As they were lowered for the NPUs, with these choices.
    npus
        Foldings of the NPUs.
    choices
        Choices of the compilation.

    Raises
    ------
    ValueError
        A choice has no effect. One line: the choice, what it needs, and the value.
    """
    known = {workload.name for network in networks for workload in network.workloads}
    for layer in choices.dataflow if isinstance(choices.dataflow, Mapping) else ():
        if layer not in known:
            raise ValueError(f"{name}: a dataflow must be of one of {', '.join(sorted(known))}, got one of {layer}")
    for choice, rule in RULES.items():
        value = getattr(choices, choice)
        default: dict[str, Any] = {choice: getattr(CompileChoices(), choice)}
        without = replace(choices, **default)
        if without != choices and all(
            _order(network, npus, choices) == _order(network, npus, without) for network in networks
        ):
            raise ValueError(f"{name}: {choice} {_shown(value)} needs {rule}, got none")


def _order(network: Lowered, npus: Sequence[Npu], choices: CompileChoices) -> list[str]:
    """Names of a network's workloads in their order, if it is cut by these choices."""
    return segmented(network.model, target_of(npus, choices)).names


def _shown(value: str | bool) -> str:
    """A value as a person writes it."""
    return str(value).lower()

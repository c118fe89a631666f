"""Exact rewritings: rules change a graph step by step, and each step is checked.

    graph --> rule --> check --> rule --> check --> ... --> no rule applies

What a graph is, only rules and the check know: operations of real numbers in an import (overlay/importers/rules.py), or
in the compiler layers (hls_gen/compiler/engine_form.py) and what follows one convolution (hls_gen/compiler/pools.py).
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

Graph = TypeVar("Graph")

MOST_STEPS = 10_000
"""Steps at most; a network takes a few."""


class Inexact(ValueError):
    """A step that changed what a graph computes."""


def rewrite(
    graph: Graph, rules: Sequence[Callable[[Graph], Graph | None]], check: Callable[[Graph, Graph], None]
) -> Graph:
    """Apply rules until none applies.

    Parameters
    ----------
    graph : Graph
    rules : sequence of callable
        ``rule(graph)`` is a graph that computes the same, or None where the rule has nothing to do. Of several rules
        that apply the first one is taken.
    check : callable
        ``check(before, after)`` raises Inexact if a step is not exact.

    Returns
    -------
    Graph
        The same object where no rule applies.

    Raises
    ------
    Inexact
        If a step is not exact, with the rule's name.
    ValueError
        If rules come to no end in MOST_STEPS steps.
    """
    for _ in range(MOST_STEPS):
        rule, after = next(((rule, after) for rule in rules if (after := rule(graph)) is not None), (None, None))
        if rule is None or after is None:
            return graph
        try:
            check(graph, after)
        except Inexact as e:
            raise Inexact(f"the rewriting {rule.__name__} must be exact: {e}") from None
        graph = after
    raise ValueError(f"a graph must be rewritten in at most {MOST_STEPS:,} steps, got more")

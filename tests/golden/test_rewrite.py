"""The driver of rewritings: rules until none applies, and a check of each step."""

import pytest

from bitloom.golden import rewrite as module
from bitloom.golden.rewrite import Inexact, rewrite
from tests.errors import value_error

# A graph is a tuple of numbers here, which must keep their sum.


def zeros_go(graph):
    return tuple(n for n in graph if n) if 0 in graph else None


def neighbours_are_added(graph):
    return (graph[0] + graph[1], *graph[2:]) if len(graph) > 2 else None


def first_goes(graph):
    return graph[1:] if len(graph) > 2 else None


def turn(graph):
    return graph[::-1]


def same_sum(before, after):
    if sum(before) != sum(after):
        raise Inexact(f"the sum must be {sum(before)}, got {sum(after)}")


def test_rules_are_applied_until_none_applies():
    steps = []

    def check(before, after):
        same_sum(before, after)
        steps.append(after)

    assert rewrite((1, 0, 2, 3, 0, 4), (zeros_go, neighbours_are_added), check) == (6, 4)
    assert steps == [(1, 2, 3, 4), (3, 3, 4), (6, 4)]


def test_a_graph_that_no_rule_applies_to_stays_the_same_object():
    graph = (1, 2)
    assert rewrite(graph, (zeros_go, neighbours_are_added), same_sum) is graph


def test_a_step_that_is_not_exact_is_named():
    with value_error("the rewriting first_goes must be exact: the sum must be 6, got 5"):
        rewrite((1, 2, 3), (zeros_go, first_goes), same_sum)


def test_rules_come_to_an_end(monkeypatch):
    monkeypatch.setattr(module, "MOST_STEPS", 20)
    with value_error("a graph must be rewritten in at most 20 steps, got more"):
        rewrite((1, 2), (turn,), same_sum)


@pytest.mark.parametrize("rules", [(), (zeros_go,)])
def test_without_anything_to_do(rules):
    assert rewrite((1,), rules, same_sum) == (1,)

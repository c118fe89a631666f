"""Registers of a block: an always block asks a condition once, and later assignments win."""

import veriloggen

from bitloom.hls_gen.rtl.primitives.block import Block


def _conditions(*updates: tuple[str | None, str, int]) -> list[str]:
    """The conditions and assignments of a module with these calls of ``on``: condition, register, value."""
    veriloggen.reset()
    b = Block("tried", reset=False)
    signals = {name: b.input(name) for name in "xy"} | {name: b.reg(name, init=None) for name in "abc"}
    for condition, register, value in updates:
        b.on(condition and signals[condition], (signals[register], value))
    lines = b.modules()["tried"].partition("@(posedge clk) begin")[2].splitlines()
    return [line.strip(" ;") for line in lines if "if" in line or "<=" in line]


def test_values_go_to_the_condition_before():
    assert _conditions(("x", "a", 1), ("y", "b", 1), ("x", "c", 1)) == [
        "if (x) begin", "a <= 1'd1", "c <= 1'd1",
        "if (y) begin", "b <= 1'd1",
    ]  # fmt: skip


def test_the_condition_moves_behind_what_it_must_win_over():
    assert _conditions(("x", "a", 1), ("y", "b", 1), ("x", "b", 0)) == [
        "if (y) begin", "b <= 1'd1",
        "if (x) begin", "a <= 1'd1", "b <= 1'd0",
    ]  # fmt: skip


def test_a_condition_that_must_lose_and_win_is_asked_twice():
    assert _conditions(("x", "a", 1), ("y", "a", 0), ("y", "b", 1), ("x", "b", 0)) == [
        "if (x) begin", "a <= 1'd1",
        "if (y) begin", "a <= 1'd0", "b <= 1'd1",
        "if (x) begin", "b <= 1'd0",
    ]  # fmt: skip


def test_an_assignment_at_every_edge_stays_in_front():
    assert _conditions((None, "a", 0), ("x", "a", 1), (None, "b", 1)) == [
        "a <= 1'd0", "b <= 1'd1",
        "if (x) begin", "a <= 1'd1",
    ]  # fmt: skip

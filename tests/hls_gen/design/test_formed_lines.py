"""Split windows: what a line former and a sequencer read, one behind the other, are the taps of the window."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bitloom.golden.window import Window
from bitloom.hls_gen.design.formed_lines import BeatTaps, FormedLines
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.pool_unit import AVERAGE, LARGEST, PRODUCTS, PoolUnit

POOL = Window(kernel=(2, 3), stride=(2, 1), padding=(1, 1, 0, 2))


@st.composite
def windows(draw: st.DrawFn) -> Window:
    """Windows whose taps in a line are neighbours."""
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(2, 4)))
    down = draw(st.sampled_from(["", "dilation", "growth"]))
    apart = {down: (draw(st.integers(2, 3)), 1)} if down else {}
    span = (kernel[0] - 1) * apart.get("dilation", (1, 1))[0] + 1, kernel[1]
    padding = tuple(draw(st.integers(0, size - 1)) for size in (*span, *span))
    repeats = down == "growth" and draw(st.booleans())
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    return Window(kernel=kernel, stride=stride, padding=padding, repeats=repeats, **apart)


@given(windows(), st.integers(1, 7), st.integers(1, 7))
def test_both_parts_together_read_what_the_window_reads(window: Window, height: int, width: int) -> None:
    assume(min(window.output_size(height, width)) > 0)
    split = BeatTaps(4).split(window)
    assert split is not None
    lines = split.formed.positions(height, width)
    beside = np.full_like(lines[:1], -1)  # position -1: a line of the kernel that lies beside the map
    columns = split.left.positions(*split.formed.output_size(height, width))
    read = np.concatenate([lines, beside])[columns].reshape(len(columns), -1)
    np.testing.assert_array_equal(read, window.positions(height, width))


@pytest.mark.parametrize("window", [
    Window(kernel=(3, 1)),  # one tap
    Window(kernel=(1, 5)),  # too many
    Window(kernel=(2, 2), dilation=(1, 2)),  # no neighbours
    Window(kernel=(2, 2), growth=(1, 2)),
    Window(kernel=(2, 2), padding=(0, 1, 0, 1), clamps=True),  # what is beside the map has no value of its own
], ids=str)  # fmt: skip
def test_windows_that_are_not_split(window: Window) -> None:
    assert BeatTaps(4).split(window) is None


def test_averages_are_not_split() -> None:
    """They count their valid taps."""
    unit = PoolUnit(line_taps=3)
    splits = [unit.split(POOL, reduction) for reduction in (LARGEST, PRODUCTS, AVERAGE)]
    assert splits == [BeatTaps(3).split(POOL)] * 2 + [None]
    assert PoolUnit().split(POOL, LARGEST) is None


def test_the_last_tap_lies_highest() -> None:
    assert FormedLines(lines=1, taps=2).places(BeatTaps(4)) == [UNUSED, UNUSED, 0, 1]

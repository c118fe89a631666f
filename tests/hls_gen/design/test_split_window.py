"""Split windows: what a former and a sequencer read, one behind the other, are the taps of the window."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bitloom.golden.window import Window
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.pool_unit import AVERAGE, LARGEST, PRODUCTS, PoolUnit
from bitloom.hls_gen.design.split_window import BeatTaps, SplitWindow

POOL = Window(kernel=(2, 3), stride=(2, 1), padding=(1, 1, 0, 2))


@st.composite
def split_windows(draw: st.DrawFn) -> SplitWindow:
    """Windows that formers take along some axes, on which taps are neighbours."""
    kernel = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    axes = draw(st.tuples(*(st.integers(0, taps) for taps in kernel)))
    apart = draw(st.sampled_from(["", "dilation", "growth"]))
    far = draw(st.tuples(st.integers(2, 3), st.integers(2, 3)))
    each = tuple(1 if taken or not apart else between for taken, between in zip(axes, far))
    span = tuple((taps - 1) * (each[k] if apart == "dilation" else 1) + 1 for k, taps in enumerate(kernel))
    padding = tuple(draw(st.integers(0, size - 1)) for size in (*span, *span))
    repeats = apart == "growth" and draw(st.booleans())
    stride = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    spread = {apart: each} if apart else {}
    return SplitWindow(Window(kernel=kernel, stride=stride, padding=padding, repeats=repeats, **spread), *axes)


@given(split_windows(), st.integers(1, 7), st.integers(1, 7))
def test_both_parts_together_read_what_the_window_reads(split: SplitWindow, height: int, width: int) -> None:
    assume(min(split.window.output_size(height, width)) > 0)
    tuples = split.formed.positions(height, width)
    assert (tuples >= 0).any(axis=1).all(), "each tuple has a tap on the map"
    beside = np.full_like(tuples[:1], -1)  # position -1: a tuple that lies beside the map
    read = split.rest.positions(*split.formed.output_size(height, width))
    taps = np.concatenate([tuples, beside])[read]  # (windows, tuples, tuple_taps)
    positions = split.window.positions(height, width)
    counts = split.dealt(np.ones_like(positions), axis=1)
    np.testing.assert_array_equal(np.where(counts, taps, 0), split.dealt(positions, axis=1))
    assert counts.sum() == positions.size
    window = np.append(positions, np.full_like(positions[:, :1], -1), axis=1)[:, None, None]
    assert (taps[..., None] == window).any(axis=3).all(), "no tap of a tuple lies beside the window"


@pytest.mark.parametrize(
    ("axes", "tuples"),
    [
        ((0, 0), [[0], [1], [2], [3], [4], [5]]),
        ((0, 3), [[0, 1, 2], [3, 4, 5]]),
        ((2, 0), [[0, 3], [1, 4], [2, 5]]),
        ((2, 3), [[0, 1, 2, 3, 4, 5]]),
    ],
)
def test_taps_come_in_the_order_of_the_kernel(axes: tuple[int, int], tuples: list[list[int]]) -> None:
    split = SplitWindow(POOL, *axes)
    assert (split.tuples, split.tuple_taps) == (len(tuples), len(tuples[0]))
    assert split.dealt(np.arange(6)).tolist() == tuples
    of_kernels = np.arange(12).reshape(2, 6, 1)
    assert split.dealt(of_kernels, axis=1)[..., 0].tolist() == [tuples, (np.array(tuples) + 6).tolist()]


def test_a_tap_that_several_tuples_have_counts_in_the_first_one() -> None:
    values = np.arange(1, 7)
    assert SplitWindow(Window(kernel=(3, 2)), 2, 2).dealt(values).tolist() == [[1, 2, 3, 4], [0, 0, 5, 6]]
    assert SplitWindow(Window(kernel=(2, 3)), 0, 2).dealt(values).tolist() == [[1, 2], [0, 3], [4, 5], [0, 6]]


def test_values_in_order_are_not_copied() -> None:
    """A search has weights that take no memory."""
    weights = np.broadcast_to(np.int64(0), (2, 6, 5))
    for rows in (0, 2):
        assert np.shares_memory(SplitWindow(POOL, rows, 3).dealt(weights, axis=1), weights)


@pytest.mark.parametrize(
    "window",
    [
        Window(kernel=(3, 1)),  # one tap
        Window(kernel=(2, 2), dilation=(1, 2)),  # no neighbours
        Window(kernel=(2, 2), growth=(1, 2)),
        Window(kernel=(2, 2), padding=(0, 1, 0, 1), beside="nearest"),  # what is beside the map has no value of its own
    ],
    ids=str,
)
def test_windows_that_are_taken_tap_by_tap(window: Window) -> None:
    split = BeatTaps(1, 4).split(window)
    assert (split.tuple_taps, split.rest) == (1, window)


def test_as_many_columns_as_a_unit_takes() -> None:
    window = Window(kernel=(2, 5), padding=(0, 2, 0, 2))
    assert BeatTaps(1, 3).split(window) == SplitWindow(window, columns=3)
    assert BeatTaps(2, 9).split(window) == SplitWindow(window, rows=2, columns=5)


@pytest.mark.parametrize(("padding", "rows"), [(0, 3), (1, 2), (2, 0)])
def test_no_row_behind_the_map_is_taken(padding: int, rows: int) -> None:
    window = Window(kernel=(3, 1), padding=(0, 0, padding, 0))
    assert BeatTaps(4, 1).split(window) == SplitWindow(window, rows=rows)


def test_averages_are_taken_tap_by_tap() -> None:
    """They count their valid taps."""
    unit = PoolUnit(line_taps=3)
    splits = [unit.split(POOL, reduction, unit.pfp) for reduction in (LARGEST, PRODUCTS, AVERAGE)]
    assert splits == [SplitWindow(POOL, columns=3)] * 2 + [SplitWindow(POOL)]
    assert PoolUnit().split(POOL, LARGEST, 1) == SplitWindow(POOL)


def test_the_last_tap_lies_highest() -> None:
    places = [
        (BeatTaps(1, 4), (1, 2), [UNUSED, UNUSED, 0, 1]),
        (BeatTaps(2, 3), (2, 2), [UNUSED, 0, 1, UNUSED, 2, 3]),
        (BeatTaps(2, 3), (1, 2), [UNUSED] * 4 + [0, 1]),
    ]
    for beat, kernel, taps in places:
        np.testing.assert_array_equal(beat.places(Window(kernel=kernel)), np.array(taps)[:, None])


def test_lines_share_lanes_where_there_is_room_and_a_window_takes_fewer_beats_so() -> None:
    unit = PoolUnit(pfp=8, line_taps=3, lane_lines=2)
    window = Window(kernel=(3, 3), padding=(1, 1, 1, 1))
    assert [unit.split(window, PRODUCTS, lanes).rows for lanes in (4, 5)] == [2, 0]
    line = Window(kernel=(1, 3))
    assert unit.split(line, PRODUCTS, 4) == SplitWindow(line, columns=3)
    assert unit.split(window, AVERAGE, 4) == SplitWindow(window)


def test_the_last_of_the_lines_that_share_lanes_has_the_lowest() -> None:
    beat = BeatTaps(2, 1, 2)
    three, two = Window(kernel=(3, 1)), Window(kernel=(2, 1))
    assert (beat.shares_lanes(three), beat.shares_lanes(two)) == (True, False)
    np.testing.assert_array_equal(beat.places(three), [[0, UNUSED], [2, 1]])
    np.testing.assert_array_equal(beat.places(two), [[0], [1]])

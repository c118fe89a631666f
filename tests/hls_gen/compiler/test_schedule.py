"""Orders, tables, capacities and figures, against hand-made tables and slow oracles (spec B1 to B7, B20)."""

import re
from dataclasses import replace
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.graph import INPUT
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.schedule import ORDERS, Stage, schedule
from bitloom.hls_gen.compiler.taps import Taps

# 2 x 3 map, kernel 2 x 2, one column of padding on the left and one row below:
#   window  0: . 0   1: 0 1   2: 1 2   3: . 3   4: 3 4   5: 4 5
#              . 3      3 4      4 5      . .      . .      . .
TINY = Stage(name="tiny", weighted=True, height=2, width=3, window=Taps(Window(kernel=(2, 2), padding=(0, 1, 1, 0))))


def bits(text: str) -> list[bool]:
    return [c == "1" for c in text.replace(" ", "")]


def test_tiny_tables_in_pull_order():
    (t,) = schedule([TINY], "pull").tables
    assert t.input_order.tolist() == [0, 3, 1, 4, 2, 5]
    assert t.index.tolist() == [0, 1, 0, 2, 1, 3, 2, 4, 3, 5, 1, 1, 3, 3, 5]
    assert t.new.tolist() == bits("11 0101 0101 0 00 00")
    assert t.advance.tolist() == t.new.astype(int).tolist()
    assert t.capacity(reread=False) == 5
    assert t.capacity(reread=True) == 5


def test_tiny_tables_in_raster_order():
    (t,) = schedule([TINY], "raster").tables
    assert t.input_order.tolist() == [0, 1, 2, 3, 4, 5]
    assert t.index.tolist() == [0, 3, 0, 1, 3, 4, 1, 2, 4, 5, 3, 3, 4, 4, 5]
    assert t.advance.tolist() == [1, 3, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert t.new.tolist() == bits("11 0001 0001 0 00 00")
    assert t.capacity(reread=False) == 4
    assert t.capacity(reread=True) == 5


def test_maps_between_are_made_column_after_column():
    first = Stage(name="first", weighted=True, height=3, width=4, window=Taps(Window(kernel=(2, 2))))
    last = Stage(name="last", weighted=True, height=2, width=3, window=Taps(Window(kernel=(1, 1))), reads="first")
    one, other = schedule([first, last], "columns").tables
    assert one.output_order.tolist() == other.input_order.tolist() == [0, 3, 1, 4, 2, 5]
    assert one.input_order.tolist() == [0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11]
    assert one.index[:8].tolist() == [0, 3, 1, 4, 1, 4, 2, 5]
    assert one.capacity(reread=False) == 4  # a column and a tuple; row after row a row and a tuple, 5
    assert other.index.tolist() == [0, 2, 4, 1, 3, 5]


def test_tiny_table_bits():
    (t,) = schedule([TINY], "raster").tables
    marks, addresses, advances, targets = 3 * 15, 11 * 3, 4 * 2, 4 * 2  # advances 1..3 are stored as 0..2
    assert t.bits(capacity=8) == marks + addresses + advances + targets
    (t,) = schedule([Stage(name="p", weighted=False, height=2, width=3, window=TINY.window)], "pull").tables
    assert t.bits(5) == 2 * 15 + 9 * 3  # no marks to jump by; in pull order a new tap takes one tuple


# Slow oracles ---------------------------------------------------------------------------------------------------------


def naive_taps(stage: Stage, output: int) -> list[tuple[int, int]]:
    """(tap, position) of the valid taps of an output position."""
    kh, kw = stage.window.kernel
    sy, sx = stage.window.window.stride
    top, left, _, _ = stage.window.window.padding
    row, column = divmod(output, stage.output_size[1])
    taps = []
    for i in range(kh):
        for j in range(kw):
            y, x = row * sy + i - top, column * sx + j - left
            if 0 <= y < stage.height and 0 <= x < stage.width:
                taps.append((i * kw + j, y * stage.width + x))
    return taps


def naive_orders(chain: list[Stage], map_order: str) -> list[list[int]]:
    """Per map, input first: the positions in the order in which a demand-driven evaluation makes them."""
    orders: list[list[int]] = [[] for _ in range(len(chain) + 1)]

    def need(level: int, position: int) -> None:
        if position not in orders[level]:
            if level:
                for _, p in naive_taps(chain[level - 1], position):
                    need(level - 1, p)
            orders[level].append(position)

    rows, columns = chain[-1].output_size
    for position in range(rows * columns):
        need(len(chain), position)
    if map_order == "columns":
        widths = [stage.width for stage in chain]
        return [*(sorted(m, key=lambda p, w=w: (p % w, p // w)) for m, w in zip(orders, widths)), sorted(orders[-1])]
    return orders if map_order == "pull" else [sorted(m) for m in orders]


def naive_capacity(reading: list[list[int]], groups: int) -> int:
    """Smallest memory in which every read of ``reading`` (windows of tuple numbers) finds its tuple, by trial."""
    for capacity in range(1, 10_000):
        ring = [-1] * capacity
        stored = 0
        good = True
        for window in reading:
            for number in window * groups:
                while stored <= number:
                    ring[stored % capacity] = stored
                    stored += 1
                good = good and ring[number % capacity] == number
        if good:
            return capacity
    raise AssertionError


@st.composite
def chains(draw: st.DrawFn) -> list[Stage]:
    chain: list[Stage] = []
    height, width = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    for i in range(draw(st.integers(1, 3))):
        whole = draw(st.integers(0, 9)) == 0
        kh, kw = (height, width) if whole else (draw(st.integers(1, 5)), draw(st.integers(1, 5)))
        padding = tuple(draw(st.integers(0, k - 1)) for k in (kh, kw, kh, kw))
        window = Window(kernel=(kh, kw), stride=(draw(st.integers(1, 4)), draw(st.integers(1, 4))), padding=padding)
        if min(window.output_size(height, width)) < 1:
            window = Window(kernel=(height, width))
        weighted = draw(st.booleans())
        reads = chain[-1].name if chain else INPUT
        chain.append(
            Stage(name=f"stage_{i}", weighted=weighted, height=height, width=width, window=Taps(window), reads=reads)
        )
        height, width = chain[-1].output_size
    return chain


@given(chains(), st.sampled_from(ORDERS))
def test_orders_equal_demand_driven_evaluation(chain, map_order):
    s = schedule(chain, map_order)
    orders = naive_orders(chain, map_order)
    assert s.input_orders[0].tolist() == orders[0]
    assert orders[-1] == list(range(len(orders[-1])))
    for i, t in enumerate(s.tables):
        assert t.input_order.tolist() == orders[i]
        assert t.output_order.tolist() == orders[i + 1]


@given(chains(), st.sampled_from(ORDERS))
def test_tables_equal_naive_tables(chain, map_order):
    for t in schedule(chain, map_order).tables:
        taps = t.stage.window.taps
        wanted = t.input_order.tolist()
        visits = [naive_taps(t.stage, output) for output in t.output_order.tolist()]
        rows = [(w, tap, wanted.index(p)) for w, visit in enumerate(visits) for tap, p in visit]
        assert list(zip(t.window.tolist(), t.tap.tolist(), t.index.tolist())) == rows
        ends = [k == len(v) - 1 for v in visits for k in range(len(v))]
        assert t.last.tolist() == ends
        assert t.valid_taps.tolist() == [len(v) for v in visits]
        valid = [tap in dict(v) for v in visits for tap in range(taps)]  # all places of the frame, one after another
        marks, targets = [], []
        for place in np.flatnonzero(valid):
            run = 0
            while place + run + 1 < len(valid) and not valid[place + run + 1]:
                run += 1
            marks.append(run > 0 and place + run + 1 < len(valid))
            if marks[-1]:
                targets.append((place + run + 1) % taps)
        assert t.jump_mark.tolist() == marks
        assert t.jump_target.tolist() == targets
        assert t.leading_jump == (valid.index(True) or None)


@given(chains(), st.sampled_from(ORDERS))
def test_every_tuple_sent_is_taken_in_order_and_read(chain, map_order):
    for t in schedule(chain, map_order).tables:
        assert set(t.index.tolist()) == set(range(len(t.input_order)))
        assert t.advance.sum() == len(t.input_order)
        assert (t.index[t.new] == np.cumsum(t.advance)[t.new] - 1).all()
        assert (t.index <= np.cumsum(t.advance) - 1).all()
        if map_order == "pull":
            assert t.index[t.new].tolist() == list(range(len(t.input_order)))
            assert (t.advance == t.new).all()


@given(chains(), st.sampled_from(ORDERS))
def test_capacity_is_the_smallest_that_works(chain, map_order):
    for t in schedule(chain, map_order).tables:
        reading = [t.index[t.window == w].tolist() for w in range(len(t.output_order))]
        assert t.capacity(reread=False) == naive_capacity(reading, 1)
        assert t.capacity(reread=True) == naive_capacity(reading, 2)


@pytest.mark.parametrize("map_order", ORDERS)
def test_positions_that_nobody_reads_are_neither_sent_nor_computed(map_order):
    conv = Stage(name="conv", weighted=True, height=5, width=7, window=Taps(Window(kernel=(2, 1))))
    every_third = Taps(Window(kernel=(1, 1), stride=(2, 3)))
    pool = Stage(name="pool", weighted=False, height=4, width=7, window=every_third, reads="conv")
    s = schedule([conv, pool], map_order)
    sent = s.tables[1].input_order.tolist()
    assert sorted(sent) == [0, 3, 6, 14, 17, 20]  # rows 0 and 2, columns 0, 3 and 6
    assert sent == ([0, 14, 3, 17, 6, 20] if map_order == "columns" else sorted(sent))
    assert len(s.tables[0].index) == 12
    assert sorted(s.input_orders[0]) == [7 * y + x for y in (0, 1, 2, 3) for x in (0, 3, 6)]


# Figures --------------------------------------------------------------------------------------------------------------


def test_b20_ideal_cycles():
    five, three = (
        Window(kernel=(5, 5), padding=(2, 2, 2, 2)),
        Window(kernel=(3, 3), stride=(2, 2), padding=(0, 0, 1, 1)),
    )
    windows = [(32, five), (32, three), (16, five), (16, three), (8, five), (8, three)]
    windows += [(4, Window(kernel=(4, 4))), (1, Window(kernel=(1, 1)))]
    chain = [
        Stage(
            name=f"stage_{i}",
            weighted=i not in (1, 3, 5),
            height=size,
            width=size,
            window=Taps(window),
            reads=f"stage_{i - 1}" if i else INPUT,
        )
        for i, (size, window) in enumerate(windows)
    ]
    tables = schedule(chain, "pull").tables
    convs = [(0, 3, 32), (2, 32, 32), (4, 32, 64)]
    dense = [(6, 64, 64), (7, 64, 10)]

    def beats(taps, layers):
        return sum(taps[i] * -(-channels // 8) * -(-kernels // 8) for i, channels, kernels in layers)

    valid = [len(t.index) for t in tables]
    assert beats(valid, convs) == 219_472
    assert beats(valid, dense) == 1_040
    assert beats([len(t.output_order) * t.stage.window.taps for t in tables], convs + dense) == 257_040


# Schedules in use, and errors -----------------------------------------------------------------------------------------


def whole(message: str) -> str:
    return f"^{re.escape(message)}$"


def test_a_schedule_that_somebody_has_is_not_made_again():
    chain = [Stage(name="conv", weighted=True, height=9, width=8, window=Taps(Window(kernel=(3, 2))))]
    first = schedule(chain, "pull")
    assert schedule(list(chain), "pull") is first
    assert schedule(chain, "raster") is not first
    assert schedule([replace(chain[0], name="other")], "pull") is not first
    had = ref(first)
    del first
    assert had() is None, "nobody has it any more"


def test_errors_name_the_stage_the_rule_and_the_value():
    message = "schedule: map_order must be one of pull, raster, columns, got 'snake'"
    with pytest.raises(ValueError, match=whole(message)):
        schedule([TINY], "snake")
    with pytest.raises(
        ValueError, match=whole("schedule: there must be at least one stage (conv, dense or pool), got none")
    ):
        schedule([], "pull")
    last = Stage(name="last", weighted=False, height=2, width=3, window=Taps(Window(kernel=(1, 1))), reads="tiny")
    with pytest.raises(ValueError, match=whole("next: must read the 2 x 3 map of tiny, got 3 x 3")):
        schedule([TINY, replace(last, name="next", height=3)], "pull")
    with pytest.raises(ValueError, match=whole("last: must read the map of a stage before it, got tiny")):
        schedule([last, TINY], "pull")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"height": 0}, "x: height must be an integer >= 1, got 0"),
        ({"width": 1}, "x: the window must fit the padded map, got kernel (2, 2) on 3 x 1"),
        ({"window": Taps(Window(kernel=(2, 2), stride=(0, 1)))}, "x: stride must be >= 1, got (0, 1)"),
    ],
)
def test_stage_errors(change, message):
    good = {"name": "x", "weighted": True, "height": 3, "width": 4, "window": Taps(Window(kernel=(2, 2)))}
    with pytest.raises(ValueError, match=whole(message)):
        Stage(**{**good, **change})

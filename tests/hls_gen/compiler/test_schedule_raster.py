"""Raster order by counters: the same taps as the tables, or no counters at all (spec B7)."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from bitloom.golden.graph import INPUT
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.schedule import Raster, Stage, StageTables, schedule
from bitloom.hls_gen.compiler.schedule.raster import RasterAxis
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.taps import Taps
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import PLACE_BITS, SIDE_BITS
from bitloom.overlay.fuzz.random_models import random_model
from tests.graph_text import network_of
from tests.networks import check_draws, few_and_many


def stage(
    size: tuple[int, int], name: str = "stage", weighted: bool = True, reads: str = INPUT, **window: tuple
) -> Stage:
    return Stage(
        name=name, weighted=weighted, height=size[0], width=size[1], window=Taps(Window(**window)), reads=reads
    )


@st.composite
def spans(draw: st.DrawFn, size: int) -> tuple[int, int, int, int]:
    """(kernel, stride, padding before, after) of a direction of ``size``."""
    kernel = draw(st.integers(1, 5))
    before, after = (draw(st.integers(0, kernel - 1)) for _ in range(2))
    if kernel > size + before + after:
        return size, draw(st.integers(1, 4)), 0, 0
    return kernel, draw(st.integers(1, 6)), before, after


@st.composite
def chains(draw: st.DrawFn) -> list[Stage]:
    """1 to 3 stages; those before the last make maps of which positions may be left out."""
    size = (draw(st.integers(1, 12)), draw(st.integers(1, 12)))
    out = []
    for number in range(draw(st.integers(1, 3))):
        (kh, sy, top, bottom), (kw, sx, left, right) = draw(spans(size[0])), draw(spans(size[1]))
        window = {"kernel": (kh, kw), "stride": (sy, sx), "padding": (top, left, bottom, right)}
        reads = out[-1].name if out else INPUT
        out.append(stage(size, f"stage_{number}", draw(st.booleans()), reads, **window))
        size = out[-1].output_size
    return out


def taps_of(tables: StageTables) -> list[tuple[int, int, int, bool]]:
    """Of each valid tap its place in the kernel; which tuple it reads, in the order in which they are sent; how many
    tuples it claims beyond those claimed so far; and whether it is the last of its window."""
    columns = tables.tap, tables.index, tables.advance, tables.last
    return list(zip(*(c.tolist() for c in columns)))


def counted_taps(raster: Raster) -> Iterator[tuple[int, int, int, bool]]:
    """Every valid tap of a frame in order, as `taps_of` tables has them, by counting alone: golden twin of
    hls_gen/rtl/sequencer/raster.py, with the same registers."""
    x, y = raster.x, raster.y
    x_lead = x.lead
    x_room = x.room
    x_at = 0
    y_lead, y_room, y_at = y.lead, y.room, 0  # at: first valid position of the window
    top = True  # first row of windows
    for _ in range(y.windows):
        left = True  # first window of its row
        for _ in range(x.windows):
            x_place = x_lead
            y_place = y_lead
            line = y_at * x.size + x_at
            line_start, before = True, False  # before: the row above was new too
            index = line
            last = False
            while not last:
                x_last = x_place in (x.kernel - 1, x_room)
                y_last = y_place in (y.kernel - 1, y_room)
                last = x_last and y_last
                line_new = top or y_place >= y.fresh
                new = line_new and (left or (y_last and x_place >= x.fresh))
                gap = raster.gap if line_new and left and line_start and before else 0
                yield y_place * x.kernel + x_place, index, new + gap, last
                line_start = x_last
                if x_last:
                    x_place = x_lead
                    y_place = y_place + 1
                    before = line_new
                    index = line = line + x.size
                else:
                    x_place = x_place + 1
                    index = index + 1
            left = False
            x_lead, x_room, x_at = stepped(x, x_lead, x_room, x_at)
        x_lead = x.lead
        x_room = x.room
        x_at = 0
        y_lead, y_room, y_at = stepped(y, y_lead, y_room, y_at)
        top = False


def stepped(axis: RasterAxis, lead: int, room: int, at: int) -> tuple[int, int, int]:
    """lead, room and at of the next window."""
    if lead > axis.step:
        return lead - axis.step, room - axis.step, at
    return 0, room - axis.step, at + (axis.cross if lead else axis.step)


def even(tables: StageTables) -> bool:
    """Whether the windows are the same distance apart in each direction, in positions kept: slowly, for each one."""
    size, width = tables.stage.output_size, tables.stage.width
    rank = {int(p): k for k, p in enumerate(tables.input_order)}
    columns = len({p % width for p in rank})
    starts: list[set[tuple[int, int]]] = [set(), set()]
    for number, output in enumerate(tables.output_order.tolist()):
        at = int(np.flatnonzero(tables.window == number)[0])
        index, place = int(tables.index[at]), int(tables.tap[at])
        kernel = tables.stage.window.kernel[1]
        places = zip(divmod(output, size[1]), divmod(place, kernel), divmod(index, columns))
        for axis, (one, tap, index_of) in enumerate(places):
            starts[axis].add((one, index_of - tap))
    return all(len(set(np.diff([start for _, start in sorted(s)]).tolist())) <= 1 for s in starts)


@few_and_many(60, 2_000)
def test_counters_equal_tables(count):
    def same(chain):
        for tables in schedule(chain, "raster").tables:
            counters = Raster.of(tables)
            assert (counters is not None) == even(tables)
            if counters:
                assert list(counted_taps(counters)) == taps_of(tables)

    check_draws(count, same, chains())


@pytest.mark.parametrize(
    ("second", "counted"),
    [
        ({"kernel": (2, 2), "stride": (2, 2)}, True),
        ({"kernel": (1, 1), "stride": (2, 2)}, True),  # every other position of the first map: even
        ({"kernel": (2, 1), "stride": (3, 1)}, False),  # two rows of three
        ({"kernel": (2, 2), "stride": (4, 9)}, False),
        ({"kernel": (2, 2), "stride": (9, 9)}, True),  # one window
        ({"kernel": (9, 10)}, True),
    ],
)
def test_positions_left_out(second, counted):
    """The first of two stages makes only the positions that the second reads."""
    first = stage((9, 10), "first", kernel=(3, 3), padding=(1, 1, 1, 1))
    behind = stage((9, 10), "second", weighted=False, reads="first", **second)
    tables = schedule([first, behind], "raster").tables[0]
    assert (Raster.of(tables) is not None) == counted


def test_pull_has_no_counters():
    (tables,) = schedule([stage((5, 4), kernel=(3, 3), padding=(1, 1, 1, 1))], "pull").tables
    assert Raster.of(tables) is None


def test_fits():
    axis = RasterAxis(size=1 << SIDE_BITS, kernel=1 << PLACE_BITS, step=(1 << PLACE_BITS) - 1, lead=0, windows=2)
    assert axis.fits
    for change in ({"lead": 1}, {"kernel": axis.kernel + 1}, {"step": 1 << PLACE_BITS}):
        assert not replace(axis, **change).fits


def test_of_a_large_map():
    """224 x 224, 3 x 3, stride 2: by hand."""
    (tables,) = schedule([stage((224, 224), kernel=(3, 3), stride=(2, 2), padding=(1, 1, 1, 1))], "raster").tables
    axis = RasterAxis(size=224, kernel=3, step=2, lead=1, windows=112)
    assert Raster.of(tables) == Raster(y=axis, x=axis)
    assert (axis.room, axis.room_end, axis.fresh, axis.cross, axis.first_taps) == (224, 2, 1, 1, 2)
    assert Raster(y=axis, x=axis).gap == 222
    assert Raster(y=axis, x=axis).burst == 226


def test_no_gap_in_a_map_of_one_row():
    """A kernel of several rows has one row of taps there."""
    (tables,) = schedule([stage((1, 9), kernel=(3, 2), padding=(1, 0, 1, 0))], "raster").tables
    counters = Raster.of(tables)
    assert counters is not None
    assert counters.gap == 0


def test_no_gap_where_windows_have_one_row_of_taps():
    """The words of a row that never comes by need no field that holds their number."""
    model = random_model(network_of("3x9x40", "conv_1 4 1x2, act_1", name="wide"), 0)
    choices = CompileChoices(map_order="raster")
    design = size_memories("wide", [model], Npu.of(kfp=2, kgp=4, pfp=1, raster=True), choices)
    assert 2 * design.npus[0].sequencer.tuple_words <= 7 * 20  # the words of a row behind the first two tuples
    assert compile_model(model, Manifest.of(design, "0" * 64), choices).ideal_cycles == 3 * 8 * 2 * 20

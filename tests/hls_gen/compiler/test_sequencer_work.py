"""Beats and cycles of a sequencer by formula, against taps that are counted one by one."""

import numpy as np
import pytest

from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.layout import result_layout, result_steps
from bitloom.hls_gen.compiler.schedule import Stage, schedule
from bitloom.hls_gen.compiler.sequencer_work import SequencerWork
from bitloom.hls_gen.compiler.taps import Taps
from bitloom.hls_gen.design.npu import Npu

PADDED = Window(kernel=(3, 2), stride=(2, 1), padding=(1, 1, 0, 0))
"""On a map of 4 x 3: 2 x 3 windows with 2 or 3 rows and 1 or 2 columns on the map."""
VALID = [2, 4, 4, 3, 6, 6]


def test_of_a_schedule_and_of_a_map():
    tables = schedule([Stage(name="pool", kind="pool", height=4, width=3, window=Taps(PADDED))], "raster").tables[0]
    assert SequencerWork.of(tables).taps.tolist() == VALID
    assert SequencerWork.of(tables, visits=2).taps.tolist() == [2 * taps for taps in VALID]
    assert SequencerWork.of_map(PADDED, 4, 3).taps.tolist() == VALID
    assert SequencerWork.straight(3).taps.tolist() == [1, 1, 1]


def test_a_beat_for_each_word_of_each_tap_in_each_pass():
    work = SequencerWork(np.array(VALID))
    assert work.beats(words=1) == sum(VALID)
    assert work.beats(words=5, passes=3) == 15 * sum(VALID)
    assert SequencerWork.straight(0).beats(words=7) == 0


def test_a_window_takes_as_long_as_its_results():
    """With 2 words a tap the windows take 4, 8, 8, 6, 12 and 12 cycles; 7 at least."""
    assert SequencerWork(np.array(VALID)).cycles(2, least=7) == 7 + 8 + 8 + 7 + 12 + 12


@pytest.mark.parametrize("aheads", [0, 2])
def test_tuples_that_a_tap_skips(aheads):
    """Windows of 2 x 2 on two rows of four positions: the first one's third tap, in the second row, waits for two
    tuples of the first row that it doesn't read."""
    window = Window(kernel=(2, 2))
    tables = schedule([Stage(name="conv", kind="conv", height=2, width=4, window=Taps(window))], "raster").tables[0]
    work = SequencerWork.of(tables)
    kind = Npu.of(aheads=aheads).sequencer.kind
    assert work.taps.tolist() == [4, 4, 4]
    assert work.skips is not None
    assert work.skips.tolist() == [2, 0, 0]
    assert work.beats(words=3) == 36
    assert work.cycles(3, kind=kind) == (36 if aheads else 38)
    assert work.cycles(3, least=13, kind=kind) == (39 if aheads else 40)


@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize(("kgp", "ol"), [(1, 1), (4, 2), (5, 2), (6, 4), (8, 8)])
def test_steps_are_those_of_the_layout(kgp, ol, levels):
    for kernels in range(1, 20):
        assert result_steps(kernels, levels, kgp, ol) == len(result_layout(kernels, levels, kgp, ol))

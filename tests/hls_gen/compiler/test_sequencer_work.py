"""Beats and cycles of a sequencer by formula, against taps that are counted one by one."""

import pytest

from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.layout import result_layout, result_steps
from bitloom.hls_gen.compiler.schedule import Stage, schedule
from bitloom.hls_gen.compiler.sequencer_taps import SequencerTaps
from bitloom.hls_gen.compiler.sequencer_work import SequencerWork
from bitloom.hls_gen.compiler.taps import Taps
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.sequencer_kind import SequencerKind

PADDED = Window(kernel=(3, 2), stride=(2, 1), padding=(1, 1, 0, 0))
"""On a map of 4 x 3: 2 x 3 windows with 2 or 3 rows and 1 or 2 columns on the map."""
VALID = SequencerWork(((2, 0, 1), (3, 0, 1), (4, 0, 2), (6, 0, 2)))
"""Taps of these windows: 2, 4, 4, 3, 6 and 6."""
KIND = SequencerKind()


def test_of_a_schedule_and_of_a_map():
    tables = schedule([Stage(name="pool", weighted=False, height=4, width=3, window=Taps(PADDED))], "pull").tables[0]
    assert SequencerTaps(tables, KIND).counts.work == VALID
    twice = ((4, 0, 1), (6, 0, 1), (8, 0, 2), (12, 0, 2))
    assert SequencerTaps(tables, KIND, visits=2).counts.work == SequencerWork(twice)
    assert SequencerWork.of_map(PADDED, 4, 3) == VALID
    assert SequencerWork.of_map(None, 1, 3) == SequencerWork(((1, 0, 3),))


def test_a_cycle_for_each_word_of_each_tap():
    assert VALID.cycles(words=1) == 25
    assert VALID.cycles(words=5) == 5 * 25
    assert SequencerWork(()).cycles(words=7) == 0


def test_a_window_takes_as_long_as_its_results():
    """With 2 words a tap the windows take 4, 8, 8, 6, 12 and 12 cycles; 7 at least."""
    assert VALID.cycles(2, least=7) == 7 + 8 + 8 + 7 + 12 + 12


@pytest.mark.parametrize("aheads", [0, 2])
def test_tuples_that_a_tap_skips(aheads):
    """Windows of 2 x 2 on two rows of four positions: the first one's third tap, in the second row, waits for two
    tuples of the first row that it doesn't read."""
    window = Window(kernel=(2, 2))
    tables = schedule([Stage(name="conv", weighted=True, height=2, width=4, window=Taps(window))], "raster").tables[0]
    work = SequencerTaps(tables, Npu.of(aheads=aheads).array_sequencer.kind).counts.work
    assert work == SequencerWork(((4, 0, 3),) if aheads else ((4, 0, 2), (4, 2, 1)))
    assert work.cycles(3) == (36 if aheads else 38)
    assert work.cycles(3, least=13) == (39 if aheads else 40)


@pytest.mark.parametrize("levels", [1, 3])
@pytest.mark.parametrize(("kgp", "ol"), [(1, 1), (4, 2), (5, 2), (6, 4), (8, 8)])
def test_steps_are_those_of_the_layout(kgp, ol, levels):
    for kernels in range(1, 20):
        assert result_steps(kernels, levels, kgp, ol) == len(result_layout(kernels, levels, kgp, ol))

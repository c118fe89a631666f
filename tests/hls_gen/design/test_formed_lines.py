"""Lines that are formed: which positions come, which complete a window, and of which maps that can be. The taps of
windows are compared with golden's in tests/hls_gen/compiler/test_lines.py."""

import numpy as np
import pytest

from bitloom.golden.window import Window
from bitloom.hls_gen.design.formed_lines import FormedLines, MapLines
from bitloom.hls_gen.design.widths import PLACE_BITS

WINDOW = Window(kernel=(1, 3), stride=(1, 2), padding=(0, 1, 0, 1))
TWO_LINES = Window(kernel=(2, 1))


def lines(*numbers: int, positions: int) -> MapLines:
    return MapLines(np.array(numbers), positions)


def test_a_window_is_complete_with_its_last_tap() -> None:
    formed = FormedLines.of(WINDOW, lines(0, 1, positions=5), lines(0, 1, positions=3))
    assert formed is not None
    assert formed.columns().tolist() == [[-1, 0, 1], [1, 2, 3], [3, 4, -1]]
    assert np.flatnonzero(formed.hits()).tolist() == [1, 3, 5]
    assert np.flatnonzero(formed.inside()).tolist() == [0, 1, 2, 3, 4]
    assert (formed.times, formed.coming_words, formed.pads) == (2, 10, True)


def test_windows_of_several_lines_are_complete_with_the_last_one() -> None:
    window = Window(kernel=(2, 1), stride=(2, 1), padding=(1, 0, 0, 0))
    formed = FormedLines.of(window, lines(0, 1, 2, positions=2), lines(0, 1, positions=2))
    assert formed is not None
    assert np.flatnonzero(formed.line_hits()).tolist() == [0, 2]
    assert np.flatnonzero(formed.hits()).tolist() == [0, 1, 4, 5]
    assert formed.inside().tolist() == [True] * 6
    assert (formed.times, formed.coming_words, formed.pads) == (1, 6, True)


def test_words_of_a_tuple_fill_the_last_window() -> None:
    formed = FormedLines.gathered(7, 4, 3)
    assert formed.columns().tolist() == [[-1, -1, 0], [1, 2, 3]]
    assert np.flatnonzero(formed.hits()).tolist() == [0, 3]
    assert (formed.times, formed.inside().tolist()) == (7, [True] * 4)


NOT_FORMED = [
    (WINDOW, lines(0, 1, 2, positions=5), lines(0, 2, positions=3)),  # line 1 has no window
    (WINDOW, lines(0, positions=5), lines(0, positions=2)),  # nor has the last position
    (TWO_LINES, lines(0, 2, 3, positions=5), lines(0, 1, positions=5)),  # line 2 is no neighbour of line 0
    (TWO_LINES, lines(0, 1, 2, positions=5), lines(0, positions=5)),  # line 2 has no window
    (TWO_LINES, lines(0, 1, positions=5), lines(0, 1, positions=5)),  # a window ends below the map
    (Window(kernel=(2, 1), stride=((1 << PLACE_BITS) + 1, 1)), lines(0, 1, positions=1), lines(0, positions=1)),
    (Window(kernel=(1, 2), stride=(1, (1 << PLACE_BITS) + 1)), lines(0, positions=2), lines(0, positions=1)),
]


@pytest.mark.parametrize(("window", "coming", "wanted"), NOT_FORMED)
def test_maps_that_are_not_formed(window: Window, coming: MapLines, wanted: MapLines) -> None:
    assert FormedLines.of(window, coming, wanted) is None

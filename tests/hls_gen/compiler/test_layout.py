import numpy as np
import pytest

from bitloom.hls_gen.compiler.layout import lanes_in_words, result_layout
from bitloom.hls_gen.design.gearbox import regroup
from bitloom.hls_gen.design.lanes import UNUSED

_ = UNUSED


def test_lanes_in_words():
    assert lanes_in_words(np.array([7, 8, 9]), 2).tolist() == [[7, 8], [9, _]]
    assert lanes_in_words(np.array([7, 8]), 2).tolist() == [[7, 8]]
    assert lanes_in_words(np.array([7, 8]), 4).tolist() == [[7, 8, _, _]]


def test_results_leave_group_after_group_and_level_after_level():
    """5 kernels in groups of 3, two at a time, 2 levels each."""
    steps = [[0, 2], [1, 3]]  # kernels 0 and 1: levels 0, then levels 1
    steps += [[4, _], [5, _]]  # kernel 2, the last of its group
    assert result_layout(5, 2, 3, 2).tolist() == [*steps, [6, 8], [7, 9]]


@pytest.mark.parametrize(
    ("layout", "width", "expected"),
    [
        ([[0], [1], [2]], 2, [[0, 1], [2, _]]),
        ([[0, 1], [2, 3]], 5, [[0, 1, 2, 3, _]]),
        ([[0, 1, 2], [3, 4, 5]], 2, [[0, 1], [2, _], [3, 4], [5, _]]),
        ([[0, 1, 2, 3]], 4, [[0, 1, 2, 3]]),
        ([[0, 1, 2]], 1, [[0], [1], [2]]),
    ],
)
def test_regroup(layout, width, expected):
    assert regroup(np.array(layout), width).tolist() == expected

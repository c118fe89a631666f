import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitloom.hls_gen.compiler.layout import Layout, chunks, plane_layout, result_layout
from bitloom.hls_gen.design.gearbox import regroup
from bitloom.hls_gen.design.lanes import UNUSED

QUICK = settings(max_examples=60, deadline=None, derandomize=True, database=None)
_ = UNUSED


def used(layout: Layout) -> list[int]:
    return layout[layout != UNUSED].tolist()


def test_chunks():
    assert chunks(np.array([7, 8, 9]), 2).tolist() == [[7, 8], [9, _]]
    assert chunks(np.array([7, 8]), 2).tolist() == [[7, 8]]
    assert chunks(np.array([7, 8]), 4).tolist() == [[7, 8, _, _]]


def test_results_leave_group_after_group_and_level_after_level():
    """5 kernels in groups of 3, two at a time, 2 levels each."""
    assert result_layout(5, 2, 3, 2).tolist() == [
        [0, 2], [1, 3],  # kernels 0 and 1: levels 0, then levels 1
        [4, _], [5, _],  # kernel 2, the last of its group
        [6, 8], [7, 9],
    ]  # fmt: skip


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


@QUICK
@given(st.integers(1, 60), st.integers(1, 4), st.integers(1, 20), st.data())
def test_every_result_appears_once_through_all_gearboxes(kernels, levels, kgp, data):
    ol = data.draw(st.integers(1, kgp))
    layout = result_layout(kernels, levels, kgp, ol)
    assert layout.shape[1] == ol
    for width in data.draw(st.lists(st.integers(1, 70), max_size=3)):
        layout = regroup(layout, width)
        assert layout.shape[1] == width
    assert sorted(used(layout)) == list(range(kernels * levels))


@QUICK
@given(st.integers(1, 40), st.integers(2, 8), st.integers(1, 80), st.booleans())
def test_every_plane_of_every_channel_appears_once(channels, planes, kfp, beside):
    groups = planes if beside and kfp > planes else 0
    layout, code = plane_layout(channels, planes, kfp, groups)
    assert layout.shape == (len(code), kfp)
    assert sorted(used(layout)) == list(range(channels * (planes + 1)))
    if not groups:  # all lanes of a word have the weight of its code
        weights = {p: (p if p < planes - 1 else -1 - p) for p in range(planes)} | {planes: 0}
        for word, c in zip(layout, code):
            assert {weights[lane % (planes + 1)] for lane in used(word)} == {c}


def gearbox(words: list[list[int]], width: int) -> list[list[int]]:
    """hls_gen/rtl/primitives/gearbox.py: collect whole words until no more fit or the tuple ends; or cut, low part
    first."""
    out: list[list[int]] = []
    have = len(words[0])
    if have > width:
        return [(word[i : i + width] + [0] * width)[:width] for word in words for i in range(0, have, width)]
    for i in range(0, len(words), width // have):
        together = [bit for word in words[i : i + width // have] for bit in word]
        out.append(together + [0] * (width - len(together)))
    return out


@QUICK
@given(st.integers(1, 50), st.integers(1, 20), st.lists(st.integers(1, 40), min_size=1, max_size=3), st.integers(0, 99))
def test_data_goes_through_a_gearbox_as_its_layout_does(lanes, width, widths, seed):
    bits = np.append(np.random.default_rng(seed).integers(0, 2, lanes), 0)  # UNUSED picks the 0
    layout = chunks(np.arange(lanes), width)
    words = bits[layout].tolist()
    for to in widths:
        layout, words = regroup(layout, to), gearbox(words, to)
        assert bits[layout].tolist() == words

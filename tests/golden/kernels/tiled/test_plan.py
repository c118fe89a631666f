from dataclasses import replace

import pytest

from bitloom.golden.kernels.tiled.plan import GpuLimits, plan
from tests.errors import value_error

from .cases import case


def test_shared_memory_is_the_input_tile_and_the_weights():
    conv_case = case(size=(20, 20), channels=64, out_channels=32)
    how = plan(conv_case.layer, conv_case.words)
    assert how.shared_bytes == 2 * (18 * 18 + 9 * 40) * 4
    assert plan(conv_case.layer, conv_case.words, kernel="mma-and").shared_bytes == how.shared_bytes + 4 * (
        16 * 32 + 2 * 9
    )
    assert plan(conv_case.layer, conv_case.words, kernel="mma-xor").shared_bytes == how.shared_bytes + 4 * 2 * 9
    exact = replace(conv_case.layer, pad="exact")
    assert plan(exact, conv_case.words, kernel="mma-xor").shared_bytes == how.shared_bytes + 4 * (16 * 32 + 2 * 9)
    two = replace(how, stage_groups=1, buffers=2)
    assert two.shared_bytes == how.shared_bytes
    assert replace(two, kernel="mma-xor").shared_bytes == how.shared_bytes + 4 * 9
    wide = case(size=(20, 20), channels=64, out_channels=32, word_bits=64)
    assert plan(wide.layer, wide.words).shared_bytes == (18 * 18 + 9 * 36) * 8


@pytest.mark.parametrize("kernel", ["popc", "mma-xor", "mma-and"])
def test_stages_all_groups_or_two_buffers_of_as_many_as_fit(kernel):
    """Five groups: all, or two and two, or one and one, or one alone where there is no room for a second buffer."""
    conv_case = case(size=(5, 5), channels=160)
    least = replace(plan(conv_case.layer, conv_case.words, kernel=kernel), stage_groups=1, buffers=1)
    how = plan(conv_case.layer, conv_case.words, kernel=kernel, limits=GpuLimits(shared_bytes=least.shared_bytes))
    assert (how.stage_groups, how.buffers) == (1, 1)
    for expected, below in (((1, 2), (1, 1)), ((2, 2), (1, 2)), ((5, 1), (2, 2))):
        groups, buffers = expected
        enough = replace(least, limits=GpuLimits(), stage_groups=groups, buffers=buffers).shared_bytes
        for limit, stages in ((enough - 1, below), (enough, expected)):
            how = plan(conv_case.layer, conv_case.words, kernel=kernel, limits=GpuLimits(shared_bytes=limit))
            assert (how.stage_groups, how.buffers) == stages
    how = plan(conv_case.layer, conv_case.words, kernel=kernel, limits=GpuLimits(shared_bytes=1 << 20))
    assert (how.stage_groups, how.buffers) == (5, 1)


def test_impossible_tiles():
    conv_case = case(channels=33)
    for options, message in (
        ({"block": (48, 4, 4)}, "conv: a of block (a, bh, bw) must be a multiple of 32, got 48"),
        ({"block": (32, 4)}, "conv: block (a, bh, bw) must be 3 integers >= 1, got (32, 4)"),
        ({"block": (32, 0, 4)}, "conv: block (a, bh, bw) must be 3 integers >= 1, got (32, 0, 4)"),
        ({"patch": (4, 1.5)}, "conv: patch (th, tw) must be 2 integers >= 1, got (4, 1.5)"),
        (
            {"block": (64, 4, 8)},
            "conv: a block must have at most 1024 threads and 64 columns of them, got (64, 4, 8)",
        ),
        (
            {"block": (32, 1, 65), "limits": GpuLimits(threads=4096)},
            "conv: a block must have at most 4096 threads and 64 columns of them, got (32, 1, 65)",
        ),
        ({"block": 32}, "conv: block (a, bh, bw) must be 3 integers >= 1, got 32"),
        ({"patch": None}, "conv: patch (th, tw) must be 2 integers >= 1, got None"),
        ({"kernel": "xor"}, "conv: kernel must be one of popc, mma-xor, mma-and, got 'xor'"),
        (
            {"patch": (8, 8)},
            "conv: a patch of (8, 8) needs 224 registers a thread, 512 threads have 128 each",
        ),
        (
            {"block": (32, 1, 1), "patch": (16, 16)},
            "conv: a patch of (16, 16) needs 608 registers a thread, 32 threads have 255 each",
        ),
        (
            {"limits": GpuLimits(shared_bytes=2735)},
            "conv: a block of (32, 4, 4) with patches of (4, 4) and 1 x 1 word groups needs 2736 bytes of shared "
            "memory, the limit is 2735",
        ),
    ):
        with value_error(message):
            plan(conv_case.layer, conv_case.words, **options)
    how = plan(conv_case.layer, conv_case.words)
    with value_error("conv: stage_groups must be 1..2, got 3"):
        replace(how, stage_groups=3)
    with value_error("conv: stage_groups must be 1..2, got 1.0"):
        replace(how, stage_groups=1.0)
    with value_error("conv: buffers must be 1 or 2, got 3"):
        replace(how, buffers=3)
    with value_error("conv: blocks must be < 2^31, got 2147483648"):
        replace(how, images=1 << 30)
    with value_error("limits: shared_bytes must be an integer >= 1, got nan"):
        GpuLimits(shared_bytes=float("nan"))
    with value_error("conv: the plan is for an input of shape (2, 2, 7, 9), got (1, 2, 7, 9)"):
        replace(how, images=2).check(conv_case.layer, conv_case.words)
    other = case(channels=33).layer
    with value_error("conv: the plan must be of this layer, got one of another, conv"):
        how.check(other, conv_case.words)

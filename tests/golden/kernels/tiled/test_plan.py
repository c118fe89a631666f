from dataclasses import replace

import pytest

from bitloom.golden.kernels.tiled.plan import Limits, Place, plan
from tests.errors import value_error

from .cases import case


def test_default_tile_is_16_x_16_outputs_of_32_channels_by_512_threads():
    made = case(size=(20, 40), channels=65, out_channels=65, kernel=(3, 5), stride=(2, 1))
    how = plan(made.layer, made.words)
    assert (how.threads, how.tile, how.patch, how.block) == (512, (16, 16), (4, 4), (32, 4, 4))
    assert how.input_tile == (16 * 2 + 3 - 2, 16 + 5 - 1)
    assert how.output == (9, 36)
    assert how.grid == (1, 3, 1, 3)  # 65 channels are 3 words of 32
    assert how.stage_groups == 3


def test_places_are_all_tiles_column_fastest():
    made = case(images=2, size=(10, 6), out_channels=33, kernel=(1, 1))
    how = plan(made.layer, made.words, block=(32, 2, 1), patch=(3, 4))
    places = [how.place(index) for index in range(how.blocks)]
    assert places == [Place(n, c, y, x) for n in (0, 1) for c in (0, 32) for y in (0, 6) for x in (0, 4)]


def test_shared_memory_is_the_input_tile_and_the_weights():
    made = case(size=(20, 20), channels=64, out_channels=32)
    how = plan(made.layer, made.words)
    assert how.shared_bytes == 2 * (18 * 18 + 9 * 40) * 4
    assert plan(made.layer, made.words, kernel="mma-and").shared_bytes == how.shared_bytes + 4 * (10 * 32 + 2 * 9)
    assert plan(made.layer, made.words, kernel="mma-xor").shared_bytes == how.shared_bytes + 4 * 2 * 9
    exact = replace(made.layer, pad="exact")
    assert plan(exact, made.words, kernel="mma-xor").shared_bytes == how.shared_bytes + 4 * (10 * 32 + 2 * 9)
    two = replace(how, stage_groups=1, buffers=2)
    assert two.shared_bytes == how.shared_bytes
    assert replace(two, kernel="mma-xor").shared_bytes == how.shared_bytes + 4 * 9
    wide = case(size=(20, 20), channels=64, out_channels=32, word_bits=64)
    assert plan(wide.layer, wide.words).shared_bytes == (18 * 18 + 9 * 36) * 8


@pytest.mark.parametrize("kernel", ["popc", "mma-xor", "mma-and"])
def test_stages_all_groups_or_two_buffers_of_as_many_as_fit(kernel):
    """Five groups: all, or two and two, or one and one, or one alone where there is no room for a second buffer."""
    made = case(size=(5, 5), channels=160)
    least = plan(made.layer, made.words, kernel=kernel, limits=Limits(shared_bytes=4100))
    assert (least.stage_groups, least.buffers) == (1, 1)
    for expected, below in (((1, 2), (1, 1)), ((2, 2), (1, 2)), ((5, 1), (2, 2))):
        groups, buffers = expected
        enough = replace(least, limits=Limits(), stage_groups=groups, buffers=buffers).shared_bytes
        for limit, found in ((enough - 1, below), (enough, expected)):
            how = plan(made.layer, made.words, kernel=kernel, limits=Limits(shared_bytes=limit))
            assert (how.stage_groups, how.buffers) == found
    how = plan(made.layer, made.words, kernel=kernel, limits=Limits(shared_bytes=1 << 20))
    assert (how.stage_groups, how.buffers) == (5, 1)


def test_registers_of_sums_and_matrix_products():
    made = case()
    assert plan(made.layer, made.words).thread_registers == 2 * 16 + 88
    assert plan(made.layer, made.words, block=(32, 2, 2), patch=(5, 5)).thread_registers == 2 * 25 + 88
    assert (
        plan(made.layer, made.words, block=(32, 2, 2), patch=(5, 5), kernel="mma-xor").thread_registers == 2 * 32 + 88
    )


def test_limits_may_be_met_exactly():
    made = case()
    for limits in (Limits(threads=512, thread_registers=120), Limits(registers=120 * 512)):
        how = plan(made.layer, made.words, limits=limits)
        assert how.thread_registers == how.register_limit == 120
    many = Limits(registers=1 << 20)
    assert plan(made.layer, made.words, block=(64, 4, 4), patch=(1, 1), limits=many).threads == 1024
    many = Limits(threads=2048, registers=1 << 20)
    assert plan(made.layer, made.words, block=(32, 1, 64), patch=(1, 1), limits=many).threads == 2048


def test_impossible_tiles():
    made = case(channels=33)
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
            {"block": (32, 1, 65), "limits": Limits(threads=4096)},
            "conv: a block must have at most 4096 threads and 64 columns of them, got (32, 1, 65)",
        ),
        ({"block": 32}, "conv: block (a, bh, bw) must be 3 integers >= 1, got 32"),
        ({"patch": None}, "conv: patch (th, tw) must be 2 integers >= 1, got None"),
        ({"kernel": "xor"}, "conv: kernel must be one of popc, mma-xor, mma-and, got 'xor'"),
        (
            {"patch": (8, 8)},
            "conv: a patch of (8, 8) needs 216 registers a thread, 512 threads have 128 each",
        ),
        (
            {"block": (32, 1, 1), "patch": (16, 16)},
            "conv: a patch of (16, 16) needs 600 registers a thread, 32 threads have 255 each",
        ),
        (
            {"limits": Limits(shared_bytes=2735)},
            "conv: a block of (32, 4, 4) with patches of (4, 4) and 1 x 1 word groups needs 2736 bytes of shared "
            "memory, the limit is 2735",
        ),
    ):
        with value_error(message):
            plan(made.layer, made.words, **options)
    how = plan(made.layer, made.words)
    with value_error("conv: stage_groups must be 1..2, got 3"):
        replace(how, stage_groups=3)
    with value_error("conv: stage_groups must be 1..2, got 1.0"):
        replace(how, stage_groups=1.0)
    with value_error("conv: buffers must be 1 or 2, got 3"):
        replace(how, buffers=3)
    with value_error("conv: blocks must be < 2^31, got 2147483648"):
        replace(how, images=1 << 30)
    with value_error("limits: shared_bytes must be an integer >= 1, got nan"):
        Limits(shared_bytes=float("nan"))
    with value_error("conv: the plan is for an input of shape (2, 2, 7, 9), got (1, 2, 7, 9)"):
        replace(how, images=2).check(made.layer, made.words)
    other = case(channels=33).layer
    with value_error("conv: the plan must be of this layer, got one of another, conv"):
        how.check(other, made.words)

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


def test_unused_bits_of_the_last_word_have_a_block():
    made = case(out_channels=3, word_bits=64)
    assert plan(made.layer, made.words).grid[1] == 2


def test_places_are_all_tiles_column_fastest():
    made = case(images=2, size=(10, 6), out_channels=33, kernel=(1, 1))
    how = plan(made.layer, made.words, block=(32, 2, 1), patch=(3, 4))
    places = [how.place(index) for index in range(how.blocks)]
    assert places == [Place(n, c, y, x) for n in (0, 1) for c in (0, 32) for y in (0, 6) for x in (0, 4)]


def test_shared_memory_is_the_input_tile_and_the_weights():
    made = case(size=(20, 20), channels=64, out_channels=32)
    how = plan(made.layer, made.words)
    assert how.shared_bytes == 2 * (18 * 18 + 9 * 33) * 4
    assert plan(made.layer, made.words, kernel="mma-and").shared_bytes == how.shared_bytes + 4 * (10 * 32 + 2 * 9)
    wide = case(size=(20, 20), channels=64, out_channels=32, word_bits=64)
    assert plan(wide.layer, wide.words).shared_bytes == (18 * 18 + 9 * 33) * 8


@pytest.mark.parametrize("kernel", ["popc", "mma-xor"])
def test_stages_as_many_groups_as_fit(kernel):
    made = case(size=(5, 5), channels=128)
    one = plan(made.layer, made.words, kernel=kernel, limits=Limits(shared_bytes=4000))
    assert one.stage_groups == 1
    for groups in (2, 3, 4):
        enough = replace(one, limits=Limits(), stage_groups=groups).shared_bytes
        for limit, staged in ((enough - 1, groups - 1), (enough, groups)):
            how = plan(made.layer, made.words, kernel=kernel, limits=Limits(shared_bytes=limit))
            assert how.stage_groups == staged
    assert plan(made.layer, made.words, kernel=kernel, limits=Limits(shared_bytes=1 << 20)).stage_groups == 4


def test_registers_of_sums_and_matrix_products():
    made = case()
    assert plan(made.layer, made.words).thread_registers == 2 * 16 + 72
    assert plan(made.layer, made.words, block=(32, 2, 2), patch=(5, 5)).thread_registers == 2 * 25 + 72
    assert (
        plan(made.layer, made.words, block=(32, 2, 2), patch=(5, 5), kernel="mma-xor").thread_registers == 2 * 32 + 72
    )


def test_limits_may_be_met_exactly():
    made = case()
    for limits in (Limits(threads=512, thread_registers=104), Limits(registers=104 * 512)):
        how = plan(made.layer, made.words, limits=limits)
        assert how.thread_registers == how.register_limit == 104
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
            "conv: a patch of (8, 8) needs 200 registers a thread, 512 threads have 128 each",
        ),
        (
            {"block": (32, 1, 1), "patch": (16, 16)},
            "conv: a patch of (16, 16) needs 584 registers a thread, 32 threads have 255 each",
        ),
        (
            {"limits": Limits(shared_bytes=2483)},
            "conv: a block of (32, 4, 4) with patches of (4, 4) and 1 word groups needs 2484 bytes of shared memory, "
            "the limit is 2483",
        ),
    ):
        with value_error(message):
            plan(made.layer, made.words, **options)
    how = plan(made.layer, made.words)
    with value_error("conv: stage_groups must be 1..2, got 3"):
        replace(how, stage_groups=3)
    with value_error("conv: stage_groups must be 1..2, got 1.0"):
        replace(how, stage_groups=1.0)
    with value_error("conv: blocks must be < 2^31, got 2147483648"):
        replace(how, images=1 << 30)
    with value_error("limits: shared_bytes must be an integer >= 1, got nan"):
        Limits(shared_bytes=float("nan"))
    with value_error("conv: the plan is for an input of shape (2, 2, 7, 9), got (1, 2, 7, 9)"):
        replace(how, images=2).check(made.layer, made.words)
    other = case(channels=33).layer
    with value_error("conv: the plan must be of this layer, got one of another, conv"):
        how.check(other, made.words)

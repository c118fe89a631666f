"""The CUDA source under g++. It must compute what golden computes, and break no rule that fibers.h can see."""

import ctypes
import re
from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.kernels import native
from bitloom.golden.kernels.tiled import kernel, reference
from bitloom.golden.kernels.tiled.plan import KERNELS, GpuLimits, TilePlan, plan
from bitloom.golden.kernels.tiled.reference import WordReads
from tests.errors import value_error
from tests.golden.kernels.tiled import fiber

from .cases import case, random_case
from .test_reference import UNEVEN, needed

kernels = pytest.mark.parametrize("kernel", KERNELS)


def check(conv_case, how, **options):
    conv_case.check(fiber.run(conv_case.layer, conv_case.words, how, **options))


@pytest.mark.sample(16)
@kernels
@pytest.mark.parametrize("seed", range(120))
def test_equals_golden(seed, kernel):
    conv_case, _ = random_case(seed)
    check(conv_case, plan(conv_case.layer, conv_case.words, kernel=kernel))


@kernels
@pytest.mark.parametrize("word_bits", [32, 64])
@pytest.mark.parametrize("patch", [(4, 8), (5, 7)])
def test_several_chunks_share_the_weights_of_a_warp(patch, word_bits, kernel):
    """Chunks of 16 positions of which the last ones lie outside the map, some wholly; two stages, two buffers."""
    conv_case = case(size=(13, 9), channels=200, padding=(1, 1, 2, 0), pad="exact", word_bits=word_bits)
    how = plan(conv_case.layer, conv_case.words, block=(32, 2, 1), patch=patch, kernel=kernel)
    check(conv_case, replace(how, stage_groups=2, buffers=2))


@pytest.mark.sample(16)
@kernels
@pytest.mark.parametrize("word_bits", [32, 64])
@pytest.mark.parametrize("map_", UNEVEN)
@pytest.mark.parametrize(("columns", "buffers"), [(1, 2), (2, 1)])
def test_a_block_reads_each_word_that_it_needs_once(columns, buffers, map_, word_bits, kernel):
    """The upper half of 64-bit words has no channel, and its block needs nothing."""
    conv_case = case(images=2, channels=65, out_channels=31, word_bits=word_bits, **map_)
    how = replace(
        plan(conv_case.layer, conv_case.words, block=(32, 1, columns), kernel=kernel), stage_groups=2, buffers=buffers
    )
    for index in range(how.blocks):
        reads = WordReads.none(conv_case.layer, conv_case.words)
        fiber.run(conv_case.layer, conv_case.words, how, order=[index], reads=reads)
        words, weight = needed(how, index)
        assert np.array_equal(reads.words, words)
        assert np.array_equal(reads.weight, weight)


def test_problem_is_the_struct_of_the_source():
    text = kernel.SOURCE.read_text()
    members = re.search(r"struct Problem \{(.*?)\};", text, re.DOTALL)[1]
    declared = re.findall(r"int ([\w, \n]+);", members)
    assert tuple(re.split(r",\s*", ", ".join(declared))) == kernel.FIELDS
    assert re.search(r"enum Pad \{ (.*?) \}", text)[1] == "PAD_MINUS, PAD_PLUS, PAD_EXACT"


def test_global_memory_is_read_by_the_call_that_counts_and_checks():
    """Only what goes through __ldg or start_copy, which calls it, is counted: a second read elsewhere isn't seen."""
    text = re.sub(r"//.*", "", kernel.SOURCE.read_text())
    uses = re.findall(r"[^\n]*\b(?:input|weight|threshold)\b\s*(?:\+|\[)[^\n]*", text)
    assert len(uses) == 5
    assert all("__ldg(" in use or "start_copy(" in use for use in uses)


def test_a_write_outside_the_output_is_an_error(monkeypatch):
    conv_case = case()
    how = plan(conv_case.layer, conv_case.words)
    shape = how.output_shape
    monkeypatch.setattr(TilePlan, "output_shape", property(lambda _: (*shape[:-1], shape[-1] - 1)))
    with pytest.raises(fiber.FiberError, match=r"^conv: popc: wrote outside the output\Z"):
        fiber.run(conv_case.layer, conv_case.words, how)


def test_shared_memory_has_an_end():
    conv_case = case(channels=4096, out_channels=1, size=(3, 3))
    how = plan(conv_case.layer, conv_case.words, limits=GpuLimits(shared_bytes=1 << 20))
    with pytest.raises(fiber.FiberError, match="at most 256 KiB of shared memory"):
        fiber.run(conv_case.layer, conv_case.words, how)


@pytest.mark.parametrize("run", [fiber.run, reference.run])
def test_order_is_of_blocks(run):
    conv_case = case(channels=64, out_channels=3, size=(20, 20), kernel=(1, 1), word_bits=64)
    assert plan(conv_case.layer, conv_case.words).blocks == 8
    for index in (8, -1, 1.5, 1 << 32):
        with value_error(f"conv: order must be of blocks 0..7, got {index}"):
            run(conv_case.layer, conv_case.words, order=[0, index])
    conv_case.check(run(conv_case.layer, conv_case.words, order=np.arange(8)[::-1]))


RUNS = {
    "works": (
        """
        const int t = threadIdx.x + 32 * threadIdx.y;
        if (threadIdx.y == 0 && threadIdx.x == 7) __ldg(out);
        const unsigned vote = __ballot_sync(~0u, threadIdx.x % 3 == threadIdx.y);
        reinterpret_cast<unsigned char*>(shared_memory)[t] = __shfl_xor_sync(~0u, t, 5);
        __syncthreads();
        if (t == 0) out[0] = vote, out[1] = reinterpret_cast<unsigned char*>(shared_memory)[63];
        if (t == 32) out[2] = vote;
        """,
        "",
    ),
    "missing at a barrier": (
        "if (threadIdx.y == 1) return;\n__syncthreads();",
        "block 0: all threads must come to the same barrier, thread (0, 0, 0) waits at a barrier in line 6, "
        "thread (0, 1, 0) has ended",
    ),
    "different barriers": (
        "if (threadIdx.y == 1)\n__syncthreads(); else\n__syncthreads();",
        "block 0: all threads must come to the same barrier, thread (0, 0, 0) waits at a barrier in line 7, "
        "thread (0, 1, 0) waits at a barrier in line 6",
    ),
    "missing at a vote": (
        "if (threadIdx.x != 3)\n__ballot_sync(~0u, 1);",
        "block 0: all lanes of a warp must come to the same operation, thread (0, 1, 0) waits at a vote in line 6, "
        "thread (3, 1, 0) has ended",
    ),
    "a vote and a barrier": (
        "if (threadIdx.x == 9)\n__syncthreads(); else\n__ballot_sync(~0u, 1);",
        "block 0: all lanes of a warp must come to the same operation, thread (0, 1, 0) waits at a vote in line 7, "
        "thread (9, 1, 0) waits at a barrier in line 6",
    ),
    "a vote of some": ("__ballot_sync(1u, 1);", "line 5: a vote must be one of all lanes"),
    "a shuffle of some": ("__shfl_xor_sync(1u, 1, 1);", "line 5: a shuffle must be one of all lanes"),
    "shuffles apart": (
        "__shfl_xor_sync(~0u, 1, threadIdx.x == 31 ? 2 : 1);",
        "block 0: all lanes of a warp must come to the same operation, thread (0, 1, 0) waits at a shuffle in line 5, "
        "thread (31, 1, 0) waits at a shuffle in line 5",
    ),
    "shared memory": (
        "reinterpret_cast<unsigned char*>(shared_memory)[64] = 0;",
        "block 0: wrote byte 64 of 64 bytes of shared memory",
    ),
    "global memory": ("__ldg(out + 1);", "block 0: thread (0, 1, 0) reads outside every array"),
    "shared memory is not zero": (
        "if (reinterpret_cast<unsigned char*>(shared_memory)[63] != 0xa5) __ldg(out + 1);",
        "",
    ),
    "a copy that is waited for": (
        """
        unsigned* to = reinterpret_cast<unsigned*>(shared_memory);
        if (threadIdx.y == 0 && threadIdx.x == 0) {
            fibers::start_copy(to, 7u);
            fibers::commit_copies();
            fibers::start_copy(to + 1, 8u);
            fibers::commit_copies();
            fibers::wait_for_copies(1);
            if (to[0] != 7 || to[1] != 0xa5a5a5a5) __ldg(out + 1);
            fibers::wait_for_copies(0);
            if (to[1] != 8) __ldg(out + 1);
        }
        """,
        "",
    ),
    "a copy that is not waited for": (
        """
        unsigned* to = reinterpret_cast<unsigned*>(shared_memory);
        fibers::start_copy(to, 7u);
        fibers::wait_for_copies(0);
        if (to[0] != 7) __ldg(out + 1);
        """,
        "block 0: thread (0, 1, 0) reads outside every array",
    ),
    "a barrier is missing": (
        """
        if (threadIdx.y == 0) reinterpret_cast<unsigned char*>(shared_memory)[threadIdx.x] = 1;
        if (threadIdx.y == 1 && reinterpret_cast<unsigned char*>(shared_memory)[threadIdx.x] != 1) __ldg(out + 1);
        """,
        "block 0: thread (0, 1, 0) reads outside every array",
    ),
}


@pytest.fixture(scope="module")
def small_kernels(tmp_path_factory):
    """A library with the kernels of `RUNS`, by number, and one matrix product."""
    parts = ['#include "fibers.h"', "using Body = void (*)(unsigned*);"]
    for number, (text, _) in enumerate(RUNS.values()):
        parts.append(f"static void body_{number}(unsigned* out) {{\n#line 5\n{text}\n}}")
    parts.append(f"static const Body bodies[] = {{{', '.join(f'body_{number}' for number in range(len(RUNS)))}}};")
    parts.append("""
        #define EXPORT extern "C" __attribute__((visibility("default")))
        static void say(const std::string& said, char* message) { message[said.copy(message, 255)] = 0; }
        EXPORT void run(int number, unsigned* out, char* message) {
            const Body body = bodies[number];
            say(fibers::launch([=] { body(out); }, {0}, {32, 2, 1}, 64, {{out, 4, nullptr}}), message);
        }
        EXPORT void product(int exclusive_or, int* sum, unsigned* a, unsigned* b, char* message) {
            const auto body = [=] {
                fibers::multiply(exclusive_or, sum + 4 * threadIdx.x, a + 4 * threadIdx.x, b + 2 * threadIdx.x);
            };
            say(fibers::launch(body, {0}, {32, 1, 1}, 0, {}), message);
        }""")
    source = tmp_path_factory.mktemp("fibers") / "small.cpp"
    source.write_text("\n".join(parts))
    return native.library([source], includes=[fiber.FOLDER / "fibers.h"], flags=["-O0"])


@pytest.mark.parametrize("name", RUNS)
def test_fibers_keep_the_rules_of_cuda(small_kernels, name):
    out = (ctypes.c_uint * 3)()
    message = ctypes.create_string_buffer(256)
    small_kernels.run(list(RUNS).index(name), out, message)
    assert message.value.decode() == RUNS[name][1]
    if name == "works":
        votes = [sum(1 << lane for lane in range(32) if lane % 3 == y) for y in (0, 1)]
        assert list(out) == [votes[0], 63 ^ 5, votes[1]]


def test_the_matrix_product_of_a_warp(small_kernels):
    """Random operands, spread over the lanes by the tables of the PTX ISA (mma.m16n8k256, .b1), beside numpy."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (16, 256)), rng.integers(0, 2, (256, 8))
    before = rng.integers(-9, 9, (16, 8))
    rows, columns = np.zeros((32, 4), np.uint32), np.zeros((32, 2), np.uint32)
    sums = np.zeros((32, 4), np.int32)
    for lane in range(32):
        group, member = divmod(lane, 4)
        for i in range(128):
            row = group + (8 if 32 <= i < 64 or i >= 96 else 0)
            column = member * 32 + i % 32 + (128 if i >= 64 else 0)
            rows[lane, i // 32] |= np.uint32(a[row, column] << i % 32)
        for i in range(64):
            row = member * 32 + i % 32 + (128 if i >= 32 else 0)
            columns[lane, i // 32] |= np.uint32(b[row, group] << i % 32)
        for i in range(4):
            sums[lane, i] = before[group + 8 * (i >= 2), member * 2 + i % 2]
    for exclusive_or, product in ((1, (a[:, :, None] != b).sum(axis=1)), (0, a @ b)):
        result = sums.copy()
        message = ctypes.create_string_buffer(256)
        small_kernels.product(exclusive_or, *(ctypes.c_void_p(x.ctypes.data) for x in (result, rows, columns)), message)
        assert message.value == b""
        for lane in range(32):
            for i in range(4):
                row, column = lane // 4 + 8 * (i >= 2), lane % 4 * 2 + i % 2
                assert result[lane, i] == before[row, column] + product[row, column]

"""The CUDA source on this machine's processor: compiled by its C++ compiler, threads as fibers (fibers.h).

It shows that the very source that runs on a GPU computes the right bits, and keeps the rules for barriers, votes and
memory; it says nothing about speed.
"""

import ctypes
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.kernels import native
from bitloom.golden.kernels.tiled.conv import PackedConv
from bitloom.golden.kernels.tiled.kernel import FIELDS, SOURCE, kernel_constant, pool_problem, problem
from bitloom.golden.kernels.tiled.network import POOL_THREADS, PackedNetwork, PoolPlan
from bitloom.golden.kernels.tiled.plan import TilePlan, plan, plan_of_shape
from bitloom.golden.kernels.tiled.reference import WordReads
from bitloom.golden.window import Pair

FOLDER = Path(__file__).parent
GUARD, GUARD_WORDS = 0x5A, 64
"""Words of such bytes before and behind the output must stay as they are."""


class FiberError(RuntimeError):
    """A kernel broke a rule of CUDA; the message names block and threads."""


class Problem(ctypes.Structure):
    """The source's struct of that name."""

    _fields_ = [(name, ctypes.c_int) for name in FIELDS]


class Launch(ctypes.Structure):
    """fibers.cpp's struct of that name."""

    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("input", "weight", "threshold", "bits", "dots")),
        ("problem", Problem),
        ("threads", ctypes.c_uint * 3),
        ("blocks", ctypes.c_void_p),
        *((name, ctypes.c_uint64) for name in ("block_count", "shared_bytes")),
        *((f"{name}_bytes", ctypes.c_uint64) for name in ("input", "weight", "threshold")),
        *((f"{name}_reads", ctypes.c_void_p) for name in ("input", "weight")),
    ]


def run(
    layer: PackedConv,
    words: Array,
    how: TilePlan | None = None,
    *,
    order: Sequence[int] | None = None,
    reads: WordReads | None = None,
    constant_kernel: bool = False,
) -> Array:
    """The same as `golden.kernels.tiled.reference.run`, by the CUDA kernel that ``how`` names.

    With ``constant_kernel`` the compiler knows the size of the layer's kernel, as on a GPU, and each size is compiled
    apart. FiberError if the CUDA kernel breaks a rule; native.BuildError if it can't be compiled.
    """
    how = how or plan(layer, words)
    how.check(layer, words)
    size = int(np.prod(how.output_shape))
    guarded = np.empty(size + 2 * GUARD_WORDS, how.output_dtype)
    guarded.view(np.uint8)[:] = GUARD
    output = guarded[GUARD_WORDS:-GUARD_WORDS].reshape(how.output_shape)
    words = np.ascontiguousarray(words)
    weight = np.ascontiguousarray(layer.weight)
    threshold = None if layer.threshold is None else np.ascontiguousarray(layer.threshold)
    blocks = np.asarray(how.order(order), np.uint32)
    launch = Launch(
        input=words.ctypes.data,
        weight=weight.ctypes.data,
        threshold=None if threshold is None else threshold.ctypes.data,
        bits=None if threshold is None else output.ctypes.data,
        dots=output.ctypes.data if threshold is None else None,
        problem=Problem(**problem(how)),
        threads=(ctypes.c_uint * 3)(*how.block),
        blocks=blocks.ctypes.data,
        block_count=len(blocks),
        shared_bytes=how.shared_bytes,
        input_bytes=words.nbytes,
        weight_bytes=weight.nbytes,
        threshold_bytes=0 if threshold is None else threshold.nbytes,
        input_reads=None if reads is None else reads.words.ctypes.data,
        weight_reads=None if reads is None else reads.weight.ctypes.data,
    )
    message = ctypes.create_string_buffer(256)
    library = _library(how.patch, kernel_constant(how) if constant_kernel else 0)
    library.binary_conv(how.kernel.encode(), layer.word_bits, ctypes.byref(launch), message)
    if message.value:
        raise FiberError(f"{layer.name}: {how.kernel}: {message.value.decode()}")
    outside = np.concatenate([guarded[:GUARD_WORDS], guarded[-GUARD_WORDS:]])
    if (outside.view(np.uint8) != GUARD).any():
        raise FiberError(f"{layer.name}: {how.kernel}: wrote outside the output")
    return output


def run_pool(words: Array, how: PoolPlan) -> Array:
    """The same as `PackedPool.run`, by the CUDA kernel; FiberError as for `run`."""
    words = np.ascontiguousarray(words)
    output = np.empty(how.output_shape, how.output_dtype)
    message = ctypes.create_string_buffer(256)
    fields = ctypes.byref(Problem(**pool_problem(how)))
    arguments = (words.ctypes.data, words.nbytes, output.ctypes.data, how.words, fields, POOL_THREADS, how.blocks)
    _library((4, 4), 0).binary_pool(how.word_bits, *arguments, message)
    if message.value:
        raise FiberError(f"{how.layer.name}: pool: {message.value.decode()}")
    return output


def run_network(network: PackedNetwork, words: Array, kernel: str = "popc") -> Array:
    """A whole network by the CUDA kernels: words, or the dots of the last layer. ``kernel`` is that of convolutions."""
    network.check_input(words)
    for how in network.plans(words.shape, partial(plan_of_shape, kernel=kernel)):
        words = run_pool(words, how) if isinstance(how, PoolPlan) else run(how.layer, words, how)
    return words


@cache
def _library(patch: Pair, constant: int) -> ctypes.CDLL:
    """The source for one size of patch and of kernel (0: any)."""
    flags = ("-O1", f"-DPATCH_ROWS={patch[0]}", f"-DPATCH_COLUMNS={patch[1]}", f"-DKERNEL_SIZE={constant}")
    library = native.library([FOLDER / "fibers.cpp"], includes=[FOLDER / "fibers.h", SOURCE], flags=flags)
    library.binary_conv.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p]
    library.binary_conv.restype = None
    pointer = ctypes.c_void_p
    number = ctypes.c_uint
    library.binary_pool.argtypes = [
        ctypes.c_int,
        pointer,
        ctypes.c_uint64,
        pointer,
        ctypes.c_int,
        pointer,
        number,
        number,
        ctypes.c_char_p,
    ]
    library.binary_pool.restype = None
    return library

"""Binary convolution of packed words on this processor: XOR and popcount in C++, with the widest instructions it has.

    words [N][C/64][H][W] --> band: rows with padding --> counts of mismatches --> dots, or thresholds --> bits

========================  ===========================================================================================
path                      64-bit words of 64 kernels at a time: cpu.h and ...
========================  ===========================================================================================
``avx512vpopcntdq``       XOR and VPOPCNTQ on 512 bits (cpu_popcount.h)
``avx512bw``, ``avx2``    XOR and popcount of 4 channels by one look-up in a table, on 512 and 256 bits (cpu_lookup.h)
``scalar``                XOR and popcount of one word (cpu_scalar.h), on any processor
========================  ===========================================================================================

The library of a path is compiled when it is first asked for (golden/kernels/native.py). What stands beside the words is
made here in numpy: the kernels' words in the order in which a path reads them, and what taps outside the map add to the
mismatches of a window.
"""

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from bitloom.golden import packing
from bitloom.golden.encoding import Array
from bitloom.golden.integers import plain
from bitloom.golden.kernels import native

from .conv import PackedConv

FOLDER = Path(__file__).parent
BLOCK = 64
"""Kernels in a block: bits of a word."""
NIBBLE = 4
"""Channels in a unit of ``cpu_lookup.h``."""
ALIGNMENT = 64
"""Bytes: of the kernels, so that no vector of them is in two cache lines."""


@dataclass(frozen=True)
class Instructions:
    """Instruction sets of the processor that a path uses, and the compiler's flags for them."""

    features: frozenset[str]
    """Instruction sets of the processor, by Linux' names."""
    flags: tuple[str, ...]
    """Of the compiler."""
    also: Mapping[str, str] = field(default_factory=dict)
    """Instruction sets that the path uses where the processor has them, with the compiler's flag for each."""
    nibbles: bool = False
    """Whether the path counts nibbles, not words."""


_OF_INTEGERS = {"avx512_vnni": "-mavx512vnni", "avx512dq": "-mavx512dq", "avx512vl": "-mavx512vl"}
PATHS = {
    "avx512vpopcntdq": Instructions(
        frozenset({"avx512f", "avx512bw", "avx512_vpopcntdq"}),
        ("-DBITLOOM_POPCOUNT", "-mavx512f", "-mavx512bw", "-mavx512vpopcntdq"),
        _OF_INTEGERS,
    ),
    "avx512bw": Instructions(
        frozenset({"avx512f", "avx512bw"}),
        ("-DBITLOOM_LOOKUP", "-mavx512f", "-mavx512bw"),
        _OF_INTEGERS,
        nibbles=True,
    ),
    "avx2": Instructions(frozenset({"avx2"}), ("-DBITLOOM_LOOKUP", "-mavx2"), nibbles=True),
    "scalar": Instructions(frozenset(), (), {"popcnt": "-mpopcnt"}),
}
"""Fastest first."""


def paths() -> list[str]:
    """The paths to choose from, fastest first.

    The environment variable ``BITLOOM_CPU_PATH`` names the fastest one to use; those before it are left out.

    Returns
    -------
    list of str
        Paths that this processor can run; ``scalar`` is always the last.

    Raises
    ------
    ValueError
        Where ``BITLOOM_CPU_PATH`` names none that this processor can run.
    """
    features = native.processor_features()
    possible = [name for name, path in PATHS.items() if path.features <= features]
    fastest = os.environ.get("BITLOOM_CPU_PATH") or possible[0]
    if fastest not in possible:
        raise ValueError(f"BITLOOM_CPU_PATH: must be one of {', '.join(possible)} on this machine, got {fastest!r}")
    return possible[possible.index(fastest) :]


def processors() -> int:
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def library(path: str) -> ctypes.CDLL:
    """The functions of one of `paths`, those of binary layers and those of integers (golden/kernels/tiled/integers.py).

    Raises
    ------
    BuildError
        If no compiler is found.
    """
    features = native.processor_features()
    flags = [*PATHS[path].flags, *(flag for feature, flag in PATHS[path].also.items() if feature in features)]
    sources = [FOLDER / "cpu.cpp", FOLDER / "integers.cpp"]
    functions = native.library(sources, includes=sorted(FOLDER.glob("*.h")), flags=flags)
    functions.bitloom_conv.argtypes = [ctypes.POINTER(_Job)]
    functions.bitloom_conv.restype = None
    return functions


_POINTERS = ("input", "filler", "weights", "border", "bias", "limit", "dots", "bits")
_SIZES = (
    "images",
    "groups",
    "height",
    "width",
    "units",
    "out_channels",
    "out_groups",
    "kernel_y",
    "kernel_x",
    "stride_y",
    "stride_x",
    "top",
    "left",
    "rows",
    "columns",
    "threads",
)


class _Job(ctypes.Structure):
    """``Job`` of cpu.cpp."""

    _fields_ = [(name, ctypes.c_void_p) for name in _POINTERS] + [(name, ctypes.c_int64) for name in _SIZES]


class Convolution:
    """A `PackedConv` of 64-bit words, ready to run.

    Parameters
    ----------
    conv : PackedConv
    path : str, optional
        One of `paths`, by default the first.

    Raises
    ------
    ValueError
        If the words have 32 bits, or the processor lacks the path.
    BuildError
        If no compiler is found.
    """

    def __init__(self, conv: PackedConv, path: str | None = None) -> None:
        if conv.word_bits != BLOCK:
            raise ValueError(f"{conv.name}: words must have {BLOCK} bits on the CPU path, got {conv.word_bits}")
        possible = paths()
        self.path = possible[0] if path is None else path
        if self.path not in possible:
            raise ValueError(f"{conv.name}: path must be one of {', '.join(possible)} on this machine, got {path!r}")
        self.conv = conv
        self._run = library(self.path).bitloom_conv
        self._filler = np.ascontiguousarray(conv.filler)
        self._weights = _in_order(conv, PATHS[self.path].nibbles)
        self._borders: dict[tuple[int, int], tuple[Array, Array]] = {}

    def __call__(self, words: Array, *, threads: int | None = None) -> Array:
        """Compute the layer.

        Parameters
        ----------
        words : (N, ceil(C/64), H, W) uint64
        threads : int, optional
            At most so many threads, >= 1; by default one a processor.

        Returns
        -------
        (N, ceil(O/64), H', W') uint64 or (N, H', W', O) int32
            With thresholds the next layer's input, without them the dots in golden's order.
        """
        conv = self.conv
        conv.check_input(words)
        count = processors() if threads is None else plain(threads)
        if type(count) is not int or count < 1:
            raise ValueError(f"{conv.name}: threads must be an integer >= 1, got {threads!r}")
        images, _, height, width = words.shape
        rows, columns = conv.output_size(height, width)
        border, constant = self._border(height, width)
        words = np.ascontiguousarray(words)
        raw = conv.threshold is None
        out: Array = (
            np.empty((images, rows, columns, conv.out_channels), np.int32)
            if raw
            else np.empty((images, conv.out_groups, rows, columns), np.uint64)
        )
        (kernel_y, kernel_x), (stride_y, stride_x), (top, left, _, _) = (
            conv.window.kernel,
            conv.window.stride,
            conv.window.padding,
        )
        arrays = {
            "input": words,
            "filler": self._filler,
            "weights": self._weights,
            "border": border,
            "bias" if raw else "limit": constant,
            "dots" if raw else "bits": out,
        }
        job = _Job(
            **{name: array.ctypes.data for name, array in arrays.items()},
            images=images,
            groups=conv.groups,
            height=height,
            width=width,
            units=self._weights.shape[2],
            out_channels=conv.out_channels,
            out_groups=conv.out_groups,
            kernel_y=kernel_y,
            kernel_x=kernel_x,
            stride_y=stride_y,
            stride_x=stride_x,
            top=top,
            left=left,
            rows=rows,
            columns=columns,
            threads=count,
        )
        self._run(ctypes.byref(job))
        return out

    def _border(self, height: int, width: int) -> tuple[Array, Array]:
        """``border``, and ``bias`` or ``limit``, of cpu.cpp for a map of that size: int32."""
        border = self._borders.get((height, width))
        if border is None:
            number, bias = _biases(self.conv, height, width)
            threshold = self.conv.threshold
            if threshold is not None:  # bias - 2 mismatches >= threshold
                bias = np.floor_divide(bias - threshold.astype(np.int64), 2)
            full = np.full((len(bias), self.conv.out_groups * BLOCK), -1, np.int32)  # no kernel, no bit
            full[:, : self.conv.out_channels] = bias
            border = number, full
            self._borders = {(height, width): border}
        return border


def _in_order(conv: PackedConv, nibbles: bool) -> Array:
    """(blocks, taps, units, BLOCK): the kernels' words, or nibbles of them, in the order in which they are read."""
    words = np.moveaxis(conv.weight.reshape(conv.out_channels, conv.groups, -1), 1, 2)  # (O, taps, groups)
    if nibbles:
        octets = np.ascontiguousarray(words.astype("<u8")).view(np.uint8)  # (O, taps, 8 * groups)
        units = np.stack([octets & 15, octets >> 4], axis=-1).reshape(*octets.shape[:2], -1)
        words = units[:, :, : packing.word_count(conv.channels, NIBBLE)]
    blocks = np.zeros((conv.out_groups * BLOCK, *words.shape[1:]), words.dtype)
    blocks[: conv.out_channels] = words
    blocks = np.moveaxis(blocks.reshape(-1, BLOCK, *words.shape[1:]), 1, -1)
    octets = np.empty(blocks.nbytes + ALIGNMENT, np.uint8)
    aligned = octets[-octets.ctypes.data % ALIGNMENT :][: blocks.nbytes].view(words.dtype).reshape(blocks.shape)
    aligned[:] = blocks
    return aligned


def _biases(conv: PackedConv, height: int, width: int) -> tuple[Array, Array]:
    """(rows * columns,) int32: which border a window meets; (borders, O) int64: dot + 2 * mismatches there.

    All taps of a window are counted; where those outside the map are not to be, their mismatches, the ones of the
    kernel in them since the filler is 0, are given back.
    """
    kinds, numbers = [], []  # of rows, then of columns: which taps count
    for at, size in zip(conv.window.reads(height, width), (height, width)):
        counts = ((at >= 0) & (at < size)) | (conv.pad != "exact")
        kind, number = np.unique(counts, axis=0, return_inverse=True)
        kinds.append(kind)
        numbers.append(number.reshape(-1))
    (rows, columns), (row, column) = kinds, numbers
    borders = (rows[:, None, :, None] & columns[None, :, None, :]).reshape(len(rows) * len(columns), -1)
    border = row[:, None] * len(columns) + column
    ones = packing.unpack(np.ascontiguousarray(np.moveaxis(conv.weight, 1, -1)), conv.channels).sum(axis=-1)
    ones = ones.reshape(conv.out_channels, -1).astype(np.int64)  # (O, taps)
    bias = conv.channels * borders.sum(axis=1)[:, None] + 2 * (~borders).astype(np.int64) @ ones.T
    return border.reshape(-1).astype(np.int32), bias

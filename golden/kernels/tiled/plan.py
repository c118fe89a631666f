"""How a layer is cut up for a GPU: tiles of thread blocks, patches of threads, and whether both fit (spec E2 to E5).

    high level: a block of (a, bh, bw) threads makes a tile of a channels x (bh * th) rows x (bw * tw) columns
    low level : a thread makes a patch of th x tw neighbouring outputs of one channel

The high level is limited by the shared memory of a block, which holds the input that the tile needs and the weights of
its channels, ``stage_groups`` word groups at a time, in two buffers if not all fit; the low level by the registers of a
thread, which hold a sum for each output of the patch. Blocks are numbered column of tiles fastest, then row, channels,
image.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain
from bitloom.golden.window import Pair

from .conv import PackedConv

WARP = 32
"""Threads that vote together: consecutive channels of one position."""

KERNELS = ("popc", "mma-xor", "mma-and")
"""popc: XOR and population count in every thread. mma: the tensor cores' binary matrix product, with XOR (compute
capability 8.0 to 8.9) or with AND (8.0 and later)."""

MMA_POSITIONS = 16
"""Output positions of one binary matrix product."""

SUM_REGISTERS, OTHER_REGISTERS = 2, 96
"""Registers of a thread: for each sum, and besides. An upper bound; a test compares it with nvcc's figures."""


@dataclass(frozen=True, kw_only=True)
class GpuLimits:
    """Resources that a GPU grants a block. The defaults hold for every GPU since compute capability 7.5."""

    shared_bytes: int = 48 * 1024
    """Bytes of shared memory."""
    threads: int = 1024
    """Threads of a block."""
    registers: int = 65536
    """Registers of all threads of a block together."""
    thread_registers: int = 255
    """Registers of one thread."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for what, value in vars(self).items():
            if type(value) is not int or value < 1:
                raise ValueError(f"limits: {what} must be an integer >= 1, got {value!r}")


@dataclass(frozen=True)
class BlockPlace:
    """Image, channel, row and column of the first output that a block makes."""

    image: int
    channel: int
    row: int
    column: int


@dataclass(frozen=True, kw_only=True)
class TilePlan:
    """The tiles of one layer for one size of map.

    Raises
    ------
    ValueError
        If a block doesn't fit the limits. The message names the layer.
    """

    layer: PackedConv
    images: int
    height: int
    width: int
    """images, height, width: of the input."""
    block: tuple[int, int, int] = (32, 4, 4)
    """a, bh, bw: threads over output channel, row and column; a is a multiple of 32."""
    patch: Pair = (4, 4)
    """th, tw: rows and columns of outputs of a thread."""
    stage_groups: int = 1
    """Word groups in a buffer of shared memory, 1 .. ceil(C/B)."""
    buffers: int = 1
    """2 to copy the next word groups while these are worked on; 1 where all are in one buffer, or memory lacks."""
    kernel: str = "popc"
    """One of `KERNELS`."""
    limits: GpuLimits = field(default=GpuLimits())

    def __post_init__(self) -> None:
        make_fields_plain(self)
        name = self.layer.name
        limits = self.limits
        _check_integers(name, "block (a, bh, bw)", self.block, 3)
        _check_integers(name, "patch (th, tw)", self.patch, 2)
        if self.kernel not in KERNELS:
            raise ValueError(f"{name}: kernel must be one of {', '.join(KERNELS)}, got {self.kernel!r}")
        if self.block[0] % WARP:
            raise ValueError(f"{name}: a of block (a, bh, bw) must be a multiple of {WARP}, got {self.block[0]}")
        if self.threads > limits.threads or self.block[2] > 64:  # CUDA: a block's third dimension is at most 64
            raise ValueError(
                f"{name}: a block must have at most {limits.threads} threads and 64 columns of them, got {self.block}"
            )
        if type(self.stage_groups) is not int or not 1 <= self.stage_groups <= self.layer.groups:
            raise ValueError(f"{name}: stage_groups must be 1..{self.layer.groups}, got {self.stage_groups!r}")
        if self.buffers not in (1, 2):
            raise ValueError(f"{name}: buffers must be 1 or 2, got {self.buffers!r}")
        if self.thread_registers > self.register_limit:
            raise ValueError(
                f"{name}: a patch of {self.patch} needs {self.thread_registers} registers a thread, "
                f"{self.threads} threads have {self.register_limit} each"
            )
        if self.shared_bytes > limits.shared_bytes:
            raise ValueError(
                f"{name}: a block of {self.block} with patches of {self.patch} and {self.buffers} x "
                f"{self.stage_groups} word groups needs {self.shared_bytes} bytes of shared memory, the limit is "
                f"{limits.shared_bytes}"
            )
        if self.blocks >= 1 << 31:
            raise ValueError(f"{name}: blocks must be < 2^31, got {self.blocks}")

    @property
    def threads(self) -> int:
        """Threads of a block."""
        a, bh, bw = self.block
        return a * bh * bw

    @property
    def tile(self) -> Pair:
        """Rows and columns of outputs that a block makes."""
        return self.block[1] * self.patch[0], self.block[2] * self.patch[1]

    @property
    def input_tile(self) -> Pair:
        """Rows and columns of input that a tile needs: tile * stride + kernel - stride."""
        (kh, kw), (sy, sx) = self.layer.window.kernel, self.layer.window.stride
        return self.tile[0] * sy + kh - sy, self.tile[1] * sx + kw - sx

    @property
    def output(self) -> Pair:
        """Rows and columns of the output map."""
        return self.layer.output_size(self.height, self.width)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the output: (N, ceil(O/B), H', W') words, or (N, H', W', O) dots if the layer has no thresholds."""
        if self.layer.threshold is None:
            return self.images, *self.output, self.layer.out_channels
        return self.images, self.layer.out_groups, *self.output

    @property
    def output_dtype(self) -> "np.dtype[Any]":
        """Dtype of the output: that of the weights' words, or int32 for dots."""
        return np.dtype(np.int32) if self.layer.threshold is None else self.layer.weight.dtype

    @property
    def grid(self) -> tuple[int, int, int, int]:
        """Number of blocks over image, channel, row and column."""
        channels = self.layer.out_groups * self.layer.word_bits  # unused bits are outputs of threads, too
        rows, columns = self.output
        return (
            self.images,
            -(-channels // self.block[0]),
            -(-rows // self.tile[0]),
            -(-columns // self.tile[1]),
        )

    @property
    def blocks(self) -> int:
        """Number of blocks in all."""
        images, channels, rows, columns = self.grid
        return images * channels * rows * columns

    def place(self, index: int) -> BlockPlace:
        """The place where block number ``index`` begins."""
        _, channels, rows, columns = self.grid
        index, column = divmod(index, columns)
        index, row = divmod(index, rows)
        image, channel = divmod(index, channels)
        return BlockPlace(image, channel * self.block[0], row * self.tile[0], column * self.tile[1])

    @property
    def weight_pitch(self) -> int:
        """Words from the weights of a tap to those of the next one: a, and 32 bytes. Four neighbouring taps of eight
        channels, or of four where words have 64 bits, then are in different banks."""
        return self.block[0] + 32 * 8 // self.layer.word_bits

    @property
    def group_bytes(self) -> int:
        """Shared memory that one word group takes in a buffer: of the input tile, and of the weights."""
        rows, columns = self.input_tile
        return self.layer.word_bits // 8 * (rows * columns + self.layer.window.taps * self.weight_pitch)

    @property
    def offset_bytes(self) -> int:
        """Shared memory for the offsets of a word group's taps, which the tensor cores need."""
        return 0 if self.kernel == "popc" else 4 * self.layer.window.taps

    @property
    def count_bytes(self) -> int:
        """Shared memory for counts of ones in a channel's weights, above and left of each tap's corners, if mismatches
        depend on them."""
        counts = self.kernel == "mma-and" or (self.kernel == "mma-xor" and self.layer.pad == "exact")
        rows, columns = self.layer.window.kernel
        return 4 * (rows + 1) * (columns + 1) * self.block[0] if counts else 0

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.stage_groups * (self.buffers * self.group_bytes + self.offset_bytes) + self.count_bytes

    @property
    def thread_registers(self) -> int:
        """Registers that a thread needs, at most. It has a sum for each of its outputs; those of a matrix product come
        by 16."""
        sums = self.patch[0] * self.patch[1]
        if self.kernel != "popc":
            sums = -(-sums // MMA_POSITIONS) * MMA_POSITIONS
        return SUM_REGISTERS * sums + OTHER_REGISTERS

    @property
    def register_limit(self) -> int:
        """Registers that a thread can have."""
        return min(self.limits.thread_registers, self.limits.registers // self.threads)

    def order(self, order: Sequence[int] | None) -> Sequence[int]:
        """Numbers of the blocks to run: ``order``, by default all. ValueError if there is no such block."""
        if order is None:
            return range(self.blocks)
        for index in order:
            if not isinstance(index, (int, np.integer)) or not 0 <= index < self.blocks:
                raise ValueError(f"{self.layer.name}: order must be of blocks 0..{self.blocks - 1}, got {index!r}")
        return order

    def check(self, layer: PackedConv, words: Array) -> None:
        """Raise ValueError unless the plan is of that layer for the input ``words`` (N, ceil(C/B), H, W)."""
        if self.layer is not layer:
            raise ValueError(f"{layer.name}: the plan must be of this layer, got one of another, {self.layer.name}")
        layer.check_input(words)
        needed = (self.images, layer.groups, self.height, self.width)
        if words.shape != needed:
            raise ValueError(f"{layer.name}: the plan is for an input of shape {needed}, got {words.shape}")


def plan(
    layer: PackedConv,
    words: Array,
    *,
    block: tuple[int, int, int] = (32, 4, 4),
    patch: Pair = (4, 4),
    kernel: str = "popc",
    limits: GpuLimits = GpuLimits(),
) -> TilePlan:
    """Plan a layer so that all word groups are in shared memory, or two buffers of as many as fit.

    Parameters
    ----------
    layer : PackedConv
    words : (N, ceil(C/B), H, W) uint32 or uint64
        The input.
    block, patch, kernel, limits
        See `TilePlan`.

    Raises
    ------
    ValueError
        If not even one word group fits, or the input is not of the layer.
    """
    layer.check_input(words)
    images, _, height, width = words.shape
    return plan_of_shape(layer, (images, height, width), block=block, patch=patch, kernel=kernel, limits=limits)


def plan_of_shape(
    layer: PackedConv,
    shape: tuple[int, int, int],
    *,
    block: tuple[int, int, int] = (32, 4, 4),
    patch: Pair = (4, 4),
    kernel: str = "popc",
    limits: GpuLimits = GpuLimits(),
) -> TilePlan:
    """As `plan`, for an input of so many images, rows and columns, ``shape``."""
    images, height, width = shape

    def staging(stage_groups: int, buffers: int = 1) -> TilePlan:
        return TilePlan(
            layer=layer,
            images=images,
            height=height,
            width=width,
            block=block,
            patch=patch,
            stage_groups=stage_groups,
            buffers=buffers,
            kernel=kernel,
            limits=limits,
        )

    single = staging(1)
    room = limits.shared_bytes - single.count_bytes
    if room >= layer.groups * (single.group_bytes + single.offset_bytes):
        return staging(layer.groups)
    in_pairs = room // (2 * single.group_bytes + single.offset_bytes)
    return staging(in_pairs, 2) if in_pairs else single


def _check_integers(name: str, what: str, values: tuple[int, ...], size: int) -> None:
    several = isinstance(values, (tuple, list)) and len(values) == size
    if not several or any(type(v) is not int or v < 1 for v in values):
        raise ValueError(f"{name}: {what} must be {size} integers >= 1, got {values!r}")

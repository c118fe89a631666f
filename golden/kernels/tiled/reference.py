"""The tiled convolution block by block and warp by warp, in numpy: what a GPU does, to be read and compared with.

An array's axis of 32 lanes is a warp: the same patch of 32 consecutive channels. What a real block keeps in shared
memory is here what `_stage` returns; the rest of a block sees nothing else of the input and the weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array

from .conv import PackedConv
from .layout import used_bits
from .plan import WARP, BlockPlace, TilePlan
from .plan import plan as plan_layer

ONES = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2), axis=1).sum(
    axis=1, dtype=np.int32
)
"""Set bits of every 16-bit number."""


@dataclass(frozen=True)
class WordReads:
    """How often each word of global memory was read."""

    words: Array
    """(N, ceil(C/B), H, W) integers: of the input."""
    weight: Array
    """(O, ceil(C/B), kernel rows, kernel columns) integers: of the weights."""

    @classmethod
    def none(cls, layer: PackedConv, words: Array) -> "WordReads":
        """Counters at 0 for a layer and its input."""
        return cls(np.zeros(words.shape, np.uint32), np.zeros(layer.weight.shape, np.uint32))


def run(
    layer: PackedConv,
    words: Array,
    plan: TilePlan | None = None,
    *,
    order: Sequence[int] | None = None,
    reads: WordReads | None = None,
) -> Array:
    """Compute a layer tile by tile, as a GPU would.

    Parameters
    ----------
    layer : PackedConv
    words : (N, ceil(C/B), H, W) uint32 or uint64
    plan : TilePlan, optional
        The tiles; by default those of `bitloom.golden.kernels.tiled.plan.plan`.
    order : sequence of int, optional
        Numbers of the blocks to run, as they follow each other; by default all.
    reads : WordReads, optional
        Counters, to which every read of global memory adds.

    Returns
    -------
    (N, ceil(O/B), H', W') uint32 or uint64, or (N, H', W', O) int32
        Words, or dots where the layer has no thresholds.
    """
    plan = plan or plan_layer(layer, words)
    plan.check(layer, words)
    rows, columns = plan.output
    halves = np.zeros((len(words), layer.out_groups, rows, columns, layer.word_bits // WARP), np.uint32)
    dots = np.zeros((len(words), rows, columns, layer.out_channels), np.int32)
    reads = reads or WordReads.none(layer, words)
    for index in plan.order(order):
        _block(plan, plan.place(index), words, halves, dots, reads)
    if layer.threshold is None:
        return dots
    places = np.arange(0, layer.word_bits, WARP, dtype=words.dtype)
    whole: Array = np.bitwise_or.reduce(halves.astype(words.dtype) << places, axis=-1)
    return whole


@dataclass(frozen=True)
class SharedMemory:
    """Shared memory of a block, and what its threads find by counting."""

    features: Array
    """(groups, rows, columns) words: the input tile."""
    weight: Array
    """(groups, kernel rows, kernel columns, a) words."""
    channels: Array
    """(groups,) integers: channels of each group."""
    counts: Array
    """(rows, columns) bool: where a tap counts."""


def _block(plan: TilePlan, place: BlockPlace, words: Array, halves: Array, dots: Array, reads: WordReads) -> None:
    """One block: stage, add up, stage the next groups, and at last vote."""
    a, bh, bw = plan.block
    threads = [(warp, y, x) for warp in range(a // WARP) for y in range(bh) for x in range(bw)]
    working = [thread for thread in threads if _has_outputs(plan, place, *thread)]
    sums = {thread: np.zeros((WARP, *plan.patch), np.int32) for thread in working}
    needed = plan.layer.groups if working else 0
    for first in range(0, needed, plan.stage_groups):
        shared = _stage(plan, place, words, first, reads)
        for thread in working:
            _add(plan, shared, thread, sums[thread])
    for thread, dot in sums.items():  # the others vote, too, but have nothing to write
        _store(plan, place, thread, dot, halves, dots)


def _has_outputs(plan: TilePlan, place: BlockPlace, warp: int, y: int, x: int) -> bool:
    rows, columns = plan.output
    return (
        place.channel + warp * WARP < plan.layer.out_channels
        and place.row + y * plan.patch[0] < rows
        and place.column + x * plan.patch[1] < columns
    )


def _stage(plan: TilePlan, place: BlockPlace, words: Array, first: int, reads: WordReads) -> SharedMemory:
    """Groups ``first``, ... of what the block needs: every word of global memory is read once."""
    layer = plan.layer
    rows, columns = plan.output
    groups = slice(first, min(first + plan.stage_groups, layer.groups))
    (kh, kw), (sy, sx), (top, left, _, _) = layer.window.kernel, layer.window.stride, layer.window.padding
    y, x = place.row * sy - top, place.column * sx - left  # of the tile's corner, may be outside the map
    height = (min(plan.tile[0], rows - place.row) - 1) * sy + kh
    width = (min(plan.tile[1], columns - place.column) - 1) * sx + kw
    inside_y = slice(max(y, 0), min(y + height, plan.height))
    inside_x = slice(max(x, 0), min(x + width, plan.width))
    in_tile_y, in_tile_x = (slice(s.start - o, s.stop - o) for s, o in ((inside_y, y), (inside_x, x)))

    features = np.empty((groups.stop - groups.start, *plan.input_tile), words.dtype)
    features[:] = layer.filler[groups, None, None]
    features[:, in_tile_y, in_tile_x] = words[place.image, groups, inside_y, inside_x]
    reads.words[place.image, groups, inside_y, inside_x] += 1
    counts = np.full(plan.input_tile, layer.pad != "exact")
    counts[in_tile_y, in_tile_x] = True

    channels = slice(place.channel, min(place.channel + plan.block[0], layer.out_channels))
    weight = np.zeros((groups.stop - groups.start, kh, kw, plan.block[0]), words.dtype)
    weight[..., : channels.stop - channels.start] = np.moveaxis(layer.weight[channels, groups], 0, -1)
    reads.weight[channels, groups] += 1
    used = popcount(used_bits(layer.channels, layer.word_bits)[groups])
    return SharedMemory(features, weight, used, counts)


def _add(plan: TilePlan, shared: SharedMemory, thread: tuple[int, int, int], dot: Array) -> None:
    """Add what the staged groups give to the dots (32, th, tw) of a warp."""
    warp, y, x = thread
    th, tw = plan.patch
    sy, sx = plan.layer.window.stride
    groups, kh, kw, _ = shared.weight.shape
    for ky in range(kh):
        for kx in range(kw):
            rows = slice((y * th) * sy + ky, (y * th + th - 1) * sy + ky + 1, sy)
            columns = slice((x * tw) * sx + kx, (x * tw + tw - 1) * sx + kx + 1, sx)
            for group in range(groups):
                features = shared.features[group, rows, columns]  # (th, tw): the same for all lanes
                weight = shared.weight[group, ky, kx, warp * WARP : (warp + 1) * WARP]  # (32,): one a lane
                mismatches = popcount(features ^ weight[:, None, None])  # (32, th, tw)
                dot += (shared.channels[group] - 2 * mismatches) * shared.counts[rows, columns]


def _store(
    plan: TilePlan, place: BlockPlace, thread: tuple[int, int, int], dot: Array, halves: Array, dots: Array
) -> None:
    """Vote on the dots (32, th, tw) and write one half word a position; or write the dots."""
    layer = plan.layer
    warp, y, x = thread
    th, tw = plan.patch
    channel = place.channel + warp * WARP
    row = place.row + y * th
    column = place.column + x * tw
    lanes = min(WARP, layer.out_channels - channel)
    if layer.threshold is None:
        patch = dots[place.image, row : row + th, column : column + tw, channel : channel + lanes]
        patch[:] = np.moveaxis(dot[:lanes], 0, -1)[: patch.shape[0], : patch.shape[1]]
        return
    vote = np.zeros(dot.shape, bool)
    vote[:lanes] = dot[:lanes] >= layer.threshold[channel : channel + lanes, None, None]
    group, bit = divmod(channel, layer.word_bits)
    half_words = halves[place.image, group, row : row + th, column : column + tw, bit // WARP]
    half_words[:] = ballot(vote)[: half_words.shape[0], : half_words.shape[1]]


def ballot(vote: Array) -> Array:
    """(32, ...) bool -> (...) uint32: bit i is the vote of lane i."""
    lanes = np.arange(WARP, dtype=np.uint32).reshape(-1, *(1,) * (vote.ndim - 1))
    word: Array = np.bitwise_or.reduce(vote.astype(np.uint32) << lanes, axis=0)
    return word


def popcount(words: Array) -> Array:
    """(...) uint32 or uint64 -> (...) int32: set bits of each word."""
    parts = np.ascontiguousarray(words)[..., None].view(np.uint16)
    count: Array = ONES[parts].sum(axis=-1, dtype=np.int32)
    return count

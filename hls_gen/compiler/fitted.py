"""An NPU with memories as large as networks need, and how many bits these are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.memories.memory_map import kernel_bits, memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import BLOCK_WORDS, LUT_RAM_WORDS
from bitloom.hls_gen.design.widths import ACC_BITS

from .needs import Needs, NpuNeeds

FORMER = flat.NAMES["former.sizes"]
"""Sizes of the window former."""
UNSIZED = {"lanes_per_weight": 1, "lane_step": 1, "tuple_parts": 0, "aheads": 0, **dict.fromkeys(FORMER, 0)}
"""Values of an NPU as long as its layers are not known, beside capacities that are always found anew: no lanes share a
weight, taps claim no tuples, and a window former has no sizes."""


@dataclass(frozen=True)
class MemoryBits:
    """Bits of the memories that depend on the order in which maps are sent."""

    tuples: int
    """Of tuple memories."""
    tables: int
    """Of the sequencers' tables."""

    @property
    def total(self) -> int:
        """Bits of both."""
        return self.tuples + self.tables


def unsized(folding: Npu) -> Npu:
    """An NPU of this folding before it is sized: without a skip store, and as `UNSIZED` has it."""
    return folding.unchecked(**UNSIZED, skip_words=0)


def with_tuple_parts(npu: Npu) -> dict[str, int]:
    """The capacities, by name, that an NPU gets so that kernel groups may read parts of tuples (tuple_parts.py)."""
    return {"tuple_parts": 1, "aheads": npu.sequencer.aheads or flat.LEAST["aheads"]}


def fitted(folding: Npu, npu_needs: Sequence[NpuNeeds]) -> Npu:
    """An NPU with memories for all that it has to do; parameters as of `fitting`."""
    return folding.changed(**fitting(folding, npu_needs))


def fitting(folding: Npu, npu_needs: Sequence[NpuNeeds]) -> dict[str, Any]:
    """The capacities of an NPU, by name, with which its memories hold all that it has to do.

    Parameters
    ----------
    folding
        The NPU; its capacities are ignored.
    npu_needs
        Needs of its layers, in each network.
    """
    each = [entry.capacities for entry in npu_needs]
    needs = [entry.needs for entry in npu_needs]
    known = dict.fromkeys(key for capacities in each for key in capacities)
    keys = [key for key in known if folding.former or key not in FORMER]  # needs may be those of all NPUs
    depth: dict[str, Any] = {key: max([_least(key), *[capacities.get(key, 0) for capacities in each]]) for key in keys}
    depth["buffer_words"] = max(depth["buffer_words"], folding.ports.buffer_words)
    depth["tuple_words"] = max(depth["tuple_words"], *(need.steady_words for need in needs))
    if "ring" in (*folding.ports.inlets, *folding.ports.outlets):  # words of the next map come while these are in use
        depth["tuple_words"] = max(depth["tuple_words"], *(2 * need.hold_words for need in needs))
    # words that need block RAM get a whole block; so do the pool unit's where twice as many would need block RAM: the
    # array may run ahead, and words of a map come while another map is read
    if folding.pool_forms_lines and 2 * depth["pool_words"] > LUT_RAM_WORDS:
        depth["pool_words"] = max(depth["pool_words"], BLOCK_WORDS)
    if folding.array_forms_lines and depth.get("skip_words") and depth["tuple_words"] > LUT_RAM_WORDS:
        depth["tuple_words"] = max(depth["tuple_words"], BLOCK_WORDS)
    for key in (key for key in depth if flat.NUMBERS[key].power):
        depth[key] = 1 << (depth[key] - 1).bit_length()
    if folding.array.one_memory:  # features lie in front of the kernels
        depth["kernel_rows"] += depth["tuple_words"]
    if folding.array.reducer.collects:
        depth["collect"] = max(need.window_lanes for need in needs)
        folding = folding.changed(collect=depth["collect"], acc_bits=ACC_BITS)
    least = [folding.array.least_acc_bits, folding.pool_sum_bits * folding.depthwise]
    depth["acc_bits"] = max(depth["acc_bits"], *least)
    return depth


def _least(name: str) -> int:
    """Least value of a capacity; 0 of what an NPU needn't have where no network has a use for it, as the sizes of a
    window former."""
    return 0 if name in FORMER or flat.NUMBERS[name].or_zero else flat.LEAST[name]


def streamed(need: Needs, npu: Npu, frame_words: int) -> Needs:
    """Needs of a network where weights are streamed to an NPU: kernel rows for twice the largest layer, or for all if
    these are fewer.

    The tuple memory grows to hold a whole frame, if that takes fewer bits than the kernel memory saves: what follows a
    frame in the stream then needn't wait until its first layer has used it.

    Parameters
    ----------
    need
        Needs of the network where weights stay on the device.
    npu
        The NPU.
    frame_words
        Words of a frame; 0 where none comes to this NPU.
    """
    if "kernel_rows" not in need.sizes:  # no layer runs on this NPU
        return need
    kernel_rows = need.sizes["kernel_rows"]
    tuple_words = need.sizes["tuple_words"]
    two = min(kernel_rows, 2 * need.largest_kernel)
    saved = (kernel_rows - two) * kernel_bits(npu)
    tuples = max(tuple_words, frame_words)
    if (tuples - tuple_words) * npu.array.word_bits >= saved:
        tuples = tuple_words
    return replace(need, sizes={**need.sizes, "kernel_rows": two, "tuple_words": tuples})


def memory_bits(npu: Npu) -> MemoryBits:
    """Bits of an NPU's tuple memories and of its sequencers' tables, as they are built."""
    tuples = sum(sequencer.memory_bits for sequencer in npu.sequencers)
    names = {sequencer.prefix + table.name for sequencer in npu.sequencers for table in sequencer.kind.tables}
    tables = sum(memory.depth * memory.width for memory in memory_map(npu) if memory.name in names)
    return MemoryBits(tuples, tables)

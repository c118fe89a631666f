"""Cycles of a layer on an NPU, by formula: for mapping and for the search, which ask before there is a program.

    cycles of a frame = max(array, pool unit, window former, line former)

    array       for each window the largest of    kernel groups x (valid taps x words + skips)
                                                  steps in which its results leave
                                                  steps and latencies of its kernel groups / credits
    pool unit   valid taps x words of each window of the pool

All parts of an NPU work on a layer at the same time, and the next layer reads what they make: so the slowest of them
counts. It is taken that words come and go in time, and that stores have room: the count is a lower limit, which the
flow model (flow/) mostly reaches. An NPU's last outlet, which may take longer for narrow words, isn't counted.

Words follow from the lanes of a map's words if lane follows lane in them. Where results lie otherwise, a tuple may have
more words: then a plan says how many.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

import numpy as np

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.array import kernel_groups
from bitloom.hls_gen.design.formed_lines import FormedLines
from bitloom.hls_gen.design.formed_windows import FormedWindows
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.split_window import SplitWindow

from .input_maps import is_input
from .layout import WordLayout, lanes_in_words, result_steps, split_pool, taps_side_by_side, words_side_by_side
from .sequencer_work import SequencerWork
from .tuple_parts import tuple_part
from .window_former import former_windows
from .workloads import Workload


@dataclass(frozen=True, kw_only=True)
class ReadTuple:
    """A tuple that a layer reads, without a window former: its words on each NPU."""

    channels: Sequence[int]
    """Lanes of each map that the layer reads side by side; of an input in bit planes, its channels."""
    planes: int = 0
    """Bit planes of such an input, without the constant one; 0 of other maps."""
    from_host: bool = False
    """Whether the words come from the host: they are as wide as the array takes them."""
    lines: SplitWindow | None = None
    """How a line former splits the layer's window; None where no lines are formed."""

    def map_words(self, npu: Npu) -> int:
        """Words of a position of the maps, in front of a line former where there is one."""
        lanes = npu.array.map_lanes
        return sum([-(-count // lanes) for count in self.channels])

    def words(self, npu: Npu) -> int:
        """Words of the tuple as the array takes them."""
        if self.planes:
            one_after_another = 1 if npu.array.planes else self.planes + 1
            return -(-self.channels[0] // npu.array.plane_lanes) * one_after_another
        return self.map_words(npu) if self.lines else -(-self.map_words(npu) // npu.array.line_taps)

    def layout(self, npu: Npu) -> WordLayout:
        """(words, lanes) of the tuple: its lanes in their order; of a map that has no bit planes."""
        array = npu.array
        width = array.kfp if self.from_host else array.map_lanes
        ends = np.cumsum(self.channels)
        layout = np.concatenate([lanes_in_words(lanes, width) for lanes in np.split(np.arange(ends[-1]), ends[:-1])])
        if self.lines:
            return taps_side_by_side(layout, array.beat.places(self.lines.formed)[:, 0], int(ends[-1]))
        return layout if self.from_host else words_side_by_side(layout, array.line_taps)


@dataclass(frozen=True, kw_only=True)
class ArrayWork:
    """The work of an array for a layer in a frame, whatever the NPU's OL."""

    sequencer: SequencerWork
    """Work of the sequencer in front of the array in a pass over all windows, with one word a tuple."""
    words: int
    """Beats of each tap in a pass: words of a tuple that a kernel group reads, once for each group that uses a word in
    turn."""
    passes: int
    """Passes over a window."""
    kernels: int
    levels: int
    """kernels, levels: kernels of the layer, and results of each."""
    kgp: int
    """Kernels of a group."""
    latency: int
    """Cycles from a kernel group's last beat to its results, in an array whose credits may run out; 0 of others."""

    @classmethod
    def of(
        cls, npu: Npu, sequencer: SequencerWork, words: int, kernels: int, levels: int, *, in_turn: bool = False
    ) -> "ArrayWork":
        """The work on an NPU; ``words`` are those of a tuple that a kernel group reads. All kernel groups use a word
        ``in_turn``, as in dataflow input_stationary, or each passes the window anew."""
        groups = npu.array.groups(kernels)
        # with several accumulators each is a credit
        latency = timing.array_latency(npu) if npu.array.accumulators == 1 else 0
        words, passes = (words * groups, 1) if in_turn else (words, groups)
        return cls(
            sequencer=sequencer,
            words=words,
            passes=passes,
            kernels=kernels,
            levels=levels,
            kgp=npu.array.kgp,
            latency=latency,
        )

    def cycles(self, ol: int) -> int:
        """Cycles of the array, where so many results leave it in a cycle."""
        least: float = result_steps(self.kernels, self.levels, self.kgp, ol)
        if self.latency:
            least = max(least, self._credited(ol, least))
        return self.sequencer.cycles(self.words, least, self.passes)

    def _credited(self, ol: int, steps: float) -> float:
        """Cycles in which credits come back for all kernel groups of a window, whose results leave in so many steps.

        A kernel group begins when the results of the group two before it have left, so that two groups share the time
        that both take. Where a window has an even number of groups, its last group, which may have fewer results,
        shares with last groups alone: then whole groups take longer.
        """
        groups = kernel_groups(self.kernels, self.kgp)
        if groups % timing.CREDITS == 0:
            steps = groups * result_steps(self.kgp, self.levels, self.kgp, ol)
        return (steps + groups * (self.latency + 1)) / timing.CREDITS


def pays(beats: int, apart: int, former_cycles: int = 0) -> bool:
    """Whether a layer takes fewer cycles with the taps of a window, or of a line of its kernel, side by side.

    Parameters
    ----------
    beats
        Beats of the layer with taps side by side.
    apart
        Beats of the layer tap by tap.
    former_cycles
        Cycles that a former takes for the map meanwhile.
    """
    return max(beats, former_cycles) < apart


def workload_cycles(workload: Workload, npu: Npu) -> float:
    """Cycles that a workload keeps an NPU busy if it waits for no other one: what a chain is cut by. It reads the
    network's input through a window former if the NPU has one that makes it faster. Infinite on another engine."""
    if npu.engine != workload.engine.name:
        return inf
    cycles = _tap_by_tap(workload, npu)
    windows = _windows(workload, npu) if is_input(workload.reads) else None
    if windows and workload.with_former:
        behind = _array_cycles(workload.with_former.workload, npu, windows.words, windows.layout)
        cycles = min(cycles, max(behind, windows.cycles))
    return max(cycles, _pool_cycles(workload, npu))


def _tap_by_tap(workload: Workload, npu: Npu) -> int:
    """Cycles of the array without a window former, or of a line former in front of the array if that is slower."""
    joined = workload.joined_lanes
    read = ReadTuple(
        channels=(workload.channels - joined, joined) if joined else (workload.channels,),
        planes=workload.planes,
        from_host=is_input(workload.reads),
    )
    former_cycles = 0
    if npu.array_forms_lines and not read.from_host:
        behind = workload.with_lines
        lines = FormedLines(lines=workload.height * workload.width)
        if behind and behind.split == npu.array.beat.split(workload.window.window):
            formed = replace(read, lines=behind.split)
            # as lines.py has it
            if pays(_work(behind.workload).cycles(formed.words(npu)), _work(workload).cycles(read.words(npu))):
                lines = FormedLines(
                    lines=workload.height,
                    positions=workload.width,
                    window=behind.split.formed,
                    windows=behind.workload.width,
                )
                workload = behind.workload
                read = formed
        former_cycles = lines.cycles * read.map_words(npu)
    return max(former_cycles, _array_cycles(workload, npu, read.words(npu), partial(read.layout, npu)))


def _array_cycles(workload: Workload, npu: Npu, words: int, layout: Callable[[], WordLayout]) -> int:
    """Cycles of the array, if a tuple that it takes has so many ``words``, with lanes as ``layout`` has them."""
    if workload.weighted_lanes:
        words = tuple_part(workload.weighted_lanes, layout(), npu.array.kgp)[0].words
    work = ArrayWork.of(npu, _work(workload), words * workload.visits, workload.out_channels, workload.levels)
    return work.cycles(npu.results.ol)


def _work(workload: Workload) -> SequencerWork:
    """The work of a sequencer for a workload, each tap visited once."""
    return SequencerWork.of_map(workload.window, workload.height, workload.width)


def _windows(workload: Workload, npu: Npu) -> FormedWindows | None:
    """The windows that the NPU's window former makes of the network's input; None where it can't feed the workload."""
    behind = workload.behind_former(npu)
    return former_windows(workload, npu, behind.height, behind.width) if behind else None


def _pool_cycles(workload: Workload, npu: Npu) -> int:
    """Cycles of the pool unit; 0 where results don't go through it."""
    if not npu.pools_results(raw=workload.raw, pool=workload.pool is not None):
        return 0
    size = workload.window.output_size(workload.height, workload.width)
    split = workload.pool and split_pool(npu, workload.out_channels, workload.levels, *workload.pool)
    size = split.formed.output_size(*size) if split else size
    steps = result_steps(workload.out_channels, workload.levels, npu.array.kgp, npu.results.ol)
    return SequencerWork.of_map(split.rest if split else None, *size).cycles(npu.pool_tuple_words(steps))

"""The sequencer in plain Python: it executes the contents of the tables and nothing else (spec B9, B13).

    stream --> cyclic tuple memory --> reads, one per valid tap and group --> convolve or pool

Golden twin of the hardware sequencer. Four registers carry it: the count of tuples required in this frame, the frame's
base slot, the place in the kernel, and the window's first place. The table pointers go back at each pass of a window.
Nothing is checked: with too small a memory it reads what has overwritten the tuple, as hardware would.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bitloom.golden.layers.pool import rounded_quotient
from bitloom.hls_gen.compiler.schedule.tables import Ints, TableImage


class Read(NamedTuple):
    """One valid tap of one pass over a window."""

    window: int
    """Counts on over the frames."""
    group: int
    tap: int
    """Place in the kernel."""
    value: Ints
    """(C): the tuple."""
    end: bool
    """Last valid tap of the window."""


def reads(image: TableImage, stream: Ints, groups: int = 1, ahead: int = 0) -> Iterator[Read]:
    """All reads for a stream of whole frames, (frames * image.tuples, C), each window passed ``groups`` times.

    ahead : how many tuples the writer may be before the count required, over frame boundaries too. It is harmless
        up to image.capacity minus the smallest legal capacity: that difference is the depth of prefetch.
    """
    ring = np.zeros((image.capacity, stream.shape[1]), stream.dtype)
    stored = window = 0
    for frame in range(len(stream) // image.tuples):
        base = frame * image.tuples  # hardware keeps it modulo the capacity: tables hold slots of frame 0
        first_tap = image.leading_jump or 0
        entry = news = olds = jumps = count = 0  # table pointers, and tuples of this frame required so far
        while entry < len(image.flag):
            begin = entry, news, olds, jumps, count
            for group in range(groups):
                entry, news, olds, jumps, count = begin
                tap, end = first_tap, False
                while not end:
                    if image.flag[entry]:
                        count += int(image.advance[news])
                        news += 1
                        slot = (base + count - 1) % image.capacity
                    else:
                        slot = (base + int(image.old_address[olds])) % image.capacity
                        olds += 1
                    while stored < min(base + count + ahead, len(stream)):
                        ring[stored % image.capacity] = stream[stored]
                        stored += 1
                    end = bool(image.early_end[entry]) or tap == image.taps - 1
                    yield Read(window, group, tap, ring[slot].copy(), end)
                    tap = (tap + 1) % image.taps
                    if image.jump_mark[entry]:
                        tap = int(image.jump_target[jumps])
                        jumps += 1
                    entry += 1
            first_tap = tap
            window += 1


def convolve(image: TableImage, stream: Ints, weight: Ints, kernels_per_group: int, ahead: int = 0) -> Ints:
    """Sums of a conv stage: stream (tuples, C), weight (O, taps, C) -> (windows, O) int64 in the order made (B11)."""
    groups = [weight[o : o + kernels_per_group].astype(np.int64) for o in range(0, len(weight), kernels_per_group)]
    sums: list[Ints] = []
    total: Ints | None = None
    for read in reads(image, stream.astype(np.int64), len(groups), ahead):
        product = groups[read.group][:, read.tap] @ read.value  # (kernels of the group)
        total = product if total is None else total + product
        if read.end:
            sums.append(total)
            total = None
    return np.concatenate(sums).reshape(-1, len(weight))


def pool(image: TableImage, stream: Ints, kind: str, ahead: int = 0) -> Ints:
    """Outputs of a pool stage, "max_pool" or "avg_pool": (tuples, C) -> (windows, C) int64 in the order made (B14)."""
    outputs: list[Ints] = []
    queue: list[Ints] = []
    for read in reads(image, stream.astype(np.int64), 1, ahead):
        queue.append(read.value)
        if read.end:
            values = np.stack(queue)  # (valid taps, C)
            mean = kind == "avg_pool"
            outputs.append(rounded_quotient(values.sum(0), np.array(len(queue))) if mean else values.max(0))
            queue = []
    return np.stack(outputs)

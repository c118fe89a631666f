"""The sequencer in plain Python: it executes the contents of the tables and nothing else (spec B9, B13).

    stream --> cyclic tuple memory --> reads, one per valid tap and group --> convolve or pool

Golden twin of the hardware sequencer. Four registers carry it: the count of tuples required in this frame, the frame's
base slot, the place in the kernel, and the window's first place. The table pointers go back at each pass of a window.
Nothing is checked: with too small a memory it reads what has overwritten the tuple, as hardware would.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bitloom.golden.encoding import Ints
from bitloom.golden.layers.pool import rounded_quotient
from bitloom.hls_gen.compiler.schedule.tables import Flags, StageTables


@dataclass(frozen=True, kw_only=True, eq=False)
class TableImage:
    """What hardware is given for one stage, and all that ``reads`` looks at."""

    taps: int
    """Taps of a whole window; one that runs through all of them ends without a mark."""
    tuples: int
    """Tuples that a frame takes from the stream."""
    capacity: int
    """Slots of the cyclic tuple memory."""
    flag: Flags
    """(valid taps) bool: 1 = new."""
    advance: Ints
    """(flag-1 taps): tuples that it takes, >= 1; it reads the newest of them."""
    old_address: Ints
    """(flag-0 taps): slot, for a frame whose tuple 0 is in slot 0 (B6)."""
    early_end: Flags
    """(valid taps) bool: the last valid tap of a window that has any invalid tap (B4)."""
    jump_mark: Flags
    """(valid taps) bool."""
    jump_target: Ints
    """(marks): place in the kernel of the next valid tap."""
    leading_jump: int | None
    """Place of a frame's first valid tap if that is not 0 (mark -1)."""


def old_addresses(tables: StageTables) -> Ints:
    """(flag-0 taps): index of the tuple that each reads, in order, not yet modulo a capacity (B3)."""
    return tables.index[~tables.new]


def early_ends(tables: StageTables) -> Flags:
    """(valid taps): whether each is the last valid one of a window that has any invalid tap (B4)."""
    cut = tables.valid_taps < tables.stage.window.taps
    return tables.last & cut[tables.window]


def image_of(tables: StageTables, capacity: int, reread: bool) -> TableImage:
    """Contents of the tables for a tuple memory of ``capacity`` tuples; ValueError if it is too small (B6)."""
    least = tables.capacity(reread)
    if capacity < least:
        raise ValueError(f"{tables.stage.name}: tuple memory must hold >= {least} tuples, got {capacity}")
    return TableImage(
        taps=tables.stage.window.taps,
        tuples=len(tables.input_order),
        capacity=capacity,
        flag=tables.new,
        advance=tables.advance[tables.new],
        old_address=old_addresses(tables) % capacity,
        early_end=early_ends(tables),
        jump_mark=tables.jump_mark,
        jump_target=tables.jump_target,
        leading_jump=tables.leading_jump,
    )


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

"""The steady stream: frames come one after the other until what they do repeats, and those that follow needn't be run.

Of a frame all stamps are noted that came with it. Every stamp is the largest of a few others, of the same frame or of
frames before, each with cycles on top: when a word came, when a place became free. So a frame repeats the one before,
each stamp a period later, if all the stamps on which it depends do so. These are the stamps of the frames that are
still under way when it begins: what ended before makes nothing of it wait.

    frame 0 | frame 1 | frame 2 = frame 1 + period, and frame 1 has ended when frame 3 begins: so is frame 3, ...

Where more than one frame is under way, as many must repeat, one after the other.

A process keeps more than stamps: when it was free last. That, too, depends on frames under way alone, since each frame
uses every unit that it goes through, and so sets it anew. A process that a frame may pass by must not keep such a time.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bitloom.golden.encoding import Ints

from . import kernel
from .kahn import Stamps, go_on, run
from .network import ProcessNetwork
from .sequencer import Count
from .system import System

APART = 64
"""Cycles, beside latencies and stream words, that may lie between a stamp and one that comes of it: an entry into a
store, a header, a word that is cut into pieces."""


class _Frame:
    """The stamps that came with a frame, which stay where they are: of a large network they are millions.

    Parameters
    ----------
    kept
        All that is stamped.
    begin
        How many stamps of each came with the frames before.

    Attributes
    ----------
    first, last
        The earliest and the latest of the frame's.
    end
        How many stamps of each there are with this frame's.
    """

    def __init__(self, kept: Sequence[Sequence[int]], begin: Sequence[int]):
        self._kept = kept
        self._begin = begin
        self.end = [len(stamps) for stamps in kept]
        ends = [(int(stamps.min()), int(stamps.max())) for stamps in self._stamps() if len(stamps)]
        self.first = min(first for first, _ in ends)
        self.last = max(last for _, last in ends)

    def _stamps(self) -> Iterator[Ints]:
        """By what is stamped: the frame's stamps. None may be kept, as no stamp can be added then."""
        for stamps, begin, end in zip(self._kept, self._begin, self.end):
            if isinstance(stamps, Stamps) and begin < end:
                yield np.frombuffer(stamps, np.int64, end - begin, stamps.itemsize * begin)
            else:
                yield np.array(stamps[begin:end], np.int64)

    def repeats(self, before: "_Frame", period: int) -> bool:
        """Whether each stamp is that of the frame before, a period later."""
        return all(np.array_equal(here, there + period) for here, there in zip(self._stamps(), before._stamps()))


class SteadyStream:
    """Frames that are run back to back, until they repeat.

    Parameters
    ----------
    system
        NPUs and layers that compute them.
    frames
        How many.

    Attributes
    ----------
    ran
        How many frames were run.
    done, accepted
        Cycles in which each frame has left, and in which its header was accepted.
    counts
        By NPU: what its issuer had counted at the end of each frame.
    stores
        Most words that each store held at a time.

    Raises
    ------
    Deadlock
        The system can't finish.
    """

    def __init__(self, system: System, frames: int):
        network = ProcessNetwork(system, frames, at_once=0)
        apart = _apart(system)
        functions = kernel.library()
        run = kernel.run(functions, network, frames, apart) if functions else _PythonRun(network, apart).frames_run()
        self.ran = len(run.done)
        self._more = frames - self.ran
        self.stores = run.stores
        self.done = self._extended(run.done)
        self.accepted = self._extended(run.accepted)
        self.counts = {n: self._counts(counts) for n, counts in run.counts.items()}

    def _extended(self, stamps: Sequence[int]) -> list[int]:
        """Stamps of a frame each, with those of the frames that were not run."""
        cycles = list(stamps)
        for _ in range(self._more):
            cycles.append(2 * cycles[-1] - cycles[-2])
        return cycles

    def _counts(self, counts: Sequence[Count]) -> list[Count]:
        """Counts of each frame, with those of the frames that were not run."""
        out = list(counts)
        for _ in range(self._more):
            out.append(Count(*(2 * late - early for early, late in zip(out[-2], out[-1]))))
        return out


class _PythonRun:
    """Frames that are run in Python, where no library is."""

    def __init__(self, network: ProcessNetwork, apart: int):
        processes = network.processes
        stamps = {id(stamps): stamps for process in processes for stamps in process.writes}
        self._network = network
        self._kept: list[Sequence[int]] = [*stamps.values(), network.frame_source.accepted]
        """All that is stamped."""
        self._frames: list[_Frame] = []
        self._apart = apart
        while len(network.admitted) < network.frames and not self._repeats():
            network.admit()
            go_on(processes)
            self._note()
        if len(network.admitted) == network.frames:
            run(processes)

    def frames_run(self) -> kernel.FramesRun:
        """Cycles, counts and fill levels of the frames."""
        network = self._network
        counts: dict[int, Sequence[Count]] = {n: issuer.counts for n, issuer in network.issuers.items()}
        return kernel.FramesRun(network.done, network.frame_source.accepted, counts, network.stores())

    def _note(self) -> None:
        """Note the stamps that came with the latest frame, if it has left."""
        if len(self._network.done) == len(self._frames) + 1:
            begin = self._frames[-1].end if self._frames else [0] * len(self._kept)
            self._frames.append(_Frame(self._kept, begin))

    def _repeats(self) -> bool:
        """Whether the frames that follow repeat the latest one."""
        frames = self._frames
        if len(frames) < len(self._network.admitted) or len(frames) < 2:
            return False
        period = self._network.done[-1] - self._network.done[-2]
        latest = len(frames) - 1
        for under_way in range(1, latest + 1):
            if not frames[latest - under_way + 1].repeats(frames[latest - under_way], period):
                return False
            ended = frames[latest - under_way].last + self._apart <= frames[latest].first + period
            before = max((frame.last for frame in frames[: latest - under_way]), default=-self._apart)
            if ended and before + self._apart <= frames[latest].first:
                return True
        return False


def _apart(system: System) -> int:
    """Cycles, at most, between a stamp and another one that depends on it alone."""
    latency = max(
        npu.array + npu.activation + npu.addition + npu.pool + npu.pool_activation
        for npu in (flow_npu.latencies for flow_npu in system.npus)
    )
    return APART + latency + max((packet.words for packet in system.weights), default=0)

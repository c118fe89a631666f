"""Several boards with the same design: frames of a call are divided among them.

                  +-> thread --> accelerator of board 0 --+
    images ------>|                                       +--> results, in the order of the images
     in shares    +-> thread --> accelerator of board 1 --+

A board that is done with a share takes the next one, so a fast board computes more of them. The share of a board that
fails, or falls silent, goes to another board. Results are exact, so it doesn't matter which board has computed them.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Condition, Thread
from types import TracebackType

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.integers import integer
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.partitioned_program import read_program
from bitloom.hls_gen.design.program import Program

from .accelerator import Accelerator
from .errors import DeviceError, DigestMismatch
from .predictor import Predictor, Progress

SHARES = 8
"""Shares of a call for each board, by default: the last ones end at about the same time."""
PATIENCE_SECONDS = 120.0
"""Seconds without a batch, by default, after which a board is lost. The accelerator gives up earlier where the device
stands still; this is for a network that doesn't answer."""


class AcceleratorGroup(Predictor):
    """Accelerators with the same design on several boards, real or virtual, used as one.

    Parameters
    ----------
    accelerators
        One for each board. While a call of the group is under way nobody else may use them.
    patience
        Seconds in which a board must compute a batch, > 0; else it is lost.

    Attributes
    ----------
    program
        The loaded program; None before ``load``.
    lost
        Number of a board, from 0 -> the error by which it was lost. It gets no frames until the next ``load``.
    frames
        How many of the last call's frames each board has computed.

    Raises
    ------
    DigestMismatch
        The boards have different designs.
    ValueError
        There is no accelerator, one is there twice, or ``patience`` isn't above 0.
    """

    def __init__(self, accelerators: Sequence[Accelerator], patience: float = PATIENCE_SECONDS) -> None:
        if not accelerators or len({id(each) for each in accelerators}) < len(accelerators):
            raise ValueError(f"accelerators must be one or more, each once, got {len(accelerators)}")
        if not patience > 0:
            raise ValueError(f"patience must be > 0 seconds, got {patience}")
        first, *others = (each.manifest.digest for each in accelerators)
        for number, digest in enumerate(others, 1):
            if digest != first:
                rule = "all boards of a group must have the design of board 0"
                raise DigestMismatch(f"board {number}: {rule}, {first}, got {digest}", first, digest)
        self.accelerators = tuple(accelerators)
        self.patience = patience
        self.program: CompiledNetwork[Program] | None = None
        self.lost: dict[int, Exception] = {}
        self.frames = [0] * len(accelerators)

    def __repr__(self) -> str:
        loaded = self.program.name if self.program else "no program"
        return f"<AcceleratorGroup of {len(self.accelerators)} boards, {len(self.lost)} lost: {loaded}>"

    def load(self, program: CompiledNetwork[Program] | str | Path) -> None:
        """Send the parameters of a program, or of its file, to all boards, those too that were lost.

        Raises
        ------
        DigestMismatch, ValueError
            As of `Accelerator.load`.
        DeviceError
            All boards are lost.
        """
        self.program = None
        program = program if isinstance(program, CompiledNetwork) else read_program(program)
        self.lost = {}
        for number, accelerator in enumerate(self.accelerators):
            try:
                accelerator.load(program)
            except (DigestMismatch, ValueError):
                raise
            except Exception as e:  # pynq's remote devices raise errors of gRPC
                self.lost[number] = e
        self._check_any()
        self.program = program

    def predict(
        self, images: Array, batch: int | None = None, progress: Progress | None = None, *, share: int | None = None
    ) -> Array:
        """Compute the network's outputs, which equal golden's.

        Parameters
        ----------
        images, batch
            As for `Accelerator.predict`.
        progress
            Called with (frames done, N) as shares are done.
        share
            Frames that a board takes at once, >= 1; by default there are SHARES shares for each board, and one
            where the network is in partitions, whose programs each share loads.

        Returns
        -------
        array
            (N, H', W', C') int64.

        Raises
        ------
        ValueError
            The images don't suit the network; nothing was sent, unless they were changed during the call.
        DeviceError
            All boards are lost.
        """
        program = self._need_program()
        program.check_images(images)
        self._check_any()
        boards = [number for number in range(len(self.accelerators)) if number not in self.lost]
        shares = SHARES if len(program.programs) == 1 else 1  # each share loads all programs of partitions
        size = max(1, -(-len(images) // (shares * len(boards)))) if share is None else integer("share", share)
        if size < 1:
            raise ValueError(f"share must be >= 1 frame, got {size}")
        call = _GroupCall(len(images), size, program.network_shape, len(boards), self.patience)
        for number in boards:
            Thread(target=self._work, args=(call, number, images, batch), daemon=True).start()
        try:
            for done in call.wait():
                if progress is not None:
                    progress(done, len(images))
        finally:
            call.end()
            self.lost |= call.failed
            self.frames = [call.computed.get(number, 0) for number in range(len(self.accelerators))]
        if call.refused is not None:
            raise call.refused
        if not call.complete:
            self._check_any()
        return call.outputs

    def close(self) -> None:
        """Close all accelerators; a board that was lost may leave its buffers."""
        self.program = None
        for number, accelerator in enumerate(self.accelerators):
            try:
                accelerator.close()
            except Exception:
                if number not in self.lost:
                    raise

    def __enter__(self) -> "AcceleratorGroup":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _need_program(self) -> CompiledNetwork[Program]:
        if self.program is None:
            raise DeviceError("a program must be loaded on the group before images, got none")
        return self.program

    def _check_any(self) -> None:
        """DeviceError if all boards are lost, with the error of each."""
        if len(self.lost) == len(self.accelerators):
            errors = "; ".join(f"board {number}: {_line(error)}" for number, error in sorted(self.lost.items()))
            raise DeviceError(f"a board of the group must answer, got none: {errors}") from self.lost[0]

    def _work(self, call: "_GroupCall", number: int, images: Array, batch: int | None) -> None:
        """Compute shares on a board until none is left or the board fails; runs in a thread."""
        accelerator = self.accelerators[number]
        while (part := call.take(number)) is not None:
            try:
                results = accelerator.predict(images[part], batch, lambda *_: call.answered(number))
            except Exception as e:  # pynq's remote devices raise errors of gRPC
                call.fail(number, e)
                return
            call.finish(number, results)


def _line(error: Exception) -> str:
    """The first line of an error's text, or its type where there is no text."""
    return next(iter(str(error).splitlines()), "") or type(error).__name__


class _GroupCall:
    """A call under way: which shares wait, which board computes which, and the results. Threads share it.

    Attributes
    ----------
    outputs
        The results.
    computed
        Frames by board.
    failed
        Errors by board; such a board takes no more shares.
    refused
        The error by which a board refused images.
    """

    def __init__(self, frames: int, share: int, shape: Sequence[int], boards: int, patience: float) -> None:
        self.outputs = np.empty((frames, *shape), np.int64)
        self.computed: dict[int, int] = {}
        self.failed: dict[int, Exception] = {}
        self.refused: ValueError | None = None
        self._waiting = deque(slice(begin, min(begin + share, frames)) for begin in range(0, frames, share))
        self._taken: dict[int, tuple[slice, float]] = {}  # by board: its share, and when it answered last
        self._boards = boards
        self._patience = patience
        self._ended = False
        self._changed = Condition()

    @property
    def complete(self) -> bool:
        """Whether all frames have results."""
        return self._frames_done == len(self.outputs)

    @property
    def _frames_done(self) -> int:
        return sum(self.computed.values())

    def take(self, number: int) -> slice | None:
        """The next share for a board, once there is one; None where there will be none."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended or not self._taken)
            if self._ended or not self._waiting or number in self.failed:
                return None
            part = self._waiting.popleft()
            self._taken[number] = part, time.monotonic()
            return part

    def answered(self, number: int) -> None:
        """Note that a board has computed a batch."""
        with self._changed:
            if number in self._taken:
                self._taken[number] = self._taken[number][0], time.monotonic()

    def finish(self, number: int, results: Array) -> None:
        """Take the results of a board's share; not those of a board that was given up."""
        with self._changed:
            if number in self._taken:
                part, _ = self._taken.pop(number)
                self.outputs[part] = results
                self.computed[number] = self.computed.get(number, 0) + len(results)
            self._changed.notify_all()

    def fail(self, number: int, error: Exception) -> None:
        """Let other boards compute a board's share; where the images are at fault, nobody."""
        with self._changed:
            if number in self._taken:
                self._waiting.appendleft(self._taken.pop(number)[0])
                if isinstance(error, ValueError):
                    self.refused = error
                else:
                    self.failed[number] = error
            self._changed.notify_all()

    def wait(self) -> Iterator[int]:
        """Wait for the end. Yields how many frames are done, whenever it is more."""
        done = 0
        over = False
        while not over:
            with self._changed:
                before = done
                if not self._over and self._frames_done == done:
                    self._changed.wait(self._seconds_left)
                self._give_up_late()
                done, over = self._frames_done, self._over
            if done > before:
                yield done

    def end(self) -> None:
        """Give out no more shares, and wait for those that boards have."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
            while self._taken:
                self._changed.wait(self._seconds_left)
                self._give_up_late()

    @property
    def _over(self) -> bool:
        return self.complete or self.refused is not None or len(self.failed) == self._boards

    @property
    def _seconds_left(self) -> float:
        """Until the first board may be late."""
        now = time.monotonic()
        return max(0.0, min((when for _, when in self._taken.values()), default=now) + self._patience - now)

    def _give_up_late(self) -> None:
        for number, (_, when) in list(self._taken.items()):
            if time.monotonic() >= when + self._patience:
                rule = f"a batch must be computed in {self._patience:g} s"
                self.fail(number, DeviceError(f"{rule}, got no answer"))

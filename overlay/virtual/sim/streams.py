"""The two streams of a simulated design: words for s_axis, words from m_axis, pauses on both."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .running import RunningModel

UNLIMITED = (1 << 64) - 1


class StreamAccess(RunningModel):
    """Queues in front of s_axis and behind m_axis. All methods count 32-bit words, and no time passes in them."""

    def send(self, words: Any, last: bool | Sequence[bool] = False) -> None:
        """Queue words for s_axis.

        Parameters
        ----------
        words
            32-bit words, an array or a sequence; on a 64-bit stream two make a stream word, the low half first.
        last
            True marks the last stream word with tlast. A sequence has a flag for each stream word.

        Raises
        ------
        ValueError
            If the words fill no whole number of stream words, or ``last`` has another number of flags.
        """
        data = np.ascontiguousarray(words, dtype=np.uint32).ravel()
        if data.size % self._per_word:
            raise ValueError(
                f"send: the number of words must be a multiple of {self._per_word} on a {self.stream_bits}-bit stream,"
                f" got {data.size}"
            )
        count = data.size // self._per_word
        if not count:
            return
        if isinstance(last, (bool, np.bool_)):
            flags = np.zeros(count, np.uint8)
            flags[-1] = last
        else:
            flags = np.ascontiguousarray(last, dtype=np.uint8)
            if flags.shape != (count,):
                raise ValueError(f"send: last must have a flag for each of the {count} stream words, got {flags.size}")
        self._call.push(self._model, data.ctypes.data, flags.ctypes.data, count)

    def received(self, words: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Take words that have come out of m_axis.

        Parameters
        ----------
        words
            How many 32-bit words at most; None takes all that wait.

        Returns
        -------
        tuple
            (n,) uint32 words, and a boolean tlast flag for each stream word.
        """
        waiting = self.state()["sink_queued"]
        count = waiting if words is None else min(waiting, self._stream_words(words, "received"))
        data = np.empty(count * self._per_word, np.uint32)
        flags = np.empty(count, np.uint8)
        self._call.pop(self._model, data.ctypes.data, flags.ctypes.data, count)
        return data, flags.astype(bool)

    def stall(self, *, source: float = 0.0, sink: float = 0.0, seed: int = 0) -> None:
        """From now on, let s_axis pause and m_axis refuse at random.

        Parameters
        ----------
        source, sink
            Probability of a pause in each cycle, 0..1, on s_axis and on m_axis.
        seed
            The two sides draw from generators of their own, so that a seed always means the same pauses.

        Raises
        ------
        ValueError
            If a probability is outside of 0..1.
        """
        for name, value in (("source", source), ("sink", sink)):
            if not 0 <= value <= 1:
                raise ValueError(f"stall: {name} must be a probability 0..1, got {value!r}")
        self._call.stalls(self._model, round(source * 2**32), round(sink * 2**32), seed)

    def open_sink(self, words: int | None = None, *, close_on_last: bool = False) -> None:
        """Let m_axis take more words.

        Parameters
        ----------
        words
            How many 32-bit words; None: without a limit.
        close_on_last
            Take nothing more after a word with tlast.
        """
        credit = UNLIMITED if words is None else self._stream_words(words, "open_sink")
        self._call.sink(self._model, credit, close_on_last)

    def clear_source(self) -> None:
        """Forget everything that was sent and has not been taken, a word that is on the bus included."""
        self._call.clear_source(self._model)

    def check(self, rules: bool = True, *, probe_ready: bool = False) -> None:
        """Switch the protocol's rules on or off.

        Parameters
        ----------
        rules
            Whether a broken rule of AXI4-Stream or AXI4-Lite ends the simulation with ProtocolError.
        probe_ready
            Also find a tvalid that depends on tready, by evaluating each cycle twice: half as fast.
        """
        self._call.checks(self._model, rules, probe_ready)

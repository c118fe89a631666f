"""A loaded model: the part that the access to its streams and the access to its registers share."""

import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import ProtocolError, SimulationTimeout
from .fst import is_whole
from .library import FAILED, STATE_FIELDS, load


class RunningModel:
    """One instance of a Verilated model, as harness.cpp holds it; parameters are those of ``Simulation``."""

    def __init__(self, library: Path, stream_bits: int, registers: Sequence[Mapping[str, Any]]):
        self.stream_bits = stream_bits
        self.registers = list(registers)
        self._per_word = stream_bits // 32
        self._call = load(library)
        self._model = self._call.new()
        self._process = os.getpid()
        self._fst: Path | None = None  # the waveform, where it is of that kind

    def close(self) -> None:
        """End the model and close its waveform. Nothing else may be called afterwards.

        A process that was forked from the one that made the model only forgets its copy: Verilator would wait for
        threads that a fork doesn't copy, and the waveform's file is the other process'.

        ProtocolError if not all of the waveform can be written.
        """
        if self._model and os.getpid() != self._process:
            self._model = None
        if self._model:
            try:
                self.close_waveform()
            finally:
                self._call.delete(self._model)
                self._model = None

    def close_waveform(self) -> None:
        """End the waveform's file, if there is one; ProtocolError if not all of it can be written."""
        self._check(self._call.waveform_close(self._model))
        path = self._fst
        self._fst = None
        if path and not is_whole(path):
            raise ProtocolError("waveform: must be writable, got less of it than was written: is the disk full?")

    def state(self) -> dict[str, int]:
        """Cycle, queues and stream signals by name, as they stood before the last clock edge.

        Counts are in stream words.
        """
        values = (ctypes.c_uint64 * len(STATE_FIELDS))()
        self._call.state(self._model, values)
        return dict(zip(STATE_FIELDS, values))

    def touch(self) -> None:
        """Start the watchdog anew: something outside of the model counts as progress."""
        self._call.touch(self._model)

    def __del__(self) -> None:
        if getattr(self, "_model", None):  # the constructor may have failed before there was one
            self.close()

    def timeout(self, what: str, *, registers: bool = True, **more: Any) -> SimulationTimeout:
        """An error that holds the model's present state; ``Simulation`` has it."""
        raise NotImplementedError

    def _stream_words(self, words: int, what: str) -> int:
        """Stream words of ``words`` 32-bit words; ValueError, which names ``what``, where they are no whole number."""
        if words < 0 or words % self._per_word:
            raise ValueError(
                f"{what}: words must be >= 0 and a multiple of {self._per_word} on a {self.stream_bits}-bit stream,"
                f" got {words}"
            )
        return words // self._per_word

    def _check(self, code: int) -> None:
        """Raise ProtocolError where a call into harness.cpp returned FAILED."""
        if code == FAILED:
            raise ProtocolError(self._call.message(self._model).decode())

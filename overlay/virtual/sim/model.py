"""A Verilated design as a Python object: streams, registers, time.

Everything counts 32-bit words, as programs and results do; on a 64-bit stream two of them are one stream word, low half
first. Time passes only inside ``run``, ``receive``, ``read_register``, ``write_register`` and ``reset``.
"""

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.driver.registers import npu_state
from bitloom.driver.waiting import explain
from bitloom.hls_gen.design.registers import CONTROL

from .library import FAILED, STATE_FIELDS, STOP, WriteShape, load
from .verilator import build_model

UNLIMITED = (1 << 64) - 1
CHUNK = 200_000  # cycles of one call into C++, so that Ctrl-C is heard
REGISTER_LIMIT = 10_000  # cycles in which a register access must be answered
RESPONSES = {0: "OKAY", 1: "EXOKAY", 2: "SLVERR", 3: "DECERR"}


class ProtocolError(AssertionError):
    """The model broke a rule of AXI4-Stream or AXI4-Lite, or came to a fatal message. The simulation is over."""


class RegisterError(RuntimeError):
    """A register access was answered with SLVERR or DECERR."""


class SimulationTimeout(TimeoutError):
    """The model made no progress. ``state`` holds what it looked like: cycle, streams, registers by name."""

    def __init__(self, what: str, state: Mapping[str, Any]):
        self.state = dict(state)
        lines = [f"    {name:22} {value}" for name, value in self.state.items() if name != "registers"]
        lines += [f"    {name:22} 0x{value:08X}" for name, value in self.state.get("registers", {}).items()]
        super().__init__(what + "\n" + "\n".join(lines))


class Simulation:
    """One running model. Use ``Simulation.build`` and a ``with`` block.

    library : shared object that ``build_model`` made for ``stream_bits`` and ``trace``.
    registers : the manifest's ``registers``, for state dumps.
    timeout_cycles : cycles without any stream transfer, push or register write after which ``run`` gives up.

    The model starts reset, with empty queues, no stalls, and a sink that takes everything.
    """

    def __init__(
        self,
        library: Path,
        *,
        stream_bits: int = 32,
        registers: Sequence[Mapping[str, Any]] = (),
        timeout_cycles: int = 2_000_000,
    ):
        self.stream_bits = stream_bits
        self.registers = list(registers)
        self.timeout_cycles = timeout_cycles
        self._per_word = stream_bits // 32
        self._call = load(library)
        self._model = self._call.new()
        self.reset()

    @classmethod
    def build(
        cls, verilog: str, *, stream_bits: int = 32, trace: bool = False, top: str = "bitloom_top", **options: Any
    ) -> "Simulation":
        """Build ``verilog`` (or find it in the cache) and start it. ``options``: registers, timeout_cycles."""
        library = build_model(verilog, top=top, stream_bits=stream_bits, trace=trace)
        return cls(library, stream_bits=stream_bits, **options)

    def close(self) -> None:
        """End the model; closes a waveform. Nothing else may be called afterwards."""
        if self._model:
            self._call.delete(self._model)
            self._model = None

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_model", None):
            self.close()

    # Streams

    def send(self, words: Any, last: bool | Sequence[bool] = False) -> None:
        """Queue 32-bit words for s_axis. No time passes.

        last : True marks the last stream word with tlast; a sequence has one flag for each stream word.
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
        """Take up to ``words`` 32-bit words (None: all) that have come out. No time passes.

        Returns (words, last flag of each stream word).
        """
        waiting = self.state()["sink_queued"]
        count = waiting if words is None else min(waiting, self._stream_words(words, "received"))
        data, flags = np.empty(count * self._per_word, np.uint32), np.empty(count, np.uint8)
        self._call.pop(self._model, data.ctypes.data, flags.ctypes.data, count)
        return data, flags.astype(bool)

    def receive(self, words: int, max_cycles: int | None = None) -> np.ndarray:
        """Run until ``words`` 32-bit words have come out and return them.

        Raises SimulationTimeout after ``max_cycles`` or without progress.
        """
        self.run(max_cycles, words=words)
        return self.received(words)[0]

    def stall(self, *, source: float = 0.0, sink: float = 0.0, seed: int = 0) -> None:
        """From now on s_axis pauses, and m_axis refuses, in each cycle with these probabilities (0..1).

        The two sides draw from independent generators, so a seed always means the same stalls.
        """
        for name, value in (("source", source), ("sink", sink)):
            if not 0 <= value <= 1:
                raise ValueError(f"stall: {name} must be a probability 0..1, got {value!r}")
        self._call.stalls(self._model, round(source * 2**32), round(sink * 2**32), seed)

    def open_sink(self, words: int | None = None, *, close_on_last: bool = False) -> None:
        """Let m_axis take ``words`` more 32-bit words (None: no limit), at most up to a tlast if ``close_on_last``."""
        credit = UNLIMITED if words is None else self._stream_words(words, "open_sink")
        self._call.sink(self._model, credit, close_on_last)

    def clear_source(self) -> None:
        """Forget everything that was sent and has not been taken, a word on the bus included."""
        self._call.clear_source(self._model)

    def check(self, rules: bool = True, *, probe_ready: bool = False) -> None:
        """Protocol rules on or off. ``probe_ready`` also finds a tvalid that depends on tready (halves the speed)."""
        self._call.checks(self._model, rules, probe_ready)

    # Time

    @property
    def cycles(self) -> int:
        """Cycles since the model was made, reset included."""
        return self._call.cycles(self._model)

    @property
    def interrupt(self) -> bool:
        """The level of the interrupt output."""
        return bool(self._call.interrupt(self._model))

    def run(
        self,
        max_cycles: int | None = None,
        *,
        words: int | None = None,
        source_empty: bool = False,
        sink_closed: bool = False,
        interrupt: bool = False,
    ) -> str:
        """Run until the first of the chosen conditions holds, and name it; at once if it holds already.

        words : this many 32-bit words wait in the sink. source_empty : everything sent has been taken.
        sink_closed : the sink takes no more. interrupt : the interrupt is high.

        Without a condition: runs ``max_cycles`` and returns "cycles". With one: raises SimulationTimeout after
        ``max_cycles``, or after ``timeout_cycles`` without progress.
        """
        chosen = {"words": words is not None, "source_empty": source_empty, "sink_closed": sink_closed}
        chosen["interrupt"] = interrupt
        wanted = [name for name, on in chosen.items() if on]
        if not wanted and max_cycles is None:
            raise ValueError("run: give max_cycles or a condition to stop at")
        if wanted:
            self._call.touch(self._model)
        hit, left = "cycles", UNLIMITED if max_cycles is None else max_cycles
        while hit == "cycles" and left:
            chunk = min(left, CHUNK)
            hit = self.step(chunk, *wanted, words=words or 0, watch=bool(wanted))
            left -= chunk
        if not wanted:
            return "cycles"
        if hit in wanted:
            return hit
        reason = "no progress" if hit == "idle" else "not reached"
        limit = self.timeout_cycles if hit == "idle" else max_cycles
        raise self.timeout(f"{' or '.join(wanted)}: {reason} for {limit} cycles")

    def step(self, max_cycles: int, *conditions: str, words: int = 0, watch: bool = False) -> str:
        """Run like ``run``, but return "cycles" after ``max_cycles`` and, with ``watch``, "idle" at the watchdog."""
        stop = sum(STOP[name] for name in conditions) | (STOP["idle"] if watch else 0)
        hit = self._call.run(self._model, max_cycles, stop, self._stream_words(words, "run"), self.timeout_cycles)
        self._check(hit)
        return next((name for name, bit in STOP.items() if hit & bit), "cycles")

    def reset(self, cycles: int = 8) -> None:
        """Hold rst high for ``cycles`` cycles. Both queues are emptied."""
        self._check(self._call.reset(self._model, cycles))

    # Registers

    def read_register(self, offset: int, *, response_delay: int = 0) -> int:
        """Read a 32-bit register through s_axi; the streams go on meanwhile.

        response_delay : cycles in which the answer is left waiting.
        Raises RegisterError where the answer is not OKAY, SimulationTimeout where there is none.
        """
        value, response = self.try_read(offset, response_delay=response_delay)
        if response != "OKAY":
            raise RegisterError(f"read of register 0x{offset:03X}: answered {response}")
        return value

    def write_register(self, offset: int, value: int, **shape: int) -> None:
        """Write a 32-bit register through s_axi; the streams go on meanwhile.

        shape : see ``try_write``. Raises RegisterError where the answer is not OKAY, SimulationTimeout without one.
        """
        response = self.try_write(offset, value, **shape)
        if response != "OKAY":
            raise RegisterError(f"write of register 0x{offset:03X}: answered {response}")

    def try_read(self, offset: int, *, response_delay: int = 0) -> tuple[int, str]:
        """(value, answer) of a read; answer is OKAY, SLVERR or DECERR."""
        data = ctypes.c_uint32()
        limit = REGISTER_LIMIT + response_delay
        code = self._call.read(self._model, _offset(offset), ctypes.byref(data), response_delay, limit)
        self._check(code)
        if code == -1:
            raise self.timeout(f"read of register 0x{offset:03X}: no answer for {limit} cycles", registers=False)
        return data.value, RESPONSES[code]

    def try_write(
        self,
        offset: int,
        value: int,
        *,
        strobes: int = 15,
        address_delay: int = 0,
        data_delay: int = 0,
        response_delay: int = 0,
    ) -> str:
        """Answer of a write: OKAY, SLVERR or DECERR.

        strobes : byte lanes, 15 = a whole word. The delays are cycles before awvalid, wvalid and bready rise, so that
        the address comes before the data or the data before the address.
        """
        resets = offset == CONTROL.offset and bool(CONTROL.field("SOFT_RESET").of(value)) and strobes == 15
        shape = WriteShape(strobes, address_delay, data_delay, response_delay, resets)
        limit = REGISTER_LIMIT + address_delay + data_delay + response_delay
        code = self._call.write(self._model, _offset(offset), value & 0xFFFFFFFF, ctypes.byref(shape), limit)
        self._check(code)
        if code == -1:
            raise self.timeout(f"write of register 0x{offset:03X}: no answer for {limit} cycles", registers=False)
        return RESPONSES[code]

    # Looking inside

    def state(self) -> dict[str, int]:
        """Cycle, queues, and the stream signals as they stood before the last clock edge. Counts are stream words."""
        values = (ctypes.c_uint64 * len(STATE_FIELDS))()
        self._call.state(self._model, values)
        return dict(zip(STATE_FIELDS, values))

    def dump(self, *, registers: bool = True) -> dict[str, Any]:
        """``state`` and the value of every register that the manifest names; reading them takes time."""
        dump: dict[str, Any] = dict(self.state())
        if registers:
            dump["registers"] = {}
            for register in self.registers:
                try:
                    dump["registers"][register["name"]] = self.try_read(register["offset"])[0]
                except (SimulationTimeout, ProtocolError) as error:
                    dump["registers_unreadable"] = str(error).splitlines()[0]
                    break
        return dump

    def timeout(self, what: str, *, registers: bool = True, **more: Any) -> SimulationTimeout:
        """A SimulationTimeout with a dump of the present state and ``more``; names a circle of waits between NPUs."""
        dump = self.dump(registers=registers)
        circle = explain(npu_state(self.registers, dump.get("registers", {})))
        return SimulationTimeout(what + (f", {circle}" if circle else ""), {**dump, **more})

    def open_waveform(self, path: Path | str) -> None:
        """Write every signal to a VCD file from now on. Needs a build with ``trace=True``."""
        if self._call.vcd_open(self._model, str(path).encode()):
            raise RuntimeError(f"waveform {path}: the model must be built with trace=True and the file be writable")

    def close_waveform(self) -> None:
        """End the VCD file."""
        self._call.vcd_close(self._model)

    def touch(self) -> None:
        """Start the watchdog anew: something outside counts as progress."""
        self._call.touch(self._model)

    def _stream_words(self, words: int, what: str) -> int:
        if words < 0 or words % self._per_word:
            raise ValueError(
                f"{what}: words must be >= 0 and a multiple of {self._per_word} on a {self.stream_bits}-bit stream,"
                f" got {words}"
            )
        return words // self._per_word

    def _check(self, code: int) -> None:
        if code == FAILED:
            raise ProtocolError(self._call.message(self._model).decode())


def _offset(offset: int) -> int:
    if not 0 <= offset < 4096:
        raise ValueError(f"register: offset must be 0..0xFFF (12 address bits), got {offset:#x}")
    return offset

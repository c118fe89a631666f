"""A Verilated design as a Python object: streams, registers, time.

Everything counts 32-bit words, as programs and results do. On a 64-bit stream two of them are one stream word, the low
half first. Time passes only inside ``run``, ``receive``, ``step``, ``reset`` and the accesses to registers.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.driver.state import explain, npu_state
from bitloom.golden.atomic import write_scratch
from bitloom.hls_gen.design.manifest import TOP

from .errors import ProtocolError, SimulationTimeout
from .library import STOP
from .registers import RegisterAccess
from .streams import UNLIMITED, StreamAccess
from .verilator import build_model
from .watchdog import Watchdog

CHUNK = 200_000
"""Cycles of one call into C++, so that Ctrl-C is heard."""


class Simulation(StreamAccess, RegisterAccess):
    """One running model. Make it with ``Simulation.build``, in a ``with`` block.

    The model starts reset, with empty queues, without pauses, and with a sink that takes everything.

    Parameters
    ----------
    library
        Shared object that ``build_model`` made for this ``stream_bits``.
    stream_bits
        Width of both streams, 32 or 64.
    registers
        The manifest's ``registers``, which are read for the text of a timeout.
    timeout_cycles
        Cycles without progress after which ``run`` gives up. Progress is a transfer on a stream, a push, a register
        write, or a counter of words, frames or beats that moves: one frame may take longer than this.

    Examples
    --------
        with Simulation.build(verilog, registers=manifest["registers"]) as simulation:
            simulation.send(words, last=True)
            results = simulation.receive(10)
    """

    def __init__(
        self,
        library: Path,
        *,
        stream_bits: int = 32,
        registers: Sequence[Mapping[str, Any]] = (),
        timeout_cycles: int = 2_000_000,
    ):
        super().__init__(library, stream_bits, registers)
        self.timeout_cycles = timeout_cycles
        self._watchdog = Watchdog(registers)
        self.reset()

    @classmethod
    def build(
        cls,
        verilog: str,
        *,
        stream_bits: int = 32,
        trace: bool | str = False,
        top: str = TOP,
        dma: bool = False,
        **options: Any,
    ) -> "Simulation":
        """Compile a design, or find it in the cache, and start it.

        Parameters
        ----------
        verilog
            The whole design as text.
        stream_bits
            Width of both streams, 32 or 64.
        trace
            Whether ``open_waveform`` may be called; the model is slower then. "fst": for FST files, not VCD.
        top
            Name of the top module, whose ports are those of docs/reference/device.md.
        dma
            The top module is ``bitloom_system``, a device and its DMA: registers and memory are its only surroundings.
        options
            ``registers`` and ``timeout_cycles``, as for the class.

        Raises
        ------
        BuildError
            If a tool is missing or refuses the design.
        """
        library = build_model(verilog, top=top, stream_bits=stream_bits, trace=trace, dma=dma)
        return cls(library, stream_bits=stream_bits, **options)

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Time

    @property
    def cycles(self) -> int:
        """Cycles since the model was made, those of resets included."""
        return self._call.cycles(self._model)

    @property
    def interrupt(self) -> bool:
        """The level of the interrupt output."""
        return bool(self._call.interrupt(self._model))

    @property
    def dma_interrupts(self) -> int:
        """Levels of the DMA's interrupts: bit 0 of mm2s, bit 1 of s2mm."""
        return int(self._call.dma_interrupts(self._model))

    def connect_memory(self, content: np.ndarray, base: int, refused: range = range(0)) -> None:
        """Let the DMA read and write ``content`` from now on.

        Parameters
        ----------
        content
            (n,) uint8, at the physical addresses from ``base`` on. There is no memory elsewhere.
        base
            Physical address of the first byte.
        refused
            Physical addresses at which memory refuses an access (SLVERR).
        """
        self._content = content  # must live as long as the model
        refusal = (refused.start, len(refused))
        self._call.memory(self._model, content.ctypes.data, base, content.nbytes, *refusal)

    def receive(self, words: int, max_cycles: int | None = None) -> np.ndarray:
        """Run until so many 32-bit words have come out of m_axis, and return them.

        Raises
        ------
        SimulationTimeout
            After ``max_cycles``, or without progress for ``timeout_cycles``.
        """
        self.run(max_cycles, words=words)
        return self.received(words)[0]

    def run(self, max_cycles: int | None = None, *conditions: str, words: int | None = None) -> str:
        """Run until the first of the chosen conditions holds; at once if one holds already.

        Parameters
        ----------
        max_cycles
            Cycles at most; None: without a limit, which needs a condition.
        conditions
            "source_empty": s_axis has taken everything that was sent; "sink_closed": the sink takes no more;
            "interrupt": the interrupt is high.
        words
            Stop when so many 32-bit words wait behind m_axis: the condition "words".

        Returns
        -------
        str
            Name of the condition that holds; "cycles" after ``max_cycles`` where no condition was chosen.

        Raises
        ------
        SimulationTimeout
            If a chosen condition doesn't hold after ``max_cycles``, or without progress for ``timeout_cycles``.
        """
        wanted = [*(["words"] if words is not None else []), *conditions]
        if not wanted and max_cycles is None:
            raise ValueError("run: give max_cycles or a condition to stop at")
        if wanted:
            self.touch()  # quiet cycles before this call don't count
        hit = "cycles"
        left = UNLIMITED if max_cycles is None else max_cycles
        while hit == "cycles" and left:
            before = self.cycles
            hit = self.step(min(left, CHUNK), *wanted, words=words or 0, watch=bool(wanted))
            left -= min(left, self.cycles - before)  # the watchdog may end a step early, or read registers
        if not wanted:
            return "cycles"
        if hit in wanted:
            return hit
        reason = "no progress" if hit == "idle" else "not reached"
        limit = self.timeout_cycles if hit == "idle" else max_cycles
        raise self.timeout(f"{' or '.join(wanted)}: {reason} for {limit} cycles")

    def step(self, max_cycles: int, *conditions: str, words: int = 0, watch: bool = False) -> str:
        """Run like ``run``, in one call into C++ and without an error at the end.

        Parameters
        ----------
        max_cycles
            Cycles at most.
        conditions
            Names of conditions of ``run``.
        words
            For the condition "words".
        watch
            Whether to stop after ``timeout_cycles`` without progress.

        Returns
        -------
        str
            Name of the condition that holds, "idle" after ``timeout_cycles`` without progress, else "cycles", perhaps
            before ``max_cycles``.
        """
        stop = sum(STOP[name] for name in conditions) | (STOP["idle"] if watch else 0)
        quiet = self._watchdog.next_look(self.timeout_cycles)
        hit = self._call.run(self._model, max_cycles, stop, self._stream_words(words, "run"), quiet)
        self._check(hit)
        name = next((name for name, bit in STOP.items() if hit & bit), "cycles")
        return "cycles" if name == "idle" and self._watchdog.is_patient(self) else name

    def reset(self, cycles: int = 8) -> None:
        """Hold rst high for so many cycles, and empty both queues."""
        self._check(self._call.reset(self._model, cycles))

    # Looking inside

    def dump(self, *, registers: bool = True) -> dict[str, Any]:
        """``state`` and, under "registers", the value of each register of the manifest.

        Reading registers takes simulated time. Where a read fails, the registers after it are missing, and
        "registers_unreadable" says why.
        """
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
        """An error for a model that makes no progress, to be raised by the caller.

        Parameters
        ----------
        what
            Event that was waited for, and for how long. A circle of NPUs that wait for each other is named behind it.
        registers
            Whether to read the registers, too.
        more
            Further values for the error's state, by name.
        """
        dump = self.dump(registers=registers)
        circle = explain(npu_state(self.registers, dump.get("registers", {})))
        return SimulationTimeout(what + (f", {circle}" if circle else ""), {**dump, **more})

    def open_waveform(self, path: Path | str) -> None:
        """Write every signal to a file from now on: VCD, or FST where the model was built for it.

        Raises
        ------
        OSError
            If the file can't be written.
        RuntimeError
            If the model was built without ``trace=True``.
        ProtocolError
            If the disk is full.
        """
        write_scratch(path, b"")  # raises if the path can't be written
        code = self._call.waveform_open(self._model, os.fsencode(path))
        self._check(code)
        self._fst = Path(path) if code == 1 else None
        if code not in (0, 1):
            raise RuntimeError(f"waveform {path}: the model must be built with trace=True and the file be writable")

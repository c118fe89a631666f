"""A virtual board without pynq: its DDR, its processor's registers, and the design that was loaded last.

Both front-ends stand on it: ``device.py`` for pynq in this process, ``overlay/virtual/serve`` for pynq elsewhere.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.parsers import expat

from bitloom.golden.reading.file import read_file, reason
from bitloom.overlay.platform.block_design import PROCESSORS
from bitloom.overlay.platform.dma_core import OWN
from bitloom.overlay.virtual.sim import Simulation
from bitloom.overlay.virtual.simulation_overlay import OverlayError, read_simulation_overlay

from .bus import BusError, processor_bus
from .memory import Ddr
from .programmable_logic import ProgrammableLogic

NAME = "Virtual"
"""Name of the board."""


class NothingLoadedError(BusError):
    """The programmable logic was used before a bitstream was loaded."""


def hwh_arch(hwh: Path) -> str:
    """Family of processors in a .hwh file, "zynq" or "zynqmp".

    Raises
    ------
    OverlayError
        If the file can't be read, or has no processing system of either family.
    """
    modules: set[str] = set()

    def element(name: str, attributes: dict[str, str]) -> None:
        if name == "MODULE":
            modules.add(attributes.get("MODTYPE", ""))

    def refuse(*_: object) -> None:
        raise ValueError("a document type, which may hold endless text")

    parser = expat.ParserCreate()
    parser.StartElementHandler = element
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(read_file(hwh), True)
    except (OSError, ValueError, LookupError, expat.ExpatError) as e:
        raise OverlayError(f"{hwh.name}: the .hwh must be readable XML, got: {reason(e)}") from None
    for arch, processor in PROCESSORS.items():
        if processor.module in modules:
            return arch
    raise OverlayError(f"{hwh.name}: one of {', '.join(p.module for p in PROCESSORS.values())} must be in it, got none")


def waveform_kind(path: Path | str | None) -> str:
    """How a waveform is written: "fst" where its name ends so, else "vcd"; "" where there is none."""
    if path is None:
        return ""
    return "fst" if Path(path).suffix == ".fst" else "vcd"


class VirtualBoard:
    """One virtual board; several threads may use it. Its processor is the one of the overlay that was loaded last.

    ``stall``, ``timeout_cycles``, ``waveform`` and ``prepare`` hold for what is loaded and for what will be.

    Attributes
    ----------
    ddr
        Its memory.
    waveform
        Path of a VCD file, or of an FST file if it ends in .fst. The next download builds with tracing, and writes
        every signal to it; None: no file.
    prepare
        Called with the Simulation after each download.
    logic
        Design that is loaded; None before the first download.
    arch
        Output of ``uname -m`` on the board.
    """

    def __init__(self) -> None:
        self.ddr = Ddr()
        self.logic: ProgrammableLogic | None = None
        self.waveform: Path | str | None = None
        self.prepare: Callable[[Simulation], None] | None = None
        self._timeout_cycles = 2_000_000
        self._stalls: dict[str, Any] = {}
        self._lock = threading.RLock()
        VirtualBoard.become(self, "zynqmp")  # not a front-end's, which isn't ready yet

    # Knobs

    @property
    def simulation(self) -> Simulation:
        """The running model.

        Raises
        ------
        NothingLoadedError
            Before the first download.
        """
        return self._loaded().simulation

    @property
    def timeout_cycles(self) -> int:
        """Cycles without progress after which polling raises SimulationTimeout."""
        return self._timeout_cycles

    @timeout_cycles.setter
    def timeout_cycles(self, cycles: int) -> None:
        self._timeout_cycles = cycles
        if self.logic:
            self.logic.simulation.timeout_cycles = cycles

    def stall(self, *, source: float = 0.0, sink: float = 0.0, seed: int = 0) -> None:
        """Let both streams pause at random, as a busy memory does.

        Parameters
        ----------
        source, sink
            Probability of a pause in each cycle, 0..1, on s_axis and on m_axis.
        seed
            The same seed means the same pauses.
        """
        self._stalls = {"source": source, "sink": sink, "seed": seed}
        if self.logic:
            self.logic.simulation.stall(**self._stalls)

    def close(self) -> None:
        """End the simulation. Buffers in the DDR live on."""
        with self._lock:
            if self.logic:
                self.logic.close()
            self.logic = None

    # Loading

    def become(self, arch: str) -> None:
        """Take over a processor: "zynq" or "zynqmp"."""
        self.arch = PROCESSORS[arch].machine
        self._processor = processor_bus(arch)

    def load(self, bit: Path | str) -> None:
        """Load the model that belongs to the .bit of a simulation overlay, and reset it.

        The model is compiled where the cache doesn't have it.

        Raises
        ------
        OverlayError
            If the files don't belong together.
        BuildError
            If the model doesn't compile.
        """
        files = read_simulation_overlay(bit)
        arch = hwh_arch(Path(bit).with_suffix(".hwh"))
        simulation = Simulation.build(
            files.verilog,
            stream_bits=files.manifest["stream_bits"],
            trace=waveform_kind(self.waveform),
            top=files.top,
            dma=files.dma is OWN,
            registers=files.manifest["registers"],
            timeout_cycles=self._timeout_cycles,
        )
        with self._lock:
            self.close()
            if self.arch != PROCESSORS[arch].machine:
                self.become(arch)
            self.logic = ProgrammableLogic(simulation, files.manifest, self.ddr, arch, files.dma)
            if self._stalls:
                simulation.stall(**self._stalls)
            if self.waveform is not None:
                simulation.open_waveform(self.waveform)
            if self.prepare:
                self.prepare(simulation)

    # Registers

    def read(self, address: int) -> int:
        """Read 32 bits as the processor does; time passes. Errors are those of ``ProgrammableLogic.read``."""
        with self._lock:
            if address not in self._processor:
                return self._loaded().read(address)
            region, offset = self._processor.find(address, "read")
            return region.core.read(offset)

    def write(self, address: int, value: int) -> None:
        """Write 32 bits as the processor does. Errors are those of ``ProgrammableLogic.write``."""
        with self._lock:
            if address not in self._processor:
                self._loaded().write(address, value)
                return
            region, offset = self._processor.find(address, "write")
            region.core.write(offset, value)

    def advance_to_interrupt(self) -> bool:
        """Let time pass; whether the processor's interrupt is high then."""
        with self._lock:
            return self._loaded().advance_to_interrupt()

    @property
    def busy(self) -> bool:
        """Whether a DMA transfer is running."""
        return self.logic is not None and self.logic.busy

    def _loaded(self) -> ProgrammableLogic:
        """The loaded bitstream; NothingLoadedError before the first download."""
        if not self.logic:
            raise NothingLoadedError(f"{NAME} device: no bitstream is loaded")
        return self.logic

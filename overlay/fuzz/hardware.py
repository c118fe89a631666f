"""A design on a virtual board, on which case after case runs: a process compiles its model once."""

import tempfile
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from bitloom.driver.accelerator import Accelerator
from bitloom.driver.errors import DeviceError
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.sim import ProtocolError, Simulation, SimulationTimeout
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay

STUCK_CYCLES = 500_000
"""Cycles without progress after which a device counts as stuck."""
SECONDS = 600.0
"""The driver's time-out: cycles are what counts here."""


class Hardware:
    """A design, its board and its driver.

    Parameters
    ----------
    design
        Whose Verilog is simulated.

    Attributes
    ----------
    board, accelerator, manifest
        The virtual board, the driver on it, and what the design has.
    """

    def __init__(self, design: Design):
        generated = generate(design, checked=False)
        self._folder = tempfile.TemporaryDirectory(prefix="bitloom-fuzz-")
        bit = write_simulation_overlay(self._folder.name, generated.manifest, generated.text)
        self.board = activate(f"fuzz {design.name}")
        self.board.timeout_cycles = STUCK_CYCLES
        self.accelerator = Accelerator(str(bit), device=self.board, timeout=SECONDS)
        self.manifest = self.accelerator.manifest

    @cached_property
    def users(self) -> tuple[Accelerator, Accelerator]:
        """Two drivers of the device: ``accelerator``, and another one, which resets the device when it is made."""
        return self.accelerator, Accelerator(self.accelerator.overlay, timeout=SECONDS)

    @property
    def simulation(self) -> Simulation:
        """The running model."""
        return self.board.simulation

    def outputs(self, program: Program, images: np.ndarray) -> np.ndarray:
        """Load a program and compute images, from a reset on; errors are the driver's."""
        self.accelerator.load(program)
        return self.accelerator.predict(images, len(images))

    def recorded(self, program: Program, images: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
        """As ``outputs``, and the words of each transfer that went to the device."""
        simulation = self.simulation
        transfers = list[np.ndarray]()
        send = simulation.send

        def recording(words: Any, last: Any = False) -> None:
            transfers.append(np.array(words, np.uint32))
            send(words, last)

        simulation.send = recording  # type: ignore[method-assign]
        try:
            return self.outputs(program, images), transfers
        finally:
            simulation.send = send  # type: ignore[method-assign]


def compared(target: Hardware, program: Program, images: np.ndarray, expected: np.ndarray) -> tuple[str, str]:
    """How a program's run ends: "exact" if the outputs are those that are expected; all else is a fault, with a line
    that says what is wrong."""
    name = target.manifest.design.name
    try:
        outputs = target.outputs(program, images)
    except ProtocolError as error:
        hardware.cache_clear()  # the model has ended
        return "protocol", f"{name}: the streams' protocol must be kept, got: {error}"
    except (SimulationTimeout, DeviceError) as error:
        return "stuck", f"{name}: {len(images)} frames must be computed, got: {str(error).splitlines()[0]}"
    wrong = int((outputs != expected).sum())
    return ("wrong", f"{name}: outputs must equal golden, got {wrong} others") if wrong else ("exact", "")


@lru_cache(maxsize=32)
def hardware(design: Design) -> Hardware:
    """The board of a design; a process has one."""
    return Hardware(design)

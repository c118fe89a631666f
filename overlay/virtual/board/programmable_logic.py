"""The programmable logic under a bitstream: DMA, interrupt controller and the simulated device, on one bus.

Time stands still between accesses of the processor. Every read of a register lets some time pass, so that polling
comes to an end: a few cycles at first, more the longer the driver does nothing but read, and never beyond the moment
at which a transfer completes or an interrupt rises.
"""

from collections.abc import Mapping
from typing import Any

from bitloom.overlay.platform.block_design import DEVICE, DMA, INTERRUPTS, BlockDesign
from bitloom.overlay.platform.dma_core import AMD, OWN, DmaCore
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.virtual.sim import Simulation, SimulationTimeout

from .bus import Bus, Region
from .dma import AxiDma
from .generated_dma import GeneratedDma
from .interrupts import InterruptController
from .memory import Ddr

FIRST_STRIDE = 8  # cycles that the first read after a write or an event lets pass
BUSY_STRIDE, QUIET_STRIDE = 1 << 13, 1 << 4  # and at most, with and without a transfer running
WAITING_STRIDE = 1 << 10  # cycles between two looks of somebody who waits for an interrupt without a transfer

DMAS: dict[str, type[AxiDma] | type[GeneratedDma]] = {AMD.name: AxiDma, OWN.name: GeneratedDma}
"""Model of each kind of DMA, by the kind's name."""


class DeviceRegisters:
    """The registers of the simulated device, reached through its s_axi."""

    def __init__(self, simulation: Simulation):
        self._simulation = simulation

    def read(self, offset: int) -> int:
        """Read the register at a byte offset."""
        return self._simulation.read_register(offset)

    def write(self, offset: int, value: int) -> None:
        """Write the register at a byte offset."""
        self._simulation.write_register(offset, value)


class ProgrammableLogic:
    """One loaded design.

    After ``simulation.timeout_cycles`` without progress, reads raise SimulationTimeout instead of waiting for ever.
    Progress is a transfer on a stream, a write to a register, or a completed DMA transfer.

    Parameters
    ----------
    simulation
        The running model.
    manifest
        Of the design that ``simulation`` runs.
    memory
        The DDR. It outlives the loaded design, as it does on a board.
    arch
        "zynq" or "zynqmp": decides the addresses.
    dma
        The DMA; ours is part of ``simulation``.
    """

    def __init__(self, simulation: Simulation, manifest: Mapping[str, Any], memory: Ddr, arch: str, dma: DmaCore = AMD):
        self.simulation = simulation
        self.memory = memory
        self.design = BlockDesign.from_manifest(manifest, BoardTarget(arch=arch, dma=dma))
        self.dma = DMAS[dma.name](simulation, memory)
        self.interrupts = InterruptController(lambda: self.dma.lines | simulation.interrupt << 2)
        cores = {DMA: self.dma, DEVICE: DeviceRegisters(simulation), INTERRUPTS: self.interrupts}
        ranges = self.design.address_map.items()
        self.bus = Bus([Region(name, base, size, cores[name]) for name, (base, size) in ranges])
        self._stride = FIRST_STRIDE
        self._failure: SimulationTimeout | None = None

    def read(self, address: int) -> int:
        """Read 32 bits as the processor does; simulated time passes.

        Raises
        ------
        BusError
            If nothing answers at the address.
        SimulationTimeout
            If there has been no progress for too long.
        ProtocolError
            If the simulated device broke a rule.
        """
        region, offset = self.bus.find(address, "read")
        if region.core is self.interrupts and self._failure:
            return 0xFFFFFFFF if offset == 4 else 0  # wakes every waiter: its next read raises the failure
        self._raise_failure()
        self.advance()
        return region.core.read(offset)

    def write(self, address: int, value: int) -> None:
        """Write 32 bits as the processor does.

        Raises
        ------
        BusError
            If nothing answers at the address.
        ProtocolError
            If the simulated device broke a rule.
        DmaMisuseError
            If the driver did what the AXI DMA leaves undefined.
        """
        region, offset = self.bus.find(address, "write")
        if region.core is self.interrupts and self._failure:
            return
        self._raise_failure()
        region.core.write(offset, value & 0xFFFFFFFF)
        if region.core is not self.interrupts:
            self.simulation.touch()
        self._stride = FIRST_STRIDE

    def advance(self) -> None:
        """Let time pass, up to the next event.

        Raises
        ------
        SimulationTimeout
            If there has been none for too long.
        """
        conditions = self.dma.waiting_for
        most = BUSY_STRIDE if self.busy else QUIET_STRIDE
        if not self.simulation.interrupt:
            conditions.append("interrupt")
        hit = self.simulation.step(min(self._stride, most), *conditions, watch=True)
        self.dma.step()
        if hit == "idle":
            waiting = [channel.name for channel in self.dma.channels if channel.active]
            reason = f"no progress for {self.simulation.timeout_cycles} cycles"
            error = self.simulation.timeout(f"{', '.join(waiting) or 'polling'}: {reason}", **self.dma.dump())
            self.simulation.touch()
            raise error
        self._stride = min(self._stride * 2, most) if hit == "cycles" else FIRST_STRIDE

    def advance_to_interrupt(self) -> bool:
        """Let time pass for somebody who waits for the interrupt.

        A timeout is kept for the next read of a register, because nothing but an interrupt wakes whoever waits for one.
        Without a running transfer there is no timeout: the interrupt may be meant for what the driver starts later.

        Returns
        -------
        bool
            Whether the interrupt is there.
        """
        if self._failure or self.interrupts.output:
            return True
        try:
            if self.busy:
                self.advance()
            else:
                self.simulation.step(WAITING_STRIDE, "interrupt")
                self.simulation.touch()
        except SimulationTimeout as error:
            self._failure = error
        return bool(self._failure) or self.interrupts.output

    @property
    def busy(self) -> bool:
        """Whether a DMA transfer is running."""
        return any(channel.active for channel in self.dma.channels)

    def _raise_failure(self) -> None:
        """Raise the timeout that ``advance_to_interrupt`` kept, once."""
        failure = self._failure
        self._failure = None
        if failure:
            raise failure

    def close(self) -> None:
        """End the simulation."""
        self.simulation.close()

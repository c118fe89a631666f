"""The watchdog of a simulation: whether a model that moves no words on its streams still gets on.

The compiled model counts the cycles since the last transfer on a stream. A frame may take longer than the limit: then
the device's own counters of words, frames and beats move. They are read as a host reads them, halfway to the limit and
at the limit, because a read takes simulated time.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bitloom.hls_gen.design.registers import shows_progress

from .errors import ProtocolError, SimulationTimeout
from .registers import RegisterAccess


class Watchdog:
    """Compares the counters of a device whose streams are quiet.

    Parameters
    ----------
    registers
        The manifest's ``registers``. Without counters among them only the streams show progress.
    """

    def __init__(self, registers: Sequence[Mapping[str, Any]]):
        self._offsets = [r["offset"] for r in registers if shows_progress(r["name"])]
        self._quiet_since = -1
        self._counts: list[int] | None = None

    def next_look(self, timeout_cycles: int) -> int:
        """Quiet cycles after which to ask `is_patient`: first at half of the limit, to compare counters then."""
        return timeout_cycles if self._counts is not None or not self._offsets else max(1, timeout_cycles // 2)

    def is_patient(self, simulation: RegisterAccess) -> bool:
        """Whether to go on with a model whose streams have been quiet until the last `next_look`."""
        if not self._offsets:
            return False
        quiet_since = simulation.state()["progress_cycle"]
        counts = self._read(simulation)
        known = self._counts if quiet_since == self._quiet_since else None
        self._quiet_since = quiet_since
        self._counts = counts
        if known is None:
            return counts is not None
        if counts is None or counts == known:
            self._counts = None  # whoever goes on nevertheless has the whole limit again
            return False
        simulation.touch()
        self._quiet_since = simulation.state()["progress_cycle"]
        return True

    def _read(self, simulation: RegisterAccess) -> list[int] | None:
        """Values of the counters; None where the device doesn't answer."""
        try:
            return [simulation.try_read(offset)[0] for offset in self._offsets]
        except (SimulationTimeout, ProtocolError):
            return None

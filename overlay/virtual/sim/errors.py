"""Errors of a running simulation."""

from collections.abc import Mapping
from typing import Any


class ProtocolError(AssertionError):
    """The model broke a rule of AXI4-Stream or AXI4-Lite, or reached a fatal message of its own.

    The simulation has ended: every later call fails with the same message.
    """


class RegisterError(RuntimeError):
    """The model answered a register access with SLVERR or DECERR."""


class SimulationTimeout(TimeoutError):
    """The model made no progress for longer than it may take.

    Parameters
    ----------
    what
        Event that was waited for, and for how many cycles: the first line of the message.
    state
        State of the model at that moment: values of the streams and counters by name, and under the key ``registers``
        the values of the registers by name. They follow in the message, one a line.

    Attributes
    ----------
    state
        As above.
    """

    def __init__(self, what: str, state: Mapping[str, Any]):
        self.state = dict(state)
        lines = [f"    {name:22} {value}" for name, value in self.state.items() if name != "registers"]
        lines += [f"    {name:22} 0x{value:08X}" for name, value in self.state.get("registers", {}).items()]
        super().__init__(what + "\n" + "\n".join(lines))

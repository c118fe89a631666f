"""Errors become a gRPC status with one line of details: the thing, the rule, the value."""

import logging

from grpc import StatusCode

from bitloom.overlay.virtual.board import BusError, DmaMisuseError, MemoryAccessError
from bitloom.overlay.virtual.board.board import NothingLoadedError
from bitloom.overlay.virtual.sim import BuildError, ProtocolError, SimulationTimeout
from bitloom.overlay.virtual.sim.errors import RegisterError
from bitloom.overlay.virtual.simulation_overlay import OverlayError

LOG = logging.getLogger("bitloom.serve")
LONGEST = 1000
"""Characters of details at most; HTTP/2 headers end at 8 KB."""


class Refused(Exception):
    """A request that the server doesn't take.

    Parameters
    ----------
    code
        Status code of the answer.
    message
        One line for the client.
    """

    def __init__(self, code: StatusCode, message: str):
        super().__init__(message)
        self.code = code


CODES: dict[type[Exception], StatusCode] = {
    NothingLoadedError: StatusCode.FAILED_PRECONDITION,
    BusError: StatusCode.OUT_OF_RANGE,
    MemoryAccessError: StatusCode.OUT_OF_RANGE,
    DmaMisuseError: StatusCode.FAILED_PRECONDITION,
    RegisterError: StatusCode.INVALID_ARGUMENT,
    OverlayError: StatusCode.FAILED_PRECONDITION,
    BuildError: StatusCode.FAILED_PRECONDITION,
    SimulationTimeout: StatusCode.DEADLINE_EXCEEDED,
    ProtocolError: StatusCode.INTERNAL,
    MemoryError: StatusCode.RESOURCE_EXHAUSTED,
}
"""Status code of the answer by the simulation's error."""
ANSWERED = (Refused, *CODES)
"""The errors that become answers."""


def answer(error: Exception) -> tuple[StatusCode, str]:
    """Status code and details, one line, for an error of ANSWERED."""
    line = str(error).partition("\n")[0][:LONGEST]
    if isinstance(error, Refused):
        return error.code, line
    return next(code for kind, code in CODES.items() if isinstance(error, kind)), line

"""What goes wrong becomes a gRPC status with one line of details: the thing, the rule, the value."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

import grpc
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


def answered(method: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a method of a service so that its errors become answers.

    The method gives an answer, or an iterable of answers that can't fail.
    """

    @wraps(method)
    def wrapped(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return method(self, request, context)
        except Refused as e:
            code, message = e.code, str(e)
        except tuple(CODES) as e:
            code = next(code for kind, code in CODES.items() if isinstance(e, kind))
            message = str(e)
        except grpc.RpcError:
            LOG.warning("%s: the client went away during %s", context.peer(), method.__name__)
            return context.abort(StatusCode.CANCELLED, f"{method.__name__}: the request must come to its end")
        line = message.partition("\n")[0][:LONGEST]
        LOG.warning("%s: %s", context.peer(), line)
        return context.abort(code, line)

    return wrapped

"""Every call that comes in: counted, watched, and answered with a status where it fails.

A client may begin a call and never send what belongs to it, or never take what it is sent. Both keep a thread of the
server, so ``Calls`` cancels a call once the server has waited for its client for too long. The request of a call with
only one request is also taken like the first piece of many (the bytes on the wire are the same): gRPC would wait for it
without a bound, before any code of ours runs. For the same reason the server parses messages itself: bytes that are no
message are refused like any other wrong request.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from grpc import StatusCode

from .errors import ANSWERED, LOG, Refused, answer
from .limits import ServerLimits

LOOKS = 10
"""Number of looks at a call within the time that it may keep the server waiting."""


class Call:
    """One call under way.

    Parameters
    ----------
    name
        Of the method.
    context
        gRPC's, of the call.
    """

    def __init__(self, name: str, context: grpc.ServicerContext):
        self.name = name
        self.client = context.peer()
        self._context = context
        self._begun = time.monotonic()
        self._waits_since: float | None = None

    def pieces(self, requests: Iterator[bytes], read: Callable[[bytes], Any]) -> Iterator[Any]:
        """The client's pieces, each made a message by ``read``; the call counts as waiting until a piece comes."""
        while True:
            self._waits_since = time.monotonic()
            piece = next(requests, None)
            self._waits_since = None
            if piece is None:
                return
            try:
                message = read(piece)
            except DecodeError:
                rule = "every piece must be a message of PYNQ's protocol"
                raise Refused(StatusCode.INVALID_ARGUMENT, f"{self.name}: {rule}, got other bytes") from None
            yield message

    def taken(self, answers: Iterator[Any]) -> Iterator[Any]:
        """The answers to the client; the call counts as waiting until the client asks for the next one."""
        for piece in answers:
            self._waits_since = time.monotonic()
            yield piece
            self._waits_since = None

    def overdue(self, limits: ServerLimits) -> str:
        """The reason why the client took too long; empty if it didn't."""
        now = time.monotonic()
        since = self._waits_since
        if since is None:
            return ""
        if now - since > limits.piece_seconds:
            return f"no piece for {limits.piece_seconds:g} s"
        if now - self._begun > limits.request_seconds:
            return f"not at its end after {limits.request_seconds:g} s"
        return ""

    def cancel(self) -> None:
        """End the call, and so the wait for its client."""
        self._context.cancel()


class Calls(grpc.ServerInterceptor):
    """The calls that a server runs. ``stop`` it in the end.

    Parameters
    ----------
    limits
        Bounds of the calls.
    cancelled
        Called with the client of each call that took too long.

    Attributes
    ----------
    noted
        Called with the client of each call that comes.
    """

    def __init__(self, limits: ServerLimits, cancelled: Callable[[str], object]):
        self._limits = limits
        self._cancelled = cancelled
        self.noted: Callable[[str], object] = lambda client: None
        self._lock = threading.Lock()
        self._calls: dict[Call, None] = {}
        self._of_client: Counter[str] = Counter()
        self._stopped = threading.Event()
        threading.Thread(target=self._watch, name="bitloom-serve-watch", daemon=True).start()

    @property
    def names(self) -> list[str]:
        """The methods that are under way, a name a call."""
        with self._lock:
            return [call.name for call in self._calls]

    @property
    def clients(self) -> set[str]:
        """Clients that have calls under way."""
        with self._lock:
            return {call.client for call in self._calls}

    def stop(self) -> None:
        """End the watch."""
        self._stopped.set()

    def intercept_service(
        self, continuation: Callable[[Any], Any], handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler | None:
        """The handler of a method: gRPC's own, within the bounds of this class."""
        handler = continuation(handler_call_details)
        if handler is None:
            return None
        name = handler_call_details.method.rpartition("/")[2]
        if handler.response_streaming:
            many = self._streamed(name, handler)
            return grpc.stream_stream_rpc_method_handler(many, None, handler.response_serializer)
        return grpc.stream_unary_rpc_method_handler(self._single(name, handler), None, handler.response_serializer)

    def _single(self, name: str, handler: grpc.RpcMethodHandler) -> Callable[..., Any]:
        """The method's work, for an answer of one piece."""
        work = handler.stream_unary if handler.request_streaming else handler.unary_unary

        def run(requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
            with self._answering(name, context), self._under_way(name, context) as call:
                return work(_argument(call, handler, requests), context)

        return run

    def _streamed(self, name: str, handler: grpc.RpcMethodHandler) -> Callable[..., Iterator[Any]]:
        """The method's work, for an answer of several pieces."""
        work = handler.stream_stream if handler.request_streaming else handler.unary_stream

        def run(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[Any]:
            with self._answering(name, context), self._under_way(name, context) as call:
                yield from call.taken(work(_argument(call, handler, requests), context))

        return run

    @contextmanager
    def _under_way(self, name: str, context: grpc.ServicerContext) -> Iterator[Call]:
        """Note a call as long as it keeps a thread; Refused if its client has too many calls."""
        call = Call(name, context)
        most = self._limits.calls_of_client
        self.noted(call.client)
        with self._lock:
            if self._of_client[call.client] >= most:
                rule = f"at most {most} calls of a client must be under way"
                raise Refused(StatusCode.RESOURCE_EXHAUSTED, f"{call.client}: {rule}, got one more")
            self._of_client[call.client] += 1
            self._calls[call] = None
        try:
            yield call
        finally:
            with self._lock:
                del self._calls[call]
                self._of_client[call.client] -= 1
                self._of_client += Counter()  # without those that have none

    @contextmanager
    def _answering(self, name: str, context: grpc.ServicerContext) -> Iterator[None]:
        """Errors of the block become the call's status, and a line of the log."""
        client = context.peer()  # of a call that has ended gRPC doesn't know it any more
        try:
            yield
        except grpc.RpcError:
            LOG.warning("%s: the client went away during %s", client, name)
            raise
        except ANSWERED as error:
            code, line = answer(error)
            LOG.warning("%s: %s", client, line)
            context.abort(code, line)

    def _watch(self) -> None:
        """Cancel calls that keep the server waiting, until ``stop``."""
        while not self._stopped.wait(min(self._limits.piece_seconds, self._limits.request_seconds) / LOOKS):
            with self._lock:
                overdue = [(call, why) for call in self._calls if (why := call.overdue(self._limits))]
            for call, why in overdue:
                LOG.warning("%s: cancelled %s: %s", call.client, call.name, why)
                self._cancelled(call.client)
                call.cancel()


def _argument(call: Call, handler: grpc.RpcMethodHandler, requests: Iterator[bytes]) -> Any:
    """The argument of a method: all pieces of the request, or its only message."""
    pieces = call.pieces(requests, handler.request_deserializer)
    if handler.request_streaming:
        return pieces
    request = next(pieces, None)
    if request is None:
        raise Refused(StatusCode.INVALID_ARGUMENT, f"{call.name}: a request must come, got none")
    return request

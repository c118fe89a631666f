"""One call at a time: a device has one pair of streams, and buffers that the next call would write over.

Coroutines run while ``predict_async`` waits, and nothing keeps them from the same accelerator. A second call is refused
while one is under way; whoever closes the accelerator ends the call that is.
"""

from asyncio import Task
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .errors import DeviceError, TransferError


class Turn:
    """Whose turn it is.

    Parameters
    ----------
    name
        What messages begin with.

    Attributes
    ----------
    under_way
        Whether a call has begun and not ended.
    ended
        Whether somebody has ended the call that is under way.
    waits
        What the call waits for, if it runs beside others; all are cancelled where the call is ended.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.under_way = self.ended = False
        self.waits: Sequence[Task[Any]] = ()

    def check(self) -> None:
        """DeviceError if a call is under way."""
        if self.under_way:
            rule = "one call at a time must use the device: await or cancel the one that is under way"
            raise DeviceError(f"{self._name}: {rule}, got another one")

    @contextmanager
    def of_one(self) -> Iterator[None]:
        """Around a call, as `check`."""
        self.check()
        self.under_way, self.ended = True, False
        try:
            yield
        finally:
            self.under_way, self.waits = False, ()

    def end(self) -> None:
        """End the call that is under way: `check_ended` raises in it."""
        self.ended = self.under_way
        for task in self.waits:  # pynq's would close the next call's transfer
            task.cancel()

    def check_ended(self) -> None:
        """TransferError if somebody has ended this call."""
        if self.ended:
            raise TransferError(f"{self._name}: the accelerator must stay open until a call has ended, got a close")

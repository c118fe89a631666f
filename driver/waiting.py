"""Waiting for a device: one call at a time, by looks or by interrupts, and never for ever.

    AXI DMA  s2mm_introut   the results are in memory
    core     irq            the last result has left, or an error: a refused packet ends the wait at once

Each interrupt (spec B17) is used where the overlay wires it to the processor. None is trusted: what has happened is
read from the DMA and the core, so that an interrupt that gets lost, or comes too often, costs time at most.

pynq watches an interrupt in the event loop that the thread has when the interrupt is first used (``pynq.uio``). A call
that isn't a coroutine can run this loop only if the loop is not running: so not in Jupyter, whose loop always runs. In
any other loop no interrupt comes: there the device is looked at often, until an interrupt has come.
"""

import asyncio
import time
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from inspect import iscoroutinefunction
from typing import Any, NoReturn

from .errors import DeviceError, Timeout, TransferError
from .link import DmaLink
from .registers import Counters, Registers

LOOKS = 8
"""Looks at the counters within a time-out."""
LOOK_AGAIN = 0.001
"""Seconds between looks while other coroutines run, where no interrupt comes or more is to be sent."""
LOOKS_FIRST = 32
"""Looks by a call that isn't a coroutine before it waits for an interrupt: that costs as much, and a short transfer has
ended by then."""

Check = Callable[[], None]
"""Raises the core's error if there is one."""


class OneCall:
    """One call at a time: a device has one pair of streams, and buffers that the next call would write over.

    Coroutines run while ``predict_async`` waits, and nothing keeps them from the same accelerator. A second call is
    refused while a call is under way; whoever closes the accelerator ends the call that is under way.

    Parameters
    ----------
    name
        Beginning of messages.

    Attributes
    ----------
    under_way
        Whether a call has begun and not ended.
    ended
        Whether somebody has ended the call that is under way.
    waits
        Things that the call waits for, if it runs beside others; all are cancelled where the call is ended.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self.under_way = self.ended = False
        self.waits: Sequence[asyncio.Task[Any]] = ()

    def check(self) -> None:
        """DeviceError if a call is under way."""
        if self.under_way:
            rule = "one call at a time must use the device: await or cancel the one that is under way"
            raise DeviceError(f"{self._name}: {rule}, got another one")

    @contextmanager
    def call(self) -> Iterator[None]:
        """Note a call as under way while the block runs; DeviceError as of `check`."""
        self.check()
        self.under_way = True
        self.ended = False
        try:
            yield
        finally:
            self.under_way = False
            self.waits = ()

    def end(self) -> None:
        """End the call that is under way: `check_ended` raises in it."""
        self.ended = self.under_way
        for task in self.waits:  # pynq's would close the next call's transfer
            task.cancel()

    def check_ended(self) -> None:
        """TransferError if somebody has ended this call."""
        if self.ended:
            raise TransferError(f"{self._name}: the device must stay open until a call has ended, got a close")


class Interrupt:
    """An interrupt that somebody may wait for.

    Parameters
    ----------
    interrupt
        pynq's ``Interrupt``; None where there is none.
    wait
        Waits for it, and does more; by default pynq's own ``wait``.
    """

    def __init__(self, interrupt: Any, wait: Callable[[], Awaitable[Any]] | None = None) -> None:
        self._interrupt = interrupt
        self._wait = wait

    @property
    def wired(self) -> bool:
        """Whether it can be awaited. None can't, nor can what stands for an interrupt on pynq's remote devices."""
        return iscoroutinefunction(getattr(self._interrupt, "wait", None))

    async def wait(self) -> None:
        """Wait for it; needs ``wired``. May wait for ever: it is to be cancelled."""
        # a new event: an event belongs to the first loop in which somebody waits for it
        self._interrupt.event = asyncio.Event()
        self._interrupt.waiting = False
        await (self._wait or self._interrupt.wait)()


class CoreInterrupt(Interrupt):
    """The core's own interrupt: enabled while somebody waits for it, and no longer.

    Parameters
    ----------
    core
        pynq's driver of the core, whose ``irq`` is the interrupt if the overlay wires it.
    registers
        The core's registers, with IRQ_ENABLE and IRQ_STATUS.
    """

    def __init__(self, core: Any, registers: Registers) -> None:
        super().__init__(getattr(core, "irq", None))
        self._registers = registers

    def forget(self) -> None:
        """Clear what is pending, before a transfer begins that shall raise it."""
        if self.wired:
            self._registers.set("IRQ_STATUS", RESULT=1, ERROR=1)

    def enable(self, on: bool) -> None:
        """Let RESULT and ERROR through to the processor, or nothing."""
        if self.wired:
            self._registers.set("IRQ_ENABLE", RESULT=on, ERROR=on)


class Waiting:
    """Waits for a core and its link.

    A wait ends with the core's error, which the caller's ``check`` raises at each look, or with Timeout where nothing
    has moved for ``timeout``; and with TransferError where somebody has ended the call that waits.

    Parameters
    ----------
    name
        Beginning of messages.
    core
        pynq's driver of the core.
    registers
        The core's registers.
    link
        The core's stream.
    timeout
        Seconds without any progress (words, frames, beats) after which a wait is given up.

    Attributes
    ----------
    calls
        Which call may use the device.
    counters
        The core's counters, which show progress.
    heard_in
        Event loop in which an interrupt has come; None before.
    """

    def __init__(self, name: str, core: Any, registers: Registers, link: DmaLink, timeout: float) -> None:
        self._name = name
        self._registers = registers
        self._link = link
        self.timeout = timeout
        self._interrupt = CoreInterrupt(core, registers)
        self._interrupts = (Interrupt(link.interrupt, link.wait_received), self._interrupt)
        self.calls = OneCall(name)
        self.counters = Counters(registers)
        self.heard_in: asyncio.AbstractEventLoop | None = None

    @property
    def has_interrupt(self) -> bool:
        """Whether the end of a receive can be awaited, by the DMA's interrupt or by the core's."""
        return any(interrupt.wired for interrupt in self._interrupts)

    def prepare(self) -> None:
        """Get ready for a transfer whose results will be awaited; to be called before the transfer begins."""
        self.counters.rebase()
        self._interrupt.forget()

    def until(self, done: Callable[[], bool], check: Check, what: str, count: bool = False) -> None:
        """Look until ``done`` is true.

        Parameters
        ----------
        done
            Whether what is waited for has happened.
        check
            Raises the core's error.
        what
            Thing that is waited for, for messages.
        count
            Whether the counters' totals take what is counted meanwhile.

        Raises
        ------
        DeviceError
            The core reports an error, or somebody has ended the call.
        Timeout
            Nothing moves for ``timeout`` seconds.
        """
        watch = _Watch(self, check, what, count)
        while not self._happened(done):
            watch.look()

    def results(self, check: Check, what: str) -> None:
        """Wait until all that ``DmaLink.exchange`` started has ended, by interrupts where this thread can; close it.

        Parameters and errors are those of ``until``.
        """
        loop = _idle_loop() if self.has_interrupt and not self._end_soon(check, what) else None
        if loop is None:
            self.until(self._link.ended, check, what, count=True)
            self._link.close_receive()
        else:
            _run_in(loop, self.results_async(check, what))

    async def results_async(self, check: Check, what: str) -> None:
        """As ``results``; other coroutines run until an interrupt comes, or between looks if there is none."""
        link = self._link
        loop = asyncio.get_running_loop()
        tasks = [asyncio.ensure_future(interrupt.wait()) for interrupt in self._interrupts if interrupt.wired]
        watch = _Watch(self, check, what, count=True)
        self.calls.waits = tasks
        self._interrupt.enable(True)
        try:
            while not self._happened(link.received):
                pending = [task for task in tasks if not task.done()]
                came = len(pending) < len(tasks)  # then results come now
                soon = came or link.sends_more or self.heard_in is not loop
                timeout = LOOK_AGAIN if soon else self.timeout / LOOKS
                if pending:
                    await asyncio.wait(pending, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await asyncio.sleep(timeout)
                if any(task.done() for task in tasks):
                    self.heard_in = loop
                self._happened(link.ended)
                watch.look()
                for task in tasks:
                    if task.done():
                        task.result()
            if tasks:  # an interrupt that is nearly there comes now; later it would be taken for the next call's
                came_now, _ = await asyncio.wait(tasks, timeout=LOOK_AGAIN)
                if came_now:
                    self.heard_in = loop
                self.calls.check_ended()
            link.close_receive()
        finally:
            for task in tasks:
                if not task.cancel() and not task.cancelled():
                    task.exception()  # looked at, so that asyncio has nothing to say of it: the results are there
            if not self.calls.ended:  # then the device may be somebody else's
                self._interrupt.enable(False)
        self.until(link.ended, check, what, count=True)

    def give_up(self, message: str) -> NoReturn:
        """Raise Timeout with all registers."""
        dump = self._registers.dump()
        raise Timeout(f"{self._name}: {message}", dump, self._registers.state(dump))

    def _happened(self, done: Callable[[], bool]) -> bool:
        """Call ``done``, unless somebody has ended the call: then the device may be another call's."""
        self.calls.check_ended()
        return done()

    def _end_soon(self, check: Check, what: str) -> bool:
        """Whether all has ended after LOOKS_FIRST looks."""
        watch = _Watch(self, check, what, count=True)
        for _ in range(LOOKS_FIRST):
            if self._happened(self._link.ended):
                return True
            watch.look()
        return False


class _Watch:
    """Ends one wait on an error or a time-out; ``look`` is called again and again while the wait lasts."""

    def __init__(self, waiting: Waiting, check: Check, what: str, count: bool) -> None:
        self._waiting = waiting
        self._check = check
        self._what = what
        self._count = count
        now = time.monotonic()
        self._next = now + waiting.timeout / LOOKS
        self._end = now + waiting.timeout

    def look(self) -> None:
        """Raise the core's error, or Timeout if nothing has moved. The counters are read only now and then."""
        now = time.monotonic()
        timeout = self._waiting.timeout
        self._check()
        if now > self._next:
            self._next = now + timeout / LOOKS
            if self._waiting.counters.update(self._count):
                self._end = now + timeout
        if now > self._end:
            self._waiting.give_up(f"{self._what}, got no progress for {timeout} s")


def _idle_loop() -> asyncio.AbstractEventLoop | None:
    """This thread's event loop, in which pynq's interrupts come; None where it runs already, or there is none."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # none runs
        with suppress(RuntimeError), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: where it has to be made
            loop = asyncio.get_event_loop_policy().get_event_loop()
            return None if loop.is_closed() else loop
    return None


def _run_in(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end in a loop that stands still; what stops the loop, such as Ctrl-C, ends it first."""
    task = loop.create_task(coroutine)
    try:
        loop.run_until_complete(task)
    except BaseException:
        if task.cancel():
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        raise

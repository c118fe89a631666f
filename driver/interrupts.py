"""Waiting for the end of a transfer by interrupts (spec B17), while other coroutines run or none.

    AXI DMA  s2mm_introut   the results are in memory
    core     irq            the last result has left, or an error: a refused packet ends the wait at once

Each is used where the overlay wires it to the processor. None is trusted: what has happened is read from the DMA and
the core, so that an interrupt that gets lost, or comes too often, costs time at most.

pynq lets the event loop that is the thread's own when an interrupt is first used look at it (``pynq.uio``). A call
that isn't a coroutine can only run that loop where it stands still: not in Jupyter, whose loop runs always. In another
loop no interrupt comes, so that the device is looked at often until one has come there.
"""

import asyncio
import warnings
from collections.abc import Coroutine
from contextlib import suppress
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from .registers import Registers
from .watch import LOOKS, Watch

if TYPE_CHECKING:
    from .link import Link

LOOK_AGAIN = 0.001
"""Seconds between looks while other coroutines run, where no interrupt comes or more is to be sent."""
LOOKS_FIRST = 32
"""Looks by a call that isn't a coroutine before it waits for an interrupt: that costs as much, and a short transfer has
ended by then."""


def wired(interrupt: Any) -> bool:
    """Whether a pynq ``Interrupt`` can be awaited. None can't, nor can what stands for one on pynq's remote devices."""
    return iscoroutinefunction(getattr(interrupt, "wait", None))


def connect(interrupt: Any, fresh: Any) -> None:
    """Give a pynq ``Interrupt`` the interrupt controller of another one, and keep that controller alive.

    pynq refers to controllers weakly, and drops them when an overlay is loaded to another device.
    """
    interrupt.parent, interrupt.number = fresh.parent, fresh.number
    interrupt.controller = fresh.parent()


def renew(interrupt: Any) -> None:
    """Give a pynq ``Interrupt`` a new event: one belongs to the first loop in which somebody waits for it."""
    interrupt.event, interrupt.waiting = asyncio.Event(), False


def idle_loop() -> asyncio.AbstractEventLoop | None:
    """This thread's event loop, in which pynq's interrupts come; None where it runs already, or there is none."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:  # none runs
        with suppress(RuntimeError), warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12: where it has to be made
            loop = asyncio.get_event_loop_policy().get_event_loop()
            return None if loop.is_closed() else loop
    return None


def run_in(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end in a loop that stands still; what stops the loop, such as Ctrl-C, ends it first."""
    task = loop.create_task(coroutine)
    try:
        loop.run_until_complete(task)
    except BaseException:
        if task.cancel():
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(task)
        raise


class CoreInterrupt:
    """The core's own interrupt: enabled while somebody waits for it, and no longer.

    Parameters
    ----------
    core
        pynq's driver of the core, whose ``irq`` is the interrupt if the overlay wires it.
    registers
        The core's registers, with IRQ_ENABLE and IRQ_STATUS.
    """

    def __init__(self, core: Any, registers: Registers) -> None:
        self._interrupt: Any = getattr(core, "irq", None)
        self._registers = registers

    @property
    def wired(self) -> bool:
        """Whether it can be awaited."""
        return wired(self._interrupt)

    def forget(self) -> None:
        """Clear what is pending, before a transfer begins that shall raise it."""
        if self.wired:
            self._registers.set("IRQ_STATUS", RESULT=1, ERROR=1)

    def enable(self, on: bool) -> None:
        """Let RESULT and ERROR through to the processor, or nothing."""
        if self.wired:
            self._registers.set("IRQ_ENABLE", RESULT=on, ERROR=on)

    async def wait(self) -> None:
        """Wait for it. May wait for ever: it is to be cancelled."""
        renew(self._interrupt)
        await self._interrupt.wait()


async def wait_for_results(link: "Link", what: str) -> None:
    """Wait until the DMA has received what ``Link.start`` started, and close the receive.

    Parameters
    ----------
    link
        The core and its DMA.
    what
        What is waited for, for messages.

    Raises
    ------
    DeviceError
        As ``Link.wait``.
    """
    waits = [link.dma.wait_receive] * link.dma.has_interrupt + [link.irq.wait] * link.irq.wired
    tasks, watch = [asyncio.ensure_future(wait()) for wait in waits], Watch(link, what, count=True)
    link.turn.waits, loop = tasks, asyncio.get_running_loop()
    link.irq.enable(True)
    try:
        while not _received(link):
            open_tasks = [task for task in tasks if not task.done()]
            came = len(open_tasks) < len(tasks)  # then results come now
            soon = came or link.sends_more or link.heard_in is not loop
            timeout = LOOK_AGAIN if soon else link.timeout / LOOKS
            if open_tasks:
                await asyncio.wait(open_tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            else:
                await asyncio.sleep(timeout)
            if any(task.done() for task in tasks):
                link.heard_in = loop
            link.ended()
            watch.look()
            for task in tasks:
                if task.done():
                    task.result()
        if tasks:  # what is nearly there comes now: an event that nobody waits for would be taken for the next one's
            came_late, _ = await asyncio.wait(tasks, timeout=LOOK_AGAIN)
            if came_late:
                link.heard_in = loop
            link.turn.check_ended()
        link.dma.finish_receive()
    finally:
        for task in tasks:
            if not task.cancel() and not task.cancelled():
                task.exception()  # looked at, so that asyncio has nothing to say of it: the results are there
        if not link.turn.ended:  # then it is somebody else's
            link.irq.enable(False)
    link.wait(link.ended, what, count=True)


def _received(link: "Link") -> bool:
    """Whether the receive has ended; TransferError where the call has been ended, and the device may be another's."""
    link.turn.check_ended()
    return link.dma.received()

"""Looking after a wait for a core: errors, and whether anything moves."""

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .link import Link

LOOKS = 8
"""Looks at the counters within a time-out."""


class Watch:
    """Looks after a wait: ``look`` raises the core's error, Timeout if nothing moved for the link's time-out."""

    def __init__(self, link: "Link", what: str, count: bool) -> None:
        self._link, self._what, self._count = link, what, count
        now = time.monotonic()
        self._next, self._end = now + link.timeout / LOOKS, now + link.timeout

    def look(self) -> None:
        """To be called again and again; the counters are read only now and then."""
        link, now = self._link, time.monotonic()
        link.check_error()
        if now > self._next:
            self._next = now + link.timeout / LOOKS
            if link.counters.update(self._count):
                self._end = now + link.timeout
        if now > self._end:
            link.give_up(f"{self._what}, got no progress for {link.timeout} s")

"""Limits on what a file or an option may ask of this machine: each is said here and nowhere else.

What comes from outside (a file, an option) is measured before memory is taken or work begins. What is beyond a limit is
refused in one line with the number, the limit, and the environment variable by which the user can set another limit.
"""

import os
from dataclasses import dataclass

FILE_TIMES = 16
"""Reading a file may always take so many times the file's size; below that READ_MB decides."""
MB = 1 << 20


@dataclass(frozen=True)
class Limit:
    """A largest number, which the user can set."""

    what: str
    """The thing that is counted, with its unit, as messages name it."""
    default: int
    """The largest number where the user sets none."""
    variable: str
    """Environment variable that sets another: an integer >= 1."""

    @property
    def value(self) -> int:
        """The largest number that is allowed; ValueError if the variable is set to something else than an integer."""
        text = os.environ.get(self.variable, "")
        if not text:
            return self.default
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and int(text) >= 1):
            raise ValueError(f"{self.variable}: must be an integer >= 1, got {text!r}")
        return int(text)

    def check(self, subject: str, got: float, least: float = 0) -> None:
        """Refuse what is too much.

        Parameters
        ----------
        subject : str
            The file or option that asks for something; messages begin with this name.
        got : float
            The number that is asked for, never too low an estimate.
        least : float
            Number that is allowed in any case.

        Raises
        ------
        ValueError
            If ``got`` is more than the limit and more than ``least``.
        """
        most = max(self.value, least)
        if got > most:
            raise ValueError(
                f"{subject}: {self.what} must be <= {most:,.0f} (environment variable {self.variable} sets another "
                f"limit), got {got:,.0f}"
            )


READ_MB = Limit("MB of memory to read it", 256, "BITLOOM_MAX_READ_MB")
IMPORT_MB = Limit("MB of memory to import it", 1024, "BITLOOM_MAX_IMPORT_MB")
IMPORT_STEPS = Limit("steps of work to import it", 1 << 31, "BITLOOM_MAX_IMPORT_STEPS")
PLAIN_MB = Limit("MB of memory for weights between all channels", 2048, "BITLOOM_MAX_PLAIN_MB")
RUN_MB = Limit("MB of memory for images and results", 4096, "BITLOOM_MAX_RUN_MB")
TAPS = Limit("taps of all windows of a layer", 1 << 22, "BITLOOM_MAX_TAPS")
FRAME_BITS = Limit("bits of an image", 1 << 24, "BITLOOM_MAX_FRAME_BITS")
WIDTH = Limit("what works side by side", 2048, "BITLOOM_MAX_WIDTH")
LANES = Limit("lanes of all NPUs", 1 << 17, "BITLOOM_MAX_LANES")
MEMORY_BITS = Limit("bits of all memories", 1 << 32, "BITLOOM_MAX_MEMORY_BITS")
LIMITS = (READ_MB, IMPORT_MB, IMPORT_STEPS, PLAIN_MB, RUN_MB, TAPS, FRAME_BITS, WIDTH, LANES, MEMORY_BITS)
"""All of them; docs/reference/files.md lists them."""


def check_read(subject: str, needed: int, size: int) -> None:
    """Refuse a file that would take too much memory.

    Parameters
    ----------
    subject : str
        The file, or what is in it.
    needed : int
        Bytes that reading it takes at most.
    size : int
        Bytes of the file.

    Raises
    ------
    ValueError
        If ``needed`` is more than READ_MB and more than FILE_TIMES times ``size``.
    """
    READ_MB.check(subject, needed / MB, FILE_TIMES * size / MB)

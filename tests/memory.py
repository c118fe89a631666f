"""Memory that a process of the tests has taken."""

from pathlib import Path

STATUS = Path("/proc/self/status")


def peak_mb() -> float:
    """Peak of resident memory of this process in MB, by Linux.

    `getrusage` is of no use here: its peak of a child has in it what its parent
    held when it started the child.
    """
    (line,) = (line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024

"""Signals of a waveform, read from a VCD file (IEEE 1364-2005, 18.2) as the simulation writes it.

Only the signals that are asked for are kept, so that a file of tens of megabytes takes seconds. Values are integers,
because Verilator knows no x and no z.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np

from bitloom.golden.reading.file import naming

TICKS = 2
"""Times of a clock cycle: the simulation dumps before the edge, when all signals have settled, and after it."""


@dataclass(frozen=True)
class SignalTrace:
    """The changes of a signal."""

    name: str
    """Path of the signal without the root."""
    times: np.ndarray
    """(n,) int64, ascending."""
    values: np.ndarray
    """(n,) int64, each from its time on."""

    def at(self, times: np.ndarray) -> np.ndarray:
        """Values at these times; 0 before the first change."""
        index = np.searchsorted(self.times, times, side="right")
        return np.concatenate([[0], self.values])[index]

    def in_cycles(self, begin: int, end: int) -> np.ndarray:
        """(end - begin,) values in the clock cycles ``begin`` .. ``end`` - 1, as the edge at their end sees them."""
        return self.at(TICKS * np.arange(begin, end))


def read(path: Path | str, names: Iterable[str]) -> dict[str, SignalTrace]:
    """Read signals of a waveform.

    Parameters
    ----------
    path
        The VCD file.
    names
        Paths of signals without the root, such as ``bitloom_top.npu_0.beat``.

    Returns
    -------
    dict
        The signals by name.

    Raises
    ------
    ValueError
        If the file doesn't declare a name, or is no VCD file.
    """
    names = list(names)
    with naming(path), Path(path).open(encoding="utf-8") as file:
        try:
            return _read(file, names)
        except (IndexError, OverflowError) as e:
            raise ValueError(f"must be a waveform as the simulation writes it, got: {e}") from None


def _read(file: TextIO, names: list[str]) -> dict[str, SignalTrace]:
    """Read signals from an open file; its errors don't name it."""
    codes = _codes(file)
    for name in names:
        if name not in codes:
            raise ValueError(f"signals must be declared in the file, got {name}")
    changes: dict[str, tuple[list[int], list[int]]] = {codes[name]: ([], []) for name in names}
    time = 0
    for line in file:
        kind = line[0]
        if kind == "#":
            time = int(line[1:])
            continue
        if kind in "01":
            code = line[1:-1]
            value = int(kind)
        elif kind == "b":
            bits, code = line[1:].split()
            if code not in changes:
                continue
            value = int(bits, 2)
        else:
            continue
        if code in changes:
            times, values = changes[code]
            times.append(time)
            values.append(value)
    return {name: SignalTrace(name, *(np.array(part, np.int64) for part in changes[codes[name]])) for name in names}


def _codes(file: Iterable[str]) -> dict[str, str]:
    """Code of each declared name; the file then stands behind the declarations."""
    scope: list[str] = []
    codes = {}
    for line in file:
        words = line.split()
        if not words:
            continue
        if words[0] == "$scope":
            scope.append(words[2])
        elif words[0] == "$upscope":
            scope.pop()
        elif words[0] == "$var":
            codes[".".join([*scope[1:], words[4]])] = words[3]
        elif words[0] == "$enddefinitions":
            break
    return codes

"""Registers one behind the other that move in every cycle.

signal --> <name>_1 --> <name>_2 --> ...
"""

from .block import Block, Signal


def delayed(b: Block, signal: Signal, name: str, cycles: int, w: int = 1, init: int | None = None) -> list[Signal]:
    """A signal and what it was in the cycles before.

    Parameters
    ----------
    signal : Signal
        Signal that is delayed, ``w`` bits wide.
    name : str
        The registers are called ``<name>_1``, ``<name>_2`` and so on.
    cycles : int
        Number of registers.
    w : int
        Bits of the signal.
    init : int or None
        Value of the registers after a reset; None: no reset.

    Returns
    -------
    list of Signal
        The signal, then the registers: item k is k cycles late.
    """
    line = [signal]
    for k in range(1, cycles + 1):
        step = b.reg(f"{name}_{k}", w, init=init)
        b.on(None, (step, line[-1]))
        line.append(step)
    return line

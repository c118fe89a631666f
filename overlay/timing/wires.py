"""Delay of a wire, before anything is placed: a model by fan-out and by the size of the design.

    delay = (base + fan_out * log2(inputs of the net)) * (LUTs of the design / 1000) ^ 0.15

The inputs of a net lie further apart the more there are. The exponent is Donath's: the mean length of a wire in a good
placement grows as N^(p - 0.5) with N cells, where p, Rent's exponent, is about 0.65 for logic. Within a slice and along
dedicated wires the delay is 0. tests/clock_fit.py finds the two numbers.
"""

import math
from dataclasses import dataclass

from .cells import Cell

GROWTH = 0.15


@dataclass(frozen=True)
class WireModel:
    """Coefficients, in ns at Artix-7, speed grade -1, in a design of 1,000 LUTs."""

    base: float
    """Of a net with one input."""
    fan_out: float
    """For each doubling of the inputs."""

    def delay(self, inputs: int, luts: int) -> float:
        """Delay of a net with so many inputs in a design of so many LUTs; 0 for 0 inputs, a dedicated wire."""
        if not inputs:
            return 0.0
        return (self.base + self.fan_out * math.log2(inputs)) * (max(luts, 1) / 1000) ** GROWTH


def is_dedicated(driver: Cell, sink: Cell, port: str) -> bool:
    """Whether the two cells lie in one slice or in neighbours, joined by a wire that is there for this alone.

    A LUT stands in front of the carry chain's input, of the multiplexer or of the flip-flop that it feeds; its other
    readers, if any, have a common wire.
    """
    source = driver["type"]
    target = sink["type"]
    if target == "CARRY4":
        return (port == "CI" and source == "CARRY4") or (port == "S" and source.startswith(("LUT", "INV")))
    if target.startswith("MUXF"):
        return port in ("I0", "I1")
    if target.startswith("DSP48"):
        return port in ("PCIN", "ACIN", "BCIN") and source.startswith("DSP48")
    return target.startswith("FD") and port == "D" and source.startswith(("LUT", "INV", "MUXF", "CARRY4"))

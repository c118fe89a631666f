"""Prices by which the search compares NPUs: what is short in a budget costs more."""

from dataclasses import dataclass

from bitloom.overlay.area.netlist import Resources


@dataclass(frozen=True)
class Price:
    """Prices in LUTs: what the search adds up.

    Attributes
    ----------
    bram36, dsp, lanes, ff
        LUTs for a unit of each.
    npu
        LUTs for an NPU, beside all that it takes; may be negative.
    """

    bram36: float = 0
    dsp: float = 0
    lanes: float = 0
    ff: float = 0
    npu: float = 0

    def of(self, area: Resources, lanes: int) -> float:
        """Price of an NPU with that area and so many lanes."""
        lut = area.lut + area.lutram
        return lut + self.bram36 * area.bram36 + self.dsp * area.dsp + self.lanes * lanes + self.ff * area.ff + self.npu

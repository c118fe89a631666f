"""Prices by which the search compares NPUs: what is short in a budget costs more."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bitloom.overlay.area.netlist import Resources

OVER = 1e7
"""LUTs for an excess as large as the limit: more than any NPU that keeps to the limits costs."""


@dataclass(frozen=True)
class Price:
    """Prices in LUTs: what the search adds up."""

    lutram: float = 0
    bram36: float = 0
    dsp: float = 0
    lanes: float = 0
    ff: float = 0
    """lutram, bram36, dsp, lanes, ff: LUTs for a unit of each; of LUTs that are memory, beside the LUT itself."""
    npu: float = 0
    """LUTs for an NPU, beside all that it takes; may be negative."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """Limits of an NPU that is a design's only one, by names of `Resources`: one over a limit costs more than all that
    aren't."""

    @property
    def saves_dsp(self) -> bool:
        """Whether NPUs with fewer DSP blocks for more LUTs are worth a look."""
        return self.dsp > 0 or "dsp" in self.limits

    def of(self, area: Resources, lanes: int) -> float:
        """Price of an NPU with that area and so many lanes."""
        lut = area.device_lut + self.lutram * area.lutram
        for key, limit in self.limits.items():
            lut += OVER * max(0.0, getattr(area, key) / limit - 1)
        return lut + self.bram36 * area.bram36 + self.dsp * area.dsp + self.lanes * lanes + self.ff * area.ff + self.npu

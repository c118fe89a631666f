"""Area of a lane of a PE, by the area model: costs of both engines can be compared before there is a design."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import ACC_BITS
from bitloom.overlay.area_model.array import pe_blocks
from bitloom.overlay.area_model.estimate import coefficients, of_blocks
from bitloom.overlay.platform.boards import PYNQ_Z2

LANES = 32
"""Lanes of the PE that is looked at: its accumulator is shared by them."""
LUTS_OF_DSP = PYNQ_Z2.lut / PYNQ_Z2.dsp
"""LUTs that count as much as a DSP block: as many as an xc7z020 has for each of its DSP blocks."""


@dataclass(frozen=True)
class PeLaneArea:
    """LUTs and DSP blocks of a lane, a share of its PE's accumulator included."""

    lut: float
    dsp: float
    """lut, dsp: LUTs and DSP blocks."""

    @property
    def price(self) -> float:
        """Both in LUTs."""
        return self.lut + LUTS_OF_DSP * self.dsp


@lru_cache(maxsize=256)
def lane_area(engine: str, feature_bits: int, weight_bits: int, acc_bits: int, shift_bits: int = 0) -> PeLaneArea:
    """LUTs and DSP blocks of a lane of an engine.

    Parameters
    ----------
    engine
        "binary" or "integer".
    feature_bits, weight_bits
        Widths of the NPU's features and weights: 1 and 1 for binary.
    acc_bits
        Width of its accumulators; more where so many lanes need it.
    shift_bits
        Of a binary engine that reads integers plane by plane.
    """
    folding: dict[str, Any] = dict(
        engine=engine,
        feature_bits=feature_bits,
        weight_bits=weight_bits,
        kfp=LANES,
        kgp=1,
        pfp=1,
        shift_bits=shift_bits,
    )
    least = Npu.of(**folding, acc_bits=ACC_BITS).array.least_acc_bits
    npu = Npu.of(**folding, acc_bits=max(acc_bits, least))
    known = coefficients()
    area = of_blocks(list(pe_blocks(npu, 0)), known)
    return PeLaneArea(area["lut"] * known["flat"]["lut"] / LANES, area["dsp"] / LANES)

"""The shares of LUTs that a device saves by pairs, fitted to the reference designs whose pairs are recorded.

Two shares are enough: of PEs of the binary engine, whose adders are small functions of few inputs, and of all else. PEs
that add integers have LUTs of six inputs in carry chains, which pair with none.
With one share for each kind of block a design that was left out of the fit is off by more: there are fewer designs than
kinds.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bitloom.hls_gen.design.design import Design
from bitloom.overlay.area_model.blocks import area_blocks, stores
from bitloom.overlay.area_model.estimate import of_blocks, of_stores

from .least_squares import Measured

ADDERS = ("pe_planes", "pe_popcount")
"""Kinds of blocks that have a share of their own together."""
UNPAIRED = ("pe_signed", "lane_pairs")
"""Kinds of blocks whose LUTs pair with none."""


def pair_shares(measured: Measured, coefficients: Mapping[str, Any]) -> dict[str, float]:
    """The shares, by kind of block and for all others.

    Parameters
    ----------
    measured
        Designs with their area by Yosys, pairs included.
    made
        The model's coefficients: they say which part of a design's LUTs is in which blocks.
    """
    table = [_parts_of_all(design, coefficients) for design, _ in measured]
    wanted = [area.total.pairs / area.total.lut for _, area in measured]
    adders, other = np.linalg.lstsq(np.array(table), np.array(wanted), rcond=None)[0]
    shares = dict.fromkeys(ADDERS, round(float(adders), 3)) | dict.fromkeys(UNPAIRED, 0.0)
    return {**shares, "other": round(float(other), 3)}


def by_others(measured: Measured, coefficients: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """For each design coefficients whose shares of pairs are fitted to the other designs."""
    return [
        {**coefficients, "pairs": pair_shares([*measured[:k], *measured[k + 1 :]], coefficients)}
        for k in range(len(measured))
    ]


def _parts_of_all(design: Design, coefficients: Mapping[str, Any]) -> tuple[float, float]:
    """The share of a design's LUTs of logic that is in ADDERS, and that in all else but UNPAIRED."""
    blocks = area_blocks(design)
    adders, unpaired = (
        of_blocks([block for block in blocks if block.kind in kinds], dict(coefficients))["lut"]
        for kinds in (ADDERS, UNPAIRED)
    )
    whole = of_blocks(blocks, dict(coefficients))["lut"] + of_stores(stores(design), dict(coefficients))["lut"]
    return adders / whole, 1 - (adders + unpaired) / whole

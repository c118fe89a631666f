"""Coefficients of the area model from designs and their synthesised area.

Each kind of block gets a formula of its own, fitted to the blocks of that kind in all designs. What flattening changes
is one factor for all of them. Sizes only ever add: no coefficient is negative. Shares of pairs are fitted elsewhere
(pair_shares.py).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bitloom.hls_gen.design.design import Design
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area.synthesis import Area
from bitloom.overlay.area_model.area_block import AreaBlock
from bitloom.overlay.area_model.blocks import area_blocks, stores
from bitloom.overlay.area_model.estimate import FITTED, coefficients, estimate, of_blocks, of_stores

Measured = Sequence[tuple[Design, Area]]
"""Designs, each with its area by Yosys."""
FLAT = ("lut", "ff", "lutram")
"""Figures that flattening changes."""


def formulas(measured: Measured) -> dict[str, dict[str, dict[str, float]]]:
    """Coefficients of each kind of block that was measured."""
    rows: dict[str, list[tuple[AreaBlock, Resources]]] = {}
    for design, area in measured:
        for area_block, blocks in matched(design, area):
            rows.setdefault(area_block.kind, []).append((area_block, blocks))
    return {
        kind: {key: _formula([p.features for p, _ in seen], [getattr(r, key) for _, r in seen]) for key in FITTED}
        for kind, seen in sorted(rows.items())
    }


def fitted(measured: Measured) -> dict[str, Any]:
    """Coefficients of all kinds of blocks, and the factors of flattening, by the designs whose total is known."""
    fit = {"blocks": formulas(measured), "flat": dict.fromkeys(FLAT, 1.0), "pairs": coefficients()["pairs"]}
    for key in FLAT:
        pairs = [(_summed(design, fit)[key], getattr(area.total, key)) for design, area in measured if area.total.lut]
        fit["flat"][key] = float(np.median([total / own for own, total in pairs if own]))
    return fit


def errors(measured: Measured, fit: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of each design its figures by Yosys and by the model, and by which shares LUTs and FFs are off; LUTs as a device
    counts them, and with one function each, both with LUT RAM."""
    out = []
    for design, area in measured:
        model = estimate(design, dict(fit))
        total = area.total
        plain = [r.lut + r.lutram for r in (total, model)]
        lut = [r.device_lut for r in (total, model)]
        row = {"design": design.name, "lut": lut[0], "model_lut": lut[1], "share": lut[1] / lut[0] - 1}
        row |= {"plain_share": plain[1] / plain[0] - 1, "ff": total.ff, "model_ff": model.ff}
        row |= {"ff_share": model.ff / total.ff - 1, "bram36": total.bram36, "model_bram36": model.bram36}
        out.append({**row, "dsp": total.dsp, "model_dsp": model.dsp})
    return out


def matched(design: Design, area: Area) -> Iterable[tuple[AreaBlock, Resources]]:
    """Each block of a design by the model with what Yosys made of one instance of it."""
    kinds = list(dict.fromkeys(design.npus))
    blocks = {block.module: block for block in area.blocks}
    for area_block in area_blocks(design):
        number = "" if area_block.npu is None or len(kinds) < 2 else f"npu_{kinds.index(design.npus[area_block.npu])}"
        names = [n for n in blocks if _is(area_block, n, number)]
        if len(names) == 1:
            block = blocks[names[0]]
            inner = [blocks[n].alone for n in blocks for module in area_block.modules if n == _numbered(module, number)]
            yield area_block, block.each if area_block.inside else sum(inner, block.alone)


def _is(area_block: AreaBlock, module: str, number: str) -> bool:
    """Whether that is the block's module. Where NPUs differ, modules of an NPU end in ``number``."""
    if area_block.kind == "npu":
        return re.fullmatch((number or "npu") + r"(_to_\d+)?", module) is not None
    if area_block.kind.startswith("pe_"):
        own = module.startswith("pe_") and not module.startswith("pe_sums")  # which are blocks of their own
        return own and (not number or module.endswith(f"_{number}"))
    if area_block.kind in ("collector", "divider", "fifo", "skid"):
        return module == area_block.module
    return module == _numbered(area_block.module, number)


def _numbered(module: str, number: str) -> str:
    """A module's name in an NPU; ``number`` is empty where NPUs don't differ, and for what is part of none."""
    return f"{module}_{number}" if number else module


def _summed(design: Design, fit: Mapping[str, Any]) -> dict[str, float]:
    """A design's figures before flattening: blocks by formula, memories by rule."""
    own = of_blocks(area_blocks(design), dict(fit))
    memory = of_stores(stores(design), dict(fit))
    return {key: own.get(key, 0) + memory.get(key, 0) for key in {*own, *memory}}


def _formula(features: Sequence[Mapping[str, float]], wanted: Sequence[float]) -> dict[str, float]:
    """Coefficients, none below 0, by which the features give what is wanted.

    They are found by least squares with a little weight towards 0. A feature whose coefficient would be negative is
    left out, one at a time.
    """
    names = sorted({name for row in features for name in row})
    table = np.array([[row.get(name, 0.0) for name in names] for row in features])
    target = np.array(wanted, float)
    scale = np.maximum(np.abs(table).max(axis=0), 1e-9)
    weight = 1 / np.maximum(np.abs(target), 0.05 * max(1.0, float(np.abs(target).max())))  # relative errors count
    used = list(range(len(names)))
    while used:
        columns = table[:, used] / scale[used] * weight[:, None]
        ridge = 0.02 * np.eye(len(used)) * np.abs(columns).max()
        solved = np.linalg.lstsq(
            np.vstack([columns, ridge]), np.append(target * weight, np.zeros(len(used))), rcond=None
        )[0]
        if solved.min() >= 0:
            return {names[k]: round(float(v / scale[k]), 4) for k, v in zip(used, solved) if v}
        used.pop(int(solved.argmin()))
    return {}

"""Area of a design by formula: blocks by coefficients that were fitted to Yosys' figures, memories by rule.

    design --blocks--> features x coefficients -+-> x what flattening saves --> LUT, pairs, flip-flops, DSP
           --stores--> memory.py ---------------+-> LUT RAM, block RAM

How many LUTs of logic share a LUT of the device with another one goes by a share for each kind of block.

The coefficients lie in coefficients.json with what they were made with; ``python -m tests.area_fit.refit``
renews them.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.memories.array import kernel_ram_style
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area.netlist import Resources

from .area_block import AreaBlock
from .blocks import area_blocks, core_blocks, npu_stores, stores
from .loader import sizes_of_npu
from .ports import outlet_blocks
from .store import KERNELS, SUMS, Store

FILE = Path(__file__).parent / "coefficients.json"
FITTED = ("lut", "ff")
"""Figures that have coefficients; the others go by rule."""
Coefficients = dict[str, Any]


@lru_cache(maxsize=1)
def coefficients() -> Coefficients:
    """The content of coefficients.json."""
    held: Coefficients = json.loads(FILE.read_text())
    return held


def error(fitted: Coefficients | None = None) -> dict[str, Any]:
    """How far the model is off on designs that it was not fitted to, LUTs as a device counts them.

    Parameters
    ----------
    fitted
        Coefficients; None takes those of the file.

    Returns
    -------
    dict
        ``designs``: how many; ``median`` and ``worst``: shares of the LUTs, those of memory included; ``plain_median``
        and ``plain_worst``: the same where each LUT of logic has one function; ``ff_median`` and ``ff_worst``: shares
        of the flip-flops.
    """
    shares: dict[str, Any] = (fitted or coefficients())["error"]
    return shares


def of_blocks(blocks: Iterable[AreaBlock], fitted: Coefficients) -> dict[str, float]:
    """Sums of FITTED, of pairs and of DSP blocks over the blocks of a design."""
    total = dict.fromkeys((*FITTED, "dsp"), 0.0)
    pairs = 0.0
    for block in blocks:
        times = block.times
        lut_before = total["lut"]
        for key in total:
            total[key] += getattr(block, key) * times
        features = block.features
        for key, weights in fitted["blocks"].get(block.kind, {}).items():
            value = 0.0
            for name, size in features.items():
                if name in weights:
                    value += weights[name] * size
            if value > 0:
                total[key] += value * times
        pairs += paired_share(block.kind, fitted) * (total["lut"] - lut_before)
    return {**total, "pairs": pairs}


def paired_share(kind: str, fitted: Coefficients) -> float:
    """Of the LUTs of blocks of a kind, or of "memory", the share that a device saves by pairs."""
    shares: Mapping[str, float] = fitted["pairs"]
    return shares.get(kind, shares["other"])


def estimate(design: Design, fitted: Coefficients | None = None) -> Resources:
    """Area of a design as ``bitloom area`` would find it, of the flattened netlist.

    Parameters
    ----------
    design
        The design.
    fitted
        Coefficients; None takes those of the file.

    Returns
    -------
    Resources
        The area; ``carry4`` is 0.
    """
    fitted = fitted or coefficients()
    return _whole(_sum(of_blocks(area_blocks(design), fitted), of_stores(stores(design), fitted)), fitted)


def estimate_cores(
    npu: Npu, stream_bits: int, styles: Iterable[str], fitted: Coefficients | None = None
) -> list[Resources]:
    """Area that an NPU adds to a design, without the gearboxes at its outlets, a `Resources` for each kind of RAM that
    may have the kernels (`PeArray.kernel_ram`); nothing else depends on that kind."""
    fitted = fitted or coefficients()
    shell = [AreaBlock(kind, "", sizes) for kind, sizes in sizes_of_npu(npu).items()]
    memory = list(npu_stores(npu, stream_bits))
    kernels = [store for store in memory if store.name == KERNELS]
    rest = of_stores((store for store in memory if store.name != KERNELS), fitted)
    without_kernels = _sum(of_blocks([*core_blocks(npu, stream_bits), *shell], fitted), rest)
    built = (kernel_ram_style(npu, style) for style in styles)
    rams = (of_stores((store._replace(style=style) for store in kernels), fitted) for style in built)
    return [_whole(_sum(without_kernels, ram), fitted) for ram in rams]


def estimate_outlets(npu: Npu, ring_bits: int, fitted: Coefficients | None = None) -> float:
    """LUTs, as a device counts them, of the gearboxes at an NPU's outlets, in front of an NPU whose words have
    ``ring_bits`` bits."""
    fitted = fitted or coefficients()
    gears = of_blocks(outlet_blocks(npu, ring_bits), fitted)
    return (gears["lut"] - gears["pairs"]) * float(fitted["flat"]["lut"])


def of_stores(memories: Iterable[Store], fitted: Coefficients) -> dict[str, float]:
    """Sums of what memories take, and of pairs."""
    lut = ff = lutram = bram36 = 0.0
    for store in memories:
        mapped = store.mapped()
        lut += mapped.lut * store.times * (store.name != SUMS)  # a PE's figures have those
        ff += mapped.ff * store.times
        lutram += mapped.lutram * store.times
        bram36 += mapped.bram36 * store.times
    return {"lut": lut, "pairs": paired_share("memory", fitted) * lut, "ff": ff, "lutram": lutram, "bram36": bram36}


def _sum(left: dict[str, float], right: dict[str, float]) -> dict[str, float]:
    """Two sums together."""
    return {key: left.get(key, 0) + right.get(key, 0) for key in left | right}


def _whole(sums: dict[str, float], fitted: Coefficients) -> Resources:
    """The flattened design: sums times what flattening changes."""
    flat = fitted["flat"]
    return Resources(
        lut=round(sums["lut"] * flat["lut"]),
        pairs=round(sums["pairs"] * flat["lut"]),
        ff=round(sums["ff"] * flat["ff"]),
        bram36=sums["bram36"],
        lutram=round(sums["lutram"] * flat["lutram"]),
        dsp=int(sums["dsp"]),
    )

"""LUTs, flip-flops and DSP blocks of each unit of a design: by the explorer's model, or as Yosys counts modules."""

from dataclasses import dataclass

from bitloom.hls_gen.design.design import Design
from bitloom.overlay.area.synthesis import Area
from bitloom.overlay.area_model.blocks import area_blocks
from bitloom.overlay.area_model.estimate import coefficients, of_blocks

SMALL = 0.01
"""Yosys' modules with less than this share of all LUTs are left out, as there are hundreds."""


@dataclass(frozen=True)
class UnitArea:
    """Area of all units of one kind; with the area model, memories are not counted."""

    npu: int | None
    """NPU that they belong to; None: to none, or to several."""
    name: str
    """Of the kind."""
    instances: int
    """How many there are."""
    lut: int
    ff: int
    dsp: int
    """lut, ff, dsp: of all of them."""


def units_by_model(design: Design) -> tuple[UnitArea, ...]:
    """The blocks of the explorer's model, those of one kind and NPU together; the shell first, then NPU after NPU."""
    model = coefficients()
    flat = coefficients()["flat"]
    kinds: dict[tuple[int, str], list[float]] = {}
    for block in area_blocks(design):
        area = of_blocks([block], model)
        sums = kinds.setdefault((-1 if block.npu is None else block.npu, block.kind), [0, 0.0, 0.0, 0])
        for k, value in enumerate((block.times, area["lut"] * flat["lut"], area["ff"] * flat["ff"], area["dsp"])):
            sums[k] += value
    order = sorted(kinds, key=lambda key: key[0])  # within an NPU in the order of the blocks
    return tuple(
        UnitArea(None if npu < 0 else npu, kind.replace("_", " "), round(times), round(lut), round(ff), round(dsp))
        for npu, kind in order
        for times, lut, ff, dsp in [kinds[npu, kind]]
    )


def units_by_synthesis(area: Area) -> tuple[UnitArea, ...]:
    """Yosys' modules without the modules in them, the largest first; those with a share below SMALL are left out."""
    units = [
        UnitArea(
            None, b.module, b.instances, b.alone.lut * b.instances, b.alone.ff * b.instances, b.alone.dsp * b.instances
        )
        for b in area.blocks
    ]
    whole = sum(unit.lut for unit in units)
    return tuple(sorted((u for u in units if u.lut >= SMALL * whole), key=lambda unit: -unit.lut))

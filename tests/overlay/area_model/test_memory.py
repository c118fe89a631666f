"""The rule by which Yosys maps memories, against Yosys."""

import pytest

from bitloom.hls_gen.design.parts import ONE_PORT
from bitloom.hls_gen.rtl.primitives.memory import Library, ram
from bitloom.overlay.area.netlist import sized_name
from bitloom.overlay.area.synthesis import area_of
from bitloom.overlay.area_model.memory import mapped
from tests.errors import value_error
from tests.overlay.area.test_area import needs_yosys

LATE = [(4, 9), (18, 65), (18, 128), (18, 129), (33, 64), (33, 65), (64, 64), (64, 65), (64, 600), (32, 1500)]
SHAPES = {
    0: [(1, 2), (3, 2), (4, 2), (1, 16), (6, 32), (7, 32), (6, 33), (12, 64), (12, 65), (9, 200)],
    1: [*LATE, (4, 512), (4, 1000), (10, 7076)],
}
"""By latency: (width, depth), most of them beside a place where the kind of RAM changes."""


@needs_yosys
@pytest.mark.slow
@pytest.mark.parametrize(
    ("latency", "style"), [(0, "auto"), (1, "auto"), (1, "block"), (1, "distributed"), (1, ONE_PORT)]
)
def test_is_as_yosys_maps(latency: int, style: str) -> None:
    shapes = [shape for shape in SHAPES[latency] if style == "auto" or shape[0] * shape[1] < 4000]
    module = ram(Library(64), 1, 2, latency=latency, style=style).m
    instances = []
    for width, depth in shapes:
        address = max(1, (depth - 1).bit_length())
        read = ".read(x[1])," if latency else ""
        rows = f".write_row(x[{address}:1]), .read_row(x[{address - 1}:0])"
        if style == ONE_PORT:
            rows = f".row(x[{address}:1])"
        instances.append(
            f"(* keep *) {module.name} #(.WIDTH({width}), .DEPTH({depth})) u_{width}x{depth} (.clk(clk), .write(x[0]), "
            f"{rows}, {read}.write_data(x[{width - 1}:0]));"
        )
    text = f"{module.to_verilog()}\nmodule many(input clk, input [99:0] x);\n" + "\n".join(instances) + "\nendmodule\n"
    areas = {block.module: block.each for block in area_of(text, "many").blocks}
    for width, depth in shapes:
        values = {"WIDTH": width, "DEPTH": depth, "ROW_WIDTH": max(1, (depth - 1).bit_length())}
        shape = (width, depth)
        by_model = mapped(*shape, latency, style).resources
        wanted = areas[sized_name(module.name, values)]
        assert (by_model.lutram, by_model.bram36, by_model.ff) == (wanted.lutram, wanted.bram36, wanted.ff), shape
        assert abs(by_model.lut - wanted.lut) <= 6 + 0.4 * wanted.lut, shape


def test_kernel_memories() -> None:
    """A bank of a 64-bit stream word: LUT RAM up to 64 rows, then one block RAM up to 512."""
    assert mapped(64, 64).resources.lutram == 88
    assert mapped(64, 64, style=ONE_PORT).resources.lutram == 64
    assert mapped(64, 32, style=ONE_PORT).resources.lutram == 32
    assert mapped(64, 65).resources.bram36 == mapped(64, 512).resources.bram36 == 1
    assert mapped(64, 27, style="block").resources.bram36 == 1
    assert mapped(64, 100, style="distributed").resources.lutram > 88


@pytest.mark.parametrize(("width", "depth", "lut", "bram36"), [(32, 2340, 69, 2.5), (9, 29004, 67, 7.5)])
def test_many_banks_of_block_ram(width: int, depth: int, lut: int, bram36: float) -> None:
    """5 and 15 banks; figures are those of Yosys 0.70."""
    resources = mapped(width, depth).resources
    assert resources.bram36 == bram36
    assert abs(resources.lut - lut) <= 3


def test_refuses_another_style() -> None:
    with value_error("memory: style must be one of auto, block, distributed, got 'logic'"):
        mapped(8, 8, style="logic")

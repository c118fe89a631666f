"""The popcount for synthesis: lint, the rules, and Python's own; `prove` asks a solver, for test_sums.py."""

import random
from pathlib import Path

import pytest
import veriloggen

from bitloom.hls_gen.check import check
from bitloom.hls_gen.rtl.array.popcount import popcount
from bitloom.hls_gen.rtl.primitives.memory import Target
from bitloom.overlay.area.yosys import run_yosys
from bitloom.overlay.virtual.sim import lint

from .bench import Bench, text_of, together

SMALL = (1, 2, 3, 4, 5, 6)
SIMULATED = (33, 47, 63, 64, 65, 96, 127, 128, 130)

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
    made = text_of(popcount(lanes, target))
    return made.replace(f"module popcount_{lanes}", f"module {name}") if name else made


def prove(folder: Path, pairs: dict[str, tuple[str, str]]) -> None:
    """Proves gold = gate for each pair of modules of these names; BuildError where they differ."""
    for name, (gold, gate) in pairs.items():
        (folder / f"{name}.v").write_text(gold + gate)
    run_yosys("".join(SCRIPT.format(name=name) for name in pairs), folder, "proof")


@pytest.mark.sample(4)
@pytest.mark.parametrize("lanes", SMALL + SIMULATED)
def test_clean(lanes):
    made = text(lanes, "synthesis")
    check(made, f"popcount_{lanes}")
    assert lint(made, top=f"popcount_{lanes}") == []
    assert made == text(lanes, "synthesis")


def test_same_ports():
    ports = [{n: (type(p), p.width) for n, p in popcount(20, target).m.io_variable.items()}
             for target in ("simulation", "synthesis")]  # fmt: skip
    assert ports[0] == ports[1]


def test_unknown_body():
    with pytest.raises(ValueError, match=r"^popcount: target must be simulation or synthesis, got 'csa'$"):
        popcount(8, "csa")


def words(lanes: int, number: int) -> list[int]:
    draw, full = random.Random(lanes), (1 << lanes) - 1
    made = [0, full, *(full >> k for k in range(lanes)), *(1 << k for k in range(lanes))]
    return made + [full ^ 1 << k for k in range(lanes)] + [draw.getrandbits(lanes) for _ in range(number)]


def simulate(lanes: tuple[int, ...], number: int = 300) -> None:
    draw = random.Random(1)
    with Bench(together("popcounts", {f"p{n}": popcount(n, "synthesis") for n in lanes})) as bench:
        for n in lanes:
            for word in words(n, number):
                weights = draw.getrandbits(n)
                bench.set(**{f"p{n}_features": ~(weights ^ word) & ((1 << n) - 1), f"p{n}_weights": weights})
                bench.tick()
                assert bench[f"p{n}_count"] == word.bit_count(), (n, word)


def test_simulated():
    simulate((33, 64, 65, 130))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(33, 131, 14))
def test_simulated_all(first):
    simulate(tuple(range(first, first + 14)), 2000)

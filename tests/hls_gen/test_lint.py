"""Faults of Verilog that ``verilator --lint-only -Wall`` reports, so that hls_gen.check needs no rule for them.

Each example gives the kind of message, the file and line, and words that name the fault. The tests of the generator
(tests/hls_gen/rtl/test_generate.py and others) keep what is generated free of all messages.
"""

import re

import pytest

from bitloom.hls_gen.check import check
from bitloom.overlay.virtual.sim import BuildError, find_verilator, lint
from tests.hls_gen.texts import ONE_BIT, WIRED, clocked, combinational, module, pair

CIRCULAR = "Warning-UNOPTFLAT"
FAULTS = {
    # drivers
    "output without driver": (module(""), "Warning-UNDRIVEN", "top.v:1", "'y'"),
    "output driven in part": (module("assign y[1] = a[0];"), "Warning-UNDRIVEN", "top.v:1", "'y'[3:2,0]"),
    "wire without driver": (module("wire w;\nassign y = {3'd0, w};"), "Warning-UNDRIVEN", "top.v:2", "'w'"),
    "reg without driver": (module("reg [3:0] q;\nassign y = q;"), "Warning-UNDRIVEN", "top.v:2", "'q'"),
    "wire driven in part": (
        module("wire [3:0] w;\nassign w[2:0] = a[2:0];\nassign y = w;"), "Warning-UNDRIVEN", "top.v:2", "'w'[3]"),
    "index without driver": (
        module("wire [1:0] i;\nassign y = {3'd0, a[i]};"), "Warning-UNDRIVEN", "top.v:2", "'i'"),
    "input driven": (module("assign y = a;\nassign a = 4'd0;"), "Error-ASSIGNIN", "top.v:3", "variable: 'a'"),
    "input driven by an always": (
        module("assign y = a;\nalways @(posedge clk) begin a <= 4'd1; end"),
        "Error-ASSIGNIN", "top.v:3", "input/const variable: 'a'"),
    "input driven by an instance": (
        WIRED + module("assign y = a;\nwired i(.s_valid(1'd0), .m_ready(1'd0), .m_valid(a));", ONE_BIT),
        "Error-ASSIGNIN", "top.v:4", "input/const variable: 'a'"),
    # names
    "bits outside": (module("assign y = {a[4], a[2:0]};"), "Warning-SELRANGE", "top.v:2", "4:4 outside 3:0"),
    "bits written outside": (clocked("q[4] <= a[0];"), "Warning-SELRANGE", "top.v:5", "4:4 outside 3:0"),
    "undeclared read": (module("assign y = b;"), "Error", "top.v:2", "'b'"),
    "undeclared written": (module("assign y = a;\nassign b = a;"), "Warning-IMPLICIT", "top.v:3", "'b'"),
    "undeclared function": (module("assign y = f(a);"), "Error", "top.v:2", "'f'"),
    "parameter of a signal": (module("localparam P = a;\nassign y = P;"), "Error", "top.v:2", "'a'"),
    "defined twice": (module("assign y = a;") * 2, "Warning-MODDUP", "top.v:1", "'top'"),
    # instances
    "unknown module": (module("assign y = a;\nstage i(.x(a));"), "Error", "top.v:3", "module: 'stage'"),
    "input left open": (
        WIRED + module("assign y = a;\nwired i(.s_valid(a[0]), .m_ready());"),
        "Warning-PINCONNECTEMPTY", "top.v:4", "'m_ready'"),
    "input not mentioned": (
        WIRED + module("assign y = a;\nwired i(.s_valid(a[0]), .s_ready(), .m_valid());"),
        "Warning-PINMISSING", "top.v:4", "'m_ready'"),
    "input of a generated design left open": (
        pair(8).replace(".m_tready(middle_ready)", ".m_tready()"), "Warning-PINCONNECTEMPTY", "top.v:", "'m_tready'"),
    "no such port": (
        WIRED + module("assign y = a;\nwired i(.s_valid(a[0]), .m_ready(a[1]), .valid(a[1]));"),
        "Error-PINNOTFOUND", "top.v:4", "'valid'"),
    "connected twice": (
        WIRED + module("assign y = a;\nwired i(.s_valid(a[0]), .s_valid(a[0]), .m_ready(a[1]));"),
        "Error", "top.v:4", "Duplicate pin connection: 's_valid'"),
    "port width": (
        WIRED + module("assign y = a;\nwired i(.s_valid(a[1:0]), .m_ready(1'd1));"),
        "Warning-WIDTH", "top.v:4", "'s_valid' expects 1 bits"),
    "width of an output port": (
        WIRED + module("assign y[1:0] = a[1:0];\nwired i(.s_valid(a[2]), .m_ready(a[3]), .m_valid(y[3:2]));"),
        "Warning-WIDTH", "top.v:4", "'m_valid' expects 1 bits"),
    "constant too wide": (
        WIRED + module("assign y = a;\nwired i(.s_valid(2), .m_ready(1'd1));"),
        "Warning-WIDTH", "top.v:4", "'s_valid' expects 1 bits"),
    # latches and kinds of assignment
    "if without else": (combinational("if(a[0]) begin q = a; end"), "Warning-LATCH", "top.v:4", "'top.q'"),
    "if without else inside": (
        combinational("if(a[0]) begin if(a[1]) begin q = a; end end else begin q = 4'd0; end"),
        "Warning-LATCH", "top.v:4", "'top.q'"),
    "case without default": (
        combinational("case(a) 4'd0: begin q = a; end 4'd1: begin q = 4'd0; end endcase"),
        "Warning-LATCH", "top.v:4", "'top.q'"),
    "blocking in clocked": (clocked("q = a;"), "Warning-BLKSEQ", "top.v:5", "sequential logic"),
    "non-blocking in combinational": (combinational("q <= a;"), "Warning-COMBDLY", "top.v:5", "combinational logic"),
    # loops
    "loop": (
        module("wire b, c;\nassign b = ~c;\nassign c = b | a;\nassign y = c;", ONE_BIT),
        CIRCULAR, "top.v:2", "'top.b'"),
    "loop on itself": (module("wire [3:0] c;\nassign c = c + a;\nassign y = c;"), CIRCULAR, "top.v:2", "'top.c'"),
    "loop between bits": (
        module("wire [3:0] c;\nassign c[1:0] = ~c[3:2];\nassign c[3:2] = c[1:0] & a[1:0];\nassign y = c;"),
        CIRCULAR, "top.v:2", "'top.c'"),
    "loop through always": (
        module("reg b;\nalways @(*) begin b = ~y; end\nassign y = b & a;", ONE_BIT), CIRCULAR, "top.v:1", "'y'"),
    "loop through a memory index": (
        module("reg mem [0:1];\nwire i;\nassign i = mem[i];\nalways @(posedge clk) begin mem[a] <= a; end\n"
               "assign y = i;", ONE_BIT),
        CIRCULAR, "top.v:3", "'top.i'"),
    "loop through an instance": (
        WIRED + module("wire v;\nwired i(.s_valid(~v), .m_ready(a), .m_valid(v));\nassign y = v;", ONE_BIT),
        CIRCULAR, "wired.v:2", "s_valid'"),
    "loop through two instances": (
        WIRED + module("wire v, w;\nwired i(.s_valid(v), .m_ready(a), .m_valid(w));\n"
                       "wired j(.s_valid(w), .m_ready(a), .m_valid(v));\nassign y = v;", ONE_BIT),
        CIRCULAR, "top.v:3", "'top.v'"),
    # text
    "syntax": (module("assign y = = a;"), "Error", "top.v:2", "syntax error, unexpected '='"),
    "no top": (WIRED, "Error", "", "'top' was not found"),
}  # fmt: skip
BY_BOTH = ("syntax", "no top", "parameter of a signal")
"""The check can't go on there, and says so too."""


@pytest.fixture(scope="module", autouse=True)
def verilator() -> None:
    try:
        find_verilator()
    except BuildError as e:
        pytest.skip(f"what Verilator's lint reports can't be tested: {e}")


@pytest.mark.parametrize(("text", "kind", "place", "words"), FAULTS.values(), ids=FAULTS)
def test_reported(text: str, kind: str, place: str, words: str) -> None:
    message = re.compile(rf"%{kind}[-A-Z]*: {re.escape(place)}.*{re.escape(words)}")
    messages = lint(text, top="top")
    assert any(message.match(line) for line in messages), "\n".join([f"no {message.pattern} in", *messages])


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in BY_BOTH])
def test_left_to_lint(name: str) -> None:
    check(FAULTS[name][0], "top")

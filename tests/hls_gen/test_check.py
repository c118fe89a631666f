"""Every rule of hls_gen.check has a bad example, matched on the whole message; test_lint.py has what lint finds."""

import re
import time
from unittest.mock import Mock

import pytest

from bitloom.hls_gen.check import DesignError, Finding, check, once, verilog
from bitloom.hls_gen.check.scope import Scope
from tests.hls_gen.texts import ONE_BIT, STAGE, WIRED, clocked, combinational, module, pair

SELECTED = "module selected #(parameter LOW = 0) (input [1:0] x, output z);\nassign z = x[LOW];\nendmodule\n"
"""A bit of two, which the instance chooses."""
GOOD = {
    "assign": module("assign y = a + 4'd1;"),
    "parts": module("assign y[3:2] = a[1:0];\nassign {y[0], y[1]} = a[3:2];"),
    "wire with its value": module("wire [3:0] sum = a + a;\nassign y = sum;"),
    "localparam and parameter": "module top #(parameter W = 4) (input [W-1:0] a, output [W-1:0] y);\n"
    "localparam LAST = W - 1;\nassign y = {a[LAST], a[LAST-1:0]};\nendmodule\n",
    "clocked": clocked("if(a[0]) begin q <= a; end"),
    "memory": module("reg [3:0] mem [0:15];\nassign y = mem[a];\nalways @(posedge clk) begin mem[a] <= a; end"),
    "bits of a memory word": module(
        "reg [7:0] mem [0:15];\nassign y = mem[a][7:4];\n"
        "always @(posedge clk) begin mem[a][3:0] <= a; mem[a][7:4] <= a; end"
    ),
    "complete if": combinational("if(a[0]) begin q = a; end else begin q = 4'd0; end"),
    "default first": combinational("q = 4'd0;\nif(a[0]) begin q = a; end"),
    "value of the same block": combinational("q = a;\nq = q + 4'd1;\nif(q[0]) begin q = q - 4'd1; end"),
    "complete case": combinational(
        "case(a[1:0]) 2'd0, 2'd1: begin q = a; end 2'd2: begin q = 4'd1; end 2'd3: begin q = 4'd0; end endcase"
    ),
    "case with default": combinational("case(a) 4'd0: begin q = a; end default: begin q = 4'd0; end endcase"),
    "countones": module("assign y = $countones(a);"),
    "function": module(
        "function [3:0] twice;\ninput [3:0] x;\nbegin twice = x + x; end\nendfunction\nassign y = twice(a);"
    ),
    "ripple in one vector": module(
        "wire [3:0] c;\nassign c[0] = a[0];\nassign c[3:1] = c[2:0] & a[3:1];\nassign y = c;"
    ),
    "stream stage twice": STAGE
    + """
module top(input clk, input s_tvalid, output s_tready, input [7:0] s_tdata,
           output m_tvalid, input m_tready, output [7:0] m_tdata);
  wire valid, ready;
  wire [7:0] data;
  stage one(.clk(clk), .s_tvalid(s_tvalid), .s_tready(s_tready), .s_tdata(s_tdata),
            .m_tvalid(valid), .m_tready(ready), .m_tdata(data));
  stage two(.clk(clk), .s_tvalid(valid), .s_tready(ready), .s_tdata(data),
            .m_tvalid(m_tvalid), .m_tready(m_tready), .m_tdata(m_tdata));
endmodule
""",
    "packed bus through an instance": WIRED
    + """
module top(input s_valid, output s_ready, output m_valid, input m_ready);
  wire [1:0] bus;
  assign bus[0] = s_valid;
  assign m_valid = bus[1];
  wired w(.s_valid(bus[0]), .s_ready(s_ready), .m_valid(bus[1]), .m_ready(m_ready));
endmodule
""",
    "parameters that follow from others": (
        "module inner #(parameter DEPTH = 16, parameter ROW = DEPTH > 1 ? $clog2(DEPTH) : 1)\n"
        "(input [ROW-1:0] x, output [ROW-1:0] z);\n"
        "localparam [ROW:0] WORDS = DEPTH;\nlocalparam [ROW-1:0] LAST = WORDS[ROW-1:0];\n"
        "wire [LAST+1:0] w = 0;\nassign z = x;\nendmodule\n" + module("inner #(.DEPTH(9)) i(.x(a), .z(y));")
    ),
    "valid beside ready, as wide as an instance says": SELECTED
    + module(
        "wire [1:0] bus;\nassign bus = {m_ready, a};\nselected #(.LOW(0)) s(.x(bus), .z(m_valid));\nassign y = bus[1];",
        "input a, input m_ready, output m_valid, output y",
    ),
    "parameter of an instance": "module inner #(parameter W = 8) (input [W-1:0] x, output [W-1:0] z);\n"
    "assign z = x;\nendmodule\n" + module("inner #(.W(4)) i(.x(a), .z(y));"),
    "valid beside ready": module(
        "wire [1:0] bus;\nassign bus = {a, m_ready} & {a, a};\nassign m_valid = a ? bus[1] : ~bus[1];\n"
        "assign y = bus[0];",
        "input a, input m_ready, output m_valid, output y",
    ),
    "module of a library": module("BUFG buffer(.I(clk), .O(y));", ONE_BIT),
    "unused output": WIRED + module("assign y = a;\nwired w(.s_valid(a[0]), .m_ready(1'd1), .s_ready());"),
    "unsized constant that fits": WIRED + module("assign y = a;\nwired w(.s_valid(1), .m_ready(0));"),
    "comments": module("// a[i +: 8], `ifdef, always\n/* initial\n */\nassign y = a;"),
    "timescale": "`timescale 1ns / 1ps\n" + module("assign y = a;"),
}

BAD = {
    # parameters
    "valid that waits for ready in one instance": (
        SELECTED
        + module(
            "wire [1:0] bus = {m_ready, a};\nselected #(.LOW(0)) s(.x(bus), .z(y));\n"
            "selected #(.LOW(1)) t(.x(bus), .z(m_valid));",
            "input a, input m_ready, output m_valid, output y",
        ),
        "top.m_valid: valid must not depend on m_ready in the same cycle",
    ),
    "fault in one size": (
        "module inner #(parameter W = 1) (input [3:0] x, output [3:0] z);\nassign z[3:0] = x;\n"
        "wire [2:0] w;\nassign w[W:0] = 0;\nassign w[2] = x[0];\nendmodule\n"
        + module("wire [3:0] z;\ninner #(.W(2)) i(.x(a), .z(y));\ninner j(.x(a), .z(z));"),
        "inner #(W = 2).w: must be driven once, got assign in line 4 and assign in line 5",
    ),
    "parameter by position": (
        SELECTED + module("selected #(0) s(.x({a, a}), .z(y));", ONE_BIT),
        "top.s: parameters must be set by name",
    ),
    "parameter by a signal": (
        SELECTED + module("selected #(.LOW(a)) s(.x({a, a}), .z(y));", ONE_BIT),
        "top.s: parameter LOW must be a constant",
    ),
    # drivers
    "driven twice": (
        module("assign y = a;\nassign y = a;"),
        "top.y: must be driven once, got assign in line 2 and assign in line 3",
    ),
    "overlapping parts": (
        module("assign y[2:0] = a[2:0];\nassign {y[3], y[2]} = a[3:2];"),
        "top.y: must be driven once, got assign in line 2 and assign in line 3",
    ),
    "two always": (
        module(
            "reg [3:0] q;\nassign y = q;\nalways @(posedge clk) begin q[0] <= a[0]; end\n"
            "always @(posedge clk) begin q <= a; end"
        ),
        "top.q: must be driven once, got always in line 4 and always in line 5",
    ),
    "instance and assign": (
        WIRED
        + module(
            "wire w;\nassign w = 1'd0;\nassign y = {3'd0, w};\nwired i(.s_valid(a[0]), .m_ready(a[1]), .m_valid(w));"
        ),
        "top.w: must be driven once, got assign in line 7 and instance i",
    ),
    "range": (module("wire [4:1] w;\nassign w = a;\nassign y = w;"), "top.w: its range must be [constant:0]"),
    "inout": (
        module("assign y = a;", "inout b, input [3:0] a, output [3:0] y"),
        "top.b: must be an input, output, wire or reg, got inout",
    ),
    # instances
    "by position": (
        WIRED + module("assign y = a;\nwire v, r;\nwired i(a[0], r, v, a[1]);"),
        "top.i: ports must be connected by name",
    ),
    "output into an expression": (
        WIRED + module("assign y = a;\nwired i(.s_valid(a[0]), .m_ready(a[0]), .m_valid(~a[0]));"),
        "top.i: output m_valid must be connected to a signal",
    ),
    "output into an expression of a wire": (
        WIRED
        + module(
            "wire v;\nassign v = a[1];\nassign y = {3'd0, v};\nwired i(.s_valid(a[0]), .m_ready(a[0]), .m_valid(~v));"
        ),
        "top.i: output m_valid must be connected to a signal",
    ),
    "array of instances": (
        WIRED + module("assign y = a;\nwired i[1:0](.s_valid(a[0]), .m_ready(a[0]));"),
        "top.i: arrays of instances are not allowed in generated Verilog",
    ),
    "contains itself": (
        module("assign y = a;\ntop i(.clk(clk), .a(a));"),
        "top: a module must not contain itself, got top > top",
    ),
    "no top": (WIRED, "top: the top module is not in the text"),
    # one clock
    "negative edge": (
        module("reg [3:0] q;\nassign y = q;\nalways @(negedge clk) begin q <= a; end"),
        "top.always: must be @(posedge clk) or @(*), got @(negedge clk)",
    ),
    "other clock": (
        module("reg [3:0] q;\nassign y = q;\nalways @(posedge a) begin q <= a; end"),
        "top.always: must be @(posedge clk) or @(*), got @(posedge a)",
    ),
    "asynchronous reset": (
        module("reg [3:0] q;\nassign y = q;\nalways @(posedge clk or negedge a) begin q <= a; end"),
        "top.always: must be @(posedge clk) or @(*), got @(posedge clk or negedge a)",
    ),
    "always_ff": (
        module("reg [3:0] q;\nassign y = q;\nalways_ff @(posedge clk) begin q <= a; end"),
        "top.always: must be @(posedge clk) or @(*), got @(posedge clk)",
    ),
    "no sensitivity": (
        module("reg [3:0] q;\nassign y = q;\nalways begin q = a; end"),
        "top.line 4: always needs @(posedge clk) or @(*)",
    ),
    "clock as data": (module("assign y = {3'd0, clk};"), "top.clk: the clock must not be used as data"),
    "clock written": (module("assign y = a;\nassign clk = a[0];"), "top.clk: the clock must not be used as data"),
    "clock in an always": (clocked("if(clk) begin q <= a; end"), "top.clk: the clock must not be used as data"),
    "clock made here": (
        module("assign y = a;", "output clk, input a, output y"),
        "top.clk: the clock must not be used as data",
    ),
    "clock into another port": (
        WIRED + module("assign y = a;\nwired i(.s_valid(clk), .m_ready(a[0]));"),
        "top.clk: the clock must not be used as data",
    ),
    "data into the clock": (
        STAGE + module("assign y = a;\nstage i(.clk(a[0]), .s_tvalid(a[1]), .m_tready(a[2]), .s_tdata(8'd0));"),
        "top.i: port clk must be connected to clk",
    ),
    # whole signals
    "a bit missing in one branch": (
        combinational("if(a[0]) begin q = a; end else begin q[2:0] = 3'd0; end"),
        "top.q: a combinational always must assign it as a whole, else some bits may be a latch",
    ),
    "variable bit": (
        combinational("q[a[1:0]] = 1'd1;"),
        "top.q: a combinational always must assign it as a whole, else some bits may be a latch",
    ),
    "variable bit after a default": (
        combinational("q = 4'd0;\nq[a[1:0]] = 1'd1;"),
        "top.q: a combinational always must assign it as a whole, else some bits may be a latch",
    ),
    "bits in a concatenation": (
        combinational("q = a;\n{q[1], q[0]} = a[1:0];"),
        "top.q: a combinational always must assign it as a whole, else some bits may be a latch",
    ),
    "memory": (
        module("reg [3:0] mem [0:15];\nassign y = mem[0];\nalways @(*) begin mem[a] = a; end"),
        "top.mem: a combinational always must assign it as a whole, else some bits may be a latch",
    ),
    # paths
    "ready to valid": (
        module("assign m_tvalid = a & m_tready;", "input a, input m_tready, output m_tvalid"),
        "top.m_tvalid: valid must not depend on m_tready in the same cycle",
    ),
    "ready to valid through always": (
        module(
            "reg v;\nassign m_valid = v;\nalways @(*) begin v = 1'd0;\nif(m_ready) begin v = a; end end",
            "input a, input m_ready, output m_valid",
        ),
        "top.m_valid: valid must not depend on m_ready in the same cycle",
    ),
    "ready to valid through a memory index": (
        module(
            "reg mem [0:1];\nalways @(posedge clk) begin mem[a] <= a; end\nassign m_valid = mem[m_ready];",
            "input clk, input a, input m_ready, output m_valid",
        ),
        "top.m_valid: valid must not depend on m_ready in the same cycle",
    ),
    "ready to valid through the hierarchy": (
        WIRED
        + module(
            "wire v;\nassign out_tvalid = v & a;\nwired i(.s_valid(out_tready), .m_ready(a), .m_valid(v));",
            "input a, input out_tready, output out_tvalid",
        ),
        "top.out_tvalid: valid must not depend on out_tready in the same cycle",
    ),
    "ready to valid through a bus": (
        module(
            "wire [1:0] bus;\nassign bus = {a, m_ready};\nassign m_valid = bus[0];",
            "input a, input m_ready, output m_valid",
        ),
        "top.m_valid: valid must not depend on m_ready in the same cycle",
    ),
    "ready to valid through a condition": (
        module("assign m_valid = m_ready ? a : 1'd0;", "input a, input m_ready, output m_valid"),
        "top.m_valid: valid must not depend on m_ready in the same cycle",
    ),
    "ready to valid through the index of a bit": (
        module("assign m_valid = a[m_ready];", "input [1:0] a, input m_ready, output m_valid"),
        "top.m_valid: valid must not depend on m_ready in the same cycle",
    ),
    "ready to valid through an operator in a concatenation": (
        module("assign m_valid = {a, a + m_ready};", "input a, input m_ready, output m_valid"),
        "top.m_valid: valid must not depend on m_ready in the same cycle",
    ),
    # what generated Verilog doesn't need
    "initial": (
        module("assign y = a;\nreg q;\ninitial begin q = 1'd0; end"),
        "top: initial blocks are not allowed in generated Verilog",
    ),
    "generate": (
        module("genvar i;\ngenerate for(i=0; i<4; i=i+1) begin: g\nassign y[i] = a[i];\nend endgenerate"),
        "top.i: must be an input, output, wire or reg, got genvar\ntop: generate is not allowed in generated Verilog",
    ),
    "delay of an assign": (module("assign #1 y = a;"), "top.assign: delays are for test benches"),
    "delay of an assignment": (clocked("q <= #1 a;"), "top.always: delays are for test benches"),
    "delay statement": (clocked("#1;\nq <= a;"), "top.always: delays are for test benches"),
    "for": (
        module(
            "integer i;\nreg [3:0] q;\nassign y = q;\n"
            "always @(posedge clk) begin for(i=0; i<4; i=i+1) begin q[i] <= a[i]; end end"
        ),
        "top.i: must be an input, output, wire or reg, got integer\n"
        "top.always: statements must be assignments, if or case, got ForStatement",
    ),
    "display": (
        clocked('q <= a;\n$display("x");'),
        "top.always: statements must be assignments, if or case, got SystemCall",
    ),
    "system call": (
        module("assign y = $random(a);"),
        "top.$random: system calls must be one of $countones, $signed, $unsigned, $clog2",
    ),
    "system call in a function": (
        module("function [3:0] f;\ninput [3:0] x;\nbegin f = $urandom(x); end\nendfunction\nassign y = f(a);"),
        "top.$urandom: system calls must be one of $countones, $signed, $unsigned, $clog2",
    ),
    "parameter that is no number": (
        module("localparam P = $countones(8);\nassign y = P;"),
        "top.P: a parameter must be a constant",
    ),
    "function with a view": (
        module("function [3:0] f;\ninput [3:0] x;\nbegin f = x + a; end\nendfunction\nassign y = f(a);"),
        "top.f: a function must read its inputs only, got a",
    ),
    "numbered name": (
        module("wire [3:0] _tmp_17;\nassign _tmp_17 = a;\nassign y = _tmp_17;"),
        "top._tmp_17: names must say what they are, got a numbered one",
    ),
    "numbered instance": (
        WIRED + module("assign y = a;\nwired i_tmp(.s_valid(a[0]), .m_ready(a[1]));"),
        "top.i_tmp: names must say what they are, got a numbered one",
    ),
    "indexed part select": (
        module("assign y = 4'd0;\nwire [1:0] w;\nassign w = a[1 +: 2];"),
        "top.line 4: indexed part selects (+: and -:) are misread by Pyverilog; use constant bounds",
    ),
    "directive": (
        module("`ifdef X\nassign y = a;\n`endif"),
        "top.line 2: compiler directives are not followed; write plain Verilog\n"
        "top.line 4: compiler directives are not followed; write plain Verilog",
    ),
    "syntax": (module("assign y = = a;"), 'text.line 2: Pyverilog can\'t read it, before: "="'),
}


@pytest.mark.parametrize("text", GOOD.values(), ids=GOOD)
def test_good(text):
    check(text, "top")


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_bad(text, message):
    with pytest.raises(DesignError, match=f"^{re.escape(message)}$"):
        check(text, "top")


def test_findings_are_listed_bottom_up():
    inner = "module inner(output z);\nassign z = 1'd0;\nassign z = 1'd1;\nendmodule\n"
    with pytest.raises(DesignError) as error:
        check(module("inner i(.z(y));\nwire Tmp_3;", ONE_BIT) + inner, "top")
    assert error.value.findings == (
        Finding("inner", "z", "must be driven once, got assign in line 6 and assign in line 7"),
        Finding("top", "Tmp_3", "names must say what they are, got a numbered one"),
    )


def test_the_clock_has_the_name_given():
    text = clocked("q <= a;").replace("clk", "aclk")
    check(text, "top", clock="aclk")
    with pytest.raises(DesignError, match=r"^top\.always: must be @\(posedge clk\) or @\(\*\), got @\(posedge aclk\)$"):
        check(text, "top")


def test_a_module_that_was_read_before_has_the_lines_of_its_text():
    text = module("assign y = a;\nassign y = a;")
    for before in (0, 3, 1):
        with pytest.raises(DesignError, match=f"in line {before + 2} and assign in line {before + 3}$"):
            check("// a line\n" * before + text, "top")
    with pytest.raises(DesignError, match=r"^text\.line 6: Pyverilog can't read it, before: \"=\"$"):
        check(text + module("assign y = = a;"), "top")


@pytest.mark.slow
def test_leaves_no_files_in_the_working_directory(tmp_path, monkeypatch):
    def forget() -> None:
        verilog._parser.cache_clear()
        verilog._parsed.cache_clear()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "cache"))
    forget()
    try:
        check(module("assign y = a;"), "top")
        assert [p.name for p in tmp_path.iterdir()] == ["cache"]
        (tables,) = (tmp_path / "cache").glob("*/parser/*/tables.pickle")
        modified = tables.stat().st_mtime_ns
        forget()
        check(module("assign y = a;"), "top")
        assert tables.stat().st_mtime_ns == modified  # read, not made again
        whole = tables.read_bytes()
        for damaged in (whole[: len(whole) // 2], b"cos\nabort\n(tR."):  # the second one ends whoever reads it
            tables.write_bytes(damaged)
            forget()
            check(module("assign y = a;"), "top")
            assert tables.read_bytes() == whole
    finally:
        forget()


def test_veriloggen_design_with_a_fault():
    text = pair(8)
    assert text.count(".clk(clk)") == 2
    with pytest.raises(DesignError, match=r"^top\.first: port clk must be connected to clk$"):
        check(text.replace(".clk(clk)", ".clk(rst)", 1), "top")


def test_thousands_of_lines_take_seconds():
    one = pair(8)
    text = "".join(one.replace("module top", f"module top{i}").replace("inner", f"inner{i}") for i in range(60))
    assert text.count("\n") > 5000
    start = time.process_time()
    check(text, "top0")
    assert time.process_time() - start < 10  # about 0.5 s on an idle core


def test_a_text_is_checked_once(tmp_path, monkeypatch):
    """For a top, as long as the rules are the same; one that breaks a rule is checked again."""
    checked = Mock(side_effect=check)
    monkeypatch.setattr(once, "check", checked)
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "cache"))
    good = pair(8)
    bad = pair(8).replace(".clk(clk)", ".clk(rst)", 1)
    for count, top in ((1, "top"), (1, "top"), (2, "inner")):
        once.check_once(good, top)
        assert checked.call_count == count
    for count in (3, 4):
        with pytest.raises(DesignError):
            once.check_once(bad, "top")
        assert checked.call_count == count
    monkeypatch.setattr(once, "_rules", lambda: "others")
    once.check_once(good, "top")
    assert checked.call_count == 5
    monkeypatch.setenv("BITLOOM_CACHE", "/dev/null/cache")  # no place for it
    once.check_once(good, "top")
    assert checked.call_count == 6


CONSTANTS = {"8'hA5": 165, "4'b1_01": 5, "12": 12, "6'o17": 15, "-P": -166, "3 ** 4": 81}
CONSTANTS |= {"P + 3": 169, "P - 3": 163, "P * 3": 498, "P / 4": 41, "P % 4": 2, "P << 1": 332, "P >> 1": 83}
CONSTANTS |= {"P < 166": 0, "P <= 166": 1, "P > 166": 0, "P >= 166": 1, "P == 166": 1, "P != 166": 0}
CONSTANTS |= {"P[3:1]": 3, "P[7:5]": 5, "P[1:1]": 1, "P[7:0]": 166, "P ? 4 : 5": 4, "0 ? 4 : 5": 5}
CONSTANTS |= {f"$clog2({number})": bits for number, bits in ((1, 0), (2, 1), (5, 3), (8, 3), ("P", 8))}
"""Constant expressions and their values, of P = 8'b10100110."""


@pytest.mark.parametrize("expression", CONSTANTS)
def test_values_of_constants(expression: str) -> None:
    text = f"module m(input x);\nlocalparam P = 8'b1010_0110;\nlocalparam X = {expression};\nendmodule\n"
    assert Scope(verilog.parse(text)["m"].node).constants["X"] == CONSTANTS[expression]

"""Small Verilog texts that tests of the check and of Verilator's lint put faults into."""

from veriloggen import Cat, If, Int, Module, Mux, Posedge, Seq
from veriloggen.core.vtypes import SystemTask

# a register stage of a stream, and wires from one side to the other
STAGE = """
module stage(input clk, input s_tvalid, output s_tready, input [7:0] s_tdata,
             output reg m_tvalid, input m_tready, output reg [7:0] m_tdata);
  assign s_tready = ~m_tvalid | m_tready;
  always @(posedge clk) begin
    if(s_tready) begin
      m_tvalid <= s_tvalid;
      m_tdata <= s_tdata;
    end
  end
endmodule
"""
WIRED = """
module wired(input s_valid, output s_ready, output m_valid, input m_ready);
  assign {m_valid, s_ready} = {s_valid, m_ready};
endmodule
"""


ONE_BIT = "input clk, input a, output y"
"""Ports of a module with one bit in and one bit out."""


def module(body: str, ports: str = "input clk, input [3:0] a, output [3:0] y") -> str:
    """A module with ``body``, whose first line is line 2."""
    return f"module top({ports});\n{body}\nendmodule\n"


def clocked(body: str) -> str:
    """A module whose output is a register; ``body`` begins in line 5."""
    return module(f"reg [3:0] q;\nassign y = q;\nalways @(posedge clk) begin\n{body}\nend")


def combinational(body: str) -> str:
    """A module whose output is made by an ``always @(*)``; ``body`` begins in line 5."""
    return module(f"reg [3:0] q;\nassign y = q;\nalways @(*) begin\n{body}\nend")


def counter(name: str, width: int) -> Module:
    """A small Veriloggen design with all that ours use."""
    m = Module(name)
    clk, rst = m.Input("clk"), m.Input("rst")
    s_data, s_valid, s_ready = m.Input("s_tdata", width), m.Input("s_tvalid"), m.Output("s_tready")
    data, valid = m.OutputReg("m_tdata", width, initval=0), m.OutputReg("m_tvalid", initval=0)
    ready = m.Input("m_tready")
    mem = m.Reg("mem", width, 16)
    row = m.Reg("row", 4, initval=0)
    ones = m.Wire("ones", 4)
    ones.assign(SystemTask("countones", s_data))
    chosen = m.Reg("chosen", width)
    m.Always()(If(ones == Int(0, width=4))(chosen(mem[row], blk=True)).Else(chosen(s_data, blk=True)))
    s_ready.assign(ready | ~valid)
    seq = Seq(m, "registers", clk, rst)
    seq.If(s_ready)(valid(s_valid), data(Mux(row[0], chosen, Cat(chosen[0], chosen[1:width]))))
    seq.If(s_ready & s_valid)(row(row + Int(1, width=4)))
    seq.make_always()
    m.Always(Posedge(clk))(If(s_valid)(mem[row](s_data)))
    return m


def pair(width: int) -> str:
    """Verilog of two counters, one after the other."""
    top = Module("top")
    stream = {name: top.Input(name) for name in ("clk", "rst", "s_tvalid", "m_tready")}
    stream |= {name: top.Output(name) for name in ("s_tready", "m_tvalid")}
    stream |= {"s_tdata": top.Input("s_tdata", width), "m_tdata": top.Output("m_tdata", width)}
    middle = {f"m_t{n}": top.Wire(f"middle_{n}", w) for n, w in (("data", width), ("valid", None), ("ready", None))}
    inner = counter("inner", width)
    top.Instance(inner, "first", ports=[*({**stream, **middle}).items()])
    back = {name.replace("m_", "s_"): wire for name, wire in middle.items()}
    top.Instance(inner, "second", ports=[*({**stream, **back}).items()])
    return top.to_verilog()

"""Rules for generated Verilog that Verilator's lint can't say. Test: tests/hls_gen/test_check.py.

    text --> verilog.py: syntax trees --> scope.py: names --> constructs.py, process.py: what may stand in a module
                                                          --> module.py: drivers, paths --> streams.py: ready to valid

A module with parameters is looked at once for each choice of values that instances below the top give it, so that
widths are those of what is built.

Verilog that somebody else may have written, beside a .bit, is held to the tokens of ours instead
(overlay/virtual/sim/tokens.py).

Tests run ``verilator --lint-only -Wall`` on what the generator writes. Verilator reports names that nobody declared,
signals that nobody drives, ports left open, widths that differ, latches, loops, and the wrong kind of assignment
(tests/hls_gen/test_lint.py has an example of each). Verilator accepts what follows here, since all of it is legal
Verilog; that our hardware does without it is a rule of ours.

- *Streams.* ``x_valid`` of an output doesn't depend on ``x_ready`` in the same cycle, be it in the module or in those
  below. Else two modules that wait for each other form a loop, which shows only where both are joined.
- *One clock.* Every ``always`` is ``@(posedge clk)`` or ``@(*)``: no other clock, no falling edge, no asynchronous
  reset. The clock is connected to clocks only and is no data.
- *One driver.* A bit is written by one ``assign``, one ``always`` or one instance. Verilator reports two ``assign``,
  but not two clocked ``always`` that write one register, nor an ``assign`` beside an instance.
- *Whole signals.* An ``always @(*)`` assigns signals as a whole. Verilator reports a latch of a whole signal, but not
  one of some bits.
- *Names.* No numbered name (``_tmp_17``), since such numbers change by the dozen when one register is added.
- *Constructs.* No initial block, generate, loop, delay, inout, directive, SystemVerilog block, array of instances,
  port connected by position, output connected to an expression, indexed part select, vector whose lowest bit isn't 0,
  system call such as ``$display``, function that reads signals of its module, or module that contains itself. Some of
  them mean one thing to simulation and another to synthesis; the others aren't followed here.

sums.py proves modules that count alike for simulation and for synthesis.

What is not understood is refused. Paths are followed bit by bit through slices, concatenations, conditions and bitwise
operators; elsewhere a result depends on all bits of its operands, so a path may be reported that no bit takes. A module
that is not in the text, which Verilator reports, drives nothing here.
"""

from collections.abc import Iterator, Mapping

from pyverilog.vparser import ast

from .findings import DesignError, Finding
from .module import Module
from .streams import check_streams
from .verilog import Parsed, parse

__all__ = ["DesignError", "Finding", "check"]


def check(text: str, top: str, *, clock: str = "clk") -> None:
    """Hold Verilog to the rules above.

    Parameters
    ----------
    text
        Modules, one after another.
    top
        Name of the top module, which must be among them.
    clock
        Name of the clock in every module.

    Raises
    ------
    DesignError
        A rule is broken; the message has a line for every finding.
    """
    nodes = parse(text)
    if top not in nodes:
        raise DesignError([Finding(top, "", "the top module is not in the text")])
    order = [*_bottom_up(nodes)]
    modules: dict[tuple[str, frozenset[tuple[str, int]]], Module] = {}

    def elaborate(name: str, values: Mapping[str, int]) -> Module | None:
        if name not in nodes:
            return None
        key = (name, frozenset(values.items()))
        if key not in modules:
            modules[key] = Module(*nodes[name], elaborate, clock, values)
            check_streams(modules[key])
        return modules[key]

    elaborate(top, {})
    reached = {name for name, _ in modules}
    for name in order:  # what the top doesn't reach, with parameters at their defaults
        if name not in reached:
            elaborate(name, {})
    findings = [finding for module in modules.values() for finding in module.scope.findings]
    if findings:
        raise DesignError(findings)


def _bottom_up(nodes: Mapping[str, Parsed]) -> Iterator[str]:
    """Names of all modules, each after those that it instantiates."""
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> Iterator[str]:
        if name in above:
            chain = " > ".join([*above, name])
            raise DesignError([Finding(name, "", f"a module must not contain itself, got {chain}")])
        if name in done or name not in nodes:
            return
        for item in nodes[name].node.items:
            if isinstance(item, ast.InstanceList):
                yield from visit(item.module, (*above, name))
        done.add(name)
        yield name

    for name in nodes:
        yield from visit(name, ())

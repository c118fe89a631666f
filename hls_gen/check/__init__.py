"""The pass over generated Verilog before it is written out. Test: tests/hls_gen/test_check.py.

    text --> verilog.py: syntax trees --> scope.py, process.py, module.py: drivers and readers --> paths.py: paths

Rules:
- every output and every bit that is read has one driver; instances know their module, connect each input, widths match;
- one clock: always is ``@(posedge clk)`` with ``<=`` or ``@(*)`` with ``=``, and the clock is no data;
- a combinational always assigns its targets on every path;
- no combinational loop, and no combinational path from ``x_ready`` to ``x_valid``, followed through the hierarchy;
- no initial block, delay, generate, loop statement, inout, directive or numbered name.

What is not understood is refused. Bits are followed one by one through slices, concatenations, conditions and bitwise
operators; elsewhere a result depends on all bits of its operands, so a loop may be reported that no bit takes.
"""

from collections.abc import Collection, Iterator

from pyverilog.vparser import ast

from .findings import DesignError, Finding
from .module import Module
from .paths import check_loops, check_streams
from .verilog import parse

__all__ = ["DesignError", "Finding", "check"]


def check(text: str, top: str, *, library: Collection[str] = (), clock: str = "clk") -> None:
    """Hold Verilog to the rules above.

    Parameters
    ----------
    text
        Modules, one after another.
    top
        Name of the top module, which must be among them.
    library
        Names of modules that are defined elsewhere; what is connected to them counts as driven.
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
    modules: dict[str, Module] = {}
    for name in _bottom_up(nodes):
        module = modules[name] = Module(nodes[name], modules, library, clock)
        check_loops(module)
        check_streams(module)
    findings = [finding for module in modules.values() for finding in module.scope.findings]
    if findings:
        raise DesignError(findings)


def _bottom_up(nodes: dict[str, ast.ModuleDef]) -> Iterator[str]:
    """Names of all modules, each after those that it instantiates."""
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> Iterator[str]:
        if name in above:
            chain = " > ".join([*above, name])
            raise DesignError([Finding(name, "", f"a module must not contain itself, got {chain}")])
        if name in done or name not in nodes:
            return
        for item in nodes[name].items:
            if isinstance(item, ast.InstanceList):
                yield from visit(item.module, (*above, name))
        done.add(name)
        yield name

    for name in nodes:
        yield from visit(name, ())

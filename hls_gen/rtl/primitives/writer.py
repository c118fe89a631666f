"""Veriloggen's modules as text, as ``Module.to_verilog`` would write it, in half of the time.

    Veriloggen's module --> Pyverilog's syntax tree --> Pyverilog's templates --> text

Pyverilog fills a Jinja template for every node of the tree, tens of thousands for a design, and most of the time went
into copying Jinja's global names for each and into reading the templates again for each design. No template uses a
global name, so there are none here, and the templates are read once.
"""

from functools import lru_cache

from pyverilog.ast_code_generator.codegen import ASTCodeGenerator
from veriloggen import Module
from veriloggen.verilog.to_verilog import VerilogModuleVisitor


@lru_cache(maxsize=1)
def _writer() -> ASTCodeGenerator:
    """Pyverilog's writer, with the templates that it has read."""
    writer = ASTCodeGenerator()
    writer.env.globals.clear()
    return writer


def module_text(module: Module) -> str:
    """Verilog of ``module`` alone, without those that it instantiates.

    Hooks of the module must have run: what they add would be missing.
    """
    return str(_writer().visit(VerilogModuleVisitor().visit(module)))

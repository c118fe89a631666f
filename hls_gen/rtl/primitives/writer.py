"""Veriloggen's modules as text, in the form in which people write Verilog.

    Veriloggen's module --> Pyverilog's syntax tree --> Pyverilog's templates --> text

Ranges are numbers (``[6:0]``), and a wire is declared where it gets its value (``wire [6:0] sum = a + b;``), unless
something in front of that place reads the wire.

Pyverilog fills a Jinja template for every node of the tree, tens of thousands for a design, and most of the time went
into copying Jinja's global names for each and into reading the templates again for each design. No template uses a
global name, so there are none here, and the templates are read once.
"""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any

from pyverilog.ast_code_generator.codegen import ASTCodeGenerator, del_paren, indent_multiline_assign
from pyverilog.vparser import ast
from veriloggen import Module
from veriloggen.core import vtypes as vt
from veriloggen.verilog.to_verilog import VerilogModuleVisitor

from bitloom.hls_gen.check.constructs import identifiers


def module_text(module: Module) -> str:
    """Verilog of ``module`` alone, without those that it instantiates.

    Hooks of the module must have run: what they add would be missing.
    """
    return _COMMENT.sub(r"\1", str(_writer().visit(_Trees().visit(module))))


_INSTANCE = re.compile(r"(\w+)(?:\n#\((.*?)\n\))?\n(\w+)\n\(", re.DOTALL)


_COMMENT = re.compile(r"^( *//[^\n]*\n)\n+", re.MULTILINE)
"""A comment with empty lines behind it, which belongs to what follows."""


class _WireWithValue(ast.Node):
    """A wire and the value that it is assigned, in one declaration."""

    def __init__(self, wire: ast.Wire, value: ast.Rvalue):
        self.wire = wire
        self.value = value

    def children(self) -> tuple[ast.Node, ...]:
        return self.wire, self.value


class _Trees(VerilogModuleVisitor):
    """Syntax trees of modules."""

    def make_width(self, node: vt._Variable) -> ast.Width | None:
        """The range of a signal: numbers, where its width is a number."""
        if node.raw_width is None and isinstance(node.width, int):
            return ast.Width(ast.IntConst(str(node.width - 1)), ast.IntConst("0"))
        return super().make_width(node)

    def make_dims(self, node: vt._Variable) -> ast.Dimensions | None:
        """The rows of an array."""
        if node.raw_dims is None and node.dims is not None and all(isinstance(rows, int) for rows in node.dims):
            zero = ast.IntConst("0")
            return ast.Dimensions([ast.Length(zero, ast.IntConst(str(rows - 1))) for rows in node.dims])
        return super().make_dims(node)

    def visit_Module(self, node: Module) -> ast.ModuleDef:
        """The module, with its wires where they get their values."""
        tree = super().visit_Module(node)
        tree.items = _without_empty_headings(_with_values(tree.items))
        return tree


def _with_values(items: list[ast.Node]) -> list[ast.Node]:
    """The items of a module; the declaration of a wire that is assigned as a whole stands at that place, if no item in
    front of it reads the wire."""
    declared: dict[str, int] = {}
    placed: list[ast.Node | None] = []
    for item in items:
        if isinstance(item, ast.Assign) and isinstance(item.left.var, ast.Identifier):
            read = declared.keys() & identifiers([item.right])
            place = None if item.left.var.name in read else declared.pop(item.left.var.name, None)
            if place is not None:
                placed.append(_WireWithValue(placed[place], item.right))
                placed[place] = None
            else:
                placed.append(item)
        else:
            read = identifiers([item])
            placed.append(item)
        for name in read:
            declared.pop(name, None)
        if isinstance(item, ast.Wire):
            declared[item.name] = len(placed) - 1
    return [item for item in placed if item is not None]


def _without_empty_headings(items: list[ast.Node]) -> list[ast.Node]:
    """The items of a module without comments that stand in front of another comment, or of nothing."""
    following = [*items[1:], None]
    return [
        item
        for item, after in zip(items, following)
        if not (_is_comment(item) and (after is None or _is_comment(after)))
    ]


def _is_comment(item: ast.Node) -> bool:
    """Whether an item of a module is a comment."""
    return isinstance(item, ast.EmbeddedCode) and item.code.lstrip().startswith("//")


def _joined(parts: Iterable[ast.Node], arrays: Collection[str]) -> list[ast.Node]:
    """Parts of a concatenation; bits of a signal that lie side by side are one part. Words of ``arrays`` stay apart."""
    joined: list[ast.Node] = []
    for part in parts:
        bits = _bits(part)
        bits = None if bits and bits[0] in arrays else bits
        before = _bits(joined[-1]) if joined else None
        if bits and before and bits[0] == before[0] and bits[1] == before[2] - 1:
            high, low = (ast.IntConst(str(place)) for place in (before[1], bits[2]))
            part = ast.Partselect(ast.Identifier(bits[0]), high, low)
            joined.pop()
        joined.append(part)
    return joined


def _bits(part: ast.Node) -> tuple[str, int, int] | None:
    """Name of a signal, highest and lowest bit of a part of it; None for anything else."""
    if isinstance(part, ast.Pointer):
        bounds = (part.ptr, part.ptr)
    elif isinstance(part, ast.Partselect):
        bounds = (part.msb, part.lsb)
    else:
        return None
    if isinstance(part.var, ast.Identifier) and all(isinstance(bound, ast.IntConst) for bound in bounds):
        return part.var.name, int(bounds[0].value), int(bounds[1].value)
    return None


class _Filled:
    """A template that is filled with the same texts once: a design has the same names and numbers again and again."""

    def __init__(self, template: Any) -> None:
        self._filled = lru_cache(maxsize=4096)(lambda *values: template.render(values))
        self._render = template.render

    def render(self, values: dict[str, Any]) -> str:
        """The text of the template with ``values`` in their places."""
        try:
            return self._filled(*values.items())
        except TypeError:  # a list among the values
            return self._render(values)


class _Text(ASTCodeGenerator):
    """Text of syntax trees."""

    _arrays: Collection[str] = ()
    """Names of the arrays of the module that is written."""

    def get_template(self, filename: str) -> "_Filled":
        """The template of that file."""
        if filename not in self.template_cache:
            self.template_cache[filename] = _Filled(self.env.get_template(filename))
        return self.template_cache[filename]

    # Leaves of the tree, more than half of its nodes: of these, Pyverilog's templates hold the text alone.

    def visit_Identifier(self, node: ast.Identifier) -> str:
        """``ready``"""
        return str(node.name if node.scope is None else super().visit_Identifier(node))

    def visit_IntConst(self, node: ast.IntConst) -> str:
        """``8'd255``"""
        return str(node.value)

    def visit_Lvalue(self, node: ast.Lvalue) -> str:
        """``sum[3:0]``"""
        return del_paren(self.visit(node.var))

    def visit_Rvalue(self, node: ast.Rvalue) -> str:
        """``a + b``"""
        return del_paren(self.visit(node.var))

    def visit__WireWithValue(self, node: _WireWithValue) -> str:
        """``wire [6:0] sum = a + b;``"""
        return indent_multiline_assign(f"{self.visit(node.wire).removesuffix(';')} = {self.visit(node.value)};")

    def visit_Cond(self, node: ast.Cond) -> str:
        """``ready ? a : b`` and ``(a == b) ? c : d``; each further condition in a line."""
        condition, yes, no = (self.visit(part) for part in (node.cond, node.true_value, node.false_value))
        condition = del_paren(condition) if isinstance(node.cond, ast.UnaryOperator) else condition
        line = "\n" * isinstance(node.false_value, ast.Cond)
        return f"({condition} ? {del_paren(yes)} : {line}{del_paren(no)})"

    def visit_Concat(self, node: ast.Concat) -> str:
        """``{ a, b[3:0] }``, and ``b[3:0]`` where that is all."""
        parts = _joined(node.list, self._arrays)
        whole = parts[0] if len(parts) == 1 < len(node.list) else None
        return str(super().visit_Concat(ast.Concat(parts)) if whole is None else self.visit(whole))

    def visit_SystemCall(self, node: ast.SystemCall) -> str:
        """``$clog2(DEPTH + 1)``"""
        return f"${node.syscall}({', '.join(del_paren(self.visit(argument)) for argument in node.args)})"

    def visit_IfStatement(self, node: ast.IfStatement) -> str:
        """``if (ready) begin``"""
        return str(super().visit_IfStatement(node)).replace("if(", "if (", 1)

    def visit_ModuleDef(self, node: ast.ModuleDef) -> str:
        """``module fifo #(`` in a line, and ``) (`` between parameters and ports."""
        self._arrays = {item.name for item in node.items if isinstance(item, ast.Reg) and item.dimensions is not None}
        text = str(super().visit_ModuleDef(node))
        if node.paramlist.params:
            text = text.replace(" #\n(\n", " #(\n", 1).replace("\n)(\n", "\n) (\n", 1)
        return text.replace("\n(\n", " (\n", 1)

    def visit_InstanceList(self, node: ast.InstanceList) -> str:
        """``fifo #(.WIDTH(8), .DEPTH(16)) queue (`` in a line."""
        return _INSTANCE.sub(_first_line, str(super().visit_InstanceList(node)), count=1)


def _first_line(instance: re.Match[str]) -> str:
    """The first line of an instance: module, parameters, name."""
    module, parameters, name = instance.groups()
    return f"{module} {name} (" if parameters is None else f"{module} #({' '.join(parameters.split())}) {name} ("


@lru_cache(maxsize=1)
def _writer() -> ASTCodeGenerator:
    """Pyverilog's writer, with the templates that it has read."""
    writer = _Text()
    writer.env.globals.clear()
    return writer

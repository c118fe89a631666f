"""Verilog text to Pyverilog's syntax tree, without iverilog and without files in the working directory.

Pyverilog reads some constructs wrongly and in silence; those are refused here, on the text:
``a[i +: 8]`` becomes ``a[i:i+8]``, directives are skipped, and ``always`` without ``@`` becomes ``always @(*)``.
"""

import inspect
import re
import sys
import tempfile
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from ply import yacc
from pyverilog.vparser.ast import ModuleDef
from pyverilog.vparser.lexer import VerilogLexer
from pyverilog.vparser.parser import ParseError, VerilogParser

from bitloom.golden.docstrings import check_docstrings
from bitloom.golden.kernels.cache import cached_folder
from bitloom.golden.kernels.native import digest

from .findings import DesignError, Finding

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MISREAD = [
    (re.compile(r"[+-]:"), "indexed part selects (+: and -:) are misread by Pyverilog; use constant bounds"),
    (re.compile(r"`(?!timescale\b|default_nettype\b)\w*"), "compiler directives are not followed; write plain Verilog"),
    (re.compile(r"\balways\b(?!\s*@)"), "always needs @(posedge clk) or @(*)"),
]
TABLES = "tables.pickle"
"""File in the cache's folder that holds the parser's tables."""

_MODULE = re.compile(r"\bmodule\s+(\w+)")
_END = re.compile(r"\bendmodule\b")


class _Parser(VerilogParser):
    """VerilogParser with its tables in one file of our choice."""

    def __init__(self, tables: str):
        check_docstrings("hls_gen.check")  # ply reads the grammar from them
        self.lexer = VerilogLexer(error_func=self._lexer_error_func)
        self.lexer.build()
        self.tokens = self.lexer.tokens
        self.parser = yacc.yacc(
            module=self, method="LALR", debug=False, write_tables=False, picklefile=tables, errorlog=yacc.NullLogger()
        )


@lru_cache(maxsize=1)
def _parser() -> _Parser:
    """The parser; making its tables takes seconds, so they stay in the cache, which checks them before they are read.

    ply keeps them as a pickle, and a pickle that somebody else wrote runs what they like.
    """
    try:
        folder = cached_folder("parser", digest(*parser_version()), lambda folder: _Parser(str(folder / TABLES)))
    except OSError:  # no place to keep them
        with tempfile.TemporaryDirectory() as name:
            return _Parser(str(Path(name) / TABLES))
    return _Parser(str(folder / TABLES))


def parser_version() -> tuple[str | bytes, ...]:
    """Versions on which the parser's tables depend: of the tools that make them, and the grammar."""
    grammar = Path(inspect.getfile(VerilogParser)).read_bytes()
    return version("pyverilog"), version("ply"), sys.version, grammar


class Parsed(NamedTuple):
    """A module of a text."""

    node: ModuleDef
    """Its syntax tree, whose lines count from the module's first one."""
    lines_before: int
    """Lines of the text before that one."""


def parse(text: str) -> dict[str, Parsed]:
    """Read Verilog.

    Parameters
    ----------
    text
        Modules, one after another.

    Returns
    -------
    dict
        Name -> each module, in the order of the text.

    Raises
    ------
    DesignError
        Pyverilog can't read the text, or would misread it.
    """
    plain = _COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
    findings = [
        Finding(_module_at(plain, m.start()), f"line {plain.count(chr(10), 0, m.start()) + 1}", rule)
        for pattern, rule in _MISREAD
        for m in pattern.finditer(plain)
    ]
    if findings:
        raise DesignError(findings)
    modules = {}
    begin = 0
    for end in [*(m.end() for m in _END.finditer(plain)), len(plain)]:
        piece = plain[begin:end].strip()
        before = plain.count("\n", 0, end) - plain[begin:end].lstrip().count("\n")
        if piece:
            try:
                modules |= {name: Parsed(node, before) for name, node in _parsed(piece).items()}
            except ParseError as error:
                where = re.search(r"line:(\d+).*?(before.*|Illegal.*)", str(error))
                place, reason = (f"line {before + int(where[1])}", where[2]) if where else ("", str(error).strip(" :"))
                raise DesignError([Finding("text", place, f"Pyverilog can't read it, {reason}")]) from None
        begin = end
    return modules


@lru_cache(maxsize=128)  # designs share modules, and a design for synthesis has most of the one for simulation
def _parsed(piece: str) -> dict[str, ModuleDef]:
    """Modules of a text without comments, by name; they are not to be changed."""
    parser = _parser()
    parser.lexer.reset_lineno()
    return {module.name: module for module in parser.parse(piece).description.definitions}


def _module_at(text: str, position: int) -> str:
    """Name of the module that a place of the text belongs to."""
    names = _MODULE.findall(text, 0, position)
    return names[-1] if names else "text"

"""Verilog text to Pyverilog's syntax tree, without iverilog and without files in the working directory.

Pyverilog reads some constructs wrongly and in silence; those are refused here, on the text:
``a[i +: 8]`` becomes ``a[i:i+8]``, directives are skipped, and ``always`` without ``@`` becomes ``always @(*)``.
"""

import os
import re
import sys
import tempfile
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

from ply import yacc
from pyverilog.vparser.ast import ModuleDef
from pyverilog.vparser.lexer import VerilogLexer
from pyverilog.vparser.parser import ParseError, VerilogParser

from .findings import DesignError, Finding

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MISREAD = [
    (re.compile(r"[+-]:"), "indexed part selects (+: and -:) are misread by Pyverilog; use constant bounds"),
    (re.compile(r"`(?!timescale\b|default_nettype\b)\w*"), "compiler directives are not followed; write plain Verilog"),
    (re.compile(r"\balways\b(?!\s*@)"), "always needs @(posedge clk) or @(*)"),
]
_MODULE = re.compile(r"\bmodule\s+(\w+)")


class _Parser(VerilogParser):
    """VerilogParser with its tables in one file of our choice."""

    def __init__(self, tables: str):
        self.lexer = VerilogLexer(error_func=self._lexer_error_func)
        self.lexer.build()
        self.tokens = self.lexer.tokens
        self.parser = yacc.yacc(
            module=self, method="LALR", debug=False, write_tables=False, picklefile=tables, errorlog=yacc.NullLogger()
        )


@lru_cache(maxsize=1)
def _parser() -> _Parser:
    """The parser; making its tables takes seconds, so they stay in the user's cache folder."""
    cache = _cache()
    python = "".join(map(str, sys.version_info[:2]))
    tables = cache / f"pyverilog-{version('pyverilog')}-ply-{version('ply')}-py{python}.pickle"
    if tables.exists():
        return _Parser(str(tables))
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=cache)
    except OSError:  # no place to keep them
        folder = tempfile.TemporaryDirectory()
    with folder as name:  # made aside and moved, so that nobody reads half a file
        fresh = Path(name) / tables.name
        parser = _Parser(str(fresh))
        if fresh.exists() and fresh.parent.parent == cache:
            fresh.replace(tables)
    return parser


def _cache() -> Path:
    """``$BITLOOM_CACHE``, else ``$XDG_CACHE_HOME/bitloom``, else ``~/.cache/bitloom``; in it ``parser``."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("BITLOOM_CACHE") or base / "bitloom").expanduser() / "parser"


def parse(text: str) -> dict[str, ModuleDef]:
    """Read Verilog.

    Parameters
    ----------
    text
        Modules, one after another.

    Returns
    -------
    dict
        Name -> syntax tree of each module, in the order of the text.

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
    parser = _parser()
    parser.lexer.reset_lineno()
    try:
        modules = parser.parse(plain).description.definitions
    except ParseError as error:
        where = re.search(r"line:(\d+).*?(before.*|Illegal.*)", str(error))
        place, reason = (f"line {where[1]}", where[2]) if where else ("", str(error).strip(" :"))
        raise DesignError([Finding("text", place, f"Pyverilog can't read it, {reason}")]) from None
    return {m.name: m for m in modules}


def _module_at(text: str, position: int) -> str:
    """Name of the module that a place of the text belongs to."""
    names = _MODULE.findall(text, 0, position)
    return names[-1] if names else "text"

"""The tokens of generated Verilog, to which Verilog from a file is held. Test: tests/overlay/test_foreign_build.py.

Verilator turns Verilog into a program, and Verilog can say what that program does on this computer: ``$system`` runs a
command, ``$c`` and ```systemc_header`` are C++, ``import "DPI-C"`` calls a function of C, ```include`` and
``$readmemh`` read files, ``initial forever`` never ends. None of these can be said with the tokens below, which are all
that the generator writes. The rule is about tokens and not about grammar, so that it doesn't matter whether two parsers
read a text in the same way.

Comments may hold anything, because they are left out before a tool reads the text (`without_comments`): Verilator takes
orders from comments, too. A text that passes has neither macros nor strings, but for the names of RAM styles, so that
everybody finds the same comments in it.
"""

import re
from functools import lru_cache

from bitloom.golden.names import shown

SYSTEM_CALLS = ("clog2", "countones", "signed")
"""System functions that may stand in the text; they depend on their arguments alone."""
_KEYWORDS = """
    always assign begin case default else end endcase endmodule if input localparam module output parameter posedge
    reg signed wire
"""
_OTHER_KEYWORDS = """
    accept_on alias always_comb always_ff always_latch and assert assume automatic before bind bins binsof bit break buf
    bufif0 bufif1 byte casex casez cell chandle checker class clocking cmos config const constraint context continue
    cover covergroup coverpoint cross deassign defparam design disable dist do edge endchecker endclass endclocking
    endconfig endfunction endgenerate endgroup endinterface endpackage endprimitive endprogram endproperty endsequence
    endspecify endtable endtask enum event eventually expect export extends extern final first_match for force foreach
    forever fork forkjoin function generate genvar global highz0 highz1 iff ifnone ignore_bins illegal_bins implements
    implies import incdir include initial inout inside instance int integer interconnect interface intersect join
    join_any join_none large let liblist library local logic longint macromodule matches medium modport nand negedge
    nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or package packed pmos primitive
    priority program property protected pull0 pull1 pulldown pullup pulsestyle_ondetect pulsestyle_onevent pure rand
    randc randcase randsequence rcmos real realtime ref reject_on release repeat restrict return rnmos rpmos rtran
    rtranif0 rtranif1 s_always s_eventually s_nexttime s_until s_until_with scalared sequence shortint shortreal
    showcancelled small soft solve specify specparam static string strong strong0 strong1 struct super supply0 supply1
    sync_accept_on sync_reject_on table tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri
    tri0 tri1 triand trior trireg type typedef union unique unique0 unsigned until until_with untyped use uwire var
    vectored virtual void wait wait_order wand weak weak0 weak1 while wildcard with within wor xnor xor
"""
KEYWORDS = frozenset(_KEYWORDS.split())
"""Keywords that may stand in the text."""
RESERVED = KEYWORDS | frozenset(_OTHER_KEYWORDS.split())
"""The keywords of SystemVerilog (IEEE 1800-2017, Annex B), which are no names."""

_COMMENT = r"//[^\n]*|/\*.*?\*/"
_TOKENS = re.compile(
    rf"""
    (?P<good> [ \n]+
            | {_COMMENT}
            | \(\*[ ]ram_style[ ]=[ ]"[a-z]+"[ ]\*\) | \(\*\)      # an attribute, and @(*)
            | \#\((?= [ \n]* (?: \.[A-Za-z] | parameter\b ) )        # parameters of an instance or a module; no delay
            | \((?!\*) | :(?!:) | [])[{{}};,.@?=<>+*~&|^!-]
            | [0-9]+ (?: '[sS]?[bBoOdDhH][0-9a-fA-F]+ )? (?![0-9a-zA-Z_$']) )
  | (?P<name> [A-Za-z][A-Za-z0-9_]* )
  | (?P<call> (?<!\w) \$\w+ )
  | (?P<other> `\w* | \(\* | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_STRING_OR_COMMENT = re.compile(rf'("[^"\n]*")|{_COMMENT}', re.DOTALL)


@lru_cache(maxsize=8)  # of a text that passed: pynq reads an overlay twice, and runs of a design follow each other
def check_tokens(text: str) -> None:
    """Hold Verilog to the tokens above.

    Parameters
    ----------
    text
        Modules, one after another.

    Raises
    ------
    ValueError
        Something else stands in the text: one line, with the line of the text and the first token that isn't allowed.
    """
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        word = token.group()
        if kind == "good" or (kind == "call" and word[1:] in SYSTEM_CALLS):
            continue
        if kind == "name" and "__" not in word and (word in KEYWORDS or word not in RESERVED):
            continue
        line = text.count("\n", 0, token.start()) + 1
        rule = "Verilog must consist of the tokens of generated Verilog"
        raise ValueError(f"line {line}: {rule}, got {shown(word)}")


def without_comments(text: str) -> str:
    """Verilog with a blank in place of each comment; lines stay where they are."""
    return _STRING_OR_COMMENT.sub(lambda m: m[1] or " " + "\n" * m[0].count("\n"), text)

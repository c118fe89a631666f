"""The text of a generated module: a header of comments that explains it, and lines that fit on a screen.

    Veriloggen's text --> header before ``module``, long lines broken at spaces --> what is written to a file

Neither changes a token of the Verilog: the header is comments, and a line is broken only where a space is.
"""

import re
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

LINE = 120
"""Characters of a line at most."""

_SECTION = re.compile(r"\n[^\n]+\n-{3,}(\n|$)")
_PRAGMAS = ("verilator", "synthesis", "synopsys", "pragma", "translate_off", "translate_on", "xilinx", "ambit")
_OPERATORS = ("|", "&", "^", "+", "-", "*", "?", ":", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "<<", ">>", ">>>")


@dataclass(frozen=True)
class Header:
    """The text of the comment at the beginning of a module, apart from its ports."""

    contract: str
    """Docstring of the file or function that makes the module. It is taken up to the first section that has its title
    underlined (``Parameters``, ``Notes``, ...)."""
    rate: str
    """How many words, beats or values the module takes in how many cycles."""
    latency: str
    """Cycles from which input to which output, in numbers of this very module."""
    parameters: Mapping[str, object] = field(default_factory=dict)
    """Parameters for which the module was generated: name and value."""


def header_lines(
    name: str, header: Header, ports: Iterable[tuple[str, str]], parameters: Iterable[tuple[str, str]] = ()
) -> list[str]:
    """The comment lines of a module.

    Parameters
    ----------
    name
        Name of the module.
    header
        Facts of the module that are said in the header.
    ports
        Name and meaning of each port, in order.
    parameters
        Name and meaning of each parameter that instances set, in order.

    Raises
    ------
    ValueError
        If a line would be read as an instruction to a tool (``// verilator ...``), or isn't printable ASCII.
    """
    body = [name, "", *contract_lines(header.contract), "", f"Rate: {header.rate}.", f"Latency: {header.latency}."]
    if header.parameters:
        body.append("Parameters: " + ", ".join(f"{key} = {value}" for key, value in header.parameters.items()) + ".")
    named = {"Parameters": list(parameters), "Ports": list(ports)}
    longest = max((len(port) for told in named.values() for port, _ in told), default=0)
    for title, told in named.items():
        if told:
            body += ["", f"{title}:", *(f"  {port:{longest}}  {meaning}" for port, meaning in told)]
    lines = []
    for line in body:
        hang = " " * (longest + 4) if line.startswith("  ") and longest else "    "
        wrapped = textwrap.wrap(line, LINE - 3, subsequent_indent=hang) if len(line) > LINE - 3 else [line]
        lines += [f"// {part}".rstrip() for part in wrapped]
    for line in lines:
        word = line[2:].strip().partition(" ")[0]
        if word in _PRAGMAS or not (line.isascii() and line.isprintable()):  # a line's end would end the comment
            raise ValueError(f"{name}: a comment must be printable ASCII and begin with no tool's name, got {line!r}")
    return lines


def contract_lines(docstring: str) -> list[str]:
    """A docstring as lines for a comment: without code marks, and without what follows from the first section on.

    Parameters
    ----------
    docstring
        In NumPy's form; indented blocks (pictures, tables) stay as they are, other paragraphs are filled anew.
    """
    first, _, rest = docstring.partition("\n")
    whole = f"{first}\n{textwrap.dedent(rest)}".rstrip()
    section = _SECTION.search(whole)
    text = (whole[: section.start()] if section else whole).strip().replace("``", "")
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        plain = not any(line.startswith((" ", "- ")) for line in paragraph.splitlines())
        lines += ["", *(textwrap.wrap(paragraph, LINE - 3) if plain else paragraph.splitlines())]
    return lines[1:]


def section_comment(text: str) -> str:
    """``text`` as comment lines behind an empty line, short enough to stand indented in a module."""
    return "".join(f"\n// {line}" for line in textwrap.wrap(text, LINE - len("  // ")))


def broken_lines(text: str) -> str:
    """``text`` with every line of more than LINE characters broken, at spaces only.

    The place is after a comma or before an operator, as far outside of brackets as there is one in the line's second
    half. What follows is indented by four more characters. Lines with a string stay whole. Spaces at the ends of lines
    go, and so does an empty line after an empty line.

    Parameters
    ----------
    text
        Verilog without long comments.
    """
    lines: list[str] = []
    for line in map(str.rstrip, text.split("\n")):
        if not line and lines and not lines[-1]:
            continue
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        while len(line) > LINE and '"' not in line and (place := _break(line, len(indent))):
            lines.append(line[:place].rstrip())
            line = indent + line[place + 1 :].lstrip()
        lines.append(line)
    return "\n".join(lines)


def _break(line: str, least: int) -> int:
    """The space at which to break ``line``, 0 where there is none after its indentation."""
    best = (1 << 30, 0)
    depth = 0
    fallback = 0
    for place, character in enumerate(line[: LINE + 1]):
        depth += (character in "([{") - (character in ")]}")
        if character != " " or place <= least:
            continue
        fallback = place
        after = line[place + 1 :].partition(" ")[0]
        if place > LINE // 2 and (line[place - 1] == "," or after in _OPERATORS):
            best = min(best, (depth, -place))
    return -best[1] or fallback

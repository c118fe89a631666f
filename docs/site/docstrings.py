"""Griffe extension: bitloom's docstrings, which are written to be read as text, become Markdown.

    kfp : input lanes, >= 1.  kgp : PEs.        - `kfp`: input lanes, >= 1.
    planes : 0, or 2..8 bit planes              - `kgp`: PEs.
        side by side.                  -->      - `planes`: 0, or 2..8 bit planes side by side.

Columns stay as drawn.
"""

import re
from itertools import pairwise
from typing import Any

import griffe

WIDTH = 120
"""Of a source line. Where the next line's first word had no room within it, the line was broken for that reason."""

NAMES = r"[A-Za-z_]\w*(?:, [A-Za-z_]\w*)*"
ITEM = re.compile(rf"({NAMES}) : (.*)")
BETWEEN = re.compile(rf"(?<=\.) +(?={NAMES} : )")
COLUMNS = re.compile(r"^[ =]+$|\S {3,}\S")
CODE_OR_TAG = re.compile(r"(`+)(.+?)\1|<", re.S)


class Docstrings(griffe.Extension):
    """Rewrites every docstring that is shown."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value, WIDTH - 4 * _depth(obj))


def _depth(obj: griffe.Object) -> int:
    """Steps of indentation of the object's docstring."""
    depth = int(obj.is_class or obj.is_function)
    while obj.parent is not None and not obj.parent.is_module:
        depth, obj = depth + 1, obj.parent
    return depth


def markdown(text: str, width: int = WIDTH) -> str:
    """Docstring, broken to lines of ``width`` -> Markdown."""
    return "\n\n".join(_paragraph(part.strip("\n"), width) for part in re.split(r"\n{2,}", text))


def _paragraph(text: str, width: int) -> str:
    if text.startswith("    "):
        return text  # a drawing, or code
    lines = text.split("\n")
    if sum(bool(COLUMNS.search(line)) for line in lines) > 1:
        return "\n".join(["```text", *lines, "```"])
    text = CODE_OR_TAG.sub(lambda found: found.group() if found[1] else "&lt;", text)
    if not any(ITEM.match(line) or BETWEEN.search(line) for line in text.split("\n")):
        return text
    parts = [part for line in _sentences(text.split("\n"), width) for part in BETWEEN.split(line)]
    items = [(f"- `{item[1]}`: {item[2]}" if (item := ITEM.match(part)) else part) for part in parts]
    out = items[:1]
    for before, item in pairwise(items):
        out += [item] if before.startswith("- ") == item.startswith("- ") else ["", item]
    return "\n".join(out)


def _sentences(lines: list[str], width: int) -> list[str]:
    """Lines, each with those that continue it: indented ones, and those after a full line."""
    out, before = [lines[0]], lines[0]
    for line in lines[1:]:
        full = len(before) + 1 + len(line.split()[0]) > width
        if line.startswith("    ") or (full and not ITEM.match(line)):
            out[-1] += " " + line.strip()
        else:
            out.append(line)
        before = line
    return out

"""A table of a file's nodes and what they became: for the terminal, as Markdown, and as a page with a picture."""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from bitloom.golden.atomic import inside, write_bytes

from .choose import costs_text
from .emit import Built
from .errors import printable
from .imported import Imported
from .operations import Concatenation, Layout, Linear, Operation
from .verify import Checked

HEADINGS = ("node", "operator", "became", "how")

_MARKUP = re.compile(r"[\\`*\[\]<>&|~$!]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that mean something in Markdown; names of nodes are a stranger's and may have any."""

ROW_PIXELS, LEFT, RIGHT, WIDTH = 26, 400, 510, 900
"""Measures of the picture: height of a row, where lines begin and end, and width of the picture."""
LETTERS = 44
"""Letters of a box's text at most: so many fit, all of them wide; the whole text is in the box's title."""


def rows(imported: Imported) -> list[list[str]]:
    """One row a node: its name, its operator, what it became, and how.

    Returns
    -------
    list of list of str
        Cells under HEADINGS.
    """
    owner = {node: built for built in imported.emitted.built for node in built.nodes}
    on_the_way = {operation.name for operation in imported.graph.operations}
    kinds: dict[str, set[type[Operation]]] = {}
    for operation in imported.operations.operations:
        kinds.setdefault(operation.name, set()).add(type(operation))
    out = []
    behind = False
    for node in imported.source.nodes:
        built = owner.get(node.name)
        behind = behind or built is not None
        if built is not None:
            became = ", ".join(built.layers)
            how = _how(kinds[node.name], built)
        elif node.name in on_the_way:
            became = "host"
            how = "after the accelerator" if behind else "before the accelerator"
        elif node.name in kinds:
            became = "nothing"
            how = "the output doesn't depend on it"
        else:
            became = "constant"
            how = "computed"
        out.append([printable(node.name), printable(node.op), became, how])
    return out


def _how(kinds: set[type[Operation]], built: Built) -> str:
    """In words, how the layers compute a node that became operations of these kinds."""
    if Linear in kinds:
        low, high = built.range
        share = f", {built.used:.0%} of them not 0" if built.used < 0.5 else ""
        return f"weights {built.weights}{share}, sums {low:,} .. {high:,}, {built.engine} engine"
    if kinds == {Layout}:
        return "an order of values, which the weights follow"
    if not built.map_encoding:
        return "scores, by the host"
    if Concatenation in kinds:
        return f"channels behind one another: {built.map_encoding}"
    falling = f", {built.falling} of them falling" if built.falling else ""
    if built.wrong[0]:
        return f"{built.levels} levels, {built.wrong[0]:,} sums off by {built.wrong[1]}: {built.map_encoding}"
    return f"{built.levels} levels a channel{falling}, exact: {built.map_encoding}"


def write_explanation(imported: Imported, checked: Sequence[Checked], model: Path) -> list[Path]:
    """Write the explanation beside a model.

    Parameters
    ----------
    imported : Imported
    checked : sequence of Checked
        Rewritings that were verified.
    model : path
        The model's file.

    Returns
    -------
    list of path
        The files: Markdown and HTML.
    """
    name = imported.model.network.name
    verified = [[printable(c.name), c.against, f"{c.values:,}", f"{c.ties:,}"] for c in checked]
    costs = [list(row) for row in costs_text(imported.choice.costs).items()]
    tables = (
        ("Nodes", HEADINGS, rows(imported)),
        *([("Engines", ("engine", "LUTs of PEs"), costs)] if costs else []),
        ("Verified", ("rewriting", "against", "values", "ties"), verified),
    )
    text = [f"# {name}: what became of each node", "", f"Engine: {imported.choice.why}.", ""]
    for title, headings, body in tables:
        text += [f"## {title}", "", _markdown(headings), _markdown(["---"] * len(headings)), *map(_markdown, body), ""]
    page = [_HEAD.format(name=escape(name)), f"<p>Engine: {escape(imported.choice.why)}.</p>", picture(imported)]
    for title, headings, body in tables:
        page += [f"<h2>{title}</h2><table>", _html(headings, "th"), *(_html(row, "td") for row in body), "</table>"]
    written = [inside(model.parent, model.with_suffix(f".import.{kind}").name) for kind in ("md", "html")]
    write_bytes(written[0], "\n".join(text).encode())
    write_bytes(written[1], ("\n".join(page) + "\n").encode())
    return written


def _markdown(cells: Sequence[str]) -> str:
    return "| " + " | ".join(_MARKUP.sub(lambda match: f"&#{ord(match[0])};", cell) for cell in cells) + " |"


def _html(cells: Sequence[str], kind: str) -> str:
    return "<tr>" + "".join(f"<{kind}>{escape(cell)}</{kind}>" for cell in cells) + "</tr>"


_HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{name}</title><style>
body {{ font: 15px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; font-size: 13px; display: block; overflow-x: auto }}
td, th {{ border: 1px solid #bbb; padding: .2rem .5rem; text-align: left }}
svg {{ max-width: 100% }}
</style></head><body><h1>{name}: what became of each node</h1>"""


def picture(imported: Imported) -> str:
    """The file's nodes on the left, what they became on the right: an SVG element.

    Nodes behind one another that became the same share a box, which stands beside them. So boxes don't overlap, and
    lines don't cross: what the host does before and after the accelerator are two boxes.
    """
    table = rows(imported)
    height = ROW_PIXELS * (len(table) + 1)
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" font-family="sans-serif" font-size="12">']
    begin = 0
    for became, run in groupby(table, key=lambda row: row[2]):
        nodes = list(run)
        middle = ROW_PIXELS * (begin + (len(nodes) + 1) / 2)
        for number, (node, op, _, _) in enumerate(nodes, begin):
            y = ROW_PIXELS * (number + 1)
            parts.append(_box(4, y, LEFT - 4, f"{op}  {node}", "#eef3fb"))
            bend = (LEFT + RIGHT) // 2
            parts.append(
                f'<path d="M{LEFT} {y} C{bend} {y} {bend} {middle:g} {RIGHT} {middle:g}" fill="none" stroke="#999"/>'
            )
        parts.append(_box(RIGHT, middle, WIDTH - RIGHT - 4, became, "#f6efe2"))
        begin += len(nodes)
    return "\n".join([*parts, "</svg>"])


def _box(x: float, y: float, width: float, text: str, colour: str) -> str:
    short = text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"
    return (
        f"<g><title>{escape(text)}</title>"
        f'<rect x="{x:g}" y="{y - 9:g}" width="{width:g}" height="18" rx="3" fill="{colour}" stroke="#777"/>'
        f'<text x="{x + 6:g}" y="{y + 4:g}">{escape(short)}</text></g>'
    )

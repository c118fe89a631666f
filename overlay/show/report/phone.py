"""Tables for narrow screens, where rows become blocks: each cell carries the heading of its column."""

import re
from html import escape
from html.parser import HTMLParser

_TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
_ROW = re.compile(r"<tr\b.*?</tr>", re.DOTALL)
_CELL = re.compile(r"<(t[hd])\b([^>]*)>(.*?)</\1>", re.DOTALL)


class _Words(HTMLParser):
    """The text in a piece of HTML."""

    def __init__(self, piece: str) -> None:
        super().__init__()
        self.text = ""
        self.feed(piece)
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data


def labelled_cells(page: str) -> str:
    """The page, with an attribute ``data-label`` on each cell of a table's body whose column has a heading.

    The style sheet shows it where the screen is narrow. Tables are those of our template: a row of headings, and rows
    with a cell a column, of which the first names the row.
    """
    return _TABLE.sub(lambda table: _labelled(table[0]), page)


def _labelled(table: str) -> str:
    """The table with labels."""
    head, mark, body = table.partition("<tbody>")
    headings = [" ".join(_Words(cell[3]).text.split()) for cell in _CELL.finditer(head)]
    return head + mark + _ROW.sub(lambda row: _row(row[0], headings), body)


def _row(row: str, headings: list[str]) -> str:
    """The row with labels; one with a cell over several columns has none."""
    if "colspan" in row:
        return row
    labels = iter(headings)

    def cell(match: "re.Match[str]") -> str:
        kind, attributes, content = match.groups()
        label = next(labels, "")
        if kind == "th" or not label:
            return match[0]
        return f'<td data-label="{escape(label)}"{attributes}>{content}</td>'

    return _CELL.sub(cell, row)

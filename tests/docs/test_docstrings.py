"""Docstrings as Markdown (docs/site/docstrings.py)."""

import importlib.util

import pytest

from .blocks import ROOT

SPEC = importlib.util.spec_from_file_location("docstrings", ROOT / "docs" / "site" / "docstrings.py")
docstrings = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(docstrings)

FULL = "a : " + "word " * 22 + "ends"
CASES = {
    "prose": ("One line.\nAnother.", "One line.\nAnother."),
    "items": ("Text.\n\na : one.\nb, c : two\n    lines.\nEnd.", "Text.\n\n- `a`: one.\n- `b, c`: two lines.\n\nEnd."),
    "items in a line": ("Text. a : one.  b : two.", "Text.\n\n- `a`: one.\n- `b`: two."),
    "full line": (f"{FULL}\nof it.", f"- `a`: {FULL[4:]} of it."),
    "line with room": (f"{FULL}\nI am.", f"- `a`: {FULL[4:]}\n\nI am."),
    "line that ended": ("a : one.\nRaises ValueError.", "- `a`: one.\n\nRaises ValueError."),
    "text after items": ("a : one.\nText.\nMore.", "- `a`: one.\n\nText.\nMore."),
    "no item": ("``a``: one. Not a : b here", "``a``: one. Not a : b here"),
    "drawing": ("    a --> b\n\nText.", "    a --> b\n\nText."),
    "columns": ("x/<name>    one\nyyy         two", "```text\nx/<name>    one\nyyy         two\n```"),
    "rules": ("====  ====\na     b\n====  ====", "```text\n====  ====\na     b\n====  ====\n```"),
    "tags": ("Files <stem>.bit and ``<stem>.hwh``.", "Files &lt;stem>.bit and ``<stem>.hwh``."),
}


@pytest.mark.parametrize(("text", "wanted"), CASES.values(), ids=CASES)
def test_markdown(text, wanted):
    assert docstrings.markdown(text) == wanted

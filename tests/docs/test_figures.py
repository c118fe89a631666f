"""Figures in README.md and docs/reference/figures.md: one number a cell, with a unit and a command that exists."""

import re
import shlex
from pathlib import Path

import click

from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from bitloom.overlay.cli.group import bitloom
from tests.overlay.build.test_real_networks import FIGURES

from .blocks import ROOT

README = ROOT / "README.md"
PAGE = ROOT / "docs" / "reference" / "figures.md"


def rows(path: Path, heading: str) -> list[list[str]]:
    """Rows of the tables whose heads end in ``heading``, as cells without the row of dashes."""
    table = []
    inside = False
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if not inside:
            inside = " | ".join(cells).endswith(heading)
            continue
        inside = bool(cells)
        if cells and set("".join(cells)) != {"-"}:
            table.append(cells)
    return table


FIGURE_ROWS = [(path.name, *row) for path in (README, PAGE) for row in rows(path, "figure | unit | command")]
DESIGN_ROWS = rows(PAGE, "cycles a frame | latency, cycles | command")


def test_designs_are_as_measured():
    stated = {name: tuple(int(cell.replace(",", "")) for cell in numbers) for name, *numbers, _ in DESIGN_ROWS}
    assert stated == FIGURES
    assert [command for *_, command in DESIGN_ROWS] == [f"`bitloom bench {name}`" for name in stated]
    assert set(stated) == set(REFERENCE_DESIGNS)


def commands() -> list[str]:
    texts = {row[-1].strip("`") for row in (*FIGURE_ROWS, *DESIGN_ROWS)}
    return sorted(part.strip() for text in texts for part in text.split("&&"))


def test_commands_exist():
    """They are parsed, not run."""
    stated = commands()
    assert len(stated) > 5
    for text in stated:
        first, *words = shlex.split(text)
        if first == "make":
            assert re.search(rf"^{words[0]}:", (ROOT / "Makefile").read_text(), re.M)
        elif first == "python":
            assert words[:2] == ["-m", "pytest"]
            assert (ROOT / words[2]).exists()
        else:
            assert first == "bitloom"
            context = click.Context(bitloom, **bitloom.context_settings)  # click keeps the names of a command's help
            name, command, arguments = bitloom.resolve_command(context, words)
            assert command is not None
            command.make_context(name, arguments, parent=context)

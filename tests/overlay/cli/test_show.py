"""Tables of commands: on terminals of every width, and where there is none, nothing of a cell is missing."""

import contextlib
import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from bitloom.overlay.cli import progress, show
from tests.paths import ROOT
from tests.printed import lines, row

HEADER = ["", "ms of 1", "x fp32 of 1", "ms of 16", "x fp32 of 16", "input B", "weights B"]
FIGURES = ["1,234,567.800", "10.3", "12,343.444", "1.0", "12,345", "44,434,444"]
PATH = "/a/path/that/is/longer/than/any/of/the/terminals/here/and/has/no/space"


def printed(capsys: pytest.CaptureFixture[str], call, *arguments, **options) -> str:
    call(*arguments, **options)
    return capsys.readouterr().out


def set_width(monkeypatch: pytest.MonkeyPatch, width: int | None) -> None:
    if width is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", str(width))


@pytest.mark.parametrize("width", [None, 200, 80, 60, 40, 1])
def test_every_figure_is_printed_whole(monkeypatch, capsys, width) -> None:
    set_width(monkeypatch, width)
    text = printed(capsys, show.grid, "shape", HEADER, [["avx512vpopcntdq", *FIGURES], ["torch", *["not run"] * 6]])
    assert row(text, "avx512vpopcntdq") == FIGURES
    assert "…" not in text
    longest = max(map(len, text.splitlines()))
    if width in (80, 60, 40):
        assert longest <= width
    if width is None:
        assert len(lines(text)) == 3, "one table, headings in one line"


def test_parts_have_the_label_columns_each(monkeypatch, capsys) -> None:
    set_width(monkeypatch, 40)
    header, rows = ["accumulate", "structure", "LUT", "FF", "levels"], [["popcount", "collect", "1,234", "567", "8"]]
    text = printed(capsys, show.grid, "areas", header, rows, labels=2)
    assert [line for line in lines(text) if line[0] == "popcount"] == [
        ["popcount", "collect", "1,234", "567"], ["popcount", "collect", "8"],
    ]  # fmt: skip


def test_headings_are_wrapped_before_a_table_is_parted(monkeypatch, capsys) -> None:
    set_width(monkeypatch, 42)
    text = printed(capsys, show.grid, "t", ["layer", "cycles gained by input", "tuple words"], [["c", "1.5", "2,345"]])
    assert row(text, "c") == ["1.5", "2,345"]
    assert sum(line[0] == "c" for line in lines(text)) == 1
    assert max(map(len, text.splitlines())) <= 42


@pytest.mark.parametrize("width", [None, 60, 30])
def test_values_are_wrapped_between_words(monkeypatch, capsys, width) -> None:
    set_width(monkeypatch, width)
    mapping = "[0, 1, 1, 22222, 33333, 44444, 55555, 66666, 77777, 88888]"
    values = {"file": PATH, "mapping": mapping, "digest": "0ab1" * 16}
    text = printed(capsys, show.table, f"title {PATH}", values)
    assert text.splitlines()[0] == f"title {PATH}"
    words = [word for line in lines(text) for word in line[1].split()]
    assert words == " ".join(values.values()).split()
    assert [line[0] for line in lines(text) if line[0]] == list(values)


LONG = "model_1/block_13_expand/a_long_name_of_keras/BiasAdd;model_1/block_13_expand/Relu"
EXPLAINED = ["DEPTHWISE_CONV_2D", "requantise_13, depthwise_13", "weights signed 8 bit, sums -18,800,640 .. 18,653,760"]


@pytest.mark.parametrize("width", [None, 80])
def test_prose_fits_80_columns(monkeypatch, capsys, width) -> None:
    """In a narrow terminal and where there is none; a stranger's names are wrapped inside where nothing else helps."""
    set_width(monkeypatch, width)
    header = ["node", "operator", "became", "how"]
    text = printed(capsys, show.grid, "t", header, [[LONG, *EXPLAINED], ["CONV_2D_0", *EXPLAINED]], labels=3)
    assert max(map(len, text.splitlines())) <= 80
    cells = list(zip(*lines(text)[1:]))
    assert "".join(cells[0]) == f"{LONG}CONV_2D_0"
    assert " ".join(" ".join(cells[3]).split()) == f"{EXPLAINED[2]} {EXPLAINED[2]}"
    values = {"name": " ".join(["word"] * 40), "digest": "0123456789abcdef"}
    assert max(map(len, printed(capsys, show.table, "t", values).splitlines())) <= 80


def test_cells_are_no_markup(capsys) -> None:
    cells = ["[bold]signal[/bold]", ":smile:", "[3]"]
    text = printed(capsys, show.grid, "t [red]", cells, [cells])
    assert lines(text) == [cells, cells]
    assert text.startswith("t [red]\n")


WORDS = st.text("abc019.,", min_size=1, max_size=12)


@settings(max_examples=50, deadline=None)
@given(st.data(), st.integers(1, 5), st.one_of(st.none(), st.integers(1, 90)))
def test_no_word_is_ever_cut(data, columns, width) -> None:
    cells = st.lists(WORDS, max_size=3).map(" ".join)
    header = data.draw(st.lists(cells, min_size=columns, max_size=columns))
    rows = data.draw(st.lists(st.lists(cells, min_size=columns, max_size=columns), max_size=3))
    labels = data.draw(st.integers(1, columns))
    with pytest.MonkeyPatch.context() as patch:
        set_width(patch, width)
        found = _captured(show.grid, "title", header, rows, labels=labels)
    words = [word for line in lines(found) for cell in line for word in cell.split()]
    wanted = [word for line in (header, *rows) for cell in line for word in cell.split()]
    assert set(words) == set(wanted)
    if width is None:
        assert sorted(words) == sorted(wanted)


def _captured(call, *arguments, **options) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        call(*arguments, **options)
    return out.getvalue()


@pytest.mark.parametrize(("width", "parts"), [(120, 1), (60, 2)])
def test_a_terminals_width_counts(width, parts) -> None:
    """In a terminal without COLUMNS; output that goes elsewhere ignores the terminal."""
    script = (
        f"from bitloom.overlay.cli.show import grid\ngrid('shape', {HEADER!r}, [['avx512vpopcntdq', *{FIGURES!r}]])"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment |= {"PYTHONPATH": str(ROOT / "src"), "TERM": "dumb"}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    command = [sys.executable, "-c", script]
    with open(ours, "rb", buffering=0) as output:
        subprocess.run(command, env=environment, stdin=theirs, stdout=theirs, check=True)
        text = output.read(1 << 16).decode().replace("\r\n", "\n")
        piped = subprocess.run(command, env=environment, stdin=theirs, stdout=subprocess.PIPE, check=True)
    os.close(theirs)
    assert row(text, "avx512vpopcntdq") == FIGURES
    assert sum(line[0] == "avx512vpopcntdq" for line in lines(text)) == parts
    assert len(lines(piped.stdout.decode())) == 2


def test_names_in_brackets_are_no_markup(monkeypatch) -> None:
    """Paths and names come from outside, and rich takes brackets for markup."""
    out = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "console", Console(file=out, force_terminal=True, width=120))
    for brackets in ("[/x] net", "[bold] net"):
        with progress.bar(f"{brackets}: searching") as update:
            update(1, 2)
        with progress.working(brackets):
            pass
        assert f"{brackets}: searching" in out.getvalue()


def test_an_error_line_steers_no_terminal() -> None:
    @show.one_line_errors
    def fail() -> None:
        raise ValueError("\x1b[31mred\a: name must be short, got \u202e")

    with pytest.raises(SystemExit, match=r"^bitloom: \\x1b\[31mred\\x07: name must be short, got \\u202e$"):
        fail()

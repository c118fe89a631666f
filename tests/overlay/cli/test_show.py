"""Tables of commands: on terminals of every width, and where there is none, nothing of a cell is missing."""

import io

import pytest
from rich.console import Console

from bitloom.overlay.cli import progress, show
from tests.printed import lines, row

HEADER = ["", "ms of 1", "x fp32 of 1", "ms of 16", "x fp32 of 16", "input B", "weights B"]
FIGURES = ["1,234,567.800", "10.3", "12,343.444", "1.0", "12,345", "44,434,444"]


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
    header = ["accumulate", "structure", "LUT", "FF", "levels"]
    rows = [["popcount", "collect", "1,234", "567", "8"]]
    text = printed(capsys, show.grid, "areas", header, rows, labels=2)
    shown = [line for line in lines(text) if line[0] == "popcount"]
    assert shown == [["popcount", "collect", "1,234", "567"], ["popcount", "collect", "8"]]


def test_cells_are_no_markup(capsys) -> None:
    cells = ["[bold]signal[/bold]", ":smile:", "[3]"]
    text = printed(capsys, show.grid, "t [red]", cells, [cells])
    assert lines(text) == [cells, cells]
    assert text.startswith("t [red]\n")


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


def test_a_folder_that_can_not_be_made_is_told(tmp_path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "file").write_text("")
    for name, got in (("link", "a link to nothing"), ("file", "a file")):
        with pytest.raises(SystemExit) as error:
            show.one_line_errors((tmp_path / name).mkdir)(exist_ok=True)
        assert error.value.code == f"bitloom: {tmp_path / name}: must be a folder, got {got}"

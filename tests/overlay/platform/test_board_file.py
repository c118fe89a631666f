"""A board from a TOML file: what is read, what is refused, and that the commands take it."""

from dataclasses import replace
from pathlib import Path

import pytest

from bitloom.overlay.cli.explore import _budget
from bitloom.overlay.explore.budget import Budget
from bitloom.overlay.platform.board_file import MOST_BYTES, find_board, load_board
from bitloom.overlay.platform.boards import BOARDS, Board, board
from tests.commands import call
from tests.errors import value_error

TEXT = """\
# The small one.
name = "AUP-ZU3-4GB"
part = "xczu3eg-sfvc784-2-e"
board_part = "realdigital.org:aup-zu3-4gb:part0"
board_files = "https://www.realdigital.org"

[budget]
lut = 60_000
ff = 141_120
bram36 = 216
dsp = 360
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(TEXT)
    return path


def test_a_board_of_ones_own(path: Path) -> None:
    mine = find_board(str(path))
    source = ("realdigital.org:aup-zu3-4gb:part0", "https://www.realdigital.org")
    assert mine == Board("AUP-ZU3-4GB", "xczu3eg-sfvc784-2-e", 60_000, 141_120, 216, 360, 18_000, *source)
    assert (mine.arch, mine.device) == ("zynqmp", ("xczu3eg", "sfvc784", "-2-e"))
    path.write_text(TEXT.replace("dsp = 360", "dsp = 360\nlutram = 28_800"))
    assert load_board(path) == replace(mine, lutram=28_800)
    path.write_text(TEXT.replace('board_files = "https://www.realdigital.org"\n', ""))
    assert load_board(path).board_files == "the board's maker"


def test_names_are_boards_of_ours() -> None:
    assert find_board("aup-zu3") is board("AUP-ZU3") is BOARDS["AUP-ZU3"]
    with value_error(f"board: name must be one of {', '.join(BOARDS)}, got 'zed'"):
        find_board("zed")


DEVICES = {
    "Pynq-Z1": ("zynq", ("xc7z020", "clg400", "-1")),
    "KV260": ("zynqmp", ("xck26", "sfvc784", "-2LV-c")),
    "ZCU104": ("zynqmp", ("xczu7ev", "ffvc1156", "-2-e")),
    "Ultra96": ("zynqmp", ("xczu3eg", "sbva484", "-1-i")),
    "Cora-Z7-07S": ("zynq", ("xc7z007s", "clg400", "-1")),
    "RFSoC4x2": ("zynqmp", ("xczu48dr", "ffvg1517", "-2-e")),
}


@pytest.mark.parametrize(("name", "arch", "device"), [(name, *of_board) for name, of_board in DEVICES.items()])
def test_parts(name: str, arch: str, device: tuple[str, str, str]) -> None:
    assert (BOARDS[name].arch, BOARDS[name].device) == (arch, device)


BOARD = "board AUP-ZU3-4GB:"
PART = "part must be a Zynq with package and speed grade, such as xc7z020clg400-1, got 'xc7a100t'"
NAME = "name must be 1..64 of A-Z, a-z, 0-9, _, - and ., not beginning with - or ., got 'a/b'"
WITH_VERSION = "board_part must be vendor:board:part0, without a version, got 'realdigital.org:aup-zu3-4gb:part0:1.0'"
BUDGET = "[budget]\nlut = 60_000\nff = 141_120\nbram36 = 216\ndsp = 360"
KEYS = "keys must be name, part, board_part, board_files, budget, got 'resources'"
LUTS = "board: budget: lut must be an integer 1..10000000, got"
DEEP = "a board must have <= 32 brackets, got 33"
CASES = {
    "part": ('"xczu3eg-sfvc784-2-e"', '"xc7a100t"', f"{BOARD} {PART}"),
    "name": ('"AUP-ZU3-4GB"', '"a/b"', f"board: {NAME}"),
    "version": ("4gb:part0", "4gb:part0:1.0", f"{BOARD} {WITH_VERSION}"),
    "source": (
        "https://www.realdigital.org",
        "\\u0007",
        f"{BOARD} board_files must be 1..200 printable ASCII characters, got '\\x07'",
    ),
    "key": ("dsp = 360", "dsp = 360\nuram = 4", "board: budget: keys must be lut, lutram, ff, bram36, dsp, got 'uram'"),
    "table": ("[budget]", "[resources]", f"board: {KEYS}"),
    "no table": (BUDGET, "", "board: budget must be a table, got None"),
    "missing": ("lut = 60_000\n", "", f"{LUTS} None"),
    "float": ("60_000", "6e4", f"{LUTS} 60000.0"),
    "true": ("216", "true", "board: budget: bram36 must be an integer 1..100000, got True"),
    "zero": ("360", "0", "board: budget: dsp must be an integer 1..100000, got 0"),
    "memory": (
        "lut = 60_000",
        "lut = 60_000\nlutram = 60_001",
        f"{BOARD} lutram must be <= 60000, its LUTs, got 60001",
    ),
    "text": ('name = "AUP-ZU3-4GB"', "name = 3", "board: name must be a non-empty string, got 3"),
    "deep": ("lut = 60_000", f"lut = {'[' * 32}{']' * 32}", DEEP),
    "tables": ("lut = 60_000", f"lut = {'{a = ' * 32}1{'}' * 32}", DEEP),
}
"""Text of a board file, the text that is written instead, and the message."""


@pytest.mark.parametrize("case", CASES)
def test_what_is_refused(path: Path, case: str) -> None:
    old, new, message = CASES[case]
    assert old in TEXT
    path.write_text(TEXT.replace(old, new))
    with value_error(f"{path}: {message}"):
        load_board(path)


def test_as_many_brackets_as_may_be(path: Path) -> None:
    """One begins the table of the budget."""
    path.write_text(f"{TEXT}# {'[{' * 15}[")
    assert load_board(path).lut == 60_000


def test_what_is_no_toml(path: Path) -> None:
    path.write_text("name = ")
    with value_error(f"{path}: a board must be TOML, got: Invalid value (at end of document)"):
        load_board(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=f"^{path}: a board must be TOML, got: 'utf-8' codec can't decode byte 0xff"):
        load_board(path)
    path.write_text("#" * (MOST_BYTES + 1))
    with value_error(f"{path}: a board must be <= 16,384 bytes, got 16,385"):
        load_board(path)


def test_the_commands_take_it(path: Path, tmp_path: Path) -> None:
    """Budget of explore, sources of machine; build does the same as machine."""
    limits = dict.fromkeys(("lut", "lutram", "dsp", "lanes", "cycles"))
    limit = _budget(str(path), 0.0, None, None, None, 100.0, bram36=100.0, **limits)
    assert limit == Budget(lut=60_000, lutram=18_000, ff=141_120, bram36=100, dsp=360)
    out = tmp_path / "made"
    result = call("machine", "--slaves", "1", "--board", path, "--out", out)
    assert result.exit_code == 0, result.output
    told = (out / "vivado" / "design.tcl").read_text()
    assert "\nset board AUP-ZU3-4GB\nset board_part realdigital.org:aup-zu3-4gb:part0\n" in told
    assert "\nset part xczu3eg-sfvc784-2-e\n" in told


def test_commands_say_what_is_wrong(tmp_path: Path) -> None:
    missing = call("explore", "digits-cnn", "--board", tmp_path / "no.toml")
    assert missing.exit_code == 1
    assert missing.output == f"bitloom: {tmp_path / 'no.toml'}: must exist, got no such file or folder\n"
    unknown = call("explore", "digits-cnn", "--board", "zed")
    assert unknown.exit_code == 2
    assert unknown.output.endswith("RFSoC4x2, or a TOML file of your own board, got 'zed'\n")

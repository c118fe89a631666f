"""The folder of a build: old or new, whatever happens, and the user's own files stay."""

import errno
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bitloom.overlay.build import folder as folders
from bitloom.overlay.build.folder import PART, KeptFile, replace_build, settle
from tests.errors import value_error
from tests.paths import ROOT, SOURCES

OLD = {"rtl/a.v": b"old a", "rtl/b.v": b"old b", "synthesis/a.v": b"same", "x_0123.bit": b"old", "vivado/src/a.v": b"o"}
NEW = {"rtl/a.v": b"new a", "synthesis/a.v": b"same", "rtl/c.v": b"new c", "x_4567.bit": b"new"}


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def others(folder: Path) -> dict[str, bytes]:
    """Files beside build.json."""
    return {path: data for path, data in contents(folder).items() if path != "build.json"}


def put(folder: Path, files: dict[str, bytes], name: str = "a build") -> tuple[KeptFile, ...]:
    return replace_build(folder, {"name": name}, files)


def test_a_build_is_written_and_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "build"
    assert put(folder, OLD) == ()
    assert others(folder) == OLD
    description = json.loads((folder / "build.json").read_text())
    assert description["name"] == "a build"
    assert set(description["files"]) == set(OLD)
    assert put(folder, NEW, "another") == ()
    assert others(folder) == NEW
    assert not (folder / "vivado").exists()  # it was empty
    assert json.loads((folder / "build.json").read_text())["name"] == "another"


MINE = ["rtl/my_testbench.v", "from_vivado_2023.bit", "vivado/my_timing.tcl", "vivado/work/x.bit", "notes.program.npz"]
MINE += ["my_top.v", ".hidden", "vivado/src/mine.v"]
MINE = {name: str(number).encode() for number, name in enumerate(MINE, 1)}


def test_what_no_build_wrote_stays(tmp_path: Path) -> None:
    put(tmp_path, OLD)
    for path, data in MINE.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    for files in (NEW, OLD, {}):
        assert put(tmp_path, files) == ()
        assert others(tmp_path) == files | MINE


def test_changed_files_are_kept_and_named(tmp_path: Path) -> None:
    put(tmp_path, OLD)
    for path in ("rtl/a.v", "rtl/b.v"):
        (tmp_path / path).write_bytes(b"by hand")
    (tmp_path / "rtl/c.v").write_bytes(b"mine")  # where the new build has a file
    kept = put(tmp_path, NEW)
    names = {"rtl/a.v": "rtl/a.v.kept", "rtl/b.v": "rtl/b.v", "rtl/c.v": "rtl/c.v.kept"}
    assert set(kept) == {KeptFile(*names) for names in names.items()}
    mine = {"rtl/a.v.kept": b"by hand", "rtl/b.v": b"by hand", "rtl/c.v.kept": b"mine"}
    assert others(tmp_path) == NEW | mine
    assert put(tmp_path, NEW) == ()
    (tmp_path / "rtl/a.v").write_bytes(b"again")
    assert put(tmp_path, NEW) == (KeptFile("rtl/a.v", "rtl/a.v.kept-2"),)
    assert others(tmp_path) == NEW | mine | {"rtl/a.v.kept-2": b"again"}


def test_what_is_in_the_way_is_kept(tmp_path: Path) -> None:
    """A file where a folder must be, a folder where a file must be, and links that lead out of the folder."""
    folder, outside = tmp_path / "build", tmp_path / "outside"
    put(folder, {})
    outside.mkdir()
    (outside / "a.v").write_bytes(b"theirs")
    (folder / "rtl").write_bytes(b"a file")
    (folder / "x_4567.bit").mkdir()
    (folder / "x_4567.bit" / "mine").write_bytes(b"deep")
    (folder / "synthesis").symlink_to(outside)
    assert set(put(folder, NEW)) == {KeptFile(name, f"{name}.kept") for name in ("rtl", "x_4567.bit", "synthesis")}
    assert NEW.items() <= contents(folder).items()
    assert (folder / "rtl.kept").read_bytes() == b"a file"
    assert (folder / "x_4567.bit.kept" / "mine").read_bytes() == b"deep"
    assert (folder / "synthesis.kept").is_symlink()
    assert contents(outside) == {"a.v": b"theirs"}


def test_a_listing_can_not_lead_out_of_the_folder(tmp_path: Path) -> None:
    """build.json of somebody else that lists files elsewhere, with their right digests."""
    folder, mine = tmp_path / "build", tmp_path / "mine"
    put(folder, {"rtl/a.v": b"mine"})
    mine.write_bytes(b"mine")
    listing = json.loads((folder / "build.json").read_text())
    digest = listing["files"]["rtl/a.v"]
    (folder / "out").symlink_to(tmp_path)
    for path in ("../mine", str(mine), "rtl/../../mine", "out/mine"):
        (folder / "build.json").write_text(json.dumps({"files": {path: digest}}))
        put(folder, {})
        assert mine.read_bytes() == b"mine"


def test_what_is_left_undone_can_not_lead_out_either(tmp_path: Path) -> None:
    moves = {"kept": [], "put": ["../mine"], "drop": {}}
    (tmp_path / PART).mkdir()
    (tmp_path / PART / "moves.json").write_text(json.dumps(moves))
    place = tmp_path / PART
    message = (
        f"{place}: must hold what a build left undone, got: moves.json: must be a path inside the folder, got "
        "'../mine'; remove it"
    )
    with value_error(message):
        settle(tmp_path)


@pytest.mark.parametrize("link", [PART, f"{PART}/files", f"{PART}/files/rtl", f"{PART}/files/rtl/a.v", "old"])
def test_a_link_in_what_is_left_undone_moves_nothing_of_others(tmp_path: Path, link: str) -> None:
    """A stranger's build that was cut short just so that ending it would move files from elsewhere into it."""
    folder, outside = tmp_path / "build", tmp_path / "outside"
    theirs = {"moves.json": json.dumps({"kept": [["old/a.v", "b.v"]], "put": ["rtl/a.v"], "drop": {}}).encode()}
    theirs |= {path: b"mine" for path in ("a.v", "rtl/a.v", "files/rtl/a.v")}
    for path, data in theirs.items():
        for place in (outside, folder / PART):
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            (place / path).write_bytes(data)
    (folder / "old").mkdir()
    (folder / "old" / "a.v").write_bytes(b"old")
    at = folder / link
    shutil.rmtree(at) if at.is_dir() else at.unlink()
    at.symlink_to(outside if link != f"{PART}/files/rtl/a.v" else outside / "a.v")
    settle(folder)
    assert contents(outside) == theirs
    assert not (folder / "rtl" / "a.v").is_symlink()


def test_a_link_in_place_of_unfinished_files(tmp_path: Path) -> None:
    folder, outside = tmp_path / "build", tmp_path / "outside"
    put(folder, OLD)
    (outside / "files" / "rtl").mkdir(parents=True)
    (outside / "files" / "rtl" / "a.v").write_bytes(b"mine")
    (folder / PART).symlink_to(outside)
    put(folder, NEW)
    assert others(folder) == NEW
    assert contents(outside) == {"files/rtl/a.v": b"mine"}


def test_what_was_kept_may_go_before_the_moves_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build is killed after its first move, the user removes the file that was kept, and the build is ended."""
    put(tmp_path, OLD)
    (tmp_path / "rtl/a.v").write_bytes(b"by hand")
    moved = []

    def killed(new: Path, folder: Path, path: str) -> None:
        if moved:
            raise KeyboardInterrupt
        moved.append(path)
        os.replace(new, folder / path)

    with monkeypatch.context() as patch:
        patch.setattr(folders, "_put", killed)
        with pytest.raises(KeyboardInterrupt):
            put(tmp_path, NEW)
    assert moved == ["rtl/a.v"]
    (tmp_path / "rtl/a.v.kept").unlink()
    settle(tmp_path)
    assert others(tmp_path) == NEW


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with value_error(f"{tmp_path}: must be empty or hold the build.json of before, got a folder with other files"):
        put(tmp_path, NEW)
    assert contents(tmp_path) == {"letter.txt": b"mine"}


LISTINGS = ["", "no JSON", "[]", '{"files": 3}', '{"files": {"../a": "0"}}', '{"format": "old"}']


@pytest.mark.parametrize("listing", LISTINGS)
def test_without_a_list_all_is_the_users(tmp_path: Path, listing: str) -> None:
    put(tmp_path, OLD)
    (tmp_path / "build.json").write_text(listing)
    kept = put(tmp_path, NEW)
    assert kept == (KeptFile("rtl/a.v", "rtl/a.v.kept"),)  # synthesis/a.v is as the new one
    assert others(tmp_path) == OLD | NEW | {"rtl/a.v.kept": b"old a"}


@pytest.mark.parametrize("number", range(1, 7))
def test_a_full_disk_leaves_the_old_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The disk is full when the ``number``-th file is written, moves.json the last of them."""
    put(tmp_path, OLD)
    before = contents(tmp_path)
    written = []

    def full(write: Callable[..., None]) -> Callable[..., None]:
        def wrapped(path: Path, data: bytes | str) -> None:
            written.append(path)
            if len(written) == number:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
            write(path, data)

        return wrapped

    with monkeypatch.context() as patch:
        for name in ("write_scratch", "write_text"):
            patch.setattr(folders.atomic, name, full(getattr(folders.atomic, name)))
        with pytest.raises(OSError, match=r"^\[Errno 28\] No space left on device: "):
            put(tmp_path, NEW)
    assert len(written) == number
    assert contents(tmp_path) == before
    put(tmp_path, NEW)
    assert others(tmp_path) == NEW


def run(program: str, *arguments: object) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}:{ROOT}"}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


EVERY_STEP = """
import os, signal, sys
from pathlib import Path
from tests.overlay.build.test_folder import MOVED, NEW, OLD, others, put, settle, user_files

EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.scandir", "os.listdir"}
folder, states = Path(sys.argv[1]), []
while len(states) < 500:
    place = folder / str(len(states))
    put(place, OLD)
    user_files(place)
    child = os.fork()
    if not child:  # killed before its step number len(states) that the file system sees
        left = [len(states)]

        def step(event, _):
            if event in EVENTS:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(step)
        put(place, NEW)
        os._exit(0)
    killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    settle(place)
    files_left = {path: data for path, data in others(place).items() if not path.startswith(".bitloom-part")}
    old, new = OLD | {"rtl/a.v": b"by hand", "rtl/c.v": b"mine"}, NEW | MOVED
    assert files_left in (old, new), (len(states), files_left)
    states.append("new" if files_left == new else "old")
    put(place, NEW)
    assert others(place) == new, len(states)
    if not killed:
        break
print(*states)
"""
MOVED = {"rtl/a.v.kept": b"by hand", "rtl/c.v.kept": b"mine"}


def user_files(folder: Path) -> None:
    """A file changed by hand, and one where the new build has a file."""
    (folder / "rtl/a.v").write_bytes(b"by hand")
    (folder / "rtl/c.v").write_bytes(b"mine")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_before_every_step_of_the_file_system(tmp_path: Path) -> None:
    """The old build or the new one is there, never a mixture, and the next build cleans up."""
    states = run(EVERY_STEP, tmp_path).split()
    assert len(states) > 50
    assert states == sorted(states, reverse=True)  # once the new one counts, it stays
    assert {"old", "new"} == set(states)


def test_a_second_build_waits_for_the_first(tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
from tests.overlay.build.test_folder import put
for k in range(20):
    put(Path(sys.argv[1]), {f"rtl/{sys.argv[2]}{n}.v": bytes([k]) * 1000 for n in range(8)})
"""
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}:{ROOT}"}
    both = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name], env=environment) for name in "ab"]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    assert set(others(tmp_path)) in ({f"rtl/{name}{n}.v" for n in range(8)} for name in "ab")
    assert len(set(others(tmp_path).values())) == 1
    shutil.rmtree(tmp_path)

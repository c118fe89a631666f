"""Files and folders are whole or not there, whatever happens to the process that writes them."""

import errno
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from bitloom.golden import atomic
from tests.errors import value_error
from tests.paths import SOURCES


def child(text: str, *arguments: object) -> subprocess.Popen:
    """A process that runs ``text`` with atomic imported."""
    program = f"import os, resource, sys\nfrom bitloom.golden import atomic\n{textwrap.dedent(text)}"
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for data in (b"old", b"", b"new" * 100_000):
        atomic.write_bytes(path, data)
        assert path.read_bytes() == data
    atomic.write_text(path, "Grüße\n")
    assert path.read_bytes() == "Grüße\n".encode()
    assert names(tmp_path) == ["a"]


def test_a_name_of_any_length(tmp_path: Path) -> None:
    name = "ü" * 127  # 254 bytes, of 255
    atomic.write_bytes(tmp_path / name, b"x")
    assert names(tmp_path) == [name]


def test_permissions_stay_and_a_link_is_followed(tmp_path: Path) -> None:
    path, link = tmp_path / "a", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to("a")
    atomic.write_bytes(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    old = os.umask(0o027)
    try:
        atomic.write_bytes(tmp_path / "b", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o640


def test_what_is_protected_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    with pytest.raises(PermissionError) as error:
        atomic.write_bytes(path, b"new")
    assert str(error.value) == f"[Errno 13] Permission denied: '{path}'"
    assert path.read_bytes() == b"old"


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = child("print(open(sys.argv[1]).read())", tmp_path / "pipe")
    atomic.write_bytes(tmp_path / "pipe", b"through")
    assert process.communicate(timeout=60)[0] == "through\n"
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@pytest.mark.parametrize("place", ["missing/a", "folder"])
def test_an_error_names_the_file_that_was_asked_for(tmp_path: Path, place: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match=rf": '{tmp_path / place}'\Z"):
        atomic.write_bytes(tmp_path / place, b"")
    assert names(tmp_path) == ["folder"]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """No file of the process may have more than 1,000 bytes."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    process = child(
        """
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        for write in (atomic.write_bytes, atomic.write_scratch):
            try:
                write(sys.argv[1 if write is atomic.write_bytes else 2], bytes(2000))
            except OSError as e:
                print(e)
        """,
        path,
        tmp_path / "b",
    )
    said, error = process.communicate(timeout=60)
    assert said.splitlines() == [f"[Errno 27] File too large: '{tmp_path / name}'" for name in "ab"], error
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_whatever_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match=rf"^\[Errno 28\] No space left on device: '{path}'\Z"):
        atomic.write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_an_interrupt_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        atomic.write_bytes(path, b"new")
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["a"])


WRITE = """
    import time
    os.{step} = lambda *_: (print("now", flush=True), time.sleep(600))
    {call}
"""


def held(step: str, call: str, path: Path) -> subprocess.Popen:
    """A process that stands still in the middle of ``call``."""
    process = child(WRITE.format(step=step, call=call), path)
    assert process.stdout is not None
    assert process.stdout.readline() == "now\n"
    return process


def kill(process: subprocess.Popen) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)


def test_what_a_killed_process_left_goes_with_the_next_write(tmp_path: Path) -> None:
    path, other = tmp_path / "a", tmp_path / "ab"
    atomic.write_bytes(path, b"old")
    process = held("replace", "atomic.write_bytes(sys.argv[1], b'new')", path)
    try:
        during = names(tmp_path)
        assert len(during) == 2
        atomic.write_bytes(path, b"second")  # while the first one is at it: its file stays
        assert names(tmp_path) == during
    finally:
        kill(process)
    assert path.read_bytes() == b"second"
    assert names(tmp_path) == during
    atomic.write_bytes(other, b"")  # another file's are none of its business
    assert len(names(tmp_path)) == 3
    atomic.write_bytes(path, b"third")
    assert (path.read_bytes(), names(tmp_path)) == (b"third", ["a", "ab"])


def test_a_folder_of_that_kind_goes_too(tmp_path: Path) -> None:
    call = "with atomic.new_folder(sys.argv[1]) as part: atomic.write_scratch(part / 'x', 'x')"
    kill(held("replace", call, tmp_path / "a"))
    assert len(names(tmp_path)) == 1
    with atomic.new_folder(tmp_path / "a") as part:
        atomic.write_scratch(part / "y", b"y")
        assert not (tmp_path / "a").exists()
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["y"]


def test_folders_above_a_folder_are_made(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with atomic.new_folder(tmp_path / "a" / "b" / name) as part:
            atomic.write_scratch(part / "x", name)
    assert names(tmp_path / "a" / "b") == ["first", "second"]


def test_a_folder_that_fails_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^no\Z"), atomic.new_folder(tmp_path / "a"):
        raise ValueError("no")
    assert names(tmp_path) == []
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").write_text("")
    with pytest.raises(OSError, match="not empty"), atomic.new_folder(tmp_path / "a"):
        pass
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == ["mine"]


def test_two_who_write_the_same_file_both_succeed(tmp_path: Path) -> None:
    text = "for k in range(100): atomic.write_bytes(sys.argv[1], sys.argv[2].encode() * 50_000)"
    processes = [child(text, tmp_path / "a", letter) for letter in "xy"]
    assert [process.communicate(timeout=120)[1] for process in processes] == ["", ""]
    data = (tmp_path / "a").read_bytes()
    assert data in [letter * 50_000 for letter in (b"x", b"y")]
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("make", [lambda at: atomic.write_text(at, ""), lambda at: atomic.new_folder(at).__enter__()])
def test_a_folder_in_which_nothing_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make) -> None:
    """Linux says "no such file" of a new file in /proc, which is there: an error, and no search without end."""

    def nothing(path: Path, *_: object, **__: object) -> int:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

    monkeypatch.setattr(atomic.os, "open", nothing)
    monkeypatch.setattr(atomic.Path, "mkdir", lambda *_, **__: None)
    with pytest.raises(FileNotFoundError) as caught:
        make(tmp_path / "a")
    assert Path(caught.value.filename).name.startswith(("a", ".a."))


def test_a_place_in_a_folder(tmp_path):
    folder = tmp_path / "folder"
    assert atomic.inside(folder, "a/b/c.txt") == folder / "a" / "b" / "c.txt"
    assert sorted(path.name for path in folder.rglob("*")) == ["a", "b"]
    (folder / "a" / "b" / "c.txt").write_text("old")
    (tmp_path / "way").symlink_to(folder)
    atomic.write_text(atomic.inside(tmp_path / "way", "a/b/c.txt"), "new")  # the user may reach the folder by a link
    assert (folder / "a" / "b" / "c.txt").read_text() == "new"


def test_no_link_in_a_folder_is_followed(tmp_path):
    folder, other = tmp_path / "folder", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    (folder / "link").symlink_to(other / "file")
    (folder / "way").symlink_to(other)
    (folder / "sub").mkdir()
    for path, place, rule, got in (
        ("link", "link", "a file or not there", "a link"),
        ("way", "way", "a file or not there", "a link"),
        ("sub", "sub", "a file or not there", "a folder, a device or a pipe"),
        ("way/file", "way", "a folder", "a link"),
        ("way/sub/file", "way", "a folder", "a link"),
    ):
        with value_error(f"{folder / place}: must be {rule}, got {got}"):
            atomic.inside(folder, path)
    assert list(other.iterdir()) == []

"""Folders that are built once: several processes, failures, the bound."""

import errno
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from bitloom.golden.atomic import PART
from bitloom.golden.kernels import cache, private


def test_cached_folder_builds_once_for_many_processes(tmp_path):
    script = (
        "import sys, time\n"
        "from bitloom.golden.kernels.cache import cached_folder\n"
        "def build(folder):\n"
        "    print('built')\n"
        "    time.sleep(0.5)\n"
        "    (folder / 'x').write_text('done')\n"
        "assert (cached_folder('model', 'k', build) / 'x').read_text() == 'done'\n"
    )
    environment = {"BITLOOM_CACHE": str(tmp_path), "PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    running = [
        subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = "".join(process.communicate()[0] for process in running)
    assert all(process.returncode == 0 for process in running)
    assert said == "built\n"


def test_a_failed_build_is_tried_again(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))

    def fail(folder):
        (folder / "half").write_text("")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match=r"^no$"):
        cache.cached_folder("model", "k", fail)
    folder = cache.cached_folder("model", "k", lambda folder: (folder / "whole").write_text(""))
    assert sorted(path.name for path in folder.iterdir()) == [cache.SUMS, "whole"]


def test_pruning_takes_what_was_used_longest_ago(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    for key in ("old", "used", "new"):
        cache.cached_folder("model", key, lambda folder: (folder / "x").write_bytes(bytes(1000)))
        time.sleep(0.02)
    cache.cached_folder("model", "old", lambda folder: None)
    assert cache.prune(1500) == []  # used within the hour
    assert cache.prune(sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()), keep_seconds=0) == []
    gone = cache.prune(1500, keep_seconds=0)
    assert [path.name for path in gone] == ["used", "new"]
    assert (tmp_path / cache.LAYOUT / "model" / "old").is_dir()


def test_pruning_knows_every_kind_and_leaves_what_is_not_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    for kind in ("one", "another"):
        cache.cached_folder(kind, "key", lambda folder: (folder / "x").write_bytes(bytes(1000)))
    root = tmp_path / cache.LAYOUT
    left = root / "one" / f".left.0123{PART}"  # its process died
    for folder in (left, root / "one" / "notes", root / "photos" / f".x.0123{PART}"):
        folder.mkdir(parents=True)
        (folder / "x").write_bytes(bytes(1000))
    gone = {path.relative_to(root).as_posix() for path in cache.prune(0, keep_seconds=-1)}
    assert gone == {"one/key", "another/key"}
    assert not left.exists()
    assert (root / "one" / "notes" / "x").exists()
    assert (root / "photos" / f".x.0123{PART}" / "x").exists()


def test_a_killed_build_is_made_again_and_leaves_nothing(tmp_path, monkeypatch):
    script = (
        "import os, signal, sys\n"
        "from bitloom.golden.kernels.cache import cached_folder\n"
        "def build(folder):\n"
        "    (folder / 'half').write_text('')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "cached_folder('model', sys.argv[1], build)\n"
    )
    environment = {"BITLOOM_CACHE": str(tmp_path), "PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin"}
    for key in ("same", "other"):
        assert subprocess.run([sys.executable, "-c", script, key], env=environment, check=False).returncode == -9
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    folder = cache.cached_folder("model", "same", lambda folder: (folder / "whole").write_text(""))
    assert sorted(path.name for path in folder.iterdir()) == [cache.SUMS, "whole"]
    assert sorted(path.name for path in folder.parent.iterdir()) == ["other.lock", "same", "same.lock"]


def test_cache_root(monkeypatch, tmp_path):
    monkeypatch.delenv("BITLOOM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache.cache_root() == tmp_path / "x" / "bitloom"
    monkeypatch.setenv("HOME", str(tmp_path / "h"))
    for relative in ("x", ".", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", relative)
        assert cache.cache_root() == tmp_path / "h" / ".cache" / "bitloom"
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "b"))
    assert cache.cache_root() == tmp_path / "b"


@pytest.mark.parametrize("chosen", ["", "~nobody-has-this-name/x"])
def test_a_user_without_a_home(chosen, monkeypatch):
    pwd = pytest.importorskip("pwd", reason="users of this system have no list")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: {}[number])  # as where the system's list lacks the user
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("BITLOOM_CACHE", chosen)
    rule = r"^the cache must lie in a folder that can be found \(set BITLOOM_CACHE\), got: Could not determine home"
    with pytest.raises(OSError, match=rule):
        cache.cached_folder("model", "k", build(b""))


def build(content):
    """A build that writes this and counts how often it is asked."""

    def write(folder):
        write.times += 1
        (folder / "model.so").write_bytes(content)
        (folder / "area.json").write_bytes(b"{}")

    write.times = 0
    return write


def truncate(folder):
    with (folder / "model.so").open("r+b") as file:
        file.truncate(50)


@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        lambda folder: (folder / "model.so").write_bytes(bytes(99) + b"x"),
        lambda folder: (folder / "area.json").unlink(),
        lambda folder: (folder / "more").write_bytes(b""),
        lambda folder: (folder / cache.SUMS).unlink(),
        lambda folder: (folder / cache.SUMS).write_bytes(b"\xff"),
        lambda folder: ((folder / "area.json").unlink(), (folder / "area.json").symlink_to("/dev/null")),
        lambda folder: ((folder / "area.json").unlink(), (folder / "area.json").mkdir()),
        lambda folder: (folder / "area.json").symlink_to((folder / "area.json").rename(folder.parent / "elsewhere")),
        lambda folder: folder.chmod(0o777),
        lambda folder: (shutil.rmtree(folder), folder.write_bytes(b"")),
        lambda folder: (shutil.rmtree(folder), folder.symlink_to("nowhere")),
        lambda folder: folder.symlink_to(folder.rename(folder.with_name("elsewhere"))),
    ],
)
def test_a_damaged_folder_is_made_again(damage, monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    finished = build(bytes(100))
    folder = cache.cached_folder("model", "k", finished)
    cache.cached_folder("model", "k", finished)
    assert finished.times == 1
    damage(folder)
    assert (cache.cached_folder("model", "k", finished) / "model.so").read_bytes() == bytes(100)
    assert finished.times == 2
    cache.cached_folder("model", "k", finished)
    assert finished.times == 2


@pytest.mark.parametrize("other", [("model", "other"), ("area", "k")])
def test_a_folder_that_was_made_for_another_key_is_made_again(other, monkeypatch, tmp_path):
    """It is whole, and nobody changed it; it lies where something else belongs."""
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    cache.cached_folder(*other, build(b"another"))
    folder = cache.cached_folder("model", "k", build(b"mine"))
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / cache.LAYOUT / other[0] / other[1], folder)
    assert (cache.cached_folder("model", "k", build(b"mine")) / "model.so").read_bytes() == b"mine"
    assert (cache.cached_folder(*other, build(b"?")) / "model.so").read_bytes() == b"another"


def test_the_cache_is_the_users_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "a" / "b"))
    before = os.umask(0)
    try:
        folder = cache.cached_folder("model", "k", build(b""))
    finally:
        os.umask(before)
    for path in (folder, *list(folder.parents)[:4]):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path


def refused(root, monkeypatch) -> str:
    monkeypatch.setenv("BITLOOM_CACHE", str(root))
    with pytest.raises(OSError, match="to keep what is loaded and run") as caught:
        cache.cached_folder("model", "k", build(b""))
    return str(caught.value)


def test_a_cache_that_others_can_write_to_is_refused(monkeypatch, tmp_path):
    rule = "must be writable by its owner alone, to keep what is loaded and run, got mode"
    root = tmp_path / "open" / "cache"
    root.mkdir(parents=True)
    root.parent.chmod(0o777)
    assert refused(root, monkeypatch) == f"{root.parent}: {rule} 0777"
    root.parent.chmod(0o1777)  # sticky: others can't rename what isn't theirs
    folder = cache.cached_folder("model", "k", build(b""))
    inside = folder.parents[1]
    inside.chmod(0o1777)
    assert refused(root, monkeypatch) == f"{inside}: {rule} 1777"
    inside.chmod(0o755)  # others could read it, and so nothing was put there
    assert cache.cached_folder("model", "k", build(b"")) == folder
    assert stat.S_IMODE(inside.stat().st_mode) == 0o700


def test_a_link_counts_as_what_it_leads_to(monkeypatch, tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "link"))
    monkeypatch.delenv("BITLOOM_CACHE", raising=False)
    folder = cache.cached_folder("model", "k", build(b""))
    assert folder == tmp_path / "real" / "bitloom" / cache.LAYOUT / "model" / "k"
    (tmp_path / "real").chmod(0o757)
    message = f"{tmp_path / 'real'}: must be writable by its owner alone, to keep what is loaded and run, got mode 0757"
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "link" / "bitloom"))
    assert refused(tmp_path / "link" / "bitloom", monkeypatch) == message


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can give folders away")
def test_another_users_folder_is_refused(monkeypatch, tmp_path):
    finished = build(b"")
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "mine"))
    folder = cache.cached_folder("model", "k", finished)
    os.chown(folder, 12345, 12345)
    assert cache.cached_folder("model", "k", finished) == folder
    assert finished.times == 2
    assert folder.stat().st_uid == 0
    other = tmp_path / "other"
    other.mkdir()
    os.chown(other, 12345, 12345)
    rule = "must belong to this user or root, to keep what is loaded and run, got user 12345"
    assert refused(other, monkeypatch) == f"{other}: {rule}"


@pytest.mark.parametrize(
    ("group", "members", "own"),
    [("me", [], True), ("me", ["me"], True), ("me", ["me", "you"], False), ("users", [], False)],
)
def test_a_group_is_the_users_own_with_the_users_name_and_no_other_member(monkeypatch, group, members, own):
    grp, pwd = pytest.importorskip("grp"), pytest.importorskip("pwd")
    monkeypatch.setattr(pwd, "getpwuid", lambda number: SimpleNamespace(pw_name="me"))
    monkeypatch.setattr(grp, "getgrgid", lambda number: SimpleNamespace(gr_name=group, gr_mem=members))
    assert private._is_personal_group(1234) is own


def failing(error):
    """A build in whose folder a file can't be written."""

    def write(folder):
        raise OSError(error, os.strerror(error), str(folder / "x"))

    return write


@pytest.mark.parametrize(
    ("error", "words"), [(errno.ENOSPC, "no space left on device"), (errno.EROFS, "read-only file system")]
)
def test_a_disk_that_takes_no_more_is_said_with_the_cache_and_its_variable(error, words, monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "c"))
    said = f"{tmp_path / 'c'}: the cache must be writable (set BITLOOM_CACHE), got: {words}"
    with pytest.raises(OSError, match=rf"^{re.escape(said)}\Z"):
        cache.cached_folder("outer", "k", lambda folder: cache.cached_folder("model", "k", failing(error)))
    assert [path.name for path in (tmp_path / "c" / cache.LAYOUT).glob("*/*")] == ["k.lock", "k.lock"]


def test_errors_of_other_files_stay_as_they_are(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "c"))
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '/nowhere/source\.cpp'\Z"):
        cache.cached_folder("model", "k", lambda folder: Path("/nowhere/source.cpp").read_text())

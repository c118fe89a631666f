"""Folders that are built once: several processes, failures, the bound."""

import subprocess
import sys
import time

import pytest

from bitloom.golden.atomic import PART
from bitloom.golden.kernels import cache


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
        for _ in range(4)
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
    assert [path.name for path in folder.iterdir()] == ["whole"]


def test_pruning_takes_what_was_used_longest_ago(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    for key in ("old", "used", "new"):
        cache.cached_folder("model", key, lambda folder: (folder / "x").write_bytes(bytes(1000)))
        time.sleep(0.02)
    cache.cached_folder("model", "old", lambda folder: None)
    assert cache.prune(1500) == []  # used within the hour
    gone = cache.prune(1500, keep_seconds=0)
    assert [path.name for path in gone] == ["used", "new"]
    assert (tmp_path / "model" / "old").is_dir()


def test_pruning_knows_every_kind_and_leaves_what_is_not_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path))
    for kind in ("one", "another"):
        cache.cached_folder(kind, "key", lambda folder: (folder / "x").write_bytes(bytes(1000)))
    left = tmp_path / "one" / f".left.0123{PART}"  # its process died
    for folder in (left, tmp_path / "one" / "notes", tmp_path / "photos" / f".x.0123{PART}"):
        folder.mkdir(parents=True)
        (folder / "x").write_bytes(bytes(1000))
    gone = {path.relative_to(tmp_path).as_posix() for path in cache.prune(0, keep_seconds=-1)}
    assert gone == {"one/key", "another/key"}
    assert not left.exists()
    assert (tmp_path / "one" / "notes" / "x").exists()
    assert (tmp_path / "photos" / f".x.0123{PART}" / "x").exists()


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
    assert [path.name for path in folder.iterdir()] == ["whole"]
    assert sorted(path.name for path in folder.parent.iterdir()) == ["other.lock", "same", "same.lock"]


def test_cache_root(monkeypatch, tmp_path):
    monkeypatch.delenv("BITLOOM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache.cache_root() == tmp_path / "x" / "bitloom"
    monkeypatch.setenv("BITLOOM_CACHE", str(tmp_path / "b"))
    assert cache.cache_root() == tmp_path / "b"

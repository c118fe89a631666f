"""A tool's process ends with the one that began it."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bitloom.overlay.area.tool import run_tool

SLEEPER = """
import fcntl, sys, time

def run_sleeper(arguments):
    with open(arguments[0], "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        print("at work", file=file, flush=True)
        time.sleep(600)
"""
"""A tool that holds a lock while it lives, which also a process that nobody waits for has given back."""
PARENT = """
import sys
from pathlib import Path
from bitloom.overlay.area.tool import run_tool
from bitloom.overlay.explore.workers import Workers

def work(name):
    run_tool("yowasp_sleeper", [name], Path("."))

if __name__ == "__main__":
    list(Workers({jobs}).map(work, ["lock_0", "lock_1"]))
"""


def wait_for(what) -> None:
    """Wait until it is so; the bound only ends a test that would go on for ever."""
    end = time.monotonic() + 120
    while not what():
        assert time.monotonic() < end, "gave up"
        time.sleep(0.02)


def is_free(lock: Path) -> bool:
    """Whether nobody holds the lock."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_tool_ends_with_a_process_that_is_killed(jobs: int, tmp_path: Path) -> None:
    (tmp_path / "yowasp_sleeper.py").write_text(SLEEPER)
    (tmp_path / "parent.py").write_text(PARENT.format(jobs=jobs))
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    parent = subprocess.Popen([sys.executable, "parent.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path})
    locks = [tmp_path / f"lock_{k}" for k in range(jobs)]
    try:
        wait_for(lambda: all(lock.exists() and lock.read_text() for lock in locks))
        assert not any(map(is_free, locks))
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    wait_for(lambda: all(map(is_free, locks)))


def test_a_tool_says_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "yowasp_echo.py").write_text("def run_echo(words):\n    print(*words)\n    return 3\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    done = run_tool("yowasp_echo", ["a", "b c"], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "a b c\n", "")

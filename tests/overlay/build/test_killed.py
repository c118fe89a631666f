"""Builds that are killed at random moments or find the disk full: the old or the new one is there, the next works."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bitloom.overlay.build import build as builds
from tests.paths import ROOT, SOURCES

PROGRAM = """
import errno, os, random, resource, signal, sys, time
from pathlib import Path
from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build.build import build
from tests.overlay.build.test_killed import whole

folder, moments, rng = Path(sys.argv[1]), int(sys.argv[2]), random.Random(int(sys.argv[2]))
model = networks.load("digits-cnn")
designs = [size_memories("digits", [model], Npu.of(kfp=k, kgp=4, ol=1, pfp=1, planes=6)) for k in (8, 16)]
for design in designs:
    begin = time.monotonic()
    build(folder, design, [model])
    build(folder, design, [model])  # what was generated is known now: this one mostly writes
    seconds = time.monotonic() - begin
(folder / "mine").write_text("mine")
if not os.fork():  # a disk that takes no file of more than 1,000 bytes
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    try:
        build(folder, designs[0], [model])
    except OSError as e:
        os._exit(e.errno)
assert os.waitstatus_to_exitcode(os.wait()[1]) == errno.EFBIG
assert whole(folder).design == designs[1]
assert not (folder / ".bitloom-part").exists()
for _ in range(moments):
    child = os.fork()
    if not child:
        while True:
            for design in designs:
                build(folder, design, [model])
    time.sleep(rng.uniform(0, min(seconds, 2)))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert whole(folder).design in designs
    assert (folder / "mine").read_text() == "mine"
assert build(folder, designs[0], [model]).kept == ()
loaded = whole(folder)
assert loaded.design == designs[0]
own = {"build.json", "rtl", "synthesis", "digits-cnn.program.npz", "digits-cnn.model.npz"}
left = {path.name for path in folder.iterdir()} - {"mine", *own}
assert left == {loaded.bit.with_suffix(suffix).name for suffix in (".bit", ".hwh", ".v", ".manifest.json")}, left
print("done")
"""


def whole(folder: Path) -> builds.Build:
    """The build in a folder, whose files are all there and as build.json says."""
    loaded = builds.load(folder)
    listed = json.loads((folder / "build.json").read_text())["files"]
    assert len(listed) > 30
    for path, digest in listed.items():
        assert hashlib.sha256((folder / path).read_bytes()).hexdigest() == digest, path
    assert loaded.program("digits-cnn").design_digest == loaded.digest
    return loaded


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("moments", [3, pytest.param(50, marks=pytest.mark.slow)])
def test_killed_at_random_moments(moments: int, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{SOURCES}:{ROOT}"}
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(moments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr

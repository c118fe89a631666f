"""Damaged files of every kind are read, or refused in one line that names the file."""

from collections import Counter

import numpy as np
import pytest

from bitloom.overlay.fuzz import kinds
from bitloom.overlay.fuzz.campaigns.files import Outcome, damaged_file, outcome, valid_file
from bitloom.overlay.fuzz.damage import damaged
from bitloom.overlay.fuzz.kinds import KINDS, FileKind

SEEDS = 10
MORE = {"onnx": (200, 10_000)}
"""Kinds of which more is tried: in the default tier, and in the slow one."""
NEEDS_ONNX = ("onnx", "host")


@pytest.fixture
def kind(request):
    """A kind of file; those that are made by way of ONNX only where it is installed."""
    if request.param in NEEDS_ONNX:
        pytest.importorskip("onnx")
    return request.param


def verdicts(kind, folder, seeds):
    """How often damaged files of these seeds are read and refused; no other outcome is right."""
    path = folder / KINDS[kind].file
    KINDS[kind].write(path)
    assert outcome(kind, path) == Outcome("read")
    counts = Counter()
    for seed in seeds:
        path.write_bytes(damaged_file(kind, seed))
        result = outcome(kind, path)
        assert result.good, f"seed {seed}: {result}"
        counts[result.verdict] += 1
    return counts


@pytest.mark.sample(8)
@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_damaged_files(kind, tmp_path):
    verdicts(kind, tmp_path, range(MORE.get(kind, (SEEDS,))[0]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_many_damaged_files(kind, tmp_path):
    assert verdicts(kind, tmp_path, range(SEEDS, MORE.get(kind, (0, 800))[1]))["refused"] > 200


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_damage_depends_on_the_seed_alone(kind):
    damaged_files = [damaged_file(kind, seed) for seed in range(8)]
    assert damaged_files == [damaged_file(kind, seed) for seed in range(8)]
    assert len({*damaged_files, valid_file(kind)}) > 6


def test_damage_reaches_what_lies_behind_checksums():
    """A model with another array, but right checksums of the zip archive."""
    damaged_files = [damaged(valid_file("model"), np.random.default_rng(seed)) for seed in range(60)]
    assert any(len(data) > 1_000 and data.startswith(b"PK") and b"descr" in data for data in damaged_files)


def judged(read, tmp_path, monkeypatch) -> Outcome:
    """The word of `outcome` for a reader that does this."""
    monkeypatch.setitem(kinds.KINDS, "made", FileKind("made", "made.x", lambda path: None, read))
    path = tmp_path / "made.x"
    path.write_bytes(b"")
    return outcome("made", path)


def test_every_fault_is_seen(tmp_path, monkeypatch):
    def fail(error):
        def read(path):
            raise error

        return judged(read, tmp_path, monkeypatch).verdict

    assert fail(ValueError(f"{tmp_path / 'made.x'}: rule, got 1")) == "refused"
    assert fail(FileNotFoundError(2, "No such file", str(tmp_path / "made.x"))) == "refused"
    assert fail(ValueError("rule, got 1")) == "unclear"
    assert fail(ValueError("made.x: rule\nmore")) == "unclear"
    assert fail(ValueError("made.x: \x1b[31m")) == "unclear"
    assert fail(ValueError("made.x: " + "x" * 1000)) == "unclear"
    for error in (KeyError("a"), TypeError(), RecursionError(), MemoryError(), ZeroDivisionError()):
        assert fail(error) == "crashed"
    assert judged(lambda path: None, tmp_path, monkeypatch).verdict == "read"
    monkeypatch.setenv("BITLOOM_MAX_READ_MB", "1")
    assert judged(lambda path: bytes(2 << 20), tmp_path, monkeypatch).verdict == "hungry"

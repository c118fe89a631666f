"""Damaged manifests, and programs whose packets are damaged, never lead libbitloom out of its memory: built with
AddressSanitizer and UndefinedBehaviorSanitizer, on a core that answers whatever is asked."""

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.hls_gen.design.headers import check
from bitloom.overlay.fuzz.damage import damaged

from .. import design
from .compiled import C99, CORE, SANITIZERS, build

HERE = Path(__file__).parent
COUNT = 300
MANY = 3_000


def outcomes(pairs: list[tuple[Path, Path]]) -> list[str]:
    program = build("open_devices", [HERE / "open_devices.c", *CORE], *C99, *SANITIZERS, "-O1")
    lines = "".join(f"{manifest}\n{file}\n" for manifest, file in pairs)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=False, errors="replace")
    assert done.returncode == 0, done.stderr[:3000]
    results = done.stdout.splitlines()
    assert len(results) == len(pairs)
    return results


class Files:
    """A manifest and a program in a folder, and damaged ones beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest = folder / "manifest.json"
        self.manifest.write_text(json.dumps(design.manifest_dict()))
        self.program = design.program(design.model(), design.manifest())
        self.file = folder / "program.npz"
        self.program.save(self.file)

    def damaged_manifest(self, seed: int) -> tuple[Path, Path]:
        path = self.folder / f"{seed}.json"
        path.write_bytes(damaged(self.manifest.read_bytes(), np.random.default_rng(seed)))
        return path, self.file

    def damaged_packets(self, seed: int) -> tuple[Path, Path]:
        """A word of the parameters is another; where it is a header's, the check is right half of the time."""
        rng = np.random.default_rng(seed)
        words = self.program.parameters.copy()
        heads = np.flatnonzero(words >> 24 == 0xB1)
        at = int(rng.choice(heads)) + int(rng.integers(4)) if rng.random() < 0.7 else int(rng.integers(len(words)))
        words[at] ^= np.uint32(1) << np.uint32(rng.integers(32)) if rng.random() < 0.5 else rng.integers(1 << 32)
        head = max(int(place) for place in heads if place <= max(at, int(heads[0])))
        if at - head < 3 and rng.random() < 0.8:
            words[head + 3] = check(*map(int, words[head : head + 3]))
        if rng.random() < 0.1:
            words = words[: int(rng.integers(len(words)))]
        path = self.folder / f"{seed}.npz"
        replace(self.program, parameters=words).save(path)
        return self.manifest, path


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


def test_a_valid_manifest_and_program(files):
    (result,) = outcomes([(files.manifest, files.file)])
    assert result.startswith("opened board: ")
    assert "OWNER" in result or "the device must hold" in result


@pytest.mark.parametrize("sort", ["manifest", "packets"])
def test_damage(files, sort):
    _damage(files, sort, range(COUNT))


@pytest.mark.slow
@pytest.mark.parametrize("sort", ["manifest", "packets"])
def test_more_damage(files, sort):
    _damage(files, sort, range(COUNT, MANY))


def _damage(files: Files, sort: str, seeds: range) -> None:
    make = files.damaged_manifest if sort == "manifest" else files.damaged_packets
    results = outcomes([make(seed) for seed in seeds])
    for seed, result in zip(seeds, results):
        assert result.isprintable(), seed
        assert len(result) < 420, seed
        assert result.split(" ", 1)[1].startswith(("board: ", "file: ", "dense: ")), seed
    kinds = {result.split(":")[0] for result in results}
    assert {"manifest": "refused board", "packets": "opened dense"}[sort] in kinds

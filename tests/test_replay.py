"""What the replay writes is the same from run to run, and its random networks are compiled, not refused."""

from pathlib import Path

import pytest

from tests.replay import designs, networks


@pytest.mark.parametrize("kind", networks.KINDS)
def test_a_network_of_each_kind(kind: str) -> None:
    line = networks.line(kind, 0)
    assert line == networks.line(kind, 0)
    assert line.startswith("design ")


def test_a_design(tmp_path: Path) -> None:
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        designs.write(tmp_path / name, ["collect"])
    first, again = (sorted((tmp_path / name).rglob("*.*")) for name in ("first", "again"))
    assert [path.name for path in first] == [
        "collected.program.npz", "manifest.json", "simulation.v", "synthesis.v",
    ]  # fmt: skip
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


@pytest.mark.slow
def test_few_networks_are_refused() -> None:
    lines = [networks.line(kind, number) for kind in networks.KINDS for number in range(networks.EACH)]
    assert sum(line.startswith("refused ") for line in lines) < len(lines) / 10

"""Files of the replay are the same from run to run, and its random networks are compiled, not refused.

Cycles of the first networks of each kind are in tests/hls_gen/compiler/test_recorded_cycles.py.
"""

from pathlib import Path

import pytest

from tests.replay import designs, networks


def test_a_design(tmp_path: Path) -> None:
    for name in ("first", "again"):
        (tmp_path / name).mkdir()
        designs.write(tmp_path / name, ["collect"])
    first, again = (sorted((tmp_path / name).rglob("*.*")) for name in ("first", "again"))
    files = ["collected.program.npz", "manifest.json", "simulation.v", "synthesis.v"]
    assert [path.name for path in first] == files
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


@pytest.mark.slow
def test_few_networks_are_refused() -> None:
    lines = [networks.line(kind, number) for kind in networks.KINDS for number in range(networks.EACH)]
    assert sum(line.startswith("refused ") for line in lines) < len(lines) / 10

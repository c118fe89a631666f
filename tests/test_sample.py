"""The marker ``sample``: both tiers together run all cases of a test, the default one as many as the marker says."""

import subprocess
import sys

from tests.paths import ROOT

TEST = "tests/hls_gen/rtl/test_text.py::test_headers"


def collected(tier: str) -> set[str]:
    """The names of the cases that a tier runs."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run([*command, "-m", tier, TEST], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return {line for line in done.stdout.splitlines() if line.startswith(TEST)}


def test_both_tiers_together_have_every_case():
    default, slow, every = (collected(tier) for tier in ("not slow", "slow", "slow or not slow"))
    assert len(default) == 3
    assert default | slow == every
    assert default.isdisjoint(slow)
    assert len(every) > 3

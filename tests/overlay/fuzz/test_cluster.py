"""A campaign on a Dask cluster: scheduler and worker are processes of their own, as on other machines."""

import json
import subprocess
import sys

import pytest

from tests.commands import call
from tests.overlay.fuzz.test_campaign import files

CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""
"""Prints the scheduler's address, and ends with its standard input."""


@pytest.fixture
def scheduler(tmp_path_factory):
    """Address of a scheduler with one worker."""
    pytest.importorskip("distributed", reason="a cluster needs dask.distributed: pip install 'bitloom-fpga[cluster]'")
    script = tmp_path_factory.mktemp("cluster") / "cluster.py"
    script.write_text(CLUSTER)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, script], stdin=pipe, stdout=pipe, cwd=script.parent, text=True) as process:
        address = process.stdout.readline().strip()
        assert address.startswith("tcp://"), address
        yield address
        process.communicate()


def campaign(folder, *options):
    """Run some cases, and what the command prints as JSON."""
    words = ["fuzz", "files", "--cases", "50", "--seed", "3", "--jobs", "1", "--out", str(folder), "--json", *options]
    ran = call(*words)
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


@pytest.mark.slow
def test_a_campaign_on_a_cluster_is_the_same(scheduler, tmp_path):
    facts = campaign(tmp_path / "cluster", "--scheduler", scheduler)
    assert (facts["cases"], sum(facts["ends"].values())) == (50, 50)
    assert facts == campaign(tmp_path / "here")
    assert files(tmp_path / "cluster") == files(tmp_path / "here")


def test_nobody_at_the_address(tmp_path):
    pytest.importorskip("distributed", reason="a cluster needs dask.distributed: pip install 'bitloom-fpga[cluster]'")
    words = ["fuzz", "files", "--cases", "1", "--out", str(tmp_path), "--scheduler", "nonsense://here"]
    ran = call(*words)
    rule = "--scheduler must be the address of a Dask scheduler, got 'nonsense://here'"
    assert ran.exit_code == 1, ran.output
    assert ran.output.strip().startswith(f"bitloom: {rule}: ")
    assert "\n" not in ran.output.strip()

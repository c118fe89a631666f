"""The versions that pip picks by itself make a whole environment: each extra, all at once, and one after another.

pynq needs numpy 1, and its grpcio-tools a protobuf before 6; extras whose newest packages need more would end every
simulation. So after each installation the demo runs.
"""

import re

import pytest

from tests.paths import ROOT

from .environments import Environment

pytestmark = pytest.mark.slow

PYTHONS = ("3.10", "3.11", "3.12")
BASE = "hls,sim,cli"
LARGE = {"gpu", "brevitas", "docs", "dev"}
"""Extras of gigabytes, or of those who work on bitloom."""
OPTIONAL = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2].partition("\n[")[0]
ADDED = [
    name for name in re.findall(r"^([a-z]+) = \[", OPTIONAL, re.M) if name not in {*BASE.split(","), "all", *LARGE}
]


def check(environment, folder):
    """Every package has what it asks for, and the demo runs."""
    environment.run("python", "-m", "pip", "check", cwd=folder)
    assert "bit-exact" in environment.run("bitloom", "demo", "--frames", "8", cwd=folder).stdout


@pytest.mark.parametrize("version", PYTHONS)
def test_all_at_once(version, wheel, tmp_path):
    environment = Environment(tmp_path, version, "")
    environment.install(f"bitloom-fpga[all] @ {wheel.as_uri()}")
    check(environment, tmp_path)


@pytest.mark.parametrize("version", PYTHONS)
def test_the_documented_extras(version, wheel, tmp_path):
    """The first line of docs/start/install.md, from a clone that is installed as editable."""
    extras, _ = re.findall(r"^pip install -e '\.(\[.+\])'$", (ROOT / "docs/start/install.md").read_text(), re.M)
    environment = Environment(tmp_path, version, "")
    environment.install("-e", f"{wheel.parent / 'source'}{extras}")
    check(environment, tmp_path)


@pytest.mark.parametrize("version", PYTHONS)
def test_extras_one_after_another(version, wheel, tmp_path):
    """As messages ask for them: by the name of the distribution, which no index need know."""
    environment = Environment(tmp_path, version, "")
    environment.install(f"bitloom-fpga[{BASE}] @ {wheel.as_uri()}")
    for extra in ADDED:
        environment.install(f"bitloom-fpga[{extra}]")
        check(environment, tmp_path)

"""The versions of constraints.txt go together for every Python that the project supports."""

from importlib.metadata import distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.paths import ROOT

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


def pinned(python: str) -> dict[str, str]:
    """Versions that constraints.txt has for a Python, by package."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in pins if holds(pin, python)}


def holds(requirement: Requirement, python: str) -> bool:
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    return requirement.marker is None or requirement.marker.evaluate(environment)


@pytest.mark.parametrize("python", PYTHONS)
def test_what_is_pinned_goes_together(python: str) -> None:
    """As far as packages that are installed here say what they need; pynq is installed without."""
    pins = pinned(python)
    assert len(pins) > 50
    wrong = []
    for distribution in distributions():
        name = canonicalize_name(distribution.metadata["Name"])
        if pins.get(name) != distribution.version or name.startswith("pynq"):
            continue
        for need in map(Requirement, distribution.requires or ()):
            version = pins.get(canonicalize_name(need.name))
            if version and holds(need, python) and not need.specifier.contains(version, prereleases=True):
                wrong.append(f"{name} {distribution.version} needs {need}, got {version}")
    assert wrong == []

"""Files by which others run the project: hosted tests, container, online notebooks. What they name must exist here."""

import os
import re
import subprocess

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from bitloom.golden.distribution import PYNQ_ALONE
from tests.paths import ROOT

PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.findall(r"^([a-z-]+|\$\(VENV\)/\.ready-[a-z]+):", MAKEFILE, re.M))
PYTHONS = SpecifierSet(re.search(r'^requires-python = "(.+?)"', PROJECT, re.M).group(1))  # type: ignore[union-attr]
OPTIONAL = PROJECT.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
EXTRAS = set(re.findall(r"^([a-z]+) = \[", OPTIONAL, re.M))


def commands_of(text: str) -> list[str]:
    """Targets that make is called for."""
    return [target.replace(".venv", "$(VENV)") for target in re.findall(r"\bmake (?:-\S+ \S+ )?([a-z./-]+)", text)]


def test_hosted_tests_run_what_the_makefile_has() -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands_of("\n".join(commands)) == ["lint", "docs", "test", "$(VENV)/.ready-dev", "test-slow"]
    assert set(commands_of("\n".join(commands))) <= TARGETS
    versions = [*jobs["tests"]["strategy"]["matrix"]["python"]]
    assert versions == [
        "3.10",
        "3.12",
        "3.14",
    ]  # the ends of what the project supports, and of what pynq's packages ask for
    set_up = re.findall(r'python-version: "(.+)"', text)
    assert set(set_up) <= set(PYTHONS.filter((*versions, *set_up)))


def test_hosted_tests_name_files_that_there_are() -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    named = re.findall(r"\btests/\S+", text)
    assert named
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_makefile_takes_the_pythons_of_the_project() -> None:
    (low,) = re.findall(r"sys\.exit\(sys\.version_info\[:2\] < \(3, (\d+)\)\)", MAKEFILE)
    assert [f"3.{minor}" in PYTHONS for minor in (int(low) - 1, int(low))] == [False, True]
    assert "import" in re.search(r"^DEMO := (.+)$", MAKEFILE, re.M).group(1).split(",")  # type: ignore[union-attr]
    assert f"PYNQ := {PYNQ_ALONE.partition('--no-deps ')[2]}\n" in MAKEFILE


def test_the_container_makes_what_the_makefile_has() -> None:
    text = (ROOT / "Containerfile").read_text()
    assert set(commands_of(text)) | {"$(VENV)/.ready-demo", "demo"} <= TARGETS
    assert re.search(r"^FROM python:(\S+)-slim$", text, re.M).group(1) in PYTHONS  # type: ignore[union-attr]
    assert "RUN make .venv/.ready-demo\n" in text
    assert (ROOT / ".dockerignore").read_text() == (ROOT / ".containerignore").read_text()


def test_online_notebooks_install_extras_that_there_are() -> None:
    folder = ROOT / ".binder"
    script = folder / "postBuild"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)
    (asked,) = re.findall(r"-e '\.(\[.+\])'", script.read_text())
    assert Requirement(f"bitloom-fpga{asked}").extras <= EXTRAS
    assert (folder / "runtime.txt").read_text().removeprefix("python-").strip() in PYTHONS
    assert (folder / "apt.txt").read_text().split() == ["g++", "make"]

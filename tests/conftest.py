"""The same surroundings for every test: what a shell, a terminal or a continuous integration set, no test sees.

The slow tier varies them on purpose (tests/overlay/cli/test_surroundings.py) and sets ``BITLOOM_TEST_SURROUNDINGS``, so
that they stay as they are given. This file comes before any import of numpy, rich or bitloom, which read some of them
when they are imported.
"""

import gc
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, settings

TERMINAL = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "PAGER")
LOCALE = ("LANG", "LANGUAGE", "PYTHONUTF8", "PYTHONIOENCODING")
PYNQ = ("BOARD", "XILINX_XRT", "PYNQ_REMOTE_DEVICES")
ABSENT = (*TERMINAL, *LOCALE, "BITLOOM_CPU_PATH", *PYNQ)
"""Environment variables that change what commands print or choose."""

FIXED = {
    "LC_ALL": "C.UTF-8",  # messages of compilers in English
    "TERM": "dumb",
    "TZ": "UTC",
    "MPLBACKEND": "agg",  # no display
}

if "BITLOOM_TEST_SURROUNDINGS" not in os.environ:
    for name in ABSENT:
        os.environ.pop(name, None)
    os.environ.update(FIXED)
if os.environ.get("PYTHONDONTWRITEBYTECODE") == "1":  # as images of containers have it
    # Each worker, and each process that a test starts, would compile hundreds of files again.
    sys.dont_write_bytecode = False
    del os.environ["PYTHONDONTWRITEBYTECODE"]
if "PYTEST_XDIST_WORKER" in os.environ:  # a worker a processor: each is one thread
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


# Draws of hypothesis: the same ones in every run, however slow the machine is.
UNHURRIED = {"deadline": None, "suppress_health_check": list(HealthCheck)}
settings.register_profile("bitloom", **UNHURRIED, derandomize=True, database=None, print_blob=True)
settings.load_profile("bitloom")

gc.disable()  # while tests are collected


def pytest_collection_finish() -> None:
    """Garbage collections leave out what is there to the end anyway: a third of the time went into looking at it. And
    they come more seldom: of the rest they took 7 % of the time, and take 2 %."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Temporary files of tests and of what they call lie in a folder of pytest's: it removes those of former runs, also
    of a run that was killed."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
        monkeypatch.setenv("TMPDIR", tempfile.gettempdir())
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test with the marker ``sample(N)``, all cases but N are slow: the digests of their names say which. Cases
    that are slow anyway are none of the N."""
    cases = defaultdict[str, list[pytest.Item]](list)
    for item in items:
        if item.get_closest_marker("sample") and not item.get_closest_marker("slow"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for of_test in cases.values():
        marker = of_test[0].get_closest_marker("sample")
        assert marker is not None
        (count,) = marker.args
        for item in sorted(of_test, key=lambda item: sha256(item.nodeid.encode()).digest())[count:]:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Say how models are compiled, before fixtures do it: as fast as can be, unless -O1 pays as many cycles run."""
    many = any(item.get_closest_marker(name) for name in ("slow", "many_cycles"))
    os.environ["BITLOOM_OPTIMISE"] = "1" if many else "0"

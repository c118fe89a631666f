"""The campaigns themselves: a few cases in the default tier, on models that other tests compile too."""

from base64 import b64decode
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from zlib import decompress

import pytest

from bitloom.overlay.fuzz.campaign import replay
from bitloom.overlay.fuzz.campaigns import device, files, golden, imports, networks
from bitloom.overlay.fuzz.designs import BLOCKS
from bitloom.overlay.fuzz.pick import Pick

pytestmark = pytest.mark.many_cycles
CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))
QUICK = ("k3_g5", "ring_of_2")
INCOMPLETE = (44, 45)
"""Cases of the device that end in frames without results; among the first 10 there is none."""


def attack(name, campaign, cases, seed=0, others=(), seen=lambda case, word: None):
    """How so many cases end, and others with these numbers; none may find anything. ``seen`` gets each one, with its
    end."""
    ends = Counter()
    for number in (*range(cases), *others):
        case = campaign.case(Pick(name, seed, number))
        word, what = campaign.run(case)
        assert not what, (number, what, case)
        seen(case, word)
        ends[word] += 1
    print(ends)
    return ends


def test_files():
    """Many more are in test_files.py."""
    pytest.importorskip("onnx")
    ends = attack("files", files.FileCampaign(), 12)
    assert ends["refused"] >= 3


@pytest.mark.slow
def test_many_files():
    pytest.importorskip("onnx")
    assert attack("files", files.FileCampaign(), 2000)["refused"] >= 500


def imported(cases, **given):
    """How so many files of other tools end that are imported."""
    for module in ("onnx", "tflite"):
        pytest.importorskip(module, reason="the extra import is not installed")
    ends = attack("imports", imports.ImportCampaign(), cases, **given)
    return {word: count for word, count in ends.items() if "refused" not in word}


def test_imports():
    """Comparisons depend on the authorities that are installed; imports do not."""
    assert sum(imported(8).values()) >= 4


@pytest.mark.slow
def test_many_imports():
    """Simulated hardware computes every operator that is drawn."""
    from .test_imports import SELDOM, operators, to_be_drawn  # which needs the extra import

    left = to_be_drawn() - SELDOM

    def seen(case, word):
        if "refused" not in word and "not simulated" not in word:
            left.difference_update(operators(decompress(b64decode(case["file"]))))

    assert sum(imported(1000, seen=seen).values()) >= 500
    assert left == set()


def test_networks():
    ends = attack("networks", networks.NetworkCampaign(("k3_g5", "int_k3_g5", "ring_of_2")), 3)
    assert ends["exact"] >= 2


@pytest.mark.slow
def test_many_networks():
    assert attack("networks", networks.NetworkCampaign(), 2000)["exact"] >= 1500


def test_golden():
    ends = attack("golden", golden.GoldenCampaign(), 300)
    assert ends["exact"] >= 250


@pytest.mark.slow
def test_many_of_golden():
    assert attack("golden", golden.GoldenCampaign(), 20_000)["exact"] >= 18_000


def test_device():
    ends = attack("device", device.DeviceCampaign(QUICK), 10, others=INCOMPLETE)
    assert ends["right"] > 0
    assert ends["incomplete"] == len(INCOMPLETE)
    assert sum(count for word, count in ends.items() if word.startswith("error")) >= 2


@pytest.mark.slow
def test_device_at_length():
    ends = attack("device", device.DeviceCampaign(), 10_000)
    assert ends["right"] >= 1000
    assert ends["incomplete"] > 0


@pytest.mark.slow  # compiles a model
def test_depthwise_weights_and_a_window_former():
    """Networks that use them are exact, and survive attacks on their packets too."""
    assert attack("networks", networks.NetworkCampaign(tuple(BLOCKS)), 60)["exact"] >= 40
    ends = attack("device", device.DeviceCampaign(tuple(BLOCKS)), 200)
    assert min(ends["right"], ends["incomplete"]) > 0


def requests(cases):
    """How many calls so many cases of the server have, which must all be answered."""
    pytest.importorskip("pynq.remote", reason="PYNQ's remote protocol comes with pynq 4")
    from bitloom.overlay.fuzz.campaigns import server

    try:
        assert attack("server", server.ServerCampaign(), cases) == {"answered": cases}
    finally:
        server.running().stop()
        server.running.cache_clear()
    return sum(len(server.ServerCampaign().case(Pick("server", 0, n))["calls"]) for n in range(cases))


REFUSALS = {
    "a rule": ("INVALID_ARGUMENT", "size must be >= 1, got 0", ""),
    "1,000 characters": ("INVALID_ARGUMENT", "x" * 1000, ""),
    "a simulation that stands": ("DEADLINE_EXCEEDED", "no progress for 1000 cycles", ""),
    "nothing": ("INVALID_ARGUMENT", "", "must be refused in one line, got ''"),
    "two lines": ("INVALID_ARGUMENT", "a\nb", "must be refused in one line, got 'a\\nb'"),
    "1,001 characters": ("INVALID_ARGUMENT", "x" * 1001, f"must be refused in one line, got {'x' * 200!r}"),
    "a hang": ("DEADLINE_EXCEEDED", "late", "must be answered or refused with a rule, got DEADLINE_EXCEEDED: 'late'"),
    "a crash": (
        "UNKNOWN",
        "no progress for",
        "must be answered or refused with a rule, got UNKNOWN: 'no progress for'",
    ),
}
"""Status code and details of a refusal, and what is wrong with it."""


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_of_the_server_is_one_line(name):
    pytest.importorskip("pynq.remote", reason="PYNQ's remote protocol comes with pynq 4")
    from bitloom.overlay.fuzz.campaigns.server import _fault

    code, details, fault = REFUSALS[name]
    error = SimpleNamespace(code=lambda: SimpleNamespace(name=code), details=lambda: details)
    assert _fault(error) == fault


def test_server():
    assert requests(10) >= 50


@pytest.mark.slow
def test_server_at_length():
    assert requests(850) >= 5000


@pytest.mark.sample(10)
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_cases_that_were_found_once(path):
    if path.name.startswith("imports"):
        for module in ("onnx", "tflite"):
            pytest.importorskip(module, reason="the extra import is not installed")
    assert replay(path)[1] == ""

"""Limits: said once, listed in the documents, and the user's to change."""

import re

import pytest

from bitloom.golden.limits import LIMITS, Limit, check_read
from tests.errors import value_error
from tests.paths import ROOT

BEES = Limit("bees", 1000, "BITLOOM_MAX_BEES")


def test_a_limit_is_told_with_the_number_and_the_way_out(monkeypatch):
    BEES.check("hive", 1000)
    message = "hive: bees must be <= 1,000 (environment variable BITLOOM_MAX_BEES sets another limit), got 1,001"
    with value_error(message):
        BEES.check("hive", 1001)
    BEES.check("hive", 1001, least=1001)
    monkeypatch.setenv("BITLOOM_MAX_BEES", "1001")
    BEES.check("hive", 1001)


@pytest.mark.parametrize("text", ["0", "-1", "1e9", "many", "\u0661", "9" * 19])
def test_a_limit_is_a_number(text, monkeypatch):
    monkeypatch.setenv("BITLOOM_MAX_BEES", text)
    with value_error(f"BITLOOM_MAX_BEES: must be an integer >= 1, got {text!r}"):
        BEES.check("hive", 1)


def test_a_large_file_may_take_16_times_its_size(monkeypatch):
    monkeypatch.setenv("BITLOOM_MAX_READ_MB", "1")
    check_read("a.npz", 1 << 20, 0)
    check_read("a.npz", 16 << 20, 1 << 20)
    with value_error(
        "a.npz: MB of memory to read it must be <= 16 (environment variable BITLOOM_MAX_READ_MB sets another limit), "
        "got 32"
    ):
        check_read("a.npz", 32 << 20, 1 << 20)


def test_the_documents_list_them_all():
    page = (ROOT / "docs/reference/files.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(BITLOOM_MAX_\w+)` \|.*\| ([\d,]+) \|$", page, re.M)
    assert [(name, int(value.replace(",", ""))) for name, value in rows] == [
        (limit.variable, limit.default) for limit in LIMITS
    ]

"""Campaigns as such: seeds, folders, going on, cases in files, and the command; with a small campaign of the test's."""

import json
import re
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from bitloom.overlay.cli.group import bitloom
from bitloom.overlay.explore.workers import Workers
from bitloom.overlay.fuzz import campaign as campaigns
from bitloom.overlay.fuzz.campaign import read_case, read_progress, replay, run_campaign, until
from bitloom.overlay.fuzz.pick import SeededPick
from tests.errors import value_error


class Dice:
    """A case is a number of 1 to 20; 20 is wrong, and 19 raises an exception."""

    def case(self, pick):
        return {"number": pick.integer(1, 20)}

    def run(self, case):
        if case["number"] == 19:
            raise KeyError("nineteen\nand more")
        return ("wrong", "a number must be below 20, got 20") if case["number"] == 20 else ("right", "")


@pytest.fixture
def dice(monkeypatch):
    """Campaign "device" is Dice."""
    campaigns.campaign.cache_clear()
    monkeypatch.setattr(campaigns, "_module", lambda name: SimpleNamespace(campaign=Dice, BATCH=10))
    yield
    campaigns.campaign.cache_clear()


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_found_cases_are_written_and_can_be_replayed(dice, tmp_path):
    done = run_campaign("device", tmp_path / "a", until(200, None), seed=1)
    assert done.cases == sum(done.ends.values()) == 200
    assert min(done.ends["wrong"], done.ends["exception"]) > 0
    assert len(done.found) == done.ends["wrong"] + done.ends["exception"]
    assert sorted([*done.found, "campaign.json"]) == list(files(tmp_path / "a"))
    for name in done.found:
        data = json.loads((tmp_path / "a" / name).read_text())
        made = Dice().case(SeededPick("device", 1, data["number"]))
        assert (data["case"], data["seed"], name) == (made, 1, f"device-{data['number']}.json")
        found = {20: "a number must be below 20, got 20", 19: "KeyError: 'nineteen\\nand more'"}[made["number"]]
        assert replay(tmp_path / "a" / name)[1] == data["found"] == found


def test_the_same_seed_gives_the_same_campaign_however_it_is_cut(dice, tmp_path):
    run_campaign("device", tmp_path / "whole", until(90, None), seed=7)
    run_campaign("device", tmp_path / "parts", until(20, None), seed=7)
    for cases in (20, 30, 70, 90):
        run_campaign("device", tmp_path / "parts", until(cases, None))
    run_campaign("device", tmp_path / "other", until(90, None), seed=8)
    assert files(tmp_path / "whole") == files(tmp_path / "parts") != files(tmp_path / "other")


def test_minutes_end_a_campaign(dice, tmp_path):
    assert run_campaign("device", tmp_path, until(None, 0), seed=0).cases == 0
    assert not until(5, 1000)(5)
    assert until(5, 1000)(4)


def test_folders_of_campaigns(dice, tmp_path):
    run_campaign("device", tmp_path, until(10, None), seed=7)
    rule = "must hold no campaign when a new one begins, got one: --resume goes on with it"
    with value_error(f"{tmp_path}: {rule}"):
        run_campaign("device", tmp_path, until(10, None), seed=7)
    with value_error(f"{tmp_path / 'campaign.json'}: must be the state of a campaign server, got: that of device"):
        run_campaign("server", tmp_path, until(10, None))
    for text in ("", "[]", "{}", '{"format": 3}', "[" * 50_000):
        (tmp_path / "campaign.json").write_text(text)
        with pytest.raises(ValueError, match="must be the state of a campaign device, got: "):
            read_progress(tmp_path, "device")


@pytest.mark.parametrize("text", [
    "", "{", "[]", "null", "{}", "[" * 50_000, "\udcff",
    '{"format": "bitloom-case", "version": 1, "campaign": "none", "case": {}}',
    '{"format": "bitloom-case", "version": 2, "campaign": "device", "case": {}}',
    '{"format": "bitloom-case", "version": 1, "campaign": "device", "case": []}',
])  # fmt: skip
def test_files_that_hold_no_case(tmp_path, text):
    path = tmp_path / "case.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ValueError, match=f"^{re.escape(str(path))}: must be the file of a case: "):
        read_case(path)


def test_a_case_that_is_too_large(tmp_path):
    path = tmp_path / "case.json"
    with path.open("wb") as file:
        file.truncate(campaigns.LONGEST_CASE + 1)
    rule = f"at most {campaigns.LONGEST_CASE} bytes, got {campaigns.LONGEST_CASE + 1}"
    with value_error(f"{path}: must be the file of a case: {rule}"):
        read_case(path)


def double(number):
    return 2 * number


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_are_asked_for_when_they_are_needed(jobs):
    asked = []

    def tasks():
        for number in range(1000):
            asked.append(number)
            yield number

    results = Workers(jobs).stream(double, tasks())
    assert [next(results) for _ in range(3)] == [0, 2, 4]
    assert len(asked) <= 3 + 2 * jobs
    results.close()


def call(*arguments):
    return CliRunner().invoke(bitloom, ["fuzz", *map(str, arguments)])


def test_the_command(dice, tmp_path):
    ran = call("device", "--cases", 100, "--seed", 1, "--jobs", 1, "--out", tmp_path / "a", "--json")
    data = json.loads(ran.stdout)
    assert (ran.exit_code, data["cases"], data["seed"]) == (1, 100, 1)
    found = [name for name in data["found"] if json.loads((tmp_path / "a" / name).read_text())["case"]["number"] == 20]
    path = tmp_path / "a" / found[0]
    ran = call("device", "--replay", path)
    assert (ran.exit_code, ran.output) == (1, f"bitloom: {path}: a number must be below 20, got 20\n")
    ran = call("server", "--replay", path)
    assert ran.output == f"bitloom: {path}: must be a case of campaign server, got one of device\n"
    path.write_text(path.read_text().replace('"number": 20', '"number": 3'))
    ran = call("device", "--replay", path)
    assert (ran.exit_code, ran.output) == (0, f"{path}: right\n")
    ran = call("device", "--cases", 120, "--resume", "--jobs", 1, "--out", tmp_path / "a")
    assert "device: 120 cases of seed 1" in ran.stdout
    assert f"found: {path}" in ran.stdout

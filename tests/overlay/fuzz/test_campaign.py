"""Campaigns as such: seeds, folders, going on, cases in files, and the command; with a small campaign of the test's."""

import json
import os
from functools import partial
from multiprocessing import get_context
from types import SimpleNamespace

import pytest

from bitloom.overlay.explore import workers
from bitloom.overlay.explore.workers import Workers
from bitloom.overlay.fuzz import campaign as campaigns
from bitloom.overlay.fuzz.campaign import read_case, read_progress, replay, run_campaign, until
from bitloom.overlay.fuzz.pick import Pick
from tests import commands
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
    monkeypatch.setattr(campaigns, "import_module", lambda name: SimpleNamespace(DeviceCampaign=Dice))
    yield
    campaigns.campaign.cache_clear()


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_found_cases_are_written_and_can_be_replayed(dice, tmp_path):
    done = run_campaign("device", tmp_path / "a", until(200, None), seed=1)
    assert done.cases == sum(done.ends.values()) == 200
    assert min(done.ends["wrong"], done.ends["exception"]) > 0
    assert len(done.case_files) == done.ends["wrong"] + done.ends["exception"]
    assert sorted([*done.case_files, "campaign.json"]) == list(files(tmp_path / "a"))
    for name in done.case_files:
        data = json.loads((tmp_path / "a" / name).read_text())
        case = Dice().case(Pick("device", 1, data["number"]))
        assert (data["case"], data["seed"], name) == (case, 1, f"device-{data['number']}.json")
        message = {20: "a number must be below 20, got 20", 19: "KeyError: 'nineteen\\nand more'"}[case["number"]]
        assert replay(tmp_path / "a" / name)[1] == data["found"] == message


def test_the_same_seed_gives_the_same_campaign_however_it_is_cut(dice, tmp_path):
    run_campaign("device", tmp_path / "whole", until(90, None), seed=7)
    run_campaign("device", tmp_path / "parts", until(2, None), seed=7)  # less than a batch
    for cases in (2, 13, 70, 90):
        assert run_campaign("device", tmp_path / "parts", until(cases, None)).cases == cases
    run_campaign("device", tmp_path / "other", until(90, None), seed=8)
    assert files(tmp_path / "whole") == files(tmp_path / "parts") != files(tmp_path / "other")


class Deadly(Dice):
    """20 ends the process."""

    def run(self, case):
        return os._exit(1) if case["number"] == 20 else super().run(case)


def test_a_case_that_ends_its_process_is_found(dice, tmp_path, monkeypatch):
    whole = run_campaign("device", tmp_path / "whole", until(60, None), seed=1)
    monkeypatch.setattr(campaigns, "import_module", lambda name: SimpleNamespace(DeviceCampaign=Deadly))
    campaigns.campaign.cache_clear()
    for module in (campaigns, workers):  # so that processes have this campaign
        monkeypatch.setattr(module, "get_context", lambda _: get_context("fork"))
    done = run_campaign("device", tmp_path / "parts", until(60, None), seed=1, workers=Workers(2))
    assert done.ends.pop("process ended") == whole.ends.pop("wrong") > 1
    assert (done.ends, done.case_files) == (whole.ends, whole.case_files)
    ended = [json.loads((tmp_path / "parts" / name).read_text()) for name in done.case_files]
    assert {each["found"] for each in ended if each["case"]["number"] == 20} == {
        "a case must end as a word, got the end of its process"
    }


def test_minutes_end_a_campaign(dice, tmp_path):
    assert run_campaign("device", tmp_path, until(None, 0), seed=0).cases == 0
    assert [until(5, 1000)(done) for done in (3, 5, 7)] == [2, 0, 0]
    assert until(None, 1000)(1 << 40) > 0


def test_folders_of_campaigns(dice, tmp_path):
    run_campaign("device", tmp_path, until(10, None), seed=7)
    rule = "must hold no campaign when a new one begins, got one: --resume goes on with it"
    with value_error(f"{tmp_path}: {rule}"):
        run_campaign("device", tmp_path, until(10, None), seed=7)
    with value_error(f"{tmp_path / 'campaign.json'}: must be the state of campaign server, got that of 'device'"):
        run_campaign("server", tmp_path, until(10, None))


STATE = "must be the state of a campaign, format 'bitloom-campaign', version 1, got"
JSON = "must be JSON, got:"
EMPTY, DEEP = "Expecting value: line 1 column 1 (char 0)", "more than 64 lists and objects inside each other"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", f"the state of a campaign {JSON} {EMPTY}"),
        ("[]", f"{STATE} []"),
        ('{"format": 3}', f"{STATE} {{'format': 3}}"),
        ("[" * 50_000, f"the state of a campaign {JSON} {DEEP}"),
    ],
)
def test_files_that_hold_no_state(tmp_path, text, rule):
    path = tmp_path / "campaign.json"
    path.write_text(text)
    with value_error(f"{path}: {rule}"):
        read_progress(tmp_path, "device")


FOUND = "found must be a list of files of cases, got"


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("seed", -1, "seed must be an integer >= 0, got -1"),
        ("seed", "7", "seed must be an integer >= 0, got '7'"),
        ("cases", 1.5, "cases must be an integer >= 0, got 1.5"),
        ("cases", True, "cases must be an integer >= 0, got True"),
        ("cases", 20, "ends must be a count for each word, 20 in all, got {'right': 10}"),
        ("ends", ["right"], "ends must be a count for each word, 10 in all, got ['right']"),
        ("ends", {"right": "10"}, "ends 'right' must be an integer >= 0, got '10'"),
        ("found", "device-1.json", f"{FOUND} 'device-1.json'"),
        ("found", ["../device-1.json"], f"{FOUND} ['../device-1.json']"),
        ("found", [None], f"{FOUND} [None]"),
    ],
)
def test_states_of_a_stranger(tmp_path, key, value, rule):
    path = tmp_path / "campaign.json"
    counts = {"seed": 7, "cases": 10, "ends": {"right": 10}, "found": []}
    state = {"format": "bitloom-campaign", "version": 1, "campaign": "device", **counts}
    path.write_text(json.dumps(state))
    assert read_progress(tmp_path, "device").cases == 10
    path.write_text(json.dumps(state | {key: value}))
    with value_error(f"{path}: {rule}"):
        read_progress(tmp_path, "device")


FORM = "must be a case, format 'bitloom-case', version 1, got"
CAMPAIGN = "must be a case of a campaign, files, imports, device, networks, server, golden, with its data, got one of"


CASE = '{"format": "bitloom-case", "version": 1, '


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", f"a case {JSON} {EMPTY}"),
        ("[]", f"{FORM} []"),
        ("null", f"{FORM} None"),
        ("[" * 50_000, f"a case {JSON} {DEEP}"),
        ('{"format": "bitloom-case", "version": 2}', f"{FORM} {{'format': 'bitloom-case', 'version': 2}}"),
        (CASE + '"campaign": "none", "case": {}}', f"{CAMPAIGN} 'none'"),
        (CASE + '"campaign": [], "case": {}}', f"{CAMPAIGN} []"),
        (CASE + '"campaign": "device", "case": []}', f"{CAMPAIGN} 'device'"),
    ],
)
def test_files_that_hold_no_case(tmp_path, text, rule):
    path = tmp_path / "case.json"
    path.write_text(text)
    with value_error(f"{path}: {rule}"):
        read_case(path)


def test_a_case_that_is_too_large(tmp_path):
    path = tmp_path / "case.json"
    with path.open("wb") as file:
        file.truncate(campaigns.LONGEST_CASE + 1)
    with value_error(f"{path}: must be a case of at most 16,777,216 bytes, got 16,777,217"):
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


call = partial(commands.call, "fuzz")


def test_the_command(dice, tmp_path):
    ran = call("device", "--cases", 100, "--seed", 1, "--jobs", 1, "--out", tmp_path / "a", "--json")
    data = json.loads(ran.stdout)
    assert (ran.exit_code, data["cases"], data["seed"]) == (1, 100, 1)
    names = [name for name in data["found"] if json.loads((tmp_path / "a" / name).read_text())["case"]["number"] == 20]
    path = tmp_path / "a" / names[0]
    ran = call("device", "--replay", path)
    assert (ran.exit_code, ran.output) == (1, f"bitloom: {path}: a number must be below 20, got 20\n")
    ran = call("server", "--replay", path)
    assert ran.output == f"bitloom: {path}: must be a case of campaign server, got one of device\n"
    path.write_text(path.read_text().replace('"number": 20', '"number": 3'))
    ran = call("device", "--replay", path)
    assert (ran.exit_code, ran.output) == (0, f"{path}: right\n")
    assert json.loads(call("device", "--replay", path, "--json").output) == {"name": "device", "ends": {"right": 1}}
    ran = call("device", "--cases", 120, "--resume", "--jobs", 1, "--out", tmp_path / "a")
    assert "device: 120 cases of seed 1" in ran.stdout
    assert f"found: {path}" in ran.stdout


LEFT_OUT = ["--minutes 1", "--cases 1", "--seed 0", "--out x", "--resume", "--jobs 1", "--scheduler x"]
SEED = "fuzz: --resume goes on with the campaign's own seed, so --seed must be left out"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        *(
            (
                ["--replay", "x.json", *words.split()],
                f"fuzz: --replay runs one case, so {words.split()[0]} must be left out",
            )
            for words in LEFT_OUT
        ),
        (["--resume", "--seed", "3"], SEED),
    ],
)
def test_nothing_that_is_said_is_left_aside(words, message):
    ran = call("device", *words)
    assert (ran.exit_code, ran.output) == (1, f"bitloom: {message}\n")


def test_a_campaign_that_only_time_ends(dice, tmp_path):
    """The total of its cases is unknown."""
    ran = call("device", "--minutes", "0.0001", "--jobs", 1, "--seed", 1, "--out", tmp_path / "a")
    assert "cases of seed 1" in ran.stdout, ran.output


def test_minutes_are_a_number(tmp_path):
    ran = call("device", "--minutes", "nan", "--out", tmp_path)
    assert ran.exit_code == 2
    assert ran.output.endswith("Invalid value for '--minutes': must be a number, got nan\n")

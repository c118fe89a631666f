"""A campaign: cases that belong to a seed, run by many processes, and what they find.

Case ``n`` of a seed is always the same one. So a campaign can be stopped and resumed, and machines may share it. Folder
``out`` of a campaign holds

    campaign.json         which campaign, its seed, how many cases are done, and how they ended
    <campaign>-<n>.json   each case that found something: all that is needed to run it again (``read_case``)
"""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

from bitloom.golden import atomic
from bitloom.golden.names import shown
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import read_json
from bitloom.overlay.explore.workers import Workers, end_with_parent

from .pick import Pick

CAMPAIGNS = {
    "files": ("FileCampaign", 25),
    "imports": ("ImportCampaign", 10),
    "device": ("DeviceCampaign", 25),
    "networks": ("NetworkCampaign", 10),
    "server": ("ServerCampaign", 50),
    "golden": ("GoldenCampaign", 50),
}
"""Name of a campaign, which is that of its module in folder ``campaigns`` -> its class, and the cases that a process
does at a time."""
STATE = "campaign.json"
STATE_FORMAT = "bitloom-campaign"
CASE_FORMAT = "bitloom-case"
VERSION = 1
LONGEST_CASE = 16 << 20
"""Bytes of a case's file at most."""

_CASE_FILE = re.compile(rf"(?:{'|'.join(CAMPAIGNS)})-[0-9]{{1,18}}\.json", re.ASCII)

Case = dict[str, Any]
"""All that a case needs, as JSON data."""


class Campaign(Protocol):
    """One kind of attack."""

    def case(self, pick: Pick) -> Case:
        """A new case; ``pick`` makes all choices."""

    def run(self, case: Case) -> tuple[str, str]:
        """Run a case: how it ends, as one word, and one line that says what is wrong; "" if nothing is."""


@dataclass(frozen=True)
class CaseBatch:
    """Some cases of a campaign: a task of a process."""

    name: str
    seed: int
    """name, seed: of the campaign."""
    first: int
    count: int
    """first, count: number of the first case, and how many follow each other."""


@dataclass(frozen=True)
class FoundCase:
    """A case that found something."""

    number: int
    """Of the case."""
    case: Case
    """The case itself."""
    what: str
    """One line that says what is wrong."""


@dataclass
class CampaignState:
    """How far a campaign is."""

    name: str
    seed: int
    """name, seed: of the campaign."""
    cases: int = 0
    """Number of cases that are done, from the first on."""
    ends: Counter[str] = field(default_factory=Counter)
    """Number of cases by the word with which they ended."""
    case_files: list[str] = field(default_factory=list)
    """Names of the files of cases that found something."""

    def to_dict(self) -> dict[str, Any]:
        """JSON data, as ``bitloom fuzz --json`` prints it."""
        ends = dict(self.ends)
        return {"name": self.name, "seed": self.seed, "cases": self.cases, "ends": ends, "found": self.case_files}


@cache
def campaign(name: str) -> Campaign:
    """The campaign of that name; a process makes it once, with the models that it needs."""
    kind, _ = CAMPAIGNS[name]
    made: Campaign = getattr(import_module(f"bitloom.overlay.fuzz.campaigns.{name}"), kind)()
    return made


def run_batch(batch: CaseBatch) -> tuple[Counter[str], list[FoundCase]]:
    """Run a batch: the number of cases by the word with which they ended, and the cases that found something."""
    module = campaign(batch.name)
    ends = Counter[str]()
    findings = []
    for number in range(batch.first, batch.first + batch.count):
        drawn = module.case(Pick(batch.name, batch.seed, number))
        case = json.loads(json.dumps(drawn))  # as a file would hold it
        word, what = _run(module, case)
        ends[word] += 1
        if what:
            findings.append(FoundCase(number, case, what))
    return ends, findings


def replay(path: Path | str) -> tuple[str, str]:
    """Run the case of a file again; as ``Campaign.run``.

    Raises
    ------
    ValueError
        If the file holds no case.
    """
    name, case = read_case(path)
    return _run(campaign(name), case)


def _run(module: Campaign, case: Case) -> tuple[str, str]:
    """Run a case. An unexpected exception is a finding, too."""
    try:
        return module.run(case)
    except Exception as error:  # whatever it is, it is what was looked for
        return "exception", f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def read_case(path: Path | str) -> tuple[str, Case]:
    """The campaign's name and the case that a file holds.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        If the file holds no case.
    """
    path = Path(path)
    size = path.stat().st_size
    if size > LONGEST_CASE:
        raise ValueError(f"{path}: must be a case of at most {LONGEST_CASE:,} bytes, got {size:,}")
    data = _object(path, "a case", CASE_FORMAT)
    if data.get("campaign") not in list(CAMPAIGNS) or not isinstance(data.get("case"), dict):  # any JSON
        got = f"one of {shown(data.get('campaign'))}"
        raise ValueError(f"{path}: must be a case of a campaign, {', '.join(CAMPAIGNS)}, with its data, got {got}")
    return data["campaign"], data["case"]


def _object(path: Path, what: str, form: str) -> dict[str, Any]:
    """The JSON object in a file of ours; ValueError where its format or version is another."""
    data = read_json(path, what)
    if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (form, VERSION):
        raise ValueError(f"{path}: must be {what}, format {form!r}, version {VERSION}, got {shown(data)}")
    return data


def run_campaign(
    name: str,
    out: Path,
    more: Callable[[int], int],
    *,
    seed: int | None = None,
    workers: Workers | None = None,
    progress: Callable[[CampaignState], object] = lambda _: None,
) -> CampaignState:
    """Run a campaign, or go on with the one in ``out``.

    Parameters
    ----------
    name
        One of CAMPAIGNS.
    out
        Its folder.
    more
        Called before each batch with the number of cases done; gives the most cases to do next, 0 to end.
    seed
        Of a new campaign, >= 0; None goes on with the one in ``out``.
    workers
        Processes that run the cases; by default this process.
    progress
        Called after each batch.

    Returns
    -------
    CampaignState
        The state at the end.

    Raises
    ------
    ValueError
        If a seed is given and ``out`` holds a campaign, or no seed is given and ``out`` doesn't hold campaign ``name``.
    """
    state = _new(name, out, seed) if seed is not None else read_progress(out, name)
    _, size = CAMPAIGNS[name]

    def batches() -> Iterator[CaseBatch]:
        at = state.cases
        while count := min(size, more(at)):
            yield CaseBatch(name, state.seed, at, count)
            at += count

    def done(ends: Counter[str], findings: list[FoundCase]) -> None:
        for finding in findings:
            path = out / f"{name}-{finding.number}.json"
            about = {"campaign": name, "found": finding.what, "seed": state.seed, "number": finding.number}
            _write(path, {"format": CASE_FORMAT, "version": VERSION, **about, "case": finding.case})
            state.case_files.append(path.name)
        state.cases += sum(ends.values())
        state.ends += ends
        _save(out, state)
        progress(state)

    _save(out, state)
    is_broken = True
    while is_broken:
        try:
            for ends, findings in (workers or Workers()).stream(run_batch, batches()):
                done(ends, findings)
            is_broken = False
        except BrokenProcessPool:  # by a case of one of the next batches: it is found when its turn comes
            for batch in islice(batches(), 1):
                for number in range(batch.first, batch.first + batch.count):
                    done(*_run_alone(CaseBatch(name, state.seed, number, 1)))
    return state


def _run_alone(batch: CaseBatch) -> tuple[Counter[str], list[FoundCase]]:
    """As `run_batch` of one case, in a process of its own; that the case ends the process is a finding."""
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=end_with_parent) as pool:
        try:
            return pool.submit(run_batch, batch).result()
        except BrokenProcessPool:
            case = campaign(batch.name).case(Pick(batch.name, batch.seed, batch.first))
            what = "a case must end as a word, got the end of its process"
            return Counter({"process ended": 1}), [FoundCase(batch.first, case, what)]


def until(cases: int | None, minutes: float | None) -> Callable[[int], int]:
    """The function ``more`` of ``run_campaign`` that ends a campaign after so many cases or minutes."""
    end = None if minutes is None else time.monotonic() + 60 * minutes

    def more(done: int) -> int:
        if end is not None and time.monotonic() >= end:
            return 0
        return sys.maxsize if cases is None else max(0, cases - done)

    return more


def read_progress(out: Path, name: str) -> CampaignState:
    """The state of the campaign in ``out``; ValueError if it is not campaign ``name``, OSError if there is none."""
    path = out / STATE
    data = _object(path, "the state of a campaign", STATE_FORMAT)
    if data.get("campaign") != name:
        raise ValueError(f"{path}: must be the state of campaign {name}, got that of {shown(data.get('campaign'))}")
    with naming(path):
        seed, cases = (_count(data.get(key), key) for key in ("seed", "cases"))
        ends = data.get("ends")
        files = data.get("found")
        if not isinstance(ends, dict) or sum(_count(n, f"ends {shown(word)}") for word, n in ends.items()) != cases:
            raise ValueError(f"ends must be a count for each word, {cases:,} in all, got {shown(ends)}")
        if not isinstance(files, list) or not all(_CASE_FILE.fullmatch(str(file)) for file in files):
            raise ValueError(f"found must be a list of files of cases, got {shown(files)}")
    return CampaignState(name, seed, cases, Counter(ends), files)


def _count(value: object, what: str) -> int:
    """The value, if it is an integer >= 0; else ValueError."""
    if type(value) is not int or value < 0:
        raise ValueError(f"{what} must be an integer >= 0, got {shown(value)}")
    return value


def _new(name: str, out: Path, seed: int) -> CampaignState:
    """A campaign that begins; ValueError where ``out`` has one."""
    if (out / STATE).exists():
        raise ValueError(f"{out}: must hold no campaign when a new one begins, got one: --resume goes on with it")
    return CampaignState(name, seed)


def _save(out: Path, state: CampaignState) -> None:
    """Write how far a campaign is."""
    about = {"campaign": state.name, "seed": state.seed, "cases": state.cases}
    data = {"format": STATE_FORMAT, "version": VERSION, **about, "ends": dict(state.ends), "found": state.case_files}
    _write(out / STATE, data)


def _write(path: Path, data: Mapping[str, Any]) -> None:
    """Write JSON to a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_text(atomic.inside(path.parent, path.name), json.dumps(data, indent=1) + "\n")

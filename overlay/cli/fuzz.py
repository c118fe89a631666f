"""The command fuzz: attacks with random input, for a given time."""

import os
import sys
from pathlib import Path

import click

from bitloom.overlay.explore.workers import MOST_JOBS, Workers
from bitloom.overlay.fuzz.campaign import CAMPAIGNS, CampaignState, read_case, replay, run_campaign, until

from .options import FILE, WRITTEN_FOLDER, NumberRange, given
from .progress import bar
from .show import dump, json_option, table

MINUTES = 5.0
"""Default length of a campaign."""
OF_CAMPAIGNS = ("minutes", "cases", "seed", "out", "resume", "jobs", "scheduler")
"""Parameters that only a campaign looks at."""


@click.command("fuzz")
@click.argument("campaign", type=click.Choice(list(CAMPAIGNS)))
@click.option("--minutes", type=NumberRange(0, 1e6, min_open=True), help="Time at most.  [default: 5]")
@click.option("--cases", type=click.IntRange(1), help="Cases at most, since the campaign began.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Which cases; each has a number besides.")
@click.option("--out", type=WRITTEN_FOLDER, help="Folder of the campaign.  [default: build/fuzz/CAMPAIGN]")
@click.option("--resume", is_flag=True, help="Go on with the campaign in --out.")
@click.option("--replay", "case", type=FILE, help="Run the case of this file instead.")
@click.option("--jobs", type=click.IntRange(1), help="Processes at work.  [default: one a processor]")
@click.option("--scheduler", help="Address of a Dask scheduler whose workers do the jobs.")
@json_option
def fuzz_command(
    campaign: str,
    minutes: float | None,
    cases: int | None,
    seed: int,
    out: Path | None,
    resume: bool,
    case: Path | None,
    jobs: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Attack the project with random input: damaged files, files of other tools, a device, networks, a server, golden.

    A case that finds something is written to a file of its own, and the exit status is then 1. A campaign can be
    stopped at any time and resumed; the same seed gives the same cases on every machine.
    """
    if case is not None:
        if option := given(OF_CAMPAIGNS):
            raise ValueError(f"fuzz: --replay runs one case, so {option} must be left out")
        word = _replay(campaign, case)
        if as_json:
            dump({"name": campaign, "ends": {word: 1}})
        else:
            click.echo(f"{case}: {word}")
        return
    if resume and given(["seed"]):
        raise ValueError("fuzz: --resume goes on with the campaign's own seed, so --seed must be left out")
    out = out or Path("build") / "fuzz" / campaign
    minutes = MINUTES if minutes is None and cases is None else minutes
    workers = Workers(jobs or min(os.cpu_count() or 1, MOST_JOBS), scheduler)
    with bar(f"fuzz {campaign}", "cases") as update:
        done = run_campaign(
            campaign,
            out,
            until(cases, minutes),
            seed=None if resume else seed,
            workers=workers,
            progress=lambda state: update(state.cases, cases),
        )
    if as_json:
        dump(done.to_dict())
    else:
        _show(done, out)
    if done.case_files:
        sys.exit(1)


def _show(done: CampaignState, out: Path) -> None:
    """Print how the cases ended, and the files of those that found something."""
    rows = {word: f"{count:,}" for word, count in done.ends.most_common()}
    table(f"{done.name}: {done.cases:,} cases of seed {done.seed}", rows)
    for name in done.case_files:
        click.echo(f"found: {out / name}")


def _replay(campaign: str, case: Path) -> str:
    """Run the case of a file again: the word with which it ends. ValueError where it still finds something."""
    name, _ = read_case(case)
    if name != campaign:
        raise ValueError(f"{case}: must be a case of campaign {campaign}, got one of {name}")
    word, what = replay(case)
    if what:
        raise ValueError(f"{case}: {what}")
    return word

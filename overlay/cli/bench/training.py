"""The command bench training: how fast the training machine learns, by its slaves, and what it waits for."""

from dataclasses import asdict

import click

from bitloom.golden.discrete.data import DATA
from bitloom.overlay.cli.options import MACHINE_SLAVES
from bitloom.overlay.cli.progress import bar
from bitloom.overlay.cli.show import dump, grid, json_option
from bitloom.overlay.study.machine_learning import UNIT_NAMES, MachinePlan
from bitloom.overlay.study.machine_setting import MACHINE_SETTINGS
from bitloom.overlay.study.machine_speed import MachineSpeed, measure_speed


@click.command("training")
@click.option("--slaves", type=click.Choice(MACHINE_SLAVES), multiple=True, default=MACHINE_SLAVES, help="Machines.")
@click.option("--hidden", type=click.IntRange(1, 4096), default=32, help="Neurons of the hidden layer.")
@click.option("--setting", type=click.Choice(list(MACHINE_SETTINGS)), default="words", help="What is discrete.")
@click.option("--batch", type=click.IntRange(1, 256), help="Images of a batch.  [default: that of the setting]")
@json_option
def training_command(slaves: tuple[str, ...], hidden: int, setting: str, batch: int | None, as_json: bool) -> None:
    """Measure how many cycles a sample of digits takes on the training machine, and what its instructions wait for.

    Ideal is a multiplication a slave and cycle; the interpreter takes a cycle for each word of a unit; hardware is the
    generated Verilog in Verilator. The last column is what hardware would take if each unit had a queue.
    """
    plan = MachinePlan(hidden=(hidden,), setting=setting, batch=batch)
    counts = [int(count) for count in dict.fromkeys(slaves)]
    with bar("building and running", "machines") as update:
        speeds = measure_speed(plan, DATA["digits"](), counts, update)
    if as_json:
        dump([asdict(speed) for speed in speeds])
        return
    about = f"digits, {hidden} hidden neurons, {setting}"
    _show_speeds(f"{about}: cycles a sample", speeds)
    _show_waits(f"{about}: cycles a sample in which an instruction waits, in hardware", speeds)


def _show_speeds(title: str, speeds: list[MachineSpeed]) -> None:
    """Print a row for each machine."""
    slowest = max(speed.hardware for speed in speeds)
    rows = []
    for speed in speeds:
        cycles = [f"{value:,.0f}" for value in (speed.ideal, speed.interpreter, speed.hardware)]
        times = [f"{slowest / speed.hardware:.2f}", f"{speed.ideal / speed.hardware:.0%}"]
        rows.append([str(speed.slaves), *cycles, *times, f"{speed.queued:,.0f}"])
    grid(title, ["slaves", "ideal", "interpreter", "hardware", "times as fast", "of the ideal", "with queues"], rows)


def _show_waits(title: str, speeds: list[MachineSpeed]) -> None:
    """Print a row for each unit and what it waits for, a column for each machine."""
    causes = sorted({(unit, cause) for speed in speeds for unit, waits in speed.waits.items() for cause in waits})
    rows = []
    for unit, cause in causes:
        cycles = [f"{speed.waits.get(unit, {}).get(cause, 0):,.0f}" for speed in speeds]
        rows.append([UNIT_NAMES.get(unit, unit), UNIT_NAMES.get(cause, cause), *cycles])
    grid(title, ["unit", "waits for", *(f"{speed.slaves} slaves" for speed in speeds)], rows, labels=2)

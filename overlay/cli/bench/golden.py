"""The command bench golden: golden's fast forward pass beside onnxruntime's int8 on this processor."""

from typing import Any

import click

from bitloom.golden.zoo.mlperf_tiny import NETWORKS
from bitloom.overlay.cli.progress import bar
from bitloom.overlay.cli.show import dump, grid
from bitloom.overlay.study import golden_speed
from bitloom.overlay.study.convolutions import TimedRow

from .convolutions import tell_not_run, timing_options


@click.command("golden")
@click.argument("names", metavar="[ic|kws|vww|ad]...", nargs=-1, type=click.Choice(list(NETWORKS)))
@timing_options(golden_speed.BATCHES, golden_speed.ROUNDS)
def golden_command(names: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Measure golden's fast forward pass of MLPerf Tiny's networks beside onnxruntime's int8, on this processor.

    Milliseconds a frame, medians of runs in turn. `taskset -c 0 bitloom bench golden` gives both one thread. Without
    onnxruntime there are no ratios.
    """
    with bar("golden's fast forward pass", "networks and batches") as update:
        rows = golden_speed.measure(tuple(dict.fromkeys(names or NETWORKS)), progress=update, **options)
    if as_json:
        dump(rows)
        return
    first = rows[0]
    title = f"ms a frame; {first['device']}, threads: {first['threads']}"
    shown = dict.fromkeys((row["network"], row["batch"]) for row in rows)
    names_of = list(dict.fromkeys(row["implementation"] for row in rows))
    cells = {(row["network"], row["batch"], row["implementation"]): row for row in rows}
    lines = []
    for network, batch in shown:
        several = [cells[network, batch, name] for name in names_of]
        times = several[0]["times_onnxruntime"]
        lines.append([network, str(batch), *map(_ms, several), f"{times:.2f}" if times else ""])
    grid(title, ["network", "batch", *names_of, "times onnxruntime"], lines, labels=2)
    tell_not_run(rows)


def _ms(row: TimedRow) -> str:
    return "not run" if row["ms"] is None else f"{row['ms']:.4f}"

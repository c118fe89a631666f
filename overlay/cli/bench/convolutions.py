"""Common parts of bench cpu and bench gpu: options, the measurement and the table; bench golden has some of them."""

from collections.abc import Sequence

import click

from bitloom.overlay.cli.option_groups import Decorator, together
from bitloom.overlay.cli.progress import bar
from bitloom.overlay.cli.show import dump, grid, json_option
from bitloom.overlay.study import convolutions
from bitloom.overlay.study.contenders import shapes
from bitloom.overlay.study.convolutions import TimedRow


def timing_options(batches: Sequence[int], rounds: int) -> Decorator:
    """``--batch``, ``--rounds``, with these defaults, and ``--json``."""
    several = {"multiple": True, "type": click.IntRange(1), "default": batches}
    return together(
        click.option("--batch", "batches", **several, help="Images; may be given again."),
        click.option("--rounds", type=click.IntRange(1), default=rounds, help="Runs that the median is of."),
        json_option,
    )


convolution_options = together(
    click.option("--shape", "texts", multiple=True, help="Only shapes with this text; may be given again."),
    timing_options(convolutions.BATCHES, convolutions.ROUNDS),
)
"""``--shape``, and `timing_options`."""


def measure_and_show(
    device: str, texts: Sequence[str], batches: Sequence[int], rounds: int, as_json: bool, threads: int | None = None
) -> None:
    """Measure the shapes with ``texts`` in their names on ``device``, "cpu" or "cuda", and print the rows."""
    chosen = shapes(texts)
    with bar(f"convolutions on {device}", "shapes and batches") as update:
        rows = convolutions.measure(
            device, chosen=chosen, batches=batches, rounds=rounds, threads=threads, progress=update
        )
    if as_json:
        dump(rows)
        return
    first = rows[0]
    click.echo(first["device"] + (f", {first['threads']} threads" if device == "cpu" else ""))
    for shape in dict.fromkeys(row["shape"] for row in rows):
        _show(shape, [row for row in rows if row["shape"] == shape])
    tell_not_run(rows)


def tell_not_run(rows: Sequence[TimedRow]) -> None:
    """Print why implementations didn't run, a line for each reason."""
    for reason in dict.fromkeys(f"{row['implementation']}: not run: {row['reason']}" for row in rows if row["reason"]):
        click.echo(reason)


def _show(shape: str, rows: Sequence[TimedRow]) -> None:
    """A line for each implementation: ms of a batch of so many; bytes of the input are those of an image."""
    batches = list(dict.fromkeys(row["batch"] for row in rows))
    lines: dict[str, list[str]] = {}
    for row in rows:
        lines.setdefault(row["implementation"], []).extend(_time(row))
    for row in rows[: len(lines)]:
        lines[row["implementation"]] += [f"{row['input_bytes'] // row['batch']:,}", f"{row['weight_bytes']:,}"]
    times = [heading for batch in batches for heading in (f"ms of {batch}", f"x fp32 of {batch}")]
    grid(shape, ["", *times, "input B", "weights B"], [[name, *line] for name, line in lines.items()])


def _time(row: TimedRow) -> tuple[str, str]:
    """Milliseconds, and how many times as fast as PyTorch in fp32."""
    speedup = row["speedup_vs_torch_fp32"]
    return "not run" if row["ms"] is None else f"{row['ms']:.3f}", f"{speedup:.1f}" if speedup else ""

"""The commands bench cpu and bench gpu: the packed convolution beside PyTorch's convolutions."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from bitloom.golden.kernels.tiled import cpu as cpu_path
from bitloom.overlay.study import convolutions as bench_conv
from bitloom.overlay.study.convolutions import Row

from .show import bar, dump, grid, json_option, one_line_errors


def measuring(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that both commands have."""
    for option in (
        click.option("--shape", "texts", multiple=True, help="Only shapes with this text; may be given again."),
        click.option(
            "--batch", "batches", multiple=True, type=click.IntRange(1), default=bench_conv.BATCHES,
            help="Images; may be given again.",
        ),
        click.option("--rounds", type=click.IntRange(1), default=bench_conv.ROUNDS, help="Runs that the median is of."),
    ):  # fmt: skip
        command = option(command)
    return json_option(command)


@click.command()
@measuring
@click.option("--threads", type=click.IntRange(1), help="Of both sides.  [default: processors]")
@one_line_errors
def cpu(threads: int | None, **options: Any) -> None:
    """Measure the packed convolution on this processor beside PyTorch's in fp32, bf16, fp16 and int8.

    Each path that the processor has, against the faster of PyTorch's two orders of memory: medians of runs in turn,
    and the bytes of input and weights. Outputs are compared bit for bit. Without PyTorch there are no ratios.
    """
    _measure("cpu", threads=threads or cpu_path.processors(), **options)


@click.command()
@measuring
@one_line_errors
def gpu(**options: Any) -> None:
    """Measure the CUDA kernels on this GPU beside PyTorch's in fp32 (no TF32), TF32, bf16 and fp16.

    Where there is no GPU, no CuPy or no PyTorch for CUDA, the rows say "not run" and why.
    """
    _measure("cuda", **options)


def _measure(
    device: str, texts: Sequence[str], batches: Sequence[int], rounds: int, as_json: bool, threads: int | None = None
) -> None:
    chosen = bench_conv.shapes(texts)
    with bar(f"convolutions on {device}", "shapes and batches") as update:
        rows = bench_conv.measure(
            device, chosen=chosen, batches=batches, rounds=rounds, threads=threads, progress=update
        )
    if as_json:
        dump(rows)
        return
    first = rows[0]
    click.echo(first["device"] + (f", {first['threads']} threads" if device == "cpu" else ""))
    for shape in dict.fromkeys(row["shape"] for row in rows):
        _show(shape, [row for row in rows if row["shape"] == shape])
    for reason in dict.fromkeys(f"{row['implementation']}: not run: {row['reason']}" for row in rows if row["reason"]):
        click.echo(reason)


def _show(shape: str, rows: Sequence[Row]) -> None:
    """A line for each implementation: ms of a batch of so many; bytes of the input are those of an image."""
    batches = list(dict.fromkeys(row["batch"] for row in rows))
    lines: dict[str, list[str]] = {}
    for row in rows:
        lines.setdefault(row["implementation"], []).extend(_time(row))
    for row in rows[: len(lines)]:
        lines[row["implementation"]] += [f"{row['input_bytes'] // row['batch']:,}", f"{row['weight_bytes']:,}"]
    times = [heading for batch in batches for heading in (f"ms of {batch}", f"x fp32 of {batch}")]
    grid(shape, ["", *times, "input B", "weights B"], [[name, *line] for name, line in lines.items()])


def _time(row: Row) -> tuple[str, str]:
    speedup = row["speedup_vs_torch_fp32"]
    return "not run" if row["ms"] is None else f"{row['ms']:.3f}", f"{speedup:.1f}" if speedup else ""

"""Designs as the command explore shows them: the Pareto front, and the NPUs of the chosen one."""

from collections.abc import Sequence

import click

from bitloom.hls_gen.design.flat import DEFAULTS
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.explore.front import Front
from bitloom.overlay.explore.search import Explored
from bitloom.overlay.explore.searched import SEARCHED
from bitloom.overlay.explore.tries import Row
from bitloom.overlay.explore.variations import setting_of

from .show import grid

HEADER = [
    "",
    "topology",
    "lanes",
    "cycles a frame",
    "frames a second",
    "latency, cycles",
    "LUT",
    "as RAM",
    "BRAM36",
    "DSP",
    "map order",
]


def show_front(front: Front, explored: Explored) -> None:
    """Print the front of what a search found and the chosen design, or the nearest one, the largest share of the board
    last."""
    rows = [front_row(str(k + 1), row, front) for k, row in enumerate(explored.front)]
    if explored.shown is not None:
        rows.append(front_row(called(explored), explored.shown, front))
    title = f"{front.network}: Pareto front" + ("" if explored.best else "; nothing fits the budget")
    grid(title, HEADER + ([f"of {front.board.name}"] if front.board else []), rows)
    each = (explored.shown or explored.front[0]).figures.each
    if each:
        told = ", ".join(f"{network} {number(cycles)}" for network, cycles in each.items())
        whose = f"the {called(explored)} one's"
        click.echo(f"cycles, latency, frames: of a round, a frame of each network; {whose} cycles are {told}")


def called(explored: Explored) -> str:
    """Name of the design that is shown beside the front: chosen, or nearest."""
    return "chosen" if explored.best else "nearest"


def front_row(name: str, row: Row, front: Front) -> list[str]:
    """Cells of one design, which the table calls ``name``."""
    f = row.figures
    a = row.figures.area
    share = front.share(f)
    return [
        name,
        row.candidate.topology,
        f"{f.lanes:,}",
        number(f.cycles),
        f"{front.frames_per_second(f):,.0f}",
        f"{f.latency:,}",
        f"{f.lut:,}",
        f"{a.lutram:,}",
        f"{a.bram36:g}",
        str(a.dsp),
        setting_of(row.candidate).words,
        *([f"{share[0]:.0%} {share[1]}"] if share else []),
    ]


def show_npus(name: str, best: Row, names: Sequence[str]) -> None:
    """Print the folding and the memories of each NPU of a design.

    Parameters
    ----------
    name
        Name of the design.
    best
        The design.
    names
        Of the layers, in the order of computing.
    """
    columns = [value for value in SEARCHED if value.title]
    header = ["NPU", "layers", "engine", *(value.title for value in columns), "besides"]
    rows = []
    for n, npu in enumerate(best.candidate.npus):
        cells = [value.cell(npu) for value in columns]
        whose = _layers([names[i] for i in best.candidate.indices_on(n)], names)
        if best.candidate.also:
            whose = "all" if len(best.candidate.npus) == 1 else f"{best.candidate.network}: {whose}"
        rows.append([str(n), whose, npu.engine, *cells, ", ".join(blocks_of(npu))])
    grid(f"the {name} design", header, rows, labels=3)
    orders = [layer for layer, order in best.candidate.dataflow.items() if order == "input_stationary"]
    if orders:
        click.echo(f"input_stationary: {', '.join(orders)}; output_stationary: all others")


def blocks_of(npu: Npu) -> list[str]:
    """Further blocks of an NPU, in words: a window former, weights in the pool unit, multipliers that PEs share, LUTs
    that multiply."""
    values = [(value.words, npu.value(value.name), DEFAULTS[value.name]) for value in SEARCHED if value.words]
    return [words.format(has) for words, has, default in values if has != default]


def _layers(layers: Sequence[str], names: Sequence[str]) -> str:
    """The layers of an NPU: the first and the last one of a run, else all of them."""
    first = names.index(layers[0])
    if len(layers) > 1 and list(layers) == list(names[first : first + len(layers)]):
        return f"{layers[0]} .. {layers[-1]}"
    return ", ".join(layers)


def number(value: float) -> str:
    """A number as text: all digits before the point, and one digit behind the point where the number is no integer."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"

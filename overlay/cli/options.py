"""Options that several commands have, each said once."""

from collections.abc import Callable
from math import inf, isnan
from pathlib import Path
from typing import Any

import click

from bitloom.overlay.platform.boards import BOARDS

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)
OLD_OPTIONS = {"--order": "--map-order"}
"""Options that were renamed, in every command that has them."""


class _Positive(click.ParamType):
    """A finite number above 0."""

    name = "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; fails where it is none, 0 or less, or not finite."""
        number: float = click.FLOAT.convert(value, param, ctx)
        if not 0 < number < inf:
            self.fail(f"must be a number above 0, got {value}", param, ctx)
        return number


class NumberRange(click.FloatRange):
    """A range of numbers; click's own takes nan, which is neither below nor above any bound."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; fails where it is none, or outside of the range."""
        number: float = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"must be a number, got {value}", param, ctx)
        return number


POSITIVE = _Positive()
"""Type of an option that is a number above 0, such as a clock's frequency."""


def together(*several: Decorator) -> Decorator:
    """One decorator that adds all of ``several``; help shows their options in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(several):
            command = option(command)
        return command

    return add


def out_option(default: Path, help: str) -> Decorator:
    """``--out``, the folder that a command writes to."""
    return click.option("--out", type=FOLDER, default=default, help=help)


def map_order_option(*orders: str, default: str | None = None) -> Decorator:
    """``--map-order``, one of ``orders``; without a default, the design's."""
    text = "Order in which the tuples of maps are sent." + ("" if default else "  [default: the design's]")
    return click.option("--map-order", type=click.Choice(orders), default=default, help=text)


def stream_bits_option(default: str | None = None) -> Decorator:
    """``--stream-bits``, 32 or 64; without a default, the design's."""
    text = "Width of the streams." + ("" if default else "  [default: the design's]")
    return click.option("--stream-bits", type=click.Choice(["32", "64"]), default=default, help=text)


folding_options = together(
    click.option("--kfp", type=int, help="Input channels a PE takes in a cycle."),
    click.option("--kgp", type=int, help="PEs, kernels in parallel."),
    click.option("--pfp", type=int, help="Channels that the pool unit takes in a cycle."),
    click.option("--ol", type=int, help="Results that leave the array in a cycle."),
    click.option("--planes", type=int, help="Bit planes of an integer input side by side, 0 or 2..9."),
)
"""``--kfp``, ``--kgp``, ``--pfp``, ``--ol`` and ``--planes``: the folding of one NPU, None where it isn't given."""

stall_options = together(
    click.option(
        "--stall", type=NumberRange(0, 0.95), default=0.0,
        help="Probability of a pause in a cycle, on both streams.",
    ),
    click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the pauses and of random images."),
)  # fmt: skip
"""``--stall`` and ``--seed``: pauses on the streams of the simulation."""


def board_option(help: str) -> Decorator:
    """``--board``, as parameter ``board_name``."""
    return click.option("--board", "board_name", type=click.Choice(list(BOARDS), False), help=help)

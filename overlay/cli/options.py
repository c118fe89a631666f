"""Options that several commands have, each said once."""

import os
from collections.abc import Collection, Mapping
from dataclasses import fields
from math import inf, isnan
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bitloom.hls_gen.compiler.choices import DATAFLOWS, Chunk, CompileChoices
from bitloom.hls_gen.compiler.schedule import ORDERS
from bitloom.hls_gen.design.array import ACCUMULATIONS, KERNEL_RAMS
from bitloom.hls_gen.design.flat import CHOSEN
from bitloom.hls_gen.design.results import LUT_PRODUCTS
from bitloom.overlay.build.chosen_design import TOPOLOGIES, Wanted
from bitloom.overlay.platform.board_file import is_board_file
from bitloom.overlay.platform.boards import BOARDS

from .option_groups import Decorator, option_group, together


class _GivenPath(click.Path):
    """A path. An empty one, which a script's unset variable makes, would be the working folder."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; fails where it is empty."""
        if not os.fspath(value):
            self.fail("must be a path, got ''", param, ctx)
        return super().convert(value, param, ctx)


def given(parameters: Collection[str]) -> str | None:
    """The first option of these parameters that the command line has, as a user writes it; None: it has none."""
    context = click.get_current_context()
    options = {str(parameter.name): parameter.opts[0] for parameter in context.command.params}
    for name in context.params:  # in the order of the command line
        if name in parameters and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            return options[name]
    return None


FOLDER = _GivenPath(file_okay=False, path_type=Path)
FILE = _GivenPath(dir_okay=False, path_type=Path)


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


class _BoardName(click.Choice):
    """A name of a board of ours, or the path of a board's file, which is read where the board is made of it."""

    name = "board"

    def __init__(self) -> None:
        super().__init__(list(BOARDS), case_sensitive=False)

    def get_metavar(self, param: click.Parameter, *context: Any, **options: Any) -> str:
        """What help shows in the place of the value."""
        return "BOARD"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as we write it, or the path; fails for a name that no board has."""
        return value if is_board_file(value) else str(super().convert(value, param, ctx))


POSITIVE = _Positive()
"""Type of an option that is a number above 0, such as a clock's frequency."""


held_out_option = click.option(
    "--held-out",
    is_flag=True,
    help="Hold out a fifth of the training images and test with it, not with the test images.",
)
"""``--held-out``: whatever is chosen by an accuracy is chosen without the test images."""


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


def _lut_products(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...] | None:
    """The given units in the order of LUT_PRODUCTS; None if none is given: then the design decides."""
    return tuple(unit for unit in LUT_PRODUCTS if unit in given) or None


folding_options = option_group(
    "Folding of the NPUs, by default the design's",
    click.option("--kfp", type=int, help="Input channels a PE takes in a cycle."),
    click.option("--kgp", type=int, help="PEs, kernels in parallel."),
    click.option("--pfp", type=int, help="Channels that the pool unit takes in a cycle."),
    click.option("--ol", type=int, help="Results that leave the array in a cycle."),
    click.option("--planes", type=int, help="Bit planes of an integer input side by side, 0 or 2..9."),
    click.option("--shift-bits", type=int, help="Bit planes one after another: as many as 2 to the power of this."),
    click.option("--binariser", "binariser_bits", type=int, help="Bits of an input that is made binary on line, or 0."),
    click.option("--accumulate", type=click.Choice(ACCUMULATIONS), help="How binary PEs accumulate."),
    click.option("--word-lanes", type=int, help="Lanes of a word, where PEs count words that have a match, or 0."),
    click.option("--collect", type=int, help="Products a PE collects before they are reduced at once, or 0."),
    click.option("--accumulators", type=int, help="Accumulators of a PE: kernel groups that share a word."),
    click.option("--feature-bits", type=int, help="Bits of a feature of the integer engine."),
    click.option("--weight-bits", type=int, help="Bits of a weight of the integer engine."),
    click.option("--kernels-per-multiplier", type=int, help="Kernels whose integer weights share a multiplier."),
    click.option(
        "--lut-products",
        type=click.Choice(LUT_PRODUCTS),
        multiple=True,
        callback=_lut_products,
        help="Units that multiply in LUTs, not in DSP blocks; once for each.",
    ),
    click.option("--kernel-ram", type=click.Choice(KERNEL_RAMS), help="What the kernel memory is made of."),
    click.option(
        "--one-memory/--no-one-memory", default=None, help="Kernels and features in one memory, a read a cycle."
    ),
    click.option(
        "--kernel-binariser/--no-kernel-binariser",
        default=None,
        help="Weights come as integers of 8 bits, made binary on line.",
    ),
    click.option(
        "--window-former/--no-window-former",
        default=None,
        help="First layers of few channels get the taps of a window side by side.",
    ),
    click.option("--buffer-words", type=int, help="Words of each of the two buffers between NPUs."),
    click.option("--raster/--no-raster", default=None, help="Counters instead of tables, for raster order."),
    click.option("--pool/--no-pool", default=None, help="Whether NPUs have pool units."),
    click.option("--depthwise/--no-depthwise", default=None, help="Pool units with weights, for depthwise layers."),
)
"""The folding of NPUs, each value None where it isn't given (hls_gen/design/flat.py, CHOSEN)."""


def _dataflow(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> Any:
    """One dataflow for all layers, or a mapping of those that are named; None where nothing was given."""
    named = dict(word.partition("=")[::2] for word in given)
    for value in (name if value == "" else value for name, value in named.items()):
        if value not in DATAFLOWS:
            raise click.BadParameter(f"must be [LAYER=] one of {', '.join(DATAFLOWS)}, got {value!r}", ctx, param)
    if len(given) == 1 and "=" not in given[0]:
        return given[0]
    if not all("=" in word for word in given) or len(named) < len(given):
        raise click.BadParameter(f"must be given once, or once for each LAYER=, got {' '.join(given)}", ctx, param)
    return named or None


def _mapping(ctx: click.Context, param: click.Parameter, given: str | None) -> tuple[int, ...] | None:
    """The numbers of a text with commas between them."""
    words = [] if given is None else given.split(",")
    if not all(word.isascii() and word.isdigit() and len(word) <= 4 for word in words):
        raise click.BadParameter(f"must be numbers with commas between them, got {given!r}", ctx, param)
    return tuple(map(int, words)) or None


def _chunk(ctx: click.Context, param: click.Parameter, given: str | None) -> str | None:
    """The text of a chunk, checked."""
    try:
        Chunk.of(given or "")
    except ValueError as error:
        raise click.BadParameter(str(error).removeprefix("chunk "), ctx, param) from None
    return given


def chunk_option(default: str = "tuples:1") -> Decorator:
    """``--chunk``; ``default`` is what help says of it."""
    return click.option(
        "--chunk",
        callback=_chunk,
        metavar="tuples|rows|columns[:N]",
        help=f"What each of the two buffers between NPUs takes; without N, as many as it holds.  [default: {default}]",
    )


def compile_options(mapping: str = "chosen", chunk: str = "tuples:1") -> Decorator:
    """``--mapping``, ``--chunk``, ``--dataflow``: how layers run on NPUs; ``mapping`` and ``chunk`` are what help says
    of their defaults."""
    return together(
        click.option(
            "--mapping",
            callback=_mapping,
            metavar="N,N,...",
            help=f"NPU of each conv and dense layer.  [default: {mapping}]",
        ),
        chunk_option(chunk),
        click.option(
            "--dataflow",
            multiple=True,
            callback=_dataflow,
            metavar="[LAYER=]DATAFLOW",
            help=f"{', '.join(DATAFLOWS)}: of all layers, or once for each of some.",
        ),
    )


chain_options = option_group(
    "Several NPUs",
    click.option("--topology", type=click.Choice(list(TOPOLOGIES)), help="Join several NPUs of this folding."),
    click.option("--npus", type=int, help="How many, for --topology.  [default for a pipeline: one for each layer]"),
    compile_options(),
)
"""``--topology``, ``--npus``, and `compile_options`: several NPUs, and how layers run on them."""

design_options = together(
    folding_options,
    chain_options,
    option_group("Streams", stream_bits_option(), map_order_option("auto", *ORDERS)),
)
"""All options that describe a design."""
FOLDING_NAMES = tuple(name for name in CHOSEN if name != "stream_weights")
"""Fields of a folding; whether weights are streamed is said of the whole design."""


def wanted_of(options: Mapping[str, Any]) -> Wanted:
    """What ``design_options`` ask for; further options that `Wanted` has are taken too."""
    options = {key: value for key, value in options.items() if value is not None}
    folding = {key: options.pop(key) for key in FOLDING_NAMES if key in options}
    choices = {item.name: options.pop(item.name) for item in fields(CompileChoices) if item.name in options}
    if "stream_bits" in options:
        options["stream_bits"] = int(options["stream_bits"])
    return Wanted(folding=folding, choices=choices, **options)


stall_options = together(
    click.option(
        "--stall",
        type=NumberRange(0, 0.95),
        default=0.0,
        help="Probability of a pause in a cycle, on both streams.",
    ),
    click.option("--seed", type=click.IntRange(0), default=0, help="Seed of the pauses and of random images."),
)
"""``--stall`` and ``--seed``: pauses on the streams of the simulation."""


def board_option(help: str) -> Decorator:
    """``--board``, as parameter ``board_name``, which `find_board` takes."""
    boards = f"[{', '.join(BOARDS)}, or a TOML file of your own board]"
    return click.option("--board", "board_name", type=_BoardName(), help=f"{help}  {boards}")

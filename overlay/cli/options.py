"""Options that several commands have, each said once."""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import fields
from math import inf, isnan
from pathlib import Path
from typing import Any, ClassVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from bitloom.golden import zoo
from bitloom.golden.names import shown
from bitloom.hls_gen.compiler.choices import DATAFLOWS, Chunk, CompileChoices, is_dataflow
from bitloom.hls_gen.compiler.schedule import ORDERS
from bitloom.hls_gen.compiler.segments import SHORTCUTS
from bitloom.hls_gen.design import flat
from bitloom.overlay.build.chosen_design import TOPOLOGIES, Wanted
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
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


class _WrittenPath(_GivenPath):
    """A path that a command writes to, which is checked before the work whose results go there."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; fails where nothing can be written there."""
        path = super().convert(value, param, ctx)
        try:
            check_place(path)
        except ValueError as e:
            self.fail(str(e), param, ctx)
        return path


def check_place(path: Path) -> None:
    """Check beforehand that a file or a folder can be written.

    Raises
    ------
    ValueError
        If it can't be written to, or isn't there and can't be made.
    """
    place = Path(os.path.realpath(path)) if path.is_symlink() else path.absolute()
    if place.exists() and not os.access(place, os.W_OK):
        raise ValueError(f"must be what can be written to, got {path}")
    if place.exists() and not place.is_file():  # a folder, a pipe, or /dev/stdout: nothing is made beside it
        return
    folder = next(parent for parent in place.parents if os.path.lexists(parent))
    if not folder.is_dir():
        raise ValueError(
            f"must lie in a folder, got {'the file' if folder.exists() else 'the link to nothing'} {folder}"
        )
    if not os.access(folder, os.W_OK):
        raise ValueError(f"must lie in a folder that can be written to, got {folder}")


def given(parameters: Collection[str]) -> str | None:
    """The first option of these parameters that the command line has, as a user writes it; None: it has none."""
    context = click.get_current_context()
    options = {str(parameter.name): parameter.opts[0] for parameter in context.command.params}
    for name in context.params:  # in the order of the command line
        if name in parameters and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            return options[name]
    return None


def words_or_paths(
    words: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """How a shell completes an argument that is one of these words, or a path: click's ``shell_complete``."""

    def completed(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        of_words = [CompletionItem(word) for word in words() if word.startswith(incomplete)]
        return [_paths(incomplete), *of_words]

    return completed


def _paths(incomplete: str) -> CompletionItem:
    """The option's completion of paths in the shell; in front of words, which bash would forget."""
    return CompletionItem(incomplete, type="file")


def design_names() -> list[str]:
    """Names of the networks that come along, and of reference designs."""
    return sorted({*zoo.names(), *REFERENCE_DESIGNS})


FOLDER = _GivenPath(file_okay=False, path_type=Path)
FILE = _GivenPath(dir_okay=False, path_type=Path)
WRITTEN_FOLDER = _WrittenPath(file_okay=False, path_type=Path)
WRITTEN_FILE = _WrittenPath(dir_okay=False, path_type=Path)
MACHINE_SLAVES = ("1", "2", "4", "8", "16")
"""Slaves of a training machine, for a choice."""


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


class _Percent(click.ParamType):
    """A share of something, above 0 and at most 100 %, with or without the sign."""

    name = "percent"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number of percent; fails where it is none, or outside of the range."""
        number: float = click.FLOAT.convert(value.removesuffix("%") if isinstance(value, str) else value, param, ctx)
        if not 0 < number <= 100:
            self.fail(f"must be above 0 and at most 100 %, got {value}", param, ctx)
        return number


class _Latency(click.ParamType):
    """A latency: cycles, or a time with its unit. It stays a text, as cycles of a time depend on the clock."""

    name = "latency"
    UNITS: ClassVar[dict[str, float]] = {"us": 1, "ms": 1e3, "s": 1e6}
    """Unit -> microseconds."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text; fails where it is neither."""
        if not 0 < self.cycles(str(value), 1) < inf:
            self.fail(f"must be cycles, or a time above 0 such as 500us or 2ms, got {value}", param, ctx)
        return str(value)

    @classmethod
    def cycles(cls, text: str, clock_mhz: float) -> float:
        """The cycles that a text says, at a clock; 0 where it says none."""
        parts = re.fullmatch(r"(\d{1,15}(?:\.\d{0,9})?|\.\d{1,9})(us|ms|s)?", text, re.ASCII)
        if parts is None:
            return 0
        number = float(parts[1])
        return number * cls.UNITS[parts[2]] * clock_mhz if parts[2] else number


A_BOARD = f"{', '.join(BOARDS)}, or a TOML file of your own board"
"""Values of ``--board``, in words."""


class _BoardName(click.Choice):
    """A name of a board of ours, or the path of a board's file, which is read where the board is made of it."""

    name = "board"

    def __init__(self) -> None:
        super().__init__(list(BOARDS), case_sensitive=False)

    def get_metavar(self, param: click.Parameter, *context: Any, **options: Any) -> str:
        """Word in help for the option's value."""
        return "BOARD"

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Sentence behind the message that an option is missing."""
        return f"It must be one of {A_BOARD}."

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The boards' names, or a path."""
        return [_paths(incomplete), *super().shell_complete(ctx, param, incomplete)]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name as we write it, or the path; fails for a name that no board has."""
        if is_board_file(value):
            return str(value)
        if value.lower() not in map(str.lower, BOARDS):
            self.fail(f"must be one of {A_BOARD}, got {shown(value)}", param, ctx)
        return str(super().convert(value, param, ctx))


PERCENT = _Percent()
"""Type of an option that is a share, such as 50%."""
LATENCY = _Latency()
"""Type of an option that is a latency in cycles, or in us, ms or s."""
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
    return click.option("--out", type=WRITTEN_FOLDER, default=default, help=help)


def map_order_option(*orders: str, default: str | None = None) -> Decorator:
    """``--map-order``, one of ``orders``; without a default, the design's."""
    text = "Order in which the tuples of maps are sent." + ("" if default else "  [default: the design's]")
    return click.option("--map-order", type=click.Choice(orders), default=default, help=text)


def stream_bits_option(default: str | None = None) -> Decorator:
    """``--stream-bits``, 32 or 64; without a default, the design's."""
    text = "Width of the streams." + ("" if default else "  [default: the design's]")
    return click.option("--stream-bits", type=click.Choice(["32", "64"]), default=default, help=text)


FOLDING_NAMES = tuple(name for name in flat.CHOSEN if name != "stream_weights")
"""Fields of a folding; whether weights are streamed is said of the whole design."""
WITHOUT_OPTION = ("engine", "inlets", "outlets")
"""Fields of a folding that follow from the network and from the topology."""


def _folding_option(name: str) -> Decorator:
    """The option of a value of the folding, as the field of the part declares it; None where it isn't given."""
    means = flat.MEANS[name]
    option = f"--{flat.OPTIONS.get(name, name)}".replace("_", "-")
    choices = flat.CHOICES.get(name)
    if isinstance(flat.DEFAULTS[name], bool):
        return click.option(f"{option}/--no-{option[2:]}", name, default=None, help=means)
    if choices is None:
        return click.option(option, name, type=int, help=means)
    if not choices.several:
        return click.option(option, name, type=click.Choice(choices.words), help=means)

    def in_order(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...] | None:
        """The given words in their order; None if none is given: then the design decides."""
        return tuple(word for word in choices.words if word in given) or None

    words = click.Choice(choices.words)
    return click.option(option, name, type=words, multiple=True, callback=in_order, help=f"{means} Once for each.")


folding_options = option_group(
    "Folding of the NPUs, by default the design's",
    *(_folding_option(name) for name in FOLDING_NAMES if name not in WITHOUT_OPTION),
)
"""The folding of NPUs, each value None where it isn't given (hls_gen/design/flat.py, CHOSEN)."""


def _dataflow(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> Any:
    """One dataflow for all layers, or a mapping of those that are named; None where nothing was given."""
    named = dict(word.partition("=")[::2] for word in given)
    for value in (name if value == "" else value for name, value in named.items()):
        if not is_dataflow(value):
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


AUTO, NONE = "auto", "none"
"""AUTO, NONE: values of ``--partitions`` where partitions shall be found, and where there shall be none."""
_PARTITION = re.compile(r"([a-z][a-z0-9_]*)(?::([1-9][0-9]{0,3}))?", re.ASCII)


def _programs(words: Sequence[str]) -> dict[str, int] | None:
    """Numbers of programs by layer, of words LAYER or LAYER:N; None where these are no such words, or name a layer
    twice."""
    matches = [match for each in words if (match := _PARTITION.fullmatch(each))]
    programs = {match[1]: int(match[2] or 1) for match in matches}
    return None if len(programs) < len(words) or programs.keys() & {AUTO, NONE} else programs


def partitions_option(word: str, text: str) -> Decorator:
    """``--partitions``: numbers of programs by layer, none for NONE; AUTO; None where nothing was given. ``word`` is
    which of AUTO and NONE it takes besides layers, ``text`` what help says of it."""

    def partitions(ctx: click.Context, param: click.Parameter, given: str | None) -> Any:
        if given is None:
            return None
        if given == word:
            return {AUTO: AUTO, NONE: {}}[word]
        programs = _programs(given.split(","))
        if programs is None:
            rule = f"must be {word}, or layers with commas between them, each once, perhaps with :N, N programs"
            raise click.BadParameter(f"{rule}, got {given!r}", ctx, param)
        return programs

    return click.option(
        "--partitions",
        callback=partitions,
        metavar=f"{word}|LAYER[:N],...",
        help="Cut a network that is larger than the device: a program for what begins with each of these layers, or N, "
        f"each for some channels; maps between lie in the host's memory. {text}",
    )


def chunk_option(default: str = "tuples:1") -> Decorator:
    """``--chunk``; ``default`` is what help says of it."""
    return click.option(
        "--chunk",
        callback=_chunk,
        metavar="tuples|rows|columns[:N]",
        help=f"What each of the two buffers between NPUs takes; without N, as many as it holds.  [default: {default}]",
    )


def compile_options(mapping: str = "chosen", chunk: str = "tuples:1", shortcuts: str = "first") -> Decorator:
    """``--mapping``, ``--chunk``, ``--dataflow``, ``--shortcuts``, ``--copy-depthwise``: how layers run on NPUs;
    ``mapping``, ``chunk`` and ``shortcuts`` are what help says of their defaults."""
    return together(
        click.option(
            "--mapping",
            callback=_mapping,
            metavar="N,N,...",
            help="NPU of each conv and dense layer, in the order of computing, which --shortcuts changes. "
            f" [default: {mapping}]",
        ),
        chunk_option(chunk),
        click.option(
            "--dataflow",
            multiple=True,
            callback=_dataflow,
            metavar="[LAYER=]DATAFLOW",
            help=f"{', '.join(DATAFLOWS)}: of all layers, or once for each of some.",
        ),
        click.option(
            "--shortcuts",
            type=click.Choice(list(SHORTCUTS)),
            help="Compute a residual block's shortcut convolution first, or last, right before the addition.  "
            f"[default: {shortcuts}]",
        ),
        click.option(
            "--copy-depthwise/--no-copy-depthwise",
            default=None,
            help="With --depthwise: let the pool unit also compute depthwise convolutions that have no convolution "
            "before them; the array copies their input.",
        ),
    )


chain_options = option_group(
    "Several NPUs",
    click.option(
        "--topology",
        type=click.Choice(list(TOPOLOGIES)),
        help="Join several NPUs of this folding.  [default: one NPU; pipeline where a network needs both engines]",
    ),
    click.option("--npus", type=int, help="How many, for --topology.  [default for a pipeline: one for each layer]"),
    click.option("--npu", type=int, help="Number of the NPU that the folding is for, from 0 on.  [default: all]"),
    compile_options(),
)
"""``--topology``, ``--npus``, ``--npu``, and `compile_options`: several NPUs, and how layers run on them."""

design_options = together(
    folding_options,
    chain_options,
    option_group("Streams", stream_bits_option(), map_order_option("auto", *ORDERS)),
)
"""All options that describe a design."""


def wanted_of(options: Mapping[str, Any]) -> Wanted:
    """The design that ``design_options`` ask for; further options that `Wanted` has are taken too."""
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


def board_option(help: str, required: bool = False) -> Decorator:
    """``--board``, as parameter ``board_name``, which `find_board` takes."""
    return click.option("--board", "board_name", type=_BoardName(), required=required, help=f"{help}  [{A_BOARD}]")

"""The command build: hardware for a network, for simulation and, with a board, for Vivado."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from shlex import join, quote
from typing import Any

import click
from click.core import ParameterSource

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS, ReferenceDesign, chosen_design
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.explore.estimate import estimate
from bitloom.overlay.platform.boards import Board, board
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.study import design_figures as benches

from .kept import tell_kept
from .old_names import Command
from .options import FILE, FOLDER, OLD_OPTIONS, board_option, folding_options, map_order_option, stream_bits_option
from .progress import append_log, step_lines, working
from .show import dump, json_option, one_line_errors, table

LOG = "build.log"
"""File of a build's folder that every build adds a part to: time, command, and its steps with their times."""


@click.command("build", cls=Command, old_options=OLD_OPTIONS)
@click.argument("network", metavar="NETWORK|DESIGN")
@click.option("--out", type=FOLDER, default=None, help="Folder of the build.  [default: build/NETWORK]")
@folding_options
@click.option(
    "--design", "design_name", help="Reference design to build, see bench.  [default: that of NETWORK's name]"
)
@click.option("--foldings", type=FILE, help="Build what explore --save wrote there instead.")
@stream_bits_option()
@click.option("--stream-weights", is_flag=True, help="Kernel memory for two layers; weights come with every frame.")
@map_order_option("auto", "pull", "raster")
@click.option(
    "--arch", type=click.Choice(["zynqmp", "zynq"]), help="Processor of the simulated board.  [default: the board's]"
)
@board_option("Also sources for its bitstream.")
@click.option("--clock-mhz", type=float, default=100.0, help="Clock of the device.")
@json_option
@one_line_errors
def build_command(
    network: str,
    out: Path | None,
    design_name: str | None,
    foldings: Path | None,
    arch: str | None,
    board_name: str | None,
    clock_mhz: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Generate hardware for NETWORK: a name of ours (digits-cnn) or a model file (.npz); or a reference DESIGN (see
    bench), for all networks that it is for.

    The NPUs are those of the reference design, or of --foldings; with --kfp and the like it is one NPU. Memories are
    made as large as the network needs. The folder then holds the Verilog, the manifest, the compiled network, and an
    overlay for simulation; with --board also the sources for that board's bitstream, for a machine with Vivado.
    """
    subject = _subject(network, design_name, foldings)
    target = board(board_name) if board_name else None
    with step_lines() as lines, working("generating Verilog and compiling the network"):
        if foldings is not None:
            _refuse({"design": design_name, **options})
            found: ReferenceDesign | Candidate = Candidate.load(foldings, subject.model)
            design = found.design(subject.model, subject.name)
        else:
            found, design = _designed(subject, **options)
        made = builds.build(
            out or Path("build") / subject.name, design, subject.models,
            choices=found.choices, target=BoardTarget(arch=arch, board=target, clock_mhz=clock_mhz),
            command=_words(click.get_current_context()),
        )  # fmt: skip
    done = f"bitloom {version('bitloom')}, design {made.digest[:16]}: {join(made.command)}"
    append_log(made.folder / LOG, done, lines)
    tell_kept(made)
    facts = _facts(subject, design, made, target)
    if as_json:
        dump(facts)
        return
    table(
        f"{subject.name}: {made.folder}",
        {k: f"{v:,}" if isinstance(v, int) else str(v) for k, v in facts.items() if k != "npu"},
    )
    if target:
        click.echo(f"bitstream for {target.name}, on a machine with Vivado: make -C {quote(str(made.sources))}")
        _warn(design, target)


@dataclass(frozen=True)
class _Subject:
    """What NETWORK|DESIGN names.

    Attributes
    ----------
    name
        Of the build.
    models
        Networks that the design is for, at least one.
    design
        Name of a reference design; None for that of the network's name.
    weights
        Name of the network whose weights they are.
    """

    name: str
    models: list[Model]
    design: str | None
    weights: str

    @property
    def model(self) -> Model:
        return self.models[0]


def _subject(network: str, design: str | None, foldings: Path | None) -> _Subject:
    """What ``network`` names: a reference design, unless another design or a file is given; else a network."""
    if network in REFERENCE_DESIGNS and not (design or foldings):
        reference = REFERENCE_DESIGNS[network]
        return _Subject(network, reference.models(), network, reference.network)
    model = networks.find(network)
    return _Subject(model.network.name, [model], design, network)


def _designed(
    subject: _Subject, stream_bits: str | None, map_order: str | None, stream_weights: bool, **folding: int | None
) -> tuple[ReferenceDesign, Design]:
    """The reference design of ``subject``, or one NPU of the folding that the options say."""
    given = {key: value for key, value in folding.items() if value is not None}
    found = chosen_design(subject.model, subject.design, given, stream_bits, map_order, one_npu=stream_weights)
    return found, found.design(subject.name, subject.models, stream_weights=stream_weights)


def _warn(design: Design, target: Board) -> None:
    """Where the device alone is larger than the board's by the formula."""
    area = estimate(design)
    if not target.holds(area):
        click.echo(
            f"warning: by estimate the device alone takes {area.lut + area.lutram:,} LUT, {area.ff:,} FF, "
            f"{area.bram36:g} BRAM36 and {area.dsp} DSP; {target.name} has {target.lut:,}, {target.ff:,}, "
            f"{target.bram36:g} and {target.dsp:,}",
            err=True,
        )


def _words(context: click.Context) -> list[str]:
    """The command line, without what only changes what is printed."""
    words = ["bitloom", "build"]
    for parameter in context.command.params:
        name = str(parameter.name)
        value = context.params.get(name)
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not given or name == "as_json" or not parameter.expose_value:
            continue
        if isinstance(parameter, click.Option):
            words.append(parameter.opts[0])
        if not (isinstance(parameter, click.Option) and parameter.is_flag):
            words.append(os.fsencode(str(value)).decode("utf-8", "replace"))  # a path of another locale is text too
    return words


def _refuse(options: Mapping[str, Any]) -> None:
    """ValueError if an option is given that the file of --foldings has the answer to."""
    given = [name.replace("_", "-") for name, value in options.items() if value is not None and value is not False]
    if given:
        raise ValueError(f"--foldings: the file says everything about the design, got --{given[0]} too")


def _facts(subject: _Subject, design: Design, made: builds.Build, target: Board | None) -> dict[str, Any]:
    """What is shown of the build."""
    program = made.program(subject.model.network.name)
    return {
        "folder": str(made.folder), "digest": made.digest, "weights": networks.source(subject.weights),
        **(_parallelism(design.npus[0]) if len(design.npus) == 1 else {}), **benches.lanes(design),
        "npu": [
            {**_parallelism(npu), "memories": {m.name: [m.depth, m.width] for m in npu.memories()}}
            for npu in design.npus
        ],
        "mapping": list(program.mapping),
        "ideal_cycles_per_frame": program.ideal_cycles, "parameter_words": int(program.parameters.size),
        **({"board": target.name, "sources": str(made.sources)} if target else {}),
    }  # fmt: skip


def _parallelism(npu: Npu) -> dict[str, int]:
    """The folding of an NPU."""
    return {key: getattr(npu, key) for key in ("kfp", "kgp", "pfp", "ol", "planes")}

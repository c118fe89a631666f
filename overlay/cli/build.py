"""The command build: hardware for a network, for simulation and, with a board, for Vivado."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from shlex import join, quote
from typing import Any

import click
from click.core import ParameterSource

from bitloom.golden import zoo
from bitloom.golden.atomic import inside
from bitloom.golden.distribution import version
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.sharing import weight_copies
from bitloom.hls_gen.compiler.sizing import SizedDesign
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packetizer import MARKS, RawStream
from bitloom.overlay.area_model.estimate import estimate
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.chosen_design import chosen_design, folded
from bitloom.overlay.build.partitioning import fitting_partitions
from bitloom.overlay.build.reference_designs import ReferenceDesign
from bitloom.overlay.explore.advice import Advice, advice, advice_rows
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.platform.board_file import find_board
from bitloom.overlay.platform.boards import CLOCK_MHZ, RESOURCES, Board, how_large, smallest_board, taken
from bitloom.overlay.platform.dma_core import AMD, DMA_CORES
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.study.lane_counts import lanes

from .option_groups import GroupedCommand, option_group
from .options import (
    AUTO,
    FILE,
    FOLDING_NAMES,
    WRITTEN_FOLDER,
    board_option,
    design_names,
    design_options,
    given,
    partitions_option,
    wanted_of,
    words_or_paths,
)
from .progress import append_log, step_lines, working
from .show import dump, json_option, table
from .subject import Subject, hosts_of, subject_of, tell_kept

CUT = "; --partitions auto cuts a network whose weights or maps are too large"
LOG = "build.log"
"""File in a build's folder to which each build appends its time, its command, and its steps with their times."""


@click.command("build", cls=GroupedCommand)
@click.argument(
    "networks",
    metavar="NETWORK|DESIGN [NETWORK]...",
    nargs=-1,
    required=True,
    shell_complete=words_or_paths(design_names),
)
@click.option("--out", type=WRITTEN_FOLDER, default=None, help="Folder of the build.  [default: build/NETWORK]")
@design_options
@click.option(
    "--design", "design_name", help="Reference design to build, see bench.  [default: that of NETWORK's name]"
)
@click.option("--foldings", type=FILE, help="Build what explore --save wrote there instead.")
@partitions_option(AUTO, "auto: as few as --board holds.")
@click.option("--stream-weights", is_flag=True, help="Kernel memory for two layers; weights come with every frame.")
@option_group(
    "Board",
    board_option("Also sources for its bitstream."),
    click.option(
        "--dma",
        type=click.Choice(list(DMA_CORES)),
        default=AMD.name,
        show_default=True,
        help="What moves the streams: AMD's AXI DMA, or ours, which needs no IP of AMD.",
    ),
    click.option(
        "--raw-stream",
        type=click.Choice(list(MARKS)),
        help="In the sources: frames of a camera or the like, too, told apart by tlast (packet) or tuser (video).",
    ),
    click.option("--raw-values", type=int, help="Values in a beat of that stream.  [default: those of a pixel]"),
    click.option("--clock-mhz", type=float, default=CLOCK_MHZ, help="Clock of the device."),
    click.option(
        "--arch",
        type=click.Choice(["zynqmp", "zynq"]),
        help="Processor of the simulated board.  [default: the board's]",
    ),
)
@click.option(
    "--advice",
    "with_advice",
    is_flag=True,
    help="Also say what would make the first NETWORK faster, by the flow model: seconds, or minutes of a large one.",
)
@json_option
def build_command(
    networks: tuple[str, ...],
    out: Path | None,
    design_name: str | None,
    foldings: Path | None,
    arch: str | None,
    board_name: str | None,
    clock_mhz: float,
    dma: str,
    raw_stream: str | None,
    raw_values: int | None,
    with_advice: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Generate hardware for NETWORK: a name of ours (digits-cnn) or a model file (.npz); or a reference DESIGN (see
    bench), for all networks that it is for. Further NETWORKs run on the same hardware.

    The NPUs are those of the reference design, or of --foldings; with --kfp and the like it is one NPU, with --topology
    several of them, and of a DESIGN or of --foldings each NPU gets what they say, or that of --npu. Memories are made
    as large as the networks need. The folder then holds the Verilog, the manifest, the compiled networks, and an
    overlay for simulation; with --board also the sources for that board's bitstream, for a machine with Vivado.
    """
    subject = subject_of(networks, design_name, named=not (design_name or foldings))
    target = find_board(board_name) if board_name else None
    described = _raw_stream(raw_stream, raw_values, target)
    folder = out or Path("build") / subject.name
    log = inside(folder, LOG)
    with step_lines() as lines, working("generating Verilog and compiling the network"):
        if foldings is not None:
            if option := given({"design_name", *options} - {"npu", *FOLDING_NAMES}):
                raise ValueError(f"--foldings: the file says everything but values of NPUs, got {option} too")
            candidate = Candidate.load(foldings, subject.model, subject.models[1:])
            candidate = replace(candidate, npus=folded(subject.name, candidate.npus, wanted_of(options)))
            chosen: ReferenceDesign | Candidate = candidate
            sized = candidate.sized(subject.models, subject.name)
        else:
            chosen, sized = _designed(subject, options, target)
        design = sized.design
        build = builds.build(
            folder,
            sized,
            subject.models,
            choices=chosen.choices,
            target=BoardTarget(arch=arch, board=target, clock_mhz=clock_mhz, dma=DMA_CORES[dma], raw_stream=described),
            origin=builds.Origin(command=_words(click.get_current_context()), hosts=hosts_of(networks, subject.models)),
        )
    done = f"bitloom {version()}, design {build.digest[:16]}: {join(build.command)}"
    append_log(log, done, lines)
    tell_kept(build)
    _tell_what_stays(design, build)
    _tell_weight_copies(sized, subject.models)
    facts = _facts(subject, design, build, target, clock_mhz)
    changes = list[Advice]()
    if with_advice:
        with working("trying other foldings"):
            changes = advice(subject.model, design, chosen.choices, target)
        facts["advice"] = [asdict(change) for change in changes]
    if as_json:
        dump(facts)
        return
    rows = {**_hardware_rows(facts), **_board_rows(facts), **_speed_rows(facts)}
    table(f"{subject.name}: {build.folder}", {**rows, **advice_rows(changes)})
    needs = "" if find_spec("pynq") else ", where pynq is installed"
    click.echo(f"next, every bit against golden{needs}: bitloom simulate {quote(str(build.folder))}")
    if target:
        click.echo(f"bitstream for {target.name}, on a machine with Vivado: make -C {quote(str(build.sources))}")
        _warn(design, target)


def _raw_stream(marks: str | None, values: int | None, target: Board | None) -> RawStream | None:
    """The raw stream that the options describe."""
    if marks is None:
        if values is not None:
            raise ValueError(f"--raw-values: --raw-stream must say how frames are told apart, got {values} alone")
        return None
    if target is None:
        raise ValueError("--raw-stream: --board must say whose sources get the raw stream, got none")
    return RawStream(marks=marks, beat_values=values)


def _designed(subject: Subject, options: Mapping[str, Any], board: Board | None) -> tuple[ReferenceDesign, SizedDesign]:
    """The reference design of ``subject``, or what the options say, and what it is with sizes."""
    automatic = options["partitions"] == AUTO
    wanted = replace(wanted_of({**options, **({"partitions": None} if automatic else {})}), design=subject.design)
    chosen = chosen_design(subject.model, wanted)
    if automatic:
        if board is None:
            raise ValueError("--partitions auto: --board must say what must hold them, got none")
        if len(subject.models) > 1:
            raise ValueError(f"--partitions auto: NETWORK must be one, got {len(subject.models)}: name the layers")
        slices = fitting_partitions(subject.model, chosen.npus, board.bram36, chosen.choices, chosen.stream_bits)
        chosen = replace(chosen, choices=replace(chosen.choices, partitions=slices))
    return chosen, chosen.sized(subject.name, subject.models, stream_weights=wanted.stream_weights)


def _tell_what_stays(design: Design, build: builds.Build) -> None:
    """Name the networks of which no weight is streamed although the hardware could stream weights."""
    if any(npu.loader.stream_weights for npu in design.npus):
        for name in build.programs:
            if not any(len(program.weights) for program in build.program(name).programs):
                click.echo(f"{name}: all weights stay on the device, none is streamed", err=True)


def _tell_weight_copies(sized: SizedDesign, models: Sequence[Model]) -> None:
    """Name the NPUs that store a network's weights once for each bit of a value."""
    npus = sized.design.npus
    for model, programs in zip(models, sized.networks):
        for copies in {copies: 0 for lowered in programs for copies in weight_copies(lowered, npus)}:
            click.echo(f"{model.network.name}: {copies}", err=True)


def _warn(design: Design, target: Board) -> None:
    """Warn if the area formula says that the design is larger than the board's device."""
    area = estimate(design)
    if not target.holds(area):
        takes, has = _amounts(taken(area)), _amounts(target.sizes)
        click.echo(
            f"warning: by estimate the device alone takes {takes}; {target.name} has {has}"
            + CUT * (area.bram36 > target.bram36),
            err=True,
        )


def _amounts(sizes: Mapping[str, float]) -> str:
    """So much of each of RESOURCES, in words."""
    return ", ".join(f"{size:,} {RESOURCES[key]}".replace(".0 ", " ") for key, size in sizes.items())


def _words(context: click.Context) -> list[str]:
    """The words of the command line, without options that only change the output."""
    words = ["bitloom", "build"]
    for parameter in context.command.params:
        name = str(parameter.name)
        value = context.params.get(name)
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if not given or name in ("as_json", "with_advice") or not parameter.expose_value:
            continue
        if isinstance(parameter, click.Option) and parameter.is_flag:
            words.append((parameter.opts if value else parameter.secondary_opts)[0])
            continue
        for text in _texts(name, value):
            words += [parameter.opts[0]] if isinstance(parameter, click.Option) else []
            words.append(os.fsencode(text).decode("utf-8", "replace"))  # a path of another locale is text too
    return words


def _texts(name: str, value: Any) -> list[str]:
    """The texts of an option's value on a command line, one for each time that the option is given."""
    if name == "mapping":
        return [",".join(map(str, value))]
    if isinstance(value, Mapping):
        return [f"{key}={item}" for key, item in value.items()]
    return [str(item) for item in value] if isinstance(value, tuple) else [str(value)]


def _facts(
    subject: Subject, design: Design, build: builds.Build, target: Board | None, clock_mhz: float
) -> dict[str, Any]:
    """Figures of the build. Area is by the area model; cycles are beats, fewer than which no frame takes."""
    program = build.program(subject.model.network.name)
    area = estimate(design)
    board = target or smallest_board(area)
    return {
        "folder": str(build.folder),
        "digest": build.digest,
        "weights": zoo.source(subject.weights),
        **(_parallelism(design.npus[0]) if len(design.npus) == 1 else {}),
        **lanes(design),
        "npu": [
            {**_parallelism(npu), "memories": {m.name: [m.depth, m.width] for m in memory_map(npu)}}
            for npu in design.npus
        ],
        "mapping": [n for each in program.programs for n in each.mapping],
        **({"programs": len(program.programs)} if len(program.programs) > 1 else {}),
        "ideal_cycles_per_frame": program.ideal_cycles,
        "parameter_words": sum(each.parameters.size for each in program.programs),
        "clock_mhz": clock_mhz,
        "networks": {name: build.program(name).ideal_cycles for name in build.programs},
        "area": taken(area),
        "share_of": {"board": board.name, **board.shares(area)},
        **({"board": target.name, "sources": str(build.sources)} if target else {}),
    }


def _hardware_rows(facts: Mapping[str, Any]) -> dict[str, str]:
    """The hardware's sizes, as rows of a table."""
    shown = (
        "folder",
        "weights",
        "kfp",
        "kgp",
        "pfp",
        "ol",
        "planes",
        "npus",
        "lanes",
        "xnor_lanes",
        "mapping",
        "programs",
        "parameter_words",
    )
    rows = {key.replace("_", " "): facts[key] for key in shown if key in facts}
    return {
        "digest": facts["digest"][:16],
        **{key: f"{value:,}" if isinstance(value, int) else str(value) for key, value in rows.items()},
    }


def _board_rows(facts: Mapping[str, Any]) -> dict[str, str]:
    """Area of the device, with its share of a board, as rows of a table: the board that was given, else the smallest
    one."""
    shares = {key: share for key, share in facts["share_of"].items() if key in RESOURCES}
    told = facts["share_of"]["board"]
    if "board" not in facts:
        told += f", {how_large(max(shares.values()) <= 1)}"
    area = {f"{name}, by formula": f"{facts['area'][key]:,g}, {shares[key]:.0%}" for key, name in RESOURCES.items()}
    return {"board": told, **area, **({"sources": facts["sources"]} if "sources" in facts else {})}


def _speed_rows(facts: Mapping[str, Any]) -> dict[str, str]:
    """Cycles and frames a second of each network, as rows of a table."""
    clock = facts["clock_mhz"]
    rows = {"clock": f"{facts['clock_mhz']:g} MHz"}
    for network, cycles in facts["networks"].items():
        whose = f"{network}: " if len(facts["networks"]) > 1 else ""
        rows[f"{whose}cycles a frame, at least"] = f"{cycles:,}"
        rows[f"{whose}frames a second, at most"] = f"{clock * 1e6 / cycles:,.0f}"
    return rows


def _parallelism(npu: Npu) -> dict[str, int]:
    """The folding of an NPU."""
    return npu.values("kfp", "kgp", "pfp", "ol", "planes")

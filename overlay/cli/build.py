"""The command build: hardware for a network, for simulation and, with a board, for Vivado."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bitloom.golden import zoo as networks
from bitloom.golden.network import Model
from bitloom.hls_gen.design.npu import Design, Npu
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.designs import REFERENCES, Reference, chosen
from bitloom.overlay.explore.candidate import Candidate
from bitloom.overlay.explore.estimate import estimate
from bitloom.overlay.platform.boards import BOARDS, Board, board
from bitloom.overlay.study import designs as benches

from .show import dump, json_option, one_line_errors, table, working

FOLDER = click.Path(file_okay=False, path_type=Path)
FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("build")
@click.argument("network", metavar="NETWORK|DESIGN")
@click.option("--out", type=FOLDER, default=None, help="Folder of the build.  [default: build/NETWORK]")
@click.option("--kfp", type=int, help="Input channels a PE takes in a cycle.")
@click.option("--kgp", type=int, help="PEs, kernels in parallel.")
@click.option("--pfp", type=int, help="Channels that the pool unit takes in a cycle.")
@click.option("--ol", type=int, help="Results that leave the array in a cycle.")
@click.option("--planes", type=int, help="Bit planes of an integer input side by side, 0 or 2..8.")
@click.option(
    "--design", "design_name", help="Reference design to build, see bench.  [default: that of NETWORK's name]"
)
@click.option("--foldings", type=FILE, help="Build what explore --save wrote there instead.")
@click.option("--stream-bits", type=click.Choice(["32", "64"]), help="Width of the streams.  [default: the design's]")
@click.option("--stream-weights", is_flag=True, help="Kernel memory for two layers; weights come with every frame.")
@click.option(
    "--map-order", "--order", "map_order", type=click.Choice(["auto", "pull", "raster"]),
    help="Order of maps.  [default: the design's]",
)  # fmt: skip
@click.option(
    "--arch", type=click.Choice(["zynqmp", "zynq"]), help="Processor of the simulated board.  [default: the board's]"
)
@click.option("--board", "board_name", type=click.Choice(list(BOARDS), False), help="Also sources for its bitstream.")
@click.option("--clock-mhz", type=float, default=100.0, help="Clock of the device.")
@json_option
@one_line_errors
def build_command(
    network: str,
    out: Path | None,
    design_name: str | None,
    foldings: Path | None,
    stream_bits: str | None,
    stream_weights: bool,
    map_order: str | None,
    arch: str | None,
    board_name: str | None,
    clock_mhz: float,
    as_json: bool,
    **folding: int | None,
) -> None:
    """Generate hardware for NETWORK: a name of ours (digits-cnn) or a model file (.npz); or a reference DESIGN (see
    bench), for all networks that it is for.

    The NPUs are those of the reference design, or of --foldings; with --kfp and the like it is one NPU. Memories are
    made as large as the network needs. The folder then holds the Verilog, the manifest, the compiled network, and an
    overlay for simulation; with --board also the sources for that board's bitstream, for a machine with Vivado.
    """
    subject = _subject(network, design_name, foldings)
    given = {key: value for key, value in folding.items() if value is not None}
    target = board(board_name) if board_name else None
    reference: Reference | Candidate
    with working("generating Verilog and compiling the network"):
        if foldings is not None:
            others = {"design": design_name, "stream-bits": stream_bits, "order": map_order, **given}
            _refuse([k for k, v in others.items() if v] + ["stream-weights"] * stream_weights)
            reference = Candidate.load(foldings, subject.model)
            design = reference.design(subject.model, subject.name)
        else:
            reference = chosen(subject.model, subject.design, given, stream_bits, map_order, one_npu=stream_weights)
            design = reference.design(subject.name, subject.models, stream_weights=stream_weights)
        made = builds.build(
            out or Path("build") / subject.name, design, subject.models,
            map_order=reference.map_order, dataflow=dict(reference.dataflow), mapping=reference.mapping,
            arch=arch, board=target, clock_mhz=clock_mhz, command=_words(click.get_current_context()),
        )  # fmt: skip
    facts = _facts(subject, design, made, target)
    if as_json:
        dump(facts)
        return
    table(
        f"{subject.name}: {made.folder}",
        {k: f"{v:,}" if isinstance(v, int) else str(v) for k, v in facts.items() if k != "npu"},
    )
    if target:
        click.echo(f"bitstream for {target.name}, on a machine with Vivado: make -C {made.sources}")
        _warn(design, target)


@dataclass(frozen=True)
class _Subject:
    """What NETWORK|DESIGN names. design : name of a reference design, None for that of the network's name.
    weights : name of the network whose weights they are."""

    name: str
    models: list[Model]
    design: str | None
    weights: str

    @property
    def model(self) -> Model:
        return self.models[0]


def _subject(network: str, design: str | None, foldings: Path | None) -> _Subject:
    if network in REFERENCES and not (design or foldings):
        reference = REFERENCES[network]
        return _Subject(network, reference.models(), network, reference.network)
    model = networks.find(network)
    return _Subject(model.network.name, [model], design, network)


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
        name, value = str(parameter.name), context.params[str(parameter.name)]
        if name == "as_json" or context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        if isinstance(parameter, click.Option):
            words.append(parameter.opts[0])
        if not (isinstance(parameter, click.Option) and parameter.is_flag):
            words.append(str(value))
    return words


def _refuse(options: list[str]) -> None:
    if options:
        raise ValueError(f"--foldings: the file says everything about the design, got --{options[0]} too")


def _facts(subject: _Subject, design: Design, made: builds.Build, target: Board | None) -> dict[str, Any]:
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
    return {key: getattr(npu, key) for key in ("kfp", "kgp", "pfp", "ol", "planes")}

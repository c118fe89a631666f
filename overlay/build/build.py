"""A build: everything that belongs to one design, in one folder.

    rtl/<module>.v            generated Verilog for simulation, one module a file
    synthesis/<module>.v      modules that are written otherwise for synthesis: they replace those in rtl/
    <name>_<hash>.bit, .hwh   simulation overlay (no real bitstream), with .v and .manifest.json beside it
    <network>.program.npz     each network, compiled for the design
    vivado/                   for a board: sources for its bitstream (vivado/README.md)
    build.json                what is here: design, digest, files, choices

A build of one network on one NPU:

    model = zoo.load("digits-cnn")
    design = size_memories("digits", [model], Npu(kfp=32, kgp=16, pfp=16, ol=4, planes=6))
    made = build("build/digits", design, [model])
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.dataflow import Dataflow, read_choices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.platform.vivado import clear_sources, write_sources
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay

FORMAT = "bitloom-build"
SOURCES = "vivado"
"""Name of the folder that holds the sources for a bitstream."""


@dataclass(frozen=True)
class Build:
    """A finished build.

    Attributes
    ----------
    folder
        Where the build's files are.
    design
        The hardware.
    digest
        SHA-256 of the design, in hex; the hardware, the manifest and each program carry it.
    bit
        The simulation overlay, for ``pynq.Overlay`` on a virtual board.
    programs
        File of each compiled network, by the network's name.
    map_order, dataflow
        Choices with which the networks were compiled; see ``CompileChoices``.
    command
        Words of the command line that made the build; () if none did.
    sources
        Folder with the sources for a bitstream, or None.
    """

    folder: Path
    design: Design
    digest: str
    bit: Path
    programs: dict[str, Path]
    map_order: str = "auto"
    dataflow: Dataflow = "output_stationary"
    command: tuple[str, ...] = ()
    sources: Path | None = None

    def program(self, network: str) -> Program:
        """The compiled network of that name.

        Raises
        ------
        ValueError
            If the build has none.
        """
        if network not in self.programs:
            raise ValueError(f"{self.folder}: network must be one of {', '.join(self.programs)}, got {network!r}")
        return Program.load(self.programs[network])


def build(
    folder: Path | str,
    design: Design,
    models: Sequence[Model],
    *,
    choices: CompileChoices | None = None,
    target: BoardTarget | None = None,
    command: Sequence[str] = (),
) -> Build:
    """Generate a design and compile networks for it.

    Parameters
    ----------
    folder
        Where to write. It must be empty or hold an old build, whose files are replaced.
    design
        The hardware, with memories that are large enough for every network (``size_memories``).
    models
        Trained networks.
    choices
        How the networks are compiled; by default as ``CompileChoices()``.
    target
        Where the design shall run; with a board there are also sources for its bitstream.
    command
        Words of the command line, to be kept in build.json.

    Returns
    -------
    Build
        What was written.

    Raises
    ------
    ValueError
        If a network doesn't fit the design, or ``folder`` holds other files.
    DesignError
        If the generated Verilog breaks a rule of ``hls_gen.check``.
    """
    folder, choices, target = Path(folder), choices or CompileChoices(), target or BoardTarget()
    made = generate(design)
    manifest = Manifest.from_dict(made.manifest, design.name)
    block_design = BlockDesign.from_manifest(made.manifest, target)
    programs = {m.network.name: compile_model(m, manifest, choices) for m in models}
    # Nothing is removed or written before the networks are known to fit.
    _clear(folder)
    synthesis = generate(design, target="synthesis").modules
    _write_modules(folder, made.modules, synthesis)
    bit = write_simulation_overlay(folder, made.manifest, made.text, target)
    files = {}
    for name, program in programs.items():
        files[name] = folder / f"{name}.program.npz"
        program.save(files[name])
    sources = None
    if target.board:
        sources = write_sources(folder / SOURCES, block_design, made.manifest, synthesis, list(files.values()))
    how = choices.map_order, choices.dataflow, tuple(command)
    done = Build(folder, design, manifest.digest, bit, files, *how, sources)
    _describe(done)
    return done


def load(folder: Path | str) -> Build:
    """Read a build that lies in ``folder``.

    Raises
    ------
    ValueError
        If there is none, or one of another format.
    """
    path = Path(folder) / "build.json"
    try:
        data = json.loads(path.read_text())
        if data.get("format") != FORMAT or data.get("version") != 1:
            raise ValueError(f"format must be {FORMAT} version 1, got {data.get('format')} {data.get('version')}")
        programs = {name: path.parent / file for name, file in data["programs"].items()}
        sources = path.parent / data["sources"] if data.get("sources") else None
        design, bit = Design.from_dict(data["design"]), path.parent / data["bit"]
        how = *read_choices(data), tuple(data["command"])
        return Build(path.parent, design, data["digest"], bit, programs, *how, sources)
    except (OSError, json.JSONDecodeError, KeyError, AttributeError, TypeError) as e:
        raise ValueError(f"{path}: a build must have a readable build.json, got: {e}") from None
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from None


def _write_modules(folder: Path, simulated: Mapping[str, str], synthesised: Mapping[str, str]) -> None:
    """Write all modules for simulation, and of those for synthesis the ones that differ."""
    (folder / "rtl").mkdir(parents=True)
    for name, text in simulated.items():
        (folder / "rtl" / f"{name}.v").write_text(text)
    (folder / "synthesis").mkdir()
    for name, text in synthesised.items():
        if text != simulated[name]:
            (folder / "synthesis" / f"{name}.v").write_text(text)


def _describe(made: Build) -> None:
    """Write build.json, which ``load`` reads."""
    dataflow = made.dataflow if isinstance(made.dataflow, str) else dict(made.dataflow)
    description = {
        "format": FORMAT,
        "version": 1,
        "design": made.design.to_dict(),
        "digest": made.digest,
        "bit": made.bit.name,
        "programs": {name: path.name for name, path in made.programs.items()},
        "map_order": made.map_order,
        "dataflow": dataflow,
        "command": list(made.command),
        "sources": SOURCES if made.sources else None,
    }
    (made.folder / "build.json").write_text(json.dumps(description, indent=1) + "\n")


def _clear(folder: Path) -> None:
    """Remove a build's own files, and nothing else, from ``folder``: what Vivado made stays."""
    if not folder.exists():
        return
    if any(folder.iterdir()) and not (folder / "build.json").exists():
        raise ValueError(f"{folder}: a build needs an empty folder or an old build, got a folder with other files")
    for part in ("rtl", "synthesis"):
        shutil.rmtree(folder / part, ignore_errors=True)
    clear_sources(folder / SOURCES)
    for pattern in ("build.json", "*.bit", "*.hwh", "*.manifest.json", "*.program.npz", "*_*.v"):
        for path in folder.glob(pattern):
            path.unlink()

"""A build: everything that belongs to one design, in one folder.

rtl/<module>.v            generated Verilog for simulation, one module a file
synthesis/<module>.v      the modules that are written otherwise for synthesis: take them in place of those in rtl/
<name>_<hash>.bit, .hwh   simulation overlay (no real bitstream), with .v and .manifest.json beside it
<network>.program.npz     each network, compiled for the design
vivado/                   for a board: sources for its bitstream (vivado/README.md)
build.json                what is here: design, digest, files
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.plan import Dataflow, read_choices
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Design
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.rtl.generate import generate
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.boards import Board
from bitloom.overlay.platform.vivado import clear_sources, write_sources
from bitloom.overlay.virtual.simulation_overlay import write_simulation_overlay

FORMAT = "bitloom-build"
SOURCES = "vivado"


@dataclass(frozen=True)
class Build:
    """A finished build. programs : network name -> file.  map_order, dataflow : with which they were compiled.

    command : words of the command line that made it, () if none did.  sources : folder for Vivado, or None.
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
        """The compiled network; ValueError if there is none of that name."""
        if network not in self.programs:
            raise ValueError(f"{self.folder}: network must be one of {', '.join(self.programs)}, got {network!r}")
        return Program.load(self.programs[network])


def build(
    folder: Path | str,
    design: Design,
    models: Sequence[Model],
    *,
    map_order: str = "auto",
    dataflow: Dataflow = "output_stationary",
    mapping: Sequence[int] | None = None,
    arch: str | None = None,
    board: Board | None = None,
    clock_mhz: float = 100.0,
    command: Sequence[str] = (),
) -> Build:
    """Generate ``design`` and compile ``models`` for it, in ``folder``; an old build there is replaced.

    map_order, dataflow, mapping : of the maps, of the layers, of layers to NPUs (hls_gen.compiler.plan).
    arch, board, clock_mhz : as for BlockDesign. With a board there are also sources for its bitstream.
    command : words of the command line, to be kept.

    ValueError where a network does not fit, DesignError where the generated Verilog breaks a rule of hls_gen.check.
    """
    folder = Path(folder)
    made = generate(design)
    manifest = Manifest.from_dict(made.manifest, design.name)
    block_design = BlockDesign.from_manifest(made.manifest, arch=arch, clock_mhz=clock_mhz, board=board)
    programs = {m.network.name: compile_model(m, manifest, map_order, dataflow, mapping=mapping) for m in models}
    _clear(folder)
    (folder / "rtl").mkdir(parents=True)
    for name, text in made.modules.items():
        (folder / "rtl" / f"{name}.v").write_text(text)
    (folder / "synthesis").mkdir()
    synthesis = generate(design, target="synthesis").modules
    for name, text in synthesis.items():
        if text != made.modules[name]:
            (folder / "synthesis" / f"{name}.v").write_text(text)
    bit = write_simulation_overlay(folder, made.manifest, made.text, arch=arch, clock_mhz=clock_mhz, board=board)
    files = {}
    for name, program in programs.items():
        files[name] = folder / f"{name}.program.npz"
        program.save(files[name])
    sources = None
    if board:
        sources = write_sources(folder / SOURCES, block_design, made.manifest, synthesis, list(files.values()))
    description = {
        "format": FORMAT, "version": 1, "design": design.to_dict(), "digest": manifest.digest, "bit": bit.name,
        "programs": {name: path.name for name, path in files.items()},
        "map_order": map_order, "dataflow": dataflow if isinstance(dataflow, str) else dict(dataflow), "command":
        list(command), "sources": SOURCES if board else None,
    }  # fmt: skip
    (folder / "build.json").write_text(json.dumps(description, indent=1) + "\n")
    return Build(folder, design, manifest.digest, bit, files, map_order, dataflow, tuple(command), sources)


def load(folder: Path | str) -> Build:
    """The build in ``folder``; ValueError if there is none."""
    path = Path(folder) / "build.json"
    try:
        data = json.loads(path.read_text())
        if data.get("format") != FORMAT or data.get("version") != 1:
            raise ValueError(
                f"{path}: format must be {FORMAT} version 1, got {data.get('format')} {data.get('version')}"
            )
        programs = {name: path.parent / file for name, file in data["programs"].items()}
        sources = path.parent / data["sources"] if data.get("sources") else None
        design, bit = Design.from_dict(data["design"]), path.parent / data["bit"]
        how = *read_choices(data), tuple(data["command"])
        return Build(path.parent, design, data["digest"], bit, programs, *how, sources)
    except (OSError, json.JSONDecodeError, KeyError, AttributeError, TypeError) as e:
        raise ValueError(f"{path}: a build must have a readable build.json, got: {e}") from None


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

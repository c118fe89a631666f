"""A build: everything that belongs to one design, in one folder.

    rtl/<module>.v            generated Verilog for simulation, one module a file
    synthesis/<module>.v      modules that are written otherwise for synthesis: they replace those in rtl/
    <name>_<hash>.bit, .hwh   simulation overlay (no real bitstream), with .v and .manifest.json beside it
    <network>.program.npz     each network, compiled for the design
    <network>.model.npz       the model that it was compiled from
    <network>.host.json       for an imported one: what the host does before and after it
    vivado/                   for a board: sources for its bitstream (vivado/README.md)
    openxc7/                  for a Zynq-7000 with our DMA: a project for openXC7 (openxc7/README.md)
    build.log                 what bitloom build did here, with times
    build.json                what is here: design, digest, files with their digests, choices

A build of one network on one NPU:

    model = zoo.load("digits-cnn")
    design = size_memories("digits", [model], Npu(kfp=32, kgp=16, pfp=16, ol=4, planes=6))
    digits = build("build/digits", design, [model])
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bitloom.golden import file
from bitloom.golden.host import file as host_file
from bitloom.golden.host.host import Host
from bitloom.golden.names import check_name, check_path, meant, shown
from bitloom.golden.network import Model, Network
from bitloom.golden.reading.file import naming
from bitloom.golden.reading.json_text import read_json
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import SizedDesign
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.packetizer import Packetizer
from bitloom.hls_gen.design.partitioned_program import read_program
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.design.reader import Reader
from bitloom.hls_gen.rtl.generate import Verilog, generate
from bitloom.hls_gen.rtl.primitives.memory import Target
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.openxc7 import openxc7_files, suits
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.platform.vivado import source_files
from bitloom.overlay.steps import step
from bitloom.overlay.virtual.simulation_overlay import simulation_overlay_files

from .folder import LISTING, KeptFile, check_written, replace_build, settle
from .programs import compiled

FORMAT = "bitloom-build"
SOURCES = "vivado"
"""Name of the folder that holds the sources for a bitstream."""
OPENXC7 = "openxc7"
"""Name of the folder that holds the project for openXC7."""


def _unlabelled(network: Network) -> Network:
    """The network without its own name and the names of its classes."""
    return replace(network, name="network", classes=())


@dataclass(frozen=True, kw_only=True)
class Build:
    """A finished build."""

    folder: Path
    """Where the build's files are."""
    design: Design
    """The hardware."""
    digest: str
    """SHA-256 of the design, in hex; the hardware, the manifest and each program carry it."""
    bit: Path
    """The simulation overlay, for ``pynq.Overlay`` on a virtual board."""
    programs: dict[str, Path]
    """File of each compiled network, by the network's name."""
    models: dict[str, Path]
    """File of the model that each network was compiled from, by the network's name."""
    choices: CompileChoices = field(default_factory=CompileChoices)
    """How the networks were compiled, but for their mappings, which their programs hold."""
    command: tuple[str, ...] = ()
    """Words of the command line that made the build; () if none did."""
    sources: Path | None = None
    """Folder with the sources for a bitstream, or None."""
    kept: tuple[KeptFile, ...] = field(default=(), compare=False)
    """The user's files that lay where this build put its files, and files of an older build that the user had
    changed."""

    def program(self, network: str) -> CompiledNetwork[Program]:
        """The compiled network of that name.

        Raises
        ------
        ValueError
            If the build has none.
        """
        self._check(network)
        return read_program(self.programs[network])

    @property
    def manifest(self) -> Manifest:
        """The manifest, which describes the hardware."""
        return Manifest.load(self._manifest_path)

    def unchanged_manifest(self) -> Manifest:
        """The manifest, checked to be the one that the build wrote.

        Raises
        ------
        ValueError
            If its file was changed, or build.json describes another design.
        """
        path = self._manifest_path
        check_written(self.folder, path.relative_to(self.folder).as_posix())
        manifest = self.manifest
        self.check_design(manifest.design)
        return manifest

    def check_design(self, design: Design) -> None:
        """Raise ValueError unless build.json describes this design, which is that of the build's overlay."""
        if design != self.design:
            raise ValueError(f"{self.folder}: {LISTING} must describe the design of {self.bit.name}, got another one")

    @property
    def _manifest_path(self) -> Path:
        """The manifest's file."""
        return self.bit.with_suffix(".manifest.json")

    def program_of(self, model: Model) -> CompiledNetwork[Program]:
        """The program that was compiled from the model.

        Raises
        ------
        ValueError
            If the build has no such network, or compiled it from another model.
        """
        program = self.program(model.network.name)
        digest = file.model_digest(model)
        if program.model_digest != digest:
            raise ValueError(
                f"{self.folder}: {program.name} was compiled from {program.model_digest[:16]}, "
                f"got the model {digest[:16]}: build again"
            )
        return program

    def model(self, network: str) -> Model:
        """The model that the network of that name was compiled from.

        Raises
        ------
        ValueError
            If the build has no such network, or its model is missing, damaged or another one than it was compiled
            from.
        """
        self._check(network)
        path = self.models[network]
        if not path.exists():
            raise ValueError(f"{self.folder}: {path.name}, the model of {network}, must be there, got no such file")
        return file.load(path)

    def choices_of(self, network: str) -> CompileChoices:
        """How the network of that name was compiled, which in partitions has no mapping."""
        mapping = self.program(network).weighted_mapping
        choices = self.choices if mapping is None else self.choices.of_partition
        return replace(choices, mapping=mapping)

    def choices_for(self, model: Model) -> CompileChoices:
        """How another network is compiled for the build: as the build's networks were.

        Parameters
        ----------
        model
            The other network. If it has the layers of one of the build's networks, it gets the mapping of that
            network, or its partitions; else the compiler chooses a mapping, and the network stays whole.
        """
        layers = _unlabelled(model.network)
        twins = (name for name in self.models if _unlabelled(self.model(name).network) == layers)
        twin = next(twins, None)
        return self.choices_of(twin) if twin else self.choices.of_partition

    def _check(self, network: str) -> None:
        """ValueError unless the build has the network."""
        if network not in self.programs:
            known = ", ".join(self.programs)
            near = meant(network, self.programs)
            raise ValueError(f"{self.folder}: network must be one of {known}, got {shown(network)}{near}")


@dataclass(frozen=True, kw_only=True)
class Origin:
    """How a build was asked for."""

    command: Sequence[str] = ()
    """Words of the command line, which build.json keeps."""
    hosts: Mapping[str, Host] = field(default_factory=dict)
    """The host's part of each imported network, by the networks' names. Each program keeps it, and so does a file
    beside the program."""


def build(
    folder: Path | str,
    design: Design | SizedDesign,
    models: Sequence[Model],
    *,
    choices: CompileChoices | None = None,
    target: BoardTarget | None = None,
    origin: Origin | None = None,
) -> Build:
    """Generate a design and compile networks for it.

    Parameters
    ----------
    folder
        Where to write. It must be empty or hold an old build, whose files are replaced all at once. Other files in it
        stay (folder.py).
    design
        The hardware, with memories that are large enough for every network (``size_memories``). A design that was
        sized for these networks by these choices may come with them: then they are not lowered again.
    models
        Trained networks.
    choices
        How the networks are compiled; by default as ``CompileChoices()``.
    target
        Where the design shall run; with a board there are also sources for its bitstream. A raw stream becomes
        frames of the first network.
    origin
        Command and choices by which the build was asked for, which it keeps.

    Returns
    -------
    Build
        Build that was written.

    Raises
    ------
    ValueError
        If a network doesn't fit the design, or ``folder`` holds other files and no build.
    OSError
        If something can't be written; an old build is as it was.
    DesignError
        If the generated Verilog breaks a rule of ``hls_gen.check``.
    """
    folder = Path(folder)
    choices = choices or CompileChoices()
    target = target or BoardTarget()
    origin = origin or Origin()
    names = [m.network.name for m in models]
    lowered = None
    if isinstance(design, SizedDesign):
        design, networks = design
        lowered = dict(zip(names, networks, strict=True))
    generated = _generated(design, "simulation")
    synthesis = _generated(design, "synthesis").modules
    manifest = Manifest.from_dict(generated.manifest, design.name)
    block_design = BlockDesign.from_manifest(generated.manifest, target)
    overlay = simulation_overlay_files(generated.manifest, generated.text, target)
    compiled_networks = compiled(models, manifest, dict.fromkeys(names, choices), origin.hosts, lowered)
    programs = {f"{name}.program.npz": program.to_bytes() for name, program in compiled_networks.items()}
    hosts = {host_file.name_of(name): host_file.to_bytes(host) for name, host in origin.hosts.items()}
    kept = {f"{m.network.name}.model.npz": file.to_bytes(m) for m in models}
    files = {**_modules(generated.modules, synthesis), **overlay, **programs, **kept, **hosts}
    if target.raw_stream:
        packetizer = Packetizer.of(
            compiled_networks[names[0]].only_program("a raw stream"), design.stream_bits, target.raw_stream
        )
        block_design = replace(block_design, packetizer=packetizer)
    if target.board:
        sources = source_files(block_design, generated.manifest, synthesis, programs)
        files |= {f"{SOURCES}/{path}": data for path, data in sources.items()}
    if target.board and suits(block_design):
        project = openxc7_files(block_design, generated.manifest["top"], synthesis)
        files |= {f"{OPENXC7}/{path}": data for path, data in project.items()}
    *_, bit = overlay  # the .bit is the last of its files
    done = Build(
        folder=folder,
        design=design,
        digest=manifest.digest,
        bit=folder / bit,
        programs=_named(folder, names, programs),
        models=_named(folder, names, kept),
        choices=replace(choices, mapping=None),
        command=tuple(origin.command),
        sources=folder / SOURCES if target.board else None,
    )
    with step(f"writing {len(files):,} files"):
        return replace(done, kept=replace_build(folder, _description(done), files))


def _generated(design: Design, target: Target) -> Verilog:
    """A design's Verilog; logged as a step."""
    with step(f"generating Verilog for {target}"):
        return generate(design, target=target)


def load(folder: Path | str) -> Build:
    """Read a build that lies in ``folder``.

    Raises
    ------
    OSError
        If build.json can't be read.
    ValueError
        If there is none, or one of another format.
    """
    path = Path(folder) / LISTING
    kept = settle(path.parent)
    if not path.exists():
        got = "one without" if path.parent.is_dir() else "a file" if path.parent.exists() else "no such folder"
        got += f" {LISTING}" if path.parent.is_dir() else ""
        raise ValueError(f"{folder}: must be a folder that `bitloom build` wrote, got {got}")
    data = read_json(path, LISTING)
    with naming(path):
        return _build(path.parent, Reader(data, "build"), kept)


def _build(folder: Path, data: Reader, kept: tuple[KeptFile, ...]) -> Build:
    """The build in ``folder`` that build.json describes; its files lie inside the folder."""
    data.format(FORMAT, 1)
    design = Design.from_dict(data.table("design"))
    programs = _files(data, "programs")
    data.require(bool(programs), "programs must be one at least", programs)
    models = _files(data, "models")
    bit = data.text("bit")
    sources = data.text("sources") if data.data.get("sources") else None
    for what, path in (("bit", bit), ("sources", sources or SOURCES)):
        check_path(what, path)
    command = data.texts("command")
    data.require(command[:2] in ((), ("bitloom", "build")), "command must begin with bitloom build", list(command))
    return Build(
        folder=folder,
        design=design,
        digest=data.digest("digest"),
        bit=folder / bit,
        programs=_named(folder, programs, programs.values()),
        models=_named(folder, models, models.values()),
        choices=CompileChoices.from_dict(data.data),
        command=command,
        sources=folder / sources if sources else None,
        kept=kept,
    )


def _files(data: Reader, key: str) -> dict[str, str]:
    """Files by network at ``key``, each inside of the build's folder."""
    reader = data.inner(key)
    files = {name: reader.text(name) for name in reader.data}
    for name, path in files.items():
        check_name(f"{key}: network", name)
        check_path(key, path)
    return files


def _named(folder: Path, names: Iterable[str], files: Iterable[str]) -> dict[str, Path]:
    """Paths in ``folder`` by the names of networks."""
    return {name: folder / path for name, path in zip(names, files)}


def _modules(simulated: Mapping[str, str], synthesised: Mapping[str, str]) -> dict[str, bytes]:
    """Files of all modules for simulation, and of those for synthesis that differ."""
    files = {f"rtl/{name}.v": text.encode() for name, text in simulated.items()}
    differ = {name: text for name, text in synthesised.items() if text != simulated[name]}
    return {**files, **{f"synthesis/{name}.v": text.encode() for name, text in differ.items()}}


def _description(build: Build) -> dict[str, Any]:
    """Contents of build.json, without the list of files."""
    return {
        "format": FORMAT,
        "version": 1,
        "design": build.design.to_dict(),
        "digest": build.digest,
        "bit": build.bit.name,
        "programs": {name: path.name for name, path in build.programs.items()},
        "models": {name: path.name for name, path in build.models.items()},
        **build.choices.to_dict(),
        "command": list(build.command),
        "sources": SOURCES if build.sources else None,
    }

"""The folder that `bitloom deploy` writes, which is copied to a board and runs there.

    README.md                  how to copy, install, and run
    driver.py                  classifies images on the board; --check compares with golden
    networks.json              what driver.py reads: names of the files, transforms
    deploy.json                the digest of every file, by which the next deploy knows what is its own
    <stem>.bit, .hwh, .manifest.json
    <stem>.v                   of a simulation overlay: the Verilog
    <network>.program.npz      each network, compiled
    <network>.check.npz        random images, and golden's outputs for them
    bitloom_fpga-<version>-py3-none-any.whl
    c/                         if it was asked for: the driver in C, with an example and a CMake file
    SHA256SUMS                 for sha256sum -c

The wheel is of the package that is installed where the command runs (wheel.py).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from bitloom.driver.c import files as c_files
from bitloom.golden import zoo
from bitloom.golden.kernels import packed
from bitloom.golden.names import shown
from bitloom.golden.reading.file import naming, read_file
from bitloom.golden.transform import NONE
from bitloom.hls_gen.design.array_file import array_bytes
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build.build import Build
from bitloom.overlay.build.folder import DEPLOYED, KeptFile, replace_build
from bitloom.overlay.build.images import random_images
from bitloom.overlay.evaluation.host_transform import transform_of
from bitloom.overlay.steps import step
from bitloom.overlay.virtual.simulation_overlay import SIMULATION_ONLY

from .wheel import wheel

FORMAT = "bitloom-deploy"
NETWORKS = "networks.json"
SUMS = "SHA256SUMS"
CHECK_IMAGES = 4
"""Random images of each network whose outputs the board must give."""
SUFFIXES = (".bit", ".hwh", ".manifest.json")
"""Endings of the files of a bitstream that a board needs."""
OUTPUT = "output"
"""Folder in the sources for a bitstream where Vivado's results are."""
FIXED = Path(__file__).with_name("files")
"""Files that are the same for every build."""


@dataclass(frozen=True)
class Deployed:
    """A folder for a board."""

    folder: Path
    """Where it is."""
    files: tuple[str, ...]
    """Path of each file in it."""
    bit: str
    """Name of the bitstream's file."""
    simulation: bool
    """Whether that is a simulation overlay, as no bitstream has been made yet."""
    kept: tuple[KeptFile, ...]
    """The user's files that were in the way."""
    left_out: tuple[Path, ...] = ()
    """Bitstreams in ``vivado/output`` that are of other designs."""
    not_in_c: tuple[str, ...] = ()
    """Networks that the driver in C, which was asked for, doesn't take."""


def deploy(
    build: Build,
    folder: Path | str,
    *,
    bitstream: Path | None = None,
    transform: str | None = None,
    with_c: bool = False,
) -> Deployed:
    """Write the folder for a board.

    Parameters
    ----------
    build
        Build that shall run there.
    folder
        Where to write. It must be empty or hold an older one of these folders, whose files are replaced all at once.
    bitstream
        The .bit file, with its .hwh and .manifest.json beside it. None: the newest one of the build's digest in
        ``vivado/output``; where there is none, the simulation overlay.
    transform
        How pixels become values of the input, as `bitloom evaluate` takes it, for all networks. None: as a network of
        ours was trained, else none.
    with_c
        Whether the driver in C goes there, too, in a folder ``c``.

    Returns
    -------
    Deployed
        Files that were written.

    Raises
    ------
    ValueError
        If ``bitstream`` is of another design, incomplete or a simulation overlay, the transform is none or not for
        these networks, or the folder holds other files.
    OSError
        If something can't be read or written; an older folder is as it was.
    """
    folder = Path(folder)
    fitting, others = _bitstreams(build) if bitstream is None else ([bitstream], [])
    bit = fitting[-1] if fitting else None
    simulation = bit is None
    with step("reading the bitstream"):
        files = _bitstream(build, bit)
    stem = next(name for name in files if name.endswith(".bit"))
    networks: dict[str, Any] = {}
    programs = {name: build.program(name) for name in build.programs}
    for name, program in programs.items():
        with step(f"computing what {name} must give"):
            networks[name] = {
                "program": build.programs[name].name,
                "check": f"{name}.check.npz",
                "transform": _transform(program, name, transform),
            }
            files[build.programs[name].name] = read_file(build.programs[name])
            files[f"{name}.check.npz"] = _check(build, name)
    with step("packing the wheel"):
        wheel_name, files[wheel_name] = wheel()
    for path in sorted(FIXED.iterdir()):
        if path.is_file():
            files[path.name] = path.read_bytes()
    if with_c:
        files |= {f"c/{path.name}": path.read_bytes() for path in c_files()}
    description = {
        "format": FORMAT,
        "version": 1,
        "design": build.digest,
        "bit": stem,
        "simulation": simulation,
        "wheel": wheel_name,
        "networks": networks,
    }
    files[NETWORKS] = (json.dumps(description, indent=1) + "\n").encode()
    files["README.md"] = _readme(files["README.md"].decode(), description, build, programs, with_c).encode()
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {path}\n" for path, data in sorted(files.items()))
    files[SUMS] = sums.encode()
    with step(f"writing {len(files)} files"):
        kept = replace_build(folder, {"format": FORMAT, "version": 1, "design": build.digest}, files, DEPLOYED)
    not_in_c = _not_in_c(programs) if with_c else ()
    return Deployed(folder, (*files, DEPLOYED), stem, simulation, kept, tuple(others), not_in_c)


def _bitstreams(build: Build) -> tuple[list[Path], list[Path]]:
    """Bitstreams in ``vivado/output``, the newest one last: those of the build's design, and the others."""
    if build.sources is None:
        return [], []
    bits = sorted((build.sources / OUTPUT).glob("*.bit"), key=lambda path: path.stat().st_mtime)
    fitting = [path for path in bits if _digest(path) == build.digest]
    return fitting, [path for path in bits if path not in fitting]


def _beside(bit: Path, suffix: str) -> Path:
    """The file with the bitstream's stem and another ending."""
    return bit.with_name(f"{bit.name.removesuffix('.bit')}{suffix}")


def _digest(bit: Path) -> str:
    """The design's digest in the manifest beside a bitstream; "" where there is no manifest."""
    manifest = _beside(bit, ".manifest.json")
    return Manifest.load(manifest).digest if manifest.exists() else ""


def _bitstream(build: Build, bit: Path | None) -> dict[str, bytes]:
    """The bitstream's files by name: that of the board, or without one the simulation overlay."""
    if bit is None:
        return {path.name: read_file(path) for path in (_beside(build.bit, end) for end in (*SUFFIXES, ".v"))}
    if bit.suffix != ".bit":
        raise ValueError(f"{bit}: the bitstream's name must end in .bit, got {shown(bit.name)}")
    if _digest(bit) != build.digest:
        got = _digest(bit)[:16] or "one without a manifest beside it"
        raise ValueError(f"{bit}: must be of the build's design {build.digest[:16]}, got {got}")
    if SIMULATION_ONLY.encode() in read_file(bit)[:1024]:
        raise ValueError(f"{bit}: must be a bitstream for the board, got a simulation overlay")
    return {path.name: path.read_bytes() for path in (_beside(bit, end) for end in SUFFIXES)}


def _transform(program: CompiledNetwork, network: str, text: str | None) -> str:
    """The transform of a network's pixels, checked; "none" where images are what the network takes."""
    if text is None:
        return str(zoo.TRANSFORMS.get(network, NONE))
    with naming(network):
        return str(transform_of(text, program.host))


def _check(build: Build, network: str) -> bytes:
    """Random images of a network and golden's outputs, as the content of an .npz file."""
    model = build.model(network)
    images = random_images(model.network, CHECK_IMAGES, 0)
    return array_bytes({"images": images, "outputs": packed.forward(model, images)})


def _not_in_c(programs: Mapping[str, CompiledNetwork[Program]]) -> tuple[str, ...]:
    """The networks that the driver in C doesn't take, or classifies no image with."""
    return tuple(name for name, p in programs.items() if not p.has_classes or p.output_maps > 1)


def _options(program: CompiledNetwork[Program]) -> str:
    """The options of driver.py that write what a network gives."""
    if program.has_classes:
        return "--out classes.npy"
    by_name = program.host is not None and len(program.host.outputs) > 1
    return f"--outputs --out outputs.{'npz' if by_name else 'npy'}"


def _images(program: CompiledNetwork[Program], transform: str) -> str:
    """The shape of the images that driver.py takes, and what becomes of their numbers, as cells of a table."""
    if program.host is not None and transform == NONE:
        shape = program.host.shape
        words = f"{NONE}: numbers are what the imported file takes"
    else:
        shape = program.input.shape
        words = transform
    return f"`(N, {', '.join(map(str, shape))})` | {words}"


def _readme(
    text: str,
    description: Mapping[str, Any],
    build: Build,
    programs: Mapping[str, CompiledNetwork[Program]],
    with_c: bool,
) -> str:
    """The page of the folder, with what is in it."""
    networks = "\n".join(
        f"| `{name}` | {_images(programs[name], said['transform'])} | `{_options(programs[name])}` |"
        for name, said in description["networks"].items()
    )
    make = f"make -C {quote(str(build.sources or 'vivado'))}"
    note = (
        f"> **`{description['bit']}` is for the virtual board alone.** When `{make}` has made the bitstream, say "
        "`bitloom deploy` again.\n\n"
        if description["simulation"]
        else ""
    )
    others = "".join(
        f" It doesn't take `{name}`: its networks have one output, of one map." for name in _not_in_c(programs)
    )
    c = (
        "In C, without pynq: `cmake -B build c && cmake --build build` makes `build/classify`, whose last word is how "
        f"pixels become the input.{others}\n\n"
        if with_c
        else ""
    )
    run = f"python3 driver.py images.npy {_options(next(iter(programs.values())))}"
    words = {
        "NOTE": note,
        "C": c,
        "RUN": run,
        "BIT": description["bit"],
        "WHEEL": description["wheel"],
        "NETWORKS": networks,
    }
    for word, value in words.items():
        text = text.replace(f"@{word}@", value)
    return text

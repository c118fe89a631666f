"""A simulation overlay: files that ``pynq.Overlay`` loads and that a virtual board simulates.

    <stem>.bit             header of a bitstream that says "simulation only", without configuration data
    <stem>.hwh             the block design (overlay/platform/block_design.py, hwh.py)
    <stem>.v               the Verilog to simulate; with our DMA that of the DMA, too (hls_gen/rtl/dma/system.py)
    <stem>.manifest.json   the manifest (docs/reference/device.md)

The stem ends in a hash of the content, because a board doesn't take a firmware file twice under one name. The .bit
holds the hash of each other file: pynq caches what it knows of an overlay by the content of its .bit, and no file is
simulated after it was changed.
"""

import hashlib
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bitloom.golden.atomic import inside, write_bytes
from bitloom.golden.limits import MB, READ_MB
from bitloom.golden.reading.file import naming, read_file
from bitloom.golden.reading.json_text import parse_json
from bitloom.hls_gen.design.design import STREAM_WIDTHS
from bitloom.hls_gen.design.dma import SYSTEM_TOP
from bitloom.hls_gen.design.manifest import TOP
from bitloom.hls_gen.design.manifest_parts import read_registers
from bitloom.hls_gen.design.reader import Reader
from bitloom.hls_gen.design.training import TOP as TRAINING_TOP
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.dma_core import AMD, OWN, DmaCore
from bitloom.overlay.platform.hwh import hwh_text
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.virtual.sim.tokens import check_tokens

SIMULATION_ONLY = "SIMULATION ONLY"
"""Words in the header of a .bit that say it is not for an FPGA."""
SUFFIXES = (".v", ".manifest.json", ".hwh")
"""Endings of the files beside a .bit."""
MAGIC = bytes.fromhex("0009 0ff00ff00ff00ff000 0001")
"""First bytes of every .bit file."""


class OverlayError(ValueError):
    """The files of a simulation overlay are incomplete or don't belong together."""


def _field(key: bytes, text: str) -> bytes:
    """A field of a .bit's header: its letter, its length, its text."""
    data = text.encode("ascii") + b"\0"
    return key + struct.pack(">H", len(data)) + data


def bit_bytes(design: BlockDesign, files: Mapping[str, bytes]) -> bytes:
    """Content of the .bit file.

    The payload has no synchronisation word, so that an FPGA which is given the file ignores all of it.

    Parameters
    ----------
    design
        The block design, for the name and the part in the header.
    files
        Content of the files beside it, by suffix.
    """
    lines = [f"{SIMULATION_ONLY}: no configuration data", *(_digest_line(*file) for file in files.items())]
    payload = "".join(f"{line}\n" for line in lines).encode()
    payload += b"\0" * (-len(payload) % 4)
    head = _field(b"a", f"{design.name} {SIMULATION_ONLY};UserID=0XFFFFFFFF;Version=0")
    head += _field(b"b", "-".join(design.part).replace("--", "-"))
    head += _field(b"c", "1970/01/01") + _field(b"d", "00:00:00")
    return MAGIC + head + b"e" + struct.pack(">I", len(payload)) + payload


def _digest_line(suffix: str, data: bytes) -> str:
    """The line in the .bit for the file with that suffix."""
    return f"{suffix} sha256 {hashlib.sha256(data).hexdigest()}"


def simulation_overlay_files(
    manifest: Mapping[str, Any], verilog: str, target: BoardTarget | None = None
) -> dict[str, bytes]:
    """The four files of a simulation overlay. The same content always gets the same names.

    Parameters
    ----------
    manifest, verilog
        The generator's results.
    target
        Where the design shall run, by default ``BoardTarget()``.

    Returns
    -------
    dict
        Content of each file by its name, the .bit last.

    Raises
    ------
    ValueError
        If a virtual board would refuse the Verilog (`check_tokens`), or the target contradicts itself.
    """
    design = BlockDesign.from_manifest(manifest, target)
    verilog += dma_text(design, manifest["top"], verilog)
    with naming(design.name):
        check_tokens(verilog)
    hwh = hwh_text(design)
    text = design.manifest_text(manifest)
    content = hashlib.sha256("\0".join((hwh, text, verilog)).encode()).hexdigest()
    stem = f"{re.sub('[^A-Za-z0-9_]', '_', design.name)}_{content[:12]}"
    files = dict(zip(SUFFIXES, (verilog.encode(), text.encode(), hwh.encode())))
    return {f"{stem}{suffix}": data for suffix, data in {**files, ".bit": bit_bytes(design, files)}.items()}


def dma_text(design: BlockDesign, top: str, verilog: str) -> str:
    """Verilog behind the device's, whose top module is ``top``: our DMA, and the module that connects both.

    Modules that the device has, too, are left out: a module's name stands for one text. "" for AMD's DMA, which is no
    Verilog.
    """
    if design.dma is not OWN:
        return ""
    from bitloom.hls_gen.rtl.dma.system import system_verilog  # a board has no Veriloggen

    return "".join(f"\n{text}" for text in system_verilog(design.dma_sizes, top).values() if text not in verilog)


def write_simulation_overlay(
    directory: Path | str,
    manifest: Mapping[str, Any],
    verilog: str,
    target: BoardTarget | None = None,
) -> Path:
    """Write a simulation overlay, the .bit last and each file in one step, whoever else writes it.

    Parameters
    ----------
    directory
        Where to write; made if it isn't there.
    manifest, verilog, target
        As for ``simulation_overlay_files``.

    Returns
    -------
    Path
        The .bit file.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    files = simulation_overlay_files(manifest, verilog, target)
    for name, data in files.items():
        write_bytes(inside(folder, name), data)
    return folder / list(files)[-1]


@dataclass(frozen=True)
class SimulationOverlay:
    """The files beside the .bit of a simulation overlay."""

    manifest: Mapping[str, Any]
    """The manifest's JSON data."""
    verilog: str
    """The whole design as text."""
    dma: DmaCore = AMD
    """The DMA of its block design."""

    @property
    def top(self) -> str:
        """Name of the top module that is simulated."""
        return SYSTEM_TOP if self.dma is OWN else str(self.manifest["top"])


def read_simulation_overlay(bit: Path | str) -> SimulationOverlay:
    """Read the manifest and the Verilog beside a .bit.

    Raises
    ------
    OverlayError
        If the .bit is a real one, a file is missing or was changed since the .bit was written, or the Verilog has
        tokens that generated Verilog never has (`check_tokens`): the files may be a stranger's.
    """
    try:
        return _checked(Path(bit))
    except ValueError as e:
        raise OverlayError(str(e)) from None


def _checked(bit: Path) -> SimulationOverlay:
    """As `read_simulation_overlay`; errors are ValueErrors of any kind."""
    data = _read(bit)
    if SIMULATION_ONLY.encode() not in data[:256]:
        raise ValueError(f"{bit.name}: a virtual board loads only simulation overlays, and this is a real bitstream")
    files = {}
    for suffix in SUFFIXES:
        path = bit.with_suffix(suffix)
        if not path.is_file():
            raise ValueError(f"{bit.name}: {path.name} must lie beside it, and is missing")
        files[suffix] = _read(path)
        if _digest_line(suffix, files[suffix]).encode() not in data:
            raise ValueError(f"{bit.name}: {path.name} must be the one that it was written with, and was changed")
    with naming(f"{bit.stem}.v"):
        verilog = files[".v"].decode()
        check_tokens(verilog)
    with naming(f"{bit.stem}.manifest.json"):
        manifest = _manifest(files[".manifest.json"])
    # the .hwh is the one that was written with the .bit; an entity can't hide the name of a core in it
    return SimulationOverlay(manifest, verilog, OWN if f'VLNV="{OWN.vlnv}"'.encode() in files[".hwh"] else AMD)


def _read(path: Path) -> bytes:
    """The content of a file of an overlay; ValueError if it is no regular file, or larger than READ_MB."""
    if path.is_file():
        READ_MB.check(path.name, path.stat().st_size / MB)
    return read_file(path)


def _manifest(text: bytes) -> dict[str, Any]:
    """The manifest's JSON data; ValueError unless all that the virtual board reads is right."""
    top = Reader(parse_json(text, "the manifest"), "the manifest")
    for key in ("name", "digest", "vlnv"):
        top.text(key)
    bits = top.number("stream_bits")
    top.require(bits in STREAM_WIDTHS, "stream_bits must be 32 or 64", bits)
    top.one_of("top", (TOP, TRAINING_TOP))
    read_registers(top)
    return top.data

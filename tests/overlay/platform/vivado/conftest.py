"""Sources for boards, from one small design in both stream widths."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from bitloom.golden import zoo as networks
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packetizer import Packetizer, RawStream
from bitloom.hls_gen.rtl.generate import Verilog, generate
from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.boards import board
from bitloom.overlay.platform.dma_core import AMD, DmaCore
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.platform.vivado import source_files

from .vivado import Vivado

PROGRAM = "digits-cnn.program.npz"


@lru_cache
def generated(stream_bits: int) -> Verilog:
    """The Verilog for synthesis of a small design."""
    npu = Npu.of(kfp=8, kgp=4, ol=1, pfp=1, planes=6)
    design = size_memories("digits-cnn", [networks.load("digits-cnn")], npu, stream_bits=stream_bits)
    return generate(design, target="synthesis", checked=False)


def packetizer_of(stream_bits: int, marks: str) -> Packetizer:
    """The packetizer for the design's network."""
    manifest = Manifest.from_dict(generated(stream_bits).manifest, "digits-cnn")
    program = compile_model(networks.load("digits-cnn"), manifest)
    return Packetizer.of(program, stream_bits, RawStream(marks=marks))


@dataclass(frozen=True)
class Sources:
    """A folder of sources, and what it was made from."""

    folder: Path
    design: BlockDesign
    manifest: dict[str, Any]
    modules: dict[str, str]

    def change(self, file: str, old: str, new: str) -> None:
        """Put ``new`` in place of ``old``, which must be there."""
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def package(self, **options: Any) -> Vivado:
        """Run package_ip.tcl."""
        vivado = Vivado(**options)
        vivado.run(self.folder / "package_ip.tcl")
        return vivado

    def build(self, *arguments: str, backend: str = "", **options: Any) -> Vivado:
        """Run both scripts."""
        self.package()
        vivado = Vivado(**options)
        vivado.run(self.folder / "build.tcl", *arguments, backend=backend)
        return vivado

    @property
    def output(self) -> list[str]:
        """Names of the files in output/."""
        return sorted(path.name for path in (self.folder / "output").glob("*"))


@pytest.fixture
def sources(tmp_path: Path) -> Callable[..., Sources]:
    """sources(board="Pynq-Z2", stream_bits=32, clock_mhz=100.0, dma=AMD, marks="") -> Sources; with marks, of a raw
    stream, there is a packetizer."""

    def make(
        name: str = "Pynq-Z2", stream_bits: int = 32, clock_mhz: float = 100.0, dma: DmaCore = AMD, marks: str = ""
    ) -> Sources:
        core = generated(stream_bits)
        target = BoardTarget(board=board(name), clock_mhz=clock_mhz, dma=dma)
        design = BlockDesign.from_manifest(core.manifest, target)
        if marks:
            design = replace(design, packetizer=packetizer_of(stream_bits, marks))
        folder = tmp_path / "vivado"
        files = source_files(design, core.manifest, core.modules, {PROGRAM: b"a compiled network"})
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return Sources(folder, design, core.manifest, core.modules)

    return make

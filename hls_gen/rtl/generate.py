"""From a design to checked Verilog and its manifest."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_args

import veriloggen

from bitloom.hls_gen.check.once import check_once
from bitloom.hls_gen.check.sums import check_same_sums
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.limits import check_memories
from bitloom.hls_gen.design.manifest import TOP, Manifest
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.memory import Library, Target
from bitloom.hls_gen.rtl.shell.registers import registers
from bitloom.hls_gen.rtl.shell.top import top


@dataclass(frozen=True)
class Verilog:
    """Generated hardware: module name -> text, in order of instantiation, and the manifest."""

    modules: dict[str, str]
    manifest: dict[str, Any]

    @property
    def text(self) -> str:
        """All modules in one text."""
        return "\n".join(self.modules.values())


def generate(design: Design, *, target: Target = "simulation", checked: bool = True) -> Verilog:
    """Verilog and manifest of ``design``; the same text on every run.

    The targets differ in the bodies of the popcount modules (popcount.py) and in nothing else. ``checked`` runs the
    rules of hls_gen.check on the text, and for synthesis proves that the popcount modules for synthesis and for
    simulation give the same sums (hls_gen/check/sums.py).

    The digest is the SHA-256 of the text for simulation with the digest registers at 0, for both targets: both are the
    same design to the driver, with the same manifest. All modules are built with 0 in these registers; then the module
    with the registers is built again with the digest.
    """
    if target not in get_args(Target):
        raise ValueError(f"generate: target must be one of {', '.join(get_args(Target))}, got {target!r}")
    check_memories(design.name, design.npus)
    digest = hashlib.sha256("\n".join(_blank(design, "simulation").values()).encode()).hexdigest()
    showing = registers(Library(design.stream_bits, target, design.npus), design, digest).modules()
    verilog = Verilog({**_blank(design, target), **showing}, Manifest.of(design, digest).to_dict())
    if checked:
        check_once(verilog.text, TOP)
    if checked and target == "synthesis":
        for name in counting_modules(verilog.modules):
            check_same_sums(_blank(design, "simulation")[name], verilog.modules[name])
    return verilog


def counting_modules(modules: Iterable[str]) -> list[str]:
    """Names of the modules that have a body for each target."""
    return [name for name in modules if name.startswith("popcount")]


@lru_cache(maxsize=32)  # a design is often built more than once: for simulation, for a board, for its area
def _blank(design: Design, target: Target) -> dict[str, str]:
    """Text of the modules, with the digest registers at 0; not to be changed."""
    if target == "simulation":
        return _top(design, target).modules()
    simulated = _blank(design, "simulation")
    return {**simulated, **_top(design, target).modules(only=counting_modules(simulated))}


def _top(design: Design, target: Target) -> Block:
    """The top module, with the digest registers at 0."""
    veriloggen.reset()
    return top(design, "0" * 64, target)

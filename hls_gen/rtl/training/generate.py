"""From parameters of a training machine to checked Verilog."""

import hashlib
from functools import lru_cache

import veriloggen

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.check.once import check_once
from bitloom.hls_gen.design.training import STREAM_BITS, TOP
from bitloom.hls_gen.design.training_manifest import TrainingManifest
from bitloom.hls_gen.rtl.primitives.memory import Library

from .registers import registers
from .top import top


def training_manifest(name: str, machine: MachineParameters) -> TrainingManifest:
    """The manifest of a build of that name; its digest is that of `training_verilog`'s text."""
    return TrainingManifest(name=name, machine=machine, digest=_digest(machine))


@lru_cache(maxsize=8)
def training_verilog(machine: MachineParameters, *, checked: bool = True) -> dict[str, str]:
    """The Verilog of a machine; the same text on every run.

    Parameters
    ----------
    machine : MachineParameters
    checked : bool
        Hold the text to the rules of hls_gen.check.

    Returns
    -------
    dict
        Module name -> text, the top module first. Its DIGEST registers show the SHA-256 of the text in which they
        are 0.
    """
    modules = {**_blank(machine), **registers(Library(STREAM_BITS), machine, _digest(machine)).modules()}
    if checked:
        check_once("\n".join(modules.values()), TOP)
    return modules


def _digest(machine: MachineParameters) -> str:
    """SHA-256 of the text in which the digest is 0."""
    return hashlib.sha256("\n".join(_blank(machine).values()).encode()).hexdigest()


@lru_cache(maxsize=8)
def _blank(machine: MachineParameters) -> dict[str, str]:
    """Module name -> text with the digest 0, the top module first; not to be changed."""
    veriloggen.reset()
    return top(machine, "0" * 64).modules()

"""From parameters of a training machine to checked Verilog."""

import hashlib
from functools import lru_cache

import veriloggen

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.check import check
from bitloom.hls_gen.design.training import TOP

from .top import top


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
    veriloggen.reset()
    blank = "\n".join(top(machine, "0" * 64).modules().values())
    digest = hashlib.sha256(blank.encode()).hexdigest()
    veriloggen.reset()
    made = top(machine, digest).modules()
    if checked:
        check("\n".join(made.values()), TOP)
    return made

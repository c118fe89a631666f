"""Which converter a machine has."""

from collections.abc import Callable

from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.hls_gen.rtl.primitives.block import Block
from bitloom.hls_gen.rtl.primitives.memory import Library

from .converter import converter
from .pair_converter import pair_converter


def converter_of(machine: MachineParameters) -> Callable[[Library, MachineParameters], Block]:
    """The function that makes the converters of a machine."""
    return {"shifting": converter, "multiplying": pair_converter}[machine.converter]

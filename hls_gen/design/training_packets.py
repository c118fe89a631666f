"""Packets for the training machine: a header as the inference engine has it, and the words that follow."""

from collections.abc import Sequence

import numpy as np

from bitloom.golden.discrete.machine.instruction import Instruction, encode
from bitloom.golden.encoding import Array

from .headers import PROGRAM, RUN, PacketHeader


def program_packet(program: Sequence[Instruction], first: int = 0) -> Array:
    """Words that put instructions into the instruction cache from address ``first`` on."""
    header = PacketHeader(PROGRAM, 0, 0, first, len(program)).words()
    return np.concatenate([header, encode(program)])


def run_packet(data: Array, first: int = 0) -> Array:
    """Words that run the program from address ``first`` on; IO takes ``data``, (n,) 32-bit words, all of them."""
    header = PacketHeader(RUN, 0, 0, first, len(data)).words()
    return np.concatenate([header, np.asarray(data).astype(np.uint32)])

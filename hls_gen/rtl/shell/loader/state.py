"""States of the loader, and what all of its parts look at."""

from collections.abc import Mapping
from dataclasses import dataclass

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.rtl.primitives.block import Block, Signal
from bitloom.hls_gen.rtl.primitives.memory import Library

STATES = ("HEADER", "RANGE", "JUDGE", "LOAD", "FRAME", "DRAIN")
"""Names of the states; a state's number, which register STATUS shows, is its place.

HEADER
    The four words of a header are taken.
RANGE
    One cycle in which sums and comparisons of the header's words go into registers (hls_gen/rtl/shell/loader/judge.py).
JUDGE
    The packet waits until it may begin, or is found to be malformed.
LOAD
    Rows of a LOAD or of WEIGHTS are taken.
FRAME
    Input words of a frame are taken.
DRAIN
    A packet was malformed: everything is taken and dropped until reset.
"""
STATE_BITS = 3
"""Width of a state's number."""


def state_number(b: Block, name: str) -> Signal:
    """The number of a state, as a constant ``STATE_<name>`` of the module."""
    return b.localparam(f"STATE_{name}", STATES.index(name), STATE_BITS)


@dataclass(frozen=True)
class LoaderContext:
    """The loader's block under construction, and the signals that all of its parts need.

    Attributes
    ----------
    b : Block
        The loader's module.
    library : Library
        Where modules come from.
    design : Design
        The design whose NPUs it loads.
    at : mapping of str to Signal
        For each state, by name: 1 while the loader is in it.
    given : Signal
        A stream word is there. It is taken if the state takes words.
    data : Signal
        That word, ``Design.stream_bits`` wide.
    """

    b: Block
    library: Library
    design: Design
    at: Mapping[str, Signal]
    given: Signal
    data: Signal

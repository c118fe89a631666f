"""Signals that all parts of the loader look at: the loader's state, and the stream word at hand."""

from collections.abc import Mapping
from dataclasses import dataclass

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.rtl.primitives.block import Block, Signal
from bitloom.hls_gen.rtl.primitives.memory import Library


@dataclass(frozen=True)
class LoaderContext:
    """The loader's block under construction, and the signals that all of its parts need."""

    b: Block
    """The loader's module."""
    library: Library
    """Where modules come from."""
    design: Design
    """The design whose NPUs it loads."""
    at: Mapping[str, Signal]
    """Registers: for each state, by name, 1 while the loader is in it."""
    given: Signal
    """A stream word is there. It is taken if the state takes words."""
    data: Signal
    """That word, ``Design.stream_bits`` wide."""

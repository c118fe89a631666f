"""The module of a sequencer under construction, as its parts share it."""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design.memories.memory import Memory
from bitloom.hls_gen.rtl.primitives.block import Block, Signal
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.text import Header

from .spec import SequencerSpec


@dataclass(frozen=True)
class Context:
    """A module under construction with its loadable memories."""

    b: Block
    """The module."""
    library: Library
    """Where modules inside it come from."""
    spec: SequencerSpec
    """The sequencer that it is part of."""
    bus: LoadBus
    """The module's ports by which its memories are loaded."""

    @classmethod
    def module(
        cls, library: Library, spec: SequencerSpec, name: str, memories: Sequence[Memory], header: Header
    ) -> "Context":
        """The module ``name`` of the sequencer ``spec``, with ports to load ``memories``."""
        b = Block(library.name(spec.module(name), spec.npu), header)
        return cls(b, library, spec, LoadBus.ports(b, library.stream_bits, memories))

    def memory(self, name: str, row: Signal, read: Signal | None = None) -> dict[str, Signal]:
        """Fields of row ``row`` of the memory ``name``: at once, or with ``read`` a cycle after it."""
        return self.library.loadable(self.b, self.spec.memory(name), self.bus, row, read=read)

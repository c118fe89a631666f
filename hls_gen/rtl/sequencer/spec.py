"""Which of an NPU's two sequencers a module is made for, and its memories."""

from dataclasses import dataclass

from bitloom.hls_gen.design.memories.memory import Memory
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu, NpuSequencer
from bitloom.hls_gen.design.sequencer_kind import SequencerKind
from bitloom.hls_gen.design.widths import bits_for


@dataclass(frozen=True)
class SequencerSpec:
    """One sequencer of an NPU, as its modules see it."""

    sequencer: NpuSequencer
    """An NPU's ``array_sequencer`` or ``pool_sequencer``. The array's alone runs through kernel groups, and has a
    choice of inlets."""

    @property
    def npu(self) -> Npu:
        """The NPU that the sequencer is part of."""
        return self.sequencer.npu

    @property
    def pool(self) -> bool:
        """Whether the sequencer is the one in front of the pool unit."""
        return self.sequencer.unit == "pool_unit"

    @property
    def kind(self) -> SequencerKind:
        """How it finds and claims taps."""
        return self.sequencer.kind

    def module(self, name: str) -> str:
        """Name of the sequencer's module ``name``, before it is numbered where NPUs differ."""
        return f"pool_{name}" if self.pool else f"array_{name}"

    @property
    def tables(self) -> list[Memory]:
        """The loadable memories of the tap source."""
        return [self.memory("layers"), *(self.memory(table.name) for table in self.kind.tables)]

    @property
    def memories(self) -> list[Memory]:
        """The loadable memories inside the sequencer."""
        return [*self.of_writer, *self.tables]

    @property
    def of_writer(self) -> list[Memory]:
        """The loadable memories of the writer."""
        return [self.memory("inputs"), *([self.memory("lines")] if self.sequencer.forms_lines else [])]

    def layer_bits(self, field: str) -> int:
        """Width of a field of the layer rows (layer_row.py), 0 where this sequencer's rows don't have it."""
        return self.memory("layers").widths.get(field, 0)

    def memory(self, name: str) -> Memory:
        """The sequencer's memory ``name``, which the pool's sequencer has under a name of its own."""
        return memory_of(self.npu, self.sequencer.prefix + name)

    @property
    def one_memory(self) -> bool:
        """Whether the words lie in the memory of the kernels, which is read by turns."""
        return self.npu.array.one_memory and not self.pool

    @property
    def ahead_bits(self) -> int:
        """Width of the words that a tap claims beside its own, 0 where none does."""
        table = self.memory("aheads").width if self.kind.claims_ahead else 0
        return max(self.layer_bits("gap_words"), table)

    @property
    def count_bits(self) -> int:
        """Width of a count of words, in two's complement: tuple_memory_words itself fits, and claims that go below 0.

        Where a layer keeps all tuples that it claims, claims are tuple_memory_words at most. Of a map with another
        reader any number of tuples may pass unread, up to the whole map.
        """
        shared = self.npu.keeps_steps if self.pool else self.npu.has_skip
        if not (shared or self.kind.claims_ahead):
            return self.sequencer.address_bits + 2
        return bits_for(self.sequencer.tuple_memory_words + self.npu.sequencer.input_words) + 1

"""Which of an NPU's two sequencers a module is made for, and the sizes that follow from it."""

from dataclasses import dataclass

from bitloom.hls_gen.design.memories.memory import Memory
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import bits_for


@dataclass(frozen=True)
class SequencerSpec:
    """One sequencer of an NPU.

    An NPU has a sequencer in front of its array and, if it has a pool unit, another one in front of that. Both turn
    a stream of words into windows; the array's also runs through kernel groups and kernel rows, and has a choice of
    inlets.

    Attributes
    ----------
    npu : Npu
        The NPU that the sequencer is part of.
    pool : bool
        The sequencer in front of the pool unit; else the one in front of the array.
    """

    npu: Npu
    pool: bool

    def module(self, name: str) -> str:
        """Name of the sequencer's module ``name``, before it is numbered where NPUs differ."""
        return f"pool_{name}" if self.pool else f"conv_{name}"

    @property
    def inlets(self) -> tuple[str, ...]:
        """Names of the streams of words that the sequencer takes from; the pool's has one."""
        return ("in",) if self.pool else self.npu.sources

    @property
    def kernel_rows(self) -> bool:
        """Whether taps have kernel rows: in front of the array, or of a pool unit with weights."""
        return not self.pool or self.npu.depthwise

    @property
    def tables(self) -> list[Memory]:
        """The loadable memories of the tap source."""
        optional = (
            *(["jumps"] if self.kernel_rows else []),
            *([] if self.pool or not self.npu.sequencer.aheads else ["aheads"]),
        )
        return [self.memory(name) for name in ("layers", "flags", "olds", *optional)]

    @property
    def memories(self) -> list[Memory]:
        """The loadable memories inside the sequencer."""
        return [self.memory("inputs"), *self.tables]

    def layer_bits(self, field: str) -> int:
        """Width of a field of the layer rows (layer_row.py), 0 where this sequencer's rows don't have it."""
        return self.memory("layers").widths.get(field, 0)

    def memory(self, name: str) -> Memory:
        """The sequencer's memory ``name``, which the pool's sequencer has under a name of its own."""
        return memory_of(self.npu, f"pool_{name}" if self.pool else name)

    @property
    def one_memory(self) -> bool:
        """Whether the words lie in the memory of the kernels, which is read by turns."""
        return self.npu.array.one_memory and not self.pool

    @property
    def word_bits(self) -> int:
        """Bits of a word: KFP or PFP features."""
        return self.npu.pool_word_bits if self.pool else self.npu.array.word_bits

    @property
    def ring_words(self) -> int:
        """Capacity of the tuple memory in words, a power of two, so that addresses wrap round by themselves."""
        return present(self.npu.pool_unit).words if self.pool else self.npu.sequencer.tuple_words

    @property
    def address_bits(self) -> int:
        """Width of a word's address in the tuple memory."""
        return bits_for(self.ring_words - 1)

    @property
    def index_bits(self) -> int:
        """Width of a word's number in its tuple."""
        return self.layer_bits("words_minus_1")

    @property
    def ahead_bits(self) -> int:
        """Width of the words that a tap claims beside its own, 0 where none does."""
        table = 0 if self.pool or not self.npu.sequencer.aheads else self.memory("aheads").width
        return max(self.layer_bits("gap_words"), table)

    @property
    def count_bits(self) -> int:
        """Width of a count of words, in two's complement: ring_words itself fits, and claims that go below 0.

        Where a layer keeps all tuples that it claims, claims are ring_words at most. Of a map with another reader
        any number of tuples may pass unread, up to the whole map.
        """
        alone = not (self.npu.has_skip or self.npu.sequencer.aheads)  # nobody else reads the maps
        if alone or (self.pool and not self.npu.keeps_steps):
            return self.address_bits + 2
        return bits_for(self.ring_words + self.npu.sequencer.input_words) + 1

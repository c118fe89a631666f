"""Which sequencer: that of the convolution or that of the pool. And the round of layers that every stage keeps."""

from dataclasses import dataclass

from bitloom.hls_gen.design.npu import Memory, Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, choose, eq


@dataclass(frozen=True)
class Kind:
    """Which of the two sequencers: the convolution's (kernel groups, kernel rows, two sources) or the pool's."""

    pool: bool

    @property
    def prefix(self) -> str:
        """Prefix of its memories' names."""
        return "pool_" if self.pool else ""

    def memories(self, npu: Npu) -> list[Memory]:
        """Its loadable memories."""
        names = ["inputs", "layers", "flags", "olds"] + ([] if self.pool else ["jumps"])
        return [npu.memory(self.prefix + name) for name in names]

    def width(self, npu: Npu) -> int:
        """Bits of a word."""
        return npu.pool_word_bits if self.pool else npu.word_bits

    def words(self, npu: Npu) -> int:
        """Capacity of the ring."""
        return npu.pool_words if self.pool else npu.tuple_words


def layer_counter(b: Block, name: str, last_layer: Signal, advance: Signal) -> Signal:
    """Number of the layer that comes after the present one; steps on ``advance``, round and round."""
    upcoming = b.reg(name, 8)
    b.on(advance, (upcoming, choose(eq(upcoming, last_layer), 0, add(upcoming, 1, 8), 8)))
    return upcoming

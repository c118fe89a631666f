"""Area of the ports: at the inlets ping-pong pair, binariser and a skid register, at the outlets gearboxes, and what
turns results into stream words."""

from collections.abc import Iterator

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.outlets import outlet_groups
from bitloom.hls_gen.design.widths import bits_for

from .area_block import AreaBlock, fifo, gear, skid
from .store import Store


def ports_blocks(npu: Npu, stream_bits: int, n: int) -> Iterator[AreaBlock]:
    """The ports of NPU ``n``, without the gearboxes at its outlets."""
    word = npu.array.map_bits
    others = len(npu.targets) - 1
    yield AreaBlock("npu", "npu", {"one": 1, "word": word * others, "outlets": others + 1}, n)
    if "ring" in npu.ports.inlets:
        place = bits_for(npu.ports.buffer_words - 1)
        yield AreaBlock("ping_pong", "ping_pong", {"one": 1, "place": place, "word": word}, n)
    if npu.ports.binariser:
        lanes = npu.array.kfp * npu.ports.binariser.bits
        yield AreaBlock("binariser", "binariser", {"one": 1, "lanes": lanes}, n)
    if "host" in npu.ports.inlets:
        whole = npu.ports.binariser or npu.former_sizes
        yield skid(npu.array.word_bits if whole else npu.host_word_bits, 0, n)
    if npu.ports.sends_results:
        acc = npu.array.acc_bits
        yield from gear(npu.results.ol * acc, acc, 0, n)
        yield skid(acc, 0, n)
        yield from gear(32, stream_bits, 0, n)
        yield fifo(word + 1, timing.MAP_HELD, n)
        yield from gear(word, stream_bits, 0, n)


def outlet_blocks(npu: Npu, ring_bits: int, n: int = 0) -> list[AreaBlock]:
    """The gearboxes at the outlets of an NPU, whose outlet "ring" has words of ``ring_bits``."""
    width = npu.outlet_lanes * npu.array.feature_bits
    out: list[AreaBlock] = []
    for group in outlet_groups(npu, ring_bits):
        out += gear(width, group.word_bits, sum(w for _, w in group.marks), n)
    return out


def ports_stores(npu: Npu) -> Iterator[Store]:
    """The buffers of the ping-pong pair, and the words of a last map in front of the output."""
    if "ring" in npu.ports.inlets:
        yield Store.of_fifo("buffers", npu.array.map_bits, 2 << bits_for(npu.ports.buffer_words - 1))
    if npu.ports.sends_results:
        yield Store("map_held", npu.array.map_bits + 1, timing.MAP_HELD, 0)

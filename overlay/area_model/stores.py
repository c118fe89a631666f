"""Area of the stores: the map store, and the skip store with the fork of maps in front of it."""

from collections.abc import Iterator

from bitloom.hls_gen.design.npu import Npu

from .area_block import AreaBlock, collector, fifo
from .store import Store


def stores_blocks(npu: Npu, n: int) -> Iterator[AreaBlock]:
    """The stores of NPU ``n``, as far as there are any, without their memories."""
    if npu.stores.skip:
        yield AreaBlock("map_fork", "map_fork" if npu.forks_maps else "signs", {"one": 1}, n)
        bits = _skip_bits(npu)
        yield fifo(bits, npu.stores.skip.words, n)
        yield collector(bits, 1, bits, 0, n)
    if "loop" in npu.ports.inlets:
        yield fifo(npu.array.map_bits, npu.stores.map_words, n)


def stores_stores(npu: Npu) -> Iterator[Store]:
    """The memories of the stores."""
    if "loop" in npu.ports.inlets:
        yield Store.of_fifo("map_store", npu.array.map_bits, npu.stores.map_words)
    if npu.stores.skip:
        yield Store.of_fifo("skip_store", _skip_bits(npu), npu.stores.skip.words)


def _skip_bits(npu: Npu) -> int:
    """Width of a row of the skip store: a word of a map has a mark who takes it."""
    return npu.skip_word_bits + npu.forks_maps

"""The blocks and memories of a design, gathered from the files of the parts."""

from collections.abc import Iterator

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu

from .area_block import AreaBlock
from .array import array_blocks, array_stores
from .loader import loader_blocks, loader_stores
from .pool_unit import pool_unit_blocks, pool_unit_stores
from .ports import outlet_blocks, ports_blocks, ports_stores
from .results import results_blocks
from .sequencer import sequencer_blocks, sequencer_stores
from .store import Store, loaded_stores
from .stores import stores_blocks, stores_stores
from .window_former import former_blocks, former_stores


def area_blocks(design: Design) -> list[AreaBlock]:
    """All blocks of a design."""
    out = [*loader_blocks(design)]
    for n, npu in enumerate(design.npus):
        out += npu_blocks(npu, design.next_word_bits(n), design.stream_bits, n)
    return out


def npu_blocks(npu: Npu, ring_bits: int, stream_bits: int, n: int = 0) -> list[AreaBlock]:
    """The blocks that come with an NPU.

    Parameters
    ----------
    npu
        The NPU.
    ring_bits
        Width of a word at its outlet "ring".
    stream_bits
        Width of the streams.
    n
        Its number.
    """
    return [*core_blocks(npu, stream_bits, n), *outlet_blocks(npu, ring_bits, n)]


def core_blocks(npu: Npu, stream_bits: int, n: int = 0) -> list[AreaBlock]:
    """The blocks of an NPU that don't depend on the NPU after it."""
    return [
        *array_blocks(npu, stream_bits, n),
        *former_blocks(npu, n),
        *sequencer_blocks(npu, n),
        *results_blocks(npu, n),
        *stores_blocks(npu, n),
        *pool_unit_blocks(npu, n),
        *ports_blocks(npu, stream_bits, n),
    ]


def stores(design: Design) -> Iterator[Store]:
    """All memories of a design."""
    for npu in design.npus:
        yield from npu_stores(npu, design.stream_bits)
    yield from loader_stores(design)


def npu_stores(npu: Npu, stream_bits: int) -> Iterator[Store]:
    """The memories of an NPU."""
    yield from loaded_stores(npu, stream_bits)
    yield from sequencer_stores(npu)
    yield from array_stores(npu)
    yield from pool_unit_stores(npu)
    yield from stores_stores(npu)
    yield from former_stores(npu)
    yield from ports_stores(npu)

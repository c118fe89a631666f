"""The blocks and memories of a design, gathered from the files of the parts."""

from collections.abc import Iterator

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu

from .area_part import AreaPart
from .array import array_parts, array_stores
from .loader import loader_parts, loader_stores
from .pool_unit import pool_unit_parts, pool_unit_stores
from .ports import outlet_parts, ports_parts, ports_stores
from .results import results_parts
from .sequencer import sequencer_parts, sequencer_stores
from .store import Store, loaded_stores
from .stores import stores_parts, stores_stores
from .window_former import former_parts, former_stores


def parts(design: Design) -> list[AreaPart]:
    """All blocks of a design."""
    out = [*loader_parts(design)]
    for n, npu in enumerate(design.npus):
        out += npu_parts(npu, design.next_word_bits(n), design.stream_bits, n)
    return out


def npu_parts(npu: Npu, ring_bits: int, stream_bits: int, n: int = 0) -> list[AreaPart]:
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
    return [*core_parts(npu, stream_bits, n), *outlet_parts(npu, ring_bits, n)]


def core_parts(npu: Npu, stream_bits: int, n: int = 0) -> list[AreaPart]:
    """The blocks of an NPU that don't depend on the NPU after it."""
    return [
        *array_parts(npu, stream_bits, n),
        *former_parts(npu, n),
        *sequencer_parts(npu, n),
        *results_parts(npu, n),
        *stores_parts(npu, n),
        *pool_unit_parts(npu, n),
        *ports_parts(npu, stream_bits, n),
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

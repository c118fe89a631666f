"""Lookup: a feature becomes the entry that its layer's table has for it.  Golden twin: golden/layers/lookup.py.

    feature -+-> row of memory ``lookups`` --> entry --+--> result
             `------> features of other layers --------'

A feature has the entry by whose number its low 8 bits are. The two registers move together with the stages of the
requantisation in front.
"""

from veriloggen import Cat

from bitloom.golden.layers.lookup import ENTRIES
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import LOOKUP
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, bits, choose, sign_extend
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.text import Header

INDEX_BITS = bits_for(ENTRIES - 1)
"""Bits of an entry's number."""


def lookup(library: Library, npu: Npu) -> Block:
    """The lookup of a lane: module ``lookup``."""
    header = Header(
        __doc__,
        rate="one feature a cycle in which move is 1",
        latency=f"{len(LOOKUP.stages)} such cycles from feature to result, 1 from looks_up",
        parameters={"value_bits": npu.value_bits},
    )
    b = Block(library.name("lookup", npu), header, reset=False)
    memory = memory_of(npu, "lookups")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    move = b.input("move", means="registers take what stands in front of them")
    feature = b.input("feature", npu.value_bits, means="a feature in two's complement")
    tables = memory.depth // ENTRIES
    table = b.input("table_number", bits_for(tables - 1), means="number of its layer's table") if tables > 1 else None
    looks_up = b.input("looks_up", means="a cycle later: its layer has a table")

    # # #

    index = bits(feature, 0, INDEX_BITS) if npu.value_bits >= INDEX_BITS else sign_extend(feature, INDEX_BITS)
    row = b.wire("row", bits_for(memory.depth - 1), index if table is None else Cat(table, index))
    entry = library.loadable(b, memory, bus, row, read=move)["entry"]
    same = b.reg("same", npu.value_bits, init=None)
    result = b.output_reg("result", npu.value_bits, init=None, means="the entry, or the feature itself")
    b.on(move, (same, feature), (result, choose(looks_up, entry, same, npu.value_bits)))
    return b

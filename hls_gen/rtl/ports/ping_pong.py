"""Ping-pong pair: the two buffers between neighbouring NPUs (spec D3 to D5).

    in[width] --> buffer 0 | buffer 1 --> out[width]

The producer writes one buffer while the consumer reads the other. A chunk ends after as many words as the arriving
map's row of memory ``chunks`` says, or with its map; then the producer goes to the other buffer, if that one is free,
else it waits. The consumer likewise goes on to the next chunk as soon as that is complete.
"""

from dataclasses import dataclass

from veriloggen import Cat

from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import LAYER_BITS, bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, any_of, choose, eq, resize, sub, width
from bitloom.hls_gen.rtl.primitives.fifo import registered_read
from bitloom.hls_gen.rtl.primitives.layer_counter import layer_counter
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header


@dataclass(frozen=True)
class _BufferSide:
    """One side of the pair in this cycle: the producer puts words, the consumer gets them."""

    moves: Signal
    """A word moves."""
    ends: Signal
    """It is the chunk's last one."""
    buffer: Signal
    """Register: number of the buffer that the side is at."""
    word: Signal
    """Register: place of the word in the buffer."""

    @classmethod
    def of(cls, b: Block, name: str, place: int, moves: Signal) -> "_BufferSide":
        """Registers ``<name>s_buffer`` and ``<name>_word``, which step with ``moves`` and a wire that says "ends"."""
        side = cls(moves, b.wire(f"{name}_end"), b.reg(f"{name}s_buffer"), b.reg(f"{name}_word", place))
        b.on(moves, (side.word, choose(side.ends, 0, add(side.word, 1, place), place)))
        b.on(side.ends, (side.buffer, ~side.buffer))
        return side


def ping_pong(library: Library, npu: Npu, word_bits: int) -> Block:
    """The pair of buffers in front of an NPU.

    Parameters
    ----------
    npu : Npu
        The consumer: its ``buffer_words`` is the size of a buffer.
    word_bits : int
        Bits of a word that the producer sends.

    Returns
    -------
    Block
        Module ``ping_pong``.
    """
    name = library.name("ping_pong", npu)
    header = Header(
        __doc__,
        rate="one word a cycle in and one out, inside a chunk",
        latency="2 cycles from a chunk's last word to its first word out",
        parameters={"word_bits": word_bits, "buffer_words": npu.ports.buffer_words},
    )
    b = Block(name if word_bits == npu.array.map_bits else f"{name}_of_{word_bits}", header)
    bus = LoadBus.ports(b, library.stream_bits, [memory_of(npu, "chunks")])
    last_layer = b.input("last_chunk", LAYER_BITS)
    source = Stream(
        valid=b.input("in_valid"),
        ready=b.output_reg("in_ready"),  # a register: long paths lead on from it
        data=b.input("in_data", word_bits),
        last=b.input("in_last"),
    )
    out = Stream(b.output_reg("out_valid"), b.input("out_ready"), b.output("out_data", word_bits))

    # # #

    b.comment("Filling: a buffer is full with its chunk's or its map's last word; then the other one is filled.")
    place = bits_for(npu.ports.buffer_words - 1)
    full = [b.reg(f"full_{k}") for k in (0, 1)]
    # place of the word before the last one, which means nothing where the chunk has one word
    befores = [b.reg(f"before_last_{k}", place, init=None) for k in (0, 1)]
    singles = [b.reg(f"single_{k}", init=None) for k in (0, 1)]  # the chunk has one word
    put = b.wire("put", 1, source.taken)
    writer = _BufferSide.of(b, "write", place, put)
    chunk_last_word = _chunk_size(b, library, npu, bus, last_layer, put & source.last)
    writer.ends.assign(put & any_of(source.last, eq(writer.word, chunk_last_word)))

    b.comment("Emptying: the full buffer, up to its last word; then the other one.")
    reads_buffer = b.wire("reads_full")
    get = b.wire("get", 1, reads_buffer & any_of(~out.valid, out.ready))
    reader = _BufferSide.of(b, "read", place, get)
    reads_buffer.assign(choose(reader.buffer, full[1], full[0], 1))
    read_before = b.wire("read_before", place, choose(reader.buffer, befores[1], befores[0], place))
    # whether the word at hand is the chunk's last is known ahead, since ``get`` comes late
    first = b.reg("read_first", init=1)
    later_last = b.reg("read_later_last", init=None)
    only = choose(reader.buffer, singles[1], singles[0], 1)
    at_last = b.wire("read_at_last", 1, choose(first, only, later_last, 1))
    b.on(get, (first, at_last), (later_last, eq(reader.word, read_before)))
    reader.ends.assign(get & at_last)
    before = b.wire("word_before", place, sub(writer.word, 1, place))
    fills = []
    for k in (0, 1):
        filled = b.wire(f"write_ends_{k}", 1, writer.ends & eq(writer.buffer, k))
        emptied = b.wire(f"read_ends_{k}", 1, reader.ends & eq(reader.buffer, k))
        fills.append(b.wire(f"full_{k}_next", 1, any_of(full[k], filled) & ~emptied))
        b.on(filled, (befores[k], before), (singles[k], eq(writer.word, 0)))
        b.on(None, (full[k], fills[k]))
    # 1 from the second cycle after reset on, when the first map's row is there
    b.on(None, (source.ready, ~choose(writer.buffer ^ writer.ends, fills[1], fills[0], 1)))
    b.on(out.ready, (out.valid, 0))
    b.on(get, (out.valid, 1))
    _buffers(b, library, (writer, reader), source.data, out.data)
    return b


def _chunk_size(b: Block, library: Library, npu: Npu, bus: LoadBus, last_layer: Signal, map_ends: Signal) -> Signal:
    """Register: the place of a chunk's last word, of the arriving map's row of memory ``chunks``."""
    memory = memory_of(npu, "chunks")
    loaded = b.reg("loaded")
    map_end = b.wire("map_end", 1, map_ends)
    begin = b.wire("begin_map", 1, any_of(~loaded, map_end))  # the first map after reset, or the one after this
    upcoming = layer_counter(b, "map_upcoming", last_layer, begin)
    row = library.loadable(b, memory, bus, resize(upcoming, bits_for(memory.depth - 1)))
    chunk_last_word = b.reg("chunk_last_word", bits_for(npu.ports.buffer_words - 1), init=None)
    b.on(begin, (loaded, 1), (chunk_last_word, row["words_minus_1"]))
    return chunk_last_word


def _buffers(
    b: Block, library: Library, sides: tuple[_BufferSide, _BufferSide], word_in: Signal, word_out: Signal
) -> None:
    """Both buffers in one memory, buffer 1 in its upper half; what is read goes into a register."""
    writer, reader = sides
    place = width(writer.word)
    ports = {
        "write": writer.moves,
        "write_row": b.wire("write_row", place + 1, Cat(writer.buffer, writer.word)),
        "write_data": word_in,
        "read_row": b.wire("read_row", place + 1, Cat(reader.buffer, reader.word)),
    }
    registered_read(b, library, "buffers", 2 << place, **ports, read=reader.moves, read_data=word_out)

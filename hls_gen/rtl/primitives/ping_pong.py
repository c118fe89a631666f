"""Ping-pong pair: the two buffers between neighbouring NPUs (spec D3 to D5).

    in[width] --> buffer 0 | buffer 1 --> out[width]

The producer writes one buffer while the consumer reads the other. A chunk ends after as many words as the arriving
map's row of memory ``chunks`` says, or with its map; then the producer goes to the other buffer, if that one is free,
else it waits. The consumer likewise goes on to the next chunk as soon as that is complete. One word a cycle each way
inside a chunk; ``out`` is a register. Latency: 2 cycles from a chunk's last word to the first word out.
"""

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for

from .block import Block, add, all_of, any_of, choose, eq, resize
from .layer_counter import layer_counter
from .memory import Library, LoadBus, ram


def ping_pong(library: Library, npu: Npu, word_bits: int) -> Block:
    """The pair in front of ``npu``, for words of ``word_bits``."""
    name = library.name("ping_pong", npu)
    b = Block(name if word_bits == npu.word_bits else f"{name}_of_{word_bits}")
    memory = npu.memory("chunks")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    last_chunk = b.input("last_chunk", 8)
    in_valid, in_ready, in_data = b.input("in_valid"), b.output("in_ready"), b.input("in_data", word_bits)
    in_last = b.input("in_last")
    out_valid, out_ready = b.output_reg("out_valid"), b.input("out_ready")
    out_data = b.output("out_data", word_bits)

    # # #

    place = bits_for(npu.buffer_words - 1)
    full, words = [b.reg(f"full_{k}") for k in (0, 1)], [b.reg(f"last_word_{k}", place, init=None) for k in (0, 1)]
    writes, reads = b.reg("writes_buffer"), b.reg("reads_buffer")
    write_word, read_word = b.reg("write_word", place), b.reg("read_word", place)

    # the chunk size of the map that arrives
    loaded, map_end = b.reg("loaded"), b.wire("map_end")
    begin = b.wire("begin_map", 1, any_of(~loaded, map_end))
    upcoming = layer_counter(b, "map_upcoming", last_chunk, begin)
    row = library.loadable(b, memory, bus, resize(upcoming, bits_for(memory.depth - 1)))
    chunk_last_word = b.reg("chunk_last_word", place, init=None)
    b.on(begin, (loaded, 1), (chunk_last_word, row["words_minus_1"]))

    in_ready.assign(all_of(loaded, ~choose(writes, full[1], full[0], 1)))
    put = b.wire("put", 1, in_valid & in_ready)
    map_end.assign(put & in_last)
    put_end = b.wire("put_end", 1, put & any_of(in_last, eq(write_word, chunk_last_word)))
    b.on(put, (write_word, choose(put_end, 0, add(write_word, 1, place), place)))
    b.on(put_end, (writes, ~writes))

    get = b.wire("get", 1, choose(reads, full[1], full[0], 1) & any_of(~out_valid, out_ready))
    get_end = b.wire("get_end", 1, get & eq(read_word, b.wire("read_last", place, choose(reads, *words[::-1], place))))
    b.on(get, (read_word, choose(get_end, 0, add(read_word, 1, place), place)))
    b.on(get_end, (reads, ~reads))
    for k in (0, 1):
        mine = b.wire(f"write_ends_{k}", 1, put_end & eq(writes, k))
        b.on(mine, (full[k], 1), (words[k], write_word))
        b.on(get_end & eq(reads, k), (full[k], 0))
    b.on(out_ready, (out_valid, 0))
    b.on(get, (out_valid, 1))

    # both buffers in one memory, buffer 1 in its upper half
    ports = {
        "write": put,
        "write_row": b.wire("write_row", place + 1, Cat(writes, write_word)),
        "write_data": in_data,
        "read_row": b.wire("read_row", place + 1, Cat(reads, read_word)),
    }
    depth = 2 << place
    if depth > timing.LUT_RAM_WORDS:
        b.instance(library.get(ram, word_bits, depth, latency=1), "buffers", **ports, read=get, read_data=out_data)
    else:
        word, held = b.wire("word", word_bits), b.reg("held", word_bits, init=None)
        b.instance(library.get(ram, word_bits, depth, latency=0), "buffers", **ports, read_data=word)
        b.on(get, (held, word))
        out_data.assign(held)
    return b

"""First-in first-out store of a ready/valid stream.

    in[width] --> depth words --> out[width]

One word a cycle each way; ``out`` is a register. Small ones are LUT RAM. From 65 words on it is block RAM, and
``in_ready`` a register, which may stop one word early. Latency 2 cycles.
``room``: at least ``margin`` words can be taken.
"""

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.widths import bits_for

from .block import Block, add, all_of, any_of, choose, const, eq, nonzero, sub
from .memory import Library, ram


def fifo(library: Library, width: int, depth: int, margin: int = timing.FIFO_MARGIN) -> Block:
    """FIFO of at least ``depth`` words (stored: depth, and one in the output register)."""
    b = Block(f"fifo_{width}x{depth}" + (f"_margin_{margin}" if margin != timing.FIFO_MARGIN else ""))
    block_ram = depth > timing.LUT_RAM_WORDS
    in_valid, in_data = b.input("in_valid"), b.input("in_data", width)
    in_ready = b.output_reg("in_ready", init=1) if block_ram else b.output("in_ready")
    out_valid, out_ready, out_data = b.output_reg("out_valid"), b.input("out_ready"), b.output("out_data", width)
    room = b.output_reg("room", init=1)

    # # #

    address, count_width = bits_for(depth - 1), bits_for(depth)
    level = b.reg("level", count_width)  # words in the memory, not counting the output register
    write_row, read_row = b.reg("write_row", address), b.reg("read_row", address)
    if block_ram:
        b.on(None, (in_ready, level < const(depth - 1, count_width)))  # a word may still come in this cycle
    else:
        in_ready.assign(~eq(level, depth))
    put = b.wire("put", 1, in_valid & in_ready)
    get = b.wire("get", 1, all_of(nonzero(level), any_of(~out_valid, out_ready)))
    step = lambda row: choose(eq(row, depth - 1), 0, add(row, 1, address), address)  # noqa: E731
    b.on(put, (write_row, step(write_row)))
    b.on(get, (read_row, step(read_row)))
    b.on(put & ~get, (level, add(level, 1, count_width)))
    b.on(~put & get, (level, sub(level, 1, count_width)))
    b.on(None, (room, level < const(timing.room_words(depth, margin), count_width)))
    b.on(out_ready, (out_valid, 0))
    b.on(get, (out_valid, 1))
    ports = {"write": put, "write_row": write_row, "write_data": in_data, "read_row": read_row}
    if block_ram:
        b.instance(library.get(ram, width, depth, latency=1), "store", **ports, read=get, read_data=out_data)
    else:
        word = b.wire("word", width)
        held = b.reg("held", width, init=None)
        b.instance(library.get(ram, width, depth, latency=0), "store", **ports, read_data=word)
        b.on(get, (held, word))
        out_data.assign(held)
    return b

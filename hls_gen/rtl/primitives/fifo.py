"""First-in first-out store of a ready/valid stream.

    in[WIDTH] --> memory[DEPTH] --> output register --> out[WIDTH]

A word that is taken at ``in`` leaves at ``out`` in its turn. Stores of up to 64 words are LUT RAM; larger ones are
block RAM, with a register behind ``in_ready``, which may stop the input one word early. ``room`` tells a pipeline
that cannot stop whether the words that are still on their way in it will be taken.
"""

from veriloggen import Mux

from bitloom.hls_gen.design import timing

from .block import Block, Signal, all_of, any_of
from .block import width as width_of
from .memory import Library, ram
from .parameters import clog2, row_width
from .text import Header


def fifo(library: Library, width: int, depth: int, margin: int = timing.FIFO_MARGIN) -> Block:
    """FIFO of ``depth`` words in memory and one more in the output register.

    Parameters
    ----------
    width : int
        Bits of a word.
    depth : int
        Words of the memory, at least 1.
    margin : int
        Words that can still be taken when ``room`` is 1; depth - 1 where that is less.

    Returns
    -------
    Block
        Module ``lut_fifo`` or ``block_fifo``, in this size.
    """
    module = library.get(_fifo, library, depth > timing.LUT_RAM_WORDS)
    return module.sized(WIDTH=width, DEPTH=depth, ROOM_BELOW=timing.room_words(depth, margin))


def _fifo(library: Library, block_ram: bool) -> Block:
    """The module, whose memory is block RAM or LUT RAM."""
    b = Block(
        "block_fifo" if block_ram else "lut_fifo",
        Header(_contract(block_ram), rate="one word a cycle in, and one out", latency="2 cycles from in to out"),
    )
    width = b.parameter("WIDTH", 8, "bits of a word")
    depth = b.parameter("DEPTH", 16, "words of the memory; one more waits in the output register")
    room_below = b.parameter("ROOM_BELOW", 11, "words in the memory from which on room falls")
    in_valid = b.input("in_valid")
    in_data = b.input("in_data", width)
    in_ready = b.output_reg("in_ready", init=1)
    out_valid = b.output_reg("out_valid")
    out_ready = b.input("out_ready")
    out_data = b.output("out_data", width) if block_ram else b.output_reg("out_data", width, init=None)
    more = "DEPTH - ROOM_BELOW - 1" if block_ram else "DEPTH - ROOM_BELOW"
    room = b.output_reg("room", init=1, means=f"at least {more} more words will be taken")

    # # #

    address = b.localparam("ROW_WIDTH", row_width(depth))
    count_width = b.localparam("LEVEL_WIDTH", clog2(depth + 1))
    fullest = b.localparam("DEPTH_MINUS_1", depth - 1, count_width)
    last_row = b.localparam("LAST_ROW", fullest[0:address], address)
    level = b.reg("level", count_width)  # words in the memory, not counting the output register
    some = b.reg("some")  # there are some: a register, since what follows from out_ready comes late
    write_row = b.reg("write_row", address)
    read_row = b.reg("read_row", address)
    if block_ram:  # a register cuts the path from level to the source; one word may still come in this cycle
        b.on(None, (in_ready, level < fullest))
    put = b.wire("put", 1, in_valid & in_ready)
    get = b.wire("get", 1, all_of(some, any_of(~out_valid, out_ready)))
    b.on(put, (write_row, Mux(write_row == last_row, 0, write_row + 1)))
    b.on(get, (read_row, Mux(read_row == last_row, 0, read_row + 1)))
    # both next levels are there before ``get``, which comes late and chooses
    b.on(None, (level, Mux(get, Mux(put, level, level - 1), Mux(put, level + 1, level))))
    # not set and cleared by a condition: reset would stand behind it, and ``get`` comes late
    b.on(None, (some, any_of(put, some & ~(get & (level == 1)))))
    if not block_ram:
        b.on(None, (in_ready, any_of(get, in_ready & ~(in_valid & (level == fullest)))))
    b.on(None, (room, level < room_below))
    b.on(None, (out_valid, any_of(some, out_valid & ~out_ready)))
    ports = {"write": put, "write_row": write_row, "write_data": in_data, "read_row": read_row}
    store = ram(library, width, depth, latency=int(block_ram))
    if block_ram:  # whose read data is a register
        b.instance(store, "store", **ports, read=get, read_data=out_data)
    else:
        word = b.wire("word", width)
        b.instance(store, "store", **ports, read_data=word)
        b.on(get, (out_data, word))
    return b


def _contract(block_ram: bool) -> str:
    """Text of the header."""
    early = "\nin_ready is a register, which may stop the input one word early." * block_ram
    return f"""First-in first-out store of a ready/valid stream.

    in --> DEPTH words of {"block" if block_ram else "LUT"} RAM --> output register --> out

A word that is taken at in leaves at out in its turn. room tells a pipeline that cannot stop whether the words that
are still on their way in it will be taken.{early}
"""


def registered_read(b: Block, library: Library, name: str, depth: int, **ports: Signal) -> None:
    """A memory whose read data is a register, be it LUT RAM or block RAM.

    Parameters
    ----------
    name : str
        Name of the instance.
    depth : int
        Rows; up to ``timing.LUT_RAM_WORDS`` are LUT RAM.
    **ports : Signal
        Ports of `ram` with latency 1; ``read_data`` is a wire or an output, which is assigned.
    """
    w = width_of(ports["read_data"])
    if depth > timing.LUT_RAM_WORDS:  # block RAM has the register inside
        b.instance(ram(library, w, depth, latency=1), name, **ports)
        return
    data = ports.pop("read_data")
    read = ports.pop("read")
    word = b.wire("word", w)
    held = b.reg("held", w, init=None)
    b.instance(ram(library, w, depth, latency=0), name, **ports, read_data=word)
    b.on(read, (held, word))
    data.assign(held)

"""First-in first-out store of a ready/valid stream.

    in[width] --> memory[depth] --> output register --> out[width]

A word that is taken at ``in`` leaves at ``out`` in its turn. Stores of up to 64 words are LUT RAM; larger ones are
block RAM, with a register behind ``in_ready``, which may stop the input one word early. ``room`` tells a pipeline
that cannot stop whether the words that are still on their way in it will be taken.
"""

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.widths import bits_for

from .block import Block, Signal, add, all_of, any_of, choose, eq, nonzero, sub
from .block import width as width_of
from .memory import Library, ram
from .text import Header


def fifo(library: Library, width: int, depth: int, margin: int = timing.FIFO_MARGIN) -> Block:
    """FIFO of ``depth`` words in memory and one more in the output register.

    Parameters
    ----------
    library : Library
        Where its memory comes from.
    width : int
        Bits of a word.
    depth : int
        Words of the memory, at least 1.
    margin : int
        Words that can still be taken when ``room`` is 1; depth - 1 where that is less.

    Returns
    -------
    Block
        Module ``fifo_<width>x<depth>``.
    """
    block_ram = depth > timing.LUT_RAM_WORDS
    b = Block(
        f"fifo_{width}x{depth}" + (f"_margin_{margin}" if margin != timing.FIFO_MARGIN else ""),
        Header(
            _contract(depth, block_ram),
            rate="one word a cycle in, and one out",
            latency="2 cycles from in to out",
            parameters={"width": width, "depth": depth, "margin": margin},
        ),
    )
    in_valid = b.input("in_valid")
    in_data = b.input("in_data", width)
    in_ready = b.output_reg("in_ready", init=1)
    out_valid = b.output_reg("out_valid")
    out_ready = b.input("out_ready")
    out_data = b.output("out_data", width)
    room = b.output_reg("room", init=1, means=f"at least {min(margin, depth - 1)} more words will be taken")

    # # #

    address, count_width = bits_for(depth - 1), bits_for(depth)
    level = b.reg("level", count_width)  # words in the memory, not counting the output register
    write_row = b.reg("write_row", address)
    read_row = b.reg("read_row", address)
    fullest = b.localparam("DEPTH_MINUS_1", depth - 1, count_width)
    if block_ram:  # a register cuts the path from level to the source; one word may still come in this cycle
        b.on(None, (in_ready, level < fullest))
    put = b.wire("put", 1, in_valid & in_ready)
    get = b.wire("get", 1, all_of(nonzero(level), any_of(~out_valid, out_ready)))
    last_row = b.localparam("LAST_ROW", depth - 1, address)

    def following(row: Signal) -> Signal:
        return choose(eq(row, last_row), 0, add(row, 1, address), address)

    b.on(put, (write_row, following(write_row)))
    b.on(get, (read_row, following(read_row)))
    filled, emptied = ([], []) if block_ram else ([(in_ready, ~eq(level, fullest))], [(in_ready, 1)])
    b.on(put & ~get, (level, add(level, 1, count_width)), *filled)
    b.on(~put & get, (level, sub(level, 1, count_width)), *emptied)
    b.on(None, (room, level < b.localparam("ROOM_BELOW", timing.room_words(depth, margin), count_width)))
    b.on(out_ready, (out_valid, 0))
    b.on(get, (out_valid, 1))
    ports = {"write": put, "write_row": write_row, "write_data": in_data, "read": get, "read_row": read_row}
    registered_read(b, library, "store", depth, **ports, read_data=out_data)
    return b


def _contract(depth: int, block_ram: bool) -> str:
    """What the header says of a store of ``depth`` words."""
    early = "\nin_ready is a register, which may stop the input one word early." * block_ram
    return f"""First-in first-out store of a ready/valid stream.

    in --> {depth} words of {"block" if block_ram else "LUT"} RAM --> output register --> out

A word that is taken at in leaves at out in its turn. room tells a pipeline that cannot stop whether the words that
are still on their way in it will be taken.{early}
"""


def registered_read(b: Block, library: Library, name: str, depth: int, **ports: Signal) -> None:
    """A memory whose read data is a register, be it LUT RAM or block RAM.

    Parameters
    ----------
    b : Block
        Module that the memory becomes part of.
    library : Library
        Where the memory comes from.
    name : str
        Name of the instance.
    depth : int
        Rows; up to ``timing.LUT_RAM_WORDS`` are LUT RAM.
    **ports : Signal
        Ports of `ram` with latency 1; ``read_data`` is a wire or an output, which is assigned.
    """
    w = width_of(ports["read_data"])
    if depth > timing.LUT_RAM_WORDS:  # block RAM has the register inside
        b.instance(library.get(ram, w, depth, latency=1), name, **ports)
        return
    data = ports.pop("read_data")
    read = ports.pop("read")
    word = b.wire("word", w)
    held = b.reg("held", w, init=None)
    b.instance(library.get(ram, w, depth, latency=0), name, **ports, read_data=word)
    b.on(read, (held, word))
    data.assign(held)

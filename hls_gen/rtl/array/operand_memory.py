"""Operand memory: kernels and features in one RAM, for NPUs with ``one_memory`` (spec A7, A10).

    load bus, rows of weights --+--> RAM --+--> row of weights --> PEs
    writer, words of features --'   ^      `--> register: the word that is used ---> PEs
                                    `-- one read a cycle: a word, or a beat's row of weights

Words of features lie in the first rows, in their low bits. A word is read once, in a cycle without a beat, and kept for
all beats that use it; it must have been read when its first beat comes. Weights are loaded while nothing is computed,
so the write port never has two to serve.
"""

from bitloom.hls_gen.design.memories.memory_map import kernel_store, operand_bits
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    any_of,
    bits,
    choose,
    eq,
    resize,
    side_by_side,
    width,
)
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus, ram
from bitloom.hls_gen.rtl.primitives.text import Header

PORTS = ("word_write", "word_row", "word_data", "fetch", "fetch_row")
"""Ports by which words of features are written and read, from the sequencer to the array."""


def word_ports(npu: Npu) -> dict[str, tuple[int, str]]:
    """Width and meaning of each of PORTS.

    Parameters
    ----------
    npu : Npu
        An NPU with ``one_memory``.
    """
    row = bits_for(npu.sequencer.tuple_words - 1)
    means = ("a word of features is written", "its row", "the word", "a word is read for beats to come", "its row")
    return dict(zip(PORTS, zip((1, row, npu.array.word_bits, 1, row), means)))


def operand_memory(library: Library, npu: Npu) -> Block:
    """The memory of kernels and features of an NPU with ``one_memory``.

    Module ``operand_memory``: the load bus ``load_*``, PORTS, ``beat`` with ``kernel_row``; outputs ``row_data``
    (weights and code, a cycle after the beat) and ``features`` (the word at work).
    """
    memory = kernel_store(npu)
    sizes = {
        "row_bits": operand_bits(npu),
        "rows": memory.depth,
        "word_bits": npu.array.word_bits,
        "words": npu.sequencer.tuple_words,
    }
    latency = "1 cycle from a beat to its row of weights, 2 from a fetch to its word"
    header = Header(__doc__, rate="one read a cycle", latency=latency, parameters=sizes)
    b = Block(library.name("operand_memory", npu), header, reset=False)
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    word = {name: b.input(name, w, means=means) for name, (w, means) in word_ports(npu).items()}
    beat = b.input("beat", means="a row of weights is read; never together with fetch")
    row = b.input("kernel_row", npu.array.row_bits, means="which one")
    data = b.output("row_data", memory.width, means="row of the beat a cycle ago")
    features = b.output_reg(
        "features", npu.array.word_bits, init=None, means="word of the beats, until another was fetched"
    )

    # # #

    b.comment("The RAM, a bank for each stream word of a row; words of features go into the first banks.")
    from_row = choose(word["fetch"], resize(word["fetch_row"], npu.array.row_bits), row, npu.array.row_bits)
    read_row = b.wire("read_row", npu.array.row_bits, from_row)
    read = b.wire("read", 1, any_of(word["fetch"], beat))
    to_row = choose(word["word_write"], resize(word["word_row"], npu.array.row_bits), bus.row, npu.array.row_bits)
    to_row = b.wire("write_row", npu.array.row_bits, to_row)
    parts = []
    for i, w in enumerate(library.banks(operand_bits(npu))):
        out = b.wire(f"bank_{i}", w)
        block = ram(library, w, memory.depth, latency=1, style=npu.array.kernel_ram)
        write, content = _written(b, (i, i * library.stream_bits, w), bus, word)
        ports = {"write": write, "write_row": to_row, "write_data": content}
        b.instance(block, f"bank_{i}_ram", **ports, read=read, read_row=read_row, read_data=out)
        parts.append(out)
    whole = b.wire("whole_row", operand_bits(npu), side_by_side(parts))
    data.assign(bits(whole, 0, memory.width))
    b.comment("The word that was fetched, kept for its beats.")
    fetched = b.reg("fetched", init=None)
    b.on(None, (fetched, word["fetch"]))
    b.on(fetched, (features, bits(whole, 0, npu.array.word_bits)))
    return b


def _written(b: Block, bank: tuple[int, int, int], bus: LoadBus, word: dict[str, Signal]) -> tuple[Signal, Signal]:
    """Whether a bank, (number, first bit of the row, width), is written in this cycle, and what with."""
    number, low, w = bank
    loads = bus.writes["kernels"]
    hit = loads if bus.bank is None else b.wire(f"loads_{number}", 1, loads & eq(bus.bank, number))
    loaded = resize(bits(bus.data, 0, min(w, width(bus.data))), w)
    part = min(w, width(word["word_data"]) - low)  # bits of a word of features in this bank
    if part <= 0:
        return hit, loaded
    chosen = choose(word["word_write"], resize(bits(word["word_data"], low, part), w), loaded, w)
    return any_of(hit, word["word_write"]), chosen

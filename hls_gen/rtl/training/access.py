"""The data access unit: words between the streams and the caches (C21, C24).

    data --> neuron cache, or the array (LOAD)
    neuron cache, or the array (STORE) --> FIFO --> results

Words for the slaves' caches pass through the array, which knows where they belong; this unit marks the last one.
"""

from veriloggen import Cat

from bitloom.golden.discrete.machine.parameters import ADDRESS_BITS, MachineParameters
from bitloom.hls_gen.design import training as facts
from bitloom.hls_gen.design.training import STREAM_BITS
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, all_of, any_of, bits, choose, const, eq, sub, width
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.fifo import fifo
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .arithmetic import leave
from .word import magnitude_of, sign_of, word_of

FIFO_WORDS = 16
"""Words of the output FIFO beside those that are on their way when it has no room."""


def access(library: Library, machine: MachineParameters) -> Block:
    """The module ``access``.

    Streams ``data`` in and ``results`` out, 32 bits.
    """
    form = machine.form
    x_bits = bits_for(machine.neuron_words - 1)
    header = Header(
        __doc__,
        rate="a word a cycle",
        latency="1 cycle from a row of the neuron cache to the FIFO",
        parameters={"word_bits": form.bits, "fifo_words": FIFO_WORDS + facts.output_margin(machine)},
    )
    b = Block("access", header)
    start = b.input("start", means="an instruction begins")
    kinds = {
        name: b.input(name, means=text)
        for name, text in {
            "store": "it gives words; 0: it takes words",
            "on_slaves": "they are those of the slaves' caches",
            "mark_last": "its last word ends the transfer",
        }.items()
    }
    address = b.input("address", ADDRESS_BITS, means="first row of the neuron cache")
    rows = b.input("rows", ADDRESS_BITS, means="words")
    done = b.output_reg("done", means="pulse: all words have passed; not for those of the slaves")
    valid = b.input("data_valid")
    data = b.input("data_data", STREAM_BITS)
    ready = b.output("data_ready")

    # # #

    cell = _canonical(b, machine, data)
    loading = b.reg("loading")
    storing = b.reg("storing")
    marks = b.reg("marks")
    row = b.reg("row", ADDRESS_BITS, init=None)
    left = b.reg("left", ADDRESS_BITS, init=None)
    begins = b.wire("own", 1, all_of(start, ~kinds["on_slaves"]))
    taken = b.input("write_ready", means="the neuron cache takes a word")
    b.output("write", 1, all_of(loading, valid), means="a word for the neuron cache")
    b.output("write_row", x_bits, bits(row, 0, x_bits), means="its row")
    b.output("write_data", form.bits, cell, means="the word")
    to_array = _to_array(b, valid, cell)
    ready.assign(any_of(all_of(loading, taken), to_array))
    b.output("wanted", 1, any_of(loading, to_array), means="a word is wanted")
    room = b.wire("room")
    read_row = b.output("read_row", x_bits, means="row of the neuron cache, read in this cycle")
    read_row.assign(bits(row, 0, x_bits))
    stored = b.input("read_data", form.bits, means="what it holds, a cycle later")
    gives = b.wire("gives_word", 1, all_of(storing, room))
    moves = b.wire("moves", 1, any_of(all_of(loading, valid, taken), gives))
    last = b.wire("last", 1, eq(left, 1))
    b.on(moves, (row, add(row, 1, ADDRESS_BITS)), (left, sub(left, 1, ADDRESS_BITS)))
    b.on(moves & last, (loading, 0), (storing, 0))
    b.on(begins, (loading, ~kinds["store"]), (storing, kinds["store"]), (row, address), (left, rows))
    b.on(start, (marks, kinds["mark_last"]))
    b.on(None, (done, all_of(moves, last)))
    given = delayed(b, gives, "given", 1, init=0)[-1]
    ends = delayed(b, last & marks, "ends", 1)[-1]
    _out(b, library, machine, (room, given, ends, stored, marks))
    return b


def _to_array(b: Block, valid: Signal, cell: Signal) -> Signal:
    """Ports by which words go to the array; the result is the input by which it takes one."""
    b.output("load_valid", 1, valid, means="there is a word for the array")
    b.output("load_data", width(cell), cell, means="the word for the array")
    return b.input("load_ready", means="the array takes a word")


def _canonical(b: Block, machine: MachineParameters, data: Signal) -> Signal:
    """Wire: what a cache holds of a stream word."""
    b.comment("Words from outside: minus zero becomes zero.")
    form = machine.form
    raw = b.wire("raw", form.bits, bits(data, 0, form.bits))
    if form.bits < STREAM_BITS:
        leave(b, "data", bits(data, form.bits, STREAM_BITS - form.bits))
    return word_of(b, "canonical", sign_of(raw), b.wire("size", form.bits - 1, magnitude_of(raw)))


def _out(b: Block, library: Library, machine: MachineParameters, parts: tuple[Signal, ...]) -> None:
    """The FIFO of words to outside."""
    room, given, ends, stored, marks = parts
    w = machine.form.bits
    margin = facts.output_margin(machine)
    from_array = b.input("store_valid", means="the array has a word, which must be taken")
    word = b.input("store_data", w, means="the word of the array")
    final = b.input("store_last", means="it is the array's last one")
    b.output("store_room", 1, room, means="words of the array will be taken")
    chosen = choose(from_array, Cat(all_of(final, marks), word), Cat(ends, stored), w + 1)
    out = b.wire("out_word", w + 1)
    valid = b.output("results_valid")
    ready = b.input("results_ready")
    b.instance(
        fifo(library, w + 1, FIFO_WORDS + margin, margin),
        "words",
        in_valid=any_of(from_array, given),
        in_ready=b.wire("words_ready_unused"),
        in_data=b.wire("in_word", w + 1, chosen),
        out_valid=valid,
        out_ready=ready,
        out_data=out,
        room=room,
    )
    data = bits(out, 0, w)
    b.output("results_data", STREAM_BITS, Cat(const(0, STREAM_BITS - w), data) if w < STREAM_BITS else data)
    b.output("results_last", 1, bits(out, w, 1))

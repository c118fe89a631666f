"""Sequencer of an array, or of a pool unit: which word meets which weights in each cycle (spec B9, B10, B13).

The module's text, `_contract`, says what the sequencer does. Parts: writer.py, tap_source.py and issuer.py, each a
module of its own. Golden twin: hls_gen/compiler/schedule.
"""

from collections.abc import Sequence

from bitloom.hls_gen.design.ports import INLET_BITS
from bitloom.hls_gen.design.widths import LAYER_BITS
from bitloom.hls_gen.rtl.array.operand_memory import word_ports
from bitloom.hls_gen.rtl.primitives.block import Block, Signal
from bitloom.hls_gen.rtl.primitives.memory import Library, ram
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.primitives.text import Header

from .beat import Beat, WaitPulses
from .context import Context
from .issuer import issuer
from .spec import SequencerSpec
from .tap import Tap
from .tap_source import tap_source
from .weights import WeightsBegun
from .writer import Written, inlet_means, writer

__all__ = ["SequencerSpec", "sequencer"]


def sequencer(library: Library, spec: SequencerSpec) -> Block:
    """The module of one sequencer.

    Module ``array_sequencer`` or ``pool_sequencer``. It takes words by a stream for each inlet (``host_*``, ...; in the
    pool's ``in_*``) and is told by ``room`` whether the unit behind it has room for another result. It gives beats
    (beat.Beat), and ``word`` a cycle after each. Registers see ``layer`` (the layer that begins next), ``inlet`` (the
    one that is read) and what beat.WaitPulses says.
    """
    word_later = ", 1 cycle from a beat to its word at the output" * (not spec.one_memory)
    header = Header(
        _contract(spec),
        rate="one beat a cycle",
        latency="1 cycle from a word to its beat" + word_later,
        parameters={"word_bits": spec.sequencer.word_bits, "words": spec.sequencer.tuple_memory_words},
    )
    context = Context.module(library, spec, "sequencer", spec.memories, header)
    b = context.b
    bus = context.bus
    last_layer = b.input("last_layer", LAYER_BITS, means="number of the network's last layer")
    room = b.input("room", means="the unit behind the beats has room for another result")
    inlets = {
        f"{name}_{part}": signal
        for name in spec.sequencer.inlets
        for part, signal in Stream.input(b, name, spec.sequencer.inlet_bits(name)).parts()
    }
    beat = Beat.output(b, spec)
    waits = WaitPulses.output(b, spec)
    weights = WeightsBegun.output(b, spec)
    word = None if spec.one_memory else b.output("word", spec.sequencer.word_bits, means="word of the beat a cycle ago")
    layer = b.output("layer", LAYER_BITS, means="number of the layer that begins next")
    inlet = {} if spec.pool else {"inlet": b.output("inlet", INLET_BITS, means=inlet_means(spec.npu))}

    # # #

    b.comment("Words come by the writer; taps by the tap source, which the issuer turns into beats.")
    written = Written.wires(b, spec)
    tap = Tap.wires(b, spec)
    read_row = b.wire("read_row", spec.sequencer.address_bits)
    block = library.get(writer, library, spec)
    b.instance(block, "writer", last_layer=last_layer, **bus.to(block), **inlets, **inlet, **written.ports())
    block = library.get(tap_source, library, spec)
    ports = {**tap.ports(), **weights.ports()}
    b.instance(block, "tap_source", last_layer=last_layer, layer=layer, **bus.to(block), **ports)
    b.instance(
        library.get(issuer, library, spec),
        "issuer",
        write=written.write,
        has_free=written.has_free,
        read_row=read_row,
        room=room,
        **tap.ports(),
        **beat.ports(),
        **waits.ports(),
    )
    if word is None:
        _one_memory(b, spec, (written.write, written.write_row, written.write_word, waits.wait_memory, read_row))
    else:
        _tuple_memory(context, written, beat, read_row, word)
    return b


def _contract(spec: SequencerSpec) -> str:
    """The module's text."""
    title, row = "Sequencer: tuple memory{} (spec B9, B10)", "kernel row"
    if spec.pool:
        title, row = "Sequencer of the pool unit: tuple memory{} (spec B13)", "index"
    tables, parts = "tables", " and tables"
    if spec.kind.counters:
        tables, parts = "tables and counters", ", tables and counters"
    ring = "tuple memory (ring) --------> word, a cycle after its beat"
    if spec.one_memory:
        ring = "ring, in the memory of the kernels"
    return f"""{title.format(parts)}.  Golden twin: hls_gen/compiler/schedule.

    words --> writer --write--> {ring}
                 ^ has_free        ^ read_row
                 +------------ issuer --> beat (first, last, {row}, ...)
                                 ^ one tap a cycle
    layer rows, {tables} --> tap source

{_loops(spec)} One beat a cycle; the next window, layer or frame
starts in the cycle after the last beat of this one, if its words are there and there is room.

The ring holds words of several layers at once: a layer's tuples follow those of the layer before, so that words for
the next layer come in while this one is computed. Addresses by {tables} count from the first word of the layer.

Parts: hls_gen/rtl/sequencer/writer.py, tap_source.py and issuer.py, each a module of its own.
"""


def _loops(spec: SequencerSpec) -> str:
    """The order of beats, from the outer loop to the inner one."""
    if spec.pool:
        return "For each window, each valid tap, each word of its tuple."
    if spec.npu.array.accumulators == 1:
        dataflow = "Dataflow output_stationary"
        return f"{dataflow} (B9): for each window, each kernel group, each valid tap, each word of its tuple."
    return (
        "For each window, each pass over it, each valid tap, each word of its tuple, each kernel group of the pass. A "
        f"layer's row says how many kernel groups a pass has, {spec.npu.array.accumulators} at most: one in dataflow "
        "output_stationary (B9), all in input_stationary (A10), up to N in input_stationary:N."
    )


def _one_memory(b: Block, spec: SequencerSpec, moves: Sequence[Signal | None]) -> None:
    """Ports to the array, which has the ring of words; ``moves`` are their signals, in the order of word_ports."""
    b.comment("The ring of words lies in the one memory, which is the array's.")
    for (name, (w, means)), signal in zip(word_ports(spec.npu).items(), moves):
        b.output(name, w, signal, means=means)


def _tuple_memory(context: Context, written: Written, beat: Beat, read_row: Signal, word: Signal) -> None:
    """The ring of words: written as they come, read with each beat."""
    spec = context.spec
    context.b.comment("The ring of words.")
    context.b.instance(
        ram(context.library, spec.sequencer.word_bits, spec.sequencer.tuple_memory_words, latency=1),
        "tuple_memory",
        write=written.write,
        write_row=written.write_row,
        write_data=written.write_word,
        read=beat.beat,
        read_row=read_row,
        read_data=word,
    )

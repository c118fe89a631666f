"""Pool of an NPU: from features to pooled words (part of hls_gen/rtl/shell/npu.py).

    features[OL] --> gearbox --> sequencer --beats--> pool unit --> words[PFP]
                                     ^---- room in its FIFO ---'

The pool unit never stalls: a beat that gives a word is issued only where its FIFO has a place for that.

Of a pool unit with weights, sums leave the FIFO, and what follows makes features of them:

    sums[PFP] --> gearbox --> sums[OL] --> pool results --> features[OL]

Such a pool unit has a way past it, for maps without a pool.
"""

from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.rtl.pool_unit.pass_by import pass_by
from bitloom.hls_gen.rtl.pool_unit.pool_results import pool_results
from bitloom.hls_gen.rtl.pool_unit.pool_unit import pool_unit
from bitloom.hls_gen.rtl.primitives.block import Signal, bits
from bitloom.hls_gen.rtl.primitives.chain import chain
from bitloom.hls_gen.rtl.primitives.gearbox import divider, gearbox
from bitloom.hls_gen.rtl.primitives.stream import Stream
from bitloom.hls_gen.rtl.sequencer.beat import Beat
from bitloom.hls_gen.rtl.sequencer.sequencer import SequencerSpec, sequencer

from .context import NpuContext


def pooling(c: NpuContext, features: Stream) -> tuple[Stream, Signal]:
    """The pool's sequencer and unit, behind a gearbox.

    Parameters
    ----------
    c : NpuContext
        The NPU, which has a pool unit.
    features : Stream
        OL features a word, ``last`` at the end of each tuple.

    Returns
    -------
    Stream
        Words of PFP features, of OL from a pool unit with weights, ``last`` at the end of each tuple; side: last of its
        map, and where the map goes.
    Signal
        Number of the layer after the one being pooled, 8 bits.
    """
    c.b.comment("Pool: from features to pooled words.")
    npu = c.npu
    if npu.passes_by:
        return _with_pass_by(c, features)
    return _pooled(c, features)


def _with_pass_by(c: NpuContext, features: Stream) -> tuple[Stream, Signal]:
    """As of `pooling`, where maps without a pool pass the pool unit by."""
    npu = c.npu
    w = npu.results.ol * npu.array.feature_bits
    to_pool = Stream.wires(c.b, "to_pool_unit", w, last=True)
    pooled, layer = _pooled(c, to_pool)
    block = c.library.get(pass_by, c.library, npu)
    ports = c.place(block, "pass_by", **features.ports("in"), **to_pool.ports("to_pool"), **pooled.ports("pooled"))
    return Stream.of(ports, "out"), layer


def _pooled(c: NpuContext, features: Stream) -> tuple[Stream, Signal]:
    """As of `pooling`, of maps that all enter the pool unit."""
    npu = c.npu
    room = c.b.wire("pool_room")
    # the pool's sequencer counts words and needs no ``last``
    packed = gearbox(c.b, c.library, "to_pool", features, npu.pool_word_bits, unused=("last",))
    words = packed.replace(last=None)
    beats = c.place(
        c.library.get(sequencer, c.library, SequencerSpec(present(npu.pool_sequencer))),
        "pool_sequencer",
        last_layer=c.settings["last_pool_layer"],
        room=room,
        **words.ports("in"),
    )
    unit = c.library.get(pool_unit, c.library, npu)
    pooled = c.place(unit, "pool_unit", word=beats["word"], **Beat.of(beats).ports())
    room.assign(pooled["room"])
    out = Stream.of(pooled, "out")
    # the unit's FIFO keeps the flags above the values: last of the tuple, then what are side bits here
    w = npu.pool_values_bits
    flags = {"last": bits(out.data, w, 1), "side": bits(out.data, w + 1, npu.pool_out_bits - w - 1)}
    values = out.replace(data=bits(out.data, 0, w), **flags)
    return _features(c, values) if npu.depthwise else values, beats["layer"]


def _features(c: NpuContext, sums: Stream) -> Stream:
    """Features of what leaves a pool unit with weights, OL at a time; ``last`` and side as of other pools."""
    npu = c.npu
    cut = _steps(c, sums)
    ports = c.place(
        c.library.get(pool_results, c.library, npu),
        "pool_results",
        last_layer=c.settings["last_pool_layer"],
        **cut.ports("in"),
    )
    return Stream.of(ports, "features")


def _steps(c: NpuContext, sums: Stream) -> Stream:
    """The words of a pool unit with weights as steps of OL sums; a tuple's last word ends with step ``last_piece``."""
    npu = c.npu
    w = npu.results.ol * npu.array.acc_bits
    number_bits = npu.pool_last_piece_bits
    side_bits = sums.side_bits - number_bits
    if not number_bits:
        return gearbox(c.b, c.library, "pool_steps", sums, w)
    last_piece = bits(sums.side, side_bits, number_bits)
    words = sums.replace(side=bits(sums.side, 0, side_bits))
    block = divider(c.library, sums.data_bits, w, npu.pool_word_steps, side=side_bits, last_piece_bits=number_bits)
    return chain(c.b, block, "pool_steps", words, rst=c.b.rst, in_last_piece=last_piece)

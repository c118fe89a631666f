"""Inlets of an NPU: where the words come from that its array takes (part of hls_gen/rtl/shell/npu.py).

    host words --(binariser, or skid register and former)--> skid register --> array's sequencer
    ring words --> ping-pong pair --(to +-1)--(skid register and former)-----> array's sequencer
    words of the map store and of the skip store ----------------------------> array's sequencer

A window former stands behind inlet "host", or behind inlet "ring" of an NPU that frames don't enter. Each layer's row
of memory ``inputs`` says which inlet is read (hls_gen/rtl/sequencer/writer.py).
"""

from collections.abc import Mapping

from veriloggen import Cat, Repeat

from bitloom.hls_gen.design.memories.window_former import former_fields
from bitloom.hls_gen.rtl.former.window_former import window_former
from bitloom.hls_gen.rtl.ports.binariser import binariser
from bitloom.hls_gen.rtl.ports.ping_pong import ping_pong
from bitloom.hls_gen.rtl.primitives.block import Signal, bits, const, side_by_side
from bitloom.hls_gen.rtl.primitives.skid import skidded
from bitloom.hls_gen.rtl.primitives.stream import Stream

from .context import NpuContext


def inlets(c: NpuContext, stores: Mapping[str, Stream]) -> dict[str, Stream]:
    """The streams of words that the array's sequencer takes.

    Parameters
    ----------
    c : NpuContext
        The NPU; it gets the ports of inlets "host" and "ring".
    stores : mapping of str to Stream
        Words of the map store and of the skip store, by inlet "loop" and "skip", as far as the NPU has them.

    Returns
    -------
    dict of str to Stream
        A stream for each inlet that the NPU has, in the order of ``Npu.sources``.
    """
    c.b.comment("Inlets: where the words come from that the convolution takes.")
    streams: dict[str, Stream] = {}
    for name in c.npu.sources:
        if name == "host":
            streams[name] = _skidded(c, name, _host(c))
        elif name == "ring":
            streams[name] = _ring(c)
        else:
            streams[name] = stores[name]
    return streams


def _skidded(c: NpuContext, name: str, words: Stream) -> Stream:
    """``words`` behind a skid register: from the tuple memory's room to the loader it is a long way."""
    out = skidded(c.b, c.library, f"{name}_skid", words.replace(last=const(0, 1)), ("last",))
    return out.replace(last=None)


def _host(c: NpuContext) -> Stream:
    """Words of frames: windows of them where a window former makes these, bits where the NPU has a binariser."""
    frame = Stream.input(c.b, "host", c.npu.host_word_bits)
    if not c.npu.ports.binariser:
        return _formed(c, frame)
    binary = Stream.wires(c.b, "binary", c.npu.array.word_bits)
    unit = c.library.get(binariser, c.library, c.npu)
    c.place(unit, "binariser", **frame.ports("in"), **binary.ports("out"), last_row=c.settings["binariser_last"])
    return binary


def _formed(c: NpuContext, words: Stream) -> Stream:
    """The words, or windows of them where the NPU has a window former."""
    if not c.npu.former_sizes:
        return words
    windows = Stream.wires(c.b, "windows", c.npu.array.word_bits)
    fields = {name: c.settings[name] for name, _ in former_fields(c.npu)}
    unit = c.library.get(window_former, c.library, c.npu)
    words = _skidded(c, "former", words)
    c.place(unit, "window_former", **words.ports("in"), **windows.ports("out"), **fields)
    return windows


def _ring(c: NpuContext) -> Stream:
    """Words of the NPU before, through the ping-pong pair, as features where that NPU sends bits; windows of them where
    no frames enter the NPU and it has a window former."""
    word_bits = c.npu.array.map_lanes if c.ring.from_bits else c.npu.array.map_bits
    before = Stream.input(c.b, "ring", word_bits, last=True)
    unit = c.library.get(ping_pong, c.library, c.npu, word_bits)
    chunked = Stream.wires(c.b, "chunked", word_bits)
    c.place(unit, "ping_pong", **before.ports("in"), **chunked.ports("out"), last_chunk=c.settings["last_chunk"])
    words = chunked.replace(data=_features(c, chunked.data)) if c.ring.from_bits else chunked
    return words if "host" in c.npu.ports.inlets else _formed(c, words)


def _features(c: NpuContext, word: Signal) -> Signal:
    """A feature of the integer NPU for each bit of ``word``, in two's complement: +1 for a 1, -1 for a 0."""
    high = c.npu.array.feature_bits - 1  # the bits above bit 0, which is 1 in +1 and in -1
    lanes = []
    for k in range(c.npu.array.map_lanes):
        minus = c.b.wire(f"minus_{k}", 1, ~bits(word, k, 1))
        lanes.append(Cat(Repeat(minus, high) if high > 1 else minus, const(1, 1)))
    return c.b.wire("features", c.npu.array.map_bits, side_by_side(lanes))

"""Weights larger than the device: kernel rows that come down the stream while frames are computed (spec B10, B18).

    loader --rows--> kernel memory                      layer:   i    i+1   i+2      (kernel memories a and b)
       ^  \\--a layer is whole--> sequencer begins it     rows:    a     b     a
       `------a layer is done---- sequencer             written:       i+2 as soon as i is done

Layers are used in the order in which they come, so two counts say all: how many layers are in the memory or begun and
not yet done (``unfinished``: the loader looks at it before it writes the next), and how many of these have not begun
(``waiting``: the sequencer looks at it before a layer's first beat). Where rows lie, and how many layers may be
unfinished when a layer is written (a packet's ``ahead``), is the compiler's business
(hls_gen/compiler/streamed_weights.py).

A row of the last beat is read at the end of its cycle; a packet that waited for it writes 3 cycles later at the
earliest. A layer's last row is written at the end of the cycle in which it is counted; its first beat comes 2 cycles
later at the earliest.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, nonzero, resize, sub

COUNT = 9
"""Bits of the counts: ``ahead`` has 8, so that at most 256 layers are unfinished."""


def unfinished_layers(b: Block, *, ahead: Signal, completes: Signal, restart: Signal) -> Signal:
    """The loader's side, in ``b``: 1 where the layer at hand may be written, at most ``ahead`` others being unfinished.

    completes : the word taken in this cycle is a layer's last.  restart : the engine begins anew.
    """
    begun, done = b.input("weights_begun"), b.input("weights_done")
    whole = b.reg("layer_whole")
    b.on(None, (whole, completes))
    unfinished, waiting = b.reg("unfinished_layers", COUNT), b.reg("waiting_layers", COUNT)
    for count, down in ((unfinished, done), (waiting, begun)):
        b.on(whole & ~down, (count, add(count, 1, COUNT)))
        b.on(~whole & down, (count, sub(count, 1, COUNT)))
        b.on(restart, (count, 0))
    b.output("weights_there", 1, nonzero(waiting))
    return b.wire("weights_room", 1, unfinished <= resize(ahead, COUNT))

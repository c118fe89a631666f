"""Layer after layer: which one is at hand, and its row.

    memory layers --row of the next layer--> LayerStart, LayerRow ("upcoming") --begin--> registers ("now")

The next layer's row is read ahead of time, asynchronously from LUT RAM, so that no cycle passes between layers.
"""

from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, any_of, resize
from bitloom.hls_gen.rtl.primitives.layer_counter import LAYER_BITS, layer_counter
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus

from .layer_row import START_ONLY, layer_row, layer_start
from .spec import SequencerSpec


class Layers:
    """The layer at hand.

    Attributes
    ----------
    step : Signal
        Wire, to be driven: the issuer takes the tap at hand.
    valid : Signal
        A tap is at hand: from the second cycle after reset on, since taps of a layer, and layers, follow one another
        without a gap.
    layer_end : Signal
        Wire, to be driven: the tap at hand is the last one of its layer.
    begin : Signal
        A layer begins: at the first cycle after reset, and with the step of a layer's last tap.
    move : Signal
        ``begin`` or ``step``: another tap is at hand in the next cycle.
    start : LayerStart
        What the row of the layer that begins next says of its beginning.
    upcoming, now : LayerRow
        Rows of the layer that begins next, and of the one at hand.
    """

    def __init__(self, b: Block, library: Library, spec: SequencerSpec, bus: LoadBus, last_layer: Signal):
        memory = spec.memory("layers")
        self.step = b.wire("step")
        self.valid = b.reg("have_tap")
        self.layer_end = b.wire("layer_end")
        self.begin = b.wire("begin_layer", 1, any_of(~self.valid, self.step & self.layer_end))
        number = layer_counter(b, "layer_upcoming", last_layer, self.begin)
        b.output("layer", LAYER_BITS, number)  # for register STATE: where the sequencer stands
        row = library.loadable(b, memory, bus, resize(number, bits_for(memory.depth - 1)))
        widths = memory.widths
        kept = {name: b.reg(f"layer_{name}", w, init=None) for name, w in widths.items() if name not in START_ONLY}
        self.start, self.upcoming, self.now = layer_start(row), layer_row(row), layer_row(kept)
        b.on(self.begin, (self.valid, 1), *[(register, row[name]) for name, register in kept.items()])
        self.move: Signal = b.wire("move", 1, any_of(self.begin, self.step))

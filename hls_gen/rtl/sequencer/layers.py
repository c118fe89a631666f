"""Layer after layer: which one is at hand, and its row.

    memory layers --row of the next layer--> start, upcoming --begin--> now (registers)

The next layer's row is read ahead of time, asynchronously from LUT RAM, so that no cycle passes between layers.
"""

from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Signal, any_of, resize
from bitloom.hls_gen.rtl.primitives.layer_counter import layer_counter

from .context import Context
from .layer_row import layer_row, layer_start, start_only


class Layers:
    """The layer at hand.

    Attributes
    ----------
    number : Signal
        Number of the layer that begins next.
    have : Signal
        There is a layer, and with it a tap: from the second cycle after reset on, for good, since the issuer is ready
        in the first one.
    end : Signal
        Register: the tap at hand is the last one of its layer.
    change : Signal
        Register: a layer begins with the next move: no tap is at hand yet, or the last one of its layer is. It has
        hundreds of readers, which choose between values of this layer and of the next one.
    begin : Signal
        A layer begins: in the first cycle after reset, and as the issuer takes a layer's last tap.
    move : Signal
        Another tap is at hand in the next cycle: the issuer is ready, and takes the tap at hand if there is one.
    start : LayerStart
        Fields for the beginning of the next layer, from its row.
    upcoming, now : LayerRow
        Rows of the layer that begins next, and of the one at hand.
    """

    def __init__(self, context: Context, last_layer: Signal, move: Signal):
        b = context.b
        memory = context.spec.memory("layers")
        self.have = b.reg("have_tap")
        self.end = b.reg("layer_end")
        self.change = b.reg("layer_change", init=1)
        self.move = move
        self._b = b
        # not from ``change``, which has many readers: the issuer is ready before the first tap, so ``move`` is 1 then
        self.begin = b.wire("begin_layer", 1, any_of(~self.have, self.move & self.end))
        self.number = layer_counter(b, "layer_upcoming", last_layer, self.begin)
        row = context.memory("layers", resize(self.number, bits_for(memory.depth - 1)))
        kept = {name: b.reg(f"layer_{name}", w, init=None) for name, w in memory.widths.items() if not start_only(name)}
        self.start = layer_start(row)
        self.upcoming = layer_row(row)
        self.now = layer_row(kept)
        b.on(self.begin, (self.have, 1), *[(register, row[name]) for name, register in kept.items()])

    def follow(self, end: Signal) -> None:
        """Say whether the tap that is at hand after the next move is the last one of its layer."""
        self._b.on(self.move, (self.end, end), (self.change, end))

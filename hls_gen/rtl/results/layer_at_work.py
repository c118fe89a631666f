"""The layer that a unit of results works on, and the row of thresholds or scales that the step at hand meets.

memory of layers --> layer at work --> first row, then a row a step, from the first one on again for each tuple
"""

from collections.abc import Collection
from dataclasses import dataclass

from bitloom.hls_gen.design.memories.memory import Memory
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, any_of, choose, resize
from bitloom.hls_gen.rtl.primitives.layer_counter import layer_counter
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus


@dataclass(frozen=True)
class LayerAtWork:
    """The layer at work. Layers follow one another without a gap, round and round."""

    loaded: Signal
    """Register: there is one."""
    starts: Signal
    """Register: there is none yet."""
    begin: Signal
    """The next layer is taken up at this clock edge."""
    change: Signal
    """The next piece of work is the layer's last, or there is no layer yet. This is known before ``begin``, which comes
    late: it chooses between values of the next layer and of this one, where registers move."""
    upcoming: Signal
    """Register: the next layer's number."""
    now: dict[str, Signal]
    next: dict[str, Signal]
    """now, next: fields of its row, as registers, and of the next layer's; those that are looked at as the layer begins
    have no register."""

    @classmethod
    def of(
        cls,
        b: Block,
        library: Library,
        bus: LoadBus,
        rows: Memory,
        last_layer: Signal,
        done: Signal,
        last: Signal,
        *,
        begins: Collection[str] = (),
    ) -> "LayerAtWork":
        """Layer after layer of the memory ``rows``, up to number ``last_layer``; each until ``done`` comes with
        ``last``. ``begins``: names of the fields that are looked at only as the layer begins."""
        loaded = b.reg("loaded")
        starts = b.reg("starts", init=1)  # not loaded: a register of its own for the many that take the layer's row
        begin = b.wire("begin_layer", 1, any_of(starts, done & last))
        change = b.wire("layer_change", 1, any_of(starts, last))
        upcoming = layer_counter(b, "layer_upcoming", last_layer, begin)
        following = library.loadable(b, rows, bus, resize(upcoming, bits_for(rows.depth - 1)))
        kept = {name: w for name, w in rows.widths.items() if name not in begins}
        now = {name: b.reg(f"layer_{name}", w, init=None) for name, w in kept.items()}
        b.on(begin, (loaded, 1), (starts, 0), *[(now[name], following[name]) for name in now])
        return cls(loaded, starts, begin, change, upcoming, now, following)

    def factors(
        self,
        b: Block,
        library: Library,
        bus: LoadBus,
        memory: Memory,
        base: str,
        free: Signal,
        busy: Signal,
        tuple_last: Signal,
        style: str = "auto",
    ) -> dict[str, Signal]:
        """The row of ``memory`` for the step at hand: for each tuple a row a step, from the row in the layer's field
        ``base`` on. The step leaves where it is ``busy`` and the activation is ``free``, and ends its tuple with
        ``tuple_last``. ``style``: what synthesis makes of the memory.

        The row is read whenever the activation is free, the same one again where there is no step: whether there is one
        comes late, and all bits of the row would wait for it."""
        w = bits_for(memory.depth - 1)
        pointer = b.reg("pointer", w)
        onward = choose(tuple_last, self.now[base], add(pointer, 1, w), w)
        onward = choose(busy, choose(self.change, self.next[base], onward, w), pointer, w)
        pointer_next = b.wire("pointer_next", w, choose(self.starts, self.next[base], onward, w))
        move = b.wire("move", 1, any_of(self.starts, free))
        b.on(move, (pointer, pointer_next))
        return library.loadable(b, memory, bus, pointer_next, read=move, style=style)

"""Signals of the issuer: with each beat to the unit behind the sequencer, and to the counters of waits."""

from dataclasses import dataclass
from typing import Annotated

from bitloom.hls_gen.design.widths import COUNT_BITS
from bitloom.hls_gen.rtl.primitives.block import Signal

from .bundle import Bundle, Meaning
from .pool_marks import PoolMarks


@dataclass(frozen=True, kw_only=True)
class Beat(Bundle):
    """A beat: one word goes to the array or to the pool unit. The word itself follows a cycle later.

    Everything counts in cycles with ``beat`` alone. Nothing stalls behind the issuer: it makes a beat only if what the
    beat gives rise to has room. The array's sequencer has ``takes_room`` and what stands below it, the pool's has
    ``tuple_last`` and what stands below that, and ``kernel_row`` where the pool unit has weights.
    """

    beat: Annotated[Signal, Meaning("a word is read and used in this cycle")]
    first: Annotated[
        Signal, Meaning(lambda s: "the beat is of its window's first tap" if s.pool else "first beat of a pass")
    ]
    last: Annotated[
        Signal, Meaning(lambda s: "the beat is of its window's last tap" if s.pool else "last beat of a pass")
    ]
    takes_room: Annotated[
        Signal | None, Meaning("the beat takes the place of a result behind the array", lambda s: int(not s.pool))
    ] = None
    kernel_row: Annotated[
        Signal | None, Meaning("kernel row that the word meets", lambda s: s.layer_bits("kernel_base"))
    ] = None
    offset: Annotated[
        Signal | None,
        Meaning(
            "sum of the offsets of the pass's taps so far, in two's complement", lambda s: s.layer_bits("tap_offset")
        ),
    ] = None
    slot: Annotated[
        Signal | None, Meaning("accumulator of each PE that takes part", lambda s: s.layer_bits("inner_groups_minus_1"))
    ] = None
    weights_done: Annotated[
        Signal | None,
        Meaning("last beat of a layer whose weights come down the stream", lambda s: s.layer_bits("kernel_stream")),
    ] = None
    tuple_last: Annotated[Signal | None, Meaning("last word of its tuple", lambda s: int(s.pool))] = None
    map_last: Annotated[Signal | None, Meaning("beat of the layer's last tap", lambda s: int(s.pool))] = None
    marks: PoolMarks
    taps: Annotated[
        Signal | None,
        Meaning("valid taps of the window so far, this one included", lambda s: COUNT_BITS * s.layer_bits("average")),
    ] = None
    index: Annotated[
        Signal | None, Meaning("number of the word in its tuple", lambda s: s.sequencer.index_bits * s.pool)
    ] = None


@dataclass(frozen=True, kw_only=True)
class WaitPulses(Bundle):
    """Where cycles of the array go: in every cycle exactly one of these and ``beat`` is 1. The pool is not counted."""

    wait_input: Annotated[Signal | None, Meaning("the next word has not arrived", lambda s: int(not s.pool))] = None
    wait_room: Annotated[
        Signal | None, Meaning("what the next beat gives rise to has no room", lambda s: int(not s.pool))
    ] = None
    wait_table: Annotated[
        Signal | None,
        Meaning("no tap was at hand: after reset, and while tuples are skipped", lambda s: int(not s.pool)),
    ] = None
    wait_memory: Annotated[
        Signal | None,
        Meaning("the one memory is read for the word of beats to come", lambda s: int(s.one_memory)),
    ] = None
    wait_weights: Annotated[
        Signal | None, Meaning("the weights of the next layer are not there", lambda s: s.layer_bits("kernel_stream"))
    ] = None

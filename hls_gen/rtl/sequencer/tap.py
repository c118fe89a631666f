"""Stream of taps from the tap source to the issuer: a ready/valid stream with one word for each tap."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from bitloom.hls_gen.rtl.primitives.block import Signal

from .bundle import Bundle, Meaning
from .pool_marks import PoolMarks


@dataclass(frozen=True, kw_only=True)
class Tap(Bundle):
    """The tap at hand: a tuple that a pass over a window reads, word by word. A pass is one kernel group's.

    Everything but ``valid``, ``ready`` and ``given_words`` belongs to the tap, and stays as it is until the issuer
    takes it. Words are counted in words of the tuple memory. Which of the optional signals a sequencer has follows from
    the fields of its layer rows (layer_row.py), from which they also take their widths.
    """

    prefix: ClassVar[str] = "tap_"

    valid: Annotated[Signal, Meaning("a tap is at hand")]
    ready: Annotated[Signal, Meaning("the issuer takes the tap at hand at this clock edge, if there is one", back=True)]
    skip: Annotated[
        Signal, Meaning("no tap of a window: its tuple arrives now and is read later; it is claimed without a beat")
    ]
    claim: Annotated[
        Signal, Meaning("the tuple is claimed: its words must have arrived, and no tap before has claimed them")
    ]
    last: Annotated[Signal, Meaning("last tap of its pass over its window")]
    layer_end: Annotated[Signal, Meaning("last tap of its layer in this frame")]
    address: Annotated[
        Signal, Meaning("place of the tuple's first word in the tuple memory", lambda s: s.sequencer.address_bits)
    ]
    words_minus_1: Annotated[Signal, Meaning("words of the tuple, less 1", lambda s: s.sequencer.index_bits)]
    hold_words: Annotated[
        Signal,
        Meaning(
            "words that the layer still keeps in the tuple memory when its last tap is done",
            lambda s: s.layer_bits("hold_words"),
        ),
    ]
    given_words: Annotated[
        Signal,
        Meaning("words that no tap reads any more since one was taken a cycle ago, else 0", lambda s: s.count_bits),
    ]
    gap: Annotated[
        Signal | None,
        Meaning("words are claimed beside the tap's own, which doesn't read them", lambda s: min(s.ahead_bits, 1)),
    ] = None
    gap_words: Annotated[
        Signal | None,
        Meaning("so many, where there are any", lambda s: s.ahead_bits),
    ] = None
    marks: PoolMarks
    row: Annotated[
        Signal | None, Meaning("kernel row of the tuple's first word", lambda s: s.layer_bits("kernel_base"))
    ] = None
    offset: Annotated[
        Signal | None,
        Meaning("what the tap adds to its window's offset, in two's complement", lambda s: s.layer_bits("tap_offset")),
    ] = None
    inner_groups_minus_1: Annotated[
        Signal | None,
        Meaning(
            "kernel groups that use each word one after another, less 1", lambda s: s.layer_bits("inner_groups_minus_1")
        ),
    ] = None
    streamed: Annotated[
        Signal | None,
        Meaning("the weights of the tap's layer come down the stream", lambda s: s.layer_bits("kernel_stream")),
    ] = None
    weights_missing: Annotated[
        Signal | None,
        Meaning(
            "a tap would be at hand, but the weights of its layer are not there; valid is 0 so long",
            lambda s: s.layer_bits("kernel_stream"),
        ),
    ] = None

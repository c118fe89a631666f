"""What the tap source tells the issuer of a tap."""

from dataclasses import dataclass

from bitloom.hls_gen.rtl.primitives.block import Signal


@dataclass(frozen=True, kw_only=True)
class Tap:
    """The tap at hand: a tuple that a pass over a window reads, word by word.

    Attributes
    ----------
    valid : Signal
        There is a tap at hand.
    step : Signal
        Wire, driven by the issuer: it takes the tap; the next one is at hand a cycle later.
    begin : Signal
        A layer begins in this cycle; ``hold_next`` is looked at.
    skip : Signal
        No tap of a window: its tuple arrives now and is read later. It counts as claimed, and there is no beat.
    claim : Signal
        The tap's tuple is claimed: its words must have arrived before they are read. 0 in later passes and for tuples
        that a tap before has claimed.
    last : Signal
        Last tap of a pass over its window.
    layer_end : Signal
        Last tap of its layer in this frame.
    address : Signal
        Place of the tuple's first word in the tuple memory; address bits.
    words_minus_1 : Signal
        Words of a tuple, less 1; address bits.
    hold_words : Signal
        Words that the ring still holds of the layer when its last tap is done; address bits + 1.
    hold_next : Signal
        Of the layer that begins: what its windows keep in the ring; address bits + 1. In words with ``raster``, else in
        tuples.
    gap_words : Signal or None
        Words that are claimed together with the tap's own, since only later windows read them; address bits + 1. None
        without ``raster``.
    target, average : Signal or None
        Outlet of the map, and whether the pool takes averages, as in layer_row.LayerRow. None in the array's sequencer.
    row : Signal or None
        Kernel row of the tuple's first word; row bits. None in the pool's sequencer, like the following ones.
    offset : Signal or None
        What the tap adds to its window's offset, in two's complement; ``acc_bits``. None with engine "integer".
    inner_groups_minus_1 : Signal or None
        Kernel groups that use each word one after another, less 1; ``slot_bits``. None with one accumulator a PE.
    held : Signal or None
        The tap must wait: it is the first of a layer whose weights are not there. None without ``stream_weights``.
    streamed : Signal or None
        The layer's weights come down the stream. None without ``stream_weights``.
    """

    valid: Signal
    step: Signal
    begin: Signal
    skip: Signal
    claim: Signal
    last: Signal
    layer_end: Signal
    address: Signal
    words_minus_1: Signal
    hold_words: Signal
    hold_next: Signal
    gap_words: Signal | None = None
    target: Signal | None = None
    average: Signal | None = None
    row: Signal | None = None
    offset: Signal | None = None
    inner_groups_minus_1: Signal | None = None
    held: Signal | None = None
    streamed: Signal | None = None

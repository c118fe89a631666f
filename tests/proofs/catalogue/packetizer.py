"""Proof of the packetizer's frames: hls_gen/rtl/packetizer."""

from bitloom.hls_gen.design.frame_layout import ONE, ZERO
from bitloom.hls_gen.design.packetizer import Packetizer
from bitloom.hls_gen.rtl.packetizer.raw_frames import raw_frames
from bitloom.hls_gen.rtl.primitives.memory import Library
from tests.proofs.engine import Broken, Proof

REST = (ONE, *[ZERO] * 25)
SIZES = Packetizer(
    stream_bits=32,
    marks="packet",
    value_bits=3,
    beat_values=1,
    beats=3,
    frame_words=5,
    payload_words=3,
    group_beats=2,
    group_source=(*range(6), *REST, *range(3, 6), *range(3), *REST),
)
"""A frame of two groups, the second one shorter; a group of two beats and two words."""

PROOFS = (
    Proof(
        name="frames of a raw stream",
        source="hls_gen/rtl/packetizer/raw_frames.py",
        block=lambda: raw_frames(Library(SIZES.stream_bits), SIZES),
        rules="raw_frames",
        sizes={"BEATS": SIZES.beats, "WORDS": SIZES.payload_words},
        steps=4,
        reach=28,
        breaks=(
            Broken("raw_valid & ~s_axis_tvalid & ~in_transfer", "raw_valid & ~s_axis_tvalid", "not_in_a_transfer"),
            Broken("may_begin & ~begins & aligned", "may_begin & ~begins", "too_long"),
            Broken("filling ? 3'd0 : values", "values", "payload_of_its_beats"),
            Broken("expected & ~filling & beat_ready", "~filling & beat_ready", "first_begins"),
            Broken("beats_taken == LAST_BEAT", "beats_taken == BEATS", "goes_on.in_time"),
        ),
    ),
)

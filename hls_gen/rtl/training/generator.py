"""The generator of random numbers (golden twin: golden/discrete/lfsr.py): an LFSR that makes sixteen steps at once.

    state --> 16 steps --> first --> 16 steps --> second

`take_one` and `take_two` move the state behind the numbers that are shown: sixteen XOR of four bits for each.
"""

from veriloggen import Cat

from bitloom.golden.discrete.lfsr import DRAW_BITS, STATE_BITS, TAPS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header


def generator(library: Library) -> Block:
    """The module ``generator``; its state is 1 after reset."""
    header = Header(__doc__, rate="two numbers a cycle", latency="0 cycles to both numbers")
    b = Block("generator", header)
    set_state = b.input("set", means="seed becomes the state")
    seed = b.input("seed", STATE_BITS, means="a state, not 0")
    take_one = b.input("take_one", means="the first number is taken")
    take_two = b.input("take_two", means="both numbers are taken")
    first = b.output("first", DRAW_BITS, means="the next number")
    second = b.output("second", DRAW_BITS, means="the number after it")

    # # #

    state = b.reg("state", STATE_BITS, init=1)
    after = _drawn(b, "first", state)
    after_two = _drawn(b, "second", after)
    first.assign(bits(after, 0, DRAW_BITS))
    second.assign(bits(after_two, 0, DRAW_BITS))
    b.on(take_one, (state, after))
    b.on(take_two, (state, after_two))
    b.on(set_state, (state, seed))
    return b


def _drawn(b: Block, name: str, state: Signal) -> Signal:
    """Wire: the state after a draw; its new bits depend on bits that were there before."""
    new = []
    for step in range(DRAW_BITS):  # the first step's bit ends as the highest of the draw
        bit = state[TAPS[0] - step]
        for tap in TAPS[1:]:
            bit = bit ^ state[tap - step]
        new.append(bit)
    return b.wire(f"after_{name}", STATE_BITS, Cat(bits(state, 0, STATE_BITS - DRAW_BITS), *new))

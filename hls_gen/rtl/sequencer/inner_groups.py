"""Kernel groups that use each word one after another, before the next word comes (dataflow input_stationary, spec A10).

    word 0: group 0, 1, ..., limit     word 1: group 0, 1, ..., limit     ...
    slot:   base + group, a ring of accumulators; the next pass begins behind the last group's

Each pass takes as many accumulators of every PE as it has inner groups, from its first beats on.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, choose, const, eq, width


class InnerGroups:
    """Registers of the issuer in front of an array with several accumulators a PE.

    Attributes
    ----------
    last : Signal
        The group at work is the last one: the next beat takes the next word.
    slot : Signal
        Accumulator that takes part in the present beat.
    """

    def __init__(self, b: Block, slot_bits: int):
        self._b = b
        self._group, self._limit = (
            b.reg("inner_group", slot_bits, init=None),
            b.reg("inner_limit", slot_bits, init=None),
        )
        self._base = b.reg("slot_base", slot_bits)  # first accumulator of the pass
        self.last = b.reg("inner_last", init=None)
        self.slot = self._base + self._group

    def advance(self, taken: Signal, limit: Signal, again: Signal, pass_done: Signal) -> None:
        """Go on to the next group with each beat.

        Parameters
        ----------
        taken : Signal
            A tap is taken to work, with groups 0 to ``limit``.
        limit : Signal
            Its last group.
        again : Signal
            A beat that is not the last one of its tap.
        pass_done : Signal
            The last beat of a pass.
        """
        b = self._b
        w = width(self._group)
        onward = b.wire("inner_onward", w, add(self._group, 1, w))
        b.on(taken, (self._limit, limit), (self._group, 0), (self.last, eq(limit, 0)))
        ends = choose(self.last, eq(self._limit, 0), eq(onward, self._limit), 1)  # the next group is the last one
        b.on(again, (self._group, choose(self.last, 0, onward, w)), (self.last, ends))
        b.on(pass_done, (self._base, self._base + self._limit + const(1, w)))

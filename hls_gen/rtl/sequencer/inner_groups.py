"""Kernel groups that use each word one after another, before the next word comes (dataflow input_stationary, spec A10).

    word 0: group 0, 1, ..., limit     word 1: group 0, 1, ..., limit     ...
    slot:   base + group, a ring of accumulators; the next pass begins behind the last group's

Each pass takes as many accumulators of every PE as it has inner groups, from its first beats on.
"""

from bitloom.hls_gen.rtl.primitives.block import Block, Signal, add, any_of, choose, const, eq, width


class InnerGroups:
    """Registers of the issuer in front of an array with several accumulators a PE.

    Attributes
    ----------
    last : Signal
        The group at work is the last one: the next beat takes the next word.
    next_last : Signal
        Value of ``last`` after the next beat, if the tap then goes on.
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
        self._onward = b.wire("inner_onward", slot_bits, add(self._group, 1, slot_bits))
        self.next_last = choose(self.last, eq(self._limit, 0), eq(self._onward, self._limit), 1)

    def advance(self, ready: Signal, limit: Signal, goes: Signal, ends: Signal, pass_done: Signal) -> None:
        """Go on to the next group with each beat.

        Parameters
        ----------
        ready : Signal
            A tap is taken to work, if there is one, with groups 0 to ``limit``.
        limit : Signal
            Its last group.
        goes : Signal
            A beat of the tap at work, or there is no such tap.
        ends : Signal
            That is the tap's last one, or there is no such tap; known before ``ready`` and ``goes``.
        pass_done : Signal
            The last beat of a pass.
        """
        b = self._b
        w = width(self._group)
        b.on(ready, (self._limit, limit))
        b.on(
            goes,
            (self._group, choose(any_of(self.last, ends), 0, self._onward, w)),
            (self.last, choose(ends, eq(limit, 0), self.next_last, 1)),
        )
        b.on(pass_done, (self._base, self._base + self._limit + const(1, w)))

"""Accumulator of a processing element: merges the terms of a window (spec A2, B11).

    term --> + or OR <--> register, or one of several in a small memory --> result

With one accumulator the result is held in a register of its own, and the next window may begin at once. The register is
0 when its first beat comes, so that no LUT chooses between 0 and the register: an adder's LUT has room for more of the
term. With several
(``slot`` chooses) a result stays in its place until the results unit has read it at ``drain_slot``; a memory with
asynchronous reads has no hazard between two beats of the same window.
"""

from collections.abc import Callable
from dataclasses import dataclass

from veriloggen import Cat

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, choose, const, resize, width
from bitloom.hls_gen.rtl.primitives.memory import Library, ram

FEATURES = "features of the beat, one a lane, lane 0 low"
WEIGHTS = "weights of the beat, one a lane, lane 0 low"
"""FEATURES, WEIGHTS: meanings of the ports of every processing element."""


@dataclass(frozen=True)
class WindowPorts:
    """Ports that say where a beat stands in its window."""

    valid: Signal
    """There is a beat; its term is merged."""
    first: Signal
    """The beat is the window's first: what was accumulated before counts as 0. With one accumulator this is said a
    cycle ahead: the beat of the next cycle is there, and is the first of its window."""
    last: Signal | None
    """The beat is the window's last: its total is the result. None with several accumulators, where a total is read in
    its place."""

    @classmethod
    def ports(cls, b: Block, npu: Npu) -> "WindowPorts":
        """Input ports ``valid``, ``first`` and, with one accumulator, ``last`` of the processing element ``b``."""
        valid = b.input(
            "valid", means="there is a beat, whose features came so many cycles ago that its term is made now"
        )
        if npu.array.accumulators > 1:
            return cls(valid, b.input("first", means="that beat is the first of its window"), None)
        return cls(
            valid,
            b.input("clear", means="the beat of the next cycle is there, and is the first of its window"),
            b.input("last", means="that beat is the last of its window"),
        )


def added(b: Block, name: str, base: Signal, term: Signal, carry: Signal | None = None) -> Signal:
    """base + term + carry, as wide as they, by way of a wire ``name``. The carry is a bit below both, where the adder's
    carry chain takes it."""
    w = width(base)
    if carry is None:
        return b.wire(name, w, base + term)
    return bits(b.wire(name, w + 1, Cat(base, const(1, 1)) + Cat(term, carry)), 1, w)


def accumulator(
    b: Block, library: Library, npu: Npu, merge: Callable[[Signal], Signal], window: WindowPorts, w: int | None = None
) -> None:
    """The accumulator inside a processing element.

    Parameters
    ----------
    b : Block
        The processing element; it gets the port ``result``, and with several accumulators ``slot`` and
        ``drain_slot``.
    npu : Npu
        How many accumulators there are, and how wide the result is.
    merge : function
        Sum so far (0 in the first beat) -> the sum with the beat's term.
    window : WindowPorts
        Where the beat stands.
    w : int or None
        Bits that are accumulated; None: as many as the result has.
    """
    acc = npu.array.acc_bits
    w = acc if w is None else w
    said = "sum of the window"
    if window.last is not None:
        held = b.output_reg("result", acc, init=None, means=said) if w == acc else b.reg("held", w, init=None)
        total = b.reg("total", w, init=None)
        total_next = b.wire("total_next", w, merge(total))
        b.on(window.valid, (total, total_next))
        b.on(window.first, (total, 0))
        b.on(window.valid & window.last, (held, total_next))  # apart from total: the next window may begin
        if w != acc:
            b.output("result", acc, resize(held, acc), means=said)
        return
    slot = b.input("slot", npu.array.slot_bits, means="accumulator of the beat")
    drain = b.input("drain_slot", npu.array.slot_bits, means="accumulator that the results unit reads")
    total = b.wire("total", w)
    result = b.output("result", acc, means="contents of accumulator drain_slot")
    base = b.wire("base", w, choose(window.first, 0, total, w))
    total_next = b.wire("total_next", w, merge(base))
    store = ram(library, w, npu.array.accumulators, latency=0)
    ports = {"write": window.valid, "write_row": slot, "write_data": total_next}
    held = result if w == acc else b.wire("held", w)
    b.instance(store, "sums", **ports, read_row=slot, read_data=total)
    b.instance(store, "sums_out", **ports, read_row=drain, read_data=held)  # two reads in a cycle: two memories
    if w != acc:
        result.assign(resize(held, acc))

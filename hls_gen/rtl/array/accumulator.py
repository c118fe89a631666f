"""Accumulator of a PE: merges a window's terms (spec A2, B11).

    term --> + or OR <--> register, or one of several in a small memory --> result

One term a cycle; ``first`` begins a result, ``last`` ends it. With one accumulator the result is held in a register of
its own, and another one may begin at once. With several (``slot`` chooses) a result stays in its place until the
results unit has read it at ``drain_slot``; a memory with asynchronous reads has no hazard between two beats of the
same window.
"""

from collections.abc import Callable

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, choose, resize
from bitloom.hls_gen.rtl.primitives.memory import Library, ram


def accumulator(
    b: Block,
    library: Library,
    npu: Npu,
    merge: Callable[[Signal], Signal],
    valid: Signal,
    first: Signal,
    last: Signal | None,
    w: int | None = None,
) -> None:
    """The accumulator inside the PE ``b``; makes the port ``result``.

    merge : what was accumulated (0 in the first beat) -> with the beat's term.  w : its width, acc_bits by default.
    """
    acc = npu.acc_bits
    w = acc if w is None else w
    if last is not None:
        held = b.output_reg("result", acc, init=None) if w == acc else b.reg("held", w, init=None)
        total = b.reg("total", w, init=None)
        base = b.wire("base", w, choose(first, 0, total, w))
        total_next = b.wire("total_next", w, merge(base))
        b.on(valid, (total, total_next))
        b.on(valid & last, (held, total_next))
        if w != acc:
            b.output("result", acc, resize(held, acc))
        return
    slot, drain = b.input("slot", npu.slot_bits), b.input("drain_slot", npu.slot_bits)
    total, result = b.wire("total", w), b.output("result", acc)
    base = b.wire("base", w, choose(first, 0, total, w))
    total_next = b.wire("total_next", w, merge(base))
    store = library.get(ram, w, npu.accumulators, latency=0)
    ports = {"write": valid, "write_row": slot, "write_data": total_next}
    held = result if w == acc else b.wire("held", w)
    b.instance(store, "sums", **ports, read_row=slot, read_data=total)
    b.instance(store, "sums_out", **ports, read_row=drain, read_data=held)
    if w != acc:
        result.assign(resize(held, acc))

"""Accumulator of a PE: adds a window's terms (spec A2, B11).

    term --> + <--> register, or one of several in a small memory --> result

One term a cycle; ``first`` begins a sum, ``last`` ends it. With one accumulator the result is held in a register of
its own, and another sum may begin at once. With several (``slot`` chooses) a sum stays in its place until the results
unit has read it at ``drain_slot``; a memory with asynchronous reads has no hazard between two beats of the same sum.
"""

from .design import Npu
from .memory import Library, ram
from .rtl import Block, Signal, choose


def accumulator(
    b: Block, library: Library, npu: Npu, term: Signal, valid: Signal, first: Signal, last: Signal | None
) -> None:
    """The accumulator inside the PE ``b``; makes the port ``result``."""
    acc = npu.acc_bits
    if last is not None:
        result = b.output_reg("result", acc, init=None)
        total = b.reg("total", acc, init=None)
        base = b.wire("base", acc, choose(first, 0, total, acc))
        total_next = b.wire("total_next", acc, term + base)
        b.on(valid, (total, total_next))
        b.on(valid & last, (result, total_next))
        return
    slot, drain = b.input("slot", npu.slot_bits), b.input("drain_slot", npu.slot_bits)
    total, result = b.wire("total", acc), b.output("result", acc)
    base = b.wire("base", acc, choose(first, 0, total, acc))
    total_next = b.wire("total_next", acc, term + base)
    store = library.get(ram, acc, npu.accumulators, latency=0)
    ports = {"write": valid, "write_row": slot, "write_data": total_next}
    b.instance(store, "sums", **ports, read_row=slot, read_data=total)
    b.instance(store, "sums_out", **ports, read_row=drain, read_data=result)

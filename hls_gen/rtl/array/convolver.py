"""Convolver: KGP PEs on the same features, each with the weights of its own kernel (spec B10, B11).

    beat (first, last, kernel row) --> kernel memories a|b --> KGP x PE --> results[KGP x acc_bits]
    feature word, a cycle later -----------------------------^

One beat a cycle, no stall inside. ``result_valid`` comes ``timing.array_latency`` cycles after the last beat of a
window; the results then hold until those of the next window. Kernel memory a is the lower half of the rows, b the
upper one.
"""

from collections.abc import Callable

from veriloggen import Cat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus, ram

from .pe import pe
from .pe_collect import pe_collect
from .pe_integer import pe_integer
from .pe_or import pe_or


def processing_element(npu: Npu) -> tuple[Callable[[Library, Npu], Block], int, int]:
    """The PE of ``npu``, its latency from features to result, and the cycles from features to ``valid`` and ``first``.

    ``last`` and ``code`` come one cycle before the result.
    """
    latency = timing.pe_latency(npu)
    if npu.collect:
        return pe_collect, latency, 0
    make = pe_integer if npu.engine == "integer" else pe_or if npu.accumulate == "or" else pe
    return make, latency, latency - 1


def delayed(b: Block, signal: Signal, name: str, cycles: int, w: int = 1, init: int | None = None) -> list[Signal]:
    """[signal, signal one cycle later, ...]: ``cycles`` registers."""
    line = [signal]
    for k in range(1, cycles + 1):
        step = b.reg(f"{name}_{k}", w, init=init)
        b.on(None, (step, line[-1]))
        line.append(step)
    return line


def convolver(library: Library, npu: Npu) -> Block:
    """The PE array of ``npu`` with its kernel memory."""
    b = Block(library.name("convolver", npu))
    memory = npu.memory("kernels")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    beat, first, last = b.input("beat"), b.input("first"), b.input("last")
    row = b.input("kernel_row", npu.row_bits)
    binary = npu.engine == "binary"
    offset = b.input("offset", npu.acc_bits) if binary else None
    features = b.input("features", npu.word_bits)
    result_valid = b.output("result_valid")
    result_offset = b.output("result_offset", npu.acc_bits) if binary else None
    results = b.output("results", npu.kgp * npu.acc_bits)
    several = npu.accumulators > 1
    slot, drain = (b.input(n, npu.slot_bits) if several else None for n in ("slot", "drain_slot"))

    # # #

    part = library.loadable(b, memory, bus, row, read=beat, style=npu.kernel_ram)
    make, latency, begins = processing_element(npu)
    at_total, at_begin = timing.ARRAY_READ + latency - 1, timing.ARRAY_READ + begins
    valid_line = delayed(b, beat, "beat", at_begin, init=0)
    first_line = delayed(b, first, "first", at_begin)
    last_line = delayed(b, b.wire("ends", 1, beat & last), "last", at_total + 1, init=0)
    slots = {"slot": delayed(b, slot, "slot", at_total, npu.slot_bits)[-1], "drain_slot": drain} if several else {}
    if result_offset is not None:
        late_offset = delayed(b, offset, "offset", at_total, npu.acc_bits)[-1]
        if several:
            store = library.get(ram, npu.acc_bits, npu.accumulators, latency=0)
            ports = {"write": last_line[at_total], "write_row": slots["slot"], "write_data": late_offset}
            b.instance(store, "offsets", **ports, read_row=drain, read_data=result_offset)
        else:
            held_offset = b.reg("held_offset", npu.acc_bits, init=None)
            b.on(last_line[at_total], (held_offset, late_offset))
            result_offset.assign(held_offset)
    code = delayed(b, part["code"], "code", latency - 1, npu.code_bits)[-1] if npu.code_bits else None
    block = library.get(make, library, npu)
    width = npu.kfp * npu.weight_bits
    outputs = []
    for k in range(npu.kgp):
        out = b.wire(f"result_{k}", npu.acc_bits)
        ports = {
            "features": features,
            "weights": bits(part["weights"], k * width, width),
            "valid": valid_line[-1],
            "first": first_line[-1],
            **({} if several else {"last": last_line[at_total]}),
            "result": out,
            **slots,
        }
        if code is not None:
            ports["code"] = code
        b.instance(block, f"pe_{k}", **ports)
        outputs.append(out)
    results.assign(Cat(*reversed(outputs)) if npu.kgp > 1 else outputs[0])
    result_valid.assign(last_line[-1])
    return b

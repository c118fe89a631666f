"""Pool unit with weights: maximum or sum of a window's valid taps, or its depthwise convolution.

    word[PFP] ------------> x 1 or x weight --> compare or add <-> queue (a word of the tuple each) --last tap--> FIFO
    kernel row --> weights ---^

Golden twins: golden/layers/pool.py, hls_gen/compiler/depthwise.py. ``average`` and ``depthwise`` choose for each layer.
The sequencer gives words tap after tap, all words of a tap's tuple in turn, and the row of weights that a word meets;
the queue holds the maxima or sums of this window so far. Nothing stalls inside: ``room`` tells the sequencer in time.
What leaves are sums, with the number of features that an average divides by, else 1 (pool_results.py).

Weights are loaded. A product is made of gates and adders, not of a DSP block: those are for the array. First the
products with two bits of the weight each are added, then these sums.
"""

from dataclasses import replace
from functools import reduce

from veriloggen import Cat, Repeat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import COUNT_BITS
from bitloom.hls_gen.rtl.array.convolver import delayed
from bitloom.hls_gen.rtl.primitives.block import (
    Block,
    Signal,
    any_of,
    bits,
    choose,
    const,
    sign_extend,
    signed_at_least,
    width,
)
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.text import Header
from bitloom.hls_gen.rtl.results.step import join

from .pool_binary import PoolPorts, queue


def pool_unit_depthwise(library: Library, npu: Npu) -> Block:
    """The pool unit of an integer NPU with ``depthwise``.

    Parameters
    ----------
    library : Library
        Where further modules come from.
    npu : Npu
        The NPU that it is part of.

    Returns
    -------
    Block
        Module ``pool_unit_depthwise``. A word that leaves has PFP sums of ``acc_bits``, above them the side bits, and
        above those the number of features.
    """
    pool_unit = present(npu.pool_unit)
    sizes = ("pfp", "feature_bits", "weight_bits", "acc_bits")
    header = Header(
        __doc__,
        rate="one word a cycle",
        latency=f"{timing.latencies(npu).pool} cycles from a beat to the output FIFO",
        parameters={**npu.values(*sizes), "fifo_words": timing.pool_fifo_words(npu)},
    )
    b = Block(library.name("pool_unit_depthwise", npu), header)
    memory = memory_of(npu, "pool_kernels")
    bus = LoadBus.ports(b, library.stream_bits, [memory])
    ports = PoolPorts.of(b, npu, pool_unit.pfp * npu.array.acc_bits + npu.pool_side_bits + COUNT_BITS)

    # # #

    b.comment("What comes with a beat, in time with its word.")
    at_depthwise = b.reg("at_depthwise", init=None)
    adds = b.reg("at_adds", init=None)
    count = b.reg("count", COUNT_BITS, init=None)
    beat = ports.beat
    average = beat.marks.average
    depthwise = beat.marks.depthwise
    counted = choose(average & ~depthwise, beat.taps, 1, COUNT_BITS)
    b.on(None, (at_depthwise, depthwise), (adds, any_of(average, depthwise)), (count, counted))
    weights = library.loadable(b, memory, bus, beat.kernel_row, read=beat.beat)["weights"]
    b.comment("The same, in time with the products.")
    product_ports = _late(b, npu, ports)
    w = npu.array.acc_bits
    late_adds = delayed(b, adds, "adds", timing.DEPTHWISE_LATENCY)[-1]
    late_count = delayed(b, count, "count", timing.DEPTHWISE_LATENCY, COUNT_BITS)[-1]
    b.comment("The queue's row with this beat, lane by lane.")
    so_far = b.wire("so_far", pool_unit.pfp * w)
    merged = []
    for k in range(pool_unit.pfp):
        feature = b.wire(
            f"feature_{k}", npu.array.feature_bits, bits(ports.word, k * npu.array.feature_bits, npu.array.feature_bits)
        )
        weight = b.wire(
            f"weight_{k}", npu.array.weight_bits, bits(weights, k * npu.array.weight_bits, npu.array.weight_bits)
        )
        new = b.wire(f"new_{k}", w, sign_extend(_product(b, npu, k, feature, weight, at_depthwise), w))
        old = b.wire(f"old_{k}", w, bits(so_far, k * w, w))
        larger = choose(signed_at_least(new, old), new, old, w)
        both = choose(late_adds, old + new, larger, w)
        merged.append(b.wire(f"merged_{k}", w, choose(product_ports.first, new, both, w)))
    queue(b, library, npu, product_ports, b.wire("merged", pool_unit.pfp * w, join(merged)), so_far)
    emit = b.wire("emit", 1, product_ports.valid & product_ports.last)
    product_ports.emit(b, library, npu, emit, Cat(late_count, product_ports.side, join(merged)))
    return b


def _late(b: Block, npu: Npu, ports: PoolPorts) -> PoolPorts:
    """The ports' registers, as late as the products are."""
    widths = {"first": 1, "last": 1, "index": present(npu.pool_unit).index_bits, "side": npu.pool_side_bits}
    cycles = timing.DEPTHWISE_LATENCY
    registers = {name: delayed(b, getattr(ports, name), name, cycles, w)[-1] for name, w in widths.items()}
    return replace(ports, valid=delayed(b, ports.valid, "valid", cycles, init=0)[-1], **registers)


def _product(b: Block, npu: Npu, k: int, feature: Signal, weight: Signal, depthwise: Signal) -> Signal:
    """Register: the feature of lane ``k`` times its weight, or times 1 in layers without weights; two stages."""
    f = npu.array.feature_bits
    w = npu.array.weight_bits
    factor = b.wire(f"factor_{k}", w, choose(depthwise, weight, 1, w))
    pairs: list[Signal] = []
    for low in range(0, w, 2):
        wide = f + 2
        terms = [
            _of_bit(b, f"bit_{k}_{place}", feature, bits(factor, place, 1), place - low, wide)
            for place in range(low, min(low + 2, w))
        ]
        negative = low + len(terms) == w  # the sign bit counts below 0
        pair = b.reg(f"pair_{k}_{low}", wide, init=None)
        if len(terms) == 1:
            b.on(None, (pair, const(0, wide) - terms[0] if negative else terms[0]))
        else:
            b.on(None, (pair, terms[0] - terms[1] if negative else terms[0] + terms[1]))
        pairs.append(pair)
    total = b.reg(f"product_{k}", f + w, init=None)
    placed = [_placed(b, f"placed_{k}_{2 * i}", pair, 2 * i, f + w) for i, pair in enumerate(pairs)]
    while len(placed) > 1:  # a tree
        placed = [reduce(lambda a, c: a + c, placed[i : i + 2]) for i in range(0, len(placed), 2)]
    b.on(None, (total, placed[0]))
    return total


def _of_bit(b: Block, name: str, feature: Signal, bit: Signal, place: int, w: int) -> Signal:
    """The feature times a bit of the weight, ``place`` bits up, in ``w`` bits."""
    moved = Cat(feature, const(0, place)) if place else feature
    wide = b.wire(f"{name}_moved", w, sign_extend(b.wire(f"{name}_feature", place + width(feature), moved), w))
    return b.wire(name, w, wide & Repeat(bit, w))


def _placed(b: Block, name: str, pair: Signal, place: int, w: int) -> Signal:
    """A sum of two bits' products, ``place`` bits up, in ``w`` bits."""
    have = width(pair)
    if place + have > w:  # the highest pair, whose top bits are copies of the sign
        b.wire(f"{name}_unused", place + have - w, bits(pair, w - place, place + have - w))
        pair = b.wire(f"{name}_cut", w - place, bits(pair, 0, w - place))
    moved = Cat(pair, const(0, place)) if place else pair
    named = b.wire(f"{name}_moved", min(w, place + have), moved)
    return b.wire(name, w, sign_extend(named, w))

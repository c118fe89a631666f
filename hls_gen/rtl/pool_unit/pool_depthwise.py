"""Pool unit with weights: maximum or sum of a window's valid taps, or its depthwise convolution.

    word[PFP] ------------> x 1 or x weight --> compare or add <-> queue (words of a tuple) --last tap--> FIFO
    kernel row --> weights ---^

Golden twins: golden/layers/pool.py, hls_gen/compiler/depthwise.py. ``average`` and ``depthwise`` choose for each layer.
The sequencer gives words tap after tap, all words of a tap's tuple in turn, and the row of weights that a word meets;
the queue holds the maxima or sums of this window so far. Nothing stalls inside: ``room`` tells the sequencer in time.
What leaves are sums, with the number of features that an average divides by, else 1, and where a word has several steps
of results with the number of the last step in a tuple's last word (pool_results.py).

Weights are loaded. A product is made of gates and adders, not of a DSP block: those are for the array. First the
products with two bits of the weight each are added, then these sums.
"""

from functools import reduce

from veriloggen import Cat, Repeat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import COUNT_BITS
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, choose, const, sign_extend, width
from bitloom.hls_gen.rtl.primitives.delay import delayed
from bitloom.hls_gen.rtl.primitives.memory import Library

from .arithmetic import IntegerArithmetic, PoolPorts

CONTRACT = str(__doc__)


class DepthwisePool(IntegerArithmetic):
    """The pool unit of an integer NPU with ``depthwise``: a word that leaves has PFP sums of ``acc_bits``, above them
    the side bits, above those the number of features, and above that the number of the last step in a tuple's
    last word."""

    module = "pool_unit_depthwise"
    contract = CONTRACT
    sizes = ("pfp", "feature_bits", "weight_bits", "acc_bits")
    memory = "pool_kernels"
    value_cycles = timing.DEPTHWISE_LATENCY

    def __init__(self, b: Block, library: Library, npu: Npu, ports: PoolPorts):
        super().__init__(b, library, npu, ports)
        b.comment("What comes with a beat, in time with its word.")
        self._depthwise = b.reg("at_depthwise", init=None)
        beat = ports.beat
        average = beat.marks.average
        depthwise = beat.marks.depthwise
        w = npu.pool_last_piece_bits
        last_piece = [(b.reg("at_last_piece", w, init=None), beat.marks.last_piece)] if w else []
        self.hold(choose(average & ~depthwise, beat.taps, 1, COUNT_BITS), (self._depthwise, depthwise), *last_piece)
        row = library.loadable(b, memory_of(npu, self.memory), ports.bus, beat.kernel_row, read=beat.beat)
        self._weights = row["weights"]
        b.comment("The same, in time with what goes into the queue.")
        self.at = ports.late(b, self.delay)
        self.follow()
        last_pieces = [delayed(b, held, "last_piece", self.delay, w)[-1] for held, _ in last_piece]
        self.above = [*last_pieces, self.count]
        b.comment("The queue's row with this beat, lane by lane.")

    def value(self, k: int, tap: int) -> Signal:
        w = self.npu.array.weight_bits
        feature = super().value(k, tap)
        place = (tap * self.lanes + k) * w
        weight = self.b.wire(self.name("weight", k, tap), w, bits(self._weights, place, w))
        lane = self.name("", k, tap).lstrip("_")
        return _product(self.b, self.npu, lane, feature, weight, self._depthwise)


def _product(b: Block, npu: Npu, k: str, feature: Signal, weight: Signal, depthwise: Signal) -> Signal:
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

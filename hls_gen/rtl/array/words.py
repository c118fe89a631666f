"""Words with a match: XNOR of features and weights, and the OR of each word of lanes (spec A2, "OR within a word, count
over words").

    features[lanes] -+
                     XNOR --> OR of each word_lanes lanes --> found[lanes / word_lanes]
    weights[lanes] --+

Wires alone; what counts the words (popcount.py) has the register. A collecting PE has the products already.
"""

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, const, nonzero, side_by_side
from bitloom.hls_gen.rtl.primitives.memory import Library

from .popcount import popcount


def words_with_a_match(b: Block, npu: Npu, match: Signal, lanes: int) -> Signal:
    """Whether there is a match in each word of ``match``, which has ``lanes`` lanes: a wire, word 0 low."""
    step = npu.array.reducer.word_lanes
    hits = [b.wire(f"word_{k}", 1, nonzero(bits(match, k * step, step))) for k in range(lanes // step)]
    return b.wire("found", len(hits), side_by_side(hits))


def count_ones(b: Block, library: Library, flags: Signal, n: int, name: str) -> list[Signal]:
    """Numbers of ones in the parts of the ``n`` bits of ``flags``, a cycle later. Wires' names begin with ``name``."""
    counts = []
    for k, start in enumerate(range(0, n, timing.POPCOUNT_LANES)):
        size = min(timing.POPCOUNT_LANES, n - start)
        ones = b.wire(f"{name}ones_{k}", bits_for(size))
        ports = {"features": bits(flags, start, size), "weights": const(-1, size), "count": ones}
        b.instance(library.get(popcount, size, library.target), f"{name}popcount_{k}", **ports)
        counts.append(ones)
    return counts

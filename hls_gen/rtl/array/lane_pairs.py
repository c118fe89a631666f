"""Lane pairs: integers of a word, and sums and differences of two of them, once for all processing elements.

    features --> integers by their planes --> x, or x + y and x - y --> registers up to the stage that adds them

hls_gen/design/signed_sum.py says which lanes are pairs, and in which stage a processing element adds them
(pe_signed.py).
"""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.signed_sum import operand_widths, signed_sum, uses
from bitloom.hls_gen.rtl.primitives.block import Block, bits, side_by_side, sign_extend
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .accumulator import FEATURES


def lane_pairs(library: Library, npu: Npu) -> Block:
    """Operands of the sums of all processing elements that add integers: module ``lane_pairs_<lanes>``.

    Parameters
    ----------
    npu : Npu
        An NPU whose PEs add integers (`Npu.adds_integers`).

    Returns
    -------
    Block
        ``features`` to ``operands``, each operand in the cycle of its stage.
    """
    planes, lanes = npu.array.planes, npu.array.plane_lanes
    header = Header(
        __doc__,
        rate="one word a cycle",
        latency="1 cycle from features to the operands of the first stage, and 1 more for each stage",
        parameters={"lanes": lanes, "planes": planes},
    )
    b = Block(library.name(f"lane_pairs_{lanes}", npu), header, reset=False)
    features = b.input("features", npu.array.word_bits, means=FEATURES)
    operands = b.output("operands", sum(operand_widths(planes, lanes)), means="what the stages add, first stage low")

    # # #

    b.comment("Planes of each integer; the constant lanes and those that are left over say nothing.")
    places = [0, *range(2, planes + 1)]  # lanes.plane_order: the constant plane comes second
    values = [
        b.wire(f"value_{j}", planes, side_by_side([bits(features, place * lanes + j, 1) for place in places]))
        for j in range(lanes)
    ]
    unused = [bits(features, lanes, lanes)]
    if npu.array.kfp > (planes + 1) * lanes:
        unused.append(bits(features, (planes + 1) * lanes, npu.array.kfp - (planes + 1) * lanes))
    constant = side_by_side(unused)
    b.wire("lanes_unused", lanes + npu.array.kfp - (planes + 1) * lanes, constant)
    b.comment("Operands, each as late as its stage.")
    late = []
    for stage, part in uses(signed_sum(lanes)):
        x = values[part.first]
        w = planes
        if len(part.lanes) == 2:
            w = 2 * (planes + 1)
            x, y = (sign_extend(values[lane], planes + 1) for lane in part.lanes)
            name = "_".join(map(str, part.lanes))
            total = b.wire(f"sum_{name}", planes + 1, x + y)
            difference = b.wire(f"difference_{name}", planes + 1, x - y)
            x = side_by_side([total, difference])
        for k in range(stage):
            register = b.reg(f"operand_{part.first}_{k}", w, init=None)
            b.on(None, (register, x))
            x = register
        late.append(x)
    operands.assign(side_by_side(late))
    return b

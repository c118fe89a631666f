"""Integer processing element whose products come from multipliers that it shares with others (spec B11).

    products[kfp] (multipliers.py) --+--> sums of 4, in stages --> accumulator --> result
    carries[kfp] --------------------+

Together with the multipliers it computes what pe_integer.py does, in as many cycles. ``result`` holds from the last
beat of a window to that of the next.
"""

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, bits
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.text import Header

from .accumulator import WindowPorts
from .multipliers import LATENCY
from .pe_integer import sum_products


def pe_sums(library: Library, npu: Npu, carried: bool) -> Block:
    """Integer processing element without multipliers.

    Parameters
    ----------
    library : Library
        Where further modules come from.
    npu : Npu
        The NPU whose array it is part of.
    carried : bool
        Whether something is to be added to the products, as to those of all but the first of PEs that share.

    Returns
    -------
    Block
        Module ``pe_sums_<kfp>``, or ``pe_sums_carried_<kfp>``.
    """
    w, kind = npu.feature_bits + npu.weight_bits, "pe_sums_carried" if carried else "pe_sums"
    sizes = ("kfp", "feature_bits", "weight_bits", "acc_bits", "accumulators")
    header = Header(
        __doc__,
        rate="one beat a cycle",
        latency=f"{timing.pe_latency(npu) - LATENCY} cycles from the products of a window's last beat to result",
        parameters={name: getattr(npu, name) for name in sizes},
    )
    b = Block(library.name(f"{kind}_{npu.kfp}", npu), header, reset=False)
    products = b.input("products", npu.kfp * w, means="products of the beat, one a lane, lane 0 low")
    carries = b.input("carries", npu.kfp, means="what is added to each of them") if carried else None
    window = WindowPorts.ports(b, npu)

    # # #

    terms = [b.wire(f"product_{k}", w, bits(products, k * w, w)) for k in range(npu.kfp)]
    more = None if carries is None else [bits(carries, k, 1) for k in range(npu.kfp)]
    sum_products(b, library, npu, terms, window, more)
    return b

"""How many lanes designs have.

A lane is one multiply-accumulate of one input channel and one kernel a cycle, whatever the width of its operands:
kfp * kgp of every NPU. In a layer that reads bit planes side by side, a channel takes several lanes of a binary NPU;
where that NPU computes no other layer, they count as one. xnor_lanes are the lanes that are XNOR gates: kfp * kgp of
the binary NPUs.
"""

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.npu import Npu


def lanes(design: Design) -> dict[str, int]:
    """NPUs and lanes of a design, as the module's text counts them."""
    return {
        "npus": len(design.npus),
        "lanes": sum(npu_lanes(n) for n in design.npus),
        "xnor_lanes": sum(n.array.kfp * n.array.kgp for n in design.npus if n.engine == "binary"),
    }


def npu_lanes(npu: Npu) -> int:
    """Lanes of an NPU. One that reads nothing but frames, in bit planes, has one lane for all planes of a channel."""
    return (npu.array.plane_lanes if npu.ports.inlets == ("host",) else npu.array.kfp) * npu.array.kgp

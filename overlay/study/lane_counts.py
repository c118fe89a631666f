"""How many lanes designs have.

Lanes are those of `Npu.lanes`. xnor_lanes are the lanes that are XNOR gates: kfp * kgp of the binary NPUs.
"""

from bitloom.hls_gen.design.design import Design


def lanes(design: Design) -> dict[str, int]:
    """NPUs and lanes of a design, as the module's text counts them."""
    return {
        "npus": len(design.npus),
        "lanes": sum(npu.lanes for npu in design.npus),
        "xnor_lanes": sum(n.array.kfp * n.array.kgp for n in design.npus if n.engine == "binary"),
    }

"""Integer PEs whose products LUTs make: the area model against Yosys' figures of PEs that it was not fitted to."""

import pytest

from bitloom.hls_gen.design.design import Design
from bitloom.overlay.area_model.blocks import area_blocks
from bitloom.overlay.area_model.estimate import coefficients, of_blocks
from bitloom.overlay.area_model.products import dsps, narrow_product_luts
from tests.area_fit.samples import USUAL, directed


@pytest.mark.parametrize(
    ("bits", "kfp", "acc_bits", "accumulators", "lut", "ff"),
    [
        ((3, 4), 16, 22, 1, 355, 321),
        ((4, 3), 24, 24, 1, 530, 492),
        ((4, 4), 12, 20, 1, 445, 278),
        ((2, 5), 16, 24, 1, 309, 325),
        ((3, 3), 48, 28, 1, 754, 804),
        ((2, 2), 24, 18, 1, 239, 306),
        ((5, 2), 6, 16, 1, 119, 145),
        ((3, 4), 10, 24, 32, 227, 180),
    ],
    ids=str,
)
def test_a_pe_of_narrow_integers(
    bits: tuple[int, int], kfp: int, acc_bits: int, accumulators: int, lut: int, ff: int
) -> None:
    """Figures of one PE by Yosys 0.70; LUTs of accumulators that are memory are not in them."""
    fields = {"feature_bits": bits[0], "weight_bits": bits[1], "kfp": kfp, "acc_bits": acc_bits}
    design = Design(name="held_out", npus=(USUAL.changed(**fields, accumulators=accumulators),))
    assert design.npus not in [other.npus for _, other in directed()]
    (pe,) = [block for block in area_blocks(design) if block.kind == "pe_integer_lut"]
    by_model = of_blocks([pe._replace(times=1)], coefficients())
    assert by_model["lut"] == pytest.approx(lut, rel=0.05)
    assert by_model["ff"] == pytest.approx(ff, rel=0.05)


def test_the_fit_has_a_pe_for_every_product_that_luts_make() -> None:
    """From 2 bits on: an operand of one bit is no multiplication."""
    npus = [design.npus[0] for kind, design in directed() if kind == "pe_integer_lut"]
    seen = {(npu.array.feature_bits, npu.array.weight_bits) for npu in npus}
    either = {(min(bits), max(bits)) for bits in seen}
    assert either >= {(a, c) for a in range(2, 8) for c in range(a, 8) if not dsps(a, c)} - {(2, 5)}
    for left, right in either:
        luts = narrow_product_luts(left, right)
        assert left * right * 0.8 < luts == narrow_product_luts(right, left) < left * right * 2

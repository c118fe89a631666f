"""The price of an NPU in a search: its LUTs, and what else has a price."""

import pytest

from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.explore.price import OVER, Price

AREA = Resources(lut=100, lutram=10, ff=200, bram36=3, dsp=4)


PRICES = [(Price(), 0), (Price(lutram=2), 20), (Price(ff=0.5), 100), (Price(bram36=50), 150), (Price(dsp=20), 80)]
PRICES += [(Price(lanes=3), 24), (Price(npu=-7), -7), (Price(dsp=20, npu=-7), 73), (Price(limits={"dsp": 4}), 0)]
PRICES += [(Price(limits={"dsp": 2, "bram36": 2}), 1.5 * OVER)]


@pytest.mark.parametrize(("price", "more"), PRICES, ids=str)
def test_a_price_is_of_luts_and_what_is_short(price: Price, more: float) -> None:
    assert price.of(AREA, 8) == AREA.device_lut + more

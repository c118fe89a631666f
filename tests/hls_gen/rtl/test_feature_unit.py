"""Feature units: each has what stands elsewhere, a place in the results unit and arrays of golden's layer."""

import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.hls_gen.design.results import FEATURE_UNITS
from bitloom.hls_gen.rtl.results.results import PLACES


def test_each_has_a_place():
    assert PLACES.keys() == {unit.layer for unit in FEATURE_UNITS}


@pytest.mark.parametrize("unit", [unit for unit in FEATURE_UNITS if unit.table], ids=lambda unit: unit.mark)
def test_columns_are_arrays_of_golden(unit):
    shapes = unit.layer(name="layer", encoding=signed(8)).array_shapes_of(
        [Map(height=1, width=1, channels=1, encoding=signed(8))]
    )
    assert {*unit.table.columns.values()} <= shapes.keys()

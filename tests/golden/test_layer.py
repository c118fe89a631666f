import pytest

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.layer import Map
from bitloom.golden.layers.threshold import Threshold
from tests.errors import value_error


def test_a_map_knows_its_sizes():
    m = Map(height=2, width=3, channels=5, encoding=BIPOLAR)
    assert (m.shape, m.positions, m.size) == ((2, 3, 5), 6, 30)


@pytest.mark.parametrize("what", ["height", "width", "channels"])
@pytest.mark.parametrize("value", [0, 1.0, "1"])
def test_sizes_are_checked(what, value):
    with value_error(f"map: {what} must be an integer >= 1, got {value!r}"):
        Map(**{"height": 1, "width": 1, "channels": 1, "encoding": BIPOLAR, what: value})


@pytest.mark.parametrize("name", ["", "Conv", "_conv", "1conv", "conv-1", "conv 1", "cönv", "conv.1", 5, None])
def test_names_are_checked(name):
    with value_error(f"layer: name must be lower_snake_case, got {name!r}"):
        Threshold(name=name)


@pytest.mark.parametrize("name", ["a", "conv_1", "c1_", "a__b"])
def test_good_names(name):
    assert Threshold(name=name).name == name

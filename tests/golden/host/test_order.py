"""An order comes back from its pieces; what isn't an order of all values is refused before memory is taken."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitloom.golden.host.order import from_pieces, to_pieces
from tests.errors import value_error
from tests.host_outputs import ORDERS_OF_TEN


@given(st.permutations(range(9)))
def test_any_order(order: list[int]) -> None:
    pieces = to_pieces(np.array(order))
    assert from_pieces(pieces, len(order), "x").tolist() == order


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_axes_in_any_order_are_one_piece(shape: list[int], random) -> None:
    """Also axes that are read backwards."""
    places = np.arange(np.prod(shape)).reshape(shape).transpose(random.sample(range(len(shape)), len(shape)))
    order = places[tuple(slice(None, None, random.choice([1, -1])) for _ in shape)].ravel()
    pieces = to_pieces(order)
    assert len(pieces) == 1
    np.testing.assert_array_equal(from_pieces(pieces, order.size, "x"), order)


def test_maps_behind_each_other_are_a_piece_each() -> None:
    maps = [np.arange(24).reshape(2, 3, 4), 24 + np.arange(60).reshape(5, 3, 4)]
    order = np.concatenate([each.transpose(2, 0, 1).ravel() for each in maps])
    assert to_pieces(order) == [[0, 4, 1, 6, 4], [24, 4, 1, 15, 4]]


@pytest.mark.parametrize("case", ORDERS_OF_TEN)
def test_orders_of_ten(case: str) -> None:
    pieces, places = ORDERS_OF_TEN[case]
    if places:
        assert from_pieces(pieces, 10, "input.order").tolist() == places
    else:
        with value_error("input.order must have each of 10 places once"):
            from_pieces(pieces, 10, "input.order")


@pytest.mark.parametrize("pieces", [[[0.0, 10, 1]], [[0, "10", 1]], [*range(10)], [[0, 10, None]]])
def test_what_is_no_integer(pieces: list) -> None:
    with pytest.raises(TypeError):
        from_pieces(pieces, 10, "input.order")

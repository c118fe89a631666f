import pytest

from bitloom.golden.window import Window
from tests.errors import value_error


def test_positions_of_a_map_of_2_x_3():
    """Positions of the map: 0 1 2 / 3 4 5. Padding of one row above, one column to the right; stride (1, 2)."""
    window = Window(kernel=(2, 2), stride=(1, 2), padding=(1, 0, 0, 1))
    assert window.output_size(2, 3) == (2, 2)
    assert window.positions(2, 3).tolist() == [[-1, -1, 0, 1], [-1, -1, 2, -1], [0, 1, 3, 4], [2, -1, 5, -1]]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": (0, 3)}, "pool_1: kernel must be >= 1, got (0, 3)"),
        ({"kernel": (3,)}, "pool_1: kernel must be 2 integers, got (3,)"),
        ({"kernel": (3, 3.0)}, "pool_1: kernel must be 2 integers, got (3, 3.0)"),
        ({"kernel": (3, 3), "stride": (1, 0)}, "pool_1: stride must be >= 1, got (1, 0)"),
        ({"kernel": (3, 3), "stride": (1, 1, 1)}, "pool_1: stride must be 2 integers, got (1, 1, 1)"),
        ({"kernel": (3, 3), "padding": (0, -1, 0, 0)}, "pool_1: padding must be >= 0, got (0, -1, 0, 0)"),
        ({"kernel": (3, 3), "padding": (1, 1)}, "pool_1: padding must be 4 integers, got (1, 1)"),
        *(
            (
                {"kernel": (2, 3), "padding": padding},
                f"pool_1: padding (top, left, bottom, right) must be smaller than the kernel (2, 3), got {padding}",
            )
            for padding in ((2, 0, 0, 0), (0, 3, 0, 0), (0, 0, 2, 0), (0, 0, 0, 3))
        ),
    ],
)
def test_parameters_are_checked(parameters, message):
    with value_error(message):
        Window(**parameters).check("pool_1")

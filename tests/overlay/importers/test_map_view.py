"""Views: what a tensor is of a map, which operations can be taken of it, and the map that is made again of it."""

from fractions import Fraction

import numpy as np
import pytest

from bitloom.golden.window import Window
from bitloom.overlay.importers.errors import Unsupported
from bitloom.overlay.importers.links import Line
from bitloom.overlay.importers.map_view import MapView
from bitloom.overlay.importers.operations import AxesReduction, Closing, Elementwise, Layout, Linear, Padding, Pooling
from bitloom.overlay.importers.sections import in_order

SIZE = (3, 4, 6)
NAMED = {"name": "n", "op": "Op", "reads": ("x",), "makes": "y"}
POOL = Pooling(**NAMED, window=Window(kernel=(2, 2)), average=False)
CLOSING = Closing(**NAMED, classes=6, apart=1)
REDUCTION = AxesReduction(**NAMED, axes=(2, 3), average=True)


def linear(window=None, inputs=6):
    shape = (2, inputs, *window.kernel) if window else (2, inputs)
    return Linear(**NAMED, weight=np.ones(shape, np.int64), scale=np.full(2, Fraction(1), object), window=window)


def line(*shape):
    """A number for each channel of a tensor of this shape."""
    numbers = np.array([Fraction(number) for number in range(1, np.prod(shape) + 1)], object).reshape(shape)
    return Elementwise(**NAMED, link=Line(multiply=numbers, add=0 * numbers))


def padding(value=0, growth=()):
    return Padding(**NAMED, widths=((0, 0), (0, 0), (1, 1), (1, 1)), value=Fraction(value), growth=growth)


def layout(index):
    return Layout(**NAMED, order=index)


ORDER = in_order(SIZE)
PLAIN = MapView(index=ORDER, size=SIZE)
PLACES = np.arange(ORDER.size).reshape(ORDER.shape)
CUT = PLAIN.laid_out(layout(PLACES[:, 1:4]))
FLAT = PLAIN.laid_out(layout(PLACES.reshape(1, -1)))
PADDED = PLAIN.around(padding(1))
GROWN = PLAIN.around(padding(0, growth=(1, 1, 2, 2)))
REPEATED = PLAIN.laid_out(layout(PLACES.repeat(2, axis=3)))
SHUFFLED = PLAIN.laid_out(layout(PLACES[:, :, ::-1]))
BLOCKS = PLAIN.laid_out(layout(PLACES.reshape(1, 6, 3, 2, 2).transpose(0, 1, 4, 2, 3).reshape(1, 12, 3, 2)))
WINDOW = linear(Window(kernel=(3, 3)))
POINT = linear(Window(kernel=(1, 1)))
DENSE = linear(inputs=72)

TAKEN = [
    (PLAIN, [POOL, CLOSING, REDUCTION, WINDOW, POINT, line(1, 6, 1, 1), padding(), layout(PLACES[:, :2])]),
    (CUT, [linear(Window(kernel=(3, 3)), 3), layout(np.arange(36).reshape(1, 36)[:, :5])]),
    (FLAT, [DENSE, CLOSING, line(1, 1)]),
    (PADDED, [padding(1), POOL]),
    (GROWN, [WINDOW, padding(growth=(1, 1, 2, 2))]),
    (REPEATED, [WINDOW]),
    (SHUFFLED, [POINT, CLOSING, WINDOW]),  # a window that isn't taken in this order is refused later
    (BLOCKS, []),
]
NOT_TAKEN = [
    (CUT, [POOL, CLOSING, REDUCTION, line(1, 3, 1, 1), padding()]),
    (PADDED, [WINDOW, CLOSING, REDUCTION, padding(2)]),  # 1 is padded with, where a padded tap is worth 0
    (GROWN, [CLOSING]),
    (REPEATED, [CLOSING, line(1, 1, 1, 8), padding(growth=(1, 1, 2, 2))]),
    (
        BLOCKS,
        [
            layout(np.arange(72).reshape(1, 12, 3, 2)[:, :3]),
            POOL,
            padding(),
            linear(Window(kernel=(2, 2)), 12),
            line(1, 12, 1, 1),
        ],
    ),
]


@pytest.mark.parametrize(
    ("view", "operation", "taken"),
    [(view, operation, True) for view, operations in TAKEN for operation in operations]
    + [(view, operation, False) for view, operations in NOT_TAKEN for operation in operations],
)
def test_what_can_be_taken(view, operation, taken):
    assert view.takes(operation) == taken


@pytest.mark.parametrize("view", [CUT, PADDED, GROWN, REPEATED, BLOCKS])
def test_a_map_is_copied(view):
    """Each output of the copy has one value of the map, or is padding; the new map has the tensor's values."""
    copy, index = view.copy(POOL)
    weight = copy.weight(SIZE[2])
    taps = copy.window.positions(*SIZE[:2])  # (positions, taps): of the map, -1 where there is none
    each = weight.reshape(len(weight), -1, weight.shape[3])
    copied = np.full((len(taps), len(weight)), -1)
    for output in range(len(weight)):
        for tap, channel in np.argwhere(each[output]):
            channel = output if weight.shape[3] == 1 else channel
            valid = taps[:, tap] >= 0
            assert (copied[valid, output] == -1).all()
            copied[valid, output] = taps[valid, tap] * SIZE[2] + channel
    np.testing.assert_array_equal(copied.ravel()[index], view.index)


def test_numbers_of_channels():
    """Numbers that spread over the tensor are those of the map's channels."""
    numbers = np.array([Fraction(number) for number in (5, 7, 9, 2, 4, 8)], object)
    assert PLAIN.channel_values(numbers.reshape(1, 6, 1, 1), "it").tolist() == numbers.tolist()
    with pytest.raises(Unsupported, match=r"\Ait must be the same at all places of a channel\Z"):
        PLAIN.channel_values(numbers[:4].reshape(1, 1, 1, 4), "it")


def test_a_map_on_its_side():
    column = MapView(index=in_order((3, 1, 6)).transpose(0, 1, 3, 2), size=(3, 1, 6))
    window = Window(kernel=(1, 2))
    assert column.lies_aside(window)
    assert not column.lies_aside(Window(kernel=(1, 1)))  # it reads positions in any order
    assert not column.aside.lies_aside(window)

"""Numbers that a search tries for values of an NPU with each folding."""

from collections.abc import Callable, Mapping
from itertools import product
from typing import NamedTuple

from bitloom.hls_gen.design import flat

from .layer_demand import LayerDemand

LINE_TAPS = 3
"""Taps of a line of the kernel that arrays and pool units of a search take in a cycle, if several: those of 3 x 3."""


class Tried(NamedTuple):
    """Numbers that are tried for a value."""

    numbers: tuple[int, ...]
    """One after the other until one is fast enough; the fastest is the last."""
    helps: Callable[[LayerDemand], bool] = lambda _layer: True
    """Whether a layer may be faster by it; by default each may."""


TRIED: dict[str, dict[str, Tried]] = {
    "binary": {},
    "integer": {
        "accumulators": Tried((1, 4)),  # with 4, results of short windows need not wait for each other
        "pool_line_taps": Tried((1, LINE_TAPS), lambda layer: bool(layer.formed_pools)),
    },
}
"""By engine and name of a value."""
FASTEST = {name: tried.numbers[-1] for values in TRIED.values() for name, tried in values.items()}
"""The last of these numbers by name."""


def combinations(numbers: Mapping[str, tuple[int, ...]]) -> list[dict[str, int]]:
    """A value by each name, in all ways; the last name's changes first."""
    return [dict(zip(numbers, each)) for each in product(*numbers.values())]


def pool_units() -> list[dict[str, int]]:
    """The values of pool units that are tried, by name."""
    values = {name: tried.numbers for each in TRIED.values() for name, tried in each.items()}
    return combinations({name: numbers for name, numbers in values.items() if name in flat.NAMES["pool_unit"]})

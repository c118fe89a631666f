"""Values of an NPU that a search finds: what people see of them, and the numbers that are tried with each folding."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from bitloom.hls_gen.design.npu import Npu

from .layer_demand import LayerDemand

ACCUMULATORS = (1, 4)
"""Of a PE: with 4, results of short windows need not wait for each other; on the binary engine those of formers."""
LINE_TAPS = 3
"""Taps of a line of the kernel that arrays and pool units of a search take in a cycle, if several: those of 3 x 3."""
POOL_LINES = 2
"""Lines of the kernel that pool units of a search take in a cycle, if several; of lines that share lanes, too."""


class Tried(NamedTuple):
    """Numbers that are tried for a value of NPUs, with each folding."""

    numbers: tuple[int, ...]
    """One after the other until one is fast enough; the fastest is the last."""
    helps: Callable[[LayerDemand], bool] = lambda _layer: True
    """Whether a layer may be faster by it; by default each may."""


def _lines_of_pools(layer: LayerDemand) -> bool:
    """Whether a line former can feed the layer's pool."""
    return bool(layer.formed_pools)


@dataclass(frozen=True, kw_only=True)
class Searched:
    """A value of an NPU that a search finds."""

    name: str
    """Its flat name."""
    title: str = ""
    """Heading of its column in the table of NPUs; nothing where it has none."""
    words: str = ""
    """Words in the last column for an NPU in which the value isn't the default; "{}" stands for the value."""
    searched: str = ""
    """Words for a search that varies the value."""
    tried: Tried | None = None
    """The numbers that are tried; None of a value that loops of one_npu.py choose otherwise."""

    def cell(self, npu: Npu) -> str:
        """The text in the column; nothing where the NPU lacks the value."""
        value = npu.value(self.name)
        return "" if value == 0 or not npu.has(self.name) else f"{value:,}" if isinstance(value, int) else str(value)


SEARCHED = (
    Searched(name="kfp", title="KFP"),
    Searched(name="kgp", title="KGP"),
    Searched(name="ol", title="OL"),
    Searched(name="pfp", title="PFP"),
    Searched(name="planes", title="planes"),
    Searched(name="accumulators", title="accumulators", tried=Tried(ACCUMULATORS)),
    Searched(name="kernel_rows", title="kernel rows"),
    Searched(name="kernel_ram", title="kernel RAM"),
    Searched(name="tuple_words", title="tuple words"),
    Searched(name="line_taps", words="{} taps a beat", searched="several taps a beat"),
    Searched(
        name="pool_line_taps",
        words="{} taps a cycle in the pool unit",
        tried=Tried((1, LINE_TAPS), _lines_of_pools),
    ),
    Searched(
        name="pool_lines",
        words="{} lines a cycle in the pool unit",
        tried=Tried((1, POOL_LINES), _lines_of_pools),
    ),
    Searched(
        name="pool_lane_lines",
        words="{} lines that share lanes in the pool unit",
        tried=Tried((1, POOL_LINES), _lines_of_pools),
    ),
    Searched(name="window_former", words="window former", searched="window former"),
    Searched(name="depthwise", words="depthwise pool unit", searched="pool units with weights"),
    Searched(name="kernels_per_multiplier", words="{} kernels a multiplier", searched="shared multipliers"),
    Searched(name="lut_products", words="additions in LUTs", searched="additions in LUTs"),
    Searched(name="raster", words="counters", searched="tables and counters"),
)
"""In the order of tables."""
TRIED: Mapping[str, Mapping[str, Tried]] = {
    "binary": {"accumulators": Tried(ACCUMULATORS, lambda layer: layer.with_former is not None)},
    "integer": {value.name: value.tried for value in SEARCHED if value.tried},
}
"""Numbers that are tried, by engine and name of a value."""
FASTEST = {name: tried.numbers[-1] for values in TRIED.values() for name, tried in values.items()}
"""The last of these numbers by name."""


def combinations(numbers: Mapping[str, tuple[int, ...]]) -> list[dict[str, int]]:
    """A value by each name, in all ways; the last name's changes first."""
    return [dict(zip(numbers, each)) for each in product(*numbers.values())]


def pool_units() -> list[dict[str, int]]:
    """Values, by name, of pool units that split windows in each way in which those that are tried do: lines that share
    lanes are more lines, here for any number of channels."""
    numbers = {name: tried.numbers for name, tried in TRIED["integer"].items()}
    lines = {apart * shared for apart, shared in product(numbers["pool_lines"], numbers["pool_lane_lines"])}
    return combinations({"pool_line_taps": numbers["pool_line_taps"], "pool_lines": tuple(sorted(lines))})

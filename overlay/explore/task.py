"""Tasks of the search, the candidate that a task makes, and how prices rise where a budget is exceeded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bitloom.hls_gen.compiler.ways import with_equal_steps

from .candidate import Candidate
from .engines import Engines
from .one_npu import MappedNpu
from .price import Price
from .variations import MapSetting

FEW_NPUS = Price()
"""Every NPU costs what it takes, so that there are few of them."""
STEPS = {"lutram": 0.5, "bram36": 30.0, "lanes": 0.5, "dsp": 20.0, "ff": 0.1}
"""First price of what is over its limit, in LUTs a unit."""


@dataclass(frozen=True)
class Connection:
    """How NPUs shall be connected, and of which engines."""

    engines: Engines
    """Engines of the NPUs."""
    mapping: tuple[int, ...] | None = None
    """NPU of each layer; None: a chain, in which the search chooses."""
    closed: bool = False
    """Whether the NPUs are a ring: the last one leads to NPU 0."""


@dataclass(frozen=True)
class Task:
    """A try of the search: a connection of NPUs in a setting, an interval, and the price to begin with."""

    connection: Connection
    setting: MapSetting
    interval: int
    price: Price


def raised(price: Price, over: Iterable[str]) -> Price:
    """A price at which each of ``over`` costs twice as much as before."""
    return replace(price, **{key: max(STEPS[key], 2 * getattr(price, key)) for key in over})


def between(low: Price, high: Price) -> Price:
    """The price midway between two; an NPU's price is that of ``high``."""
    return replace(high, **{key: (getattr(low, key) + getattr(high, key)) / 2 for key in STEPS})


def candidate_of(name: str, mapped_npus: Sequence[MappedNpu], stream_bits: int, map_order: str) -> Candidate:
    """The candidate that NPUs with their layers make for the network of that name."""
    on = {i: n for n, mapped_npu in enumerate(mapped_npus) for i in mapped_npu.indices if i not in mapped_npu.copies}
    npus = with_equal_steps([mapped_npu.npu for mapped_npu in mapped_npus])
    return Candidate(name, npus, tuple(on[i] for i in sorted(on)), stream_bits, map_order)

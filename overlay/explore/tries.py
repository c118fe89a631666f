"""What the search tries for one interval: chains of NPUs, at prices that rise until the budget holds.

An interval is the number of cycles that a frame may take on each NPU. Prices stand for limits: where block RAM or lanes
are over the budget, they are charged more, until the chain keeps to it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bitloom.golden.network import Model
from bitloom.hls_gen.design.widths import FEATURE_BITS
from bitloom.overlay.build.small_npu import needs_integer

from .budget import Budget
from .candidate import Candidate, Figures, figures
from .chain import MOST_LUT_ROWS, MOST_LUT_ROWS_FOR_BLOCKS, Chain, Price, Segment
from .layer_demand import LayerDemand

SHARES = (1.0, 0.985, 0.95, 0.9)
"""Intervals that are tried for a rate, as shares of the rate's own: NPUs may wait for each other."""
SPAN = 64
"""Ratio of a sweep's longest interval to its shortest."""
ROUNDS = 5
"""Attempts to bring a chain within its budget."""
FEW_NPUS = Price()
"""Every NPU costs what it takes, so that there are few of them."""
WAITING, LAST_WAITING = 700.0, 2_000.0
"""LUTs by which an NPU is made cheaper where NPUs wait for each other, at a time and in all: with more of them less
work lies on each."""
STEPS = {"bram36": 30.0, "lanes": 0.5, "dsp": 20.0, "ff": 0.1}
"""First price of what is over its limit, in LUTs a unit."""


@dataclass(frozen=True)
class Row:
    """A candidate that was tried.

    Attributes
    ----------
    candidate
        NPUs, mapping and dataflows.
    figures
        Its area, cycles and latency, by the models.
    asked
        Interval that the search was given, in cycles.
    fits
        Whether it keeps to the budget.
    """

    candidate: Candidate
    figures: Figures
    asked: int
    fits: bool

    def to_dict(self) -> dict[str, Any]:
        """JSON data."""
        f = self.figures
        return {"npus": len(self.candidate.npus), "cycles_per_frame": f.cycles, "latency_cycles": f.latency,
                "lanes": f.lanes, "lut": f.area.lut, "lutram": f.area.lutram, "ff": f.area.ff,
                "bram36": f.area.bram36, "dsp": f.area.dsp, "fits": self.fits,
                "foldings": self.candidate.to_dict()}  # fmt: skip


class Tries:
    """The search's data, and what is done for one interval; an object can be sent to another process.

    Parameters
    ----------
    model
        The trained network.
    made
        What its layers ask of an NPU.
    budget
        What a design may take, and the rate that is asked for.
    stream_bits
        Width of both streams, 32 or 64.
    map_order
        "pull" or "raster".
    """

    def __init__(self, model: Model, made: Sequence[LayerDemand], budget: Budget, stream_bits: int, map_order: str):
        self.model, self.budget, self.map_order, self.stream_bits = model, budget, map_order, stream_bits
        lut_rows = MOST_LUT_ROWS if budget.bram36 is None else MOST_LUT_ROWS_FOR_BLOCKS
        self.chain = Chain(made, stream_bits, feature_bits(model, made), lut_rows=lut_rows)
        self._macs = sum(layer.macs for layer in made)
        self._seen: dict[tuple[Segment, ...], tuple[Candidate, Figures] | None] = {}

    def intervals(self, points: int) -> list[int]:
        """Intervals to try: a sweep of ``points`` from the fastest one on.

        Where a rate is asked for, some that are near it, and of the sweep the shorter ones, which may make a smaller
        design; the fastest one in any case, to tell what can be reached.
        """
        fastest = self.fastest()
        sweep = [round(fastest * SPAN ** (k / max(1, points - 1))) for k in range(points)]
        if self.budget.cycles is None:
            return sweep
        asked = [max(1, int(self.budget.cycles * share)) for share in SHARES]
        return [*dict.fromkeys([*asked, fastest, *(interval for interval in sweep if interval < asked[-1])])]

    def fastest(self) -> int:
        """A short interval that has a chain: a cycle for each tap of the layer with most, or as fast as a frame comes.

        Raises
        ------
        ValueError
            If no interval has a chain.
        """
        least = max(max(layer.taps_in_all, layer.pool_taps) for layer in self.chain.layers)
        while self.chain.cheapest(least, FEW_NPUS) is None:
            least = least * 5 // 4 + 1
            if least > 1 << 40:
                raise ValueError(f"{self.model.network.name}: no folding was found")
        return least

    def rows(self, task: tuple[int, Price]) -> list[Row]:
        """Everything that is tried for a task: an interval, and the price to begin with.

        Prices of what is over its limit rise until the budget holds, and then fall again as far as it does. Where NPUs
        wait too long for each other, NPUs become cheaper, so that there are more of them.
        """
        interval, price = task
        out = list[Row]()
        cheap, dear = price, None  # the highest price at which the budget didn't hold, and the lowest at which it did
        for _ in range(ROUNDS):
            segments = self.chain.cheapest(interval, price)
            made = None if segments is None else self._figures(tuple(segments))
            if made is None:
                break
            candidate, found = made
            excess = self.budget.excess(found)
            out.append(Row(candidate, found, interval, not excess))
            if self.budget.lanes is not None and self._macs > self.budget.lanes * interval:
                break  # no folding does it with so few lanes
            over = excess.keys() & STEPS.keys()
            if over:
                cheap = price
                price = _raised(price, over) if dear is None else _between(price, dear)
            elif "cycles" in excess and price.npu > -LAST_WAITING:
                cheap = price = replace(price, npu=price.npu - WAITING)
            elif price != cheap:
                dear = price
                price = _between(cheap, dear)
            else:
                break
        return out

    def _figures(self, segments: tuple[Segment, ...]) -> tuple[Candidate, Figures] | None:
        """The candidate of a chain with its figures, None where it makes no design; each chain is looked at once."""
        if segments not in self._seen:
            candidate = candidate_of(self.model.network.name, segments, self.stream_bits, self.map_order)
            found = figures(self.model, candidate)
            self._seen[segments] = None if found is None else (candidate, found)
        return self._seen[segments]


def candidate_of(name: str, segments: Sequence[Segment], stream_bits: int, map_order: str) -> Candidate:
    """The candidate that a chain makes for the network of that name."""
    mapping = [k for k, segment in enumerate(segments) for _ in range(segment.first, segment.last + 1)]
    return Candidate(name, tuple(segment.npu for segment in segments), tuple(mapping), stream_bits, map_order)


def feature_bits(model: Model, made: Sequence[LayerDemand]) -> int:
    """Width of the features of all maps: 1 for the binary engine, for the integer engine what all maps need."""
    from bitloom.hls_gen.compiler.lowering import lower_integer

    if not needs_integer(model):
        return 1
    weight_bits = max(layer.weight_bits for layer in made)
    for bits in range(2, FEATURE_BITS):
        try:
            lower_integer(model, bits, weight_bits)
        except ValueError:
            continue
        return bits
    return FEATURE_BITS


def _raised(price: Price, over: Iterable[str]) -> Price:
    """A price at which each of ``over`` costs twice as much as before."""
    return replace(price, **{key: max(STEPS[key], 2 * getattr(price, key)) for key in over})


def _between(low: Price, high: Price) -> Price:
    """The price midway between two; an NPU's price is that of ``high``."""
    return replace(high, **{key: (getattr(low, key) + getattr(high, key)) / 2 for key in STEPS})

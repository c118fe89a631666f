"""What the search tries for one interval: NPUs in a chain or a ring, at prices that rise until the budget holds.

An interval is the number of cycles that a frame may take on each NPU. Prices stand for limits: where block RAM or lanes
are over the budget, they are charged more, until the NPUs keep to it. What came of it is then varied (variations.py).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.flow import Deadlock

from .budget import Budget
from .candidate import Candidate, Figures, figures
from .chain import Chain
from .demands import Engines, layers, possible_engines
from .estimate import estimate
from .one_npu import MOST_LUT_ROWS, MOST_LUT_ROWS_FOR_BLOCKS, NpuChoices, Price, Segment
from .ring import cheapest_ring, rings
from .variations import MapSetting, dataflows, in_settings, streamed

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
LEAST_SAVED = 0.01
"""Share of the LUTs that a variation must save to be worth a look."""
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
        return {"npus": len(self.candidate.npus), "topology": self.candidate.topology,
                "cycles_per_frame": f.cycles, "latency_cycles": f.latency,
                "lanes": f.lanes, "lut": f.area.lut, "lutram": f.area.lutram, "ff": f.area.ff,
                "bram36": f.area.bram36, "dsp": f.area.dsp, "fits": self.fits,
                "foldings": self.candidate.to_dict()}  # fmt: skip


@dataclass(frozen=True)
class Joining:
    """How NPUs shall be joined, and of which engines.

    Attributes
    ----------
    engines
        The engine of each weighted layer.
    ring
        NPU of each layer in a ring; None: a chain, in which the search chooses.
    """

    engines: Engines
    ring: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Task:
    """What is tried at a time: a way to join NPUs in a setting, an interval, and the price to begin with."""

    way: Joining
    setting: MapSetting
    interval: int
    price: Price


class Tries:
    """The search's data, and what is done for one interval; an object can be sent to another process.

    Parameters
    ----------
    model
        The trained network.
    budget
        What a design may take, and the rate that is asked for.
    stream_bits
        Width of both streams, 32 or 64.
    settings
        What is tried beside foldings, first that of the sweep; each also with streamed weights.

    Raises
    ------
    ValueError
        If no engine computes the network.
    """

    def __init__(self, model: Model, budget: Budget, stream_bits: int, settings: Sequence[MapSetting]):
        self.model, self.budget, self.stream_bits, self.settings = model, budget, stream_bits, tuple(settings)
        self.engines = possible_engines(model)
        lut_rows = MOST_LUT_ROWS if budget.bram36 is None else MOST_LUT_ROWS_FOR_BLOCKS
        self.choices = dict[tuple[Engines, MapSetting], NpuChoices]()
        for engines in self.engines:
            for setting in settings:
                made = layers(model, setting.map_order, engines, counters=setting.counters)
                for where in (setting, replace(setting, streamed=True)):
                    self.choices[engines, where] = NpuChoices(
                        made, stream_bits, lut_rows, where.counters, where.streamed
                    )
        self.layers = self.choices[self.engines[0], self.settings[0]].layers
        self._macs = sum(layer.macs for layer in self.layers)
        self._seen: dict[Any, Figures | None] = {}

    def ways(self) -> list[Joining]:
        """Chains and rings that are tried; the first one is the chain that most is tried of."""
        chains = [Joining(engines) for engines in self.engines]
        return chains + [Joining(self.engines[0], mapping) for mapping in rings(self.engines[0])]

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
        least = max(max(layer.taps_in_all, layer.pool_taps) for layer in self.layers)
        while self._segments(Task(self.ways()[0], self.settings[0], least, FEW_NPUS)) is None:
            least = least * 5 // 4 + 1
            if least > 1 << 40:
                raise ValueError(f"{self.model.network.name}: no folding was found")
        return least

    def _segments(self, task: Task) -> list[Segment] | None:
        """The NPUs of a task at its price; None where there are none that are fast enough."""
        choices = self.choices[task.way.engines, task.setting]
        if task.way.ring is not None:
            return cheapest_ring(choices, task.way.ring, task.interval, task.price)
        return Chain(choices).cheapest(task.interval, task.price)

    def rows(self, task: Task) -> list[Row]:
        """Everything that is tried for a task.

        Prices of what is over its limit rise until the budget holds, and then fall again as far as it does. Where NPUs
        of a chain wait too long for each other, NPUs become cheaper, so that there are more of them; those of a ring
        get less time.
        """
        out, asked, ring = list[Row](), task.interval, task.way.ring is not None
        cheap, dear = task.price, None  # the highest price at which the budget didn't hold, the lowest at which it did
        for _ in range(ROUNDS):
            segments, price = self._segments(task), task.price
            row = None if segments is None else self._row(self._candidate(segments, task.setting), asked)
            if row is None:
                break
            out.append(row)
            if self.budget.lanes is not None and self._macs > self.budget.lanes * task.interval:
                break  # no folding does it with so few lanes
            excess = self.budget.excess(row.figures)
            over = excess.keys() & STEPS.keys()
            if over:
                cheap = price
                task = replace(task, price=_raised(price, over) if dear is None else _between(price, dear))
            elif "cycles" in excess and ring:
                task = replace(task, interval=int(task.interval / excess["cycles"]))
            elif "cycles" in excess and price.npu > -LAST_WAITING:
                cheap = replace(price, npu=price.npu - WAITING)
                task = replace(task, price=cheap)
            elif price != cheap:
                dear = price
                task = replace(task, price=_between(cheap, dear))
            else:
                break
        return out

    def varied(self, row: Row) -> list[Row]:
        """What varies a row: other settings, dataflows and streamed weights, the foldings as they are.

        Only what promises something is run in the flow model, which takes most of the time.
        """
        candidate = row.candidate
        choices = {setting: made for (engines, setting), made in self.choices.items() if engines == candidate.engines}
        made = [self._row(other, row.asked) for other in dataflows(candidate, choices)]
        for other in (*in_settings(candidate, choices), *streamed(candidate, choices)):
            if self._saves(other, row.figures):
                made.append(self._row(other, row.asked))
        return [found for found in made if found is not None]

    def _saves(self, candidate: Candidate, found: Figures) -> bool:
        """Whether a candidate takes fewer LUTs, or less of what is over its limit."""
        try:
            area = estimate(candidate.design(self.model))
        except (ValueError, Deadlock):
            return False
        other = replace(found, area=area)
        before, after = self.budget.excess(found), self.budget.excess(other)
        return other.lut < (1 - LEAST_SAVED) * found.lut or any(after.get(key, 0) < before[key] for key in before)

    def _candidate(self, segments: Sequence[Segment], setting: MapSetting) -> Candidate:
        """The candidate of NPUs."""
        return candidate_of(self.model.network.name, segments, self.stream_bits, setting.map_order)

    def _row(self, candidate: Candidate, asked: int) -> Row | None:
        """The row of a candidate, None where it makes no design; each candidate is looked at once."""
        if candidate.key not in self._seen:
            self._seen[candidate.key] = figures(self.model, candidate)
        found = self._seen[candidate.key]
        return None if found is None else Row(candidate, found, asked, self.budget.holds(found))


def candidate_of(name: str, segments: Sequence[Segment], stream_bits: int, map_order: str) -> Candidate:
    """The candidate that NPUs with their layers make for the network of that name."""
    on = {i: n for n, segment in enumerate(segments) for i in segment.own}
    npus = tuple(segment.npu for segment in segments)
    return Candidate(name, npus, tuple(on[i] for i in range(len(on))), stream_bits, map_order)


def _raised(price: Price, over: Iterable[str]) -> Price:
    """A price at which each of ``over`` costs twice as much as before."""
    return replace(price, **{key: max(STEPS[key], 2 * getattr(price, key)) for key in over})


def _between(low: Price, high: Price) -> Price:
    """The price midway between two; an NPU's price is that of ``high``."""
    return replace(high, **{key: (getattr(low, key) + getattr(high, key)) / 2 for key in STEPS})

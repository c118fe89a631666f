"""Tries of the search for one interval: NPUs in a chain or a ring, at prices that rise until the budget holds.

An interval is the number of cycles that a frame may take on each NPU. Prices stand for limits: where block RAM or lanes
are over the budget, they are charged more, until the NPUs keep to it. What came of it is then varied (variations.py).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple

from bitloom.golden.network import Model
from bitloom.hls_gen.design.copy_names import is_copy
from bitloom.hls_gen.design.design import LEAST_SPILL_WORDS, MOST_NPUS, Design
from bitloom.hls_gen.design.limits import may_be_built
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area_model.estimate import estimate

from .budget import Budget
from .candidate import Candidate
from .chain import Chain
from .connections import Connections
from .engines import Engines
from .figures import Figures, KnownFlows, figures
from .one_npu import MOST_LUT_ROWS, MOST_LUT_ROWS_FOR_BLOCKS, MappedNpu, NpuChoices
from .ring import cheapest_ring
from .task import FEW_NPUS, STEPS, Task, between, candidate_of, raised
from .variations import MapSetting, dataflows, in_settings

SHARES = (1.0, 0.985, 0.95, 0.9)
"""Intervals that are tried for a rate, as shares of the rate's own: NPUs may wait for each other."""
SPAN = 64
"""Ratio of a sweep's longest interval to its shortest."""
KEPT = 20_000
"""NPUs of which sizes are kept, about: 100 MB."""
ROUNDS = 5
"""Attempts to bring a chain within its budget."""
WAITING, LAST_WAITING = 700.0, 2_000.0
"""LUTs by which an NPU is made cheaper where NPUs wait for each other, at a time and in all: with more of them less
work lies on each."""
LEAST_SAVED = 0.01
"""Share of the LUTs that a variation must save to be worth a look."""
BEATEN = 0.9
"""A candidate is not run in the flow model if a known row takes no more LUTs, and at most this share of the cycles that
the search estimates for the candidate: the flow model may find fewer cycles than the estimate, but not so few."""
FAR = 1.05
"""Where runs of the flow model take long, a candidate whose estimated area is more than this many times a limit is left
out without a run, which would find its exact area."""


@dataclass(frozen=True)
class Row:
    """A candidate that was tried."""

    candidate: Candidate
    """NPUs, mapping and dataflows."""
    figures: Figures
    """Its area, cycles and latency, by the models."""
    asked: int
    """Interval that the search was given, in cycles."""
    fits: bool
    """Whether it keeps to the budget."""

    def to_dict(self) -> dict[str, Any]:
        """JSON data."""
        f = self.figures
        return {
            "npus": len(self.candidate.npus),
            "topology": self.candidate.topology,
            "cycles_per_frame": f.cycles,
            "latency_cycles": f.latency,
            "lanes": f.lanes,
            **f.area.figures,
            "fits": self.fits,
            **({"cycles_by_network": dict(f.each)} if f.each else {}),
            "foldings": self.candidate.to_dict(),
        }


class Offer(NamedTuple):
    """The NPUs that a task gives at its price, with their excess over the budget, before the flow model runs."""

    task: Task
    """The task, with that price."""
    mapped_npus: Sequence[MappedNpu]
    candidate: Candidate
    """mapped_npus, candidate: its NPUs, and the candidate that they make."""
    over: dict[str, float]
    """As of `Tries.over`."""


class Tries:
    """The search's data, and what is done for one interval; an object can be sent to another process. Errors are those
    of `Connections`.

    Parameters
    ----------
    models
        The trained network, or several that have NPUs in common.
    budget
        Limits of a design, and the rate that is asked for.
    stream_bits
        Width of both streams, 32 or 64.
    settings, streamed
        As of `Connections`.
    """

    def __init__(
        self,
        models: Model | Sequence[Model],
        budget: Budget,
        stream_bits: int,
        settings: Sequence[MapSetting],
        streamed: Sequence[bool] = (False, True),
    ):
        self.model, *self.also = (models,) if isinstance(models, Model) else models
        self.budget = budget
        self.given = settings
        self.stream_bits = stream_bits
        lut_rows = MOST_LUT_ROWS if budget.bram36 is None else MOST_LUT_ROWS_FOR_BLOCKS
        self.connections = Connections((self.model, *self.also), settings, streamed, stream_bits, lut_rows)
        self.engines = self.connections.engines
        self.choices = self.connections.choices
        self.settings = self.connections.settings
        self.first = self.connections.first
        self.layers = self.choices[self.engines[0], self.first].layers
        self.heavy = self.connections.graph or any(layer.depthwise for layer in self.layers) or bool(self.also)
        limits = {key: getattr(budget, key) for key in ("lutram", "bram36", "dsp", "ff")}
        self._limits = {key: limit for key, limit in limits.items() if limit is not None}
        self._macs = sum(layer.macs for layer in self.layers)
        self._seen: dict[Any, Figures | None] = {}
        self._flows: KnownFlows = {}
        self._areas: dict[tuple[tuple[Npu, ...], int], Resources] = {}
        self._fitting: tuple[Figures, ...] = ()
        self._asked = list[NpuChoices]()
        """Choices that were asked for NPUs and keep their results, the latest ones last."""

    def know(self, rows: Iterable[Row]) -> None:
        """Take these rows as known: what they beat is not run any more. Rows of tasks that are under way are not among
        them, so that a search tries the same with any number of processes."""
        self._fitting = tuple(row.figures for row in rows if row.fits)

    def names(self, engines: Engines) -> tuple[str, ...]:
        """Names of the layers that these engines compute, without copies of maps, of the first network alone."""
        choices = self.choices[engines, self.first]
        layers = choices.layers[: len(choices.networks[0])] if choices.networks else choices.layers
        return tuple(layer.name for layer in layers if not is_copy(layer.name))

    def intervals(self, points: int, setting: MapSetting) -> list[int]:
        """Intervals to try in a setting: a sweep of ``points`` from the fastest one on.

        Where a rate is asked for, some that are near it, and of the sweep the shorter ones, which may make a smaller
        design; the fastest one in any case, to tell what can be reached.
        """
        fastest = self.fastest(setting)
        sweep = [round(fastest * SPAN ** (k / max(1, points - 1))) for k in range(points)]
        if self.budget.cycles is None:
            return sweep
        asked = [max(1, int(self.budget.cycles * share)) for share in SHARES]
        return [*dict.fromkeys([*asked, fastest, *(interval for interval in sweep if interval < asked[-1])])]

    def fastest(self, setting: MapSetting) -> int:
        """A short interval that has a chain in that setting: a cycle for each tap of the layer with most, or for each
        line of taps where these can be formed, and for each tuple that it skips; or as fast as a frame comes.

        Raises
        ------
        ValueError
            If no interval has a chain.
        """
        layers = self.choices[self.engines[0], setting].layers
        npu = Npu.of(raster=setting.counters)
        each = [
            max(
                min(form.work(npu).cycles(1) for form in (layer, layer.with_former, layer.with_lines) if form),
                layer.pool_work(npu).cycles(1),
            )
            for layer in layers
        ]
        least = sum(each) if self.also else max(each)
        while self.mapped_npus(Task(self.connections.possible[0], setting, least, FEW_NPUS)) is None:
            least = least * 5 // 4 + 1
            if least > 1 << 40:
                raise ValueError(f"{self.model.network.name}: no folding was found")
        return least

    def mapped_npus(self, task: Task) -> list[MappedNpu] | None:
        """The NPUs of a task at its price; None where there are none that are fast enough, or where such NPUs are more
        parallel than a design may be."""
        choices = self.connections.of(task.connection, task.setting)
        self._make_room(choices)
        mapping = task.connection.mapping
        if mapping is not None:
            mapped_npus = cheapest_ring(choices, mapping, task.interval, task.price, closed=task.connection.closed)
        else:
            on_one_npu = self.also or choices.mapping  # maps are copied, as a plan for one NPU has it
            price = replace(task.price, limits=self._limits) if self.also else task.price
            mapped_npus = Chain(choices, 1 if on_one_npu else MOST_NPUS).cheapest(task.interval, price)
        if mapped_npus is None or not may_be_built([mapped_npu.npu for mapped_npu in mapped_npus]):
            return None
        return mapped_npus

    def _make_room(self, choices: NpuChoices) -> None:
        """Before ``choices`` are asked, and their elders with them: others forget, those first that were asked longest
        ago, where all together keep more than KEPT."""
        asked = choices.with_elders()
        others = [other for other in self._asked if not any(other is each for each in asked)]
        while others and sum(other.kept for other in (*others, *asked)) > KEPT:
            others.pop(0).forget()
        self._asked = [*others, *asked]

    def rows(self, task: Task) -> list[Row]:
        """Everything that is tried for a task.

        Prices of what is over its limit rise until the budget holds, and then fall again as far as it does. Where NPUs
        of a chain wait too long for each other, NPUs become cheaper, so that there are more of them; those of a ring
        get less time.
        """
        out = list[Row]()
        asked = task.interval
        ring = task.connection.mapping is not None
        lower = task.price  # the highest price at which the budget didn't hold
        upper = None  # the lowest price at which it did
        for last in (*[False] * (ROUNDS - 1), True):
            mapped_npus = self.mapped_npus(task)
            price = task.price
            if mapped_npus is None:
                break
            candidate = self.candidate(mapped_npus, task.setting)
            if self._is_beaten(candidate, self.connections.of(task.connection, task.setting).round(mapped_npus)):
                break
            excess = self._hopeless(candidate)
            row = None if excess else self._row(candidate, asked)
            if row is None and (last or not excess):
                break
            if row is not None:
                out += [row, *self._chunked(row)]
                excess = self.budget.excess(row.figures)
            if self.budget.lanes is not None and self._macs > self.budget.lanes * task.interval:
                break  # no folding does it with so few lanes
            over = excess.keys() & STEPS.keys()
            if over:
                lower = price
                task = replace(task, price=raised(price, over) if upper is None else between(price, upper))
            elif "cycles" in excess and ring:
                task = replace(task, interval=int(task.interval / excess["cycles"]))
            elif "cycles" in excess and price.npu > -LAST_WAITING:
                lower = replace(price, npu=price.npu - WAITING)
                task = replace(task, price=lower)
            elif price != lower:
                upper = price
                task = replace(task, price=between(lower, upper))
            else:
                break
        return out

    def nearest(self, tasks: Sequence[Task]) -> list[Row]:
        """The row of some tasks that is least over the budget by what the search knows of its area, at prices that rise
        for what is over its limit; none unless a run of the flow model takes long: ``rows`` has run it otherwise."""
        offers = [offer for task in tasks if self.heavy for offer in self.offers(task)]
        ranked = sorted(offers, key=lambda offer: max(offer.over.values(), default=1))
        rows = (self._row(offer.candidate, offer.task.interval) for offer in ranked)
        return list(islice((row for row in rows if row is not None), 1))

    def offers(self, task: Task, rounds: int = ROUNDS) -> Iterator[Offer]:
        """Offers of a task: at its price, and at prices that rise for each resource over its limit. ``rounds`` offers
        at most; the last one is the first in which no resource with a price is over its limit."""
        for _ in range(rounds):
            mapped_npus = self.mapped_npus(task)
            if mapped_npus is None:
                return
            candidate = self.candidate(mapped_npus, task.setting)
            over = self.over(candidate)
            yield Offer(task, mapped_npus, candidate, over)
            priced = over.keys() & STEPS.keys()
            if not priced:
                return
            task = replace(task, price=raised(task.price, priced))

    def over(self, candidate: Candidate) -> dict[str, float]:
        """The excess of a candidate's area over the budget, by what the search knows of its memories."""
        excess = self.budget.excess(Figures(self._known_area(candidate), candidate.lanes, 0, 0))
        return {key: value for key, value in excess.items() if key in STEPS.keys() | {"lut"}}

    def luts(self, candidate: Candidate) -> int:
        """LUTs of a candidate, as a device counts them, by what the search knows of its memories."""
        return self._known_area(candidate).device_lut

    def _hopeless(self, candidate: Candidate) -> dict[str, float]:
        """The excess of a candidate, as `over` says it, where it is far above the budget; nothing unless a run of the
        flow model takes long, as then such a run is left out."""
        return {key: value for key, value in self.over(candidate).items() if value > FAR} if self.heavy else {}

    def _is_beaten(self, candidate: Candidate, cycles: int) -> bool:
        """Whether a known row that fits has fewer LUTs and cycles than a candidate will have, so that a run of the flow
        model tells nothing new; dearer ones have more LUTs still."""
        if self.heavy or self.budget.latency is not None:
            return False
        luts = self.luts(candidate)
        return any(known.cycles <= BEATEN * cycles and known.lut <= luts for known in self._fitting)

    def _chunked(self, row: Row) -> list[Row]:
        """The row with chunks as large as maps, where NPUs of a chain copy them: the NPU before a copy then runs ahead
        while that waits for its map."""
        copies = self.connections.connection_of(row.candidate).mapping is not None and not row.candidate.closed
        if not copies or not any(setting.map_order == "raster" for setting in self.settings):
            return []
        chunk = f"rows:{max(one.network.input.height for one in (self.model, *self.also))}"
        chunked = self._row(replace(row.candidate, map_order="raster", chunk=chunk), row.asked)
        return [chunked] if chunked is not None else []

    def varied(self, row: Row) -> list[Row]:
        """Variations of a row: other settings, streamed weights among them, and dataflows, the foldings as they are.

        Only what promises something is run in the flow model, which takes most of the time.
        """
        candidate = row.candidate
        choices = self.connections.in_settings(candidate)
        other_flows = () if self.also else dataflows(candidate, choices)
        rows = [self._row(other, row.asked) for other in other_flows]
        for other in in_settings(candidate, choices):
            if self._saves(other, row):
                rows.append(self._row(other, row.asked))
        return [varied_row for varied_row in rows if varied_row is not None]

    def _saves(self, candidate: Candidate, row: Row) -> bool:
        """Whether a candidate takes fewer LUTs than that of a row, or less of what is over its limit; of several
        networks one that is hopeless, where the row fits, saves nothing."""
        figures_of_row = replace(row.figures, area=self._known_area(row.candidate))
        other = replace(figures_of_row, area=self._known_area(candidate))
        before = self.budget.excess(figures_of_row)
        after = self.budget.excess(other)
        if self.also and row.fits and self._hopeless(candidate):
            return False
        return other.lut < (1 - LEAST_SAVED) * figures_of_row.lut or any(
            after.get(key, 0) < before[key] for key in before
        )

    def _known_area(self, candidate: Candidate) -> Resources:
        """Area of a candidate by what the search knows of its memories."""
        spill = LEAST_SPILL_WORDS * candidate.closed
        key = candidate.npus, spill
        if key not in self._areas:
            design = Design(name="it", stream_bits=self.stream_bits, npus=candidate.npus, spill_words=spill)
            self._areas[key] = estimate(design)
        return self._areas[key]

    def candidate(self, mapped_npus: Sequence[MappedNpu], setting: MapSetting) -> Candidate:
        """The candidate of NPUs; with the mapping of the first network, where there are several."""
        candidate = candidate_of(self.model.network.name, mapped_npus, self.stream_bits, setting.map_order)
        if not self.also:
            return candidate
        count = len(self.names(self.engines[0]))
        return replace(
            candidate, mapping=candidate.mapping[:count], also=tuple(model.network.name for model in self.also)
        )

    def _row(self, candidate: Candidate, asked: int) -> Row | None:
        """The row of a candidate, None where it makes no design; each candidate is looked at once."""
        if candidate.key not in self._seen:
            self._seen[candidate.key] = figures(self.model, candidate, also=self.also, known=self._flows)
        figures_known = self._seen[candidate.key]
        return None if figures_known is None else Row(candidate, figures_known, asked, self.budget.holds(figures_known))

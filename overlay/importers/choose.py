"""The pass from sections to a choice: which engine computes each section, and how each map is held (held.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bitloom.golden.encoding import BIPOLAR, TERNARY

from .engine_cost import EngineCost, cost_of
from .errors import ImportRefused, printable
from .held import MOST_BITS, Held, bits_of, held_maps, natural_zero, thermometer, worth
from .sections import MOST_THERMOMETER, PassSection, SectionGraph, WeightSection
from .weights import Weights, weight_limit, weights_of

MOST_BITS_OF_VALUE = 62
"""Thermometer bits of a value at a network's end, which no engine reads."""
ENGINES = ("auto", "binary", "integer")


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineChoice:
    """What was chosen for a network.

    Attributes
    ----------
    engines : tuple of str
        Of each section, "binary" or "integer".
    weights : tuple of (Weights or None)
        Of each section; None where it has none.
    held : tuple of Held
        Of each map.
    why : str
        One sentence about the engines.
    costs : dict
        By engine: what the network would cost on it alone, or why it can't compute all; under "both", what it costs
        on the two that were chosen.
    """

    engines: tuple[str, ...]
    weights: tuple[Weights | None, ...]
    held: tuple[Held, ...]
    why: str
    costs: Mapping[str, "EngineCost | str"] = field(default_factory=dict)


def choices(graph: SectionGraph, engine: str = "auto") -> list[EngineChoice]:
    """Choose engines and encodings.

    Parameters
    ----------
    graph : SectionGraph
    engine : str
        "binary" or "integer" for all sections; "auto": the one that costs less, of those that can compute all; else
        both, each where it must, or where a run of sections costs less.

    Returns
    -------
    list of EngineChoice
        At least one; the second one is for where a model can't be made of the first.

    Raises
    ------
    ImportRefused
        With a line for each section that no engine, or not the one that is asked for, can compute.
    """
    joins = graph.joins
    if joins and engine == "binary":
        raise ImportRefused([f"maps that are {joins} need the integer engine, got --engine binary"])
    chooser = _Chooser(graph)
    costs = {name: chooser.cost_of_all(name) for name in chooser.refusals}
    if engine != "auto":
        _refuse([line for line in chooser.refusals[engine] if line])
        return [chooser.choice(chooser.all(engine), f"the {engine} engine computes all: it was asked for", costs)]
    able = {name: cost for name, cost in costs.items() if isinstance(cost, EngineCost)}
    if not able:
        return [chooser.mixed(costs)]
    order = sorted(able, key=lambda name: able[name].price)
    missing = next((str(cost) for name, cost in costs.items() if name not in able), "it costs less")
    return [chooser.choice(chooser.all(name), f"the {name} engine computes all: {missing}", costs) for name in order]


def _refuse(lines: Sequence[str]) -> None:
    if lines:
        raise ImportRefused(list(lines))


class _Chooser:
    """Chooses for the sections of a graph."""

    def __init__(self, graph: SectionGraph) -> None:
        self._graph = graph
        self._weights = tuple(_weights(one) if isinstance(one, WeightSection) else None for one in graph.sections)
        sections = [(one, self._weights[k]) for k, one in enumerate(graph.sections) if isinstance(one, WeightSection)]
        self.refusals = {
            "binary": [self._binary_refusal(one, weights) for one, weights in sections if weights is not None],
            "integer": [self._integer_refusal(one, weights) for one, weights in sections if weights is not None],
        }
        """By engine, of each section with weights: why the engine can't compute it; empty if it can."""

    def all(self, engine: str) -> tuple[str, ...]:
        """One engine for all sections."""
        return (engine,) * len(self._graph.sections)

    def choice(self, engines: tuple[str, ...], why: str, costs: Mapping[str, EngineCost | str]) -> EngineChoice:
        """The choice of these engines."""
        held = held_maps(self._graph, engines)
        return EngineChoice(engines=engines, weights=self._weights, held=held, why=why, costs=dict(costs))

    def cost_of_all(self, engine: str) -> EngineCost | str:
        """What the network costs on one engine, or why the engine can't compute it."""
        reason = next((line for line in self.refusals[engine] if line), "")
        return reason or self._cost(self.all(engine))

    def _cost(self, engines: tuple[str, ...]) -> EngineCost:
        """What these engines cost."""
        held = held_maps(self._graph, engines)
        places = self._graph.weighted
        sections = [one for one in self._graph.sections if isinstance(one, WeightSection)]
        weights = [one for one in self._weights if one is not None]
        sources = [held[section.reading.map].encoding for section in sections]
        return cost_of(sections, weights, sources, [engines[place] for place in places])

    def mixed(self, costs: Mapping[str, EngineCost | str]) -> EngineChoice:
        """Both engines, by what refuses each section on either one."""
        binary, integer = self.refusals["binary"], self.refusals["integer"]
        _refuse([there for here, there in zip(binary, integer) if here and there])
        engines = ["integer" if refusal else "binary" for refusal in binary]
        free = [not here and not there for here, there in zip(binary, integer)]
        best = self._rank(engines)
        for run in _runs(free):
            # a layer that ends in bits for the binary engine is for that one by default
            may = run.stop == len(engines) or engines[run.stop] == "integer"
            for first in run if may else ():
                tried = engines[:first] + ["integer"] * (run.stop - first) + engines[run.stop :]
                if self._rank(tried) < best:
                    engines, best = tried, self._rank(tried)
        _refuse([line for line in self._read_refusals(engines) if line])
        whole = self._of_sections(engines)
        why = "both engines: " + "; ".join(sorted({line for line in binary if line}))
        return self.choice(whole, why, {**costs, "both": self._cost(whole)})

    def _of_sections(self, engines: Sequence[str]) -> tuple[str, ...]:
        """Engines of all sections, from those of the sections with weights: of others that of the next one with some,
        which reads their map."""
        return tuple(engines[min(sum(w < k for w in self._graph.weighted), len(engines) - 1)]
                     for k in range(len(self._graph.sections)))  # fmt: skip

    def _rank(self, engines: Sequence[str]) -> tuple[int, float]:
        """How good engines are, the smallest is the best: sections that can't read their maps, then the cost."""
        return sum(map(bool, self._read_refusals(engines))), self._cost(self._of_sections(engines)).price

    def _read_refusals(self, engines: Sequence[str]) -> list[str]:
        """Why sections on the integer engine can't read what the binary engine makes; empty lines where they can."""
        sections = [one for one in self._graph.sections if isinstance(one, WeightSection)]
        return [
            _thermometer_refusal(section) if (before, engine) == ("binary", "integer") else ""
            for section, before, engine in zip(sections[1:], engines, engines[1:])
        ]

    def _binary_refusal(self, section: WeightSection, weights: Weights) -> str:
        """Why the binary engine can't compute a section; empty if it can."""
        source, name, joins = self._graph.maps[section.reading.map], printable(section.name), self._graph.joins
        if joins:
            return f"maps are {joins}"
        if source.averaged or (section.made is not None and section.made.averaged):
            return f"{name}: means are taken of its maps"
        if weights.encoding not in (BIPOLAR, TERNARY):
            return f"{name}: weights are {weights.encoding}"
        if section.made is not None and section.made.levels > MOST_BITS_OF_VALUE:
            values = section.made.levels + 1
            return f"{name}: the map behind it has {values} values, more than {MOST_BITS_OF_VALUE + 1}"
        head = self._graph.sections[0]
        if section is self._graph.sections[self._graph.weighted[0]] and source.levels > 1:
            refusal = self._reading_refusal(section, MOST_BITS)  # an integer input is read as bit planes
            pools = f"{printable(head.name)}: a pool of integers comes before the first weights"
            return refusal or (pools if isinstance(head, PassSection) else "")
        if source.levels > MOST_THERMOMETER:
            return f"{name}: its map has {source.levels + 1} values, more than {MOST_THERMOMETER + 1}"
        return _thermometer_refusal(section)

    def _integer_refusal(self, section: WeightSection, weights: Weights) -> str:
        """Why the integer engine can't compute a section; empty if it can."""
        over = weight_limit(weights.values)
        if not over:
            return self._reading_refusal(section, bits_of(self._graph, section.reading.map))
        return (
            f"{printable(section.name)}: weights less their zero point must fit {over}; quantise them to int8, or to "
            "uint8 with zero point 128 (onnxruntime: extra_options={'WeightSymmetric': True})"
        )

    def _reading_refusal(self, section: WeightSection, bits: int) -> str:
        """Why no engine that reads integers of so many bits can compute a section; empty if one can."""
        source, name = self._graph.maps[section.reading.map], printable(section.name)
        needs_zero = section.padded or source.averaged
        fits = source.levels < 1 << bits and (not section.padded or natural_zero(section, bits) is not None)
        if source.levels >= 1 << bits - 1 and not fits:
            return f"{name}: its map must have at most {1 << bits - 1} values, got {source.levels + 1}"
        if needs_zero and natural_zero(section, bits) is None:
            return f"{name}: a padded tap is worth 0, which is none of its map's integers"
        if section.made is not None and section.made.levels >= 1 << MOST_BITS:
            values = section.made.levels + 1
            return f"{name}: the map behind it must have at most {1 << MOST_BITS} values, got {values:,}"
        return ""


def _weights(section: WeightSection) -> Weights:
    """`weights_of`, whose errors name the section."""
    try:
        return weights_of(section)
    except ValueError as e:
        raise ImportRefused([f"{printable(section.name)}: {e}"]) from None


def _thermometer_refusal(section: WeightSection) -> str:
    """Why a section can't read a map as thermometer bits; empty if it can."""
    if section.padded and any(worth(section.lead, section.source, thermometer(section.source)).add):
        name = printable(section.name)
        return f"{name}: a padded tap is worth 0, which is not in the middle of its map's values"
    return ""


def _runs(free: Sequence[bool]) -> list[range]:
    """Places that are free, as runs of neighbours."""
    runs = []
    for is_free, group in groupby(range(len(free)), lambda place: free[place]):
        places = list(group)
        if is_free:
            runs.append(range(places[0], places[-1] + 1))
    return runs

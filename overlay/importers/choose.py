"""The pass from sections to a choice: which engine computes each section, and how each map is held (held.py).

The engine that costs less is chosen. Cost is LUTs of PEs for a product a cycle, on average over a network's products.
An NPU's lanes are as wide as its widest layer needs, and a product takes a lane for one or several cycles:

* *binary*: as many as the value has thermometer bits, or the input bit planes; twice as many with ternary weights.
* *integer*: one; one a bit where the binary engine made the map.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from bitloom.golden.encoding import BIPOLAR, MOST_BITS, TERNARY, Encoding, signed_bits
from bitloom.golden.layers.grouped import groups_of
from bitloom.hls_gen.compiler.engine_rules import stored_bits
from bitloom.hls_gen.design.widths import WEIGHT_BITS, bits_for
from bitloom.overlay.explore.lane_area import LUTS_OF_DSP, PeLaneArea, lane_area

from .errors import ImportRefused, node_line, printable
from .held import Held, bits_of, held_maps, natural_zero, thermometer, worth
from .sections import MADE_BITS, MOST_THERMOMETER, SectionGraph, WeightSection
from .weights import Weights, weight_limit, weights_of

ENGINES = ("auto", "binary", "integer")


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineChoice:
    """The engines and encodings that were chosen for a network."""

    engines: tuple[str, ...]
    """Of each section, "binary" or "integer"."""
    weights: Mapping[int, Weights]
    """Of each section that has weights, by number."""
    held: Mapping[int, Held]
    """Of each quantised map, by number."""
    why: str
    """One sentence about the engines."""
    costs: Mapping[str, PeLaneArea | str] = field(default_factory=dict)
    """By engine: the cost of the network on this engine alone, which is the area of PEs for a product a cycle, or the
    reason why the engine can't compute all of the network; under "both", the cost on the two engines that were
    chosen."""


def choices(graph: SectionGraph, engine: str = "auto") -> list[EngineChoice]:
    """Choose engines and encodings.

    Parameters
    ----------
    graph : SectionGraph
    engine : str
        "binary" or "integer" for all sections. "auto": the cheaper one of the engines that can compute all sections; if
        there is none, both, each where it must be or where a run of sections costs less.

    Returns
    -------
    list of EngineChoice
        At least one choice; a second choice is tried if no model can be made of the first.

    Raises
    ------
    ImportRefused
        With a line for each section that no engine, or not the engine that was asked for, can compute.
    """
    if graph.integer_only and engine == "binary":
        raise ImportRefused([f"maps that are {graph.integer_only} need the integer engine, got --engine binary"])
    try:
        return _choices(_Chooser(graph, ramps=False), engine)
    except ImportRefused:
        return _choices(_Chooser(graph, ramps=True), engine)


def _choices(chooser: "_Chooser", engine: str) -> list[EngineChoice]:
    """The choices of a chooser."""
    costs = {name: chooser.cost_of_all(name) for name in chooser.refusals}
    if engine != "auto":
        _refuse(chooser.reasons(chooser.all(engine)))
        return [chooser.choice(chooser.all(engine), f"the {engine} engine computes all: it was asked for", costs)]
    able = {name: cost for name, cost in costs.items() if isinstance(cost, PeLaneArea)}
    if not able:
        return [chooser.mixed(costs)]
    order = sorted(able, key=lambda name: able[name].price)
    missing = next((cost for cost in costs.values() if isinstance(cost, str)), "it costs less")
    return [chooser.choice(chooser.all(name), f"the {name} engine computes all: {missing}", costs) for name in order]


def _refuse(lines: Sequence[str]) -> None:
    if lines:
        raise ImportRefused(list(lines))


class _Chooser:
    """Chooses for the sections of a graph. Engines are those of the sections with weights, in their order."""

    def __init__(self, graph: SectionGraph, *, ramps: bool) -> None:
        self._graph = graph
        self._ramps = ramps  # whether the integer engine may take several outputs for a channel
        self._sections = [section for section in graph.sections if isinstance(section, WeightSection)]
        self._weights = [_weights(section) for section in self._sections]
        self.refusals = {
            engine: [refusal(section, weights) for section, weights in zip(self._sections, self._weights)]
            for engine, refusal in (("binary", self._binary_refusal), ("integer", self._integer_refusal))
        }
        """By engine, for each section with weights: why the engine can't compute the section; empty if it can."""

    def all(self, engine: str) -> list[str]:
        """One engine for all sections."""
        return [engine] * len(self._sections)

    def choice(self, engines: Sequence[str], why: str, costs: Mapping[str, PeLaneArea | str]) -> EngineChoice:
        """The choice of these engines."""
        whole = self._of_graph(engines)
        return EngineChoice(
            engines=whole,
            weights=dict(zip(self._graph.weighted, self._weights)),
            held=held_maps(self._graph, whole),
            why=why,
            costs=dict(costs),
        )

    def reasons(self, engines: Sequence[str]) -> list[str]:
        """Why these engines can't compute the network, a line for each section; none if they can."""
        sections = [self.refusals[engine][place] for place, engine in enumerate(engines)]
        return [line for line in sections if line] or [line for line in self._map_refusals(engines) if line]

    def cost_of_all(self, engine: str) -> PeLaneArea | str:
        """Cost of the network on one engine, or the reason why the engine can't compute it."""
        reason = next(iter(self.reasons(self.all(engine))), "")
        return reason or self._cost(self.all(engine))

    def _cost(self, engines: Sequence[str]) -> PeLaneArea:
        """The cost of these engines, with an NPU for each kind."""
        held = held_maps(self._graph, self._of_graph(engines))
        sources = [held[section.reading.map].encoding for section in self._sections]
        lanes = {
            engine: _lane(engine, [k for k, e in enumerate(engines) if e == engine], self._weights, sources)
            for engine in dict.fromkeys(engines)
        }
        lut = dsp = products = 0.0
        for section, weights, source, engine in zip(self._sections, self._weights, sources, engines):
            groups = groups_of(weights.values) if weights.groups == 1 else 1
            count = section.size[0] * section.size[1] * weights.values.size // groups
            cycles = count * _visits(engine, weights.encoding, source)
            products += count
            lut = lut + cycles * lanes[engine].lut
            dsp = dsp + cycles * lanes[engine].dsp
        return PeLaneArea(lut=lut / products, dsp=dsp / products)

    def mixed(self, costs: Mapping[str, PeLaneArea | str]) -> EngineChoice:
        """A choice of both engines: each section gets an engine that can compute it."""
        binary = self.refusals["binary"]
        integer = self.refusals["integer"]
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
                    engines = tried
                    best = self._rank(tried)
        _refuse(self.reasons(engines))
        why = "both engines: " + "; ".join(sorted({line for line in binary if line}))
        return self.choice(engines, why, {**costs, "both": self._cost(engines)})

    def _of_graph(self, engines: Sequence[str]) -> tuple[str, ...]:
        """Engines of all sections: one without weights has that of the next section with weights, which reads its
        map."""
        behind = [bisect_left(self._graph.weighted, place) for place in range(len(self._graph.sections))]
        return tuple(engines[min(number, len(engines) - 1)] for number in behind)

    def _rank(self, engines: Sequence[str]) -> tuple[int, float]:
        """How good engines are, the smallest is the best: maps that can't be handed on, then the cost."""
        return sum(map(bool, self._map_refusals(engines))), self._cost(engines).price

    def _map_refusals(self, engines: Sequence[str]) -> list[str]:
        """Why the maps that sections make can't be handed on; empty lines where they can.

        A map between two sections on the integer engine is requantised, as is a last one on it. One that the binary
        engine makes for the integer one is read as thermometer bits. The next section reads a map, in a chain; in
        graphs with joins all sections are on one engine.
        """
        lines = []
        readers = [*engines[1:], engines[-1]]
        for place, (section, maker, reader) in enumerate(zip(self._sections, engines, readers)):
            line = ""
            if (maker, reader) == ("integer", "integer") and section.quantised is not None:
                why = section.thresholds_only or ("" if self._ramps else section.ramps_only)
                line = node_line(section.name, "integer engine", why) if why else ""
            elif (maker, reader) == ("binary", "integer"):
                line = _thermometer_refusal(self._sections[place + 1])
            lines.append(line)
        return lines

    def _binary_refusal(self, section: WeightSection, weights: Weights) -> str:
        """Why the binary engine can't compute a section; empty if it can."""
        source = self._graph.maps[section.reading.map]
        name = printable(section.name)
        if self._graph.integer_only:
            return f"maps are {self._graph.integer_only}"
        if source.averaged or (section.quantised is not None and section.quantised.averaged):
            return f"{name}: means are taken of its maps"
        if weights.encoding not in (BIPOLAR, TERNARY):
            return f"{name}: weights are {weights.encoding}"
        if section.quantised is not None and section.quantised.levels > MOST_BITS:
            values = section.quantised.levels + 1
            return f"{name}: the map behind it has {values} values, more than {MOST_BITS + 1}"
        head = self._graph.sections[0]
        if section is self._sections[0] and source.levels > 1:
            refusal = self._reading_refusal(section, MADE_BITS)  # an integer input is read as bit planes
            before = f"{printable(head.name)}: integers are {head.verb} before the first weights"
            return refusal or ("" if head is section else before)
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
        source = self._graph.maps[section.reading.map]
        name = printable(section.name)
        needs_zero = section.padded or source.averaged
        fits = source.levels < 1 << bits and (not section.padded or natural_zero(section, bits) is not None)
        if source.levels >= 1 << bits - 1 and not fits:
            return f"{name}: its map must have at most {1 << bits - 1} values, got {source.levels + 1}"
        if needs_zero and natural_zero(section, bits) is None:
            return f"{name}: a padded tap is worth 0, which is none of its map's integers"
        if section.quantised is not None and section.quantised.levels >= 1 << MADE_BITS:
            values = section.quantised.levels + 1
            return f"{name}: the map behind it must have at most {1 << MADE_BITS} values, got {values:,}"
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


def _visits(engine: str, weight: Encoding, source: Encoding) -> int:
    """Lanes, or cycles of a lane, that a product takes."""
    bits = source.bits if source.kind == "bipolar" else 1
    if engine == "integer":
        return bits
    if source.kind != "bipolar":
        bits = stored_bits(source) + 1
    return bits * (1 + (weight == TERNARY))


def _lane(engine: str, numbers: Sequence[int], weights: Sequence[Weights], held: Sequence[Encoding]) -> PeLaneArea:
    """The lane of an engine that computes the sections of these numbers."""
    acc = max(_sum_bits(weights[k], held[k]) for k in numbers)
    if engine == "binary":
        planes = max((stored_bits(held[k]) for k in numbers if held[k].kind != "bipolar"), default=0)
        return lane_area(engine, 1, 1, acc, bits_for(planes - 1) if planes else 0)
    features = max([2, *(stored_bits(held[k]) for k in numbers if held[k].kind != "bipolar")])
    return lane_area(engine, features, min(WEIGHT_BITS, max(stored_bits(weights[k].encoding) for k in numbers)), acc)


def _sum_bits(weights: Weights, source: Encoding) -> int:
    """Bits of an accumulator that has room for every sum."""
    most = max(source.high, -source.low) * int(abs(weights.values).sum(axis=(1, 2, 3)).max())
    return signed_bits(-most, most)


def costs_text(costs: Mapping[str, PeLaneArea | str]) -> dict[str, str]:
    """By heading, for each engine: what the network costs on the engine, or why the engine can't compute all of it.

    Parameters
    ----------
    costs : dict
        As `EngineChoice` has them.
    """
    headings = {"binary": "on the binary one", "integer": "on the integer one", "both": "on both"}
    return {headings[engine]: f"no: {cost}" if isinstance(cost, str) else _text(cost) for engine, cost in costs.items()}


def _text(cost: PeLaneArea) -> str:
    if not cost.dsp:
        return f"{cost.lut:.1f} LUT a product and cycle"
    return f"{cost.price:.1f} LUT a product and cycle, {cost.dsp:.2f} DSP among them for {LUTS_OF_DSP:.0f} each"

"""The pass from sections to a model of golden: integers in, integers out, proved equal level by level."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import singledispatchmethod
from itertools import count
from math import lcm

import numpy as np

from bitloom.golden.encoding import BIPOLAR, Array, unsigned
from bitloom.golden.graph import INPUT
from bitloom.golden.host.host import OutputPart
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import by_groups, by_so_many
from bitloom.golden.layers.lookup import ENTRIES, Lookup
from bitloom.golden.layers.outputs import Outputs
from bitloom.golden.layers.pool import AvgPool, MaxPool, Pool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.window import Window

from .boundaries import threshold_arrays
from .choose import EngineChoice
from .errors import ImportRefused, Unsupported, node_line
from .held import Held, worth
from .kernel_factors import kernel_factors, undivided
from .links import Line, Link, LinkChain, falls, host_links, merged
from .pair_fit import fit_pairs, pairs_of
from .ramps import MOST_RAMPS, Ramps, Stepped
from .requantise_fit import arrays, fit, mismatch
from .rows import row_of
from .sections import OutputMap, PairSection, PassSection, Quantised, Section, SectionGraph, TableSection, WeightSection
from .weights import MOST_WEIGHT, Weights, integer_weights, weight_encoding, weight_limit, with_signs


@dataclass(frozen=True, kw_only=True)
class Built:
    """The layers that a section became, for the explanation."""

    nodes: tuple[str, ...] = ()
    """The file's nodes."""
    layers: tuple[str, ...] = ()
    """Golden's layers."""
    engine: str = ""
    weights: str = ""
    map_encoding: str
    """weights, map_encoding: encodings of weights and of the map; ``map_encoding`` is empty for sums."""
    range: tuple[int, int]
    """Smallest and largest sum."""
    levels: int
    """Levels of the quantiser, 0 for none."""
    falling: int = 0
    """Channels whose level falls as the sum rises."""
    used: float = 1.0
    """The share of weights that are not 0; convolutions of groups have zeros for the other groups' channels, which
    hardware computes like other weights."""
    wrong: tuple[int, int] = (0, 0)
    """Sums, of all channels, that get another level than the file's, and by how many levels at most."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Emitted:
    """A model, and the real numbers that its integers stand for."""

    model: Model
    outputs: tuple[tuple[OutputPart, ...], ...]
    """Of each output the maps that it is put together from, among the values of the model's output."""
    built: tuple[Built, ...]
    """One a section."""
    real: Mapping[str, Array] = field(default_factory=dict)
    """By layer, the real numbers of which the layer's weights of 1 bit are the signs, where the file has them."""


def emit(graph: SectionGraph, choice: EngineChoice, name: str) -> Emitted:
    """Build the model.

    Parameters
    ----------
    graph : SectionGraph
    choice : EngineChoice
    name : str
        Of the network.

    Raises
    ------
    ImportRefused
        With a line for the first section that golden has no layers for.
    """
    emitter = _Emitter(graph, choice)
    for place, section in enumerate(graph.sections):
        try:
            emitter.add(place, section)
        except ValueError as e:
            kind = choice.engines[place] + " engine" if isinstance(section, WeightSection) else section.op
            raise ImportRefused([node_line(section.name, kind, e)]) from None
    outputs = emitter.outputs()
    network = Network(name=name, input=emitter.input, layers=tuple(emitter.layers))
    return Emitted(
        model=Model(network, emitter.arrays),
        outputs=outputs,
        built=tuple(emitter.built),
        real=emitter.real,
    )


class _Emitter:
    """Adds the layers of a model, section by section."""

    def __init__(self, graph: SectionGraph, choice: EngineChoice) -> None:
        rows, columns, channels = graph.size
        self.input = Map(height=rows, width=columns, channels=channels, encoding=choice.held[0].encoding)
        self.layers: list[Layer] = []
        self.arrays: dict[str, dict[str, Array]] = {}
        self.built: list[Built] = []
        self.real: dict[str, Array] = {}
        self._maps = {INPUT: self.input}
        self._makers = [INPUT]  # of each map, the layer that makes it
        self._reads: tuple[str, ...] = ()  # the maps that the next layer reads
        self._graph = graph
        self._choice = choice
        # Layers of a pool that comes first have the number 0, and those of the first weights 1.
        self._first = 0 if isinstance(graph.sections[0], PassSection) else 1
        self._chains: dict[int, list[Link]] = {}  # by number of a map that is sums: what these are worth

    def add(self, place: int, section: Section) -> None:
        """Add the layers of a section."""
        self._reads = tuple(self._makers[reading.map] for reading in section.reads)
        first = len(self.layers)
        number = self._first + place
        self._pool_names = _pool_names(number, plain=number == 0 or isinstance(section, WeightSection))
        built = self._layers(section, place, number)
        layers = tuple(layer.name for layer in self.layers[first:])
        engine = self._choice.engines[place]
        wrong = built.wrong
        if section.quantised is not None and section.quantised.means_off:
            wrong = wrong[0] + section.size[2] * section.quantised.means_off, max(wrong[1], 1)
        self.built.append(replace(built, nodes=section.nodes, layers=layers, engine=engine, wrong=wrong))
        self._makers.append(self.layers[-1].name)

    def outputs(self) -> tuple[tuple[OutputPart, ...], ...]:
        """The maps of each output; a last layer puts several maps one behind the other."""
        makers = {number: self._makers[number] for number in self._graph.leaving}
        firsts = dict[int, int]()
        place = 0
        for number, maker in makers.items():
            firsts[number] = place
            place += self._maps[maker].size
        if len(makers) > 1:
            self.layers.append(Outputs(name="outputs", inputs=tuple(makers.values())))
        return tuple(
            tuple(self._part(each, firsts[each.map], self._maps[makers[each.map]]) for each in output.maps)
            for output in self._graph.outputs
        )

    def _part(self, output: OutputMap, first: int, source: Map) -> OutputPart:
        """A map that leaves, whose first value is at a place among those of the model's output."""
        chain: LinkChain = self._chains[output.map] if output.source is None else ()
        if output.source is not None:
            chain = [worth(Line.identity(source.channels), output.source, self._choice.held[output.map])]
        links = host_links(merged([*chain, *output.links]), source.channels)
        return OutputPart(first=first, size=source.size, chain=links)

    @property
    def _map(self) -> Map:
        """The map that the next layer reads."""
        return self._maps[self._reads[0]]

    @singledispatchmethod
    def _layers(self, section: Section, place: int, number: int) -> Built:
        """Add the layers of a section: ``place`` is its own, ``number`` that of its layers."""
        raise NotImplementedError(type(section).__name__)

    @_layers.register
    def _weights(self, section: WeightSection, place: int, number: int) -> Built:
        """Add the layers of a section with weights: the weights, and what follows them."""
        weights = self._choice.weights[place]
        held = self._choice.held[section.reading.map]
        turned = np.ones(len(weights.values), np.int64)
        sums = self._sums(section, weights, held)
        as_bits = section.quantised is not None and self._choice.held[place + 1].encoding.kind == "bipolar"
        if section.quantised is not None and not as_bits:
            turned = _turns(sums, section.chain)
        elif section.inner:
            turned = _turns(sums, section.chain[: section.inner_at])
        weights, sums = _turned(weights, sums, turned)
        if self._choice.engines[place] == "integer" and (section.quantised is None or as_bits):
            weights = integer_weights(weights)
        layer = self._weighted(number, section, weights)
        low, high = (end * section.count for end in layer.accumulator_range(self._map))
        levels = 0
        falling = 0
        wrong = (0, 0)
        if section.quantised is None:
            self._append_weighted(layer, weights)
            self._append_sums(section)
            self._chains[place + 1] = merged([sums, *section.chain])
        elif as_bits:
            self._append_weighted(layer, weights)
            self._append_sums(section)
            levels = section.quantised.levels
            falling = self._thresholds(number, section, sums, (low, high))
        else:
            target = self._choice.held[place + 1]
            levels = section.quantised.levels
            stairs = section.steps.staircases(sums)
            if section.ramps_only and (section.copies or not section.steps.straight):
                reach = _reaches(weights.values, held, section)
                functions = [Stepped.of_stairs(stair, *ends) for stair, ends in zip(stairs, reach)]
                most = MOST_RAMPS if section.copies else 2  # of which each takes the layer's beats again
                wrong = self._append_ramps(number, layer, weights, functions, target, section.sums, most=most)
            else:
                wrong = self._requantisation(number, section, target, layer, weights, sums)
                if section.ramps_only:
                    ends = [(stair.lowest, stair.highest) for stair in stairs]
                    self._append_ends(number, ends, target)
            self._pools(section.quantised, (*section.inner, *section.pools))
        return Built(
            weights=str(weights.encoding),
            map_encoding=str(self._map.encoding) if section.quantised is not None else "",
            range=(low, high),
            levels=levels,
            falling=falling,
            used=float((weights.values != 0).mean()) / weights.groups,
            wrong=wrong,
        )

    @_layers.register
    def _pair(self, section: PairSection, place: int, number: int) -> Built:
        """Add an addition or a product, and its pools."""
        held = self._choice.held[place + 1]
        name = f"{section.join.layer.kind}_{number}"
        first, second = self._reads
        sources = [self._choice.held[reading.map] for reading in section.reads]
        pairs = pairs_of(section, sources, held, name, (first, second))
        factors = fit_pairs(pairs)
        reach = pairs.layer.reach(factors.arrays, [self._maps[name] for name in self._reads])
        self._append(pairs.layer, factors.arrays)
        self._pools(section.map, section.pools)
        bits = max(abs(factor).bit_length() for factor in factors.multipliers)
        return Built(
            weights=f"factors of {bits} bits",
            map_encoding=str(held.encoding),
            range=reach,
            levels=section.map.levels,
            wrong=factors.wrong,
        )

    @_layers.register
    def _table(self, section: TableSection, place: int, number: int) -> Built:
        """Add a lookup, or ramps where channels have rows of their own, and the pools of the section."""
        source = self._choice.held[section.reads[0].map]
        held = self._choice.held[place + 1]
        rows = section.table.rows
        wrong = (0, 0)
        if section.table.is_uniform:
            entries = np.full(ENTRIES, held.zero)  # those of integers that the map doesn't have are the lowest level's
            entries[(source.zero + np.arange(rows.shape[1])) % ENTRIES] = held.zero + rows[0]
            self._append(Lookup(name=f"lookup_{number}", encoding=held.encoding), {"entries": entries})
        else:
            functions = [Stepped.of_values(source.zero, row) for row in rows.tolist()]
            wrong = self._append_ramps(number, *self._copy(f"conv_{number}"), functions, held, most=MOST_RAMPS)
        self._pools(section.map, section.pools)
        reach = held.zero, held.zero + section.map.levels
        return Built(map_encoding=str(held.encoding), range=reach, levels=section.map.levels, wrong=wrong)

    @_layers.register
    def _pass(self, section: PassSection, place: int, number: int) -> Built:
        """Add a concatenation, if the section reads several maps, and pools."""
        if len(section.reads) > 1:
            self._append(Concat(name=f"concat_{number}", inputs=self._reads), {})
        self._pools(section.map, section.pools)
        encoding = self._map.encoding
        return Built(map_encoding=str(encoding), range=(encoding.low, encoding.high), levels=section.map.levels)

    def _sums(self, section: WeightSection, weights: Weights, held: Held) -> Line:
        """Real numbers that the sums of integers stand for, as a line, in front of the section's chain."""
        line = worth(section.lead, section.source, held)
        # With one denominator for all channels, so that the products of each output are those of integers.
        divisor = lcm(*(add.denominator for add in line.add))
        adds = np.array([int(add * divisor) for add in line.add], object)
        # (groups, outputs of a group, channels of a group) times (groups, channels of a group, 1)
        each = weights.values.sum(axis=(1, 2)).astype(object).reshape(weights.groups, -1, weights.values.shape[3])
        totals = np.matmul(each, adds.reshape(weights.groups, -1, 1)).ravel()  # (outputs,); 0 where there is padding
        if section.takes_one:  # one value of those of its taps, which are worth the same in all channels
            totals = np.full(len(totals), adds[0], object)
        constant = np.array([Fraction(total, divisor) for total in totals], object) * section.count
        return Line(multiply=weights.scale * line.multiply[0], add=weights.scale * constant)

    def _append(self, layer: Layer, arrays: Mapping[str, Array]) -> None:
        """Add a layer, which reads the map of the layer before, or the maps that the section reads."""
        self.layers.append(replace(layer, inputs=self._reads))
        if arrays:
            self.arrays[layer.name] = dict(arrays)
        self._maps[layer.name] = layer.output_of([self._maps[name] for name in self._reads])
        self._reads = (layer.name,)

    def _append_weighted(self, layer: Weighted, weights: Weights) -> None:
        """Add a layer with these weights in place of its own."""
        weight = weights.values
        layer = replace(layer, out_channels=len(weight), weight=weights.encoding)
        if layer.weight == BIPOLAR and weights.real is not None:
            self.real[layer.name] = with_signs(weights.real, weight)
        if isinstance(layer, Conv) and weights.groups > 1:
            layer = by_so_many(layer, weights.groups, self._map.channels)
        elif isinstance(layer, Conv):
            layer, weight = by_groups(layer, weight)
        self._append(layer, {"weight": weight})

    def _append_sums(self, section: WeightSection) -> None:
        """Add sum pools for the means that are taken of a section's sums."""
        for window in section.sums:
            self._pool(window, SumPool)

    def _copy(self, name: str) -> tuple[Weighted, Weights]:
        """A layer that copies the map, and its weights."""
        weights = _plain_weights(np.ones((self._map.channels, 1, 1, 1), np.int64), self._map.channels)
        return _pointwise(name, weights), weights

    def _append_ends(self, number: int | str, ends: Sequence[tuple[int, int]], held: Held) -> None:
        """Cut each channel of a map that is held so to its own levels, between the lowest and the highest of any."""
        levels = np.arange(min(low for low, _ in ends), max(high for _, high in ends) + 1)
        rows = [np.clip(levels, *each).tolist() for each in ends]
        functions = [Stepped.of_values(held.zero + int(levels[0]), row) for row in rows]
        self._append_ramps(f"{number}_2", *self._copy(f"ends_{number}"), functions, held, most=None)

    def _append_ramps(
        self,
        number: int | str,
        layer: Weighted,
        weights: Weights,
        functions: Sequence[Stepped],
        held: Held,
        means: Sequence[Window] = (),
        *,
        most: int | None,
    ) -> tuple[int, int]:
        """Add weights, whose sums have in each channel a function's level, as ramps, and what adds the ramps up. How
        many sums get another level, and by how many levels at most.

        Parameters
        ----------
        number : int or str
            Of the layers.
        layer : Weighted
        weights : Weights
            The layer that has a sum for each channel, and its weights.
        functions : sequence of Stepped
            The level of each channel's sums.
        held : Held
            How the map that is made is held.
        means : sequence of Window
            Pools of the sums.
        most : int or None
            See `Ramps.of`.
        """
        of_any_sign = np.concatenate([weights.values, 0 * weights.values, -weights.values])
        sums = replace(layer, weight=weight_encoding(of_any_sign)).output(self._map)
        for mean in means:
            sums = SumPool.of("mean", mean).output(sums)
        ramps, fitted = Ramps.of(functions, sums.encoding, most=most)
        values = np.repeat(weights.values, ramps.count, axis=0) * ramps.reads.reshape(-1, 1, 1, 1)
        over = weight_limit(values)
        if over:
            raise Unsupported(f"weights whose sums bend in front of a quantiser must fit, with both signs, {over}")
        several = _plain_weights(values, weights.groups)
        self._append_weighted(layer, several)
        for mean in means:
            self._pool(mean, SumPool)
        act = Requantise(
            name=f"ramps_{number}",
            encoding=unsigned(ramps.top.bit_length()),
            fraction=fitted.fraction,
            rounding="even" if fitted.half_even else "once",
        )
        self._append(act, arrays(fitted.factors))
        adding = _plain_weights(ramps.signs[:, None, None, :], len(ramps.sums))
        self._append_weighted(_pointwise(f"sum_{number}", adding), adding)
        ones = np.ones(len(ramps.sums), np.int64)
        self._append(
            Requantise(name=f"summed_{number}", encoding=held.encoding, clip=held.clip(*ramps.ends)),
            {"bias": held.zero + ramps.bases, "multiplier": ones, "shift": 0 * ones},
        )
        if ramps.cut_behind:
            self._append_ends(number, [each.ends for each in functions], held)
        return _checked(*ramps.off(functions, fitted))

    def _weighted(self, number: int, section: WeightSection, weights: Weights) -> Weighted:
        outputs = len(weights.values)
        if section.window is None:
            return Dense(name=f"dense_{number}", out_channels=outputs, weight=weights.encoding)
        return Conv(name=f"conv_{number}", out_channels=outputs, weight=weights.encoding, **asdict(section.window))

    def _thresholds(self, number: int, section: WeightSection, sums: Line, reach: tuple[int, int]) -> int:
        """Add thresholds, and max pools before or behind them; how many channels fall."""
        stairs = section.steps.staircases(sums)
        before = not falls(section.chain[section.inner_at :])
        for window in section.inner if before else ():
            self._pool(window)
        threshold = Threshold(name=f"threshold_{number}", levels=section.map.levels)
        self._append(threshold, threshold_arrays(stairs, *reach))
        for window in (*(() if before else section.inner), *section.pools):
            self._pool(window)
        return sum(not stair.rising for stair in stairs)

    def _requantisation(
        self,
        number: int,
        section: WeightSection,
        held: Held,
        layer: Weighted,
        weights: Weights,
        sums: Line,
    ) -> tuple[int, int]:
        """Add the weights and a requantisation; ``held`` is how their map is held, ``sums`` what their sums are worth.
        How many sums get another level, and by how many levels at most."""
        quantised = section.map
        ruled = quantised.rule is not None and held.zero == quantised.rule.low and not section.sums
        rule = quantised.rule if ruled else None
        if rule is not None:
            weights, sums = undivided(weights, sums, rule)
        stairs = section.steps.staircases(sums)
        reach = _reaches(weights.values, self._choice.held[section.reading.map], section)
        inside = [stair.within(*ends) for stair, ends in zip(stairs, reach)]
        still = [stair.is_flat for stair in inside]
        if any(still):  # a channel of one level: its weights are 0, so that its sum is
            values = weights.values * ~np.array(still)[:, None, None, None]
            weights = replace(weights, values=values, encoding=weight_encoding(values, weights.groups))
        self._append_weighted(layer, weights)
        self._append_sums(section)
        exact = None
        if rule is not None and not section.steps.bent:
            exact = kernel_factors(rule, section.steps.line.after(sums), inside, self._map.encoding)
        fitted = exact or fit(inside, _slopes(section, sums), held.zero, self._map.encoding)
        act = Requantise(
            name=f"requantise_{number}",
            encoding=held.encoding,
            # All channels share the limits: the levels that any of them can have (`WeightSection.ramps_only`).
            clip=held.clip(min(stair.lowest for stair in stairs), max(stair.highest for stair in stairs)),
            fraction=fitted.fraction,
            rounding="twice" if exact and rule and rule.roundings == 2 else "even" if fitted.half_even else "once",
        )
        self._append(act, arrays(fitted.factors))
        missed = [k for k, factors in enumerate(fitted.factors) if not factors.exact]
        misses = [mismatch(stairs[k], k, fitted, held.zero, reach[k]) for k in missed]
        return _checked(sum(sums_off for sums_off, _ in misses), max((most for _, most in misses), default=0))

    def _pools(self, quantised: Quantised, windows: Sequence[Window]) -> None:
        """Pools of quantised values: max pools, but for the last one, which is a mean where the values are averaged."""
        for window in windows[:-1]:
            self._pool(window)
        for window in windows[-1:]:
            self._pool(window, AvgPool if quantised.averaged else MaxPool)

    def _pool(self, window: Window, kind: type[Pool] = MaxPool) -> None:
        self._append(kind.of(next(self._pool_names), window), {})


def _pool_names(number: int, *, plain: bool) -> Iterator[str]:
    """Names for the pools of a section: pool_1, pool_1_2, pool_1_3; or pool_1_1 first, unless it is ``plain``."""
    yield f"pool_{number}" if plain else f"pool_{number}_1"
    for place in count(2):
        yield f"pool_{number}_{place}"


def _reaches(values: Array, held: Held, section: WeightSection) -> list[tuple[int, int]]:
    """The smallest and the largest sum of each output: of weights times integers of the map, or 0 where a tap is none
    of the map's, as many times as a mean of sums adds up."""
    low, high = held.zero, held.zero + held.stride * section.source.levels
    if section.window is not None and section.window.padded:
        low, high = min(low, 0), max(high, 0)
    rising = np.clip(values, 0, None).sum(axis=(1, 2, 3))
    falling = np.clip(values, None, 0).sum(axis=(1, 2, 3))
    smallest, largest = low * rising + high * falling, high * rising + low * falling
    return list(zip((smallest * section.count).tolist(), (largest * section.count).tolist()))


def _checked(wrong: int, most: int) -> tuple[int, int]:
    """How many sums get another level, and by how many levels at most: 1, else Unsupported."""
    if most > 1:
        raise Unsupported(
            f"a requantisation must be at most 1 level off, got {most} levels at some of {wrong:,} sums",
            "choose scales that are nearer to each other",
        )
    return wrong, most


def _pointwise(name: str, weights: Weights) -> Conv:
    """A convolution of 1 x 1."""
    return Conv(name=name, out_channels=len(weights.values), kernel=(1, 1), weight=weights.encoding)


def _plain_weights(values: Array, groups: int) -> Weights:
    """Whole numbers as weights, each worth itself."""
    scale = np.full(len(values), Fraction(1), object)
    return Weights(values=values, groups=groups, scale=scale, encoding=weight_encoding(values, groups))


def _turns(sums: Line, chain: LinkChain) -> Array:
    """-1 for outputs that fall, at the end of a chain behind ``sums``, as the sum rises; else 1. (outputs,)"""
    falling = sums.falls
    for link in chain:
        falling = falling ^ link.falls
    return np.where(falling, -1, 1)


def _turned(weights: Weights, sums: Line, turned: Array) -> tuple[Weights, Line]:
    """Weights of which some outputs changed sign, and what their sums are worth."""
    if (turned == 1).all():
        return weights, sums
    values = weights.values * turned[:, None, None, None]
    if weight_limit(values):
        ends = f"{-MOST_WEIGHT}..{MOST_WEIGHT}"
        rule = f"weights that change sign, as a scale behind them is negative, must be {ends}"
        raise Unsupported(f"{rule}, got {-values.max()}", f"quantise weights to {ends}")
    flipped = Line(multiply=sums.multiply * turned, add=sums.add)
    return replace(weights, values=values, encoding=weight_encoding(values, weights.groups)), flipped


def _slopes(section: WeightSection, sums: Line) -> list[Fraction]:
    """Levels a unit of the sum, for each channel, clips aside; ``sums`` is what a unit is worth."""
    quantised = section.map
    assert quantised.boundaries is not None
    slopes = []
    for channel, slope in enumerate(section.steps.slopes(sums)):
        limits = row_of(quantised.boundaries.limits, channel)
        gap = (limits[-1] - limits[0]) / (len(limits) - 1) if len(limits) > 1 else quantised.step
        slopes.append(slope / gap if gap else slope)
    return slopes

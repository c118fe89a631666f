"""The pass from sections to a model of golden: integers in, integers out, proved equal level by level."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import lcm

import numpy as np

from bitloom.golden.encoding import BIPOLAR, Array, Encoding
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import by_groups
from bitloom.golden.layers.pool import AvgPool, MaxPool, Pool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.engine_rules import stored_bits
from bitloom.hls_gen.design.widths import WEIGHT_BITS

from .boundaries import Ends, Line, Staircase, joined, staircases, threshold_arrays
from .built import Built, Emitted
from .choose import EngineChoice, Held, worth
from .errors import ImportRefused, Unsupported, node_line
from .kernel_factors import kernel_factors, undivided
from .requantise_fit import arrays, fit, mismatch
from .sections import Cut, Quantised, Section
from .weights import Weights, integer_weights, weight_encoding, with_signs


def emit(cut: Cut, choice: EngineChoice, name: str, *, first: int = 1) -> Emitted:
    """Build the model.

    Parameters
    ----------
    cut : Cut
    choice : EngineChoice
    name : str
        Of the network.
    first : int
        Number of the first section's layers.

    Returns
    -------
    Emitted

    Raises
    ------
    ImportRefused
        With a line for each section that golden has no layers for.
    """
    maker = _Maker(cut, choice, first)
    lines = []
    for number, section in enumerate(cut.sections):
        try:
            maker.add(number, section)
        except ValueError as e:
            lines.append(node_line(section.name, choice.engines[number] + " engine", e))
            break  # what follows depends on it
    if lines:
        raise ImportRefused(lines)
    network = Network(name=name, input=maker.input, layers=tuple(maker.layers))
    return Emitted(
        model=Model(network, maker.arrays), scores=tuple(maker.scores), built=tuple(maker.built), real=maker.real
    )


class _Maker:
    """Layers as they are added, section by section."""

    def __init__(self, cut: Cut, choice: EngineChoice, first: int) -> None:
        rows, columns, channels = cut.size
        self.input = Map(height=rows, width=columns, channels=channels, encoding=choice.held[0].encoding)
        self.layers: list[Layer] = []
        self.arrays: dict[str, dict[str, Array]] = {}
        self.built: list[Built] = []
        self.scores: list[Line | Ends] = []
        self.real: dict[str, Array] = {}
        self._map = self.input
        self._cut, self._choice, self._first = cut, choice, first
        self._source: Quantised = cut.source
        self._head = cut.head
        pools = () if cut.head is None else cut.head.pools
        self._pools(0, cut.source, pools)

    def add(self, number: int, section: Section) -> None:
        """Add the layers of a section."""
        weights, held = self._choice.weights[number], self._choice.held[number]
        turned = np.ones(len(weights.values), np.int64)
        chain = self._chain(section, weights, held)
        as_bits = section.made is not None and self._choice.held[number + 1].encoding.kind == "bipolar"
        if section.made is not None and not as_bits:
            turned = _turns(chain)
        elif section.inner:
            turned = _turns(chain[: 1 + section.inner_at])
        weights, chain = _turned(weights, chain, turned)
        if self._choice.engines[number] == "integer" and (section.made is None or as_bits):
            weights = integer_weights(weights)
        place = self._first + number
        layer = self._weighted(place, section, weights)
        low, high = (end * section.count for end in layer.accumulator_range(self._map))
        begun = len(self.layers) if number else 0
        if section.made is None:
            self._append_weighted(layer, weights)
            self._append_sums(place, section)
            self.scores += joined(chain)
            summary = (0, 0, (0, 0))
        elif as_bits:
            self._append_weighted(layer, weights)
            self._append_sums(place, section)
            summary = self._thresholds(place, section, chain, (low, high))
        else:
            held = self._choice.held[number + 1]
            summary = self._requantised(place, section, held, layer, weights, chain)
        made = self._map.encoding
        self.built.append(
            Built(
                nodes=section.nodes if number or self._head is None else (*self._head.nodes, *section.nodes),
                layers=tuple(one.name for one in self.layers[begun:]),
                engine=self._choice.engines[number],
                weights=str(weights.encoding),
                made=str(made) if section.made is not None else "",
                range=(low, high),
                levels=summary[0],
                falling=summary[1],
                used=float((weights.values != 0).mean()),
                wrong=summary[2],
            )
        )
        if section.made is not None:
            self._source = section.made
        if number + 1 == len(self._cut.sections) and section.made is not None:
            channels = len(weights.values)
            one, none = np.full(channels, Fraction(1), object), np.full(channels, Fraction(0), object)
            last = worth(Line(multiply=one, add=none), section.made, self._choice.held[number + 1])
            self.scores += joined([last, *self._cut.final])

    def _chain(self, section: Section, weights: Weights, held: Held) -> list[Line | Ends]:
        """From the integers' sums to the quantiser: what sums are worth, then the file's chain."""
        line = worth(section.lead, self._source, held)
        # With one denominator for all channels, so that the products of each output are those of integers.
        divisor = lcm(*(add.denominator for add in line.add))
        adds = np.array([int(add * divisor) for add in line.add], object)
        totals = weights.values.sum(axis=(1, 2)).astype(object) @ adds  # (outputs,); 0 where there is padding
        constant = np.array([Fraction(total, divisor) for total in totals], object) * section.count
        sums = Line(multiply=weights.scale * line.multiply[0], add=weights.scale * constant)
        return [sums, *section.chain]

    def _append(self, layer: Layer, arrays: dict[str, Array]) -> None:
        self.layers.append(layer)
        if arrays:
            self.arrays[layer.name] = arrays
        self._map = layer.output_of([self._map])

    def _append_weighted(self, layer: Weighted, weights: Weights) -> None:
        weight = weights.values
        if layer.weight == BIPOLAR and weights.real is not None:
            self.real[layer.name] = with_signs(weights.real, weight)
        if isinstance(layer, Conv):
            layer, weight = by_groups(layer, weight)
        self._append(layer, {"weight": weight})

    def _append_sums(self, number: int, section: Section) -> None:
        """Sum pools for the means that are taken of a section's sums."""
        for window in section.sums:
            self._pool(number, window, SumPool)

    def _weighted(self, number: int, section: Section, weights: Weights) -> Weighted:
        outputs, rows, columns, _ = weights.values.shape
        if section.window is None:
            return Dense(name=f"dense_{number}", out_channels=outputs, weight=weights.encoding)
        return Conv(
            name=f"conv_{number}",
            out_channels=outputs,
            weight=weights.encoding,
            kernel=(rows, columns),
            stride=section.window.stride,
            padding=section.window.padding,
            dilation=section.window.dilation,
        )

    def _thresholds(
        self, number: int, section: Section, chain: Sequence[Line | Ends], reach: tuple[int, int]
    ) -> tuple[int, int, tuple[int, int]]:
        """Add thresholds, and max pools before or behind them."""
        made = section.made
        assert made is not None
        assert made.boundaries is not None
        assert made.reached is not None
        stairs = staircases(chain, made.boundaries, made.reached, len(section.weight))
        before = bool(section.inner) and not _rises(chain[1 + section.inner_at :])
        for window in section.inner if before else ():
            self._pool(number, window)
        self._append(Threshold(name=f"threshold_{number}", levels=made.levels), threshold_arrays(stairs, *reach))
        for window in (*(() if before else section.inner), *section.pools):
            self._pool(number, window)
        return made.levels, sum(not stair.rising for stair in stairs), (0, 0)

    def _requantised(
        self,
        number: int,
        section: Section,
        held: Held,
        layer: Weighted,
        weights: Weights,
        chain: Sequence[Line | Ends],
    ) -> tuple[int, int, tuple[int, int]]:
        """Add the weights, a requantisation and max pools; ``held`` is how their map is held."""
        made = section.made
        assert made is not None
        assert made.boundaries is not None
        assert made.reached is not None
        if section.inner and not _rises(chain[1 + section.inner_at :]):
            raise Unsupported("between a max pool and a quantiser nothing may fall, got a negative scale")
        ruled = made.rule is not None and held.zero == made.rule.low and not section.sums
        rule = made.rule if ruled else None
        if rule is not None:
            weights, chain = undivided(weights, chain, rule)
            layer = replace(layer, weight=weights.encoding)
        stairs = staircases(chain, made.boundaries, made.reached, len(weights.values))
        reach = _reaches(weights.values, self._map.encoding, section.count)
        inside = [stair.within(*ends) for stair, ends in zip(stairs, reach)]
        still = [all(limit is None for limit in stair.limits) for stair in inside]
        if any(still):  # a channel of one level: its weights are 0, so that its sum is
            values = weights.values * ~np.array(still)[:, None, None, None]
            weights = replace(weights, values=values, encoding=weight_encoding(values))
            layer = replace(layer, weight=weights.encoding)
        self._append_weighted(layer, weights)
        self._append_sums(number, section)
        slopes = _slopes(chain, made, len(weights.values))
        exact = None if rule is None else kernel_factors(rule, chain, inside, self._map.encoding)
        found = exact or fit(inside, slopes, held.zero, self._map.encoding)
        act = Requantise(
            name=f"requantise_{number}",
            encoding=held.encoding,
            clip=self._clip(stairs, held),
            fraction=found.fraction,
            rounding="twice" if exact and rule and rule.roundings == 2 else "even" if found.half_even else "once",
        )
        self._append(act, arrays(found.factors))
        self._pools(number, made, (*section.inner, *section.pools))
        missed = [k for k, factors in enumerate(found.factors) if not factors.exact]
        misses = [mismatch(stairs[k], k, found, held.zero, reach[k]) for k in missed]
        count, most = sum(count for count, _ in misses), max((most for _, most in misses), default=0)
        if most > 1:
            raise Unsupported(
                f"a requantisation must be at most 1 level off, got {most} levels at some of {count:,} sums",
                "choose scales that are nearer to each other",
            )
        return made.levels, 0, (count, most)

    def _clip(self, stairs: Sequence[Staircase], held: Held) -> tuple[int, int] | None:
        """The limits of a requantisation, which all channels share: the levels that any of them can have."""
        low, high = min(s.lowest for s in stairs), max(s.highest for s in stairs)
        uneven = [s for s in stairs if any(limit is not None for limit in s.limits)]
        if any((s.lowest, s.highest) != (low, high) for s in uneven):
            raise Unsupported("all channels must be clipped to the same values", "clip before what scales each channel")
        limits = (held.zero + low, held.zero + high)
        return None if limits == (held.encoding.low, held.encoding.high) else limits

    def _pools(self, number: int, made: Quantised, windows: Sequence[Window]) -> None:
        """Pools of quantised values: max pools, but for the last one, which is a mean where the values are averaged."""
        for window in windows[:-1]:
            self._pool(number, window)
        for window in windows[-1:]:
            self._pool(number, window, AvgPool if made.averaged else MaxPool)

    def _pool(self, number: int, window: Window, kind: type[Pool] = MaxPool) -> None:
        name = f"pool_{number}"
        taken = sum(layer.name.startswith(name) for layer in self.layers)
        name = f"{name}_{taken + 1}" if taken else name
        self._append(kind(name=name, kernel=window.kernel, stride=window.stride, padding=window.padding), {})


def _reaches(values: Array, source: Encoding, count: int) -> list[tuple[int, int]]:
    """The smallest and the largest sum of each output, of values of ``source``, or of 0 at padded places; ``count``
    times that where so many are added up."""
    low, high = min(source.low, 0), max(source.high, 0)
    rising = np.clip(values, 0, None).sum(axis=(1, 2, 3))
    falling = np.clip(values, None, 0).sum(axis=(1, 2, 3))
    ends = low * rising + high * falling, high * rising + low * falling
    return list(zip((ends[0] * count).tolist(), (ends[1] * count).tolist()))


def _turns(chain: Sequence[Line | Ends]) -> Array:
    """-1 for outputs that fall, between the sums and the end of a chain, as the sum rises; else 1. (outputs,)"""
    first = chain[0]
    assert isinstance(first, Line)
    sign = np.ones(len(first.multiply), np.int64)
    for link in chain:
        if isinstance(link, Line):
            sign *= [-1 if m < 0 else 1 for m in link.multiply]
    return sign


def _turned(weights: Weights, chain: Sequence[Line | Ends], turned: Array) -> tuple[Weights, list[Line | Ends]]:
    """Weights of which some outputs changed sign, and the chain on their sums."""
    if (turned == 1).all():
        return weights, list(chain)
    values = weights.values * turned[:, None, None, None]
    if stored_bits(weight_encoding(values)) > WEIGHT_BITS:
        most = (1 << WEIGHT_BITS - 1) - 1
        rule = f"weights that change sign, as a scale behind them is negative, must be {-most}..{most}"
        raise Unsupported(f"{rule}, got {-values.max()}", f"quantise weights to {-most}..{most}")
    first = chain[0]
    assert isinstance(first, Line)
    flipped = Line(multiply=first.multiply * turned, add=first.add)
    return replace(weights, values=values, encoding=weight_encoding(values)), [flipped, *chain[1:]]


def _rises(chain: Sequence[Line | Ends]) -> bool:
    """Whether nothing in a chain falls in any channel."""
    return all(isinstance(link, Ends) or all(m >= 0 for m in link.multiply) for link in chain)


def _slopes(chain: Sequence[Line | Ends], made: Quantised, channels: int) -> list[Fraction]:
    """Levels a unit of the sum, for each channel, clips aside."""
    slopes = []
    for channel in range(channels):
        slope = Fraction(1)
        for link in chain:
            if isinstance(link, Line):
                slope *= link.multiply[channel]
        limits = made.boundaries[channel if len(made.boundaries) > 1 else 0]  # type: ignore[index]
        gap = (limits[-1] - limits[0]) / (len(limits) - 1) if len(limits) > 1 else made.step
        slopes.append(slope / gap if gap else slope)
    return slopes

"""Stands of a walk, between two operations: a tensor of a map, of sums or of means; and what may follow each.

    AtMap   values of a quantised map --links--> the tensor
    AtSums  sums of weights, whose section is open until a quantiser comes --links, max pools--> the tensor
    AtMean  means of a map, for which it isn't known yet what computes them --links--> the tensor

==========  ============================  ============================  =====================================
what comes  `AtMap`                       `AtSums`                      `AtMean`
==========  ============================  ============================  =====================================
a link      one more                      one more                      one more
a curve     one more link                 refused                       refused
max pool    behind the map's section      in front of the quantiser     the means become sums
mean        `AtMean`                      the sums are added up         refused
quantiser   part of the map's quantiser,  the section ends: `AtMap`     a pool, where it rounds as the map has
            a copy or a table between                                   its values; else the means become sums
weights     `AtSums`                      refused                       `AtSums`, of means of a whole map
a copy      `AtMap`, of another map       refused                       refused
the end     nothing                       the section ends: `AtMap`     the means become sums
==========  ============================  ============================  =====================================

Each of these is a method, which gives what the walk stands at then. A stand is a value, and so is its trail
(trail.py), which has the tensor, the map and the sections.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, TypeVar

import numpy as np

from bitloom.golden.host.links import MOST_LINKS
from bitloom.golden.window import Window

from . import ahead
from .errors import ImportRefused, Unsupported, node_line
from .indexes import Copy, reaching
from .links import Line, Link, bend_name, falls, first_line, followed, is_looked_up
from .map_view import MapView
from .operations import Levels, Linear, Operation, Pooling
from .rationals import same
from .rows import Boundaries
from .second_quantiser import KeptBoundaries, SecondQuantiser, quantised_by, rounded_mean
from .sections import PassSection, TableSection, WeightSection
from .tflite_rules import KernelRule
from .trail import Trail, Unlinked
from .weight_sections import lead_of, of_copy, of_linear, of_linear_mean, of_mean
from .weights import in_parts, with_scales

AnyStand = TypeVar("AnyStand", bound="Stand")


@dataclass(frozen=True, kw_only=True, eq=False)
class Stand(ABC):
    """The point to which a walk has come on a branch: a tensor of a map, of sums or of means."""

    noun: ClassVar[str]
    """For messages, what the tensor is where no curve may follow."""

    trail: Trail
    behind: tuple[Link, ...] = ()
    """Links between the map, the sums or the means and the tensor."""

    @property
    def links(self) -> tuple[Link, ...]:
        """Links since the last quantiser or the last weights."""
        return self.behind

    @property
    def joinable(self) -> bool:
        """Whether another link may become one with the last one: there is one, and no pool lies between."""
        return bool(self.behind)

    def with_trail(self: AnyStand, trail: Trail) -> AnyStand:
        """The stand with another trail."""
        return replace(self, trail=trail)

    def at(self: AnyStand, view: MapView) -> AnyStand:
        """The stand at another tensor."""
        return self.with_trail(self.trail.at(view))

    @property
    def aside(self) -> "Stand":
        """The stand at the tensor on its side."""
        return self.at(self.trail.view.aside)

    def follow(self: AnyStand, link: Link) -> AnyStand:
        """Let a link follow; lines that follow each other become one."""
        behind = followed(self.behind, link) if self.joinable else [*self.behind, link]
        stand = replace(self, behind=tuple(behind))
        if len(stand.links) > MOST_LINKS:
            rule = f"at most {MOST_LINKS} activations and scales may lie between two quantisers"
            raise Unsupported(f"{rule}, got more")
        return stand

    def check_curve(self, link: Link) -> None:
        """Refuse a curve, which only a table of a map's values has."""
        raise Unsupported(f"what {link.name} reads must be quantised, got {self.noun}", "quantise before it")

    def in_front_of(self, operation: Operation) -> "Stand":
        """Where the walk stands in front of an operation: at a copy of the map, if the operation can't be taken of the
        tensor as it is."""
        return self if self.trail.view.takes(operation) else self.copy(operation)

    def in_front_of_pool(self, operation: Pooling) -> tuple["Stand", Pooling]:
        """Where the walk stands in front of a pool, and the pool, which may take up padding of the tensor."""
        return self.in_front_of(operation), operation

    def copy(self, following: Operation, at_end: bool = False) -> "AtMap":
        """Make the map again, padded, grown, cut and in blocks as the tensor is, by weights that copy values: of each
        window one counts. The copy is made in front of an operation, or ``at_end`` behind it."""
        rule = "a map that is padded, cut or grows must be quantised before, or be read by a convolution"
        raise Unsupported(rule)

    def copy_channels(self) -> "Stand":
        """Put weights between two quantisers, where the second one needs them."""
        return self

    @abstractmethod
    def pool(self, operation: Pooling) -> "Stand":
        """Let a max pool follow."""

    @abstractmethod
    def average(self, operation: Pooling) -> "Stand":
        """Let a mean of each window follow."""

    @abstractmethod
    def quantise(self, operation: Levels) -> "AtMap":
        """Let a quantiser follow, whose numbers of each channel are in the order of golden's map."""

    @abstractmethod
    def weigh(self, operation: Linear) -> "Stand":
        """Let weights follow."""

    @abstractmethod
    def end(self) -> "Stand":
        """Let nothing follow."""

    def begin(self, section: WeightSection, links: tuple[Link, ...] = ()) -> "AtSums":
        """Begin a section with weights; links lie behind its sums."""
        section = replace(with_scales(section), nodes=self.trail.nodes)
        return AtSums(trail=self.trail, behind=links, section=section)


class AtMap(Stand):
    """At values of a quantised map, or of the input while the host works on real numbers."""

    def check_curve(self, link: Link) -> None:
        pass

    def in_front_of_pool(self, operation: Pooling) -> tuple[Stand, Pooling]:
        takes = self.trail.view.takes(operation) and not self._lacks_mean(operation)
        stand = self if takes else self.copy(operation)
        return (stand, operation) if stand.trail.view.has_each_once else stand._with_padding(operation)

    def pool(self, operation: Pooling) -> Stand:
        if falls(self.links):
            raise Unsupported("what lies between a quantiser and a max pool must rise in every channel")
        return self.with_trail(self.trail.pooled(operation))

    def average(self, operation: Pooling) -> Stand:
        return AtMean(trail=self.trail, before=self.links, mean=operation, view=self.trail.view)

    def weigh(self, operation: Linear) -> Stand:
        stand = self if self.trail.view.takes(operation) else self.copy(operation)
        trail = stand.trail
        lead = lead_of(stand.links, trail.input, trail.channels)
        reading = trail.reading(operation.reads[0], trail.view, lead)
        section, sums = of_linear(operation, trail.view, reading, lead)
        return stand.at(sums).begin(section)

    def end(self) -> Stand:
        return self

    def _lacks_mean(self, operation: Pooling) -> bool:
        """Whether a pool is a padded mean of a map whose integers golden's average pool can't read. No convolution is a
        padded mean: so the map is copied."""
        if self.trail.source is None or not operation.average or not any(operation.window.padding):
            return False
        return self.trail.input.name in self.trail.means_as_sums or self.trail.is_shifted

    def _with_padding(self, operation: Pooling) -> tuple[Stand, Pooling]:
        """A pool that takes the padding in front of it: a maximum where padding is no larger than any value of the map.
        Elsewhere the padded map is made before, by weights."""
        source = self.trail.input
        view = self.trail.view
        lowest = min(self._worth_of(source.base + source.step * level) for level in (0, source.levels))
        index, window = reaching(view.index, operation.window)
        fits = window is not None and window.growth == (1, 1) and window.beside == "nothing"
        if operation.average or view.padded_with > lowest or not fits:
            return self.copy(operation), operation
        assert window is not None
        return self.at(view.with_index(index)), replace(operation, window=window)

    def _worth_of(self, value: Fraction) -> Fraction:
        """Number behind the links of a value of the map; links must be alike in all channels."""
        for link in self.links:
            value = self.trail.view.behind(link, value)
        return value

    # Copies

    def copy(self, following: Operation, at_end: bool = False) -> "AtMap":
        if self.trail.source is None:
            return super().copy(following, at_end)
        trail = self.trail
        view = trail.view
        source = trail.input
        first, behind = first_line(self.links, trail.channels)
        multiply = same(first.multiply)
        add = same(first.add)
        if behind or multiply is None or add is None or multiply <= 0:
            scale = "several" if multiply is None or add is None else f"{float(multiply):g}"
            got = f"a {bend_name(behind)}" if behind else scale
            rule = "a map that is padded, cut or grows must have one scale > 0 behind its quantiser"
            raise Unsupported(f"{rule}, got {got}", "quantise before it")
        nodes = tuple(name for name in trail.nodes if at_end or name != following.name) or (following.name,)
        copy, index = view.copy(following)
        number = Fraction(0)
        if view.is_padded:
            number = (view.padded_with - add) / multiply
            level = (number - source.base) / source.step
            if level.denominator != 1 or not 0 <= level <= source.levels:
                raise Unsupported(f"what a map is padded with must be one of its values, got {float(number):g}")
        # A padded tap adds 0: so the number that stands there is taken off in front of the weights, and added behind.
        line = Line.identity(trail.channels)
        links = (replace(line, add=line.add + number), *self.behind)
        stand = replace(self, trail=replace(trail, nodes=nodes), behind=links)
        sums = stand.begin_copy(following, replace(line, add=line.add - number), copy)
        sums = sums.at(sums.trail.view.with_index(index))
        base = source.base * multiply + add
        step = source.step * multiply
        boundaries = Boundaries.halfway(base, step, source.levels)
        copied = sums.quantise(following.become(Levels, base=base, step=step, boundaries=boundaries))
        unlinked = Unlinked(following.reads[0], copied.trail.view)
        return copied.with_trail(replace(copied.trail, unlinked=unlinked, nodes=(following.name,)))

    def copy_channels(self) -> Stand:
        trail = self.trail
        if trail.sections and not trail.view.is_padded and ahead.differs_by_channel(trail.following, trail.view):
            return self.begin_copy(trail.following[0])
        return self

    def begin_copy(self, following: Operation, lead: Line | None = None, copy: Copy | None = None) -> "AtSums":
        """Begin a section whose weights copy channels, for what may follow only weights; ``following`` is next.

        With a ``lead`` weights read the map as its quantiser made it, behind that line, and links stay behind them;
        else they read what the links make.
        """
        copy = copy or Copy(window=Window(kernel=(1, 1)))
        view = self.trail.view
        links: tuple[Link, ...] = ()
        if lead is None:
            lead = lead_of(self.links, self.trail.input, view.size[2])
            reading = self.trail.reading(following.reads[0], view, lead)
        else:
            reading = self.trail.unlinked_reading
            links = self.links
        section = of_copy(following, copy, view.size, reading, lead)
        if copy.channels is not None:  # of several channels that an output copies the links are the same
            links = tuple(link.taken(copy.channels.max(axis=(1, 2))) for link in links)
        return self.at(replace(view, size=section.size)).begin(section, links)

    # A quantiser behind that of the map

    def quantise(self, operation: Levels) -> "AtMap":
        trail = self.trail.at(self.trail.view.quantised(operation))
        if trail.source is None:  # the host's quantiser
            return AtMap(trail=replace(trail, source=quantised_by(operation), front=self.links))
        return self.with_trail(trail)._quantise_again(operation)

    def _quantise_again(self, operation: Levels) -> "AtMap":
        """Let a second quantiser follow."""
        second = self.second(operation)
        if is_looked_up(self.links):
            return self.look_up(second)
        try:
            kept = second.kept()
            self._check_passes(kept)
        except Unsupported:
            stand = self._between(second)
            if stand is None:
                raise
            return stand
        rounded_first = second.rounds_means_first(kept)
        stand = self._between(second) if self.trail.sections and (rounded_first or second.is_bent(kept)) else None
        if stand is None and rounded_first:
            name = bend_name(self.links)
            raise Unsupported(f"a mean that is quantised twice must have no {name} between both quantisers")
        return stand or self._merge(second, kept)

    def second(self, operation: Levels) -> SecondQuantiser:
        """A quantiser behind that of the map."""
        trail = self.trail
        verb = trail.last.verb if trail.last else "quantised"
        return SecondQuantiser(
            first=trail.input, verb=verb, links=self.links, levels=operation, channels=trail.channels
        )

    def _check_passes(self, kept: KeptBoundaries) -> None:
        """Refuse to leave out levels of a map that others read, too."""
        trail = self.trail
        passes = isinstance(trail.last, PassSection) if trail.last else trail.map > 0
        if passes and not kept.has_all(trail.input):
            rule = f"a quantiser of a map with several readers must keep its {trail.input.levels + 1} values"
            got = f"{len({*kept.places}) + 1} in {len(kept.places) + 1} steps"
            raise Unsupported(f"{rule}, each one step apart, got {got}")

    def _merge(self, second: SecondQuantiser, kept: KeptBoundaries) -> "AtMap":
        """Let two quantisers be one."""
        source = second.merged(kept)
        trail = replace(self.trail, source=source)
        section = trail.last
        if section is not None:  # else the host has both
            if isinstance(section, TableSection):
                section = replace(section, table=section.table.behind(kept.places))
            trail = trail.with_last(replace(section, quantised=source))
        return AtMap(trail=trail)

    def _between(self, second: SecondQuantiser) -> "AtMap | None":
        """Put a copy of every channel between two quantisers, if it can be. Where no line has the second one's levels
        either, a table has them."""
        if self.trail.view.is_padded:
            return None
        if not second.is_straight or second.multiplies_by_more:
            return self.look_up(second)
        line, bent = first_line(self.links, self.trail.channels)
        leads = not bent and same(line.multiply) not in (None, Fraction(0))
        lead = None if leads else Line.identity(self.trail.channels)
        return self.begin_copy(second.levels, lead).quantise(second.levels)

    def look_up(self, second: SecondQuantiser) -> "AtMap":
        """Let a table have what links and a quantiser make of each value of a map; of a map that a table makes, that
        one, where both are the same in all channels."""
        trail = self.trail
        table = second.table()
        quantised = replace(quantised_by(second.levels), rule=None)
        before = trail.last
        if isinstance(before, TableSection) and not before.pools and before.table.is_uniform and table.is_uniform:
            trail = trail.with_last(replace(before, quantised=quantised, table=before.table.through(table)))
        else:
            section = TableSection(
                name=second.levels.name,
                op=second.levels.op,
                nodes=trail.nodes,
                reads=(trail.unlinked_reading,),
                size=trail.view.size,
                quantised=quantised,
                table=table,
            )
            trail = trail.closed(section)
        return AtMap(trail=replace(trail, source=quantised))


@dataclass(frozen=True, kw_only=True, eq=False)
class AtSums(Stand):
    """At sums of weights, in front of their quantiser."""

    noun = "sums of weights"

    section: WeightSection
    """The section as far as it is known."""

    @property
    def joinable(self) -> bool:
        return len(self.behind) > self.section.inner_at

    def pool(self, operation: Pooling) -> Stand:
        section = self.section
        if section.inner and section.inner_at != len(self.behind):
            raise Unsupported("two max pools before a quantiser must follow each other")
        inner = (*section.inner, operation.window)
        return replace(self, section=replace(section, inner=inner, inner_at=len(self.behind)))

    def average(self, operation: Pooling) -> Stand:
        """A mean of sums is their sum, and what follows takes up the division. What is added to sums before, or
        multiplied with, is the same behind the mean."""
        section = self.section
        _, bent = first_line(self.behind, self.trail.channels)
        if section.inner or bent:
            rule = f"a mean of sums must come before a {bend_name(bent) if bent else 'max pool'}"
            raise Unsupported(rule, "quantise before it")
        window = operation.window
        counts = np.unique((window.positions(*self.trail.view.size[:2]) >= 0).sum(axis=1))
        if counts.tolist() != [window.taps]:
            rule = f"a mean of sums must have {window.taps} values in every window"
            raise Unsupported(f"{rule}, got {counts[0]} in some", "quantise before it")
        section = replace(section, sums=(*section.sums, window), scale=section.scale / window.taps)
        return replace(self, section=section)

    def quantise(self, operation: Levels) -> AtMap:
        stand = self._with_products(operation.rule)
        source = quantised_by(operation)
        trail = replace(self.trail, view=self.trail.view.quantised(operation), source=source)
        return stand.with_trail(trail)._closed(replace(stand.section, quantised=source))

    def weigh(self, operation: Linear) -> Stand:
        raise Unsupported("its input must be quantised, got sums of other weights", "quantise before it")

    def end(self) -> Stand:
        if self.section.inner:
            why = "a max pool must be behind a quantiser or before one, got neither"
            raise ImportRefused([f"{self.section.name}: {why}"])
        return self._closed(self.section)

    def _closed(self, section: WeightSection) -> AtMap:
        """At the map that the section makes."""
        section = replace(section, chain=self.links, nodes=self.trail.nodes)
        return AtMap(trail=self.trail.closed(section))

    def _with_products(self, rule: KernelRule | None) -> "AtSums":
        """The stand with the whole numbers that follow multiplied into weights that copy, as a kernel's rule is for
        such products."""
        first = self.behind[0] if self.behind else None
        if not self.section.copies or rule is None or not isinstance(first, Line):
            return self
        if any(number.denominator != 1 for number in first.multiply):
            return self
        factors = np.array([int(number) for number in first.multiply], np.int64)
        weight = self.section.weight * factors[:, None, None, None]
        product = replace(self.section, weight=weight, copies=False)
        added = Line(multiply=np.full(len(factors), Fraction(1), object), add=first.add)
        section = in_parts(product) if rule.needs_sums else product
        return replace(self, behind=(added, *self.behind[1:]), section=section)


@dataclass(frozen=True, kw_only=True, eq=False)
class AtMean(Stand):
    """At means of a map."""

    noun = "a mean"

    before: tuple[Link, ...]
    """Links between the map and the means."""
    mean: Pooling
    view: MapView
    """The tensor in front of the means."""

    @property
    def links(self) -> tuple[Link, ...]:
        return (*self.before, *self.behind)

    @property
    def aside(self) -> Stand:
        return replace(self.at(self.trail.view.aside), view=self.view.aside)

    def pool(self, operation: Pooling) -> Stand:
        return self.sums().pool(operation)

    def average(self, operation: Pooling) -> Stand:
        raise Unsupported("a mean of means must be quantised between")

    def quantise(self, operation: Levels) -> AtMap:
        return self._rounded(operation) or self.sums().quantise(operation)

    def weigh(self, operation: Linear) -> Stand:
        trail = self.trail
        view = trail.view
        if operation.window is not None or view.size[:2] != (1, 1) or any(self.mean.window.padding):
            self.sums()
            raise Unsupported("a mean must be quantised before weights read it, unless it is of the whole map")
        _, bent = first_line(self.links, trail.channels)
        if bent:
            raise Unsupported(f"a {bend_name(bent)} must not lie between a quantiser and a mean that weights read")
        reading = trail.reading(self.mean.reads[0], self.view, lead_of(self.before, trail.input, trail.channels))
        lead = lead_of(self.links, trail.input, trail.channels)
        section = of_linear_mean(operation, self.mean, view, reading, lead)
        return self.at(view.of_map(section.size).flat).begin(section)

    def end(self) -> Stand:
        try:
            sums = self.sums()
        except ValueError as e:
            raise ImportRefused([node_line(self.mean.name, self.mean.op, e)]) from None
        return sums.end()

    def sums(self) -> AtSums:
        """At the means as sums of weights."""
        trail = self.trail
        lead = lead_of(self.before, trail.input, trail.channels)
        reading = trail.reading(self.mean.reads[0], self.view, lead)
        return self.begin(of_mean(self.mean, trail.view.size, reading, lead), self.behind)

    def _rounded(self, operation: Levels) -> AtMap | None:
        """At the map of a pool, if a quantiser rounds means to the values of their map, as golden's average pool does;
        of a padded mean, which no weights are, if it does so but for halves."""
        trail = self.trail
        window = self.mean.window
        padded = any(window.padding)
        counts = np.unique((window.positions(*self.view.size[:2]) >= 0).sum(axis=1)).tolist()
        source = rounded_mean(trail.input, self.links, operation, counts)
        if source is None or (not padded and (source.means_off or self.links)):
            return None
        following = trail.following
        as_sums = trail.input.name in trail.means_as_sums
        copied = as_sums or ahead.pads_elsewhere(following) or ahead.pools_again(following)
        if (copied or (source.halves and trail.is_shifted)) and not padded:
            return None
        trail = replace(trail, source=source).pooled(self.mean)
        if not copied or not following:
            return AtMap(trail=trail)
        trail = replace(trail, unlinked=Unlinked(operation.makes, trail.view))
        return AtMap(trail=trail).copy(following[0])

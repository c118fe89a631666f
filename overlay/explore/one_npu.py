"""One NPU for some layers of a network: the foldings with which it takes at most so many cycles a frame, with its area.

For a set of layers and each KFP there is the least KGP that keeps to the interval, and a few more; for each of these
the least OL and PFP with which results come in time, and with which they fill the words of the next layer without a
gap. The layers say which inlets and outlets it has: chains (chain.py) and rings (ring.py) are made of such NPUs.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any, Generic, NamedTuple, TypeVar

from bitloom.golden.limits import WIDTH
from bitloom.hls_gen.compiler.layout import result_layout
from bitloom.hls_gen.compiler.planned_layer import added_in_steps
from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.copy_names import is_copy
from bitloom.hls_gen.design.former import has_place
from bitloom.hls_gen.design.gearbox import geared, regroup
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import RAM_STYLES
from bitloom.hls_gen.design.pool_unit import lines_fit
from bitloom.hls_gen.design.widths import PLANES, SKIP_BITS, bits_for
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area_model.estimate import estimate_cores, estimate_outlets

from .folding_keys import ARRAY_CYCLES, FOLDING, OUTLETS
from .layer_demand import LayerDemand, OutletTuple
from .npu_memories import Indices, NpuMemories
from .price import Price
from .searched import FASTEST, LINE_TAPS, TRIED, combinations

T = TypeVar("T")
CyclesByOl = Callable[[int], int]
"""Gives cycles of a frame by OL."""
OUT = "output_stationary"
"""Dataflow by which NPUs are chosen; variations have others."""
FOLDINGS = 8192
"""Foldings of which the arrays' cycles are kept."""
KEPT = 500
"""NPUs without a folding whose foldings are kept, about, those of each interval counted: of a large network those of
one interval alone."""
CHOICES = 4
"""OLs that are tried for their fit to the next NPU's words."""
BETWEEN = 40
"""Cycles that a frame is taken to need from one layer to the next on the same NPU, as the first one's last results are
still on their way. A choice of the search: on the reference designs of one NPU the flow model finds 1 to 12 more than
the layers take by formula, for six of seven networks, and 53 with cifar-quick-int8-former."""
MOST_LUT_ROWS, MOST_LUT_ROWS_FOR_BLOCKS = 128, 1024
"""Rows of kernels that are also tried in RAM that Yosys would not take; the second where block RAM is limited."""
WIDE = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""KFPs that are tried for NPUs of several layers."""
PFPS = (1, 2, 4, 8, 16)
"""PFPs that are tried, as multiples of OL; the last one only for pool units with weights."""
SAVED = ("kernels_per_multiplier", "lut_products")
"""Values that `saving` varies, where DSP blocks are limited."""


@dataclass(frozen=True)
class MappedNpu:
    """An NPU and its layers."""

    npu: Npu
    """The NPU, with the sizes of its memories."""
    indices: Indices
    """Numbers of its layers, rising."""
    copies: Indices = ()
    """Those of them that are copies of maps."""


class Sized:
    """An NPU for some layers with sizes of its memories, and the area of what else it may have beside its folding.

    Parameters
    ----------
    npu
        The NPU with the sizes.
    styles
        Kinds of RAM that are tried for its kernels.
    """

    __slots__ = ("_each", "_styles", "npu")

    def __init__(self, npu: Npu, styles: Sequence[str]):
        self.npu = npu
        self._styles = styles
        self._each: list[tuple[dict[str, Any], list[Resources]]] = []
        """Of what `saving` gives, as far as somebody looked: the values of SAVED, and the area in each kind of RAM."""

    def foldings(self, stream_bits: int, saves_dsp: bool) -> "list[SizedFolding]":
        """The NPU with each kind of RAM for its kernels; with ``saves_dsp`` also with fewer DSP blocks."""
        if saves_dsp or not self._each:
            for npu in islice(saving(self.npu, saves_dsp), len(self._each), None):
                saved = {key: npu.value(key) for key in SAVED}
                self._each.append((saved, estimate_cores(npu, stream_bits, self._styles)))
        each = self._each if saves_dsp else self._each[:1]
        return [
            SizedFolding(self.npu, {**saved, "kernel_ram": style}, areas[k])
            for k, style in enumerate(self._styles)
            for saved, areas in each
        ]


class SentWords(NamedTuple):
    """Words in which a map leaves for another NPU."""

    lanes: int
    bits: int
    """lanes, bits: lanes of a word, and its bits."""


class Behind(NamedTuple):
    """The NPUs behind an NPU, as its own choice depends on them."""

    price: float
    """Price of the NPUs there."""
    words: SentWords | None = None
    """Words in which the NPU's map leaves for them; None where there are none."""


class SizedFolding(NamedTuple):
    """A choice for an NPU: a folding with the sizes of its memories, and its area."""

    npu: Npu
    """Its folding with the sizes."""
    besides: dict[str, Any]
    """Further values, by parameter."""
    area: Resources
    """Of the NPU without the gearboxes at its outlets."""


class Folding:
    """A folding that keeps to an interval, and what has been worked out for it.

    Parameters
    ----------
    npu
        The NPU, its memories without sizes.
    leaving
        The layers whose maps leave it for another NPU.
    """

    __slots__ = ("_leaving", "_tuples", "cheapest", "gears", "npu", "price", "sized")

    def __init__(self, npu: Npu, leaving: Sequence[LayerDemand]):
        self.npu = npu
        self.gears: dict[int, float] | None = None
        """Bits of a word of the NPU after -> LUTs of the gearboxes at the outlets; other foldings may have the same."""
        self.sized: dict[bool, list[SizedFolding]] = {}
        """By ``saves_dsp``: what the NPU may be with sizes."""
        self._leaving = leaving
        self._tuples: list[OutletTuple] | None = None
        self.price: Price | None = None
        self.cheapest: tuple[float, SizedFolding] | None = None
        """price, cheapest: the latest price that was asked for; what is cheapest then, and its price without gearboxes:
        None where there is nothing."""

    def fits(self, lanes: int) -> bool:
        """Whether results come to a reader with so many lanes as they should."""
        if self._tuples is None:
            self._tuples = [layer.outlet_tuple(self.npu) for layer in self._leaving]
        return all(each.fits(lanes) for each in self._tuples)

    def take_cheapest(self, sized: Iterable[SizedFolding], price: Price) -> None:
        """Of what the NPU may be with sizes the cheapest is looked for."""
        self.price = price
        costs = [(price.of(each.area, each.npu.lanes), each) for each in sized]
        self.cheapest = min(costs, key=itemgetter(0), default=None)


class Drawn(Generic[T]):
    """The items of an iterator, kept; one is drawn only as far as somebody looks. One reader may iterate after another,
    also where the first one stopped early, but not both at the same time: each would miss items that the other one
    draws."""

    __slots__ = ("_items", "_source")

    def __init__(self, source: Iterable[T]):
        self._source = iter(source)
        self._items: list[T] = []

    def __iter__(self) -> Iterator[T]:
        yield from self._items
        for item in self._source:
            self._items.append(item)
            yield item


class Foldings:
    """The foldings of an NPU for some layers that keep to an interval.

    Parameters
    ----------
    by_kgp
        Those with each KGP, the smallest first.
    """

    __slots__ = ("_before", "by_kgp")

    def __init__(self, by_kgp: Sequence[Drawn[Folding]]):
        self.by_kgp = by_kgp
        self._before: dict[int | None, list[Folding]] = {}

    def before(self, lanes: int | None) -> list[Folding]:
        """Of those with each KGP the first one whose results come to a reader with so many lanes as they should; the
        first of all where there is no reader."""
        if lanes not in self._before:
            fitting = (
                next((folding for folding in of_kgp if lanes is None or folding.fits(lanes)), None)
                for of_kgp in self.by_kgp
            )
            self._before[lanes] = [folding for folding in fitting if folding]
        return self._before[lanes]


@dataclass
class _KnownAt:
    """The results of `NpuChoices` at an interval."""

    by_kfp: dict[Indices, list[tuple[Npu, Foldings]]] = field(default_factory=dict)
    foldings: dict[tuple, Foldings] = field(default_factory=dict)
    fewest_lanes: dict[tuple, float] = field(default_factory=dict)


@dataclass
class _Known:
    """The results of `NpuChoices` for all intervals."""

    at: dict[int, _KnownAt] = field(default_factory=dict)
    """By the interval."""
    sized: dict[tuple, Sized | None] = field(default_factory=dict)
    parts: dict[Any, Any] = field(default_factory=dict)
    outlets: dict[tuple, dict[int, float]] = field(default_factory=dict)
    bare: dict[Indices, list[Npu]] = field(default_factory=dict)
    array_cycles: dict[tuple, dict[LayerDemand, CyclesByOl]] = field(default_factory=dict)


@dataclass
class NpuChoices:
    """The foldings that an NPU may have for layers of one network, or of several. The object keeps what it has worked
    out."""

    layers: Sequence[LayerDemand]
    """The network's weighted layers."""
    stream_bits: int = 64
    """Width of both streams, 32 or 64."""
    lut_rows: int = MOST_LUT_ROWS
    """Rows of a kernel memory that is tried in LUT RAM, at most."""
    counters: bool = False
    """Whether NPUs have counters for raster order."""
    streamed: bool = False
    """Whether weights come down the stream, so that an NPU of several layers needs fewer rows of kernels."""
    depthwise: bool = False
    """Whether pool units have weights."""
    networks: Sequence[range] = ()
    """Where ``layers`` are those of several networks: the numbers of each one's. They have NPUs in common, which
    compute a frame of each in an interval. Empty for one network."""
    mapping: Sequence[int] = ()
    """NPU of each of ``layers`` where they are of several networks, or copies are among them, which a mapping of the
    network's own layers needs."""
    elder: "NpuChoices | None" = None
    """The same for another choice of engines, or another map order, which is asked for NPUs for layers that are alike
    (alike.py); None: nobody."""
    alike: frozenset[int] = frozenset()
    """Numbers of these layers."""
    _known: _Known = field(init=False, default_factory=_Known)

    def __post_init__(self) -> None:
        self._memories = NpuMemories(self.layers, self._networks, streamed=self.streamed)

    def __getstate__(self) -> dict[str, Any]:
        """The state for another process, which works out the rest itself."""
        return {**vars(self), "_known": _Known()}

    @property
    def kept(self) -> int:
        """NPUs of which sizes are kept."""
        return len(self._known.sized)

    def forget(self) -> None:
        """Let go of all that was worked out: of a large network that is gigabytes in all settings together."""
        self._known = _Known()
        self._memories.forget()

    @property
    def _networks(self) -> Sequence[range]:
        """The numbers of each network's layers."""
        return self.networks or [range(len(self.layers))]

    def by_kfp(self, indices: Indices, interval: int) -> list[tuple[Npu, Foldings]]:
        """For each KFP of an NPU for layers ``indices`` the NPU without a folding, and its foldings that keep to the
        interval; where a frame comes from the host, only NPUs to which it comes in time."""
        known = self._known_at(interval).by_kfp
        if indices not in known:
            npus = (npu for npu in self.bare(indices) if indices[0] or self.enters(npu, interval))
            known[indices] = [(npu, self.foldings(indices, npu, interval)) for npu in npus]
        return known[indices]

    def foldings(self, indices: Indices, bare: Npu, interval: int) -> Foldings:
        """The foldings with which the NPU ``bare`` keeps to the interval; with its own KGP and OL if it has more than
        one kernel at a time."""
        known = self._known_at(interval).foldings
        key = indices, FOLDING(bare)
        if key not in known:
            known[key] = Foldings(self._possible(indices, bare, interval))
        return known[key]

    def _known_at(self, interval: int) -> _KnownAt:
        """The results at an interval so far."""
        known = self._known.at
        if interval not in known:
            if sum(len(at.foldings) for at in known.values()) > KEPT:
                known.clear()
            known[interval] = _KnownAt()
        return known[interval]

    def in_front_of(self, reader: Npu | None, indices: Indices) -> SentWords | None:
        """The words that the NPU ``reader`` takes of an NPU for layers ``indices``: of the other engine's features each
        is a bit. None without a reader."""
        if reader is None:
            return None
        array = reader.array
        same = reader.engine == self.layers[indices[0]].engine
        return SentWords(array.map_lanes, array.map_bits if same else array.map_lanes)

    def cheapest(
        self,
        indices: Indices,
        foldings: Foldings,
        behind: Iterable[Behind],
        price: Price,
        below: float = float("inf"),
    ) -> tuple[float, SizedFolding, int] | None:
        """The cheapest NPU together with what lies behind it: the price of both, the NPU, and which of ``behind`` that
        is, counted from 0; None where all cost ``below`` or more."""
        best: tuple[float, SizedFolding, int] | None = None
        least = min(price.npu, 0)
        for n, (cost_behind, words) in enumerate(behind if foldings.by_kgp else ()):
            if cost_behind + least >= below:
                continue
            for folding in foldings.before(words and words.lanes):
                if folding.price is not price:
                    folding.take_cheapest(self._sized(indices, folding, price.saves_dsp), price)
                if folding.cheapest and cost_behind + folding.cheapest[0] < below:
                    bits = words.bits if words else folding.npu.array.map_bits
                    cost = cost_behind + (folding.cheapest[0] + self._gears(folding, bits))
                    if cost < below:
                        below = cost
                        best = cost, folding.cheapest[1], n
        return best

    def asked(self, indices: Indices) -> "NpuChoices":
        """Who is asked what an NPU for these layers may be: an elder, or this one."""
        return self.elder.asked(indices) if self.elder and self.alike.issuperset(indices) else self

    def with_elders(self) -> "list[NpuChoices]":
        """These choices, those of the search that they go on from (``elder``), those of that one's elder, and so on."""
        return [self, *(self.elder.with_elders() if self.elder else ())]

    def bare(self, indices: Indices) -> list[Npu]:
        """NPUs for layers ``indices``, one for each KFP that is looked at, without a folding beside; none where the
        layers are for different engines."""
        if indices not in self._known.bare:
            npus = list[Npu]()
            layers = [self.layers[i] for i in indices]
            if len({layer.engine for layer in layers}) == 1:
                base = self._base(indices)
                npus = self._wide(layers, base)
                npus += self._with_lines(layers, npus)
                if has_place(base.ports.inlets):
                    formed = self._wide(
                        [layer.with_former or layer for layer in layers], base.unchecked(window_former=True)
                    )
                    formed = [npu for npu in formed if any(layer.gains_by_former(npu) for layer in layers)]
                    npus += formed
                    npus += self._with_lines(layers, formed) if has_place(base.ports.inlets, LINE_TAPS) else []
            self._known.bare[indices] = npus
        return self._known.bare[indices]

    def indices_on(self, n: int, mapping: Sequence[int]) -> Indices:
        """Numbers of the layers that NPU ``n`` computes with that mapping of the network's own layers."""
        return tuple(i for i, npu in enumerate(self.mapping or mapping) if npu == n)

    def mapped_npu(self, sized: SizedFolding, indices: Indices) -> MappedNpu:
        """The NPU with its layers."""
        copies = tuple(i for i in indices if is_copy(self.layers[i].name))
        return MappedNpu(sized.npu.unchecked(**sized.besides), indices, copies)

    def layers_of(self, indices: Indices, npu: Npu) -> list[LayerDemand]:
        """The layers ``indices`` as that NPU reads them."""
        return [self.layers[i].seen_by(npu) for i in indices]

    def _wide(self, layers: Sequence[LayerDemand], base: Npu) -> list[Npu]:
        """The NPU ``base`` for these layers with each KFP that is looked at."""
        npus = list[Npu]()
        alone = len(layers) == 1
        widest = max(layer.channels for layer in layers)
        wide = splits(widest) if alone else [w for w in WIDE if w < 2 * widest]
        planes = layers[0].planes
        if planes:
            beside = max(2, planes)
            if beside <= PLANES:
                sizes = [n * (beside + 1) for n in splits(layers[0].channels)]
                sizes += [] if alone else [w for w in wide if w > sizes[-1]]
                npus += [base.unchecked(kfp=n, planes=beside) for n in whole_words(sizes, base.value("word_lanes"))]
            base = base.unchecked(shift_bits=max(3, bits_for(planes - 1)))
        return npus + [base.unchecked(kfp=n) for n in whole_words(wide, base.value("word_lanes"))]

    def _with_lines(self, layers: Sequence[LayerDemand], npus: Sequence[Npu]) -> list[Npu]:
        """NPUs like ``npus`` whose array takes several taps a beat, with each KFP that is looked at: those that take
        fewer beats than each of ``npus``, or use their lanes better than each that takes no more beats."""
        if not npus or npus[0].array.planes or npus[0].value("word_lanes"):
            return []
        if all(layer.with_lines is None for layer in layers):
            return []
        widest = max(layer.channels for layer in layers)
        sizes = [LINE_TAPS * w for w in splits(widest)] if len(layers) == 1 else [w for w in WIDE if w % LINE_TAPS == 0]
        others = [(_beats(layers, npu), npu.array.kfp) for npu in npus]
        lined = list[Npu]()
        for kfp in (size for size in sizes if size <= WIDTH.value):
            npu = npus[0].unchecked(kfp=kfp, line_taps=LINE_TAPS)
            beats = _beats(layers, npu)
            if not any(other <= beats and other * lanes <= beats * kfp for other, lanes in others):
                lined.append(npu)
        return lined

    def _base(self, indices: Indices) -> Npu:
        """An NPU for these layers with the least folding, and with the inlets and outlets by which their maps go."""
        layers = [self.layers[i] for i in indices]
        lasts = {numbers[-1] for numbers in self._networks}
        kinds = {layer.any_match for layer in layers}
        words = {layer.word_channels for layer in layers}
        counted = "both" if len(kinds) > 1 else "or" if True in kinds else "popcount"
        loop = any(layer.reader in indices for layer in layers)
        left = any(layer.reader not in (None, *indices) for layer in layers)
        reads = {layer.reads for layer in layers}
        inlets = {"host": None in reads, "ring": not reads <= {None, *indices}, "loop": loop}
        outlets = {"ring": left, "loop": loop, "host": not lasts.isdisjoint(indices)}
        skips = any(layer.taker is not None or layer.adds is not None for layer in layers)
        steps = skips and layers[0].lowered.binary
        return Npu.of(
            engine=layers[0].engine,
            feature_bits=max(layer.feature_bits for layer in layers),
            weight_bits=max(layer.weight_bits for layer in layers),
            shift_bits=0,
            accumulate="or_words" if 0 not in words else counted,
            word_lanes=max(words),
            acc_bits=32,
            tuple_words=2,
            kfp=max(1, *words),
            kgp=1,
            pfp=1,
            ol=1,
            pool=self.depthwise or any(layer.pool is not None for layer in layers),
            depthwise=self.depthwise and layers[0].engine == "integer",
            raster=self.counters,
            stream_weights=self.streamed,
            skip_words=flat.LEAST["skip_words"] * skips,
            skip_bits=SKIP_BITS * steps,
            skips_onward=int(steps and any(layer.taker not in (None, *indices) for layer in layers)),
            joined_words=flat.LEAST["joined_words"] * any(layer.joined_channels for layer in layers),
            aheads=flat.LEAST["aheads"] * skips,
            inlets=tuple(name for name, there in inlets.items() if there),
            outlets=tuple(name for name, there in outlets.items() if there),
        )

    def cycles(self, indices: Indices, npu: Npu) -> int:
        """Cycles of these layers a frame, all on this NPU."""
        layers = self.layers_of(indices, npu)
        of_array = [cycles(npu.results.ol) for cycles in self._array_cycles_by_ol(layers, npu)]
        return _with_others(layers, npu, of_array)

    def round(self, mapped_npus: Sequence[MappedNpu]) -> int:
        """Cycles of a frame of each network on these NPUs: of each network those of the NPU with most to do."""
        cycles = 0
        for numbers in self._networks:
            each = (
                (mapped_npu.npu, tuple(i for i in mapped_npu.indices if i in numbers)) for mapped_npu in mapped_npus
            )
            cycles += max(self.cycles(indices, npu) for npu, indices in each if indices)
        return cycles

    def _array_cycles_by_ol(self, layers: Sequence[LayerDemand], npu: Npu) -> list[CyclesByOl]:
        """Cycles of the array for each of these layers, which are as the NPU reads them, on an NPU that is like this
        one but for its OL, by that. They are the same with each PFP."""
        key = ARRAY_CYCLES(npu)
        known = self._known.array_cycles.get(key)
        if known is None:
            if len(self._known.array_cycles) >= FOLDINGS:
                self._known.array_cycles.clear()
            known = self._known.array_cycles[key] = {}
        for layer in layers:
            if layer not in known:
                known[layer] = layer.array_cycles_by_ol(npu, OUT)
        return [known[layer] for layer in layers]

    def _possible(self, indices: Indices, bare: Npu, interval: int) -> list[Drawn[Folding]]:
        """For each KGP that keeps to the interval the foldings, the smallest first."""
        layers = self.layers_of(indices, bare)
        leaving = [layer for layer in layers if layer.reader not in indices and not layer.lowered.raw]
        kgps = list(self._kgps(indices, bare, interval)) if bare.array.kgp == 1 else [bare]
        ol = bare.results.ol if bare.array.kgp > 1 else None

        def drawn(npus: Iterable[Npu]) -> Drawn[Folding]:
            return Drawn(Folding(npu, leaving) for npu in npus)

        foldings = [drawn(self._results(indices, wide, interval, ol)) for wide in kgps]
        if kgps and bare.array.kgp == 1 and not any(any(True for _ in of_kgp) for of_kgp in foldings):
            foldings += map(drawn, self._wider(indices, kgps[-1], interval))
        return foldings

    def _kgps(self, indices: Indices, npu: Npu, interval: int) -> Iterator[Npu]:
        """The NPU with the least KGP that keeps to the interval, and with multiples of 2, 4 and 8 near it. Several taps
        a beat must save lanes."""
        least = self._least_kgp(indices, npu, interval)
        if least is None:
            return
        if npu.array_forms_lines and npu.array.kfp * least >= self._fewest_lanes(indices, npu, interval):
            return
        most = max(self.layers[i].kernels for i in indices)
        for kgp in dict.fromkeys(-(-least // multiple) * multiple for multiple in (1, 2, 4, 8)):
            if kgp <= most:
                yield npu.unchecked(kgp=kgp)

    def _least_kgp(self, indices: Indices, npu: Npu, interval: int) -> int | None:
        """The least KGP whose beats keep to the interval; None where those of the widest array don't."""
        layers = self.layers_of(indices, npu)
        beats = [(layer.taps * layer.words(npu), layer.kernels) for layer in layers]
        room = interval - (len(indices) - 1) * BETWEEN
        if sum(b for b, _ in beats) > room or any(layer.tuples * layer.words(npu) > interval for layer in layers):
            return None

        by_kgp = [layer.beats_by_kgp(npu) for layer in layers]

        def keeps(kgp: int) -> bool:
            return sum(beats(kgp) for beats in by_kgp) <= room

        return 1 + bisect_left(range(1, max(kernels for _, kernels in beats)), True, key=keeps)

    def _fewest_lanes(self, indices: Indices, npu: Npu, interval: int) -> float:
        """The fewest lanes of an NPU like ``npu`` that takes a tap a beat and keeps to the interval."""
        known = self._known_at(interval).fewest_lanes
        key = indices, npu.former is None
        if key not in known:
            plain = [
                other
                for other in self.bare(indices)
                if not other.array_forms_lines and (other.former is None) == (npu.former is None)
            ]
            kgps = [self._least_kgp(indices, other, interval) for other in plain]
            known[key] = min(
                (other.array.kfp * kgp for other, kgp in zip(plain, kgps) if kgp is not None), default=float("inf")
            )
        return known[key]

    def _wider(self, indices: Indices, npu: Npu, interval: int) -> Iterator[list[Npu]]:
        """Foldings with the first power of two above the KGP of ``npu`` that keeps to the interval: where results or a
        pool unit take longer than beats. None where the widest array is too slow."""
        most = max(self.layers[i].kernels for i in indices)
        widest = npu.unchecked(kgp=most, ol=most, pfp=most * PFPS[-1], **FASTEST)
        while self.cycles(indices, widest) <= interval and (kgp := 1 << npu.array.kgp.bit_length()) <= most:
            npu = npu.unchecked(kgp=kgp)
            foldings = list(self._results(indices, npu, interval, None))
            if foldings:
                yield foldings
                return

    def _results(self, indices: Indices, npu: Npu, interval: int, given: int | None) -> Iterator[Npu]:
        """The NPU with each OL, or the one that is given, and PFP that are fast enough, the smallest first; at most
        CHOICES of them."""
        layers = self.layers_of(indices, npu)
        tried = self._tried(indices, npu)
        by_ol = [self._array_cycles_by_ol(layers, each) for each in tried]
        looped = [layer for layer in layers if layer.reader in indices]
        lanes = npu.array.map_lanes
        ols = [given] if given is not None else _wide_enough(splits(npu.array.kgp), by_ol[-1], interval)
        fast_ols = 0
        for ol in ols:
            if given is None and npu.forks_maps and lanes % ol and ol % lanes:
                continue
            fast = False
            for folding in _fast(layers, zip(tried, by_ol), ol, interval):
                fast = True
                fits = all(layer.outlet_tuple(folding).fits(lanes) for layer in looped)
                if fits and self._adds(layers, folding):
                    yield folding
            fast_ols += fast
            if fast_ols == CHOICES:
                return

    def _tried(self, indices: Indices, npu: Npu) -> list[Npu]:
        """The NPU with the numbers of TRIED in all ways, the fastest last."""
        layers = [self.layers[i] for i in indices]
        tried = {name: value.numbers for name, value in TRIED[npu.engine].items() if any(map(value.helps, layers))}
        return [npu.unchecked(**each) for each in combinations(tried)]

    def _adds(self, layers: Sequence[LayerDemand], npu: Npu) -> bool:
        """Whether maps that these layers add lie in the skip store as results leave."""
        if npu.keeps_steps:
            return all(fills_steps(npu, layer.kernels) for layer in layers if layer.signs)
        added = [(self.layers[layer.adds].kernels, layer.kernels) for layer in layers if layer.adds is not None]
        return all(added_fits(npu, *kernels) for kernels in added)

    def _sized(self, indices: Indices, folding: Folding, saves_dsp: bool) -> list[SizedFolding]:
        """NPUs of that folding: memories are as large as the layers need, kernels in each kind of RAM; with
        ``saves_dsp`` also with fewer DSP blocks."""
        saves_dsp = saves_dsp and folding.npu.engine == "integer"
        if saves_dsp not in folding.sized:
            sized = self._with_memories(indices, folding.npu)
            folding.sized[saves_dsp] = sized.foldings(self.stream_bits, saves_dsp) if sized else []
        return folding.sized[saves_dsp]

    def _with_memories(self, indices: Indices, npu: Npu) -> Sized | None:
        """The NPU with sizes, which are found once."""
        key = indices, FOLDING(npu)
        if key not in self._known.sized:
            self._known.sized[key] = self._with_sizes(indices, npu)
        return self._known.sized[key]

    def _with_sizes(self, indices: Indices, npu: Npu) -> Sized | None:
        """The NPU with sizes; None where words don't lie as its layers take them."""
        try:
            sized = self.sized(indices, npu).with_known_parts(self._known.parts)
        except ValueError:
            return None
        rows = sized.array.kernel_rows
        large = ("auto", "distributed")
        styles = RAM_STYLES if rows <= MOST_LUT_ROWS else large if rows <= self.lut_rows else large[:1]
        return Sized(sized, styles)

    def sized(self, indices: Indices, npu: Npu) -> Npu:
        """As of `NpuMemories.sized`."""
        return self._memories.sized(indices, npu)

    def _gears(self, folding: Folding, bits: int) -> float:
        """LUTs of the gearboxes at the NPU's outlets, in front of words of so many bits."""
        npu = folding.npu
        gears = folding.gears
        if gears is None:
            gears = folding.gears = self._known.outlets.setdefault((OUTLETS(npu), npu.forks_maps), {})
        if bits not in gears:
            gears[bits] = estimate_outlets(npu, bits)
        return gears[bits]

    def enters(self, npu: Npu, interval: int) -> bool:
        """Whether a frame comes in over the stream within the interval."""
        firsts = [layer.seen_by(npu) for layer in self.layers if layer.reads is None]
        words = [layer.frame_words(npu) for layer in firsts]
        return sum(geared(count, npu.host_word_bits, self.stream_bits) for count in words) <= interval


def _wide_enough(ols: Sequence[int], by_ol: Sequence[CyclesByOl], interval: int) -> Sequence[int]:
    """The rising ``ols`` without those that are too few for the interval: arrays take no longer with more."""
    return ols[bisect_left(ols, True, key=lambda ol: sum(cycles(ol) for cycles in by_ol) <= interval) :]


def _fast(
    layers: Sequence[LayerDemand], tried: Iterable[tuple[Npu, Sequence[CyclesByOl]]], ol: int, interval: int
) -> Iterator[Npu]:
    """For each PFP the first one of these NPUs that keeps to the interval with that OL; cycles of their arrays are
    given for each layer. Of NPUs whose pool units have lines that share lanes, only those in which a layer has room."""
    each = [(npu, [cycles(ol) for cycles in by_ol]) for npu, by_ol in tried]
    keeping = [(npu, of_array) for npu, of_array in each if sum(of_array) <= interval]
    fewest = min((layer.kernels * layer.levels for layer in layers if layer.formed_pools), default=0)
    first = each[0][0]
    for times in PFPS if first.depthwise else PFPS[:4] if first.pool_unit else (1,):
        pfp = ol * times
        foldings = (
            (npu.unchecked(ol=ol, pfp=pfp), of_array)
            for npu, of_array in keeping
            if npu.pool_unit is None or _shares_lanes(npu.pool_unit.lane_lines, fewest, pfp)
        )
        fast = (folding for folding, of_array in foldings if _with_others(layers, folding, of_array) <= interval)
        yield from islice(fast, 1)


def _shares_lanes(lane_lines: int, lanes: int, pfp: int) -> bool:
    """Whether a pool unit of that PFP can have so many lines that share lanes, and has room for them in a layer of so
    many ``lanes``; True without such lines."""
    return lane_lines == 1 or (pfp % lane_lines == 0 and lines_fit(lane_lines, lanes, pfp))


def _with_others(layers: Sequence[LayerDemand], npu: Npu, of_array: Sequence[int]) -> int:
    """Cycles of these layers a frame, all on this NPU, where the array alone takes so many for each of them."""
    each = (layer.with_others(npu, cycles) for layer, cycles in zip(layers, of_array))
    return sum(each) + (len(layers) - 1) * BETWEEN


def _beats(layers: Sequence[LayerDemand], npu: Npu) -> int:
    """Beats of layers on an NPU of that KFP, of a kernel."""
    seen = (layer.seen_by(npu) for layer in layers)
    return sum(layer.taps * layer.words(npu) * layer.kernels for layer in seen)


def splits(total: int) -> list[int]:
    """Sizes of the parts of ``total``, rising: for each number of parts the least size, ceil(total / parts), once."""
    sizes = []
    parts = 1
    while True:
        size = -(-total // parts)
        sizes.append(size)
        if size == 1:
            return sizes[::-1]
        parts = -(-total // (size - 1))


def whole_words(sizes: Iterable[int], word_lanes: int) -> list[int]:
    """``sizes``, each made as large as whole words of so many lanes are, once; as they are with 0 lanes."""
    lanes = word_lanes or 1
    return list(dict.fromkeys(-(-size // lanes) * lanes for size in sizes))


def saving(npu: Npu, saves_dsp: bool) -> Iterator[Npu]:
    """The NPU; with ``saves_dsp`` also with multipliers that PEs share, and with LUTs that multiply in additions."""
    yield npu
    if not saves_dsp:
        return
    kernels = min(npu.array.kgp, npu.array.most_kernels_per_multiplier)
    if kernels > 1:
        yield npu.unchecked(kernels_per_multiplier=kernels)
    if npu.forks_maps:
        yield npu.unchecked(kernels_per_multiplier=kernels, lut_products=("addition",))


def added_fits(npu: Npu, added: int, kernels: int) -> bool:
    """Whether the NPU can add a map to the results of a layer.

    Parameters
    ----------
    npu
        Its folding.
    added
        Channels of the map.
    kernels
        Kernels of the layer.
    """
    widths = [unit.pfp for unit in (npu.pool_unit,) if unit] + [npu.results.ol] * npu.depthwise + [npu.array.map_lanes]
    return _fits(added, kernels, npu.array.kgp, npu.results.ol, tuple(widths))


def fills_steps(npu: Npu, kernels: int) -> bool:
    """Whether the integers of a layer fill the steps of a binary NPU, so that no lane has a sign of nothing."""
    return not (result_layout(kernels, 1, npu.array.kgp, npu.results.ol) == UNUSED).any()


@lru_cache(maxsize=4096)
def _fits(added: int, kernels: int, kgp: int, ol: int, widths: tuple[int, ...]) -> bool:
    """Whether an NPU with these numbers can add a map of ``added`` channels; ``widths`` are those of the words that the
    map goes through."""
    words = result_layout(added, 1, kgp, ol)
    for width in widths:
        words = regroup(words, width)
    return added_in_steps(words, result_layout(kernels, 1, kgp, ol))

"""A chain of NPUs, each with a segment of the network, that takes at most so many cycles a frame and costs the least.

The search goes from the network's end to its beginning. For each segment and each KFP it takes the cheapest KGP, OL
and PFP with which the NPU keeps to the interval, and with which results fill the words of the next layer without a
gap. Then it takes the segments and KFPs that together cost the least. An NPU with one layer leads to the next NPU; an
NPU with several layers also leads back to itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from bitloom.hls_gen.design.design import MOST_NPUS
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import PLANES, bits_for
from bitloom.overlay.area.netlist import Resources

from .estimate import estimate_core, estimate_outlets
from .layer_demand import LayerDemand, geared
from .memory import STYLES
from .sharing import shared_lanes

KEPT, EVEN = 8, 8
"""KFPs of a run that are looked at together with those of the run before it, the cheapest; and as many that are
multiples of EVEN, into which results of several lanes go without a gap."""
CHOICES = 4
"""OLs that are tried for their fit to the next NPU's words."""
ROOM = 2
"""Tuples that a tuple memory has room for beyond those it must hold."""
BETWEEN = 40
"""Cycles from one layer to the next on the same NPU, at most: the first one's last results are still on their way."""
MOST_LUT_ROWS, MOST_LUT_ROWS_FOR_BLOCKS = 128, 1024
"""Rows of kernels that are also tried in RAM that Yosys would not take; the second where block RAM is limited."""
LARGEST = (
    "tuple_words", "pool_words", "pool_tuple_words", "acc_bits", "multiplier_bits", "bias_fraction_bits", "windows",
    "window_taps", "groups", "levels", "input_words",
)  # fmt: skip
"""Sizes of an NPU that are those of its largest layer; all others add up over its layers."""
WIDE = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""KFPs that are tried for segments of several layers."""


@dataclass(frozen=True)
class Price:
    """Prices in LUTs: what the search adds up.

    Attributes
    ----------
    bram36, dsp, lanes, ff
        LUTs for a unit of each.
    npu
        LUTs for an NPU, beside all that it takes; may be negative.
    """

    bram36: float = 0
    dsp: float = 0
    lanes: float = 0
    ff: float = 0
    npu: float = 0

    def of(self, area: Resources, lanes: int) -> float:
        """Price of an NPU with that area and so many lanes."""
        lut = area.lut + area.lutram
        return lut + self.bram36 * area.bram36 + self.dsp * area.dsp + self.lanes * lanes + self.ff * area.ff + self.npu


@dataclass(frozen=True)
class Segment:
    """An NPU and its layers.

    Attributes
    ----------
    npu
        The NPU, with the sizes of its memories.
    first, last
        Numbers of its first and its last layer.
    """

    npu: Npu
    first: int
    last: int


@dataclass
class Chain:
    """The search for one network. It keeps what it has worked out, so that further intervals and prices are quicker.

    Attributes
    ----------
    layers
        The network's weighted layers.
    stream_bits
        Width of both streams, 32 or 64.
    feature_bits
        Width of a feature, of all NPUs.
    most_npus, lut_rows
        NPUs, and rows of a kernel memory that is tried in LUT RAM, at most.
    """

    layers: Sequence[LayerDemand]
    stream_bits: int = 64
    feature_bits: int = 1
    most_npus: int = MOST_NPUS
    lut_rows: int = MOST_LUT_ROWS
    _possible: dict[tuple, list[list[Npu]]] = field(default_factory=dict)
    _areas: dict[tuple, list[tuple[Npu, Resources]]] = field(default_factory=dict)
    _outlets: dict[tuple, float] = field(default_factory=dict)
    _bare: dict[tuple, list[Npu]] = field(default_factory=dict)

    def cheapest(self, interval: int, price: Price) -> list[Segment] | None:
        """The cheapest chain that takes at most ``interval`` cycles a frame.

        Returns
        -------
        list or None
            The segments in the network's order; None if no chain is fast enough.
        """
        count = len(self.layers)
        after: dict[int, dict[int, tuple[float, tuple[Segment, ...]]]] = {count: {0: (0.0, ())}}
        for i in reversed(range(count)):
            here: dict[int, tuple[float, tuple[Segment, ...]]] = {}
            for j in range(i, count):
                for kfp, found in self._segments(i, j, interval, price, after[j + 1]):
                    if len(found[1]) <= self.most_npus and (kfp not in here or found[0] < here[kfp][0]):
                        here[kfp] = found
            kept = sorted(here.items(), key=lambda item: item[1][0])
            after[i] = dict(kept[:KEPT] + [item for item in kept[KEPT:] if item[0] % EVEN == 0][:KEPT])
        return list(min(after[0].values(), key=lambda found: found[0])[1]) if after[0] else None

    def _segments(
        self, i: int, j: int, interval: int, price: Price, after: dict[int, tuple[float, tuple[Segment, ...]]]
    ) -> Iterator[tuple[int, tuple[float, tuple[Segment, ...]]]]:
        """For each KFP of an NPU for layers i..j: the price, and the segments from layer ``i`` on."""
        for bare in self.bare(i, j):
            if not i and not self._enters(bare, interval):
                continue
            best: tuple[float, tuple[Segment, ...]] | None = None
            for reader, (tail_cost, tail) in after.items():
                if best is not None and tail_cost + min(price.npu, 0) >= best[0]:
                    continue
                for npu in self._foldings(i, j, bare, interval, reader):
                    for full, area in self._variants(i, j, npu):
                        cost = (
                            tail_cost
                            + price.of(area, (full.kfp if j > i else full.plane_lanes) * full.kgp)
                            + self._gears(full, reader)
                        )
                        if best is None or cost < best[0]:
                            best = cost, (Segment(full, i, j), *tail)
            if best is not None:
                yield bare.kfp, best

    def bare(self, i: int, j: int) -> list[Npu]:
        """NPUs for layers i..j, one for each KFP that is looked at, without a folding beside."""
        key = (i, j)
        if key not in self._bare:
            base, found = self._base(i, j), []
            widest = max(layer.channels for layer in self.layers[i : j + 1])
            wide = splits(widest) if i == j else [w for w in WIDE if w < 2 * widest]
            planes = self.layers[i].planes
            if planes:
                beside = max(2, planes)
                if beside <= PLANES:
                    sizes = [n * (beside + 1) for n in splits(self.layers[i].channels)]
                    sizes += [w for w in wide if w > sizes[-1]] if i != j else []
                    found += [changed(base, kfp=n, planes=beside) for n in sizes]
                base = changed(base, shift_bits=max(3, bits_for(planes - 1)))
            found += [changed(base, kfp=n) for n in wide]
            self._bare[key] = found
        return self._bare[key]

    def _base(self, i: int, j: int) -> Npu:
        """An NPU for layers i..j with the least folding."""
        own, last = self.layers[i : j + 1], len(self.layers) - 1
        kinds = {layer.any_match for layer in own}
        loop = ("loop",) if j > i else ()
        return Npu(
            engine=own[0].engine,
            feature_bits=self.feature_bits,
            weight_bits=max(layer.weight_bits for layer in own),
            shift_bits=0,
            accumulate="both" if len(kinds) > 1 else "or" if True in kinds else "popcount",
            acc_bits=32,
            kfp=1,
            kgp=1,
            pfp=1,
            ol=1,
            pool=any(layer.pool is not None for layer in own),
            inlets=("ring" if i else "host", *loop),
            outlets=(*(("ring",) if j < last else ()), *loop, *(("host",) if j == last else ())),
        )

    def cycles(self, i: int, j: int, npu: Npu) -> int:
        """Cycles of layers i..j a frame, all on this NPU."""
        return sum(layer.cycles(npu, "output_stationary") for layer in self.layers[i : j + 1]) + (j - i) * BETWEEN

    def _foldings(self, i: int, j: int, npu: Npu, interval: int, reader: int) -> Iterator[Npu]:
        """The NPU of layers i..j with each KGP, OL and PFP that keep to the interval.

        ``reader`` is the KFP of the NPU after it, 0 where there is none.
        """
        key = (i, j, npu.kfp, npu.planes, interval)
        if key not in self._possible:
            kgps = self._kgps(i, j, npu, interval)
            self._possible[key] = [list(self._results(i, j, made, interval)) for made in kgps]
        layer = self.layers[j]
        for choices in self._possible[key]:
            found = next((made for made in choices if layer.raw or not reader or layer.fits(made, reader)), None)
            if found is not None:
                yield found

    def _kgps(self, i: int, j: int, npu: Npu, interval: int) -> Iterator[Npu]:
        """The NPU with the least KGP that keeps to the interval, and with multiples of 2, 4 and 8 near it."""
        own = self.layers[i : j + 1]
        beats = [(layer.taps_in_all * layer.words(npu), layer.kernels) for layer in own]
        room = interval - (j - i) * BETWEEN
        if sum(b for b, _ in beats) > room or any(n.reading[False].tuples * n.words(npu) > interval for n in own):
            return
        most = max(kernels for _, kernels in beats)
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            if sum(b * -(-kernels // middle) for b, kernels in beats) <= room:
                high = middle
            else:
                low = middle + 1
        for kgp in dict.fromkeys(-(-high // multiple) * multiple for multiple in (1, 2, 4, 8)):
            if kgp <= most:
                yield changed(npu, kgp=kgp)

    def _results(self, i: int, j: int, npu: Npu, interval: int) -> Iterator[Npu]:
        """The NPU with each OL and PFP that are fast enough, the smallest first; at most CHOICES of them."""
        own, found = self.layers[i : j + 1], 0
        for ol in splits(npu.kgp):
            made = changed(npu, ol=ol, pfp=ol)
            if self.cycles(i, j, made) > interval:
                continue
            for times in (1, 2, 4, 8) if npu.pool else (1,):
                made = changed(made, pfp=ol * times)
                beats = sum(layer.pool_beats(made) for layer in own) if npu.pool else 0
                if beats <= interval and all(layer.fits(made, npu.kfp) for layer in own[:-1]):
                    yield made
            found += 1
            if found == CHOICES:
                return

    def _variants(self, i: int, j: int, npu: Npu) -> list[tuple[Npu, Resources]]:
        """The NPU with memories as large as layers i..j need, its kernels in each kind of RAM, and the area of each."""
        key = (i, j, npu.kfp, npu.kgp, npu.ol, npu.pfp, npu.planes)
        if key not in self._areas:
            full = changed(npu, **self.depths(i, j, npu))
            rows, large = full.kernel_rows, ("auto", "distributed")
            styles = STYLES if rows <= MOST_LUT_ROWS else large if rows <= self.lut_rows else large[:1]
            made = [changed(full, kernel_ram=style) for style in styles]
            self._areas[key] = [(one, estimate_core(one, self.stream_bits)) for one in made]
        return self._areas[key]

    def depths(self, i: int, j: int, npu: Npu) -> dict[str, int]:
        """Sizes of the memories that layers i..j need together, by the NPU's parameter."""
        own = self.layers[i : j + 1]
        each = [layer.depths(npu, "output_stationary", ROOM) for layer in own]
        found = {key: max(d.get(key, 2) for d in each) for key in LARGEST}
        sums = ("taps", "olds", "jumps", "kernel_rows", "threshold_rows", "pool_taps", "pool_olds")
        found |= {key: max(2, sum(d.get(key, 0) for d in each)) for key in sums}
        if j > i:
            found["map_words"] = max(2, *(layer.output_windows * after.words(npu) for layer, after in pairwise(own)))
        return found | {"layers": max(2, j - i + 1)} | shared_lanes(own, npu, first=not i)

    def _gears(self, npu: Npu, reader: int) -> float:
        """LUTs of the gearboxes at the NPU's outlets, in front of a reader of that KFP."""
        width = npu.pool_word_bits if npu.pool else npu.ol * npu.feature_bits
        key = (width, npu.outlets, npu.word_bits, reader)
        if key not in self._outlets:
            self._outlets[key] = estimate_outlets(npu, (reader or npu.kfp) * self.feature_bits)
        return self._outlets[key]

    def _enters(self, npu: Npu, interval: int) -> bool:
        """Whether a frame comes in over the stream within the interval."""
        layer = self.layers[0]
        return geared(layer.reading[False].tuples * layer.words(npu), npu.host_word_bits, self.stream_bits) <= interval


def changed(npu: Npu, **values: Any) -> Npu:
    """The NPU with other values, without a check of them: much faster than ``dataclasses.replace``."""
    made: Npu = object.__new__(Npu)
    made.__dict__.update(npu.__dict__)
    made.__dict__.update(values)
    return made


def splits(total: int) -> list[int]:
    """Sizes of the parts of ``total``, rising: for each number of parts the least size, ceil(total / parts), once."""
    found, parts = [], 1
    while True:
        size = -(-total // parts)
        found.append(size)
        if size == 1:
            return found[::-1]
        parts = -(-total // (size - 1))

"""One NPU for some layers of a network: the foldings with which it takes at most so many cycles a frame, with its area.

For a set of layers and each KFP there is the least KGP that keeps to the interval, and a few more; for each of these
the least OL and PFP with which results come in time, and with which they fill the words of the next layer without a
gap. The layers say which inlets and outlets it has: chains (chain.py) and rings (ring.py) are made of such NPUs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bitloom.hls_gen.design.gearbox import geared
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import PLANES, bits_for
from bitloom.overlay.area.netlist import Resources

from .estimate import estimate_core, estimate_outlets
from .layer_demand import LayerDemand
from .memory import STYLES
from .sharing import shared_lanes
from .sizes import splits, whole_words

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
"""KFPs that are tried for NPUs of several layers."""
Own = tuple[int, ...]
"""Numbers of an NPU's layers, rising."""


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
    own
        Numbers of its layers, rising.
    """

    npu: Npu
    own: Own


@dataclass
class NpuChoices:
    """What an NPU may be for layers of one network. It keeps what it has worked out.

    Attributes
    ----------
    layers
        The network's weighted layers.
    stream_bits
        Width of both streams, 32 or 64.
    lut_rows
        Rows of a kernel memory that is tried in LUT RAM, at most.
    counters
        Whether NPUs have counters for raster order, which ``layers`` then are made for.
    streamed
        Whether weights come down the stream, so that an NPU of several layers needs fewer rows of kernels.
    """

    layers: Sequence[LayerDemand]
    stream_bits: int = 64
    lut_rows: int = MOST_LUT_ROWS
    counters: bool = False
    streamed: bool = False
    _possible: dict[tuple, list[list[Npu]]] = field(default_factory=dict)
    _areas: dict[tuple, list[tuple[Npu, Resources]]] = field(default_factory=dict)
    _outlets: dict[tuple, float] = field(default_factory=dict)
    _bare: dict[Own, list[Npu]] = field(default_factory=dict)

    def priced(
        self, own: Own, bare: Npu, interval: int, reader: Npu | None, price: Price
    ) -> Iterator[tuple[float, Npu]]:
        """Price and NPU of each folding of ``bare`` that keeps to the interval, in front of the NPU ``reader``."""
        for npu in self._foldings(own, bare, interval, reader):
            gears = self._gears(npu, reader)
            for full, area in self._sized(own, npu):
                lanes = (full.kfp if len(own) > 1 else full.plane_lanes) * full.kgp
                yield price.of(area, lanes) + gears, full

    def bare(self, own: Own) -> list[Npu]:
        """NPUs for layers ``own``, one for each KFP that is looked at, without a folding beside; none where the layers
        are for different engines."""
        if own not in self._bare:
            found = list[Npu]()
            if len({self.layers[i].engine for i in own}) == 1:
                found = self._wide(own, self._base(own))
            self._bare[own] = found
        return self._bare[own]

    def _wide(self, own: Own, base: Npu) -> list[Npu]:
        """The NPU ``base`` with each KFP that is looked at."""
        found, alone = list[Npu](), len(own) == 1
        widest = max(self.layers[i].channels for i in own)
        wide = splits(widest) if alone else [w for w in WIDE if w < 2 * widest]
        planes = self.layers[own[0]].planes
        if planes:
            beside = max(2, planes)
            if beside <= PLANES:
                sizes = [n * (beside + 1) for n in splits(self.layers[own[0]].channels)]
                sizes += [] if alone else [w for w in wide if w > sizes[-1]]
                found += [changed(base, kfp=n, planes=beside) for n in whole_words(sizes, base.word_lanes)]
            base = changed(base, shift_bits=max(3, bits_for(planes - 1)))
        return found + [changed(base, kfp=n) for n in whole_words(wide, base.word_lanes)]

    def _base(self, own: Own) -> Npu:
        """An NPU for these layers with the least folding, and with the inlets and outlets by which their maps go."""
        mine, last = [self.layers[i] for i in own], len(self.layers) - 1
        kinds, words = {layer.any_match for layer in mine}, {layer.word_channels for layer in mine}
        counted = "both" if len(kinds) > 1 else "or" if True in kinds else "popcount"
        loop = any(i + 1 in own for i in own)
        inlets = {"host": 0 in own, "ring": any(i and i - 1 not in own for i in own), "loop": loop}
        outlets = {"ring": any(i < last and i + 1 not in own for i in own), "loop": loop, "host": last in own}
        return Npu(
            engine=mine[0].engine,
            feature_bits=max(layer.feature_bits for layer in mine),
            weight_bits=max(layer.weight_bits for layer in mine),
            shift_bits=0,
            accumulate="or_words" if 0 not in words else counted,
            word_lanes=max(words),
            acc_bits=32,
            kfp=max(1, *words),
            kgp=1,
            pfp=1,
            ol=1,
            pool=any(layer.pool is not None for layer in mine),
            raster=self.counters,
            stream_weights=self.streamed,
            inlets=tuple(name for name, there in inlets.items() if there),
            outlets=tuple(name for name, there in outlets.items() if there),
        )

    def cycles(self, own: Own, npu: Npu) -> int:
        """Cycles of these layers a frame, all on this NPU."""
        return sum(self.layers[i].cycles(npu, "output_stationary") for i in own) + (len(own) - 1) * BETWEEN

    def _foldings(self, own: Own, npu: Npu, interval: int, reader: Npu | None) -> Iterator[Npu]:
        """The NPU with each KGP, OL and PFP that keep to the interval, in front of the NPU ``reader``."""
        key = (own, npu.kfp, npu.planes, interval)
        if key not in self._possible:
            kgps = self._kgps(own, npu, interval)
            self._possible[key] = [list(self._results(own, made, interval)) for made in kgps]
        leaving = [] if reader is None else [self.layers[i] for i in own if i + 1 not in own]
        for choices in self._possible[key]:
            fit = (m for m in choices if all(layer.raw or layer.fits(m, reader.kfp) for layer in leaving))
            found = next(fit, None)
            if found is not None:
                yield found

    def _kgps(self, own: Own, npu: Npu, interval: int) -> Iterator[Npu]:
        """The NPU with the least KGP that keeps to the interval, and with multiples of 2, 4 and 8 near it."""
        mine = [self.layers[i] for i in own]
        beats = [(layer.taps_in_all * layer.words(npu), layer.kernels) for layer in mine]
        room = interval - (len(own) - 1) * BETWEEN
        if sum(b for b, _ in beats) > room or any(n.reading[False].tuples * n.words(npu) > interval for n in mine):
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

    def _results(self, own: Own, npu: Npu, interval: int) -> Iterator[Npu]:
        """The NPU with each OL and PFP that are fast enough, the smallest first; at most CHOICES of them."""
        mine, found = [self.layers[i] for i in own], 0
        looped = [self.layers[i] for i in own if i + 1 in own]
        for ol in splits(npu.kgp):
            made = changed(npu, ol=ol, pfp=ol)
            if self.cycles(own, made) > interval:
                continue
            for times in (1, 2, 4, 8) if npu.pool else (1,):
                made = changed(made, pfp=ol * times)
                beats = sum(layer.pool_beats(made) for layer in mine) if npu.pool else 0
                if beats <= interval and all(layer.fits(made, npu.kfp) for layer in looped):
                    yield made
            found += 1
            if found == CHOICES:
                return

    def _sized(self, own: Own, npu: Npu) -> list[tuple[Npu, Resources]]:
        """The NPU with memories as large as its layers need, its kernels in each kind of RAM, and the area of each."""
        key = (own, npu.kfp, npu.kgp, npu.ol, npu.pfp, npu.planes)
        if key not in self._areas:
            full = changed(npu, **self.depths(own, npu))
            rows, large = full.kernel_rows, ("auto", "distributed")
            styles = STYLES if rows <= MOST_LUT_ROWS else large if rows <= self.lut_rows else large[:1]
            made = [changed(full, kernel_ram=style) for style in styles]
            self._areas[key] = [(one, estimate_core(one, self.stream_bits)) for one in made]
        return self._areas[key]

    def depths(self, own: Own, npu: Npu) -> dict[str, int]:
        """Sizes of the memories that these layers need together, by the NPU's parameter."""
        mine = [self.layers[i] for i in own]
        each = [layer.depths(npu, "output_stationary", ROOM) for layer in mine]
        found = {key: max(d.get(key, 2) for d in each) for key in LARGEST}
        sums = ("taps", "olds", "jumps", "kernel_rows", "threshold_rows", "pool_taps", "pool_olds")
        found |= {key: max(2, sum(d.get(key, 0) for d in each)) for key in sums}
        looped = [self.layers[i].output_windows * self.layers[i + 1].words(npu) for i in own if i + 1 in own]
        if looped:
            found["map_words"] = max(2, *looped)
        if self.streamed:
            found |= _streamed(npu, found, [d["kernel_rows"] for d in each], each[0]["input_words"] if 0 in own else 0)
        return found | {"layers": max(2, len(own))} | shared_lanes(mine, npu, first=0 in own)

    def _gears(self, npu: Npu, reader: Npu | None) -> float:
        """LUTs of the gearboxes at the NPU's outlets, in front of the NPU ``reader``."""
        width = npu.pool_word_bits if npu.pool else npu.ol * npu.feature_bits
        after = reader or npu
        ring_bits = after.word_bits if after.engine == npu.engine else after.kfp  # a bit a feature between engines
        key = (width, npu.outlets, npu.word_bits, ring_bits)
        if key not in self._outlets:
            self._outlets[key] = estimate_outlets(npu, ring_bits)
        return self._outlets[key]

    def enters(self, npu: Npu, interval: int) -> bool:
        """Whether a frame comes in over the stream within the interval."""
        layer = self.layers[0]
        return geared(layer.reading[False].tuples * layer.words(npu), npu.host_word_bits, self.stream_bits) <= interval


def _streamed(npu: Npu, found: Mapping[str, int], rows: Sequence[int], frame_words: int) -> dict[str, int]:
    """What differs in ``found`` where weights are streamed, by the rules of ``hls_gen/compiler/sizing.py``: rows for
    twice the largest layer, and tuples for a whole frame if these take fewer bits than the rows save."""
    two = min(found["kernel_rows"], 2 * max(rows))
    saved = (found["kernel_rows"] - two) * npu.kernel_store.width
    tuples = max(found["tuple_words"], 1 << max(1, frame_words - 1).bit_length())
    worth = (tuples - found["tuple_words"]) * npu.word_bits < saved
    return {"kernel_rows": two, "tuple_words": tuples if worth else found["tuple_words"]}


def changed(npu: Npu, **values: Any) -> Npu:
    """The NPU with other values, without a check of them: much faster than ``dataclasses.replace``."""
    made: Npu = object.__new__(Npu)
    made.__dict__.update(npu.__dict__)
    made.__dict__.update(values)
    return made

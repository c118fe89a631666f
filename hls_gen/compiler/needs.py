"""Needs: what a layer needs of its NPU, in rows, words and widths of each part. They follow from the layer, its
schedule and the NPU; no rows are made for them.

    needs of each layer --merged: sums and maxima--> needs of a network --fitted.py--> capacities of an NPU

Layers share memories by lying one behind the other, so that their rows add up; they share widths and stores, where the
largest counts. Example: layers of 100 and 60 kernel rows need 160 rows; accumulators of 12 and 14 bits, 14 bits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from weakref import WeakKeyDictionary

from bitloom.hls_gen.design import flat, timing
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present

from .lowered_layers import LoweredLayer
from .planned_layer import PlannedLayer
from .ranges import held_bits

OF_ALL_LAYERS = ("lanes_per_weight", "lane_step", "former_granule")
"""Capacities that no layer needs by itself: they follow from what all layers read (sharing.py, sizing.py)."""
SIZES = tuple(name for name in ("buffer_words", *flat.CAPACITIES) if name not in OF_ALL_LAYERS)
"""Names of the needs of layers, in the order in which refusals list them."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Sizes of an NPU that layers need: rows or words of each memory, the largest number of each counter, and
    widths."""

    sizes: Mapping[str, int]
    """The least that each capacity must be, by name; 0 of those that are left out. Layers need the sum of those that
    the parts declare as ``added``, and the largest of the others. ``buffer_words`` is among them where buffers between
    NPUs are as large as a chunk."""
    window_lanes: int = 0
    """Lanes of the beats of the longest window: bits of a register that collects its products."""
    largest_kernel: int = 0
    """Kernel rows of the largest layer."""
    hold_words: int = 0
    """Words that the windows of a layer keep."""
    steady_words: int = 0
    """Words of the tuple memory with which a layer by counters doesn't wait at the beginning of a row of windows, and a
    layer whose words have one beat each doesn't wait until the place of a word may be written again."""
    roomy_acc_bits: int = 0
    """``acc_bits`` with room for the biases and thresholds of other weights."""
    from_ring_words: int = 0
    """Words of a map that comes from the NPU before; 0: none comes."""

    @classmethod
    def of(cls, **numbers: int) -> "Needs":
        """Needs of sizes and of other numbers, by name."""
        sizes = {name: number for name, number in numbers.items() if name not in OTHERS}
        assert sizes.keys() <= {*SIZES}, f"no capacities: {sizes.keys() - {*SIZES}}"
        return cls(sizes=sizes, **{name: numbers[name] for name in OTHERS if name in numbers})

    def capacities(self, npu: Npu) -> dict[str, int]:
        """The capacities that an NPU of this folding must have at least, by name."""
        meant = flat.meant(npu)
        needs = {
            **self.sizes,
            **{name: max(flat.LEAST[name], self.sizes.get(name, 0)) for name in ("aheads", "skip_bits")},
            "skip_words": flat.LEAST["skip_words"],  # the flow model says how many
            "skips_onward": npu.skips_onward,
        }
        return {name: needs.get(name, 0) for name in SIZES if name in meant}


OTHERS = tuple(item.name for item in fields(Needs) if item.name != "sizes")
"""Needs that are no capacities: layers need the largest."""


@dataclass(frozen=True)
class NpuNeeds:
    """The needs of a network's layers on one NPU of this folding."""

    npu: Npu
    needs: Needs

    @property
    def capacities(self) -> dict[str, int]:
        """As of `Needs.capacities`."""
        return self.needs.capacities(self.npu)


def merged(needs: Sequence[Needs]) -> Needs:
    """The needs of layers together; at least one layer."""
    if len(needs) == 1:
        return needs[0]
    sizes = _together([need.sizes for need in needs])
    return Needs(sizes=sizes, **{name: max(getattr(need, name) for need in needs) for name in OTHERS})


def _together(each: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """Sizes by name, of several that are needed together: the sum or the largest, as the capacity's rule wants it."""
    names = dict.fromkeys(name for sizes in each for name in sizes)
    return {name: flat.NUMBERS[name].of_all([sizes.get(name, 0) for sizes in each]) for name in names}


def most_waiting(waits: Sequence[tuple[int, int, int]]) -> int:
    """Most words of maps that lie in a store at a time.

    Parameters
    ----------
    waits
        Of each map: number of the layer that makes it, number of the layer that takes it, and its words. It lies there
        from when the first of these layers begins until the other one does.
    """
    return max((sum(words for i, last, words in waits if i <= at < last) for at, _, _ in waits), default=0)


def needs_of(planned: PlannedLayer) -> Needs:
    """The needs of one layer."""
    layer = planned.layer
    npu = planned.npu
    counts = planned.on_array.counts
    words = planned.words
    lanes = 0
    if npu.array.reducer.collects:
        lanes = int(planned.on_array.taps.window_taps.max()) * planned.tuple_part.words * npu.array.kfp
    from_ring = planned.read.inlet == "ring"
    joined = planned.read.joined_words
    return Needs.of(
        layers=1,
        windows=max(on.counts.windows for on in planned.sequencers),
        window_taps=max(1, *(on.counts.window_taps for on in planned.sequencers)),
        groups=planned.groups,
        levels=layer.levels,
        input_words=max(max(on.coming_words, on.counts.tuples * on.words) for on in planned.sequencers),
        tuple_words=counts.tuple_memory_words(words),
        hold_words=counts.hold * words,
        steady_words=max(counts.steady * words, _places_in_turn(planned)),
        position_words=planned.on_array.lines.words if planned.on_array.lines else 0,
        tuple_parts=int(planned.gains_by_tuple_parts),
        window_lanes=lanes,
        kernel_rows=planned.kernel_rows,
        largest_kernel=planned.kernel_rows,
        threshold_rows=len(planned.activation_steps),
        joined_words=max(flat.LEAST["joined_words"], *joined) if joined else 0,
        buffer_words=planned.chunk_words or 0 if planned.sizes_buffers else 0,
        from_ring_words=planned.coming_words if from_ring else 0,
        **_of_values(layer, npu.keeps_steps),
        **{
            on.sequencer.prefix + table.capacity: getattr(on.counts, table.name)
            for on in planned.sequencers
            for table in on.sequencer.kind.tables
        },
        **_pool(planned),
        **(planned.formed.needs() if planned.formed else {}),
    )


def _places_in_turn(planned: PlannedLayer) -> int:
    """Words of the tuple memory with which a layer goes on every cycle where each word has one beat: the place of a
    word is written again so many cycles after its beat. 0 where words stay longer, or are few."""
    places = timing.GIVE_BACK + 1
    return places if planned.groups == 1 and planned.on_array.counts.tuples >= places else 0


def _of_values(layer: LoweredLayer, keeps_steps: bool) -> dict[str, int]:
    """The needs of a layer's sums and actions, by name; they are the same with each folding."""
    known = _OF_VALUES.setdefault(layer, {})
    if keeps_steps not in known:
        of_actions = _together([action.needs for action in layer.actions])
        known[keeps_steps] = accumulator_widths(layer, keeps_steps=keeps_steps) | of_actions
    return known[keeps_steps]


_OF_VALUES: WeakKeyDictionary[LoweredLayer, dict[bool, dict[str, int]]] = WeakKeyDictionary()
"""Results of `_of_values`, kept as long as the layers exist: a search asks for the same layer many times."""


def accumulator_widths(layer: LoweredLayer, *, keeps_steps: bool) -> dict[str, int]:
    """Widths of accumulators for every value, and for the threshold that is never reached; where the NPU keeps steps of
    integers, that is a bias among the others.

    Returns
    -------
    dict of str to int
        ``acc_bits`` and ``roomy_acc_bits`` of `Needs`.
    """
    above = int(not keeps_steps)
    if layer.binary and not keeps_steps:
        bits = held_bits([(layer.sum_range[0], layer.sum_range[1] + above)])
        return {"acc_bits": bits, "roomy_acc_bits": bits}  # thresholds are no further apart than sums
    needed = [sums.biased_range for sums in layer.accumulations]
    roomy = [sums.roomy_range for sums in layer.accumulations]
    return {
        "acc_bits": held_bits((low, high + above) for low, high in needed),
        "roomy_acc_bits": held_bits((low, high + above) for low, high in roomy),
    }


def _pool(planned: PlannedLayer) -> dict[str, int]:
    """Rows and words of the pool unit."""
    if planned.on_pool_unit is None:
        return {}
    counts = planned.on_pool_unit.counts
    words = planned.on_pool_unit.words
    lines = planned.on_pool_unit.lines
    kept = lines if lines and present(planned.npu.pool_unit).beat.keeps_lines(lines.window) else None
    pool_words = counts.tuple_memory_words(words) if planned.layer.pool else 2 * words
    needs = {
        "pool_words": max(timing.WORDS_FOR_ONE_A_CYCLE, pool_words),
        "pool_tuple_words": words,
        "pool_line_words": kept.positions * kept.words if kept else 0,
    }
    if planned.layer.depthwise:
        needs |= {"pool_kernel_rows": planned.on_pool_unit.pass_rows, "pool_scale_rows": len(planned.steps)}
    return needs

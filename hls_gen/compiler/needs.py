"""Needs: what a layer needs of its NPU, in rows, words and widths of each part. They follow from the layer, its
schedule and the NPU; no rows are made for them.

    needs of each layer --merged: sums and maxima--> needs of a network --fitted.py--> capacities of an NPU

Layers share memories by lying one behind the other, so that their rows add up; they share widths and stores, where the
largest counts. Example: layers of 100 and 60 kernel rows need 160 rows; accumulators of 12 and 14 bits, 14 bits.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import Capacity

from .lowered_layers import Addition, FeatureStep, LoweredLayer
from .margins import held_bits, signed_bits
from .planned_layer import PlannedLayer


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What layers need of an NPU: rows or words that each memory must have, how far counters must reach, and widths.

    Most fields are named as the capacities that they are for (`bitloom.hls_gen.design.flat.CAPACITIES`); refusals list
    them in this order. Layers need the sum of those that the parts declare as ``added``, and the largest of the others.

    Attributes
    ----------
    window_lanes
        Lanes of the beats of the longest window: bits of a register that collects its products.
    largest_kernel
        Kernel rows of the largest layer.
    hold_words
        Words that the windows of a layer keep.
    steady_words
        Words with which no layer by counters waits at the beginning of a row of windows.
    roomy_acc_bits
        ``acc_bits`` with room for the biases and thresholds of other weights.
    buffer_words
        Words of the buffers between NPUs, where they are as large as a chunk; 0: any number does.
    ring_words
        Words of a map that comes from the NPU before; 0: none comes.
    skip_words, skips_onward
        0: no layer says them; `capacities` does.
    former_channels, former_column, former_columns, former_line
        Of the window former, where it joins the taps of a first layer.
    """

    layers: int = 0
    windows: int = 1
    window_taps: int = 1
    groups: int = 1
    levels: int = 1
    input_words: int = 1
    tuple_words: int = 2
    hold_words: int = 0
    steady_words: int = 2
    pool_words: int = 2
    pool_tuple_words: int = 1
    pool_taps: int = 0
    pool_olds: int = 0
    pool_jumps: int = 0
    pool_kernel_rows: int = 0
    pool_scale_rows: int = 0
    taps: int = 0
    olds: int = 0
    jumps: int = 0
    aheads: int = 0
    tuple_parts: int = 0
    window_lanes: int = 0
    kernel_rows: int = 0
    largest_kernel: int = 0
    roomy_acc_bits: int = 1
    threshold_rows: int = 0
    multiplier_bits: int = 0
    bias_fraction_bits: int = 0
    half_even: int = 0
    round_twice: int = 0
    skip_words: int = 0
    joined_words: int = 0
    add_factor_bits: int = 2
    add_bias_bits: int = 2
    skip_bits: int = 2
    skips_onward: int = 0
    buffer_words: int = 0
    ring_words: int = 0
    map_words: int = 2
    binariser_rows: int = 0
    former_channels: int = 0
    former_column: int = 0
    former_columns: int = 0
    former_line: int = 0
    acc_bits: int = 1

    def capacities(self, npu: Npu) -> dict[str, int]:
        """The capacities that an NPU of this folding must have at least, by name."""
        lacking = npu.lacking
        needs = vars(self) | {
            "aheads": max(2, self.aheads),
            "skip_words": 2,  # how large it must be says the flow model
            "skips_onward": npu.skips_onward,
        }
        return {
            name: needs[name]
            for name in SIZES
            if (SIZED_WHERE[name](npu) if name in SIZED_WHERE else flat.OWNERS[name][0] not in lacking)
        }


SIZES = tuple(entry.name for entry in fields(Needs) if entry.name in flat.PLACES)
"""Needs that are capacities."""
REQUANTISATION = ("multiplier_bits", "bias_fraction_bits", "half_even", "round_twice")
"""Capacities of the results unit that mean nothing in an NPU which compares sums with thresholds."""
SIZED_WHERE: dict[str, Callable[[Npu], bool]] = {
    "tuple_parts": lambda npu: npu.sequencer.tuple_parts > 0,
    "aheads": lambda npu: npu.sequencer.aheads > 0,
    **dict.fromkeys(REQUANTISATION, lambda npu: npu.requantises),
    "skip_bits": lambda npu: npu.keeps_steps,
    "skips_onward": lambda npu: npu.keeps_steps,
    "map_words": lambda npu: "loop" in npu.ports.outlets,
    **dict.fromkeys(flat.NAMES["former.sizes"], lambda npu: npu.former is not None),
}
"""NPUs in which capacities mean something, and get a size, by name; in others they stay as they are. All others do so
in every NPU that has their part."""


@dataclass(frozen=True)
class NpuNeeds:
    """What a network needs of one NPU of this folding."""

    npu: Npu
    needs: Needs

    @property
    def capacities(self) -> dict[str, int]:
        """As of `Needs.capacities`."""
        return self.needs.capacities(self.npu)


_MERGES: dict[str, Callable[[Iterable[int]], int]] = {
    entry.name: rule.joined if isinstance(rule := flat.NUMBERS.get(entry.name), Capacity) else max
    for entry in fields(Needs)
}
"""How the values of layers become that of all, by field."""


def merged(needs: Sequence[Needs]) -> Needs:
    """What layers need together; at least one of them."""
    each = [vars(need) for need in needs]
    return Needs(**{name: merge([need[name] for need in each]) for name, merge in _MERGES.items()})


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
    """What one layer needs of its NPU."""
    p = planned.layer
    npu = planned.npu
    counts = planned.on_array.counts
    words = planned.words
    lanes = 0
    if npu.array.collect:
        taps_of_window = (p.window.positions(p.height, p.width) >= 0).sum(axis=1)
        lanes = int(taps_of_window.max()) * p.visits * planned.part.words * npu.array.kfp
    from_ring = planned.read.inlet == "ring"
    return Needs(
        layers=1,
        windows=max(on.counts.windows for on in planned.sequencers),
        window_taps=max(1, *(on.counts.window_taps for on in planned.sequencers)),
        groups=planned.groups,
        levels=p.levels,
        input_words=max(on.counts.tuples * on.words for on in planned.sequencers),
        tuple_words=counts.ring_words(words),
        hold_words=counts.hold * words,
        steady_words=counts.steady * words,
        tuple_parts=int(planned.gains_by_parts),
        window_lanes=lanes,
        kernel_rows=planned.kernel_rows,
        largest_kernel=planned.kernel_rows,
        threshold_rows=0 if p.raw else len(planned.steps),
        joined_words=max(2, *planned.read.parts) if planned.read.parts else 0,
        buffer_words=planned.chunk_words or 0 if planned.sizes_buffers else 0,
        ring_words=p.height * p.width * words if from_ring else 0,
        **accumulator_widths(p, keeps_steps=npu.keeps_steps),
        **(scale_widths(p) if npu.requantises else {}),
        **{
            on.sequencer.prefix + table.capacity: getattr(on.counts, table.name)
            for on in planned.sequencers
            for table in on.sequencer.kind.tables
        },
        **_pool(planned),
    )


def accumulator_widths(p: LoweredLayer, *, keeps_steps: bool) -> dict[str, int]:
    """Widths of accumulators for every value, and for the threshold that is never reached; where the NPU keeps steps of
    integers, that is a bias among the others.

    Returns
    -------
    dict of str to int
        ``acc_bits`` and ``roomy_acc_bits`` of `Needs`.
    """
    above = int(not keeps_steps)
    if p.binary and not keeps_steps:
        bits = held_bits([(p.sum_range[0], p.sum_range[1] + above)])
        return {"acc_bits": bits, "roomy_acc_bits": bits}  # thresholds are no further apart than sums
    needed = [sums.biased_range for sums in p.accumulations]
    roomy = [sums.roomy_range for sums in p.accumulations]
    return {
        "acc_bits": held_bits((low, high + above) for low, high in needed),
        "roomy_acc_bits": held_bits((low, high + above) for low, high in roomy),
    }


def scale_widths(p: LoweredLayer) -> dict[str, int]:
    """Widths of requantisations and of an addition, by the names of `Needs`, on an NPU that requantises."""
    addition = p.step(Addition)
    scales = [sums.scale for sums in p.accumulations if sums.scale is not None]
    factors = (addition.factor_kept, addition.factor_added) if addition else ()
    limits = [(step.low, step.high) for step in p.steps if isinstance(step, FeatureStep)] or [(-1, 0)]
    return {
        "multiplier_bits": max((scale.multiplier_bits for scale in scales), default=0),
        "bias_fraction_bits": max((scale.fraction for scale in scales), default=0),
        "half_even": int(any(scale.rounding == "even" for scale in scales)),
        "round_twice": int(any(scale.rounding == "twice" for scale in scales)),
        "add_factor_bits": max([2, *map(signed_bits, factors)]),
        "add_bias_bits": max(2, signed_bits(addition.bias)) if addition else 2,
        "skip_bits": max(2, held_bits(limits)),
    }


def _pool(planned: PlannedLayer) -> dict[str, int]:
    """Rows and words of the pool unit."""
    if planned.on_pool_unit is None:
        return {}
    counts = planned.on_pool_unit.counts
    words = planned.on_pool_unit.words
    depthwise = planned.layer.depthwise
    needs = {
        "pool_words": max(2, counts.ring_words(words)) if planned.layer.pool else 2 * words,
        "pool_tuple_words": words,
    }
    if depthwise is not None:
        needs |= {"pool_kernel_rows": len(depthwise.weight) * words, "pool_scale_rows": len(planned.scale_steps)}
    return needs

"""NPU: one engine that computes layer after layer of whatever network is loaded, put together of eight parts.

    ports --> former --> sequencer --> array --> results --> pool_unit --> ports
                             ^                      |            |
                             `------- stores <------'------------'           loader: fills memories, admits frames

Each part checks itself (array.py, sequencer.py, ...). The NPU checks what parts must agree on, and has the properties
that follow from several parts. People name its values by one flat list of names (flat.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from bitloom.golden.integers import plain
from bitloom.golden.names import shown

from . import flat
from .array import BinaryArray, IntegerArray
from .former import Former, FormerSizes, has_place
from .gearbox import geared
from .loader import Loader
from .parts import present
from .pool_unit import PRODUCTS, Beside, PoolReduction, PoolUnit, PoolWeights, Reduction, pools_of
from .ports import SOURCES, Ports
from .reader import Reader
from .results import IntegerResults, RequantisedResults, SignResults, ThresholdResults, results_kind
from .rules import require
from .sequencer import Sequencer
from .sequencer_kind import SequencerKind, TapTable
from .split_window import BeatTaps
from .stores import MapSkipStore, StepSkipStore, Stores
from .widths import (
    ADD_FEATURE_BITS,
    COUNT_BITS,
    MAX_ADD_SHIFT,
    MULTIPLIER_BITS,
    RECIPROCAL_BITS,
    SHIFT_BITS,
    bits_for,
)


@dataclass(frozen=True, kw_only=True)
class Npu:
    """One NPU. Checked when it is made; ValueError ``npu: field, rule, value``."""

    array: BinaryArray | IntegerArray = field(default_factory=BinaryArray)
    """PEs and the memory of their weights; its class is the engine."""
    former: Former | None = None
    """The window former, in front of everything; None: there is none."""
    sequencer: Sequencer = field(default_factory=Sequencer)
    """The tuple memory and what reads windows from it."""
    results: ThresholdResults | SignResults | IntegerResults = field(default_factory=ThresholdResults)
    """The unit that makes features of sums."""
    pool_unit: PoolUnit | None = field(default_factory=PoolUnit)
    """The unit that computes pools; None: no layer may have a pool."""
    stores: Stores = field(default_factory=Stores)
    """Where maps wait."""
    ports: Ports = field(default_factory=Ports)
    """Inlets and outlets."""
    loader: Loader = field(default_factory=Loader)
    """The part that takes the stream apart."""

    @classmethod
    def of(cls, **values: Any) -> "Npu":
        """NPU of values by flat name (flat.py); values that are not named are as by default.

        Raises
        ------
        ValueError
            A value is out of its range, has no part that it could be of, or values don't go together.

        Examples
        --------
            Npu.of(kfp=32, kgp=16, pool=False).array.kfp == 32
        """
        values = _plain(values)
        given = frozenset(values)
        return cls(**{part: flat.part_of(part, values, given) for part in PARTS})

    def changed(self, **values: Any) -> "Npu":
        """The NPU with other values, by flat name. Where a part is left out its values are, too, and so are those that
        mean nothing any more.

        Raises
        ------
        ValueError
            As ``of``.
        """
        values = _plain(values)
        given = frozenset(values)
        several = not given.isdisjoint(flat.CHOOSE_ELSEWHERE)
        owners = PARTS if several else [flat.OWNERS[name][0].split(".")[0] for name in values]
        parts: dict[str, Any] = dict.fromkeys(owners)
        kept = {name: flat.value_of(self, name) for part in parts for name in flat.NAMES[part]}
        every = self.values(*flat.CHOOSE_ELSEWHERE) | kept | values
        parts = {part: flat.part_of(part, every, given) for part in parts}
        lost = [name for name in flat.stray(self._with_parts(parts)) if name not in given]
        if lost:
            return self.changed(**values, **{name: flat.DEFAULTS[name] for name in lost})
        return replace(self, **parts)

    def unchecked(self, **values: Any) -> "Npu":
        """The NPU with other values by flat name, without a check of them: much faster than ``changed``, for a search
        and for tests of what must be refused. The engine and the kind of reducer stay.

        Values of parts that the NPU then lacks are left out, and so are those that its kind of reducer hasn't got.
        Where a part comes, it is checked, as ``changed`` does it.
        """
        assert flat.CHOOSE_ALONE.isdisjoint(values), "engine and kind of reducer stay"
        if not values:
            return self
        switched = not flat.OFF.keys().isdisjoint(values)
        if switched and any(bool(values[name]) != bool(self.value(name)) for name in flat.OFF if name in values):
            has = {name: values.get(name, self.value(name)) for name in flat.OFF}
            lacks = {part for part, switch in flat.SWITCHES.items() if not has[switch.name]}
            values = {name: value for name, value in values.items() if flat.OWNERS[name][0] not in lacks}
            return self.changed(**values | {name: flat.OFF[name] for name in flat.OFF if not has[name]})
        parts: dict[str, Any] = {}
        for name, value in values.items():
            outer, inner, what = flat.WITHIN[name]
            if outer not in parts:
                parts[outer] = _copied(getattr(self, outer))
            owner = parts[outer]
            if inner and owner is not None:
                inside = _copied(owner.__dict__.get(inner))
                if inside is not None:
                    owner.__dict__[inner] = inside
                owner = inside
            if owner is not None and what in owner.__dict__:
                owner.__dict__[what] = value
        return self._with_parts(parts)

    def _with_parts(self, parts: Mapping[str, Any]) -> "Npu":
        """The NPU with other parts, by name, without a check."""
        npu: Npu = _copied(self)
        npu.__dict__.update(parts)
        return npu

    def with_known_parts(self, known: dict[Any, Any]) -> "Npu":
        """The NPU with the parts of ``known``, part by part, where they equal its own; parts that are new there come to
        it. Of many NPUs that differ in their arrays and sequencers all others are few."""
        each = {name: getattr(self, name) for name in PARTS if name not in ("array", "sequencer")}
        return self._with_parts({name: known.setdefault(part, part) for name, part in each.items()})

    def value(self, name: str) -> Any:
        """A value by flat name; where the NPU has no such part, the value that files say then."""
        return flat.value_of(self, name)

    def has(self, name: str) -> bool:
        """Whether the NPU has the part of which a flat name is a field: ``pfp`` is one of the pool unit, ``depthwise``
        too."""
        return flat.PLACES[name].rpartition(".")[0] not in self.lacking

    @property
    def lacking(self) -> frozenset[str]:
        """Places of the parts that the NPU lacks, as ``pool_unit`` and then ``pool_unit.weights``, too."""
        return frozenset(place for place, switch in flat.SWITCHES.items() if not self.value(switch.name))

    def values(self, *names: str) -> dict[str, Any]:
        """Some values by name, as ``value`` has them."""
        return {name: self.value(name) for name in names}

    def flat(self) -> dict[str, Any]:
        """All values by flat name, those of the folding first."""
        return self.values(*flat.PLACES)

    def __post_init__(self) -> None:
        array = self.array
        require(self.results.ol <= array.kgp, f"ol must be <= kgp = {array.kgp}", self.results.ol)
        for part in (self.pool_weights, self.stores.skip, self.ports.binariser):
            ok = part is None or part.engine == array.engine
            require(ok, f"{type(part).__name__} needs engine {part and part.engine}", array.engine)
        ok = not (array.one_memory and self.loader.stream_weights)
        require(ok, "one_memory must be False for stream_weights", array.one_memory)
        rows = array.kernel_rows
        rule = f"kernel_rows must be > tuple_words = {self.sequencer.tuple_words} for one_memory"
        require(not array.one_memory or rows > self.sequencer.tuple_words, rule, rows)
        if self.pool_unit and self.pool_unit.weights:
            self._check_depthwise(self.pool_unit)
        kind = results_kind(self.engine, adds=self.has_skip)
        require(type(self.results) is kind, f"results must be {kind.__name__}", type(self.results).__name__)
        if self.stores.skip:
            self._check_addition(self.stores.skip)
        if self.former:
            self._check_former(self.former)
        stray = flat.stray(self)
        if stray:
            needed = flat.WHERE[stray[0]].replace("_", " ")
            raise ValueError(f"npu: {stray[0]} needs an NPU that {needed}, got {self.value(stray[0])}")

    def _check_depthwise(self, pool_unit: PoolUnit) -> None:
        """Raise ValueError unless the NPU can have a pool unit with weights."""
        array = self.array
        most = MULTIPLIER_BITS - RECIPROCAL_BITS + 7  # a reciprocal is a multiplier
        require(array.feature_bits <= most, f"feature_bits must be <= {most} for depthwise", array.feature_bits)
        ok = pool_unit.pfp % self.results.ol == 0
        require(ok, f"ol must divide pfp = {pool_unit.pfp} for depthwise", self.results.ol)
        least = self.pool_sum_bits
        require(array.acc_bits >= least, f"acc_bits must be >= {least} for depthwise", array.acc_bits)

    def _check_addition(self, skip: MapSkipStore | StepSkipStore) -> None:
        """Raise ValueError unless the NPU can have such a skip store and an addition."""
        outlets = self.ports.outlets
        require(not self.skips_onward or "ring" in outlets, "skips_onward needs outlet ring", outlets)
        if self.keeps_steps:
            return
        words = skip.words
        rule = f"feature_bits must be <= {ADD_FEATURE_BITS} for skip_words = {words}"
        require(self.array.feature_bits <= ADD_FEATURE_BITS, rule, self.array.feature_bits)
        lanes, ol = self.array.map_lanes, self.results.ol
        ok = not (lanes % ol and ol % lanes)
        taps = " / line_taps" * self.array_forms_lines
        require(ok, f"ol must divide kfp{taps} = {lanes}, or be a multiple of it, for skip_words = {words}", ol)

    def _check_former(self, former: Former) -> None:
        """Raise ValueError unless the NPU can have such a window former."""
        inlets = self.ports.inlets
        require(has_place(inlets), "a window former needs inlet host, or ring alone", inlets)
        taps = self.array.line_taps
        require(has_place(inlets, taps), "line_taps must be 1 with a window former behind inlet ring", taps)
        binariser = self.ports.binariser
        require(not binariser, "binariser_bits must be 0 with a window former", binariser and binariser.bits)
        if former.sizes is None:
            return
        most = self.array.plane_lanes
        channels = former.sizes.channels
        require(channels <= most, f"former_channels must be <= {most}", channels)
        planes, granule = self.array.planes, former.sizes.granule
        require(not planes or granule == 1, f"former_granule must be 1 for planes = {planes}", granule)
        several = self.array.lanes_per_weight
        require(several == 1, "lanes_per_weight must be 1 with a window former", several)

    @property
    def engine(self) -> str:
        """Kind of the array's PEs: "binary" or "integer"."""
        return self.array.engine

    @property
    def array_forms_lines(self) -> bool:
        """Whether a line former stands in front of the array, which then takes several words of maps in a cycle."""
        return self.array.line_taps > 1

    @property
    def array_sequencer(self) -> "NpuSequencer":
        """The sequencer in front of the array."""
        return NpuSequencer(self, "array")

    @property
    def pool_sequencer(self) -> "NpuSequencer | None":
        """The sequencer in front of the pool unit; None where there is no pool unit."""
        return NpuSequencer(self, "pool_unit") if self.pool_unit else None

    @property
    def sequencers(self) -> "tuple[NpuSequencer, ...]":
        """The sequencers: the array's, and the pool unit's if there is one."""
        pool = self.pool_sequencer
        return (self.array_sequencer, pool) if pool else (self.array_sequencer,)

    @property
    def pools(self) -> tuple[PoolReduction, ...]:
        """The pools that layers may have; none where there is no pool unit."""
        return pools_of(self.engine) if self.pool_unit else ()

    @property
    def averages(self) -> bool:
        """Whether layers may have pools whose results are divided."""
        return any(pool.divides for pool in self.pools)

    @property
    def reductions(self) -> tuple[Reduction, ...]:
        """All ways in which the pool unit may reduce the taps of a window."""
        return (*self.pools, PRODUCTS) if self.depthwise else self.pools

    @property
    def pool_weights(self) -> PoolWeights | None:
        """The pool unit's weights, by which it computes depthwise convolutions; None where there is none, or no pool
        unit."""
        return self.pool_unit.weights if self.pool_unit else None

    @property
    def depthwise(self) -> bool:
        """Whether the pool unit has weights."""
        return self.pool_weights is not None

    @property
    def lanes(self) -> int:
        """Multiply-accumulates of one input channel and one kernel a cycle. In a layer that reads bit planes side by
        side a channel takes several lanes of a binary array; where all layers read frames, these count as one."""
        reads_frames = self.ports.inlets == ("host",)
        return (self.array.plane_lanes if reads_frames else self.array.kfp) * self.array.kgp

    @property
    def joined_words(self) -> int:
        """Words of a tuple that a layer takes of either of two maps at most; 0: layers read one map."""
        return self.stores.skip.joined_words if isinstance(self.stores.skip, MapSkipStore) else 0

    @property
    def skips_onward(self) -> int:
        """Whether the integers that a binary NPU keeps wait in the skip store of the NPU after, 0 or 1."""
        return self.stores.skip.onward if isinstance(self.stores.skip, StepSkipStore) else 0

    @property
    def has_skip(self) -> bool:
        """Whether there is a skip store, and an addition."""
        return self.stores.skip is not None

    @property
    def loops_maps(self) -> bool:
        """Whether maps go through the map store back to the NPU that made them."""
        return "loop" in self.ports.outlets

    @property
    def requantises(self) -> bool:
        """Whether sums are requantised; else they are compared with thresholds."""
        return isinstance(self.results, RequantisedResults)

    @property
    def requantisation(self) -> RequantisedResults:
        """The results unit, for callers that are only asked where it requantises."""
        assert isinstance(self.results, RequantisedResults)
        return self.results

    @property
    def keeps_steps(self) -> bool:
        """Whether steps of results go to the skip store, integers of which the signs go on: in a binary NPU."""
        return isinstance(self.stores.skip, StepSkipStore)

    @property
    def forks_maps(self) -> bool:
        """Whether words of maps go to the skip store: in an integer NPU."""
        return isinstance(self.stores.skip, MapSkipStore)

    @property
    def value_bits(self) -> int:
        """Bits of a result behind the activation and the addition."""
        skip = self.stores.skip
        return skip.bits if isinstance(skip, StepSkipStore) else self.array.feature_bits

    @property
    def lowest_value(self) -> int:
        """Smallest such result."""
        return -1 << self.value_bits - 1

    @property
    def highest_value(self) -> int:
        """Largest such result."""
        return ~self.lowest_value

    @property
    def skip_lanes(self) -> int:
        """Results in a word of the skip store."""
        return self.results.ol if self.keeps_steps else self.array.map_lanes

    @property
    def skip_word_bits(self) -> int:
        """Width of a word of the skip store, without the mark who takes it."""
        return self.skip_lanes * self.value_bits

    @property
    def biased_bits(self) -> int:
        """Width of a sum with its bias: as accumulators, and the bits behind the point."""
        return self.array.acc_bits + self.requantisation.bias_fraction_bits

    @property
    def scale_shift_bits(self) -> int:
        """Width of a requantisation's shift, up to most_shift."""
        return max(SHIFT_BITS, bits_for(self.most_shift))

    @property
    def most_shift(self) -> int:
        """Largest shift that requantisation takes; a larger one has the same result, 0.

        A biased value is at least -2^(biased_bits - 1), and multipliers are below 2^multiplier_bits, or 1. So the
        product over 2^most_shift is nearer to 0 than to 1. What the first of two roundings adds must not change that,
        and needs so many bits.
        """
        results = self.requantisation
        product = self.biased_bits + max(results.multiplier_bits, 1)
        return max(product + 1, results.first_shift + 2) if results.round_twice else product

    @property
    def product_bits(self) -> int:
        """Width of a requantisation's product, to which half of 2^most_shift can be added."""
        return self.most_shift + 1

    @property
    def multiplies_maps(self) -> bool:
        """Whether layers may multiply two maps."""
        return self.stores.skip is not None and self.stores.skip.multiplies > 0

    @property
    def add_total_bits(self) -> int:
        """Width of the sum of an addition: two products and a bias; of two features and a factor, where there are
        products of maps."""
        skip = present(self.stores.skip)
        features = (1 + self.multiplies_maps) * self.value_bits
        return max(features + skip.factor_bits, skip.bias_bits) + 1

    @property
    def most_add_shift(self) -> int:
        """Largest shift that an addition takes; a larger one has the same result, 0."""
        return min(MAX_ADD_SHIFT, self.add_total_bits)

    @property
    def add_shift_bits(self) -> int:
        """Width of an addition's shift."""
        return bits_for(self.most_add_shift)

    @property
    def former_sizes(self) -> FormerSizes | None:
        """The largest windows that the window former forms; None where none is built."""
        return self.former.sizes if self.former else None

    @property
    def former_lane_bits(self) -> int:
        """Bits of a value in a frame word for the window former: the planes of an integer where they are side by side,
        else a feature."""
        return self.array.planes or self.array.feature_bits

    @property
    def former_granule_bits(self) -> int:
        """Bits of the lanes that stay together in the window former."""
        return self.former_lane_bits * (self.former_sizes.granule if self.former_sizes else 1)

    @property
    def former_words(self) -> int:
        """Words of the longest window that the former forms, 0 where there is none."""
        sizes = self.former_sizes
        return -(-sizes.columns * sizes.column // self.array.plane_lanes) if sizes else 0

    @property
    def pulses(self) -> tuple[str, ...]:
        """The kinds of a cycle with a frame in flight, which counters count: a beat, or a wait, by its reason."""
        waits = {"wait_weights": self.loader.stream_weights, "wait_memory": self.array.one_memory}
        return ("beat", "wait_input", "wait_room", "wait_table", *(name for name, has in waits.items() if has))

    @property
    def host_word_bits(self) -> int:
        """Width of a word of a frame: kfp features, as the binariser takes them where there is one."""
        binariser = self.ports.binariser
        return self.array.kfp * (binariser.bits if binariser else self.array.feature_bits)

    def pool_tuple_words(self, steps: int) -> int:
        """Words of a tuple that the pool unit takes, where its results leave in so many steps; 0 without a pool unit.

        Example: with ol = 4 and pfp = 8, 5 steps make 3 words.
        """
        return geared(steps, self.results.ol, self.pool_unit.pfp) if self.pool_unit else 0

    @property
    def outlet_lanes(self) -> int:
        """Lanes of a word that comes to the outlets: of a pool unit without weights, else of a step of results."""
        pool_unit = self.pool_unit
        return self.results.ol if pool_unit is None or pool_unit.weights else pool_unit.pfp

    def outlet_tuple(self, steps: int) -> tuple[int, int]:
        """(words, lanes of a word) of a tuple as it comes to the outlets, where its results leave in so many steps."""
        lanes = self.outlet_lanes
        if self.pool_unit is None or self.pool_unit.weights:  # of a tuple as many steps leave as come
            return steps, lanes
        return self.pool_tuple_words(steps), lanes

    @property
    def pool_word_bits(self) -> int:
        """Width of a word of pfp features; 0 where there is no pool unit."""
        return self.pool_unit.pfp * self.array.feature_bits if self.pool_unit else 0

    @property
    def passes_by(self) -> bool:
        """Whether maps without a pool pass the pool unit by: one with weights, which would requantise them again."""
        return self.depthwise

    def pools_results(self, *, raw: bool, pool: bool) -> bool:
        """Whether the results of a layer go through the pool unit: all do but sums (``raw``), and in an NPU where maps
        without a pool pass the pool unit by only those of a layer that has a ``pool``."""
        return self.pool_unit is not None and not raw and (pool or not self.passes_by)

    @property
    def gives_ways(self) -> bool:
        """Whether results may go from the results unit to the outlets, and say where their map goes."""
        return self.pool_unit is None or self.passes_by

    @property
    def pool_forms_lines(self) -> bool:
        """Whether a line former stands in front of the pool unit, which then takes several taps in a cycle."""
        return self.pool_unit is not None and self.pool_unit.beat.forms

    @property
    def pool_keeps_lines(self) -> bool:
        """Whether that line former keeps lines of maps, for taps of lines below them."""
        return self.pool_unit is not None and self.pool_unit.beat.most_rows > 1

    @property
    def pool_line_bits(self) -> int:
        """Width of a word of the pool's tuple memory: a word of each tap that the pool unit takes in a cycle."""
        return self.pool_unit.beat.taps * self.pool_word_bits if self.pool_unit else 0

    @property
    def pool_sum_bits(self) -> int:
        """Width of a sum of 2^COUNT_BITS features, of which an average is made."""
        return self.array.feature_bits + COUNT_BITS

    @property
    def pool_lane_bits(self) -> int:
        """Width of a lane of the pool unit's queue: what the taps of a window gave so far."""
        if self.depthwise:
            return self.array.acc_bits
        return self.pool_sum_bits if self.averages else self.array.feature_bits

    @property
    def pool_queue_bits(self) -> int:
        """Width of the pool unit's queue."""
        return present(self.pool_unit).pfp * self.pool_lane_bits

    @property
    def pool_values_bits(self) -> int:
        """Width of the values that leave the pool unit: features, or sums where it has weights."""
        return self.pool_queue_bits if self.depthwise else self.pool_word_bits

    @property
    def pool_out_bits(self) -> int:
        """Width of what leaves the pool unit: values, side bits, and with sums the number of features, and that of the
        last step in a tuple's last word."""
        return self.pool_values_bits + self.pool_side_bits + COUNT_BITS * self.depthwise + self.pool_last_piece_bits

    @property
    def pool_word_steps(self) -> int:
        """Steps of results in a word of a pool unit with weights; 0 without one."""
        return self.pool_unit.pfp // self.results.ol if self.pool_unit and self.pool_unit.weights else 0

    @property
    def pool_last_piece_bits(self) -> int:
        """Width of the number of the last step in the last word of a tuple of sums; 0 where each word is a step."""
        return bits_for(self.pool_word_steps - 1) if self.pool_word_steps > 1 else 0

    @property
    def reciprocal_bits(self) -> int:
        """Width of the reciprocals by which averages are divided: with it no quotient is wrong.

        With depthwise convolutions averages are requantised: a reciprocal is 2^(this width - 1) / count, rounded up.
        """
        return RECIPROCAL_BITS + max(0, self.array.feature_bits - 8) + self.depthwise

    @property
    def of_pool_results(self) -> "Npu":
        """The NPU with multipliers as wide as those of its pool results: wide enough for a reciprocal, too."""
        return self.unchecked(multiplier_bits=max(self.requantisation.multiplier_bits, self.reciprocal_bits))

    @property
    def group_steps(self) -> int:
        """Steps in which the results of a kernel group, those of kgp PEs, leave, ol at a time."""
        return -(-self.array.kgp // self.results.ol)

    @property
    def code_bits(self) -> int:
        """Bits beside the weights in a kernel row, which say how the sum of a word counts."""
        return self.array.reducer.code_bits(integers_alone=self.ports.inlets == ("host",))

    @property
    def adds_integers(self) -> bool:
        """Whether the PEs add or subtract integers, whose bit planes lie side by side in a word: where nothing else
        comes, all planes of a channel meet one weight."""
        return self.array.planes > 0 and not self.code_bits

    @property
    def row_weights(self) -> int:
        """Weights of a PE in a row of the kernel memory: one for each lane, or fewer where lanes share them."""
        return self.array.plane_lanes if self.adds_integers else self.array.row_weights

    @property
    def sources(self) -> tuple[str, ...]:
        """Where a layer's map may come from, in the order in which a field ``source`` counts: the inlets, and the skip
        store where there is one."""
        return (*self.ports.inlets, "skip") if self.forks_maps else self.ports.inlets

    @property
    def targets(self) -> tuple[str, ...]:
        """Where a layer's map may go, in the order in which a field ``target`` counts: as ``sources``."""
        return (*self.ports.outlets, "skip") if self.forks_maps else self.ports.outlets

    @property
    def source_places(self) -> str:
        """Numbers and names of all inlets that some NPU has, as text, such as "0 host, 1 ring": register STATE names an
        inlet by its number."""
        known = SOURCES if self.forks_maps else SOURCES[:-1]
        return ", ".join(f"{place} {name}" for place, name in enumerate(known))

    @property
    def source_bits(self) -> int:
        """Width of a source's number, 0 where there is one source."""
        return bits_for(len(self.sources) - 1) if len(self.sources) > 1 else 0

    @property
    def target_bits(self) -> int:
        """Width of a target's number, 0 where there is one target."""
        return bits_for(len(self.targets) - 1) if len(self.targets) > 1 else 0

    @property
    def way_fields(self) -> tuple[tuple[str, int], ...]:
        """Where a layer's map goes, as fields with their widths, in the row of the unit that gives the map its last
        form: its target; whether its words go to the skip store as well; whether they wait there for the addition, else
        for the layer that reads them."""
        target = (("target", self.target_bits),) if self.target_bits else ()
        return (*target, ("forks", 1), ("for_addition", 1)) if self.forks_maps else target

    @property
    def map_marks(self) -> tuple[tuple[str, int], ...]:
        """Marks of each word, or step, of a map on its way to the outlets, with widths: whether the map ends with the
        word, and where the map goes."""
        return (("map_last", 1), *self.way_fields)

    @property
    def map_mark_bits(self) -> int:
        """Width of the ``map_marks``."""
        return sum(width for _, width in self.map_marks)

    @property
    def pool_side_bits(self) -> int:
        """Bits that go with a word of the pool unit: last of its tuple, and the marks of its map."""
        return 1 + self.map_mark_bits

    @property
    def result_side_bits(self) -> int:
        """Bits that go with a step of results behind activation and addition, where steps may go to the outlets: the
        marks of its map, and whether the map has a pool, where maps without one pass the pool unit by."""
        return self.map_mark_bits + self.passes_by if self.gives_ways else 0

    @property
    def first_kernel_row(self) -> int:
        """First row of weights in the kernel memory: behind the words of features, where these lie in it."""
        return self.sequencer.tuple_words if self.array.one_memory else 0

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data by flat name; ``from_dict`` is its inverse. Names of rare features (`flat.RARE`) are left out
        at their defaults."""
        known = {
            name: value for name, value in self.flat().items() if name not in flat.RARE or value != flat.DEFAULTS[name]
        }
        return {name: list(value) if isinstance(value, tuple) else value for name, value in known.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], start: "Npu | None" = None) -> "Npu":
        """NPU of ``to_dict``'s data.

        Parameters
        ----------
        data
            Values by flat name.
        start
            The NPU whose values are those that are left out; by default that of ``of()``.

        Returns
        -------
        Npu
            The NPU.

        Raises
        ------
        ValueError
            An NPU has no such value, or a value is out of its range.
        """
        reader = Reader(data, "npu")
        known = dict(reader.data)
        known |= {key: reader.texts(key) for key in ("inlets", "outlets", "lut_products") if key in known}
        return start.changed(**known) if start else cls.of(**known)


@dataclass(frozen=True)
class NpuSequencer:
    """A sequencer of an NPU, and what follows for it from the NPU's parts."""

    npu: Npu
    """The NPU."""
    unit: Literal["array", "pool_unit"]
    """The unit that takes the windows."""

    @property
    def pool_unit(self) -> PoolUnit | None:
        """The pool unit that takes the windows; None where the array takes them."""
        return self.npu.pool_unit if self.unit == "pool_unit" else None

    @property
    def counters(self) -> bool:
        """Whether counters run through the taps of layers in raster order."""
        return self.npu.sequencer.raster

    @cached_property
    def table_rows(self) -> Mapping[TapTable, int]:
        """The tables that it has, and the rows of each."""
        return (self.pool_unit or self.npu.sequencer).table_rows

    @property
    def word_bits(self) -> int:
        """Bits of a word of the tuple memory: KFP features, or PFP features of each tap that the pool unit takes in a
        cycle."""
        return self.npu.pool_line_bits if self.pool_unit else self.npu.array.word_bits

    @property
    def beat(self) -> BeatTaps:
        """The taps whose words a line former puts side by side in a word of the tuple memory."""
        return (self.pool_unit or self.npu.array).beat

    @property
    def line_flags(self) -> tuple[str, ...]:
        """Flags of a layer that the line former has in its row besides counts, of `FormedLines.flags`."""
        if self.pool_unit:
            return tuple(beside.flag for beside in self.besides)
        return ("whole",) if "host" in self.npu.ports.inlets else ()

    @property
    def besides(self) -> tuple[Beside, ...]:
        """The values that the line former may put in for taps beside the map; none in front of what takes 0 alone:
        arrays, and pool units of bits, of which 0 is the lower one."""
        if not (self.pool_unit and self.npu.engine == "integer"):
            return ()
        return tuple(reduction.beside for reduction in self.npu.pools if reduction.beside)

    @property
    def position_bits(self) -> int:
        """Width of the number of a word in its position, to the line former."""
        return self.pool_unit.index_bits if self.pool_unit else bits_for(self.npu.sequencer.position_words - 1)

    @property
    def line_words(self) -> int:
        """Words of a line of a map that the line former keeps, as the pool unit's may, for taps of lines below it."""
        return self.pool_unit.line_words if self.pool_unit else 0

    @property
    def tuple_memory_words(self) -> int:
        """Capacity of the tuple memory in words, a power of two, so that addresses wrap round by themselves."""
        return self.pool_unit.words if self.pool_unit else self.npu.sequencer.tuple_words

    @property
    def index_bits(self) -> int:
        """Width of the number of a word in its tuple."""
        return self.pool_unit.index_bits if self.pool_unit else self.address_bits

    @cached_property
    def row_bits(self) -> int:
        """Width of the address of a row of weights; 0 without kernel rows."""
        weighted = self.pool_unit.weights if self.pool_unit else self.npu.array
        return weighted.row_bits if weighted else 0

    @property
    def kind(self) -> SequencerKind:
        """How taps are found and claimed."""
        return SequencerKind(counters=self.counters, tables=tuple(self.table_rows))

    @property
    def prefix(self) -> str:
        """The beginning of the names of its memories."""
        return "pool_" if self.unit == "pool_unit" else ""

    @cached_property
    def address_bits(self) -> int:
        """Width of a word's address in the tuple memory."""
        return bits_for(self.tuple_memory_words - 1)

    @property
    def forms_lines(self) -> bool:
        """Whether a line former stands in front of the tuple memory."""
        return self.beat.forms

    @property
    def has_input_register(self) -> bool:
        """Whether each word waits a cycle in a register in front of the line former: words of inlets do, since they
        come late in their cycle; words for a pool unit come from a register."""
        return self.forms_lines and self.pool_unit is None

    @property
    def map_bits(self) -> int:
        """Bits of a word of a map, as it comes."""
        return self.word_bits // self.beat.taps

    @property
    def inlets(self) -> tuple[str, ...]:
        """Names of the streams of words that the sequencer takes from; the pool unit's has one."""
        return ("in",) if self.pool_unit else self.npu.sources

    def inlet_bits(self, name: str) -> int:
        """Width of the words of the inlet ``name``: those of frames are words of the tuple memory, others are of maps,
        which a line former puts side by side."""
        return self.word_bits if name == "host" else self.map_bits

    @property
    def widest_inlet(self) -> int:
        """Width of the widest word that comes."""
        return max(map(self.inlet_bits, self.inlets))

    @property
    def memory_bits(self) -> int:
        """Bits of the tuple memory."""
        return self.tuple_memory_words * self.word_bits


PARTS = ("array", "former", "sequencer", "results", "pool_unit", "stores", "ports", "loader")
"""Names of the parts."""


def _copied(part: Any) -> Any:
    """A copy of an NPU or of one of its parts, whose values it shares; None of None. Much faster than copy.copy."""
    if part is None:
        return None
    twin = object.__new__(type(part))
    twin.__dict__.update(part.__dict__)
    return twin


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with Python's numbers in place of numpy's; ValueError unless every name is a flat name."""
    for name in values:
        require(name in flat.PLACES, "fields must be those of an NPU", shown(name))
    return {name: plain(value) for name, value in values.items()}

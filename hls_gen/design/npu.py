"""A design: the parallelism and the memories of every NPU, and what follows from them. Networks are not in it: they
are data.

Folding is how parallel, memory depths are how large; both are free. The memory map made here goes into the manifest,
by which the driver writes rows (docs/reference/device.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from .lanes import lane_groups
from .widths import PLACE_BITS, SIDE_BITS, bits_for

Fields = list[tuple[str, int]]

FRAME_BITS = 24
MEMORY_BITS = 8
TAIL_BITS = 6
MULTIPLIER_BITS = 16
SHIFT_BITS = 6
COUNT_BITS = 7
RECIPROCAL_BITS = 23
"""Widths of words, of the stream and of KFP features, in a frame; of a memory's id; of the words of the input in the
last stream word of a frame; of a requantisation's factors (golden/layers/requantise.py); of the valid taps that an
average divides by, and of 2^23 / (2 * count), rounded up (hls_gen/rtl/pool/divide.py)."""

MOST_NPUS = 32
INLETS = ("host", "ring", "loop")
OUTLETS = ("ring", "loop", "host")
"""Ways into and out of an NPU; a field ``source`` or ``target`` counts those that it has, in this order."""


@dataclass(frozen=True)
class Memory:
    """One loadable memory of an NPU: rows of ``width`` bits; ``fields`` are its parts, low bits first."""

    name: str
    id: int
    depth: int
    width: int
    fields: Fields = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Npu:
    """Parameters of one NPU.

    engine : "binary" (XNOR, popcount, thresholds, pool by OR) or "integer" (multiply, bias, requantise, max and average
        pool).
    feature_bits, weight_bits : 1 for binary; 2..8 for integer, two's complement.
    kfp : input lanes, channels that a PE takes in a cycle, >= 1 (spec B, KFP).
    kgp : PEs, kernels that work in parallel, >= 1 (KGP).
    pfp : channels that the pool unit takes in a cycle, >= 1 (PFP).
    ol : results that leave the array in a cycle, 1..kgp.
    accumulate : "popcount", "or" (a PE without popcount, for networks whose layers are all ``or``) or "both", chosen by
        layer. "or" and "both" are binary only.
    collect : 0, or bits of a register in each PE that takes the products of a window before they are reduced at once: a
        multiple of kfp. Binary only, with one accumulator, no planes and no shift_bits.
    acc_bits : width of the accumulators, 4..32.
    accumulators : of each PE: 1, registers, for dataflow output_stationary; or a power of two of them in a small
        memory, which also allows input_stationary: at least the kernel groups of a layer, twice as many for overlap.
    planes : 0, or 2..8 bit planes side by side in a PE's lanes for integer inputs; needs kfp >= planes + 1. Binary
        only.
    shift_bits : 0..3; where planes is 0, bit planes come one after another, shifted by 0..2^shift_bits - 1. Binary
        only.
    binariser_bits : 0, or 2..9: inputs of so many bits are made binary on line, by thresholds, in front of the NPU.
    binariser_rows : words of an input tuple that the binariser has thresholds for.
    layers : layers that a network may have.
    windows, window_taps, groups, levels : windows of a layer, taps of a window without a table, passes over a window
        for its kernels, thresholds of an activation.  input_words : words of a map.
    tuple_words, pool_words : capacity of the tuple memories, in words of kfp and pfp features, powers of two.
    taps, olds, jumps, pool_taps, pool_olds : rows of the sequencer tables.
    kernel_rows : rows of kgp * kfp weights, kernel memories a and b together.
    kernel_ram : what synthesis makes of the kernel memory: "block" RAM, "distributed" (LUT RAM), or "auto".
    threshold_rows : rows of ol thresholds, or of ol times bias, multiplier and shift.
    map_words : words of kfp features in the map store of outlet "loop".
    buffer_words : words of kfp features in each of the two buffers of inlet "ring", a power of two.
    inlets : where words come from: "host" (frames), "ring" (the NPU before), "loop" (its own output).
    outlets : where results go: "ring" (the NPU after), "loop", "host". Every NPU has one of each at least.
    pool : there is a pool unit; without, no layer may have a pool.
    raster : counters run through the taps of layers in raster order, which then need no tables
        (hls_gen/rtl/sequencer/raster.py).
    stream_weights : weights may come down the stream while frames are computed (streamed_weights.py).
    """

    engine: str = "binary"
    feature_bits: int = 1
    weight_bits: int = 1
    kfp: int = 8
    kgp: int = 8
    pfp: int = 8
    ol: int = 1
    accumulate: str = "popcount"
    collect: int = 0
    acc_bits: int = 16
    accumulators: int = 1
    planes: int = 0
    shift_bits: int = 3
    binariser_bits: int = 0
    binariser_rows: int = 2
    layers: int = 8
    windows: int = 1 << 20
    window_taps: int = 1 << 16
    groups: int = 1 << 16
    levels: int = 64
    input_words: int = (1 << 24) - 1
    tuple_words: int = 256
    pool_words: int = 256
    taps: int = 1024
    olds: int = 1024
    jumps: int = 256
    pool_taps: int = 256
    pool_olds: int = 256
    kernel_rows: int = 1024
    kernel_ram: str = "auto"
    threshold_rows: int = 256
    map_words: int = 256
    buffer_words: int = 16
    inlets: tuple[str, ...] = ("host", "loop")
    outlets: tuple[str, ...] = ("loop", "host")
    pool: bool = True
    raster: bool = False
    stream_weights: bool = False

    def __post_init__(self) -> None:
        self._check_engine()
        self._check_ways()
        if self.kernel_ram not in ("auto", "block", "distributed"):
            raise ValueError(f"npu: kernel_ram must be auto, block or distributed, got {self.kernel_ram!r}")
        for name in ("pool", "raster", "stream_weights"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"npu: {name} must be True or False, got {getattr(self, name)!r}")
        for f in fields(self):
            if f.type is not int:
                continue
            value = getattr(self, f.name)
            least = 0 if f.name in ("collect", "planes", "shift_bits", "binariser_bits") else 1
            if not isinstance(value, int) or value < least:
                raise ValueError(f"npu: {f.name} must be an integer >= {least}, got {value!r}")
        for name in ("tuple_words", "pool_words", "buffer_words"):
            value = getattr(self, name)
            if value < 2 or value & (value - 1):
                raise ValueError(f"npu: {name} must be a power of two >= 2, got {value}")
        for name in (
            "taps",
            "olds",
            "jumps",
            "pool_taps",
            "pool_olds",
            "kernel_rows",
            "threshold_rows",
            "map_words",
            "layers",
            "windows",
            "window_taps",
            "groups",
            "levels",
            "input_words",
            "binariser_rows",
        ):
            if getattr(self, name) < 2:
                raise ValueError(f"npu: {name} must be >= 2, got {getattr(self, name)}")
        if self.ol > self.kgp:
            raise ValueError(f"npu: ol must be <= kgp = {self.kgp}, got {self.ol}")
        if self.accumulators & (self.accumulators - 1) or self.accumulators > 256:
            raise ValueError(f"npu: accumulators must be a power of two <= 256, got {self.accumulators}")
        if not 4 <= self.acc_bits <= 32:
            raise ValueError(f"npu: acc_bits must be 4..32, got {self.acc_bits}")
        self._check_accumulation()
        least = least_acc_bits(self)
        if self.acc_bits < least:
            lanes = f"collect = {self.collect}" if self.collect else f"kfp = {self.kfp}"
            raise ValueError(f"npu: acc_bits must be >= {least} for {lanes}, got {self.acc_bits}")
        if self.planes == 1 or self.planes > 8 or (self.planes and self.kfp < self.planes + 1):
            raise ValueError(f"npu: planes must be 0 or 2..8 and below kfp = {self.kfp}, got {self.planes}")
        if self.binariser_bits and not (self.engine == "binary" and 2 <= self.binariser_bits <= 9):
            raise ValueError(f"npu: binariser_bits must be 0, or 2..9 for engine binary, got {self.binariser_bits}")
        if self.shift_bits > 3:
            raise ValueError(f"npu: shift_bits must be 0..3, got {self.shift_bits}")
        if self.layers > 256:
            raise ValueError(f"npu: layers must be <= 256, got {self.layers}")

    def _check_engine(self) -> None:
        """Raise ValueError unless engine, feature_bits, weight_bits, planes and shift_bits go together."""
        if self.engine not in ("binary", "integer"):
            raise ValueError(f"npu: engine must be binary or integer, got {self.engine!r}")
        low, high = (1, 1) if self.engine == "binary" else (2, 8)
        for name in ("feature_bits", "weight_bits"):
            value = getattr(self, name)
            if not isinstance(value, int) or not low <= value <= high:
                raise ValueError(f"npu: {name} must be {low}..{high} for engine {self.engine}, got {value!r}")
        if self.engine == "integer" and (self.planes or self.shift_bits):
            raise ValueError(
                f"npu: planes and shift_bits must be 0 for engine integer, got {self.planes} and {self.shift_bits}"
            )

    def _check_ways(self) -> None:
        """Raise ValueError unless inlets and outlets go together."""
        for name, known in (("inlets", INLETS), ("outlets", OUTLETS)):
            ways = getattr(self, name)
            if not ways or tuple(w for w in known if w in ways) != tuple(ways):
                raise ValueError(f"npu: {name} must be some of {', '.join(known)}, in this order, got {ways!r}")
        if ("loop" in self.inlets) != ("loop" in self.outlets):
            raise ValueError(f"npu: loop must be inlet and outlet or neither, got {self.inlets} and {self.outlets}")
        if self.binariser_bits and "host" not in self.inlets:
            raise ValueError(f"npu: a binariser needs inlet host, got {self.inlets}")

    def _check_accumulation(self) -> None:
        """Raise ValueError unless accumulate and collect go with the rest."""
        if self.accumulate not in ("popcount", "or", "both"):
            raise ValueError(f"npu: accumulate must be popcount, or or both, got {self.accumulate!r}")
        if self.accumulate != "popcount" and self.engine == "integer":
            raise ValueError(f"npu: accumulate must be popcount for engine integer, got {self.accumulate}")
        if self.accumulate == "or" and (self.planes or self.shift_bits):
            raise ValueError(
                f"npu: planes and shift_bits must be 0 for accumulate or, got {self.planes} and {self.shift_bits}"
            )
        if self.collect % self.kfp:
            raise ValueError(f"npu: collect must be 0 or a multiple of kfp = {self.kfp}, got {self.collect}")
        if self.collect and (self.engine, self.accumulators, self.planes, self.shift_bits) != ("binary", 1, 0, 0):
            raise ValueError(
                f"npu: collect needs engine binary, accumulators 1, planes 0 and shift_bits 0, got {self.engine}, "
                f"{self.accumulators}, {self.planes} and {self.shift_bits}"
            )

    @property
    def source_bits(self) -> int:
        """Width of an inlet's number, 0 where there is one inlet."""
        return bits_for(len(self.inlets) - 1) if len(self.inlets) > 1 else 0

    @property
    def target_bits(self) -> int:
        """Width of an outlet's number, 0 where there is one outlet."""
        return bits_for(len(self.outlets) - 1) if len(self.outlets) > 1 else 0

    @property
    def pulses(self) -> tuple[str, ...]:
        """What the counters count: every cycle is one of these."""
        return ("beat", "wait_input", "wait_room", "wait_table", *(("wait_weights",) if self.stream_weights else ()))

    @property
    def state_bits(self) -> int:
        """Width of register STATE."""
        return 28 if self.stream_weights else 27

    @property
    def slot_bits(self) -> int:
        """Width of the number of an accumulator in its PE."""
        return bits_for(self.accumulators - 1)

    @property
    def word_bits(self) -> int:
        """Width of a word of the tuple memory."""
        return self.kfp * self.feature_bits

    @property
    def host_word_bits(self) -> int:
        """Width of a word of a frame."""
        return self.kfp * self.binariser_bits if self.binariser_bits else self.word_bits

    @property
    def pool_word_bits(self) -> int:
        """Width of a word of the pool's tuple memory."""
        return self.pfp * self.feature_bits

    @property
    def units(self) -> int:
        """Steps in which the results of kgp PEs leave, ol at a time."""
        return -(-self.kgp // self.ol)

    @property
    def code_bits(self) -> int:
        """Bits beside the weights in a kernel row: 1 for plane groups, unless all that comes is an integer input; sign
        and shift for planes one after another; on top of these, 1 where a layer may choose OR."""
        choice = int(self.accumulate == "both")
        if self.planes:
            return 0 if self.inlets == ("host",) and not choice else choice + 1
        return choice + (1 + self.shift_bits if self.shift_bits else 0)

    @property
    def plane_lanes(self) -> int:
        """Channels of an integer input in a word: kfp // (planes + 1) beside each other, else kfp."""
        return self.kfp // (self.planes + 1) if self.planes else self.kfp

    @property
    def lane_groups(self) -> list[tuple[int, int]]:
        """(first lane, lanes) of each lane group of a binary PE; one group without planes."""
        return lane_groups(self.kfp, self.planes)

    @property
    def pool_side_bits(self) -> int:
        """Bits that go with a word of the pool unit: last of its tuple, last of its map, the map's outlet."""
        return 2 + self.target_bits

    @property
    def pool_sum_bits(self) -> int:
        """Width of a sum of 2^COUNT_BITS features, of which an average is made."""
        return self.feature_bits + COUNT_BITS

    @property
    def pool_index_bits(self) -> int:
        """Width of the number of a word in its tuple, in the pool unit."""
        return bits_for(self.pool_words - 1)

    def sequencer_fields(self, pool: bool) -> tuple[Fields, Fields]:
        """Fields of the rows that describe a layer to the writing and to the reading side of a tuple memory."""
        ring = bits_for((self.pool_words if pool else self.tuple_words) - 1)
        taps, olds = (self.pool_taps, self.pool_olds) if pool else (self.taps, self.olds)
        row = bits_for(self.kernel_rows - 1)
        reading: Fields = [
            ("words_minus_1", ring),
            *([] if self.raster else [("hold_tuples", ring + 1)]),
            ("hold_words", ring + 1),
            ("direct", 1),
            ("window_taps_minus_1", bits_for(self.window_taps - 1)),
            ("windows_minus_1", bits_for(self.windows - 1)),
            ("flags_base", bits_for(taps - 1)),
            ("old_base", bits_for(olds - 1)),
        ]
        if pool:
            average: Fields = [("average", 1)] if self.engine == "integer" else []
            return [("words", bits_for(self.input_words))], [
                *reading,
                *self._target,
                *average,
                *self._raster_fields(ring),
            ]
        reading += [
            ("jump_base", bits_for(self.jumps - 1)),
            ("start_row", row),
            ("kernel_base", row),
            ("group_rows", row),
            ("groups_minus_1", bits_for(self.groups - 1)),
            *([("tap_offset", self.acc_bits)] if self.engine == "binary" else []),
            *([("inner_groups_minus_1", self.slot_bits), ("tap_rows_minus_1", row)] if self.accumulators > 1 else []),
            *([("kernel_stream", 1)] if self.stream_weights else []),
        ]
        if self.raster:
            reading += [*self._raster_fields(ring), *([("twice", 1)] if self.engine == "binary" else [])]
            names = ("x_lead_rows", "x_stride_rows", "y_lead_rows", "y_stride_rows", "line_rows")
            reading += [(name, row) for name in names]
        source: Fields = [("source", self.source_bits)] if self.source_bits else []
        return [("words", bits_for(self.input_words)), *source], reading

    @property
    def _target(self) -> Fields:
        """The field that tells a map's outlet: in the row of the unit that gives it its last form."""
        return [("target", self.target_bits)] if self.target_bits else []

    def _raster_fields(self, ring: int) -> Fields:
        """Fields by which hls_gen/rtl/sequencer/raster.py counts (hls_gen/compiler/raster_rows.py)."""
        if not self.raster:
            return []
        made: Fields = [("by_counters", 1), ("x_room_end", SIDE_BITS)]
        for axis in "xy":
            made += [(f"{axis}_{what}", PLACE_BITS) for what in ("kernel_minus_1", "stride", "lead", "fresh")]
            made += [(f"{axis}_room", SIDE_BITS), (f"{axis}_step", ring), (f"{axis}_cross", ring)]
        return [*made, ("line_words", ring), ("gap_words", ring + 1)]

    @property
    def result_fields(self) -> Fields:
        """Fields of the row that describes a layer to the results unit."""
        units = bits_for(self.units - 1)
        return [
            ("groups_minus_1", bits_for(self.groups - 1)),
            ("last_units_minus_1", units),
            ("windows_minus_1", bits_for(self.windows - 1)),
            ("levels_minus_1", bits_for(self.levels - 1)),
            ("threshold_base", bits_for(self.threshold_rows - 1)),
            *([("raw", 1)] if "host" in self.outlets else []),
            *([] if self.pool else self._target),
            *([("double", 1)] if self.engine == "binary" else [(k, self.feature_bits) for k in ("low", "high")]),
        ]

    @property
    def network_fields(self) -> Fields:
        """Fields of the one row that describes the network, and the frame where it enters here, to the loader."""
        host = "host" in self.inlets
        return [
            *([("frame_words", FRAME_BITS), ("frame_beats", FRAME_BITS)] if host else []),
            ("last_layer", 8),
            *([("last_pool_layer", 8)] if self.pool else []),
            *([("frame_tail", TAIL_BITS)] if host else []),
            *([("binariser_last", bits_for(self.binariser_rows - 1))] if self.binariser_bits else []),
            *([("last_chunk", 8)] if "ring" in self.inlets else []),
        ]

    @property
    def settings(self) -> Fields:
        """Fields of the network's row that the NPU looks at."""
        names = ("last_layer", "last_pool_layer", "binariser_last", "last_chunk")
        return [(name, w) for name, w in self.network_fields if name in names]

    def memories(self) -> list[Memory]:
        """Every loadable memory, by id."""
        made: list[Memory] = []

        def memory(name: str, depth: int, parts: Fields) -> None:
            made.append(Memory(name, len(made), depth, sum(w for _, w in parts), parts))

        inputs, reading = self.sequencer_fields(pool=False)
        flags = [("last", 1), ("new", 1), ("skip", 1)]
        memory("network", 1, self.network_fields)
        memory("inputs", self.layers, inputs)
        memory("layers", self.layers, reading)
        memory("flags", self.taps, [*flags, ("jump", 1)])
        memory("olds", self.olds, [("word", bits_for(self.tuple_words - 1))])
        memory("jumps", self.jumps, [("row", bits_for(self.kernel_rows - 1))])
        memory(
            "kernels",
            self.kernel_rows,
            [
                ("weights", self.kgp * self.kfp * self.weight_bits),
                *([("code", self.code_bits)] if self.code_bits else []),
            ],
        )
        memory("results", self.layers, self.result_fields)
        if self.engine == "binary":
            memory("thresholds", self.threshold_rows, [("thresholds", self.ol * self.acc_bits)])
        else:
            parts = [("bias", self.acc_bits), ("multiplier", MULTIPLIER_BITS), ("shift", SHIFT_BITS)]
            memory("scales", self.threshold_rows, [(f"{name}_{k}", w) for k in range(self.ol) for name, w in parts])
        if self.pool:
            pool_inputs, pool_reading = self.sequencer_fields(pool=True)
            memory("pool_inputs", self.layers, pool_inputs)
            memory("pool_layers", self.layers, pool_reading)
            memory("pool_flags", self.pool_taps, flags)
            memory("pool_olds", self.pool_olds, [("word", bits_for(self.pool_words - 1))])
        if self.binariser_bits:
            memory("binariser", self.binariser_rows, [("thresholds", self.kfp * (self.binariser_bits + 1))])
        if "ring" in self.inlets:
            memory("chunks", self.layers, [("words_minus_1", bits_for(self.buffer_words - 1))])
        if self.engine == "integer" and self.pool:
            memory("reciprocals", 1 << COUNT_BITS, [("reciprocal", RECIPROCAL_BITS)])
        return made

    def memory(self, name: str) -> Memory:
        """The memory called ``name``."""
        return next(m for m in self.memories() if m.name == name)


def renamed(data: Mapping[str, Any]) -> dict[str, Any]:
    """JSON data of an NPU by present names: files of bitloom 0.1 call the engine ``kind``."""
    return {"engine" if key == "kind" else key: value for key, value in data.items()}


def least_acc_bits(npu: Npu) -> int:
    """Width of an accumulator that holds what one beat adds."""
    if npu.accumulate == "or":
        return 4
    signed = 1 if npu.engine == "binary" else npu.feature_bits + npu.weight_bits
    return max(4, bits_for(npu.collect or npu.kfp) + signed)


@dataclass(frozen=True, kw_only=True)
class Design:
    """One piece of hardware: a chain of NPUs behind one stream of ``stream_bits`` (32 or 64).

    Frames enter NPU 0. Outlet "ring" of an NPU leads to inlet "ring" of the next one (spec B16, D2); that of the last
    one, where NPU 0 has such an inlet, closes the ring, through a store of ``spill_words`` words (D8). Neighbours of
    one engine have features of the same width; between NPUs of different engines a feature is a bit: the sign of what
    an integer NPU gives, and +1 or -1 to one that reads it.
    """

    name: str
    stream_bits: int = 32
    npus: tuple[Npu, ...] = (Npu(),)
    spill_words: int = 0

    def __post_init__(self) -> None:
        if self.stream_bits not in (32, 64):
            raise ValueError(f"{self.name}: stream_bits must be 32 or 64, got {self.stream_bits!r}")
        if not 1 <= len(self.npus) <= MOST_NPUS:
            raise ValueError(f"{self.name}: a design must have 1..{MOST_NPUS} NPUs, got {len(self.npus)}")
        for n, npu in enumerate(self.npus):
            before, host = self.npus[n - 1], "host" in npu.inlets
            if host != (n == 0):
                raise ValueError(f"{self.name}: NPU 0 and no other must have inlet host, got {npu.inlets} in NPU {n}")
            joined = "ring" in before.outlets
            if joined and len(self.npus) == 1:
                raise ValueError(f"{self.name}: outlet ring needs a design of several NPUs, got {npu.outlets} in one")
            if ("ring" in npu.inlets) != joined:
                raise ValueError(
                    f"{self.name}: inlet ring must lead on from outlet ring of the NPU before, got {npu.inlets} in "
                    f"NPU {n} after {before.outlets}"
                )
            if joined and npu.engine == before.engine and npu.feature_bits != before.feature_bits:
                raise ValueError(
                    f"{self.name}: NPU {n} must have the features of the NPU before, {before.engine} of "
                    f"{before.feature_bits} bits, got {npu.engine} of {npu.feature_bits}"
                )
            if npu.stream_weights and len(self.npus) > 1:
                raise ValueError(f"{self.name}: stream_weights needs a design of one NPU, got {len(self.npus)}")
        if not any("host" in npu.outlets for npu in self.npus):
            raise ValueError(f"{self.name}: an NPU must have outlet host, got none")
        if self.spill_words != 0 and (not self.closed or self.spill_words < 2):
            raise ValueError(
                f"{self.name}: spill_words must be 0, or >= 2 where the last NPU leads to NPU 0, got {self.spill_words}"
            )

    @property
    def closed(self) -> bool:
        """Whether the last NPU leads to NPU 0."""
        return "ring" in self.npus[0].inlets

    def changes_engine(self, n: int) -> bool:
        """Whether the NPU after NPU n has another engine, so that features are bits between them."""
        return self.npus[n].engine != self.npus[(n + 1) % len(self.npus)].engine

    def next_word_bits(self, n: int) -> int:
        """Width of a word on the way from NPU n to the next one, which has that one's lanes."""
        after = self.npus[(n + 1) % len(self.npus)]
        return after.kfp if self.changes_engine(n) else after.word_bits

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; ``from_dict`` is its inverse."""
        npus = [{**asdict(n), "inlets": list(n.inlets), "outlets": list(n.outlets)} for n in self.npus]
        return {
            "name": self.name,
            "stream_bits": self.stream_bits,
            "npus": npus,
            "spill_words": self.spill_words,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Design":
        """Design of ``to_dict``'s data."""
        npus = [{**n, "inlets": tuple(n["inlets"]), "outlets": tuple(n["outlets"])} for n in map(renamed, data["npus"])]
        return cls(
            name=data["name"],
            stream_bits=data["stream_bits"],
            npus=tuple(Npu(**n) for n in npus),
            spill_words=data["spill_words"],
        )


def pipeline(npus: Sequence[Npu]) -> tuple[Npu, ...]:
    """A chain in which every NPU computes one layer: none leads back to itself, and the last one to the host."""
    last = len(npus) - 1
    return tuple(
        replace(n, inlets=("ring" if k else "host",), outlets=("ring" if k < last else "host",))
        for k, n in enumerate(npus)
    )


def cascade(npus: Sequence[Npu]) -> tuple[Npu, ...]:
    """A chain in which every NPU computes a run of layers (spec B16) and any may compute the last one."""
    last = len(npus) - 1
    return tuple(
        replace(
            n,
            inlets=("ring" if k else "host", "loop"),
            outlets=("ring", "loop", "host") if k < last else ("loop", "host"),
        )
        for k, n in enumerate(npus)
    )


def ring(npus: Sequence[Npu]) -> tuple[Npu, ...]:
    """A closed chain: NPU i computes layers i, i + N, i + 2 N, ... (spec D2), and any of them may be the last."""
    if len(npus) == 1:
        return cascade(npus)
    return tuple(
        replace(n, inlets=("ring",) if k else ("host", "ring"), outlets=("ring", "host")) for k, n in enumerate(npus)
    )

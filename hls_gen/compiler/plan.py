"""Plan: everything a network needs of an NPU, before it is cut to the memories of a particular one (spec B1 to B7).

model --golden.lowering--> passes --golden.schedule--> orders --this--> table rows, kernels, thresholds, layouts
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.graph import INPUT
from bitloom.golden.network import Model
from bitloom.golden.window import Pair, Window
from bitloom.hls_gen.design.program import ONE, ZERO

from . import integer_rows as integer
from .layout import UNUSED, Ints, Layout, chunks, plane_layout, regroup, result_layout
from .lowering import Lowered
from .mapping import Geometry, mapped, way
from .passes import IntegerPass, Pass
from .raster_rows import raster_schedule
from .schedule import Schedule, Stage, StageTables, schedule
from .tables import Tables, base, rows


@dataclass(kw_only=True)
class NpuPlan:
    """What a network needs of one NPU; its layers in their order, rows of a memory in theirs."""

    geometry: Geometry
    conv: Tables
    pool: Tables
    passes: list[Pass | IntegerPass] = field(default_factory=list)
    kernels: list[Array] = field(default_factory=list)
    """(rows, bits of all weights) of 0 and 1, an array a layer."""
    codes: list[Ints] = field(default_factory=list)
    """(rows): code of each kernel row, as ``layout.plane_layout`` gives it; 0 in binary layers."""
    any_match: list[bool] = field(default_factory=list)
    """Which layers accumulate by OR."""
    window_lanes: int = 0
    """Lanes of the beats of the longest window: bits of a register that collects its products."""
    results: list[dict[str, int]] = field(default_factory=list)
    """Row of the results unit by field, one a layer."""
    thresholds: list[Ints] = field(default_factory=list)
    """(rows, ol), an array a layer; of the integer engine (rows, 0)."""
    scales: list[dict[str, Ints]] = field(default_factory=list)
    """Columns by field, one dictionary a layer of the integer engine."""
    map_words: int = 2
    """Words of the largest map that goes back to the NPU's own input."""
    chunks: list[int] = field(default_factory=list)
    """Words of a chunk, for each map that comes from the NPU before."""
    ring_words: int = 0
    """Words of the largest map that comes from the NPU before, 0: none comes."""
    binariser: Ints = field(default_factory=lambda: np.zeros((0, 0), np.int64))
    """(words of an input tuple, kfp) thresholds of the binariser; no rows where there is none."""

    def depths(self) -> dict[str, int]:
        """Rows or words that each memory of the NPU must have at least, and how far its counters must reach."""
        pool = {"pool_taps": rows(self.pool.flags), "pool_olds": rows(self.pool.olds)}
        reading = [*self.conv.layers, *self.pool.layers]
        return {
            "layers": len(self.results),
            "windows": 1 + max((row["windows_minus_1"] for row in reading), default=0),
            "window_taps": 1 + max((row["window_taps_minus_1"] for row in reading), default=0),
            "groups": 1 + max((row["groups_minus_1"] for row in self.results), default=0),
            "levels": 1 + max((row["levels_minus_1"] for row in self.results), default=0),
            "input_words": max((row["words"] for row in (*self.conv.inputs, *self.pool.inputs)), default=1),
            "tuple_words": self.conv.ring_words,
            **({"pool_words": self.pool.ring_words, **pool} if self.geometry["pool"] else {}),
            "taps": rows(self.conv.flags),
            "olds": rows(self.conv.olds),
            "jumps": rows(self.conv.jumps),
            "kernel_rows": rows(self.kernels),
            "threshold_rows": rows(self.thresholds),
            **({"map_words": self.map_words} if "loop" in self.geometry["outlets"] else {}),
            **({"binariser_rows": len(self.binariser)} if len(self.binariser) else {}),
        }

    def acc_bits(self) -> int:
        """Width of accumulator that holds every value, and the threshold that is never reached."""
        low = min((p.value_range[0] for p in self.passes), default=0)
        high = max((p.value_range[1] + 1 for p in self.passes), default=0)
        return 1 + max(high.bit_length(), (~low).bit_length())


@dataclass(kw_only=True)
class Plan:
    """What a network needs of a chain of NPUs."""

    lowered: Lowered
    schedule: Schedule
    input_words: Layout
    """(frame words, word bits): input bit that each bit carries, or ZERO, ONE."""
    output: Layout
    """(words of a tuple, lanes): output lane in each place of what leaves for one window, or UNUSED."""
    npus: list[NpuPlan] = field(default_factory=list)
    mapping: list[int] = field(default_factory=list)
    """NPU of each layer."""
    ideal: list[tuple[str, int]] = field(default_factory=list)
    """Name and beats of each layer."""
    dataflow: list[str] = field(default_factory=list)
    """Dataflow of each layer."""


DATAFLOWS = ("output_stationary", "input_stationary", "auto")
Dataflow = str | Mapping[str, str]
"""Dataflow: one for all layers, or by layer name ("output_stationary" for those not named).

"output_stationary" (spec B9): sums stay in the PEs, and a window is passed once for each group of kgp kernels.
"input_stationary" (A10): a word stays until all groups have used it, so that nothing is read again; needs as many
accumulators as groups. "auto": "input_stationary" where there are several groups and accumulators for two windows.
"""

OLD_DATAFLOWS = {"output": "output_stationary", "input": "input_stationary"}
"""Names that files written by bitloom 0.1 have."""


def read_choices(data: Mapping[str, Any]) -> tuple[str, Any]:
    """(map order, dataflow) of a file's JSON data, by their present names or by those of bitloom 0.1.

    KeyError where there are neither.
    """
    if "map_order" in data:
        return data["map_order"], data["dataflow"]
    old = data["work"]
    if isinstance(old, str):
        return data["order"], OLD_DATAFLOWS.get(old, old)
    return data["order"], {name: OLD_DATAFLOWS.get(value, value) for name, value in old.items()}


def plan(
    model: Model,
    geometries: Sequence[Geometry],
    map_order: str = "auto",
    dataflow: Dataflow = "output_stationary",
    *,
    mapping: Sequence[int] | None = None,
    chunk: int = 1,
) -> Plan:
    """What ``model`` needs of a chain of NPUs with these geometries (kind, feature_bits, weight_bits, kfp, kgp, pfp,
    ol, planes, shift_bits, accumulate, accumulators, binariser_bits, raster, pool, inlets, outlets, buffer_words).

    map_order : "pull", "raster" or "auto" (hls_gen.compiler.schedule).
    mapping : NPU of each weighted layer, whose kind it is computed by; by default hls_gen.compiler.mapping.assign's.
    chunk : tuples of a chunk between neighbours, >= 1, fewer where a buffer holds fewer (spec D4). A map of one tuple,
        as dense layers have it, goes word by word, so that its reader begins while it is still being made.
    ValueError where the engine can't compute the network.
    """
    if chunk < 1:
        raise ValueError(f"{model.network.name}: chunk must be >= 1 tuples, got {chunk}")
    lowered, mapping = mapped(model, geometries, mapping)
    made, layout, code = _begin(lowered, geometries, map_order)
    made.mapping = list(mapping)
    on = dict(zip((p.name for p in lowered.passes), mapping))  # pass -> its NPU
    reader = {p.reads: p.name for p in lowered.passes}  # pass -> the one that reads its map
    maps = {INPUT: (layout, code, "host")}  # pass -> layout of its map's tuples, codes of the words, their inlet
    tables = {t.stage.name: t for t in made.schedule.tables}
    for p in lowered.passes:
        npu, after = made.npus[on[p.name]], reader.get(p.name)
        layout, code, source = maps[p.reads]
        chosen = dataflow if isinstance(dataflow, str) else dataflow.get(p.name, "output_stationary")
        inner = _inner_groups(p, npu.geometry, chosen)
        made.dataflow.append("input_stationary" if inner > 1 else "output_stationary")
        if isinstance(p, Pass):
            _check_accumulation(p, npu.geometry["accumulate"])
        if source == "ring":
            npu.chunks.append(_chunk(npu, layout, p, chunk))
            npu.ring_words = max(npu.ring_words, p.height * p.width * len(layout))
        npu.passes.append(p)
        made.ideal.append((p.name, _convolution(npu, p, tables[p.name], layout, code, inner, source)))
        target = way(geometries, p.name, on[p.name], on[after]) if after else "host"
        layout = _results(npu, p, tables.get(_pool_name(p)), target, made.npus[on[after]] if after else npu)
        maps[p.name] = layout, np.zeros(len(layout), np.int64), target
    made.output = layout
    return made


def _chunk(npu: NpuPlan, layout: Layout, p: Pass | IntegerPass, tuples: int) -> int:
    """Words of a chunk of the map with this tuple layout that ``p`` reads."""
    buffer, words = int(npu.geometry["buffer_words"]), len(layout)
    if p.height * p.width == 1:
        return 1
    return min(tuples, buffer // words) * words if words <= buffer else buffer


def _begin(lowered: Lowered, geometries: Sequence[Geometry], map_order: str) -> tuple[Plan, Layout, Ints]:
    """A plan without layers; layout and codes of the input's words."""
    geometry, orders = geometries[0], _orders(lowered.passes, map_order, geometries)
    kfp, binariser_bits = int(geometry["kfp"]), int(geometry["binariser_bits"])
    limits = np.zeros((0, 0), np.int64)
    if isinstance(lowered.passes[0], IntegerPass):
        layout = chunks(np.arange(lowered.source.channels), kfp)
        code = np.zeros(len(layout), np.int64)
        words = integer.input_words(lowered.source, layout, orders.input_order, int(geometry["feature_bits"]))
    else:
        layout, code = _input_layout(lowered, kfp, int(geometry["planes"]))
        words = _input_words(lowered, layout, orders.input_order)
        if binariser_bits:
            words, limits = _binarise(lowered, layout, words, orders.input_order, binariser_bits)
    made = Plan(lowered=lowered, schedule=orders, input_words=words, output=layout)
    for g in geometries:
        raster = bool(g.get("raster", False))
        conv, pool = Tables(kernel=True, raster=raster), Tables(kernel=False, raster=raster)
        made.npus.append(NpuPlan(geometry=g, conv=conv, pool=pool))
    made.npus[0].binariser = limits
    return made, layout, code


def _binarise(lowered: Lowered, layout: Layout, words: Layout, order: Ints, bits: int) -> tuple[Layout, Ints]:
    """(input words of features of ``bits`` bits, rows of thresholds, one a word of a tuple).

    An input that is binary already has features 0 and 1 and thresholds 1. Unused lanes stay 0.
    """
    if lowered.binariser is None:
        wide = np.full((*words.shape, bits), ZERO, np.int64)
        wide[..., 0] = words
        return wide.reshape(len(words), -1), np.ones(layout.shape, np.int64)
    limits = np.append(lowered.binariser, 1 << (bits - 1))[layout]  # UNUSED picks the one that is never reached
    return integer.input_words(lowered.source, layout, order, bits), limits


def _orders(passes: Sequence[Pass | IntegerPass], map_order: str, geometries: Sequence[Geometry]) -> Schedule:
    """Orders of all maps; where all NPUs have counters, ``auto`` weighs no tables that are not needed."""
    counters = all(g.get("raster", False) for g in geometries)
    return (raster_schedule if counters else schedule)(_stages(passes), map_order)


def _stages(passes: Sequence[Pass | IntegerPass]) -> list[Stage]:
    """The windows of all passes, as hls_gen.compiler.schedule wants them: each convolution, and its pool if it has
    one."""
    out, last = [], {INPUT: INPUT}  # last: pass -> its last stage
    for p in passes:
        size, bits = (p.height, p.width), int(np.prod(p.weight.shape[2:]))
        out.append(_stage(p.name, size, p.window, bits, last[p.reads]))
        if p.pool:
            bits = p.out_channels * p.levels
            pool = _stage(_pool_name(p), out[-1].output_size, p.pool, bits, p.name)
            out.append(replace(pool, kind="pool"))
        last[p.name] = out[-1].name
    return out


def _pool_name(p: Pass | IntegerPass) -> str:
    """Name of the stage of a pass's pool; no layer has it."""
    return f"{p.name}.pool"


def _stage(name: str, size: Pair, window: Window, tuple_bits: int, reads: str) -> Stage:
    """A stage of kind conv."""
    height, width = size
    return Stage(name=name, kind="conv", height=height, width=width, window=window, tuple_bits=tuple_bits, reads=reads)


def _input_layout(lowered: Lowered, kfp: int, groups: int) -> tuple[Layout, Ints]:
    """Layout of the first map's tuples, and the code of each word."""
    channels, planes = lowered.passes[0].weight.shape[2:]
    if lowered.input_bits:
        return plane_layout(channels, planes - 1, kfp, groups)
    layout = chunks(np.arange(channels), kfp)
    return layout, np.zeros(len(layout), np.int64)


def _input_words(lowered: Lowered, layout: Layout, order: Ints) -> Layout:
    """(tuples * words, kfp): number of the image bit in each lane, or ZERO, ONE.

    A plane above the stored bits repeats the sign bit, or is 0 where there is none.
    """
    source = lowered.source
    bits = source.encoding.bits
    stored = list(range(bits))  # bit of the value in each plane
    if lowered.input_bits:
        above = ZERO if source.encoding.kind == "unsigned" else bits - 1
        stored += [above] * (lowered.input_bits - bits) + [ONE]
    plane, channel = np.array(stored), np.arange(source.channels)[:, None]
    of_lane = np.where(plane >= 0, channel * bits + plane, plane).ravel()
    lanes = np.append(of_lane, ZERO)[layout]  # UNUSED picks the appended one
    at = order[:, None, None] * (source.channels * bits)
    return np.where(lanes >= 0, at + lanes, lanes).reshape(-1, layout.shape[1])


def _convolution(
    made: NpuPlan,
    p: Pass | IntegerPass,
    tables: StageTables,
    layout: Layout,
    code: Ints,
    inner: int,
    source: str,
) -> int:
    """Append the rows of a pass up to its sums; returns its beats.

    layout : of the tuples that it reads.  code : of their words.  source : the inlet by which they come.
    """
    geometry = made.geometry
    kgp = int(geometry["kgp"])
    groups, places, words = -(-p.out_channels // kgp), p.weight.shape[1], len(layout)
    outer = groups // inner
    made.conv.append(tables, words, visits=p.visits, reread=outer > 1, inner=inner)
    if len(geometry["inlets"]) > 1:
        made.conv.inputs[-1]["source"] = list(geometry["inlets"]).index(source)
    made.conv.layers[-1] |= {
        "kernel_base": rows(made.kernels),
        "group_rows": places * words if outer > 1 else 0,
        "groups_minus_1": outer - 1,
    }
    if int(geometry["accumulators"]) > 1:
        made.conv.layers[-1] |= {"inner_groups_minus_1": inner - 1, "tap_rows_minus_1": words * inner - 1}
    if isinstance(p, Pass):
        made.conv.layers[-1] |= {"tap_offset": p.tap_offset, **({"twice": p.visits - 1} if made.conv.raster else {})}
        kernels = _kernels(p, layout, kgp)
    else:
        kernels = integer.kernels(p, layout, kgp, int(geometry["weight_bits"]))
    codes = np.tile(code, groups * places)
    if inner > 1:  # from (group, place, word) to (place, word, group)
        kernels = kernels.reshape(groups, places * words, -1).transpose(1, 0, 2).reshape(kernels.shape)
        codes = codes.reshape(groups, -1).T.ravel()
    made.kernels.append(kernels)
    made.codes.append(codes)
    made.any_match.append(isinstance(p, Pass) and p.any_match)
    taps = int((p.window.positions(p.height, p.width) >= 0).sum(axis=1).max())
    made.window_lanes = max(made.window_lanes, taps * p.visits * words * int(geometry["kfp"]))
    return len(tables.index) * p.visits * words * groups


def _inner_groups(p: Pass | IntegerPass, geometry: Geometry, dataflow: str) -> int:
    """Kernel groups that use a word in turn: all of them where the dataflow is input_stationary, else 1."""
    if dataflow not in DATAFLOWS:
        raise ValueError(f"{p.name}: dataflow must be one of {', '.join(DATAFLOWS)}, got {dataflow!r}")
    groups, accumulators = -(-p.out_channels // int(geometry["kgp"])), int(geometry["accumulators"])
    if dataflow == "input_stationary" and groups > accumulators:
        raise ValueError(
            f"{p.name}: dataflow input_stationary needs accumulators >= {groups}, the NPU has {accumulators}"
        )
    return groups if dataflow == "input_stationary" or (dataflow == "auto" and 2 * groups <= accumulators) else 1


def _check_accumulation(p: Pass, npu: str) -> None:
    """ValueError unless an NPU that accumulates like this can do so as the layer does."""
    layer = "or" if p.any_match else "popcount"
    if npu not in (layer, "both"):
        raise ValueError(f"{p.name}: accumulate {layer} needs an NPU that accumulates {layer} or both, got {npu}")


def _kernels(p: Pass, layout: Layout, kgp: int) -> Array:
    """(groups * taps * visits * words, kgp * kfp) weight bits; unused lanes 1, unused kernels as kernel 0."""
    groups = -(-p.out_channels // kgp)
    places = p.weight.shape[1]
    lanes = p.weight.reshape(p.out_channels, places, -1)
    padded = np.concatenate([lanes, np.ones((*lanes.shape[:2], 1), lanes.dtype)], axis=2)
    kernel = np.zeros(groups * kgp, np.int64)
    kernel[: p.out_channels] = np.arange(p.out_channels)
    bits: Array = padded[kernel][:, :, layout]  # (kernels, places, words, kfp)
    bits = bits.reshape(groups, kgp, places, *layout.shape).transpose(0, 2, 3, 1, 4)
    return bits.reshape(groups * places * len(layout), -1)


def _results(
    made: NpuPlan, p: Pass | IntegerPass, pool: StageTables | None, target: str, reader: NpuPlan
) -> Layout:
    """Append the rows of a pass from its sums on; returns the layout of what leaves for a window.

    pool : tables of its pool, if it has one.  target : the outlet by which its map leaves.
    reader : whose words the map is made of.
    """
    geometry = made.geometry
    kgp, pfp, ol = (int(geometry[k]) for k in ("kgp", "pfp", "ol"))
    kfp = int(reader.geometry["kfp"])
    groups = -(-p.out_channels // kgp)
    last_group = p.out_channels - (groups - 1) * kgp
    windows = made.conv.layers[-1]["windows_minus_1"] + 1
    steps = result_layout(p.out_channels, p.levels, kgp, ol)
    row = {
        "groups_minus_1": groups - 1,
        "last_units_minus_1": -(-last_group // ol) - 1,
        "windows_minus_1": windows - 1,
        "levels_minus_1": p.levels - 1,
        **({"raw": int(p.raw)} if "host" in geometry["outlets"] else {}),
    }
    to = {"target": list(geometry["outlets"]).index(target)} if len(geometry["outlets"]) > 1 else {}
    if not geometry["pool"]:
        row |= to
        if p.pool:
            raise ValueError(f"{p.name}: a pool needs an NPU with a pool unit, got one without")
    if isinstance(p, Pass):
        limits = np.zeros((0, ol), np.int64)
        if p.threshold is not None:
            limits = np.where(steps == UNUSED, p.value_range[1] + 1, p.threshold.ravel()[steps])  # never reached
        row["double"] = int(p.double)
    else:
        limits = np.zeros((0 if p.raw else len(steps), 0), np.int64)
        made.scales.append(integer.scales(p, steps))
        row |= {"low": p.low, "high": p.high}
    made.results.append({**row, "threshold_base": base(made.thresholds, limits)})
    made.thresholds.append(limits)
    if p.raw:
        return steps
    words = steps
    if geometry["pool"]:
        words = regroup(steps, pfp)
        if pool:
            made.pool.append(pool, len(words))
        else:
            made.pool.append_straight(windows, len(words))
        made.pool.layers[-1] |= to
        if isinstance(p, IntegerPass):
            made.pool.layers[-1]["average"] = int(p.average)
        windows = made.pool.layers[-1]["windows_minus_1"] + 1
    out = regroup(words, kfp)
    if target == "loop":
        made.map_words = max(made.map_words, windows * len(out))
    return out

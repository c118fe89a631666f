"""Compiler: a model becomes the stream program of one piece of hardware (spec B1 to B8, B17).

    model --golden.lowering--> passes --golden.schedule--> tables --this--> rows of the memories, LOAD packets, Program

The hardware is known by its manifest alone, and numpy is all that is needed, so that a board can compile too: any network
whose passes fit the memories runs on the same bitstream.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden.file import model_digest
from golden.lowering import Lowered, Pass, input_planes, lower
from golden.network import Model
from golden.schedule import Schedule, Stage, StageTables, schedule

from .layout import UNUSED, Layout, chunks, plane_layout, regroup, result_layout, to_stream
from .manifest import Manifest
from .packets import load_packet, pack_fields, pack_rows
from .program import ONE, ZERO, Program

Ints = NDArray[np.int64]


@dataclass
class Tables:
    """Rows of one sequencer's memories: layers (columns by field), flags, old addresses, jump targets."""

    inputs: list[dict[str, int]] = field(default_factory=list)
    layers: list[dict[str, int]] = field(default_factory=list)
    flags: list[Ints] = field(default_factory=list)
    olds: list[Ints] = field(default_factory=list)
    jumps: list[Ints] = field(default_factory=list)
    ring_words: int = 2
    """Words that the tuple memory must hold: the largest of the layers, with room for one more tuple."""


@dataclass(frozen=True)
class Plan:
    """Everything a network needs of an NPU, before it is cut to a particular one's memories."""

    lowered: Lowered
    schedule: Schedule
    conv: Tables
    pool: Tables
    kernels: Ints
    """(rows, kgp * kfp + 1) of 0 and 1; the last column is the code."""
    codes: Ints
    results: list[dict[str, int]]
    thresholds: Ints
    """(rows, ol)."""
    input_words: Ints
    """(frame words, kfp): input bit that each lane carries, or ZERO, ONE."""
    output: Layout
    """(units of a window, lanes): output lane that each result carries, or UNUSED."""
    map_words: int
    ideal: tuple[tuple[str, int], ...]

    def depths(self) -> dict[str, int]:
        """Rows or words that each memory of the NPU must have at least."""
        count = lambda parts: sum(len(p) for p in parts)  # noqa: E731
        return {
            "layers": len(self.results),
            "tuple_words": self.conv.ring_words,
            "pool_words": self.pool.ring_words,
            "taps": count(self.conv.flags),
            "olds": count(self.conv.olds),
            "jumps": count(self.conv.jumps),
            "pool_taps": count(self.pool.flags),
            "pool_olds": count(self.pool.olds),
            "kernel_rows": len(self.kernels),
            "threshold_rows": len(self.thresholds),
            "map_words": self.map_words,
        }

    def acc_bits(self) -> int:
        """Width of accumulator that holds every value, and the threshold that is never reached."""
        low = min(p.value_range[0] for p in self.lowered.passes)
        high = max(p.value_range[1] + 1 for p in self.lowered.passes)
        return 1 + max(high.bit_length(), (~low).bit_length())


def plan(model: Model, geometry: Mapping[str, Any], order: str = "auto") -> Plan:
    """What ``model`` needs of an NPU with this geometry (kfp, kgp, pfp, ol, planes, shift_bits).

    order : of the maps, "pull", "raster" or "auto" (golden.schedule). ValueError where the engine can't compute the network.
    """
    kfp, kgp, pfp, ol = (int(geometry[k]) for k in ("kfp", "kgp", "pfp", "ol"))
    groups = int(geometry["planes"])
    lowered = lower(model, groups or None)
    passes = lowered.passes
    if lowered.input_bits and not groups and lowered.input_bits - 1 >= 1 << int(geometry["shift_bits"]):
        raise ValueError(
            f"{model.network.name}: an input of {lowered.input_bits} bit planes needs shifts up to "
            f"{lowered.input_bits - 1}, the NPU has shift_bits = {geometry['shift_bits']}"
        )
    order_of = schedule(_stages(passes), order)
    conv, pool = Tables(), Tables()
    kernel_rows: list[Ints] = []
    codes: list[Ints] = []
    results: list[dict[str, int]] = []
    thresholds: list[Ints] = []
    layout, code = _input_layout(lowered, kfp, groups)
    first_layout, tables = layout, iter(order_of.tables)
    map_words = 2
    ideal = []
    for number, p in enumerate(passes):
        mine = next(tables)
        group_count = -(-p.out_channels // kgp)
        words, rows_per_tap = len(layout), len(layout) * p.visits
        base = sum(len(r) for r in kernel_rows)
        beats = _sequence(conv, mine, p.visits, words, group_count > 1, kernel=True)
        conv.inputs[-1]["from_ring"] = int(number > 0)
        conv.layers[-1] |= {
            "kernel_base": base,
            "group_rows": mine.stage.window.taps * rows_per_tap,
            "groups_minus_1": group_count - 1,
            "tap_offset": p.tap_offset,
        }
        ideal.append((p.name, beats * words * group_count))
        kernel_rows.append(_kernels(p, layout, kgp))
        codes.append(np.tile(code, group_count * mine.stage.window.taps * p.visits))
        out = result_layout(p.out_channels, p.levels, kgp, ol)
        last_group = p.out_channels - (group_count - 1) * kgp
        results.append(
            {
                "groups_minus_1": group_count - 1,
                "last_units_minus_1": -(-last_group // ol) - 1,
                "windows_minus_1": len(mine.output_order) - 1,
                "levels_minus_1": p.levels - 1,
                "threshold_base": sum(len(t) for t in thresholds),
                "double": int(p.double),
                "raw": int(p.threshold is None),
            }
        )
        if p.threshold is not None:
            never = p.value_range[1] + 1
            thresholds.append(np.where(out == UNUSED, never, p.threshold.ravel()[out]))
            out = regroup(out, pfp)
            pooled = next(tables) if p.pool else None
            windows = (
                _sequence(pool, pooled, 1, len(out), False)
                if pooled
                else _straight(pool, len(mine.output_order), len(out))
            )
            pool.layers[-1]["to_host"] = int(number == len(passes) - 1)
            layout = regroup(out, kfp)
            code = np.zeros(len(layout), np.int64)
            if number < len(passes) - 1:
                map_words = max(map_words, windows * len(layout))
            out = layout
    return Plan(
        lowered=lowered,
        schedule=order_of,
        conv=conv,
        pool=pool,
        kernels=np.concatenate(kernel_rows),
        codes=np.concatenate(codes),
        results=results,
        thresholds=np.concatenate(thresholds) if thresholds else np.zeros((0, ol), np.int64),
        input_words=_input_words(lowered, first_layout, order_of.input_order),
        output=out,
        map_words=map_words,
        ideal=tuple(ideal),
    )


def compile_model(model: Model, manifest: Manifest, order: str = "auto") -> Program:
    """``model`` as a program for the design of ``manifest``.

    ValueError, in one line with the need and what there is, where it doesn't fit.
    """
    npu = manifest.npus[0]
    made = plan(model, npu.parameters, order)
    for name, need in {**made.depths(), "acc_bits": made.acc_bits()}.items():
        if need > npu.parameters[name]:
            raise ValueError(
                f"{model.network.name}: {name} must be >= {need}, design {manifest.name} has {npu.parameters[name]}"
            )
    frame = to_stream(made.input_words, manifest.stream_bits)  # UNUSED == ZERO: constant 0
    pieces = max(1, manifest.stream_bits // npu.kfp)
    network = {
        "frame_words": len(made.input_words),
        "frame_beats": len(frame),
        "last_layer": len(made.results) - 1,
        "last_pool_layer": max(len(made.pool.layers) - 1, 0),
        "frame_tail": (len(made.input_words) - 1) % pieces,
    }
    parameters = np.concatenate(_packets(made, manifest, network))
    result_words, index = _result_index(made, manifest.stream_bits)
    source = model.network
    return Program(
        name=source.name,
        design_digest=manifest.digest,
        model_digest=model_digest(model),
        input=source.input,
        output_shape=source.output.shape,
        output_kind="raw" if made.results[-1]["raw"] else "bits",
        classes=source.classes,
        ideal_cycles=sum(c for _, c in made.ideal),
        layers=made.ideal,
        parameters=parameters,
        frame_source=frame.ravel().astype(np.int32),
        frame_words=len(made.input_words),
        result_words=result_words,
        result_index=index.astype(np.int32),
    )


def _stages(passes: tuple[Pass, ...]) -> list[Stage]:
    out = []
    for p in passes:
        out.append(
            Stage(
                name=p.name,
                kind="conv",
                height=p.height,
                width=p.width,
                window=p.window,
                tuple_bits=p.weight.shape[2] * p.weight.shape[3],
            )
        )
        if p.pool:
            rows, columns = p.window.output_size(p.height, p.width)
            out.append(
                Stage(
                    name=f"{p.name}_pool",
                    kind="pool",
                    height=rows,
                    width=columns,
                    window=p.pool,
                    tuple_bits=p.out_channels * p.levels,
                )
            )
    return out


def _sequence(out: Tables, tables: StageTables, visits: int, words: int, reread: bool, kernel: bool = False) -> int:
    """Append one layer's rows to ``out``; returns the number of taps (kernel) or of windows (pool)."""
    skips = np.where(tables.new, tables.advance - 1, 0)  # tuples that arrive before this tap's own
    taps = len(tables.index) * visits
    entry = np.repeat(np.arange(len(tables.index)), visits)
    revisit = np.arange(taps) % visits > 0
    new = tables.new[entry] & ~revisit
    last = tables.last[entry] & (np.arange(taps) % visits == visits - 1)
    jump = tables.jump_mark[entry] & (np.arange(taps) % visits == visits - 1)
    flags = last.astype(np.int64) | new.astype(np.int64) << 1 | jump.astype(np.int64) << 3
    if skips.any():
        flags = np.insert(flags, np.repeat(np.flatnonzero(np.diff(entry, prepend=-1)), skips), 0b110)
    per_window = np.diff(np.flatnonzero(np.concatenate([[True], last])))
    plain = bool(new.all() and not skips.any() and not jump.any() and (np.diff(per_window) == 0).all())
    tuples = len(tables.input_order)
    hold = min(tables.capacity(reread), tuples)
    leading = tables.leading_jump or 0
    row = {
        "words_minus_1": words - 1,
        "hold": hold,
        "tail": hold * words,
        "direct": int(plain),
        "window_taps_minus_1": int(last.argmax()) if plain else 0,
        "windows_minus_1": len(tables.output_order) - 1,
        "flags_base": sum(len(f) for f in out.flags),
        "old_base": sum(len(o) for o in out.olds),
    }
    if kernel:
        row |= {"jump_base": sum(len(j) for j in out.jumps), "start_row": leading * words * visits}
    out.layers.append(row)
    out.inputs.append({"words": tuples * words})
    if not plain:
        out.flags.append(flags if kernel else flags & 0b111)
        out.olds.append(tables.index[entry][~new] * words)
        if kernel:
            out.jumps.append(tables.jump_target * words * visits)
    out.ring_words = max(out.ring_words, (hold + (hold < tuples)) * words, 2 * words if tuples > 1 else words)
    return taps if kernel else len(tables.output_order)


def _straight(out: Tables, windows: int, words: int) -> int:
    """A pool layer that hands every tuple on."""
    out.layers.append(
        {
            "words_minus_1": words - 1,
            "hold": 1,
            "tail": words,
            "direct": 1,
            "window_taps_minus_1": 0,
            "windows_minus_1": windows - 1,
            "flags_base": 0,
            "old_base": 0,
        }
    )
    out.inputs.append({"words": windows * words})
    out.ring_words = max(out.ring_words, 2 * words)
    return windows


def _input_layout(lowered: Lowered, kfp: int, groups: int) -> tuple[Layout, Ints]:
    """Layout of the first map's tuples, and the code of each word."""
    channels, planes = lowered.passes[0].weight.shape[2:]
    if not lowered.input_bits:
        layout = chunks(np.arange(channels), kfp)
        return layout, np.zeros(len(layout), np.int64)
    return plane_layout(channels, planes - 1, kfp, groups)


def _input_words(lowered: Lowered, layout: Layout, order: Ints) -> Ints:
    """(tuples * words, kfp): number of the image bit in each lane, or ZERO, ONE."""
    source = lowered.model.network.input
    bits = source.encoding.bits
    if not lowered.input_bits:
        of_lane = np.arange(source.channels * bits)
    else:
        plane = np.arange(lowered.input_bits)
        stored = np.where(plane < bits, plane, ZERO if source.encoding.kind == "unsigned" else bits - 1)
        table = (
            np.append(stored, ONE)[None, :]
            + np.where(np.append(stored, ONE) >= 0, bits, 0) * np.arange(source.channels)[:, None]
        )
        of_lane = table.ravel()
    lanes = np.append(of_lane, ZERO)[layout]  # UNUSED picks the appended one
    per_position = source.channels * bits
    return (np.where(lanes >= 0, lanes + order[:, None, None] * per_position, lanes)).reshape(-1, layout.shape[1])


def _kernels(p: Pass, layout: Layout, kgp: int) -> Ints:
    """(groups * taps * visits * words, kgp * kfp) weight bits; unused lanes 1, unused kernels as kernel 0."""
    groups = -(-p.out_channels // kgp)
    places = p.weight.shape[1]
    lanes = p.weight.reshape(p.out_channels, places, -1)
    padded = np.concatenate([lanes, np.ones((*lanes.shape[:2], 1), lanes.dtype)], axis=2)
    kernel = np.zeros(groups * kgp, np.int64)
    kernel[: p.out_channels] = np.arange(p.out_channels)
    rows = padded[kernel][:, :, layout]  # (kernels, places, words, kfp)
    rows = rows.reshape(groups, kgp, places, *layout.shape).transpose(0, 2, 3, 1, 4)
    return rows.reshape(groups * places * len(layout), -1)


def _packets(made: Plan, manifest: Manifest, network: Mapping[str, int]) -> list[NDArray[np.uint32]]:
    """LOAD packets of all memories that have rows; the network row comes last."""
    npu = manifest.npus[0]
    ring = {"": npu.parameters["tuple_words"], "pool_": npu.parameters["pool_words"]}
    columns = lambda rows: {name: [r[name] for r in rows] for name in rows[0]}  # noqa: E731
    out = []

    def load(name: str, rows: NDArray[np.uint32]) -> None:
        if len(rows):
            out.append(load_packet(manifest, 0, name, 0, rows))

    for prefix, part in (("", made.conv), ("pool_", made.pool)):
        if not part.layers:
            continue
        for name, rows in (("inputs", part.inputs), ("layers", part.layers)):
            load(prefix + name, pack_fields(manifest.memory(0, prefix + name), columns(rows)))
        for name, parts in (
            ("flags", part.flags),
            ("olds", [o % ring[prefix] for o in part.olds]),
            ("jumps", part.jumps),
        ):
            if parts and sum(map(len, parts)):
                load(prefix + name, pack_rows(manifest.memory(0, prefix + name).width, list(np.concatenate(parts))))
    load("kernels", pack_rows(manifest.memory(0, "kernels").width, _coded(made, npu.parameters)))
    load("results", pack_fields(manifest.memory(0, "results"), columns(made.results)))
    if len(made.thresholds):
        acc = npu.parameters["acc_bits"]
        bits = ((made.thresholds[..., None] >> np.arange(acc)) & 1).reshape(len(made.thresholds), -1)
        load("thresholds", pack_rows(manifest.memory(0, "thresholds").width, bits))
    load("network", pack_fields(manifest.memory(0, "network"), {k: [v] for k, v in network.items()}))
    return out


def _coded(made: Plan, parameters: Mapping[str, Any]) -> Ints:
    """Kernel rows with their code bits: 1 bit (plane groups) or shift and sign."""
    if parameters["planes"]:
        return np.concatenate([made.kernels, made.codes[:, None]], axis=1)
    shift_bits = parameters["shift_bits"]
    if not shift_bits:
        return made.kernels
    shift = np.where(made.codes < 0, -1 - made.codes, made.codes)
    bits = (shift[:, None] >> np.arange(shift_bits)) & 1
    return np.concatenate([made.kernels, bits, (made.codes < 0)[:, None]], axis=1)


def _result_index(made: Plan, stream_bits: int) -> tuple[int, Ints]:
    """(32-bit words a frame, place of each output value's word or bits), as Program wants them."""
    final = made.lowered.passes[-1]
    positions = made.schedule.output_order
    windows, levels = len(positions), final.levels
    lanes = final.out_channels * levels
    raw = final.threshold is None
    flat = made.output.ravel() if raw else None
    if flat is not None:
        per_window = np.empty(lanes, np.int64)
        per_window[flat[flat != UNUSED]] = np.flatnonzero(flat != UNUSED)
        place = np.arange(windows)[:, None] * len(flat) + per_window
        words = windows * len(flat)
        words += -words % (stream_bits // 32)
    else:
        tuples = np.where(made.output == UNUSED, UNUSED, made.output + np.arange(windows)[:, None, None] * lanes)
        stream = to_stream(tuples.reshape(-1, made.output.shape[1]), stream_bits).ravel()
        place = np.empty(windows * lanes, np.int64)
        place[stream[stream != UNUSED]] = np.flatnonzero(stream != UNUSED)
        place = place.reshape(windows, lanes)
        words = len(stream) // 32
    out = np.empty((windows, lanes), np.int64)
    out[positions] = place  # row-major
    return words, out.reshape(-1, levels)


def needed_input_planes(model: Model) -> int:
    """Bit planes of the model's input, 0 for a bipolar one."""
    encoding = model.network.input.encoding
    return 0 if encoding.kind == "bipolar" else input_planes(encoding)

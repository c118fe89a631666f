"""Compiler: a model becomes the stream program of one piece of hardware (spec B1 to B8, B17).

    model --driver.plan--> Plan --this, with the manifest--> rows of the memories, LOAD packets, Program

The hardware is known by its manifest alone, and numpy is all that is needed, so that a board can compile too: any
network whose passes fit the memories runs on the same bitstream.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.file import model_digest
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.headers import Words
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.memories import Memory
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import load_packet, pack_fields, pack_rows, weights_packet
from bitloom.hls_gen.design.program import Program

from .dataflow import Dataflow
from .flow import Deadlock, simulate, spill
from .integer_rows import bounded_shifts, lane_bits, reciprocals, two_complement
from .layout import UNUSED, Ints, to_stream
from .npu_plan import NpuPlan
from .plan import Plan, plan
from .raster_rows import MODULAR
from .streamed_weights import Placement, WeightLayer, WeightStream, place
from .tables import FLAGS, Tables


def compile_model(
    model: Model,
    manifest: Manifest,
    map_order: str = "auto",
    dataflow: Dataflow = "output_stationary",
    *,
    mapping: Sequence[int] | None = None,
    chunk: int = 1,
) -> Program:
    """``model`` as a program for the design of ``manifest``. map_order: "pull", "raster" or "auto"
    (hls_gen.compiler.schedule).

    dataflow : of the layers (hls_gen.compiler.plan).  mapping : NPU of each weighted layer.  chunk : tuples of a chunk
    between neighbours (hls_gen.compiler.plan).

    ValueError, in one line with the need and what there is, where it doesn't fit.
    """
    network, count = model.network, len(manifest.npus)
    made = plan(model, manifest.npus, map_order, dataflow, mapping=mapping, chunk=chunk)
    frame = to_stream(made.input_words, manifest.stream_bits)  # UNUSED == ZERO: constant 0
    placement = None
    if manifest.npus[0].stream_weights:
        placement = _place(made, manifest, len(frame))
    for n, npu in enumerate(made.npus):
        what = f"design {manifest.name}" if count == 1 else f"NPU {n} of design {manifest.name}"
        _check_depths(network.name, npu, manifest.npus[n], what, placed=placement is not None)
    _check_flow(network.name, made, manifest)
    loads, before, after = list[Words](), np.zeros(0, np.uint32), np.zeros(0, np.uint32)
    for n, npu in enumerate(made.npus):
        rows = {**_rows(npu, manifest.npus[n]), "network": _network_row(made, n, manifest, len(frame))}  # this one last
        part, (before, after) = _parameters(manifest, n, npu, placement, rows)
        loads.append(part)
    parameters, final = np.concatenate(loads), made.npus[made.mapping[-1]]
    result_words, index = _result_index(made, final, manifest.stream_bits)
    return Program(
        name=network.name,
        design_digest=manifest.digest,
        model_digest=model_digest(model),
        input=network.input,
        output_shape=network.output.shape,
        output_kind="raw" if final.passes[-1].raw else "signed" if final.scales else "bits",
        classes=network.classes,
        ideal_cycles=max(_beats(made, n) for n in range(count)),
        layers=tuple(made.ideal),
        mapping=tuple(made.mapping),
        parameters=parameters,
        weights=np.concatenate([before, after]),
        weights_before=len(before),
        frame_source=frame.ravel().astype(np.int32),
        frame_words=len(made.input_words),
        result_words=result_words,
        result_index=index.astype(np.int32),
    )


def _check_flow(network: str, made: Plan, manifest: Manifest) -> None:
    """ValueError if the NPUs of a ring would wait for each other for ever (spec D8); whoever is first and last in a
    chain can't."""
    edges = zip(made.mapping, made.mapping[1:])
    if not any(here != there == 0 for here, there in edges):
        return
    spill_words = manifest.design.spill_words
    ring = system(made, manifest.npus, stream_bits=manifest.stream_bits, spill_words=spill_words)
    try:
        simulate(ring, frames=2)
    except Deadlock as e:
        least = spill(ring, frames=2).least
        raise ValueError(
            f"{network}: spill_words must be >= {least}, design {manifest.name} has {spill_words}: {e}"
        ) from None


def _beats(made: Plan, n: int) -> int:
    """Beats a frame of NPU ``n``."""
    return sum(beats for (_, beats), npu in zip(made.ideal, made.mapping) if npu == n)


def _check_depths(network: str, made: NpuPlan, npu: Npu, what: str, placed: bool) -> None:
    """ValueError unless the NPU has what its layers need. placed : its kernel rows have been given their places."""
    needs = {**made.depths(), "acc_bits": made.acc_bits()}
    if npu.collect and made.window_lanes > npu.collect:
        raise ValueError(f"{network}: collect must be >= {made.window_lanes}, {what} has {npu.collect}")
    if placed:
        del needs["kernel_rows"]
    for name, need in needs.items():
        if need > getattr(npu, name):
            raise ValueError(f"{network}: {name} must be >= {need}, {what} has {getattr(npu, name)}")


def _place(made: Plan, manifest: Manifest, frame_beats: int) -> Placement:
    """Where the weights of each layer lie, which the rows of memory ``layers`` are told."""
    npu, own = manifest.npus[0], made.npus[0]
    layers = [WeightLayer(name, len(rows), beats) for (name, beats), rows in zip(made.ideal, own.kernels)]
    stream = WeightStream(
        bits=manifest.stream_bits,
        row_words=manifest.padded(npu.memory("kernels").width) // manifest.stream_words,
        frame_words=frame_beats,
        absorbed=npu.tuple_words >= len(made.input_words),
    )
    found = place(made.lowered.model.network.name, layers, npu.kernel_rows, stream)
    for i, row in enumerate(own.conv.layers):
        row |= {"kernel_base": found.base[i], "kernel_stream": int(i in found.streamed)}
    return found


def _parameters(
    manifest: Manifest, n: int, made: NpuPlan, placement: Placement | None, rows: Mapping[str, Words]
) -> tuple[Words, tuple[Words, Words]]:
    """(LOAD packets, WEIGHTS packets before each frame and after it)."""
    none, loads, weights = np.zeros(0, np.uint32), list[Words](), list[Words]()
    for name, part in rows.items():
        if name != "kernels" or placement is None or not placement.streamed:
            if len(part):
                loads.append(load_packet(manifest, n, name, 0, part))
            continue
        ends = np.cumsum([len(k) for k in made.kernels])
        for i, own in enumerate(np.split(part, ends[:-1])):
            if i in placement.streamed:
                ahead = placement.ahead[placement.streamed.index(i)]
                weights.append(weights_packet(manifest, n, placement.base[i], own, ahead))
            else:
                loads.append(load_packet(manifest, n, name, placement.base[i], own))
    before, after = weights[: placement.before if placement else 0], weights[placement.before if placement else 0 :]
    return np.concatenate([none, *loads]), (np.concatenate([none, *before]), np.concatenate([none, *after]))


def _network_row(made: Plan, n: int, manifest: Manifest, frame_beats: int) -> Words:
    """The one row of memory ``network`` of NPU ``n``."""
    npu, frame_words = made.npus[n], len(made.input_words)
    row = {"last_layer": max(len(npu.results) - 1, 0)}
    if npu.folding.pool:
        row["last_pool_layer"] = max(len(npu.pool.layers) - 1, 0)
    if n == 0:
        together = gear(manifest.npus[0].host_word_bits, manifest.stream_bits).together
        row |= {"frame_words": frame_words, "frame_beats": frame_beats, "frame_tail": (frame_words - 1) % together}
    if len(npu.binariser):
        row["binariser_last"] = len(npu.binariser) - 1
    if "ring" in npu.folding.inlets:
        row["last_chunk"] = max(len(npu.chunks) - 1, 0)
    return pack_fields(manifest.memory(n, "network"), _columns([row]))


def _rows(made: NpuPlan, npu: Npu) -> dict[str, Words]:
    """Rows of each memory, from row 0 on, that a plan fills; in the order in which they are sent.

    An NPU without layers gets one that waits for a word, which never comes.
    """
    if not made.results:
        return {
            f"{prefix}{name}": _waiting(npu.memory(f"{prefix}{name}"))
            for prefix in ("", *["pool_"] * npu.pool)
            for name in ("inputs", "layers")
        }
    out = {**_table_rows(made.conv, npu, ""), **_table_rows(made.pool, npu, "pool_")}
    kernels = np.concatenate([np.concatenate(made.kernels), _code_bits(made, npu)], axis=1)
    out["kernels"] = pack_rows(npu.memory("kernels").width, kernels)
    out["results"] = pack_fields(npu.memory("results"), _columns(made.results))
    if made.chunks:
        out["chunks"] = pack_fields(npu.memory("chunks"), {"words_minus_1": np.array(made.chunks) - 1})
    if made.scales:
        columns = {name: np.concatenate([part[name] for part in made.scales]) for name in made.scales[0]}
        out["scales"] = pack_fields(npu.memory("scales"), bounded_shifts(columns, npu.acc_bits))
        if npu.pool:
            out["reciprocals"] = pack_fields(npu.memory("reciprocals"), {"reciprocal": reciprocals()})
        return out
    if len(made.binariser):
        width = npu.binariser_bits + 1
        out["binariser"] = pack_rows(npu.memory("binariser").width, two_complement(made.binariser, width))
    limits, thresholds = np.concatenate(made.thresholds), npu.memory("thresholds")
    bits = (limits[..., None] >> np.arange(npu.acc_bits)) & 1
    out["thresholds"] = pack_rows(thresholds.width, bits.reshape(len(limits), thresholds.width))
    return out


def _waiting(memory: Memory) -> Words:
    """A row of memory ``inputs`` or ``layers``: a layer of one word without a table."""
    ones = {"words": 1, "hold_tuples": 1, "hold_words": 1, "direct": 1}
    return pack_fields(memory, {f.name: np.array([ones.get(f.name, 0)]) for f in memory.fields})


def _table_rows(tables: Tables, npu: Npu, prefix: str) -> dict[str, Words]:
    """Rows of the memories of one sequencer, whose names begin with ``prefix``; none if it has no layer."""
    if not tables.layers:
        return {}
    capacity = npu.tuple_words if tables.kernel else npu.pool_words
    columns: dict[str, Mapping[str, Array]] = {
        "inputs": _columns(tables.inputs),
        "layers": _modular(_columns(tables.layers), npu.memory(prefix + "layers")),
        "flags": dict(zip(FLAGS if tables.kernel else FLAGS[:-1], _joined(tables.flags, len(FLAGS)).T)),
        "olds": {"word": _joined(tables.olds) % capacity},
    }
    if tables.kernel:
        columns["jumps"] = {"row": _joined(tables.jumps)}
    return {prefix + name: pack_fields(npu.memory(prefix + name), part) for name, part in columns.items()}


def _modular(columns: dict[str, Array], memory: Memory) -> dict[str, Array]:
    """Columns that are added to addresses, in the width that these have."""
    return {name: c % (1 << memory.field(name).width) if name in MODULAR else c for name, c in columns.items()}


def _columns(rows: Sequence[Mapping[str, int]]) -> dict[str, Array]:
    """Rows by field -> a column for each field."""
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _joined(parts: Sequence[Array], width: int = 0) -> Array:
    """All layers' rows after one another, also where there are none."""
    return np.concatenate([np.zeros((0, width) if width else 0, np.int64), *parts])


def _code_bits(made: NpuPlan, npu: Npu) -> Array:
    """(kernel rows, code bits): 1 bit with plane groups; shift, then sign, without; none where no shift is possible or
    all that comes is an integer input.

    On top 1 in layers that accumulate by OR, where the NPU can do both. ValueError where a layer needs a code that the
    rows have no bit for.
    """
    codes = np.concatenate(made.codes)[:, None]
    parts = [codes]
    if npu.planes and not npu.code_bits:
        for p, layer in zip(made.passes, made.codes):
            if not layer.all():
                raise ValueError(f"{p.name}: an NPU with planes and no inlet but host must read integers, got bits")
        parts = []
    elif not npu.planes:
        shift_bits = npu.shift_bits
        shift = np.where(codes < 0, -1 - codes, codes)
        parts = [(shift >> k) & 1 for k in range(shift_bits)] + [(codes < 0).astype(np.int64)] * (shift_bits > 0)
    if npu.accumulate == "both":
        parts.append(np.repeat(made.any_match, [len(layer) for layer in made.codes])[:, None])
    return np.concatenate([codes[:, :0], *parts], axis=1)


def _result_index(made: Plan, npu: NpuPlan, stream_bits: int) -> tuple[int, Ints]:
    """(32-bit words a frame, (outputs, levels) place of each output value's word or bits), as Program wants them."""
    final, order = made.lowered.passes[-1], made.schedule.output_order
    lanes = final.out_channels * final.levels
    output, levels = made.output, final.levels
    if npu.scales and not final.raw:
        levels = npu.folding.feature_bits
        lanes, output = lanes * levels, lane_bits(output, levels)
    window = np.arange(len(order))[:, None, None]
    tuples = np.where(output == UNUSED, UNUSED, output + window * lanes)  # (windows, words, width)
    if final.raw:
        stream = tuples.ravel()  # a 32-bit word each
        words = len(stream) + -len(stream) % (stream_bits // 32)
    else:
        stream = to_stream(tuples.reshape(-1, tuples.shape[2]), stream_bits).ravel()
        words = len(stream) // 32
    place = np.empty(len(order) * lanes, np.int64)
    place[stream[stream != UNUSED]] = np.flatnonzero(stream != UNUSED)
    out = np.empty((len(order), lanes), np.int64)
    out[order] = place.reshape(len(order), lanes)  # row-major
    return words, out.reshape(-1, levels)

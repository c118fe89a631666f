"""Compiler: a model becomes the stream program of one piece of hardware (spec B1 to B8, B17).

    model --plan--> Plan --this, with the manifest--> rows of the memories, LOAD packets, Program

The hardware is known by its manifest alone, and numpy is all that is needed, so that a board can compile too: any
network whose lowered layers fit the memories runs on the same bitstream.
"""

import numpy as np

from bitloom.golden.file import model_digest
from bitloom.golden.host.host import Host
from bitloom.golden.network import Model
from bitloom.hls_gen.design.gearbox import gear
from bitloom.hls_gen.design.headers import Words
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.packets import load_packet, weights_packet
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.design.rows import pack_fields
from bitloom.hls_gen.design.window_former import former_row

from .choices import CompileChoices
from .host_tail import split
from .integer_rows import lane_bits
from .layout import UNUSED, Ints, to_stream
from .memory_rows import columns, memory_rows
from .npu_plan import NpuPlan
from .plan import Plan, plan
from .shortages import check_capacities
from .weight_streams import WeightOrder, weight_order


def compile_model(
    model: Model,
    manifest: Manifest,
    choices: CompileChoices | None = None,
    *,
    chunk: int | None = None,
    host: Host | None = None,
) -> Program:
    """Compile a network for the design of a manifest.

    Parameters
    ----------
    model
        The network with its arrays.
    manifest
        Of the design that the program will run on.
    choices, chunk
        As ``bitloom.hls_gen.compiler.plan.plan`` has them.
    host
        What the host does around an imported network, which the program keeps.

    Returns
    -------
    Program
        What the driver sends, and how it reads the results.

    Raises
    ------
    ValueError
        The network doesn't fit the design, or the NPUs of a ring would wait for each other for ever. One line: what is
        needed, and what there is.
    """
    network, (device, tail), count = model.network, split(model), len(manifest.npus)
    made = plan(device, manifest.npus, choices, chunk=chunk)
    frame = to_stream(made.input_words, manifest.stream_bits)  # UNUSED == ZERO: constant 0
    check_capacities(made, manifest)
    order = weight_order(made, manifest.design) if manifest.npus[0].stream_weights else None
    parameters, before, after = _packets(made, manifest, order, len(frame))
    final = made.npus[made.mapping[-1]]
    result_words, index = _result_index(made, final, manifest.stream_bits)
    return Program(
        name=network.name,
        design_digest=manifest.digest,
        model_digest=model_digest(model),
        input=network.input,
        output_shape=device.network.output.shape,
        output_kind="raw" if final.layers[-1].raw else "signed" if final.folding.engine == "integer" else "bits",
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
        host=host,
        tail=tail,
    )


def _beats(made: Plan, n: int) -> int:
    """Beats a frame of NPU ``n``."""
    return sum(planned.beats for planned in made.on(n))


def _kernels_at(made: Plan, n: int, manifest: Manifest, order: WeightOrder | None) -> list[dict[str, int]]:
    """Where the kernels of each layer of NPU ``n`` lie, and whether they come down the stream, by field of memory
    ``layers``."""
    npu = manifest.npus[n]
    rows = made.npus[n].conv.layers
    if order is not None:
        placement = order.placements[n]
        return [
            {"kernel_base": placement.base[i], "kernel_stream": int(i in placement.streamed)} for i in range(len(rows))
        ]
    first = npu.first_kernel_row if npu.one_memory else 0
    return [{"kernel_base": row["kernel_base"] + first} for row in rows]


def _packets(made: Plan, manifest: Manifest, order: WeightOrder | None, frame_beats: int) -> tuple[Words, ...]:
    """LOAD packets of all NPUs, and the WEIGHTS packets that go before each frame and after it."""
    loads = list[Words]()
    weights = dict[int, Words]()
    streamed = [packet.layer for packet in order.packets] if order else []
    for n, npu in enumerate(made.npus):
        rows = memory_rows(npu, manifest.npus[n], _kernels_at(made, n, manifest, order))
        rows["network"] = _network_row(made, n, manifest, order, frame_beats)  # the last one: frames may enter now
        for name, part in rows.items():
            if name != "kernels" or order is None or not order.placements[n].streamed:
                if len(part):
                    first = manifest.npus[n].first_kernel_row if name == "kernels" else 0
                    loads.append(load_packet(manifest, n, name, first, part))
                continue
            placement = order.placements[n]
            ends = np.cumsum([len(k) for k in npu.kernels])
            layers = [i for i, m in enumerate(made.mapping) if m == n]
            for i, own, base in zip(layers, np.split(part, ends[:-1]), placement.base):
                if i in streamed:
                    place = streamed.index(i)
                    weights[i] = weights_packet(manifest, place, base, own, order.packets[place].ahead, n)
                else:
                    loads.append(load_packet(manifest, n, name, base, own))
    none = np.zeros(0, np.uint32)
    before = order.before if order else 0
    parts = [streamed[:before], streamed[before:]]
    return np.concatenate(loads), *(np.concatenate([none, *(weights[i] for i in part)]) for part in parts)


def _network_row(made: Plan, n: int, manifest: Manifest, order: WeightOrder | None, frame_beats: int) -> Words:
    """The one row of memory ``network`` of NPU ``n``."""
    npu = made.npus[n]
    frame_words = len(made.input_words)
    row = {"last_layer": max(len(npu.results) - 1, 0)}
    if npu.folding.pool:
        row["last_pool_layer"] = max(len(npu.pool.layers) - 1, 0)
    if n == 0:
        together = gear(manifest.npus[0].host_word_bits, manifest.stream_bits).together
        row |= {"frame_words": frame_words, "frame_beats": frame_beats, "frame_tail": (frame_words - 1) % together}
    if manifest.npus[n].former_column:
        off = {name: 0 for name, _ in former_row(manifest.npus[n])}
        row |= made.formed.row(manifest.npus[n]) if made.formed and n == 0 else off
    if len(npu.binariser):
        row["binariser_last"] = len(npu.binariser) - 1
    if "ring" in npu.folding.inlets:
        row["last_chunk"] = max(len(npu.chunks) - 1, 0)
    if order is not None and n == 0:
        row["streamed_layers"] = len(order.packets)
    return pack_fields(manifest.memory(n, "network"), columns([row]))


def _result_index(made: Plan, npu: NpuPlan, stream_bits: int) -> tuple[int, Ints]:
    """32-bit words of a frame's result, and ``Program.result_index``: where each output value's word or bits are."""
    final = made.lowered.layers[-1]
    order = made.schedule.output_order
    lanes = final.out_channels * final.levels
    output = made.output
    levels = final.levels
    if npu.folding.engine == "integer" and not final.raw:
        levels = npu.folding.feature_bits
        lanes = lanes * levels
        output = lane_bits(output, levels)
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

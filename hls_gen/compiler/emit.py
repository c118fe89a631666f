"""Compiler: a model becomes the program of one piece of hardware (spec B1 to B8, B17).

    model --plan--> Plan --this, with the manifest--> rows of the memories, LOAD packets, Program

The hardware is known by its manifest alone, and numpy is all that is needed, so that a board can compile too: any
network whose lowered layers fit the memories runs on the same bitstream.
"""

from collections.abc import Sequence

import numpy as np

from bitloom.golden.file import model_digest
from bitloom.golden.host.host import Host
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.rows.layer_rows import LayerRows, row
from bitloom.hls_gen.compiler.rows.loader import network_row
from bitloom.hls_gen.compiler.rows.memories import kernels_in_turn, memory_words, rows_of
from bitloom.hls_gen.design.compiled_network import CompiledNetwork, Turn
from bitloom.hls_gen.design.frame_layout import RESULT_KINDS, ResultMap
from bitloom.hls_gen.design.gearbox import geared
from bitloom.hls_gen.design.headers import Words
from bitloom.hls_gen.design.lanes import UNUSED
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import load_packet, weights_packet
from bitloom.hls_gen.design.partitioned_program import PartitionedProgram
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.design.rows import pack_fields

from .choices import CompileChoices
from .host_tail import split
from .lowering import Lowered
from .partitions import partitions
from .plan import Plan, plan
from .planned_layer import PlannedLayer
from .shortages import check_capacities
from .streamed_weights import Placement
from .weight_order import WeightOrder, weight_order


def compile_model(
    model: Model,
    manifest: Manifest,
    choices: CompileChoices | None = None,
    *,
    host: Host | None = None,
    lowered: Lowered | None = None,
) -> Program:
    """Compile a network for the design of a manifest.

    Parameters
    ----------
    model
        The network with its arrays.
    manifest
        Of the design that the program will run on.
    choices
        As ``bitloom.hls_gen.compiler.plan.plan`` has them.
    host
        The host's part of an imported network, which the program keeps.
    lowered
        The network as sizing lowered it for this design (`bitloom.hls_gen.compiler.sizing.SizedDesign`); None: it is
        lowered here.

    Returns
    -------
    Program
        Packets that the driver sends, and facts by which it reads the results.

    Raises
    ------
    ValueError
        The network doesn't fit the design, or the NPUs of a ring would wait for each other for ever. One line: what is
        needed, and what there is.
    """
    return compile_plan(model, plan(model, manifest.npus, choices, lowered), manifest, host=host)


def compile_plan(model: Model, network_plan: Plan, manifest: Manifest, *, host: Host | None = None) -> Program:
    """Compile a network that is planned for the NPUs of a manifest, but for what the host computes of it; parameters
    and errors are those of `compile_model`."""
    network = model.network
    _, tail = split(model)
    frame = network_plan.frame.frame_layout
    beats = geared(frame.words, frame.word_bits, manifest.stream_bits)
    check_capacities(network_plan, manifest)
    order = weight_order(network_plan, manifest.design)
    parameters, before, after = _packets(network_plan, manifest, order, beats)
    return Program(
        name=network.name,
        design_digest=manifest.digest,
        model_digest=model_digest(model),
        input=network.input,
        output_shape=network_plan.lowered.model.network.output.shape,
        output_kind=network_plan.outputs[0].layer.result_kind,
        classes=network.classes,
        output_maps=len(network.outputs),
        ideal_cycles=max(_beats(network_plan, n) for n in range(len(manifest.npus))),
        layers=tuple(network_plan.ideal),
        mapping=tuple(network_plan.mapping),
        parameters=parameters,
        weights=np.concatenate([before, after]),
        weights_before=len(before),
        stream_bits=manifest.stream_bits,
        frame=frame,
        results=_results(network_plan, manifest.stream_bits),
        host=host,
        tail=tail,
    )


def compile_network(
    model: Model,
    manifest: Manifest,
    choices: CompileChoices | None = None,
    *,
    host: Host | None = None,
    lowered: Sequence[Lowered] = (),
) -> CompiledNetwork[Program]:
    """Compile a network for the design of a manifest, in the partitions that the choices name.

    Parameters and errors are those of `compile_model` and `bitloom.hls_gen.compiler.partitions.partitions`; of
    ``lowered`` there is one for each program, or none.
    """
    choices = choices or CompileChoices()
    of_partition = choices.of_partition
    program_models = partitions(model, choices.partitions, manifest.npus)
    each: Sequence[Lowered | None] = lowered or [None] * len(program_models)
    if len(program_models) == 1:
        return compile_model(model, manifest, of_partition, host=host, lowered=each[0])
    turns = (
        Turn(compile_model(program.model, manifest, of_partition, lowered=given), program.reads, program.gives)
        for program, given in zip(program_models, each, strict=True)
    )
    return PartitionedProgram(
        name=model.network.name,
        model_digest=model_digest(model),
        programs_in_turn=tuple(turns),
        classes=model.network.classes,
        host=host,
    )


def _beats(plan: Plan, n: int) -> int:
    """Beats a frame of NPU ``n``."""
    return sum(planned.beats for planned in plan.on(n))


def _kernels_at(rows: Sequence[LayerRows], npu: Npu, placement: Placement | None) -> list[dict[str, int]]:
    """Where the kernels of each layer of an NPU lie, and whether they come down the stream, by field of memory
    ``layers``."""
    if placement is None:
        return kernels_in_turn(rows, npu.first_kernel_row)
    return [{"kernel_base": placement.base[i], "kernel_stream": int(i in placement.streamed)} for i in range(len(rows))]


def _packets(plan: Plan, manifest: Manifest, order: WeightOrder | None, frame_beats: int) -> tuple[Words, ...]:
    """LOAD packets of all NPUs, and the WEIGHTS packets that go before each frame and after it."""
    loads = list[Words]()
    weights = dict[int, Words]()
    for n, npu in enumerate(manifest.npus):
        rows = [rows_of(planned) for planned in plan.on(n)]
        placement = order.placements[n] if order else None
        limits = plan.frame.limits if n == 0 else plan.frame.limits[:0]
        words = memory_words(rows, npu, _kernels_at(rows, npu, placement), limits)
        fields = network_row(plan, n, rows, manifest.stream_bits, frame_beats)
        if order is not None and n == 0:
            fields["streamed_layers"] = len(order.packets)
        words["network"] = pack_fields(manifest.memory(n, "network"), row(fields))  # the last one: frames may enter now
        for name, part in words.items():
            if name == "kernels" and order is not None and order.placements[n].streamed:
                kernels = np.split(part, np.cumsum([layer.count("kernels") for layer in rows])[:-1])
                staying, streamed = _kernel_packets(plan, manifest, order, n, kernels)
                loads += staying
                weights |= streamed
            elif len(part):
                loads.append(load_packet(manifest, n, name, npu.first_kernel_row if name == "kernels" else 0, part))
    none = np.zeros(0, np.uint32)
    layers = [packet.layer for packet in order.packets] if order else []
    before = order.before if order else 0
    parts = [layers[:before], layers[before:]]
    return np.concatenate(loads), *(np.concatenate([none, *(weights[i] for i in part)]) for part in parts)


def _kernel_packets(
    plan: Plan, manifest: Manifest, order: WeightOrder, n: int, kernels: Sequence[Words]
) -> tuple[list[Words], dict[int, Words]]:
    """LOAD packets of the kernels of NPU ``n`` that stay, and WEIGHTS packets of those that come down the stream, by
    number of their layer. ``kernels`` are those of each layer of the NPU."""
    loads = list[Words]()
    weights = dict[int, Words]()
    places = {packet.layer: place for place, packet in enumerate(order.packets)}
    layers = [i for i, m in enumerate(plan.mapping) if m == n]
    for i, part, base in zip(layers, kernels, order.placements[n].base):
        if i in places:
            weights[i] = weights_packet(manifest, places[i], base, part, order.packets[places[i]].ahead, n)
        else:
            loads.append(load_packet(manifest, n, "kernels", base, part))
    return loads, weights


def _results(plan: Plan, stream_bits: int) -> tuple[ResultMap, ...]:
    """Where the values of each map that leaves are, in the order of the network's outputs.

    Maps leave one after another, as their layers are computed, each from a new stream word on.
    """
    first = 0
    maps = dict[str, ResultMap]()
    leaving = [planned for planned in plan.layers if planned in plan.outputs]
    for planned in leaving:
        result = _result_map(planned, first)
        maps[planned.layer.name] = result
        first = result.end(stream_bits)
    return tuple(maps[planned.layer.name] for planned in plan.outputs)


def _result_map(planned: PlannedLayer, first: int) -> ResultMap:
    """Where the values of a layer's map are, which begins with 32-bit word ``first``."""
    layer = planned.layer
    output = planned.output
    kind = RESULT_KINDS[layer.result_kind]
    lane = output.ravel()
    places = np.empty(layer.out_channels * layer.levels, np.int32)
    places[lane[lane != UNUSED]] = np.flatnonzero(lane != UNUSED)
    words, lanes = (output.size, 1) if kind.alone else output.shape
    return ResultMap(
        first=first,
        positions=planned.positions,
        words=words,
        lanes=lanes,
        lane_bits=kind.lane_bits or planned.npu.array.feature_bits,
        places=places.reshape(-1, layer.levels),
    )

"""The lowered layers of a network as the search sees them, each for the engine that it shall be computed by."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.golden.layers.add import Pairwise
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.limits import WIDTH
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.engine_rules import BINARY_ENGINE, Engine
from bitloom.hls_gen.compiler.formed_taps import formable_taps
from bitloom.hls_gen.compiler.lines import form_array_lines, form_pool_lines
from bitloom.hls_gen.compiler.lowered_layers import LoweredLayer
from bitloom.hls_gen.compiler.lowering import Lowered, lower_alone, lowered_for, pool_name
from bitloom.hls_gen.compiler.plan import Plan, plan_lowered
from bitloom.hls_gen.compiler.workloads import CutTarget, engines_of, segmented
from bitloom.hls_gen.design.copy_names import is_copy
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.split_window import SplitWindow
from bitloom.hls_gen.design.topology import pipeline
from bitloom.hls_gen.design.widths import FEATURE_BITS, PLANES, WEIGHT_BITS, bits_for

from .engines import Engines
from .layer_demand import FormedPool, LayerDemand
from .searched import LINE_TAPS, pool_units

FORMED_LANES = 256
"""Channels of the words for which a window former is tried, at most: narrower ones have more words of a window."""


def engine_choices(model: Model) -> list[Engines]:
    """For each layer the engine that it is for; further choices are worth a try, too, where a layer may have another,
    or where depthwise convolutions may do without pool units with weights.

    A network of both kinds has NPUs of both. The first layer of a binary network whose input are integers may have an
    integer NPU, which needs no bit planes.

    """
    chosen = tuple(engines_of(model.network))
    count = len(chosen)
    if "integer" not in chosen:
        binary = ("binary",) * count
        # integers, which NPUs don't exchange
        added = any(isinstance(layer, Pairwise) for layer in model.network.layers)
        integers = model.network.input.encoding.kind != "bipolar" and not added
        mixed = [("integer", *binary[1:])] if integers and count > 1 else []
        return [Engines(names) for names in (binary, *mixed)]
    # what one engine can compute alone, it does; features between engines are bits
    return [*_fused(model, chosen), *(Engines(names) for names in dict.fromkeys([("integer",) * count, chosen]))]


def _fused(model: Model, chosen: Sequence[str]) -> list[Engines]:
    """The engines of the layers that are left where pool units compute depthwise convolutions; none where all are."""
    binarised = isinstance(model.network.next_layer(INPUT), Threshold)
    every, left = (
        segmented(model, CutTarget(binariser_bits=int(binarised), depthwise=depthwise)).names
        for depthwise in (False, True)
    )
    engines = dict(zip(every, chosen))
    names = dict.fromkeys([("integer",) * len(left), tuple(engines[name] for name in left)])
    return [Engines(engines_left, depthwise=True) for engines_left in names] if len(left) < len(every) else []


def layers(
    model: Model,
    map_order: str = "pull",
    engines: Engines | None = None,
    *,
    npus: Sequence[Npu] = (),
    mapping: Sequence[int] = (),
) -> list[LayerDemand]:
    """The lowered layers of a network, in the order in which they are computed.

    Parameters
    ----------
    model
        The network.
    map_order
        "pull" or "raster".
    engines
        The engine of each layer; by default the first ones of ``engine_choices`` that can compute the network.
    npus, mapping
        How NPUs of the integer engine are connected, and which of them computes each layer, where maps are copied
        between them; copies are among the layers then. By default there is one NPU of each engine.

    Raises
    ------
    ValueError
        If these engines can't compute the network; by default, if no engines can.
    """
    engines = engines or possible_engines(model)[0]
    kinds = list(dict.fromkeys(engines.names))
    words = word_channels(model)
    widths = _feature_bits(model, engines)
    bits = {"feature_bits": max(widths), "depthwise": engines.depthwise}
    npus = npus or [_connected(any_npu(engine, words), n, len(kinds)) for n, engine in enumerate(kinds)]
    npus = [npu.changed(**bits) if npu.engine == "integer" else npu for npu in npus]
    mapping = mapping or tuple(kinds.index(engine) for engine in engines.names)
    choices = CompileChoices(map_order=map_order, mapping=mapping)
    lowered = lowered_for(model, npus, choices)
    # a search has layers for each topology, and asks for the shape of their weights alone
    lowered = replace(lowered, layers=tuple(map(_weightless, lowered.layers)))
    demands = _demands(plan_lowered(lowered, npus, choices))
    other_widths = iter(widths)
    demands = [
        replace(layer, feature_bits=max(widths) if is_copy(layer.name) else next(other_widths)) for layer in demands
    ]
    demands = _with_lines(demands, lowered, npus, map_order)
    alone = _each_alone(demands, bits)
    return [_with_window_former(demands, n, alone, map_order) for n in range(len(demands))]


def _with_lines(
    demands: Sequence[LayerDemand], lowered: Lowered, npus: Sequence[Npu], map_order: str
) -> list[LayerDemand]:
    """The layers with what they are where lines of their kernels, and of their pools, are formed. So many lanes have
    room for all channels: then the lines of each layer that can be formed are."""
    lanes = LINE_TAPS * max(layer.channels for layer in demands)
    taking = [npu.unchecked(kfp=lanes, line_taps=LINE_TAPS) for npu in npus]
    behind, of_arrays = form_array_lines(lowered, taking, map_order)
    arrays = behind.schedule(map_order).by_stage
    pools = _formed_pools(lowered, npus, map_order)
    layers = list[LayerDemand]()
    for demand, layer in zip(demands, behind.layers, strict=True):
        demand = replace(demand, formed_pools=pools[layer.name])
        if layer.name in of_arrays:
            lines = of_arrays[layer.name]
            conv = arrays[layer.name]
            formed = replace(demand, network=behind, lowered=_weightless(layer), conv=conv, lines=lines)
            demand = replace(demand, with_lines=formed)
        layers.append(demand)
    return layers


def _formed_pools(lowered: Lowered, npus: Sequence[Npu], map_order: str) -> dict[str, dict[SplitWindow, FormedPool]]:
    """The pools behind line formers, as those pool units want them that are tried, by the name of the layer."""
    formed: dict[str, dict[SplitWindow, FormedPool]] = {layer.name: {} for layer in lowered.layers}
    for values in pool_units():
        behind, of_pools = form_pool_lines(lowered, [npu.unchecked(**values) for npu in npus], map_order)
        tables = behind.schedule(map_order).by_stage
        for layer in behind.layers:
            if layer.split_pool:
                formed[layer.name][layer.split_pool] = FormedPool(tables[pool_name(layer)], of_pools[layer.name])
    return formed


def _weightless(layer: LoweredLayer) -> LoweredLayer:
    """The lowered layer with weights of 0 that take no memory."""
    weight = np.broadcast_to(np.zeros((), layer.weight.dtype), layer.weight.shape)
    beside = {"magnitude": None} if layer.binary else {}
    return replace(layer, arithmetic=replace(layer.arithmetic, weight=weight, **beside))


def _each_alone(demands: Sequence[LayerDemand], bits: Mapping[str, Any]) -> tuple[Npu, ...]:
    """A pipeline of NPUs, one for each layer; ``bits`` are widths of integer NPUs."""
    kinds = [(layer.engine, layer.word_channels) for layer in demands]
    npus = {(engine, words): any_npu(engine, words) for engine, words in dict.fromkeys(kinds)}
    npus = {kind: npu.changed(**bits) if npu.engine == "integer" else npu for kind, npu in npus.items()}
    return pipeline([npus[kind] for kind in kinds])


def _with_window_former(
    demands: Sequence[LayerDemand], number: int, alone: Sequence[Npu], map_order: str
) -> LayerDemand:
    """A layer with what it is behind the window former of its NPU, in a pipeline, if that makes the layer faster:
    another layer than the first one has one on an NPU of its own. ``alone`` are the NPUs of the pipeline."""
    demand = demands[number]
    bits_alone = demand.engine == "binary" and demand.reads is None and not demand.planes
    if demand.places == 1 or demand.word_channels or bits_alone or demand.reads not in (None, number - 1):
        return demand
    npus = list(alone)
    npus[number] = _with_former(npus[number], demand.planes, demand.places * demand.channels)
    formed = _formed_taps(demand, npus, map_order)
    with_former = formed and replace(demand, with_former=formed)
    return with_former if with_former and with_former.gains_by_former(npus[number]) else demand


def _with_former(npu: Npu, planes: int, channels: int) -> Npu:
    """An NPU with a window former, in front of words for windows of so many channels."""
    side = {"planes": max(2, planes), "shift_bits": 0} if planes else {}
    lanes = min(min(FORMED_LANES, channels) * (side.get("planes", 0) + 1), WIDTH.value)
    return npu.changed(kfp=lanes, window_former=True, **side)


def _formed_taps(demand: LayerDemand, npus: Sequence[Npu], map_order: str) -> LayerDemand | None:
    """A layer as it is behind the window former of its NPU, where each layer has an NPU of its own; None where it can't
    be."""
    on_own = replace(demand.network, mapping=tuple(range(len(npus))))
    behind, formed = formable_taps(on_own, npus, map_order)
    if demand.name not in formed:
        return None
    tables = behind.schedule(map_order).by_stage
    layer = next(layer for layer in behind.layers if layer.name == demand.name)
    conv = tables[layer.name]
    pool = tables.get(pool_name(layer))
    windows = formed[demand.name]
    return replace(demand, network=behind, lowered=layer, conv=conv, pool=pool, formed=windows)


def _demands(plan: Plan) -> list[LayerDemand]:
    """The layers of a plan, without the widths of their features."""
    number = {p.name: i for i, p in enumerate(plan.lowered.layers)}
    tables = {table.stage.name: table for table in plan.schedule.tables}
    return [
        LayerDemand(plan.lowered, p, tables[p.name], tables.get(pool_name(p)), **_ways(p, plan, number))
        for p in plan.lowered.layers
    ]


def _ways(p: LoweredLayer, plan: Plan, number: dict[str, int]) -> dict[str, Any]:
    """Whose maps a layer reads and adds, and who takes its own, by attribute of `LayerDemand`."""
    way = plan.ways[p.name]
    taker = way.skip_reader or way.adder
    sides = [plan.lowered.layers[number[name]] for name in (p.reads, p.joins)] if p.joins else []
    return {
        "reads": None if p.reads == INPUT else number[p.reads],
        "reader": None if way.target == "skip" or way.reader is None else number[way.reader],
        "taker": number[taker] if taker else None,
        "adds": number[p.adds] if p.adds else None,
        "joined_channels": tuple(side.out_channels for side in sides),
    }


def possible_engines(model: Model) -> list[Engines]:
    """Those of ``engine_choices`` that can compute the network, at least one.

    Raises
    ------
    ValueError
        If there are none: what stands in the way of the last one, of which each layer has the engine that it is for.
    """
    possible = list[Engines]()
    reason = ValueError()
    for engines in engine_choices(model):
        try:
            widths = dict.fromkeys(range(len(engines.names)), FEATURE_BITS)
            lower_alone(model, CutTarget(depthwise=engines.depthwise), engines=_with_widths(engines, widths))
        except ValueError as error:
            reason = error
        else:
            possible.append(engines)
    if not possible:
        raise reason
    return possible


def engines_in_common(models: Sequence[Model]) -> list[list[Engines]]:
    """For networks that have an NPU in common: choices, each of the engines of every network's layers.

    Raises
    ------
    ValueError
        If no engine computes all layers of all networks.
    """
    each = [possible_engines(model) for model in models]
    in_common = list[list[Engines]]()
    for depthwise in (True, False) if any(engines.depthwise for of_model in each for engines in of_model) else (False,):
        for name in ("binary", "integer"):
            chosen = [_choice_with(of_model, name, depthwise) for of_model in each]
            if all(chosen):
                in_common.append([engines for engines in chosen if engines])
    if not in_common:
        told = ", ".join(
            f"{model.network.name}: {'/'.join(sorted(set(of_model[0].names)))}" for model, of_model in zip(models, each)
        )
        raise ValueError(f"explore: several networks need one engine that computes all their layers, got {told}")
    return in_common


def _choice_with(choices: Sequence[Engines], name: str, depthwise: bool) -> Engines | None:
    """Of a network's choices that in which all layers have that engine, None where there is none; without depthwise
    convolutions all are the same with pool units with weights and without."""
    fitting = [engines for engines in choices if set(engines.names) == {name}]
    fits = next((engines for engines in fitting if engines.depthwise == depthwise), None)
    return fits or (replace(fitting[0], depthwise=name == "integer") if fitting and depthwise else None)


def word_channels(model: Model) -> int:
    """Channels of the words that layers of a network OR, 0 where none does; ValueError where they differ."""
    channels = {layer.word_channels for layer in model.network.layers if isinstance(layer, Weighted)} - {0}
    if len(channels) > 1:
        sizes = ", ".join(map(str, sorted(channels)))
        raise ValueError(f"{model.network.name}: word_channels must be the same in all layers to explore, got {sizes}")
    return max(channels, default=0)


def any_npu(engine: str, words: int = 0) -> Npu:
    """An NPU that computes whatever its engine can, with words of so many channels."""
    if engine == "integer":
        npu = Npu.of(engine="integer", feature_bits=2, weight_bits=WEIGHT_BITS, acc_bits=32, shift_bits=0)
    else:
        npu = Npu.of(accumulate="both", acc_bits=32, shift_bits=bits_for(PLANES - 1))
    if words:
        npu = npu.changed(pfp=words, **({"kfp": words, "word_lanes": words} if engine == "binary" else {}))
    return npu


def _connected(npu: Npu, n: int, count: int) -> Npu:
    """The NPU as number ``n`` of ``count`` that lead to each other, to themselves and to the host."""
    between = ("ring",) * (count > 1)
    inlets = (*("host",) * (n == 0), *between, "loop")
    apart = {"shift_bits": 0} if n else {}  # no bit planes come from another NPU
    return npu.changed(inlets=inlets, outlets=(*between, "loop", "host"), **apart)


def _with_widths(engines: Engines, widths: dict[int, int]) -> list[Engine]:
    """The engines, with features as wide as ``widths`` says by layer."""
    return [
        Engine("integer", widths[i], WEIGHT_BITS) if name == "integer" else BINARY_ENGINE
        for i, name in enumerate(engines.names)
    ]


def _feature_bits(model: Model, engines: Engines) -> list[int]:
    """Width of each layer's features: 1 on the binary engine; on the integer one what all maps need between which no
    layer of the binary one lies. ValueError if no engine can compute a layer where it stands."""
    names = engines.names
    segmented_model = segmented(model, CutTarget(depthwise=engines.depthwise))
    widths = {i: FEATURE_BITS if engine == "integer" else 1 for i, engine in enumerate(names)}
    for first, engine in enumerate(names):
        if engine == "binary" or (first and names[first - 1] == "integer"):
            continue
        last = next((i for i in range(first, len(names)) if names[i] == "binary"), len(names))
        for bits in range(2, FEATURE_BITS):
            tried = {**widths, **dict.fromkeys(range(first, last), bits)}
            try:
                segmented_model.cut(_with_widths(engines, tried))
            except ValueError:
                continue
            widths = tried
            break
    return [widths[i] for i in range(len(names))]

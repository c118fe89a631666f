"""Mapping: which NPU of a chain or ring computes which layer (spec B16, D2, D9), and with it on which engine.

layers 0 1 2 3 4 --chain of 3, by work--> NPU 0 | 1 1 | 2 2        --ring of 2--> NPU 0 1 0 1 0
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf

from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import Pool
from bitloom.golden.limits import FRAME_BITS, TAPS
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.design.copy_names import is_copy
from bitloom.hls_gen.design.limits import check_parallel
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.reducer import SerialPopcount
from bitloom.hls_gen.design.topology import cascade

from .choices import CompileChoices
from .copies import with_copies
from .engine_rules import Engine
from .layer_cycles import workload_cycles
from .store_copies import with_store_copies
from .ways import MapWay, outlet_between, ways
from .workloads import CutModel, CutTarget, SegmentedModel, Workloads, segmented


def check_network(network: Network) -> None:
    """Refuse a network whose maps are too large, before anything is made of it.

    Orders and tables are made tap by tap: about 200 bytes and 20 us a tap in map order pull, where there are tables.

    Raises
    ------
    ValueError
        More than ``FRAME_BITS`` bits in an image, or a layer with more than ``TAPS`` taps in all its windows.
    """
    FRAME_BITS.check(f"{network.name}: input", network.input.size * network.input.encoding.bits)
    for layer in network.layers:
        if isinstance(layer, (Weighted, Pool)):
            source = network.sources(layer)[0]
            window = layer.window(source) if isinstance(layer, Weighted) else layer.window
            TAPS.check(f"{network.name}: {layer.name}", network.maps[layer.name].positions * window.taps)


@dataclass(frozen=True, eq=False)
class Placed:
    """A network's workloads on NPUs."""

    cut_model: CutModel
    """The network in workloads."""
    workloads: Workloads
    """Those of ``cut_model``, with copies of maps where NPUs need them (hls_gen/compiler/copies.py), each behind those
    that it reads and adds."""
    mapping: Sequence[int]
    """NPU of each of them."""
    ways: Mapping[str, MapWay]
    """How each map gets to who needs it, by the name of the workload that makes it."""


def placed(model: Model, npus: Sequence[Npu], choices: CompileChoices | None = None) -> Placed:
    """Cut a network in workloads, each for the NPU that computes it, and find the ways of its maps.

    Parameters
    ----------
    model
        The network with its arrays.
    npus
        Foldings of the NPUs, in their order.
    choices
        How the network is compiled; by default as ``CompileChoices()``. The mapping names the NPU of each weighted
        layer in the order in which they are computed (hls_gen/compiler/segments.py), but not of depthwise convolutions
        that are fused with the layer before (hls_gen/compiler/depthwise.py). Where there is none, it is that of
        `assign`, each layer on the engine that it is for (`engine_rules.default_engine`) if the NPUs' engines differ.

    Raises
    ------
    ValueError
        A layer finds no way to its NPU, or the NPU can't compute it; or bitloom.golden.limits don't allow it; or
        shortcuts can't be last on these NPUs.
    """
    check_network(model.network)
    check_parallel(model.network.name, npus)
    choices = choices or CompileChoices()
    target = target_of(npus, choices)
    try:
        return _placed(segmented(model, target), npus, choices.mapping)
    except ValueError as why:
        if choices.shortcuts == "first":
            raise
        try:
            _placed(segmented(model, replace(target, shortcuts="first")), npus, choices.mapping)
        except ValueError:
            raise why from None
        rule = "shortcuts must be first on these NPUs"
        raise ValueError(f"{model.network.name}: {rule}, got {choices.shortcuts}: {why}") from None


def _placed(segmented_model: SegmentedModel, npus: Sequence[Npu], mapping: Sequence[int] | None) -> Placed:
    """The workloads of a network on the NPUs of ``mapping``, or on those that ``assign`` chooses."""
    if mapping is None:
        return _assigned(segmented_model, npus)
    check_mapping(npus, segmented_model.names, mapping, is_chain=_is_chain(segmented_model))
    cut_model = segmented_model.cut([_engine([npus[n]]) for n in mapping])
    _check_shifts(cut_model, npus[0])
    return _routed(cut_model, mapping, npus)


def target_of(npus: Sequence[Npu], choices: CompileChoices) -> CutTarget:
    """The target for which any network is cut, on these NPUs and by these choices.

    Depthwise convolutions are fused with the layer before if all NPUs of the integer engine have pool units with
    weights. The input is sent several times to one integer NPU without a window former alone.
    """
    first = npus[0]
    integer = [npu for npu in npus if npu.engine == "integer"]
    repeatable = len(npus) == len(integer) == 1 and first.former is None
    return CutTarget(
        planes=first.array.planes or None,
        binariser_bits=first.ports.binariser.bits if first.ports.binariser else 0,
        lanes=first.array.plane_lanes,
        depthwise=bool(integer) and all(npu.depthwise for npu in integer),
        copy_depthwise=choices.copy_depthwise,
        repeat_input=choices.repeat_input and repeatable,
        shortcuts=choices.shortcuts,
    )


def _assigned(segmented_model: SegmentedModel, npus: Sequence[Npu]) -> Placed:
    """The workloads on the NPUs that ``assign`` chooses."""
    names = segmented_model.names
    kinds = [npus[0].engine] * len(names)
    if any(npu.engine != kinds[0] for npu in npus):
        kinds[1:] = segmented_model.engines[1:]
    widest = {kind: _engine([npu for npu in npus if npu.engine == kind]) for kind in set(kinds)}
    engines = [widest[kind] for kind in kinds]
    cut_model = segmented_model.cut(engines)
    _check_shifts(cut_model, npus[0])
    begin = None if _is_chain(segmented_model) or len(npus) == 1 else _beginnings(cut_model, npus)
    cycles = [[workload_cycles(workload, npu) for npu in npus] for workload in cut_model.workloads]
    mapping = assign(npus, names, cycles, begin)
    for name, kind, n in zip(names, kinds, mapping):
        if kind != npus[n].engine:
            raise ValueError(f"{name}: engine of its NPU must be {kind}, got {npus[n].engine} in NPU {n}")
    narrowest = [_engine([npus[n]]) for n in mapping]
    cut_model = cut_model if narrowest == engines else segmented_model.cut(narrowest)
    return _routed(cut_model, mapping, npus)


def _routed(cut_model: CutModel, mapping: Sequence[int], npus: Sequence[Npu]) -> Placed:
    """The workloads with copies, and the NPU of each: in the one of two orders of these in which all maps find a way,
    or which takes fewer cycles. ValueError if there is none."""
    candidates: list[tuple[float, Placed]] = []
    refused: list[ValueError] = []
    for early in (False, True):
        try:
            copied, on = with_copies(cut_model.workloads, mapping, npus, early=early)
            placed_model = _in_order(cut_model, copied, on, npus)
        except ValueError as e:
            refused.append(e)
        else:
            candidates.append((_copying(placed_model, npus), placed_model))
    if not candidates:
        raise refused[0]
    return min(candidates, key=lambda entry: entry[0])[1]


def _in_order(cut_model: CutModel, workloads: Workloads, mapping: list[int], npus: Sequence[Npu]) -> Placed:
    """The workloads, with copies on the NPUs whose stores need them to hand maps on in order. ValueError if no copies
    help; it says why maps find no way without copies."""
    try:
        return Placed(cut_model, workloads, mapping, ways(cut_model.network, npus, workloads, mapping))
    except ValueError as without:
        try:
            workloads, mapping = with_store_copies(workloads, mapping, npus)
            return Placed(cut_model, workloads, mapping, ways(cut_model.network, npus, workloads, mapping))
        except ValueError:
            raise without from None


def _copying(placed_model: Placed, npus: Sequence[Npu]) -> float:
    """Cycles of all copies."""
    return sum(
        workload_cycles(workload, npus[n])
        for workload, n in zip(placed_model.workloads, placed_model.mapping)
        if is_copy(workload.name)
    )


def _engine(npus: Sequence[Npu]) -> Engine:
    """The engine of NPUs that differ in width at most, as wide as the widest."""
    feature_bits = max(npu.array.feature_bits for npu in npus)
    weight_bits = max(npu.array.weight_bits for npu in npus)
    return Engine(npus[0].engine, feature_bits, weight_bits)


def _check_shifts(cut_model: CutModel, npu: Npu) -> None:
    """Raise ValueError if NPU 0 can't weigh the input's bit planes, or has fewer shifts than planes that follow one
    another."""
    planes = cut_model.workloads[0].planes
    reducer = npu.array.reducer
    if planes <= 1:
        return
    if not isinstance(reducer, SerialPopcount):
        raise ValueError(
            f"{cut_model.network}: an input of {planes} bit planes needs an NPU that accumulates popcount or both, "
            f"with collect = 0, got {npu.value('accumulate')} and {npu.value('collect')}"
        )
    if not reducer.planes and planes > 1 << reducer.shift_bits:
        raise ValueError(
            f"{cut_model.network}: an input of {planes} bit planes needs shifts up to {planes - 1}, the NPU has "
            f"shift_bits = {reducer.shift_bits}"
        )


def _beginnings(cut_model: CutModel, npus: Sequence[Npu]) -> list[list[float]]:
    """(workloads, NPUs): cycles of the copies that an NPU makes if its run begins with a workload; infinite where maps
    would find no way then."""
    workloads = cut_model.workloads
    cycles = [[0.0] * len(npus) for _ in workloads]
    if "ring" in npus[0].ports.inlets or not any("loop" in npu.ports.outlets for npu in npus):
        return cycles  # there is nothing to choose
    for start in range(1, len(workloads)):
        for n in range(1, len(npus)):
            pair = cascade(npus[n - 1 : n + 1])
            split = [0] * start + [1] * (len(workloads) - start)
            try:
                cycles[start][n] = _copying(_routed(cut_model, split, pair), pair)
            except ValueError:
                cycles[start][n] = inf
    return cycles


def check_mapping(npus: Sequence[Npu], names: Sequence[str], mapping: Sequence[int], *, is_chain: bool) -> None:
    """Check that layers are given to NPUs that can compute them and hand on what they make.

    Parameters
    ----------
    npus
        Foldings of the NPUs, in their order.
    names
        Names of the weighted layers.
    mapping
        NPU of each of them.
    is_chain
        Whether each layer reads the map of the one before, and no other map is needed: then that must have its way.

    Raises
    ------
    ValueError
        A layer's NPU can't compute it, or can't hand its map on. One line: layer, rule and value.
    """
    if len(mapping) != len(names) or not all(0 <= n < len(npus) for n in mapping):
        raise ValueError(
            f"mapping: an NPU 0..{len(npus) - 1} must be given for each of {len(names)} layers, got {mapping}"
        )
    if mapping[0] != 0:
        raise ValueError(f"{names[0]}: the first layer must be computed by NPU 0, got NPU {mapping[0]}")
    for i in range(len(names) - 1 if is_chain else 0):
        outlet_between(npus, names[i], mapping[i], mapping[i + 1])
    if "host" not in npus[mapping[-1]].ports.outlets:
        raise ValueError(f"{names[-1]}: the last layer needs an NPU with outlet host, got NPU {mapping[-1]}")


def _is_chain(segmented_model: SegmentedModel) -> bool:
    """Whether each segment reads the map of the one before, and no other map is needed."""
    return all(b.reads == a.name and b.joins is b.adds is None for a, b in pairwise(segmented_model.segments))


def assign(
    npus: Sequence[Npu],
    names: Sequence[str],
    cycles: Sequence[Sequence[float]],
    beginnings: Sequence[Sequence[float]] | None = None,
) -> list[int]:
    """Choose an NPU for every layer.

    In a ring layer i goes to NPU i mod N; one that the next NPU's engine can't compute stays on the NPU of the layer
    before, if that has a loop. In a chain each NPU takes a run of layers, an NPU without loop one at most,
    so that the busiest has as little to do as can be; of equals, a mapping whose NPUs wait least for their neighbours;
    of these, one with the fewest NPUs.

    Parameters
    ----------
    npus
        Foldings of the NPUs, in their order.
    names
        Names of the weighted layers.
    cycles
        (layers, NPUs): cycles of each layer on each NPU; infinite where the NPU has another engine.
    beginnings
        (layers, NPUs): cycles that an NPU of a chain takes besides if its run begins with a layer; infinite where it
        can't. None: there are no such cycles, and each layer reads the map of the one before.

    Returns
    -------
    list of int
        NPU of each layer.

    Raises
    ------
    ValueError
        There is no such mapping.
    """
    count = len(npus)
    if count > 1 and "ring" in npus[0].ports.inlets:
        mapping = _turns(npus, cycles)
    else:
        mapping = _runs(npus, names, cycles, beginnings or [[0.0] * count] * len(names))
    check_mapping(npus, names, mapping, is_chain=beginnings is None)
    return mapping


def _turns(npus: Sequence[Npu], cycles: Sequence[Sequence[float]]) -> list[int]:
    """NPU after NPU of a ring."""
    mapping = [0]
    for row in cycles[1:]:
        here = mapping[-1]
        after = (mapping[-1] + 1) % len(npus)
        stays = row[after] == inf and row[here] < inf and "loop" in npus[here].ports.outlets
        mapping.append(here if stays else after)
    return mapping


def _runs(
    npus: Sequence[Npu], names: Sequence[str], cycles: Sequence[Sequence[float]], begin: Sequence[Sequence[float]]
) -> list[int]:
    """The best runs: best[i] = (cycles of the busiest NPU so far, the same with its waits, mapping of layers
    0..i - 1), NPU after NPU."""
    best: dict[int, tuple[float, float, list[int]]] = {0: (0, 0, [])}
    final: tuple[float, float, list[int]] | None = None
    for n, npu in enumerate(npus):
        following: dict[int, tuple[float, float, list[int]]] = {}
        for start, (busiest, waiting, mapping) in best.items():
            last = len(names) if "loop" in npu.ports.outlets else min(start + 1, len(names))
            for end in range(start + 1, last + 1):
                work = begin[start][n] + sum(row[n] for row in cycles[start:end])
                if work == inf:
                    break
                waits = _waits(cycles, n, start, end)
                candidate = max(busiest, work), max(waiting, work + waits), mapping + [n] * (end - start)
                if end < len(names):
                    following[end] = min(following.get(end, candidate), candidate)
                elif npu.ports.sends_results:
                    final = candidate if final is None or candidate[:2] < final[:2] else final
        best = following
    if final is None:
        raise ValueError(
            f"{names[-1]}: a chain of {len(npus)} NPUs must have room for all {len(names)} layers, each NPU for "
            "those of its engine, without loop for one, and end at one with outlet host"
        )
    return final[2]


def _waits(cycles: Sequence[Sequence[float]], n: int, start: int, end: int) -> float:
    """Cycles of a frame in which NPU ``n`` waits for its neighbours, if it computes the layers from ``start`` to in
    front of ``end``. Between NPUs there is little room: so an NPU of several layers computes the first one only as fast
    as the NPU before computes the layer in front, and the last one only as fast as the NPU after computes the next."""
    if end - start == 1:
        return 0
    waits = 0.0
    if start:
        waits += max(0, cycles[start - 1][n - 1] - cycles[start][n])
    if end < len(cycles) and n + 1 < len(cycles[end]):
        waits += max(0, cycles[end][n + 1] - cycles[end - 1][n])
    return waits

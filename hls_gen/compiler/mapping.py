"""Mapping: which NPU of a chain or ring computes which layer (spec B16, D2, D9), and with it on which engine.

layers 0 1 2 3 4 --chain of 3, by work--> NPU 0 | 1 1 | 2 2        --ring of 2--> NPU 0 1 0 1 0
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import inf

from bitloom.golden.graph import INPUT
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model
from bitloom.hls_gen.design.copies import is_copy
from bitloom.hls_gen.design.folding import Folding
from bitloom.hls_gen.design.topology import cascade
from bitloom.hls_gen.design.work import check_parallel

from .copies import Layers, with_copies
from .depthwise import joined
from .host_tail import split
from .layer_cycles import cycles_on, layer_cycles
from .lowering import Engine, Lowered, engines_of, lower
from .outlet_ways import way
from .parts import Part, parts
from .placing import placed
from .store_copies import with_store_copies
from .ways import ways
from .work import check_network


def mapped(
    model: Model, npus: Sequence[Folding], mapping: Sequence[int] | None = None
) -> tuple[Lowered, Sequence[int]]:
    """Lower a network, each layer for the NPU that computes it.

    Parameters
    ----------
    model
        The network with its arrays.
    npus
        Foldings of the NPUs, in their order.
    mapping
        NPU of each weighted layer in the order in which they are computed (hls_gen/compiler/parts.py), but not of
        depthwise convolutions that join the layer before (hls_gen/compiler/depthwise.py); by default that of
        ``assign``, each layer on the engine that it is for (``engines_of``) where the NPUs' engines differ.

    Returns
    -------
    tuple of Lowered and sequence of int
        The lowered layers, with copies of maps where NPUs need them (hls_gen/compiler/copies.py), and the NPU of each.

    Raises
    ------
    ValueError
        A layer finds no way to its NPU, or the NPU can't compute it; or bitloom.golden.limits don't allow it.
    """
    check_network(model.network)
    check_parallel(model.network.name, npus)
    given, model = model, placed(split(model)[0])
    entry = model.network.next_layer(INPUT)
    cut = parts(model.network, entry if isinstance(entry, Threshold) else None)
    wanted = [npus[0].engine] * len(cut)
    if any(npu.engine != wanted[0] for npu in npus):
        wanted[1:] = engines_of(model.network)[1:]
    engine_of = dict(zip((part.name for part in cut), wanted))
    if takes_depthwise(npus):
        cut = joined(cut, model)
    names = [part.name for part in cut]
    plain = _is_chain(cut)
    if mapping is not None:
        check(npus, names, mapping, plain)
        lowered = _lowered(given, [_engine([npus[n]], npus) for n in mapping], npus[0])
        return _with_copies(lowered, mapping, npus)
    wanted = [engine_of[name] for name in names]
    engines = [_engine([npu for npu in npus if npu.engine == name], npus) for name in wanted]
    lowered = _lowered(given, engines, npus[0])
    begin = None if plain or len(npus) == 1 else _beginnings(model.network.name, lowered.layers, npus)
    cycles = list(zip(*(layer_cycles(lowered, npu) for npu in npus)))
    mapping = assign(npus, names, cycles, begin)
    for name, engine, n in zip(names, wanted, mapping):
        if engine != npus[n].engine:
            raise ValueError(f"{name}: engine of its NPU must be {engine}, got {npus[n].engine} in NPU {n}")
    own = [_engine([npus[n]], npus) for n in mapping]
    return _with_copies(lowered if own == engines else _lowered(given, own, npus[0]), mapping, npus)


def _with_copies(lowered: Lowered, mapping: Sequence[int], npus: Sequence[Folding]) -> tuple[Lowered, Sequence[int]]:
    """The lowered layers with copies of maps, and the NPU of each."""
    layers, on = _routed(lowered.model.network.name, lowered.layers, mapping, npus)
    return (replace(lowered, layers=tuple(layers)), on) if len(on) > len(mapping) else (lowered, mapping)


def _routed(
    network: str, layers: Layers, mapping: Sequence[int], npus: Sequence[Folding]
) -> tuple[Layers, list[int]]:
    """The layers with copies, and the NPU of each: in the one of two orders of these in which all maps find a way, or
    which takes fewer cycles. ValueError if there is none."""
    found: list[tuple[float, Layers, list[int]]] = []
    refused: list[ValueError] = []
    for early in (False, True):
        try:
            made, on = with_copies(layers, mapping, npus, early=early)
            made, on = _in_order(network, made, on, npus)
        except ValueError as e:
            refused.append(e)
        else:
            found.append((_copying(made, on, npus), made, on))
    if not found:
        raise refused[0]
    _, made, on = min(found, key=lambda one: one[0])
    return made, on


def _in_order(
    network: str, layers: Layers, mapping: list[int], npus: Sequence[Folding]
) -> tuple[Layers, list[int]]:
    """The layers, with copies on the NPUs whose stores need them to hand maps on in order. ValueError if no copies
    help: why layers find no way without."""
    try:
        ways(network, npus, layers, mapping)
    except ValueError as without:
        try:
            layers, mapping = with_store_copies(layers, mapping, npus)
            ways(network, npus, layers, mapping)
        except ValueError:
            raise without from None
    return layers, mapping


def _copying(layers: Layers, mapping: Sequence[int], npus: Sequence[Folding]) -> float:
    """Cycles of all copies."""
    return sum(cycles_on(p, npus[n]) for p, n in zip(layers, mapping) if is_copy(p.name))


def takes_depthwise(npus: Sequence[Folding]) -> bool:
    """Whether depthwise convolutions join the layer before: all NPUs of the integer engine must be able to."""
    integer = [npu for npu in npus if npu.engine == "integer"]
    return bool(integer) and all(npu.depthwise for npu in integer)


def _engine(own: Sequence[Folding], npus: Sequence[Folding]) -> Engine:
    """The engine of some of the NPUs, which differ in width at most, as wide as the widest."""
    feature_bits, weight_bits = max(npu.feature_bits for npu in own), max(npu.weight_bits for npu in own)
    return Engine(own[0].engine, feature_bits, weight_bits, takes_depthwise(npus))


def _lowered(model: Model, engines: Sequence[Engine], npu: Folding) -> Lowered:
    """Lower a network for these engines; ``npu`` is NPU 0, which reads the input."""
    lowered = lower(model, npu.planes or None, npu.binariser_bits, npu.plane_lanes, engines=engines)
    if not npu.planes and lowered.input_bits > 1 << npu.shift_bits:
        raise ValueError(
            f"{model.network.name}: an input of {lowered.input_bits} bit planes needs shifts up to "
            f"{lowered.input_bits - 1}, the NPU has shift_bits = {npu.shift_bits}"
        )
    return lowered


def _beginnings(network: str, layers: Layers, npus: Sequence[Folding]) -> list[list[float]]:
    """(layers, NPUs): cycles of the copies that an NPU makes if its run begins with a layer; infinite where maps would
    find no way then."""
    found = [[0.0] * len(npus) for _ in layers]
    if "ring" in npus[0].inlets or not any("loop" in npu.outlets for npu in npus):
        return found  # there is nothing to choose
    for start in range(1, len(layers)):
        for n in range(1, len(npus)):
            pair, split = cascade(npus[n - 1 : n + 1]), [0] * start + [1] * (len(layers) - start)
            try:
                found[start][n] = _copying(*_routed(network, layers, split, pair), pair)
            except ValueError:
                found[start][n] = inf
    return found


def check(npus: Sequence[Folding], names: Sequence[str], mapping: Sequence[int], plain: bool = True) -> None:
    """Check that layers are given to NPUs that can compute them and hand on what they make.

    Parameters
    ----------
    npus
        Foldings of the NPUs, in their order.
    names
        Names of the weighted layers.
    mapping
        NPU of each of them.
    plain
        Whether each layer reads the map of the one before, and no other map is needed: then that must have its way.

    Raises
    ------
    ValueError
        They aren't. One line: layer, rule and value.
    """
    if len(mapping) != len(names) or not all(0 <= n < len(npus) for n in mapping):
        raise ValueError(
            f"mapping: an NPU 0..{len(npus) - 1} must be given for each of {len(names)} layers, got {mapping}"
        )
    if mapping[0] != 0:
        raise ValueError(f"{names[0]}: the first layer must be computed by NPU 0, got NPU {mapping[0]}")
    for i in range(len(names) - 1 if plain else 0):
        way(npus, names[i], mapping[i], mapping[i + 1])
    if "host" not in npus[mapping[-1]].outlets:
        raise ValueError(f"{names[-1]}: the last layer needs an NPU with outlet host, got NPU {mapping[-1]}")


def _is_chain(cut: Sequence[Part]) -> bool:
    """Whether each part reads the map of the one before, and no other map is needed."""
    return all(b.reads == a.name and b.joins is b.adds is None for a, b in pairwise(cut))


def assign(
    npus: Sequence[Folding],
    names: Sequence[str],
    cycles: Sequence[Sequence[float]],
    beginnings: Sequence[Sequence[float]] | None = None,
) -> list[int]:
    """Choose an NPU for every layer.

    In a ring layer i goes to NPU i mod N; one that the next NPU's engine can't compute stays on the NPU of the layer
    before, if that has a loop. In a chain each NPU takes a run of layers, an NPU without loop one at most,
    so that the busiest has as little to do as can be; of equals, a mapping with the fewest NPUs.

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
    if count > 1 and "ring" in npus[0].inlets:
        found = _turns(npus, cycles)
    else:
        found = _runs(npus, names, cycles, beginnings or [[0.0] * count] * len(names))
    check(npus, names, found, beginnings is None)
    return found


def _turns(npus: Sequence[Folding], cycles: Sequence[Sequence[float]]) -> list[int]:
    """NPU after NPU of a ring."""
    found = [0]
    for row in cycles[1:]:
        here, after = found[-1], (found[-1] + 1) % len(npus)
        stays = row[after] == inf and row[here] < inf and "loop" in npus[here].outlets
        found.append(here if stays else after)
    return found


def _runs(
    npus: Sequence[Folding], names: Sequence[str], cycles: Sequence[Sequence[float]], begin: Sequence[Sequence[float]]
) -> list[int]:
    """The best runs: best[i] = (cycles of the busiest NPU so far, mapping of layers 0..i - 1), NPU after NPU."""
    best: dict[int, tuple[float, list[int]]] = {0: (0, [])}
    final: tuple[float, list[int]] | None = None
    for n, npu in enumerate(npus):
        following: dict[int, tuple[float, list[int]]] = {}
        for start, (busiest, mapping) in best.items():
            last = len(names) if "loop" in npu.outlets else min(start + 1, len(names))
            for end in range(start + 1, last + 1):
                work = max(busiest, begin[start][n] + sum(row[n] for row in cycles[start:end]))
                if work == inf:
                    break
                candidate = (work, mapping + [n] * (end - start))
                if end < len(names):
                    following[end] = min(following.get(end, candidate), candidate)
                elif "host" in npu.outlets:
                    final = candidate if final is None or work < final[0] else final
        best = following
    if final is None:
        raise ValueError(
            f"{names[-1]}: a chain of {len(npus)} NPUs must have room for all {len(names)} layers, each NPU for "
            "those of its engine, without loop for one, and end at one with outlet host"
        )
    return final[1]

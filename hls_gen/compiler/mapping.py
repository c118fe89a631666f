"""Mapping: which NPU of a chain or ring computes which layer (spec B16, D2, D9), and with it on which engine.

layers 0 1 2 3 4 --chain of 3, by work--> NPU 0 | 1 1 | 2 2        --ring of 2--> NPU 0 1 0 1 0
"""

from collections.abc import Collection, Sequence
from math import inf

import numpy as np

from bitloom.golden.graph import INPUT
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model
from bitloom.hls_gen.design.folding import Folding
from bitloom.hls_gen.design.work import check_parallel

from .concatenations import placed
from .depthwise import joined
from .lowered_layers import BinaryLayer
from .lowering import Engine, Lowered, engines_of, lower
from .parts import Part, parts
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
        The lowered layers, and the NPU of each.

    Raises
    ------
    ValueError
        A layer finds no way to its NPU, or the NPU can't compute it; or bitloom.golden.limits don't allow it.
    """
    check_network(model.network)
    check_parallel(model.network.name, npus)
    given, model = model, placed(model)
    entry = model.network.next_layer(INPUT)
    cut = parts(model.network, entry if isinstance(entry, Threshold) else None)
    wanted = [npus[0].engine] * len(cut)
    if any(npu.engine != wanted[0] for npu in npus):
        wanted[1:] = engines_of(model.network)[1:]
    engine_of = dict(zip((part.name for part in cut), wanted))
    if takes_depthwise(npus):
        cut = joined(cut, model)
    names = [part.name for part in cut]
    if mapping is not None:
        check(npus, names, mapping)
        return _lowered(given, [_engine([npus[n]], npus) for n in mapping], npus[0]), mapping
    wanted = [engine_of[name] for name in names]
    engines = [_engine([npu for npu in npus if npu.engine == name], npus) for name in wanted]
    lowered = _lowered(given, engines, npus[0])
    mapping = assign(npus, names, _beats(lowered, npus), _inside(cut))
    for name, engine, n in zip(names, wanted, mapping):
        if engine != npus[n].engine:
            raise ValueError(f"{name}: engine of its NPU must be {engine}, got {npus[n].engine} in NPU {n}")
    own = [_engine([npus[n]], npus) for n in mapping]
    return lowered if own == engines else _lowered(given, own, npus[0]), mapping


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


def _beats(lowered: Lowered, npus: Sequence[Folding]) -> list[list[float]]:
    """(layers, NPUs): beats of each layer on each NPU, of an integer input about; infinite on another engine."""
    out: list[list[float]] = []
    for p in lowered.layers:
        taps = int((p.window.positions(p.height, p.width) >= 0).sum()) * p.visits
        lanes, engine = int(np.prod(p.weight.shape[2:])), "binary" if isinstance(p, BinaryLayer) else "integer"
        beats = [taps * -(-lanes // npu.kfp) * -(-p.out_channels // npu.kgp) for npu in npus]
        out.append([count if npu.engine == engine else inf for count, npu in zip(beats, npus)])
    return out


def way(npus: Sequence[Folding], name: str, here: int, there: int) -> str:
    """Find the outlet by which a map gets from an NPU to its reader.

    Parameters
    ----------
    npus
        Foldings of the NPUs, in their order.
    name
        The layer that makes the map, for messages.
    here, there
        Numbers of the NPU that makes the map and of the one that reads it.

    Returns
    -------
    str
        "loop" or "ring".

    Raises
    ------
    ValueError
        No outlet leads there.
    """
    outlets = npus[here].outlets
    if here == there and "loop" in outlets:
        return "loop"
    if len(npus) > 1 and there == (here + 1) % len(npus) and "ring" in outlets:
        return "ring"
    raise ValueError(f"{name}: NPU {here} must have an outlet to NPU {there}, got {', '.join(outlets)}")


def check(npus: Sequence[Folding], names: Sequence[str], mapping: Sequence[int]) -> None:
    """Check that every map finds its way.

    Parameters
    ----------
    npus
        Foldings of the NPUs, in their order.
    names
        Names of the weighted layers.
    mapping
        NPU of each of them.

    Raises
    ------
    ValueError
        A map doesn't. One line: layer, rule and value.
    """
    if len(mapping) != len(names) or not all(0 <= n < len(npus) for n in mapping):
        raise ValueError(
            f"mapping: an NPU 0..{len(npus) - 1} must be given for each of {len(names)} layers, got {mapping}"
        )
    if mapping[0] != 0:
        raise ValueError(f"{names[0]}: the first layer must be computed by NPU 0, got NPU {mapping[0]}")
    for i in range(len(names) - 1):
        way(npus, names[i], mapping[i], mapping[i + 1])
    if "host" not in npus[mapping[-1]].outlets:
        raise ValueError(f"{names[-1]}: the last layer needs an NPU with outlet host, got NPU {mapping[-1]}")


def _inside(cut: Sequence[Part]) -> set[int]:
    """Where a run of layers must not end, for another NPU couldn't go on: the layer behind an end must need the map of
    the one before it, alone, and no other map."""
    needs = [{part.reads, part.joins, part.adds} - {None} for part in cut]
    return {
        end
        for end in range(1, len(cut))
        if {name for later in needs[end:] for name in later if name in {one.name for one in cut[:end]}}
        != {cut[end - 1].name}
        or cut[end - 1].readers != (cut[end].name,)
        or cut[end].adds == cut[end - 1].name
    }


def assign(
    npus: Sequence[Folding], names: Sequence[str], beats: Sequence[Sequence[float]], inside: Collection[int] = ()
) -> list[int]:
    """Choose an NPU for every layer.

    In a ring layer i goes to NPU i mod N. In a chain each NPU takes a run of layers, an NPU without loop one at most,
    so that the busiest has as little to do as can be; of equals, a mapping with the fewest NPUs.

    Parameters
    ----------
    npus
        Foldings of the NPUs, in their order.
    names
        Names of the weighted layers.
    beats
        (layers, NPUs): cycles of each layer on each NPU; infinite where the NPU has another engine.
    inside
        Numbers of layers that must be on the NPU of the layer before, in a chain.

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
        found = [i % count for i in range(len(names))]
    else:
        found = _runs(npus, names, beats, inside)
    check(npus, names, found)
    return found


def _runs(
    npus: Sequence[Folding], names: Sequence[str], beats: Sequence[Sequence[float]], inside: Collection[int]
) -> list[int]:
    """The best runs: best[i] = (cycles of the busiest NPU so far, mapping of layers 0..i - 1), NPU after NPU."""
    best: dict[int, tuple[float, list[int]]] = {0: (0, [])}
    final: tuple[float, list[int]] | None = None
    for n, npu in enumerate(npus):
        following: dict[int, tuple[float, list[int]]] = {}
        for start, (busiest, mapping) in best.items():
            last = len(names) if "loop" in npu.outlets else min(start + 1, len(names))
            for end in range(start + 1, last + 1):
                work = max(busiest, sum(row[n] for row in beats[start:end]))
                if work == inf:
                    break
                if end in inside:
                    continue
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

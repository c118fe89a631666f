"""Graphs on several NPUs whose maps are copied between them (docs/decisions/0024): which chains are worth a try, and
which layers a mapping comes to.
"""

from collections.abc import Sequence

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.mapping import placed
from bitloom.hls_gen.design.copy_names import copied, is_copy
from bitloom.hls_gen.design.design import MOST_NPUS
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, looped, ring

from .demands import any_npu, layers, word_channels
from .engines import Engines
from .layer_demand import LayerDemand
from .one_npu import whole_words
from .task import Connection

MOST_CUT = 4
"""NPUs of the longest chain with copies that is tried."""
SIZES = ((4, 4), (16, 16))
"""KFP and KGP of the equal NPUs by whose beats chains are cut."""
PFP = 64
"""Of these NPUs; with as many results a cycle as kernels it lets arrays be the slowest part."""


def cut_chains(models: Sequence[Model], engines: Sequence[Engines], feature_bits: int) -> list[tuple[int, ...]]:
    """Mappings of chains as the compiler cuts networks for 2 to MOST_CUT equal NPUs: of one network those in which maps
    are copied, or kept on the NPU after, and, if it is one of bits, also a layer each; of several networks all.

    Parameters
    ----------
    models
        Networks of one engine.
    engines
        Of each network that engine, and whether depthwise convolutions are layers of their own.
    feature_bits
        Width of the NPUs' features.

    Returns
    -------
    list of tuple of int
        NPU of each of the networks' own layers, network after network.
    """
    name = engines[0].names[0]
    several = len(models) > 1
    integer = name == "integer"
    words = max(map(word_channels, models))
    bits = {"feature_bits": feature_bits, "depthwise": engines[0].depthwise} if integer else {}
    mappings = list[tuple[int, ...]]()
    for count in range(2, MOST_CUT + 1):
        for kfp, kgp in SIZES:
            (lanes,) = whole_words([kfp], words)
            npu = any_npu(name, words).changed(kfp=lanes, kgp=kgp, ol=kgp, pfp=PFP, **bits)
            try:
                cuts = [_cut(model, cascade([npu] * count)) for model in models]
            except ValueError:  # maps find no way
                continue
            if (several or cuts[0][1]) and all(max(mapping) == count - 1 for mapping, _ in cuts):
                mappings.append(sum((mapping for mapping, _ in cuts), ()))
    each = tuple(range(len(engines[0].names)))
    return list(dict.fromkeys(mappings if several or integer or len(each) > MOST_NPUS else [*mappings, each]))


def _cut(model: Model, npus: Sequence[Npu]) -> tuple[tuple[int, ...], bool]:
    """NPU of each of the network's own layers, and whether maps are copied, or kept on the NPU after."""
    placing = placed(model, npus)
    copies = [is_copy(workload.name) for workload in placing.workloads]
    on = {workload.name: n for workload, n in zip(placing.workloads, placing.mapping)}
    kept = any(each.adds and on[each.adds] != on[each.name] for each in placing.workloads)
    return tuple(n for n, copy in zip(placing.mapping, copies) if not copy), any(copies) or kept


def copying_layers(model: Model, connection: Connection, map_order: str) -> tuple[list[LayerDemand], tuple[int, ...]]:
    """The layers of a mapping with their copies, and the NPU of each.

    Parameters
    ----------
    model
        The network.
    connection
        How NPUs of one engine are connected, and the mapping.
    map_order
        "pull" or "raster".

    Raises
    ------
    ValueError
        If maps don't find their ways.
    """
    assert connection.mapping is not None
    reason = ValueError()
    for npus in _connected(connection, word_channels(model)):
        try:
            demands = layers(model, map_order, connection.engines, npus=npus, mapping=connection.mapping)
        except ValueError as error:
            reason = error
        else:
            return demands, _npu_of_each(demands, connection.mapping)
    raise reason


def _connected(connection: Connection, words: int) -> list[tuple[Npu, ...]]:
    """NPUs with words of so many channels that are connected so, those of a ring first without map stores."""
    assert connection.mapping is not None
    count = max(connection.mapping) + 1
    npu = any_npu(connection.engines.names[0], words)
    if not connection.closed:
        return [cascade([npu] * count)]
    plain = ring([npu] * count)
    return [plain, looped(plain)]


def _npu_of_each(demands: Sequence[LayerDemand], mapping: Sequence[int]) -> tuple[int, ...]:
    """The NPU of each layer, copies among them; ``mapping`` has that of the others."""
    npus = iter(mapping)
    count = max(mapping) + 1
    return tuple(
        next(n for n in range(count) if copied(layer.name, n) != layer.name) if is_copy(layer.name) else next(npus)
        for layer in demands
    )

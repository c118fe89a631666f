"""Random networks with a layer for each of several engines in turn."""

from collections.abc import Sequence

from bitloom.golden.encoding import BIPOLAR, TERNARY, bipolar, signed
from bitloom.golden.layer import Layer
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool, SumPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.design.design import Design
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_networks import (
    MAX_MACS,
    IntegerChoices,
    activation,
    adding_up,
    encodings,
    map_behind,
    maps,
    pools,
    weighted,
)


def mixed_network(pick: Pick, kinds: Sequence[str], poolable: Sequence[bool] | None = None) -> Network:
    """A weighted layer for the engine of each of ``kinds``; the last may be raw.

    Parameters
    ----------
    pick
        Makes the choices.
    kinds
        Of each layer, "binary" or "integer" of 8 bits.
    poolable
        Which of the layers may have a pool behind them; by default all.
    """
    binary = kinds[0] == "binary"
    source = maps(pick, pick.of([BIPOLAR, bipolar(2), signed(8)]) if binary else encodings(pick, 8))
    at = source
    macs = 0
    layers: list[Layer] = []
    for i, kind in enumerate(kinds):
        is_last = i == len(kinds) - 1
        raw = is_last and pick.flip()
        if kind == "integer":
            weight = encodings(pick, 8) if pick.flip() else BIPOLAR
        else:
            plain = at.encoding.kind == "bipolar" and (at.channels * at.encoding.bits % 2 == 0 or not raw)
            weight = pick.of([BIPOLAR, BIPOLAR, TERNARY]) if plain else BIPOLAR
        layer = weighted(pick, at, f"layer_{i}", weight)
        if macs + layer.output(at).size * layer.fan_in(at) > MAX_MACS and layers:
            layer = Dense(name=f"layer_{i}", out_channels=pick.integer(1, 3), weight=weight)
        out = layer.output(at)
        macs += out.size * layer.fan_in(at)
        layers.append(layer)
        if raw:
            break
        pooled = (poolable is None or poolable[i]) and pick.flip()
        tail = list[Layer]()
        if kind == "integer" and (is_last or kinds[i + 1] == "integer"):
            tail += activation(pick, f"act_{i}", IntegerChoices(feature_bits=8))
            if pooled:
                tail.append(pools(pick, map_behind(tail, out), f"pool_{i}", (MaxPool, AvgPool)))
        else:
            tail.append(Threshold(name=f"act_{i}", levels=pick.of([1, 1, 1, 2, 3])))
            if pooled:
                tail.insert(pick.integer(0, 1), pools(pick, out, f"pool_{i}", (MaxPool,)))
            elif pick.integer(0, 2) == 0:
                tail = [*adding_up(pick, layer, at, f"mean_{i}", (AvgPool, SumPool)), *tail]
        at = map_behind(tail, out)
        layers += tail
    return Network(name="random", input=source, layers=tuple(layers))


def mixed_way(pick: Pick, design: Design) -> list[int]:
    """NPUs of 2 layers to 5, each reached from the one before, the last with outlet host; of a pipeline, all."""
    npus = design.npus
    way = [0]
    most = pick.integer(2, 5)
    while True:
        here = way[-1]
        outlets = npus[here].ports.outlets
        onward = [here] * ("loop" in outlets) + [(here + 1) % len(npus)] * ("ring" in outlets)
        if not onward or (len(way) >= most and "host" in outlets):
            return way
        way.append(pick.of(onward))

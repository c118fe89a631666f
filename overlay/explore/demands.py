"""The weighted layers of a network as the search sees them, each for the engine that it shall be computed by."""

from collections.abc import Sequence
from dataclasses import replace

from bitloom.golden.graph import INPUT
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.lowering import Engine, engines_of, lower
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import FEATURE_BITS, PLANES, WEIGHT_BITS, bits_for
from bitloom.overlay.build.small_npu import needs_integer

from .layer_demand import LayerDemand, layer_demand
from .sharing import value_bits

Engines = tuple[str, ...]
"""The engine of each weighted layer, "binary" or "integer"."""


def engine_choices(model: Model) -> list[Engines]:
    """For each layer the engine that it is for; further choices are worth a try, too, where a layer may have another.

    A network of both kinds has NPUs of both. The first layer of a binary network whose input are integers may have an
    integer NPU, which needs no bit planes.

    Raises
    ------
    ValueError
        If the network is no chain of layers.
    """
    model.network.chain("bitloom explore")
    count = sum(isinstance(layer, Weighted) for layer in model.network.layers)
    if not needs_integer(model):
        binary = ("binary",) * count
        integers = model.network.input.encoding.kind != "bipolar"
        return [binary, ("integer", *binary[1:])] if integers and count > 1 else [binary]
    own = tuple(engines_of(model.network))
    # what one engine can compute alone, it does; features between engines are bits
    return list(dict.fromkeys([("integer",) * count, own]))


def layers(
    model: Model, map_order: str = "pull", engines: Sequence[str] | None = None, *, counters: bool = False
) -> list[LayerDemand]:
    """The weighted layers of a network.

    Parameters
    ----------
    model
        The network.
    map_order
        "pull" or "raster".
    engines
        The engine of each layer; by default the first ones of ``engine_choices`` that can compute the network.
    counters
        Whether NPUs have counters for raster order.

    Raises
    ------
    ValueError
        If these engines can't compute the network; by default, if no engines can.
    """
    if engines is None:
        engines = possible_engines(model)[0]
    kinds = list(dict.fromkeys(engines))
    mapping = tuple(kinds.index(engine) for engine in engines)
    words = _word_channels(model)
    npus = [_any(engine, n, len(kinds), words) for n, engine in enumerate(kinds)]
    made = plan(model, npus, CompileChoices(map_order=map_order, mapping=mapping))
    widths = _feature_bits(model, engines)
    tables, out = iter(made.schedule.tables), list[LayerDemand]()
    bits = value_bits(made.lowered)
    for p, engine, width in zip(made.lowered.layers, engines, widths):
        conv = next(tables)
        pool = next(tables) if p.pool else None
        planes = made.lowered.input_bits if engine == "binary" and p.reads == INPUT else 0
        demand = layer_demand(p, conv, pool, planes=planes, counters=counters)
        out.append(replace(demand, bits=bits[p.reads], feature_bits=width))
    return out


def possible_engines(model: Model) -> list[Engines]:
    """Those of ``engine_choices`` that can compute the network, at least one.

    Raises
    ------
    ValueError
        If there are none: what stands in the way of the last one, of which each layer has the engine that it is for.
    """
    found, reason = list[Engines](), ValueError()
    for engines in engine_choices(model):
        try:
            _lowered(model, engines, dict.fromkeys(range(len(engines)), FEATURE_BITS))
        except ValueError as error:
            reason = error
        else:
            found.append(engines)
    if not found:
        raise reason
    return found


def _word_channels(model: Model) -> int:
    """Channels of the words that layers of a network OR, 0 where none does; ValueError where they differ."""
    found = {layer.word_channels for layer in model.network.layers if isinstance(layer, Weighted)} - {0}
    if len(found) > 1:
        sizes = ", ".join(map(str, sorted(found)))
        raise ValueError(f"{model.network.name}: word_channels must be the same in all layers to explore, got {sizes}")
    return max(found, default=0)


def _any(engine: str, n: int, count: int, words: int) -> Npu:
    """NPU ``n`` of ``count`` of that engine, which computes whatever the engine can, with words of so many channels."""
    joined = ("ring",) * (count > 1)
    made = Npu(accumulate="both", acc_bits=32, shift_bits=0 if n else bits_for(PLANES - 1))
    if engine == "integer":
        made = Npu(engine="integer", feature_bits=FEATURE_BITS, weight_bits=WEIGHT_BITS, acc_bits=32, shift_bits=0)
    if words:
        made = replace(made, pfp=words, **({"kfp": words, "word_lanes": words} if engine == "binary" else {}))
    return replace(made, inlets=(*("host",) * (n == 0), *joined, "loop"), outlets=(*joined, "loop", "host"))


def _lowered(model: Model, engines: Sequence[str], widths: dict[int, int]) -> None:
    """Lower the network for these engines, features as wide as ``widths`` says by layer; ValueError if they can't."""
    integer = {i: Engine("integer", widths[i], WEIGHT_BITS) for i, engine in enumerate(engines) if engine == "integer"}
    lower(model, engines=[integer.get(i, Engine()) for i in range(len(engines))])


def _feature_bits(model: Model, engines: Sequence[str]) -> list[int]:
    """Width of each layer's features: 1 on the binary engine; on the integer one what all maps need between which no
    layer of the binary one lies."""
    widths = {i: FEATURE_BITS if engine == "integer" else 1 for i, engine in enumerate(engines)}
    for first, engine in enumerate(engines):
        if engine == "binary" or (first and engines[first - 1] == "integer"):
            continue
        last = next((i for i in range(first, len(engines)) if engines[i] == "binary"), len(engines))
        for bits in range(2, FEATURE_BITS):
            tried = {**widths, **dict.fromkeys(range(first, last), bits)}
            try:
                _lowered(model, engines, tried)
            except ValueError:
                continue
            widths = tried
            break
    return [widths[i] for i in range(len(engines))]

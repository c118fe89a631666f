"""Seeded random networks of every kind, each on seeded random NPUs: the sized design, the program and the cycles of the
flow model, or the refusal, a line each."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.flow.of_plan import system
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import cascade, looped, ring
from bitloom.overlay.fuzz.designs import chain
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_models import random_model
from bitloom.overlay.fuzz.random_networks import (
    IntegerChoices,
    binary_network,
    deep_network,
    depthwise_network,
    grouped_network,
    integer_network,
)
from tests.npus import integer_npu
from tests.random_networks.blocks import joined_network, residual_network
from tests.random_networks.graphs import graph_network
from tests.random_networks.mixed import mixed_network
from tests.random_networks.sign_blocks import binary_residual_network
from tests.result_index import result_index

SEED = "replay"
EACH = 20
"""Networks of each kind."""
FRAMES = 4
WIDE = IntegerChoices(feature_bits=9, weight_bits=8, roundings=("once", "twice"))
"""Choices of layers of the integer engine."""
BINARY = Npu.of(acc_bits=25, planes=0, shift_bits=3)
ROUNDINGS = {"round_twice": 1, "half_even": 1, "bias_fraction_bits": 6}
INTEGER = integer_npu(9, 8, 32, multiplier_bits=31, **ROUNDINGS)


@dataclass(frozen=True)
class Kind:
    """A kind of random network.

    Attributes
    ----------
    network
        Makes one from a pick.
    npu
        What is the same for all its NPUs.
    topologies
        How NPUs may be connected.
    """

    network: Callable[[Pick], Network]
    npu: Npu
    topologies: tuple[str, ...] = ("one",)


GRAPH = ("one", "one", "cascade", "looped ring")


KINDS = {
    "binary": Kind(binary_network, BINARY),
    "binary deep": Kind(lambda pick: deep_network(pick, "binary", 5), BINARY, ("ring", "cascade", "looped ring")),
    "binary residual": Kind(lambda pick: binary_residual_network(pick, 9, 2), BINARY, GRAPH),
    "integer": Kind(lambda pick: integer_network(pick, replace(WIDE, feature_bits=8, fraction=6)), INTEGER),
    "integer deep": Kind(lambda pick: deep_network(pick, "integer", 5), INTEGER, ("ring", "cascade", "looped ring")),
    "residual": Kind(lambda pick: residual_network(pick, WIDE), INTEGER, GRAPH),
    "concatenated": Kind(lambda pick: joined_network(pick, WIDE), INTEGER, GRAPH),
    "graph": Kind(lambda pick: graph_network(pick, WIDE), INTEGER, GRAPH),
    "grouped": Kind(lambda pick: grouped_network(pick, IntegerChoices()), INTEGER),
    "grouped binary": Kind(grouped_network, BINARY),
    "depthwise": Kind(
        lambda pick: depthwise_network(pick, replace(WIDE, fraction=6)),
        INTEGER.changed(depthwise=True),
        GRAPH,
    ),
    "mixed": Kind(lambda pick: mixed_network(pick, ("integer", "binary", "integer")), BINARY, ("mixed",)),
}


def _npu(pick: Pick, base: Npu) -> Npu:
    """An NPU of random lanes, with random options of its engine."""
    options: dict[str, Any] = {"accumulators": pick.of([1, 1, 16]), "raster": pick.flip()}
    lanes = {
        "kfp": pick.of([2, 4, 8, 20]),
        "kgp": pick.of([2, 4, 6]),
        "pfp": pick.of([2, 4] if base.depthwise else [1, 2, 4]),
    }
    if base.engine == "binary":
        options |= pick.of([{}, {"kernel_binariser": True}])
    else:
        options["kernels_per_multiplier"] = pick.of([1, 2])
    return base.changed(**lanes | options)


def _first(pick: Pick, npu: Npu) -> Npu:
    """The NPU at the host's side, perhaps with a window former, or with bit planes side by side."""
    if npu.engine == "integer":
        return npu.changed(window_former=pick.flip())
    return npu.changed(planes=8, shift_bits=0, kfp=20) if pick.integer(0, 2) == 0 else npu


def _npus(pick: Pick, kind: Kind) -> tuple[Npu, ...]:
    """NPUs, connected in one of the kind's topologies; what all NPUs of a design must have in common is picked once."""
    topology = pick.of(kind.topologies)
    count = pick.integer(2, 3)
    common = {"ol": pick.of([1, 2]), "one_memory": pick.integer(0, 7) == 0}
    if topology == "mixed":
        return cascade([_npu(pick, base.changed(**common)) for base in (INTEGER, kind.npu, INTEGER)])
    base = kind.npu.changed(**common)
    first = _first(pick, _npu(pick, base))
    others = [_npu(pick, base) for _ in range(count - 1)]
    if pick.flip():
        others = [npu.changed(kfp=first.array.kfp, kgp=first.array.kgp) for npu in others]
    connected = {
        "one": lambda npus: npus[:1],
        "cascade": cascade,
        "chain": chain,
        "ring": ring,
        "looped ring": lambda npus: looped(ring(npus)),
    }
    return tuple(connected[topology]([first, *others]))


def _model(network: Network, seed: int, npus: tuple[Npu, ...]) -> Model:
    """With arrays for the engines of the NPUs."""
    return random_model(network, seed, 24 if npus[0].engine == "binary" else 32, 16)


def _digest(data: Any) -> str:
    text = data if isinstance(data, bytes) else json.dumps(data, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def _program_digest(model: Model, design: Design, choices: CompileChoices) -> str:
    program = compile_model(model, Manifest.of(design, "0" * 64), choices)
    arrays = (program.parameters, program.frame_source, result_index(program), program.weights)
    return _digest(b"".join(array.tobytes() for array in arrays) + repr((program.layers, program.mapping)).encode())


def line(name: str, number: int) -> str:
    """The outcome of a network, in a line."""
    kind = KINDS[name]
    pick = Pick(SEED, name, number)
    network = kind.network(pick)
    npus = _npus(pick, kind)
    seed = pick.integer(0, 2**32 - 1)
    order = (
        "raster"
        if any(npu.sequencer.raster or npu.former is not None for npu in npus)
        else pick.of(["auto", "pull", "raster"])
    )
    several = any(npu.array.accumulators > 1 for npu in npus)
    choices = CompileChoices(map_order=order, dataflow=pick.of(["output_stationary", "auto"]) if several else "auto")
    streamed = len(npus) == 1 and not npus[0].array.one_memory and pick.integer(0, 4) == 0
    model = _model(network, seed, npus)
    try:
        design = size_memories("replay", [model], npus, choices, sizing=Sizing(stream_weights=streamed))
        program = _program_digest(model, design, choices)
        of_plan = plan(model, design.npus, choices)
        flow = simulate(system(of_plan, design.npus, spill_words=design.spill_words), FRAMES)
    except ValueError as refusal:
        return f"refused {refusal}"
    return f"design {_digest(design.to_dict())} program {program} cycles {list(flow.left)}"


def write(folder: Path) -> None:
    """Write a file of lines for each kind."""
    for name in KINDS:
        lines = [line(name, number) for number in range(EACH)]
        (folder / f"{name.replace(' ', '-')}.txt").write_text("\n".join(lines) + "\n")
        print(name, dict(Counter(text.split()[0] for text in lines)), flush=True)

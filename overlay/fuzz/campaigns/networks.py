"""Campaign networks: random networks on random designs must equal golden, bit for bit.

A case is a network, a design with room for it (designs.py), the choices with which it is compiled, a seed for weights
and images, and pauses on both streams. Models are compiled once a process and design; cases follow each other on them.
"""

from collections.abc import Sequence

import numpy as np

from bitloom.golden.kernels import packed
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.workloads import engines_of
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build.images import random_images
from bitloom.overlay.fuzz.campaign import Case
from bitloom.overlay.fuzz.designs import BLOCKS, CHAINS, GROUPED, OUTPUTS, SINGLE, STREAMED
from bitloom.overlay.fuzz.hardware import Hardware, compared, hardware
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_models import random_model
from bitloom.overlay.fuzz.random_networks import (
    DEPTHWISE_CHANNELS,
    IntegerChoices,
    binary_network,
    deep_network,
    depthwise_network,
    grouped_network,
    integer_network,
    most_planes,
    random_mapping,
    several_outputs,
)

DESIGNS = {**SINGLE, **BLOCKS, **OUTPUTS, **GROUPED, **CHAINS, **STREAMED}
"""The designs by name."""
FRAMES = 3
TRIES = 20
"""Networks at most that are picked until one has a mapping on the design."""
LINES = {"raster": ("rows", "rows:1"), "columns": ("columns", "columns:2")}
"""Chunks of rows or columns, by the map order that they need; only NPUs one behind the other have any."""


def network_case(pick: Pick, names: Sequence[str]) -> Case:
    """A network that has a mapping on one of the named designs; its tables may still not fit."""
    name = pick.of(names)
    design = DESIGNS[name]
    for _ in range(TRIES):
        network = _network(pick, design)
        mapping = random_mapping(pick, design, len(engines_of(network)))
        if mapping is not None:
            break
    by_rows = "raster" in name or design.npus[0].former is not None  # which forms windows in no other order
    orders = ["raster"] if by_rows else ["pull", "raster", "columns"]
    if design.npus[0].depthwise:
        mapping = None  # a convolution that is fused with another one is no layer of its own
    map_order = pick.of(orders)
    lines = LINES.get(map_order, ()) if any("ring" in npu.ports.inlets for npu in design.npus) else ()
    plain = len(design.npus) == 1 and design.npus[0].array.accumulators == 1
    return {
        "design": name,
        "network": network.to_dict(),
        "mapping": mapping,
        "map_order": map_order,
        "dataflow": "output_stationary" if plain else pick.of(["output_stationary", "auto"]),
        "chunk": pick.of([1, 2, 5, 1000, *lines]),
        "seed": pick.integer(0, 2**32 - 1),
        "stalls": {"source": pick.of([0.0, 0.4]), "sink": pick.of([0.0, 0.4])},
    }


def compiled(case: Case) -> tuple[Hardware, Program, np.ndarray, np.ndarray] | None:
    """Hardware, program, images and their outputs by golden; None where the compiler refuses the network."""
    design = DESIGNS[case["design"]]
    network = Network.from_dict(case["network"])
    seed = case["seed"]
    target = hardware(design)
    npu = design.npus[0]
    model = random_model(network, seed, npu.array.acc_bits, npu.value("multiplier_bits"))
    chunk = ""
    if len(design.npus) > 1:
        chunk = f"tuples:{case['chunk']}" if isinstance(case["chunk"], int) else case["chunk"]
    choices = CompileChoices(**{key: case[key] for key in ("map_order", "dataflow", "mapping")}, chunk=chunk)
    try:
        program = compile_model(model, target.manifest, choices)
    except ValueError:
        return None
    images = random_images(network, FRAMES, seed)
    return target, program, images, packed.forward(model, images)


class NetworkCampaign:
    """Random networks, foldings, topologies, engines and choices.

    Parameters
    ----------
    designs
        Names of the designs that are picked from.
    """

    def __init__(self, designs: Sequence[str] = tuple(DESIGNS)):
        self._designs = designs

    def case(self, pick: Pick) -> Case:
        """A network on a design."""
        return network_case(pick, self._designs)

    def run(self, case: Case) -> tuple[str, str]:
        """Run a case: "unfit" if the compiler refuses it, "exact" if it equals golden; all else is a fault."""
        given = compiled(case)
        if given is None:
            return "unfit", ""
        target, program, images, expected = given
        target.board.stall(**case["stalls"], seed=case["seed"])
        return compared(target, program, images, expected)


def _network(pick: Pick, design: Design) -> Network:
    """A network for the engine of a design; for several NPUs two of three are deep."""
    npu = design.npus[0]
    several = len(design.npus) > 1
    if several and pick.integer(0, 2):
        around = design.closed or "loop" in npu.ports.outlets
        return deep_network(pick, npu.engine, 6 if around else len(design.npus))
    if npu.sequencer.tuple_parts:
        return grouped_network(pick, IntegerChoices.of(npu) if npu.engine == "integer" else None)
    if npu.depthwise:
        channels = npu.former_sizes.channels if npu.former_sizes else DEPTHWISE_CHANNELS
        return depthwise_network(pick, IntegerChoices.of(npu), channels)
    if npu.engine == "integer":
        choices = IntegerChoices.of(npu)
        network = integer_network(pick, choices)
        return several_outputs(pick, network, choices) if npu.loader.outputs > 1 else network
    return binary_network(pick, most_planes(npu))

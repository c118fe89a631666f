"""Layers and systems for tests of the flow model, without networks: windows alone matter."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from bitloom.golden.graph import INPUT
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.flow import FlowLayer, FlowNpu, Reading, System, of_plan
from bitloom.hls_gen.compiler.schedule import Stage, StageTables, schedule
from bitloom.hls_gen.compiler.sequencer_taps import OnSequencer, SequencerTaps
from bitloom.hls_gen.compiler.taps import Taps
from bitloom.hls_gen.design.gearbox import geared
from bitloom.hls_gen.design.npu import Npu

ENDS = {"inlets": ("host", "ring", "loop"), "outlets": ("ring", "loop", "host")}
SIZES = {"tuple_words": 64, "pool_words": 16, "map_words": 1024, "buffer_words": 8}
NPU = Npu.of(kfp=8, kgp=8, pfp=8, ol=8, **SIZES, **ENDS)
FLOW_NPU = FlowNpu(npu=NPU)
SIDE = 10
"""Rows and columns of a map."""
ALONE: dict[str, Any] = {"inlet": "host", "outlet": "host", "map_words": 1, "map_lanes": 8}
"""Ways of a layer that is tried without a system, or that `connected` puts into one."""


def reading(tables: StageTables, words: int, *, reread: bool = False) -> Reading:
    sequencer = Npu.of().array_sequencer
    taps = SequencerTaps(tables, sequencer.kind, reread=reread)
    return of_plan.reading(OnSequencer(sequencer=sequencer, taps=taps, words=words, tap_rows=words))


def convolutions(count: int, *, side: int = SIDE, channels: int = 16) -> tuple[FlowLayer, ...]:
    """3 x 3 convolutions with padding, ``channels`` in and out, on NPUs of 8 x 8 lanes; `connected` says by which ways
    their maps go."""
    groups = words = channels // 8
    window = Window(kernel=(3, 3), padding=(1, 1, 1, 1))
    stages = [
        Stage(
            name=f"conv_{i}",
            weighted=True,
            height=side,
            width=side,
            window=Taps(window),
            reads=f"conv_{i - 1}" if i else INPUT,
        )
        for i in range(count)
    ]
    return tuple(
        FlowLayer(name=t.stage.name, reading=reading(t, words, reread=groups > 1), groups=groups, **ALONE)
        for t in schedule(stages, "raster").tables
    )


def ring(npus: int, layers: tuple[FlowLayer, ...], *, spill_words: int | None = 0, **folding: int) -> System:
    """Layer i on NPU i mod ``npus``."""
    mapping = tuple(i % npus for i in range(len(layers)))
    flow_npu = FlowNpu(npu=NPU.unchecked(**folding))
    return connected((flow_npu,) * npus, layers, mapping, spill_words=spill_words)


def connected(npus: Sequence[FlowNpu], layers: Sequence[FlowLayer], mapping: Sequence[int], **more: Any) -> System:
    """The system in which each layer reads the map of the layer before; a skip store that is an inlet or an outlet of
    ``layers`` stays so. ``more`` are other fields of the system."""
    inlets = ["host", *("loop" if before == n else "ring" for before, n in pairwise(mapping))]
    outlets = [*inlets[1:], "host"]
    readers = [*mapping[1:], mapping[-1]]
    placed = list[FlowLayer]()
    for layer, n, inlet, outlet, reader in zip(layers, mapping, inlets, outlets, readers):
        lanes = npus[reader].npu.array.map_lanes
        placed.append(
            replace(
                layer,
                inlet="skip" if layer.inlet == "skip" else inlet,
                chunk_words=npus[n].buffer_words * (inlet == "ring"),
                outlet="skip" if layer.outlet == "skip" else outlet,
                map_words=layer.output_windows * geared(*npus[n].outlet_tuple(layer), lanes),
                map_lanes=lanes,
            )
        )
    return System(npus=tuple(npus), layers=tuple(placed), mapping=tuple(mapping), **more)

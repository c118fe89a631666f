"""When each NPU works at which layer of which frame, by the flow model (hls_gen/compiler/flow), exact to the cycle."""

from dataclasses import dataclass

from bitloom.hls_gen.compiler.flow import Result, simulate
from bitloom.hls_gen.compiler.flow.kahn import run
from bitloom.hls_gen.compiler.flow.layer import passes
from bitloom.hls_gen.compiler.flow.network import ProcessNetwork
from bitloom.hls_gen.compiler.weight_streams import whole_system

from .compiled import Compiled

FRAMES = 4
"""Frames that are shown."""


@dataclass(frozen=True)
class Span:
    """The array of an NPU at work for a layer of a frame."""

    layer: int
    npu: int
    frame: int
    """layer, npu, frame: numbers from 0."""
    begin: int
    end: int
    """begin, end: first and last cycle, waits between windows included. ``begin`` is that of the layer's first pass
    over a window, as if it were taken without a wait."""


@dataclass(frozen=True)
class Timeline:
    """Frames back to back, from the cycle on in which the first header is accepted."""

    spans: tuple[Span, ...]
    """By frame and layer."""
    left: tuple[int, ...]
    """Cycles in which frames have left."""
    cycles_per_frame: float
    latency: int
    stores: dict[str, int]
    """cycles_per_frame, latency, stores: as in ``hls_gen.compiler.flow.Result``."""


def timeline(compiled: Compiled, frames: int) -> Timeline:
    """The first FRAMES frames, with the figures of a steady stream of ``frames``, an even number."""
    model = whole_system(compiled.plan, compiled.build.design)
    result: Result = simulate(model, frames)
    network = ProcessNetwork(model, FRAMES)
    run(network.processes)
    spans = [span for n in network.issuers for span in _spans(network, n)]
    spans.sort(key=lambda s: (s.frame, s.layer))
    return Timeline(tuple(spans), tuple(network.done), result.cycles_per_frame, result.latency, result.stores)


def _spans(network: ProcessNetwork, n: int) -> list[Span]:
    """Spans of NPU ``n``: its results come layer after layer, frame after frame, ``inner`` at the end of a pass."""
    issuer = network.issuers[n]
    numbers = network.system.of(n)
    out = []
    first = 0
    latency = issuer.unit.latencies.array
    arrived = issuer.arrived
    layers = [network.system.layers[i] for i in numbers]
    lengths = [passes(layer.reading, layer.inner, int(issuer.unit.npu.array.one_memory))[0][0] for layer in layers]
    for frame in range(network.frames):
        for i, layer, cycles in zip(numbers, layers, lengths):
            begin = arrived[first + layer.inner - 1] - latency - cycles + 1
            first += layer.reading.windows * layer.results
            out.append(Span(i, n, frame, begin, arrived[first - 1] - latency))
    return out

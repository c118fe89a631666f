"""When each NPU works at which layer of which frame, by the flow model (hls_gen/compiler/flow), exact to the cycle."""

from dataclasses import dataclass, replace

from bitloom.hls_gen.compiler.flow import Result, simulate
from bitloom.hls_gen.compiler.flow.kahn import run
from bitloom.hls_gen.compiler.flow.layer import passes
from bitloom.hls_gen.compiler.flow.network import ProcessNetwork
from bitloom.hls_gen.compiler.weight_order import whole_system
from bitloom.hls_gen.design import timing
from bitloom.overlay.build.loading import Loading

from .compiled import Compiled

FRAMES = 4
"""Frames that are shown."""


@dataclass(frozen=True)
class WorkSpan:
    """The array of an NPU at work for a layer of a frame."""

    layer: int
    npu: int
    frame: int
    """layer, npu, frame: numbers from 0; of a network in partitions layers are counted over all programs."""
    begin: int
    end: int
    """begin, end: first and last cycle, waits between windows included. ``begin`` is that of the layer's first pass
    over a window, as if it were taken without a wait."""


@dataclass(frozen=True)
class ProgramTimes:
    """A program's frames."""

    begin: int
    """Cycle in which its first header is accepted."""
    cycles_per_frame: float
    latency: int
    stores: dict[str, int]
    """cycles_per_frame, latency, stores: as in ``hls_gen.compiler.flow.Result``."""


@dataclass(frozen=True)
class Timeline:
    """Frames back to back, from the cycle on in which the first header is accepted. All of them go through a program,
    and then the next one is loaded, a stream word a cycle."""

    spans: tuple[WorkSpan, ...]
    """By program, frame and layer."""
    left: tuple[int, ...]
    """Cycles in which frames have left the last program."""
    loads: tuple[tuple[int, int], ...]
    """First and last cycle in which each program but the first one is loaded."""
    programs: tuple[ProgramTimes, ...]
    """In the order in which they run."""

    @property
    def cycles_per_frame(self) -> float:
        """Of all programs together, without loading."""
        return sum(program.cycles_per_frame for program in self.programs)

    @property
    def latency(self) -> int:
        """Of a frame alone, of all programs together, without loading."""
        return sum(program.latency for program in self.programs)


def timeline(compiled: Compiled, frames: int, loading: Loading | None = None) -> Timeline:
    """The first FRAMES frames, with the figures of a steady stream of ``frames``, an even number."""
    spans = list[WorkSpan]()
    loads = list[tuple[int, int]]()
    programs = list[ProgramTimes]()
    left: tuple[int, ...] = ()
    layers = 0
    for number, plan in enumerate(compiled.plans):
        begin = 0
        if left and loading is not None:
            begin = left[-1] + 1 + loading.words[number]
            loads.append((left[-1] + 1, begin - 1))
        model = whole_system(plan, compiled.build.design)
        result: Result = simulate(model, frames)
        programs.append(ProgramTimes(begin, result.cycles_per_frame, result.latency, result.stores))
        network = ProcessNetwork(model, FRAMES)
        run(network.processes)
        own = [
            replace(span, layer=layers + span.layer, begin=begin + span.begin, end=begin + span.end)
            for n in network.issuers
            for span in _spans(network, n)
        ]
        spans += sorted(own, key=lambda s: (s.frame, s.layer))
        left = tuple(begin + cycle for cycle in network.done)
        layers += len(plan.layers)
    return Timeline(tuple(spans), left, tuple(loads), tuple(programs))


def _spans(network: ProcessNetwork, n: int) -> list[WorkSpan]:
    """Spans of NPU ``n``: its results come layer after layer, frame after frame, ``inner`` at the end of a pass."""
    issuer = network.issuers[n]
    numbers = network.system.of(n)
    out = []
    first = 0
    latency = issuer.flow_npu.latencies.array
    arrived = issuer.arrived
    layers = [network.system.layers[i] for i in numbers]
    fetch = timing.fetch_cycles(issuer.flow_npu.npu)
    lengths = [passes(layer.reading, layer.inner, fetch)[0][0] for layer in layers]
    for frame in range(network.frames):
        for i, layer, cycles in zip(numbers, layers, lengths):
            begin = arrived[first + layer.inner - 1] - latency - cycles + 1
            first += layer.reading.windows * layer.results
            out.append(WorkSpan(i, n, frame, begin, arrived[first - 1] - latency))
    return out

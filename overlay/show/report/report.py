"""All that a report shows, as plain data; gather.py fills it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from bitloom.golden.network import Network
from bitloom.hls_gen.design.design import Design
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.build.loading import Loading, shared_cycles
from bitloom.overlay.build.measured import Measured
from bitloom.overlay.explore.advice import Advice
from bitloom.overlay.explore.front import Front
from bitloom.overlay.study.lane_counts import lanes

from .accuracy import Accuracy
from .layer_work import LayerWork
from .memories import MemoryUse
from .programs import ProgramFacts
from .roofline import Point
from .timeline import Timeline
from .units import UnitArea


@dataclass(frozen=True)
class LayerFacts:
    """A layer of the network, as the report shows it."""

    name: str
    kind: str
    """name, kind: of the layer."""
    what: str
    """Its parameters in words."""
    source: tuple[int, int, int]
    output: tuple[int, int, int]
    """source, output: (height, width, channels) of what it reads and gives."""
    encoding: str
    """Kind and bits of its output."""
    weights: int
    """Number of its weights; 0: it has none."""
    weight_encoding: str
    """Kind and bits of a weight, or ""."""
    npu: int
    """NPU that computes the layer: for a threshold, a requantisation or a pool that of the weighted layer before."""


@dataclass(frozen=True)
class NpuCycles:
    """Where the cycles of an NPU go in a frame of a steady stream."""

    npu: int
    """The NPU's number."""
    layers: tuple[str, ...]
    """Labels of the layers that it computes."""
    lanes: int
    """Multiply-accumulates of its array in a cycle."""
    operations: int
    """Operations a frame."""
    ideal: int
    """Beats of its layers."""
    spent: dict[str, float]
    """Cycles by counter; they add up to the cycles of a frame."""

    @property
    def cycles(self) -> float:
        """Sum over what the counters count."""
        return sum(self.spent.values())


@dataclass(frozen=True)
class AreaFacts:
    """Area of the design."""

    resources: Resources
    """The area."""
    source: str
    """Where it comes from: "model" or "yosys"."""
    model_error: dict[str, Any]
    """Median and worst error of the model, as shares of the LUTs."""
    units: tuple[UnitArea, ...] = ()
    """Area by units, as far as ``source`` knows it."""


@dataclass(frozen=True)
class Report:
    """A build, a network on it, and a run."""

    network: Network
    """The network's description."""
    weights: str
    """Where the weights come from, in words."""
    design: Design
    digest: str
    """design, digest: the hardware and its digest."""
    mapping: tuple[int, ...]
    """NPU of each weighted layer."""
    crossings: frozenset[tuple[int, int]]
    """Pairs of NPUs, the one that makes a map and the one that reads it: the edges that the network uses."""
    run: Measured
    """Counters of the batches."""
    clock_mhz: float
    """Clock that rates and times assume."""
    layers: tuple[LayerFacts, ...]
    work: tuple[LayerWork, ...]
    npus: tuple[NpuCycles, ...]
    timeline: Timeline
    memories: tuple[MemoryUse, ...]
    area: AreaFacts
    points: tuple[Point, ...]
    commands: tuple[str, ...]
    """layers, work, npus, timeline, memories, area, points, commands: what the page's sections show."""
    clock: Mapping[str, float] = field(default_factory=dict)
    """Estimated clock and frames a second at it (`bitloom.overlay.timing.design_clock`), or nothing."""
    weight_copies: tuple[str, ...] = ()
    """NPUs that store weights once for each bit of a value, a line each."""
    advice: tuple[Advice, ...] = ()
    """Single changes of the folding that make frames faster, the one with the largest gain first."""
    accuracy: Accuracy | None = None
    """How often the network is right; None where that isn't known."""
    front: Front | None = None
    """Designs between which the design was chosen; None where they aren't given."""
    version: str = ""
    """Version of bitloom that gathered it; "" where it isn't installed."""
    loading: Loading | None = None
    """Of the programs of a network in partitions; None for others."""
    programs: tuple[ProgramFacts, ...] = ()
    """Of a network in partitions what each program takes, in the order in which they run; () for others."""

    @property
    def figures(self) -> dict[str, float]:
        """Figures of a steady stream of frames, unless a name says otherwise.

        ``utilisation`` is the part of all lanes that is fed (as ``bitloom bench`` has it), ``operations_per_cycle`` /
        ``lanes`` the part that is at work. Of a network in partitions, frames a second count the loading of all
        programs, once a round.
        """
        cycles = self.run.steady("cycles")
        size = lanes(self.design)
        device = self.points[0]
        return {
            "cycles_per_frame": cycles,
            "ideal_cycles_per_frame": sum(p.beats for p in self.programs) or max(npu.ideal for npu in self.npus),
            "frames_per_second": self.clock_mhz * 1e6 / (cycles + shared_cycles(self.loading)),
            "latency_cycles": self.run.latency,
            "latency_us": self.run.latency / self.clock_mhz,
            "frames": self.run.frames,
            "bit_exact_frames": self.run.bit_exact_frames,
            "npus": size["npus"],
            "lanes": size["lanes"],
            "utilisation": sum(npu.spent["beats"] * npu.lanes for npu in self.npus) / (cycles * size["lanes"]),
            "operations_per_frame": device.operations,
            "operations_per_cycle": device.rate,
            "operations_per_byte": device.intensity,
            **(self.loading.figures if self.loading else {}),
            **self.clock,
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON data. ``run`` in it is what ``Measured.load`` reads again."""
        return {
            "network": self.network.name,
            "weights": self.weights,
            "design": self.design.name,
            "digest": self.digest,
            "mapping": list(self.mapping),
            "clock_mhz": self.clock_mhz,
            "version": self.version,
            "accuracy": self.accuracy and {**asdict(self.accuracy), "share": self.accuracy.share},
            "figures": self.figures,
            "programs": [asdict(program) for program in self.programs],
            "layers": [asdict(layer) for layer in self.layers],
            "work": [{**asdict(w), "busy": w.busy} for w in self.work],
            "npus": [{**asdict(npu), "cycles": npu.cycles} for npu in self.npus],
            "memories": [asdict(m) for m in self.memories],
            "weight_copies": list(self.weight_copies),
            "advice": [asdict(change) for change in self.advice],
            "area": asdict(self.area),
            "roofline": [{**asdict(p), "intensity": p.intensity, "rate": p.rate, "roof": p.roof} for p in self.points],
            "timeline": asdict(self.timeline),
            "commands": list(self.commands),
            "run": self.run.to_dict(),
        }

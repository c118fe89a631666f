"""All that a report shows, as plain data."""

from dataclasses import asdict, dataclass
from typing import Any

from bitloom.golden import zoo as networks
from bitloom.golden.encoding import Encoding
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.network import Network
from bitloom.hls_gen.design.npu import Design
from bitloom.overlay.area.netlist import Resources
from bitloom.overlay.area.synthesis import area
from bitloom.overlay.explore.estimate import error, estimate
from bitloom.overlay.study.design_figures import lanes, npu_lanes

from .commands import commands
from .compiled import Compiled
from .layer_work import LayerWork, layers
from .measure import Measured
from .memories import MemoryUse, memories
from .roofline import Point, roofline
from .text import TIMES
from .timeline import Timeline, timeline

CLOCK_MHZ = 100.0
"""Of the block design, where nothing else is said."""


@dataclass(frozen=True)
class LayerFacts:
    """A layer of the network. what : its parameters in words.  source, output : (height, width, channels).

    encoding : kind and bits of its output.  weights : values, 0: it has none.  npu : that computes it; a threshold, a
    requantisation or a pool is done by that of the weighted layer before it.
    """

    name: str
    kind: str
    what: str
    source: tuple[int, int, int]
    output: tuple[int, int, int]
    encoding: str
    weights: int
    weight_encoding: str
    npu: int


@dataclass(frozen=True)
class NpuCycles:
    """Where the cycles of an NPU go in a frame of a steady stream: ``spent`` by counter; they add up to the cycles.

    layers : names.  ideal : beats of its layers.  lanes : of its array.  operations : a frame.
    """

    npu: int
    layers: tuple[str, ...]
    lanes: int
    operations: int
    ideal: int
    spent: dict[str, float]

    @property
    def cycles(self) -> float:
        """Sum over what the counters count."""
        return sum(self.spent.values())


@dataclass(frozen=True)
class AreaFacts:
    """Area of the design. source : "model" or "yosys".  model_error : median and worst, shares of the LUTs."""

    resources: Resources
    source: str
    model_error: dict[str, Any]


@dataclass(frozen=True)
class Report:
    """A build, a network on it, and a run. weights : where the weights come from.  clock_mhz : assumed."""

    network: Network
    weights: str
    design: Design
    digest: str
    mapping: tuple[int, ...]
    run: Measured
    clock_mhz: float
    layers: tuple[LayerFacts, ...]
    work: tuple[LayerWork, ...]
    npus: tuple[NpuCycles, ...]
    timeline: Timeline | None
    memories: tuple[MemoryUse, ...]
    area: AreaFacts
    points: tuple[Point, ...]
    commands: tuple[str, ...]

    @property
    def figures(self) -> dict[str, float]:
        """Of a steady stream of frames, unless a name says otherwise; utilisation is the part of all lanes that is fed
        (bitloom bench), operations_per_cycle / lanes the part that is at work."""
        cycles, size = self.run.steady("cycles"), lanes(self.design)
        device = self.points[0]
        return {
            "cycles_per_frame": cycles,
            "ideal_cycles_per_frame": max(npu.ideal for npu in self.npus),
            "frames_per_second": self.clock_mhz * 1e6 / cycles,
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
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON data. ``run`` is what ``Measured.load`` reads again."""
        return {
            "network": self.network.name,
            "weights": self.weights,
            "design": self.design.name,
            "digest": self.digest,
            "mapping": list(self.mapping),
            "clock_mhz": self.clock_mhz,
            "figures": self.figures,
            "layers": [asdict(layer) for layer in self.layers],
            "work": [{**asdict(w), "busy": w.busy} for w in self.work],
            "npus": [{**asdict(npu), "cycles": npu.cycles} for npu in self.npus],
            "memories": [asdict(m) for m in self.memories],
            "area": asdict(self.area),
            "roofline": [{**asdict(p), "intensity": p.intensity, "rate": p.rate, "roof": p.roof} for p in self.points],
            "timeline": self.timeline and asdict(self.timeline),
            "commands": list(self.commands),
            "run": self.run.to_dict(),
        }


def gather(
    made: Compiled, run: Measured, *, given: str | None = None, clock_mhz: float = CLOCK_MHZ, synthesise: bool = False
) -> Report:
    """The report of a run.

    given : the network as the command line names it, None: by the build.  synthesise : area by Yosys instead of the
    model; BuildError where it is missing. ValueError if the run is not of this build and network.
    """
    program, design = made.program, made.build.design
    for what, expected, got in (
        ("network", program.name, run.network),
        ("design", program.design_digest[:16], run.design_digest[:16]),
        ("model", program.model_digest[:16], run.model_digest[:16]),
    ):
        if expected != got:
            raise ValueError(f"{made.build.folder}: the run must be of {what} {expected}, got {got}")
    work = layers(made)
    times = timeline(made, run.frames)
    return Report(
        network=made.model.network,
        weights=networks.source(given or program.name),
        design=design,
        digest=made.build.digest,
        mapping=program.mapping,
        run=run,
        clock_mhz=clock_mhz,
        layers=tuple(_layers(made)),
        work=tuple(work),
        npus=tuple(_npus(made, run, work)),
        timeline=times,
        memories=tuple(memories(made, times.stores if times else {})),
        area=_area(design, synthesise),
        points=tuple(roofline(made, run, work)),
        commands=tuple(commands(made.build, run.frames, given)),
    )


def _layers(made: Compiled) -> list[LayerFacts]:
    """The layers of the network, those that an NPU does with a weighted one too."""
    out, npus = [], iter(made.program.mapping)
    npu = 0
    for layer, source in made.model.network.chain("a report"):
        after = made.model.network.maps[layer.name]
        weighted = isinstance(layer, Weighted)
        npu = next(npus) if weighted else npu
        out.append(
            LayerFacts(
                name=layer.name,
                kind=layer.kind,
                what=_what(layer),
                source=source.shape,
                output=after.shape,
                encoding=_encoding(after.encoding),
                weights=made.model.arrays[layer.name]["weight"].size if weighted else 0,
                weight_encoding=_encoding(layer.weight) if isinstance(layer, Weighted) else "",
                npu=npu,
            )
        )
    return out


def _encoding(encoding: Encoding) -> str:
    return f"{encoding.kind} {encoding.bits}"


def _what(layer: Any) -> str:
    """Window and accumulation of a layer, where it has any."""
    parts = []
    if hasattr(layer, "kernel"):
        parts.append(f" {TIMES} ".join(map(str, layer.kernel)))
        parts += [f"{what} {_one(getattr(layer, what))}" for what, none in (("stride", 1), ("padding", 0))
                  if set(getattr(layer, what)) != {none}]  # fmt: skip
    if getattr(layer, "accumulate", "popcount") != "popcount":
        parts.append(f"accumulate {layer.accumulate}")
    if getattr(layer, "levels", 1) > 1:
        parts.append(f"{layer.levels} levels")
    return ", ".join(parts)


def _one(values: tuple[int, ...]) -> str:
    """The number that all are, or all of them."""
    return str(values[0]) if len(set(values)) == 1 else "/".join(map(str, values))


def _npus(made: Compiled, run: Measured, work: list[LayerWork]) -> list[NpuCycles]:
    """What the counters of each NPU say."""
    out = []
    for n, npu in enumerate(made.build.design.npus):
        own = [w for w in work if w.npu == n]
        keys = ["beats", *(pulse for pulse in npu.pulses if pulse != "beat")]
        out.append(
            NpuCycles(
                npu=n,
                layers=tuple(w.name for w in own),
                lanes=npu_lanes(npu),
                operations=sum(w.operations for w in own),
                ideal=sum(w.beats for w in own),
                spent={key: run.steady(f"npu{n}_{key}") for key in keys},
            )
        )
    return out


def _area(design: Design, synthesise: bool) -> AreaFacts:
    if synthesise:
        return AreaFacts(area(design).total, "yosys", error())
    return AreaFacts(estimate(design), "model", error())

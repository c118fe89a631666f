"""Labelled images on hardware: whether results are the same bits as golden's, and how many cycles they take."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bitloom.golden.encoding import Array
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.flow import simulate
from bitloom.hls_gen.compiler.plan import plans
from bitloom.hls_gen.compiler.weight_order import whole_system
from bitloom.hls_gen.design.design import Design
from bitloom.overlay.build.build import Build
from bitloom.overlay.build.loading import Loading, shared_cycles
from bitloom.overlay.build.measured import measure

FLOW = "flow model"
SIMULATION = "simulation"


@dataclass(frozen=True)
class FrameCycles:
    """Cycles that frames take."""

    by: str
    """FLOW or SIMULATION: where the figures come from."""
    cycles_per_frame: float
    """Of a steady stream of frames."""
    latency: int
    """Cycles of a frame alone."""
    frames: int = 0
    bit_exact_frames: int = 0
    """frames, bit_exact_frames: how many images were simulated, and on how many of them every output equals golden's; 0
    for FLOW."""
    loading: Loading | None = None
    """Of the programs of a network in partitions, which `cycles_per_frame` doesn't count."""

    def figures(self, clock_mhz: float) -> dict[str, Any]:
        """Figures by name, for people and for files, with those at a clock of so many MHz."""
        simulated = {"frames": self.frames, "bit_exact_frames": self.bit_exact_frames}
        return {
            "by": self.by,
            **(simulated if self.by == SIMULATION else {}),
            "cycles_per_frame": self.cycles_per_frame,
            "latency_cycles": self.latency,
            **(self.loading.figures if self.loading else {}),
            "clock_mhz": clock_mhz,
            "frames_per_second": clock_mhz * 1e6 / (self.cycles_per_frame + shared_cycles(self.loading)),
            "latency_us": self.latency / clock_mhz,
        }


def cycles_by_flow(model: Model, design: Design, choices: CompileChoices) -> FrameCycles:
    """Cycles by the flow model: those of all partitions together, without the loading of their parameters.

    Raises
    ------
    ValueError
        If the network doesn't fit the design.
    Deadlock
        If the design can't finish a frame.
    """
    results = [simulate(whole_system(each, design)) for each in plans(model, design.npus, choices)]
    return FrameCycles(FLOW, sum(each.cycles_per_frame for each in results), sum(each.latency for each in results))


def cycles_by_simulation(
    build: Build, model: Model, images: Array, progress: Callable[[int, int], None] | None = None
) -> FrameCycles:
    """Run images on the simulated board, compare every output with golden's and count cycles.

    Batches, figures and parameters are those of `bitloom.overlay.build.measured.measure`, and so are errors; ValueError
    also if there are fewer images than 2.
    """
    if len(images) < 2:
        raise ValueError(f"{model.network.name}: frames on hardware must be >= 2, got {len(images)}")
    run = measure(build, model, images, progress)
    return FrameCycles(SIMULATION, run.steady("cycles"), run.latency, run.frames, run.bit_exact_frames)

"""Cost of loading the programs of a network in partitions: the parameters of each, once a round of frames."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bitloom.driver.host_maps import round_frames
from bitloom.hls_gen.design.compiled_network import CompiledNetwork
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.packets import cleared
from bitloom.hls_gen.design.program import Program

LOADING = ("programs", "load_cycles_per_round", "frames_per_round")
"""Names of the figures that say how programs are loaded."""


@dataclass(frozen=True)
class Loading:
    """Loading of all programs in a round."""

    words: tuple[int, ...]
    """Stream words of each program's packets, those that write 0 to the other rows of memories, too. Each takes a cycle
    at least."""
    frames: int
    """Frames of a round, as many as the driver takes by default."""

    @property
    def cycles(self) -> int:
        """Cycles of a round, at least."""
        return sum(self.words)

    @property
    def cycles_per_frame(self) -> float:
        """A frame's share of the cycles of loading."""
        return self.cycles / self.frames

    @property
    def figures(self) -> dict[str, Any]:
        """Figures by name, for files."""
        return dict(zip(LOADING, (len(self.words), self.cycles, self.frames)))


def loading(network: CompiledNetwork[Program], manifest: Manifest) -> Loading | None:
    """Loading of a network's programs; None of a network with one, which is loaded before the first frame."""
    if len(network.programs) == 1:
        return None
    words = [len(cleared(manifest, each.parameters, each.name)) + len(each.parameters) for each in network.programs]
    return Loading(tuple(count // manifest.stream_words for count in words), round_frames(network))


def shared_cycles(of: Loading | None) -> float:
    """Cycles that a frame of a steady stream takes beside those of its programs."""
    return 0.0 if of is None else of.cycles_per_frame


def loading_rows(figures: Mapping[str, Any]) -> dict[str, str]:
    """Rows of a table that say how programs are loaded; none of a network with one."""
    if LOADING[0] not in figures:
        return {}
    programs, cycles, frames = (figures[name] for name in LOADING)
    return {
        "programs": f"{programs:,}",
        "loading, once a round": f"{cycles:,} cycles at least, counted in frames a second",
        "frames of a round": f"{frames:,}",
    }

"""The programs of a network in partitions: what each takes of a frame, and of a round of frames."""

from dataclasses import dataclass

from bitloom.hls_gen.design.copy_names import is_copy
from bitloom.overlay.build.loading import Loading

from .compiled import Compiled
from .timeline import Timeline

BOUNDS = {"beats": "array", "words_in": "stream in", "words_out": "stream out"}
"""Names of the parts that may limit a frame's cycles, by the field that counts their cycles."""


@dataclass(frozen=True)
class ProgramFacts:
    """A program."""

    name: str
    """The layer with which it begins, and the number of its slice."""
    layers: tuple[str, ...]
    """Names of the weighted layers that it computes."""
    cycles: float
    """Cycles a frame of a steady stream, by the flow model."""
    share: float
    """Part of the cycles that a frame takes in a round, this program's loading counted, 0..1."""
    latency: int
    """Of a frame alone, by the flow model."""
    beats: int
    """Of the busiest NPU."""
    words_in: int
    words_out: int
    """words_in, words_out: stream words of a frame: its payload and weights, and its results."""
    load_words: int
    """Stream words of its parameters, once a round."""

    @property
    def bound(self) -> str:
        """The name of the greatest lower bound of a frame's cycles: the array's beats, or the words of a stream."""
        return max(BOUNDS.items(), key=lambda item: getattr(self, item[0]))[1]


def program_facts(compiled: Compiled, times: Timeline, loading: Loading) -> list[ProgramFacts]:
    """The facts of each program, in the order in which they run."""
    words = compiled.manifest.stream_words
    whole = times.cycles_per_frame + loading.cycles_per_frame
    out = []
    for name, program, own, load in zip(compiled.names, compiled.network.programs, times.programs, loading.words):
        cycles = own.cycles_per_frame + load / loading.frames
        out.append(
            ProgramFacts(
                name=name,
                layers=tuple(layer for layer, _ in program.layers if not is_copy(layer)),
                cycles=own.cycles_per_frame,
                share=cycles / whole,
                latency=own.latency,
                beats=program.ideal_cycles,
                words_in=(program.payload_words + len(program.weights)) // words,
                words_out=program.result_words // words,
                load_words=load,
            )
        )
    return out

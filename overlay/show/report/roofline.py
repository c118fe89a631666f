"""Roofline: operations a cycle against operations a byte, for the whole device, each NPU and each layer.

Two roofs bound a point: the lanes (an operation a lane and a cycle), and the bytes that can come in a cycle. For the
device these bytes are those of its streams, of which the busier one counts; for an NPU and a layer they are the words
of its tuple memory, of which one a cycle comes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from bitloom.overlay.build.measured import Measured

from .compiled import Compiled
from .layer_work import LayerWork


@dataclass(frozen=True)
class Point:
    """A point under the roofs."""

    kind: str
    """"device", "npu" or "layer"."""
    name: str
    """For people."""
    npu: int | None
    """Number of the NPU; None for the device."""
    operations: int
    bytes: float
    cycles: float
    """operations, bytes, cycles: a frame. Cycles are measured, of a layer its beats."""
    lanes: int
    """Operations a cycle at most."""
    bytes_per_cycle: float
    """Bytes a cycle at most."""

    @property
    def intensity(self) -> float:
        """Operations a byte."""
        return self.operations / self.bytes

    @property
    def rate(self) -> float:
        """Operations a cycle."""
        return self.operations / self.cycles

    @property
    def roof(self) -> float:
        """Operations a cycle at most: the lower one of the two roofs."""
        return min(self.lanes, self.intensity * self.bytes_per_cycle)


def roofline(compiled: Compiled, run: Measured, work: Sequence[LayerWork]) -> list[Point]:
    """The points of the device, of its NPUs that compute a layer, then of the layers."""
    design = compiled.build.design
    cycles = run.steady("cycles")
    stream = design.stream_bits / 8
    whole = Point(
        kind="device",
        name=compiled.network.name,
        npu=None,
        operations=sum(layer.operations for layer in work),
        bytes=stream * max(run.steady("words_in"), run.steady("words_out")),
        cycles=cycles,
        lanes=sum(npu.lanes for npu in design.npus),
        bytes_per_cycle=stream,
    )
    layers = [_point("layer", w.label, w.npu, [w], w.beats, compiled) for w in work]
    npus = []
    for n in range(len(design.npus)):
        npu_work = [w for w in work if w.npu == n]
        npus += [_point("npu", f"NPU {n}", n, npu_work, cycles, compiled)] if npu_work else []
    return [whole, *npus, *layers]


def _point(kind: str, name: str, n: int, work: Sequence[LayerWork], cycles: float, compiled: Compiled) -> Point:
    """The point of layers ``work`` of NPU ``n``."""
    npu = compiled.build.design.npus[n]
    operations = sum(w.operations for w in work)
    read = sum(w.words * w.word_bytes for w in work)
    return Point(kind, name, n, operations, read, cycles, npu.lanes, npu.array.word_bits / 8)

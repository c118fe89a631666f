"""The memories of a design, how much of each the network uses, and what they become in an FPGA of the 7 series.

Rows used are those that the program writes, of a memory that it loads; and the most words that a store between two
streams ever holds by the flow model. Other memories are always whole in use, or nothing is said about them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from bitloom.hls_gen.design.memories.memory_map import memory_map
from bitloom.hls_gen.design.packets import packets
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.area_model.blocks import npu_stores, stores
from bitloom.overlay.area_model.memory import mapped
from bitloom.overlay.area_model.store import Store

from .compiled import Compiled

LEVELS = {
    "tuples": "tuple_words",
    "pool_tuples": "pool_words",
    "map_store": "map_words",
    "skip_store": "skip_words",
    "buffers": "buffer_words",
    "spill_store": "spill_words",
}
"""Names of stores' levels in the flow model."""


@dataclass(frozen=True)
class MemoryUse:
    """A memory, or equal ones side by side."""

    npu: int | None
    """Number of the NPU; None for memories that belong to none."""
    name: str
    """Name of the rows or words that it holds."""
    depth: int
    """Rows."""
    width: int
    """Bits of a row."""
    used: int | None
    """Rows that are used, of a network in partitions by the program that uses most; None where it is not known."""
    program: str
    """Of a network in partitions the first program that uses so many; "" where there is one, or that is not known."""
    lutram: int
    bram36: float
    """lutram, bram36: what it becomes: LUTs, and block RAM in units of 36 Kbit."""

    @property
    def bits(self) -> int:
        """Bits in all."""
        return self.depth * self.width


def memories(compiled: Compiled, levels: Sequence[Mapping[str, int]]) -> list[MemoryUse]:
    """All memories, NPU by NPU.

    Parameters
    ----------
    compiled
        The network on its build.
    levels
        Most words that each store held, by program (hls_gen.compiler.flow.Result).
    """
    design = compiled.build.design
    used = dict[str, tuple[int, str]]()
    for name, program, held in zip(compiled.names, compiled.network.programs, levels):
        for key, rows in (_loaded(compiled, program) | dict(held)).items():
            if key not in used or rows > used[key][0]:
                used[key] = rows, name
    out = []
    shared = list(stores(design))
    for n, npu in enumerate(design.npus):
        npu_memories = list(npu_stores(npu, design.stream_bits))
        shared = shared[len(npu_memories) :]
        out += _uses(n, npu_memories, used)
    return out + _uses(None, shared, used)


def _loaded(compiled: Compiled, program: Program) -> dict[str, int]:
    """Rows that a program writes, up to the last one, by ``npu<n>.<memory>``."""
    out = {f"npu{n}.{memory.name}": 0 for n, npu in enumerate(compiled.manifest.npus) for memory in memory_map(npu)}
    for kind, words in (("LOAD", program.parameters), ("WEIGHTS", program.weights)):
        for head, memory, _ in packets(compiled.manifest, words, program.name, kind) if len(words) else ():
            key = f"npu{head.npu}.{memory.name}"
            out[key] = max(out[key], head.address + head.length)
    return out


def _uses(npu: int | None, memories: Iterable[Store], used: Mapping[str, tuple[int, str]]) -> list[MemoryUse]:
    """Stores of one NPU; parts of the same memory, one after the other, count as one."""
    prefix = "" if npu is None else f"npu{npu}."
    out = []
    for name, group in groupby(memories, key=lambda store: store.name):
        parts = list(group)
        rows, program = used.get(prefix + LEVELS.get(name, name), (None, ""))
        areas = [mapped(s.width, s.depth, s.latency, s.style).resources * s.times for s in parts]
        out.append(
            MemoryUse(
                npu=npu,
                name=name,
                depth=parts[0].depth,
                width=sum(s.width * s.times for s in parts),
                used=rows,
                program=program,
                lutram=sum(a.lutram for a in areas),
                bram36=sum(a.bram36 for a in areas),
            )
        )
    return out

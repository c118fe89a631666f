"""Design: a chain of NPUs behind one stream, which is one piece of hardware."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bitloom.golden.integers import make_fields_plain
from bitloom.golden.names import check_name
from bitloom.hls_gen.design.memories.memory_map import memory_map

from .limits import check_parallel
from .npu import Npu
from .reader import Reader
from .widths import MOST_ROWS

MOST_NPUS = 32
"""NPUs of a design at most: the register map has room for 60, and nothing larger was ever tried."""
LEAST_SPILL_WORDS = 2
"""Words of a spill store at the least."""
STREAM_WIDTHS = (32, 64)
"""Widths that the stream between host and design may have."""


@dataclass(frozen=True, kw_only=True)
class Design:
    """One piece of hardware: a chain of NPUs behind one stream. Checked when it is made.

    Frames enter NPU 0. Outlet "ring" of an NPU leads to inlet "ring" of the next one (spec B16, D2). That of the last
    NPU closes the ring, where NPU 0 has such an inlet. Neighbours of one engine have features of the same width;
    between NPUs of different engines a feature is a bit: the sign of what an integer NPU gives, and +1 or -1 to one
    that reads it.

    Raises
    ------
    ValueError
        The name is none, or NPUs don't go together. One line: name, rule and value.
    """

    name: str
    """Name of the design: letters, digits, underscores, dashes and dots (``bitloom.golden.names``)."""
    stream_bits: int = 32
    """Width of the streams from and to the host, 32 or 64."""
    npus: tuple[Npu, ...] = (Npu.of(),)
    """The NPUs, in their order, 1 to MOST_NPUS."""
    spill_words: int = 0
    """Words of the store on the edge that closes a ring (spec D8), >= 2; 0: there is none."""

    @property
    def summary(self) -> str:
        """NPUs, lanes and width of the streams, in a few words."""
        lanes = " + ".join(f"{npu.array.kfp} x {npu.array.kgp}" for npu in self.npus)
        return f"{len(self.npus)} NPU{'s'[: len(self.npus) > 1]} of {lanes} lanes, {self.stream_bits}-bit streams"

    def __post_init__(self) -> None:
        check_name("design", self.name)
        make_fields_plain(self)
        if self.stream_bits not in STREAM_WIDTHS:
            raise ValueError(f"{self.name}: stream_bits must be 32 or 64, got {self.stream_bits!r}")
        if not 1 <= len(self.npus) <= MOST_NPUS:
            raise ValueError(f"{self.name}: a design must have 1..{MOST_NPUS} NPUs, got {len(self.npus)}")
        check_parallel(self.name, self.npus)
        for n, npu in enumerate(self.npus):
            before = self.npus[n - 1]
            host = "host" in npu.ports.inlets
            if host != (n == 0):
                raise ValueError(
                    f"{self.name}: NPU 0 and no other must have inlet host, got {npu.ports.inlets} in NPU {n}"
                )
            connected = "ring" in before.ports.outlets
            if connected and len(self.npus) == 1:
                raise ValueError(
                    f"{self.name}: outlet ring needs a design of several NPUs, got {npu.ports.outlets} in one"
                )
            if ("ring" in npu.ports.inlets) != connected:
                raise ValueError(
                    f"{self.name}: inlet ring must lead on from outlet ring of the NPU before, got {npu.ports.inlets} "
                    f"in NPU {n} after {before.ports.outlets}"
                )
            if connected and npu.engine == before.engine and npu.array.feature_bits != before.array.feature_bits:
                raise ValueError(
                    f"{self.name}: NPU {n} must have the features of the NPU before, {before.engine} of "
                    f"{before.array.feature_bits} bits, got {npu.engine} of {npu.array.feature_bits}"
                )
            if before.skips_onward:
                wanted, has = (each.values("ol", "skip_bits") for each in (before, npu))
                if has != wanted:
                    raise ValueError(
                        f"{self.name}: NPU {n} must have a skip store for steps of the NPU before, ol = {wanted['ol']} "
                        f"and skip_bits = {wanted['skip_bits']}, got {has['ol']} and {has['skip_bits']}"
                    )
            for memory in memory_map(npu):
                if memory.depth > MOST_ROWS:
                    raise ValueError(f"{self.name}: {memory.name} must have <= {MOST_ROWS} rows, got {memory.depth}")
            for name in ("stream_weights", "one_memory"):
                if npu.value(name) != self.npus[0].value(name):
                    raise ValueError(
                        f"{self.name}: {name} must be the same in all NPUs, got {npu.value(name)} in NPU {n}"
                    )
        if not any(npu.ports.sends_results for npu in self.npus):
            raise ValueError(f"{self.name}: an NPU must have outlet host, got none")
        if self.spill_words != 0 and (not self.closed or self.spill_words < LEAST_SPILL_WORDS):
            rule = f"spill_words must be 0, or >= {LEAST_SPILL_WORDS} where the last NPU leads to NPU 0"
            raise ValueError(f"{self.name}: {rule}, got {self.spill_words}")

    @property
    def closed(self) -> bool:
        """Whether the last NPU leads to NPU 0."""
        return "ring" in self.npus[0].ports.inlets

    def changes_engine(self, n: int) -> bool:
        """Whether the NPU after NPU ``n`` has another engine, so that features are bits between them."""
        return self.npus[n].engine != self.npus[(n + 1) % len(self.npus)].engine

    def keeper(self, n: int) -> int:
        """Number of the NPU whose maps wait in the skip store of NPU ``n``."""
        before = (n - 1) % len(self.npus)
        return before if self.npus[before].skips_onward else n

    def next_word_bits(self, n: int) -> int:
        """Width of a word on its way from NPU ``n`` to the next one, which has that one's lanes."""
        after = self.npus[(n + 1) % len(self.npus)]
        return after.array.map_lanes if self.changes_engine(n) else after.array.map_bits

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON data; ``from_dict`` is its inverse."""
        return {
            "name": self.name,
            "stream_bits": self.stream_bits,
            "npus": [npu.to_dict() for npu in self.npus],
            "spill_words": self.spill_words,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Design":
        """Design of the data that ``to_dict`` made.

        Raises
        ------
        ValueError
            An entry is missing or of another type; else as ``Npu.from_dict``, or NPUs don't go together.
        """
        reader = Reader(data, "design")
        return cls(
            name=reader.text("name"),
            stream_bits=reader.number("stream_bits"),
            npus=tuple(Npu.from_dict(npu) for npu in reader.entries("npus")),
            spill_words=reader.number("spill_words"),
        )

"""Ports: where words come into an NPU and where they leave it."""

from dataclasses import dataclass
from typing import ClassVar

from .parts import NpuPart, capacity, choice, number
from .rules import require
from .widths import bits_for

INLETS = ("host", "ring", "loop")
OUTLETS = ("ring", "loop", "host")
"""Ways into and out of an NPU; a field ``source`` or ``target`` counts those that it has, in this order, and then the
skip store (`Npu.sources`, `Npu.targets`)."""
SOURCES = (*INLETS, "skip")
"""Where an NPU's words may come from; register STATE shows a place among these."""
INLET_BITS = bits_for(len(SOURCES) - 1)
"""Width of such a place."""


@dataclass(frozen=True, kw_only=True)
class Binariser(NpuPart):
    """The part that makes inputs of several bits binary on line, by thresholds, in front of a binary NPU."""

    engine: ClassVar[str] = "binary"

    bits: int = number(
        least=2,
        most=9,
        name="binariser_bits",
        option="binariser",
        means="Bits of an input that is made binary on line: 0, or 2 to 9.",
    )
    rows: int = capacity(2, least=2, name="binariser_rows")
    """Words of an input tuple that it has thresholds for, >= 2. Sized."""


@dataclass(frozen=True, kw_only=True)
class Ports(NpuPart):
    """Inlets and outlets of an NPU."""

    inlets: tuple[str, ...] = choice(
        ("host", "loop"), INLETS, means="Where words come from: host (frames), ring (the NPU before), loop (itself)."
    )
    outlets: tuple[str, ...] = choice(
        ("loop", "host"), OUTLETS, means="Where results go: ring (the NPU after), loop (itself), host."
    )
    binariser: Binariser | None = None
    """Behind inlet "host" of a binary NPU, or None."""
    buffer_words: int = number(
        16, power=True, means="Words of kfp features in each of the two buffers in front of an NPU behind another one."
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if ("loop" in self.inlets) != ("loop" in self.outlets):
            raise ValueError(f"npu: loop must be inlet and outlet or neither, got {self.inlets} and {self.outlets}")
        require(self.binariser is None or "host" in self.inlets, "a binariser needs inlet host", self.inlets)

    @property
    def sends_results(self) -> bool:
        """Whether results leave the device here: outlet "host"."""
        return "host" in self.outlets

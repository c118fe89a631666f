"""Ports: where words come into an NPU and where they leave it."""

from dataclasses import dataclass

from .parts import Part, capacity, number, value
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
class Binariser(Part):
    """What makes inputs of several bits binary on line, by thresholds, in front of a binary NPU.

    Attributes
    ----------
    bits
        Bits of an input, 2..9.
    rows
        Words of an input tuple that it has thresholds for, >= 2. Sized.
    """

    bits: int = value(name="binariser_bits")
    rows: int = capacity(2, least=2, name="binariser_rows")

    def __post_init__(self) -> None:
        super().__post_init__()
        ok = type(self.bits) is int and 2 <= self.bits <= 9
        require(ok, "binariser_bits must be 0, or 2..9 for engine binary", self.bits)


@dataclass(frozen=True, kw_only=True)
class Ports(Part):
    """Inlets and outlets of an NPU.

    Attributes
    ----------
    inlets
        Where words come from: "host" (frames), "ring" (the NPU before), "loop" (its own output).
    outlets
        Where results go: "ring" (the NPU after), "loop", "host". Every NPU has one of each at least.
    binariser
        Behind inlet "host" of a binary NPU, or None.
    buffer_words
        Words of kfp features in each of the two buffers of inlet "ring", a power of two.
    """

    inlets: tuple[str, ...] = ("host", "loop")
    outlets: tuple[str, ...] = ("loop", "host")
    binariser: Binariser | None = None
    buffer_words: int = number(16, power=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("inlets", INLETS), ("outlets", OUTLETS)):
            ways = getattr(self, name)
            ok = isinstance(ways, tuple) and bool(ways) and tuple(way for way in known if way in ways) == ways
            require(ok, f"{name} must be some of {', '.join(known)}, in this order", repr(ways))
        if ("loop" in self.inlets) != ("loop" in self.outlets):
            raise ValueError(f"npu: loop must be inlet and outlet or neither, got {self.inlets} and {self.outlets}")
        require(self.binariser is None or "host" in self.inlets, "a binariser needs inlet host", self.inlets)

"""Which engine computes which layer."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Engines:
    """The engine of each layer of a network."""

    names: tuple[str, ...]
    """The engine of each lowered layer, "binary" or "integer"."""
    depthwise: bool = False
    """Whether pool units have weights, so that depthwise convolutions are no layers of their own."""

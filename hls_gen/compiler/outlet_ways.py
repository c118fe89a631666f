"""The outlet by which a map gets from one NPU to another."""

from collections.abc import Sequence

from bitloom.hls_gen.design.folding import Folding


def way(npus: Sequence[Folding], name: str, here: int, there: int) -> str:
    """Find the outlet by which a map gets from an NPU to its reader.

    Parameters
    ----------
    npus
        Foldings of the NPUs, in their order.
    name
        The layer that makes the map, for messages.
    here, there
        Numbers of the NPU that makes the map and of the one that reads it.

    Returns
    -------
    str
        "loop" or "ring".

    Raises
    ------
    ValueError
        No outlet leads there.
    """
    outlets = npus[here].outlets
    if here == there and "loop" in outlets:
        return "loop"
    if len(npus) > 1 and there == (here + 1) % len(npus) and "ring" in outlets:
        return "ring"
    raise ValueError(f"{name}: NPU {here} must have an outlet to NPU {there}, got {', '.join(outlets)}")

"""Who waits for whom: what the STATE registers of a stuck device say (docs/reference/device.md, "Registers").

An NPU waits for room at the one after it while that one doesn't take its word, and for words of the one before it while
none has come. Where these waits close a circle nothing will move again: the buffers between the NPUs, and the spill
store of the closing edge, are too small for the network (spec D8).
"""

from collections.abc import Mapping

from bitloom.hls_gen.design.folding import INLETS

RING = INLETS.index("ring")
"""Field INLET while words of the NPU before are taken."""


def waits(state: Mapping[str, int]) -> dict[int, tuple[int, str]]:
    """NPU -> (NPU that it waits for, for what), of ``Registers.state``: "npu0.RING_BLOCKED" -> 1 and so on."""
    count = sum(1 for name in state if name.endswith(".INLET"))
    found: dict[int, tuple[int, str]] = {}
    for n in range(count):
        fields = {name: state[f"npu{n}.{name}"] for name in ("RING_BLOCKED", "WAITS_INPUT", "INLET", "RING_VALID")}
        if fields["RING_BLOCKED"]:
            found[n] = ((n + 1) % count, "room at")
        elif fields["WAITS_INPUT"] and fields["INLET"] == RING and not fields["RING_VALID"]:
            found[n] = ((n - 1) % count, "words of")
    return found


def circle(state: Mapping[str, int]) -> list[int]:
    """NPUs that wait for one another in a circle, from the lowest on; none if there is no circle."""
    found = waits(state)
    for start in found:
        seen, n = [start], found[start][0]
        while n in found and n not in seen:
            seen.append(n)
            n = found[n][0]
        if n == start:
            return seen
    return []


def explain(state: Mapping[str, int]) -> str:
    """The circle in words, or nothing."""
    found = waits(state)
    links = [f"NPU {n} waits for {found[n][1]} NPU {found[n][0]}" for n in circle(state)]
    return f"a circle of waits: {', '.join(links)}" if links else ""

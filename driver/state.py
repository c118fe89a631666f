"""Reading of a stuck device's STATE registers (docs/reference/device.md, "Registers"): which NPU waits for which.

An NPU waits for room at the next NPU while that NPU doesn't take its word, and for words of the NPU before it while
none has come. Where these waits close a circle nothing will move again: the buffers between the NPUs, and the spill
store of the closing edge, are too small for the network (spec D8).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bitloom.hls_gen.design.fields import Field
from bitloom.hls_gen.design.ports import INLETS

NAME = re.compile(r"NPU(\d+)_STATE")
RING = INLETS.index("ring")
"""Field INLET while words of the NPU before are taken."""


def npu_state(registers: Sequence[Mapping[str, Any]], dump: Mapping[str, int]) -> dict[str, int]:
    """Fields of the STATE registers of a dump.

    Parameters
    ----------
    registers
        Entries of the manifest's list of registers.
    dump
        Name of a register -> its value.

    Returns
    -------
    dict
        "npu0.field" -> value; "npu0.state" -> value of a register without fields.
    """
    state: dict[str, int] = {}
    for register in registers:
        match = NAME.fullmatch(register["name"])
        if match and register["name"] in dump:
            npu = f"npu{match.group(1)}"
            value = dump[register["name"]]
            fields = [Field(**f) for f in register.get("fields", ())]
            state |= {f"{npu}.{field.name}": field.of(value) for field in fields} or {f"{npu}.state": value}
    return state


def waits(state: Mapping[str, int]) -> dict[int, tuple[int, str]]:
    """NPU -> (the NPU that it waits for, what it waits for), from what ``npu_state`` gives."""
    count = sum(1 for name in state if name.endswith(".INLET"))
    edges: dict[int, tuple[int, str]] = {}
    for n in range(count):
        fields = {name: state[f"npu{n}.{name}"] for name in ("RING_BLOCKED", "WAITS_INPUT", "INLET", "RING_VALID")}
        if fields["RING_BLOCKED"]:
            edges[n] = ((n + 1) % count, "room at")
        elif fields["WAITS_INPUT"] and fields["INLET"] == RING and not fields["RING_VALID"]:
            edges[n] = ((n - 1) % count, "words of")
    return edges


def circle(state: Mapping[str, int]) -> list[int]:
    """NPUs that wait for one another in a circle, from the lowest on; none if there is no circle."""
    edges = waits(state)
    for start in edges:
        seen = [start]
        n = edges[start][0]
        while n in edges and n not in seen:
            seen.append(n)
            n = edges[n][0]
        if n == start:
            return seen
    return []


def explain(state: Mapping[str, int]) -> str:
    """The circle in words, or nothing."""
    edges = waits(state)
    links = [f"NPU {n} waits for {edges[n][1]} NPU {edges[n][0]}" for n in circle(state)]
    return f"a circle of waits: {', '.join(links)}" if links else ""

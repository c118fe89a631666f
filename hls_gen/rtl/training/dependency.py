"""The dependency unit: what each unit is at, and whether the instruction at hand must wait for it (C23).

Golden twin: golden/discrete/machine/dependency.py. A unit has one instruction at a time, and its entry here says what
it reads and writes of the neuron cache. What is in the slaves needs no look, since all that touches it needs the array.
"""

from dataclasses import dataclass

from bitloom.golden.discrete.machine.parameters import ADDRESS_BITS
from bitloom.golden.discrete.machine.units import UNITS, VECTOR_UNIT
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, all_of, any_of, resize

from .decode import END_BITS, Decoded


@dataclass(frozen=True)
class Dependency:
    """Signals of the unit: whether the instruction at hand must wait for others, and whether any is under way."""

    blocked: Signal
    """Register: it must wait. It has looked at the instruction when that has been at hand for two cycles."""
    working: Signal
    """Wire: some unit is at work."""


def dependency(b: Block, i: Decoded, issue: Signal, done: dict[str, Signal]) -> Dependency:
    """The unit inside the controller.

    Parameters
    ----------
    b : Block
    i : Decoded
        The instruction at hand.
    issue : Signal
        The instruction begins, in the units that it needs.
    done : dict of str to Signal
        Pulse of each unit of `UNITS`: its instruction is finished.
    """
    b.comment("Dependencies.")
    c = i.classes
    blocks = []
    working = []
    for unit in UNITS:
        needed = c[f"on_{unit}"]
        busy = b.reg(f"{unit}_busy")
        b.on(done[unit], (busy, 0))
        b.on(issue & needed, (busy, 1))
        entry = _entry(b, i, unit, issue & needed)
        blocks.append(all_of(busy, any_of(needed, _hazard(b, i, unit, entry))))
        working.append(busy)
    blocked = b.reg("blocked", init=1)
    b.on(None, (blocked, any_of(*blocks)))
    return Dependency(blocked, b.wire("working", 1, any_of(*working)))


def _entry(b: Block, i: Decoded, unit: str, take: Signal) -> dict[str, Signal]:
    """Registers: what the unit's instruction reads and writes."""
    values = {"draws": (i.classes["draws"], 1)}
    for name, used in (("a", "reads_a"), ("b", "reads_b"), ("d", "writes_d")):
        values |= {used: (i.classes[used], 1), name: (i.fields[name], ADDRESS_BITS)}
        values[f"end_{name}"] = (i.ends[name], END_BITS)
    entry = {}
    for name, (signal, w) in values.items():
        if unit != VECTOR_UNIT and name in ("reads_b", "b", "end_b"):
            continue  # only the master's own arithmetic has two operands
        entry[name] = b.reg(f"{unit}_{name}", w, init=None)
        b.on(take, (entry[name], signal))
    return entry


def _hazard(b: Block, i: Decoded, unit: str, entry: dict[str, Signal]) -> Signal:
    """Wire: read after write, write after write, write after read, or both draw numbers."""
    now = {**i.fields, **i.classes, **{f"end_{name}": end for name, end in i.ends.items()}}

    def meet(operand: str, earlier: str) -> Signal:
        before = resize(now[operand], END_BITS) < entry[f"end_{earlier}"]
        return all_of(before, resize(entry[earlier], END_BITS) < now[f"end_{operand}"])

    uses = {"a": "reads_a", "b": "reads_b", "d": "writes_d"}
    pairs = [("a", "d"), ("b", "d"), ("d", "d"), ("d", "a"), ("d", "b")]
    hazards = [
        all_of(now[uses[operand]], entry[uses[earlier]], meet(operand, earlier))
        for operand, earlier in pairs
        if earlier in entry
    ]
    return b.wire(f"hazard_{unit}", 1, any_of(*hazards, all_of(entry["draws"], now["draws"])))

"""A step of OL results: what an activation takes, what goes with it through the first stage, and how features leave a
unit whose stages make them.

step --> first stage, with StepMarks --> further stages --> skid register (`give`) --> features
"""

from dataclasses import dataclass

from bitloom.hls_gen.design.memories.results import addition_marks, number_bits
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, choose, side_by_side, width
from bitloom.hls_gen.rtl.primitives.memory import Library
from bitloom.hls_gen.rtl.primitives.pipeline import Ready, takes
from bitloom.hls_gen.rtl.primitives.skid import skidded
from bitloom.hls_gen.rtl.primitives.stream import Stream


@dataclass(frozen=True)
class Step:
    """The step at hand."""

    free: Signal
    """The activation takes a step in this cycle if there is one: for the registers that do. It comes late."""
    free_before: Signal
    """The same for logic in front of these (`Takes`). The activation assigns this wire and ``free``."""
    busy: Signal
    """There is a step."""
    sums: list[Signal]
    """OL accumulators."""
    row: dict[str, Signal]
    """Fields of the row of thresholds or scales that belongs to them."""
    layer: dict[str, Signal]
    """Fields of the layer's row of memory ``results``."""
    tuple_last: Signal
    map_last: Signal
    """tuple_last, map_last: the tuple, the map ends with the step."""
    number: Signal | None = None
    """Number of the layer, for the addition; None where there is none behind it."""
    to_outlets: bool = False
    """Values go to the outlets, which look at the step's ``map_last`` and at where its map goes (fields of
    ``layer``)."""


@dataclass(frozen=True)
class StepMarks:
    """Marks that go with the values of a step in the first stage of its activation, a register each."""

    tuple_last: Signal
    """The tuple ends with the step."""
    side: Signal | None
    """Where values go to the outlets, ``map_last`` and where the map goes; above it whether the map has a pool, where
    others pass the pool unit by; and above that, where there is an addition, the layer's number and what it says to the
    addition with each step. None where there is nothing to be said."""
    raw: Signal | None
    """The values leave as they are; None in an NPU without outlet "host"."""
    map_last: Signal | None
    """The map ends with the raw values."""

    def raw_ports(self, b: Block, npu: Npu, valid: Signal, values: list[Signal]) -> Signal | None:
        """Make the ports ``raw_*`` for the values where they may leave; the result is ``raw_ready``, None without."""
        if self.raw is None:
            return None
        b.output("raw_valid", 1, valid & self.raw)
        b.output("raw_data", npu.results.ol * npu.array.acc_bits, side_by_side(values))
        b.output("raw_last", 1, self.map_last)
        return b.input("raw_ready")

    def go_on(self, valid: Signal) -> Signal:
        """Whether values go on to the activation: those that are ``valid`` and have not left already."""
        return valid if self.raw is None else valid & ~self.raw

    def assign_free(self, b: Block, step: Step, valid: Signal, ready: Ready, raw_ready: Signal | None) -> None:
        """Assign whether the values' registers take a step: ``valid`` says whether there are values, ``ready`` whether
        they are taken; raw ones are by ``raw_ready``, which `raw_ports` gives."""
        if self.raw is not None:
            ready = Ready(choose(self.raw, raw_ready, ready.now, 1))
        taken = takes(b, "value", valid, step.busy, ready)
        step.free.assign(taken.stage)
        step.free_before.assign(taken.before.now)


def marks_of(b: Block, npu: Npu, step: Step) -> StepMarks:
    """Registers that take what goes with a step as it leaves."""

    def held(name: str, signal: Signal, w: int = 1) -> Signal:
        register = b.reg(f"value_{name}", w, init=None)
        b.on(step.free, (register, signal))
        return register

    raw = "raw" in step.layer
    map_last = held("map_last", step.map_last) if raw or step.to_outlets else None
    sides = []
    if step.to_outlets:
        sides = [map_last, *[held(name, step.layer[name], w) for name, w in npu.way_fields]]
    if step.to_outlets and "pooled" in step.layer:
        sides.append(held("pooled", step.layer["pooled"]))
    if step.number is not None:
        sides.append(held("number", step.number, number_bits(npu)))
        sides += [held(name, step.layer[name], w) for name, w in addition_marks(npu)]
    side = side_by_side(sides) if sides else None
    return StepMarks(
        held("tuple_last", step.tuple_last),
        side,
        held("raw", step.layer["raw"]) if raw else None,
        map_last if raw else None,
    )


def ready_ahead(b: Block, now: str = "step_ready_unused") -> Ready:
    """Whether the skid register behind a unit's stages takes what leaves them: in this cycle, and in the next one, at
    which the stages look. `give` drives both wires. ``now``: name of the wire of this cycle, at which most units don't
    look."""
    return Ready(b.wire(now), b.wire("step_ready_next"))


def give(b: Block, library: Library, features: Stream, ready: Ready) -> None:
    """The ports ``features_*`` of a unit, behind a skid register.

    ``features_ready`` comes late in its cycle, and many registers of the unit's stages would wait for it. Features that
    aren't taken wait in the skid register instead, whose ready is a register.

    Parameters
    ----------
    features : Stream
        Features that leave the stages; their ready is ``ready.now``.
    ready : Ready
        Whether the skid register takes it: what `ready_ahead` gave, or a wire alone where the stages don't look ahead.
    """
    features = skidded(b, library, "features_skid", features, ready_next=ready.following)
    features.ready.assign(b.input("features_ready"))
    for part, signal in features.parts():
        if part != "ready":
            b.output(f"features_{part}", width(signal), signal)

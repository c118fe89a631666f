"""What the results unit hands to its activation: one step of OL results."""

from dataclasses import dataclass

from veriloggen import Cat

from .rtl import Block, Signal


@dataclass(frozen=True)
class Step:
    """The step at hand; the activation assigns ``go`` (it takes the step now), at most while ``busy``.

    sums : OL accumulators.  row : fields of the row of thresholds or scales that belongs to them.
    layer : fields of the layer's row of memory ``results``.  tuple_last, map_last : the tuple, the map ends with it.
    """

    go: Signal
    busy: Signal
    sums: list[Signal]
    row: dict[str, Signal]
    layer: dict[str, Signal]
    tuple_last: Signal
    map_last: Signal


def flags(b: Block, step: Step) -> dict[str, Signal]:
    """Registers that go with the values of a step: tuple_last, map_last, raw."""
    side = {name: b.reg(f"value_{name}", init=None) for name in ("tuple_last", "map_last", "raw")}
    b.on(
        step.go,
        (side["tuple_last"], step.tuple_last),
        (side["map_last"], step.map_last),
        (side["raw"], step.layer["raw"]),
    )
    return side


def join(parts: list[Signal]) -> Signal:
    """Lanes side by side, lane 0 low."""
    return Cat(*reversed(parts)) if len(parts) > 1 else parts[0]

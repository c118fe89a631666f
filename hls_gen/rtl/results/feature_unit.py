"""How a feature unit (hls_gen/design/results.py) stands behind a requantisation: a module for each lane, whose ports
have the numbers that the unit declares. results.py lists the modules.

    feature ------------------------------------------+--> module of the lane --> result
    mark, numbers of the layer, of the lane's channel -'
"""

from collections.abc import Callable, Sequence

from bitloom.hls_gen.design import timing
from bitloom.hls_gen.design.memories.results import fields_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.results import FeatureUnit, UnitTable
from bitloom.hls_gen.design.widths import bits_for
from bitloom.hls_gen.rtl.primitives.block import Block, Signal, bits, width
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.pipeline import Pipeline

Lane = Callable[[Library, Npu], Block]
"""``lane(library, npu)`` is the module of a lane. Its ports:

- ``move``: registers take what stands in front of them;
- ``feature``, and ``result`` as many moves later as the unit has stages;
- the unit's mark, numbers of the layer and of the lane's channel, by field: in time with what the last stage takes;
- the load bus of its memory, and ``table_number`` in time with ``feature``, where several tables lie in it.
"""
MakeField = Callable[[str], Signal]
"""``make_field(name)`` makes a register with a field of the layer's row of memory ``results``, or of the step's row of
memory ``scales``, in time with what enters the stages: ``start`` of the layer, ``offset_2`` of lane 2's channel."""
PlaceUnit = Callable[[Pipeline, Sequence[Signal], MakeField], list[Signal]]
"""``place_unit(pipe, features, make_field)`` places a feature unit behind ``features``, and gives the features that it
makes, in the last of the stages."""


def unit_placer(unit: FeatureUnit, lane: Lane, b: Block, library: Library, npu: Npu, bus: LoadBus) -> PlaceUnit:
    """Function that places a feature unit in ``b``, with a module for each lane; ``bus`` fills its memory."""

    def place(pipe: Pipeline, features: Sequence[Signal], make_field: MakeField) -> list[Signal]:
        block = library.get(lane, library, npu)
        stages = timing.activation_stages(npu)
        first = stages.index(unit.stages[0])
        last = stages[first + len(unit.stages) - 2]  # in front of the unit's last stage
        values = {name: make_field(name) for name in (unit.mark, *(name for name, _ in fields_of(npu, unit.of_layer)))}
        base = make_field(unit.table.base) if unit.table else None
        b.comment(unit.means)
        number = _table_number(b, unit.table, base) if unit.table else None
        ports = {"move": pipe.move, **{name: pipe.late(name, value, last)[last] for name, value in values.items()}}
        if unit.table and number is not None:
            before = stages[first - 1]
            ports["table_number"] = pipe.late(unit.table.number, number, before)[before]
        results = []
        for k, feature in enumerate(features):
            of_channel = {name: f"{name}_{k}" for name, _ in fields_of(npu, unit.of_channel)}
            numbers = {name: pipe.late(own, make_field(own), last)[last] for name, own in of_channel.items()}
            result = b.wire(f"{unit.stages[-1]}_{k}", width(feature))
            b.instance(
                block, f"{unit.layer.kind}_{k}", **bus.to(block), feature=feature, result=result, **ports, **numbers
            )
            results.append(result)
        return results

    return place


def _table_number(b: Block, table: UnitTable, base: Signal) -> Signal | None:
    """The number of the layer's table, whose first row is ``base``; None where only one lies in the memory."""
    low = bits_for(table.rows - 1)
    b.wire(f"{table.base}_low_unused", low, bits(base, 0, low))
    return bits(base, low, width(base) - low) if width(base) > low else None

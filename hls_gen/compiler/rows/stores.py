"""Fields of the stores: whether a map goes to the skip store, and what takes it from there."""

from bitloom.hls_gen.compiler.planned_layer import PlannedLayer


def fork_fields(planned: PlannedLayer) -> dict[str, int]:
    """Whether the words of a layer's map go to the skip store as well, and whether they wait for an addition there, by
    fields of the unit that gives the map its last form. None in NPUs that fork no maps."""
    if not planned.npu.forks_maps:
        return {}
    return {"forks": int(planned.way.forks), "for_addition": int(planned.way.adder is not None)}

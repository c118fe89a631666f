"""Marks of a layer that only pass through the pool unit's sequencer: from the layer's row, with each tap and each beat,
to the pool unit and what stands behind it."""

from dataclasses import make_dataclass
from typing import Annotated

from bitloom.hls_gen.design.pool_unit import POOLS, PRODUCTS
from bitloom.hls_gen.rtl.primitives.block import Signal

from .bundle import Bundle, Meaning

MEANS = {
    "target": "number of the outlet that the map goes to",
    "forks": "the map goes to the skip store as well",
    "for_addition": "in the skip store the map waits for the addition",
    **{reduction.mark: reduction.means for reduction in (*POOLS, PRODUCTS) if reduction.mark},
    "last_piece": "number of the last step in a tuple's last word, from 0 on",
    "shares_lanes": "lanes of a word are shared by lines of the kernel",
}
"""The marks, by the names of the fields of memory ``pool_layers``: where a map goes, what the pool unit computes, and
with which step a tuple ends."""

PoolMarks = make_dataclass(
    "PoolMarks",
    [(name, Annotated[Signal | None, Meaning(means)], None) for name, means in MEANS.items()],
    bases=(Bundle,),
    namespace={"of_row": True},
    frozen=True,
    kw_only=True,
)
"""The bundle of these marks, as wide as the fields. None of them is there in the array's sequencer."""

"""Trips: which layers an engine computes behind the sums of a weighted layer, and in which order.

    sums --> activation --> lookup --> addition --> pool

A trip is a list of places. In each of them one layer stands, of a kind that the place names, or, where the place may be
empty, none. Who asks what may follow what reads it from here: the rules of engines (engine_rules.py), copies for layers
that can't follow (tail_copies.py), additions and what they follow (segments.py), depthwise convolutions behind a trip
(depthwise.py), what is left to the host (host_tail.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from bitloom.golden.layer import Layer
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.pool import MaxPool, MinPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.layers.threshold import Threshold
from bitloom.hls_gen.design.pool_unit import POOLS
from bitloom.hls_gen.design.results import FEATURE_UNITS, PAIRS

Kinds = tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """A place of a trip."""

    layers: tuple[type[Layer], ...]
    """Layers of which one stands there."""
    empty: bool
    """Whether there may be none."""


def needed(*layers: type[Layer]) -> Place:
    """A place in which one of these layers stands."""
    return Place(layers, empty=False)


def optional(*layers: type[Layer]) -> Place:
    """A place in which one of these layers stands, or none."""
    return Place(layers, empty=True)


def tails_of(order: Sequence[Place]) -> list[Kinds]:
    """Kinds of the layers that may stand in such places, one behind the other."""
    tails: list[Kinds] = [()]
    for place in order:
        longer = [(*tail, layer.kind) for tail in tails for layer in place.layers]
        tails = [*tails, *longer] if place.empty else longer
    return tails


@dataclass(frozen=True, kw_only=True)
class Trip:
    """A rule of an engine: which layers may follow the sums of a weighted layer, in which order."""

    orders: tuple[tuple[Place, ...], ...]
    """The places; several orders where the engine takes any of them. One without places: sums may be the result."""
    rule: str
    """The same in words, for messages: "what follows must be ..."."""

    @cached_property
    def tails(self) -> tuple[Kinds, ...]:
        """Kinds of the layers behind the sums, by everything that the places allow."""
        return tuple(tail for order in self.orders for tail in tails_of(order))

    @cached_property
    def layers(self) -> tuple[type[Layer], ...]:
        """All layers that have a place."""
        return tuple(dict.fromkeys(layer for order in self.orders for place in order for layer in place.layers))

    @property
    def feature_kinds(self) -> Kinds:
        """Kinds of the layers that make features."""
        return tuple(layer.kind for layer in self.layers if issubclass(layer, FeatureLayer))


FEATURES = (needed(Requantise), *(optional(unit.layer) for unit in FEATURE_UNITS))
"""How a trip of the integer engine begins that makes features of sums."""
PERHAPS = "".join(f"perhaps {unit.layer.kind}, " for unit in FEATURE_UNITS)
"""The places behind the requantisation in words."""
POOL_OF_FEATURES = (optional(*(pool.layer for pool in POOLS if "integer" in pool.engines)),)
"""How such a trip ends."""

BINARY = Trip(
    orders=(
        (),
        (needed(Threshold), optional(MaxPool, MinPool)),
        (needed(MaxPool, MinPool), needed(Threshold)),
    ),
    rule="nothing, threshold, or threshold and a max_pool or min_pool in either order",
)
"""On the binary engine."""
OR = Trip(orders=((optional(MaxPool),),), rule="nothing or max_pool")
"""On the binary engine where it accumulates by OR: what it gives are bits."""
SIGNS = Trip(
    orders=((needed(Requantise), optional(Add), needed(Threshold), optional(MaxPool, MinPool)),),
    rule="requantise, perhaps add, threshold, and perhaps a max_pool or min_pool",
)
"""On the binary engine where it requantises."""
INTEGER = Trip(
    orders=((), (*FEATURES, *POOL_OF_FEATURES)),
    rule=f"nothing, or requantise, {PERHAPS}and perhaps a pool",
)
"""On the integer engine."""
INTEGER_ADD = Trip(
    orders=((*FEATURES, needed(*PAIRS), *POOL_OF_FEATURES),),
    rule=f"requantise, {PERHAPS}{' or '.join(pair.kind for pair in PAIRS)}, and a pool at most",
)
"""On the integer engine where two maps become one."""
BITS = Trip(
    orders=((needed(Threshold), optional(MaxPool)), (needed(MaxPool), needed(Threshold))),
    rule="threshold, threshold and max_pool, or max_pool and threshold",
)
"""On the integer engine where the binary engine reads the result."""
BEFORE_DEPTHWISE = tails_of((*FEATURES, optional(*PAIRS)))
"""Layers that may stand behind the sums in front of a depthwise convolution which the pool unit computes in the same
trip, as tails."""
DEPTHWISE = tails_of((needed(Requantise),))
"""Tails behind the sums of such a convolution: the pool unit has one scale behind its sums."""
BEFORE_ADD = {
    before
    for trip in (SIGNS, INTEGER_ADD)
    for tail in trip.tails
    for before, kind in pairwise(tail)
    if kind in {pair.kind for pair in PAIRS}
}
"""Kinds of the layers that may stand right before an addition."""

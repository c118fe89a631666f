"""All proofs, in the order in which the page has them."""

from ..engine import Proof
from . import counters, primitives, registers, results, streams

PROOFS: tuple[Proof, ...] = (
    *primitives.PROOFS,
    *streams.PROOFS,
    *counters.PROOFS,
    *results.PROOFS,
    *registers.PROOFS,
)

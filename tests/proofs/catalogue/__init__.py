"""All proofs, in the order in which the page has them."""

from ..engine import Proof
from . import primitives

PROOFS: tuple[Proof, ...] = (*primitives.PROOFS,)

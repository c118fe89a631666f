"""All proofs, in the order in which the page has them."""

from tests.proofs.engine import Proof

from . import counters, dma, former, loader, packetizer, primitives, registers, results, sequencer, streams

PROOFS: tuple[Proof, ...] = (
    *primitives.PROOFS,
    *streams.PROOFS,
    *former.PROOFS,
    *counters.PROOFS,
    *results.PROOFS,
    *sequencer.PROOFS,
    *registers.PROOFS,
    *loader.PROOFS,
    *dma.PROOFS,
    *packetizer.PROOFS,
)

"""Folding to design: memories as large as the given networks need."""

from collections.abc import Sequence
from dataclasses import replace

from driver.plan import Plan, Work, plan
from golden.network import Model
from hls_gen.design import Design, Npu, least_acc_bits

GEOMETRY = ("kind", "feature_bits", "weight_bits", "kfp", "kgp", "pfp", "ol", "planes", "shift_bits", "accumulators")
POWERS_OF_TWO = ("tuple_words", "pool_words")


def fit(
    name: str,
    models: Sequence[Model],
    folding: Npu,
    *,
    stream_bits: int = 32,
    order: str = "auto",
    work: Work = "output",
) -> Design:
    """A design with the folding of ``folding`` (kfp, kgp, pfp, ol, planes, shift_bits) that runs every one of
    ``models``.

    Memory depths and the accumulator's width are made as large as the networks need; those of ``folding`` count for
    nothing. ValueError where the engine can't compute a network.
    """
    if not models:
        raise ValueError(f"{name}: a design must be made for at least one network, got none")
    geometry = {k: getattr(folding, k) for k in GEOMETRY}
    plans: list[Plan] = [plan(m, geometry, order, work) for m in models]
    depth = {key: max(2, *(p.depths()[key] for p in plans)) for key in plans[0].depths()}
    for key in POWERS_OF_TWO:
        depth[key] = 1 << (depth[key] - 1).bit_length()
    needed = max(p.acc_bits() for p in plans)
    acc_bits = max(needed, least_acc_bits(folding))
    return Design(name=name, stream_bits=stream_bits, npus=(replace(folding, acc_bits=acc_bits, **depth),))

"""Folding to design: memories as large as the given networks need."""

from collections.abc import Sequence
from dataclasses import replace

from driver.plan import Plan, Work, plan
from golden.network import Model
from hls_gen.design import Design, Npu, least_acc_bits

GEOMETRY = (
    "kind",
    "feature_bits",
    "weight_bits",
    "kfp",
    "kgp",
    "pfp",
    "ol",
    "planes",
    "shift_bits",
    "accumulate",
    "accumulators",
    "raster",
    "binariser_bits",
)
POWERS_OF_TWO = ("tuple_words", "pool_words")


def fit(
    name: str,
    models: Sequence[Model],
    folding: Npu,
    *,
    stream_bits: int = 32,
    order: str = "auto",
    work: Work = "output",
    stream_weights: bool = False,
) -> Design:
    """A design with the folding of ``folding`` (kfp, kgp, pfp, ol, planes, shift_bits, accumulate) that runs every one
    of ``models``.

    Memory depths, the accumulator's width and ``collect``, where it is not 0, are made as large as the networks need;
    those of ``folding`` count for nothing. stream_weights : kernel rows for two layers; what doesn't fit comes down the
    stream with every frame.
    ValueError where the engine can't compute a network.
    """
    if not models:
        raise ValueError(f"{name}: a design must be made for at least one network, got none")
    geometry = {k: getattr(folding, k) for k in GEOMETRY}
    plans: list[Plan] = [plan(m, geometry, order, work) for m in models]
    needs = [_streamed(p, folding) if stream_weights else p.depths() for p in plans]
    depth = {key: max(2, *(n[key] for n in needs)) for key in needs[0]}
    depth["tuple_words"] = max(depth["tuple_words"], *(p.conv.steady_words for p in plans))
    for key in POWERS_OF_TWO:
        depth[key] = 1 << (depth[key] - 1).bit_length()
    if folding.collect:
        folding = replace(folding, collect=max(p.window_lanes for p in plans), acc_bits=32)
    needed = max(p.acc_bits() for p in plans)
    acc_bits = max(needed, least_acc_bits(folding))
    npu = replace(folding, acc_bits=acc_bits, stream_weights=stream_weights, **depth)
    return Design(name=name, stream_bits=stream_bits, npus=(npu,))


def _streamed(made: Plan, folding: Npu) -> dict[str, int]:
    """Depths where weights are streamed: kernel rows for twice the largest layer, or for all if these are fewer.

    The tuple memory grows to hold a whole frame, if that takes fewer bits than the kernel memory saves: what follows a
    frame in the stream then needn't wait until its first layer has used it.
    """
    need = made.depths()
    two = min(need["kernel_rows"], 2 * max(len(rows) for rows in made.kernels))
    saved = (need["kernel_rows"] - two) * (folding.kgp * folding.kfp * folding.weight_bits + folding.code_bits)
    tuples = max(need["tuple_words"], len(made.input_words))
    if (tuples - need["tuple_words"]) * folding.word_bits < saved:
        need["tuple_words"] = tuples
    return {**need, "kernel_rows": two}

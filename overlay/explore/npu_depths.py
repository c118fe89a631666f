"""Sizes of the memories of an NPU of the search, as sizing will find them or nearly so."""

from collections.abc import Mapping, Sequence

from bitloom.hls_gen.compiler.fitted import LEAST
from bitloom.hls_gen.compiler.margins import roomy_add_widths
from bitloom.hls_gen.design.capacities import FORMER
from bitloom.hls_gen.design.npu import Npu

from .layer_demand import LayerDemand
from .sharing import shared_lanes

ROOM = 2
"""Tuples that a tuple memory has room for beyond those it must hold."""
LARGEST = (
    "tuple_words",
    "pool_words",
    "pool_tuple_words",
    "acc_bits",
    "multiplier_bits",
    "bias_fraction_bits",
    "windows",
    "window_taps",
    "groups",
    "levels",
    "input_words",
    "half_even",
    "round_twice",
    "add_factor_bits",
    "add_bias_bits",
    "skip_bits",
    "joined_words",
    "tuple_parts",
    *FORMER,
)
"""Sizes of an NPU that are those of its largest layer."""
TOGETHER = (
    "taps",
    "olds",
    "jumps",
    "aheads",
    "kernel_rows",
    "threshold_rows",
    "pool_taps",
    "pool_olds",
    "pool_jumps",
    "pool_kernel_rows",
    "pool_scale_rows",
)
"""Sizes of an NPU that add up over its layers."""
Own = tuple[int, ...]
"""Numbers of an NPU's layers, rising."""


def npu_depths(layers: Sequence[LayerDemand], own: Own, npu: Npu, *, streamed: bool) -> dict[str, int]:
    """Sizes of the memories that some layers need together.

    Parameters
    ----------
    layers
        All layers.
    own
        Numbers of those that the NPU computes.
    npu
        Its folding.
    streamed
        Whether weights come down the stream.

    Returns
    -------
    dict of str to int
        By the NPU's parameter.
    """
    mine = [layers[i].seen_by(npu) for i in own]
    first = layers[own[0]].reads is None
    each = [layer.depths(npu, "output_stationary", ROOM) for layer in mine]
    found = {key: max(LEAST.get(key, 2), *(d.get(key, 0) for d in each)) for key in LARGEST}
    found |= {key: max(LEAST.get(key, 2), sum(d.get(key, 0) for d in each)) for key in TOGETHER}
    found["acc_bits"] = max(found["acc_bits"], npu.pool_sum_bits if npu.depthwise else 0)
    if npu.skip_words:
        factors, bias, values = (found[key] for key in ("add_factor_bits", "add_bias_bits", "skip_bits"))
        in_luts = "addition" in npu.lut_products
        found |= roomy_add_widths(factors, bias, values or npu.feature_bits, in_luts=in_luts)
        found |= {"skip_words": max(2, _waiting(layers, own, npu, "taker") + 1), "aheads": max(2, found["aheads"])}
    if "loop" in npu.inlets:
        found["map_words"] = max(2, _waiting(layers, own, npu, "reader"))
    if streamed:
        found |= _streamed(npu, found, [d["kernel_rows"] for d in each], each[0]["input_words"] if first else 0)
    return found | {"layers": max(2, len(own))} | shared_lanes(mine, npu, first=first)


def _waiting(layers: Sequence[LayerDemand], own: Own, npu: Npu, who: str) -> int:
    """Most words of maps that lie in a store at a time, if each is there from when its layer begins until the layer
    ends that takes it; ``who`` is the attribute of `LayerDemand` that tells it."""
    steps = npu.keeps_steps and who == "taker"
    makers = range(len(layers)) if steps else own  # integers may wait on the NPU after
    takers = {i: getattr(layers[i], who) for i in makers if getattr(layers[i], who) in own}
    words = {}
    for i, last in takers.items():
        reads = layers[last].reads == i and not layers[last].parts
        each = layers[last].words(npu) if reads else -(-layers[i].kernels * layers[i].levels // npu.kfp)
        words[i] = layers[i].output_windows * each
        if steps:  # integers wait as they leave, bits behind the pool
            words[i] = layers[i].windows * layers[i].steps(npu)
    times = own if not steps else range(len(layers))
    return max((sum(words[i] for i, last in takers.items() if i <= at < last) for at in times), default=0)


def _streamed(npu: Npu, found: Mapping[str, int], rows: Sequence[int], frame_words: int) -> dict[str, int]:
    """What differs in ``found`` where weights are streamed, by the rules of ``hls_gen/compiler/sizing.py``: rows for
    twice the largest layer, and tuples for a whole frame if these take fewer bits than the rows save."""
    two = min(found["kernel_rows"], 2 * max(rows))
    saved = (found["kernel_rows"] - two) * npu.kernel_store.width
    tuples = max(found["tuple_words"], 1 << max(1, frame_words - 1).bit_length())
    worth = (tuples - found["tuple_words"]) * npu.word_bits < saved
    return {"kernel_rows": two, "tuple_words": tuples if worth else found["tuple_words"]}

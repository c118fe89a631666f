"""Row of the loader: the one row of memory ``network``."""

from collections.abc import Sequence

from bitloom.hls_gen.compiler.plan import Plan
from bitloom.hls_gen.design.gearbox import gear

from .layer_rows import LayerRows
from .window_former import former_values


def network_row(plan: Plan, n: int, rows: Sequence[LayerRows], stream_bits: int, frame_beats: int) -> dict[str, int]:
    """The network's row for the loader of NPU ``n``, without weights that come down the stream.

    Parameters
    ----------
    plan
        The network's plan.
    n
        Number of the NPU.
    rows
        Rows of its layers.
    stream_bits
        Width of the stream.
    frame_beats
        Stream words of a frame.

    Returns
    -------
    dict
        Fields of memory ``network``.
    """
    npu = plan.foldings[n]
    fields = {"last_layer": _last(rows, "layers")}
    if npu.pool_unit:
        fields["last_pool_layer"] = _last(rows, "pool_layers")
    if n == 0:
        words = plan.frame.frame_layout.words
        together = gear(npu.host_word_bits, stream_bits).together
        fields |= {"frame_words": words, "frame_beats": frame_beats, "frame_last_piece": (words - 1) % together}
        if npu.loader.outputs > 1:
            fields["last_output"] = len(plan.outputs) - 1
        if len(plan.frame.limits):
            fields["binariser_last"] = len(plan.frame.limits) - 1
    fields |= former_values(plan.formed(n), npu)
    if "ring" in npu.ports.inlets:
        fields["last_chunk"] = _last(rows, "chunks")
    return fields


def _last(rows: Sequence[LayerRows], memory: str) -> int:
    """Number of the last layer that has a row in a memory; 0 where none has."""
    return max(sum(layer.count(memory) for layer in rows) - 1, 0)

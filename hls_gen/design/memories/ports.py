"""Memories of the ports: chunks at inlet "ring" and thresholds of the binariser."""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for

from .memory import Rows


def ports_memories(npu: Npu) -> dict[str, Rows]:
    """Memory ``binariser`` where there is a binariser, memory ``chunks`` where there is inlet "ring"."""
    memories = {}
    binariser = npu.ports.binariser
    if binariser:
        thresholds = [("thresholds", npu.array.kfp * (binariser.bits + 1))]
        memories["binariser"] = Rows(binariser.rows, thresholds, read_at_once=True)
    if "ring" in npu.ports.inlets:
        words = [("words_minus_1", bits_for(npu.ports.buffer_words - 1))]
        memories["chunks"] = Rows(npu.loader.layers, words, read_at_once=True)
    return memories

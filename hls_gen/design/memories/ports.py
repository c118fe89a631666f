"""Memories of the ports: chunks at inlet "ring", thresholds of the binariser; and the fields of a map's way."""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.widths import bits_for

from .memory import FieldWidths, Rows


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


def way(npu: Npu) -> FieldWidths:
    """Where a layer's map goes, in the row of the unit that gives the map its last form: its target; whether its words
    go to the skip store as well; whether they wait there for the addition, else for the layer that reads them."""
    target = [("target", npu.target_bits)] if npu.target_bits else []
    return [*target, *([("forks", 1), ("for_addition", 1)] if npu.forks_maps else [])]

"""Memory of the loader: one row that describes the network."""

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.parts import present
from bitloom.hls_gen.design.widths import FRAME_BITS, LAST_PIECE_BITS, LAYER_BITS, bits_for

from .memory import FieldWidths, Rows
from .window_former import former_fields

SETTINGS = ("last_layer", "last_pool_layer", "binariser_last", "last_chunk")
"""Fields of the network's row that the NPU looks at, beside those of its former; the loader looks at the others."""


def loader_memories(npu: Npu) -> dict[str, Rows]:
    """Memory ``network``: its one row describes the network, and the frame where the frame enters here."""
    host = "host" in npu.ports.inlets
    fields = [
        *([("frame_words", FRAME_BITS), ("frame_beats", FRAME_BITS)] if host else []),
        ("last_layer", LAYER_BITS),
        *([("last_pool_layer", LAYER_BITS)] if npu.pool_unit else []),
        *([("frame_last_piece", LAST_PIECE_BITS)] if host else []),
        *([("binariser_last", bits_for(present(npu.ports.binariser).rows - 1))] if npu.ports.binariser else []),
        *([("last_chunk", LAYER_BITS)] if "ring" in npu.ports.inlets else []),
        *([("last_output", bits_for(npu.loader.outputs - 1))] if npu.loader.outputs > 1 and host else []),
        *([("streamed_layers", LAYER_BITS + 1)] if npu.loader.stream_weights and host else []),
        *former_fields(npu),
    ]
    return {"network": Rows(1, fields)}


def settings(npu: Npu) -> FieldWidths:
    """Fields of the network's row that the NPU looks at."""
    known = {*SETTINGS, *(name for name, _ in former_fields(npu))}
    return [(name, width) for name, width in loader_memories(npu)["network"].fields if name in known]

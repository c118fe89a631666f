"""How a network is compiled for a design: the choices that change its program, but not the hardware."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bitloom.golden.integers import make_fields_plain

from .dataflow import Dataflow


@dataclass(frozen=True, kw_only=True)
class CompileChoices:
    """What a person chooses when networks are compiled for a design.

    Attributes
    ----------
    map_order
        Order in which the tuples of each map are computed (spec B7, hls_gen/compiler/schedule): "pull", "raster",
        "columns", or "auto", which takes the one of the first two whose tuple memories and tables have fewer bits as
        they are built.
    dataflow
        Dataflow of all layers, or by layer name; see ``bitloom.hls_gen.compiler.dataflow.Dataflow``.
    mapping
        NPU of each weighted layer, counted from 0, by whose engine the layer is computed; None:
        ``bitloom.hls_gen.compiler.mapping.assign`` chooses.
    chunk
        What one of the two buffers between neighbours takes before they change over (spec D4): "tuples:4", "rows",
        "rows:2", "columns:2" (hls_gen/compiler/chunk.py); "": a tuple. Rows and columns imply their map order.
    """

    map_order: str = "auto"
    dataflow: Dataflow = "output_stationary"
    mapping: Sequence[int] | None = None
    chunk: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.mapping, np.ndarray):
            object.__setattr__(self, "mapping", self.mapping.tolist())
        make_fields_plain(self)

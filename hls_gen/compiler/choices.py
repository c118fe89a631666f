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
        Order in which the tuples of each map are computed (spec B7, hls_gen/compiler/schedule): "pull", "raster", or
        "auto", which takes the one whose tuple memories and tables have fewer bits as they are built.
    dataflow
        Dataflow of all layers, or by layer name; see ``bitloom.hls_gen.compiler.dataflow.Dataflow``.
    mapping
        NPU of each weighted layer, counted from 0, by whose engine the layer is computed; None:
        ``bitloom.hls_gen.compiler.mapping.assign`` chooses.
    """

    map_order: str = "auto"
    dataflow: Dataflow = "output_stationary"
    mapping: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.mapping, np.ndarray):
            object.__setattr__(self, "mapping", self.mapping.tolist())
        make_fields_plain(self)

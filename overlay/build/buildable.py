"""Whether a network can be built: the compiler's own check of it, on the smallest hardware that is for it."""

from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design import flat

from .chosen_design import chosen_design, needs_both_engines
from .small_npu import small_npu

CHOICES = CompileChoices(map_order="raster")
"""The one map order that is tried: all map orders compute the same."""
SIZING = Sizing(skip_words=flat.LEAST["skip_words"])
"""Skip stores are as small as can be: whether a network can be built doesn't depend on their size."""


def check_buildable(model: Model) -> None:
    """Refuse a network that `bitloom build` would refuse with its default folding.

    The network is lowered, scheduled and planned for one small NPU; a network that needs both engines for a pipeline of
    small NPUs.

    Raises
    ------
    ValueError
        If the compiler can't compute the network. One line: layer, rule and value.
    """
    npus = chosen_design(model).npus if needs_both_engines(model.network) else (small_npu(model),)
    size_memories(model.network.name, [model], npus, CHOICES, sizing=SIZING)

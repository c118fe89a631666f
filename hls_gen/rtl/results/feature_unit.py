"""What may stand behind a requantisation: it makes other features of features, in register stages of its own.

    sums[OL] --> requantise.py --features[OL]--> feature unit --features[OL]--> ... --> features[OL]

Its registers move together with those of the requantisation. results.py lists the units in their order, and
hls_gen/design/timing.py has their stages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.pipeline import Pipeline

Field = Callable[[str], Signal]
"""``field(name)`` makes a register with a field of the layer's row of memory ``results``, or of the step's row of
memory ``scales``, in time with what enters the stages."""
Behind = Callable[[Pipeline, Sequence[Signal], Field], list[Signal]]
"""``behind(pipe, features, field)`` are other features of ``features``, in the last of the stages."""


@dataclass(frozen=True, kw_only=True)
class FeatureUnit:
    """A feature unit."""

    has: Callable[[Npu], bool]
    """Whether an NPU has it."""
    memories: tuple[str, ...] = ()
    """Names of its memories."""
    place: Callable[[Block, Library, Npu, LoadBus, Pipeline, Sequence[Signal], Field], list[Signal]]
    """``place(b, library, npu, bus, ...)`` places it in ``b``; the rest is as of `Behind`. ``bus`` fills its
    memories."""

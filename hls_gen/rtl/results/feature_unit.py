"""How a feature unit (hls_gen/design/results.py) is placed behind a requantisation. results.py lists the functions."""

from collections.abc import Callable, Sequence

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.pipeline import Pipeline

Field = Callable[[str], Signal]
"""``field(name)`` makes a register with a field of the layer's row of memory ``results``, or of the step's row of
memory ``scales``, in time with what enters the stages: ``start`` of the layer, ``offset_2`` of lane 2's channel."""
Behind = Callable[[Pipeline, Sequence[Signal], Field], list[Signal]]
"""``behind(pipe, features, field)`` are other features of ``features``, in the last of the stages."""
Place = Callable[[Block, Library, Npu, LoadBus, Pipeline, Sequence[Signal], Field], list[Signal]]
"""``place(b, library, npu, bus, ...)`` places a feature unit in ``b``; the rest is as of `Behind`. ``bus`` fills its
memories."""

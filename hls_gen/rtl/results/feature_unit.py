"""What may stand behind a requantisation: it makes other features of features, in register stages of its own.

    sums[OL] --> requantise.py --features[OL]--> feature unit --features[OL]--> ... --> features[OL]

A feature unit is a module for each lane, whose registers move together with those of the requantisation. An NPU has the
unit where it has its memory. results.py lists the units in their order, hls_gen/design/timing.py has their stages.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.rtl.primitives.block import Block, Signal
from bitloom.hls_gen.rtl.primitives.memory import Library, LoadBus
from bitloom.hls_gen.rtl.primitives.pipeline import Pipeline


@dataclass(frozen=True, kw_only=True)
class FeatureUnit:
    """A feature unit."""

    memory: str
    """Name of its memory."""
    fields: tuple[str, ...]
    """Fields of a layer's row of memory ``results`` that it reads."""
    module: Callable[[Library, Npu], Block]
    """The module of a lane."""
    place: Callable[[Block, Block, LoadBus, Pipeline, Sequence[Signal], dict[str, Signal]], list[Signal]]
    """``place(b, block, bus, pipe, features, layer)`` places an instance of ``block`` for each of ``features`` in
    ``b``, and gives their results. ``pipe`` has the register stages, and ``layer`` the ``fields``, which are registers
    in time with what enters the stages."""

"""Lanes that share a weight: where maps have values of several thermometer bits, a weight is stored once
(docs/decisions/0015).

The bits of a value meet the same weight, in lanes OL apart, since results leave OL channels at a time, level after
level (layout.result_layout). So the kernel memory needs one of them, and wires lead it to all lanes
(hls_gen/rtl/array/convolver.py).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bitloom.hls_gen.design.npu import Npu

from .input_maps import is_input
from .layout import WordLayout
from .lowered_layers import LoweredLayer
from .lowering import Lowered
from .plan import Plan


@dataclass(frozen=True, eq=False)
class ReadValues:
    """A map whose values have several bits, as a layer reads it."""

    bits: int
    """Thermometer bits of a value; 0 for an input of integers, which comes in bit planes."""
    apart: int | None
    """How far the bits of a value lie apart: results that leave in a cycle where it is made; None for the input."""
    layout: WordLayout
    """(words of a tuple, lanes of a word): lanes of its tuples, or UNUSED."""


def sharing(npu: Npu, read: Iterable[ReadValues]) -> Npu:
    """Let lanes of an NPU share weights, where every map that it reads allows it.

    These maps have the same number of bits a value, more than 1, and the bits of a value lie equally far apart. An
    input of integers, whose bit planes follow one another, may be among them.

    Parameters
    ----------
    npu
        The NPU, whose lanes have weights of their own.
    read
        All maps that its layers read, in all networks for its design.

    Returns
    -------
    Npu
        With ``lanes_per_weight`` and ``lane_step``, or as it was.
    """
    if not npu.array.may_share_weights or npu.ports.binariser or npu.former_sizes:
        return npu
    maps = [*read]
    levels = {values.bits for values in maps} - {0}
    steps = {values.apart for values in maps if values.apart is not None}
    if len(levels) != 1 or len(steps) > 1:
        return npu
    several = levels.pop()
    apart = max(steps, default=1)
    if several == 1 or several * apart > npu.array.kfp:
        return npu
    shared = npu.changed(lanes_per_weight=several, lane_step=apart)
    channels = (values.layout // several for values in maps if values.apart is not None)  # UNUSED is -1, and stays so
    return shared if all(_fits(shared, layout) for layout in channels) else npu


def values_read(plan: Plan, n: int) -> Iterator[ReadValues]:
    """The maps that the layers of NPU ``n`` read, layer after layer."""
    steps = {planned.layer.name: planned.npu.results.ol for planned in plan.layers}
    for planned in plan.on(n):
        yield ReadValues(value_bits(plan.lowered, planned.layer), steps.get(planned.layer.reads), planned.read.layout)


@dataclass(frozen=True)
class WeightCopies:
    """Weights of a network that an NPU stores several times."""

    npu: int
    """Number of the NPU."""
    widths: tuple[int, ...]
    """Bits of the values that its layers read, each width once, rising."""
    stored: int
    """Weight bits in its kernel memory."""
    once: int
    """Weight bits if each weight stood there once."""

    def __str__(self) -> str:
        """One line: the bits that these weights take, and why they are stored several times."""
        *first, last = map(str, self.widths)
        if first:
            why = f"the values that it reads have {', '.join(first)} and {last} bits; NPUs that read one width store"
        else:
            why = f"lanes share a weight only where a word holds all {last} bits of its values; then it would store"
        return (
            f"NPU {self.npu} stores {self.stored:,} weight bits, each weight once for each bit of a value: {why} "
            f"{self.once:,}"
        )


def weight_copies(lowered: Lowered, npus: Sequence[Npu]) -> list[WeightCopies]:
    """The NPUs on which a network's weights are stored once for each bit of a value, not once.

    Parameters
    ----------
    lowered
        The network's lowered layers.
    npus
        The NPUs for which it was lowered.

    Returns
    -------
    list of WeightCopies
        By the number of the NPU.
    """
    copies = []
    for n, npu in enumerate(npus):
        binary = (layer for layer, on in zip(lowered.layers, lowered.mapping) if on == n and layer.binary)
        layers = [layer for layer in binary if value_bits(lowered, layer)]
        widths = sorted({value_bits(lowered, layer) for layer in layers})
        if npu.array.lanes_per_weight == 1 and max(widths, default=1) > 1:
            once = sum(layer.weight.size // value_bits(lowered, layer) for layer in layers)
            copies.append(WeightCopies(n, tuple(widths), sum(layer.weight.size for layer in layers), once))
    return copies


def value_bits(lowered: Lowered, layer: LoweredLayer) -> int:
    """Bits of a value of the map that a lowered layer reads; 0 for an input of integers, which comes in bit planes."""
    if is_input(layer.reads):
        return 0 if lowered.input_bits else lowered.source.encoding.bits
    return _bits(next(maker for maker in lowered.layers if maker.name == layer.reads))


def _bits(layer: LoweredLayer) -> int:
    """Bits of a value of the map that a lowered layer makes for one of the binary engine."""
    return layer.levels if layer.binary else 1


def _fits(npu: Npu, channels: WordLayout) -> bool:
    """Whether lanes that share a weight have one channel in each word, or all are UNUSED."""
    of_lanes = np.array(npu.array.weight_of_lanes)
    first = np.unique(of_lanes, return_index=True)[1]
    return bool((channels[:, first[of_lanes]] == channels).all())

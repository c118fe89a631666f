"""A system: NPUs in a chain or a ring, what lies between them, and which NPU computes which layer (spec B16, D2)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.timing import Latencies, latencies

from .layer import FlowLayer, Reading
from .loader import WeightPacket


@dataclass(frozen=True, kw_only=True)
class FlowNpu:
    """An NPU in a system."""

    npu: Npu
    """Its widths, capacities and latencies."""
    skip_words: int | None = 0
    """Capacity of the skip store, in place of the NPU's; 0: there is none, None: without limit."""
    to_bits: bool = False
    """Whether words for the NPU after have a gearbox of their own, in which a feature is a bit."""

    @cached_property
    def latencies(self) -> Latencies:
        """Cycles that the NPU's parts take."""
        return latencies(self.npu)

    @property
    def buffer_words(self) -> int:
        """Capacity of each of the two buffers between the NPU before and this one; 0: there are none."""
        return self.npu.ports.buffer_words if "ring" in self.npu.ports.inlets else 0

    def pool_reading(self, layer: FlowLayer) -> Reading:
        """How the pool unit reads the results of ``layer``."""
        return layer.pool or Reading.straight(layer.reading.windows, self.npu.pool_tuple_words(layer.tuple_steps))

    def pools(self, layer: FlowLayer) -> bool:
        """Whether the results of ``layer`` go through the pool unit."""
        return self.npu.pools_results(raw=layer.raw, pool=layer.pool is not None)

    def outlet_tuple(self, layer: FlowLayer) -> tuple[int, int]:
        """(words, lanes of a word) of a tuple that ``layer`` makes, as it comes to the outlets."""
        return self.npu.outlet_tuple(layer.tuple_steps)

    def outlet_words(self, layer: FlowLayer) -> int:
        """Words of the map that ``layer`` makes, as they come to the outlets."""
        return layer.output_windows * self.outlet_tuple(layer)[0]


@dataclass(frozen=True, kw_only=True)
class System:
    """NPUs in a chain or a ring, and the layers that they compute. Checked when it is made.

    Raises
    ------
    ValueError
        NPUs and layers don't go together. One line: layer, rule and value.
    """

    npus: tuple[FlowNpu, ...]
    """The NPUs, in their order."""
    layers: tuple[FlowLayer, ...]
    """The layers, in the network's order."""
    mapping: tuple[int, ...]
    """NPU of each layer. After the last NPU comes NPU 0."""
    spill_words: int | None = 0
    """Words of the spill store between the last NPU and NPU 0, in front of the pair of buffers; 0: there is none, None:
    without limit."""
    stream_bits: int = 32
    """Width of the host's streams."""
    weights: tuple[WeightPacket, ...] = ()
    """Packets of weights that come with every frame, in the order of the stream."""
    weights_before: int = 0
    """How many of them come before the frame."""

    def __post_init__(self) -> None:
        if len(self.mapping) != len(self.layers) or not self.layers:
            raise ValueError(
                f"flow: mapping must name an NPU for each of {len(self.layers)} layers, got {len(self.mapping)}"
            )
        for layer, n in zip(self.layers, self.mapping):
            self._check_layer(layer, n)

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for systems that do the same, whatever their layers are called."""
        layers = []
        for layer in self.layers:
            values = {item.name: getattr(layer, item.name) for item in fields(layer) if item.name != "name"}
            values |= {"reading": layer.reading.key, "pool": layer.pool and layer.pool.key}
            layers.append(tuple(values.values()))
        others = (self.mapping, self.spill_words, self.stream_bits, self.weights, self.weights_before)
        return (self.npus, tuple(layers), *others)

    @property
    def outputs(self) -> list[int]:
        """Numbers of the layers whose maps leave."""
        return [i for i, layer in enumerate(self.layers) if layer.outlet == "host"]

    def skip_store_npu(self, n: int) -> int:
        """Number of the NPU in whose skip store maps of NPU ``n`` wait."""
        return (n + 1) % len(self.npus) if self.npus[n].npu.skips_onward else n

    def _check_layer(self, layer: FlowLayer, n: int) -> None:
        """Raise ValueError unless NPU ``n`` can compute the layer."""
        if layer.inlet == "host" and n:
            raise ValueError(f"flow: {layer.name} must be on NPU 0, got NPU {n}")
        if layer.raw and layer.outlet != "host":
            raise ValueError(f"flow: {layer.name} must leave by outlet host to be raw, got {layer.outlet}")
        if layer.pool is not None and not self.npus[n].npu.pool_unit:
            raise ValueError(f"flow: {layer.name} needs an NPU with a pool unit, NPU {n} has none")
        buffer = self.npus[n].buffer_words
        if layer.inlet == "ring" and not 1 <= layer.chunk_words <= buffer:
            raise ValueError(f"flow: {layer.name}: a chunk must be 1..{buffer} words, got {layer.chunk_words}")

    def gearbox(self, i: int) -> tuple[int, bool]:
        """Which gearbox at the outlets of its NPU the map takes that layer ``i`` makes.

        All words with as many lanes share a gearbox, but those that leave as bits have one of their own.

        Returns
        -------
        tuple of int and bool
            Lanes of the words behind the gearbox, and whether features are bits there.
        """
        layer = self.layers[i]
        return layer.map_lanes, layer.outlet == "ring" and self.npus[self.mapping[i]].to_bits

    def of(self, npu: int) -> Sequence[int]:
        """Numbers of the layers of an NPU, in their order."""
        return [i for i, n in enumerate(self.mapping) if n == npu]

    def activated(self, npu: int) -> Sequence[int]:
        """Numbers of the layers of an NPU whose results come from its activation: all but those whose sums leave."""
        return [i for i in self.of(npu) if not self.layers[i].raw]

"""A system: NPUs in a chain or a ring, what lies between them, and which NPU computes which layer (spec B16, D2)."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property

from bitloom.golden.graph import INPUT
from bitloom.hls_gen.design.gearbox import geared
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
    """NPU of each layer. The first layer is on NPU 0; each other one is on the NPU of the layer before or on the next
    NPU, and after the last NPU comes NPU 0."""
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
        count = len(self.npus)
        if len(self.mapping) != len(self.layers) or not self.layers:
            raise ValueError(
                f"flow: mapping must name an NPU for each of {len(self.layers)} layers, got {len(self.mapping)}"
            )
        if self.mapping[0] != 0:
            raise ValueError(f"flow: {self.layers[0].name} must be on NPU 0, got NPU {self.mapping[0]}")
        for i, layer in enumerate(self.layers):
            maker = self.maker(i)
            before = self.mapping[i if maker is None else maker]
            after = self.mapping[i]
            if after not in (before, (before + 1) % count):
                raise ValueError(
                    f"flow: {layer.name} must be on NPU {before} or {(before + 1) % count}, got NPU {after}"
                )
        for i in range(len(self.layers)):
            self._check_layer(i)

    @property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for systems that do the same, whatever their layers are called."""
        layers = []
        for layer in self.layers:
            values = {item.name: getattr(layer, item.name) for item in fields(layer)}
            values |= {key: self._numbers.get(values[key], values[key]) for key in ("name", "reads", "joins", "adds")}
            values |= {"reading": layer.reading.key, "pool": layer.pool and layer.pool.key}
            layers.append(tuple(values.values()))
        others = (self.mapping, self.spill_words, self.stream_bits, self.weights, self.weights_before)
        return (self.npus, tuple(layers), *others)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Number of each layer by its name."""
        return {layer.name: i for i, layer in enumerate(self.layers)}

    def maker(self, layer: int) -> int | None:
        """Number of the layer that makes the map which ``layer`` reads; None if that is the frame."""
        reads = self.layers[layer].reads
        if reads is None:
            return layer - 1 if layer else None
        if reads == INPUT:
            return None
        return self._numbers[reads]

    def joined(self, layer: int) -> int | None:
        """Number of the layer that makes the map which ``layer`` reads beside the other one; None if it reads one."""
        joins = self.layers[layer].joins
        return None if joins is None else self._numbers[joins]

    def readers(self, layer: int) -> list[int]:
        """Numbers of the layers that read the map which ``layer`` makes."""
        return [i for i in range(len(self.layers)) if layer in (self.maker(i), self.joined(i))]

    def reader(self, layer: int) -> int | None:
        """Number of the layer that reads the map which ``layer`` makes, but not from the skip store; None if none
        does."""
        return next((i for i in self.readers(layer) if self.maker(i) == layer and not self.layers[i].from_skip), None)

    def skips(self, layer: int) -> tuple[bool, bool]:
        """Whether the map that ``layer`` makes goes to the skip store, and whether an addition takes it from there."""
        adds = any(other.adds == self.layers[layer].name for other in self.layers)
        read = any(self.layers[i].from_skip or self.joined(i) == layer for i in self.readers(layer))
        return adds or read, adds

    @cached_property
    def outputs(self) -> list[int]:
        """Numbers of the layers whose maps leave."""
        return [i for i in range(len(self.layers)) if not (self.readers(i) or self.skips(i)[0])]

    def store(self, n: int) -> int:
        """Number of the NPU in whose skip store maps of NPU ``n`` wait."""
        return (n + 1) % len(self.npus) if self.npus[n].npu.skips_onward else n

    def _check_layer(self, i: int) -> None:
        """Raise ValueError unless the layer's map is what the layer before makes, and the NPU can take it."""
        layer = self.layers[i]
        npu = self.mapping[i]
        if layer.raw and (self.readers(i) or self.skips(i)[0]):
            raise ValueError(f"flow: {layer.name} must be the last layer to be raw, got layer {i}")
        if layer.pool is not None and not self.npus[npu].npu.pool_unit:
            raise ValueError(f"flow: {layer.name} needs an NPU with a pool unit, NPU {npu} has none")
        maker = self.maker(i)
        joined = self.joined(i)
        beside = 0 if joined is None else self.output_words(joined)
        if maker is not None and self.output_words(maker) + beside != layer.coming_words:
            before = self.layers[maker].name
            words = self.output_words(maker) + beside
            raise ValueError(f"flow: {layer.name} reads {layer.coming_words} words, {before} makes {words}")
        if self.crosses(i) and not 1 <= self.chunk_words(i) <= self.npus[npu].buffer_words:
            buffer = self.npus[npu].buffer_words
            raise ValueError(f"flow: {layer.name}: a chunk must be 1..{buffer} words, got {self.chunk_words(i)}")

    def crosses(self, layer: int) -> bool:
        """Whether the map that ``layer`` reads comes from another NPU."""
        maker = self.maker(layer)
        return maker is not None and self.mapping[layer] != self.mapping[maker]

    def chunk_words(self, layer: int) -> int:
        """Words of a chunk of the map that ``layer`` reads from another NPU."""
        chunk = self.layers[layer].chunk_words
        return self.npus[self.mapping[layer]].buffer_words if chunk is None else chunk

    def target_lanes(self, layer: int) -> int:
        """Lanes of the words in which the map that ``layer`` makes leaves its NPU: those of the layer's reader."""
        reader = self.reader(layer)
        return self.npus[self.mapping[layer if reader is None else reader]].npu.array.map_lanes

    def gearbox(self, layer: int) -> tuple[int, bool]:
        """Which gearbox at the outlets of its NPU the map that ``layer`` makes takes.

        All words with as many lanes share a gearbox, but those that leave as bits have one of their own.

        Returns
        -------
        tuple of int and bool
            Lanes of the words behind the gearbox, and whether features are bits there.
        """
        reader = self.reader(layer)
        leaves = reader is not None and self.crosses(reader)
        return self.target_lanes(layer), leaves and self.npus[self.mapping[layer]].to_bits

    def output_words(self, layer: int) -> int:
        """Words of the map that ``layer`` makes."""
        flow_layer = self.layers[layer]
        words, lanes = self.npus[self.mapping[layer]].outlet_tuple(flow_layer)
        return flow_layer.output_windows * geared(words, lanes, self.target_lanes(layer))

    def of(self, npu: int) -> Sequence[int]:
        """Numbers of the layers of an NPU, in their order."""
        return [i for i, n in enumerate(self.mapping) if n == npu]

    def activated(self, npu: int) -> Sequence[int]:
        """Numbers of the layers of an NPU whose results come from its activation: all but those whose sums leave."""
        return [i for i in self.of(npu) if not self.layers[i].raw]

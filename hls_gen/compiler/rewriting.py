"""Networks that are being rewritten, exactly, into what the engines take: layers that come and go, and copies of maps.

A *copy* is a convolution of 1 x 1 taps whose kernel k is 1 for channel k and 0 for all others. Its sums are the values;
in front of a requantisation or thresholds of one reader no more is needed, else one that changes nothing follows.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from bitloom.golden.encoding import TERNARY, Array, Encoding, signed, unsigned
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.names import NAME_LENGTH
from bitloom.golden.network import Model, Network


@dataclass
class Rewriting:
    """Layers that are being rewritten. Each names the maps that it reads; their order doesn't count."""

    network: Network
    layers: dict[str, Layer] = field(init=False)
    maps: dict[str, Map] = field(init=False)
    arrays: dict[str, dict[str, Array]] = field(default_factory=dict)
    """Of layers that came in."""
    parts: dict[str, tuple[str, slice]] = field(default_factory=dict)
    """Layers whose arrays are those of another layer for some of its channels."""
    stacks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Layers whose arrays are those of several layers, one behind the other."""

    def __post_init__(self) -> None:
        network = self.network
        self.layers = {layer.name: replace(layer, inputs=network.reads[layer.name]) for layer in network.layers}
        self.maps = dict(network.maps)

    def rewritten(self) -> Network:
        """The network as it is now; the same object where nothing was done."""
        network = self.network
        same = self.layers == {layer.name: replace(layer, inputs=network.reads[layer.name]) for layer in network.layers}
        return network if same else replace(network, layers=tuple(self.layers.values()))

    def model(self, model: Model) -> Model:
        """A model of the network that was rewritten, as it is now."""
        network = self.rewritten()
        if network is self.network:
            return model
        left = {layer.name for layer in network.layers if not isinstance(layer, Concat)}
        arrays = {name: its for name, its in model.arrays.items() if name in left}
        for name, (source, channels) in self.parts.items():
            arrays[name] = {what: values[channels] for what, values in model.arrays[source].items()}
        for name, sources in self.stacks.items():
            if name in left:
                kinds = model.arrays[sources[0]]
                arrays[name] = {what: np.concatenate([model.arrays[one][what] for one in sources]) for what in kinds}
        return Model(network, {**arrays, **self.arrays})

    def readers(self, name: str) -> list[Layer]:
        """The layers that read a map."""
        return [layer for layer in self.layers.values() if name in layer.inputs]

    def put(self, layer: Layer) -> None:
        """Put a layer in, perhaps in the place of the one of its name."""
        self.layers[layer.name] = layer
        self.maps[layer.name] = layer.output_of([self.maps[read] for read in layer.inputs])

    def new(self, name: str, what: str) -> str:
        """A name for a layer that comes in."""
        ends = (f"_{what}", *(f"_{what}_{number}" for number in range(2, len(self.layers) + 3)))
        return next(made for end in ends if (made := name[: NAME_LENGTH - len(end)] + end) not in self.layers)

    def same_values(self, name: str, sums: str, encoding: Encoding) -> None:
        """Put in an activation whose values are the sums, which are those of this encoding."""
        channels = self.maps[sums].channels
        if encoding.kind == "bipolar":
            levels = 2 * np.arange(encoding.bits) + 1 - encoding.bits  # a value k steps up reaches k of them
            self.put(Threshold(name=name, inputs=(sums,), levels=encoding.bits))
            rising = np.ones(channels, np.int64)
            self.arrays[name] = {"threshold": np.tile(levels, (channels, 1)), "direction": rising}
            return
        feature = encoding if encoding.kind == "unsigned" else signed(encoding.bits)  # ternary values are signed ones
        self.put(Requantise(name=name, inputs=(sums,), encoding=feature))
        values = {"bias": 0, "multiplier": 1, "shift": 0}
        self.arrays[name] = {what: np.full(channels, value, np.int64) for what, value in values.items()}

    def identity(self, name: str, reads: str, weight: Encoding | None = None) -> None:
        """Put in a convolution whose sums are the values that it reads; its weights are of encoding ``weight``, by
        default of one that any engine takes which reads such values between two layers."""
        source = self.maps[reads]
        weight = weight or (TERNARY if source.encoding.kind == "bipolar" else unsigned(1))
        self.put(Conv(name=name, inputs=(reads,), out_channels=source.channels, kernel=(1, 1), weight=weight))
        self.arrays[name] = {"weight": np.eye(source.channels, dtype=np.int64)[:, None, None]}

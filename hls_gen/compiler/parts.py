"""Parts: a network cut before each weighted layer. An engine computes a part at once, as one lowered
layer (hls_gen/compiler/lowered_layers.py).

    conv_1  threshold_1  pool_1 | conv_2  threshold_2 | dense_3
"""

from dataclasses import dataclass

from bitloom.golden.graph import INPUT
from bitloom.golden.layer import Map, OneInput
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.network import Network


@dataclass(frozen=True)
class Engine:
    """What computes a part.

    Attributes
    ----------
    name : str
        "binary" or "integer".
    feature_bits, weight_bits : int
        Bits in two's complement of the integer engine's features and weights.
    """

    name: str = "binary"
    feature_bits: int = 1
    weight_bits: int = 1


@dataclass(frozen=True, kw_only=True)
class Part:
    """A weighted layer and the layers that work on its sums, which are lowered together.

    Attributes
    ----------
    layer : Weighted
        Its name is the part's, the lowered layer's and that of the map which this makes.
    source : Map
        The map that the weighted layer reads.
    tail : tuple of OneInput
        The layers that follow, up to the next weighted one.
    reads : str
        The part whose result the layer reads, or `bitloom.golden.graph.INPUT`.
    reader : str or None
        The part that reads the result; None if that is the network's output.
    """

    layer: Weighted
    source: Map
    tail: tuple[OneInput, ...]
    reads: str
    reader: str | None

    @property
    def name(self) -> str:
        """Name of the weighted layer."""
        return self.layer.name

    @property
    def tail_kinds(self) -> tuple[str, ...]:
        """Kinds of the layers that follow."""
        return tuple(layer.kind for layer in self.tail)


def parts(network: Network, binariser: OneInput | None = None) -> list[Part]:
    """Cut a network before each weighted layer.

    Parameters
    ----------
    network : Network
        A chain of layers.
    binariser : OneInput or None
        The layer that is computed in front of the first part, if there is one: what it makes counts as the input.

    Returns
    -------
    list of Part
        In the order of the layers.

    Raises
    ------
    ValueError
        If several layers read a map, if a layer without weights comes before the first weighted one, or if there is
        no weighted one.
    """
    maker = {INPUT: INPUT}  # map -> the part that makes it
    found: dict[str, tuple[Weighted, Map, str]] = {}
    tails: dict[str, list[OneInput]] = {}
    for layer, source in network.chain("the compiler"):
        (read,) = (maker[name] for name in network.reads[layer.name])
        if isinstance(layer, Weighted):
            maker[layer.name] = layer.name
            found[layer.name], tails[layer.name] = (layer, source, read), []
            continue
        maker[layer.name] = read
        if read != INPUT:
            tails[read].append(layer)
        elif layer is not binariser:
            raise ValueError(
                f"{layer.name}: what an engine computes must begin with a conv or dense layer, got {layer.kind}"
            )
    if not found:
        raise ValueError(f"{network.name}: the engine needs a conv or dense layer, got none")
    reader = {read: name for name, (_, _, read) in found.items()}
    return [
        Part(layer=layer, source=source, tail=tuple(tails[name]), reads=read, reader=reader.get(name))
        for name, (layer, source, read) in found.items()
    ]

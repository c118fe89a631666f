"""The layers of a network that the host computes: an `Affine` at its end, and whatever no engine has behind the last
raw sums.

    conv_1 threshold_1 dense_2 | affine_2
    device                     | host

Results leave the device as they are in front of these layers; the driver computes them by golden's definition, in
integers. So nothing that a network's description says is left out.
"""

from dataclasses import replace

from bitloom.golden.layer import OneInput
from bitloom.golden.layers.affine import Affine
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.network import Model, Network

from .pools import canonical
from .segments import Segment
from .trips import BINARY, INTEGER, OR, Trip


def on_device(network: Network) -> Network:
    """The network without the layers at its end that the host computes; the network itself if there are none."""
    count = _host_layers(network)
    return replace(network, layers=network.layers[:-count], classes=()) if count else network


def split(model: Model) -> tuple[Model, Model | None]:
    """Cut a model in front of what the host computes.

    Returns
    -------
    Model
        The part that the device computes.
    Model or None
        The part that the host computes, with the map of the device's results as its input; None where there is no such
        part.
    """
    network = model.network
    count = _host_layers(model.network)
    if not count:
        return model, None
    device = on_device(network)
    tail = Network(name=network.name, input=device.output, layers=network.layers[-count:], classes=network.classes)
    return _model_of(device, model), _model_of(tail, model)


def _model_of(network: Network, model: Model) -> Model:
    """The model of a network with some of another model's layers."""
    return Model(
        network, {layer.name: model.arrays[layer.name] for layer in network.layers if layer.name in model.arrays}
    )


def _host_layers(network: Network) -> int:
    """How many layers at the network's end the host computes: those behind the longest tail that an engine computes
    together with the last sums.

    Where that tail makes features or bits, the host's first layer must be an Affine. Else the result is 0, and the
    compiler says why no engine can compute the layer.
    """
    tail = list[OneInput]()
    layers = list(network.layers)
    last = network.layers[-1]
    while isinstance(last, OneInput) and not isinstance(last, Weighted):
        tail.insert(0, last)
        (read,) = network.reads[last.name]
        place = len(layers) - len(tail) - 1
        if place < 0 or layers[place].name != read or len(network.readers[read]) != 1:
            return 0  # another order, or no weights at all: the compiler says why not
        last = layers[place]
    if not isinstance(last, Weighted) or len(network.sources(last)) != 1:
        return 0
    segment = Segment(layer=last, source=network.sources(last)[0], tail=(), reads="", readers=())
    for kept in range(len(tail), 0, -1):
        kinds = canonical(replace(segment, tail=tuple(tail[:kept]))).tail_kinds
        if kinds in _trip(network, last, tail[:kept]).tails:
            left = tail[kept:]
            return len(left) if left and (not kinds or isinstance(left[0], Affine)) else 0
    return len(tail)


def _trip(network: Network, last: Weighted, tail: list[OneInput]) -> Trip:
    """The rule of which layers may follow the last sums, of the engine that the weighted layer is for."""
    if last.accumulate == "or":
        return OR
    first = next(layer for layer in network.layers if isinstance(layer, Weighted))
    integers = last is not first and network.sources(last)[0].encoding.kind != "bipolar"
    features = any(isinstance(layer, FeatureLayer) for layer in tail)
    if last.weight.kind in ("signed", "unsigned") or integers or features:
        return INTEGER
    return BINARY

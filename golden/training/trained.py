"""What training makes, and how it becomes a model of integers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.batch_norm import BatchNorm
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.network import Model, Network

from .activation import NormBlock
from .blocks import chain_of_blocks
from .training_block import Params, TrainingBlock
from .weights import quantised


@dataclass(frozen=True)
class Trained:
    """What training makes.

    Attributes
    ----------
    network : Network
    params : mapping of str to mapping of str to array
        ``params[layer][parameter]``: real weights, from which those of the network are made, and what batch
        normalisation learned.
    norms : mapping of str to BatchNorm
        The batch normalisation of each threshold and requantise layer.
    """

    network: Network
    params: Mapping[str, Params]
    norms: Mapping[str, BatchNorm]

    def forward(self, images: Array) -> Array:
        """The network's output with batch normalisation in real numbers: (N, H, W, C) -> (N, H', W', C') float64."""
        x = flat(images)
        for name, b in chain_of_blocks(self.network, 1).items():
            if isinstance(b, NormBlock):
                x = b.quantise(self.norms[name].normalise(x))
            else:
                x, _ = b.forward(self.params[name], x)
        return x.reshape(len(x), *self.network.output.shape)

    def model(self) -> Model:
        """The network in integers: the same function where it has thresholds, and nearly the same where it requantises
        (`bitloom.golden.training.activation.RequantiseBlock`)."""
        arrays: dict[str, dict[str, Array]] = {}
        reach = self.network.input.encoding.low, self.network.input.encoding.high
        blocks = chain_of_blocks(self.network, 1)
        for layer, source in self.network.chain("training"):
            b = blocks[layer.name]
            if isinstance(layer, Weighted):
                weight = quantised(layer.weight, self.params[layer.name]["weight"])
                arrays[layer.name] = {"weight": weight.astype(np.int64)}
                reach = layer.accumulator_range(source)
            elif isinstance(b, NormBlock):
                arrays[layer.name] = b.fold(self.norms[layer.name], *reach)
                reach = b.target.encoding.low, b.target.encoding.high
        return Model(self.network, arrays)


def norms_of(
    blocks: Mapping[str, TrainingBlock], params: Mapping[str, Params], x: Array, batch: int
) -> dict[str, BatchNorm]:
    """Batch normalisation of each layer that has one, by the statistics of all images, layer after layer."""
    norms = {}
    for name, b in blocks.items():
        if isinstance(b, NormBlock):
            of = b.statistics(x)
            norms[name] = BatchNorm(
                name=name,
                gamma=params[name]["gamma"],
                beta=params[name]["beta"],
                mean=of.mean,
                var=of.variance,
                eps=b.epsilon,
            )
            x = b.quantise(norms[name].normalise(x))
        else:
            x = np.concatenate([b.forward(params[name], x[i : i + batch])[0] for i in range(0, len(x), batch)])
    return norms


def flat(images: Array) -> Array:
    """(N, H, W, C) integers -> (N, positions, C) float64."""
    return images.reshape(len(images), -1, images.shape[-1]).astype(np.float64)

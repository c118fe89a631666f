"""The result of training, and how it becomes a model of integers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import BIPOLAR, Array
from bitloom.golden.graph import INPUT, final, walk
from bitloom.golden.layers.batch_norm import BatchNorm
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.network import Model, Network

from .activation import NormBlock
from .block_graph import BlockGraph
from .residual import AddBlock, SignBlock
from .training_block import Params
from .weights import quantised


@dataclass(frozen=True)
class Trained:
    """The result of training."""

    network: Network
    params: Mapping[str, Params]
    """``params[layer][parameter]``: real weights, from which those of the network are made, and what batch
    normalisation learned."""
    norms: Mapping[str, BatchNorm]
    """The batch normalisation of each threshold and requantise layer."""

    def forward(self, images: Array) -> Array:
        """The network's output with batch normalisation in real numbers: (N, H, W, C) -> (N, H', W', C') float64."""
        graph = BlockGraph(self.network, 1)

        def compute(name: str, inputs: list[Array]) -> Array:
            block = graph.blocks[name]
            x = graph.values(name, inputs)
            if isinstance(block, NormBlock):
                return block.quantise(self.norms[name].normalise(x))
            return block.forward(self.params[name], x)[0]

        x = final(output for _, output in walk(self.network.reads, {INPUT: by_positions(images)}, compute))
        return x.reshape(len(x), *self.network.output.shape)

    def model(self, *, real_weights: bool = False) -> Model:
        """The network in integers: the same function where layers have thresholds, nearly the same where they
        requantise (`bitloom.golden.training.activation.RequantiseBlock`).

        Parameters
        ----------
        real_weights : bool
            Whether layers with weights of 1 bit have the real numbers that were trained, of which they take the signs.
        """
        arrays: dict[str, dict[str, Array]] = {}
        real: list[str] = []  # layers that have real weights
        reach = {INPUT: (self.network.input.encoding.low, self.network.input.encoding.high)}
        blocks = BlockGraph(self.network, 1).blocks
        for layer in self.network.layers:
            block = blocks[layer.name]
            before = reach[self.network.reads[layer.name][0]]
            ends = block.target.encoding.low, block.target.encoding.high
            if isinstance(layer, Weighted):
                weight = self.params[layer.name]["weight"]
                if real_weights and layer.weight == BIPOLAR:
                    real.append(layer.name)
                else:
                    weight = quantised(layer.weight, weight).astype(np.int64)
                arrays[layer.name] = {"weight": weight}
                ends = layer.accumulator_range(block.source)
            elif isinstance(block, NormBlock):
                arrays[layer.name] = block.fold(self.norms[layer.name], *before)
            elif isinstance(block, AddBlock | SignBlock):
                arrays[layer.name] = block.arrays()
            else:  # a pool, whose values are some of those that it reads, or between them
                ends = before
            reach[layer.name] = ends
        return Model(self.network.with_real_weights(real), arrays)


def norms_of(
    network: Network, graph: BlockGraph, params: Mapping[str, Params], x: Array, batch: int
) -> dict[str, BatchNorm]:
    """Batch normalisation of each layer that has one, by the moments of all images, layer after layer."""
    norms: dict[str, BatchNorm] = {}

    def compute(name: str, inputs: list[Array]) -> Array:
        block = graph.blocks[name]
        x = graph.values(name, inputs)
        if isinstance(block, NormBlock):
            mean, variance = block.moments(x)
            norms[name] = BatchNorm(name=name, **params[name], mean=mean, var=variance, eps=block.epsilon)
            return block.quantise(norms[name].normalise(x))
        parts = np.array_split(x, range(batch, x.shape[-3], batch), axis=-3)
        return np.concatenate([block.forward(params[name], part)[0] for part in parts])

    final(walk(network.reads, {INPUT: x}, compute))  # for the norms
    return norms


def by_positions(images: Array) -> Array:
    """(N, H, W, C) integers -> (N, positions, C) float64."""
    return images.reshape(len(images), -1, images.shape[-1]).astype(np.float64)

"""The blocks of all layers of a network, and the way through them: forward from map to map, backward against it."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.graph import INPUT, final, walk
from bitloom.golden.layer import OneInput
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.roles import FeatureLayer
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network

from .blocks import block
from .reproducible import to_grid
from .residual import AddBlock, SignBlock
from .training_block import Params, Slopes, TrainingBlock


class TapedBlock(NamedTuple):
    """A step of `BlockGraph.forward`: the layer's name, and the tape of its block."""

    name: str
    tape: Any


class BlockGraph:
    """How the layers of a network are trained.

    Parameters
    ----------
    network : Network
        Layers of kinds that `bitloom.golden.training.blocks.block` knows, and additions. A threshold that reads
        integers, behind a requantisation or an addition, is a sign without batch normalisation.
    batch : int
        Images of a batch.

    Attributes
    ----------
    blocks : dict of str to TrainingBlock
        By the layer's name, in the order of the layers.

    Raises
    ------
    ValueError
        If a layer can't be trained.
    """

    def __init__(self, network: Network, batch: int) -> None:
        self._reads = network.reads
        self.blocks: dict[str, TrainingBlock] = {}
        units = {INPUT: 1.0}
        integers = {layer.name for layer in network.layers if isinstance(layer, FeatureLayer)}
        for layer in network.layers:
            input_units = [units[name] for name in self._reads[layer.name]]
            sources = network.sources(layer)
            if isinstance(layer, Add):
                layer_block: TrainingBlock = AddBlock(layer, sources, batch, input_units)
            elif isinstance(layer, Threshold) and self._reads[layer.name][0] in integers:
                layer_block = SignBlock(layer, sources[0], batch, input_units[0])
            else:
                if not isinstance(layer, OneInput):
                    what = f"{layer.name}: training takes layers that read one map, and add"
                    raise ValueError(f"{what}, got {layer.kind}")
                layer_block = block(layer, sources[0], batch, input_units[0])
            self.blocks[layer.name] = layer_block
            units[layer.name] = layer_block.target_unit

    def values(self, name: str, inputs: list[Array]) -> Array:
        """The input of a layer's block: the map that the layer reads, or several maps as one array."""
        return np.stack(inputs) if len(inputs) > 1 else inputs[0]

    def forward(self, params: Mapping[str, Params], x: Array) -> tuple[Array, list[TapedBlock]]:
        """The network's output for (N, positions, C) images, and what `backward` needs to know."""
        steps: list[TapedBlock] = []

        def compute(name: str, inputs: list[Array]) -> Array:
            output, tape = self.blocks[name].forward(params[name], self.values(name, inputs))
            steps.append(TapedBlock(name, tape))
            return output

        return final(output for _, output in walk(self._reads, {INPUT: x}, compute)), steps

    def backward(
        self, params: Mapping[str, Params], steps: list[TapedBlock], error: Array
    ) -> Iterator[tuple[str, Slopes]]:
        """Derivatives of the loss by the parameters, layer by layer from the last one on.

        Parameters
        ----------
        params : mapping of str to mapping of str to array
            Those of a layer may change as soon as its derivatives are there.
        steps : list of TapedBlock
            Result of `forward`.
        error : (N, positions, C) float64
            Derivatives of the loss by the output.
        """
        errors = {steps[-1].name: error}
        for name, tape in reversed(steps):
            back, slopes = self.blocks[name].backward(params[name], tape, to_grid(errors.pop(name)))
            yield name, slopes
            reads = self._reads[name]
            for read, derivative in zip(reads, [back] if len(reads) == 1 else back):
                errors[read] = errors[read] + derivative if read in errors else derivative

"""A multilayer perceptron in training, layer by layer (C19)."""

from collections.abc import Sequence

import numpy as np

from bitloom.golden.encoding import Array
from bitloom.golden.layers.batch_norm import Moments
from bitloom.golden.training.checkpoint import check_range, check_saved

from .dense import DenseSpec, DenseTrainer
from .lfsr import STATE_BITS, Lfsr
from .loss import loss
from .rule import UpdateRule

PRECISIONS = ("float64", "float32")


class MlpTrainer:
    """Layers one after the other.

    Parameters
    ----------
    inputs : int
    specs : sequence of DenseSpec
    seed : int
        Of the weights at the start and of the generator.
    precision : str
        Of all floats, also of what methods take and give: "float64", or "float32", which takes about half the time.

    Attributes
    ----------
    layers : list of DenseTrainer
    generator : Lfsr
    """

    def __init__(self, inputs: int, specs: Sequence[DenseSpec], seed: int, precision: str = "float64") -> None:
        if precision not in PRECISIONS:
            raise ValueError(f"training: precision must be one of {', '.join(PRECISIONS)}, got {precision!r}")
        self.generator = Lfsr.seeded(seed)
        self.layers: list[DenseTrainer] = []
        for number, spec in enumerate(specs):
            self.layers.append(DenseTrainer(spec, inputs, self.generator, seed, number))
            inputs = spec.outputs
        for layer in self.layers:
            layer.params = {name: value.astype(precision) for name, value in layer.params.items()}
            layer.memory = {name: value.astype(precision) for name, value in layer.memory.items()}

    def learn(
        self, x: Array, labels: Array, criterion: str, rule: UpdateRule, share: float = 1.0
    ) -> tuple[Array, Array]:
        """Forward, backward and update for one batch.

        Parameters
        ----------
        x : (N, inputs) of the trainer's precision
        labels : (N,) integers
        criterion : str
            Name of a loss.
        rule : UpdateRule
        share : float
            Of the rule's rate.

        Returns
        -------
        (N,) floats
            Losses.
        (N, classes) floats
            Outputs, before the update.
        """
        tapes = []
        for layer in self.layers:
            x, tape = layer.forward(x)
            tapes.append(tape)
        losses, gradient = loss(criterion, x, labels)
        for layer, tape in zip(reversed(self.layers), reversed(tapes)):
            gradient, slopes = layer.backward(tape, gradient)
            layer.update(slopes, rule, share)
        return losses, x

    def preset(self, x: Array) -> list[Moments | None]:
        """Mean and variance of each layer's sums over all training images, with which the network is used; None for a
        layer without normalisation."""
        moments = []
        for layer in self.layers:
            x, tape = layer.forward(x, nearest=True)
            moments.append(tape.norm and tape.norm.moments)
        return moments

    def outputs(self, x: Array, preset: Sequence[Moments | None]) -> Array:
        """The network's output after training: (N, inputs) -> (N, classes) floats."""
        for layer, moments in zip(self.layers, preset):
            x, _ = layer.forward(x, moments, nearest=True)
        return x

    def arrays(self) -> dict[str, Array]:
        """The arrays of a checkpoint from which training can go on: the generator's state, parameters, momentum."""
        out = {"generator": np.array(self.generator.state, np.int64)}
        for number, layer in enumerate(self.layers):
            for name, value in layer.params.items():
                out[f"{number}.{name}"], out[f"{number}.{name}.memory"] = value, layer.memory[name]
        return out

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take what `arrays` gave.

        Raises
        ------
        ValueError
            If it is no state of these layers: other names, shapes or dtypes, or numbers that learning can't make.
        """
        check_saved(self.arrays(), arrays)
        check_range("generator", arrays["generator"], 1, (1 << STATE_BITS) - 1)
        for number, layer in enumerate(self.layers):
            name = f"{number}.weight"
            layer.check_weights(name, arrays[name], arrays[f"{name}.memory"])
        self.generator.state = int(arrays["generator"])
        for number, layer in enumerate(self.layers):
            for name in layer.params:
                layer.params[name] = arrays[f"{number}.{name}"]
                layer.memory[name] = arrays[f"{number}.{name}.memory"]

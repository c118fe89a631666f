"""Settings of a training on the training machine: which tensors are codes, and of how many bits (C1, C18)."""

from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2

from bitloom.golden.discrete.machine.training import DenseLayer, Kind, Training
from bitloom.golden.discrete.table import TABLES, CodeTable

LAST_PLACES = 2
"""Binary places by which codes of one bit are smaller in the last layer, so that its sums can come near 0 and 1, which
they are to be: with larger codes most of their error is that of the codes, and weights change at random. Tables of 2
and 3 bits have small values anyway."""


@dataclass(frozen=True, kw_only=True)
class MachineSetting:
    """Which tensors are codes."""

    about: str
    """A few words for tables."""
    bits: int = 0
    """Bits of a weight, 0 for words."""
    chance: bool = False
    """Weights are converted by chance, not to the nearest."""
    master: bool = True
    """Codes of weights follow continuous weights."""
    others: int = 0
    """Bits of inputs, results, errors and weight gradients, 0 for words; the last two are converted by chance. Hidden
    layers have the hard tanh then, whose results lie in the tables' zone."""
    rate_places: int = 5
    """k of the learning rate 2^-k."""

    @property
    def multiplier(self) -> bool:
        """Whether a product of two words is needed: weight gradients are those of inputs and errors."""
        return self.others == 0

    def training(self, sizes: tuple[int, ...], seed: int) -> Training:
        """The perceptron with so many inputs, hidden neurons and outputs.

        Each layer's weights have a table of their own, of which the values are divided by about the root of the
        layer's inputs, those of one bit in the last layer by `LAST_PLACES` more. Tables are numbered: those of the
        layers, then the one of all other codes.
        """
        tables: dict[int, tuple[CodeTable, int]] = {}
        if self.bits:
            places = [round(log2(before) / 2) for before in sizes[:-1]]
            places[-1] += LAST_PLACES * (self.bits == 1)
            tables |= {n + 1: (TABLES[self.bits].scaled(k), 1) for n, k in enumerate(places)}
        kinds: dict[str, Kind] = {}
        inputs = Kind()
        if self.others:
            number = len(tables) + 1
            tables[number] = (TABLES[self.others], 1)
            inputs = Kind(number)
            kinds = {"results": inputs, "errors": Kind(number, True), "gradients": Kind(number, True)}
        dense_layers = []
        for n, (before, after) in enumerate(pairwise(sizes)):
            weights = Kind(n + 1, self.chance) if self.bits else Kind()
            dense_layers.append(
                DenseLayer(
                    inputs=before,
                    outputs=after,
                    activation="clip" if self.others else "relu",
                    weights=weights,
                    master=bool(self.bits) and self.master,
                    **kinds,
                )
            )
        dense_layers[-1] = replace(dense_layers[-1], activation="none", results=Kind())
        return Training(
            layers=tuple(dense_layers), rate_places=self.rate_places, tables=tables, inputs=inputs, seed=seed
        )


_RATES = {
    "words": 7,
    "nearest-1": 5,
    "nearest-2": 6,
    "nearest-3": 6,
    "stochastic-1": 4,
    "stochastic-2": 5,
    "stochastic-3": 5,
    "codes-1": 8,
    "codes-2": 6,
    "codes-3": 7,
    "discrete-1": 7,
    "discrete-2": 7,
    "discrete-3": 7,
}
"""k of the rate 2^-k by setting: the best of several on held-out images of digits, which
docs/explanation/training-machine.md tells."""


def _settings() -> dict[str, MachineSetting]:
    """All settings, by name."""
    settings = {"words": MachineSetting(about="words")}
    for bits in TABLES:
        about = f"{bits}-bit weights, "
        settings |= {
            f"nearest-{bits}": MachineSetting(about=about + "continuous master, nearest", bits=bits),
            f"stochastic-{bits}": MachineSetting(about=about + "continuous master, stochastic", bits=bits, chance=True),
            f"codes-{bits}": MachineSetting(
                about=about + "codes only, stochastic", bits=bits, chance=True, master=False
            ),
            f"discrete-{bits}": MachineSetting(
                about=about + "continuous master, nearest; all else 3 bits; no multiplier", bits=bits, others=3
            ),
        }
    return {name: replace(settings[name], rate_places=places) for name, places in _RATES.items()}


MACHINE_SETTINGS = _settings()
"""By name."""

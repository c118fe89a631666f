"""Settings of a training on the training machine: which tensors are codes, and of how many bits (C1, C18)."""

from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2

from bitloom.golden.discrete.machine.training import DenseLayer, Kind, Training
from bitloom.golden.discrete.table import TABLES, CodeTable


@dataclass(frozen=True, kw_only=True)
class MachineSetting:
    """Which tensors are codes.

    Attributes
    ----------
    about : str
        A few words for tables.
    bits : int
        Bits of a weight, 0 for words.
    chance : bool
        Weights are converted by chance, not to the nearest.
    master : bool
        Codes of weights follow continuous weights.
    others : int
        Bits of inputs, results, errors and weight gradients, 0 for words; the last two are converted by chance. Hidden
        layers have the hard tanh then, whose results lie in the tables' zone.
    rate_places : int
        k of the learning rate 2^-k.
    """

    about: str
    bits: int = 0
    chance: bool = False
    master: bool = True
    others: int = 0
    rate_places: int = 5

    @property
    def multiplier(self) -> bool:
        """Whether a product of two words is needed: weight gradients are those of inputs and errors."""
        return self.others == 0

    def training(self, sizes: tuple[int, ...], seed: int) -> Training:
        """The perceptron with so many inputs, hidden neurons and outputs.

        Each layer's weights have a table of their own, of which the values are divided by about the root of the
        layer's inputs. Tables are numbered: those of the layers, then the one of all other codes.
        """
        layers = len(sizes) - 1
        tables: dict[int, tuple[CodeTable, int]] = {}
        if self.bits:
            tables |= {n + 1: (TABLES[self.bits].scaled(round(log2(sizes[n]) / 2)), 1) for n in range(layers)}
        kinds: dict[str, Kind] = {}
        inputs = Kind()
        if self.others:
            number = len(tables) + 1
            tables[number] = (TABLES[self.others], 1)
            inputs = Kind(number)
            kinds = {"results": inputs, "errors": Kind(number, True), "gradients": Kind(number, True)}
        made = []
        for n, (before, after) in enumerate(pairwise(sizes)):
            weights = Kind(n + 1, self.chance) if self.bits else Kind()
            made.append(DenseLayer(inputs=before, outputs=after, activation="clip" if self.others else "relu",
                                   weights=weights, master=bool(self.bits) and self.master, **kinds))  # fmt: skip
        made[-1] = replace(made[-1], activation="none", results=Kind())
        return Training(layers=tuple(made), rate_places=self.rate_places, tables=tables, inputs=inputs, seed=seed)


MACHINE_SETTINGS = {
    "words": MachineSetting(about="words"),
    **{
        f"nearest-{bits}": MachineSetting(
            about=f"{bits}-bit weights, continuous master, nearest", bits=bits, rate_places=8 if bits == 1 else 7
        )
        for bits in TABLES
    },
    **{
        f"stochastic-{bits}": MachineSetting(
            about=f"{bits}-bit weights, continuous master, stochastic", bits=bits, chance=True
        )
        for bits in TABLES
    },
    **{
        f"codes-{bits}": MachineSetting(
            about=f"{bits}-bit weights, codes only, stochastic", bits=bits, chance=True, master=False, rate_places=7
        )
        for bits in TABLES
    },
    **{
        f"discrete-{bits}": MachineSetting(
            about=f"{bits}-bit weights, continuous master, nearest; all else 3 bits; no multiplier", bits=bits,
            others=3, rate_places=6,
        )
        for bits in TABLES
    },
}  # fmt: skip
"""By name. Few rates were tried, on 500 images of digits: 2^-8 is better than 2^-5 for nearest-1, and 2^-7 better than
2^-9 for codes-2."""

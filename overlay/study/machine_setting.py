"""Settings of a training on the training machine: which tensors are codes, and constants (C1, C18)."""

from dataclasses import dataclass, replace
from math import log2
from typing import Any

from bitloom.golden.discrete.machine.training import (
    MOST_PLACES,
    DenseLayer,
    SourceRule,
    TensorKind,
    Training,
    VelocityRule,
    Windows,
)
from bitloom.golden.discrete.table import TABLES, CodeTable

CONSTANT_SHARE = 0.3
"""Share of the epochs in which the rate stays as it is."""
FALLS = 6
"""Binary places by which the rate falls in the rest, in equal parts."""


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
    rule: SourceRule | VelocityRule
    """At the start; the rate falls."""
    larger: int = 0
    """Binary places by which sums are larger than those of codes that are divided by the root of their number."""
    last_larger: int = 0
    """The same of the last layer, besides ``larger``."""
    normalised: bool = False
    """Sums of hidden layers are normalised over the batch (C20); then their results are not centred."""
    backward_places: int | None = None
    """Binary places by which codes are smaller backwards; None is as forwards."""

    @property
    def multiplier(self) -> bool:
        """Whether a product of two words is needed: weight gradients are those of inputs and errors."""
        return self.others == 0

    def training(self, sizes: tuple[int, ...], seed: int, fall: int = 0, windows: Windows | None = None) -> Training:
        """The perceptron with so many inputs, hidden neurons and outputs, with rates that have fallen by 2^-fall. With
        ``windows`` the first hidden layer is a convolution: its neurons see windows of the inputs.

        Weights are converted by a table whose values span the zone, as master weights do. Forwards and backwards each
        layer multiplies by one with the same codes, whose values are divided by about the root of the layer's inputs:
        by the power of two that is not above it, where `Setting.specs` of floating point takes the nearest one.
        """
        tables: list[CodeTable] = []

        def number(table: CodeTable) -> int:
            if table not in tables:
                tables.append(table)
            return tables.index(table) + 1

        weights: dict[str, Any] = {}
        others: dict[str, Any] = {}
        inputs = TensorKind()
        if self.bits:
            weights = {"weights": TensorKind(number(TABLES[self.bits]), self.chance), "master": self.master}
        if self.others:
            inputs = TensorKind(number(TABLES[self.others]))
            by_chance = TensorKind(inputs.table, True)
            others = {"results": inputs, "errors": by_chance, "weight_gradients": by_chance}
        layers = []
        before = sizes[0]
        for n, after in enumerate(sizes[1:], 1):
            seen = windows if n == 1 else None
            before = before if seen is None else seen.inputs
            scaled: dict[str, Any] = {}
            if self.bits:
                larger = self.larger + self.last_larger * (n == len(sizes) - 1)
                forward = max(0, int(log2(before) / 2) - larger)
                backward = forward if self.backward_places is None else self.backward_places
                scaled = {
                    "forward_table": number(TABLES[self.bits].scaled(forward)),
                    "backward_table": number(TABLES[self.bits].scaled(backward)),
                }
            activation = "clip" if self.others else "relu"
            fields = {**weights, **scaled, **others}
            form = {"normalised": True} if self.normalised else {"centred": True}
            layers.append(
                DenseLayer(inputs=before, outputs=after, windows=seen, activation=activation, **form, **fields)
            )
            before = layers[-1].vector_outputs
        layers[-1] = replace(layers[-1], activation="clip", centred=False, normalised=False, results=TensorKind())
        numbered = {n: (table, 1) for n, table in enumerate(tables, 1)}
        return Training(layers=tuple(layers), rule=fallen(self.rule, fall), tables=numbered, inputs=inputs, seed=seed)


def fall(epoch: int, epochs: int) -> int:
    """Binary places by which the rate has fallen in an epoch, 0 to epochs - 1."""
    rest = epoch / epochs - CONSTANT_SHARE
    return 0 if rest < 0 else 1 + int(rest / (1 - CONSTANT_SHARE) * FALLS)


def fallen(rule: SourceRule | VelocityRule, places: int) -> SourceRule | VelocityRule:
    """A rule whose rates have fallen by 2^-places, or risen where places < 0."""
    names = ("rate_places",) if isinstance(rule, SourceRule) else ("rate_places", "bias_places")
    changed = {name: min(MOST_PLACES, max(0, getattr(rule, name) + places)) for name in names}
    return replace(rule, **changed)


def _settings() -> dict[str, MachineSetting]:
    """All settings, by name."""
    settings = {"words": MachineSetting(about="words", rule=VelocityRule(rate_places=7, bias_places=7))}
    step = VelocityRule(rate_places=4, bias_places=4)
    larger_step = VelocityRule(rate_places=3, bias_places=3)
    memory = VelocityRule(rate_places=0, bias_places=5, decay_places=5)
    for bits in TABLES:
        about = f"{bits}-bit weights, "
        settings |= {
            f"nearest-{bits}": MachineSetting(
                about=about + "continuous master, nearest",
                bits=bits,
                rule=larger_step if bits == 1 else step,
                last_larger=int(bits == 3),
            ),
            f"stochastic-{bits}": MachineSetting(
                about=about + "continuous master, stochastic", bits=bits, chance=True, rule=step
            ),
            f"codes-{bits}": MachineSetting(
                about=about + "codes only, nearest to a velocity's sum", bits=bits, master=False, rule=memory
            ),
            f"discrete-{bits}": MachineSetting(
                about=about + "continuous master, nearest; all else 3 bits; no multiplier",
                bits=bits,
                others=3,
                rule=step,
                larger=1,
                backward_places=0,
            ),
        }
    settings["source-nearest"] = MachineSetting(
        about="source's rule: 1-bit weights, continuous master, nearest", bits=1, rule=SourceRule(rate_places=5)
    )
    settings["source-codes"] = MachineSetting(
        about="source's rule: 1-bit weights, codes only, stochastic",
        bits=1,
        chance=True,
        master=False,
        rule=SourceRule(rate_places=5),
    )
    return dict(sorted(settings.items(), key=lambda item: KINDS.index(item[0].split("-")[0])))


KINDS = ("words", "nearest", "stochastic", "codes", "discrete", "source")
"""Kinds of settings, in the order of tables."""
MACHINE_SETTINGS = _settings()
"""By name. How constants were chosen, and by which images, is told in docs/explanation/training-machine.md."""

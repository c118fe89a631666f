"""Named settings: which tensors are discrete, and how the perceptron learns (C17, C18)."""

from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from math import log2

from .converter import Converter
from .dense import DenseSpec, DiscreteTensors
from .rule import UpdateRule
from .table import GATE, ONE_BIT, TABLES, WIDE, CodeTable


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How perceptrons are trained."""

    about: str
    """A few words for tables."""
    rest: DiscreteTensors = field(default_factory=DiscreteTensors)
    """Which tensors of a layer are discrete."""
    first: DiscreteTensors | None = None
    """Those of the first layer, by default as of the rest."""
    activation: str = "relu"
    """Of hidden layers."""
    norm: bool = True
    """Whether layers are normalised over the batch; without they have biases."""
    centred: bool = False
    """Whether images are less the mean of the training images, which without normalisation would be most of a sum."""
    last_raw: bool = False
    """Whether the last layer's sums are the outputs as they are, as hardware gives them: without normalisation and
    bias."""
    rule: UpdateRule
    """Its rate falls to 0 until the end."""
    batch: int = 64
    """Images of a batch."""

    def specs(self, inputs: int, hidden: tuple[int, ...], classes: int) -> list[DenseSpec]:
        """The layers of a perceptron with so many neurons in its hidden layers.

        Discrete weights of a layer without normalisation are divided by about the root of the layer's inputs.
        """
        layers = []
        for number, (before, outputs) in enumerate(pairwise((inputs, *hidden, classes))):
            last = number == len(hidden)
            norm = self.norm and not (last and self.last_raw)
            discrete = self.rest.weights is not None
            layers.append(
                DenseSpec(
                    outputs=outputs,
                    activation="none" if last else self.activation,
                    norm=norm,
                    bias=not (last and self.last_raw),
                    places=round(log2(before) / 2) if discrete and not norm else 0,
                    tensors=self.first or self.rest if number == 0 else self.rest,
                )
            )
        return layers

    def kinds(self) -> dict[str, str]:
        """Kind of each tensor of a layer, such as "continuous", by the tensor's name in `DiscreteTensors`; ``norm``: of
        normalisation."""
        first = self.first or self.rest
        kinds = _kinds(self.rest, self.rule)
        for name, kind in _kinds(first, self.rule).items():
            if kind != kinds[name]:
                kinds[name] += f"; first layer {kind}"
        norm = "continuous" if self.norm else "none"
        return {**kinds, "norm": f"{norm}; last layer none" if self.norm and self.last_raw else norm}


def _kinds(tensors: DiscreteTensors, rule: UpdateRule) -> dict[str, str]:
    """The kind of each tensor of a layer: continuous, or what its converter makes."""
    kinds = {}
    for name in (tensor.name for tensor in fields(tensors) if tensor.name != "master"):
        converter = getattr(tensors, name)
        kinds[name] = "continuous" if converter is None else converter.about
    if tensors.weights is not None and tensors.master:
        kinds["weights"] += ", continuous master copy"
    if not rule.remembers:
        kinds["memory"] = "none"
    elif tensors.memory is None and rule.name == "source":
        kinds["memory"] = kinds["weight_gradients"]
    return kinds


def _weights(bits: int, rounding: str, master: bool = True) -> DiscreteTensors:
    """Discrete weights."""
    return DiscreteTensors(weights=Converter(table=TABLES[bits], rounding=rounding), master=master)


def _by_chance(table: CodeTable) -> Converter:
    """A converter whose codes are right on average."""
    return Converter(table=table, rounding="stochastic")


def _all_discrete(weights: DiscreteTensors, dw_places: int) -> DiscreteTensors:
    """Everything else is discrete, too: 3 bits, and 1 bit of f'; weight gradients are at most 2^-dw_places."""
    return replace(
        weights,
        inputs=Converter(table=TABLES[3]),
        derivatives=Converter(table=GATE),
        errors=_by_chance(WIDE.scaled(1)),
        weight_gradients=_by_chance(WIDE.scaled(dw_places)),
    )


_NEAREST = {
    1: UpdateRule("velocity", rate=3.0, mu=0.9, neuron_rate=0.15),
    2: UpdateRule("velocity", rate=3.0, mu=0.9, neuron_rate=0.15),
    3: UpdateRule("velocity", rate=0.1, mu=0.9),
}
"""By bits: masters of 1 and 2 bits need a larger rate, since many steps pass before one comes to another code."""

_STOCHASTIC = UpdateRule("velocity", rate=9.0, mu=0.9)
_BINARY_RULE = UpdateRule("velocity", rate=1.0, mu=0.97, neuron_rate=0.2)
_BINARY_BATCH = 32
"""Straight-through gradients of signs point the right way on average only: many small steps and a long memory help."""
_CODES = {
    1: UpdateRule("velocity", rate=2.0, mu=0.99, neuron_rate=0.1),
    2: UpdateRule("velocity", rate=0.5, mu=0.98, neuron_rate=0.05),
    3: UpdateRule("velocity", rate=0.5, mu=0.98, neuron_rate=0.05),
}
_DISCRETE_RULE = UpdateRule("velocity", rate=20.0, neuron_rate=1.0)
_DISCRETE_CODES_RULE = UpdateRule("velocity", rate=2.0, mu=0.9, neuron_rate=0.1)
_BINARY = replace(_weights(1, "nearest"), inputs=Converter(table=ONE_BIT))
_BLACK_OR_WHITE = replace(_BINARY, inputs=Converter(table=ONE_BIT, rounding="stochastic"))
"""Grey is black or white by chance while the perceptron learns, so that it sees many pictures of each image. Later grey
is the nearest of both."""

SETTINGS = {
    "float": Setting(about="floating point", rule=UpdateRule("velocity", rate=0.1, mu=0.9)),
    **{
        f"nearest-{bits}": Setting(
            about=f"{bits}-bit weights, continuous master, nearest", rest=_weights(bits, "nearest"), rule=_NEAREST[bits]
        )
        for bits in TABLES
    },
    **{
        f"stochastic-{bits}": Setting(
            about=f"{bits}-bit weights, continuous master, stochastic",
            rest=_weights(bits, "stochastic"),
            rule=_STOCHASTIC,
        )
        for bits in TABLES
    },
    **{
        f"codes-{bits}": Setting(
            about=f"{bits}-bit weights, codes only, stochastic",
            rest=_weights(bits, "stochastic", master=False),
            rule=_CODES[bits],
        )
        for bits in TABLES
    },
    **{
        f"discrete-{bits}": Setting(
            about=f"{bits}-bit weights, continuous master, nearest; all else 3 bits, f' 1",
            rest=_all_discrete(_weights(bits, "nearest"), 7),
            activation="clip",
            norm=False,
            centred=True,
            rule=_DISCRETE_RULE,
        )
        for bits in TABLES
    },
    **{
        f"discrete-codes-{bits}": Setting(
            about=f"{bits}-bit weights, codes only, stochastic; all else 3 bits, f' 1",
            rest=replace(
                _all_discrete(_weights(bits, "stochastic", master=False), 6), memory=_by_chance(WIDE.scaled(3))
            ),
            activation="clip",
            norm=False,
            centred=True,
            rule=_DISCRETE_CODES_RULE,
        )
        for bits in TABLES
    },
    "binary": Setting(
        about="1-bit weights and activations, input of all bits",
        rest=_BINARY,
        first=_weights(1, "nearest"),
        activation="clip",
        rule=_BINARY_RULE,
        batch=_BINARY_BATCH,
    ),
    "binary-input": Setting(
        about="1-bit weights, activations and input",
        rest=_BINARY,
        first=_BLACK_OR_WHITE,
        activation="clip",
        rule=_BINARY_RULE,
        batch=_BINARY_BATCH,
    ),
    "hardware": Setting(
        about="as binary, the last layer's sums as they are",
        rest=_BINARY,
        first=_weights(1, "nearest"),
        activation="clip",
        last_raw=True,
        rule=_BINARY_RULE,
        batch=_BINARY_BATCH,
    ),
    "source-nearest": Setting(
        about="source's rule: 1-bit weights, continuous master, nearest",
        rest=_weights(1, "nearest"),
        rule=UpdateRule("source", rate=5.0, mu=0.5, neuron_rate=0.15),
    ),
    "source-codes": Setting(
        about="source's rule: 1-bit weights, codes only, stochastic",
        rest=_weights(1, "stochastic", master=False),
        rule=UpdateRule("source", rate=20.0, mu=0.9, neuron_rate=0.1),
        batch=256,
    ),
}
"""By name. How rates were chosen, and by which images, is told in docs/explanation/discrete-training.md."""

"""Training steps by PyTorch, recorded in torch_steps.npz, with which tests compare the same steps of golden.discrete.

    python -m tests.golden.discrete.torch_steps

writes the file; only this needs PyTorch. Everything is float64.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.dense import DenseSpec, DiscreteTensors
from bitloom.golden.discrete.norm import EPSILON
from bitloom.golden.discrete.rule import UpdateRule
from bitloom.golden.discrete.table import GATE, ONE_BIT, THREE_BITS, TWO_BITS, WIDE

FILE = Path(__file__).with_name("torch_steps.npz")
STEPS, BATCH = 4, 8
"""With batches of a power of two, means of codes are exact, and so are ties where they are converted."""


@dataclass(frozen=True)
class Case:
    """A perceptron and how it is trained."""

    sizes: tuple[int, ...]
    criterion: str
    rule: UpdateRule
    activation: str = "relu"
    norm: bool = True
    places: int = 0
    tensors: DiscreteTensors = field(default_factory=DiscreteTensors)

    @property
    def specs(self) -> list[DenseSpec]:
        last = len(self.sizes) - 2
        more = {"norm": self.norm, "places": self.places, "tensors": self.tensors}
        activations = [*[self.activation] * last, "none"]
        return [DenseSpec(outputs=size, activation=act, **more) for size, act in zip(self.sizes[1:], activations)]


def nearest(table: Any) -> Converter:
    return Converter(table=table)


THREE_TWO = {"inputs": nearest(THREE_BITS), "weights": nearest(TWO_BITS)}
STEEP = {"errors": nearest(THREE_BITS.scaled(2)), "weight_gradients": nearest(THREE_BITS.scaled(3))}
GATED = {"derivatives": nearest(GATE), "errors": nearest(WIDE.scaled(1)), "weight_gradients": nearest(WIDE.scaled(3))}
TENSORS = {
    "weights": DiscreteTensors(weights=nearest(TWO_BITS)),
    "binary": DiscreteTensors(weights=nearest(ONE_BIT), inputs=nearest(ONE_BIT)),
    "all": DiscreteTensors(**THREE_TWO, derivatives=nearest(TWO_BITS), **STEEP),
    "codes": DiscreteTensors(weights=nearest(THREE_BITS), master=False),
    "discrete": DiscreteTensors(**THREE_TWO, **GATED),
    "discrete_codes": DiscreteTensors(
        **THREE_TWO | {"weights": nearest(THREE_BITS)}, **GATED, memory=nearest(WIDE), master=False
    ),
    "source_memory": DiscreteTensors(weights=nearest(TWO_BITS), memory=nearest(WIDE)),
}
DEEP = (7, 6, 5, 3)
ENTROPY, SQUARED = "cross_entropy", "squared_error"
PLAIN = {"activation": "clip", "norm": False}
RULES = {
    "discrete": UpdateRule("velocity", 3.0, neuron_rate=0.5),
    "discrete_codes": UpdateRule("velocity", 2.0, 0.75, neuron_rate=0.5),
}
CASES = {
    "normalised": Case(DEEP, ENTROPY, UpdateRule("velocity", 0.3, 0.9)),
    "biases": Case((5, 4, 3), SQUARED, UpdateRule("source", 0.05, 0.5), **PLAIN),
    "one_layer": Case((4, 3), ENTROPY, UpdateRule("source", 0.5), norm=False),
    "weights": Case(DEEP, ENTROPY, UpdateRule("velocity", 0.2, 0.9)),
    "binary": Case((7, 8, 8, 3), ENTROPY, UpdateRule("source", 0.4, 0.5), "clip"),
    "all": Case(DEEP, SQUARED, UpdateRule("source", 0.2, 0.5)),
    "codes": Case((7, 6, 3), SQUARED, UpdateRule("source", 0.9, 0.5), norm=False),
    "discrete": Case(DEEP, ENTROPY, RULES["discrete"], **PLAIN, places=1),
    "discrete_codes": Case(DEEP, ENTROPY, RULES["discrete_codes"], **PLAIN, places=2),
    "source_memory": Case((5, 6, 3), SQUARED, UpdateRule("source", 0.3, 0.5), places=1),
}
CASES |= {name: replace(CASES[name], tensors=tensors) for name, tensors in TENSORS.items()}


def start(name: str) -> dict[str, np.ndarray]:
    """Images, labels and weights at the start, seeded by the case's name."""
    case = CASES[name]
    rng = np.random.default_rng(list(name.encode()))
    arrays = {
        "x": rng.uniform(-1.5, 1.5, (STEPS, BATCH, case.sizes[0])),
        "labels": rng.integers(0, case.sizes[-1], (STEPS, BATCH)),
    }
    for n, (inputs, outputs) in enumerate(zip(case.sizes, case.sizes[1:])):
        weight = rng.uniform(-1, 1, (outputs, inputs))
        if not case.tensors.master:
            values = np.array(case.tensors.weights.table.values)
            weight = values[np.abs(weight[..., None] - values).argmin(axis=-1)]
        arrays[f"{n}.weight"] = weight
        if case.norm:
            arrays[f"{n}.gamma"], arrays[f"{n}.beta"] = rng.uniform(0.5, 1.5, outputs), rng.uniform(-0.5, 0.5, outputs)
        else:
            arrays[f"{n}.bias"] = rng.uniform(-0.5, 0.5, outputs)
    return arrays


def quantised(torch: Any, converter: Converter | None, x: Any) -> Any:
    """The closest value of the table, of two the larger one; without a derivative."""
    if converter is None:
        return x
    values = torch.tensor(sorted(converter.table.values, reverse=True), dtype=torch.float64)
    y = x.detach().clamp(-converter.zone, converter.zone)
    return values[(y[..., None] - values).abs().argmin(dim=-1)]


def straight_through(torch: Any, converter: Converter | None, x: Any) -> Any:
    return x if converter is None else x + (quantised(torch, converter, x) - x).detach()


def activation(torch: Any, spec: DenseSpec, x: Any) -> Any:
    """PyTorch's own activation, whose derivative is quantised where the layer wants it."""
    functions = {"relu": torch.nn.functional.relu, "clip": torch.nn.functional.hardtanh, "none": lambda t: t}
    y = functions[spec.activation](x)
    if spec.tensors.derivatives is None:
        return y
    slope = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
    slope = quantised(torch, spec.tensors.derivatives, slope)
    return y.detach() + slope * (x - x.detach())


def forward(torch: Any, case: Case, params: dict[str, Any], x: Any) -> Any:
    for n, spec in enumerate(case.specs):
        t = spec.tensors
        weight = params[f"{n}.weight"]
        weight = straight_through(torch, t.weights, weight) if t.master else weight
        # By a weight the derivative is that by what is multiplied with, which is 2^-places times it.
        weight = weight + (weight.detach() * (2.0**-spec.places - 1))
        z = straight_through(torch, t.inputs, x) @ weight.T
        if not spec.norm:
            z = z + params[f"{n}.bias"]
        # Gradients here are those of the mean loss of the batch; ours are of each image's.
        z.register_hook(lambda g, c=t.errors: g if c is None else quantised(torch, c, g * BATCH) / BATCH)
        if spec.norm:
            z = torch.nn.functional.batch_norm(
                z, None, None, params[f"{n}.gamma"], params[f"{n}.beta"], training=True, eps=EPSILON
            )
        x = activation(torch, spec, z.clone())  # the slope is asked of a tensor without the hook
    return x


def loss(torch: Any, case: Case, outputs: Any, labels: Any) -> Any:
    if case.criterion == "cross_entropy":
        return torch.nn.functional.cross_entropy(outputs, labels, reduction="none")
    target = torch.nn.functional.one_hot(labels, case.sizes[-1]).double() * 2 - 1
    return torch.nn.functional.mse_loss(outputs, target, reduction="none").sum(dim=1) / 2


def record(torch: Any, name: str) -> dict[str, np.ndarray]:
    """Losses and outputs of each step, and the parameters after it."""
    case = CASES[name]
    arrays = start(name)
    params = {
        key: torch.tensor(value, requires_grad=True) for key, value in arrays.items() if key not in ("x", "labels")
    }
    memory = case.tensors.memory
    if case.rule.name == "velocity":
        weights = [value for key, value in params.items() if key.endswith("weight")]
        others = [value for key, value in params.items() if not key.endswith("weight")]
        groups = [{"params": weights}, {"params": others, "lr": case.rule.neuron_rate or case.rule.rate}]
        optimiser = torch.optim.SGD(groups, lr=case.rule.rate, momentum=case.rule.mu)
        if memory is not None:  # the optimiser takes a velocity for a gradient, as what it remembers can't be converted
            optimiser.param_groups[0]["momentum"] = 0
    last = {key: torch.zeros_like(value) for key, value in params.items()}
    if memory is not None:
        last = {
            key: quantised(torch, memory, value) if key.endswith("weight") else value for key, value in last.items()
        }
    tensors: dict[str, list[np.ndarray]] = {}
    for x, labels in zip(torch.tensor(arrays["x"]), torch.tensor(arrays["labels"])):
        outputs = forward(torch, case, params, x)
        losses = loss(torch, case, outputs, labels)
        for value in params.values():
            value.grad = None
        losses.mean().backward()
        tensors.setdefault("losses", []).append(losses.detach().numpy())
        tensors.setdefault("outputs", []).append(outputs.detach().numpy())
        with torch.no_grad():
            for key, value in params.items():
                if key.endswith("weight"):
                    value.grad = quantised(torch, case.tensors.weight_gradients, value.grad)
                convert = memory if key.endswith("weight") else None
                if case.rule.name == "source":
                    value -= case.rule.rate * (value.grad + case.rule.mu * last[key])
                    last[key] = quantised(torch, convert, value.grad).clone()
                elif convert is not None:
                    value.grad = quantised(torch, convert, case.rule.mu * last[key] + value.grad)
                    last[key] = value.grad.clone()
            if case.rule.name == "velocity":
                optimiser.step()
            for key, value in params.items():
                converter = case.tensors.weights
                if key.endswith("weight") and converter is not None:
                    value.clamp_(-converter.zone, converter.zone)
                    if not case.tensors.master:
                        value.copy_(quantised(torch, converter, value))
                tensors.setdefault(key, []).append(value.detach().numpy().copy())
    return {key: np.array(values) for key, values in tensors.items()}


def main() -> None:
    import torch

    np.savez_compressed(
        FILE, **{f"{name}/{key}": value for name in CASES for key, value in record(torch, name).items()}
    )
    print(f"PyTorch {torch.__version__}: {FILE.name}, {FILE.stat().st_size} bytes")


if __name__ == "__main__":
    main()

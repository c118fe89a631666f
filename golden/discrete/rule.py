"""Update rules: how a parameter moves by its derivative and what is remembered of the update before (C17).

=========  ====================================  ===================
rule       change of w                           remembered
=========  ====================================  ===================
source     rate * (dw + mu * dw')                dw' <- dw
velocity   rate * v                              v <- mu * v + dw
=========  ====================================  ===================
"""

from collections.abc import Callable
from dataclasses import dataclass

from bitloom.golden.encoding import Array

RULES = ("source", "velocity")


@dataclass(frozen=True)
class UpdateRule:
    """A rule with its constants."""

    name: str = "source"
    """One of `RULES`."""
    rate: float = 0.1
    """> 0."""
    mu: float = 0.0
    """0 to 1, 1 excluded; 0 is plain gradient descent."""
    neuron_rate: float | None = None
    """Rate of gamma, beta and biases, of which each neuron has one, > 0; by default as of weights. Discrete weights
    need a large rate to change codes at all, which makes gamma grow, and the loss small, before the weights have
    learned."""

    def __post_init__(self) -> None:
        if self.name not in RULES:
            raise ValueError(f"update rule: name must be one of {', '.join(RULES)}, got {self.name!r}")
        for name in ("rate", "neuron_rate"):
            value = getattr(self, name)
            if (value is not None or name == "rate") and not 0 < value < float("inf"):
                raise ValueError(f"update rule: {name} must be > 0 and finite, got {value!r}")
        if not 0 <= self.mu < 1:
            raise ValueError(f"update rule: mu must be >= 0 and < 1, got {self.mu!r}")

    @property
    def remembers(self) -> bool:
        """Whether anything of an update is needed at the next one."""
        return self.mu > 0

    def change(
        self,
        gradient: Array,
        memory: Array,
        share: float = 1.0,
        *,
        of_neuron: bool = False,
        convert: Callable[[Array], Array] | None = None,
    ) -> tuple[Array, Array]:
        """The number to subtract from a parameter, and the memory for the next call.

        Parameters
        ----------
        gradient : (...) floats
            dw, the derivative of the loss by the parameter.
        memory : (...) floats
            Second result of the call before; zeros at first.
        share : float
            Of the rate, for rates that fall during training.
        of_neuron : bool
            Whether the parameter is gamma, beta or a bias.
        convert : callable, optional
            Makes discrete values of what is remembered.

        Returns
        -------
        (...) and (...) floats
        """
        moved = gradient + self.mu * memory
        remembered = moved if self.name == "velocity" else gradient
        if convert is not None:
            remembered = convert(remembered)
        rate = self.neuron_rate if of_neuron and self.neuron_rate is not None else self.rate
        return rate * share * (remembered if self.name == "velocity" else moved), remembered

"""Update rules: how a parameter moves by its derivative and what is remembered of the update before (C17).

=========  ====================================  ===================
rule       change of w                           remembered
=========  ====================================  ===================
source     rate * (dw + mu * dw')                dw' <- dw
velocity   rate * v                              v <- mu * v + dw
=========  ====================================  ===================
"""

from dataclasses import dataclass

from bitloom.golden.encoding import Array

RULES = ("source", "velocity")


@dataclass(frozen=True)
class UpdateRule:
    """A rule with its constants.

    Attributes
    ----------
    name : str
        One of `RULES`.
    rate : float
        > 0.
    mu : float
        0 to 1, 1 excluded; 0 is plain gradient descent.
    """

    name: str = "source"
    rate: float = 0.1
    mu: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in RULES:
            raise ValueError(f"update rule: name must be one of {', '.join(RULES)}, got {self.name!r}")
        if not 0 < self.rate < float("inf"):
            raise ValueError(f"update rule: rate must be > 0 and finite, got {self.rate!r}")
        if not 0 <= self.mu < 1:
            raise ValueError(f"update rule: mu must be >= 0 and < 1, got {self.mu!r}")

    def change(self, gradient: Array, memory: Array, share: float = 1.0) -> tuple[Array, Array]:
        """What to subtract from a parameter, and what to remember.

        Parameters
        ----------
        gradient : (...) float64
            dw, the derivative of the loss by the parameter.
        memory : (...) float64
            What the call before gave; zeros at first.
        share : float
            Of the rate, for rates that fall during training.

        Returns
        -------
        (...) and (...) float64
        """
        moved = gradient + self.mu * memory
        return self.rate * share * moved, moved if self.name == "velocity" else gradient

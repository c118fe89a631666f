"""Accumulation of the products of one window, cycle by cycle: three structures, three kinds (spec A1, A2, A3).

    parallel   n XNOR --> n-input reducer ------------------------> result
    serial     L XNOR --> reducer of L and the register <--> register --> result
    collect    L XNOR --> register of n bits --> n-input reducer --> result

The reducer is a popcount, an OR, or an OR of each word and a popcount of the words. ``parallel`` takes a window in one
cycle. ``serial`` takes L products a cycle into a running result that begins at 0; the source has L = 1, section B
L = KFP. ``collect`` takes L products a cycle into the n-bit register and reduces it once, in the cycle after the last
products. Where L does not divide the number of products, the lanes that are left over in the last cycle are idle:
feature 0, weight 1, XNOR 0, which adds nothing to a count and nothing to an OR. So does the part of the register that a
short window (beside padding) does not reach.

Golden twin of the hardware's accumulators; the value of a whole layer is golden/layers/conv.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bitloom.golden.integers import make_fields_plain

from .conv import ACCUMULATIONS

STRUCTURES = ("parallel", "serial", "collect")

IDLE_FEATURE, IDLE_WEIGHT = 0, 1
"""Operands of a lane without a product."""


class Cycle(NamedTuple):
    """One cycle of one window. Bits are 0 and 1."""

    features: tuple[int, ...]
    """Operand of each lane; none while ``collect`` reduces."""
    weights: tuple[int, ...]
    products: tuple[int, ...]
    """XNOR of each lane."""
    register: tuple[int, ...]
    """Contents after the cycle: () parallel, (running result,) serial, n bits collect, whose bit i is product i."""
    result: int | None
    """In the window's last cycle: the number of ones, their OR, or the number of words with a one."""


@dataclass(frozen=True, kw_only=True)
class Accumulator:
    """A circuit that reduces the products of a window to one number: it adds them up, takes their OR, or adds up the
    ORs of their words."""

    kind: str
    """One of `ACCUMULATIONS`."""
    structure: str
    """"parallel", "serial" or "collect": see the module's text."""
    products: int
    """n, the most products that a window has, >= 1."""
    lanes: int
    """L, the number of XNOR gates, 1 to n; n where the structure is "parallel"."""
    word: int = 0
    """Products of a word where the kind is "or_words", else 0: word i are products i * word and those after it. It
    divides L unless the structure is "parallel"."""

    def __post_init__(self) -> None:
        make_fields_plain(self)
        for what, value, allowed in (("kind", self.kind, ACCUMULATIONS), ("structure", self.structure, STRUCTURES)):
            if value not in allowed:
                raise ValueError(f"accumulator: {what} must be one of {', '.join(allowed)}, got {value!r}")
        if type(self.products) is not int or self.products < 1:
            raise ValueError(f"accumulator: products must be an integer >= 1, got {self.products!r}")
        if type(self.lanes) is not int or not 1 <= self.lanes <= self.products:
            raise ValueError(f"accumulator: lanes must be an integer 1..{self.products}, got {self.lanes!r}")
        if self.structure == "parallel" and self.lanes != self.products:
            raise ValueError(f"accumulator: parallel must have {self.products} lanes, one a product, got {self.lanes}")
        if self.kind != "or_words" and self.word != 0:
            raise ValueError(f"accumulator: word must be 0 for kind {self.kind}, got {self.word!r}")
        whole = type(self.word) is int and self.word >= 1
        if self.kind == "or_words" and not (whole and (self.structure == "parallel" or self.lanes % self.word == 0)):
            raise ValueError(f"accumulator: word must be >= 1 and divide {self.lanes} lanes, got {self.word!r}")

    def cycles(self, products: int | None = None) -> int:
        """Cycles from a window's first operands to its result; ``products`` is the window's number, by default n."""
        beats = -(-(self.products if products is None else products) // self.lanes)
        return beats + (self.structure == "collect")

    @property
    def register_bits(self) -> int:
        """Bits of the register: none if parallel, the running result's if serial, one a product if it collects."""
        terms = -(-self.products // self.word) if self.word else self.products
        result_bits = 1 if self.kind == "or" else terms.bit_length()
        return {"parallel": 0, "serial": result_bits, "collect": self.products}[self.structure]

    def reduce(self, products: Sequence[int], running: int = 0) -> int:
        """The running result with what these products add to it."""
        if self.kind == "or":
            return int(any(products) or running)
        step = self.word or 1
        return running + sum(any(products[first : first + step]) for first in range(0, len(products), step))

    def run(self, features: Sequence[int], weights: Sequence[int]) -> Iterator[Cycle]:
        """Run through the cycles of one window.

        Parameters
        ----------
        features, weights : sequence of int
            1 to n bits each, 0 or 1; bit 1 stands for +1.

        Yields
        ------
        Cycle

        Raises
        ------
        ValueError
            If there are no operands, more than n, or others than 0 and 1.
        """
        count = len(features)
        if not 1 <= count <= self.products or len(weights) != count:
            raise ValueError(
                f"accumulator: a window must have 1..{self.products} features and as many weights, "
                f"got {count} and {len(weights)}"
            )
        if not {*features, *weights} <= {0, 1}:
            raise ValueError(f"accumulator: operands must be 0 or 1, got {[*features]} and {[*weights]}")
        running = 0
        collected = [0] * self.products
        for first in range(0, count, self.lanes):
            x = self._beat(features, first, IDLE_FEATURE)
            w = self._beat(weights, first, IDLE_WEIGHT)
            products = tuple(1 - (a ^ b) for a, b in zip(x, w))
            last = first + self.lanes >= count
            if self.structure == "parallel":
                yield Cycle(x, w, products, (), self.reduce(products))
            elif self.structure == "serial":
                running = self.reduce(products, running)
                yield Cycle(x, w, products, (running,), running if last else None)
            else:
                for i, product in enumerate(products[: self.products - first]):  # idle lanes may reach beyond it
                    collected[first + i] = product
                yield Cycle(x, w, products, tuple(collected), None)
        if self.structure == "collect":
            yield Cycle((), (), (), tuple(collected), self.reduce(collected))

    def result(self, features: Sequence[int], weights: Sequence[int]) -> int:
        """The result that the last cycle of `run` gives for the same operands."""
        *_, last = self.run(features, weights)
        assert last.result is not None
        return last.result

    def _beat(self, operands: Sequence[int], first: int, idle: int) -> tuple[int, ...]:
        """Operands of the lanes in the cycle that begins with element ``first``."""
        beat = tuple(operands[first : first + self.lanes])
        return beat + (idle,) * (self.lanes - len(beat))


def value(kind: str, result: int, terms: int) -> int:
    """A window's value by golden/layers/conv.py.

    Parameters
    ----------
    kind : str
        "popcount", "or" or "or_words".
    result : int
        Number that an accumulator gives: p, the number of ones or of words with a one, or the OR of the ones.
    terms : int
        n, the products of the window, or its words.

    Returns
    -------
    int
        The signed sum 2p - n, or the bit as +1 or -1.
    """
    return 2 * result - (1 if kind == "or" else terms)

"""How wide numbers are behind the array: of sums with their bias, of requantisation and addition.

These widths follow from several parts of an NPU: array, results unit and skip store.
"""

from typing import TYPE_CHECKING

from .parts import present
from .widths import MAX_ADD_SHIFT, SHIFT_BITS, bits_for

if TYPE_CHECKING:
    from .array import BinaryArray, IntegerArray
    from .results import Results
    from .stores import Stores


class ResultWidths:
    """Widths behind the array of an NPU (npu.py)."""

    array: "BinaryArray | IntegerArray"
    results: "Results"
    stores: "Stores"

    @property
    def has_skip(self) -> bool:
        """Whether there is a skip store, and an addition."""
        return self.stores.skip is not None

    @property
    def requantises(self) -> bool:
        """Whether sums are requantised; else they are compared with thresholds."""
        return self.array.engine == "integer" or self.has_skip

    @property
    def keeps_steps(self) -> bool:
        """Whether steps of results go to the skip store, integers of which the signs go on: in a binary NPU."""
        return self.array.engine == "binary" and self.has_skip

    @property
    def forks_maps(self) -> bool:
        """Whether words of maps go to the skip store: in an integer NPU."""
        return self.array.engine == "integer" and self.has_skip

    @property
    def value_bits(self) -> int:
        """Bits of a result behind the activation and the addition."""
        return (self.stores.skip.bits if self.stores.skip else 0) or self.array.feature_bits

    @property
    def skip_lanes(self) -> int:
        """Results in a word of the skip store."""
        return self.results.ol if self.keeps_steps else self.array.kfp

    @property
    def skip_word_bits(self) -> int:
        """Width of a word of the skip store, without the mark who takes it."""
        return self.skip_lanes * self.value_bits

    @property
    def biased_bits(self) -> int:
        """Width of a sum with its bias: as accumulators, and the bits behind the point."""
        return self.array.acc_bits + self.results.bias_fraction_bits

    @property
    def scale_shift_bits(self) -> int:
        """Width of a requantisation's shift, up to most_shift."""
        return max(SHIFT_BITS, bits_for(self.most_shift))

    @property
    def most_shift(self) -> int:
        """Largest shift that requantisation takes; a larger one has the same result, 0.

        A biased value is at least -2^(biased_bits - 1), and multipliers are below 2^multiplier_bits, or 1. So the
        product over 2^most_shift is nearer to 0 than to 1. What the first of two roundings adds must not change that,
        and needs so many bits.
        """
        product = self.biased_bits + max(self.results.multiplier_bits, 1)
        return max(product + 1, self.results.first_shift + 2) if self.results.round_twice else product

    @property
    def product_bits(self) -> int:
        """Width of a requantisation's product, to which half of 2^most_shift can be added."""
        return self.most_shift + 1

    @property
    def add_total_bits(self) -> int:
        """Width of the sum of an addition: two products and a bias."""
        skip = present(self.stores.skip)
        return max(self.value_bits + skip.factor_bits, skip.bias_bits) + 1

    @property
    def most_add_shift(self) -> int:
        """Largest shift that an addition takes; a larger one has the same result, 0."""
        return min(MAX_ADD_SHIFT, self.add_total_bits)

    @property
    def add_shift_bits(self) -> int:
        """Width of an addition's shift."""
        return bits_for(self.most_add_shift)

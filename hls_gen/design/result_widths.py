"""How an NPU makes results of its sums: by thresholds, or by requantisation and addition, and how wide numbers are
there."""

from dataclasses import dataclass

from bitloom.golden.layers.requantise import FIRST_SHIFT

from .capacities import Capacities
from .folding import Folding
from .widths import MAX_ADD_SHIFT, SHIFT_BITS, bits_for


@dataclass(frozen=True, kw_only=True)
class ResultWidths(Capacities, Folding):
    """What follows from folding and capacities for an NPU's results (hls_gen/design/npu.py)."""

    @property
    def requantises(self) -> bool:
        """Whether sums are requantised; else they are compared with thresholds."""
        return self.engine == "integer" or self.skip_words > 0

    @property
    def keeps_steps(self) -> bool:
        """Whether steps of results go to the skip store, integers of which the signs go on: in a binary NPU."""
        return self.engine == "binary" and self.skip_words > 0

    @property
    def forks_maps(self) -> bool:
        """Whether words of maps go to the skip store: in an integer NPU."""
        return self.engine == "integer" and self.skip_words > 0

    @property
    def value_bits(self) -> int:
        """Bits of a result behind the activation and the addition."""
        return self.skip_bits or self.feature_bits

    @property
    def skip_lanes(self) -> int:
        """Results in a word of the skip store."""
        return self.ol if self.keeps_steps else self.kfp

    @property
    def skip_word_bits(self) -> int:
        """Width of a word of the skip store, without the mark who takes it."""
        return self.skip_lanes * self.value_bits

    @property
    def roundings(self) -> tuple[str, ...]:
        """How layers may round (golden.layers.requantise.ROUNDINGS)."""
        return ("once", *["even"] * self.half_even, *["twice"] * self.round_twice)

    @property
    def biased_bits(self) -> int:
        """Width of a sum with its bias: as accumulators, and the bits behind the point."""
        return self.acc_bits + self.bias_fraction_bits

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
        product = self.biased_bits + max(self.multiplier_bits, 1)
        return max(product + 1, self.first_shift + 2) if self.round_twice else product

    @property
    def first_shift(self) -> int:
        """Bits that the first of two roundings takes off, with those behind the bias's point."""
        return FIRST_SHIFT + self.bias_fraction_bits

    @property
    def product_bits(self) -> int:
        """Width of a requantisation's product, to which half of 2^most_shift can be added."""
        return self.most_shift + 1

    @property
    def add_total_bits(self) -> int:
        """Width of the sum of an addition: two products and a bias."""
        return max(self.value_bits + self.add_factor_bits, self.add_bias_bits) + 1

    @property
    def most_add_shift(self) -> int:
        """Largest shift that an addition takes; a larger one has the same result, 0."""
        return min(MAX_ADD_SHIFT, self.add_total_bits)

    @property
    def add_shift_bits(self) -> int:
        """Width of an addition's shift."""
        return bits_for(self.most_add_shift)

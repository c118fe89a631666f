"""Factors that are searched for staircases, beside golden's rule on every sum."""

from fractions import Fraction

import numpy as np
import pytest

from bitloom.golden.encoding import signed
from bitloom.golden.layer import Map
from bitloom.golden.layers.requantise import MAX_SHIFT, SUM_BITS, Requantise
from bitloom.golden.layers.rounding import PRODUCT_BITS
from bitloom.overlay.importers.boundaries import staircases
from bitloom.overlay.importers.links import Line
from bitloom.overlay.importers.requantise_fit import Factors, arrays, fit, fits, mismatch
from bitloom.overlay.importers.rows import Boundaries

SUMS = signed(10)
LOW, LEVELS = -8, 15


def stairs_of(slopes, offsets, reached):
    """Staircases of channels whose real value is slope * sum + offset, to the nearest integer."""
    line = Line(multiply=np.array(slopes, object), add=np.array(offsets, object))
    limits = np.array([[LOW + j + Fraction(1, 2) for j in range(LEVELS)]], object)
    return staircases([], Boundaries(limits=limits, reached=np.array(reached)), line)


def check(slopes, offsets, reached):
    """The fit, which is judged on all sums: exact channels have no other level, others those that are told."""
    stairs = stairs_of(slopes, offsets, reached)
    fitted = fit(stairs, slopes, LOW, SUMS)
    sums = np.arange(SUMS.low, SUMS.high + 1)[:, None].repeat(len(slopes), axis=1)
    rounding = "even" if fitted.half_even else "once"
    layer = Requantise(name="r", encoding=signed(4), fraction=fitted.fraction, rounding=rounding)
    source = Map(height=1, width=1, channels=len(slopes), encoding=SUMS)
    layer.check_arrays(arrays(fitted.factors), source)
    got = layer.forward(sums, arrays(fitted.factors), source)
    wanted = np.stack([LOW + stair.level(sums[:, k]) for k, stair in enumerate(stairs)], axis=1)
    for k, (stair, factors) in enumerate(zip(stairs, fitted.factors)):
        off = np.abs(got[:, k] - wanted[:, k])
        assert factors.exact == (off.max() == 0)
        assert mismatch(stair, k, fitted, LOW, (SUMS.low, SUMS.high)) == ((off > 0).sum(), off.max())
    return fitted


AWAY = [LOW + j > 0 for j in range(1, LEVELS + 1)]
EVEN = [(LOW + j) % 2 == 0 for j in range(1, LEVELS + 1)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("reached", "half_even"), [(AWAY, False), (EVEN, True)])
def test_ties_at_powers_of_two(reached, half_even, seed):
    """Every channel has ties, with biases that are halves of a sum, too."""
    rng = np.random.default_rng(seed)
    slopes = [Fraction(int(m), 1 << int(e)) for m, e in zip(rng.integers(1, 8, 6), rng.integers(3, 7, 6))]
    offsets = [slope * int(b) / 2 for slope, b in zip(slopes, rng.integers(-20, 21, 6))]
    slopes[0], offsets[0] = Fraction(1, 4), Fraction(0)
    fitted = check(slopes, offsets, reached)
    assert fitted.wrong == 0
    assert fitted.half_even == half_even


@pytest.mark.parametrize("reached", [[True] * LEVELS, [False] * LEVELS])
def test_a_bias_rounds_halves_up_or_down(reached):
    fitted = check([Fraction(1, 4), Fraction(3, 64)], [Fraction(0), Fraction(1, 7)], reached)
    assert fitted.wrong == 0


def test_other_ties_are_told():
    """Halves to the odd one: no rounding has them all, and the channel without ties is exact."""
    fitted = check([Fraction(1, 4), Fraction(3, 64)], [Fraction(0), Fraction(1, 7)], [not hit for hit in EVEN])
    assert [factors.exact for factors in fitted.factors] == [False, True]


def test_scales_without_ties_are_exact_in_one_way():
    rng = np.random.default_rng(9)
    slopes = [Fraction(float(v)) for v in rng.uniform(0.01, 0.3, 12)]
    offsets = [Fraction(float(v)) for v in rng.normal(size=12)]
    fitted = check(slopes, offsets, EVEN)
    assert (fitted.wrong, fitted.half_even) == (0, False)


def test_scales_with_more_bits_than_a_multiplier():
    """As of TFLite's dense layers: whole biases, scales of 53 bits, and sums that leave no room for many bits of a bias
    behind the point."""
    rng = np.random.default_rng(1)
    levels, count = 255, 30
    slopes = [Fraction(float(scale)) for scale in rng.uniform(1e-4, 4e-4, count)]
    offsets = [slope * int(bias) for slope, bias in zip(slopes, rng.integers(-300_000, 300_000, count))]
    limits = np.array([[j + Fraction(1, 2) for j in range(levels)]], object)
    line = Line(multiply=np.array(slopes, object), add=np.array(offsets, object))
    stairs = staircases([], Boundaries(limits=limits, reached=np.ones(levels, bool)), line)
    about = [Fraction(levels - 1, stair.limits[-1] - stair.limits[0]) for stair in stairs]  # as steps say
    assert fit(stairs, about, 0, signed(27)).wrong == 0


@pytest.mark.parametrize("fraction", [0, 3])
def test_what_fits_a_layer_fits_the_importer(fraction):
    """At each limit: sums with their bias, products, and shifts."""
    source = Map(height=1, width=1, channels=1, encoding=SUMS)
    layer = Requantise(name="r", encoding=signed(4), fraction=fraction)
    most_bias = (1 << SUM_BITS - 1 + fraction) - 1 - (SUMS.high << fraction)
    most_factor = ((1 << PRODUCT_BITS - 1) - 1) // (-SUMS.low << fraction)
    fitting = [(most_bias, 1, 0), (0, 1, MAX_SHIFT)]
    too_large = [(most_bias + 1, 1, 0), (0, 1, MAX_SHIFT + 1), (0, 1, -1)]
    cases = dict.fromkeys(fitting, True) | dict.fromkeys(too_large, False)
    for (bias, multiplier, shift), fit_is_there in cases.items():
        factors = Factors(bias, multiplier, shift, exact=True)
        assert fits(factors, fraction, SUMS) == fit_is_there
        try:
            layer.check_arrays(arrays([factors]), source)
        except ValueError:
            assert not fit_is_there
        else:
            assert fit_is_there
    for multiplier in (most_factor, most_factor + 1):  # the layer has a limit of its own for multipliers
        assert fits(Factors(0, multiplier, 0, exact=True), fraction, SUMS) == (multiplier == most_factor)

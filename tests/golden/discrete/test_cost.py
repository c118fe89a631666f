"""Costs of training, counted by hand for perceptrons of 64, 256, 256 and 10 neurons."""

import pytest

from bitloom.golden.discrete.cost import training_cost
from bitloom.golden.discrete.setting import SETTINGS

FIRST = 64 * 256
WEIGHTS = 64 * 256 + 256 * 256 + 256 * 10
READ, HIDDEN, NEURONS = 64 + 256 + 256, 256 + 256, 256 + 256 + 10
"""Inputs of all layers; neurons with an activation, and all."""
BATCH = 64
"""Images of a batch, but in the settings with binary activations."""


def cost(name: str):
    setting = SETTINGS[name]
    return training_cost(64, setting.specs(64, (256, 256), 10), setting.rule, setting.batch)


def test_floating_point_with_normalisation():
    """Forwards, backwards and gradients take a product a weight, of the first layer two; f' one, a normalised sum six
    and gamma times inverse; the update of each of the parameters has two, which a batch shares. Kept are parameters and
    velocities; of an image inputs, f' and normalised sums."""
    costs = cost("float")
    parameters = WEIGHTS + 2 * NEURONS
    updates = 2 * parameters / BATCH
    assert costs.multiplications == pytest.approx(3 * WEIGHTS - FIRST + HIDDEN + NEURONS * (6 + 1 / BATCH) + updates)
    assert (costs.shifts, costs.look_ups) == (0, 0)
    assert costs.parameter_bits == 64
    assert costs.batch_bits == BATCH * 32 * (READ + HIDDEN + NEURONS)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_weights_of_codes_with_a_master_copy(bits):
    """Products with weights, forwards and backwards, have one factor that is a code."""
    costs = cost(f"nearest-{bits}")
    parameters = WEIGHTS + 2 * NEURONS
    assert costs.shifts == 2 * WEIGHTS - FIRST
    assert costs.look_ups == 0
    assert costs.parameter_bits == pytest.approx((WEIGHTS * (bits + 64) + 2 * NEURONS * 64) / parameters)


@pytest.mark.parametrize(("name", "of_codes"), [("binary", WEIGHTS - FIRST), ("binary-input", WEIGHTS)])
def test_binary_activations(name, of_codes):
    """Forwards both factors are codes, in the first layer only where the input is one, too; backwards and of gradients
    one of them."""
    costs = cost(name)
    batch = SETTINGS[name].batch
    assert costs.look_ups == of_codes
    assert costs.shifts == (WEIGHTS - FIRST) + of_codes + (WEIGHTS - of_codes)
    rest = HIDDEN + NEURONS * (6 + 1 / batch) + 2 * (WEIGHTS + 2 * NEURONS) / batch
    assert costs.multiplications == pytest.approx(WEIGHTS - of_codes + rest)


def test_a_rule_that_remembers_nothing():
    """A gradient of codes takes a shift by the rate, and no bit between two updates."""
    costs = cost("discrete-1")
    assert costs.multiplications == NEURONS / BATCH
    assert costs.shifts == WEIGHTS / BATCH + HIDDEN
    assert costs.parameter_bits == pytest.approx((WEIGHTS * 33 + NEURONS * 32) / (WEIGHTS + NEURONS))


def test_discrete_training_multiplies_for_biases_alone():
    """And what it keeps of a weight is a code of it and one of its velocity."""
    costs = cost("discrete-codes-1")
    assert costs.multiplications == 2 * NEURONS / BATCH
    assert costs.shifts == 2 * WEIGHTS / BATCH + HIDDEN
    assert costs.look_ups == 3 * WEIGHTS - FIRST
    assert costs.parameter_bits == (4 * WEIGHTS + 64 * NEURONS) / (WEIGHTS + NEURONS)
    assert costs.batch_bits == BATCH * (3 * READ + HIDDEN)

import itertools
from fractions import Fraction

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed, signed_bits
from bitloom.golden.layer import Map
from bitloom.golden.layers.batch_norm import BatchNorm, UniformQuantiser, fold, sign
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from tests.cases import case_map, random_values
from tests.errors import value_error

TINY = 5e-324  # smallest subnormal
HUGE = 1.7e308


def norm_of(rows: list[tuple[float, ...]], eps: float = 0.0, **more: object) -> BatchNorm:
    """One channel per (gamma, beta, mean, var)."""
    gamma, beta, mean, var = np.array(rows, np.float64).T
    return BatchNorm(name="norm_1", gamma=gamma, beta=beta, mean=mean, var=var, eps=eps, **more)


def agree_everywhere(norm: BatchNorm, low: int, high: int, step: int, quantiser=sign, levels: int = 1) -> dict:
    """Fold, then compare the Threshold layer with the real-valued rule for every accumulator in reach."""
    arrays = fold(norm, low, high, step=step, quantiser=quantiser, levels=levels)
    reach = np.arange(low, high + 1, step)
    x = np.broadcast_to(reach[:, None, None, None], (len(reach), 1, 1, norm.channels))
    source = Map(height=1, width=1, channels=norm.channels, encoding=signed(signed_bits(low, high)))
    layer = Threshold(name="threshold_1", levels=levels)
    layer.check_arrays(arrays, source)
    ours = (layer.forward(x, arrays, source)[:, 0, 0] + levels) // 2
    np.testing.assert_array_equal(ours, quantiser(norm.normalise(reach[:, None])))
    return arrays


EDGES = list(
    itertools.product(
        (0.0, -0.0, 1.0, -1.0, 0.3, -0.7, TINY, -TINY, HUGE, -HUGE, 1e-200, -1e200),
        (0.0, -0.0, 2.0, -3.0, TINY, -TINY, HUGE, -HUGE, 0.1),
        (0.0, 1.0, -4.0, 0.5, 8.9999999999, 1e17, -HUGE, TINY),
        (1.0, TINY, 1e-310, 0.25, 3.7, HUGE),
    )
)


@pytest.mark.parametrize(
    ("low", "high", "step"), [(-9, 9, 2), (-9, 9, 1), (-8, 8, 2), (0, 0, 1), (-1, 1, 2), (3, 4, 1)]
)
def test_sign_agrees_for_every_accumulator_at_the_edges_of_float64(low, high, step):
    agree_everywhere(norm_of(EDGES), low, high, step)


@pytest.mark.parametrize("eps", [0.0, 1e-5, TINY])
def test_sign_agrees_for_every_accumulator_of_a_wide_layer(eps):
    rng = np.random.default_rng(1)
    gamma, beta = rng.normal(size=(2, 300))
    rows = list(zip(gamma, beta, rng.normal(0, 40, 300), rng.gamma(2, 200, 300)))
    agree_everywhere(norm_of(rows, eps), -2304, 2304, 2)


def test_a_tie_becomes_plus_one():
    """gamma * (a - mean) / 1 + beta is exactly 0 at a = 3."""
    norm = norm_of([(1, 0, 3, 1), (-1, 0, 3, 1), (2, -2, 2, 1), (-2, 2, 2, 1)])
    arrays = agree_everywhere(norm, -9, 9, 2)
    assert arrays["threshold"].tolist() == [[3], [3], [3], [3]]
    assert arrays["direction"].tolist() == [1, -1, 1, -1]


def test_a_constant_has_its_threshold_at_the_end_of_the_reach_or_one_step_beyond():
    norm = norm_of([(0, 1, 0, 1), (0, -1, 0, 1), (-0.0, -0.0, 0, 1), (1, -99, 0, 1), (-1, 99, 0, 1)])
    arrays = agree_everywhere(norm, -9, 9, 2)
    assert arrays["threshold"].tolist() == [[-9], [11], [-9], [11], [-9]]
    assert arrays["direction"].tolist() == [1, 1, 1, 1, 1]


def test_the_threshold_is_where_float64_says_and_not_where_algebra_says():
    """0.1 * (a - 3) + 0.5 at a = -2: float64 gives 0, the product of the same two doubles and 0.5 are 3e-17 below 0."""
    assert Fraction(0.1) * -5 + Fraction(0.5) < 0
    arrays = agree_everywhere(norm_of([(0.1, 0.5, 3.0, 1.0)]), -9, 9, 1)
    assert arrays["threshold"].tolist() == [[-2]]


@pytest.mark.sample(16)
@pytest.mark.parametrize("lowest", [0, -1, -3])
@pytest.mark.parametrize("levels", [1, 2, 3, 15])
@pytest.mark.parametrize("size", [1.0, 0.3, 1e-300, 1e300])
def test_levels_agree_for_every_accumulator(levels, lowest, size):
    quantiser = UniformQuantiser(levels=levels, step=size, lowest=lowest)
    agree_everywhere(norm_of(EDGES), -9, 9, 2, quantiser, levels)
    rng = np.random.default_rng(levels)
    rows = np.stack([rng.normal(size=40), rng.normal(size=40), rng.normal(size=40), rng.gamma(2, 20, 40)], axis=1)
    agree_everywhere(norm_of(list(map(tuple, rows))), -300, 300, 1, quantiser, levels)


def test_levels_round_halves_to_even():
    """y = a / 2: level thresholds at 1, 3, 5 halves, of which only 3/2 rounds up."""
    norm = norm_of([(1, 0, 0, 4)])
    arrays = agree_everywhere(norm, -9, 9, 1, UniformQuantiser(levels=3, step=1.0), 3)
    assert arrays["threshold"].tolist() == [[2, 3, 6]]


def test_levels_of_a_falling_channel_share_its_direction():
    arrays = agree_everywhere(norm_of([(-1, 0, 0, 1)]), -9, 9, 1, UniformQuantiser(levels=3, step=4.0, lowest=-1), 3)
    assert arrays["direction"].tolist() == [-1]
    assert arrays["threshold"].tolist() == [[2, -3, -6]]  # a <= 2: -a / 4 >= -0.5, which rounds to 0


def test_the_rule_equals_pytorch(torch):
    rng = np.random.default_rng(5)
    gamma, beta, mean = rng.normal(size=(3, 7))
    var = rng.gamma(2, 30, 7)
    x = rng.integers(-99, 100, (50, 7, 1, 1))
    y = torch.nn.functional.batch_norm(
        torch.tensor(x, dtype=torch.float64), *map(torch.tensor, (mean, var, gamma, beta)), eps=1e-5
    )
    norm = BatchNorm(name="norm_1", gamma=gamma, beta=beta, mean=mean, var=var, eps=1e-5)
    ours = norm.normalise(x[:, :, 0, 0])
    np.testing.assert_allclose(ours, y[:, :, 0, 0].numpy(), rtol=1e-12, atol=1e-12)
    z = torch.tensor([-1.5, -0.5, 0.5, 1.5, 2.5, 3.5, -9, 9], dtype=torch.float64)
    quantiser = UniformQuantiser(levels=5, step=0.5, lowest=-2)
    np.testing.assert_array_equal(
        quantiser(z.numpy()) - 2, torch.fake_quantize_per_tensor_affine(z.float(), 0.5, 0, -2, 3).numpy() / 0.5
    )


def test_a_layer_with_folded_normalisation_equals_pytorch(torch):
    """Convolution, batch normalisation and sign by PyTorch; convolution and thresholds here. No value is near a tie."""
    rng = np.random.default_rng(7)
    source = case_map(7, 5, 33)
    layer = Conv(name="conv_1", out_channels=31, kernel=(3, 2), stride=(2, 1))
    x, weight = random_values((6, 7, 5, 33), BIPOLAR, rng), random_values((31, 3, 2, 33), BIPOLAR, rng)
    gamma, beta, mean = rng.normal(size=(3, 31)) * np.array([[1], [0.3], [5]])
    var = rng.gamma(2, 90, 31)
    nchw = (torch.tensor(a, dtype=torch.float64).permute(0, 3, 1, 2) for a in (x, weight))
    sums = torch.nn.functional.conv2d(*nchw, stride=(2, 1))
    y = torch.nn.functional.batch_norm(sums, *map(torch.tensor, (mean, var, gamma, beta)), eps=1e-5)
    y = y.permute(0, 2, 3, 1).numpy()
    assert np.abs(y).min() > 1e-9
    norm = BatchNorm(name="norm_1", gamma=gamma, beta=beta, mean=mean, var=var, eps=1e-5)
    layers = (layer, Threshold(name="threshold_1"))
    folded = fold(norm, *layer.accumulator_range(source), step=2)
    model = Model(Network(name="n", input=source, layers=layers), {"conv_1": {"weight": weight}, "threshold_1": folded})
    assert set(folded["direction"].tolist()) == {-1, 1}
    np.testing.assert_array_equal(model.forward(x), np.where(y >= 0, 1, -1))


@pytest.mark.parametrize(
    ("what", "value", "message"),
    [
        ("gamma", np.nan, "norm_1.gamma: must be finite, got nan in channel 1"),
        ("beta", np.inf, "norm_1.beta: must be finite, got inf in channel 1"),
        ("mean", -np.inf, "norm_1.mean: must be finite, got -inf in channel 1"),
        ("var", np.nan, "norm_1.var: must be finite, got nan in channel 1"),
        ("var", -1.0, "norm_1.var: must be >= 0, got -1.0 in channel 1"),
        ("var", 0.0, "norm_1.var + eps: must be > 0 and finite, got 0.0 in channel 1"),
        ("scale", np.nan, "norm_1.scale: must be finite, got nan in channel 1"),
        ("bias", np.inf, "norm_1.bias: must be finite, got inf in channel 1"),
    ],
)
def test_a_number_out_of_range_is_named(what, value, message):
    values = {w: np.array([1.0, 1.0]) for w in ("gamma", "beta", "mean", "var", "scale", "bias")}
    values[what][1] = value
    with value_error(message):
        BatchNorm(name="norm_1", eps=0.0, **values)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"eps": -1e-5}, "norm_1.eps: must be >= 0 and finite, got -1e-05"),
        ({"eps": np.nan}, "norm_1.eps: must be >= 0 and finite, got nan"),
        ({"var": np.array([HUGE]), "eps": HUGE}, "norm_1.var + eps: must be > 0 and finite, got inf in channel 0"),
        ({"gamma": np.ones((1, 1))}, "norm_1.gamma: shape must be (channels,), got (1, 1)"),
        ({"mean": np.ones(2)}, "norm_1.mean: shape must be (1,), as gamma's, got (2,)"),
        ({"var": 1.0}, "norm_1.var: shape must be (1,), as gamma's, got ()"),
    ],
)
def test_eps_and_shapes_are_checked(more, message):
    one = np.ones(1)
    with value_error(message):
        BatchNorm(**{"name": "norm_1", "gamma": one, "beta": one, "mean": one, "var": one, "eps": 0.0, **more})


@pytest.mark.parametrize(
    ("low", "high", "step", "message"),
    [
        (-9, 9, 0, "norm_1: step must be >= 1 and divide high - low, got 0 for -9..9"),
        (-9, 8, 2, "norm_1: step must be >= 1 and divide high - low, got 2 for -9..8"),
        (9, 8, 1, "norm_1: accumulators must be within +-2^53, low <= high, got 9..8"),
        (0, 2**53 + 1, 1, "norm_1: accumulators must be within +-2^53, low <= high, got 0..9007199254740993"),
    ],
)
def test_the_reach_is_checked(low, high, step, message):
    with value_error(message):
        fold(norm_of([(1, 0, 0, 1)]), low, high, step=step)


def test_an_infinite_scaled_accumulator_is_refused():
    with value_error("norm_1.scale * accumulator + bias - mean: must be finite, got -inf in channel 0"):
        fold(norm_of([(0, 0, 0, 1)], scale=HUGE), -9, 9)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"levels": 0, "step": 1.0}, "quantiser: levels must be >= 1, got 0"),
        ({"levels": 1, "step": 0.0}, "quantiser: step must be > 0 and finite, got 0.0"),
        ({"levels": 1, "step": np.inf}, "quantiser: step must be > 0 and finite, got inf"),
    ],
)
def test_the_quantiser_is_checked(more, message):
    with value_error(message):
        UniformQuantiser(**more)

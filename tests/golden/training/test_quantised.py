"""Training of several levels, ternary weights, and integers of 2 to 8 bits."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.encoding import TERNARY, signed, unsigned
from bitloom.golden.file import model_digest
from bitloom.golden.layers.pool import AvgPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.training.activation import ThresholdBlock
from bitloom.golden.training.block_graph import BlockGraph
from bitloom.golden.training.blocks import block
from bitloom.golden.training.reproducible import to_grid
from bitloom.golden.training.train import Epoch, Recipe, fit, train
from bitloom.golden.training.weights import quantised
from tests.errors import value_error
from tests.graph_text import map_of, network_of

from .test_train import derivative, flat, integers, toy_data
from .torch_blocks import CASES, FILE

MAP = map_of("5x7x3 s8")
ENCODINGS = [TERNARY, *(signed(bits) for bits in range(2, 9))]


# Weights.


def test_ternary_weights_have_a_dead_zone():
    third = 1 / 3
    real = np.array([-1, np.nextafter(-third, -1), -third, 0, third, np.nextafter(third, 1), 1])
    assert quantised(TERNARY, real).tolist() == [-1, -1, 0, 0, 0, 1, 1]


def test_integer_weights_are_the_nearest_of_a_symmetric_grid():
    assert quantised(signed(3), np.array([-1, -0.84, -0.83, 0.16, 0.17, 0.5, 1])).tolist() == [-3, -3, -2, 0, 1, 2, 3]
    for encoding in ENCODINGS:
        drawn = quantised(encoding, np.linspace(-1, 1, 1001))
        assert sorted(set(drawn.tolist())) == list(range(-encoding.high, encoding.high + 1))


# Activations.


@pytest.mark.parametrize("levels", [1, 2, 3, 7])
def test_levels_are_the_nearest_value(levels):
    b = ThresholdBlock(Threshold(name="threshold", levels=levels), MAP, 2)
    values = np.linspace(-1, 1, levels + 1)
    z = integers((1000,), -3000, 3000) / 2048 + 1 / 8192
    nearest = values[np.abs(z[:, None] - values).argmin(axis=1)]
    np.testing.assert_allclose(b.quantise(z) / levels, nearest, atol=1e-12)


ACTIVATIONS = [
    (Threshold(name="one"), -1, 1),
    (Threshold(name="two", levels=2), -1, 1),
    (Threshold(name="three", levels=3), -1, 1),
    (Requantise(name="unsigned", encoding=unsigned(4)), 0, 3),
    (Requantise(name="signed", encoding=signed(4)), -24 / 7, 3),
    (Requantise(name="relu", encoding=signed(8), relu=True, clip=(-5, 100)), 0, 3),
]


@pytest.mark.parametrize(("layer", "low", "high"), ACTIVATIONS, ids=lambda v: getattr(v, "name", ""))
@pytest.mark.parametrize("unit", [1.0, 64.0])
def test_activation_backward_is_the_derivative_of_its_slope(layer, low, high, unit):
    """Through the batch's own mean and variance, in the unit of the accumulators."""
    b = block(layer, MAP, 2, unit)
    x = flat(integers((2, *MAP.shape), -100, 100))
    params = {"gamma": np.array([0.7, -1.2, 2.0]), "beta": np.array([0.1, 0.3, -0.4])}

    def value(p: dict, v: np.ndarray) -> float:
        _, (_, z, _) = b.forward(p, v)
        return (error * np.clip(z, low, high)).sum()

    out, tape = b.forward(params, x)
    error = to_grid(integers(out.shape, -9, 9, seed=2) / 4)
    back, slopes = b.backward(params, tape, error)
    numeric = unit * derivative(lambda v: value(params, v), x, 1e-4)
    np.testing.assert_allclose(back, numeric, rtol=1e-5, atol=1e-7 * unit)
    for key in params:
        numeric = derivative(lambda v, key=key: value({**params, key: v}, x), params[key], 1e-6)
        np.testing.assert_allclose(slopes[key], numeric, rtol=1e-5)
    assert out.min() >= b.target.encoding.low
    assert out.max() <= b.target.encoding.high
    assert layer.name != "one" or set(out.ravel()) == {-1, 1}


@pytest.mark.parametrize("layer", [Threshold(name="t", levels=2), Requantise(name="r", encoding=signed(4))], ids=str)
def test_the_slope_counts_up_to_both_ends(layer):
    """Where gamma is 0, z is beta in every place: at an end it counts, beyond it doesn't."""
    b = block(layer, MAP, 2)
    x = flat(integers((2, *MAP.shape), -9, 9))
    inside = [(b.low, True), (b.high, True)]
    for beta, counts in [*inside, (np.nextafter(b.low, -9), False), (np.nextafter(b.high, 9), False)]:
        out, tape = b.forward({"gamma": np.zeros(3), "beta": np.full(3, beta)}, x)
        _, slopes = b.backward({"gamma": np.zeros(3), "beta": np.full(3, beta)}, tape, np.ones(out.shape))
        assert slopes["beta"].tolist() == [counts * 2 * 35] * 3


def test_accumulators_of_many_bits_are_summed_in_steps():
    """Statistics and derivatives stay exact sums, near those of the accumulators themselves."""
    source = replace(MAP, encoding=signed(26))
    b = block(Requantise(name="wide", encoding=unsigned(8)), source, 32)
    assert b.step == 2.0**7
    x = flat(integers((32, *source.shape), -(1 << 24), 1 << 24))
    of = b.moments(x)
    np.testing.assert_allclose(of.mean, x.mean(axis=(0, 1)), atol=2**7)
    np.testing.assert_allclose(of.variance, x.var(axis=(0, 1)), rtol=1e-4)
    assert (of.mean * 32 * 35 % b.step == 0).all()


POOLS = [AvgPool(name="pool", kernel=(2, 2), stride=(2, 2))]
POOLS.append(AvgPool(name="pool", kernel=(3, 2), stride=(1, 2), padding=(2, 1, 0, 0)))


@pytest.mark.parametrize("layer", POOLS)
def test_average_equals_golden_and_its_derivative_is_that_without_rounding(layer):
    b = block(layer, MAP, 2)
    x = integers((2, *MAP.shape), -128, 127)
    out, tape = b.forward({}, flat(x))
    np.testing.assert_array_equal(out, flat(layer.forward(x, {}, MAP)))
    error = to_grid(integers(out.shape, -9, 9) / 4)
    back, slopes = b.backward({}, tape, error)
    positions = layer.window.positions(MAP.height, MAP.width)  # (outputs, taps), -1 beside the map
    valid = positions >= 0

    def mean(v: np.ndarray) -> float:
        total = np.where(valid[..., None], v[:, positions], 0).sum(axis=2)
        return (error * (total / valid.sum(axis=1)[:, None])).sum()

    np.testing.assert_allclose(back, derivative(mean, flat(x), 0.25), atol=1e-5)
    assert slopes == {}


# Two layers, by PyTorch's autograd (torch_blocks.py).


@pytest.mark.parametrize("name", CASES)
def test_two_layers_equal_those_of_pytorch(name):
    """Outputs, and derivatives by all parameters but for a constant factor of each."""
    kind, top = CASES[name]
    with np.load(FILE) as data:
        recorded = {key.partition(".")[2]: data[key] for key in data.files if key.startswith(f"{name}.")}
    weight = "ternary" if kind == "ternary" else f"s{kind[3:]}"
    act = f"levels={top}" if kind == "ternary" else f"u{top.bit_length()}"
    network = network_of("6x5x2 s5", f"conv 3 3x2 {weight}, act {act}, dense 4 {weight}")
    last = lambda a: np.moveaxis(a, 1, -1)  # noqa: E731  PyTorch's order -> channel last
    params = {
        "conv": {"weight": last(recorded["conv"])},
        "act": {"gamma": recorded["gamma"], "beta": recorded["beta"]},
        "dense": {"weight": last(recorded["dense"])},
    }
    x = flat(last(recorded["x"]))
    steps = []
    for layer, b in BlockGraph(network, 4).blocks.items():
        x, tape = b.forward(params[layer], x)
        steps.append((layer, b, tape))
    gain = top if kind == "ternary" else top / 3 * network.layers[0].weight.high
    np.testing.assert_allclose(x[:, 0], recorded["out"] * gain, rtol=1e-9, atol=1e-9)
    error = recorded["error"][:, None]
    slopes_by_name = {}
    for layer, b, tape in reversed(steps):
        error, slopes = b.backward(params[layer], tape, to_grid(error))
        slopes_by_name.update({layer if key == "weight" else key: slope for key, slope in slopes.items()})
    for key, slope in slopes_by_name.items():
        expected = recorded[f"d_{key}"] if slope.ndim == 1 else last(recorded[f"d_{key}"])
        size = np.linalg.norm(expected)
        np.testing.assert_allclose(slope / np.linalg.norm(slope), expected / size, atol=1e-4, err_msg=key)


# Whole runs.


def net(weights, act, pool="max_pool"):
    """A small network of one kind of weights and activations."""
    first = f"conv_1 6 3x2 {weights} padding=1/0/1/1, act_1 {act}, {pool} pool_1 2x2 1x2"
    return network_of("5x7x2 u3", first, f"dense_2 10 {weights}, act_2 {act}, dense_3 3 {weights}", name="toy")


EXACT = [net("b1", "levels=2"), net("b1", "levels=3"), net("ternary", "levels=1"), net("ternary", "levels=2")]
INTEGERS = [
    net("s8", "u8 fraction=4"),
    net("s8", "s8 relu=yes fraction=4", "avg_pool"),
    net("s4", "u4 fraction=4"),
    net("s2", "u2 fraction=4"),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("network", [*EXACT, *INTEGERS])
def test_learns(network):
    images, labels = toy_data(96, network.input, 3)
    trained = fit(network, images, labels, Recipe(epochs=12, batch=16))
    model = trained.model()
    scores = model.forward(images)
    assert (scores.reshape(96, 3).argmax(axis=1) == labels).mean() > 0.9
    if network in EXACT:
        np.testing.assert_array_equal(trained.forward(images), scores)


@pytest.mark.parametrize("network", INTEGERS)
def test_requantised_maps_are_within_a_step_of_the_trained_rule(network):
    """Of the first activation, for each accumulator in a wide range; nearly all are equal."""
    images, labels = toy_data(96, network.input, 3)
    trained = fit(network, images, labels, Recipe(epochs=3, batch=16))
    conv, act = network.layers[:2]
    sums = conv.output(network.input)
    low, high = conv.accumulator_range(network.input)
    x = np.linspace(low, high, 20_001).astype(np.int64)[:, None, None, None].repeat(sums.channels, axis=3)
    got = act.forward(x, trained.model().arrays[act.name], sums)
    rule = BlockGraph(network, 1).blocks[act.name].quantise(trained.norms[act.name].normalise(x))
    assert np.abs(got - rule).max() <= 1
    assert (got == rule).mean() > 0.99
    assert got.max() == act.high


def test_progress_can_ask_for_the_network_as_it_is():
    network = EXACT[0]
    seen = []
    data = toy_data(96, network.input, 3)

    def note(epoch: Epoch) -> None:
        seen.append(model_digest(epoch.trained().model()))

    last = train(network, *data, Recipe(epochs=2, batch=16), progress=note)
    assert seen[0] != seen[1] == model_digest(last)


def test_results_that_cannot_be_above_0_are_refused():
    with value_error("r: training needs results above 0, got -8..0"):
        block(Requantise(name="r", encoding=signed(4), clip=(-8, 0)), MAP, 1)

import numpy as np
import pytest

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.dense import DenseSpec, DenseTrainer, DiscreteTensors
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.loss import loss
from bitloom.golden.discrete.mlp import MlpTrainer
from bitloom.golden.discrete.norm import moments, normalise, normalise_backward
from bitloom.golden.discrete.rule import UpdateRule
from bitloom.golden.discrete.table import ONE_BIT, TABLES, TWO_BITS, CodeTable
from bitloom.golden.layers.batch_norm import Moments
from tests.errors import value_error


@pytest.mark.parametrize("criterion", ["cross_entropy", "squared_error"])
@pytest.mark.parametrize("activation", ["relu", "clip", "none"])
@pytest.mark.parametrize("norm", ["batch", "preset", "none"])
def test_derivatives_are_finite_differences(norm, activation, criterion):
    """Of each parameter and each input, by central differences of the loss."""
    rng = np.random.default_rng(3)
    layer = DenseTrainer(DenseSpec(outputs=4, activation=activation, norm=norm != "none"), 5, Lfsr(1), 0, 0)
    layer.params = {key: rng.uniform(-0.9, 0.9, value.shape) for key, value in layer.params.items()}
    x = rng.uniform(-1, 1, (6, 5))
    labels = rng.integers(0, 4, 6)
    preset = Moments(rng.uniform(-1, 1, 4), rng.uniform(0.5, 2, 4)) if norm == "preset" else None

    def mean_loss() -> float:
        return float(loss(criterion, layer.forward(x, preset)[0], labels)[0].mean())

    y, tape = layer.forward(x, preset)
    by_input, slopes = layer.backward(tape, loss(criterion, y, labels)[1])
    for name, array, slope in [("x", x, by_input / len(x)), *((k, layer.params[k], slopes[k]) for k in slopes)]:
        assert slope.shape == array.shape
        for index in np.ndindex(array.shape):
            kept = array[index]
            sides = []
            for step in (1e-6, -1e-6):
                array[index] = kept + step
                sides.append(mean_loss())
            array[index] = kept
            assert abs((sides[0] - sides[1]) / 2e-6 - slope[index]) < 1e-7, (name, index)


def test_normalised_sums_have_the_wanted_mean_and_deviation():
    z = np.random.default_rng(0).normal(3, 2, (50, 4))
    gamma, beta = np.array([1, 2, 0.5, -1]), np.array([0, 1, -1, 2])
    n, tape = normalise(z, gamma, beta)
    np.testing.assert_allclose(n.mean(axis=0), beta, atol=1e-12)
    np.testing.assert_allclose(n.std(axis=0), np.abs(gamma), rtol=1e-5)
    again, _ = normalise(z, gamma, beta, moments(z))
    np.testing.assert_array_equal(n, again)
    by_z, by_gamma, by_beta = normalise_backward(tape, gamma, np.ones_like(z))
    np.testing.assert_allclose(by_z, 0, atol=1e-12)  # a shift of all z changes nothing
    np.testing.assert_allclose(by_gamma, 0, atol=1e-9)
    assert by_beta.tolist() == [50] * 4


def test_rules():
    """C17 adds mu times the gradient before; velocity adds up all gradients, the older the less."""
    gradients = np.array([1.0, 0.0, 2.0])
    for name, changes in (("source", [1.0, 0.5, 2.0]), ("velocity", [1.0, 0.5, 2.25])):
        rule = UpdateRule(name, rate=0.25, mu=0.5)
        memory = np.zeros(1)
        velocities = []
        for gradient in gradients:
            change, memory = rule.change(np.array([gradient]), memory, share=2)
            velocities.append(change[0] / 0.5)
        assert velocities == changes


def test_what_is_remembered_may_be_discrete():
    """A velocity moves the parameter as it is remembered; the source's rule moves it by dw itself."""
    halves = Converter(table=CodeTable((-1, -1 / 2, 1 / 2, 1)))
    changes = {}
    for name in ("velocity", "source"):
        rule = UpdateRule(name, rate=1.0, mu=0.5)
        memory = np.array([0.5])
        changes[name] = []
        for gradient in (0.375, 0.125):
            change, memory = rule.change(np.array([gradient]), memory, convert=halves.values)
            changes[name].append((change[0], memory[0]))
    assert changes == {"velocity": [(0.5, 0.5), (0.5, 0.5)], "source": [(0.625, 0.5), (0.375, 0.5)]}


@pytest.mark.parametrize("places", [0, 3])
def test_weights_are_multiplied_with_as_parts_of_their_size(places):
    """Forwards and backwards; the derivative by a weight is that by what is multiplied with."""
    rng = np.random.default_rng(0)
    tensors = DiscreteTensors(weights=Converter(table=TWO_BITS))
    layer = DenseTrainer(DenseSpec(outputs=4, norm=False, places=places, tensors=tensors), 5, Lfsr(1), 0)
    x, gradient = rng.uniform(-1, 1, (6, 5)), rng.uniform(-1, 1, (6, 4))
    weights = Converter(table=TWO_BITS).values(layer.params["weight"]) / 2**places
    y, tape = layer.forward(x)
    np.testing.assert_allclose(y, np.maximum(x @ weights.T, 0))
    by_input, slopes = layer.backward(tape, gradient)
    np.testing.assert_allclose(by_input, (gradient * (y > 0)) @ weights)
    np.testing.assert_allclose(slopes["weight"], (gradient * (y > 0)).T @ x / 6)


@pytest.mark.parametrize("tensor", ["inputs", "weights", "derivatives", "errors", "weight_gradients"])
def test_each_tensor_may_be_discrete(tensor):
    """The chosen one takes values of its table alone, in the place where the layer uses it; the others don't."""
    converter = Converter(table=TABLES[3].scaled(1), rounding="stochastic")
    rng = np.random.default_rng(0)
    layer = DenseTrainer(
        DenseSpec(outputs=7, norm=False, tensors=DiscreteTensors(**{tensor: converter})), 5, Lfsr(9), 0
    )
    x, gradient = rng.uniform(-1, 1, (30, 5)), rng.uniform(-0.6, 0.6, (30, 7))
    _, tape = layer.forward(x)
    _, slopes = layer.backward(tape, gradient)
    passed = slopes["bias"] * 30  # sums of the input gradients
    seen = {"inputs": tape.x, "weights": tape.weights, "derivatives": tape.derivative}
    seen["weight_gradients"] = slopes["weight"]
    values = set(converter.table.values)
    assert {name for name, array in seen.items() if set(array.flat) <= values} == {tensor} - {"errors"}
    sixteenths = passed * 16
    assert (np.abs(sixteenths - np.rint(sixteenths)) < 1e-9).all() == (tensor == "errors")


def test_binary_activations_are_a_clip_and_a_one_bit_input():
    """sign(x) forwards, and where |x| <= 1 backwards."""
    one_bit = DiscreteTensors(inputs=Converter(table=ONE_BIT))
    first = DenseTrainer(DenseSpec(outputs=6, activation="clip", norm=False), 4, Lfsr(1), 0)
    second = DenseTrainer(DenseSpec(outputs=3, activation="none", norm=False, tensors=one_bit), 6, Lfsr(1), 1)
    x = np.random.default_rng(1).uniform(-1, 1, (20, 4))
    z = x @ first.params["weight"].T
    y, tape = first.forward(x)
    _, after = second.forward(y)
    np.testing.assert_array_equal(after.x, np.where(z >= 0, 1, -1))
    gradient, _ = second.backward(after, np.ones((20, 3)))
    _, slopes = first.backward(tape, gradient)
    np.testing.assert_allclose(slopes["bias"], (gradient * (np.abs(z) <= 1)).mean(axis=0), atol=1e-12)
    assert (np.abs(z) > 1).any()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DenseSpec(outputs=0), "layer: outputs must be an integer >= 1, got 0"),
        (lambda: DenseSpec(outputs=2.0), "layer: outputs must be an integer >= 1, got 2.0"),
        (lambda: DenseSpec(outputs=1, places=-1), "layer: places must be an integer, 0..31, got -1"),
        (lambda: DenseSpec(outputs=1, places=0.5), "layer: places must be an integer, 0..31, got 0.5"),
        (
            lambda: DenseSpec(outputs=1, activation="tanh"),
            "layer: activation must be one of relu, clip, none, got 'tanh'",
        ),
        (lambda: UpdateRule("adam"), "update rule: name must be one of source, velocity, got 'adam'"),
        (lambda: UpdateRule(rate=0), "update rule: rate must be > 0 and finite, got 0"),
        (lambda: UpdateRule(neuron_rate=-1.0), "update rule: neuron_rate must be > 0 and finite, got -1.0"),
        (lambda: MlpTrainer(2, [], 0, "float16"), "training: precision must be one of float64, float32, got 'float16'"),
        (lambda: UpdateRule(mu=1), "update rule: mu must be >= 0 and < 1, got 1"),
    ],
)
def test_wrong_settings(make, message):
    with value_error(message):
        make()

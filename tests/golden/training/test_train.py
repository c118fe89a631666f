import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, signed, unsigned
from bitloom.golden.file import model_digest
from bitloom.golden.layer import Layer, Map, OneInput
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.training.activation import exact_moments
from bitloom.golden.training.blocks import block
from bitloom.golden.training.loss import hinge
from bitloom.golden.training.reproducible import (
    STEP,
    TERMS,
    check_terms,
    random_words,
    to_grid,
)
from bitloom.golden.training.train import Epoch, Recipe, fit, train
from bitloom.golden.training.training_block import gather, scatter, signs
from bitloom.golden.training.weights import quantised
from tests.cases import random_values
from tests.errors import value_error
from tests.paths import ROOT


def integers(shape: tuple[int, ...], low: int, high: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(low, high + 1, shape)


def flat(x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), -1, x.shape[-1]).astype(np.float64)


# Building blocks. Maps with H != W, strides with rows != columns, sides of padding that differ.

MAP = Map(height=5, width=7, channels=3, encoding=BIPOLAR)
WEIGHTED = [
    Conv(name="conv", out_channels=4, kernel=(3, 3), padding=(1, 1, 1, 1)),
    Conv(name="conv", out_channels=2, kernel=(2, 3), stride=(2, 1), padding=(1, 0, 0, 2)),
    Conv(name="conv", out_channels=5, kernel=(1, 1), stride=(3, 2)),
    Dense(name="dense", out_channels=6),
]
POOLS = [
    MaxPool(name="pool", kernel=(2, 2), stride=(2, 2)),
    MaxPool(name="pool", kernel=(3, 2), stride=(1, 2), padding=(2, 1, 0, 0)),
]


OR_LAYERS = [replace(layer, accumulate="or") for layer in WEIGHTED]
SMALL = replace(MAP, height=3, width=3, channels=1)  # windows of few bits: some have no match
WORD_LAYERS = [replace(layer, accumulate="or_words", word_channels=n) for layer in WEIGHTED for n in (2, 3)]
"""On a map of three channels: the second word of a tap has one, or there is one word, which padding leaves out."""
INTEGER_LAYERS = [
    replace(WEIGHTED[1], out_channels=4, weight=encoding) for encoding in (TERNARY, *map(signed, range(2, 9)))
]


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        *((layer, replace(MAP, encoding=encoding)) for layer in WEIGHTED for encoding in (BIPOLAR, unsigned(5))),
        *((layer, SMALL) for layer in OR_LAYERS),
        *((layer, MAP) for layer in WORD_LAYERS),
        *((layer, replace(MAP, encoding=signed(8))) for layer in INTEGER_LAYERS),
    ],
)
def test_weighted_forward_equals_golden(layer, source):
    b = block(layer, source, 200)
    params = b.initial(1, 2)
    x = random_values((200, *source.shape), source.encoding, np.random.default_rng(1))
    out, _ = b.forward(params, flat(x))
    weight = quantised(layer.weight, params["weight"])
    np.testing.assert_array_equal(out, flat(layer.forward(x, {"weight": weight.astype(int)}, source)))
    assert layer.accumulate != "or" or set(np.unique(out)) == {-1, 1}


@pytest.mark.parametrize("layer", [*WEIGHTED, *INTEGER_LAYERS])
def test_weighted_backward_is_the_adjoint(layer):
    """A sum is linear in its features and in its weights: error . forward = slope . weight = backward . features.
    Slopes are those by weights; the features' are divided by the weights' unit."""
    b = block(layer, MAP, 3, 4.0)
    params = b.initial(1, 2)
    x = flat(integers((3, *MAP.shape), -9, 9))
    out, tape = b.forward(params, x)
    error = to_grid(integers(out.shape, -(1 << 20), 1 << 20) / 2**18)
    back, slopes = b.backward(params, tape, error)
    weight = quantised(layer.weight, params["weight"])
    assert (error * out).sum() == (slopes["weight"] * weight).sum() == (back * x).sum() * b.target_unit / 4
    assert b.target_unit == 4 * (1 if layer.weight in (BIPOLAR, TERNARY) else layer.weight.high + 1)
    assert back.shape == x.shape
    assert slopes["weight"].shape == params["weight"].shape


@pytest.mark.parametrize("layer", OR_LAYERS)
def test_or_backward_is_that_of_a_sum_with_errors_weighed_by_matches(layer):
    """Each match more takes a factor of the root of 2."""
    as_sum, as_or = block(replace(layer, accumulate="popcount"), SMALL, 50), block(layer, SMALL, 50)
    params = as_or.initial(1, 2)
    x = flat(2 * integers((50, *SMALL.shape), 0, 1) - 1)
    (sums, sum_tape), (bits, or_tape) = as_sum.forward(params, x), as_or.forward(params, x)
    ones = np.ones_like(x[:1])
    valid = as_sum.forward({"weight": np.ones_like(params["weight"])}, ones)[0]
    error = to_grid(integers(bits.shape, -(1 << 20), 1 << 20) / 2**18)
    weighed = to_grid(error * 2 ** (-(sums + valid) / 4))
    expected, slopes = as_sum.backward(params, sum_tape, weighed)
    got, or_slopes = as_or.backward(params, or_tape, error)
    tolerance = {"rtol": 0, "atol": 1000 * STEP}  # ** may differ from the table in the last bit, hence by a step
    np.testing.assert_allclose(got, expected, **tolerance)
    np.testing.assert_allclose(or_slopes["weight"], slopes["weight"], **tolerance)


@pytest.mark.parametrize("layer", WEIGHTED)
def test_words_backward_is_between_that_of_a_sum_and_that_of_or(layer):
    """Words of one channel weigh an error by whether the product is a match; one word a 1 x 1 window is OR."""
    b = block(replace(layer, accumulate="or_words", word_channels=1), MAP, 20)
    params = b.initial(1, 2)
    x = flat(2 * integers((20, *MAP.shape), 0, 1) - 1)
    out, tape = b.forward(params, x)
    error = to_grid(integers(out.shape, -(1 << 20), 1 << 20) / 2**18)
    back, slopes = b.backward(params, tape, error)
    matrix = signs(params["weight"]).reshape(out.shape[2], -1, 3)
    positions = b.positions
    runs = gather(x, positions, 0.0)  # (N, outputs, taps, C)
    own = np.where(runs[:, :, None] == matrix, to_grid(error * 0.5**0.5)[..., None, None], error[..., None, None])
    own = own * (positions >= 0)[:, None, :, None]  # (N, outputs, O, taps, C)
    expected = scatter((own * matrix).sum(axis=2), positions, MAP.positions)
    np.testing.assert_array_equal(back, expected)
    weight = (own * runs[:, :, None]).sum(axis=(0, 1))
    np.testing.assert_array_equal(slopes["weight"], weight.reshape(slopes["weight"].shape))


@pytest.mark.parametrize("channels", [1, 3])
def test_words_of_a_whole_window_are_trained_as_or(channels):
    source = replace(MAP, channels=channels)
    layer = Conv(name="c", out_channels=4, kernel=(1, 1), accumulate="or")
    steps = []
    for one in (layer, replace(layer, accumulate="or_words", word_channels=3)):
        b = block(one, source, 20)
        params = b.initial(1, 2)
        x = flat(2 * integers((20, *source.shape), 0, 1) - 1)
        out, tape = b.forward(params, x)
        back, slopes = b.backward(params, tape, to_grid(integers(out.shape, -(1 << 20), 1 << 20) / 2**18))
        steps.append([out, back, slopes["weight"]])
    for a, c in zip(*steps):
        np.testing.assert_array_equal(a, c)


@pytest.mark.parametrize("layer", POOLS)
def test_pool_forward_equals_golden(layer):
    x = 2 * integers((2, *MAP.shape), 0, 1) - 1
    np.testing.assert_array_equal(block(layer, MAP, 2).forward({}, flat(x))[0], flat(layer.forward(x, {}, MAP)))


@pytest.mark.parametrize("layer", POOLS)
def test_pool_backward_is_the_derivative(layer):
    b = block(layer, MAP, 2)
    x = flat(np.random.default_rng(1).permutation(2 * MAP.size).reshape(2, *MAP.shape))  # no two are equal
    out, tape = b.forward({}, x)
    error = to_grid(integers(out.shape, -9, 9) / 4)
    back, slopes = b.backward({}, tape, error)
    np.testing.assert_array_equal(back, derivative(lambda v: (error * b.forward({}, v)[0]).sum(), x, 0.25))
    assert slopes == {}


def test_pool_shares_the_error_among_equal_taps():
    source = Map(height=1, width=6, channels=1, encoding=BIPOLAR)
    b = block(MaxPool(name="pool", kernel=(1, 3), stride=(1, 3)), source, 1)
    _, tape = b.forward({}, np.array([1.0, -1, 1, -1, -1, -1]).reshape(1, 6, 1))
    back, _ = b.backward({}, tape, np.array([2.0, 3.0]).reshape(1, 2, 1))
    assert back.ravel().tolist() == [1, 0, 1, 1, 1, 1]


def derivative(function, x: np.ndarray, step: float) -> np.ndarray:
    """Of a scalar function by each element of x, by central differences."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        out[i] = (function(up) - function(down)) / (2 * step)
    return out


def test_hinge_error_is_half_the_derivative_by_the_scaled_output():
    output = integers((4, 3), -20, 20) * 1.0
    labels = np.array([0, 2, 1, 1])
    scale = 0.25
    loss, error = hinge(output, labels, scale, 1.5)
    assert loss.tolist() == [
        sum(max(0, 1.5 - (1 if c == label else -1) * o * scale) ** 2 for c, o in enumerate(row))
        for row, label in zip(output, labels)
    ]
    numeric = derivative(lambda v: hinge(v / scale, labels, scale, 1.5)[0].sum(), output * scale, 2.0**-10)
    np.testing.assert_allclose(error, numeric / 2, atol=2.0**-10)


# Exact arithmetic.


def test_sums_that_could_round_are_refused():
    check_terms("conv", TERMS // 31, 31)
    with value_error(
        "conv: exact training needs (positions of a batch) x (largest value) <= 536870912, "
        "got 134217729 x 4: use a smaller batch"
    ):
        check_terms("conv", TERMS // 4 + 1, 4)


def test_sums_of_squares_that_could_round_are_refused():
    assert [v.tolist() for v in exact_moments(np.array([[1.0, -3], [2, 5]]))] == [[1.5, 1], [0.25, 16]]
    with value_error("training: sums of squares must be < 2^53 to be exact, got 9007199254740992.0: use fewer images"):
        exact_moments(np.full((2, 1), 2.0**26))


# Whole runs, on made-up images: class k has ink in its own part of the picture.


def network(*layers: Layer, shape: tuple[int, int, int] = (5, 7, 2)) -> Network:
    source = Map(height=shape[0], width=shape[1], channels=shape[2], encoding=unsigned(3))
    return Network(name="toy", input=source, layers=layers)


TOY = network(
    Conv(name="conv_1", out_channels=8, kernel=(3, 2), padding=(1, 0, 1, 1)),
    MaxPool(name="pool_1", kernel=(2, 2), stride=(1, 2)),
    Threshold(name="threshold_1"),
    Conv(name="conv_2", out_channels=9, kernel=(2, 2), stride=(2, 1), padding=(1, 1, 0, 0)),
    Threshold(name="threshold_2"),
    Dense(name="dense_3", out_channels=16),
    Threshold(name="threshold_3"),
    Dense(name="dense_4", out_channels=3),
)

TOY_OR = network(
    Conv(name="conv_1", out_channels=2, kernel=(3, 2)),
    Threshold(name="threshold_1"),
    Conv(name="conv_2", out_channels=16, kernel=(2, 1), padding=(1, 0, 0, 0), accumulate="or"),
    Dense(name="dense_3", out_channels=3),
)


def toy_data(count: int, source: Map, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Images (count, H, W, C) and labels, the same with every numpy."""
    shape = (count, *source.shape)
    noise, ink = random_words(2 * count * source.size, 5).reshape(2, *shape) >> np.uint64(40)
    labels = np.arange(count) % classes
    columns = np.arange(source.width) * classes // source.width
    images = noise % 4 + (columns == labels[:, None])[:, None, :, None] * (ink % 4)
    return images.astype(np.int64), labels


def toy_run(**more) -> Model:
    return train(TOY, *toy_data(96, TOY.input, 3), Recipe(epochs=4, batch=16), **more)


def test_learns_and_reports_progress():
    seen: list[Epoch] = []
    images, labels = toy_data(96, TOY.input, 3)
    model = train(TOY, images, labels, Recipe(epochs=12, batch=16), progress=seen.append)
    assert [(e.number, e.epochs) for e in seen] == [(i + 1, 12) for i in range(12)]
    assert seen[-1].loss < seen[0].loss / 2
    assert seen[-1].accuracy > 0.9
    assert (model.forward(images).reshape(96, 3).argmax(axis=1) == labels).mean() > 0.9


def test_learns_with_or():
    images, labels = toy_data(96, TOY_OR.input, 3)
    trained = fit(TOY_OR, images, labels, Recipe(epochs=12, batch=16))
    scores = trained.model().forward(images)
    np.testing.assert_array_equal(trained.forward(images), scores)
    assert (scores.reshape(96, 3).argmax(axis=1) == labels).mean() > 0.8


def test_real_valued_network_equals_the_integer_network():
    images, labels = toy_data(96, TOY.input, 3)
    trained = fit(TOY, images, labels, Recipe(epochs=2, batch=16))
    np.testing.assert_array_equal(trained.forward(images), trained.model().forward(images))


def test_interrupted_run_goes_on_to_the_same_result(tmp_path):
    path = tmp_path / "toy.npz"

    def interrupt(epoch: Epoch) -> None:
        if epoch.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        toy_run(checkpoint=path, progress=interrupt)
    seen: list[Epoch] = []
    resumed = toy_run(checkpoint=path, progress=seen.append)
    assert [e.number for e in seen] == [3, 4]
    assert model_digest(resumed) == model_digest(toy_run()) == model_digest(toy_run(checkpoint=path))


def test_foreign_checkpoints_are_refused(finished, tmp_path):
    path = tmp_path / "toy.npz"
    path.write_bytes(finished)
    data = toy_data(96, TOY.input, 3)
    with value_error(
        f"{path}: must be a checkpoint of this run (network, data, recipe), got one of another; delete it to start anew"
    ):
        train(TOY, *data, Recipe(epochs=4, batch=16, seed=1), checkpoint=path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match=r"toy.npz: must be a checkpoint of training, got: .*; delete"):
        toy_run(checkpoint=path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> bytes:
    """The checkpoint of a toy run."""
    path = tmp_path_factory.mktemp("finished") / "toy.npz"
    toy_run(checkpoint=path)
    return path.read_bytes()


def forged(path: Path, **changed: np.ndarray | None) -> None:
    """Change arrays of a checkpoint, add them, or take away those that are None; the run's digest stays right."""
    with np.load(path) as saved:
        arrays = {**saved, **changed}
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("dense_4.weight.value", None, "must be float64 of shape (3, 1, 1, 16), got none"),
        ("dense_4.weight.value", np.zeros(3), "must be float64 of shape (3, 1, 1, 16), got float64 of shape (3,)"),
        ("power", np.zeros(2, "f4"), "must be float64 of shape (2,), got float32 of shape (2,)"),
        ("dense_4.weight.value", np.full((3, 1, 1, 16), 1.5), "must be -1..1, got 1.5"),
        ("dense_4.weight.second", np.full((3, 1, 1, 16), -1.0), "must be 0..1e+18, got -1"),
        ("dense_4.weight.first", np.full((3, 1, 1, 16), -1e300), "must be -1e+18..1e+18, got -1e+300"),
        ("power", np.array([0.9, 1.0]), "must be 0..0.999, got 1"),
        ("epoch", np.array(0), "must be 1..4, got 0"),
        ("epoch", np.array(5), "must be 1..4, got 5"),
        ("more", np.array(5), "names must be those of the run, got also more"),
    ],
)
def test_checkpoints_of_a_stranger(finished, tmp_path, name, value, rule):
    path = tmp_path / "toy.npz"
    path.write_bytes(finished)
    forged(path, **{name: value})
    with value_error(
        f"{path}: must be a checkpoint of training, got: state: {rule if name == 'more' else f'{name} {rule}'}; "
        f"delete it to start anew"
    ):
        toy_run(checkpoint=path)


# The same bytes on every machine.


def digest_of_a_short_run(net: Network) -> str:
    """Of all real numbers that training has made: signs and thresholds alone hide small differences."""
    trained = fit(net, *toy_data(128, net.input, 10), Recipe(epochs=2))
    numbers = [*(p for group in trained.params.values() for p in group.values())]
    numbers += [v for norm in trained.norms.values() for v in (norm.mean, norm.var)]
    return hashlib.sha256(b"".join(v.astype("<f8").tobytes() for v in numbers)).hexdigest()


SHORT_RUNS = (
    "d1de29ab1b646dd1e02f9fdba3a6c46f7539bab5af4e9e2d086331ab3f19f1de",
    "b35e485282e37001f91b9319db3ec48c9ecaabed08aa45f37ae8ea75d2487a43",
    "c3b0ad804a758cfabbac58eb37f175cd8fda9e4ba61ab41c89a9a98a4916c7e2",
    "f98baea97593d9d276dd33385aea9f1e2edb6a6d88c007037a9305713a708840",
)
"""Of `digest_of_a_short_run` of digits-cnn, digits-or and WORDS, on every machine. Without `to_grid` they differ
between these environments."""


WORDS = (("conv8,pool,conv16,dense10", "int8", "8"), ("conv8,pool,conv16,dense10", "ternary", "2"))
"""Layers, weights and activations: accumulators of many bits, and of several levels."""


def environments() -> dict[str, dict[str, str]]:
    """Environment variables that make numpy and OpenBLAS add up in other orders, as other CPUs would."""
    try:
        from numpy._core import _multiarray_umath as core
    except ImportError:  # before numpy 1.26
        from numpy.core import _multiarray_umath as core
    has = core.__cpu_features__
    environment = {
        "1 thread": {"OPENBLAS_NUM_THREADS": "1"},
        "2 threads": {"OPENBLAS_NUM_THREADS": "2"},
        "plain loops": {"NPY_DISABLE_CPU_FEATURES": " ".join(f for f in core.__cpu_dispatch__ if has.get(f))},
    }
    for kind, feature in (("Prescott", "SSE3"), ("Haswell", "AVX2"), ("SkylakeX", "AVX512_SKX")):
        if has.get(feature):  # an older CPU could not run its instructions
            environment[kind] = {"OPENBLAS_CORETYPE": kind, "OPENBLAS_NUM_THREADS": "1"}
    return environment


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", environments())
def test_result_is_the_same_on_every_cpu(name):
    code = (
        "from bitloom.golden.zoo import digits, digits_or\n"
        "from bitloom.golden.training.architecture import network_of\n"
        "from tests.golden.training.test_train import WORDS, digest_of_a_short_run as run\n"
        "words = [network_of('words', digits.IMAGE, *w) for w in WORDS]\n"
        "print(*map(run, (digits.digits_cnn(), digits_or.digits_or(), *words)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, **environments()[name]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert tuple(done.stdout.split()) == SHORT_RUNS


# Networks that can't be trained.


class Copy(OneInput):
    kind = "copy"

    def output(self, source: Map) -> Map:
        return source

    def forward(self, x, arrays, source):
        return x


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [Threshold(name="last")],
            "toy: the last layer must be dense, or a conv with one window, got threshold with 35 positions",
        ),
        (
            [Conv(name="last", out_channels=2, kernel=(5, 6))],
            "toy: the last layer must be dense, or a conv with one window, got conv with 2 positions",
        ),
        (
            [Copy(name="copy"), Dense(name="last", out_channels=2)],
            "copy: training knows conv, dense, max_pool, avg_pool, threshold and requantise layers, got copy",
        ),
        (
            [Threshold(name="first"), Dense(name="last", out_channels=2, accumulate="or")],
            "toy: the last layer must accumulate by popcount, got or",
        ),
        (
            [Dense(name="last", out_channels=2, weight=unsigned(2))],
            "last: training knows weights of bipolar 1 bit (-1..1 in steps of 2), ternary 2 bit (-1..1) and "
            "signed 2..8 bit, got unsigned 2 bit (0..3)",
        ),
    ],
)
def test_networks_that_cannot_be_trained(layers, message):
    with value_error(message):
        train(net := network(*layers), *toy_data(8, net.input, 2), Recipe(epochs=1, batch=8))


IMAGES, LABELS = toy_data(8, TOY.input, 3)


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (IMAGES[:7], LABELS, "toy: images must have shape (N, 5, 7, 2), N >= 8, got (7, 5, 7, 2)"),
        (IMAGES[..., :1], LABELS, "toy: images must have shape (N, 5, 7, 2), N >= 8, got (8, 5, 7, 1)"),
        (IMAGES + 8, LABELS, f"toy: images: values must be unsigned 3 bit (0..7), got {IMAGES.flat[0] + 8}"),
        (IMAGES, LABELS[:3], "toy: labels must be 8 integers, got (3,) int64"),
        (IMAGES, LABELS * 1.0, "toy: labels must be 8 integers, got (8,) float64"),
        (IMAGES, LABELS + 1, "toy: labels must be 0..2, got 1..3"),
    ],
)
def test_data_that_do_not_fit(images, labels, message):
    with value_error(message):
        train(TOY, images, labels, Recipe(epochs=1, batch=8))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epochs": 0}, "training: epochs must be an integer >= 1, got 0"),
        ({"seed": -1}, "training: seed must be an integer >= 0, got -1"),
        ({"batch": 1.5}, "training: batch must be an integer >= 1, got 1.5"),
        ({"rate": 0.0}, "training: rate must be > 0 and at most 1, got 0.0"),
        ({"rate": 1e300}, "training: rate must be > 0 and at most 1, got 1e+300"),
        ({"rate": float("nan")}, "training: rate must be > 0 and at most 1, got nan"),
        ({"margin": float("inf")}, "training: margin must be > 0 and at most 16, got inf"),
        ({"margin": 1e300}, "training: margin must be > 0 and at most 16, got 1e+300"),
    ],
)
def test_recipes_that_make_no_sense(wrong, message):
    with value_error(message):
        Recipe(**{"epochs": 1, **wrong})

"""Forms of TFLite files that no exporter was seen to write, and random ones: every value is the kernels'."""

import numpy as np
import pytest

from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.verify import verify

from .test_tflite import by_kernels, imported, scores
from .tflite_files import Chain

ACTIVATIONS = ("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def compared(chain, seed=1):
    """The imported chain, and what the kernels and golden make of images, the ends among them."""
    made = imported(chain)
    verify(made, 2)
    images = np.random.default_rng(seed).integers(-128, 128, (6, *chain.shape)).astype(np.int8)
    images[0], images[1] = -128, 127
    return made, by_kernels(made.source, images), scores(made, images)


def check(chain):
    made, wanted, got = compared(chain)
    assert {built.wrong for built in made.emitted.built} == {(0, 0)}
    assert np.abs(wanted - got).max() < 1e-5
    assert len(np.unique(wanted)) > 4
    return made, wanted


@pytest.mark.parametrize(("activation", "ends"), [("RELU", (5, 19)), ("RELU6", (5, 19)), ("RELU_N1_TO_1", (-5, 15))])
def test_the_activation_of_a_sum(activation, ends):
    """It cuts values where the zero point isn't the lowest integer."""
    rng = np.random.default_rng(3)
    chain = Chain((4, 4, 2), 0.02, 3).conv(rng, 3, (1, 1), (0.3, -128), activation="RELU")
    chain.conv(rng, 3, (3, 3), (0.4, 0)).add(2 + 1, (0.1, 5), activation)
    _, wanted = check(chain)
    assert (wanted.min(), wanted.max()) == ends


def test_a_sum_of_maps_whose_lowest_integers_are_cut():
    rng = np.random.default_rng(4)
    chain = Chain((4, 4, 2), 0.02, 3).conv(rng, 3, (1, 1), (0.05, 5), activation="RELU")
    chain.conv(rng, 3, (3, 3), (0.04, -20), activation="RELU6").add(2 + 1, (0.1, -60))
    made, _ = check(chain)
    assert [section.made.levels for section in made.cut.sections] == [122, 147]


def test_a_mean_of_both_signs_is_rounded_twice():
    rng = np.random.default_rng(5)
    chain = Chain((3, 5, 2), 0.02, 3).conv(rng, 4, (2, 2), (0.03, 7)).mean((0.02, -3), keep=True)
    made, _ = check(chain.reshape(1, 4).dense(rng, 6, (0.05, 0)))
    assert made.model.network.layers[3].rounding == "twice"


def test_one_weight_behind_pixels():
    """Divided by itself it is binary, but its map has more values than thermometers have bits."""
    rng = np.random.default_rng(6)
    made, _ = check(Chain((4, 5, 1), 0.02, 3).conv(rng, 1, (1, 1), (0.01, 0)))
    rule = "the map behind it has 256 values, more than 63"
    assert made.choice.costs["binary"] == f"CONV_2D_0: {rule}"


def with_layer(chain, rng):
    """The chain with a random layer more."""
    (rows, columns, channels), activation = chain.now.shape[1:4], str(rng.choice(ACTIVATIONS))
    low = activation != "NONE" and rng.random() < 0.7
    made = float(rng.choice([0.02, 0.05, 0.3])), -128 if low else int(rng.integers(-100, 60))
    kernel = int(rng.integers(1, min(3, rows) + 1)), int(rng.integers(1, min(3, columns) + 1))
    strides, same = (int(rng.integers(1, 3)), int(rng.integers(1, 3))), bool(rng.integers(0, 2))
    kind = str(rng.choice(["conv", "depthwise", "max", "average", "pad", "add", "mean"]))
    if kind == "conv":
        return chain.conv(rng, int(rng.integers(1, 6)), kernel, made, strides, same, activation)
    if kind == "depthwise":
        return chain.conv(rng, 0, kernel, made, strides, same, activation, depth=int(rng.integers(1, 3)))
    if kind == "max":
        return chain.pool("MAX", kernel, strides, same)
    if kind == "average":
        return chain.pool("AVERAGE", (rows, columns))
    if kind == "mean":
        return chain.mean(made, keep=True)
    if kind == "pad":
        return chain.pad((1, 0), (0, 1)).conv(rng, 3, (2, 2), made, (1, 1), False, activation)
    fork = chain.here
    return chain.conv(rng, channels, kernel, made, activation=activation).add(fork, (0.1, -20), activation)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120))
def test_random_networks(seed):
    """Exact, or as far off as is told; some have activations that leave no two integers, or maps too small."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8)), int(rng.integers(1, 8)), int(rng.integers(1, 5))
    chain = Chain(size, float(rng.choice([0.02, 0.5, 1 / 255])), int(rng.integers(-128, 128)))
    chain.conv(rng, 3, (1, 1), (0.05, -128), activation="RELU")
    for _ in range(rng.integers(1, 4)):
        with_layer(chain, rng)
    if rng.random() < 0.7:
        chain.reshape(1, int(np.prod(chain.now.shape))).dense(rng, 5, (0.1, int(rng.integers(-60, 60))))
    try:
        made, wanted, got = compared(chain)
    except ImportRefused:
        return
    if not any(built.wrong[0] for built in made.emitted.built):
        assert np.abs(wanted - got).max() < 1e-5
    assert max(built.wrong[1] for built in made.emitted.built) <= 1

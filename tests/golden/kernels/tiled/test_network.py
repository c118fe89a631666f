"""A whole network of packed layers by fibers: what numpy gives layer by layer, and what a model of golden gives."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.kernels.tiled import layout, reference
from bitloom.golden.kernels.tiled.network import PackedNetwork, PackedPool
from bitloom.golden.kernels.tiled.plan import KERNELS
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import MinPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model
from bitloom.golden.window import Window
from tests.cases import case_map, random_images, random_model
from tests.errors import value_error
from tests.golden.kernels.tiled import check, fiber
from tests.graph_text import network_of

from .cases import case


def network(word_bits: int = 32) -> tuple[PackedNetwork, np.ndarray]:
    """Convolution, padded pool, convolution, and one without thresholds; and two images."""
    first = case(1, images=2, size=(9, 8), out_channels=65, padding=(1, 1, 1, 1), pad="exact", word_bits=word_bits)
    pool = PackedPool(name="pool", channels=65, window=Window(kernel=(3, 2), stride=(2, 1), padding=(1, 0, 2, 1)))
    second = case(2, channels=65, out_channels=70, kernel=(2, 3), word_bits=word_bits).layer
    last = case(3, channels=70, out_channels=3, kernel=(1, 2), word_bits=word_bits, threshold=False).layer
    return PackedNetwork((first.layer, pool, second, last)), first.words


def by_numpy(packed: PackedNetwork, words: np.ndarray) -> np.ndarray:
    for layer in packed.layers:
        words = layer.run(words) if isinstance(layer, PackedPool) else reference.run(layer, words)
    return words


@pytest.mark.sample(2)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("word_bits", [32, 64])
def test_a_network_by_fibers(word_bits, kernel):
    packed, words = network(word_bits)
    np.testing.assert_array_equal(fiber.run_network(packed, words, kernel), by_numpy(packed, words))


@pytest.mark.parametrize("word_bits", [32, 64])
@pytest.mark.parametrize("seed", range(8))
def test_pools_by_fibers(seed, word_bits):
    """Maps whose last window sticks out on all sides; more words than a block has threads."""
    rng = np.random.default_rng(seed)
    kernel = tuple(rng.integers(1, 5, 2).tolist())
    padding = tuple(int(rng.integers(0, kernel[k % 2])) for k in range(4))
    window = Window(kernel=kernel, stride=tuple(rng.integers(1, 4, 2).tolist()), padding=padding)
    size = tuple(int(k + rng.integers(0, 14)) for k in kernel)
    pool = PackedPool(name="pool", channels=40, window=window)
    words = layout.pack(rng.integers(0, 2, (3, *size, 40)), word_bits)
    packed = PackedNetwork((case(channels=3, out_channels=40, kernel=(1, 1), word_bits=word_bits).layer, pool))
    how = packed.plans((3, 1, *size))[1]
    expected = pool.run(words)
    assert how.output_shape == expected.shape
    np.testing.assert_array_equal(fiber.run_pool(words, how), expected)


def model() -> Model:
    """An integer input; a padded pool of bits; raw sums at the end."""
    first = "conv_1 33 2x2, threshold_1, conv_2 35 3x2 padding=1/1/1/0, threshold_2"
    last = "max_pool pool_2 2x2 1x2 padding=0/1/1/0, conv_3 40 2x2, threshold_3, dense 7"
    return random_model(network_of("9x8x3 s4", first, last), np.random.default_rng(4))


@pytest.mark.parametrize("scores", [True, False])
@pytest.mark.parametrize("word_bits", [32, 64])
def test_a_model_of_golden(word_bits, scores):
    """Golden computes layers that read integers; the rest goes through a device in one piece."""
    golden_model = model()
    if not scores:
        golden_model = Model(
            network=replace(golden_model.network, layers=golden_model.network.layers[:-1]),
            arrays={name: arrays for name, arrays in golden_model.arrays.items() if name != "dense"},
        )
    images = random_images(golden_model, 3, np.random.default_rng(0))
    before, packed = check.packed_network(golden_model, word_bits) if not scores else (None, None)
    output = check.run_network(golden_model, images, fiber.run_network, word_bits)
    np.testing.assert_array_equal(output.reshape(3, -1), golden_model.forward(images).reshape(3, -1))
    if before is not None:
        assert [stage.last for stage in before] == ["threshold_1"]
        assert [layer.name for layer in packed.layers] == ["conv_2", "pool_2", "conv_3"]


def test_models_that_no_packed_network_is():
    conv = [Conv(name="conv_1", out_channels=3, kernel=(2, 2)), Threshold(name="threshold_1")]
    end = Dense(name="dense", out_channels=2)
    source = case_map(6, 6, 3, BIPOLAR)
    pool = MinPool(name="pool", kernel=(2, 2), stride=(1, 1))
    stays = f"must be a binary convolution or a max pool of bits, to stay on a device, got min_pool of {BIPOLAR}"
    for layers, encoding, message in (
        ((*conv, pool, end), BIPOLAR, f"pool: {stays}"),
        (conv, signed(3), "net: a packed network must have a binary layer, got none"),
    ):
        network = network_of(replace(source, encoding=encoding), *layers)
        with value_error(message):
            check.packed_network(random_model(network, np.random.default_rng(0)), 32)


def test_what_a_packed_network_refuses():
    conv = case().layer
    other = case(channels=65, out_channels=2).layer
    pool = PackedPool(name="pool", channels=33, window=Window(kernel=(2, 2)))
    for layers, message in (
        ((), "network: the first packed layer must be a convolution"),
        ((pool,), "network: the first packed layer must be a convolution"),
        ((conv, other), "conv: channels must be the 33 of conv, got 65"),
        ((case(threshold=False).layer, pool), "conv: a layer that isn't the last one must have thresholds, got none"),
        ((conv, case(word_bits=64).layer), "conv: words must have 32 bits, got 64"),
    ):
        with value_error(message):
            PackedNetwork(layers)
    with value_error("pool: channels must be an integer >= 1, got 0"):
        replace(pool, channels=0)
    with value_error("pool: a pool of packed bits must have dilation (1, 1), got (2, 1)"):
        replace(pool, window=Window(kernel=(2, 2), dilation=(2, 1)))
    packed = PackedNetwork((conv, replace(pool, window=Window(kernel=(6, 2)))))
    with value_error("pool: the window must fit the padded map, got kernel (6, 2) on 5 x 7"):
        packed.plans((1, 2, 7, 9))
    whole = PackedNetwork((conv, replace(pool, window=Window(kernel=(5, 7)))))
    assert whole.plans((1, 2, 7, 9))[-1].output == (1, 1)

"""Golden against what an Ultra96 board recorded of trained networks (Xilinx/BNN-PYNQ)."""

import gzip

import numpy as np
import pytest

from golden import packed
from golden.network import Model

from . import bnn_pynq


@pytest.fixture(scope="module")
def cnv() -> Model:
    return bnn_pynq.cnv()


@pytest.fixture(scope="module")
def lfc() -> Model:
    return bnn_pynq.lfc()


@pytest.fixture(scope="module")
def cnv_golden() -> dict[str, np.ndarray]:
    return dict(np.load(bnn_pynq.data_file("cnvW1A1_cifar10_golden.npz")))


@pytest.fixture(scope="module")
def lfc_golden() -> dict[str, np.ndarray]:
    return dict(np.load(bnn_pynq.data_file("lfcW1A1_mnist_golden.npz")))


def cnv_scores(output: np.ndarray) -> np.ndarray:
    """Output of CNV -> (N, 10) matches of the last layer, as the board gives them."""
    return bnn_pynq.matches(output[:, 0, 0, :10], 512)


def test_cnv_gives_the_scores_of_the_board(cnv, cnv_golden):
    x = bnn_pynq.cnv_images(cnv_golden["board_images"])
    np.testing.assert_array_equal(
        cnv_scores(packed.forward(cnv, x)), cnv_golden["board_scores_recorded_on_Ultra96"]
    )


def test_cnv_gives_every_recorded_activation(cnv, cnv_golden):
    layers = [layer.name for layer in cnv.network.layers]
    outputs = dict(zip(layers, packed.trace(cnv, bnn_pynq.cnv_images(cnv_golden["images"]))))
    for i in range(8):
        recorded = cnv_golden[f"act{i}"]
        ours = outputs[f"pool_{i}" if i in (1, 3) else f"threshold_{i}"]
        np.testing.assert_array_equal((ours.reshape(recorded.shape) + 1) // 2, recorded, err_msg=f"layer {i}")
    np.testing.assert_array_equal(cnv_scores(outputs["dense_8"]), cnv_golden["scores"])


def test_plain_and_fast_pass_agree_on_cnv(cnv, cnv_golden):
    x = bnn_pynq.cnv_images(cnv_golden["images"][:1])
    for plain, fast in zip(cnv.trace(x), packed.trace(cnv, x)):
        np.testing.assert_array_equal(plain, fast)


def test_lfc_gives_the_recorded_outputs(lfc, lfc_golden):
    x = bnn_pynq.lfc_images(lfc_golden["images"])
    for outputs, n in ((packed.trace(lfc, x), 256), (lfc.trace(x[:8]), 8)):
        bits = (outputs[-1][:, 0, 0, :10] + 1) // 2
        np.testing.assert_array_equal(bits, lfc_golden["out_bits"][:n])
        np.testing.assert_array_equal(bnn_pynq.matches(outputs[-2][:, 0, 0, :10], 1024), lfc_golden["acc"][:n])


def test_lfc_is_right_on_9840_of_10000_images(lfc):
    with gzip.open(bnn_pynq.data_file("t10k-images-idx3-ubyte.gz")) as f:
        pixels = np.frombuffer(f.read(), np.uint8, offset=16).reshape(10000, 784)
    with gzip.open(bnn_pynq.data_file("t10k-labels-idx1-ubyte.gz")) as f:
        labels = np.frombuffer(f.read(), np.uint8, offset=8)
    bits = (packed.forward(lfc, bnn_pynq.lfc_images(pixels))[:, 0, 0, :10] + 1) // 2
    assert (bnn_pynq.highest_set_class(bits) == labels).sum() == 9840

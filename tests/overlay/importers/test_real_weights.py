"""Real numbers of which a file takes the signs: the layers take them instead, and compute the same."""

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.overlay.importers.imported import import_graph
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.importers.weights import with_signs
from tests.errors import refusal

from .against import import_chain
from .onnx_files import QONNX, Chain
from .test_operators import begun
from .test_pools_of_sums import bipolar


def latent(rng, *shape):
    """Weights in training: around 0, some at it."""
    return np.where(rng.random(shape) < 0.2, 0, rng.normal(size=shape)).astype(np.float32)


def real_import(chain, engine="auto"):
    return import_graph(to_graph(chain.bytes()), engine=engine, name="chain", real_weights=True)


def signs(chain, values):
    """The signs of constants, each worth a half."""
    return chain.weight("BipolarQuant", values, np.float32(0.5), domain=QONNX)


def network(rng, turned=False):
    """A convolution, a dense layer behind a reshape, and one with its matrix transposed; all weights are signs."""
    chain = bipolar(Chain((3, 5, 4)))
    chain.node("Conv", signs(chain, latent(rng, 4, 3, 2, 3)), pads=[1, 0, 0, 1])
    if turned:
        chain.node("MaxPool", kernel_shape=[2, 1]).node("Mul", np.float32([1, -1, 1, -2]).reshape(1, 4, 1, 1))
    chain = bipolar(chain.batch_norm(rng, 4) if not turned else chain).node("Flatten", axis=1)
    size = {False: 5 * 3 * 4, True: 4 * 3 * 4}[turned]
    chain = bipolar(chain.node("Gemm", signs(chain, latent(rng, 6, size)), transB=1))
    return chain.node("MatMul", chain.weight("Sign", rng.normal(size=(6, 5)).astype(np.float32)))


@pytest.mark.parametrize("turned", [False, True])
def test_layers_take_the_signs_themselves(turned, tmp_path):
    rng = np.random.default_rng(2)
    chain = network(rng, turned)
    plain = import_chain(chain, engine="binary")
    real = real_import(chain, engine="binary")
    names = [layer.name for layer in plain.model.network.layers if layer.kind in ("conv", "dense")]
    assert names == ["conv_1", "dense_2", "dense_3"]
    for name in names:
        kept = real.model.arrays[name]["weight"]
        assert len(np.unique(kept)) > 20
        np.testing.assert_array_equal(real.model.weights(name), plain.model.arrays[name]["weight"])
    images = rng.choice([-1, 1], (20, 5, 4, 3))
    np.testing.assert_array_equal(real.model.forward(images), plain.model.forward(images))
    file.save(real.model, tmp_path / "real.npz")
    np.testing.assert_array_equal(file.load(tmp_path / "real.npz").forward(images), plain.model.forward(images))


def test_numbers_are_the_files_own():
    rng = np.random.default_rng(3)
    chain = bipolar(Chain((4,)))
    given = latent(rng, 4, 3)
    chain.node("MatMul", signs(chain, given))
    kept = real_import(chain).model.arrays["dense_1"]["weight"]
    np.testing.assert_array_equal(kept.reshape(3, 4), given.T)


def test_a_number_whose_sign_changes_becomes_its_negative():
    real = np.array([0.5, -0.5, 0.0, -0.0, 1e-320, -1e-320])
    for signs in (np.ones(6), -np.ones(6)):
        signed_weights = with_signs(real, signs)
        np.testing.assert_array_equal(np.where(signed_weights >= 0, 1, -1), signs)
        np.testing.assert_array_equal(np.abs(signed_weights[:2]), [0.5, 0.5])


def test_a_file_without_such_weights_is_refused():
    rng = np.random.default_rng(4)
    for chain in (begun(rng).node("Flatten", axis=1), bipolar(Chain((4,))).node("MatMul", np.ones((4, 3), np.float32))):
        with refusal("real weights must be made binary by BipolarQuant or Sign, got no such weights"):
            real_import(chain)

"""Real kernels as integers of 8 bits: signs stay, whatever rounding does; and programs that carry them."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.kernels import packed
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.fixed_kernels import fixed_point, integers, magnitudes
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import packets
from tests.graph_text import network_of
from tests.networks import random_images
from tests.simulated import compare


def test_rounding_keeps_every_sign() -> None:
    """Down, and below 0 no number becomes 0, however small it is beside the largest."""
    given = np.array([0.0, -0.0, 1.0, -1.0, 0.999, -0.001, 0.001, -1e-300, 5e-324, 1.5, -1.99])
    assert fixed_point(given).tolist() == [0, 0, 64, -64, 63, -1, 0, -1, 0, 96, -128]
    assert fixed_point(np.array([1e300, -1e-300, -5e-324])).tolist() == [np.floor(1e300 * 2.0**-990), -1, -1]
    assert fixed_point(np.zeros(3)).tolist() == [0, 0, 0]
    assert fixed_point(np.array([-5e-324, 5e-324])).tolist() == [-64, 64]
    rng = np.random.default_rng(1)
    for scale in 10.0 ** np.arange(-20, 20, 5):
        z = rng.normal(size=500) * scale ** rng.integers(0, 2, 500)
        fixed = fixed_point(z)
        assert ((fixed >= 0) == (z >= 0)).all()
        assert -128 <= fixed.min() <= fixed.max() <= 127
        assert np.abs(fixed).max() >= 64
    whole = rng.integers(-100, 101, 300)
    whole[0] = 100
    np.testing.assert_array_equal(fixed_point(whole), whole)


def test_a_changed_bit_is_the_complement() -> None:
    every = np.arange(-128, 128)
    bits = every >= 0
    known = magnitudes(every)
    assert integers(bits, known).tolist() == every.tolist()
    assert integers(~bits, known).tolist() == (~every).tolist()


NPU = Npu.of(kfp=5, kgp=4, pfp=3, ol=2, shift_bits=2, kernel_binariser=True)


def real_model(name: str, source: str, layers: str) -> Model:
    network = network_of(source, layers, name=name)
    rng = np.random.default_rng(4)
    arrays: dict[str, dict[str, np.ndarray]] = {}
    for layer, read in network.chain("this test"):
        shapes = layer.array_shapes(read)
        if "weight" in shapes:
            weight = rng.normal(size=shapes["weight"])
            weight[rng.random(weight.shape) < 0.2] = rng.choice([0.0, -0.0, -1e-9, 1e-9])
            arrays[layer.name] = {"weight": weight}
        elif shapes:
            threshold = rng.integers(-5, 5, shapes["threshold"])
            direction = rng.choice([-1, 1], shapes["direction"])
            arrays[layer.name] = {"threshold": threshold, "direction": direction}
    return Model(network, arrays)


CONV, CONV_2 = (f"conv_{number} 7 2x3 padding=1/0/0/1 real_weights=yes" for number in (1, 2))
DENSE = "dense 3 real_weights=yes"
MODELS = {
    "bits": real_model("bits", "5x6x3", f"{CONV}, max_pool 2x2 2x1, act levels=2, {DENSE}"),
    "levels": real_model("levels", "5x6x3 b3", f"{CONV}, act, min_pool 2x2 2x1, {CONV_2}, act_2, {DENSE}"),
    "planes": real_model("planes", "5x6x3 s4", f"{CONV}, act, {DENSE}"),
}


def signs_of(model: Model) -> Model:
    """The same model with the signs of its weights in their place."""
    layers = tuple(replace(x, real_weights=False) if hasattr(x, "real_weights") else x for x in model.network.layers)
    arrays = {name: {"weight": model.weights(name)} if "weight" in its else its for name, its in model.arrays.items()}
    return Model(replace(model.network, layers=layers), arrays)


def sent(model: Model, manifest: Manifest) -> np.ndarray:
    """The integers of all rows of the kernel memory that a program has."""
    program = compile_model(model, manifest)
    loaded = packets(manifest, program.parameters)
    rows = [rows[:, : memory.words] for _, memory, rows in loaded if memory.name == "kernels"]
    width = memory_of(manifest.npus[0], "kernels").width
    bits = np.unpackbits(np.concatenate(rows).view(np.uint8), axis=1, bitorder="little", count=width)
    return np.packbits(bits.reshape(-1, 8), axis=1, bitorder="little").view(np.int8).ravel()


@pytest.mark.parametrize("name", MODELS)
def test_a_program_carries_the_integers(name: str) -> None:
    """They are the numbers' own, or complements; their signs are the bits that the model of signs is compiled to."""
    model = MODELS[name]
    manifest = Manifest.of(size_memories("kernels", [model], NPU), "0" * 64)
    integers, plain = sent(model, manifest), sent(signs_of(model), manifest)
    assert set(np.unique(plain)) == {-1, 1}
    np.testing.assert_array_equal(integers >= 0, plain >= 0)
    for layer in model.network.layers:
        if layer.name in model.arrays and "weight" in model.arrays[layer.name]:
            own = fixed_point(model.arrays[layer.name]["weight"])
            assert np.isin(magnitudes(own), magnitudes(integers.astype(np.int64))).all()
    assert len(np.unique(np.abs(integers.astype(int)))) > 30


@pytest.mark.parametrize("name", MODELS)
def test_without_a_binariser_the_compiler_takes_the_signs(name: str) -> None:
    model = MODELS[name]
    bare = NPU.changed(kernel_binariser=False)
    manifest = Manifest.of(size_memories("kernels", [model], bare), "0" * 64)
    own, other = (compile_model(one, manifest) for one in (model, signs_of(model)))
    np.testing.assert_array_equal(own.parameters, other.parameters)
    assert own.model_digest != other.model_digest
    for p, q in zip(lower_alone(model).layers, lower_alone(signs_of(model)).layers):
        np.testing.assert_array_equal(p.weight, q.weight)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", MODELS)
def test_hardware_takes_the_signs_while_it_loads(name: str) -> None:
    exact(MODELS[name], size_memories("kernels", list(MODELS.values()), NPU))


OTHERS = [{"planes": 4, "kfp": 15, "shift_bits": 0}, {"accumulators": 4}, {"one_memory": True}, {"streamed": True}]


@pytest.mark.slow
@pytest.mark.parametrize("more", OTHERS, ids=str)
def test_other_npus(more: dict) -> None:
    model = MODELS["planes" if "planes" in more else "levels"]
    streamed = more.pop("streamed", False)
    exact(model, size_memories("other", [model], NPU.changed(**more), sizing=Sizing(stream_weights=streamed)))


def exact(model: Model, design: Design) -> None:
    images = random_images(model.network, 5, 3)
    np.testing.assert_array_equal(packed.forward(model, images), signs_of(model).forward(images))
    compare(design, model, images=images, batches=(5,))

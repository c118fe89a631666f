"""Designs have room for networks of the same layers with other weights, biases, thresholds and scales."""

import numpy as np
import pytest

from bitloom.golden.layers.add import Add
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.training import architecture
from bitloom.golden.training.train import Recipe, train
from bitloom.golden.zoo import load
from bitloom.golden.zoo.digits import IMAGE, load_digits
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.margins import margins, roomy_add_widths
from bitloom.hls_gen.compiler.needs import Needs, NpuNeeds
from bitloom.hls_gen.compiler.ranges import with_any_biases, with_any_thresholds, with_biases
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build.reference_designs import default_npu
from tests.graph_text import network_of
from tests.hls_gen.compiler.graph_cases import BLOCK, SHORTCUT, two_ways
from tests.hls_gen.compiler.test_residual import NPU


def other_weights(network: Network, seed: int, scale: int = 1) -> Model:
    """Arrays such as training may give: weights as the encoding has them, biases up to a quarter of the largest sum,
    multipliers of 16 bits, and additions whose maps count about alike. Multipliers of additions, and their bias, have
    up to 2 bits more with ``scale`` 4."""
    rng = np.random.default_rng(seed)
    arrays = dict[str, dict[str, np.ndarray]]()
    reach = 0
    for layer in network.layers:
        source = network.sources(layer)[0]
        if isinstance(layer, Weighted):
            values = np.arange(layer.weight.low, layer.weight.high + 1, layer.weight.step)
            arrays[layer.name] = {"weight": rng.choice(values, layer.array_shapes(source)["weight"])}
            reach = max(map(abs, layer.accumulator_range(source)))
        elif isinstance(layer, Requantise):
            shape = (source.channels,)
            bias = (-(reach // 4), reach // 4 + 1)
            multiplier, shift = (1, 1 << 16), (16, 32)
            limits = {"bias": bias, "multiplier": multiplier, "shift": shift}
            arrays[layer.name] = {name: rng.integers(*ends, shape) for name, ends in limits.items()}
        elif isinstance(layer, Threshold):
            arrays[layer.name] = {
                "threshold": rng.integers(-2 * reach, 2 * reach + 1, (source.channels, layer.levels)),
                "direction": rng.choice([-1, 1], source.channels),
            }
        elif isinstance(layer, Add):
            factors = rng.integers(1 << 17, 1 << 18, 2) * scale
            bias = rng.integers(-128, 128, 1) * factors.max()
            arrays[layer.name] = {"multiplier": factors, "bias": bias, "shift": np.array([18])}
    return Model(network, arrays)


INTEGER = Npu.of(engine="integer", feature_bits=9, weight_bits=8, shift_bits=0, kfp=4, kgp=4, pfp=4, ol=2, acc_bits=32)
CASES = {
    "block": (two_ways(BLOCK), NPU),
    "shortcut": (two_ways(SHORTCUT, 2), NPU),
    "integer": (
        network_of(
            "7x5x6 s8", "conv_1 9 3x3 s8, act_1 u8 relu=yes, max_pool pool_1 2x2 2x2, dense fc_2 10 s8, act_2 s8"
        ),
        INTEGER,
    ),
    "binary": (
        network_of(
            "7x5x6 s8",
            "conv_1 9 3x3, act_1, max_pool pool_1 2x2 2x2, conv_2 5 2x1 ternary, act_2 levels=3, dense fc_3 10",
        ),
        Npu.of(kfp=4, kgp=4, pfp=4, ol=2),
    ),
}


def design_of(model: Model, npu: Npu) -> Design:
    return size_memories("d", [model], npu)


@pytest.mark.parametrize("name", CASES)
def test_other_weights_fit(name: str) -> None:
    network, npu = CASES[name]
    manifest = Manifest.of(design_of(other_weights(network, 0), npu), "0" * 64)
    for seed in range(1, 7):
        compile_model(other_weights(network, seed, scale=4), manifest)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("layers", "kinds"),
    [
        ("conv8,res,res,pool,conv16,res,dense10", {}),
        ("conv8,pool,conv8,dense10", {"weights": "int8", "activations": "8"}),
        ("conv8,pool,conv8,dense10", {"weights": "ternary", "activations": "2"}),
    ],
    ids=["binary_residual", "integer", "ternary"],
)
def test_networks_that_are_trained_again_fit(layers: str, kinds: dict[str, str]) -> None:
    """On other images, from other seeds."""
    data = load_digits()
    network = architecture.network_of("net", IMAGE, layers, **kinds)
    models = []
    for seed in range(2):
        part = slice(100 * seed, 100 * seed + 200)
        recipe = Recipe(epochs=1, batch=32, seed=seed)
        models.append(train(network, data.train_images[part], data.train_labels[part], recipe))
    manifest = Manifest.of(design_of(models[0], default_npu(models[0])), "0" * 64)
    for model in models:
        compile_model(model, manifest)


@pytest.mark.parametrize("name", ["digits-cnn", "cifar-quick-int8"])
def test_reference_designs_need_no_more(name: str) -> None:
    """Sums need so many bits, whatever the biases; multipliers 16."""
    model = load(name)
    (npu,) = design_of(model, default_npu(model)).npus
    least = {"digits-cnn": {"acc_bits": 11}, "cifar-quick-int8": {"acc_bits": 26, "multiplier_bits": 16}}[name]
    assert npu.values(*least) == least


def test_ranges() -> None:
    biases = np.array([-3, 20])
    assert with_biases((-10, 12), biases) == (-13, 32)
    assert with_biases((5, 12), biases) == (-3, 32)
    assert with_biases((-10, 12), biases[:0]) == (-10, 12)
    assert with_any_biases((-100, 120), biases) == (-130, 150)
    assert with_any_biases((-10, 12), biases) == (-35, 37)
    assert with_any_thresholds((-10, 12)) == (-23, 22)


def test_widths() -> None:
    assert [multiplier(bits) for bits in (0, 1, 2, 16, 17, 31)] == [0, 16, 16, 16, 31, 31]
    widths = [(2, 2), (4, 12), (21, 30), (25, 34), (25, 40)]  # in the first one maps count alike
    assert [added(*bits) for bits in ((2, 2, 8), (2, 9, 8), (19, 30, 9), (24, 25, 9), (25, 40, 18))] == widths
    assert [added(*bits, in_luts=True) for bits in ((2, 2, 8), (19, 25, 9))] == [(2, 2), (20, 29)]


def multiplier(bits: int) -> int:
    """Bits of a design's multipliers for a network whose own have ``bits``."""
    npu = NPU.changed(multiplier_bits=bits)
    return margins(npu, [NpuNeeds(npu, Needs.of())])["multiplier_bits"]


def added(*bits: int, in_luts: bool = False) -> tuple[int, ...]:
    """Bits of factors and of a bias."""
    return tuple(roomy_add_widths(*bits, in_luts=in_luts).values())

"""Overflow can't happen silently: accumulator widths are proved from the network, and here everything is driven to its
extremes.

Each design is as narrow as its networks allow, and each network as wide as its design allows: one product more, or one
bit less, is refused. Images match a kernel's signs in every product, or in none, so that sums reach both ends.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, TERNARY, Encoding, signed
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.run import run
from tests.errors import value_error
from tests.graph_text import network_of

INT8 = signed(8)
BINARY = Npu.of(kfp=32, kgp=4, pfp=3, ol=2)
PLANES = Npu.of(kfp=40, kgp=4, pfp=3, ol=2, planes=8)
INTEGER = Npu.of(engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32, kfp=8, kgp=4, pfp=2, ol=2)


@dataclass(frozen=True)
class Extreme:
    """A dense layer of so many products and 6 kernels, and what follows it."""

    products: int
    source: Encoding
    weight: Encoding
    tail: tuple[Layer, ...] = ()
    bias: tuple[int, int] = (0, 0)
    too_many: int | None = None
    """Products that need a bit more; by default one more than ``products``."""

    def model(self, name: str, products: int | None = None) -> Model:
        """Kernels: all lowest, all highest weights, and corner values at random."""
        channels = products or self.products
        dense = Dense(name="dense_1", out_channels=6, weight=self.weight)
        source = Map(height=1, width=1, channels=channels, encoding=self.source)
        weight = np.random.default_rng(0).choice([self.weight.low, self.weight.high], (6, 1, 1, channels))
        weight[0], weight[1] = self.weight.low, self.weight.high
        arrays = {"dense_1": {"weight": weight}}
        low, high = dense.accumulator_range(source)
        for layer in self.tail:
            if isinstance(layer, Threshold):
                limits = np.array([high, low, high + 1, low - 1, high - 1, low + 1])
                arrays[layer.name] = {"threshold": limits[:, None], "direction": np.array([1, 1, -1, 1, -1, 1])}
            else:
                bias = np.resize(self.bias, 6)
                shift = np.array([38, 32, 31, 31, 40, 36])
                arrays[layer.name] = {"bias": bias, "multiplier": np.full(6, (1 << 16) - 1), "shift": shift}
        return Model(Network(name=name, input=source, layers=(dense, *self.tail)), arrays)


def images(model: Model) -> np.ndarray:
    """(12, 1, 1, C): for each kernel the image of its largest sum and that of its smallest."""
    source = model.network.input.encoding
    weight = model.arrays["dense_1"]["weight"].astype(np.int64)  # (6, 1, 1, C)
    products = weight * source.low, weight * source.high
    largest = np.where(products[0] > products[1], source.low, source.high)
    smallest = np.where(products[0] > products[1], source.high, source.low)
    return np.concatenate([largest, smallest])


ACT = Threshold(name="act_1")
REQUANTISE = Requantise(name="act_1", encoding=INT8)
BITS = {
    "bits_raw": Extreme(8190, BIPOLAR, BIPOLAR),
    "bits": Extreme(8190, BIPOLAR, BIPOLAR, (ACT,)),
    "ternary": Extreme(4095, BIPOLAR, TERNARY, (ACT,), too_many=4097),  # an odd number of them counts twice
}
BYTES = {"int8_raw": Extreme(63, INT8, BIPOLAR), "int8": Extreme(63, INT8, BIPOLAR, (ACT,))}
INTEGERS = {
    "int_raw": Extreme(127, INT8, INT8),
    "int": Extreme(127, INT8, INT8, (REQUANTISE,), (-32640, 16382)),
}
BIAS = Extreme(127, INT8, INT8, (REQUANTISE,), (-(1 << 31) + (1 << 21) + 1, (1 << 31) - (1 << 21)))
EXTREMES: dict[str, tuple[Npu, int, dict[str, Extreme]]] = {
    "binary": (BINARY, 14, BITS | BYTES),
    "planes": (PLANES, 14, BYTES),
    "integer": (INTEGER, 22, INTEGERS),
    "integer_32": (INTEGER, 32, {"int_bias": BIAS}),
}

MARGIN = {"integer": 1}
"""Bits that sizing adds for biases that are trained anew; none for thresholds, and no more than 32 bits in all."""


def models(name: str) -> list[Model]:
    return [extreme.model(key) for key, extreme in EXTREMES[name][2].items()]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", EXTREMES)
def test_sums_at_both_ends_are_bit_exact(name: str, tmp_path: Path) -> None:
    folding, acc_bits, _ = EXTREMES[name]
    design = size_memories(name, models(name), folding)
    assert design.npus[0].array.acc_bits == acc_bits + MARGIN.get(name, 0)
    design = replace(design, npus=(design.npus[0].changed(acc_bits=acc_bits),))
    build = builds.build(tmp_path / "build", design, models(name))
    for model in models(name):
        x = images(model)
        layer, source = model.network.chain("the test")[0]
        sums = model.trace(x)[0]
        assert (sums.min(), sums.max()) == layer.accumulator_range(source)
        assert run(build, model, x).bit_exact_frames == len(x), model.network.name


@pytest.mark.parametrize(("name", "key"), [(name, key) for name in EXTREMES for key in EXTREMES[name][2]])
def test_one_bit_less_is_refused(name: str, key: str) -> None:
    folding, acc_bits, extremes = EXTREMES[name]
    model = extremes[key].model(key)
    design = size_memories("narrow", [model], folding)
    narrow = replace(design, npus=(design.npus[0].changed(acc_bits=acc_bits - 1),))
    with value_error(f"{key}: acc_bits must be >= {acc_bits}, design narrow has {acc_bits - 1}"):
        compile_model(model, Manifest.of(narrow, "0" * 64))


@pytest.mark.parametrize(("name", "key"), [(n, k) for n in ("binary", "planes", "integer") for k in EXTREMES[n][2]])
def test_one_product_more_is_refused(name: str, key: str) -> None:
    folding, acc_bits, extremes = EXTREMES[name]
    extreme = extremes[key]
    model = extreme.model(key, extreme.too_many or extreme.products + 1)
    wide = size_memories("wide", [model], folding)
    same = replace(wide, npus=(wide.npus[0].changed(acc_bits=acc_bits),))
    with value_error(f"{key}: acc_bits must be >= {acc_bits + 1}, design wide has {acc_bits}"):
        compile_model(model, Manifest.of(same, "0" * 64))


def averaged(width: int) -> Model:
    """Features of 8 bits as they are, then the average over the whole row."""
    layers = f"conv_1 2 1x1 s8, act_1 s8, avg_pool pool_1 1x{width} 1x1"
    arrays = {
        "conv_1": {"weight": np.eye(2, dtype=np.int64).reshape(2, 1, 1, 2)},
        "act_1": {"bias": np.zeros(2, np.int64), "multiplier": np.ones(2, np.int64), "shift": np.zeros(2, np.int64)},
    }
    return Model(network_of(f"1x{width}x2 s8", layers, name=f"average_{width}"), arrays)


def test_the_largest_averages_are_bit_exact(tmp_path: Path) -> None:
    chosen = [averaged(width) for width in (81, 127)]
    build = builds.build(tmp_path / "build", size_memories("averages", chosen, INTEGER), chosen)
    for model in chosen:
        x = np.random.default_rng(0).choice([-128, 127], (8, *model.network.input.shape))
        x[0], x[1], x[2, ..., 0], x[2, ..., 1] = -128, 127, -128, 127
        assert run(build, model, x).bit_exact_frames == len(x)


def test_a_larger_average_is_refused() -> None:
    with value_error("pool_1: an average must have at most 127 taps, got 128"):
        size_memories("averages", [averaged(128)], INTEGER)

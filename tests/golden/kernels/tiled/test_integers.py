"""Layers of integers in C++: what fits and what doesn't, the largest sums, threads. Random ones: campaign golden of
`bitloom fuzz`, tests/overlay/fuzz/test_campaigns.py."""

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, Encoding, signed, unsigned
from bitloom.golden.graph import INPUT
from bitloom.golden.kernels.tiled import cpu, integers
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.affine import Affine
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool, SumPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold

POOL = {"kernel": (2, 2), "stride": (1, 1)}


def a_map(encoding: Encoding, channels: int = 2, side: int = 2) -> Map:
    return Map(height=side, width=side, channels=channels, encoding=encoding)


def fits(layer: Layer, source: Map, **arrays: np.ndarray) -> bool:
    sources = [source] * layer.input_count
    return integers.forward_of(layer, sources, layer.output_of(sources), arrays) is not None


def dense(weight: Encoding) -> Dense:
    return Dense(name="dense", out_channels=1, weight=weight)


@pytest.mark.parametrize(
    ("layer", "source", "expected"),
    [
        (dense(signed(16)), a_map(signed(13), 4, 1), False),  # a weight of -2^15, and one more, is no int16
        (dense(signed(15)), a_map(signed(15), 2, 1), True),
        (dense(signed(15)), a_map(signed(15), 8, 1), False),  # sums up to 2^31
        (dense(signed(15)), a_map(signed(16), 1, 1), False),
        (MaxPool(name="pool", **POOL), a_map(signed(31)), True),
        (MaxPool(name="pool", **POOL), a_map(signed(32)), False),
        (AvgPool(name="pool", **POOL), a_map(unsigned(29)), True),
        (AvgPool(name="pool", **POOL), a_map(unsigned(30)), False),  # fits, but not the sum of four
        (SumPool(name="pool", **POOL), a_map(unsigned(28)), True),
        (SumPool(name="pool", **POOL), a_map(unsigned(29)), False),
        (Affine(name="affine", encoding=signed(20)), a_map(signed(4)), False),
    ],
)
def test_what_fits(layer, source, expected):
    arrays = {name: np.ones(shape, int) for name, shape in layer.array_shapes_of([source]).items()}
    assert fits(layer, source, **arrays) == expected


@pytest.mark.parametrize(
    ("layer", "bits"),
    [
        (Requantise(name="requantise", encoding=signed(8)), 31),
        (Threshold(name="threshold"), 31),
        (Add(name="add", inputs=(INPUT, INPUT), encoding=signed(8)), 15),
    ],
)
def test_the_widest_map_that_each_layer_reads(layer, bits):
    for encoding, expected in ((signed(bits), True), (signed(bits + 1), False)):
        shapes = layer.array_shapes_of([a_map(encoding)] * layer.input_count)
        assert fits(layer, a_map(encoding), **{name: np.ones(shape, int) for name, shape in shapes.items()}) == expected


@pytest.mark.parametrize("path", cpu.paths())
@pytest.mark.parametrize("x", [-(1 << 14), (1 << 14) - 1])
def test_the_largest_sums_are_exact(path, x):
    """2^29 a step of two products, 3 * 2^28 in all, a sum of 31 bits."""
    layer = dense(signed(15))
    source = a_map(signed(15), 3, 1)
    arrays = {"weight": np.full((1, 1, 1, 3), -(1 << 14))}
    forward = integers.forward_of(layer, [source], layer.output(source), arrays, path)
    assert forward(np.full((1, 1, 1, 3), x, np.int16)).item() == 3 * x * -(1 << 14)


def test_maps_of_any_order_in_memory_are_read():
    layer = MaxPool(name="pool", **POOL)
    source = a_map(signed(8), 3, 4)
    x = np.asfortranarray(np.random.default_rng(1).integers(-128, 128, (5, 4, 4, 3)))
    forward = integers.forward_of(layer, [source], layer.output(source), {})
    np.testing.assert_array_equal(forward(x.astype(np.int16)), layer.forward(x, {}, source))


def test_without_a_compiler_nothing_is_in_cpp(monkeypatch):
    monkeypatch.setenv("CXX", "no-such-g++")
    cpu.library.cache_clear()
    assert not fits(MaxPool(name="pool", **POOL), a_map(BIPOLAR))

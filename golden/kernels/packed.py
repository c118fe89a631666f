"""The fast forward pass: each layer in the fastest exact way. Equal to `Model.trace` by test.

Bipolar features of one bit and bipolar weights: XOR and popcount of packed words in C++ (golden/kernels/tiled/cpu.py).
Other numbers: C++, too, in 16 and 32 bits (golden/kernels/tiled/integers.py). Where nothing can be compiled, and for
larger numbers: one matrix product over whole windows. All taps of a window are packed into one row; a layer is then
(windows, taps * C) @ (taps * C, O), in float32 or float64 of a BLAS. That is exact, whatever the order in which BLAS
adds: products and sums are integers, and with |x| <= X and |w| <= W no partial sum exceeds fan-in * X * W. Float32
holds every integer up to 2^24 and float64 up to 2^53, so nothing is ever rounded; sums that may be larger are made in
int64. Grouped convolutions are convolutions with zeros there, and all other layers go the plain way.

Products per second on 1024 x 1024 weights and 512 rows, the best of 60 runs on 2 cores of an AVX-512 server without
VPOPCNTDQ that was busy with other work, OpenBLAS 0.3.23: C++ with packing before and conversion after it 170 G (path
``scalar`` 30 G), float32 BLAS 15 G, float64 BLAS 9 G. There, 16 images of CNV take 0.14 s (BLAS 0.38 s, definition
4.4 s), 100 images 0.7 s (BLAS 1.7 s), 10,000 of LFC 1.2 s (BLAS 2.8 s). Popcount of words in numpy is no way out: on an
AVX2 server 3.0 G by shifts and adds, 1.9 G by a table of 2^16 bytes, where float32 BLAS made 15 to 30 G (numpy 1.21 has
no popcount; each word makes several passes over memory).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bitloom.golden import packing
from bitloom.golden.encoding import BIPOLAR, Array
from bitloom.golden.graph import INPUT, final, walk
from bitloom.golden.integers import integer
from bitloom.golden.layer import Layer, Map
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import ConvByGroups, DepthwiseConv, GroupedConv, as_plain, ungrouped_weights
from bitloom.golden.network import Model, Network
from bitloom.golden.window import with_invalid

from .native import BuildError
from .tiled import conv, cpu, integers
from .tiled.integers import value_dtype

COLUMNS = 1 << 23
"""Values (of 4 or 8 bytes) in the largest matrix of windows that a default batch makes."""

Arrays = Mapping[str, Array]


def forward(
    model: Model,
    images: Array,
    *,
    batch: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Array:
    """Compute a model's outputs as `Model.forward` does, fast.

    Parameters
    ----------
    model : Model
    images : (N, H, W, C) integers
        Of the network's input map.
    batch : int, optional
        Images at a time, >= 1; by default `default_batch`, as many as 32 MiB of windows hold.
    progress : callable, optional
        Called with the number of images that are done, and N, after each batch.

    Returns
    -------
    (N, H', W', C') int64

    Raises
    ------
    ValueError
        If the images are not of the input map, or batch is below 1.
    """
    parts = [np.empty((0, *model.network.output.shape), np.int64)]
    done = 0
    for outputs in _batches(model, images, batch):
        parts.append(final(outputs).astype(np.int64))
        done += len(parts[-1])
        if progress is not None:
            progress(done, len(images))
    return np.concatenate(parts)


def trace(model: Model, images: Array, *, batch: int | None = None) -> list[Array]:
    """Compute every layer's output as `Model.trace` does, fast: each (N, H', W', C') int64.

    Parameters and errors are those of `forward`.
    """
    parts = [[np.empty((0, *model.network.maps[layer.name].shape), np.int64)] for layer in model.network.layers]
    for outputs in _batches(model, images, batch):
        for part, output in zip(parts, outputs):
            part.append(output.astype(np.int64))
    return [np.concatenate(part) for part in parts]


def default_batch(model: Model) -> int:
    """The number of images whose largest matrix of windows has at most `COLUMNS` values; at least 1."""
    network = model.network
    values = []
    for layer in network.layers:
        target = network.maps[layer.name]
        windows = isinstance(layer, Weighted) and layer.fan_in(*network.sources(layer))
        values.append(target.positions * (windows or target.channels))
    return max(1, COLUMNS // max(values))


def _batches(model: Model, images: Array, batch: int | None) -> Iterator[Iterator[Array]]:
    """For each batch: the layers' outputs, in the order of the layers and in the maps' value_dtype."""
    model.check_images(images)
    size = default_batch(model) if batch is None else integer(f"{model.network.name}: batch", batch)
    if size < 1:
        raise ValueError(f"{model.network.name}: batch must be >= 1, got {size}")
    network = model.network
    forwards = {layer.name: _forward(layer, network, model.arrays.get(layer.name, {})) for layer in network.layers}
    for start in range(0, len(images), size):
        sources = {INPUT: images[start : start + size].astype(value_dtype(network.input))}
        yield (output for _, output in walk(network.reads, sources, lambda name, inputs: forwards[name](*inputs)))


def _forward(layer: Layer, network: Network, arrays: Arrays) -> integers.Forward:
    """The layer of ``network`` in the fastest way; by its definition where there is none."""
    sources = network.sources(layer)
    target = network.maps[layer.name]
    source = sources[0]
    if isinstance(layer, Weighted) and layer.real_weights:
        arrays = {"weight": layer.weights(arrays)}
        layer = replace(layer, real_weights=False)
    if isinstance(layer, Weighted) and layer.accumulate != "popcount":
        return _or_sums(layer, source, target, arrays)
    fast = _binary_sums(layer, source, arrays) if isinstance(layer, Weighted) else None
    fast = fast or integers.forward_of(layer, sources, target, arrays)
    if fast is not None:
        return fast
    if isinstance(layer, GroupedConv):
        arrays = {"weight": ungrouped_weights(arrays["weight"], source.channels)}
        return _matrix_sums(as_plain(layer), source, arrays)
    if isinstance(layer, Weighted) and not isinstance(layer, DepthwiseConv):
        return _matrix_sums(layer, source, arrays)
    return lambda *inputs: layer.forward_of([x.astype(np.int64) for x in inputs], arrays, sources).astype(
        value_dtype(target)
    )


def _or_sums(layer: Weighted, source: Map, target: Map, arrays: Arrays) -> integers.Forward:
    """The bits, or the sums of words' bits, of a layer that takes the OR of products."""
    if layer.accumulate == "or_words":
        return _word_sums(layer, source, target, arrays)
    counting = _counting(layer)
    sums = _binary_sums(counting, source, arrays) or _matrix_sums(counting, source, arrays)
    positions = layer.window(source).positions(source.height, source.width)  # (outputs, taps)
    valid = (positions >= 0).sum(axis=1) * source.channels  # products of an output: a sum of -valid has no +1
    none = -valid.reshape(target.height, target.width, 1)
    return lambda x: np.where(sums(x) > none, np.int16(1), np.int16(-1))


def _binary_sums(layer: Weighted, source: Map, arrays: Arrays) -> integers.Forward | None:
    """The sums of a layer with features and weights of one bit; None for another layer, or without a compiler."""
    if source.encoding != BIPOLAR or layer.weight != BIPOLAR or not layer.window(source).plain:
        return None
    if isinstance(layer, ConvByGroups):
        return None
    weight = arrays["weight"]
    target = layer.output(source)
    dtype = value_dtype(target)
    positions = layer.window(source).positions(source.height, source.width)
    if np.array_equal(positions, np.arange(source.positions)[None]):  # the whole map: its values are channels
        source = replace(source, height=1, width=1, channels=source.size)
        layer = Dense(name=layer.name, out_channels=layer.out_channels)
        weight = weight.reshape(layer.out_channels, 1, 1, -1)
    try:
        convolution = cpu.Convolution(conv.from_golden(layer, source, weight, word_bits=64))
    except BuildError:
        return None

    def run(x: Array) -> Array:
        words = packing.pack(x.reshape(len(x), *source.shape) > 0)  # (N, H, W, ceil(C/64))
        sums = convolution(np.moveaxis(words, -1, 1))
        return sums.reshape(len(x), *target.shape).astype(dtype, copy=False)

    return run


def _matrix_sums(layer: Weighted, source: Map, arrays: Arrays) -> integers.Forward:
    # The sums' encoding covers fan-in * X * W, and X and W are at least 1: so it covers features, weights, sums.
    target = layer.output(source)
    dtype = _matrix_dtype(target)
    weight = arrays["weight"].reshape(layer.out_channels, -1).astype(dtype).T  # (taps * C, O)
    positions = layer.window(source).positions(source.height, source.width)  # (outputs, taps)
    whole_map = np.array_equal(positions, np.arange(source.positions)[None])

    def run(x: Array) -> Array:
        x = x.astype(dtype)
        columns = x if whole_map else with_invalid(x)[:, positions]  # (N, outputs, taps, C)
        total: Array = columns.reshape(-1, len(weight)) @ weight  # (N * outputs, O)
        return total.reshape(len(x), *target.shape).astype(value_dtype(target))

    return run


def _matrix_dtype(sums: Map) -> "np.dtype[Any]":
    """The dtype in which a BLAS makes these sums exactly; int64 if no float does."""
    largest = max(-sums.encoding.low, sums.encoding.high)
    return np.dtype(np.float32 if largest < 1 << 24 else np.float64 if largest < 1 << 53 else np.int64)


def _counting(layer: Weighted) -> Weighted:
    """The layer with popcount."""
    return replace(layer, accumulate="popcount", word_channels=0)


def _word_sums(layer: Weighted, source: Map, target: Map, arrays: Arrays) -> integers.Forward:
    """The sums of bits of a layer that takes the OR of each word: a word without +1 has the least sum there is."""
    dtype: type[Any] = np.float32 if layer.fan_in(source) < 1 << 24 else np.int64
    weight = arrays["weight"].reshape(layer.out_channels, -1, source.channels).astype(dtype)  # (O, taps, C)
    positions = layer.window(source).positions(source.height, source.width)  # (outputs, taps)

    def run(x: Array) -> Array:
        flat = x.reshape(len(x), source.positions, source.channels).astype(dtype)
        total = np.zeros((len(x), len(positions), layer.out_channels), value_dtype(target))
        for tap in range(positions.shape[1]):
            (valid,) = np.nonzero(positions[:, tap] >= 0)
            features = flat[:, positions[valid, tap]]  # (N, valid outputs, C)
            for first in range(0, source.channels, layer.word_channels):
                word = slice(first, first + layer.word_channels)
                sums = features[..., word] @ weight[:, tap, word].T
                total[:, valid] += np.where(sums > -weight[0, tap, word].size, 1, -1).astype(total.dtype)
        return total.reshape(len(x), *target.shape)

    return run

"""A model's binary layers by every implementation of golden.kernels.tiled, stage by stage beside golden.

A stage is a binary convolution or dense layer with the thresholds that follow it, or a single other layer. From one
stage to the next goes the implementation's packed result: nothing is repacked between binary layers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bitloom.golden.encoding import BIPOLAR, Array
from bitloom.golden.flatten import with_flat_input
from bitloom.golden.kernels import native
from bitloom.golden.kernels.tiled import cpu, gpu, layout, reference
from bitloom.golden.kernels.tiled.conv import PackedConv, from_golden
from bitloom.golden.kernels.tiled.network import PackedNetwork, PackedPool
from bitloom.golden.kernels.tiled.plan import KERNELS, plan
from bitloom.golden.layer import Map, OneInput
from bitloom.golden.layers.conv import Weighted
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model
from tests.golden.kernels.tiled import fiber

Convolve = Callable[[PackedConv, Array], Array]
"""A packed layer and its input -> words or dots."""


def fibers(kernel: str) -> Convolve:
    """The CUDA source's kernel of that name, under g++."""
    return lambda layer, words: fiber.run(layer, words, plan(layer, words, kernel=kernel))


def on_processor(layer: PackedConv, words: Array) -> Array:
    """The packed convolution of this machine's processor."""
    return cpu.Convolution(layer)(words)


@dataclass(frozen=True)
class Implementation:
    """One way to compute a packed layer.

    Attributes
    ----------
    convolve : callable
        A packed layer and its input -> words or dots.
    word_bits : int or None
        The only width of words that it has, or None.
    missing : callable
        Says in one line why it can't run here; gives None if it can.
    """

    convolve: Convolve
    word_bits: int | None = None
    missing: Callable[[], str | None] = lambda: None


IMPLEMENTATIONS = {
    "tiled": Implementation(reference.run),
    **{name: Implementation(fibers(name), missing=native.missing) for name in KERNELS},
    "cpu": Implementation(on_processor, word_bits=64, missing=native.missing),
    "gpu": Implementation(gpu.run, missing=gpu.missing),
}
"""tiled: numpy. popc, mma-xor, mma-and: the kernels of the CUDA source, under fibers. cpu:
golden/kernels/tiled/cpu.py."""


@dataclass(frozen=True)
class PackedStage:
    """Layers of a network, one after another, and their packed convolution if they are binary.

    Attributes
    ----------
    layers : list of (OneInput, Map)
        Each layer, with the map that it reads.
    conv : PackedConv or None
    """

    layers: list[tuple[OneInput, Map]]
    conv: PackedConv | None

    @property
    def last(self) -> str:
        """Name of the last layer."""
        return self.layers[-1][0].name


def stages(model: Model, word_bits: int) -> list[PackedStage]:
    """Cut a model into stages.

    Parameters
    ----------
    model : Model
        A chain of layers.
    word_bits : int
        B, 32 or 64.

    Returns
    -------
    list of PackedStage

    Raises
    ------
    ValueError
        If golden.kernels.tiled can't compute a binary layer. The message names the layer.
    """
    packed_stages: list[PackedStage] = []
    for layer, source in model.network.chain("the check of golden.kernels.tiled"):
        before = packed_stages[-1].layers if packed_stages else []
        if isinstance(layer, Threshold) and len(before) == 1 and isinstance(before[0][0], Weighted):
            before.append((layer, source))
            continue
        conv = None
        if isinstance(layer, Weighted) and source.encoding == layer.weight == BIPOLAR:
            after = model.network.next_layer(layer.name)
            limits = model.arrays[after.name] if isinstance(after, Threshold) else {}
            conv = from_golden(layer, source, **model.arrays[layer.name], **limits, word_bits=word_bits)
        packed_stages.append(PackedStage([(layer, source)], conv))
    return packed_stages


def trace(model: Model, images: Array, convolve: Convolve, word_bits: int) -> list[Array | None]:
    """Compute all stages of a model by one implementation.

    A max pool of bits is an OR of words; layers that are not binary are computed by golden from unpacked values.

    Parameters
    ----------
    model : Model
    images : (N, H, W, C) integers
        Of the network's input map.
    convolve : callable
        Of the implementation.
    word_bits : int
        B, 32 or 64.

    Returns
    -------
    list of (N, H', W', C') integers or None
        Of each stage, in golden's values; None for stages before the first binary one, which are golden's own.
    """
    model.check_images(images)
    model = with_flat_input(model, word_bits)
    values = images.reshape(len(images), *model.network.input.shape).astype(np.int64)
    words: Array | None = None
    outputs: list[Array | None] = []
    for stage in stages(model, word_bits):
        layer = stage.layers[0][0]
        if stage.conv is not None:
            result = convolve(stage.conv, layout.pack(values, word_bits) if words is None else words)
            words = None if stage.conv.threshold is None else result
            values = result.astype(np.int64)
        elif words is not None and isinstance(layer, MaxPool):
            words = packed_pool(layer, words).run(words)
        else:
            values = _plain(model, stage, values)
            words = None
        if words is not None:
            values = 2 * layout.unpack(words, model.network.maps[stage.last].channels).astype(np.int64) - 1
        binary = stage.conv is not None or any(output is not None for output in outputs)
        outputs.append(values if binary else None)
    return outputs


def _plain(model: Model, stage: PackedStage, values: Array) -> Array:
    """The stage's layers by golden's definition."""
    for layer, source in stage.layers:
        values = layer.forward(values, model.arrays.get(layer.name, {}), source)
    return values


def packed_network(model: Model, word_bits: int) -> tuple[list[PackedStage], PackedNetwork]:
    """Cut a model into what golden computes first, and a packed network, which goes through a device in one piece.

    Parameters
    ----------
    model : Model
        A chain of layers, its input flat (`bitloom.golden.flatten.with_flat_input`).
    word_bits : int
        B, 32 or 64.

    Returns
    -------
    list of PackedStage
        In front of the first binary layer.
    PackedNetwork
        The rest.

    Raises
    ------
    ValueError
        If there is no binary layer, or one of the others behind the first is no max pool of bits. The message names it.
    """
    packed_stages = stages(model, word_bits)
    first = next((k for k, stage in enumerate(packed_stages) if stage.conv is not None), None)
    if first is None:
        raise ValueError(f"{model.network.name}: a packed network must have a binary layer, got none")
    layers: list[PackedConv | PackedPool] = []
    for stage in packed_stages[first:]:
        layer, source = stage.layers[0]
        if stage.conv is not None:
            layers.append(stage.conv)
        elif isinstance(layer, MaxPool) and source.encoding == BIPOLAR:
            layers.append(PackedPool(name=layer.name, channels=source.channels, window=layer.window))
        else:
            rule = "must be a binary convolution or a max pool of bits, to stay on a device"
            raise ValueError(f"{layer.name}: {rule}, got {layer.kind} of {source.encoding}")
    return packed_stages[:first], PackedNetwork(tuple(layers))


def run_network(model: Model, images: Array, run: Callable[[PackedNetwork, Array], Array], word_bits: int) -> Array:
    """A model's values, in golden's numbers, by ``run`` of the packed network behind what golden computes first.

    Parameters and errors are those of `trace` and `packed_network`.
    """
    model.check_images(images)
    model = with_flat_input(model, word_bits)
    values = images.reshape(len(images), *model.network.input.shape).astype(np.int64)
    before, network = packed_network(model, word_bits)
    for stage in before:
        values = _plain(model, stage, values)
    result = run(network, layout.pack(values, word_bits))
    last = network.layers[-1]
    if isinstance(last, PackedConv) and last.threshold is None:
        return result.astype(np.int64)
    bits = layout.unpack(result, model.network.output.channels).astype(np.int64)
    signs: Array = 2 * bits - 1
    return signs


def packed_pool(layer: MaxPool, words: Array) -> PackedPool:
    """A max pool of packed bits, for all bits of the words."""
    channels = words.shape[1] * layout.word_bits_of(layer.name, words)
    return PackedPool(name=layer.name, channels=channels, window=layer.window)

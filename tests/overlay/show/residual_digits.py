"""The file notebooks/residual_digits.tflite: a small residual network that reads digits, of int8 as TFLite has it.

``python -m tests.overlay.show.residual_digits`` trains it and writes it again; that needs PyTorch, which bitloom
doesn't. Weights have a scale for each output, and maps one that their values on the training images need.
"""

from itertools import product
from pathlib import Path

import numpy as np

from tests.overlay.importers.tflite_files import Chain
from tests.paths import ROOT

FILE = ROOT / "notebooks" / "residual_digits.tflite"
PIXEL = 1 / 16
"""The real number that a pixel of 1 is, and the scale of the file's input."""
EPOCHS, BATCH = 32, 64
RATE = 3e-3
CONVOLUTIONS = {"first": (1, 8, 3, 1), "same_1": (8, 8, 3, 1), "same_2": (8, 8, 3, 1)}
CONVOLUTIONS |= {"deep_1": (8, 16, 3, 2), "deep_2": (16, 16, 3, 1), "skip": (8, 16, 1, 2)}
"""Inputs, outputs, kernel and stride of each."""


def trained(images, labels):
    """Weights and biases of each layer, as float64."""
    import torch
    from torch.nn import functional

    torch.manual_seed(2)
    layers = torch.nn.ModuleDict({name: torch.nn.Conv2d(i, o, k) for name, (i, o, k, _) in CONVOLUTIONS.items()})
    layers["dense"] = torch.nn.Linear(64, 10)

    def convolved(name, x):
        _, _, kernel, stride = CONVOLUTIONS[name]
        both = kernel - stride if kernel > 1 else 0  # "SAME" of maps with even sides
        padded = functional.pad(x, (both // 2, both - both // 2) * 2)
        return functional.conv2d(padded, layers[name].weight, layers[name].bias, stride)

    def net(x):
        x = convolved("first", x).relu()
        x = (x + convolved("same_2", convolved("same_1", x).relu())).relu()
        x = (convolved("skip", x) + convolved("deep_2", convolved("deep_1", x).relu())).relu()
        means = functional.avg_pool2d(x, 2).permute(0, 2, 3, 1)  # channels last, as the file has them
        return layers["dense"](means.flatten(1))

    x, y = torch.tensor(images.transpose(0, 3, 1, 2), dtype=torch.float32), torch.tensor(labels, dtype=torch.long)
    optimiser = torch.optim.AdamW(layers.parameters(), RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, EPOCHS)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(x)).split(BATCH):
            loss = functional.cross_entropy(net(x[batch]), y[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        schedule.step()
    return {name: [p.detach().double().numpy() for p in (layer.weight, layer.bias)] for name, layer in layers.items()}


class Quantiser:
    """A file that grows layer by layer, beside the real values of the training images, which say each map's scale."""

    def __init__(self, weights, images):
        self.weights = weights
        self.chain = Chain((8, 8, 1), PIXEL, 0)
        self.values = {0: images * 1.0}

    def _grid(self, values, relu):
        """Scale and zero point of a map."""
        top = float(np.float32(np.abs(values).max()))
        return (top / 255, -128) if relu else (top / 127, 0)

    def _quantised(self, name):
        """Integer weights with their scales, and biases with theirs, as constants of the file."""
        weight, bias = self.weights[name]
        weight = weight.transpose(0, 2, 3, 1) if weight.ndim == 4 else weight
        scale = np.abs(weight.reshape(len(weight), -1)).max(axis=1) / 127
        scale = scale if weight.ndim == 4 else scale.max(keepdims=True)
        integers = np.rint(weight / scale.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.int8)
        products = np.float32(self.chain.now.scale[0]) * np.float32(scale)
        biases = np.rint(bias / products).astype(np.int32)
        constants = self.chain.constant(integers, np.float32(scale)), self.chain.constant(biases, products)
        return constants, weight, bias

    def conv(self, name, relu):
        """Append a convolution of what is here."""
        import tflite

        x = self.values[self.chain.here]
        _, outputs, kernel, stride = CONVOLUTIONS[name]
        constants, weight, bias = self._quantised(name)
        size = x.shape[1] // stride
        both = kernel - stride if kernel > 1 else 0
        padded = np.pad(x, ((0, 0), *[(both // 2, both - both // 2)] * 2, (0, 0)))
        reach = size * stride
        places = product(range(kernel), repeat=2)
        taps = ((padded[:, r : r + reach : stride, c : c + reach : stride], weight[:, r, c]) for r, c in places)
        sums = bias + sum(values @ weights.T for values, weights in taps)
        sums = np.maximum(sums, 0) if relu else sums
        kind = tflite.ActivationFunctionType.RELU if relu else tflite.ActivationFunctionType.NONE
        fields = {"StrideH": stride, "StrideW": stride, "Padding": 0, "FusedActivationFunction": kind}
        fields |= {"DilationHFactor": 1, "DilationWFactor": 1}
        shape = (1, size, size, outputs)
        self.chain.operator("CONV_2D", shape, self._grid(sums, relu), constants, "Conv2DOptions", **fields)
        self.values[self.chain.here] = sums
        return self.chain.here

    def add(self, other):
        """Append the sum of what is here and another map, with ReLU."""
        sums = np.maximum(self.values[self.chain.here] + self.values[other], 0)
        self.chain.add(other, self._grid(sums, relu=True), "RELU")
        self.values[self.chain.here] = sums
        return self.chain.here

    def dense(self):
        """Append means of 2 x 2 values and the dense layer."""
        import tflite

        x = self.values[self.chain.here]
        mean = sum(x[:, r::2, c::2] for r in (0, 1) for c in (0, 1)).reshape(len(x), -1) / 4
        self.chain.pool("AVERAGE", (2, 2), (2, 2)).reshape(1, mean.shape[1])
        constants, weight, bias = self._quantised("dense")
        fields = {"FusedActivationFunction": tflite.ActivationFunctionType.NONE}
        grid = self._grid(mean @ weight.T + bias, relu=False)
        self.chain.operator("FULLY_CONNECTED", (1, 10), grid, constants, "FullyConnectedOptions", **fields)


def written(weights, images):
    """The file's bytes."""
    quantiser = Quantiser(weights, images)
    first = quantiser.conv("first", relu=True)
    quantiser.conv("same_1", relu=True)
    quantiser.conv("same_2", relu=False)
    fork = quantiser.add(first)
    quantiser.conv("deep_1", relu=True)
    deep = quantiser.conv("deep_2", relu=False)
    quantiser.chain.here = fork
    quantiser.conv("skip", relu=False)
    quantiser.add(deep)
    quantiser.dense()
    return quantiser.chain.softmax().bytes()


def main():
    with np.load(Path(FILE).with_name("digits.npz")) as digits:
        images, labels = digits["train_images"] * PIXEL, digits["train_labels"]
    FILE.write_bytes(written(trained(images, labels), images))


if __name__ == "__main__":
    main()

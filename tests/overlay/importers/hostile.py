"""Files that ask for far more than they have: each is small, and none may take long or much memory."""

import numpy as np

from .onnx_files import QONNX, Chain


def begun(shape=(2, 6, 6)):
    return Chain(shape).quant(0.5, 3)


def filled(chain, *shape):
    """A constant of any size of a few bytes."""
    shape = chain.constant(np.int64(shape))
    return chain.weight("ConstantOfShape", shape, value=np_tensor(1.0))


def np_tensor(value):
    from onnx import numpy_helper

    return numpy_helper.from_array(np.float32([value]), "value")


def repeated(count, step, shape=(2, 6, 6)):
    chain = begun(shape)
    for number in range(count):
        step(chain, number)
    return chain.node("Conv", np.ones((3, shape[0], 3, 3), np.float32))


def doubled():
    chain = begun()
    name = chain.constant(np.ones(64, np.float32))
    for _ in range(40):
        name = chain.weight("Concat", name, name, axis=0)
    return chain.node("Add", name)


def folded(count, op="Add"):
    chain = begun()
    name = ""
    name = chain.constant(np.float32([1]))
    for _ in range(count):
        name = chain.weight(op, name, np.float32([1.5]))
    return chain.node("Mul", name).node("Conv", np.ones((3, 2, 3, 3), np.float32))


def dense(inputs, outputs):
    chain = Chain((inputs,)).quant(0.5, 3)
    return chain.node("MatMul", filled(chain, inputs, outputs))


def grouped(channels):
    chain = Chain((channels, 3, 3)).quant(0.5, 3)
    return chain.node("Conv", filled(chain, channels, 1, 3, 3), group=channels)


def mean(channels, size):
    chain = Chain((channels, size, size)).quant(0.5, 3).node("Conv", np.ones((1, channels, 1, 1), np.float32))
    return (
        chain.quant(1, 3)
        .node("Conv", filled(chain, channels, 1, 1, 1))
        .quant(1, 3)
        .node("GlobalAveragePool")
        .quant(0.3, 3)
    )


def wide_conv(**attributes):
    chain = begun((1, 2000, 2000))
    return chain.node("Conv", filled(chain, 1, 1, 1900, 1900), **attributes)


def layers(count):
    chain = Chain((8,))
    for _ in range(count):
        chain.quant(0.5, 8).node("MatMul", np.ones((8, 8), np.float32))
    return chain


def thresholds(count):
    chain = begun().node("Conv", np.ones((3, 2, 3, 3), np.float32))
    return chain.node("MultiThreshold", np.sort(np.random.default_rng(0).normal(0, 9, (1, count))), domain=QONNX)


def many_constants(count):
    chain = begun()
    total = filled(chain, 1 << 23)
    for _ in range(count):
        total = chain.weight("Add", total, filled(chain, 1 << 23))
    return chain.node("Add", chain.weight("ReduceSum", total)).node("Conv", np.ones((3, 2, 3, 3), np.float32))


def sums_of_a_constant(count):
    """Each reads 16 million values, and makes one."""
    chain = begun()
    large = filled(chain, 1 << 24)
    total = chain.weight("ReduceSum", large)
    for _ in range(count - 1):
        total = chain.weight("Add", total, chain.weight("ReduceSum", large))
    return chain.node("Add", total).node("Conv", np.ones((3, 2, 3, 3), np.float32))


def quantised_constants(count):
    """Each has as many scales as values."""
    chain = begun()
    large = filled(chain, 1 << 19)
    attributes = dict(signed=1, narrow=0, rounding_mode="ROUND")
    name = large
    for _ in range(count):
        name = chain.weight("Quant", name, large, 0.0, 4.0, domain=QONNX, **attributes)
    return chain.node("Add", name).node("Conv", np.ones((3, 2, 3, 3), np.float32))


ONE = np.float32([1])
ONES = np.ones((3, 2, 3, 3), np.float32)


def reshaped(chain, number):
    return chain.node("Reshape", np.int64([0, 2048, 2048] if number % 2 else [0, 1, 2048, 2048]))


def dilated(side, pad):
    weight = np.ones((1, 1, side, side), np.float32)
    return begun((1, 60, 60)).node("Conv", weight, dilations=[4096, 4096], pads=[pad] * 4)


def denormal_and_huge():
    norm = [np.full(3, value, np.float32) for value in (1e-45, 1e38, -1e38, 1e-45)]
    chain = begun().node("Conv", ONES).node("BatchNormalization", *norm, epsilon=1e-45)
    return chain.quant(1e-45, 8).node("Conv", np.ones((1, 3, 1, 1), np.float32))


HOSTILE = {
    "24,000 thresholds": lambda: thresholds(24_000),
    "380,000 thresholds": lambda: thresholds(380_000),
    "texts": lambda: (c := begun()).node("Add", c.weight("Cast", filled(c, 1 << 24), to=8)),
    "2,400 sums of a constant": lambda: sums_of_a_constant(2400),
    "1,500 quantised constants": lambda: quantised_constants(1500),
    "constants that double": doubled,
    "ConstantOfShape": lambda: (c := begun()).node("Add", filled(c, 1 << 20, 1 << 10)),
    "ConstantOfShape that fits": lambda: (c := Chain((1 << 22,)).quant(1, 3)).node("MatMul", filled(c, 1 << 22, 7)),
    "many ConstantOfShape": lambda: many_constants(60),
    "Expand": lambda: (c := begun()).node("Add", c.weight("Expand", ONE, c.constant(np.int64([1 << 20, 1 << 10])))),
    "Range": lambda: (c := begun()).node("Add", c.weight("Range", *map(c.constant, np.float32([0, 1e30, 1])))),
    "Tile": lambda: (c := begun()).node("Add", c.weight("Tile", ONE, c.constant(np.int64([1 << 40])))),
    "a map that spreads": lambda: (c := begun()).node("Add", filled(c, 100, 100, 100, 100)),
    "2,000 reshapes": lambda: repeated(2000, reshaped, (1, 2048, 2048)),
    "4,900 transposes": lambda: repeated(4900, lambda c, k: c.node("Transpose", perm=[0, 1, 3, 2])),
    "4,900 products": lambda: repeated(4900, lambda c, k: c.node("Mul", np.float32(1.1 + k / 1e4))),
    "4,900 tiny products": lambda: repeated(4900, lambda c, k: c.node("Mul", c.constant(1e-300 + k * 1e-303, float))),
    "4,900 clips": lambda: repeated(4900, lambda c, k: c.node("Relu").node("Mul", np.float32(1.1)) if k < 2400 else c),
    "4,900 quantisers": lambda: repeated(4900, lambda c, k: c.quant(1 + k / 5000, 16)),
    "2,000 quantisers of 8 bits": lambda: repeated(2000, lambda c, k: c.quant(0.5, 8)),
    "4,900 folded": lambda: folded(4900),
    "4,900 folded products": lambda: folded(4900, "Mul"),
    "2,400 layers": lambda: layers(2400),
    "50,000 nodes": lambda: folded(50_000),
    "groups": lambda: grouped(100_000),
    "4,000 groups": lambda: grouped(4000),
    "a mean of 4,096 channels": lambda: mean(4096, 8),
    "a wide window": wide_conv,
    "a wide window that pads": lambda: wide_conv(pads=[1000] * 4),
    "dilations": lambda: dilated(3, 4096),
    "dilations past the map": lambda: dilated(2, 4095),
    "a matrix of many outputs": lambda: dense(1, 1 << 25),
    "a matrix of many inputs": lambda: dense(1 << 22, 2),
    "a large matrix": lambda: dense(4096, 4096),
    "thresholds": lambda: (
        (c := Chain((1024, 2, 2)).quant(1, 3))
        .node("Conv", np.ones((1024, 1024, 1, 1), np.float32))
        .node("MultiThreshold", filled(c, 1024, 5000), domain=QONNX)
    ),
    "a bias for each value": lambda: (c := begun((1, 2000, 2000))).node("Add", filled(c, 1, 1, 2000, 2000)),
    "a scale of 1e-45": lambda: begun().quant(np.float32(1e-45), 3).node("Conv", ONES),
    "numbers of 1e38": lambda: begun().node("Conv", ONES * np.float32(1e38)).node("Mul", np.float32(1e38)),
    "denormal and huge": denormal_and_huge,
    "a large map with a kernel": lambda: begun((64, 256, 256)).node("Conv", np.ones((64, 64, 7, 7), np.float32)),
    "NaN weights": lambda: begun().node("Conv", ONES * np.float32(np.nan)),
}
HOSTILE = {name: (lambda make=make: make().bytes()) for name, make in HOSTILE.items()}
"""Each fault -> the bytes of a file."""

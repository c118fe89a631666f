"""Every operator beside its authority, with numbers that floating point computes exactly: so that ties are ties."""

import numpy as np
import pytest

from bitloom.overlay.importers.onnx_file import to_graph

from .against import by_images, by_qonnx, check
from .onnx_files import OLD_DOMAINS, QONNX, Chain


def ternary(rng, *shape):
    values = rng.integers(-1, 2, shape)
    values.reshape(shape[0], -1)[:, 0] = 1  # no output is always 0
    return values.astype(np.float32)


def begun(rng, shape=(2, 6, 6), outputs=4, **attributes):
    """A quantised input and a convolution with ternary weights."""
    chain = Chain(shape).quant(0.25, 3)
    return chain.node("Conv", ternary(rng, outputs, shape[0], 3, 3), kernel_shape=[3, 3], **attributes)


def ended(chain, rng, size, step=0.5, bits=3):
    """A quantiser and a dense layer, whose integers are the scores."""
    chain.quant(step, bits).node("Flatten", axis=1)
    return chain.node("Gemm", ternary(rng, 5, size), transB=1)


EACH = np.float32([0.5, -0.25, 2, 1]).reshape(1, 4, 1, 1)
ZEROS = np.float32([0, 0, 1, 1]).reshape(1, 4, 1, 1)
BOUNDARIES = np.float32([0.25, 0.75, 0, 0.25]).reshape(1, 4, 1, 1)
NORM = np.float32([1, -1, 0.5, 2]), EACH.ravel(), np.float32([0.25, 0, -1, 3]), np.float32([3, 0, 15, 0.25])
ELEMENTWISE = {
    "Add": lambda c: c.node("Add", EACH),
    "Add of a number": lambda c: c.node("Add", np.float32(0.25)),
    "constant + map": lambda c: c.reversed("Add", EACH),
    "Sum": lambda c: c.node("Sum", EACH),
    "Sub": lambda c: c.node("Sub", EACH),
    "constant - map": lambda c: c.reversed("Sub", EACH),
    "Mul": lambda c: c.node("Mul", EACH),
    "constant * map": lambda c: c.reversed("Mul", EACH),
    "Mul with 0": lambda c: c.node("Mul", EACH * np.float32([1, 0, 1, 0]).reshape(1, 4, 1, 1)),
    "constants on boundaries": lambda c: c.node("Mul", ZEROS).node("Add", BOUNDARIES),
    "Div": lambda c: c.node("Div", EACH),
    "Neg": lambda c: c.node("Neg"),
    "Identity": lambda c: c.node("Identity"),
    "Dropout": lambda c: c.node("Dropout"),
    "Cast": lambda c: c.node("Cast", to=1),
    "Relu": lambda c: c.node("Relu"),
    "Relu6": lambda c: c.node("Clip", np.float32(0), np.float32(6)),
    "Clip below": lambda c: c.node("Clip", np.float32(-0.5)),
    "Clip above": lambda c: c.node("Clip", "", np.float32(0.75)),
    "HardTanh": lambda c: c.node("Clip", np.float32(-1), np.float32(1)),
    "Clip to one value": lambda c: c.node("Clip", np.float32(1), np.float32(-0.5)).node("Add", EACH),
    "BatchNormalization": lambda c: c.node("BatchNormalization", *NORM, epsilon=1.0),
    "several": lambda c: c.node("Mul", -EACH).node("Relu").node("Sub", EACH).node("Clip", *np.float32([-1, 2])),
}


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name):
    rng = np.random.default_rng(5)
    chain = ended(ELEMENTWISE[name](begun(rng)), rng, 64)
    exact = 0 if name != "BatchNormalization" else 1e-6
    imported = check(chain, by_qonnx, engine="binary", near=exact)
    assert set(imported.choice.engines) == {"binary"}


def grouped(rng, groups, inputs=4, outputs=8):
    return ternary(rng, outputs, inputs // groups, 3, 3)


CONVOLUTIONS = {
    "strides": dict(strides=[2, 1]),
    "pads": dict(pads=[1, 0, 2, 1]),
    "dilations": dict(dilations=[2, 1]),
    "dilations and pads": dict(dilations=[2, 3], pads=[1, 2, 0, 2]),
    "SAME_UPPER": dict(auto_pad="SAME_UPPER", strides=[2, 2]),
    "SAME_LOWER": dict(auto_pad="SAME_LOWER", strides=[2, 2]),
    "SAME_LOWER, other strides": dict(auto_pad="SAME_LOWER", strides=[3, 1]),
    "SAME_LOWER, bare": dict(auto_pad="SAME_LOWER"),
    "VALID": dict(auto_pad="VALID"),
    "groups": dict(group=2),
    "depthwise": dict(group=4, strides=[2, 2]),
}
BARE = ("SAME_LOWER, bare",)
"""Convolutions without a bias and without a size of their kernel."""


@pytest.mark.sample(11)
@pytest.mark.parametrize("engine", ["auto", "integer"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name, engine):
    """A convolution on a map whose values count from 0, so that padding has an integer."""
    rng = np.random.default_rng(6)
    attributes = CONVOLUTIONS[name]
    chain = Chain((3, 7, 8)).quant(0.25, 3)
    chain.node("Conv", ternary(rng, 4, 3, 1, 1), np.float32([0.3125, 0.0625, -0.5625, 1.0625]))
    chain.node("Relu").quant(0.5, 3, signed=0)
    weight = grouped(rng, attributes.get("group", 1))
    weight = chain.quant_weight(weight * 0.5, 0.5, 2)
    if name in BARE:  # the kernel's size is that of the weights
        chain.node("Conv", weight, **attributes)
    else:
        chain.node("Conv", weight, np.float32([0.0625] * 8), kernel_shape=[3, 3], **attributes)  # no ties
    chain.quant(2, 2).node("Flatten")
    imported = check(chain.node("MatMul", ternary(rng, size_of(chain), 3)), by_qonnx, engine=engine, near=0)
    kinds = {1: "conv", 2: "grouped_conv", 4: "grouped_conv"}  # of 4 groups each channel has two kernels
    second = [layer for layer in imported.model.network.layers if layer.kind.endswith("conv")][1]
    assert second.kind == kinds[attributes.get("group", 1)]


def size_of(chain):
    """Values of an image where a chain is."""
    from onnx.shape_inference import infer_shapes

    model = chain.model()
    for node in model.graph.node:
        if node.op_type == "Quant":
            node.op_type, node.domain = "Identity", ""
            del node.input[1:], node.attribute[:]
    (shape,) = [v.type.tensor_type.shape for v in infer_shapes(model).graph.output]
    return int(np.prod([d.dim_value for d in shape.dim[1:]]))


POOLS = {
    "MaxPool": ("MaxPool", dict(kernel_shape=[2, 2], strides=[2, 2])),
    "MaxPool with overlap and padding": ("MaxPool", dict(kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])),
    "MaxPool to the end": ("MaxPool", dict(kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1)),
    "MaxPool SAME_UPPER": ("MaxPool", dict(kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")),
    "MaxPool SAME_LOWER": ("MaxPool", dict(kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_LOWER")),
    "MaxPool, 2 behind the end": ("MaxPool", dict(kernel_shape=[2, 2], strides=[3, 3], ceil_mode=1)),
    "GlobalMaxPool": ("GlobalMaxPool", {}),
    "AveragePool": ("AveragePool", dict(kernel_shape=[2, 2], strides=[2, 2])),
    "AveragePool with overlap": ("AveragePool", dict(kernel_shape=[3, 2], strides=[1, 2])),
    "GlobalAveragePool": ("GlobalAveragePool", {}),
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("place", ["before", "behind"])
@pytest.mark.parametrize("name", POOLS)
def test_pools(name, place):
    """Before the quantiser, and behind it; a mean is then quantised again."""
    rng = np.random.default_rng(7)
    op, attributes = POOLS[name]
    chain = begun(rng, (2, 7, 8), pads=[0, 1, 0, 1])
    if place == "before" and "Max" in op:
        chain.node("Mul", EACH).node(op, **attributes).node("Add", EACH).quant(0.5, 3)
    else:
        chain.node("Relu").quant(0.5, 3, signed=0).node(op, **attributes).quant(0.25, 3, signed=0)
    chain.node("Flatten")
    check(chain.node("MatMul", ternary(rng, size_of(chain), 5)), by_qonnx, near=0)


@pytest.mark.parametrize("name", ["GlobalAveragePool", "ReduceMean", "ReduceSum", "AveragePool"])
def test_means_that_weights_read(name):
    rng = np.random.default_rng(8)
    chain = begun(rng).node("Relu").quant(0.5, 3, signed=0)
    if name == "ReduceSum":
        chain.node("ReduceSum", np.int64([2, 3]), keepdims=0)
    elif name == "ReduceMean":
        chain.node("ReduceMean", axes=[2, 3], keepdims=0)
    else:
        more = dict(kernel_shape=[4, 4]) if name == "AveragePool" else {}
        chain.node(name, **more).node("Flatten")
    check(chain.node("Gemm", ternary(rng, 5, 4), np.float32(rng.normal(size=5)), transB=1), by_qonnx, near=1e-6)


def reshape(chain, *shape):
    return chain.node("Reshape", chain.constant(shape, np.int64))


def by_places(op):
    """Its second input says which axes it puts in or takes out."""
    return lambda chain: chain.node(op, chain.constant([1, 4], np.int64))


LAST, BACK = [0, 2, 3, 1], [0, 3, 1, 2]
"""Orders in which the channels come last, and first again."""
LAYOUTS = {
    "Flatten": lambda c: c.node("Flatten", axis=1),
    "Flatten from the end": lambda c: c.node("Flatten", axis=-3),
    "Reshape": lambda c: reshape(c, 0, -1),
    "Reshape with allowzero": lambda c: reshape(c, 1, 64),
    "Transpose": lambda c: c.node("Transpose", perm=LAST).node("Flatten"),
    "Transpose and back": lambda c: c.node("Transpose", perm=LAST).node("Transpose", perm=BACK).node("Flatten"),
    "Unsqueeze and Squeeze": lambda c: by_places("Squeeze")(by_places("Unsqueeze")(c)).node("Flatten"),
    "in parts": lambda c: reshape(reshape(c, 0, 4, 16).node("Transpose", perm=[0, 2, 1]), 0, 64),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name):
    rng = np.random.default_rng(9)
    chain = LAYOUTS[name](begun(rng).quant(0.5, 2))
    one = chain.nodes[-1].op_type == "Reshape" and name == "Reshape with allowzero"
    check(chain.node("MatMul", ternary(rng, 64, 5)), by_images(by_qonnx) if one else by_qonnx, near=0)


def test_computed_shapes():
    """Shape arithmetic as PyTorch writes it, and weights that are put together of constants."""
    rng = np.random.default_rng(10)
    chain = begun(rng).quant(0.5, 2)
    here = chain.here
    chain.here = chain.weight("Shape", here)
    axis = chain.weight("Gather", chain.here, chain.constant(0, np.int64), axis=0)
    axis = chain.weight("Unsqueeze", axis, chain.constant([0], np.int64))
    rest = chain.weight("Slice", chain.here, *(chain.constant([k], np.int64) for k in (1, 4)))
    rest = chain.weight("ReduceProd", rest, keepdims=1)
    shape = chain.weight("Concat", axis, rest, axis=0)
    chain.here = here
    chain.node("Reshape", shape)
    halves = [chain.constant(ternary(rng, 32, 5)) for _ in (0, 1)]
    check(chain.node("MatMul", chain.weight("Concat", *halves, axis=0)), by_qonnx, near=0)


MODES = ["ROUND", "HALF_EVEN", "HALF_UP", "HALF_DOWN", "FLOOR", "CEIL", "UP", "DOWN"]


@pytest.mark.sample(8)
@pytest.mark.parametrize("rounding", MODES)
@pytest.mark.parametrize("kind", ["signed", "unsigned", "narrow", "unsigned narrow", "zero point", "half a zero point"])
def test_quant(rounding, kind):
    """All values of the sums are multiples of 1/4, most levels' boundaries among them."""
    rng = np.random.default_rng(11)
    zero = {"zero point": 2.0, "half a zero point": -0.5}.get(kind, 0.0)
    signs, narrow = int("unsigned" not in kind), int("narrow" in kind)
    chain = begun(rng, (2, 5, 5))
    op = "IntQuant" if rounding == "UP" else "Quant"  # two names of one operator
    attributes = {"signed": signs, "narrow": narrow, "rounding_mode": rounding}
    chain.node(op, *np.float32([0.5, zero, 3]), domain=QONNX, **attributes)
    chain.node("Flatten").node("MatMul", ternary(rng, 36, 5))
    check(chain, by_qonnx, near=0)


THRESHOLDS = dict(out_scale=0.5, out_bias=-1.0, out_dtype="INT3", data_layout="NCHW")
LIMITS = np.float32([[-1, 0.25, 0.5]] * 4)
FLOOR = {"rounding_mode": "FLOOR"}
DOMAINED = {
    "BipolarQuant": lambda c, domain: c.node("BipolarQuant", np.float32(0.25), domain=domain),
    "Quant": lambda c, domain: c.node("Quant", 0.5, 0.0, 3.0, domain=domain, signed=1, narrow=1, **FLOOR),
    "MultiThreshold": lambda c, domain: c.node("MultiThreshold", LIMITS, domain=domain, **THRESHOLDS),
    "Trunc": lambda c, domain: c.node("Trunc", *np.float32([0.125, 0, 8, 6]), domain=domain, **FLOOR),
}


def domained(rng, op, domain=QONNX):
    """An operator of maps, and a quantiser of weights."""
    chain = DOMAINED[op](begun(rng, (2, 5, 5)), domain).node("Flatten")
    values = rng.normal(size=(36, 5))
    if op == "Quant":
        weight = chain.weight("Quant", values, 0.5, 0.0, 3.0, domain=domain, signed=1, narrow=0, rounding_mode="ROUND")
    else:
        weight = chain.weight("BipolarQuant", values, np.float32(0.5), domain=domain)
    return chain.node("MatMul", weight)


@pytest.mark.sample(6)
@pytest.mark.parametrize("domain", [*OLD_DOMAINS, QONNX])
@pytest.mark.parametrize("op", DOMAINED)
def test_old_domains(op, domain):
    """The operators, as older files name them."""
    chain = domained(np.random.default_rng(12), op, domain)
    assert domain in {node.domain for node in chain.nodes if node.op_type == op}
    check(chain, by_qonnx, near=0)


@pytest.mark.parametrize("signs", [0, 1])
def test_quant_of_one_bit(signs):
    rng = np.random.default_rng(13)
    chain = begun(rng, (2, 5, 5)).quant(0.5, 1, signed=signs).node("Flatten")
    check(chain.node("MatMul", ternary(rng, 36, 5)), by_qonnx, near=0)


def test_sign():
    rng = np.random.default_rng(14)
    check(begun(rng, (2, 5, 5)).node("Sign").node("Flatten").node("MatMul", ternary(rng, 36, 5)), by_qonnx, near=0)


@pytest.mark.sample(3)
@pytest.mark.parametrize("layout", ["", "NCHW", "NHWC"])
@pytest.mark.parametrize("rows", [1, 4])
def test_multi_threshold(layout, rows):
    rng = np.random.default_rng(15)
    chain = begun(rng, (2, 5, 5))
    if layout == "NHWC":
        chain.node("Transpose", perm=[0, 2, 3, 1])
    limits = np.sort(rng.integers(-8, 9, (rows, 5)) / 4, axis=1)
    chain.node("MultiThreshold", limits, domain=QONNX, **THRESHOLDS | {"data_layout": layout})
    check(chain.node("Flatten").node("MatMul", ternary(rng, 36, 5)), by_qonnx, near=0)


@pytest.mark.sample(3)
@pytest.mark.parametrize("engine", ["auto", "integer"])
@pytest.mark.parametrize(("version", "left"), [(1, 3), (2, 3), (1, 5)])
def test_trunc(version, left, engine):
    """A mean of 4 values of 3 bits, truncated to 3 bits, as Brevitas has it; or all bits stay."""
    rng = np.random.default_rng(16)
    chain = begun(rng, (2, 6, 6)).node("Add", np.float32(0.0625)).node("Relu").quant(0.5, 3, signed=0)
    chain.node("AveragePool", kernel_shape=[2, 2], strides=[2, 2]).node("Mul", np.float32(4))
    last = [2.0, 3.0] if version == 2 else [left]
    attributes = FLOOR | ({"signed": 0, "narrow": 0} if version == 2 else {})
    chain.node("Trunc", *np.float32([0.5, 0, 5, *last]), domain=QONNX, **attributes)
    chain.qonnx_version = version
    check(chain.node("Flatten").node("MatMul", ternary(rng, 16, 5)), by_qonnx, near=0, engine=engine)


def pad(chain, *pads, value=None):
    return chain.node("Pad", chain.constant(pads, np.int64), *([] if value is None else [np.float32(value)]))


def levels(chain):
    return chain.quant(0.5, 3, signed=0)


def padded_quarter(chain):
    chain = pad(chain, 0, 0, 1, 1, 0, 0, 1, 1, value=0.25).node("Sub", np.float32(0.25))
    return chain.node("Clip", *np.float32([-0.25, 1])).quant(0.5, 3, zero=3.0, signed=0)


def channels_last(chain):
    chain = levels(chain).node("Transpose", perm=LAST)
    return pad(chain, 0, 1, 1, 0, 0, 1, 0, 0).node("Transpose", perm=BACK)


PADS = {
    "on a quantised map": lambda c: pad(levels(c), 0, 0, 1, 2, 0, 0, 0, 1),
    "before a quantiser": lambda c: levels(pad(c, 0, 0, 1, 0, 0, 0, 1, 1)),
    "with a number": padded_quarter,
    "twice": lambda c: pad(pad(levels(c), 0, 0, 1, 0, 0, 0, 0, 1), 0, 0, 0, 1, 0, 0, 1, 0),
    "with two numbers": lambda c: pad(pad(levels(c), 0, 0, 1, 0, 0, 0, 0, 1), 0, 0, 0, 1, 0, 0, 1, 0, value=1),
    "channels last": channels_last,
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("own", [0, 1])
@pytest.mark.parametrize("name", PADS)
def test_pads_become_padding(name, own):
    rng = np.random.default_rng(17)
    chain = PADS[name](begun(rng, (2, 7, 6)).node("Add", np.float32(0.0625)).node("Relu"))
    chain.node("Conv", ternary(rng, 3, 4, 4, 4), np.float32([0.125] * 3), pads=[own, 0, own, 0]).quant(1, 3)
    check(chain.node("Flatten").node("MatMul", ternary(rng, size_of(chain), 5)), by_qonnx, near=0)


def test_a_slope_that_is_an_input():
    rng = np.random.default_rng(17)
    chain = begun(rng).node("PRelu", np.float32([[[0.25]]])).quant(0.5, 3)
    check(ended(chain, rng, 64), by_qonnx, engine="binary", near=1e-6)


PADDED_POOLS = {
    "maxima": (lambda c: padded(c), "MaxPool", {}),
    "maxima of values below 0": (lambda c: padded(c.node("Sub", np.float32(1))), "MaxPool", {}),
    "maxima beside a number": (lambda c: padded(c, 1.0), "MaxPool", {}),
    "means": (lambda c: padded(c), "AveragePool", {}),
    "means of padded taps": (lambda c: c, "AveragePool", {"pads": [1, 1, 0, 1], "count_include_pad": 1}),
}


def padded(chain, value=0.0):
    return chain.node("Pad", np.int64([0, 0, 1, 1, 0, 0, 0, 2]), np.float32(value))


@pytest.mark.parametrize("name", PADDED_POOLS)
def test_padded_pools(name):
    rng = np.random.default_rng(17)
    change, pool, attributes = PADDED_POOLS[name]
    chain = change(begun(rng, (2, 7, 6)).node("Relu").quant(0.5, 3, signed=0))
    chain.node(pool, kernel_shape=[2, 2], strides=[2, 1], **attributes).quant(0.25, 4)
    check(chain.node("Flatten").node("MatMul", ternary(rng, size_of(chain), 5)), by_qonnx, near=0)


def test_a_pad_that_nothing_takes():
    rng = np.random.default_rng(17)
    chain = padded(begun(rng, (2, 7, 6)).node("Relu").quant(0.5, 3, signed=0)).node("Flatten")
    check(chain.node("MatMul", ternary(rng, size_of(chain), 5)), by_qonnx, near=0)


ONE_DIMENSION = {
    "convolutions": lambda c, rng: c.node("Conv", ternary(rng, 4, 4, 3), pads=[1, 2], strides=[2], dilations=[2]),
    "convolutions by groups": lambda c, rng: c.node("Conv", ternary(rng, 4, 2, 3), group=2, kernel_shape=[3]),
    "maxima": lambda c, rng: c.node("MaxPool", kernel_shape=[3], strides=[2], pads=[1, 0]),
    "means": lambda c, rng: c.node("AveragePool", kernel_shape=[3], strides=[2]),
    "batch normalisation": lambda c, rng: c.batch_norm(rng, 4),
}


@pytest.mark.parametrize("name", ONE_DIMENSION)
def test_one_dimension(name):
    """Maps of height 1."""
    rng = np.random.default_rng(17)
    chain = Chain((2, 17)).quant(0.25, 3).node("Conv", ternary(rng, 4, 2, 5)).node("Relu").quant(0.5, 2, signed=0)
    chain = ONE_DIMENSION[name](chain, rng).quant(0.5, 2).node("Flatten")
    imported = check(chain.node("MatMul", ternary(rng, size_of(chain), 5)), by_qonnx)
    assert imported.model.network.input.shape == (1, 17, 2)


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax"])
def test_one_dimension_as_a_whole(op):
    rng = np.random.default_rng(17)
    chain = Chain((2, 17)).quant(0.25, 3).node("Conv", ternary(rng, 4, 2, 5)).node("Relu").quant(0.5, 2, signed=0)
    chain.node(op, **({"axes": [2], "keepdims": 0} if op.startswith("Reduce") else {})).quant(0.25, 4).node("Flatten")
    check(chain.node("MatMul", ternary(rng, 4, 5)), by_qonnx)


def between_quantisers(rng, *nodes, more=9, dense=False):
    """Weights, a quantiser, nodes, a quantiser, and weights again."""
    step, more = np.float32(8 / 128), np.float32(more / 128)  # no level of 8 is on a half of 9
    chain = Chain((6,) if dense else (2, 6, 6)).quant(0.25, 4)
    if dense:
        chain.node("MatMul", rng.integers(-3, 4, (6, 5)).astype(np.float32))
    else:
        chain.node("Conv", rng.integers(-3, 4, (5, 2, 3, 3)).astype(np.float32), kernel_shape=[3, 3])
    chain.node("Mul", np.float32(0.03)).quant(step, 8)
    for op, inputs, attributes in nodes:
        chain.node(op, *inputs, **attributes)
    chain.quant(more, 8).node("Flatten")
    places = 5 if dense else 5 * (9 if any(op == "MaxPool" for op, *_ in nodes) else 16)
    return chain.node("MatMul", rng.integers(-3, 4, (places, 3)).astype(np.float32))


POOL = ("MaxPool", (), {"kernel_shape": [2, 2]})


def normalised(rng):
    """A batch normalisation of 5 channels, some of which fall."""
    gamma = np.array([1.3, -0.7, 0.4, -1.1, 2.0])
    return "BatchNormalization", (gamma, rng.normal(size=5), rng.normal(size=5), rng.uniform(0.5, 4, 5)), {}


@pytest.mark.parametrize("ends", [(0, 1.5), (-0.5, 0.5)])
def test_a_clip_between_a_quantiser_and_a_max_pool(ends):
    """The largest value's clip is the largest clip."""
    clip = ("Clip", tuple(np.float32(end) for end in ends), {})
    imported = check(between_quantisers(np.random.default_rng(11), clip, POOL, more=8), by_qonnx)
    assert [built.wrong for built in imported.emitted.built] == [(0, 0)] * 2


@pytest.mark.parametrize("pooled", ["before", "behind", "dense", "not"])
def test_channels_that_differ_between_two_quantisers(pooled):
    """They become a depthwise convolution that copies every channel, and thresholds of each channel's own."""
    rng = np.random.default_rng(12)
    nodes = [normalised(rng), ("Relu", (), {})]
    nodes = {"before": [POOL, *nodes], "behind": [*nodes, POOL]}.get(pooled, nodes)
    imported = check(between_quantisers(rng, *nodes, dense=pooled == "dense"), by_qonnx)
    assert len(imported.emitted.built) == 3
    assert [built.wrong for built in imported.emitted.built] == [(0, 0)] * 3
    copies = imported.model.arrays[imported.emitted.built[1].layers[0]]["weight"]
    assert copies.ravel().tolist() == [1, -1, 1, -1, 1]  # -1: falling channels


def test_nodes_have_names_of_their_own():
    model = Chain((2, 4, 4)).quant(0.5, 3).node("Relu").node("Neg").node("Abs").model()
    for node, name in zip(model.graph.node[-3:], ("", "same", "same")):
        node.name = name
    first, *others = [node.name for node in to_graph(model.SerializeToString()).nodes]
    assert (first, others) == (model.graph.node[0].name, ["Relu_1", "same", "same_3"])

"""Maps that grow: nearest and bilinear upsampling, transposed convolutions and depth to space of TFLite and ONNX files;
padding with a map's edges."""

import numpy as np
import pytest

from bitloom.golden.kernels import packed
from bitloom.overlay.importers.imported import import_file
from bitloom.overlay.importers.tflite_kernels import crops_of, run_kernel
from bitloom.overlay.importers.verify import verify
from tests.errors import refusal

from .against import by_images, by_onnxruntime, by_qonnx
from .against import check as check_onnx
from .against import import_chain as import_onnx_chain
from .onnx_files import Chain as OnnxChain
from .onnx_files import TensorProto, onnx
from .test_selections import onnx_slice
from .test_tflite import import_chain, values_of
from .test_tflite_forms import check
from .tflite_files import DATA, Chain


def begun(rng, zero=-128):
    return Chain((5, 6, 3), 0.02, 11).conv(rng, 4, (3, 3), (0.03, zero), activation="RELU" if zero < 0 else "NONE")


def growths(imported):
    """The growth of each convolution whose map grows, and whether it repeats positions."""
    layers = imported.model.network.layers
    return [(layer.growth, layer.repeats) for layer in layers if getattr(layer, "growth", (1, 1)) != (1, 1)]


@pytest.mark.sample(5)
@pytest.mark.parametrize("zero", [-128, 11])
@pytest.mark.parametrize(
    ("kernel", "strides", "same", "size"),
    [
        ((3, 3), (2, 2), True, None),
        ((2, 2), (2, 2), False, None),
        ((4, 3), (2, 1), True, None),
        ((5, 3), (3, 2), True, (13, 11)),
        ((2, 1), (3, 2), False, None),  # some windows have no tap on the map
    ],
)
def test_a_transposed_convolution_of_tflite(kernel, strides, same, size, zero):
    rng = np.random.default_rng(3)
    chain = begun(rng, zero).transposed_conv(rng, 3, kernel, (0.1, 9), strides, same, size, bias=size is None)
    imported, _ = check(chain.conv(rng, 2, (3, 3), (0.2, 3)))
    assert growths(imported) == [(strides, False)]


@pytest.mark.parametrize(
    ("size", "stride", "kernel", "wanted", "padding", "crops"),
    [
        (5, 1, 3, 5, "SAME_UPPER", (1, 1)),
        (5, 1, 6, 5, "SAME_UPPER", (2, 3)),
        (4, 3, 5, 12, "SAME_UPPER", (1, 1)),
        (4, 3, 2, 12, "SAME_UPPER", (0, -1)),
        (4, 2, 5, 7, "SAME_UPPER", (2, 2)),
        (4, 2, 5, 9, "VALID", (0, 2)),
    ],
)
def test_crops_of_a_transposed_convolution(size, stride, kernel, wanted, padding, crops):
    """As TFLite's padding.h has them: those in front are half of what the convolution back would pad, rounded down."""
    assert crops_of(size, stride, kernel, wanted, padding) == crops


def test_upsampling_is_a_part_of_the_convolution_behind_it():
    rng = np.random.default_rng(4)
    imported, _ = check(begun(rng).upsample(10, 18).conv(rng, 2, (3, 2), (0.2, 3), (2, 1)))
    assert growths(imported) == [((2, 3), True)]
    assert len(imported.graph.sections) == 2


UPSAMPLED = {
    "pixels of the input": lambda rng: Chain((5, 6, 3), 0.02, 11).upsample(10, 12).conv(rng, 2, (3, 3), (0.2, 3)),
    "half pixels, and padding": lambda rng: (
        begun(rng)
        .upsample(10, 18, HalfPixelCenters=True)
        .pad((1, 0), (2, 2))
        .conv(rng, 2, (3, 3), (0.2, 3), same=False)
    ),
    "at the end": lambda rng: begun(rng).upsample(10, 18),
    "in front of a pool": lambda rng: begun(rng).upsample(10, 18).pool("MAX", (2, 4), (1, 3)),
    "in front of a mean": lambda rng: begun(rng).upsample(10, 18).mean((0.04, 3)).dense(rng, 5, (0.05, 3)),
    "twice": lambda rng: begun(rng).upsample(10, 12).upsample(10, 36).conv(rng, 2, (3, 3), (0.2, 3)),
    "of rows alone": lambda rng: begun(rng).upsample(15, 6).conv(rng, 2, (3, 3), (0.2, 3)),
    "of one position": lambda rng: begun(rng).pool("MAX", (5, 6)).upsample(4, 3).conv(rng, 2, (3, 3), (0.2, 3)),
    "by TILE": lambda rng: begun(rng).pool("MAX", (5, 6)).tile(1, 4, 3, 1).conv(rng, 2, (3, 3), (0.2, 3)),
    "in front of a transposed convolution": lambda rng: (
        begun(rng).upsample(10, 12).transposed_conv(rng, 3, (3, 3), (0.1, 9))
    ),
    "of a dense layer": lambda rng: begun(rng).upsample(10, 12).reshape(1, 480).dense(rng, 5, (0.2, 3)),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", UPSAMPLED)
def test_upsampling(name):
    imported, _ = check(UPSAMPLED[name](np.random.default_rng(5)))
    assert any(repeats for _, repeats in growths(imported))


INTERPOLATED = {
    "of corners": lambda rng: begun(rng, 11).interpolate(10, 12),
    "of half pixels": lambda rng: begun(rng, 11).interpolate(10, 12, HalfPixelCenters=True),
    "between corners": lambda rng: begun(rng, 11).interpolate(9, 11, AlignCorners=True),
    "four times, and of columns alone": lambda rng: begun(rng).interpolate(5, 24, HalfPixelCenters=True),
    "twice and four times": lambda rng: begun(rng).interpolate(20, 12, HalfPixelCenters=True),
    "four times, of corners": lambda rng: begun(rng).interpolate(20, 24),
    "pixels of the input": lambda rng: Chain((5, 6, 3), 0.02, 11).interpolate(10, 12, HalfPixelCenters=True),
    "of one row": lambda rng: begun(rng, 11).pool("MAX", (5, 1)).interpolate(3, 12, HalfPixelCenters=True),
    "into the same": lambda rng: begun(rng).interpolate(5, 6),
    "a dense layer behind it": lambda rng: begun(rng).interpolate(10, 12).reshape(1, 480).dense(rng, 5, (0.2, 3)),
    "a convolution behind it": lambda rng: (
        begun(rng).interpolate(10, 12, HalfPixelCenters=True).conv(rng, 2, (3, 2), (0.2, 3), (2, 1))
    ),
    "one position, and padding": lambda rng: (
        begun(rng)
        .pool("MAX", (5, 6))
        .interpolate(2, 3, HalfPixelCenters=True)
        .pad((1, 0), (0, 1))
        .conv(rng, 2, (2, 2), (0.2, 3))
    ),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", INTERPOLATED)
def test_bilinear_upsampling(name):
    imported, _ = check(INTERPOLATED[name](np.random.default_rng(5)))
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


SHORTER = {
    "half as many": lambda rng: of_many(rng).interpolate(5, 6, HalfPixelCenters=True),
    "half as many, of corners": lambda rng: of_many(rng).interpolate(5, 6),
    "columns alone": lambda rng: of_many(rng).interpolate(10, 3, HalfPixelCenters=True),
    "2 of 5, and 2 of 3": lambda rng: of_many(rng).interpolate(4, 8, HalfPixelCenters=True),
    "a convolution behind it": lambda rng: of_many(rng).interpolate(4, 8).conv(rng, 2, (3, 2), (0.2, 3), (2, 1)),
    "pixels of the input": lambda rng: (
        Chain((10, 12, 3), 0.02, 11).interpolate(4, 8, HalfPixelCenters=True).conv(rng, 2, (3, 2), (0.2, 3))
    ),
    "one row": lambda rng: of_many(rng).pool("MAX", (10, 1)).interpolate(3, 4, HalfPixelCenters=True),
}


def of_many(rng):
    return Chain((10, 12, 3), 0.02, 11).conv(rng, 4, (3, 3), (0.03, 11))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SHORTER)
def test_bilinear_interpolation_to_fewer(name):
    """As Keras' Resizing of a spectrogram: a convolution whose kernels are the phases of a few places."""
    imported, _ = check(SHORTER[name](np.random.default_rng(5)))
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


PLACED = [
    {},
    {"HalfPixelCenters": True},
    {"AlignCorners": True},
]


@pytest.mark.parametrize("fields", PLACED, ids=str)
def test_bilinear_upsampling_of_all_pairs_of_values(fields):
    """A row of two values, of all that there are: what golden has of these, and of 20,000 squares, is the kernel's."""
    width, rows = (3, 3) if fields.get("AlignCorners") else (4, 4)
    rng = np.random.default_rng(6)
    pairs = np.stack(np.meshgrid(np.arange(-128, 128), np.arange(-128, 128), indexing="ij"), axis=-1)
    pairs = pairs.reshape(-1, 1, 2, 1).repeat(2, axis=1)
    squares = np.concatenate([rng.integers(-128, 128, (18_000, 2, 2, 1)), rng.choice([-128, 127], (2_000, 2, 2, 1))])
    for x in (pairs, squares):
        chain = Chain((2, 2, 1), 0.02, 11).interpolate(rows, width, **fields)
        imported = import_chain(chain)
        node = imported.source.nodes[0]
        # The kernel takes channels for themselves: so images lie side by side there.
        kernel = run_kernel(node, [x[..., 0].transpose(1, 2, 0)[None].astype(np.int8), np.array((rows, width))])
        got = packed.forward(imported.model, imported.host.to_input(x, (2, 2, 1)))
        np.testing.assert_array_equal(imported.host.scores(got).reshape(-1, rows, width), kernel[0].transpose(2, 0, 1))


def test_bilinear_upsampling_is_one_layer_that_clamps():
    imported, _ = check(begun(np.random.default_rng(5)).interpolate(10, 24, HalfPixelCenters=True))
    (layer,) = [layer for layer in imported.model.network.layers if getattr(layer, "beside", "nothing") == "nearest"]
    assert (layer.kind, layer.kernel, layer.growth, layer.padding) == ("depthwise_conv", (4, 8), (2, 4), (2, 5, 2, 5))
    rows, columns = layer.window(None).reads(5, 6)
    assert ((rows >= 0).sum(axis=1) == 2).all()  # each place reads two rows, and two columns
    assert ((columns >= 0).sum(axis=1) == 2).all()


def test_bilinear_upsampling_equals_recorded_kernels():
    """The kernels of TFLite themselves, as ai-edge-litert has them: see tflite_files.py."""
    recorded = np.load(DATA / "bilinear.npz")
    imported = import_file(DATA / "bilinear.tflite")
    scores = imported.host.scores(packed.forward(imported.model, imported.host.to_input(recorded["x"], (5, 6, 3))))
    np.testing.assert_array_equal(scores.reshape(-1, 3, 47, 4), recorded["04_RESIZE_BILINEAR"])


GROWING = {
    "upsampling": lambda rng, chain: chain.upsample(8, 6),
    "a transposed convolution": lambda rng, chain: chain.transposed_conv(rng, 4, (2, 2), (0.03, 2)),
    "interpolation": lambda rng, chain: chain.interpolate(8, 6, HalfPixelCenters=True),
}


def unet(rng, name):
    """Half the size and back, beside a map of the whole size."""
    chain = Chain((8, 6, 3), 0.02, 11).conv(rng, 4, (3, 3), (0.03, 2))
    skip = chain.here
    GROWING[name](rng, chain.pool("MAX", (2, 2), (2, 2)).conv(rng, 4, (3, 3), (0.03, 2)))
    return chain.concat(skip).conv(rng, 2, (3, 3), (0.2, 3))


@pytest.mark.parametrize("name", GROWING)
def test_a_unet(name):
    check(unet(np.random.default_rng(6), name))


def detector(rng):
    """A pyramid: maps of half the size each, which interpolation brings back and sums join, the last one of one
    position padded to 3 x 3; heads of boxes of all sizes behind one another, their softmax, and anchors."""
    chain = Chain((12, 12, 3), 0.02, 11).conv(rng, 4, (3, 3), (0.03, 2), (2, 2))
    maps = []
    for strides in (1, 2, 3):
        chain.conv(rng, 4, (3, 3), (0.03, 2), (strides, strides), same=strides < 3)
        maps.append(chain.here)
    heads, anchors = [], []
    for side in (1, 3, 6):
        if side == 3:
            chain.interpolate(2, 2).pad((1, 0), (1, 0)).add(maps[1], (0.04, 1))
        if side == 6:
            chain.interpolate(6, 6, HalfPixelCenters=True).add(maps[0], (0.05, -1))
        here = chain.here
        chain.conv(rng, 4, (3, 3), (0.09, -7)).reshape(1, 2 * side**2, 2)
        heads.append(chain.here)
        chain.here = chain.constant(rng.integers(-128, 128, (1, side, side, 2, 2)).astype(np.int8), (0.01,))
        anchors.append(chain.tile(1, 1, 1, 1, 1).reshape(1, 2 * side**2, 2).here)
        chain.here = here
    leave = []
    for parts in (heads, anchors):
        chain.here = parts[0]
        chain.concat(*parts[1:], axis=1)
        if parts is heads:
            chain.softmax()
        leave.append(chain.operator("DEQUANTIZE", (1, 92, 2), kept="FLOAT32").here)
    chain.outputs = leave
    return chain


def test_a_detector():
    """Each output is that of TFLite's kernels, in numpy; the constant one is a part of the host's file, and the softmax
    is the host's, with real numbers."""
    imported = import_chain(detector(np.random.default_rng(7)))
    verify(imported, 4)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    images = np.random.default_rng(8).integers(-128, 128, (3, 12, 12, 3)).astype(np.int8)
    scores = imported.host.closed(imported.model.forward(imported.host.to_input(images, (12, 12, 3))))
    classes, anchors = scores.values()
    wanted = [values_of(imported.source, image) for image in images]
    np.testing.assert_allclose(classes, [tensors[imported.source.outputs[0]][0] for tensors in wanted], atol=1e-6)
    np.testing.assert_array_equal(anchors, [tensors[imported.source.outputs[1]][0] for tensors in wanted])
    assert len(np.unique(classes)) > 50


def autoencoder(rng):
    """Down by strides, up by transposed convolutions."""
    chain = Chain((8, 8, 1), 0.02, 11).conv(rng, 4, (3, 3), (0.03, -128), (2, 2), activation="RELU")
    chain.conv(rng, 6, (3, 3), (0.05, -128), (2, 2), activation="RELU")
    return chain.transposed_conv(rng, 4, (3, 3), (0.1, -20)).transposed_conv(rng, 1, (3, 3), (0.1, 4))


def test_an_autoencoder():
    imported, _ = check(autoencoder(np.random.default_rng(7)))
    assert growths(imported) == [((2, 2), False)] * 2


def test_a_map_that_grows_is_added():
    rng = np.random.default_rng(8)
    chain = begun(rng).upsample(10, 12)
    imported, _ = check(chain.conv(rng, 4, (3, 3), (0.04, 2)).add(chain.operators[1][2][0], (0.05, 1)))
    assert growths(imported) == [((2, 2), True)]


def test_depth_to_space_at_the_end():
    rng = np.random.default_rng(9)
    imported, _ = check(begun(rng).depth_to_space(2))
    assert imported.model.network.output.shape == (5, 6, 4)


INSIDE = {
    "in front of a convolution": lambda rng: begun(rng).depth_to_space(2).conv(rng, 3, (3, 3), (0.2, 3)),
    "in front of convolutions of other values": lambda rng: (
        begun(rng, 11).depth_to_space(2).conv(rng, 3, (3, 2), (0.2, 3), (2, 1), same=False)
    ),
    "in front of a pool": lambda rng: begun(rng).depth_to_space(2).pool("MAX", (2, 3), (2, 1)),
    "in front of padding": lambda rng: begun(rng).depth_to_space(2).pad((1, 2), (0, 1)).pool("AVERAGE", (2, 2)),
    "in front of upsampling": lambda rng: begun(rng).depth_to_space(2).upsample(20, 24).conv(rng, 3, (2, 2), (0.2, 3)),
    "in front of interpolation": lambda rng: begun(rng).depth_to_space(2).interpolate(20, 24),
    "behind upsampling": lambda rng: begun(rng).upsample(10, 12).depth_to_space(2).conv(rng, 3, (3, 3), (0.2, 3)),
    "in front of constants": lambda rng: (
        Chain((3, 4, 8), 0.02, 5)
        .conv(rng, 18, (1, 1), (0.03, 2))
        .depth_to_space(3)
        .with_constant("MUL", (-90, 3), (0.011, 0), (0.017, -5))
    ),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", INSIDE)
def test_depth_to_space_inside(name):
    """A transposed convolution puts channels where they belong."""
    imported, _ = check(INSIDE[name](np.random.default_rng(9)))
    assert ((2, 2), False) in growths(imported) or ((3, 3), False) in growths(imported)


@pytest.mark.parametrize("place", ["input", "inside", "end"])
def test_space_to_depth(place):
    """Positions of a block become channels: by the host, or by a convolution whose stride is the block."""
    rng = np.random.default_rng(9)
    chain = Chain((4, 6, 3), 0.02, 5) if place == "input" else Chain((4, 6, 3), 0.02, 5).conv(rng, 5, (1, 1), (0.03, 2))
    chain.space_to_depth(2)
    imported, _ = check(chain if place == "end" else chain.conv(rng, 3, (2, 2), (0.2, 3)))
    strides = [layer.stride for layer in imported.model.network.layers if hasattr(layer, "stride")]
    assert strides == {"input": [(1, 1)], "inside": [(1, 1), (2, 2), (1, 1)], "end": [(1, 1)]}[place]


def test_space_to_depth_by_a_block_that_does_not_divide():
    rule = "a block must be >= 1 and divide 4 rows and 5 columns, got 2"
    with refusal(f"SPACE_TO_DEPTH_0 (SPACE_TO_DEPTH): {rule}"):
        import_chain(Chain((4, 5, 3), 0.02, 5).space_to_depth(2).conv(np.random.default_rng(9), 3, (2, 2), (0.2, 3)))


@pytest.mark.parametrize("reader", ["transposed", "upsampled", "constants"])
def test_a_dense_layer_that_becomes_a_map(reader):
    """As generators begin: the channels of one position become positions."""
    rng = np.random.default_rng(9)
    chain = begun(rng).dense(rng, 24, (0.05, -9)).reshape(1, 2, 3, 4)
    if reader == "constants":
        chain.with_constant("MUL", (-90, 3, 9, 127), (0.011, 0), (0.017, -5))
    elif reader == "upsampled":
        chain.upsample(4, 6)
    imported, _ = check(chain.transposed_conv(rng, 3, (3, 3), (0.1, 4)))
    assert growths(imported)[0] == ((2, 3), False)
    assert imported.model.network.output.shape[2] == 3


def test_an_input_that_is_interpolated_and_put_in_blocks():
    """No one map grows to what the first convolution reads: copies of the input do."""
    rng = np.random.default_rng(9)
    chain = Chain((3, 4, 8), 0.02, 5).upsample(6, 8).interpolate(12, 16).depth_to_space(2)
    check(chain.conv(rng, 3, (3, 3), (0.2, 3)))


def test_depth_to_space_of_the_input_is_the_hosts():
    chain = Chain((3, 4, 8), 0.02, 5).depth_to_space(2)
    imported, _ = check(chain.conv(np.random.default_rng(9), 3, (3, 3), (0.2, 3)))
    assert growths(imported) == []


def subpixels(rng):
    """A network that makes an image twice as large, with its nearest upsampling added."""
    chain = Chain((4, 5, 3), 0.0331, 11).conv(rng, 6, (3, 3), (0.03, -128), activation="RELU")
    chain.conv(rng, 12, (3, 3), (0.0517, -7)).depth_to_space(2)
    larger, chain.here = chain.here, 0
    chain.upsample(8, 10).add(larger, (0.0413, 4))
    return chain.conv(rng, 2, (3, 3), (0.2, 3))


def test_depth_to_space_in_front_of_a_sum():
    check(subpixels(np.random.default_rng(9)))


DEPTHS = {
    "DCR": ("DepthToSpace", {"mode": "DCR"}),
    "CRD": ("DepthToSpace", {"mode": "CRD"}),
    "SpaceToDepth": ("SpaceToDepth", {}),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", DEPTHS)
@pytest.mark.parametrize("reader", ["", "MatMul", "Conv", "AveragePool"])
def test_depth_to_space_of_onnx(name, reader):
    rng = np.random.default_rng(9)
    operator, attributes = DEPTHS[name]
    chain = quantised_onnx(rng, (3, 4, 6)).node(operator, blocksize=2, **attributes)
    if reader == "Conv":
        channels = 16 if operator == "SpaceToDepth" else 1
        chain.node("Conv", ternary(rng, 3, channels, 2, 2), kernel_shape=[2, 2], pads=[1, 0, 0, 1]).quant(1, 4)
    elif reader == "AveragePool":
        chain.node("AveragePool", kernel_shape=[2, 2]).node("Add", np.float32([0.01])).quant(0.25, 5, signed=0)
    elif reader:
        chain.node("Flatten").node("MatMul", ternary(rng, 96, 5)).quant(1, 4)
    check_onnx(chain, by_qonnx, near=0)


def quantised_onnx(rng, shape=(3, 5, 6)):
    """A map whose values count from 0."""
    chain = OnnxChain(shape, 17).quant(0.25, 3)
    chain.node("Conv", ternary(rng, 4, shape[0], 1, *(1,) * (len(shape) - 2)))
    return chain.node("Relu").quant(0.5, 3, signed=0)


def ternary(rng, *shape):
    return rng.integers(-1, 2, shape).astype(np.float32)


BY_QONNX = {"other": by_images(by_qonnx), "images": 2}
"""Results of QONNX and of onnxruntime, one image after another: sizes of a Resize are those of one."""

TRANSPOSED = {
    "strides": dict(strides=[2, 3]),
    "pads": dict(strides=[2, 2], pads=[1, 0, 2, 1]),
    "output_padding": dict(strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]),
    "dilations": dict(strides=[2, 1], dilations=[2, 1]),
    "output_shape": dict(strides=[2, 2], output_shape=[10, 12]),
    "SAME_UPPER": dict(strides=[2, 2], output_shape=[10, 11], auto_pad="SAME_UPPER"),
    "SAME_LOWER": dict(strides=[3, 2], auto_pad="SAME_LOWER"),
    "groups": dict(strides=[2, 2], group=2),
    "depthwise": dict(strides=[2, 2], group=4),
}


@pytest.mark.parametrize("name", TRANSPOSED)
def test_a_transposed_convolution_of_onnx(name):
    rng = np.random.default_rng(6)
    attributes = TRANSPOSED[name]
    chain = quantised_onnx(rng)
    weight = chain.quant_weight(ternary(rng, 4, 2, 3, 3) * 0.5, 0.5, 2)
    bias = np.float32([0.0625] * 2 * attributes.get("group", 1))  # no ties
    chain.node("ConvTranspose", weight, bias, kernel_shape=[3, 3], **attributes)
    imported = check_onnx(chain.quant(0.25, 6), **BY_QONNX, near=0)
    assert growths(imported) == [(tuple(attributes["strides"]), False)]


@pytest.mark.parametrize(
    ("attributes", "rule"),
    [
        (dict(output_padding=[1, 0, 1]), "output_padding must be two integers of 0..4096, got (1, 0, 1)"),
        (dict(output_padding=[0, -1]), "output_padding must be two integers of 0..4096, got (0, -1)"),
        (dict(output_padding=[4097, 0]), "output_padding must be two integers of 0..4096, got (4097, 0)"),
    ],
)
def test_an_output_padding_that_is_refused(attributes, rule):
    rng = np.random.default_rng(6)
    chain = quantised_onnx(rng).node("ConvTranspose", ternary(rng, 4, 2, 3, 3), strides=[2, 2], **attributes)
    with refusal(f"ConvTranspose_4 (ConvTranspose): {rule}"):
        import_onnx_chain(chain.quant(0.25, 6))


UNSIGNED = {
    "taps beside each other": dict(kernel_shape=[2, 2], strides=[2, 2]),
    "taps on each other": dict(kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1]),
    "places without a tap": dict(kernel_shape=[2, 1], strides=[3, 2], output_padding=[1, 0]),
}


def transposed_by_unsigned(name):
    """A transposed convolution whose weights are of 9 bits, less their zero point."""
    rng = np.random.default_rng(6)
    attributes = UNSIGNED[name]
    chain = OnnxChain((2, 4, 5)).qdq(0.1, 128)
    chain.node("Conv", chain.dequantised(rng.integers(-99, 99, (3, 2, 1, 1)), 0.01709)).qdq(0.093, 119)
    weight = rng.integers(0, 256, (3, 2, *attributes["kernel_shape"]))
    weight[0, :, 0, 0] = 0, 255
    weight = chain.dequantised(weight, 0.0171, 127, np.uint8)
    return chain.node("ConvTranspose", weight, **attributes).qdq(0.9, 131)


@pytest.mark.parametrize("name", UNSIGNED)
def test_a_transposed_convolution_with_weights_of_9_bits(name):
    imported = check_onnx(transposed_by_unsigned(name), by_onnxruntime, near=1e-6)
    assert growths(imported) == [(tuple(UNSIGNED[name]["strides"]), False), ((1, 2), True)]
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


RESIZED = {
    "asymmetric": (
        ("", np.float32([1, 1, 2, 3])),
        dict(coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    ),
    "half_pixel": (("", np.float32([1, 1, 3, 2])), {}),
    "sizes": (("", "", np.int64([1, 4, 10, 12])), {"nearest_mode": "round_prefer_ceil"}),
}


@pytest.mark.parametrize("name", RESIZED)
def test_resize(name):
    rng = np.random.default_rng(6)
    inputs, attributes = RESIZED[name]
    chain = quantised_onnx(rng).node("Resize", *inputs, mode="nearest", **attributes)
    chain.node("Conv", ternary(rng, 3, 4, 3, 3), kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    imported = check_onnx(chain.quant(1, 4), **BY_QONNX, near=0)
    assert [repeats for _, repeats in growths(imported)] == [True]


LINEAR = {
    "half_pixel": (("", np.float32([1, 1, 2, 4])), {}),
    "asymmetric": (("", np.float32([1, 1, 4, 2])), dict(coordinate_transformation_mode="asymmetric")),
    "align_corners": (("", "", np.int64([1, 4, 9, 11])), dict(coordinate_transformation_mode="align_corners")),
    "three times": (("", np.float32([1, 1, 3, 3])), dict(coordinate_transformation_mode="pytorch_half_pixel")),
}


@pytest.mark.parametrize("name", LINEAR)
def test_linear_upsampling(name):
    rng = np.random.default_rng(6)
    inputs, attributes = LINEAR[name]
    chain = quantised_onnx(rng).node("Resize", *inputs, mode="linear", **attributes)
    # No values on a boundary of the quantiser: float32 would decide there.
    imported = check_onnx(chain.node("Add", np.float32([0.013])).quant(0.25, 6), **BY_QONNX, near=0)
    (layer,) = [layer for layer in imported.model.network.layers if getattr(layer, "growth", (1, 1)) != (1, 1)]
    assert layer.beside == ("nothing" if name == "align_corners" else "nearest")


@pytest.mark.parametrize("scales", [(1, 1, 1, 0.5), (1, 1, 0.5, 1)])
def test_linear_interpolation_to_fewer(scales):
    rng = np.random.default_rng(6)
    chain = quantised_onnx(rng, (3, 4, 6)).node("Resize", "", np.float32(scales), mode="linear")
    imported = check_onnx(chain.node("Add", np.float32([0.013])).quant(0.25, 6), **BY_QONNX, near=0)
    assert [layer.stride for layer in imported.model.network.layers if layer.kind == "depthwise_conv"] == [
        (int(1 / scales[2]), int(1 / scales[3]))
    ]


def test_linear_upsampling_of_columns_alone():
    rng = np.random.default_rng(6)
    chain = quantised_onnx(rng, (3, 7)).node("Resize", "", np.float32([1, 1, 2]), mode="linear")
    check_onnx(chain.node("Add", np.float32([0.013])).quant(0.25, 6), **BY_QONNX, near=0)


def integers_upsampled(dtype, inputs, attributes, before=lambda chain: chain):
    """Integers of an ONNX file that linear upsampling reads, behind other operators of integers."""
    rng = np.random.default_rng(6)
    chain = OnnxChain((2, 5, 6))
    middle = 128 if dtype == np.uint8 else 0
    first, second = ((np.float32(0.1), chain.constant(zero + middle, dtype)) for zero in (0, -9))
    chain.node("QuantizeLinear", *first).node("DequantizeLinear", *first)
    weight = chain.dequantised(rng.integers(-99, 99, (4, 2, 1, 1)), 0.01709)
    chain = before(chain.node("Conv", weight).node("QuantizeLinear", *second))
    return chain.node("Resize", *inputs, mode="linear", **attributes).node("DequantizeLinear", *second)


BY_ONNXRUNTIME = {"other": by_images(by_onnxruntime), "images": 2}


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("name", [name for name in LINEAR if name != "three times"])
def test_linear_upsampling_of_integers(name, dtype):
    """As onnxruntime has it, which cuts off what lies behind the point: of numbers below 0 upwards."""
    imported = check_onnx(integers_upsampled(dtype, *LINEAR[name]), **BY_ONNXRUNTIME, near=1e-6)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    ramps = [layer.name for layer in imported.model.network.layers if layer.name.startswith("ramps_")]
    assert len(ramps) == (dtype == np.int8)


OF_INTEGERS = {
    "Slice": lambda chain: onnx_slice(chain, [0], [3], [1], [1]),
    "MaxPool": lambda chain: chain.node("MaxPool", kernel_shape=[2, 2]),
    "Concat": lambda chain: chain.node("Concat", chain.here, axis=1),
    "Identity": lambda chain: chain.node("Identity"),
    "Pad": lambda chain: chain.node("Pad", np.int64([0, 0, 1, 0, 0, 0, 0, 2]), chain.constant(131, np.uint8)),
    "Clip": lambda chain: chain.node("Clip", chain.constant(0, np.uint8), chain.constant(255, np.uint8)),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("op", OF_INTEGERS)
def test_linear_upsampling_behind_operators_of_integers(op):
    """Operators that keep the type make integers of integers."""
    chain = integers_upsampled(np.uint8, *LINEAR["half_pixel"], OF_INTEGERS[op])
    check_onnx(chain, **BY_ONNXRUNTIME, near=1e-6)


@pytest.mark.parametrize("dtype", [TensorProto.UINT8, TensorProto.INT8])
def test_linear_upsampling_of_an_input_of_integers(dtype):
    """The input's type says that there are integers."""
    chain = OnnxChain((2, 5, 6), dtype=dtype)
    inputs, attributes = LINEAR["half_pixel"]
    chain.node("Resize", *inputs, mode="linear", **attributes)
    zero = chain.constant(0, np.uint8 if dtype == TensorProto.UINT8 else np.int8)
    check_onnx(chain.node("DequantizeLinear", np.float32(0.1), zero), **BY_ONNXRUNTIME, near=1e-6)


@pytest.mark.parametrize("real", ["Cast", "DequantizeLinear"])
def test_linear_upsampling_of_whole_numbers_that_are_real(real):
    """Nothing is cut off."""
    chain = OnnxChain((2, 5, 6))
    scale = chain.constant(np.float32(1)), chain.constant(128, np.uint8)
    chain.node("QuantizeLinear", *scale)
    chain = chain.node("Cast", to=1) if real == "Cast" else chain.node("DequantizeLinear", *scale)
    inputs, attributes = LINEAR["half_pixel"]
    check_onnx(chain.node("Resize", *inputs, mode="linear", **attributes), **BY_ONNXRUNTIME, near=0)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("mode", "beside"), [("edge", "nearest"), ("reflect", "mirrored")])
@pytest.mark.parametrize("reader", ["Conv", "MaxPool", "end"])
def test_padding_with_values_of_the_map(reader, mode, beside):
    chain = with_padding(np.random.default_rng(6), reader, mode)
    imported = check_onnx(chain, by_qonnx, near=0)
    (layer,) = [layer for layer in imported.model.network.layers if getattr(layer, "beside", "nothing") == beside]
    assert layer.kernel == ((3, 3) if reader == "Conv" else (1, 1))
    assert layer.padding == (1, 0, 2, 3)


def with_padding(rng, reader, mode):
    """A map with some of its values around it, and what reads it."""
    chain = quantised_onnx(rng).node("Pad", np.int64([0, 0, 1, 0, 0, 0, 2, 3]), mode=mode)
    if reader == "Conv":
        chain.node("Conv", ternary(rng, 3, 4, 3, 3), kernel_shape=[3, 3]).quant(1, 4)
    elif reader == "MaxPool":
        chain.node("MaxPool", kernel_shape=[2, 3])
    return chain


@pytest.mark.parametrize(("mode", "beside"), [("edge", ["nearest"]), ("reflect", ["mirrored", "nothing"])])
def test_padding_with_values_of_the_map_and_weights_of_9_bits(mode, beside):
    """A mirrored map is made first, as its positions can't be repeated."""
    rng = np.random.default_rng(6)
    chain = with_padding(rng, "", mode).node("Conv", rng.integers(-255, 256, (3, 4, 3, 3)).astype(np.float32))
    imported = check_onnx(chain.quant(64, 5), by_qonnx, near=0)
    assert [layer.beside for layer in imported.model.network.layers if hasattr(layer, "beside")][1:] == beside


def test_padding_with_edges_of_a_padded_convolution():
    """Two kinds of padding: the map with its edges is made first."""
    rng = np.random.default_rng(6)
    chain = quantised_onnx(rng).node("Pad", np.int64([0, 0, 1, 0, 0, 0, 1, 0]), mode="edge")
    imported = check_onnx(chain.node("Conv", ternary(rng, 3, 4, 3, 3), pads=[1, 1, 1, 1]).quant(1, 4), by_qonnx, near=0)
    assert [layer.beside for layer in imported.model.network.layers if hasattr(layer, "beside")] == [
        "nothing",
        "nearest",
        "nothing",
    ]


def test_columns_alone():
    rng = np.random.default_rng(6)
    chain = quantised_onnx(rng, (3, 7))
    bias = np.float32([0.125] * 3)
    chain.node("ConvTranspose", ternary(rng, 4, 3, 4), bias, strides=[2], pads=[1, 0], output_padding=[1])
    imported = check_onnx(chain.quant(1, 4), **BY_QONNX, near=0)
    assert growths(imported) == [((1, 2), False)]


def upsampled(rng):
    """As older files have it."""
    chain = OnnxChain((4, 3, 3), 9).quant(0.25, 3).node("Upsample", np.float32([1, 1, 2, 2]), mode="nearest")
    return chain.node("Conv", ternary(rng, 3, 4, 2, 2))


def test_upsample_of_older_files():
    imported = check_onnx(upsampled(np.random.default_rng(6)), by_qonnx, near=0)
    assert growths(imported) == [((2, 2), True)]


def test_quantize_static(tmp_path):
    """A file of real numbers with both, as onnxruntime quantises it: per channel, int8 with zero points."""
    quantization = pytest.importorskip("onnxruntime.quantization", reason="onnxruntime is not installed")
    rng = np.random.default_rng(10)
    chain = OnnxChain((2, 6, 5), 13)
    size = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    chain.node("Conv", rng.normal(size=(4, 2, 3, 3)), rng.normal(size=4), **size).node("Relu")
    transposed = (rng.normal(size=(4, 3, 3, 3)), rng.normal(size=3))
    chain.node("ConvTranspose", *transposed, **size, output_padding=[1, 0]).node("Relu")
    chain.node("Resize", np.empty(0), np.float32([1, 1, 2, 2]), **nearest)
    chain.node("Conv", rng.normal(size=(2, 3, 3, 3)), rng.normal(size=2), kernel_shape=[3, 3])
    onnx.save(chain.model(), tmp_path / "real.onnx")

    class Images(quantization.CalibrationDataReader):
        def __init__(self):
            self.left = [rng.normal(size=(1, 2, 6, 5)).astype(np.float32) for _ in range(8)]

        def get_next(self):
            return {"x": self.left.pop()} if self.left else None

    quantization.quantize_static(tmp_path / "real.onnx", tmp_path / "int8.onnx", Images(), per_channel=True)
    imported = import_file(tmp_path / "int8.onnx")
    verify(imported, 4)
    assert [repeats for _, repeats in growths(imported)] == [False, True]


NEAREST = (
    "RESIZE_NEAREST_NEIGHBOR_1 (RESIZE_NEAREST_NEIGHBOR): rows and columns must become a whole number as many, each "
)
NEAREST += "coming as often as the others, got"
PLACES = "RESIZE_BILINEAR_1 (RESIZE_BILINEAR): all neighbours must have the same places between them, with the same "
PLACES += "shares, got {}; make rows and columns 2 or 4 times as many"
WEIGHTS = "(RESIZE_BILINEAR): the weights of its kernel must be at most 127, got"
CROP = "TRANSPOSE_CONV_1 (TRANSPOSE_CONV): less than a window must be taken off at each side, got (0, 0, 3, 0)"


def convolved(rng, chain):
    return chain.conv(rng, 2, (3, 3), (0.2, 3))


REFUSED = {
    "other rows": (lambda rng: convolved(rng, begun(rng).upsample(11, 18)), f"{NEAREST} 11 of 5"),
    "aligned corners": (
        lambda rng: convolved(rng, begun(rng).upsample(10, 18, AlignCorners=True)),
        f"{NEAREST} 18 of 6",
    ),
    "bilinear, three times": (lambda rng: begun(rng).interpolate(15, 18), PLACES.format("15 places of 5")),
    "bilinear, fewer": (
        lambda rng: begun(rng).interpolate(5, 3, AlignCorners=True),
        PLACES.format("3 places of 6"),
    ),
    "bilinear, large weights": (
        lambda rng: convolved(rng, Chain((31, 31, 1), 0.02, 3).interpolate(16, 16, HalfPixelCenters=True)),
        f"RESIZE_BILINEAR_0 {WEIGHTS} 961; make rows and columns half as many",
    ),
    "tiles of rows": (
        lambda rng: convolved(rng, begun(rng).tile(1, 2, 1, 1)),
        "CONV_2D_2 (CONV_2D): rows and columns must be padded, and grow, by the same numbers everywhere",
    ),
    "bilinear, 8 times": (
        lambda rng: begun(rng).interpolate(40, 48, HalfPixelCenters=True),
        f"RESIZE_BILINEAR_1 {WEIGHTS} 225; make rows and columns 2 or 4 times as many",
    ),
    "a larger crop": (
        lambda rng: begun(rng).transposed_conv(rng, 2, (3, 3), (0.2, 3), same=False, size=(8, 13)),
        CROP,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    chain, line = REFUSED[name]
    with refusal(line):
        import_chain(chain(np.random.default_rng(1)))

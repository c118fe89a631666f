"""Maps that are cut: Slice and Split of channels, rows and columns, and channels in another order."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.overlay.importers.indexes import EvenPlaces
from bitloom.overlay.importers.verify import verify
from tests.errors import refusal

from . import onnx_files
from .against import by_onnxruntime
from .against import check as check_onnx
from .against import import_chain as import_onnx_chain
from .test_tflite import import_chain
from .test_tflite_forms import check
from .tflite_files import Chain

helper = onnx_files.helper


@pytest.mark.parametrize("size", range(1, 12))
def test_every_run_has_a_window(size):
    """A window that reads the places of a run, and no others."""
    for first in range(size):
        for step in range(1, size + 1):
            for count in range(1, (size - 1 - first) // step + 2):
                run = EvenPlaces.of(first + step * np.arange(count), size)
                taps, apart, tap = run.taps
                span = (taps - 1) * apart + 1
                places = np.arange(0, size - span + 1, run.step) + tap * apart
                assert places.tolist() == [first + step * place for place in range(count)]
                assert taps <= min(run.first + 1, 2) or span > run.first + 1


def strided_slice(chain, begin, end, stride=None, masks=0):
    """The values from ``begin`` to ``end`` along rows, columns and channels."""
    now = chain.now.shape
    numbers = [(0, *begin), (1, *end), (1, *(stride or (1, 1, 1)))]
    shape = tuple(len(range(size)[slice(*each)]) for size, each in zip(now, zip(*numbers)))
    constants = [chain.constant(np.array(each, np.int32)) for each in numbers]
    return chain.operator("STRIDED_SLICE", shape, None, constants, "StridedSliceOptions", BeginMask=masks)


def begun(rng, channels=6):
    return Chain((6, 7, 3), 0.02, 11).conv(rng, channels, (3, 3), (0.03, 2))


CUTS = {
    "channels, in front of a convolution": lambda rng: strided_slice(begun(rng), (0, 0, 2), (6, 7, 5)).conv(
        rng, 3, (3, 3), (0.1, 3)
    ),
    "channels, in front of a depthwise convolution": lambda rng: strided_slice(
        begun(rng), (0, 0, 1), (6, 7, 6), (1, 1, 2)
    ).conv(rng, 0, (3, 3), (0.1, 3), depth=1),
    "rows and columns": lambda rng: strided_slice(begun(rng), (1, 0, 0), (6, 7, 6), (2, 3, 1)).conv(
        rng, 3, (3, 3), (0.1, 3)
    ),
    "a box of all": lambda rng: strided_slice(begun(rng), (2, 3, 1), (5, 6, 4)).conv(rng, 3, (2, 3), (0.1, 3)),
    "in front of a dense layer": lambda rng: (
        strided_slice(begun(rng), (1, 0, 1), (5, 7, 3), (2, 1, 1)).reshape(1, 28).dense(rng, 5, (0.2, 3))
    ),
    "in front of a pool": lambda rng: strided_slice(begun(rng), (2, 1, 1), (6, 7, 4)).pool("MAX", (2, 2), (2, 2)),
    "in front of a mean": lambda rng: (
        strided_slice(begun(rng), (0, 1, 0), (6, 7, 6)).mean((0.04, 3)).dense(rng, 5, (0.05, 3))
    ),
    "padded again": lambda rng: (
        strided_slice(begun(rng), (1, 0, 0), (6, 7, 3)).pad((1, 2), (0, 1)).conv(rng, 3, (3, 3), (0.1, 3), same=False)
    ),
    "cut twice": lambda rng: strided_slice(strided_slice(begun(rng), (1, 0, 0), (6, 7, 5)), (0, 2, 1), (4, 6, 3)).conv(
        rng, 3, (3, 3), (0.1, 3)
    ),
    "enlarged behind": lambda rng: (
        strided_slice(begun(rng), (1, 0, 0), (4, 7, 5)).upsample(6, 14).conv(rng, 3, (3, 3), (0.1, 3))
    ),
    "enlarged before": lambda rng: strided_slice(begun(rng).upsample(12, 14), (1, 3, 0), (10, 14, 6)).conv(
        rng, 3, (3, 3), (0.1, 3)
    ),
    "at the end": lambda rng: strided_slice(begun(rng), (0, 2, 1), (6, 7, 4)),
    "the input": lambda rng: strided_slice(Chain((6, 7, 3), 0.02, 11), (0, 1, 1), (6, 7, 3)).conv(
        rng, 3, (3, 3), (0.03, 2)
    ),
    "multiplied by constants behind": lambda rng: strided_slice(begun(rng), (0, 0, 1), (6, 7, 4)).with_constant(
        "MUL", np.array([3, -40, 90], np.int8), (0.02, 0), (0.05, 4)
    ),
    "an activation behind": lambda rng: (
        (chain := strided_slice(begun(rng), (0, 0, 1), (6, 7, 4)))
        .operator("LOGISTIC", chain.now.shape, (1 / 256, -128))
        .conv(rng, 3, (3, 3), (0.01, 2))
    ),
}


def line_of_doubled_places(rng):
    chain = Chain((1, 9, 3), 0.02, 11).conv(rng, 4, (1, 3), (0.03, 2)).reshape(1, 9, 1, 4).tile(1, 1, 2, 1)
    line = strided_slice(chain.reshape(1, 18, 4), (2, 0), (15, 4), (1, 1))
    return line.reshape(1, 1, 13, 4).conv(rng, 3, (1, 3), (0.1, 3))


CUTS["a line whose places come twice"] = line_of_doubled_places


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", CUTS)
def test_cuts_of_tflite(name):
    check(CUTS[name](np.random.default_rng(4)))


def test_channels_that_are_cut_are_weights_of_0():
    """No layer is added for them."""
    imported, _ = check(CUTS["channels, in front of a convolution"](np.random.default_rng(4)))
    conv = imported.model.network.layers[2]
    assert [layer.kind for layer in imported.model.network.layers] == ["conv", "requantise"] * 2
    assert not imported.model.arrays[conv.name]["weight"][..., [0, 1, 5]].any()


def test_slices_by_sizes():
    rng = np.random.default_rng(5)
    chain = begun(rng)
    numbers = [chain.constant(np.array(each, np.int32)) for each in ((0, 1, 2, 2), (1, -1, 4, 3))]
    check(chain.operator("SLICE", (1, 5, 4, 3), None, numbers, "SliceOptions").conv(rng, 3, (3, 3), (0.1, 3)))


def split(chain, sizes, numbers, kind="SPLIT_V"):
    """The tensors that channels of the map of now are cut into."""
    now = chain.now
    axis = chain.constant(np.array(3, np.int32))
    inputs = (axis, chain.here) if kind == "SPLIT" else (chain.here, chain.constant(np.array(numbers, np.int32)), axis)
    parts = []
    for size in sizes:
        chain.tensors.append(replace(now, name=f"part{len(chain.tensors)}", shape=(*now.shape[:3], size)))
        parts.append(len(chain.tensors) - 1)
    options = "SplitOptions" if kind == "SPLIT" else "SplitVOptions"
    chain.operators.append((kind, inputs, tuple(parts), options, {"NumSplits": len(parts)}))
    chain.here = parts[-1]
    return parts


def parts(rng, kind):
    """As ShuffleNet and CSPNet cut maps: one part goes past convolutions, and both are put together again."""
    sizes, numbers = ((3, 3), ()) if kind == "SPLIT" else ((2, 4), (2, -1))
    chain = begun(rng)
    first, _ = split(chain, sizes, numbers, kind)
    chain.conv(rng, 4, (3, 3), (0.1, 3)).conv(rng, 4, (1, 1), (0.03, 2)).concat(first)
    return chain.conv(rng, 3, (3, 3), (0.2, 3), (2, 2))


@pytest.mark.parametrize("kind", ["SPLIT", "SPLIT_V"])
def test_parts_of_tflite(kind):
    check(parts(np.random.default_rng(6), kind))


def quantised_conv(chain, rng, outputs, inputs, size, result, axes=2, **attributes):
    """A convolution of int8 weights over rows and columns, or columns alone, and its quantiser."""
    weight = chain.dequantised(rng.integers(-5, 6, (outputs, inputs, *[size] * axes)), 0.0371)
    chain.node("Conv", weight, kernel_shape=[size] * axes, pads=[size // 2] * 2 * axes, **attributes)
    return chain.qdq(*result)


def onnx_slice(chain, begin, end, axes, steps):
    return chain.node("Slice", *(np.array(numbers, np.int64) for numbers in (begin, end, axes, steps)))


def focus(rng):
    """YOLOv5's first layer: every second row and column, four times, side by side."""
    chain = onnx_files.Chain((3, 6, 8), opset=19)
    chain.qdq(0.0317, 128)
    quantised_conv(chain, rng, 3, 3, 3, (0.0151, 120))
    begin = chain.here
    parts = []
    for row, column in ((0, 0), (1, 0), (0, 1), (1, 1)):
        chain.here = begin
        parts.append(onnx_slice(chain, (row, column), (6, 8), (2, 3), (2, 2)).here)
    chain.here = parts[0]
    chain.node("Concat", *parts[1:], axis=1)
    return quantised_conv(chain, rng, 4, 12, 3, (0.01713, 101))


def shuffled(rng):
    """ShuffleNet's block: half of the channels go past convolutions, then channels of both halves take turns."""
    chain = onnx_files.Chain((3, 4, 5), opset=19)
    chain.qdq(0.0317, 128)
    quantised_conv(chain, rng, 6, 3, 1, (0.0151, 120))
    chain.nodes.append(helper.make_node("Split", [chain.here], ["one", "two"], "Split", axis=1, num_outputs=2))
    chain.here = "two"
    quantised_conv(chain, rng, 3, 1, 3, (0.0193, 131), group=3)
    quantised_conv(chain, rng, 3, 3, 1, (0.0151, 120))
    chain.node("Concat", "one", axis=1)
    chain.node("Reshape", np.array([-1, 2, 3, 4, 5], np.int64)).node("Transpose", perm=[0, 2, 1, 3, 4])
    chain.node("Reshape", np.array([-1, 6, 4, 5], np.int64))
    return quantised_conv(chain, rng, 4, 6, 3, (0.0171, 101))


def sensors(rng):
    """Channels of an input without rows, some for each of two convolutions."""
    chain = onnx_files.Chain((5, 9), opset=19)
    begin = chain.qdq(0.0317, 128).here
    onnx_slice(chain, (0,), (2,), (1,), (1,))
    first = quantised_conv(chain, rng, 4, 2, 3, (0.0151, 120), axes=1).here
    chain.here = begin
    onnx_slice(chain, (2,), (5,), (1,), (1,))
    quantised_conv(chain, rng, 4, 3, 3, (0.0151, 120), axes=1).node("Concat", first, axis=1)
    return quantised_conv(chain, rng, 3, 8, 3, (0.0171, 101), axes=1)


NETWORKS = {"focus": focus, "shuffled": shuffled, "sensors": sensors}


@pytest.mark.parametrize("name", NETWORKS)
def test_cuts_of_onnx(name):
    check_onnx(NETWORKS[name](np.random.default_rng(7)), by_onnxruntime)


def test_sums_that_are_cut_are_refused():
    rng = np.random.default_rng(8)
    chain = onnx_files.Chain((3, 4, 5), opset=19)
    chain.qdq(0.0317, 128).node("Conv", rng.integers(-5, 6, (6, 3, 1, 1)).astype(np.float32), kernel_shape=[1, 1])
    onnx_slice(chain, (1,), (3,), (1,), (1,))
    chain.node("Mul", np.array([[[1]], [[2]]], np.float32))
    why = "a map that is padded, cut or grows must be quantised before, or be read by a convolution"
    with refusal(f"Mul_4 (Mul): {why}"):
        import_onnx_chain(chain.qdq(0.1, 100))


def tiled(rng, axis):
    """A map is cut into tiles, and put together again: the tiles' padded maps are added."""
    chain = begun(rng, 4)
    begin = chain.here
    tiles = []
    for first, last in ((0, 3), (2, 4), (4, 6)):
        chain.here = begin
        ends = [(first, 0, 0), (last, 7, 4)] if axis == 1 else [(0, first, 0), (6, last, 4)]
        tiles.append(strided_slice(chain, *ends).conv(rng, 3, (3, 3), (0.1, 9), activation="RELU").here)
    chain.here = tiles[0]
    chain.concat(*tiles[1:], axis=axis)
    return chain.conv(rng, 2, (3, 3), (0.2, 3), (2, 2))


@pytest.mark.parametrize("axis", [1, 2])
def test_rows_and_columns_behind_one_another(axis):
    check(tiled(np.random.default_rng(9), axis))


def test_a_map_that_a_last_copy_reads_is_verified():
    """A copy takes some channels of a table's map, which no operation of the file reads."""
    rng = np.random.default_rng(1)
    chain = strided_slice(begun(rng), (0, 0, 1), (6, 7, 3))
    imported = import_chain(chain.operator("TANH", chain.now.shape, (1 / 128, 0)))
    progress = []
    checked = verify(imported, 2, progress=lambda done, total: progress.append((done, total)))
    assert [layer.kind for layer in imported.model.network.layers][2:] == ["lookup", "conv", "requantise"]
    assert "lookup_2" in {each.name for each in checked}
    assert progress[-1] == (len(checked), len(checked))

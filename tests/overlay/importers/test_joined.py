"""Residual networks are imported: maps with several readers, and sums of two maps, equal to the file's own rules."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from bitloom.golden.file import model_digest
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.pool import AvgPool
from bitloom.golden.network import Model
from bitloom.overlay.cli.importing import import_command
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_file, import_graph
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.importers.tflite_file import to_tflite_graph
from bitloom.overlay.importers.verify import verify
from tests.errors import refusal

from . import onnx_files
from .against import by_onnxruntime, check, features, import_chain
from .test_tflite import by_kernels, scores
from .test_tflite import check as check_kernels
from .tflite_files import DATA, Chain


def residual(add_activation="RELU"):
    """A residual block with its identity, one with a convolution of 1 x 1 in steps of two, and the mean of the last."""
    rng = np.random.default_rng(8)
    chain = Chain((6, 7, 3), 0.02, 7).conv(rng, 4, (3, 3), (0.0331, -128), activation="RELU")
    fork = chain.here
    chain.conv(rng, 4, (3, 3), (0.0517, 9)).add(fork, (0.0613, -128), add_activation)
    fork = chain.here
    chain.conv(rng, 6, (3, 3), (0.05, -128), (2, 2), activation="RELU").conv(rng, 6, (3, 3), (0.0719, -3))
    deep, chain.here = chain.here, fork
    chain.conv(rng, 6, (1, 1), (0.0407, 11), (2, 2)).add(deep, (0.0523, -128))
    return chain.pool("AVERAGE", (3, 4)).reshape(1, 6).dense(rng, 5, (0.03, 4))


def test_a_residual_network_of_tflite():
    imported = import_graph(to_tflite_graph(residual().bytes()), name="residual")
    verify(imported, 2)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    network = imported.model.network
    assert [layer.name for layer in network.layers if isinstance(layer, Add)] == ["add_3", "add_7"]
    assert network.reads["add_3"] == ("requantise_2", "requantise_1")
    assert network.readers["add_3"] == ("conv_4", "conv_6")
    rounded = [layer.name for layer in network.layers if getattr(layer, "rounding", "twice") == "once"]
    assert rounded == ["requantise_8"]  # the dense one
    images = np.random.default_rng(2).integers(-128, 128, (6, 6, 7, 3)).astype(np.int8)
    wanted = by_kernels(imported.source, images)
    assert len(np.unique(wanted)) > 12
    assert np.abs(wanted - scores(imported, images)).max() < 1e-5


def test_a_difference_of_two_maps():
    """Every value of every layer is what TFLite's reference kernels recorded."""
    recorded = np.load(DATA / "subtraction.npz")
    imported = import_file(DATA / "subtraction.tflite")
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    verify(imported, 2)
    trace = imported.model.trace(features(imported, recorded["x"]))
    maps = dict(zip((layer.name for layer in imported.model.network.layers), trace))
    nodes = ("00_CONV_2D", "01_CONV_2D", "02_SUB", "04_FULLY_CONNECTED")
    layers = ("requantise_1", "requantise_2", "add_3", "requantise_4")
    for layer, node in zip(layers, nodes):
        away = recorded[node].astype(np.int64).ravel() - maps[layer].ravel()  # the zero point
        assert (away == away[0]).all(), layer
    wanted = recorded["04_FULLY_CONNECTED"]
    assert np.array_equal(scores(imported, recorded["x"]), wanted)
    first, second = imported.model.arrays["add_3"]["multiplier"]
    assert first > 0 > second


def test_a_wrong_addition_is_noticed():
    """The check of an import compares what additions make, too."""
    imported = import_graph(to_tflite_graph(residual().bytes()), name="residual")
    arrays = dict(imported.model.arrays)
    arrays["add_3"] = {**arrays["add_3"], "bias": arrays["add_3"]["bias"] + (1 << int(arrays["add_3"]["shift"][0]))}
    wrong = replace(imported, emitted=replace(imported.emitted, model=Model(imported.model.network, arrays)))
    with pytest.raises(ValueError, match=r"^add_3: the rewriting must equal the operations that it was made of, got "):
        verify(wrong, 2)


@pytest.mark.sample(1)
@pytest.mark.parametrize("codes", [("BuiltinCode",), ("DeprecatedBuiltinCode",)])
def test_the_field_that_an_operators_code_stands_in_does_not_matter(codes):
    chain = residual()
    wanted = import_graph(to_tflite_graph(chain.bytes()), name="residual")
    chain.codes = codes
    imported = import_graph(to_tflite_graph(chain.bytes()), name="residual")
    assert model_digest(imported.model) == model_digest(wanted.model)


def forked_mean(kernel, zero, second, same=False):
    """A mean that a padded convolution reads, and ``second``: the sum behind it, or another padded convolution."""
    rng = np.random.default_rng(1)
    chain = Chain((7, 6, 2), 0.02, -128).conv(rng, 4, (1, 3), (0.03, zero)).pool("AVERAGE", kernel, same=same)
    fork = chain.here
    chain.conv(rng, 4, (3, 1), (0.03, -128), activation="RELU")
    if second == "conv":
        one, chain.here = chain.here, fork
        return chain.conv(rng, 4, (1, 3), (0.05, -128)).add(one, (0.07, -128))
    return chain.add(fork, (0.07, -128))


@pytest.mark.sample(2)
@pytest.mark.parametrize("second", ["add", "conv"])
@pytest.mark.parametrize(
    ("kernel", "zero", "pools"),
    [((2, 1), -128, 0), ((2, 2), -100, 0), ((2, 1), 127, 0), ((3, 1), -128, 1), ((3, 1), 5, 1), ((2, 1), 0, 1)],
)
def test_a_mean_with_several_readers(kernel, zero, pools, second):
    """Padded taps are worth 0: the mean is a pool where no mean lies halfway, or 0 is the zero point."""
    imported, _, _ = check_kernels(forked_mean(kernel, zero, second))
    assert sum(isinstance(layer, AvgPool) for layer in imported.model.network.layers) == pools


@pytest.mark.sample(2)
@pytest.mark.parametrize("second", ["add", "conv"])
@pytest.mark.parametrize("kernel", [(2, 2), (3, 3), (1, 3)])
@pytest.mark.parametrize("zero", [-128, -100, 5, 0])
def test_a_padded_mean_with_several_readers(kernel, zero, second):
    """Its windows have different numbers of taps: it is a pool, and weights copy the map that needs another integer for
    0."""
    imported, _, _ = check_kernels(forked_mean(kernel, zero, second, same=True))
    assert sum(isinstance(layer, AvgPool) for layer in imported.model.network.layers) == 1


@pytest.mark.parametrize(
    ("kernel", "same", "zero", "kinds"),
    [
        ((2, 2), False, -128, ["avg_pool"]),
        ((2, 2), False, 7, ["depthwise_conv", "requantise"]),
        ((3, 3), False, 7, ["avg_pool"]),
        ((3, 3), True, 0, ["avg_pool"]),
        ((3, 3), True, 7, ["depthwise_conv", "requantise", "avg_pool"]),
    ],
)
def test_a_mean_of_sums_that_are_rounded_twice(kernel, same, zero, kinds):
    """A pool has the file's integers where means may lie halfway, and the convolution in front those less the zero
    point."""
    rng = np.random.default_rng(1)
    chain = Chain((7, 6, 2), 0.02, -128).conv(rng, 4, (1, 3), (0.03, zero)).pool("AVERAGE", kernel, (2, 2), same=same)
    imported, _, _ = check_kernels(chain.reshape(1, int(np.prod(chain.now.shape))).dense(rng, 5, (0.05, 3)))
    assert [layer.kind for layer in imported.model.network.layers][2:-2] == kinds


def mean_of_means(rng, forks):
    """A mean behind a padded one, as Inception's; ``forks`` if others read the map, too."""
    chain = Chain((7, 6, 2), 0.02, -128).conv(rng, 4, (1, 3), (0.03, -100))
    here = chain.here
    chain.pool("AVERAGE", (3, 3), (2, 2), same=True).mean((0.02, -90), keep=True).conv(rng, 4, (1, 1), (0.05, 7))
    if forks:
        pooled, chain.here = chain.here, here
        chain.conv(rng, 4, (3, 3), (0.05, 9)).mean((0.03, -9), keep=True).add(pooled, (0.07, -10))
    return chain


@pytest.mark.parametrize("forks", [False, True])
def test_a_mean_behind_a_padded_mean(forks):
    """A pool, and a mean of a copy. A map that others read, too, is copied in front of it."""
    imported, _, _ = check_kernels(mean_of_means(np.random.default_rng(1), forks))
    assert "avg_pool" in [layer.kind for layer in imported.model.network.layers]


def test_the_command(tmp_path):
    (tmp_path / "residual.tflite").write_bytes(residual("NONE").bytes())
    out = tmp_path / "made.npz"
    arguments = [str(tmp_path / "residual.tflite"), "--out", str(out), "--check", "1", "--explain", "--json"]
    result = CliRunner().invoke(import_command, arguments)
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["why"] == "the integer engine computes all: maps are added"
    (added,) = [layer for layer in facts["layers"] if layer["layers"] == ["add_3"]]
    assert added["wrong"] == [0, 0]
    assert added["weights"].startswith("factors of ")
    text = out.with_suffix(".import.md").read_text(encoding="utf-8")
    assert "| ADD_2 | ADD | add_3 | 255 levels a channel, exact: unsigned 8 bit (0..255) |" in text


def onnx_residual():
    rng = np.random.default_rng(3)
    chain = onnx_files.Chain((2, 5, 6), opset=19)
    around = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}

    def conv(outputs, inputs):
        chain.node("Conv", rng.integers(-3, 4, (outputs, inputs, 3, 3)).astype(np.float32), **around)

    chain.qdq(0.03125, 128)
    conv(4, 2)
    chain.node("Relu").qdq(0.06131, 0)
    fork = chain.here
    conv(4, 4)
    chain.qdq(0.40171, 120)
    chain.node("Add", fork).node("Relu")
    chain.qdq(0.23117, 0)
    return chain.node("Flatten").node("Gemm", rng.integers(-7, 8, (120, 3)).astype(np.float32))


def test_a_residual_network_of_onnx():
    """Both maps are real numbers here, added, cut at 0 and quantised; ONNX's own reference computes the nodes."""
    from onnx.reference import ReferenceEvaluator

    chain = onnx_residual()
    imported = import_graph(to_graph(chain.bytes()), name="residual")
    verify(imported, 2)
    (added,) = [built for built in imported.emitted.built if built.layers[0].startswith("add")]
    assert (added.levels, added.wrong) == (255, (0, 0))
    images = np.random.default_rng(4).normal(0, 1, (5, 2, 5, 6)).astype(np.float32)
    wanted = ReferenceEvaluator(chain.model()).run(None, {"x": images})[0]
    got = imported.host.scores(imported.model.forward(features(imported, images)))
    assert np.abs(got - wanted).max() < 1e-3 * np.abs(wanted).max()


@pytest.mark.parametrize(("dtype", "zero"), [(np.int8, 0), (np.int8, -127), (np.int8, -128), (np.uint8, 1)])
def test_an_activation_cuts_a_sum_where_its_type_goes_on(dtype, zero):
    """Levels below the zero point are there, but no sum has them: results are the nearest integer, ends included."""
    rng = np.random.default_rng(5)
    chain = onnx_files.Chain((2, 4, 5), opset=19)

    def conv(inputs):
        weight = chain.dequantised(rng.integers(-3, 4, (4, inputs, 1, 1)), 1)
        chain.node("Conv", weight, kernel_shape=[1, 1]).qdq(0.125, 0, np.int8)
        return chain.here

    chain.qdq(0.125, 0, np.int8)
    fork = conv(2)
    conv(4)
    chain.node("Add", fork).node("Relu").qdq(0.125, zero, dtype)
    imported = check(chain.node("Flatten").node("Gemm", np.eye(80, dtype=np.float32)), by_onnxruntime, near=0)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


@pytest.mark.parametrize("first", ["the earlier map", "the later map"])
def test_a_difference_of_two_maps_of_onnx(first):
    """Of maps with zero points and scales of their own."""
    rng = np.random.default_rng(5)
    chain = onnx_files.Chain((2, 4, 5), opset=19)

    def conv(inputs, scale, zero):
        weight = chain.dequantised(rng.integers(-3, 4, (4, inputs, 1, 1)), 1)
        chain.node("Conv", weight, kernel_shape=[1, 1]).qdq(scale, zero, np.int8)
        return chain.here

    chain.qdq(0.125, 0, np.int8)
    earlier = conv(2, 0.125, 3)
    later = conv(4, 0.0625, -7)
    chain.here = earlier if first == "the earlier map" else later
    chain.node("Sub", later if first == "the earlier map" else earlier).qdq(0.0625, 11, np.int8)
    imported = check(chain.node("Flatten").node("Gemm", np.eye(80, dtype=np.float32)), by_onnxruntime, near=0)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    assert [layer.kind for layer in imported.model.network.layers].count("add") == 1


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("scales", "wrong"),
    [((1, 1, 1), 0), ((2, 2, 1), 0), ((1, 2, 1), 0), ((1, 1, 2), 16512), ((1, 2, 2), 14368), ((1, 8, 8), 3976)],
)
def test_additions_with_halves_say_how_many_pairs_are_off(scales, wrong):
    """Of 65,536 pairs; the how-to has the shares. ONNX rounds halves to even, `Add` away from zero."""
    first, second, result = (scale / 16 for scale in scales)
    chain = onnx_files.Chain((2, 2, 3), opset=19)
    weight = np.eye(2, dtype=np.float32).reshape(2, 2, 1, 1)
    chain.qdq(0.125, 0, np.int8)
    chain.node("Conv", weight, kernel_shape=[1, 1]).qdq(first, 0, np.int8)
    fork = chain.here
    chain.node("Conv", weight, kernel_shape=[1, 1]).qdq(second, 0, np.int8)
    chain.node("Add", fork).qdq(result, 0, np.int8)
    imported = import_chain(chain.node("Flatten").node("Gemm", np.eye(12, dtype=np.float32)))
    assert [built.wrong[0] for built in imported.emitted.built] == [0, 0, wrong, 0]
    assert max(built.wrong[1] for built in imported.emitted.built) == (wrong > 0)


def refused(chain):
    with pytest.raises(ImportRefused) as error:
        import_graph(to_tflite_graph(chain.bytes()), name="refused")
    return error.value.lines


def test_what_is_refused():
    rng = np.random.default_rng(1)

    def begun():
        return Chain((4, 4, 3), 0.02, 3).conv(rng, 3, (3, 3), (0.03, -128), activation="RELU")

    chain = begun()
    wide = chain.here
    assert refused(chain.conv(rng, 3, (3, 3), (0.04, 1), (2, 2)).add(wide, (0.05, -9))) == (
        "ADD_2 (ADD): two maps that are added must have one shape, got (1, 2, 2, 3) and (1, 4, 4, 3)",
    )
    with refusal("maps that are added need the integer engine, got --engine binary"):
        import_graph(to_tflite_graph(residual().bytes()), engine="binary", name="refused")

"""Exported models: qonnx computes what golden does, and what is imported again does, too."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden import file, zoo
from bitloom.golden.encoding import signed
from bitloom.golden.layers.conv import Conv, Weighted
from bitloom.golden.layers.grouped import DepthwiseConv, GroupedConv
from bitloom.golden.network import Model
from bitloom.golden.window import BESIDE
from bitloom.overlay.exporters.qonnx import to_qonnx
from bitloom.overlay.importers.imported import import_graph
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.importers.verify import verify
from tests.cases import random_values
from tests.commands import call
from tests.errors import value_error
from tests.golden.layers.test_outputs import three_heads
from tests.graph_text import network_of
from tests.hls_gen.compiler.graph_cases import GRAPHS
from tests.networks import random_model
from tests.overlay.importers.against import features

onnx = pytest.importorskip("onnx", reason="the extra import is not installed")

BACK_AT_ONCE = ["digits-cnn", "digits-or", "bnn-int8-ends", "cifar-quick-int8"]


def images(model, count):
    source = model.network.input
    e = source.encoding
    levels = np.random.default_rng(5).integers(0, (e.high - e.low) // e.step + 1, (count, *source.shape))
    return e.low + e.step * levels


def weighted(source, *layers, **arrays):
    """A model of random weights, and of these arrays."""
    network = network_of(source, *layers)
    rng = np.random.default_rng(4)
    weights = {}
    for layer in network.layers:
        if isinstance(layer, Weighted):
            shape = layer.array_shapes_of(network.sources(layer))["weight"]
            weights[layer.name] = {"weight": random_values(shape, layer.weight, rng)}
    return Model(network, weights | arrays)


def scales(channels):
    return {"bias": np.full(channels, 100), "multiplier": np.arange(3, 3 + channels), "shift": np.full(channels, 5)}


def check_back(model):
    """Import what is exported: the same scores."""
    imported = import_graph(to_graph(to_qonnx(model)), name="again")
    x = images(model, 4)
    again = imported.model.forward(features(imported, np.moveaxis(x, 3, 1).astype(float)))
    assert (imported.host.scores(again) == model.forward(x).transpose(0, 3, 1, 2).reshape(len(x), -1)).all()
    assert all(built.wrong == (0, 0) for built in imported.emitted.built)
    return imported


@pytest.mark.parametrize("name", BACK_AT_ONCE)
def test_back(name):
    imported = check_back(zoo.find(name))
    if name == "digits-cnn":
        verify(imported, 2)


@pytest.mark.parametrize("more", [(), ("act_1",)])
def test_several_outputs_back(more):
    """Sums and features, one of which others read: the maps of the network are the file's outputs, also twice."""
    model = three_heads()
    *layers, last = model.network.layers
    last = replace(last, inputs=(*last.inputs, *more))
    model = Model(replace(model.network, layers=(*layers, last)), model.arrays)
    imported = import_graph(to_graph(to_qonnx(model)), name="again")
    x = images(model, 4)
    again = imported.model.forward(features(imported, np.moveaxis(x, 3, 1).astype(float)))
    maps = dict(model.walk(x))
    for name, got in zip(model.network.layers[-1].inputs, imported.host.closed(again).values(), strict=True):
        assert np.array_equal(got, maps[name].reshape(4, -1) if name == "dense_3" else np.moveaxis(maps[name], 3, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cnv-w1a1", "lfc-w1a1"])
def test_large_networks_back(name):
    check_back(zoo.find(name))


def by_qonnx(message, x):
    """Scores of images, (N, C, H, W), by qonnx, one image after another: (N, scores)."""
    modelwrapper = pytest.importorskip("qonnx.core.modelwrapper", reason="qonnx is not installed")
    from qonnx.core.onnx_exec import execute_onnx
    from qonnx.transformation.infer_shapes import InferShapes

    message.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    wrapped = modelwrapper.ModelWrapper(message).transform(InferShapes())
    name = message.graph.output[0].name
    results = [execute_onnx(wrapped, {"input": image[None].astype(np.float32)})[name].ravel() for image in x]
    return np.stack(results)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["densenet", "unet", "a map beside itself"])
def test_concatenations(name):
    """Maps with several readers, and channels of several maps side by side."""
    model = random_model(GRAPHS[name], 5, 20, 8)
    x = images(model, 2)
    message = onnx.load_model_from_string(to_qonnx(model))
    assert "Concat" in {node.op_type for node in message.graph.node}
    results = by_qonnx(message, np.moveaxis(x, 3, 1))
    assert (results == model.forward(x).transpose(0, 3, 1, 2).reshape(len(x), -1)).all()
    check_back(model)


def joined(joins):
    """A dense layer and a convolution of the input, and what joins their maps."""
    both = "dense_1 @input 3 s4, conv_2 @input 3 2x2 s4, act_1 dense_1 s8, act_2 conv_2 s8"
    return to_qonnx(random_model(network_of("2x2x2 s4", both, joins), 1, 20, 8))


def test_what_joins_maps_and_has_no_form():
    with value_error("join_3: QONNX joins maps behind dense layers with each other alone, got act_1 and act_2"):
        joined("concat join_3 act_1 act_2")
    with value_error("join_4: QONNX joins maps behind dense layers with each other alone, got join_3 and act_2"):
        joined("concat join_3 act_1 act_1, concat join_4 join_3 act_2")
    with value_error("join_3: QONNX has no form for a layer of kind add"):
        joined("add join_3 act_1 act_1 s8, concat join_4 join_3 act_2")


def falling(model):
    """The model with a threshold that falls in every other channel."""
    arrays = {name: dict(values) for name, values in model.arrays.items()}
    direction = arrays["threshold_1"]["direction"].copy()
    direction[::2] *= -1
    arrays["threshold_1"]["direction"] = direction
    return Model(model.network, arrays)


def test_qonnx_computes_the_same():
    model = falling(zoo.find("digits-cnn"))
    x = images(model, 3)
    results = by_qonnx(onnx.load_model_from_string(to_qonnx(model)), np.moveaxis(x, 3, 1))
    assert (results == model.forward(x).reshape(3, -1)).all()
    check_back(model)


def test_thermometer_input_clip_and_mean_with_padding():
    rng = np.random.default_rng(2)
    factors = {"bias": rng.integers(-40, 40, 4), "multiplier": rng.integers(500, 900, 4), "shift": np.full(4, 13)}
    model = weighted(
        "5x6x2 b3",
        "conv_1 4 2x3 s4, requantise_1 s6 clip=-20..9 fraction=3, avg_pool pool_1 2x2 2x2 0/0/1/1",
        "dense_2 3 s4, threshold_2 levels=2",
        requantise_1=factors,
        threshold_2={"threshold": np.array([[-5, 9]] * 3), "direction": np.array([1, -1, 1])},
    )
    check_back(model)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("kind", ["conv", "dense"])
def test_affine_at_the_end(kind, relu):
    """A factor and an offset a channel, on a map wider than it has channels: neither may be taken for the other."""
    first = {"conv": "conv 3 2x1 s4", "dense": "dense 3 s4"}[kind]
    factors = {"multiplier": np.array([3, -7, 100]), "bias": np.array([-500, 21, 1])}
    model = weighted("4x3x2 s4", first, f"affine s24{' relu=yes' * relu}", affine=factors)
    check_back(model)
    message = onnx.load_model_from_string(to_qonnx(model))
    shape = [d.dim_value or d.dim_param for d in message.graph.output[0].type.tensor_type.shape.dim]
    assert shape == (["N", 3, 3, 3] if kind == "conv" else ["N", 3])
    x = images(model, 3)
    wanted = model.forward(x).transpose(0, 3, 1, 2).reshape(3, -1)
    assert (by_qonnx(message, np.moveaxis(x, 3, 1)) == wanted).all()


def test_what_has_no_form():
    with value_error("conv_1: accumulate or must have no padding, got (1, 1, 1, 1)"):
        to_qonnx(weighted("4x4x1", "conv_1 2 3x3 padding=1 accumulate=or"))
    big = {"threshold": np.array([[1 << 25]]), "direction": np.array([1])}
    with value_error("threshold_1_limits: must be below 2^24 to be exact in float32, got 33554432"):
        to_qonnx(weighted("4x4x1 u1", "conv_1 1 1x1, threshold_1", threshold_1=big))


def test_commands(tmp_path):
    done = call("export", "digits-cnn", "--qonnx", "--out", tmp_path / "d.onnx", "--json")
    assert done.exit_code == 0, done.output
    done = call("import", tmp_path / "d.onnx", "--out", tmp_path / "d.npz", "--check", "1", "--explain")
    assert done.exit_code == 0, done.output
    written = sorted(p.name for p in tmp_path.iterdir())
    assert written == ["d.host.json", "d.import.html", "d.import.md", "d.npz", "d.onnx"]
    model = file.load(tmp_path / "d.npz")
    ours = zoo.find("digits-cnn")
    x = images(ours, 2)
    assert (model.forward(x) == ours.forward(x)).all()


@pytest.mark.parametrize("groups", [2, 6])
def test_a_grouped_convolution(groups):
    """It leaves with its groups, and comes back as what it was."""
    layer = f"grouped_conv 12 3x2 s4 groups={groups} stride=1x2"
    first = check_back(weighted("5x6x6 u4", layer, "act u5, dense 3 s4", act=scales(12))).model.network.layers[0]
    assert isinstance(first, GroupedConv)
    assert first.groups == groups


@pytest.mark.sample(6)
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_a_map_that_grows(groups, repeats, beside):
    """It leaves as a transposed convolution, or behind a Resize and a Pad, and comes back as what it was."""
    kind, more = {1: (Conv, {}), 2: (GroupedConv, {"groups": 2}), 6: (DepthwiseConv, {})}[groups]
    growth, repeats = ((1, 1), False) if beside == "mirrored" else ((2, 3), repeats)
    window = {"kernel": (3, 4), "padding": (1, 3, 2, 0), "dilation": (1, 2), "growth": growth, "repeats": repeats}
    layer = kind(name="conv", out_channels=6, weight=signed(4), beside=beside, **window, **more)
    first = check_back(weighted("4x5x6 u4", layer, "act u5, dense 3 s4", act=scales(6))).model.network.layers[0]
    assert (type(first), first.window(None)) == (kind, layer.window(None))


def test_strides_of_a_map_that_grows_have_no_form():
    with value_error("conv_1: QONNX has no form for a map that grows where stride isn't (1, 1), got (2, 1)"):
        to_qonnx(weighted("4x4x1", "conv_1 1 3x3 growth=2x2 stride=2x1"))


def test_a_depthwise_convolution():
    """It leaves as a convolution of as many groups as channels, and comes back as what it was."""
    layers = "depthwise 5 3x2 s4 stride=1x2 padding=1/0/1/1, act u5, dense 3 s4"
    imported = check_back(weighted("5x6x5 u4", layers, act=scales(5)))
    assert imported.model.network.layers[0].kind == "depthwise_conv"

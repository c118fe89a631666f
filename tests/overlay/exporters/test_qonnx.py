"""Exported models: qonnx computes what golden does, and what is imported again does, too."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from bitloom.golden import file, zoo
from bitloom.golden.encoding import bipolar, signed, unsigned
from bitloom.golden.layer import Map
from bitloom.golden.layers.add import Add
from bitloom.golden.layers.affine import Affine
from bitloom.golden.layers.concat import Concat
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import DepthwiseConv, GroupedConv
from bitloom.golden.layers.pool import AvgPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.window import BESIDE
from bitloom.overlay.cli.group import bitloom
from bitloom.overlay.exporters.qonnx import to_qonnx
from bitloom.overlay.importers.imported import import_graph
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.importers.verify import verify
from tests.errors import value_error
from tests.golden.layers.test_outputs import three_heads
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


def beside(kind, reads):
    """A dense layer and a convolution of the input, and a layer of this kind that reads their maps."""
    dense = Dense(name="dense_1", out_channels=3, weight=signed(4), inputs=("@input",))
    conv = Conv(name="conv_2", out_channels=3, kernel=(2, 2), weight=signed(4), inputs=("@input",))
    acts = [Requantise(name=f"act_{k}", encoding=signed(8), inputs=(one.name,)) for k, one in ((1, dense), (2, conv))]
    more = {"encoding": signed(8)} if kind is Add else {}
    layers = (dense, conv, *acts, kind(name="join_3", inputs=("act_1", reads), **more))
    layers += () if reads == "act_2" else (Concat(name="join_4", inputs=("join_3", "act_2")),)
    network = Network(name="net", input=Map(height=2, width=2, channels=2, encoding=signed(4)), layers=layers)
    return to_qonnx(random_model(network, 1, 20, 8))


def test_what_joins_maps_and_has_no_form():
    with value_error("join_3: QONNX joins maps behind dense layers with each other alone, got act_1 and act_2"):
        beside(Concat, "act_2")
    with value_error("join_4: QONNX joins maps behind dense layers with each other alone, got join_3 and act_2"):
        beside(Concat, "act_1")
    with value_error("join_3: QONNX has no form for a layer of kind add"):
        beside(Add, "act_1")


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
    layers = (
        Conv(name="conv_1", out_channels=4, kernel=(2, 3), weight=signed(4)),
        Requantise(name="requantise_1", encoding=signed(6), clip=(-20, 9), fraction=3),
        AvgPool(name="pool_1", kernel=(2, 2), stride=(2, 2), padding=(0, 0, 1, 1)),
        Dense(name="dense_2", out_channels=3, weight=signed(4)),
        Threshold(name="threshold_2", levels=2),
    )
    network = Network(name="small", input=Map(height=5, width=6, channels=2, encoding=bipolar(3)), layers=layers)
    factors = {"bias": rng.integers(-40, 40, 4), "multiplier": rng.integers(500, 900, 4), "shift": np.full(4, 13)}
    arrays = {
        "conv_1": {"weight": rng.integers(-8, 8, (4, 2, 3, 2))},
        "requantise_1": factors,
        "dense_2": {"weight": rng.integers(-8, 8, (3, 2, 2, 4))},
        "threshold_2": {"threshold": np.array([[-5, 9]] * 3), "direction": np.array([1, -1, 1])},
    }
    check_back(Model(network, arrays))


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("kind", ["conv", "dense"])
def test_affine_at_the_end(kind, relu):
    """A factor and an offset a channel, on a map wider than it has channels: neither may be taken for the other."""
    rng = np.random.default_rng(3)
    source = Map(height=4, width=3, channels=2, encoding=signed(4))
    weighted = Conv(name="conv_1", out_channels=3, kernel=(2, 1), weight=signed(4))
    if kind == "dense":
        weighted = Dense(name="conv_1", out_channels=3, weight=signed(4))
    affine = Affine(name="affine_1", encoding=signed(24), relu=relu)
    arrays = {
        "conv_1": {"weight": rng.integers(-8, 8, weighted.array_shapes(source)["weight"])},
        "affine_1": {"multiplier": np.array([3, -7, 100]), "bias": np.array([-500, 21, 1])},
    }
    model = Model(Network(name="ends", input=source, layers=(weighted, affine)), arrays)
    check_back(model)
    message = onnx.load_model_from_string(to_qonnx(model))
    shape = [d.dim_value or d.dim_param for d in message.graph.output[0].type.tensor_type.shape.dim]
    assert shape == (["N", 3, 3, 3] if kind == "conv" else ["N", 3])
    x = images(model, 3)
    wanted = model.forward(x).transpose(0, 3, 1, 2).reshape(3, -1)
    assert (by_qonnx(message, np.moveaxis(x, 3, 1)) == wanted).all()


def test_what_has_no_form():
    source = Map(height=4, width=4, channels=1, encoding=unsigned(1))
    bits = Map(height=4, width=4, channels=1, encoding=bipolar(1))
    conv = Conv(name="conv_1", out_channels=2, kernel=(3, 3), padding=(1, 1, 1, 1), accumulate="or")
    network = Network(name="or", input=bits, layers=(conv,))
    model = Model(network, {"conv_1": {"weight": np.ones((2, 3, 3, 1), np.int8)}})
    with pytest.raises(ValueError, match=r"^conv_1: accumulate or must have no padding, got \(1, 1, 1, 1\)$"):
        to_qonnx(model)
    layers = (Conv(name="conv_1", out_channels=1, kernel=(1, 1)), Threshold(name="threshold_1"))
    big = {"threshold": np.array([[1 << 25]]), "direction": np.array([1])}
    model = Model(
        Network(name="big", input=source, layers=layers),
        {"conv_1": {"weight": np.ones((1, 1, 1, 1), np.int8)}, "threshold_1": big},
    )
    rule = r"^threshold_1_limits: must be below 2\^24 to be exact in float32, got 33554432$"
    with pytest.raises(ValueError, match=rule):
        to_qonnx(model)


def test_commands(tmp_path):
    run = CliRunner().invoke
    done = run(bitloom, ["export", "digits-cnn", "--qonnx", "--out", str(tmp_path / "d.onnx"), "--json"])
    assert done.exit_code == 0, done.output
    options = ["--out", str(tmp_path / "d.npz"), "--check", "1", "--explain"]
    done = run(bitloom, ["import", str(tmp_path / "d.onnx"), *options])
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
    rng = np.random.default_rng(4)
    layer = GroupedConv(name="conv", out_channels=12, groups=groups, weight=signed(4), kernel=(3, 2), stride=(1, 2))
    layers = (layer, Requantise(name="act", encoding=unsigned(5)), Dense(name="d", out_channels=3, weight=signed(4)))
    network = Network(name="net", input=Map(height=5, width=6, channels=6, encoding=unsigned(4)), layers=layers)
    arrays = {
        "conv": {"weight": rng.integers(-7, 8, layer.array_shapes(network.input)["weight"])},
        "act": {"bias": np.full(12, 100), "multiplier": np.arange(3, 15), "shift": np.full(12, 5)},
        "d": {"weight": rng.integers(-7, 8, (3, 3, 3, 12))},
    }
    first = check_back(Model(network, arrays)).model.network.layers[0]
    assert isinstance(first, GroupedConv)
    assert first.groups == groups


@pytest.mark.sample(6)
@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("repeats", [False, True])
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_a_map_that_grows(groups, repeats, beside):
    """It leaves as a transposed convolution, or behind a Resize and a Pad, and comes back as what it was."""
    rng = np.random.default_rng(4)
    kind, more = {1: (Conv, {}), 2: (GroupedConv, {"groups": 2}), 6: (DepthwiseConv, {})}[groups]
    growth, repeats = ((1, 1), False) if beside == "mirrored" else ((2, 3), repeats)
    window = {"kernel": (3, 4), "padding": (1, 3, 2, 0), "dilation": (1, 2), "growth": growth, "repeats": repeats}
    layer = kind(name="conv", out_channels=6, weight=signed(4), beside=beside, **window, **more)
    layers = (layer, Requantise(name="act", encoding=unsigned(5)), Dense(name="d", out_channels=3, weight=signed(4)))
    network = Network(name="net", input=Map(height=4, width=5, channels=6, encoding=unsigned(4)), layers=layers)
    arrays = {
        "conv": {"weight": rng.integers(-7, 8, layer.array_shapes(network.input)["weight"])},
        "act": {"bias": np.full(6, 100), "multiplier": np.arange(3, 9), "shift": np.full(6, 5)},
        "d": {"weight": rng.integers(-7, 8, (3, *network.maps["act"].shape))},
    }
    first = check_back(Model(network, arrays)).model.network.layers[0]
    assert (type(first), first.window(None)) == (kind, layer.window(None))


def test_strides_of_a_map_that_grows_have_no_form():
    layer = Conv(name="conv_1", out_channels=1, kernel=(3, 3), growth=(2, 2), stride=(2, 1))
    network = Network(name="grown", input=Map(height=4, width=4, channels=1, encoding=bipolar(1)), layers=(layer,))
    model = Model(network, {"conv_1": {"weight": np.ones((1, 3, 3, 1), np.int8)}})
    rule = r"^conv_1: QONNX has no form for a map that grows where stride isn't \(1, 1\), got \(2, 1\)$"
    with pytest.raises(ValueError, match=rule):
        to_qonnx(model)


def test_a_depthwise_convolution():
    """It leaves as a convolution of as many groups as channels, and comes back as what it was."""
    rng = np.random.default_rng(4)
    sliding = {"kernel": (3, 2), "stride": (1, 2), "padding": (1, 0, 1, 1)}
    layer = DepthwiseConv(name="conv", out_channels=5, weight=signed(4), **sliding)
    dense = Dense(name="dense", out_channels=3, weight=signed(4))
    layers = (layer, Requantise(name="act", encoding=unsigned(5)), dense)
    network = Network(name="net", input=Map(height=5, width=6, channels=5, encoding=unsigned(4)), layers=layers)
    arrays = {
        "conv": {"weight": rng.integers(-7, 8, layer.array_shapes(network.input)["weight"])},
        "act": {"bias": np.full(5, 100), "multiplier": np.arange(3, 8), "shift": np.full(5, 5)},
        "dense": {"weight": rng.integers(-7, 8, (3, 5, 3, 5))},
    }
    imported = check_back(Model(network, arrays))
    kinds = [layer.kind for layer in imported.model.network.layers]
    assert kinds[0] == "depthwise_conv"

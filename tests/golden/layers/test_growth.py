"""Convolutions of maps that grow, or whose padding is clamped: golden against onnxruntime's transposed convolutions,
nearest upsampling and padding with edges, files, packed layers, and what a device computes of them."""

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.kernels.tiled.conv import from_golden
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.grouped import DepthwiseConv, GroupedConv
from bitloom.golden.network import Model, Network
from bitloom.golden.window import Window
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.plan import plan
from tests.cases import case_map, random_values
from tests.errors import value_error
from tests.graph_text import network_of
from tests.npus import integer_npu
from tests.rows import npu_rows

from .agreement import by_onnxruntime, check_model

KINDS = {Conv: (3, 1), DepthwiseConv: (4, 4), GroupedConv: (6, 2)}
"""Outputs of a layer of 4 channels, and its groups."""


def layer_of(kind, encoding, **window):
    """A layer of the kind, and its groups as ONNX has them."""
    outputs, groups = KINDS[kind]
    others = {"groups": groups} if kind is GroupedConv else {}
    return kind(name="conv_1", out_channels=outputs, weight=encoding, **window, **others), groups


def check(layer, source, seed, nodes, folder, *, turned):
    """Golden is what onnxruntime makes, and so are a file and the packed layer. ``turned``: weights as those of a
    transposed convolution, (channels, outputs of a group, rows, columns), the last tap first."""
    rng = np.random.default_rng(seed)
    x = random_values((2, *source.shape), source.encoding, rng)
    weight = random_values(layer.array_shapes(source)["weight"], layer.weight, rng)
    given = weight.transpose(0, 3, 1, 2)
    groups = source.channels // given.shape[1]
    if turned:
        each = [part.transpose(1, 0, 2, 3) for part in np.split(given, groups)]
        given = np.concatenate(each)[:, :, ::-1, ::-1]
    y = by_onnxruntime(*nodes, x=x.transpose(0, 3, 1, 2).astype(np.float32), w=given.astype(np.float32))
    model = Model(Network(name="grown", input=source, layers=(layer,)), {"conv_1": {"weight": weight}})
    check_model(model, x, y.transpose(0, 2, 3, 1), folder)


@pytest.mark.parametrize("encoding", [signed(8), BIPOLAR], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("kernel", "stride", "pads", "more", "dilation"),
    [
        ((3, 3), (2, 2), (0, 0, 0, 0), (0, 0), (1, 1)),
        ((3, 4), (2, 3), (1, 0, 2, 1), (1, 0), (1, 1)),
        ((2, 2), (2, 2), (0, 0, 0, 0), (0, 0), (1, 1)),
        ((4, 2), (3, 1), (0, 1, 1, 0), (0, 0), (1, 2)),
    ],
)
def test_a_transposed_convolution_is_onnxruntimes(kernel, stride, pads, more, dilation, kind, encoding, tmp_path):
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    top, left, bottom, right = (spans[k % 2] - 1 - pad for k, pad in enumerate(pads))
    padding = (top, left, bottom + more[0], right + more[1])
    window = {"kernel": kernel, "padding": padding, "dilation": dilation, "growth": stride}
    layer, groups = layer_of(kind, encoding, **window)
    options = {"kernel_shape": kernel, "strides": stride, "pads": pads, "output_padding": more}
    node = ("ConvTranspose", ["x", "w"], ["y"], {**options, "dilations": dilation, "group": groups})
    check(layer, case_map(5, 4, 4, encoding), 1, [node], tmp_path, turned=True)


@pytest.mark.parametrize("encoding", [signed(8), BIPOLAR], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_convolution_behind_nearest_upsampling_is_onnxruntimes(kind, encoding, tmp_path):
    window = {"kernel": (3, 2), "stride": (1, 3), "padding": (1, 0, 2, 1)}
    layer, groups = layer_of(kind, encoding, growth=(3, 2), repeats=True, **window)
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    options = {"kernel_shape": (3, 2), "strides": (1, 3), "pads": (1, 0, 2, 1), "group": groups}
    nodes = [
        ("Constant", [], ["s"], {"value_floats": (1.0, 1.0, 3.0, 2.0)}),
        ("Resize", ["x", "", "s"], ["u"], nearest),
        ("Conv", ["u", "w"], ["y"], options),
    ]
    check(layer, case_map(4, 5, 4, encoding), 2, nodes, tmp_path, turned=False)


EDGES = {
    "a plain one": {"kernel": (3, 4), "stride": (1, 2), "padding": (2, 0, 1, 3)},
    "a dilated one": {"kernel": (2, 3), "padding": (3, 1, 2, 4), "dilation": (4, 2)},
    "a row": {"kernel": (1, 3), "padding": (0, 2, 0, 2)},
}
"""Windows over maps whose padding has the map's edges."""


@pytest.mark.parametrize("encoding", [signed(8), BIPOLAR], ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize(("beside", "mode"), [("nearest", "edge"), ("mirrored", "reflect")])
def test_padding_with_values_of_the_map_is_onnxruntimes(beside, mode, name, kind, encoding, tmp_path):
    window = EDGES[name]
    layer, groups = layer_of(kind, encoding, beside=beside, **window)
    top, left, bottom, right = window["padding"]
    sliding = {"strides": window.get("stride", (1, 1)), "dilations": window.get("dilation", (1, 1)), "group": groups}
    nodes = [
        ("Constant", [], ["p"], {"value_ints": (0, 0, top, left, 0, 0, bottom, right)}),
        ("Pad", ["x", "p"], ["e"], {"mode": mode}),
        ("Conv", ["e", "w"], ["y"], {"kernel_shape": window["kernel"], **sliding}),
    ]
    check(layer, case_map(4, 5, 4, encoding), 3, nodes, tmp_path, turned=False)


@pytest.mark.parametrize("encoding", [signed(8), BIPOLAR], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_a_clamped_map_that_grows_is_onnxruntimes(kind, encoding, tmp_path):
    """The map with two columns more on both sides, of which a transposed convolution leaves the outermost ones out."""
    window = {"growth": (2, 3), "beside": "nearest", "kernel": (4, 6), "padding": (2, 5, 2, 4)}
    layer, groups = layer_of(kind, encoding, **window)
    options = {"kernel_shape": (4, 6), "strides": (2, 3), "pads": (3, 3, 3, 4), "group": groups}
    nodes = [
        ("Constant", [], ["p"], {"value_ints": (0, 0, 1, 1, 0, 0, 1, 1)}),
        ("Pad", ["x", "p"], ["e"], {"mode": "edge"}),
        ("ConvTranspose", ["e", "w"], ["y"], options),
    ]
    check(layer, case_map(4, 5, 4, encoding), 4, nodes, tmp_path, turned=True)


WINDOWS = [{"padding": (1, 2, 1, 2), "growth": (2, 2), "repeats": repeats} for repeats in (False, True)]
WINDOWS.append({"padding": (3, 2, 3, 2), "dilation": (3, 2)})


def planned(npu, **window):
    """The plan of a layer, and its rows. Each valid tap takes a beat, and there are neither counters nor a former."""
    layer = Conv(name="conv_1", out_channels=2, kernel=(3, 3), weight=signed(8), **window)
    weight = random_values((2, 3, 3, 3), signed(8), np.random.default_rng(1))
    model = Model(network_of("8x9x3 s8", layer), {"conv_1": {"weight": weight}})
    network_plan = plan(model, [npu], CompileChoices(map_order="raster"))
    valid = (layer.window(None).positions(8, 9) >= 0).sum()
    assert network_plan.ideal == [("conv_1", valid)]
    assert network_plan.formed(0) is None
    (rows,) = npu_rows(network_plan)
    assert rows.row("layers")["by_counters"] == 0
    return network_plan, rows


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_a_plan_reads_valid_taps_alone(window):
    """Nine kernel rows, and a beat for each tap on the map, by tables, as counters are for dense windows; the map
    arrives as it is, and a window former makes windows of maps that don't grow."""
    network_plan, rows = planned(integer_npu(9, 8, kfp=4, kgp=4, raster=True, window_former=True), **window)
    assert rows.count("kernels") == 9
    assert network_plan.layers[0].on_array.counts.tuples == 72


def test_windows():
    """A row of 3 positions that grows by 2: a . b . c, or a a b b c c."""
    holes = Window(kernel=(1, 3), padding=(0, 1, 0, 1), growth=(1, 2))
    assert holes.positions(1, 3).tolist() == [[-1, 0, -1], [0, -1, 1], [-1, 1, -1], [1, -1, 2], [-1, 2, -1]]
    again = Window(kernel=(1, 3), padding=(0, 1, 0, 1), growth=(1, 2), repeats=True)
    positions = [[-1, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 2], [1, 2, 2], [2, 2, -1]]
    assert again.positions(1, 3).tolist() == positions
    assert (holes.padded, again.padded, holes.plain, again.plain) == (True, True, False, False)
    assert not Window(kernel=(1, 3), growth=(1, 2), repeats=True).padded


def test_clamped_windows():
    """a . a . b . c . c, and a a a a b b c c c c; without growth a a b c c."""
    holes = Window(kernel=(1, 4), padding=(0, 2, 0, 2), growth=(1, 2), beside="nearest")
    dots = [(0, -1, 0, -1), (-1, 0, -1, 1), (0, -1, 1, -1), (-1, 1, -1, 2), (1, -1, 2, -1), (-1, 2, -1, 2)]
    assert list(map(tuple, holes.positions(1, 3).tolist())) == dots
    again = Window(kernel=(1, 3), padding=(0, 2, 0, 1), growth=(1, 2), repeats=True, beside="nearest")
    assert again.positions(1, 2).tolist() == [[0, 0, 0], [0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]]
    edges = Window(kernel=(1, 3), padding=(0, 1, 0, 1), beside="nearest")
    assert edges.positions(1, 3).tolist() == [[0, 0, 1], [0, 1, 2], [1, 2, 2]]
    assert [each.padded for each in (holes, again, edges)] == [True, False, False]
    assert not edges.plain


@pytest.mark.parametrize("growth", [(1, 1), (2, 2)])
def test_a_plan_of_a_clamped_map_has_tables(growth):
    """No counters and no former know of taps that are clamped; each tap that isn't on a dot takes a beat."""
    npu = integer_npu(9, 8, kfp=12, line_taps=3, kgp=4, raster=True, window_former=True)
    planned(npu, padding=(1, 2, 1, 2), growth=growth, beside="nearest")


def binary(**more):
    layer = Conv(name="c", out_channels=1, kernel=(2, 2), **more)
    from_golden(layer, case_map(4, 4, 1, BIPOLAR), np.ones((1, 2, 2, 1), np.int8), word_bits=32)


def conv(kernel=(2, 2), **more):
    return Conv(name="c", out_channels=1, kernel=kernel, **more)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conv(growth=(0, 1)), "c: growth must be >= 1, got (0, 1)"),
        (lambda: conv(growth=3), "c: growth must be 2 integers, got 3"),
        (lambda: conv(repeats=1), "c: repeats must be True or False, got 1"),
        (
            lambda: conv((2, 1), growth=(1, 3)).output(case_map(4, 2, 1)),
            "c: every window must have a tap on the map, got growth (1, 3) on 4 x 2",
        ),
        (lambda: conv(beside=1), "c: beside must be one of nothing, nearest, mirrored, got 1"),
        (lambda: binary(growth=(1, 2)), "c: growth must be (1, 1), got (1, 2)"),
        (lambda: binary(beside="nearest"), "c: beside must be nothing, got nearest"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with value_error(message):
        call()

"""TFLite files become models that equal TFLite's integer kernels in every value."""

from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from bitloom.golden.file import model_digest
from bitloom.overlay.cli.importing import import_command
from bitloom.overlay.evaluation.host_transform import HostTransform
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_file, import_graph
from bitloom.overlay.importers.references import reference
from bitloom.overlay.importers.tflite_file import to_tflite_graph
from bitloom.overlay.importers.tflite_kernels import rounded_once
from bitloom.overlay.importers.tflite_rules import activation_ends, mean_multiplier, multiplier_of, rounded_product
from bitloom.overlay.importers.verify import verify
from tests.errors import refusal

from .against import features
from .tflite_files import DATA, Chain, small
from .tflite_real import kernels

pytest.importorskip("onnx", reason="the extra import is not installed")


def import_chain(chain):
    return import_graph(to_tflite_graph(chain.bytes()), name="chain")


def values_of(source, image):
    """All tensors of an image by name, by the kernels, node by node."""
    values = {**source.constants, source.source.name: image[None]}
    for node in source.nodes:
        inputs = [values[name] if name else None for name in node.inputs]
        values[node.outputs[0]] = reference(node, inputs, source.opset)
    return values


def by_kernels(source, images):
    """Outputs of images by the kernels: (N, values)."""
    return np.stack([np.ravel(values_of(source, image)[source.outputs[0]]) for image in images])


def maps(imported, images):
    """Golden's values after each section, in the file's integers: section number -> (N, rows, columns, channels)."""
    network = imported.model.network
    trace = imported.model.trace(features(imported, images))
    names = [layer.name for layer in network.layers]
    out = []
    for built, section, held in zip(
        imported.emitted.built, imported.graph.sections, [*imported.choice.held.values()][1:]
    ):
        level = (trace[names.index(built.layers[-1])] - held.zero) // held.stride
        out.append(int(section.quantised.base) + level)
    return out


def scores(imported, images):
    return imported.host.scores(imported.model.forward(features(imported, images)))


def check(chain, least=5):
    imported = import_chain(chain)
    verify(imported, 3)
    first = imported.source.source
    rng = np.random.default_rng(2)
    if first.dtype == np.float32:
        images = rng.normal(0, 3, (8, *first.shape[1:])).astype(np.float32)
    else:
        ends = np.iinfo(first.dtype)
        images = rng.integers(ends.min, ends.max + 1, (8, *first.shape[1:])).astype(first.dtype)
    wanted, got = by_kernels(imported.source, images), scores(imported, images)
    assert len(np.unique(wanted)) >= least  # else nothing was compared
    assert [built.wrong for built in imported.emitted.built] == [(0, 0)] * len(imported.emitted.built)
    assert np.abs(wanted - got).max() < 1e-5
    return imported, wanted, got


@pytest.mark.sample(6)
@pytest.mark.parametrize("zero", [-128, 0, 83, 127])
@pytest.mark.parametrize(("same", "strides"), [(True, (1, 2)), (False, (2, 1)), (True, (2, 2))])
def test_convolution(zero, same, strides):
    chain = Chain((6, 7, 3), 0.02, zero)
    check(chain.conv(np.random.default_rng(1), 5, (3, 2), (0.03, -128), strides, same, "RELU"), least=50)


@pytest.mark.parametrize(("activation", "levels"), [("RELU", 255), ("RELU6", 200), ("RELU_N1_TO_1", 61)])
def test_activations(activation, levels):
    zero = -128 if activation != "RELU_N1_TO_1" else 100  # ends at 127, before +1
    imported, _, _ = check(
        Chain((1, 1, 12), 0.02, -5).dense(np.random.default_rng(1), 9, (0.03, zero), activation), least=20
    )
    assert imported.emitted.built[0].levels == (levels if activation != "RELU_N1_TO_1" else 60)


@pytest.mark.parametrize("depth", [1, 2])
def test_depthwise(depth):
    rng = np.random.default_rng(depth)
    chain = Chain((6, 5, 3), 0.02, 4).conv(rng, 0, (3, 3), (0.02, -128), (2, 1), activation="RELU", depth=depth)
    imported, _, _ = check(chain.conv(rng, 4, (1, 1), (0.03, -128), activation="RELU"), least=20)
    assert imported.choice.weights[0].values.shape == (3 * depth, 3, 3, 1)  # without zeros for other channels
    assert imported.model.network.layers[0].kind == ("depthwise_conv" if depth == 1 else "grouped_conv")


def test_dilated():
    rng = np.random.default_rng(3)
    check(Chain((7, 8, 2), 0.02, 9).conv(rng, 4, (2, 3), (0.02, -128), activation="RELU", dilations=(2, 2)), least=50)


def test_dense_without_activation_and_bias():
    chain = Chain((3, 2, 2), 0.02, 9).dense(np.random.default_rng(3), 8, (0.02, 40), bias=False)
    check(chain, least=40)


def test_two_roundings_without_activation():
    """Halves are rounded away from the zero point, in the middle of the values: no one line has all its steps.

    So the layer rounds twice, too, and its map holds values less their zero point.
    """
    rng = np.random.default_rng(3)
    chain = Chain((5, 5, 3), 0.02, 9).conv(rng, 4, (3, 3), (0.03, 7)).conv(rng, 5, (3, 3), (0.04, -3))
    imported, _, _ = check(chain, least=100)
    assert [layer.rounding for layer in imported.model.network.layers[1::2]] == ["twice", "twice"]
    assert [held.zero for held in [*imported.choice.held.values()][1:]] == [-135, -125]


def test_requantisations_are_the_files_own():
    """A map less its zero point needs the file's integers alone: no bias with bits behind the point."""
    rng = np.random.default_rng(3)
    chain = Chain((4, 5, 3), 0.02, 9).conv(rng, 4, (3, 3), (0.03, -128), activation="RELU")
    chain.conv(rng, 0, (3, 3), (0.02, -100), activation="RELU6", depth=1)
    chain.conv(rng, 3, (1, 1), (0.03, 20)).dense(rng, 6, (0.05, -7))
    imported, _, _ = check(chain, least=30)
    acts = [layer for layer in imported.model.network.layers if layer.kind == "requantise"]
    assert [(act.fraction, act.rounding) for act in acts] == [(0, "twice")] * 3 + [(0, "once")]
    for act, (_, (before, weight, bias), (after,), *_) in zip(acts, chain.operators):
        stored = imported.model.arrays[act.name]
        tensors = chain.tensors
        assert np.array_equal(stored["bias"], np.frombuffer(tensors[bias].data, np.int32))
        scales = [np.float32(tensors[place].scale).astype(np.float64) for place in (before, weight, after)]
        own = [multiplier_of(scale) for scale in (scales[0] * scales[1] / scales[2]).tolist()]
        count = len(stored["multiplier"]) // len(own)  # dense weights share a scale
        assert stored["multiplier"].tolist() == [one.multiplier for one in own] * count
        assert stored["shift"].tolist() == [31 - one.shift for one in own] * count


def test_weights_with_a_common_divisor_stay_narrow():
    """Binary ones are no 8-bit integers for the sake of the file's own sums, if a line has all steps."""
    chain = Chain((5, 5, 3), 0.02, 9).conv(np.random.default_rng(3), 4, (3, 3), (0.03, -128), activation="RELU")
    weight = chain.tensors[chain.operators[0][1][1]]
    weight.data = np.where(np.frombuffer(weight.data, np.int8) < 0, -127, 127).astype(np.int8).tobytes()
    imported, _, _ = check(chain, least=100)
    layer, act = imported.model.network.layers
    assert (layer.weight.kind, act.rounding, act.fraction > 0) == ("bipolar", "once", True)


def test_a_dense_layer_whose_sums_lie_halfway():
    """Its kernel rounds halves away from zero, as a layer does: no bit of the bias lies behind the point."""
    chain = Chain((1, 1, 8), 0.5, 3).dense(np.random.default_rng(5), 7, (0.5, 4))
    weight = chain.tensors[chain.operators[0][1][1]]
    weight.scale, weight.data = (2.0**-5,), (np.frombuffer(weight.data, np.int8) // 8).tobytes()
    bias = chain.tensors[chain.operators[0][1][2]]
    bias.data = (np.frombuffer(bias.data, np.int32) // 40).tobytes()
    imported, _, _ = check(chain, least=40)
    act = imported.model.network.layers[1]
    assert (act.fraction, act.rounding) == (0, "once")


def test_a_channel_of_the_smallest_scale():
    """All its sums have one value, though a multiplier of 2^-31 is more than the layer's shift can do."""
    rng = np.random.default_rng(3)
    scales = SimpleNamespace(integers=rng.integers, uniform=lambda low, high, count: [0.004] * (count - 1) + [5e-10])
    imported, _, _ = check(Chain((5, 5, 3), 0.02, 9).conv(scales, 4, (3, 3), (0.03, 7)), least=100)
    assert imported.model.network.layers[1].rounding == "twice"


@pytest.mark.parametrize("kind", ["MAX", "AVERAGE"])
@pytest.mark.parametrize("zero", [-128, -20])
def test_pools(kind, zero):
    rng = np.random.default_rng(4)
    chain = Chain((7, 9, 2), 0.02, -20).conv(rng, 4, (2, 2), (0.02, zero), same=False, activation="RELU")
    chain.pool(kind, (2, 3), (2, 2)).conv(rng, 4, (2, 2), (0.02, -128), activation="RELU")
    check(chain.dense(rng, 6, (0.05, 3)), least=20)


@pytest.mark.parametrize(("rows", "halves"), [(2, True), (3, False)])
def test_means_of_a_map(rows, halves):
    """One of an even number of values may lie halfway: its rounding needs the values as the file has them."""
    rng = np.random.default_rng(4)
    chain = Chain((7, 9, 2), 0.02, -20).conv(rng, 4, (2, 2), (0.02, -20), same=False, activation="RELU")
    imported, _, _ = check(chain.pool("AVERAGE", (rows, 3), (2, 2)).dense(rng, 6, (0.05, 3)), least=20)
    act, pool = imported.model.network.layers[1:3]
    assert (act.fraction > 0, imported.choice.held[1].zero, pool.kind) == (halves, -20 if halves else 0, "avg_pool")


def test_pad():
    rng = np.random.default_rng(4)
    chain = Chain((5, 4, 2), 0.02, -20).pad((0, 1), (1, 1))
    chain.conv(rng, 6, (3, 2), (0.02, -20), same=False, activation="RELU").pad((1, 1), (0, 0))
    imported, _, _ = check(chain.conv(rng, 3, (2, 2), (0.02, -128), same=False, activation="RELU"), least=50)
    paddings = [layer.padding for layer in imported.model.network.layers if layer.name.startswith("conv")]
    assert paddings == [(0, 1, 1, 1), (1, 0, 1, 0)]


@pytest.mark.parametrize("keep", [False, True])
def test_mean(keep):
    rng = np.random.default_rng(4)
    chain = Chain((5, 4, 2), 0.02, -20).conv(rng, 6, (2, 2), (0.02, -128), activation="RELU").mean((0.015, -128), keep)
    check(chain.dense(rng, 6, (0.01, 3)), least=20)


def test_dead_channel():
    """A scale so small that no sum leaves the zero point: one value, and a multiplier that no hardware has."""
    rng = np.random.default_rng(4)
    chain = Chain((1, 1, 12), 0.02, 3).conv(rng, 4, (1, 1), (0.02, -128), activation="RELU")
    weight = chain.tensors[chain.operators[0][1][1]]
    weight.scale = (weight.scale[0], 1e-12, 1e-38, weight.scale[3])
    imported, _, _ = check(chain, least=5)
    assert (imported.model.arrays["conv_1"]["weight"][1:3] == 0).all()


def test_real_ends():
    rng = np.random.default_rng(4)
    chain = Chain((3, 4, 2), kind="FLOAT32").operator("QUANTIZE", (1, 3, 4, 2), (0.05, -3))
    chain.conv(rng, 4, (2, 2), (0.02, -128), activation="RELU").dense(rng, 6, (0.02, 3))
    imported, _, _ = check(chain.operator("DEQUANTIZE", (1, 6), kept="FLOAT32"), least=20)
    assert imported.host.shape == (3, 4, 2)
    assert imported.model.network.input.shape == (3, 4, 2)


def test_ends_without_a_sign():
    rng = np.random.default_rng(4)
    chain = Chain((3, 4, 2), 0.05, 125, kind="UINT8").operator("QUANTIZE", (1, 3, 4, 2), (0.05, -3))
    chain.conv(rng, 4, (2, 2), (0.02, -128), activation="RELU").dense(rng, 6, (0.02, 3))
    check(chain.operator("QUANTIZE", (1, 6), (0.02, 131), kept="UINT8"), least=20)


def test_a_transform_means_the_same_for_every_type_of_input():
    """Pixels stand for real numbers: the file's own scale and zero point make integers of these, saturating."""
    pixels = np.random.default_rng(5).integers(0, 256, (6, 3, 4, 2))
    integers = []
    for chain in (
        Chain((3, 4, 2), kind="FLOAT32").operator("QUANTIZE", (1, 3, 4, 2), (0.05, -3)),
        Chain((3, 4, 2), 0.05, 125, kind="UINT8").operator("QUANTIZE", (1, 3, 4, 2), (0.05, -3)),
        Chain((3, 4, 2), 0.05, -3),
    ):
        rng = np.random.default_rng(4)
        imported = import_chain(chain.conv(rng, 4, (2, 2), (0.02, -128), activation="RELU").dense(rng, 6, (0.02, 3)))
        values = [HostTransform(text, imported.host)(pixels) for text in ("host:1/16:-6", "host:1/8:-7", "host")]
        integers.append((values, imported.model.forward(values[0])))
        real = imported.host.real_range()
        assert np.allclose([real.low[0], real.high[0]], [-6.25, 6.5])
    for values, outputs in integers[1:]:
        assert np.array_equal(values, integers[0][0])
        assert np.array_equal(outputs, integers[0][1])


def test_softmax_is_the_hosts():
    rng = np.random.default_rng(4)
    chain = Chain((1, 1, 9), 0.05, 3).dense(rng, 6, (0.02, 3)).softmax()
    imported = import_chain(chain.operator("DEQUANTIZE", (1, 6), kept="FLOAT32"))
    assert imported.host.only.closing == ("Softmax",)
    images = rng.integers(-128, 128, (4, 1, 1, 9)).astype(np.int8)
    logits = scores(imported, images)
    wanted = by_kernels(imported.source, images)
    assert np.allclose(np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True), wanted)


def logistic(chain):
    """TFLite's sigmoid, whose results are always of one scale."""
    return chain.operator("LOGISTIC", chain.now.shape, (1 / 256, -128))


def test_a_logistic_is_the_hosts_at_the_end_alone():
    """Elsewhere it is looked up in a table."""
    rng = np.random.default_rng(4)
    chain = logistic(Chain((1, 1, 9), 0.05, 3).dense(rng, 6, (0.02, 3)))
    imported = import_chain(chain.operator("DEQUANTIZE", (1, 6), kept="FLOAT32").reshape(1, 1, 6))
    assert imported.host.only.closing == ("Sigmoid",)
    chain = logistic(Chain((1, 1, 9), 0.05, 3).dense(rng, 6, (0.02, 3)))
    imported, _, _ = check(chain.reshape(1, 2, 3).dense(rng, 4, (0.02, 3)))
    assert [layer.kind for layer in imported.model.network.layers] == [
        "dense",
        "requantise",
        "lookup",
        "dense",
        "requantise",
    ]


def test_two_functions_at_the_end():
    """The host computes the last one alone; softmax is a function of all classes together."""
    dense = Chain((1, 1, 9), 0.05, 3).dense(np.random.default_rng(4), 6, (0.02, 3))
    with pytest.raises(ImportRefused) as error:
        import_chain(dense.softmax().softmax())
    (line,) = error.value.lines
    assert line.partition(": ")[2] == "the host computes it at the network's end alone, and SOFTMAX_2/real follows"
    imported = import_chain(logistic(Chain((1, 1, 9), 0.05, 3).dense(np.random.default_rng(4), 6, (0.02, 3))).softmax())
    assert [layer.kind for layer in imported.model.network.layers] == ["dense", "requantise", "lookup"]
    assert imported.host.only.closing == ("Softmax",)


@pytest.mark.parametrize("scale", [0.9, 0.11, 0.0037, 2.0**-14, 3.7, 1 - 2.0**-33, 2.0**-7 / 3, 2.0**-5 / 11])
def test_first_sums(scale):
    """The closed form says where each value begins; the kernels' arithmetic says the same."""
    factor = multiplier_of(scale)
    values = range(-300, 301)
    for roundings, rounded in (
        (1, lambda sums: rounded_once(sums, np.float64(scale))),
        (2, lambda sums: rounded_product(sums, factor)),
    ):
        first = np.array(factor.first_sums(values, roundings), np.int64)
        assert (rounded(first) >= np.array(values)).all()
        assert (rounded(first - 1) < np.array(values)).all()


@pytest.mark.parametrize("scale", [0.5, 0.75])  # sums that are halves times the scale, or but for its rounding
def test_halves_of_dense_layers_go_away_from_zero(scale):
    """As in TFLite's kernel, which the test compares with where it is installed."""
    rng = np.random.default_rng(1)
    chain = Chain((1, 1, 8), 0.25, 3)
    weight = chain.constant(rng.integers(-127, 128, (4, 8)).astype(np.int8), (2.0**-7,))
    chain.operator("FULLY_CONNECTED", (1, 4), (scale, -9), (weight,), "FullyConnectedOptions")
    images = rng.integers(-128, 128, (1000, 1, 1, 8)).astype(np.int8)
    sums = (images.reshape(-1, 8).astype(np.int64) - 3) @ np.frombuffer(chain.tensors[weight].data, np.int8).reshape(
        4, 8
    ).T.astype(np.int64)
    exact = sums * (2.0**-9 / scale)
    wanted = (np.sign(exact) * np.floor(np.abs(exact) + 0.5) - 9).clip(-128, 127)
    assert ((np.abs(exact) % 1 == 0.5) & (exact < 0)).sum() > 1
    assert np.array_equal(scores(import_chain(chain), images), wanted)
    if find_spec("ai_edge_litert") is not None:
        assert np.array_equal(kernels(chain.bytes(), images)[-1].reshape(-1, 4), wanted)


def test_multipliers():
    assert (multiplier_of(0.75).multiplier, multiplier_of(0.75).shift) == (0.75 * 2**31, 0)
    assert (multiplier_of(1 - 2.0**-40).multiplier, multiplier_of(1 - 2.0**-40).shift) == (2**30, 1)
    assert multiplier_of(2.0**-40).multiplier == 0
    assert (mean_multiplier(0.75, 6).multiplier, mean_multiplier(0.75, 6).shift) == (2**30, -2)
    with pytest.raises(ValueError, match=r"^scales must be below 2\^30, got 1e\+12$"):
        multiplier_of(1e12)


def test_ends_of_activations():
    assert activation_ends("NONE", 0.1, 5) == (-128, 127)
    assert activation_ends("RELU", 0.1, 5) == (5, 127)
    assert activation_ends("RELU6", 0.1, 5) == (5, 65)
    assert activation_ends("RELU_N1_TO_1", 0.4, 5) == (2, 8)  # 2.5 away from zero
    with pytest.raises(ValueError, match=r"^the activation must leave two integers at least, got 127\.\.127$"):
        activation_ends("RELU", 0.1, 127)


def test_recorded():
    """data/small.tflite by another implementation of the kernels, which equals TFLite's own on four public models."""
    recorded = np.load(DATA / "small.npz")
    imported = import_file(DATA / "small.tflite")
    verify(imported, 2)
    keys = ("00_CONV_2D", "02_MAX_POOL_2D", "04_AVERAGE_POOL_2D", "06_FULLY_CONNECTED")
    for got, key in zip(maps(imported, recorded["x"]), keys, strict=True):
        assert np.array_equal(got.reshape(recorded[key].shape), recorded[key])
        assert len(np.unique(recorded[key])) > 15


def test_command(tmp_path):
    out = tmp_path / "small.npz"
    result = CliRunner().invoke(import_command, [str(DATA / "small.tflite"), "--out", str(out), "--explain"])
    assert result.exit_code == 0, result.output
    text = out.with_suffix(".import.md").read_text(encoding="utf-8")
    assert "| CONV_2D_0 | CONV_2D | conv_1, requantise_1 | weights signed 8 bit (-128..127), sums " in text
    how = "weights signed 8 bit (-128..127), 25% of them not 0, sums "
    assert f"| DEPTHWISE_CONV_2D_1 | DEPTHWISE_CONV_2D | conv_2, requantise_2, pool_2 | {how}" in text


def test_refusals_all_at_once():
    rng = np.random.default_rng(1)
    chain = Chain((4, 4, 3), 0.02, 3).conv(rng, 3, (3, 3), (0.03, -128), activation="RELU")
    chain.operator("SIN", (1, 4, 4, 3)).operator("COS", (1, 4, 4, 3))
    chain.conv(rng, 3, (1, 1), (0.03, -128), activation="RELU").operator("COS", (1, 4, 4, 3))
    with refusal(
        "SIN_1 (SIN): this operator of TFLite is not imported",
        "COS_2 (COS) and 1 more like it: this operator of TFLite is not imported",
    ):
        import_chain(chain)


SAME_NAMES = [{1: "a", 2: "a", 5: "a:2"}, {4: "a", 5: "a", 2: "a:5"}, {13: "a", 5: "a", 2: "a:5"}, {5: "a", 2: "a"}]
SAME_NAMES += [{2: "", 5: ":2"}, {5: "", 2: ":5", 4: ":5'"}]
NAMES_OF_IMPORTS = [{2: "t5/shape"}, {2: "t7/real"}, {15: "t5/shape"}]


@pytest.mark.sample(4)
@pytest.mark.parametrize("names", [*SAME_NAMES, *NAMES_OF_IMPORTS], ids=str)
def test_names_that_several_tensors_have(names):
    """Or that look like those which the import makes itself: a tensor is never taken for another one."""
    chain = small()
    expected = import_chain(chain).model
    for number, name in names.items():
        chain.tensors[number].name = name
    assert model_digest(import_chain(chain).model) == model_digest(expected)


def rounded(rng):
    """Layers that round twice beside one that doesn't."""
    chain = Chain((5, 6, 3), 0.02, 9).conv(rng, 4, (3, 3), (0.03, 7))
    chain.conv(rng, 5, (3, 3), (0.04, -3))
    return chain.dense(rng, 7, (0.05, 2))


def test_layers_that_round_twice_beside_one_that_does_not():
    imported = import_chain(rounded(np.random.default_rng(3)))
    assert [layer.rounding for layer in imported.model.network.layers[1::2]] == ["twice", "twice", "once"]
    images = np.random.default_rng(4).integers(-128, 128, (6, 5, 6, 3)).astype(np.int8)
    assert np.abs(scores(imported, images) - by_kernels(imported.source, images)).max() < 1e-5

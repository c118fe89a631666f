"""Forms of TFLite files that no exporter was seen to write: every value is the kernels'."""

from importlib.util import find_spec

import numpy as np
import pytest

from bitloom.golden.layers.conv import Conv
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_file
from bitloom.overlay.importers.verify import verify
from tests.board_data import file as data
from tests.errors import refusal, value_error

from .against import features
from .test_tflite import by_kernels, import_chain, scores
from .tflite_files import Chain, TfliteTensor
from .tflite_real import compare, kernels


def compared(chain, seed=1):
    """The imported chain, and what the kernels and golden make of images, the ends among them."""
    imported = import_chain(chain)
    verify(imported, 2)
    images = np.random.default_rng(seed).integers(-128, 128, (6, *chain.shape)).astype(np.int8)
    images[0], images[1] = -128, 127
    wanted = by_kernels(imported.source, images)
    if find_spec("ai_edge_litert") is not None:  # else the kernels that are written a second time must do
        assert np.array_equal(wanted, kernels(chain.bytes(), images)[-1].reshape(wanted.shape))
    return imported, wanted, scores(imported, images)


def check(chain):
    imported, wanted, got = compared(chain)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    assert np.abs(wanted - got).max() < 1e-5
    assert len(np.unique(wanted)) > 4
    return imported, wanted


@pytest.mark.parametrize(("activation", "ends"), [("RELU", (5, 19)), ("RELU6", (5, 19)), ("RELU_N1_TO_1", (-5, 15))])
def test_the_activation_of_a_sum(activation, ends):
    """It cuts values where the zero point isn't the lowest integer."""
    rng = np.random.default_rng(3)
    chain = Chain((4, 4, 2), 0.02, 3).conv(rng, 3, (1, 1), (0.3, -128), activation="RELU")
    chain.conv(rng, 3, (3, 3), (0.4, 0)).add(2 + 1, (0.1, 5), activation)
    _, wanted = check(chain)
    assert (wanted.min(), wanted.max()) == ends


def test_a_sum_of_maps_whose_lowest_integers_are_cut():
    rng = np.random.default_rng(4)
    chain = Chain((4, 4, 2), 0.02, 3).conv(rng, 3, (1, 1), (0.05, 5), activation="RELU")
    chain.conv(rng, 3, (3, 3), (0.04, -20), activation="RELU6").add(2 + 1, (0.1, -60))
    imported, _ = check(chain)
    assert [section.quantised.levels for section in imported.graph.sections] == [122, 147, 255]


def test_a_mean_of_both_signs_is_rounded_twice():
    rng = np.random.default_rng(5)
    chain = Chain((3, 5, 2), 0.02, 3).conv(rng, 4, (2, 2), (0.03, 7)).mean((0.02, -3), keep=True)
    imported, _ = check(chain.reshape(1, 4).dense(rng, 6, (0.05, 0)))
    assert imported.model.network.layers[3].rounding == "twice"


def test_one_weight_behind_pixels():
    """Divided by itself it is binary, but its map has more values than thermometers have bits."""
    rng = np.random.default_rng(6)
    imported, _ = check(Chain((4, 5, 1), 0.02, 3).conv(rng, 1, (1, 1), (0.01, 0)))
    rule = "the map behind it has 256 values, more than 63"
    assert imported.choice.costs["binary"] == f"CONV_2D_0: {rule}"


def test_the_input_is_reshaped_first():
    """As in micro_speech, whose input is a list of values."""
    rng = np.random.default_rng(7)
    chain = Chain((1, 1, 60), 0.02, 3).reshape(1, 5, 6, 2).conv(rng, 3, (3, 2), (0.03, -128), (2, 1), activation="RELU")
    imported, _ = check(chain)
    assert imported.model.network.input.shape == (5, 6, 2)


def test_what_the_end_only_reshapes_and_converts():
    """As in ST's classifiers: softmax, a reshape, and integers become real numbers."""
    rng = np.random.default_rng(8)
    chain = Chain((2, 2, 3), 0.02, 3).conv(rng, 5, (2, 2), (0.03, 9), same=False).softmax().reshape(1, 5)
    chain.operator("DEQUANTIZE", (1, 5), kept="FLOAT32")
    imported = import_chain(chain)
    assert imported.host.only.closing == ("Softmax",)
    verify(imported, 2)


def test_what_nobody_reads_is_left_out():
    """As the shapes that converters compute for a reshape which says its own."""
    rng = np.random.default_rng(9)
    chain = Chain((4, 4, 2), 0.02, 3).conv(rng, 3, (3, 3), (0.03, 9))
    here = chain.here
    chain.shape_of()
    chain.here = here
    check(chain.reshape(1, 48).dense(rng, 5, (0.1, 3)))


def test_an_operator_of_24_tensors_is_refused_by_its_name():
    chain = Chain((1, 6, 4), 0.02, 3)
    weight = chain.constant(np.ones((4, 4), np.int8), (0.1,))
    state = len(chain.tensors)
    chain.tensors.append(TfliteTensor("state", (1, 4), "INT8", (0.1,), (0,)))  # which nobody makes
    chain.tensors.append(TfliteTensor("unused", (0,), "INT8"))
    chain.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", (1, 6, 4), None, (*[weight] * 17, state, state, *[-1] * 4))
    lstm = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    rule = "this operator of TFLite is not imported; recurrent layers have no hardware: use convolutions"
    with refusal(f"{lstm}_0 ({lstm}): {rule}"):
        import_chain(chain.dense(np.random.default_rng(1), 5, (0.1, 3)))


@pytest.mark.parametrize("kind", [np.float32, np.uint8])
def test_weights_that_are_not_int8(kind):
    """Of floating point, and of TensorFlow 1's uint8: the line says what to do."""
    chain = Chain((3, 4, 2), 0.02, 3)
    constants = (chain.constant(np.ones((5, 1, 1, 2), kind), (0.1,)),)
    chain.operator("CONV_2D", (1, 3, 4, 5), (0.1, 3), constants, "Conv2DOptions")
    got = kind.__name__.upper()
    with refusal(f"CONV_2D_0 (CONV_2D): weights must be of type INT8, got {got}; quantise the network to int8"):
        import_chain(chain)


def test_too_many_tensors():
    chain = Chain((1, 1, 4), 0.02, 3)
    chain.operator("ADD_N", (1, 1, 1, 4), None, (0,) * 64)
    with value_error("ADD_N_0: must read and write at most 64 tensors each, got 65"):
        import_chain(chain)


def test_a_shape_that_the_file_computes():
    """Keras' Flatten for any number of images, of which the file states another size."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 3, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -128), activation="RELU").flatten()
    imported, _ = check(chain.dense(rng, 5, (0.05, 3)))
    assert imported.model.network.layers[-2].kind == "dense"


def test_a_shape_that_can_not_be_computed():
    rng = np.random.default_rng(7)
    chain = Chain((4, 3, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -128), activation="RELU").flatten()
    chain.tensors[chain.operators[2][1][1]].data = np.array([7], np.int32).tobytes()  # where the slice begins
    why = "must be of shapes that fit, got: index 7 is out of bounds for axis 0 with size 4"
    with refusal(f"STRIDED_SLICE_2 (STRIDED_SLICE): {why}"):
        import_chain(chain.dense(rng, 5, (0.05, 3)))


@pytest.mark.parametrize("axes", [(0, 2, 1, 3), (0, 3, 1, 2), (0, 1, 3, 2)])
def test_a_transpose_in_front_and_behind(axes):
    """As of files from PyTorch: in front of the first convolution, and in front of a dense layer."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 3, 5), 0.02, 3).transpose(*axes).conv(rng, 3, (3, 2), (0.03, -128), activation="RELU")
    chain.transpose(0, 3, 1, 2)
    check(chain.flat().dense(rng, 5, (0.05, 3)))


def test_a_transpose_of_images():
    """Rows may stand where images do for a while."""
    rng = np.random.default_rng(7)
    chain = Chain((2, 3, 5), 0.02, 3).transpose(1, 0, 2, 3)
    chain.operator("TANH", chain.now.shape, (1 / 128, 0)).transpose(1, 0, 3, 2)
    check(chain.conv(rng, 3, (3, 2), (0.03, -128)).reshape(1, 30).dense(rng, 5, (0.3, 3)))


def test_a_convolution_by_groups():
    rng = np.random.default_rng(7)
    chain = Chain((4, 3, 6), 0.02, 3).conv(rng, 4, (3, 2), (0.03, -128), activation="RELU", groups=2)
    imported, _ = check(chain.conv(rng, 6, (2, 2), (0.03, 9), groups=2).dense(rng, 5, (0.05, 3)))
    assert [layer.groups for layer in imported.model.network.layers if layer.kind == "grouped_conv"] == [2, 2]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("axes", "keep"), [((1,), False), ((2,), True), ((2, 1), False), ((-2, 1), True)])
@pytest.mark.parametrize("kind", ["MEAN", "REDUCE_MAX"])
def test_means_and_maxima_over_axes(axes, keep, kind):
    """Over rows, columns, or both."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 6, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -100))
    places = tuple(axis % 4 for axis in axes)
    chain.mean(None if kind == "REDUCE_MAX" else (0.02, -9), keep, places, kind)
    check(chain.flat().dense(rng, 5, (0.05, 3)))


def test_means_over_one_axis_after_another():
    """As in files from PyTorch, with channels first."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 6, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -100)).transpose(0, 3, 1, 2)
    check(chain.mean((0.02, -9), axes=(3,)).mean((0.02, 4), axes=(2,)).dense(rng, 5, (0.05, 3)))


@pytest.mark.parametrize("axes", [(1,), (2,), (1, 2)])
def test_maxima_of_the_input(axes):
    rng = np.random.default_rng(7)
    chain = Chain((4, 6, 2), 0.02, 3).mean(None, True, axes, "REDUCE_MAX")
    check(chain.conv(rng, 5, (1, 1), (0.03, -100)))


def test_a_mean_of_channels():
    chain = (
        Chain((4, 6, 2), 0.02, 3).conv(np.random.default_rng(7), 3, (3, 2), (0.03, -100)).mean((0.02, -9), axes=(3,))
    )
    rule = "means and maxima must be over all rows, all columns or both, of each channel for itself, got axes (3,)"
    with refusal(f"MEAN_1 (MEAN): {rule}"):
        import_chain(chain)


CONSTANTS = {
    "a product with channels": ("MUL", (-90, 3, 127), (0.011, 0), (0.017, -5), "NONE", False),
    "a product with one number": ("MUL", 77, (0.011, 0), (0.017, -5), "RELU", False),
    "a product with numbers below 0": ("MUL", (-90, -3, -127), (0.011, 0), (0.017, -5), "RELU6", True),
    "a product with 0": ("MUL", (-90, 0, 127), (0.011, 0), (0.017, -5), "NONE", False),
    "a product with numbers of 9 bits": ("MUL", (120, -100, 16), (0.0047, -111), (0.017, -5), "NONE", False),
    "a product with a number of 9 bits": ("MUL", 120, (0.0047, -111), (0.017, -5), "NONE", False),
    "a sum with channels": ("ADD", (-90, 3, 127), (0.011, -7), (0.037, -5), "NONE", False),
    "a sum with one number": ("ADD", -90, (0.011, -7), (0.037, -5), "RELU", True),
    "less a number": ("SUB", (-90, 3, 127), (0.011, -7), (0.037, -5), "NONE", False),
    "numbers less a map": ("SUB", (-90, 3, 127), (0.011, -7), (0.037, -5), "RELU", True),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CONSTANTS)
@pytest.mark.parametrize("where", ["input", "behind a convolution", "behind a sum", "before a pool", "end"])
def test_constants(name, where):
    """Products and sums of maps and constants, anywhere: at the input the host computes them."""
    kind, values, scale, grid, activation, first = CONSTANTS[name]
    rng = np.random.default_rng(7)
    chain = Chain((4, 5, 3), 0.02, 3)
    if where != "input":
        chain.conv(rng, 3, (3, 2), (0.0331, -20))
    if where == "behind a sum":
        before = chain.here
        chain.conv(rng, 3, (1, 2), (0.0517, 9)).add(before, (0.0413, 11))
    chain.with_constant(kind, values, scale, grid, activation, first)
    if where == "before a pool":
        chain.pool("MAX", (2, 2), (2, 1))
    if where != "end":
        chain.conv(rng, 4, (2, 2), (0.05, -3))
    check(chain)


@pytest.mark.sample(5)
@pytest.mark.parametrize(("kind", "value"), [("MAXIMUM", -30), ("MAXIMUM", 3), ("MINIMUM", 3)])
@pytest.mark.parametrize("where", ["input", "behind a convolution", "end"])
def test_the_larger_and_the_smaller_one(kind, value, where):
    """Of a map and a number that its kernel compares as integers, of one scale."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 5, 3), 0.0331, -20)
    if where != "input":
        chain.conv(rng, 3, (3, 2), (0.0331, -20))
    chain.with_constant(kind, value, (0.0331, -20), (0.0331, -20), first=kind == "MINIMUM")
    if where != "end":
        chain.conv(rng, 4, (2, 2), (0.05, -3))
    check(chain)


def test_other_scales_are_not_compared():
    chain = Chain((4, 5, 3), 0.02, 3).conv(np.random.default_rng(7), 3, (3, 2), (0.0331, -20))
    chain.with_constant("MAXIMUM", 3, (0.0331, -21), (0.0331, -20))
    rule = "both inputs and the result must have the same scale and zero point"
    with refusal(f"MAXIMUM_1 (MAXIMUM): {rule}"):
        import_chain(chain)


def test_constants_one_after_another():
    """As batch normalisation is written behind an activation; the map before has another reader."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 5, 3), 0.02, 3).conv(rng, 3, (3, 2), (0.0331, -128), activation="RELU")
    before = chain.here
    chain.with_constant("MUL", (-90, 3, 127), (0.011, 0), (0.017, -5), "NONE")
    chain.with_constant("ADD", (-90, 3, 127), (0.011, -7), (0.037, -128), "RELU")
    check(chain.conv(rng, 3, (2, 2), (0.0517, -3)).add(before, (0.0413, 5)))


def test_a_sum_with_a_number_leaves_the_rule_of_the_convolution():
    """As Keras' Conv1DTranspose has its bias: no line has what rounds twice and is then moved by a number, so that a
    copy adds it."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 5, 64), 0.02, 3).conv(rng, 1, (3, 3), (0.45, 3))
    imported, _ = check(chain.with_constant("ADD", 60, (0.0225, 5), (0.45, 4)))
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


def test_a_constant_that_is_a_map():
    chain = Chain((4, 5, 3), 0.02, 3).conv(np.random.default_rng(7), 3, (3, 2), (0.03, -20))
    chain.with_constant("ADD", np.zeros((1, 4, 5, 3)), (0.011, -7), (0.037, -5))
    rule = "a constant must be of type INT8 and one number, or one for each of 3 channels"
    with refusal(f"ADD_1 (ADD): {rule}, got int8 of shape (1, 4, 5, 3)"):
        import_chain(chain)


@pytest.mark.parametrize("kind", ["RELU", "RELU6", "QUANTIZE"])
def test_another_scale_alone(kind):
    """An activation as an operator of its own, or none, behind a sum and in front of weights."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 5, 3), 0.02, 3).conv(rng, 3, (3, 2), (0.0331, -20))
    before = chain.here
    chain.conv(rng, 3, (1, 2), (0.0517, 9)).add(before, (0.0413, 11)).operator(kind, chain.now.shape, (0.041, -7))
    check(chain.conv(rng, 4, (2, 2), (0.05, -3)))


@pytest.mark.parametrize("activation", ["RELU", "NONE"])
@pytest.mark.parametrize("kind", ["MAX", "AVERAGE"])
def test_a_pad_in_front_of_a_pool(kind, activation):
    """A maximum takes it where no value is below 0; else the padded map is made first."""
    rng = np.random.default_rng(7)
    zero = -128 if activation == "RELU" else 5
    chain = Chain((6, 5, 3), 0.02, 3).conv(rng, 4, (3, 2), (0.03, zero), activation=activation).pad((1, 0), (1, 2))
    imported, _ = check(chain.pool(kind, (3, 3), (2, 2)).conv(rng, 4, (2, 2), (0.05, -3)))
    kinds = [layer.kind for layer in imported.model.network.layers[2:4]]
    assert kinds[0] == ("max_pool" if (kind, activation) == ("MAX", "RELU") else "depthwise_conv")


def test_a_pad_with_the_lowest_value():
    """As converters write the padding of PyTorch's MaxPool2d: the pool takes it."""
    rng = np.random.default_rng(7)
    chain = Chain((6, 5, 3), 0.02, 3).conv(rng, 4, (3, 2), (0.03, 5)).pad((1, 0), (1, 2), number=-128)
    imported, _ = check(chain.pool("MAX", (3, 3), (2, 2)).conv(rng, 4, (2, 2), (0.05, -3)))
    assert [layer.kind for layer in imported.model.network.layers[2:4]] == ["max_pool", "conv"]
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}


def test_a_pad_with_another_scale():
    chain = Chain((6, 5, 3), 0.02, 3).pad((1, 0), (1, 2), number=-128)
    chain.tensors[-2].scale = (0.03,)
    rule = "the number around a map must be one, with the map's scale and zero point"
    with refusal(f"PADV2_0 (PADV2): {rule}"):
        import_chain(chain.conv(np.random.default_rng(7), 4, (3, 2), (0.03, 5)))


def test_a_pad_of_a_map_without_rows():
    """As Keras' causal Conv1D has it: the convolution takes it."""
    rng = np.random.default_rng(7)
    chain = Chain((1, 9, 3), 0.02, 3).reshape(1, 9, 3)
    widths = chain.constant(np.array([(0, 0), (2, 0), (0, 0)], np.int32))
    chain.operator("PAD", (1, 11, 3), None, (widths,)).reshape(1, 1, 11, 3)
    imported, _ = check(chain.conv(rng, 4, (1, 3), (0.03, -128), same=False, activation="RELU"))
    assert [layer.kind for layer in imported.model.network.layers] == ["conv", "requantise"]
    assert imported.model.network.layers[0].padding == (0, 2, 0, 0)


def test_a_pad_that_nothing_takes():
    """In front of a dense layer, of a sum, and at the end."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 3, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.0331, 9)).pad((1, 0), (0, 2))
    before = chain.here
    chain.conv(rng, 3, (3, 2), (0.0517, 9)).add(before, (0.0413, 2))
    check(chain.pad((0, 1), (1, 0)).reshape(1, 6 * 6 * 3).dense(rng, 5, (0.05, 3)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("join", ["add", "concat"])
def test_several_operators_read_the_input(join, real):
    """Weights copy it first."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 5, 3), 0.0331, 3, kind="FLOAT32" if real else "INT8")
    if real:
        chain.operator("QUANTIZE", (1, 4, 5, 3), (0.0331, 3))
    fork = chain.here
    chain.conv(rng, 3, (3, 2), (0.0517, 9) if join == "add" else (0.0331, 3))
    if join == "add":
        chain.add(fork, (0.0413, 2))
    else:
        chain.concat(fork)
    chain.conv(rng, 4, (2, 2), (0.05, -3))
    imported = import_chain(chain)
    verify(imported, 2)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    assert imported.model.network.layers[0].kind == "depthwise_conv"
    assert imported.emitted.built[0].nodes == (f"CONV_2D_{int(real)}",)  # the first one that reads the input
    if not real:
        check(chain)


def constants(rng):
    """A chain of operators that become steps of the importer's own."""
    chain = Chain((6, 5, 3), 0.02, 3).conv(rng, 4, (3, 2), (0.03, 5), groups=1).pad((1, 0), (1, 1))
    chain.pool("MAX", (3, 3), (1, 2)).with_constant("MUL", (-90, 3, 127, 20), (0.011, 0), (0.017, -5))
    chain.with_constant("ADD", (-90, 3, 127, -9), (0.011, -7), (0.037, -128), "RELU")
    return chain.mean((0.02, -9), axes=(2,)).mean((0.02, 4), axes=(1,)).dense(rng, 5, (0.05, 3))


def readers(rng):
    """An input that several operators read, beside a convolution by groups, a padded map that a sum reads, and maxima
    over one axis."""
    chain = Chain((4, 5, 4), 0.0331, 3)
    fork = chain.here
    chain.conv(rng, 4, (3, 2), (0.0331, 3), groups=2).concat(fork).conv(rng, 3, (1, 1), (0.0331, -20)).pad(
        (1, 0), (0, 1)
    )
    before = chain.here
    chain.conv(rng, 3, (3, 2), (0.0517, 9)).add(before, (0.0413, 2)).mean(None, False, (1,), "REDUCE_MAX")
    return chain.reshape(1, 18).dense(rng, 5, (0.05, 3))


@pytest.mark.parametrize("network", [constants, readers])
def test_several_forms_in_a_network(network):
    check(network(np.random.default_rng(7)))


REAL = {
    "emnist_byclass_stmnist_v1_int8": None,
    "flowers_fdmobilenet_0.25_128_int8": None,
    "hello_world_int8": None,
    "micro_speech_quantized": None,
    "yamnet_256_64x96_yamnet_256_64x96_int8": None,
    "model_magic_wand": None,
    "person_detect": None,
    "vww": None,
    "model_mobilenetv2_160_035": None,
    "mobility_v1_gmp_wl_24_int8": None,
    "flowers_squeezenet_v1.0_128_int8": None,
    "esc10_miniresnet_1stacks_64x50_int8": None,
    "person_mobilenet_v2_0.35_128_int8": None,
    "str_ww_ref_model": None,
    "esc10_miniresnetv2_1stacks_64x50_int8": None,
    "COCO_ssd_mobilenet_v1_025_192_int8": None,
    "hps_model_2022_01_05_74ops": None,
    "keyword_scrambled_8bit": "input :52: must be of type INT8, UINT8, FLOAT32, got INT16; convert it with ",
    "presence_201k_96ops": None,
    "trained_lstm_int8": "UNIDIRECTIONAL_SEQUENCE_LSTM_0 (UNIDIRECTIONAL_SEQUENCE_LSTM): this operator of TFLite ",
}
"""Networks as people have them -> what the refusal begins with; None for those that are imported."""


@pytest.mark.slow  # some take 10 s
@pytest.mark.parametrize(("name", "refusal"), REAL.items())
def test_networks_as_people_have_them(name, refusal):
    path = data(f"tflite_real/{name}.tflite")
    if refusal is None:
        imported = import_file(path)
        assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
        pytest.importorskip("ai_edge_litert", reason="ai-edge-litert, whose kernels the maps equal, is not installed")
        compared, differ = compare(path, imported)
        assert compared > 50
        assert differ == 0
        return
    with pytest.raises(ValueError, match=r"must|not imported") as refused:
        import_file(path)
    assert str(refused.value).removeprefix(f"{path}: ").startswith(refusal)


@pytest.mark.parametrize("shape", [(4, 6, 3), (24, 3), (1, 1, 72)])
def test_a_dense_layer_of_a_map(shape):
    """Of the last axis alone, as a convolution of 1 x 1; between convolutions, and behind a transpose."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 6, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -100)).reshape(1, *shape)
    chain.dense(rng, 5, (0.06, 4), "RELU", keep=True)
    if len(shape) == 2:
        chain.transpose(0, 2, 1).transpose(0, 2, 1).dense(rng, 4, (0.07, -7), keep=True)
    imported, _ = check(chain.flat().dense(rng, 5, (0.05, 3)))
    assert imported.model.network.layers[2].kind == ("dense" if shape == (1, 1, 72) else "conv")


@pytest.mark.parametrize("widths", [((1, 1), (2, 0)), ((0, 3), (1, 2))])
def test_a_map_with_its_mirror_image_around(widths):
    """As style transfer and image restoration have it."""
    check(mirrored(np.random.default_rng(7), widths))


def mirrored(rng, widths):
    chain = Chain((5, 6, 2), 0.02, 3).conv(rng, 3, (3, 3), (0.03, -100))
    sides = np.array([(0, 0), *widths, (0, 0)], np.int32)
    shape = tuple(int(size + sum(pair)) for size, pair in zip(chain.now.shape, sides))
    chain.operator("MIRROR_PAD", shape, None, (chain.constant(sides),), "MirrorPadOptions", Mode=0)
    return chain.conv(rng, 2, (3, 3), (0.1, 7), same=False).flat().dense(rng, 5, (0.3, 3))


ASIDE = {
    "a convolution": lambda rng, chain: chain.conv(rng, 3, (1, 3), (0.06, 4), (1, 2)),
    "a padded convolution": lambda rng, chain: chain.conv(rng, 3, (1, 4), (0.06, 4)),
    "a depthwise convolution": lambda rng, chain: chain.conv(rng, 3, (1, 3), (0.06, 4), depth=1),
    "a max pool": lambda rng, chain: chain.pool("MAX", (1, 3), (1, 2), same=True),
    "an average pool": lambda rng, chain: chain.pool("AVERAGE", (1, 3), (1, 3)),
    "an average pool that lies halfway": lambda rng, chain: chain.pool("AVERAGE", (1, 2), (1, 2)),
}


def aside(rng, name):
    """Columns are left alone of a map with one column, as where a convolution reads all sensors at each time."""
    chain = Chain((13, 6, 2), 0.02, 3).conv(rng, 4, (3, 6), (0.03, -100), same=False).reshape(1, 1, 11, 4)
    return ASIDE[name](rng, chain).conv(rng, 2, (1, 2), (0.1, 7)).flat().dense(rng, 5, (0.3, 3))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ASIDE)
def test_a_map_on_its_side(name):
    imported, _ = check(aside(np.random.default_rng(7), name))
    sizes = [layer.kernel for layer in imported.model.network.layers if hasattr(layer, "kernel")]
    assert all(columns == 1 for _, columns in sizes[1:])


def keras_dense(rng, chain, outputs, grid, activation="NONE"):
    """Keras' Dense of the last axis: its places become images for one operator, and its bias is a constant."""
    *places, inputs = chain.now.shape
    chain.reshape(int(np.prod(places)), inputs).dense(rng, outputs, grid, bias=False, inputs=inputs)
    chain.reshape(*places, outputs)
    return chain.with_constant("ADD", rng.integers(-128, 128, outputs), (0.01, 7), grid, activation)


@pytest.mark.parametrize("shape", [(4, 6, 3), (24, 3)])
def test_a_dense_layer_whose_places_come_first(shape):
    """As Keras' Dense of a map: what convolutions read behind it has its rows and columns again."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 6, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -100)).reshape(1, *shape)
    keras_dense(rng, keras_dense(rng, chain, 5, (0.06, 4), "RELU"), 3, (0.09, -7)).reshape(1, 4, 6, 3)
    imported, _ = check(chain.conv(rng, 3, (3, 2), (0.2, -10)).reshape(1, 72).dense(rng, 5, (0.3, 3)))
    assert [layer.kind for layer in imported.model.network.layers if layer.kind in ("conv", "dense")][-1] == "dense"


def places_leave(rng):
    """The file's output has no axis of images then; activations and other orders of the values may come before."""
    chain = Chain((4, 6, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -100)).dense(rng, 5, (0.06, 4), inputs=3)
    chain.operator("TANH", chain.now.shape, (1 / 128, 0)).dense(rng, 4, (0.06, 4), "RELU", inputs=5)
    chain.with_constant("MUL", rng.integers(-128, 128, 4), (0.01, 7), (0.01, 0)).transpose(1, 0)
    return chain.operator("QUANTIZE", chain.now.shape, (0.02, 3))


def test_a_dense_layer_whose_places_leave():
    imported, _ = check(places_leave(np.random.default_rng(7)))
    assert imported.host.only.shape == (4, 24)


def test_places_come_first_where_images_must():
    rng = np.random.default_rng(7)
    chain = Chain((4, 6, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -100)).reshape(2, 2, 6, 3)
    why = "the number of images must be the first axis of what it reads, got shape (2, 2, 6, 3)"
    with refusal(f"CONV_2D_2 (CONV_2D): {why}"):
        import_chain(chain.conv(rng, 3, (3, 2), (0.2, -10)))


def test_a_dense_layer_that_does_not_fit():
    rng = np.random.default_rng(7)
    chain = Chain((4, 6, 2), 0.02, 3).dense(rng, 5, (0.06, 4), inputs=5)
    why = "weights must read the values of shape (1, 4, 6, 2), or of each place, got 5 inputs"
    with refusal(f"FULLY_CONNECTED_0 (FULLY_CONNECTED): {why}"):
        import_chain(chain)


def test_a_dense_layer_of_the_values_of_channels_mixed():
    """As an MLP mixer has it: of the positions of each channel. Golden's maps have their channels last."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 6, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -100)).reshape(1, 24, 3).transpose(0, 2, 1)
    why = "the map must have its channels, rows and columns in ONNX's order, got a reshaped one"
    with refusal(f"FULLY_CONNECTED_3 (FULLY_CONNECTED): {why}"):
        import_chain(chain.dense(rng, 5, (0.02, 4), keep=True).reshape(1, 15).dense(rng, 5, (0.05, 3)))


@pytest.mark.parametrize(
    ("block", "sides", "crops", "depth"),
    [
        ((2, 2), ((0, 0), (0, 1)), ((0, 0), (0, 1)), 0),
        ((2, 3), ((2, 2), (3, 5)), ((0, 0), (0, 2)), 0),
        ((2, 2), ((2, 2), (2, 3)), ((0, 0), (1, 0)), 1),
        ((1, 2), ((0, 0), (1, 0)), ((0, 0), (0, 0)), 0),
    ],
)
def test_a_dilated_convolution_that_takes_maps_apart(block, sides, crops, depth):
    """As TensorFlow writes it: SPACE_TO_BATCH_ND, a plain convolution, BATCH_TO_SPACE_ND."""
    rng = np.random.default_rng(7)
    chain = Chain((8, 7, 2), 0.02, 3).conv(rng, 3, (1, 1), (0.03, -100))
    chain.apart("SPACE_TO_BATCH_ND", block, sides)
    chain.conv(rng, 4, (3, 2) if block[0] > 1 else (1, 2), (0.03, 9), same=False, activation="RELU6", depth=depth)
    chain.apart("BATCH_TO_SPACE_ND", block, crops)
    imported, _ = check(chain.flat().dense(rng, 5, (0.05, 3)))
    dilations = [layer.dilation for layer in imported.model.network.layers if isinstance(layer, Conv)]
    assert block in dilations


@pytest.mark.parametrize(
    ("block", "sides", "crops", "depth"),
    [
        (2, (4, 0), (0, 0), 0),
        (4, (4, 4), (0, 2), 0),
        (3, (3, 7), (0, 0), 1),
    ],
)
def test_a_dilated_convolution_of_a_map_without_rows(block, sides, crops, depth):
    """As Keras' Conv1D is written: the parts of the map get a row each, and lose it behind the convolution."""
    rng = np.random.default_rng(7)
    chain = Chain((20, 2), 0.02, 3).apart("SPACE_TO_BATCH_ND", (block,), (sides,))
    chain.reshape(block, 1, *chain.now.shape[1:])
    chain.conv(rng, 4, (1, 3), (0.03, 9), same=False, activation="RELU6", depth=depth)
    chain.reshape(block, *chain.now.shape[2:]).apart("BATCH_TO_SPACE_ND", (block,), (crops,))
    imported, _ = check(chain.flat().dense(rng, 5, (0.05, 3)))
    dilations = [layer.dilation for layer in imported.model.network.layers if isinstance(layer, Conv)]
    assert (1, block) in dilations


@pytest.mark.parametrize("shape", [(2, 12, 1, 2), (2, 1, 6, 4)])
def test_parts_of_a_map_without_rows_that_become_others(shape):
    """Only what gives each part one row is part of a dilated convolution."""
    rng = np.random.default_rng(7)
    chain = Chain((20, 2), 0.02, 3).apart("SPACE_TO_BATCH_ND", (2,), ((4, 0),)).reshape(*shape)
    chain.conv(rng, 4, (1, 1), (0.03, 9), same=False).reshape(2, 12 if shape[1] > 1 else 6, 4)
    chain.apart("BATCH_TO_SPACE_ND", (2,), ((0, 0),))
    with pytest.raises(ImportRefused) as refused:
        import_chain(chain.flat().dense(rng, 5, (0.05, 3)))
    rule = "this operator of TFLite is not imported"
    assert refused.value.lines[0] == f"SPACE_TO_BATCH_ND_0 (SPACE_TO_BATCH_ND): {rule}"


def test_maps_that_are_taken_apart_otherwise():
    rng = np.random.default_rng(7)
    chain = Chain((8, 8, 2), 0.02, 3).conv(rng, 3, (1, 1), (0.03, -100))
    chain.apart("SPACE_TO_BATCH_ND", (2, 2), ((0, 0), (0, 0))).conv(rng, 3, (3, 3), (0.03, 9), same=True)
    chain.apart("BATCH_TO_SPACE_ND", (2, 2), ((0, 0), (0, 0)))
    with pytest.raises(ImportRefused) as refused:
        import_chain(chain.flat().dense(rng, 5, (0.05, 3)))
    rule = "this operator of TFLite is not imported"
    assert refused.value.lines[0] == f"SPACE_TO_BATCH_ND_1 (SPACE_TO_BATCH_ND): {rule}"


def test_a_function_behind_a_last_concatenation_in_several_orders():
    """Of each map in front, whatever orders of the values lie between."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 6, 2), 0.02, 3)
    first = chain.conv(rng, 2, (1, 1), (0.03, -10)).here
    chain.here = 0
    chain.conv(rng, 3, (3, 2), (0.03, -10)).concat(first).reshape(2, 1, 60).reshape(1, 120)
    imported = import_chain(chain.operator("LOGISTIC", chain.now.shape, (1 / 256, -128)))
    verify(imported, 2)
    images = rng.integers(-128, 128, (6, 4, 6, 2)).astype(np.int8)
    got = imported.host.only.closed(imported.model.forward(features(imported, images)))
    np.testing.assert_allclose(got, by_kernels(imported.source, images), atol=1e-6)

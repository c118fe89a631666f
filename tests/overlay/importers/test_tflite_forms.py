"""Forms of TFLite files that no exporter was seen to write, and random ones: every value is the kernels'."""

import numpy as np
import pytest

from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_file
from bitloom.overlay.importers.verify import verify
from tests.board_data import file as data
from tests.errors import value_error

from .test_tflite import by_kernels, imported, scores
from .tflite_files import Chain, Tensor
from .tflite_real import compare

ACTIVATIONS = ("NONE", "NONE", "RELU", "RELU6", "RELU_N1_TO_1")


def compared(chain, seed=1):
    """The imported chain, and what the kernels and golden make of images, the ends among them."""
    made = imported(chain)
    verify(made, 2)
    images = np.random.default_rng(seed).integers(-128, 128, (6, *chain.shape)).astype(np.int8)
    images[0], images[1] = -128, 127
    return made, by_kernels(made.source, images), scores(made, images)


def check(chain):
    made, wanted, got = compared(chain)
    assert {built.wrong for built in made.emitted.built} == {(0, 0)}
    assert np.abs(wanted - got).max() < 1e-5
    assert len(np.unique(wanted)) > 4
    return made, wanted


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
    made, _ = check(chain)
    assert [section.quantised.levels for section in made.graph.sections] == [122, 147, 255]


def test_a_mean_of_both_signs_is_rounded_twice():
    rng = np.random.default_rng(5)
    chain = Chain((3, 5, 2), 0.02, 3).conv(rng, 4, (2, 2), (0.03, 7)).mean((0.02, -3), keep=True)
    made, _ = check(chain.reshape(1, 4).dense(rng, 6, (0.05, 0)))
    assert made.model.network.layers[3].rounding == "twice"


def test_one_weight_behind_pixels():
    """Divided by itself it is binary, but its map has more values than thermometers have bits."""
    rng = np.random.default_rng(6)
    made, _ = check(Chain((4, 5, 1), 0.02, 3).conv(rng, 1, (1, 1), (0.01, 0)))
    rule = "the map behind it has 256 values, more than 63"
    assert made.choice.costs["binary"] == f"CONV_2D_0: {rule}"


def test_the_input_is_reshaped_first():
    """As in micro_speech, whose input is a list of values."""
    rng = np.random.default_rng(7)
    chain = Chain((1, 1, 60), 0.02, 3).reshape(1, 5, 6, 2).conv(rng, 3, (3, 2), (0.03, -128), (2, 1), activation="RELU")
    made, _ = check(chain)
    assert made.model.network.input.shape == (5, 6, 2)


def test_what_the_end_only_reshapes_and_converts():
    """As in ST's classifiers: softmax, a reshape, and integers become real numbers."""
    rng = np.random.default_rng(8)
    chain = Chain((2, 2, 3), 0.02, 3).conv(rng, 5, (2, 2), (0.03, 9), same=False).softmax().reshape(1, 5)
    chain.operator("DEQUANTIZE", (1, 5), kept="FLOAT32")
    made = imported(chain)
    assert made.host.closing == ("Softmax",)
    verify(made, 2)


def test_what_nobody_reads_is_left_out():
    """As the shapes that converters compute for a reshape which says its own."""
    rng = np.random.default_rng(9)
    chain = Chain((4, 4, 2), 0.02, 3).conv(rng, 3, (3, 3), (0.03, 9))
    here = chain.here
    chain.operator("SHAPE", (4,))
    chain.here = here
    check(chain.reshape(1, 48).dense(rng, 5, (0.1, 3)))


def test_an_operator_of_24_tensors_is_refused_by_its_name():
    chain = Chain((1, 6, 4), 0.02, 3)
    weight = chain.constant(np.ones((4, 4), np.int8), (0.1,))
    state = len(chain.tensors)
    chain.tensors.append(Tensor("state", (1, 4), "INT8", (0.1,), (0,)))  # which nobody makes
    chain.tensors.append(Tensor("unused", (0,), "INT8"))
    chain.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", (1, 6, 4), None, (*[weight] * 17, state, state, *[-1] * 4))
    with pytest.raises(ImportRefused) as refused:
        imported(chain.dense(np.random.default_rng(1), 5, (0.1, 3)))
    lstm = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    rule = "this operator of TFLite is not imported; recurrent layers have no hardware: use convolutions"
    assert refused.value.lines == (f"{lstm}_0 ({lstm}): {rule}",)


def test_too_many_tensors():
    chain = Chain((1, 1, 4), 0.02, 3)
    chain.operator("ADD_N", (1, 1, 1, 4), None, (0,) * 64)
    with value_error("ADD_N_0: must read and write at most 64 tensors each, got 65"):
        imported(chain)


def test_a_shape_that_the_file_computes():
    """Keras' Flatten for any number of images, of which the file states another size."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 3, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -128), activation="RELU").flatten()
    made, _ = check(chain.dense(rng, 5, (0.05, 3)))
    assert made.model.network.layers[-2].kind == "dense"


def test_a_shape_that_can_not_be_computed():
    rng = np.random.default_rng(7)
    chain = Chain((4, 3, 2), 0.02, 3).conv(rng, 3, (3, 2), (0.03, -128), activation="RELU").flatten()
    chain.tensors[chain.operators[2][1][1]].data = np.array([7], np.int32).tobytes()  # where the slice begins
    with pytest.raises(ImportRefused) as refused:
        imported(chain.dense(rng, 5, (0.05, 3)))
    why = "must be of shapes that fit, got: index 7 is out of bounds for axis 0 with size 4"
    assert refused.value.lines == (f"STRIDED_SLICE_2 (STRIDED_SLICE): {why}",)


@pytest.mark.parametrize("axes", [(0, 2, 1, 3), (0, 3, 1, 2), (0, 1, 3, 2)])
def test_a_transpose_in_front_and_behind(axes):
    """As of files from PyTorch: in front of the first convolution, and in front of a dense layer."""
    rng = np.random.default_rng(7)
    chain = Chain((4, 3, 5), 0.02, 3).transpose(*axes).conv(rng, 3, (3, 2), (0.03, -128), activation="RELU")
    chain.transpose(0, 3, 1, 2)
    check(chain.reshape(1, int(np.prod(chain.now.shape))).dense(rng, 5, (0.05, 3)))


def test_a_transpose_of_images():
    chain = Chain((1, 3, 5), 0.02, 3).transpose(1, 0, 2, 3).conv(np.random.default_rng(7), 3, (3, 2), (0.03, -128))
    with pytest.raises(ImportRefused) as refused:
        imported(chain)
    why = "the axes of (1, 1, 3, 5) must change places behind the number of images, got [1, 0, 2, 3]"
    assert refused.value.lines == (f"TRANSPOSE_0 (TRANSPOSE): {why}",)


def test_a_convolution_by_groups():
    rng = np.random.default_rng(7)
    chain = Chain((4, 3, 6), 0.02, 3).conv(rng, 4, (3, 2), (0.03, -128), activation="RELU", groups=2)
    made, _ = check(chain.conv(rng, 6, (2, 2), (0.03, 9), groups=2).dense(rng, 5, (0.05, 3)))
    assert [layer.groups for layer in made.model.network.layers if layer.kind == "grouped_conv"] == [2, 2]


REAL = {
    "emnist_byclass_stmnist_v1_int8": None,
    "flowers_fdmobilenet_0.25_128_int8": None,
    "hello_world_int8": None,
    "micro_speech_quantized": None,
    "yamnet_256_64x96_yamnet_256_64x96_int8": None,
    "model_magic_wand": None,
    "person_detect": None,
    "person_mobilenet_v2_0.35_128_int8": None,
    "str_ww_ref_model": None,
    "COCO_ssd_mobilenet_v1_025_192_int8": "must have one output, got 3; convert a network with one alone",
    "esc10_miniresnet_1stacks_64x50_int8": "MAX_POOL_2D_3 (MAX_POOL_2D): a padded map must be read by a convolution; ",
    "esc10_miniresnetv2_1stacks_64x50_int8": "MUL_4 (MUL) and 2 more like it: this operator of TFLite ",
    "flowers_squeezenet_v1.0_128_int8": "MUL_4 (MUL) and 7 more like it: this operator of TFLite is not imported; ",
    "hps_model_2022_01_05_74ops": "STRIDED_SLICE_1 (STRIDED_SLICE) and 7 more like it: this operator of TFLite ",
    "keyword_scrambled_8bit": "input :52: must be of type INT8, UINT8, FLOAT32, got INT16; convert it with ",
    "mobility_v1_gmp_wl_24_int8": "REDUCE_MAX_3 (REDUCE_MAX): this operator of TFLite is not imported; use ",
    "model_mobilenetv2_160_035": "MUL_0 (MUL): this operator of TFLite is not imported; ",
    "presence_201k_96ops": "STRIDED_SLICE_1 (STRIDED_SLICE) and 10 more like it: this operator of TFLite ",
    "trained_lstm_int8": "UNIDIRECTIONAL_SEQUENCE_LSTM_0 (UNIDIRECTIONAL_SEQUENCE_LSTM): this operator of TFLite ",
    "vww": "MEAN_59 (MEAN): the mean must be over rows and columns, axes 1 and 2, got [3] and 1 more",
}
"""Networks as people have them -> what the refusal begins with; None for those that are imported."""


@pytest.mark.slow  # some take 10 s
@pytest.mark.parametrize(("name", "refusal"), REAL.items())
def test_networks_as_people_have_them(name, refusal):
    path = data(f"tflite_real/{name}.tflite")
    if refusal is None:
        made = import_file(path)
        assert {built.wrong for built in made.emitted.built} == {(0, 0)}
        pytest.importorskip("ai_edge_litert", reason="ai-edge-litert, whose kernels the maps equal, is not installed")
        compared, differ = compare(path, made)
        assert compared > 50
        assert differ == 0
        return
    with pytest.raises(ValueError, match=r"must|not imported") as refused:
        import_file(path)
    assert str(refused.value).removeprefix(f"{path}: ").startswith(refusal)


def with_layer(chain, rng):
    """The chain with a random layer more."""
    (rows, columns, channels), activation = chain.now.shape[1:4], str(rng.choice(ACTIVATIONS))
    low = activation != "NONE" and rng.random() < 0.7
    made = float(rng.choice([0.02, 0.05, 0.3])), -128 if low else int(rng.integers(-100, 60))
    kernel = int(rng.integers(1, min(3, rows) + 1)), int(rng.integers(1, min(3, columns) + 1))
    strides, same = (int(rng.integers(1, 3)), int(rng.integers(1, 3))), bool(rng.integers(0, 2))
    kind = str(rng.choice(["conv", "depthwise", "max", "average", "pad", "add", "mean"]))
    if kind == "conv":
        return chain.conv(rng, int(rng.integers(1, 6)), kernel, made, strides, same, activation)
    if kind == "depthwise":
        return chain.conv(rng, 0, kernel, made, strides, same, activation, depth=int(rng.integers(1, 3)))
    if kind == "max":
        return chain.pool("MAX", kernel, strides, same)
    if kind == "average":
        return chain.pool("AVERAGE", (rows, columns))
    if kind == "mean":
        return chain.mean(made, keep=True)
    if kind == "pad":
        return chain.pad((1, 0), (0, 1)).conv(rng, 3, (2, 2), made, (1, 1), False, activation)
    fork = chain.here
    return chain.conv(rng, channels, kernel, made, activation=activation).add(fork, (0.1, -20), activation)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(120))
def test_random_networks(seed):
    """Exact, or as far off as is told; some have activations that leave no two integers, or maps too small."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 8)), int(rng.integers(1, 8)), int(rng.integers(1, 5))
    chain = Chain(size, float(rng.choice([0.02, 0.5, 1 / 255])), int(rng.integers(-128, 128)))
    chain.conv(rng, 3, (1, 1), (0.05, -128), activation="RELU")
    for _ in range(rng.integers(1, 4)):
        with_layer(chain, rng)
    if rng.random() < 0.7:
        chain.reshape(1, int(np.prod(chain.now.shape))).dense(rng, 5, (0.1, int(rng.integers(-60, 60))))
    try:
        made, wanted, got = compared(chain)
    except ImportRefused:
        return
    if not any(built.wrong[0] for built in made.emitted.built):
        assert np.abs(wanted - got).max() < 1e-5
    assert max(built.wrong[1] for built in made.emitted.built) <= 1

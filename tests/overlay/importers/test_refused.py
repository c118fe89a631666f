"""Refusals of imports are whole lines, of all nodes at once, each with what to do instead."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden import file
from bitloom.golden.host import file as hosts
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_file, import_graph, parse_input
from bitloom.overlay.importers.onnx_file import to_graph
from tests.commands import call
from tests.errors import refusal, value_error
from tests.host_outputs import with_scores

from .against import import_chain
from .onnx_files import QONNX, Chain, helper, numpy_helper


def begun(shape=(2, 6, 6)):
    return Chain(shape).quant(0.5, 3).node("Conv", np.ones((4, shape[0], 3, 3), np.float32))


def of_integers():
    chain = begun()
    return chain.node("QuantizeLinear", np.float32(1), chain.constant(3, np.uint8))


def lines(chain, spec=None, engine="auto"):
    with pytest.raises(ImportRefused) as refused:
        import_chain(chain, spec, engine)
    return list(refused.value.lines)


def two_maps(chain, op, **attributes):
    """An operator on the map of now and the one of before."""
    before = chain.nodes[-1].input[0]
    chain.nodes.append(helper.make_node(op, [chain.here, before], ["joined"], f"{op}_1", **attributes))
    chain.here = "joined"
    return chain


def by_itself(chain, op, *others):
    """An operator on the map of now, the same map, and others."""
    return chain.node(op, chain.here, *others)


def joined_with(chain, op, between):
    """An operator on what ``between`` makes of the map of now, and that map itself."""
    before = chain.here
    between(chain)
    chain.nodes.append(helper.make_node(op, [chain.here, before], [f"with {before}, {op}"], f"{op}_1"))
    chain.here = chain.nodes[-1].output[0]
    return chain


MAPS = (
    "one input must be a map and the others constants, got 2 maps; "
    "what joins maps must be a sum, a difference, a product, TFLite's maximum or minimum of two, "
    "a concatenation, or a function of one map"
)
SUMS = "reads must be quantised, got sums of weights; quantise before it"
SLICE = [np.int64([number]) for number in (0, 3, 2, 1)]
"""The first three rows."""
ONE = {
    "Sub of maps": (
        lambda: two_maps(begun().quant(1, 3).node("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), "Sub"),
        "Sub_1 (Sub): a difference of two maps must be quantised; quantise before the next layer",
    ),
    "Max of maps": (
        lambda: two_maps(begun().quant(1, 3).node("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), "Max"),
        f"Max_1 (Max): {MAPS}",
    ),
    "Sub of sums": (lambda: two_maps(begun().node("Relu"), "Sub"), f"Sub_1 (Sub): what Sub {SUMS}"),
    "Mul of sums": (lambda: two_maps(begun().node("Relu"), "Mul"), f"Mul_1 (Mul): what Mul {SUMS}"),
    "Mul of maps": (
        lambda: two_maps(begun().quant(1, 3).node("MaxPool", kernel_shape=[3, 3], pads=[1, 1, 1, 1]), "Mul"),
        "Mul_1 (Mul): a product of two maps must be quantised; quantise before the next layer",
    ),
    "a power of no whole number": (
        lambda: begun().quant(1, 3).node("Pow", np.float32(0.5)).quant(1, 3),
        "Pow_3 (Pow): the exponent must be one whole number of 0 to 8",
    ),
    "HardSigmoid that falls": (
        lambda: begun().node("HardSigmoid", alpha=-0.5),
        "HardSigmoid_2 (HardSigmoid): alpha must be > 0, got -0.5; use Relu, or a quantiser",
    ),
    "a curve of too many values": (
        lambda: begun().quant(1 / 256, 9).node("Tanh").quant(1 / 128, 8),
        "Quant_4 (Quant): Tanh must read at most 256 values, got 512",
    ),
    "a curve in front of weights": (
        lambda: begun().quant(1, 3).node("Tanh").node("Conv", np.ones((4, 4, 3, 3), np.float32)),
        "Conv_4 (Conv): a Tanh behind a quantiser must be followed by a quantiser, or cut nothing; quantise what it "
        "makes, in onnxruntime by Tanh in op_types_to_quantize",
    ),
    "a clip in front of a mean and weights": (
        lambda: (
            begun()
            .quant(1, 3)
            .node("Clip", np.float32(0.25), np.float32(9))
            .node("GlobalAveragePool")
            .node("Conv", np.ones((4, 4, 1, 1), np.float32))
        ),
        "Conv_5 (Conv): a clip behind a quantiser must be followed by a quantiser, or cut nothing; quantise what it "
        "makes, in onnxruntime by QuantFormat.QDQ",
    ),
    "integers that their type has not": (
        lambda: of_integers().node("Neg"),
        "Neg_3 (Neg): what it makes must be integers of its type, 0..255, got -255..0; put DequantizeLinear before it",
    ),
    "sums that their type has not": (
        lambda: two_maps(of_integers().node("Relu"), "Add"),
        "Add_1 (Add): what it makes must be integers of its type, 0..255, got 0..510; put DequantizeLinear before it",
    ),
    "a quotient of integers": (
        lambda: of_integers().node("Div", np.float32(2)),
        "Div_3 (Div): integers must not be divided, whose rest is cut off; put DequantizeLinear before it",
    ),
    "scales that each image has for itself": (
        lambda: begun().node("DynamicQuantizeLinear"),
        "DynamicQuantizeLinear_2 (DynamicQuantizeLinear): this operator is not imported; scales must be known before: "
        "quantise by onnxruntime's quantize_static",
    ),
    **{
        f"a cut map behind a {op}": (
            lambda op=op, others=others: (
                begun().quant(1, 3).node(op, *others).node("Slice", *SLICE).node("MaxPool", kernel_shape=[2, 2])
            ),
            "MaxPool_5 (MaxPool): a map that is padded, cut or grows must have one scale > 0 behind its quantiser, got "
            f"{got}; quantise before it",
        )
        for op, others, got in (
            ("LeakyRelu", (), "a LeakyRelu"),
            ("Neg", (), "-1"),
            ("Mul", (np.float32([[[1]], [[2]], [[3]], [[4]]]),), "several"),
        )
    },
    "linear upsampling of integers": (
        lambda: of_integers().node("Resize", "", np.float32([1, 1, 3, 2]), mode="linear"),
        "Resize_3 (Resize): linear upsampling of integers must have shares of halves, quarters and so on, got shares "
        "of 12; quantise with QuantFormat.QDQ, or make rows and columns 2 or 4 times as many",
    ),
    "a curve in front of a max pool": (
        lambda: (
            begun()
            .quant(1, 3)
            .node("Tanh")
            .node("MaxPool", kernel_shape=[2, 2])
            .node("Conv", np.ones((4, 4, 3, 3), np.float32))
        ),
        "MaxPool_4 (MaxPool): what lies between a quantiser and a max pool must rise in every channel",
    ),
    "a curve of a mean": (
        lambda: begun().quant(1, 3).node("GlobalAveragePool").node("Tanh").quant(1 / 4, 3),
        "Tanh_4 (Tanh): what Tanh reads must be quantised, got a mean; quantise before it",
    ),
    "a curve at the end": (
        lambda: begun().quant(1, 3).node("Tanh"),
        "Tanh_3 (Tanh): at a network's ends the host computes lines and clips alone; put a quantiser behind it",
    ),
    "Add of sums": (
        lambda: two_maps(begun().node("Relu"), "Add"),
        "Relu_2 (Relu): a map that several operators read, or that is joined, must be quantised; quantise before it",
    ),
    "Concat of sums": (
        lambda: two_maps(begun().node("Relu"), "Concat", axis=1),
        "Relu_2 (Relu): a map that several operators read, or that is joined, must be quantised; quantise before it",
    ),
    "Concat of images": (
        lambda: two_maps(begun().node("Relu"), "Concat", axis=0),
        "Concat_1 (Concat): the axis must be one of the values of an image, got 0",
    ),
    "Concat with a constant": (
        lambda: begun().node("Concat", np.zeros((1, 4, 5, 5), np.float32), axis=1),
        "Concat_2 (Concat): a map must be concatenated with maps, got a constant",
    ),
    "ConvTranspose": (
        lambda: begun().quant(1, 3).node("ConvTranspose", np.ones((3, 2, 3, 3), np.float32)),
        "ConvTranspose_3 (ConvTranspose): weights must have the 4 channels of the map, in as many groups as divide "
        "them, got 3 in 1 groups",
    ),
    "ConvTranspose of a vector": (
        lambda: begun().quant(1, 3).node("Flatten").node("ConvTranspose", np.ones((64, 2, 3, 3), np.float32)),
        "ConvTranspose_4 (ConvTranspose): maps must have rows and columns, got shape (1, 64)",
    ),
    "ConvTranspose with a matrix": (
        lambda: begun().quant(1, 3).node("ConvTranspose", np.ones((4, 2), np.float32)),
        "ConvTranspose_3 (ConvTranspose): weights must have rows and columns, got shape (4, 2)",
    ),
    "Conv of a vector": (
        lambda: begun().quant(1, 3).node("Flatten").node("Conv", np.ones((4, 64, 1, 1), np.float32)),
        "Conv_4 (Conv): maps must have rows and columns, got shape (1, 64)",
    ),
    "Conv with a matrix": (
        lambda: begun().quant(1, 3).node("Conv", np.ones((4, 4), np.float32)),
        "Conv_3 (Conv): weights must have rows and columns, got shape (4, 4)",
    ),
    "ConvTranspose of sums": (
        lambda: begun().node("ConvTranspose", np.ones((4, 2, 3, 3), np.float32)),
        "ConvTranspose_2 (ConvTranspose): its input must be quantised, got sums of other weights; quantise before it",
    ),
    "Resize by cubes": (
        lambda: begun().quant(1, 3).node("Resize", "", np.float32([1, 1, 2, 2]), mode="cubic"),
        "Resize_3 (Resize): it must be nearest or linear upsampling, got cubic, half_pixel, round_prefer_floor; "
        "upsample so, or by a transposed convolution",
    ),
    "Resize of channels": (
        lambda: begun().quant(1, 3).node("Resize", "", np.float32([1, 2, 2, 2]), mode="linear"),
        "Resize_3 (Resize): rows and columns alone may be interpolated, got (1, 8, 8, 8) of (1, 4, 4, 4)",
    ),
    "Resize by a part": (
        lambda: begun().quant(1, 3).node("Resize", "", np.float32([1, 1, 2.1, 2]), mode="linear"),
        "Resize_3 (Resize): scales must make whole numbers of rows and columns, got 2.1",
    ),
    "Resize to a part": (
        lambda: begun().quant(1, 3).node("Resize", "", "", np.int64([1, 4, 9, 12]), mode="linear"),
        "Resize_3 (Resize): all neighbours must have the same places between them, with the same shares, got 9 places "
        "of 4; make rows and columns 2 or 4 times as many",
    ),
    "LSTM": (
        lambda: begun().node("LSTM", np.ones((1, 4, 4), np.float32), np.ones((1, 4, 1), np.float32), hidden_size=1),
        "LSTM_2 (LSTM): this operator is not imported; recurrent layers have no hardware: use convolutions",
    ),
    "Tanh of sums": (lambda: begun().node("Tanh").quant(1, 3), f"Tanh_2 (Tanh): what Tanh {SUMS}"),
    "another domain": (
        lambda: begun().node("Conv", np.ones((4, 4, 3, 3), np.float32), domain="qonnx.custom_op.channels_last"),
        "Conv_2 (Conv): this operator of qonnx.custom_op.channels_last is not imported",
    ),
    "real weights": (
        lambda: begun().quant(1, 3).node("Conv", np.random.default_rng(0).normal(size=(4, 4, 3, 3))),
        "Conv_3 (Conv): weights must be integers times a scale, got real numbers; quantise them in training (Brevitas, "
        "QKeras) or after it (onnxruntime's quantize_static)",
    ),
    "no --input": (
        lambda: Chain((4,)).node("MatMul", np.ones((4, 5), np.float32)),
        "MatMul_0 (MatMul): its input must be quantised, got real numbers; say what the network is fed with: --input",
    ),
    "sums into weights": (
        lambda: begun().node("Conv", np.ones((4, 4, 3, 3), np.float32)),
        "Conv_2 (Conv): its input must be quantised, got sums of other weights; quantise before it",
    ),
    "mean of clipped sums": (
        lambda: begun().node("Relu").node("GlobalAveragePool"),
        "GlobalAveragePool_3 (GlobalAveragePool): a mean of sums must come before a clip; quantise before it",
    ),
    "a comparison of one": (
        lambda: begun().node("Greater"),
        "Greater_2 (Greater): the number of inputs must be 2, got 1",
    ),
    "a quotient of three": (
        lambda: by_itself(begun().quant(1, 3), "Div", np.float32(2)),
        f"Div_3 (Div): {MAPS}",
    ),
    "a sum of another order of magnitude": (
        lambda: by_itself(begun().quant(float(1 << 20), 4), "Add").quant(1, 4),
        "Add_3 (Add): factors of -16,777,215..16,777,215 over 2^6..2^39 must be the scales' ratios, got 1.04858e+06 "
        "and 1.04858e+06; choose scales that are nearer to each other",
    ),
    "division by a map": (
        lambda: begun().reversed("Div", np.float32(2)),
        f"Div_2 (Div): what Div {SUMS}",
    ),
    "division by 0": (
        lambda: begun().node("Div", np.float32(0)),
        "Div_2 (Div): a map must be divided by numbers other than 0",
    ),
    "NaN": (
        lambda: begun().node("Add", np.float32("nan")),
        "Add_2 (Add): parameters must be finite, got nan",
    ),
    "infinite variance": (
        lambda: begun().node("BatchNormalization", *(np.full(4, v, np.float32) for v in (1, 0, 0, np.inf))),
        "BatchNormalization_2 (BatchNormalization): parameters must be finite, got inf",
    ),
    "negative variance": (
        lambda: begun().node("BatchNormalization", *(np.full(4, v, np.float32) for v in (1, 0, 0, -1))),
        "BatchNormalization_2 (BatchNormalization): variance + epsilon must be > 0 in every channel",
    ),
    "no variance": (
        lambda: begun().node("BatchNormalization", *(np.full(4, v, np.float32) for v in (1, 0, 0, 0)), epsilon=0.0),
        "BatchNormalization_2 (BatchNormalization): variance + epsilon must be > 0 in every channel",
    ),
    "scales of a bipolar map": (
        lambda: begun().node("BipolarQuant", np.float32([[[1]], [[2]], [[1]], [[1]]]), domain=QONNX),
        "BipolarQuant_2 (BipolarQuant): a map's scale must be one number > 0",
    ),
    "scale of a bipolar map": (
        lambda: begun().node("BipolarQuant", np.float32(0), domain=QONNX),
        "BipolarQuant_2 (BipolarQuant): a map's scale must be one number > 0",
    ),
    "training": (
        lambda: begun().node("BatchNormalization", *(np.ones(4, np.float32) for _ in range(4)), training_mode=1),
        "BatchNormalization_2 (BatchNormalization): training_mode must be 0, got 1; export the network in evaluation "
        "mode",
    ),
    "a negative scale": (lambda: begun().quant(-1, 3), "Quant_2 (Quant): scales must be > 0"),
    "17 bits": (lambda: begun().quant(1, 17), "Quant_2 (Quant): a map must have at most 65,536 values, got 131,072"),
    "two bits and a half": (lambda: begun().quant(1, 2.5), "Quant_2 (Quant): bits must be 1..32, got 2.5"),
    "no such rounding": (
        lambda: begun().quant(1, 3, rounding="SIDEWAYS"),
        "Quant_2 (Quant): the rounding mode must be one of ROUND, HALF_EVEN, HALF_UP, HALF_DOWN, FLOOR, CEIL, UP, "
        "DOWN, got SIDEWAYS",
    ),
    "a pad that reflects more than there is": (
        lambda: begun().node("Pad", np.int64([0, 0, 1, 9, 0, 0, 1, 1]), mode="reflect"),
        "Pad_2 (Pad): pads that reflect must be smaller than the map, got (0, 0, 1, 9, 0, 0, 1, 1) around (1, 4, 4, 4)",
    ),
    "a pad that goes around": (
        lambda: begun().node("Pad", np.int64([0, 0, 1, 1, 0, 0, 1, 1]), mode="wrap"),
        "Pad_2 (Pad): mode must be constant, edge or reflect, got wrap",
    ),
    "padded sums before a pool": (
        lambda: padded(begun()).node("MaxPool", kernel_shape=[2, 2]),
        "MaxPool_3 (MaxPool): a padded map, or one that grows, must be read by a convolution; give the pool its own "
        "padding (PyTorch: "
        "AvgPool2d with count_include_pad=False; Keras: padding='same')",
    ),
    "slopes of channels at the end": (
        lambda: begun().node("PRelu", np.float32([[[0.5]], [[0.25]], [[1]], [[0]]])),
        "PRelu_2 (PRelu): at a network's ends the host computes lines and clips alone; put a quantiser behind it",
    ),
    "a slope below 0": (
        lambda: begun().node("PRelu", np.float32([[[-0.5]]])),
        "PRelu_2 (PRelu): what PRelu reads must be quantised, got sums of weights; quantise before it",
    ),
    "padded channels": (
        lambda: (
            begun().quant(1, 3).node("Pad", np.int64([0, 1, 0, 0, 0, 0, 0, 0])).node("MaxPool", kernel_shape=[2, 2])
        ),
        "MaxPool_4 (MaxPool): only rows and columns can be padded, or grow",
    ),
    "softmax over images": (
        lambda: begun().node("Softmax", axis=0),
        "Softmax_2 (Softmax): it must be over the classes, got axis 0 of (1, 4, 4, 4)",
    ),
    "more behind softmax": (
        lambda: begun().node("Softmax", axis=1).node("Mul", np.float32(2)),
        "Softmax_2 (Softmax): the host computes it at the network's end alone, and Mul_3 follows",
    ),
    "smallest": (
        lambda: begun().node("Flatten").node("TopK", np.int64([1]), largest=0),
        "TopK_3 (TopK): largest must be 1, got 0",
    ),
    "places of maxima": (
        lambda: second_output(begun().quant(1, 3).node("MaxPool", kernel_shape=[2, 2])),
        "MaxPool_3 (MaxPool): the places of the maxima are not computed; PyTorch: return_indices=False",
    ),
    "a mask": (
        lambda: second_output(begun().node("Dropout"), "Relu"),
        "Relu_3 (Relu): it reads second, a second output, which is not computed",
    ),
    "a constant network": (lambda: constant_network(), "chain: the output must depend on the input, got a constant"),
    "a text for a number": (
        lambda: begun().quant(1, 3).node("Softmax", axis="x"),
        "Softmax_3 (Softmax): attribute axis must be a number, got 'x'",
    ),
    "a number for a list": (
        lambda: begun().quant(1, 3).node("Conv", np.ones((4, 4, 3, 3), np.float32), strides=2),
        "Conv_3 (Conv): attribute strides must be a list, got 2",
    ),
    "a stride of 0": (
        lambda: begun().quant(1, 3).node("Conv", np.ones((4, 4, 3, 3), np.float32), strides=[0, 1]),
        "Conv_3 (Conv): strides must be two integers of 1..4096, got (0, 1)",
    ),
    "pads below 0": (
        lambda: begun().quant(1, 3).node("Conv", np.ones((4, 4, 3, 3), np.float32), pads=[-1, 0, 0, 0]),
        "Conv_3 (Conv): pads must be four integers of 0..4096, got (-1, 0, 0, 0)",
    ),
    "a kernel that is too large": (
        lambda: begun().quant(1, 3).node("Conv", np.ones((4, 4, 5, 5), np.float32)),
        "Conv_3 (Conv): the window must fit the padded map, got (5, 5) on 4 x 4",
    ),
    "groups": (
        lambda: begun().quant(1, 3).node("Conv", np.ones((4, 3, 3, 3), np.float32), group=3),
        "Conv_3 (Conv): group must be >= 1 and divide 4 outputs, got 3",
    ),
    "wrong inputs": (
        lambda: begun().quant(1, 3).node("Conv", np.ones((4, 3, 3, 3), np.float32)),
        "Conv_3 (Conv): weights must read all 4 channels of a map (1, 4, 4, 4), got 3",
    ),
    "channels behind rows and columns": (
        lambda: Chain((8, 8, 3)).quant(1, 3).node("Conv", np.ones((8, 3, 3, 3), np.float32)),
        "Conv_1 (Conv): weights must read all 8 channels of a map (1, 8, 8, 3), got 3; ONNX has the channels in front "
        "of rows and columns: is the map in the order NHWC?",
    ),
    "Sigmoid between layers": (
        lambda: begun().node("Sigmoid").quant(1 / 16, 3).node("Conv", np.ones((4, 4, 3, 3), np.float32)),
        f"Sigmoid_2 (Sigmoid): what Sigmoid {SUMS}",
    ),
    "SiLU of sums": (lambda: two_maps(begun().node("Sigmoid"), "Mul").quant(1, 3), f"Mul_1 (Mul): what Sigmoid {SUMS}"),
    "GELU of sums": (
        lambda: joined_with(begun(), "Mul", lambda c: c.node("Div", np.float32(2**0.5)).node("Erf").node("Add", 1.0)),
        f"Mul_1 (Mul): what Erf {SUMS}",
    ),
    "not flat": (
        lambda: begun().quant(1, 3).node("MatMul", np.ones((64, 2), np.float32)),
        "MatMul_3 (MatMul): the input must have shape (1, 64), got (1, 4, 4, 4); flatten it before",
    ),
    "a mean of channels": (
        lambda: begun().quant(1, 3).node("ReduceMean", axes=[1]),
        "ReduceMean_3 (ReduceMean): means and maxima must be over all rows, all columns or both, of each channel for "
        "itself, got axes (1,)",
    ),
    "images mixed": (
        lambda: begun().node("Reshape", np.int64([4, 4, 2, 2])).node("Conv", np.ones((4, 4, 1, 1), np.float32)),
        "Conv_3 (Conv): the number of images must be the first axis of what it reads, got shape (4, 4, 2, 2)",
    ),
    "an axis of images besides": (
        lambda: begun().node("Reshape", np.int64([4, 16])).node("Add", np.ones((1, 4, 16), np.float32)),
        "Add_3 (Add): the number of images must be the first axis of what it reads, got shape (4, 16)",
    ),
    "dropout in training": (
        lambda: begun().node("Dropout", np.float32(0.5), np.array(True)),
        "Dropout_2 (Dropout): training_mode must be False, got True; export the network in evaluation mode",
    ),
    "a cast to another's integers": (
        lambda: begun().node("CastLike", np.int64([1])),
        "CastLike_2 (CastLike): a map must be cast to float32 or float64, got type 7; quantise with QuantizeLinear",
    ),
    "the last of equal scores": (
        lambda: begun().node("Flatten").node("ArgMax", axis=1, select_last_index=1),
        "ArgMax_3 (ArgMax): select_last_index must be 0, got 1; of equal scores the first one is the class",
    ),
    "an end of a clip that is no number": (
        lambda: begun().node("Clip", np.float32("nan")),
        "Clip_2 (Clip): min must be one number, got nan",
    ),
    "an end of a clip that is nothing": (
        lambda: begun().node("Clip", np.float32(0), np.zeros(0, np.float32)),
        "Clip_2 (Clip): max must be one number, got shape (0,)",
    ),
    "several ends of a clip": (
        lambda: begun().node("Clip", np.float32([0, 0, 0, 1])),
        "Clip_2 (Clip): min must be one number, got shape (4,)",
    ),
    "16 bits without a zero point": (
        lambda: begun().node("QuantizeLinear", np.float32(1), output_dtype=4),
        "QuantizeLinear_2 (QuantizeLinear): quantised values must be integers of at most 8 bits, got uint16; quantise "
        "to these (onnxruntime: activation_type=QuantType.QInt8)",
    ),
    "a cast to integers": (
        lambda: begun().node("Cast", to=7),
        "Cast_2 (Cast): a map must be cast to float32 or float64, got type 7; quantise with QuantizeLinear",
    ),
}


TRUNC = "Trunc_2 (Trunc): the zero point must be 0 and 0..32 bits go to leave 1..16, got"
ONE |= {
    f"Trunc, {zero} {bits} {left}": (
        lambda given=(0.5, zero, bits, left): begun().node("Trunc", *map(np.float32, given), domain=QONNX),
        f"{TRUNC} {zero}, {bits - left} and {left}",
    )
    for zero, bits, left in [(1, 8, 4), (0, 37, 4), (0, 4, 5), (0, 8, 0), (0, 18, 17)]
}


ONE |= {
    f"QGemm, {attributes}": (
        lambda given=attributes: begun().node("QGemm", np.float32(1), domain="com.microsoft", **given),
        "QGemm_2 (QGemm): transA must be 0 and alpha 1",
    )
    for attributes in ({"transA": 1}, {"alpha": 2.0})
}


def padded(chain, value=0.0):
    return chain.node("Pad", np.int64([0, 0, 1, 1, 0, 0, 1, 1]), np.float32(value))


def second_output(chain, op=None):
    chain.nodes[-1].output.append("second")
    if op:
        chain.here = "second"
        chain.node(op)
    return chain


def constant_network():
    chain = Chain((3,))
    chain.here = chain.weight("Add", np.float32([1]), np.float32([2]))
    return chain


@pytest.mark.parametrize("name", ONE)
def test_each_has_a_line(name):
    maker, line = ONE[name]
    assert lines(maker()) == [line]


def test_all_nodes_at_once():
    """Also behind a node that is refused: of what reads it, operators that nobody knows, in whatever shape."""
    chain = begun().quant(1, 3)
    two_maps(chain, "Mod")
    here = chain.here
    other = chain.weight("LSTM", np.ones(3, np.float32))
    chain.here = chain.weight("Sqrt", np.float32([1]), domain="made.up")
    chain.here, root = here, chain.here
    chain.node("Add", other).node("Add", root).node("Sin").node("Cos")
    assert lines(chain) == [
        "Mod_1 (Mod): this operator is not imported",
        f"{other.replace('w', 'LSTM_')} (LSTM): must be one of the operators that constants can be made with",
        "Sqrt_5 (Sqrt): must be one of the operators that constants can be made with",
        "Sin_8 (Sin): this operator is not imported",
        "Cos_9 (Cos): this operator is not imported",
    ]


def test_nodes_with_one_reason_have_one_line():
    chain = begun()
    for number in range(12):
        chain.node("Cos" if number % 6 else "Sin")
    assert lines(chain) == [
        "Sin_2 (Sin) and 1 more like it: this operator is not imported",
        "Cos_3 (Cos) and 9 more like it: this operator is not imported",
    ]


def test_second_outputs_of_what_is_refused_have_no_lines():
    """The network goes on with the last state of a recurrent layer, and the file says the shape of the first output."""
    weights = (np.ones((1, 4, 4), np.float32), np.ones((1, 4, 1), np.float32))
    chain = begun().node("LSTM", *weights, hidden_size=1)
    chain.nodes[-1].output.append("state")
    chain.here = "state"
    model = chain.node("Relu").model()
    model.graph.value_info.append(helper.make_tensor_value_info("t2", 1, [1, 4, 4, 4]))
    rule = "this operator is not imported; recurrent layers have no hardware: use convolutions"
    with refusal(f"LSTM_2 (LSTM): {rule}"):
        import_graph(to_graph(model.SerializeToString()), name="chain")


def test_a_shape_that_the_file_says():
    """So known operators are looked at, too, behind one that is refused; shapes that no map has are passed over."""
    chain = begun().quant(1, 3).node("Sin").node("MaxPool", kernel_shape=[2, 2], dilations=[2, 2]).node("Cos")
    model = chain.model()
    pool = "MaxPool_4 (MaxPool): dilations must be 1, got (2, 2); PyTorch: dilation=1"
    unknown = ["Sin_3 (Sin): this operator is not imported", "Cos_5 (Cos): this operator is not imported"]
    for shape, more in (([2, 4, 4, 4], [pool]), (["N", 4, 4, 4], [pool]), ([1, 4, "h", 4], []), ([1, 1 << 40], [])):
        del model.graph.value_info[:]
        model.graph.value_info.append(helper.make_tensor_value_info("t3", 1, shape))
        with pytest.raises(ImportRefused) as refused:
            import_graph(to_graph(model.SerializeToString()), name="chain")
        assert list(refused.value.lines) == [unknown[0], *more, unknown[1]]


def test_a_cast_behind_a_quantiser_that_is_refused():
    """Nobody knows whether its values fit, so it has no line of its own."""
    chain = begun().node("QuantizeLinear", np.float32(1), np.uint16(3)).node("Cast", to=4).node("Cos")
    chain.constants[-1].CopyFrom(numpy_helper.from_array(np.uint16(3), chain.constants[-1].name))
    model = chain.model()
    model.graph.value_info.append(helper.make_tensor_value_info("t2", 4, [1, 4, 4, 4]))
    with refusal(
        "QuantizeLinear_2 (QuantizeLinear): quantised values must be integers of at most 8 bits, got uint16; quantise "
        "to these (onnxruntime: activation_type=QuantType.QInt8)",
        "Cos_4 (Cos): this operator is not imported",
    ):
        import_graph(to_graph(model.SerializeToString()), name="chain")


def test_engines_that_can_not():
    chain = Chain((6,)).quant(0.25, 8)
    chain.node("MatMul", chain.quant_weight(np.random.default_rng(0).normal(size=(6, 5)), 0.5, 4))
    assert lines(chain, engine="binary") == ["MatMul_2: weights are signed 4 bit (-8..7)"]


@pytest.mark.parametrize("text", ["", "unsigned99", "float", "signed8:1/0", "bipolar:x", "unsigned8:1e999999999"])
def test_inputs_that_are_not_said_right(text):
    rule = "must be bipolar, signedBITS or unsignedBITS, perhaps with :SCALE and :ZERO, as in unsigned8:1/255"
    with pytest.raises(ValueError, match="--input: ") as refused:
        parse_input(text)
    assert str(refused.value).startswith(f"--input: {rule}, got {text!r}")


@pytest.mark.parametrize("text", ["signed8:0", "signed21", "unsigned20:1/16"])
def test_inputs_that_no_engine_reads(text):
    with value_error(f"--input: the scale must be > 0 and bits at most 20, 19 if unsigned, got {text!r}"):
        parse_input(text)


def test_an_input_that_the_file_quantises():
    chain = begun()
    assert lines(chain, "unsigned8") == ["Quant_0 (Quant): it quantises the input already, so leave out --input"]


def run(*arguments):
    return call("import", *arguments)


def good():
    chain = Chain((6,)).quant(0.25, 3)
    return chain.node("MatMul", np.random.default_rng(0).integers(-1, 2, (6, 5)).astype(np.float32))


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.onnx").write_bytes(good().bytes())
    return tmp_path


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", "must be an ONNX file with at least one node, got none"),
        (b"PK\x03\x04 no protocol buffer", "must be an ONNX file, got: Error parsing message"),
    ],
)
@pytest.mark.parametrize("json_", [(), ("--json",)])
def test_files_that_are_none(there, content, line, json_):
    path = there / "bad.onnx"
    path.write_bytes(content)
    result = run(path, *json_)
    assert result.exit_code == 1
    assert result.output.startswith(f"bitloom: {path}: {line}")
    assert result.output.count("\n") == 1
    assert run("none.onnx").output == "bitloom: none.onnx: must exist, got no such file or folder\n"


def test_classes_have_names(there):
    """In the file's order, whatever the model's is; the host file belongs to the model with its names."""
    (there / "names.txt").write_text("zero\none \n2\nthree\nvier\n")
    assert run("net.onnx", "--classes", "names.txt").exit_code == 0
    model = file.load("net.npz")
    assert model.network.classes == ("zero", "one", "2", "three", "vier")
    assert np.array_equal(hosts.load("net.host.json", model).only.order, np.arange(5))
    imported = import_file("net.onnx")
    turned = replace(imported, host=with_scores(imported.host, order=np.array([4, 0, 1, 2, 3])))
    assert turned.with_classes("abcde").model.network.classes == ("b", "c", "d", "e", "a")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"a\nb\n", "names.txt: must have 5 names, a line for each score of the network, got 2"),
        (b"\xff\xfe", "names.txt: must be text in UTF-8, got other bytes"),
        (b"a" * ((1 << 20) + 1), "names.txt: must have at most 1,048,576 bytes, got 1,048,577"),
        (b"a\nb\n\nd\ne\n", "names.txt: net: classes must be 1..100 printable characters, got ''"),
    ],
)
def test_classes_that_are_none(there, content, line):
    (there / "names.txt").write_bytes(content)
    result = run("net.onnx", "--classes", "names.txt")
    assert (result.exit_code, result.output) == (1, f"bitloom: {line}\n")
    assert not (there / "net.npz").exists()


def test_one_line_and_several(there):
    (there / "one.onnx").write_bytes(begun().node("Sin").bytes())
    text = "bitloom: one.onnx: Sin_2 (Sin): this operator is not imported\n"
    assert run("one.onnx").output == text
    chain = begun()
    root = chain.weight("Sqrt", np.float32([1]), domain="made.up")
    (there / "two.onnx").write_bytes(chain.node("Add", root).node("Sin").bytes())
    result = run("two.onnx", "--json")
    assert result.exit_code == 1
    assert result.output.splitlines()[0].endswith("two.onnx: 2 things can't be imported:")
    assert len(result.output.splitlines()) == 3


def test_targets_are_checked_before_the_work(there):
    (there / "file").write_text("x")
    for target, line in {
        "net.txt": "--out: must end in .npz, got 'net.txt'",
        "file/net.npz": f"--out: must lie in a folder, got the file {there / 'file'}",
    }.items():
        result = run("none.onnx", "--out", target)
        assert (result.exit_code, result.output) == (1, f"bitloom: {line}\n")
    assert "--name: name must" in run("none.onnx", "--name", "a b/..").output


def test_two_runs_write_the_same_bytes(there):
    written = []
    for _ in range(2):  # the second one writes over the first one's files
        result = run("net.onnx", "--out", "new/net.npz", "--explain", "--json")
        assert result.exit_code == 0, result.output
        paths = [there / name for name in json.loads(result.output)["files"]]
        written.append({path.name: path.read_bytes() for path in paths})
    assert written[0] == written[1]
    assert set(written[0]) >= {"net.npz", "net.host.json", "net.import.md", "net.import.html"}


def test_without_the_extra(there, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    result = run("net.onnx")
    assert result.exit_code == 1
    assert result.output.startswith("bitloom: net.onnx: needs the extra import: pip install 'bitloom-fpga[import]' (")
    assert result.output.count("\n") == 1


def test_inputs_and_outputs_of_the_file(there):
    from bitloom.overlay.importers.onnx_file import to_graph

    def refused(change):
        model = good().model()
        change(model)
        with pytest.raises(ValueError, match="must") as error:
            to_graph(model.SerializeToString())
        return str(error.value)

    def set_dim(value):
        def change(model):
            size = model.graph.input[0].type.tensor_type.shape.dim[1]
            size.Clear() if value is None else setattr(size, "dim_value", value)

        return change

    def more(where):
        return lambda model: getattr(model.graph, where).append(helper.make_tensor_value_info("y", 1, [1, 2]))

    assert refused(more("input")) == "must have one input, got x, y"
    assert refused(more("output")) == "the output must be made by a node, got y"
    assert refused(lambda m: m.graph.output.append(m.graph.output[0])) == "outputs must be given once, got t1, t1"
    assert refused(set_dim(None)) == (
        "input x: must have a fixed shape behind the number of images, got any size at axis 1 (no name); export with "
        "fixed sizes, or set them: python -m onnxruntime.tools.make_dynamic_shape_fixed --input_name x --input_shape "
        "1,SIZE FILE NEW_FILE"
    )
    assert refused(set_dim(-3)) == "input x: axes must be >= 1, got (1, -3)"
    assert refused(set_dim(1 << 40)) == "input x: must have at most 4,194,304 values, got 1,099,511,627,776"
    assert refused(lambda m: setattr(m.opset_import[0], "version", 6)).startswith(
        "the version of ONNX's operators must be 7.."
    )
    assert refused(lambda m: m.graph.initializer.append(m.graph.initializer[0])) == (
        "constants must be given once, got c0 again"
    )
    assert refused(lambda m: m.graph.node[1].output.pop()) == "MatMul_1: nodes must have an output, got none"
    assert refused(lambda m: m.graph.node[0].input.__setitem__(0, "t1")) == (
        "Quant_0: tensors must be made before they are read, got t1"
    )
    assert refused(lambda m: m.graph.node[0].output.__setitem__(0, "x")) == (
        "Quant_0: tensors must be made once, got x again"
    )


MAP = (0.25, 0, np.int8)


@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("MaxPool", (), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("AveragePool", (), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Pad", (np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64), np.float32(0)), {}),
    ],
)
def test_what_changes_the_size_of_a_sum_before_its_quantiser(op, inputs, attributes):
    chain = Chain((2, 4, 4), opset=19).qdq(*MAP)
    weight = chain.dequantised(np.ones((2, 2, 1, 1)), 0.25)
    before = chain.node("Conv", weight, kernel_shape=[1, 1]).qdq(*MAP).here
    chain.node("Conv", weight, kernel_shape=[1, 1]).qdq(*MAP).node("Add", before)
    chain.node(op, *inputs, **attributes).qdq(*MAP).node("Flatten")
    size = {"Pad": 72}.get(op, 8)
    (line,) = lines(chain.node("Gemm", np.eye(size, 3, dtype=np.float32)))
    assert line.endswith("(Add): between a sum and its quantiser only scales and activations may lie")

"""Ways that begin with a pool of a map with several readers, as Inception has them, equal to onnxruntime's values."""

import numpy as np
import pytest

from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.imported import import_graph
from bitloom.overlay.importers.tflite_file import to_tflite_graph
from bitloom.overlay.importers.verify import images_off, verify
from tests.errors import refusal

from . import onnx_files
from .against import by_onnxruntime, check, features, import_chain, outputs
from .test_tflite import by_kernels, scores
from .tflite_files import Chain

AROUND = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


PADDED = {
    "padding": AROUND,
    "padding as Keras has it": {"kernel_shape": [2, 2], "auto_pad": "SAME_UPPER"},
    "a last window that is cut": {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
}


class Branches(onnx_files.Chain):
    """A chain with one scale throughout, which goes on from any of its tensors."""

    def quantised(self):
        return self.qdq(0.125, 0, np.int8)

    def conv(self, rng, inputs, outputs, source=None, size=1):
        self.here = source or self.here
        weight = self.dequantised(rng.integers(-3, 4, (outputs, inputs, size, size)), 0.25)
        pads = [size // 2] * 4
        return self.node("Conv", weight, kernel_shape=[size, size], pads=pads).quantised().here

    def pool(self, source, op="MaxPool", **attributes):
        self.here = source
        return self.node(op, **attributes).here

    def scores(self, count):
        return self.node("Flatten").node("Gemm", np.eye(count, dtype=np.float32))


def begun(shape=(2, 4, 5)):
    """A chain, and its first convolution's map of 4 channels."""
    chain = Branches(shape, opset=19).quantised()
    return chain, chain.conv(np.random.default_rng(6), shape[0], 4, size=3)


@pytest.mark.parametrize("zero", [0, -6])
@pytest.mark.parametrize("name", PADDED)
def test_padded_means(name, zero):
    """Pools, as no weights are such means; halves are a level off where the file has the even one below them."""
    rng = np.random.default_rng(8)
    chain = Branches((1, 2, 3), opset=19).quantised()
    chain.node("Conv", chain.dequantised(rng.integers(-3, 4, (2, 1, 1, 1)), 0.25))
    chain.qdq(0.125, zero, np.int8).node("AveragePool", **PADDED[name]).qdq(0.125, zero, np.int8)
    size = 4 if "strides" in PADDED[name] else 12
    imported = import_chain(chain.scores(size))
    verify(imported, 8)
    assert [layer.kind for layer in imported.model.network.layers].count("avg_pool") == 1
    images = rng.integers(-128, 128, (400, 1, 2, 3)) * np.float32(0.125)
    integers = features(imported, images)
    off = images_off(imported, integers)
    got, wanted = outputs(imported, images), by_onnxruntime(chain, images)
    np.testing.assert_array_equal(got[~off], wanted[~off])
    assert np.abs(got - wanted).max() == 0.125
    assert 0 < off.mean() < 1
    assert sum(built.wrong[0] for built in imported.emitted.built) > 0


def test_inception():
    """Convolutions, a pool, one with a quantiser that leaves its values, and one in front of weights, concatenated."""
    rng = np.random.default_rng(7)
    chain, fork = begun()
    plain = chain.conv(rng, 4, 3, fork)
    alone = chain.pool(fork, **AROUND)
    again = (chain.pool(fork, **AROUND), chain.quantised().here)[1]
    chain.pool(fork, **AROUND)
    chain.conv(rng, 4, 2, size=3)
    chain.node("Concat", plain, alone, again, axis=1)
    imported = check(chain.scores(13 * 20), by_onnxruntime, near=0)
    pools = [layer for layer in imported.model.network.layers if layer.kind == "max_pool"]
    assert {layer.inputs for layer in pools} == {("requantise_1",)}
    assert len(pools) == 3


def test_a_map_and_its_own_maxima_are_added():
    chain, fork = begun()
    chain.pool(fork, **AROUND)
    chain.node("Add", fork).quantised()
    imported = check(chain.scores(80), by_onnxruntime, near=0)
    assert [layer.kind for layer in imported.model.network.layers[2:]] == ["max_pool", "add", "dense"]


@pytest.mark.parametrize(
    ("behind", "values"),
    [
        (lambda chain: chain.node("Sigmoid").quantised(), 6),
        (lambda chain: chain.node("LeakyRelu", alpha=0.25).quantised(), 6),
        (lambda chain: chain.node("Pad", np.int64([0, 0, 1, 1, 0, 0, 1, 1])), 20),
        (lambda chain: chain.node("Slice", np.int64([1]), np.int64([3]), np.int64([3])), 4),
    ],
    ids=["table", "bend", "padding", "cut"],
)
def test_what_lies_behind_a_pool_of_real_numbers(behind, values):
    """Readers of the map have no tensor with the map's own values, only the pool's."""
    chain, _ = begun((2, 4, 6))
    behind(chain.node("MaxPool", kernel_shape=[2, 2], strides=[2, 2]))
    chain.conv(np.random.default_rng(8), 4, 3)
    check(chain.scores(3 * values), by_onnxruntime, near=0)


@pytest.mark.parametrize("activation", ["Selu", "Gelu"])
def test_maxima_of_a_curve_that_nobody_quantised(activation):
    """A table has the curve and the quantiser behind the pool, whether the curve falls or not."""
    chain = Branches((2, 4, 6), opset=20).quantised()
    chain.conv(np.random.default_rng(6), 2, 4, size=3)
    chain.node(activation).node("MaxPool", **AROUND, strides=[2, 2]).node("Flatten").quantised()
    imported = check(chain.node("Gemm", np.eye(24, dtype=np.float32)), by_onnxruntime, near=0)
    kinds = [layer.kind for layer in imported.model.network.layers]
    assert kinds.index("lookup") < kinds.index("max_pool")


def test_a_mean_at_the_end():
    """Nothing quantises it: sums leave, and the host divides."""
    chain, _ = begun()
    imported = check(chain.node("GlobalAveragePool").node("Flatten"), by_onnxruntime)
    assert imported.model.network.output.size == 4
    chain, _ = begun()
    chain.node("AveragePool", **AROUND)
    rule = "padded means that don't count padded values must be quantised as their map is, got another scale"
    instead = "count these (count_include_pad=1), or quantise by onnxruntime's QuantFormat.QDQ, which keeps the scale"
    with refusal(f"AveragePool_{len(chain.nodes) - 1} (AveragePool): {rule}; {instead}"):
        import_chain(chain)


@pytest.mark.parametrize("reader", ["mean", "join", "fork"])
def test_a_clip_to_values_of_a_map(reader):
    """onnxruntime leaves Relu behind a map of both signs in real numbers; others read the map as it is."""
    chain, fork = begun()
    clipped = chain.node("Relu").here
    if reader == "mean":
        chain.node("GlobalAveragePool").qdq(0.0937, 3, np.int8)  # a scale without ties
    elif reader == "join":
        chain.node("Add", fork).quantised()
    else:
        first = chain.conv(np.random.default_rng(8), 4, 4, clipped)
        chain.conv(np.random.default_rng(9), 4, 4, clipped)
        chain.node("Add", first).quantised()
    check(chain.scores(4 if reader == "mean" else 80), by_onnxruntime)


def test_means_of_a_map_that_others_read():
    """A mean that is quantised has weights, so it is no pool; the map's own reader has padding."""
    chain, fork = begun((2, 4, 6))
    rng = np.random.default_rng(8)
    half = {"kernel_shape": [2, 2], "strides": [2, 2]}
    mean = (chain.pool(fork, "AveragePool", **half), chain.quantised().here)[1]
    chain.pool(fork, **half)
    chain.conv(rng, 4, 4, size=3)
    chain.node("Add", mean).quantised()
    check(chain.scores(24), by_onnxruntime, near=0)


def test_pools_of_a_fork_of_tflite():
    rng = np.random.default_rng(9)
    chain = Chain((6, 8, 3), 0.02, 7).conv(rng, 4, (3, 3), (0.0331, 0))
    fork = chain.here
    chain.pool("MAX", (2, 2), (2, 2)).conv(rng, 4, (3, 3), (0.05, 4))
    first, chain.here = chain.here, fork
    chain.pool("AVERAGE", (2, 2), (2, 2)).add(first, (0.06, 11))
    imported = import_graph(to_tflite_graph(chain.reshape(1, 48).dense(rng, 5, (0.03, 4)).bytes()), name="pools")
    verify(imported, 2)
    images = rng.integers(-128, 128, (6, 6, 8, 3)).astype(np.int8)
    assert np.abs(by_kernels(imported.source, images) - scores(imported, images)).max() < 1e-5


def refused(chain):
    with pytest.raises(ImportRefused) as error:
        import_chain(chain)
    return error.value.lines


def test_padding_that_is_no_value_of_the_map():
    """Zeros around a map of -0.5 and 0.5, of which a pool takes the largest."""
    chain, _ = begun()
    chain.node("BipolarQuant", np.float32(0.5), domain=onnx_files.QONNX)
    chain.node("Pad", np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    chain.pool(chain.here, kernel_shape=[2, 2])
    why = "what a map is padded with must be one of its values, got 0"
    assert refused(chain.scores(4 * 5 * 6)) == (f"MaxPool_8 (MaxPool): {why}",)


@pytest.mark.parametrize("scale", [0.375, 0.03125])  # coarser, and finer, so that as many values are left
def test_what_a_pool_makes_of_a_map_with_several_readers_is_quantised_again(scale):
    chain, fork = begun()
    chain.pool(fork, **AROUND)
    chain.qdq(scale, 0, np.int8)
    chain.node("Add", fork).quantised()
    check(chain.scores(80), by_onnxruntime, near=0)


def test_the_input_is_read_twice():
    """Weights copy it first."""
    chain = Branches((2, 4, 5), opset=19).quantised()
    fork = chain.here
    chain.conv(np.random.default_rng(6), 2, 2)
    imported = check(chain.node("Add", fork).quantised().scores(40), by_onnxruntime, near=0)
    assert imported.model.network.layers[0].kind == "depthwise_conv"


@pytest.mark.parametrize("scale", [0.25, 0.03125])
def test_a_way_without_weights(scale):
    """The map is added to what a quantiser of its own makes of it."""
    chain, fork = begun()
    again = chain.qdq(scale, 0, np.int8).here
    chain.here = fork
    check(chain.node("Add", again).quantised().scores(80), by_onnxruntime, near=0)


def dense(chain, rng, inputs, outputs, source):
    """A dense layer of a flat map."""
    chain.here = source
    weight = chain.dequantised(rng.integers(-3, 4, (inputs, outputs)), 0.25)
    return chain.node("MatMul", weight).quantised().here


@pytest.mark.parametrize("several", [False, True])
def test_a_pool_of_the_input_in_front_of_a_graph(several):
    """Also where several convolutions read what the pool makes."""
    rng = np.random.default_rng(3)
    chain = Branches((2, 4, 6), opset=19).quantised()
    pooled = chain.node("MaxPool", **AROUND).here
    first = chain.conv(rng, 2, 3, size=3)
    second = chain.conv(rng, 2 if several else 3, 3, pooled if several else first)
    chain.here = first
    chain.node("Add", second).quantised()
    imported = check(chain.scores(72), by_onnxruntime, near=0)
    reads = imported.model.network.reads
    assert reads["conv_1"] == ("pool_0",)
    assert reads["conv_2"] == ("pool_0",) if several else ("requantise_1",)


@pytest.mark.parametrize("transposed", [False, True])
def test_several_dense_layers_of_a_map_that_was_put_into_another_order(transposed):
    rng = np.random.default_rng(4)
    chain, _ = begun()
    if transposed:
        chain.node("Transpose", perm=[0, 2, 3, 1])
    flat = chain.node("Flatten").here
    first, second = (dense(chain, rng, 80, 6, flat) for _ in range(2))
    chain.here = first
    chain.node("Add", second).quantised()
    imported = check(chain.node("MatMul", rng.integers(-3, 4, (6, 5)).astype(np.float32)), by_onnxruntime, near=0)
    assert imported.model.network.reads["dense_3"] == ("requantise_1",)


def test_a_quantiser_that_leaves_the_values_of_a_map_with_several_readers():
    rng = np.random.default_rng(5)
    chain, fork = begun()
    chain.quantised()
    first = chain.conv(rng, 4, 3, size=3)
    second = chain.conv(rng, 4, 3, fork)
    chain.here = first
    chain.node("Add", second).quantised()
    imported = check(chain.scores(60), by_onnxruntime, near=0)
    assert imported.model.network.reads["conv_3"] == ("requantise_1",)


def test_a_quantiser_that_changes_the_values_of_a_map_with_several_readers():
    """One reader has a copy of its own of the map."""
    rng = np.random.default_rng(5)
    chain, fork = begun()
    chain.qdq(0.375, 0, np.int8)
    first = chain.conv(rng, 4, 3)
    second = chain.conv(rng, 4, 3, fork)
    chain.here = first
    chain.node("Add", second).quantised()
    imported = check(chain.scores(60), by_onnxruntime, near=0)
    assert "depthwise_conv" in [layer.kind for layer in imported.model.network.layers]


@pytest.mark.parametrize("several", [False, True])
def test_what_the_host_computes_at_the_end_is_refused_in_front_of_a_fork_and_of_a_join(several):
    """It was left out, and the check of the import leaves it out as well."""
    rng = np.random.default_rng(6)
    chain, fork = begun((2, 4, 6))
    if several:
        softmax = chain.node("Softmax", axis=1).here
        first = chain.conv(rng, 4, 3, softmax)
        second = chain.conv(rng, 4, 3, softmax)
        chain.here = first
        chain.node("Add", second).quantised()
    else:
        chain.conv(rng, 4, 4, fork)
        chain.node("Softmax", axis=1).node("Add", fork).quantised()
    name, follows = ("Softmax_6", "Conv_8") if several else ("Softmax_10", "Add_11")
    line = f"the host computes it at the network's end alone, and {follows} follows"
    assert refused(chain.scores(72 if several else 96)) == (f"{name} (Softmax): {line}",)


def test_a_max_pool_of_a_mean():
    """A mean that nobody quantised becomes sums of weights; the max pool lies in front of their quantiser."""
    chain, fork = begun((2, 8, 8))
    chain.pool(fork, "AveragePool", kernel_shape=[2, 2], strides=[2, 2])
    chain.node("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).quantised()
    chain.conv(np.random.default_rng(7), 4, 2)
    imported = check(chain.scores(8), by_onnxruntime, near=0)
    kinds = [layer.kind for layer in imported.model.network.layers]
    assert kinds[2:5] == ["depthwise_conv", "requantise", "max_pool"]

"""Networks with concatenations are imported: equal to the file's own rules, and planned for an NPU."""

import numpy as np
import pytest

from bitloom.golden.layers.concat import Concat
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.overlay.importers.errors import ImportRefused
from bitloom.overlay.importers.explain import rows
from bitloom.overlay.importers.imported import import_graph
from bitloom.overlay.importers.onnx_file import to_graph
from bitloom.overlay.importers.tflite_file import to_tflite_graph
from bitloom.overlay.importers.verify import verify

from . import onnx_files
from .against import features
from .test_tflite import by_kernels, check, scores
from .tflite_files import Chain

LIKE = (0.0331, -128)


def fire(pool=False):
    """A fire module, a step of a dense block, and three ways; maps have one scale."""
    rng = np.random.default_rng(8)
    chain = Chain((6, 7, 3), 0.02, 7).conv(rng, 4, (3, 3), LIKE, activation="RELU")
    squeezed = chain.here
    chain.conv(rng, 5, (1, 1), LIKE, activation="RELU")
    one, chain.here = chain.here, squeezed
    chain.conv(rng, 3, (3, 3), LIKE).concat(one)
    if pool:
        chain.pool("MAX", (2, 2), (2, 2))
    dense = chain.here
    chain.conv(rng, 6, (3, 3), (0.05, 11)).conv(rng, 4, (3, 3), LIKE, activation="RELU").concat(dense)
    chain.conv(rng, 6, (3, 3), (0.05, -128), (2, 2))
    size = chain.now.shape
    return chain.pool("AVERAGE", size[1:3]).reshape(1, 6).dense(rng, 5, (0.03, 4))


@pytest.mark.parametrize("pool", [False, True])
def test_a_network_of_tflite(pool):
    imported = import_graph(to_tflite_graph(fire(pool).bytes()), name="fire")
    verify(imported, 2)
    assert {built.wrong for built in imported.emitted.built} == {(0, 0)}
    assert imported.choice.why == "the integer engine computes all: maps are concatenated"
    network = imported.model.network
    first, second = (layer for layer in network.layers if isinstance(layer, Concat))
    assert network.reads[first.name] == ("requantise_3", "requantise_2")
    assert network.maps[first.name].channels == 8
    assert network.reads[second.name] == ("requantise_6", "pool_4_1" if pool else "concat_4")
    images = np.random.default_rng(2).integers(-128, 128, (6, 6, 7, 3)).astype(np.int8)
    wanted = by_kernels(imported.source, images)
    assert len(np.unique(wanted)) > 12
    assert np.abs(wanted - scores(imported, images)).max() < 1e-5
    inputs = features(imported, images)
    np.testing.assert_array_equal(
        lower_alone(imported.model, engines=Engine("integer", 9, 8)).forward(inputs), imported.model.forward(inputs)
    )
    became = "concat_4, pool_4_1" if pool else "concat_4"
    explained = next(row for row in rows(imported) if row[1] == "CONCATENATION")
    assert explained[2:] == [became, "channels behind one another: unsigned 8 bit (0..255)"]


@pytest.mark.sample(4)
@pytest.mark.parametrize("zero", [-128, 0, -100])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 1)])
@pytest.mark.parametrize("window", [(2, 1), (3, 1)])
def test_a_mean_beside_what_reads_it(window, kernel, zero):
    rng = np.random.default_rng(1)
    chain = Chain((7, 6, 2), 0.02, -128).conv(rng, 4, (1, 3), (0.03, zero)).pool("AVERAGE", window)
    fork = chain.here
    chain.conv(rng, 4, kernel, (0.03, zero), activation="RELU").concat(fork)
    check(chain.conv(rng, 3, (1, 1), (0.05, 3)))


@pytest.mark.parametrize("kernel", [None, (1, 1), (3, 3)])
def test_a_mean_behind_a_concatenation(kernel):
    rng = np.random.default_rng(1)
    chain = Chain((7, 6, 2), 0.02, -128).conv(rng, 4, (1, 3), LIKE)
    fork = chain.here
    chain.conv(rng, 4, (3, 1), LIKE).concat(fork).pool("AVERAGE", (2, 1))
    check(chain.conv(rng, 3, kernel, (0.05, 3)) if kernel else chain)


def onnx_ways(second=(0.06131, 0), *, behind):
    """Two convolutions of a map, real numbers behind one another, quantised once more."""
    rng = np.random.default_rng(3)
    chain = onnx_files.Chain((2, 5, 6), opset=19)
    around = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}

    def conv(outputs, inputs):
        chain.node("Conv", rng.integers(-3, 4, (outputs, inputs, 3, 3)).astype(np.float32), **around)

    chain.qdq(0.03125, 128)
    conv(4, 2)
    chain.node("Relu").qdq(0.06131, 0)
    fork = chain.here
    conv(3, 4)
    chain.node("Relu").qdq(0.06131, 0)
    one, chain.here = chain.here, fork
    conv(2, 4)
    chain.qdq(*second)
    chain.node("Concat", one, axis=1)
    if behind:
        chain.qdq(*behind)
    conv(4, 5)
    chain.qdq(0.3, 120)
    return chain.node("Flatten").node("Gemm", rng.integers(-7, 8, (120, 3)).astype(np.float32))


@pytest.mark.parametrize(
    ("second", "behind"),
    [((0.06131, 0), None), ((0.06131, 0), (0.06131, 0)), ((0.05, 0), (0.06131, 0)), ((0.0317, 90), (0.0413, 110))],
)
def test_a_network_of_onnx(second, behind):
    """Maps of several scales are requantised, each by a copy of its own."""
    from onnx.reference import ReferenceEvaluator

    chain = onnx_ways(second, behind=behind)
    imported = import_graph(to_graph(chain.bytes()), name="ways")
    verify(imported, 2)
    images = np.random.default_rng(4).normal(0, 1, (5, 2, 5, 6)).astype(np.float32)
    wanted = ReferenceEvaluator(chain.model()).run(None, {"x": images})[0]
    got = imported.host.scores(imported.model.forward(features(imported, images)))
    assert np.abs(got - wanted).max() < 1e-3 * np.abs(wanted).max()


def refused(graph):
    with pytest.raises(ImportRefused) as error:
        import_graph(graph, name="refused")
    return error.value.lines


def test_what_is_refused():
    rng = np.random.default_rng(1)

    def ways(zero=-128, **options):
        chain = Chain((4, 4, 3), 0.02, 3).conv(rng, 3, (3, 3), LIKE, activation="RELU")
        fork = chain.here
        chain.conv(rng, 2, (3, 3), LIKE)
        one, chain.here = chain.here, fork
        return chain.conv(rng, 2, (3, 3), (0.0331, zero)).concat(one, **options).conv(rng, 2, (3, 3), (0.1, 0))

    assert refused(to_tflite_graph(ways(zero=5).bytes())) == (
        "CONCATENATION_3 (CONCATENATION): its maps must have the result's scale and zero point, 0.0331 and 5, got "
        "0.0331 and -128 at input 1",
    )
    assert refused(to_tflite_graph(ways(activation="RELU").bytes())) == (
        "CONCATENATION_3 (CONCATENATION): an activation behind it must be NONE; it belongs into the layers before",
    )
    assert refused(to_graph(onnx_ways(second=(0.05, 0), behind=None).bytes())) == (
        "Concat_13 (Concat): maps that are concatenated must have one scale and zero point, or be requantised to one",
    )


def test_what_was_concatenated_is_quantised_again():
    """A copy of every channel lies behind the concatenation."""
    imported = import_graph(to_graph(onnx_ways(behind=(0.02, 7)).bytes()), name="ways")
    verify(imported, 2)
    assert "depthwise_conv" in [layer.kind for layer in imported.model.network.layers]

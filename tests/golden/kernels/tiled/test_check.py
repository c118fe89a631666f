"""Models of the table of cases, stage by stage, by the implementations that need no hardware."""

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.kernels.tiled import reference
from bitloom.golden.layer import Map
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.grouped import DepthwiseConv, GroupedConv
from bitloom.golden.layers.pool import MaxPool
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from tests.cases import case_map, cases, random_images, random_model
from tests.errors import value_error
from tests.golden.kernels.tiled import check


def computable(model):
    """Whether golden.kernels.tiled has all binary layers of the model, and there are any."""
    try:
        return any(stage.conv for stage in check.stages(model, 32))
    except ValueError:
        return False


CASES = [(name, model) for name, model in cases() if computable(model)]


def test_most_cases_are_binary():
    assert len(CASES) >= 12


@pytest.mark.parametrize("name", ["tiled", "cpu"])
@pytest.mark.parametrize(("case", "model"), CASES, ids=[name for name, _ in CASES])
def test_stages_equal_golden(case, model, name):
    images = random_images(model, 3, np.random.default_rng(5))
    golden, chosen = dict(model.walk(images)), check.IMPLEMENTATIONS[name]
    for word_bits in (chosen.word_bits,) if chosen.word_bits else (32, 64):
        outputs = check.trace(model, images, chosen.convolve, word_bits)
        stages = check.stages(model, word_bits)
        assert [layer.name for stage in stages for layer, _ in stage.layers] == list(golden)
        first = next(k for k, stage in enumerate(stages) if stage.conv)
        assert outputs[:first] == [None] * first
        for stage, output in zip(stages[first:], outputs[first:]):
            assert np.array_equal(output, golden[stage.last])


@pytest.fixture
def network():
    """Integer input; thresholds after a pool of sums; a pool of bits with padding; raw sums at the end."""
    layers = (
        Conv(name="conv_1", out_channels=33, kernel=(2, 2)),
        Threshold(name="threshold_1"),
        Conv(name="conv_2", out_channels=35, kernel=(3, 2), padding=(1, 1, 1, 0)),
        MaxPool(name="pool_2", kernel=(2, 2), stride=(1, 2)),
        Threshold(name="threshold_2"),
        Conv(name="conv_3", out_channels=40, kernel=(2, 2)),
        Threshold(name="threshold_3"),
        MaxPool(name="pool_3", kernel=(2, 2), stride=(2, 1), padding=(1, 0, 0, 1)),
        Dense(name="dense_4", out_channels=5),
    )
    source = case_map(7, 6, 2, signed(4))
    return Network(name="mixed", input=source, layers=layers)


def test_stages_of_a_mixed_network(network):
    model = random_model(network, np.random.default_rng(0))
    stages = check.stages(model, 64)
    assert [([layer.name for layer, _ in s.layers], s.conv is not None) for s in stages] == [
        (["conv_1", "threshold_1"], False), (["conv_2"], True), (["pool_2"], False), (["threshold_2"], False),
        (["conv_3", "threshold_3"], True), (["pool_3"], False), (["dense_4"], True),
    ]  # fmt: skip
    images = random_images(model, 2, np.random.default_rng(1))
    golden, outputs = dict(model.walk(images)), check.trace(model, images, reference.run, 64)
    assert outputs[0] is None
    for stage, output in zip(stages[1:], outputs[1:]):
        assert np.array_equal(output, golden[stage.last])


def test_packed_words_go_from_layer_to_layer(network):
    """conv_3's words reach dense_4 through the pool, without being unpacked on the way."""
    model = random_model(network, np.random.default_rng(0))
    images = random_images(model, 1, np.random.default_rng(1))
    seen = []

    def convolve(layer, words):
        seen.append((layer.name, words))
        result = reference.run(layer, words)
        if layer.name == "conv_3":
            result = np.zeros_like(result)  # all bits -1
        return result

    outputs = check.trace(model, images, convolve, 32)
    assert [name for name, _ in seen] == ["conv_2", "conv_3", "dense_4"]
    assert not seen[2][1].any()
    assert (outputs[5] == -1).all()


def test_the_fibers_run_a_network(network):
    model = random_model(network, np.random.default_rng(2))
    images = random_images(model, 1, np.random.default_rng(1))
    expected = check.trace(model, images, reference.run, 32)
    for name in ("popc", "mma-xor", "mma-and"):
        outputs = check.trace(model, images, check.IMPLEMENTATIONS[name].convolve, 32)
        assert all(np.array_equal(a, b) for a, b in zip(outputs[1:], expected[1:]))


def test_a_dense_layer_at_the_input_reads_one_tuple():
    source = Map(height=28, width=28, channels=1, encoding=BIPOLAR)
    network = Network(name="flat", input=source, layers=(Dense(name="dense_1", out_channels=3), Threshold(name="t_1")))
    model = random_model(network, np.random.default_rng(0))
    images = random_images(model, 2, np.random.default_rng(1))
    seen = []
    (output,) = check.trace(model, images, lambda layer, x: seen.append(x.shape) or reference.run(layer, x), 64)
    assert seen == [(2, 13, 1, 1)]
    assert np.array_equal(output, model.trace(images)[-1])


def test_errors():
    layer = Conv(name="conv_1", out_channels=3, kernel=(1, 1), accumulate="or")
    network = Network(name="or", input=case_map(2, 2, 3), layers=(layer,))
    with value_error("conv_1: accumulate must be popcount, got or"):
        check.stages(random_model(network, np.random.default_rng(0)), 32)
    layers = (
        GroupedConv(name="conv_1", out_channels=4, kernel=(1, 1), groups=2),
        DepthwiseConv(name="conv_1", out_channels=4, kernel=(1, 1)),
    )
    for layer in layers:
        network = Network(name="groups", input=case_map(2, 2, 4), layers=(layer,))
        with value_error(f"conv_1: kind must be conv or dense, got {layer.kind}"):
            check.stages(random_model(network, np.random.default_rng(0)), 32)
    network = Network(name="n", input=case_map(2, 2, 3), layers=(Dense(name="dense_1", out_channels=2),))
    model = random_model(network, np.random.default_rng(0))
    with value_error("n: images must have shape (N, 2, 2, 3), got (1, 2, 2, 1)"):
        check.trace(model, np.ones((1, 2, 2, 1), np.int64), reference.run, 32)

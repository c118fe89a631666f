"""Layers that the host computes behind the device: the device's results and these layers give golden's results."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.encoding import BIPOLAR, signed
from bitloom.golden.layers.affine import Affine
from bitloom.golden.layers.conv import Conv
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.pool import AvgPool, MaxPool, MinPool
from bitloom.golden.layers.requantise import Requantise
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Network
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.engine_rules import Engine
from bitloom.hls_gen.compiler.host_tail import on_device, split
from bitloom.hls_gen.compiler.lowering import lower_alone
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.compiler.workloads import engines_of
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.fuzz import random_models as drawn
from tests.cases import case_map, random_images
from tests.errors import value_error
from tests.result_index import result_index

INT8 = signed(8)
POOL = {"kernel": (2, 2), "stride": (1, 1)}


def conv(weight=BIPOLAR, name="conv_1"):
    return Conv(name=name, out_channels=3, kernel=(2, 2), weight=weight)


def line(relu=False):
    return Affine(name="affine_1", encoding=signed(40), relu=relu)


def model_of(encoding, *layers):
    network = Network(name="net", input=case_map(5, 6, 3, encoding), layers=layers, classes=("a", "b", "c"))
    lines = [layer.name for layer in layers if isinstance(layer, Affine)]
    integers = replace(network, layers=tuple(layer for layer in layers if layer.name not in lines))
    model = drawn.random_model(integers, 1, 32)
    rng = np.random.default_rng(2)
    lines = {n: {"multiplier": rng.integers(-999, 999, 3), "bias": rng.integers(-9999, 9999, 3)} for n in lines}
    return type(model)(network, {**model.arrays, **lines})


CASES = [
    (BIPOLAR, [conv(), line(relu=True)], 1),
    (BIPOLAR, [conv(), MaxPool(name="pool", **POOL)], 1),
    (BIPOLAR, [conv(), MinPool(name="pool", **POOL), line(), Threshold(name="act")], 3),
    (BIPOLAR, [conv(), Threshold(name="act"), line()], 1),
    (INT8, [conv(INT8), AvgPool(name="pool", **POOL), line()], 2),
    (INT8, [conv(INT8), Requantise(name="act", encoding=INT8), AvgPool(name="pool", **POOL), line()], 1),
    (INT8, [conv(INT8), Threshold(name="act")], 1),
    (INT8, [conv(INT8), Requantise(name="act", encoding=INT8)], 0),
    (BIPOLAR, [conv(), Threshold(name="act"), MaxPool(name="pool", **POOL)], 0),
    (BIPOLAR, [conv()], 0),
]


@pytest.mark.parametrize(("encoding", "layers", "count"), CASES)
def test_both_together_are_golden(encoding, layers, count):
    model = model_of(encoding, *layers)
    device, tail = split(model)
    assert len(device.network.layers) == len(layers) - count
    assert on_device(model.network) == device.network
    assert (tail is None) == (count == 0)
    assert split(device) == (device, None)
    images = random_images(model, 4, np.random.default_rng(3))
    results = device.forward(images)
    assert np.array_equal(tail.forward(results) if tail else results, model.forward(images))
    binary = engines_of(model.network) == ["binary"]
    lowered = lower_alone(model, engines=Engine() if binary else Engine("integer", 8, 8))
    assert lowered.model.network == device.network


def test_in_the_middle_the_rule_is_told():
    with value_error(
        "conv_1: what follows must be nothing, threshold, or threshold and a max_pool or min_pool in either order, "
        "got affine"
    ):
        lower_alone(model_of(BIPOLAR, conv(), line(), Dense(name="dense", out_channels=3)))


def test_a_program_has_the_hosts_layers(tmp_path):
    model = model_of(BIPOLAR, conv(), MaxPool(name="pool", **POOL), line(relu=True))
    design = size_memories("d", [model], (Npu.of(kfp=3, kgp=3, pfp=3, ol=1),))
    program = compile_model(model, Manifest.of(design, "0" * 64))
    assert (program.output_shape, program.network_shape) == ((4, 5, 3), (3, 4, 3))
    program.save(tmp_path / "p.npz")
    again = Program.load(tmp_path / "p.npz")
    assert again.to_bytes() == program.to_bytes()
    assert (again.classes, again.network_shape) == (("a", "b", "c"), (3, 4, 3))
    images = random_images(model, 3, np.random.default_rng(1))
    device, _ = split(model)
    words = np.zeros((3, program.result_words), np.uint32)
    words[:, result_index(program)[:, 0]] = device.forward(images).reshape(3, -1).astype(np.int32).view(np.uint32)
    assert np.array_equal(again.unpack_results(words), model.forward(images))
    assert np.array_equal(again.classify(model.forward(images)), model.forward(images).reshape(3, -1).argmax(axis=1))


def test_the_hosts_layers_of_a_stranger(tmp_path):
    model = model_of(BIPOLAR, conv(), line())
    design = size_memories("d", [model], (Npu.of(kfp=3, kgp=3, pfp=3, ol=1),))
    program = compile_model(model, Manifest.of(design, "0" * 64))
    with value_error("net: the host's layers must read a map of shape (4, 5, 3), got (5, 6, 3)"):
        small = Network(name="net", input=case_map(5, 6, 3, INT8), layers=(MaxPool(name="pool", **POOL),))
        replace(program, tail=type(model)(small, {}))
    weighted = model_of(program.tail.network.input.encoding, conv(INT8))
    weighted = type(weighted)(replace(weighted.network, input=program.tail.network.input), weighted.arrays)
    with value_error("net: the host's layers must have no weights, got conv"):
        replace(program, tail=weighted)
    pool = MaxPool(name="pool", kernel=(4096, 4096), stride=(1, 1), padding=(4095,) * 4)
    wide = Network(name="net", input=program.tail.network.input, layers=(pool,))
    with pytest.raises(ValueError, match=r"^net: pool: taps of all windows of a layer must be <= 4,194,304 "):
        replace(program, tail=type(model)(wide, {}))
    program.save(tmp_path / "p.npz")

"""Layers that the host computes behind the device: the device's results and these layers give golden's results."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.layers.affine import Affine
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
from tests.cases import random_images
from tests.errors import value_error
from tests.graph_text import network_of
from tests.result_index import result_index

CONV, INTEGER = "conv_1 3 2x2", "conv_1 3 2x2 s8"
POOL = "max_pool pool 2x2 1x1"
LINE = "affine_1 s40"


def model_of(encoding, *layers):
    network = replace(network_of(f"5x6x3 {encoding}", *layers), classes=("a", "b", "c"))
    lines = [layer.name for layer in network.layers if isinstance(layer, Affine)]
    integers = replace(network, layers=tuple(layer for layer in network.layers if layer.name not in lines))
    model = drawn.random_model(integers, 1, 32)
    rng = np.random.default_rng(2)
    lines = {n: {"multiplier": rng.integers(-999, 999, 3), "bias": rng.integers(-9999, 9999, 3)} for n in lines}
    return type(model)(network, {**model.arrays, **lines})


CASES = [
    ("b1", [CONV, LINE + " relu=yes"], 1),
    ("b1", [CONV, POOL], 1),
    ("b1", [CONV, "min_pool 2x2 1x1", LINE, "act"], 3),
    ("b1", [CONV, "act", LINE], 1),
    ("s8", [INTEGER, "avg_pool 2x2 1x1", LINE], 2),
    ("s8", [INTEGER, "act s8", "avg_pool 2x2 1x1", LINE], 1),
    ("s8", [INTEGER, "act"], 1),
    ("s8", [INTEGER, "act s8"], 0),
    ("b1", [CONV, "act", POOL], 0),
    ("b1", [CONV], 0),
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
        lower_alone(model_of("b1", CONV, LINE, "dense 3"))


def test_a_program_has_the_hosts_layers(tmp_path):
    model = model_of("b1", CONV, POOL, LINE + " relu=yes")
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
    model = model_of("b1", CONV, LINE)
    design = size_memories("d", [model], (Npu.of(kfp=3, kgp=3, pfp=3, ol=1),))
    program = compile_model(model, Manifest.of(design, "0" * 64))
    with value_error("net: the host's layers must read a map of shape (4, 5, 3), got (5, 6, 3)"):
        replace(program, tail=type(model)(network_of("5x6x3 s8", POOL), {}))
    weighted = drawn.random_model(network_of(program.tail.network.input, INTEGER), 1, 32)
    with value_error("net: the host's layers must have no weights, got conv"):
        replace(program, tail=weighted)
    wide = network_of(program.tail.network.input, "max_pool pool 4096 1 4095")
    with pytest.raises(ValueError, match=r"^net: pool: taps of all windows of a layer must be <= 4,194,304 "):
        replace(program, tail=type(model)(wide, {}))
    program.save(tmp_path / "p.npz")

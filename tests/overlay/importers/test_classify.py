"""An imported network on the virtual board, through pynq's driver: real numbers in, the classes of its file out."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from bitloom.driver.overlay import BitloomOverlay
from bitloom.golden import zoo
from bitloom.golden.layers.affine import Affine, affine
from bitloom.golden.layers.batch_norm import BatchNorm
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build.images import read_images
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.virtual.board import activate
from tests import simulated
from tests.cases import random_images
from tests.errors import value_error
from tests.host_outputs import with_scores

from .against import by_qonnx, import_chain
from .onnx_files import QONNX, Chain, onnx


def digits_like(rng):
    """A network that fits the design of digits-cnn: real numbers, convolutions, biases behind, softmax."""
    chain = Chain((1, 8, 8)).quant(np.float32(0.07), 5, signed=0)
    for number, (inputs, outputs, padding) in enumerate(((1, 16, 1), (16, 32, 0), (32, 64, 1))):
        weight = chain.weight("BipolarQuant", rng.normal(size=(outputs, inputs, 3, 3)), 0.125, domain=QONNX)
        chain.node("Conv", weight, kernel_shape=[3, 3], pads=[padding] * 4).batch_norm(rng, outputs)
        chain.node("BipolarQuant", 1.0, domain=QONNX)
        if number == 1:
            chain.node("MaxPool", kernel_shape=[2, 2], strides=[2, 2])
    weight = chain.weight("BipolarQuant", rng.normal(size=(10, 576)), 0.05, domain=QONNX)
    chain.node("Flatten", axis=1).node("Gemm", weight, rng.normal(size=10), transB=1)
    return chain.node("Softmax", axis=1)


@pytest.fixture(scope="module")
def digits_chain():
    return digits_like(np.random.default_rng(5))


@functools.cache
def normalised():
    """digits-cnn with batch normalisation behind its sums, as a model, and that normalisation in floating point."""
    ours = zoo.load("digits-cnn")
    rng = np.random.default_rng(4)
    means = {name: rng.normal(0, spread, 10) for name, spread in (("gamma", 1), ("beta", 1), ("mean", 9))}
    norm = BatchNorm(name="norm", **means, var=rng.uniform(9, 900, 10), eps=1e-5)
    encoding, arrays, _ = affine(norm, ours.network.output.encoding)
    network = replace(ours.network, layers=(*ours.network.layers, Affine(name="norm", encoding=encoding)))
    return Model(network, {**ours.arrays, "norm": arrays}), norm


@pytest.fixture(scope="module")
def programs(digits_chain, tmp_path_factory):
    """The design of digits-cnn, and the files of two programs for it: the network's, and digits-cnn's."""
    imported = import_chain(digits_chain)
    ours = zoo.load("digits-cnn")
    folder = tmp_path_factory.mktemp("board")
    bit, manifest = simulated.overlay(size_memories("digits", [ours], DIGITS))
    choices = CompileChoices(map_order="pull")
    compile_model(imported.model, manifest, choices, host=imported.host).save(folder / "chain.npz")
    compile_model(ours, manifest, choices).save(folder / "digits.npz")
    compile_model(normalised()[0], manifest, choices).save(folder / "normalised.npz")
    return bit, folder / "chain.npz", folder / "digits.npz", folder / "normalised.npz"


def test_the_classes_of_the_file(digits_chain, programs):
    """The driver needs the program's file alone: quantisation, biases and softmax are in it."""
    rng = np.random.default_rng(1)
    images = rng.normal(1, 1, (12, 1, 8, 8)).astype(np.float32)
    wanted = by_qonnx(digits_chain, images)
    board = activate()
    try:
        with BitloomOverlay(str(programs[0])) as overlay:
            overlay.load(programs[1])
            classes = overlay.classify(images, batch=5)
            scores = overlay.scores(images)
            with value_error("chain: images must have shape (N, 1, 8, 8), got (12, 8, 8, 1)"):
                overlay.classify(images.reshape(12, 8, 8, 1))
            overlay.load(programs[2])
            with value_error("digits-cnn: scores are of imported networks, got a program without the host's part"):
                overlay.scores(images)
            integers = random_images(zoo.load("digits-cnn"), 6, rng)
            largest = overlay.predict(integers).reshape(6, -1).argmax(axis=1)
            assert overlay.classify(integers).tolist() == largest.tolist()
            sums = overlay.predict(integers)
            model, norm = normalised()
            overlay.load(programs[3])
            assert np.array_equal(overlay.predict(integers), model.forward(integers))
            wanted_there = norm.normalise(sums).reshape(len(integers), -1).argmax(axis=1)
            assert overlay.classify(integers).tolist() == wanted_there.tolist() != largest.tolist()
    finally:
        board.close()
    assert classes.tolist() == wanted.argmax(axis=1).tolist()
    assert len(set(classes.tolist())) > 2
    assert np.abs(scores - wanted).max() < 1e-6
    largest = import_chain(digits_chain).model.forward(Program.load(programs[1]).to_input(images))
    assert largest.reshape(12, -1).argmax(axis=1).tolist() != classes.tolist()  # integers alone are another classifier


def test_the_hosts_part_in_a_strangers_program(programs, tmp_path):
    program = Program.load(programs[1])
    assert program.to_bytes() == programs[1].read_bytes()
    other = replace(program.host, digest="0" * 64)
    with value_error(f"chain: the host's part must belong to the model {program.model_digest[:12]}, got {'0' * 12}"):
        replace(program, host=other)
    path = tmp_path / "bad.npz"
    wide = replace(program.host, shape=(64, 2))
    closings = with_scores(program.host, closing=("Exp",))
    links = with_scores(program.host, chain=program.host.only.parts[0].chain * 65)
    for host, line in (
        (other, f"host: must belong to the model {program.model_digest[:12]}, got '{'0' * 56}..."),
        (wide, "host: input.shape must have 64 values, and at most 8 axes, got (64, 2)"),
        (closings, "host: outputs.closing must be of Softmax, LogSoftmax, Sigmoid, ArgMax, TopK, got ['Exp']"),
        (links, "host: outputs.chain: must have at most 64 links, got 65"),
    ):
        changed = replace(program)
        object.__setattr__(changed, "host", host)
        changed.save(path)
        with value_error(f"{path}: {line}"):
            Program.load(path)


def test_images_that_are_none(programs):
    program = Program.load(programs[1])
    for images, line in (
        (np.zeros((2, 1, 8, 8), "U1"), "images must be numbers, got dtype <U1"),
        ([[0.5] * 64], "images must have shape (N, 1, 8, 8), got list"),
        (np.full((1, 1, 8, 8), np.nan), "images must give finite numbers, got nan"),
    ):
        with value_error(f"chain: {line}"):
            program.to_input(images)
    assert program.to_input(np.zeros((0, 1, 8, 8))).shape == (0, 8, 8, 1)


def test_simulate_reads_real_numbers(programs, digits_chain, tmp_path):
    """As the file takes them; integers stay the input's own."""
    program = Program.load(programs[1])
    network = import_chain(digits_chain).model.network
    real = np.random.default_rng(2).normal(1, 1, (3, 1, 8, 8))
    np.save(tmp_path / "real.npy", real)
    assert np.array_equal(read_images(tmp_path / "real.npy", network, 2, program.host), program.to_input(real)[:2])
    np.save(tmp_path / "integers.npy", program.to_input(real))
    integers = read_images(tmp_path / "integers.npy", network, host=program.host)
    assert np.array_equal(integers, program.to_input(real))
    with value_error(f"{tmp_path / 'real.npy'}: must be an array of truth values or integers, got dtype '<f8'"):
        read_images(tmp_path / "real.npy", network)
    np.save(tmp_path / "flat.npy", real.reshape(3, 64))
    with value_error(f"{tmp_path / 'flat.npy'}: images must have shape (N, 1, 8, 8), got (3, 64)"):
        read_images(tmp_path / "flat.npy", network, host=program.host)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Sigmoid"])
def test_what_a_file_ends_in(op, programs):
    """As ONNX's reference has it, large scores included; of an output with several positions at each one."""
    from onnx.reference import ReferenceEvaluator

    halves = (("line", np.full(10, 0.5), np.zeros(10)),)
    host = with_scores(Program.load(programs[1]).host, chain=halves, closing=(op,))
    output = np.random.default_rng(1).integers(-300, 300, (6, 1, 1, 10))
    chain = Chain((10,), dtype=onnx.TensorProto.DOUBLE, output_type=onnx.TensorProto.DOUBLE).node(op)
    with np.errstate(over="ignore"):
        wanted = ReferenceEvaluator(chain.model()).run(None, {"x": output.reshape(6, 10) / 2})[0]
    assert np.allclose(host.closed(output), wanted, rtol=1e-9, atol=1e-12)
    wide = with_scores(host, order=np.arange(20), classes=10)
    assert np.allclose(wide.closed(output.reshape(3, 2, 1, 10)), wanted.reshape(3, 20), rtol=1e-9, atol=1e-12)
    turned = with_scores(host, order=np.arange(20).reshape(2, 10).T.ravel(), classes=10, apart=2)
    channels_first = wanted.reshape(3, 2, 10).transpose(0, 2, 1).reshape(3, 20)
    assert np.allclose(turned.closed(output.reshape(3, 2, 1, 10)), channels_first, rtol=1e-9, atol=1e-12)

"""Networks whose weights don't fit the device: they come with every frame, while layers are computed (spec B18)."""

import asyncio
import dataclasses
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.driver.errors import PacketError, Timeout
from bitloom.golden import zoo as named
from bitloom.golden.kernels import packed
from bitloom.golden.network import Model
from bitloom.golden.zoo import digits
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.plan import plan
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.headers import HEADER_WORDS, PacketHeader
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import packets
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build import build as builds
from bitloom.overlay.build.reference_designs import DIGITS
from bitloom.overlay.build.run import run
from bitloom.overlay.virtual.board import activate
from tests.cases import random_images as images_of
from tests.cases import random_model as model_of
from tests.errors import value_error
from tests.graph_text import network_of
from tests.simulated import overlay


def words_of(counters: dict[str, int]) -> int:
    """Every cycle is one of these."""
    return sum(count for name, count in counters.items() if name.startswith("npu0_"))


# digits-cnn


@pytest.fixture(scope="module")
def model() -> Model:
    return named.load("digits-cnn")


@pytest.fixture(scope="module")
def build(model: Model, tmp_path_factory) -> builds.Build:
    design = size_memories("digits", [model], DIGITS, stream_bits=64, sizing=Sizing(stream_weights=True))
    return builds.build(tmp_path_factory.mktemp("digits") / "build", design, [model])


def rows_of(model: Model, folding: Npu) -> list[int]:
    return [layer.kernel_rows for layer in plan(model, [folding]).layers]


def test_kernel_memory_holds_two_layers(model: Model, build: builds.Build) -> None:
    rows = rows_of(model, DIGITS)
    assert build.design.npus[0].array.kernel_rows == 2 * max(rows) < sum(rows)


def test_weights_are_loaded_while_layers_are_computed(model: Model, build: builds.Build) -> None:
    """A frame takes far fewer cycles than its beats and its stream words one after the other."""
    count = 30
    stream_words = build.design.stream_bits // 32
    done = run(build, model, digits.load_digits().test_images[:count])
    program, counters = done.program, done.counters
    block = (len(program.weights) + HEADER_WORDS + program.payload_words) // stream_words
    assert counters["words_in"] == count * block
    beats = program.ideal_cycles
    load = len(program.weights) // stream_words
    cycles = done.cycles_per_frame
    assert load > 0.2 * beats
    assert cycles - beats < 0.3 * load  # most of the load is hidden
    assert counters["npu0_wait_weights"] < 0.25 * load * count
    assert done.bit_exact_frames == count
    assert counters["npu0_beats"] == count * program.ideal_cycles
    assert words_of(counters) == counters["cycles"]


# Memories for exactly the two layers in use, and for one


NETWORK = network_of(
    "6x5x4 s6",
    "conv_1 5 3x2 s4 padding=1/1/0/0, requantise_1 s6 relu=yes, conv_2 9 2x2 s5, "
    "requantise_2 s6 relu=yes, conv_3 8 2x3 s5 stride=2x1, requantise_3 s6 relu=yes, "
    "dense fc_1 14 s5, requantise_4 s6 relu=yes, dense fc_2 6 s3",
    name="five",
)
INTEGER = Npu.of(engine="integer", feature_bits=6, weight_bits=5, shift_bits=0, acc_bits=20, kfp=3, kgp=4, pfp=2, ol=2)


def five() -> tuple[Model, np.ndarray]:
    rng = np.random.default_rng(8)
    model = model_of(NETWORK, rng)
    return model, images_of(model, 9, rng)


def test_a_layer_larger_than_the_memory(tmp_path: Path) -> None:
    model, _ = five()
    rows = rows_of(model, INTEGER)
    design = size_memories("five", [model], INTEGER, sizing=Sizing(stream_weights=True))
    design = replace(design, npus=(design.npus[0].changed(kernel_rows=max(rows) - 1),))
    told = f"kernel_rows must be >= {max(rows)} for fc_1, design {design.name} has {max(rows) - 1}"
    with value_error(f"five: {told}"):
        builds.build(tmp_path, design, [model])


# A board with this design: transfers, malformed streams, recovery


class Board:
    def __init__(self):
        self.model, self.images = five()
        rows = rows_of(self.model, INTEGER)
        design = size_memories("five", [self.model], INTEGER, sizing=Sizing(stream_weights=True))
        depth = max(a + b for a, b in pairwise(rows))
        design = replace(design, npus=(design.npus[0].changed(kernel_rows=depth),))
        self.bit, self.manifest = overlay(design)
        self.program = compile_model(self.model, self.manifest)
        self.device = activate()
        self.expected = packed.forward(self.model, self.images)

    def right(self, accelerator: Accelerator, **options) -> None:
        np.testing.assert_array_equal(accelerator.predict(self.images, **options), self.expected)

    def streamed(self) -> list[tuple[PacketHeader, np.ndarray]]:
        """(header, rows) of the WEIGHTS packets."""
        return [(h, rows) for h, _, rows in packets(self.manifest, self.program.weights, kind="WEIGHTS")]

    def with_weights(self, parts: list[tuple[PacketHeader, np.ndarray]], before: int = 0) -> Program:
        words = [np.concatenate([h.words(self.manifest.packet_magic), rows.ravel()]) for h, rows in parts]
        return dataclasses.replace(
            self.program, weights=np.concatenate(words), weights_before=sum(len(w) for w in words[:before])
        )


@pytest.fixture(scope="module")
def board():
    board = Board()
    yield board
    board.device.close()


@pytest.fixture
def accelerator(board):
    board.device.stall()
    with Accelerator(board.bit, device=board.device) as accelerator:
        accelerator.load(board.program)
        yield accelerator


@pytest.mark.sample(1)
@pytest.mark.parametrize("limit", [None, 100, 60, 33])
@pytest.mark.parametrize("batch", [None, 2, 9])
def test_transfers_are_cut_between_packets(board, accelerator, limit, batch) -> None:
    """Also inside a layer's weights, which then are several packets."""
    if limit:
        accelerator._link.limit_bytes = 4 * max(limit, HEADER_WORDS + board.program.payload_words)
    board.device.stall(source=0.2, sink=0.2, seed=limit or 0)
    board.right(accelerator, batch=batch)
    accelerator.load(board.program)
    board.right(accelerator, batch=batch)


def test_async(board, accelerator) -> None:
    accelerator._link.limit_bytes = 4 * (HEADER_WORDS + board.program.payload_words)
    outputs = asyncio.run(accelerator.predict_async(board.images[:7], batch=3))
    np.testing.assert_array_equal(outputs, board.expected[:7])


def send(accelerator, words) -> None:
    """Send words that the driver would never send, by the driver's own means."""
    with accelerator._transferring():
        accelerator._link.buffer("send0", len(words))[: len(words)] = words
        accelerator._send("send0", len(words), "test")
        accelerator._wait(lambda: False, "test")


REFUSED = [("BAD_RANGE", {"address": 1 << 23}), ("BAD_RANGE", {"length": 0}), ("BAD_NPU", {"npu": 1})]
REFUSED += [("BAD_KIND", {"kind": 4}), ("TRUNCATED", {})]


@pytest.mark.parametrize(("name", "change"), REFUSED)
def test_the_device_refuses_and_recovers(board, accelerator, name, change) -> None:
    header, rows = board.streamed()[0]
    words = np.concatenate([replace(header, **change).words(board.manifest.packet_magic), rows.ravel()])
    with pytest.raises(PacketError) as e:
        send(accelerator, words[: len(words) - (name == "TRUNCATED")])
    assert e.value.name == name
    board.right(accelerator)


def test_too_few_weights(board, accelerator) -> None:
    """The layer waits; the time-out says for what. The next call is right again."""
    accelerator.program = board.with_weights(board.streamed()[:-1])
    accelerator._waiting.timeout = 0.5
    before = board.device.timeout_cycles
    board.device.timeout_cycles = 1 << 40  # the driver's time-out comes first
    with pytest.raises(Timeout, match=r"five: 1 frames must be computed, got no progress .* npu0.WAITS_WEIGHTS 1"):
        accelerator.predict(board.images[:1])
    assert accelerator.registers.read("NPU0_WAIT_WEIGHTS") > 0
    board.device.timeout_cycles = before
    accelerator._waiting.timeout = 10
    accelerator.program = board.program
    board.right(accelerator)


@pytest.mark.sample(2)
@pytest.mark.parametrize("order", ["two swapped", "one twice", "one lost", "the last one first"])
def test_weights_in_another_order(board, accelerator, order) -> None:
    """The layers' numbers are out of order: an error, and right results after it."""
    a, b, *others = board.streamed()
    parts = {"two swapped": [b, a, *others], "one twice": [a, b, b, *others], "one lost": [a, *others]}
    parts["the last one first"] = [others[-1] if others else b, a, *others[:-1]]
    parts = parts[order]
    for before in (0, 1, len(parts)):
        accelerator.program = board.with_weights(parts, before)
        with pytest.raises(PacketError) as e:
            accelerator.predict(board.images)
        assert e.value.name == "BAD_ORDER"
        accelerator.program = board.program
        board.right(accelerator)

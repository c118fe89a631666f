"""The driver with a network in partitions: digits-cnn on its own design, on the virtual board."""

import asyncio
import re
from functools import cache

import numpy as np
import pytest

from bitloom.driver.accelerator import Accelerator
from bitloom.driver.accelerator_group import AcceleratorGroup
from bitloom.driver.errors import DeviceTaken, DigestMismatch
from bitloom.driver.host_maps import HostMaps
from bitloom.golden import zoo
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model, compile_network
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.compiled_network import CompiledNetwork, MapChannels, Turn
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.partitioned_program import PartitionedProgram, read_program
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build.images import random_images
from tests.errors import value_error
from tests.simulated import loaded, overlay

MODEL = zoo.load("digits-cnn")
IMAGES = random_images(MODEL.network, 7, 3)
EXPECTED = MODEL.forward(IMAGES)
HOLDS_ALL = Npu.of(kfp=32, kgp=16, pfp=16, ol=4, planes=6)


@cache
def device():
    """The .bit of the design that holds all of the network, and its manifest."""
    return overlay(size_memories("digits", [MODEL], HOLDS_ALL))


@cache
def network() -> CompiledNetwork[Program]:
    """Four programs, the last two of which give the classes together."""
    return compile_network(MODEL, device()[1], CompileChoices(partitions={"conv_2": 1, "dense_4": 2}))


@pytest.fixture
def accelerator():
    with loaded(device()[0], network()) as (opened, _):
        yield opened


def test_frames_go_through_the_partitions_in_rounds(accelerator):
    """Of a batch of three frames each; progress is told after each program, as a sign of life in a long round, and
    parameters are loaded anew in each."""
    told = []
    before = accelerator.registers.read("WORDS_IN")
    got = accelerator.predict(IMAGES, batch=3, progress=lambda done, total: told.append((done, total)))
    np.testing.assert_array_equal(got, EXPECTED)
    assert told == [(0, 7)] * 3 + [(3, 7)] * 4 + [(6, 7)] * 4 + [(7, 7)]
    assert accelerator.registers.read("WORDS_IN") != before
    np.testing.assert_array_equal(accelerator.predict(IMAGES[:2], batch=1), EXPECTED[:2])
    with value_error("digits-cnn: batch must be >= 1 frames, got 0"):
        accelerator.predict(IMAGES, batch=0)


def test_classes_counters_and_no_images(accelerator):
    np.testing.assert_array_equal(accelerator.classify(IMAGES), EXPECTED.reshape(7, -1).argmax(axis=1))
    assert accelerator.counters()["cycles"] > 7 * network().ideal_cycles
    assert accelerator.counters()["frames"] == 7 * len(network().programs)
    assert accelerator.predict(IMAGES[:0]).shape == (0, 1, 1, 10)
    with value_error("digits-cnn: images must have shape (N, 8, 8, 1), got (1, 8, 8, 2)"):
        accelerator.predict(np.zeros((1, 8, 8, 2), np.int64))


def test_with_coroutines(accelerator):
    np.testing.assert_array_equal(asyncio.run(accelerator.predict_async(IMAGES)), EXPECTED)


def test_a_group_gives_a_board_one_share(accelerator):
    told = []
    group = AcceleratorGroup([accelerator])
    group.load(network())
    got = group.predict(IMAGES, progress=lambda done, total: told.append((done, total)))
    np.testing.assert_array_equal(got, EXPECTED)
    assert told == [(7, 7)]


def test_after_another_program_and_an_error(accelerator):
    """A whole network, then the partitions again; and a reset in between."""
    accelerator.load(compile_model(MODEL, device()[1]))
    np.testing.assert_array_equal(accelerator.predict(IMAGES), EXPECTED)
    accelerator.load(network())
    accelerator.reset()
    np.testing.assert_array_equal(accelerator.predict(IMAGES), EXPECTED)
    np.testing.assert_array_equal(accelerator.predict(IMAGES), EXPECTED)


def test_somebody_else_loads_between_two_partitions(accelerator):
    """The device stays theirs."""
    with Accelerator(accelerator.overlay) as other:
        accelerator.load(network())
        taken = []

        def take(*_):
            if not taken:
                taken.append(other.load(compile_model(MODEL, device()[1])))

        with pytest.raises(DeviceTaken):
            accelerator.predict(IMAGES, batch=3, progress=take)
        np.testing.assert_array_equal(other.predict(IMAGES), EXPECTED)
    accelerator.load(network())
    np.testing.assert_array_equal(accelerator.predict(IMAGES), EXPECTED)


def test_a_value_that_no_map_between_partitions_has():
    """As a faulty device may give it: the next program would take some of its bits."""
    turns = network().turns
    maps = HostMaps(turns, IMAGES, np.empty_like(EXPECTED))
    maps.outputs(turns[0])[...] = 1
    np.testing.assert_array_equal(maps.images(turns[1]), 1)
    maps.outputs(turns[0])[6, 7, 7, 15] = 3
    with value_error("digits-cnn.conv_2: map threshold_1: values must be bipolar 1 bit (-1..1 in steps of 2), got 3"):
        maps.images(turns[1])


def test_refused(accelerator):
    with value_error("digits-cnn: results of a network in partitions must be 0 frames, got 4"):
        accelerator.load(network(), results=4)
    other = compile_network(
        MODEL, device()[1].__class__.of(device()[1].design, "0" * 64), CompileChoices(partitions={"conv_2": 1})
    )
    with pytest.raises(DigestMismatch):
        accelerator.load(other)


def test_file(tmp_path, accelerator):
    path = tmp_path / "digits.program.npz"
    network().save(path)
    read = read_program(path)
    assert isinstance(read, PartitionedProgram)
    assert read.to_bytes() == network().to_bytes()
    assert (read.turns[2].reads, read.turns[3].gives) == (network().turns[2].reads, network().turns[3].gives)
    assert read.classes == network().classes
    accelerator.load(path)
    np.testing.assert_array_equal(accelerator.predict(IMAGES), EXPECTED)
    whole = compile_model(MODEL, device()[1])
    whole.save(path)
    assert read_program(path).to_bytes() == whole.to_bytes()


FIRST, SECOND, THIRD, FOURTH = "digits-cnn.conv_1", "digits-cnn.conv_2", "digits-cnn.dense_4.0", "digits-cnn.dense_4.1"


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ([1, 2, 3], f"{SECOND} must read maps of (8, 8) positions, got threshold_1"),
        ([0, 1, 3], f"{FOURTH} must give the next 5 channels of a map of (1, 1, 0), got channels 5..9 of dense_4"),
        ([0, 2, 3], f"{THIRD} must read maps of (3, 3) positions, got threshold_3"),
        ([], "programs must be 1..1024, got 0"),
    ],
)
def test_programs_that_dont_go_together(numbers, message):
    turns = tuple(network().turns[n] for n in numbers)
    with pytest.raises(ValueError, match=re.escape(message)):
        PartitionedProgram(name="digits-cnn", model_digest="0" * 64, programs_in_turn=turns)


def test_a_map_is_whole_before_it_is_read_and_read_once():
    """Else the driver would let go of its first channels, and a small file would fill any memory."""
    first, second, *rest = network().turns
    late = Turn(first.program, first.reads, MapChannels("threshold_1", 16, 32))
    twice = Turn(second.program, second.reads * 2, second.gives)
    for turns, rule in (
        ((first, second, late, *rest), f"{FIRST} must give channels of a map that nobody has read"),
        ((first, twice, *rest), f"{SECOND} must read a map once"),
    ):
        with value_error(f"digits-cnn: {rule}, got threshold_1"):
            PartitionedProgram(name="digits-cnn", model_digest="0" * 64, programs_in_turn=turns)

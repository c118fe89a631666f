"""libbitloom with networks in partitions on the Verilated device: golden's outputs, in rounds as large as memory is."""

from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.file import model_digest
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model, compile_network
from bitloom.hls_gen.compiler.sizing import size_memories
from bitloom.hls_gen.design.registers import COMMON
from bitloom.overlay.build.images import random_images
from tests.driver.test_partitions import EXPECTED, IMAGES, MODEL
from tests.driver.test_partitions import device as digits_device
from tests.driver.test_partitions import network as digits
from tests.hls_gen.compiler.test_partitions import NPU, begins, residual
from tests.simulated import overlay

from .bench import CDevice, CError, c_device
from .test_device import no_memory, refused, right, with_host

OWNER = next(register.offset for register in COMMON if register.name == "OWNER")
MAP_BYTES = 8 * 8 * 16 + 3 * 3 * 64
"""Of digits-cnn, a frame: the first program's map of bits in bytes, and the second one's. The classes lie in the first
one's place."""


@pytest.fixture
def device():
    with c_device(digits_device()[0], interrupts=True) as opened:
        opened.load(digits())
        yield opened


def loads_of(device: CDevice, count: int) -> int:
    """How often parameters are sent for some images: whoever sends them writes his number to the device."""
    loads = []
    device.write_hook = lambda unit, offset, value: loads.append(value) if (unit, offset) == (0, OWNER) else None
    right(device, MODEL, IMAGES[:count])
    device.mend()
    return len(loads)


def test_outputs_classes_and_counters(device):
    """Slices give the classes together: in the caller's memory, or in none of his."""
    right(device, MODEL, IMAGES)
    device.clear_counters()
    np.testing.assert_array_equal(device.classify(IMAGES), EXPECTED.reshape(len(IMAGES), -1).argmax(axis=1))
    assert device.counters()["frames"] == len(digits().programs) * len(IMAGES)
    assert device.predict(IMAGES[:0], (1, 1, 10)).shape == (0, 1, 1, 10)
    images = IMAGES.copy()
    images[6, 0, 0, 0] = 99
    refused(lambda: device.predict(images, (1, 1, 10)), "digits-cnn: image 6: values must be 0..31, got 99")
    right(device, MODEL, IMAGES)


@pytest.mark.parametrize("stall", [0.0, 0.4])
def test_maps_of_several_programs(stall):
    """A residual block whose slices read channels of two maps, and slices of the image."""
    of_block = CompileChoices(partitions={"conv_2": 1, "conv_3": 2})
    block = residual()
    for model, choices, design in (begins(), (block, of_block, size_memories("block", [block], NPU, of_block))):
        bit, manifest = overlay(design)
        with c_device(bit, stalls={"source": stall, "sink": stall, "seed": 1}) as opened:
            opened.load(compile_network(model, manifest, choices))
            right(opened, model, random_images(model.network, 3, 2).astype(np.uint8))
            right(opened, model, random_images(model.network, 2, 3))


def test_rounds_have_room_in_the_heap(device):
    """Parameters of all programs are sent once a round; a round has as many frames as the heap has memory for."""
    assert loads_of(device, 7) == 3  # the first one was sent by load
    device.memory.largest = 0
    assert loads_of(device, 7) == 4
    assert device.memory.largest == 7 * MAP_BYTES
    for most, rounds in ((4 * MAP_BYTES, 3), (2 * MAP_BYTES, 7)):  # of 7 // 2 frames, and of 3 // 2
        device.memory.most = most
        assert loads_of(device, 7) == 4 * rounds
    device.memory.most = MAP_BYTES - 1
    rule = f"digits-cnn: maps between programs need {MAP_BYTES} bytes a frame, got no memory"
    refused(lambda: right(device, MODEL, IMAGES), rule, "NO_MEMORY")


def test_an_imported_network(device):
    """Classes and scores are golden's, of images as the file takes them, and of pixels."""
    network = with_host(MODEL, digits())
    device.load(network)
    images = np.random.default_rng(2).integers(-20, 160, (5, *network.host.shape)) / 10
    outputs = MODEL.forward(network.to_input(images))
    np.testing.assert_array_equal(device.classify(images), network.classify(outputs))
    np.testing.assert_allclose(device.scores(images, 10), network.host.closed(outputs), rtol=1e-13)
    right(device, MODEL, IMAGES)
    other = replace(network.host, digest=model_digest(residual()))
    object.__setattr__(network, "host", other)
    with pytest.raises(CError, match=r"^digits-cnn: host: must belong to the program's model, got"):
        device.read_program(network.to_bytes())


def test_after_another_program_and_a_reset(device):
    device.load(compile_model(MODEL, digits_device()[1]))
    right(device, MODEL, IMAGES)
    device.load(digits())
    device.reset()
    right(device, MODEL, IMAGES)


def test_somebody_else_loads_between_two_programs(device):
    """The device stays theirs."""
    with CDevice(device.board, device.manifest, name="other") as other:
        device.load(digits())
        program = other.read_program(compile_model(MODEL, digits_device()[1]).to_bytes())
        device.results_hook = lambda data: other.load(program)
        with pytest.raises(CError, match=r"^c: the device must hold program digits-cnn\.conv_1 \(parameters") as caught:
            device.predict(IMAGES, (1, 1, 10))
        assert caught.value.status == "TAKEN"
        device.mend()
        right(other, MODEL, IMAGES)
    device.load(digits())
    right(device, MODEL, IMAGES)


def test_a_value_that_no_map_between_programs_has():
    """As a faulty device may give it: the next program would take some of its bits."""
    model = residual()
    choices = CompileChoices(partitions={"conv_2": 1, "conv_3": 2})
    bit, manifest = overlay(size_memories("block", [model], NPU, choices))
    images = random_images(model.network, 3, 2)
    with c_device(bit) as opened:
        opened.load(compile_network(model, manifest, choices))
        opened.results_hook = lambda data: data.fill(0xFF)
        call = lambda: opened.predict(images, model.network.output.shape)  # noqa: E731
        refused(call, "block.conv_1: map requantise_1: image 0: values must be 0..255, got -1")
        opened.mend()
        right(opened, model, images)


def test_no_allocation_is_taken_for_granted(device):
    data = digits().to_bytes()
    assert no_memory(device, lambda: device.read_program(data)) > 20
    program = device.read_program(data)
    assert no_memory(device, lambda: device.load(program)) > 7
    assert no_memory(device, lambda: right(device, MODEL, IMAGES[:1])) > 4
    right(device, MODEL, IMAGES)

"""libbitloom on the Verilated device: what it computes is golden's, what it counts and loads is the Python driver's."""

import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bitloom.driver.frames import loads
from bitloom.golden.file import model_digest
from bitloom.golden.host.host import Host, InputIntegers
from bitloom.golden.network import Model
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.design.registers import COMMON
from bitloom.hls_gen.design.signature import START, loads_signature
from bitloom.overlay.build.images import random_images
from bitloom.overlay.build.reference_designs import REFERENCE_DESIGNS
from bitloom.overlay.evaluation.host_transform import check_transform, transform_of
from bitloom.overlay.virtual.board import programmable_logic
from tests.cases import cases, integer_cases, random_model
from tests.host_outputs import scores as scores_of
from tests.host_outputs import with_scores
from tests.overlay.virtual.test_packet_faults import NETWORK
from tests.simulated import loaded, overlay

from .bench import CDevice, CError, c_device, on_board

BINARY = Npu.of(kfp=5, kgp=3, pfp=2, ol=2, acc_bits=24, accumulators=64)
INTEGER = Npu.of(
    engine="integer", feature_bits=8, weight_bits=8, shift_bits=0, acc_bits=32, kfp=3, kgp=4, pfp=1, accumulators=32
)
STREAMED = Npu.of(engine="integer", feature_bits=6, weight_bits=5, shift_bits=0, acc_bits=20, kfp=3, kgp=4, pfp=2, ol=2)
QUICK = ("digits-cnn", "digits-cnn-pipeline", "bnn-int8-ends")
STALLS = {"source": 0.4, "sink": 0.4}
REGISTERS = {register.name: register.offset for register in COMMON}


@cache
def small_models(engine: str) -> tuple[Design, dict[str, Model]]:
    """A design of one NPU for all small networks of an engine that it can run."""
    npu, table = (BINARY, cases()) if engine == "binary" else (INTEGER, integer_cases())
    models = {}
    for name, model in table:
        try:
            size_memories("small", [model], npu)
        except ValueError:
            continue
        models[name] = model
    return size_memories(f"small-{engine}", [*models.values()], npu), models


@cache
def streamed(stream_bits: int) -> tuple[Path, Manifest, Program, Model]:
    """A network of three layers, of which two have room in the kernel memory: weights come with each frame."""
    model = random_model(NETWORK, np.random.default_rng(5))
    design = size_memories("three", [model], STREAMED, stream_bits=stream_bits, sizing=Sizing(stream_weights=True))
    bit, manifest = overlay(design)
    program = compile_model(model, manifest)
    assert len(program.weights)
    return bit, manifest, program, model


def right(device: CDevice, model: Model, images: np.ndarray) -> None:
    np.testing.assert_array_equal(device.predict(images, model.network.output.shape), model.forward(images))


NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in REFERENCE_DESIGNS]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", NAMES)
def test_reference_designs(name):
    """Every network of a reference design, with and without stalls, and by interrupts."""
    reference = REFERENCE_DESIGNS[name]
    models = reference.models()
    bit, manifest = overlay(reference.design(name, models))
    with c_device(bit, interrupts=True) as device:
        for model in models:
            device.board.stall()
            device.load(compile_model(model, manifest, reference.choices))
            right(device, model, random_images(model.network, 2, 1))
            device.board.stall(**STALLS, seed=2)
            right(device, model, random_images(model.network, 2, 3))


@pytest.mark.parametrize("each", [1, pytest.param(99, marks=pytest.mark.slow)])
@pytest.mark.parametrize("engine", ["binary", "integer"])
def test_every_encoding_and_kind_of_output(engine, each):
    """Small networks one after the other on one device, with stalls, at most so many of each kind of output and
    encoding; images in every type that holds their values."""
    design, models = small_models(engine)
    bit, manifest = overlay(design)
    kinds, several = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    with c_device(bit, stalls={**STALLS, "seed": 4}) as device:
        for model in models.values():
            program = compile_model(model, manifest)
            kinds[program.output_kind, program.input.encoding.kind] += 1
            several[program.output_kind, str(program.input.encoding)] += 1
            if several[program.output_kind, str(program.input.encoding)] > each:
                continue
            device.load(program)
            images = random_images(model.network, 3, 6)
            types = [
                dtype for dtype in (np.int64, np.int8, np.uint8, np.int16) if (images.astype(dtype) == images).all()
            ]
            right(device, model, images.astype(types[kinds.total() % len(types)]))
            np.testing.assert_array_equal(device.classify(images), program.classify(model.forward(images)))
    wanted = {"binary": {("bits", "bipolar"), ("raw", "signed"), ("bits", "ternary"), ("bits", "unsigned")}}
    assert {*kinds} >= wanted.get(engine, {("signed", "signed"), ("signed", "unsigned"), ("raw", "signed")})


def test_counters_and_parameters_are_those_of_the_driver_in_python():
    """The same LOAD packets, rows of 0 in front, so the same signature; and the same counts of frames."""
    name = "digits-cnn"
    reference = REFERENCE_DESIGNS[name]
    (model,) = reference.models()
    bit, manifest = overlay(reference.design(name, [model]))
    program = compile_model(model, manifest)
    images = random_images(model.network, 20, 1)
    with loaded(bit, program) as (accelerator, _):
        accelerator.predict(images)
        counters = accelerator.counters()
    signature = START
    for part in loads(program, manifest, (1 << 26) - 4):
        signature = loads_signature(manifest, part, signature)
    with c_device(bit) as device:
        device.load(program)
        assert device.register(REGISTERS["SIGNATURE"]) == signature
        assert device.counters()["cycles"] == 0
        right(device, model, images)
        assert device.counters() == {key: counters[key] for key in device.counters()}
        right(device, model, images)
        assert device.counters()["frames"] == 40
        device.clear_counters()
        assert device.counters()["frames"] == device.register(REGISTERS["FRAMES"]) == 0


@pytest.mark.parametrize("memory_bytes", [4096, 1 << 14, 1 << 20])
def test_memory_of_any_size(memory_bytes):
    """Loads and batches are cut to what the platform's memory holds, and what is too small is refused."""
    bit, manifest = overlay(
        REFERENCE_DESIGNS["digits-cnn"].design("digits-cnn", REFERENCE_DESIGNS["digits-cnn"].models())
    )
    (model,) = REFERENCE_DESIGNS["digits-cnn"].models()
    program = compile_model(model, manifest)
    with c_device(bit, memory_bytes=memory_bytes) as device:
        device.load(program)
        assert device.predict(np.zeros((0, 8, 8, 1), np.uint8), (1, 1, 10)).size == 0
        for count in (1, 30):
            right(device, model, random_images(model.network, count, 1))


def test_too_little_memory():
    """A board's memory must hold two frames; the message says how much that is."""
    reference = REFERENCE_DESIGNS["bnn-int8-ends"]
    (model,) = reference.models()
    bit, manifest = overlay(reference.design("bnn-int8-ends", [model]))
    program = compile_model(model, manifest, reference.choices)
    rule = r"^bnn-int8-ends: memory must have (\d+) bytes for two frames, got 4096$"
    with c_device(bit, memory_bytes=4096) as device, pytest.raises(CError, match=rule) as caught:
        device.load(program)
    assert caught.value.status == "NO_MEMORY"
    with c_device(bit, memory_bytes=int(re.match(rule, str(caught.value))[1])) as device:
        device.load(program)
        right(device, model, random_images(model.network, 3, 1))


@pytest.mark.sample(1)
@pytest.mark.parametrize("stream_bits", [32, 64])
@pytest.mark.parametrize("length_bits", [26, 10, 9])
def test_streamed_weights(stream_bits, length_bits):
    """Weights come with each frame, between frames, in packets and transfers that the DMA's limit cuts."""
    bit, _, program, model = streamed(stream_bits)
    with c_device(bit, stalls={**STALLS, "seed": 1}, length_bits=length_bits) as device:
        device.load(program)
        for count in (1, 7):
            right(device, model, random_images(model.network, count, count))
        right(device, model, random_images(model.network, 300, 3))  # numbers of packets wrap


def with_host(model: Model, program: Program, **changes: object) -> Program:
    """The program with a host that quantises images of another order and makes scores of the outputs."""
    rng = np.random.default_rng(1)
    source, output = model.network.input, model.network.output
    host = Host(
        digest=model_digest(model),
        shape=(source.channels, source.height, source.width),
        order=np.arange(source.size).reshape(source.shape)[::-1].transpose(2, 1, 0).ravel(),
        front=(
            ("line", rng.uniform(0.5, 2, source.channels), rng.normal(size=source.channels)),
            ("clip", np.full(source.channels, -np.inf), np.full(source.channels, 14.0)),
        ),
        boundaries=np.sort(rng.uniform(-1, 16, (1, source.encoding.high)), axis=1).round(1),
        reached=rng.integers(0, 2, source.encoding.high).astype(bool),
        first=0,
        stride=1,
        outputs=scores_of(
            (("line", rng.uniform(-1, 1, output.channels), rng.normal(size=output.channels)),),
            rng.permutation(output.size),
            ("Softmax",),
        ),
    )
    return replace(program, host=replace(host, **changes), model_digest=model_digest(model))


CLOSINGS = [("Softmax",), ("LogSoftmax",), ("Sigmoid",), ("Softmax", "ArgMax"), ("TopK",), ()]
"""Ends of a file, over all scores."""
PARTED = [(("Softmax",), 5, 2), (("LogSoftmax",), 2, 1)]
"""Ends of a file, over so many scores that are so far apart."""


@pytest.fixture(scope="module")
def digits():
    (model,) = REFERENCE_DESIGNS["digits-cnn"].models()
    bit, manifest = overlay(REFERENCE_DESIGNS["digits-cnn"].design("digits-cnn", [model]))
    with c_device(bit) as device:
        yield device, model, compile_model(model, manifest)


@pytest.mark.sample(3)
@pytest.mark.parametrize(("closing", "classes", "apart"), [*((closing, 10, 1) for closing in CLOSINGS), *PARTED])
def test_imported_networks(digits, closing, classes, apart):
    """Images as the file takes them, of every type; classes and scores are golden's, bit for bit but for closings."""
    device, model, plain = digits
    program = with_host(model, plain)
    host = with_scores(program.host, closing=closing, classes=classes, apart=apart)
    program = replace(program, host=host)
    device.load(program)
    for dtype in (np.float64, np.float32, np.int16, np.uint8):
        images = (np.random.default_rng(2).integers(-20, 160, (9, *host.shape)) / 10).astype(dtype)
        outputs = model.forward(program.to_input(images))
        np.testing.assert_array_equal(device.classify(images), program.classify(outputs))
        scores = device.scores(images, 10)
        if closing in ((), ("TopK",)):
            np.testing.assert_array_equal(scores, host.closed(outputs))
        else:
            np.testing.assert_allclose(scores, host.closed(outputs), rtol=1e-13)
    plain_images = random_images(model.network, 3, 1)
    right(device, model, plain_images)


def test_a_file_that_takes_integers(digits):
    device, model, plain = digits
    whole = InputIntegers(low=-128, high=127, scale=0.1, zero=3)
    identity = np.ones(1), np.zeros(1)
    program = with_host(
        model, plain, integers=whole, boundaries=None, reached=None, front=(("line", *identity),), first=0
    )
    device.load(program)
    images = np.random.default_rng(2).integers(0, 32, (5, *program.host.shape)).astype(np.int8)
    outputs = model.forward(program.to_input(images))
    np.testing.assert_array_equal(device.classify(images), program.classify(outputs))
    refused(lambda: device.classify(images.astype(np.float32)), "digits-cnn: images must be integers, got real numbers")
    images.flat[70] = 32
    refused(lambda: device.classify(images), "digits-cnn: image 1: values must be 0..31, got 32")


def refused(call, text: str, status: str = "INVALID") -> None:
    with pytest.raises(CError) as caught:
        call()
    assert (caught.value.status, str(caught.value)) == (status, text)


def test_images_that_do_not_suit(digits):
    device, model, plain = digits
    device.load(with_host(model, plain))
    numbers = np.zeros((2, 1, 8, 8))
    numbers[1, 0, 0, 0] = np.inf
    with pytest.raises(CError, match=r"^digits-cnn: image 1: must give finite numbers, got -?inf$"):
        device.classify(-numbers)
    device.load(plain)
    images = random_images(model.network, 3, 1)
    right(device, model, images)
    images[2, 1, 1, 0] = -1
    refused(lambda: device.predict(images, (1, 1, 10)), "digits-cnn: image 2: values must be 0..31, got -1")
    images[2, 1, 1, 0] = 5
    right(device, model, images)
    real = "digits-cnn: images must be integers, got real numbers"
    refused(lambda: device.predict(images.astype(np.float32), (1, 1, 10)), real)
    device.load(replace(plain, output_maps=2))
    right(device, model, images)
    several = "digits-cnn: classes are of networks with one output, got 2"
    refused(lambda: device.classify(images), several)
    with pytest.raises(ValueError, match=f"^{several}$"):
        replace(plain, output_maps=2).classify(model.forward(images))
    device.load(plain)
    none = "digits-cnn: scores are of imported networks, got a program without the host's part"
    refused(lambda: device.scores(images, 10), none)


def test_bipolar_images_have_steps_of_two():
    design, models = small_models("binary")
    bit, manifest = overlay(design)
    model = models["levels"]
    with c_device(bit) as device:
        refused(
            lambda: device.predict(np.zeros((1, 1), np.int8), (1,)),
            "c: a program must be loaded before images, got none",
        )
        device.load(compile_model(model, manifest))
        images = random_images(model.network, 1, 1)
        images[0, 0, 0, 0] = 1
        text = f"{model.network.name}: image 0: values must be -2..2 in steps of 2, got 1"
        refused(lambda: device.predict(images, model.network.output.shape), text)


def test_other_hardware_is_refused(digits):
    """A manifest of another design, and a program for another one."""
    device, model, plain = digits
    bit, _, other, _ = streamed(32)
    manifest = bit.with_suffix(".manifest.json").read_bytes()
    with pytest.raises(CError) as caught:
        CDevice(device.board, manifest)
    assert caught.value.status == "MISMATCH"
    assert "c: the hardware must have the manifest's digest" in str(caught.value)
    with pytest.raises(CError) as caught:
        device.load(other)
    assert caught.value.status == "MISMATCH"
    assert str(caught.value).startswith(
        f"three: the program must be for the design {plain.design_digest[:32]} (digits-cnn)"
    )
    device.load(plain)
    right(device, model, random_images(model.network, 2, 1))


def test_programs_that_the_device_would_refuse(digits):
    """Packets are checked before one is sent, with the messages of Python."""
    device, _, plain = digits
    for damage, text in {
        "cut": "packet 0: must begin with a header, got 3 words",
        "magic": "packet 0: must begin with a header, got 0x",
        "npu": "packet 0: npu must be 0..0, got 3",
        "memory": "packet 0: npu 0 must have the memory, got id 98",
        "rows": "packet 0: memory inputs ends at row 4, got 7 rows from row 0",
        "none": "parameters must load memory network of NPU 0, got packets for others only",
    }.items():
        words = plain.parameters.copy()
        words = {"cut": words[:3], "none": words[:0]}.get(damage, words)
        if damage == "magic":
            words[0] ^= 1 << 30
        changed = {"npu": (0, 3 << 16), "memory": (0, 99 << 8), "rows": (2, 3)}.get(damage)
        if changed:
            words[changed[0]] ^= changed[1]
            words[3] ^= changed[1]
        with pytest.raises(CError) as caught:
            device.load(replace(plain, parameters=words))
        assert str(caught.value).startswith(f"digits-cnn: {text}"), damage


def no_memory(device: CDevice, call) -> int:
    """Let each allocation of a call fail in turn: the call says so. How many there are; CDevice sees what is lost."""
    for number in range(1, 100):
        device.memory.fail_at = number
        try:
            call()
            return number - 1
        except CError as e:
            if e.status != "NO_MEMORY":
                raise
        finally:
            device.memory.fail_at = 0
    raise AssertionError("a call must come to its end")


def test_no_allocation_is_taken_for_granted(digits):
    device, model, plain = digits
    data = with_host(model, plain).to_bytes()
    assert no_memory(device, lambda: device.read_program(data)) > 10
    program = device.read_program(plain.to_bytes())
    assert no_memory(device, lambda: device.load(program)) > 4
    right(device, model, random_images(model.network, 2, 1))
    manifest = device.manifest
    assert no_memory(device, lambda: CDevice(device.board, manifest, heap=device.memory).__exit__()) > 2
    device.load(plain)
    right(device, model, random_images(model.network, 2, 1))


def test_a_board_that_fails(digits):
    """A platform's function fails at any access: an error of the bus, and then all is right again."""
    device, model, plain = digits
    device.load(plain)
    images = random_images(model.network, 3, 1)
    for moment in (1, 2, 3, 5, 8, 13, 21):
        left = [moment]

        def fail(unit, offset, value, left=left):
            left[0] -= 1
            if left[0] == 0:
                raise OSError("no answer")
            return None

        device.read_hook = fail
        with pytest.raises(CError, match=r"^c: register 0x0[0-9A-F]{2} of the (core|DMA) must be readable, got -1$"):
            device.predict(images, (1, 1, 10))
        device.mend()
        right(device, model, images)


def test_two_boards_at_once():
    """No global state: two devices, one frame each in turn."""
    (model,) = REFERENCE_DESIGNS["digits-cnn"].models()
    bit, manifest = overlay(REFERENCE_DESIGNS["digits-cnn"].design("digits-cnn", [model]))
    program = compile_model(model, manifest)
    data = bit.with_suffix(".manifest.json").read_bytes()
    with on_board(bit) as a, on_board(bit) as b, CDevice(a, data) as first, CDevice(b, data) as second:
        first.load(program)
        second.load(program)
        for seed in range(3):
            right(first, model, random_images(model.network, 2, seed))
            right(second, model, random_images(model.network, 2, seed + 10))


def test_interrupts_are_waited_for(digits, monkeypatch):
    """A transfer that takes longer than the first looks ends by an interrupt; without interrupts the device is looked
    at again and again."""
    monkeypatch.setattr(programmable_logic, "BUSY_STRIDE", 64)
    device, model, plain = digits
    images = random_images(model.network, 30, 1)
    device.load(plain)
    right(device, model, images)
    assert device.waits == 0
    with CDevice(device.board, device.manifest, interrupts=True) as other:
        other.load(plain)
        right(other, model, images)
        assert other.waits > 0
        assert other.register(REGISTERS["IRQ_ENABLE"]) == 0
    device.load(plain)


PIXELS = ("none", "minus:-3", "shift:4,minus:-2", "threshold:100,minus:-1", "fixed:6,shift:2,minus:-8")
PIXELS += ("host", "host:1/255", "host:2/255:-1", "host:0.1:-0.25", "host:6/4:1/3")


@pytest.mark.parametrize("integers", [None, InputIntegers(low=-128, high=127, scale=0.1, zero=3)])
def test_pixels(digits, integers):
    """Every transform that `bitloom evaluate` takes, as that computes it."""
    device, model, plain = digits
    identity = np.ones(1), np.zeros(1)
    whole = {"boundaries": None, "reached": None, "front": (("clip", 0 * identity[0], 16 * identity[0]),), "first": 0}
    program = with_host(model, plain, **(whole if integers else {}), integers=integers)
    device.load(program)
    pixels = np.random.default_rng(3).integers(0, 256, (6, *model.network.input.shape), np.uint8)
    tried = 0
    for text in PIXELS:
        given = pixels if text.startswith(("host", "shift", "thres", "fixed")) else pixels % 9
        transform = transform_of(text, program.host)
        values = transform(given.astype(np.int64))
        if text == "none":
            values = program.to_input(given.reshape(6, *program.host.shape))
        if values.min() < 0 or values.max() > model.network.input.encoding.high:
            continue
        tried += 1
        device.transform(text)
        np.testing.assert_array_equal(device.classify(given), program.classify(model.forward(values)), err_msg=text)
    assert tried > 5
    device.transform("none")
    right(device, model, random_images(model.network, 2, 1))


WRONG = ("", "minus", "minus:1,", "minus:1,minus:1,minus:1,minus:1,minus:1", "shift:0", "fixed:17", "minus:2147483648")
WRONG += ("hosts", "host:", "host:1/0", "host:1.", "host:1:2:3", "host:.5")


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_transform(digits, text):
    """Python refuses it, too."""
    device, model, plain = digits
    device.load(with_host(model, plain))
    with pytest.raises(CError, match=r"^digits-cnn: transform: must be none, up to 4 of minus:V"):
        device.transform(text)
    with pytest.raises(ValueError, match=r"^transform: must be"):
        check_transform(text)


def test_pixels_that_do_not_suit(digits):
    device, model, plain = digits
    pixels = np.full((2, *model.network.input.shape), 256)
    device.load(with_host(model, plain))
    device.transform("fixed:6")
    refused(lambda: device.classify(pixels), "digits-cnn: image 0: what fixed takes must be 0..255, got 256")
    pixels[:] = 0
    pixels.flat[-1] = 1 << 31
    device.transform("minus:-1")
    refused(
        lambda: device.classify(pixels[1:]),
        "digits-cnn: image 0: pixels must be -2147483648..2147483647, got 2147483648",
    )
    device.load(plain)
    refused(
        lambda: device.transform("host:1/255"),
        "digits-cnn: transform host is for imported networks, got one without a host file",
    )

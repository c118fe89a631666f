"""Sizes of the packetizer: its wires make of each network's raw frames what the driver sends; and what is refused."""

import re
from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden import zoo
from bitloom.golden.packing import to_bits
from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.compiler.emit import compile_model
from bitloom.hls_gen.compiler.sizing import Sizing, size_memories
from bitloom.hls_gen.design.frame_layout import ONE, ZERO
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.packetizer import Packetizer, RawStream
from bitloom.hls_gen.design.program import Program
from bitloom.overlay.build.small_npu import small_npu
from tests.cases import cases, integer_cases, random_images

NO_INPUT = ("max_pool_of_sums", "threshold_of_the_input")
"""Cases that no device computes from the image on."""
CASES = {name: model for name, model in (*cases(), *integer_cases()) if name not in NO_INPUT}


def compiled(model, stream_bits: int, map_order: str = "raster", **sizing: bool) -> Program:
    choices = CompileChoices(map_order=map_order)
    design = size_memories("d", [model], small_npu(model), choices, stream_bits=stream_bits, sizing=Sizing(**sizing))
    return compile_model(model, Manifest.of(design, "0" * 64), choices)


def payload(p: Packetizer, bits: np.ndarray) -> np.ndarray:
    """uint32 words of a frame's payload, group by group, from the (n,) bits of its values."""
    each = p.group_beats * p.beat_values * p.value_bits
    groups = np.zeros(p.groups * each, np.uint8)
    groups[: len(bits)] = bits
    source = np.array(p.group_source)
    wired = np.where(source == ONE, 1, np.where(source == ZERO, 0, groups.reshape(-1, each)[:, source]))
    return np.packbits(wired.ravel()[: p.payload_words * p.stream_bits], bitorder="little").view("<u4")


@pytest.mark.sample(6)
@pytest.mark.parametrize("stream_bits", [32, 64])
@pytest.mark.parametrize("name", CASES)
def test_wires_make_the_payload(name, stream_bits):
    model = CASES[name]
    program = compiled(model, stream_bits)
    images = random_images(model, 2, np.random.default_rng(0))
    rest = {k for k in range(1, program.input.size + 1) if program.input.size % k == 0}
    for beat_values in (None, *sorted(rest)[:3]):
        p = Packetizer.of(program, stream_bits, RawStream(marks="packet", beat_values=beat_values))
        for image, sent in zip(images, program.pack_images(images)):
            bits = to_bits(image.ravel(), program.input.encoding).ravel()
            np.testing.assert_array_equal(payload(p, bits), sent)


def refused(rule: str, program: Program, stream_bits: int = 32, **raw: object) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(rule)}$"):
        Packetizer.of(program, stream_bits, RawStream(**{"marks": "packet", **raw}))


def test_refusals():
    program = compiled(CASES["int_small_cnn"], 32)
    refused(
        "int_small_cnn: a raw beat must be a whole part of the 324 values of a frame, got 5", program, beat_values=5
    )
    refused("raw stream: marks must be packet or video, got 'lines'", program, marks="lines")
    refused("raw stream: values of a beat must be >= 1, got 0", program, beat_values=0)
    pull = compiled(zoo.load("cifar-quick-int8"), 32, "pull")
    refused(
        "cifar-quick-int8: for a raw stream a frame's values must be wanted in the order of the image, got another "
        "order: map order raster keeps it",
        pull,
    )
    weights = replace(program, weights=np.zeros(4, np.uint32), weights_before=4)
    refused("int_small_cnn: for a raw stream all weights must stay on the device, got streamed ones", weights)
    p = Packetizer.of(program, 32, RawStream(marks="video"))
    for change, rule in (
        ({"stream_bits": 16}, "stream_bits must be 32 or 64, got 16"),
        (
            {"payload_words": 108},
            "108 groups must have 108 words, 2 each but for the last one, which has -106",
        ),
    ):
        with pytest.raises(ValueError, match=f"^packetizer: {rule}$"):
            replace(p, **change)

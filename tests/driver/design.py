"""A design for the driver's tests, small enough to exist twice: as `fake_core.py` and as its manifest here.

One NPU, of which the fake computes one bipolar dense layer of at most 72 inputs and 15 outputs, as accumulators
or as the bits "accumulator >= threshold". The programs are compiled here by hand, so that these tests don't need the
compiler.
"""

import json
from pathlib import Path

import numpy as np

from bitloom.golden.network import Model
from bitloom.golden.packing import to_bits
from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.frame_layout import ZERO, FrameLayout, ResultMap
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.memories.memory_map import memory_of
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.packets import load_packet
from bitloom.hls_gen.design.program import Program
from bitloom.hls_gen.design.registers import state_fields
from bitloom.hls_gen.design.rows import pack_fields, pack_rows
from tests.cases import random_model
from tests.graph_text import network_of

KFP, KGP, DEPTH, WIDTH = 24, 3, 16, 72
"""Lanes of a word, kernels of a row of weights, rows of kernels and of thresholds, bits of a row of weights."""
DIGEST = "00112233445566778899aabbccddeeff" + "0123456789abcdef" * 2
MODEL_DIGEST = "fedcba9876543210" * 4


def design(stream_bits: int = 32) -> Design:
    """The design's NPU has what its one layer needs and nothing else."""
    sizes = {"layers": 2, "taps": 2, "olds": 2, "jumps": 2, "kernel_rows": DEPTH, "threshold_rows": DEPTH}
    ports = {"inlets": ("host",), "outlets": ("host",), "pool": False}
    npu = Npu.of(kfp=KFP, kgp=KGP, ol=1, shift_bits=0, acc_bits=32, **ports, **sizes)
    return Design(name="fake", stream_bits=stream_bits, npus=(npu,))


STATE_NAMES = [f"npu0.{field.name}" for field in state_fields(design().npus[0])]
STATE_TEXT = ", ".join(f"{name} 0" for name in STATE_NAMES)


def manifest_dict(stream_bits: int = 32) -> dict:
    """JSON data, in which a test may break something."""
    return json.loads(json.dumps(manifest(stream_bits).to_dict()))


def manifest(stream_bits: int = 32) -> Manifest:
    return Manifest.of(design(stream_bits), DIGEST)


def write_overlay(folder: Path, stream_bits: int = 32) -> Path:
    """A .bit with nothing in it and its manifest. Return the path of the .bit."""
    (folder / "fake.manifest.json").write_text(json.dumps(manifest_dict(stream_bits)))
    (folder / "fake.bit").write_bytes(b"simulation only")
    return folder / "fake.bit"


def model(seed: int = 1, thresholds: bool = False) -> Model:
    """60 bipolar inputs (3 x 5 x 4), 7 outputs."""
    network = network_of("3x5x4", "dense 7", "threshold" * thresholds, name="dense")
    model = random_model(network, np.random.default_rng(seed))
    if thresholds:
        model.arrays["threshold"]["direction"][:] = 1  # all that the design can do
    return model


def program(model: Model, manifest: Manifest) -> Program:
    """The model compiled for the design."""
    network = model.network
    source = model.network.input
    outputs = network.output.channels
    raw = len(network.layers) == 1
    words = -(-source.size // KFP)
    groups = -(-outputs // KGP)
    weights = model.arrays["dense"]["weight"].reshape(outputs, -1)
    kernels = np.ones((groups * KGP, words * KFP), np.uint8)  # unused lanes: weight 1, feature 0
    kernels[:outputs, : source.size] = to_bits(weights, network.layers[0].weight)[..., 0]
    kernels = kernels.reshape(groups, KGP, words, KFP).transpose(0, 2, 1, 3).reshape(groups * words, WIDTH)
    limits = np.zeros(outputs, np.int64)
    if not raw:
        limits = model.arrays["threshold"]["threshold"][:, 0]
    last = outputs - (groups - 1) * KGP
    layer = {"groups_minus_1": [groups - 1], "last_units_minus_1": [last - 1], "raw": [int(raw)]}
    m = manifest.npus[0]
    rows = {
        "network": pack_fields(memory_of(m, "network"), {"frame_words": [words]}),
        "layers": pack_fields(memory_of(m, "layers"), {"tap_offset": [source.size]}),
        "kernels": pack_rows(WIDTH, kernels),
        "results": pack_fields(memory_of(m, "results"), layer),
        "thresholds": pack_fields(memory_of(m, "thresholds"), {"thresholds": limits}),
    }
    parameters = [load_packet(manifest, 0, name, 0, part) for name, part in rows.items()]
    lanes = np.full(words * KFP, ZERO, np.int32)
    lanes[: source.size] = np.arange(source.size)
    positions = np.zeros((1, 1), np.int32)
    lanes = lanes.reshape(words, KFP)
    frame = FrameLayout(channels=source.size, positions=positions, lanes=lanes, lane_bits=1, word_bits=KFP)
    places = np.arange(outputs, dtype=np.int32)[:, None]
    result = ResultMap(first=0, positions=1, words=outputs, lanes=1, lane_bits=32 if raw else 1, places=places)
    return Program(
        name=network.name,
        design_digest=manifest.digest,
        model_digest=MODEL_DIGEST,
        input=source,
        output_shape=network.output.shape,
        output_kind="raw" if raw else "bits",
        classes=tuple("abcdefg"),
        ideal_cycles=outputs * words,
        layers=(("dense", outputs * words),),
        parameters=np.concatenate(parameters),
        stream_bits=manifest.stream_bits,
        frame=frame,
        results=(result,),
    )

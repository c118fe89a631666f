"""A design for the driver's tests, small enough to exist twice: as `fake_core.py` and as its manifest here.

One NPU that computes one bipolar dense layer of at most 72 inputs and 16 outputs, as accumulators or as the bits
"accumulator >= threshold". The programs are compiled here by hand, so that these tests don't need the compiler.
"""

import json
from pathlib import Path

import numpy as np

from bitloom.golden.encoding import BIPOLAR
from bitloom.golden.layer import Map
from bitloom.golden.layers.dense import Dense
from bitloom.golden.layers.threshold import Threshold
from bitloom.golden.network import Model, Network
from bitloom.golden.packing import to_bits
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.packets import load_packet, pack_fields, pack_rows
from bitloom.hls_gen.design.program import Program
from tests.cases import random_model

KFP, DEPTH, WIDTH = 24, 16, 72
DIGEST = "00112233445566778899aabbccddeeff" + "0123456789abcdef" * 2
MODEL_DIGEST = "fedcba9876543210" * 4
RULES = {
    1: ("BAD_HEADER", "word 0 begins with 0xB1 and word 3 is the check"),
    2: ("BAD_KIND", "kind is 1 or 2"),
    3: ("BAD_NPU", "the NPU exists"),
    4: ("BAD_MEMORY", "the memory exists"),
    5: ("BAD_RANGE", "rows >= 1 and first row + rows <= depth of the memory"),
    6: ("BAD_FRAME", "the frame has as many input words as the loaded network says"),
    7: ("TRUNCATED", "tlast does not come before the end of a packet"),
    8: ("NOT_LOADED", "a network row was loaded since the last reset"),
}


def register(name: str, offset: int, access: str = "RO", *fields: tuple[str, int, int]) -> dict:
    return {
        "name": name, "offset": offset, "access": access, "description": f"about {name}",
        "fields": [{"name": n, "lsb": lsb, "width": w, "description": ""} for n, lsb, w in fields],
    }  # fmt: skip


def manifest_dict(stream_bits: int = 32) -> dict:
    """JSON data, in which a test may break something."""
    return {
        "format": "bitloom-manifest", "version": 1, "name": "fake", "digest": DIGEST, "stream_bits": stream_bits,
        "npus": [{"kfp": KFP, "kgp": 1, "pfp": 1, "ol": 1, "capacity": 3, "memories": [
            {"name": "network", "id": 0, "depth": 1, "width": 40,
             "fields": [["frame_words", 0, 8], ["outputs", 8, 8], ["fan_in", 16, 16], ["raw", 32, 1]]},
            {"name": "kernels", "id": 5, "depth": DEPTH, "width": WIDTH, "fields": []},
            {"name": "thresholds", "id": 9, "depth": DEPTH, "width": 32, "fields": [["threshold", 0, 32]]},
        ]}],
        "registers": [
            register("IDENT", 0x000), register("VERSION", 0x004),
            *(register(f"DIGEST_{i}", 8 + 4 * i) for i in range(4)),
            register("GEOMETRY", 0x018, "RO", ("NPUS", 0, 8), ("STREAM_BITS", 8, 8)),
            register("CONTROL", 0x020, "RW", ("START", 0, 1), ("SOFT_RESET", 1, 1), ("CLEAR_COUNTERS", 2, 1)),
            register("STATUS", 0x024, "RO", ("IDLE", 0, 1), ("ERROR", 1, 1), ("LOADED", 2, 1)),
            register("ERROR_CODE", 0x028), register("ERROR_HEADER", 0x02C), register("ERROR_ADDRESS", 0x030),
            register("ERROR_LENGTH", 0x034), register("IRQ_ENABLE", 0x040, "RW", ("RESULT", 0, 1), ("ERROR", 1, 1)),
            register("IRQ_STATUS", 0x044, "RW1C", ("RESULT", 0, 1), ("ERROR", 1, 1)),
            register("CYCLES", 0x050), register("FRAMES", 0x054), register("WORDS_IN", 0x058),
            register("WORDS_OUT", 0x05C), register("NPU0_LANES", 0x100, "RO", ("KFP", 0, 16), ("KGP", 16, 16)),
            register("NPU0_WIDTHS", 0x104), register("NPU0_BEATS", 0x110), register("NPU0_WAIT_INPUT", 0x114),
            register("NPU0_WAIT_ROOM", 0x118), register("NPU0_WAIT_TABLE", 0x11C),
            register("NPU0_STATE", 0x120, "RO", ("layer", 0, 4), ("word", 4, 8)),
        ],
        "packet": {"magic": 177, "kinds": {"LOAD": 1, "FRAME": 2}},
        "errors": {str(code): list(entry) for code, entry in RULES.items()},
        "vlnv": "bitloom:bitloom:npu:0.1", "top": "bitloom_top", "spill_words": 0, "verilog": "bitloom_top.v",
    }  # fmt: skip


def manifest(stream_bits: int = 32) -> Manifest:
    return Manifest.from_dict(manifest_dict(stream_bits))


def write_overlay(folder: Path, stream_bits: int = 32) -> Path:
    """A .bit with nothing in it and its manifest. Return the path of the .bit."""
    (folder / "fake.manifest.json").write_text(json.dumps(manifest_dict(stream_bits)))
    (folder / "fake.bit").write_bytes(b"simulation only")
    return folder / "fake.bit"


def model(seed: int = 1, thresholds: bool = False) -> Model:
    """60 bipolar inputs (3 x 5 x 4), 7 outputs."""
    layers = [Dense(name="dense", out_channels=7)]
    layers += [Threshold(name="threshold")] if thresholds else []
    shape = Map(height=3, width=5, channels=4, encoding=BIPOLAR)
    model = random_model(Network(name="dense", input=shape, layers=tuple(layers)), np.random.default_rng(seed))
    if thresholds:
        model.arrays["threshold"]["direction"][:] = 1  # all that the design can do
    return model


def program(model: Model, manifest: Manifest) -> Program:
    """The model compiled for the design."""
    network, source = model.network, model.network.input
    outputs, raw = network.output.channels, len(network.layers) == 1
    words = -(-source.size // KFP)
    weights = model.arrays["dense"]["weight"].reshape(outputs, -1)
    kernels = np.ones((outputs, WIDTH), np.uint8)  # unused lanes: weight 1, feature 0
    kernels[:, : source.size] = to_bits(weights, network.layers[0].weight)[..., 0]
    limits = np.zeros(outputs, np.int64)
    if not raw:
        limits = model.arrays["threshold"]["threshold"][:, 0]
    head = {"frame_words": [words], "outputs": [outputs], "fan_in": [source.size], "raw": [int(raw)]}
    m = manifest.npus[0]
    parameters = [
        load_packet(manifest, 0, "network", 0, pack_fields(m.memory("network"), head)),
        load_packet(manifest, 0, "kernels", 0, pack_rows(WIDTH, kernels)),
        load_packet(manifest, 0, "thresholds", 0, pack_fields(m.memory("thresholds"), {"threshold": limits})),
    ]
    per = manifest.stream_bits // KFP  # input words in a stream word
    frame_source = np.full(32 * manifest.frame_payload(words), -1, np.int32)
    for i in range(source.size):
        word, lane = divmod(i, KFP)
        frame_source[word // per * manifest.stream_bits + word % per * KFP + lane] = i
    return Program(
        name=network.name, design_digest=manifest.digest, model_digest=MODEL_DIGEST, input=source,
        output_shape=network.output.shape, output_kind="raw" if raw else "bits", classes=tuple("abcdefg"),
        ideal_cycles=outputs * words, layers=(("dense", outputs * words),), parameters=np.concatenate(parameters),
        frame_source=frame_source, frame_words=words, result_words=manifest.padded(32 * outputs if raw else outputs),
        result_index=np.arange(outputs, dtype=np.int32)[:, None],
    )  # fmt: skip

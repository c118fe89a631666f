"""Case *n* of a seed is the same on every machine (docs/how-to/fuzz.md): digests of what one machine drew.

Whoever changes on purpose what is drawn takes the new digest from the test's message.
"""

import json
from hashlib import sha256

import numpy as np
import pytest

from bitloom.golden.file import model_digest
from bitloom.golden.network import Network
from bitloom.overlay.fuzz.campaign import campaign
from bitloom.overlay.fuzz.campaigns.device import Packet, edited
from bitloom.overlay.fuzz.campaigns.networks import DESIGNS
from bitloom.overlay.fuzz.damage import damaged
from bitloom.overlay.fuzz.pick import Pick
from bitloom.overlay.fuzz.random_models import random_model

CASES, ARRAYS = 60, 20
CAMPAIGNS = {
    "device": "f285c4c4caa672ac",
    "networks": "85b69674e4f54db4",
    "golden": "d80326c4978f641c",
    "server": "a595d46a1dcc4d8b",
}
CONTENTS = {
    "any": (b"neither an archive nor an array nor JSON", "7487963bc2e2ce53"),
    "JSON": (b'{"a": [1, {"b": "c"}], "d": null}', "3c75f3ee39052e99"),
    "array": (
        b"\x93NUMPY\x01\0\x36\0{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\x01\x02\x03",
        "d6c887a6b32d066e",
    ),
    "images": (b"\0\0\x08\x03\0\0\0\1\0\0\0\2\0\0\0\2abcd", "f5c126251723d974"),
    "XML": (b'<?xml version="1.0"?><a><b c="d">e</b></a>', "16685f875cba4883"),
    "waveform": (b"$var wire 1 ! a $end\n#0\n1!\nb10 !\n", "dc5dbf37c26e1785"),
    "message": (b"\x08\x07\x12\x04Conv\x1a\x06\x08\x96\x01\x12\x01x\x25abcd", "ee0c416c77ac90d8"),
}
"""Contents of a file, and the digest of its damaged contents. Compressed bytes aren't the same everywhere."""


def digest(*pieces: bytes) -> str:
    return sha256(b"".join(sha256(piece).digest() for piece in pieces)).hexdigest()[:16]


def cases(name: str) -> list:
    return [campaign(name).case(Pick(name, 0, number)) for number in range(CASES)]


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_cases(name: str) -> None:
    if name == "server":
        pytest.importorskip("pynq.remote", reason="PYNQ's remote protocol comes with pynq 4")
    assert digest(json.dumps(cases(name)).encode()) == CAMPAIGNS[name]


def test_designs() -> None:
    """A case that found something names its design, which is still the one that it was found with."""
    assert digest(*(json.dumps(design.to_dict()).encode() for design in DESIGNS.values())) == "34e42ddaf7f475e0"


def test_arrays() -> None:
    models = []
    for case in cases("networks")[:ARRAYS]:
        network = Network.from_dict(case["network"])
        npu = DESIGNS[case["design"]].npus[0]
        models.append(random_model(network, case["seed"], npu.array.acc_bits, npu.value("multiplier_bits")))
    assert digest(*(model_digest(model).encode() for model in models)) == "017e407028800ced"


def test_edits_of_packets() -> None:
    edits = []
    for case in cases("device"):
        words = [np.arange(1000 * k, 1000 * k + 20, dtype=np.uint32).reshape(10, 2) for k in range(4)]
        packets = [Packet(each, np.arange(10) == 9, k in (0, 3)) for k, each in enumerate(words)]
        edits += [packet.words.tobytes() + packet.lasts.tobytes() for packet in edited(packets, case["edits"])]
    assert digest(*edits) == "41c710c0b355775e"


@pytest.mark.parametrize("kind", CONTENTS)
def test_damage(kind: str) -> None:
    data, expected = CONTENTS[kind]
    assert digest(*(damaged(data, np.random.default_rng(seed)) for seed in range(CASES))) == expected

import json

import pytest

from bitloom.hls_gen.design.manifest import Field, Manifest
from tests.driver.design import DIGEST, manifest, manifest_dict
from tests.errors import value_error


def test_lookups():
    m = manifest(64)
    assert (m.digest, m.stream_words, m.npus[0].parameters["capacity"]) == (DIGEST, 2, 3)
    assert m.register("STATUS").offset == 0x24
    assert m.register("STATUS").field("LOADED").of(0b100) == 1
    assert m.memory(0, "kernels").id == 5
    assert m.memory(0, "kernels").words == 3
    assert m.memory(0, "network").field("fan_in") == Field("fan_in", 16, 16)
    assert m.error(7).name == "TRUNCATED"
    assert m.error(77).name == "UNKNOWN"


@pytest.mark.parametrize(
    ("bits", "kfp", "frame_words", "words"),
    [(32, 24, 3, 3), (32, 16, 3, 2), (32, 1, 33, 2), (32, 32, 3, 3), (32, 33, 3, 6), (32, 100, 3, 12),
     (64, 24, 3, 4), (64, 16, 9, 6), (64, 65, 3, 12), (64, 64, 3, 6)],
)  # fmt: skip
def test_frame_payload(bits, kfp, frame_words, words):
    data = manifest_dict(bits)
    data["npus"][0]["kfp"] = kfp
    assert Manifest.from_dict(data).frame_payload(frame_words) == words


def test_fields_of_before():
    """bitloom 0.1 called what a layer's windows keep in the tuple memory hold (tuples) and tail (words)."""
    data = manifest_dict()
    data["npus"][0]["memories"][0]["fields"] = [["hold", 0, 4], ["tail", 4, 8], ["frame_tail", 12, 4]]
    assert Manifest.from_dict(data).memory(0, "network").fields == (
        Field("hold_tuples", 0, 4), Field("hold_words", 4, 8), Field("frame_tail", 12, 4)
    )  # fmt: skip


def test_field_of_and_at():
    field = Field("f", 4, 8)
    assert field.of(0xABCDE) == 0xCD
    assert field.at(-1) == 0xFF0
    assert field.at(0x3CD) == 0xCD0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.register("FOO"), "register must be one of IDENT, VERSION, "),
        (
            lambda m: m.register("STATUS").field("X"),
            "register STATUS: field must be one of IDLE, ERROR, LOADED, got 'X'",
        ),
        (lambda m: m.memory(1, "kernels"), "npu must be 0..0, got 1"),
        (lambda m: m.memory(0, "k"), "memory must be one of network, kernels, thresholds, got 'k'"),
    ],
)
def test_unknown_names(call, message):
    with pytest.raises(KeyError) as e:
        call(manifest())
    assert e.value.args[0].startswith(message)


def test_load(tmp_path):
    path = tmp_path / "a.manifest.json"
    path.write_text(json.dumps(manifest_dict()))
    assert Manifest.load(path) == manifest()
    path.write_text("{")
    with pytest.raises(ValueError, match=r"a\.manifest\.json: a manifest must be JSON, got: Expecting property name"):
        Manifest.load(path)
    path.write_text("[1]")
    with value_error(f"{path}: must be a JSON object, got [1]"):
        Manifest.load(path)


def broken(*path_and_value):
    data = manifest_dict()
    *path, last, value = path_and_value
    place = data
    for step in path:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return data


REGISTER, MEMORY = ("registers", 8), ("npus", 0, "memories", 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("format", "x"), "format must be bitloom-manifest, got 'x'"),
        (("version", 2), "version must be 1, got 2"),
        (("name", ""), "name must be a non-empty string, got ''"),
        (("name", None), "name must be a non-empty string, got None"),
        (("digest", "AB" * 32), f"digest must be 64 lower-case hex digits, got '{'AB' * 28}..."),
        (("stream_bits", 48), "stream_bits must be 32 or 64, got 48"),
        (("stream_bits", True), "stream_bits must be an integer >= 32, got True"),
        (("npus", []), "npus must have at least 1 entries, got []"),
        (("npus", {}), "npus must be a list, got {}"),
        (("npus", 0, "kfp", 0), "npus[0]: kfp must be an integer >= 1, got 0"),
        (("npus", 0, "ol", None), "npus[0]: ol must be an integer >= 1, got None"),
        ((*MEMORY, "id", 256), "npus[0]: memories[0]: id must be an integer 0..255, got 256"),
        ((*MEMORY, "id", 5), "npus[0]: memories: ids must be unique, got 5"),
        ((*MEMORY, "name", "kernels"), "npus[0]: memories: names must be unique, got 'kernels'"),
        ((*MEMORY, "depth", 0), "npus[0]: memories[0]: depth must be an integer >= 1, got 0"),
        ((*MEMORY, "width", 32), "npus[0]: memories[0]: fields[3]: lsb + width must be <= 32, got 33"),
        ((*MEMORY, "fields", 1, ["outputs", 7, 8]),
         "npus[0]: memories[0]: fields[1]: fields must not overlap, got 'outputs'"),
        ((*MEMORY, "fields", 1, ["raw", 8, 8]), "npus[0]: memories[0]: field names must be unique, got 'raw'"),
        ((*MEMORY, "fields", 1, ["x", 8]), "npus[0]: memories[0]: fields[1]: must be a JSON object, got ['x', 8]"),
        ((*REGISTER, "offset", 0x22), "registers[8]: offset must be a multiple of 4, got 34"),
        ((*REGISTER, "offset", 0x1000), "registers[8]: offset must be an integer 0..4092, got 4096"),
        ((*REGISTER, "offset", 0x18), "registers: offsets must be unique, got 24"),
        ((*REGISTER, "access", "WO"), "registers[8]: access must be one of RO, RW, RW1C, got 'WO'"),
        ((*REGISTER, "fields", 0, "lsb", 32), "registers[8]: fields[0]: lsb + width must be <= 32, got 33"),
        (("packet", "magic", 256), "packet: magic must be an integer 0..255, got 256"),
        (("packet", "kinds", "FRAME", 16), "packet.kinds: FRAME must be an integer 0..15, got 16"),
        (("packet", "kinds", "LOAD", None), "packet.kinds: LOAD must be an integer 0..15, got None"),
        (("errors", "0", ["A", "b"]), "errors: codes must be integers >= 1, got '0'"),
        (("errors", "1", ["A"]), "errors: 1 must be [name, rule], got ['A']"),
        (("vlnv", "a:b:c"), "vlnv must be vendor:library:name:version, got 'a:b:c'"),
        (("verilog", 3), "verilog must be a non-empty string, got 3"),
    ],
)  # fmt: skip
def test_every_rule(change, message):
    with value_error(f"m.json: {message}"):
        Manifest.from_dict(broken(*change), "m.json")

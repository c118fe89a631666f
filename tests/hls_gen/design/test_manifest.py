import json

import pytest

from bitloom.hls_gen.design.design import Design
from bitloom.hls_gen.design.fields import Field
from bitloom.hls_gen.design.manifest import Manifest
from bitloom.hls_gen.design.npu import Npu
from bitloom.hls_gen.design.topology import ring
from tests.driver.design import DIGEST, manifest, manifest_dict
from tests.errors import value_error
from tests.npus import integer_npu


def test_lookups():
    m = manifest(64)
    assert (m.digest, m.stream_words, m.npus[0].array.kernel_rows) == (DIGEST, 2, 16)
    assert m.register("STATUS").offset == 0x24
    assert m.register("STATUS").field("LOADED").of(0b100) == 1
    assert m.memory(0, "kernels").id == 6
    assert m.memory(0, "kernels").words == 3
    assert m.memory(0, "network").field("last_layer") == Field("last_layer", 48, 8)
    assert m.error(7).name == "TRUNCATED"
    assert m.error(77).name == "UNKNOWN"


PAYLOADS = [
    *[(32, kfp, frame_words, words) for kfp, frame_words, words in ((24, 3, 3), (16, 3, 2), (1, 33, 2), (32, 3, 3))],
    *[(32, kfp, 3, words) for kfp, words in ((33, 6), (100, 12))],
    *[(64, kfp, frame_words, words) for kfp, frame_words, words in ((24, 3, 4), (16, 9, 6), (65, 3, 12), (64, 3, 6))],
]


@pytest.mark.parametrize(("bits", "kfp", "frame_words", "words"), PAYLOADS)
def test_frame_payload(bits, kfp, frame_words, words):
    design = Design(name="d", stream_bits=bits, npus=(Npu.of(kfp=kfp),))
    assert Manifest.of(design, DIGEST).frame_payload(frame_words) == words


def test_to_dict_and_back():
    for each in (manifest(32), manifest(64), Manifest.of(RING, DIGEST)):
        assert Manifest.from_dict(json.loads(json.dumps(each.to_dict()))) == each


SECOND = integer_npu(4, 3, 16, buffer_words=64)
RING = Design(name="ring", spill_words=20, npus=ring([Npu.of(kfp=3, pool=False), SECOND]))


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
            "register STATUS: field must be one of IDLE, ERROR, LOADED, LOADER_STATE, got 'X'",
        ),
        (lambda m: m.memory(1, "kernels"), "npu must be 0..0, got 1"),
        (
            lambda m: m.memory(0, "k"),
            "memory must be one of network, inputs, layers, flags, olds, jumps, kernels, results, thresholds, got 'k'",
        ),
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


NAME = "name must be 1..64 of A-Z, a-z, 0-9, _, - and ., not beginning with - or ."
UNKNOWN = "fields must be those of an NPU, got 'kfb'"
REGISTER = ("registers", 8)
MEMORY = ("npus", 0, "memories", 0)

BEATS = "memory network: fields[1] must be ['frame_beats', 24, 24] by the NPU's parameters, got"
START = "register CONTROL: field START must have lsb and width (0, 1), got"
LOOP = "loop must be inlet and outlet or neither, got ('host', 'loop') and ('host',)"
TOPS = ("../bitloom_top", "-CFLAGS", "std", "while", "training_top", "a\nb", None, 3, ["bitloom_top"])


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
        (("npus", 0, "ol", 4), "npus[0]: ol must be <= kgp = 3, got 4"),
        (("npus", 0, "engine", "ternary"), "npus[0]: engine must be binary or integer, got 'ternary'"),
        (("npus", 0, "kfb", 3), f"npus[0]: {UNKNOWN}"),
        (("npus", 0, "inlets", ["host", "loop"]), f"npus[0]: {LOOP}"),
        (("spill_words", 20), "fake: spill_words must be 0, or >= 2 where the last NPU leads to NPU 0, got 20"),
        (("npus", 0, "memories", []), "npus[0]: memories must be 9 by its parameters, got 0"),
        (("npus", 0, "memories", None), "npus[0]: memories must be a list, got None"),
        (("npus", 0, "kernel_rows", 17), "npus[0]: memory layers: width must be 146 by the NPU's parameters, got 142"),
        ((*MEMORY, "id", 256), "npus[0]: memory network: id must be 0 by the NPU's parameters, got 256"),
        (
            (*MEMORY, "name", "kernels"),
            "npus[0]: memories[0]: name must be network by the NPU's parameters, got 'kernels'",
        ),
        ((*MEMORY, "depth", 0), "npus[0]: memory network: depth must be 1 by the NPU's parameters, got 0"),
        ((*MEMORY, "width", 32), "npus[0]: memory network: width must be 62 by the NPU's parameters, got 32"),
        ((*MEMORY, "fields", []), "npus[0]: memory network: fields must be 4 by the NPU's parameters, got 0"),
        ((*MEMORY, "fields", 1, ["frame_beats", 23, 24]), f"npus[0]: {BEATS} ['frame_beats', 23, 24]"),
        ((*MEMORY, "fields", 1, 7), f"npus[0]: {BEATS} 7"),
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
        (("errors", "1", ["A", "\x1b[2J"]), "errors: 1 must be [name, rule], got ['A', '\\x1b[2J']"),
        ((*REGISTER, "name", "A\nB"), f"registers[8]: {NAME}, got 'A\\nB'"),
        ((*REGISTER, "fields", 0, "name", "<b>"), f"registers[8]: fields[0]: {NAME}, got '<b>'"),
        (("vlnv", "a:b:c:\n"), "vlnv must be vendor:library:name:version, got 'a:b:c:\\n'"),
        (("vlnv", "a:b:c"), "vlnv must be vendor:library:name:version, got 'a:b:c'"),
        (("verilog", 3), "verilog must be a non-empty string, got 3"),
        (("verilog", "../a.v"), "verilog: must be a path inside the folder, got '../a.v'"),
        (("verilog", "rtl/a.v"), "verilog must be the name of a file, got 'rtl/a.v'"),
        *((("top", top), f"top must be bitloom_top, got {top!r}") for top in TOPS),
        ((*REGISTER, "offset", 0xFFC), "register CONTROL: offset must be 0x020, got '0xFFC'"),
        ((*REGISTER, "access", "RO"), "register CONTROL: access must be RW, got 'RO'"),
        ((*REGISTER, "fields", 0, "lsb", 31), f"{START} (31, 1)"),
        ((*REGISTER, "fields", []), f"{START} 'no such field'"),
        (
            (*REGISTER, "fields", 0, "bits", 3),
            "registers[8]: fields[0]: keys must be name, lsb, width, description, got 'bits'",
        ),
    ],
)
def test_every_rule(change, message):
    with value_error(f"m.json: {message}"):
        Manifest.from_dict(broken(*change), "m.json")


def test_a_register_that_is_missing():
    data = manifest_dict()
    names = [register["name"] for register in data["registers"]]
    data["registers"] = [register for register in data["registers"] if register["name"] != "OWNER"]
    shown = repr(", ".join(name for name in names if name != "OWNER"))
    with value_error(f"m.json: registers must have OWNER, got {shown[:57]}..."):
        Manifest.from_dict(data, "m.json")


def test_an_interface_of_another_version_has_registers_of_its_own():
    """The driver refuses it by its VLNV, and a board that compiles has no use for registers."""
    data = {**manifest_dict(), "vlnv": "bitloom:bitloom:npu:0.9"}
    data["registers"] = data["registers"][:3]
    assert len(Manifest.from_dict(data, "m.json").registers) == 3

"""The files of a simulation overlay."""

import re

import pytest

from bitloom.overlay.platform.block_design import BlockDesign
from bitloom.overlay.platform.hwh import hwh_text
from bitloom.overlay.platform.target import BoardTarget
from bitloom.overlay.virtual.simulation_overlay import (
    SUFFIXES,
    OverlayError,
    read_simulation_overlay,
    write_simulation_overlay,
)
from tests.overlay.platform.manifest import loop_manifest

VERILOG = "module bitloom_top; endmodule\n"


def test_other_content_gets_another_stem(tmp_path):
    other = {**loop_manifest(), "digest": "f" * 64}
    written = [
        write_simulation_overlay(tmp_path, loop_manifest(), VERILOG),
        write_simulation_overlay(tmp_path, loop_manifest(), VERILOG + "// changed\n"),
        write_simulation_overlay(tmp_path, other, VERILOG),
        write_simulation_overlay(tmp_path, loop_manifest(), VERILOG, BoardTarget(arch="zynq")),
    ]
    assert len({path.stem for path in written}) == 4
    hwhs = {path.with_suffix(".hwh").read_text() for path in written}
    assert len(hwhs) == 3
    assert len({path.read_bytes() for path in written}) == 4


def test_the_bit_says_what_it_is_and_configures_nothing(tmp_path):
    embedded = pytest.importorskip("pynq.pl_server.embedded_device")
    path = write_simulation_overlay(tmp_path, loop_manifest(), VERILOG)
    header = embedded.parse_bit_header(path.read_bytes())
    assert header["design"] == "loop SIMULATION ONLY"
    assert len(header["data"]) % 4 == 0
    assert bytes.fromhex("AA995566") not in path.read_bytes()  # the synchronisation word


def test_refuses_a_real_bitstream(tmp_path):
    (tmp_path / "real.bit").write_bytes(b"\0\x09" + bytes(500))
    with pytest.raises(OverlayError, match=r"^real\.bit: a virtual board loads only simulation overlays"):
        read_simulation_overlay(tmp_path / "real.bit")


def write_again(path, suffix, data):
    """Exactly these bytes, on every system."""
    path.with_suffix(suffix).write_bytes(data)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_refuses_a_file_that_was_changed(tmp_path, suffix):
    path = write_simulation_overlay(tmp_path, loop_manifest(), VERILOG)
    whole = path.with_suffix(suffix).read_bytes()
    message = f"{path.name}: {path.stem}{suffix} must be the one that it was written with, and was changed"
    for changed in (b"", whole[:-1], whole + b"\n", whole.replace(b"e", b"f", 1)):
        write_again(path, suffix, changed)
        with pytest.raises(OverlayError, match=f"^{re.escape(message)}$"):
            read_simulation_overlay(path)
    write_again(path, suffix, whole)
    read_simulation_overlay(path)


@pytest.mark.parametrize("suffix", [".bit", *SUFFIXES])
def test_refuses_a_file_of_any_size(tmp_path, suffix):
    """A sparse file takes no room on the disk, but would take it in memory."""
    bit = write_simulation_overlay(tmp_path, loop_manifest(), VERILOG)
    path = bit.with_suffix(suffix)
    with path.open("r+b") as file:
        file.truncate(1 << 34)
    limit = "MB of memory to read it must be <= 256 (environment variable BITLOOM_MAX_READ_MB sets another limit)"
    with pytest.raises(OverlayError, match=rf"^{re.escape(f'{path.name}: {limit}, got 16,384')}\Z"):
        read_simulation_overlay(bit)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_refuses_a_file_that_is_missing(tmp_path, suffix):
    path = write_simulation_overlay(tmp_path, loop_manifest(), VERILOG)
    path.with_suffix(suffix).unlink()
    message = f"{path.name}: {path.stem}{suffix} must lie beside it, and is missing"
    with pytest.raises(OverlayError, match=f"^{re.escape(message)}$"):
        read_simulation_overlay(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arch": "versal"}, "block design loop: arch must be zynq or zynqmp, got 'versal'"),
        ({"stream_bits": 16}, "block design loop: stream_bits must be 32 or 64, got 16"),
        ({"vlnv": "a:b:c"}, "block design loop: vlnv must be vendor:library:name:1.0, got 'a:b:c'"),
    ],
)
def test_block_design_rules(change, message):
    arguments = {"name": "loop", "vlnv": "a:b:c:1.0", "digest": "0", "stream_bits": 32, "registers": ()}
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        BlockDesign(**{**arguments, **change})


def test_the_hwh_is_escaped():
    assert "IDENT &amp; more &lt;" in hwh_text(BlockDesign.from_manifest(loop_manifest()))


def test_offsets_are_written_as_vivado_writes_them():
    manifest = loop_manifest()
    matches = re.findall(r'NAME="ADDRESS_OFFSET" VALUE="([^"]*)"', hwh_text(BlockDesign.from_manifest(manifest)))
    assert {f"0x{register['offset']:X}" for register in manifest["registers"]} <= set(matches)
    assert all(re.fullmatch("0x[0-9A-F]+", offset) for offset in matches)

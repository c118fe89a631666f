"""Waveforms as FST: written where the headers are, refused in one line where they aren't, and whole or an error."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from bitloom.golden.kernels.native import BuildError, find_compiler
from bitloom.overlay.virtual.board.board import waveform_kind
from bitloom.overlay.virtual.sim import Simulation, fst
from bitloom.overlay.virtual.sim.errors import ProtocolError
from bitloom.overlay.virtual.sim.fst import is_whole
from tests.commands import call
from tests.overlay.conftest import loop_verilog


@pytest.fixture
def simulation():
    try:
        fst.check_headers(find_compiler())
    except BuildError as e:
        pytest.skip(str(e))
    with Simulation.build(loop_verilog(), trace="fst") as simulation:
        yield simulation


@pytest.mark.slow
def test_a_waveform_as_fst(simulation, tmp_path):
    path = tmp_path / "wave.fst"
    simulation.open_waveform(path)
    simulation.send(np.arange(10))
    assert simulation.receive(10)[0] == 1
    simulation.close_waveform()
    assert is_whole(path)
    kind, _, begin, end = struct.unpack(">BQQQ", path.read_bytes()[:25])  # the header block, by GTKWave's fstapi.c
    scopes, _, signals = struct.unpack(">QQQ", path.read_bytes()[41:65])
    assert kind == 0
    assert end > begin + 20
    assert scopes >= 1
    assert signals > 10


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
def test_on_a_full_disk(simulation):
    simulation.open_waveform("/dev/full")
    simulation.send(np.arange(10))
    simulation.receive(10)
    with pytest.raises(ProtocolError) as error:
        simulation.close()
    assert str(error.value) == "waveform: must be writable, got less of it than was written: is the disk full?"


def test_without_the_headers_it_is_refused(monkeypatch):
    monkeypatch.setattr(fst, "HEADERS", ("no_such_header.h", "zlib.h"))
    wanted = (
        f"waveform: FST needs the headers no_such_header.h and zlib.h, {find_compiler().program} doesn't find both: "
        "install them (Debian, Ubuntu: sudo apt install liblz4-dev zlib1g-dev), or write a VCD"
    )
    with pytest.raises(BuildError) as error:
        Simulation.build(loop_verilog(), trace="fst")
    assert str(error.value) == wanted


def test_a_cut_file_is_not_whole(tmp_path):
    path = tmp_path / "some.fst"
    block = b"\x00" + struct.pack(">Q", 13) + b"12345"
    for data, whole in ((block, True), (2 * block, True), (b"", False), (block[:-1], False), (block + b"\x01", False)):
        path.write_bytes(data)
        assert is_whole(path) == whole


def test_the_name_says_the_kind():
    assert [waveform_kind(path) for path in (None, "a.vcd", Path("a.fst"), "a")] == ["", "vcd", "fst", "vcd"]


ONE = "a run writes one waveform, --vcd or --fst, got both"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fst", "a.vcd"], "--fst: the file's name must end in .fst, got a.vcd"),
        (["--vcd", "a.fst"], "--vcd: the file's name must not end in .fst, got a.fst: say --fst"),
        (["--vcd", "a.vcd", "--fst", "a.fst"], ONE),
    ],
)
def test_options_that_are_refused(options, message):
    result = call("simulate", "build/none", *options)
    assert (result.exit_code, result.output) == (1, f"bitloom: {message}\n")

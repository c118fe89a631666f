"""The driver of the training machine on the generated hardware: pynq and DMA as on a board, Verilog in Verilator."""

import asyncio
import json
import shutil
from dataclasses import replace

import numpy as np
import pynq
import pytest

from bitloom.driver.errors import DesignMismatch, DeviceTaken, DigestMismatch, MachineStopped, Timeout, TransferError
from bitloom.driver.training_machine import TrainingMachine
from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.words import first_words, read_states, sample_words
from bitloom.hls_gen.design.training_manifest import TrainingManifest
from bitloom.overlay.build.training import build_training_machine
from bitloom.overlay.virtual.board import activate
from bitloom.overlay.virtual.sim import SimulationTimeout
from tests.errors import value_error
from tests.golden.discrete.machine.cases import CASES, samples, start

SMALL = MachineParameters(slaves=2)
"""The machine of tests/overlay/virtual/test_training_machine.py, so that its model is compiled once."""
ECHO = assemble("IO LOAD_NEURONS d=0 rows=3\nIO STORE_NEURONS a=0 rows=3 last=1\nNOP END")
WORDS = np.array([5, 6, 7])


@pytest.fixture(scope="module")
def bit(tmp_path_factory):
    return build_training_machine(tmp_path_factory.mktemp("machine"), "small", SMALL).bit


@pytest.fixture(scope="module")
def board():
    device = activate()
    yield device
    device.close()


@pytest.fixture
def machine(bit, board):
    board.stall()
    with TrainingMachine(bit, device=board) as machine:
        yield machine


def echoes(machine) -> None:
    assert machine.run(ECHO, WORDS, 3).tolist() == [5, 6, 7]


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", ["continuous, momentum", "all"])
def test_trains_as_the_interpreter(machine, board, case):
    board.stall(source=0.2, sink=0.3, seed=3)
    t = CASES[case]
    form = SMALL.form
    x, y = samples(t, form, 4)
    states = machine.train(t, start(t, form), x, y)
    data = np.concatenate([first_words(t, form, start(t, form)), sample_words(t, form, x, y)])
    interpreter = Interpreter(SMALL, ProgramWriter(SMALL, t).program(4))
    for got, expected in zip(states, read_states(t, form, interpreter.run(data)[0])):
        for key in ("weights", "codes", "biases"):
            np.testing.assert_array_equal(getattr(got, key), getattr(expected, key))
    assert machine.cycles > interpreter.cycles


def test_tells_how_long_a_run_took(machine):
    cycles = []
    for rows in (3, 203):
        text = f"IO LOAD_NEURONS d=0 rows=3\nMOVE COPY a=0 d=300 rows={rows}\nNOP WAIT\n"
        machine.run(assemble(text + "IO STORE_NEURONS a=0 rows=3 last=1\nNOP END"), WORDS, 3)
        cycles.append(machine.cycles)
    assert cycles[1] - cycles[0] == 200


TABLE = (
    "BAD_TABLE: the machine needs that a table is loaded, with 2^bits different values that are words, in rising order"
)
NO_DATA = "NO_DATA: the machine needs that IO takes no more words than the packet has"
DATA_LEFT = "DATA_LEFT: the machine needs that IO takes all words of the packet before the program ends"
NO_END = "BAD_INSTRUCTION: the machine needs that operation and function exist, and unused bits are 0"
STOPS = {
    "operation": (
        "IO LOAD_NEURONS d=0 rows=3\nCOMPUTE FORWARD a=0 w=0 d=64 rows=3 columns=4 kind_w=1\nNOP END",
        f"{TABLE}, got instruction 1: COMPUTE FORWARD kind_w=1 d=64 columns=4 rows=3",
        1,
    ),
    "too few words": (
        "IO LOAD_NEURONS d=0 rows=4\nNOP END",
        f"{NO_DATA}, got instruction 0: IO LOAD_NEURONS rows=4",
        0,
    ),
    "too many words": (
        "IO LOAD_NEURONS d=0 rows=2\nIO STORE_NEURONS a=0 rows=3 last=1\nNOP END",
        f"{DATA_LEFT}, got instruction 2: NOP END",
        2,
    ),
    "no end": ("IO LOAD_NEURONS d=0 rows=3", f"{NO_END}, got instruction 1: none of the program", 1),
}


@pytest.mark.parametrize("case", STOPS)
def test_a_broken_rule_is_named_and_the_machine_recovers(machine, case):
    text, message, place = STOPS[case]
    with pytest.raises(MachineStopped) as error:
        machine.run(assemble(text), WORDS, 3)
    assert str(error.value) == f"{machine.name}: {message}"
    assert (error.value.place, error.value.name) == (place, message.partition(":")[0])
    echoes(machine)


def test_a_program_that_gives_nothing_is_given_up(bit, board):
    board.timeout_cycles = 20_000
    try:
        with TrainingMachine(bit, device=board) as machine:
            with pytest.raises((Timeout, SimulationTimeout)):
                machine.run(assemble("IO LOAD_NEURONS d=0 rows=3\nNOP END"), WORDS, 3)
            echoes(machine)
    finally:
        board.timeout_cycles = 2_000_000


def test_other_numbers_of_words(machine):
    with pytest.raises(TransferError) as error:
        machine.run(ECHO, WORDS, 4)
    assert str(error.value) == (
        f"{machine.name}: a program of 3 instructions must give 4 words: results must be 16 bytes, got 12"
    )
    with pytest.raises(TransferError) as error:
        machine.run(ECHO, WORDS, 2)
    assert "internal error" in str(error.value)
    echoes(machine)
    for words in (0, 1 << 30):
        rule = f"{machine.name}: a result must be 1..16777215 words, which fit a DMA transfer (c_sg_length_width)"
        with value_error(f"{rule}, got {words}"):
            machine.run(ECHO, WORDS, words)
    echoes(machine)


@pytest.mark.parametrize(
    ("what", "rows", "times", "longest"), [("program", 3, 1, 16), ("run", 40, 1, 44), ("result", 30, 2, 60)]
)
def test_the_longest_transfer_may_fill_the_dma(machine, monkeypatch, what, rows, times, longest):
    """A run takes ``rows`` words and gives them ``times`` times; a DMA of ``longest`` words is enough, not less."""
    text = f"IO LOAD_NEURONS d=0 rows={rows}\n" + f"IO STORE_NEURONS a=0 rows={rows}\n" * times
    program = assemble(f"{text[:-1]} last=1\nNOP END")
    words = np.arange(rows)
    monkeypatch.setattr(machine._link, "limit_bytes", 4 * longest)
    assert machine.run(program, words, times * rows).tolist() == [*words] * times
    monkeypatch.setattr(machine._link, "limit_bytes", 4 * longest - 4)
    message = f"must be 1..{longest - 1} words, which fit a DMA transfer (c_sg_length_width), got {longest}"
    with value_error(f"{machine.name}: a {what} {message}"):
        machine.run(program, words, times * rows)


def test_a_training_that_does_not_fit(machine):
    t = CASES["continuous"]
    form = SMALL.form
    x, y = samples(t, form, 1)
    for count, message in ((0, "training: samples must be 1..65535, got 0"),):
        with value_error(message):
            machine.train(t, start(t, form), x[:count], y[:count])
    echoes(machine)


def test_another_machine(machine, bit, board, tmp_path):
    manifest = TrainingManifest.load(bit.with_suffix(".manifest.json"))
    other = replace(manifest, name="other", digest="ab" * 32)
    with pytest.raises(DigestMismatch) as error:
        TrainingMachine(machine.overlay, manifest=other)
    assert str(error.value) == (
        f"{bit.stem}: the hardware must have the manifest's digest {'ab' * 16}, got {manifest.digest[:32]}"
    )
    wrong = replace(manifest, name="other", vlnv="bitloom:bitloom:npu:0.2")
    with pytest.raises(DesignMismatch) as error:
        TrainingMachine(machine.overlay, manifest=wrong)
    assert str(error.value) == (
        f"{bit.stem}: the manifest's vlnv must be bitloom:bitloom:training:0.1, got bitloom:bitloom:npu:0.2"
    )
    second = build_training_machine(tmp_path, "second", SMALL).bit
    first = machine.overlay
    taken = pynq.Overlay(str(second), device=board)
    assert taken.is_loaded()
    with pytest.raises(DeviceTaken) as error:
        machine.run(ECHO, WORDS, 3)
    assert str(error.value) == f"{bit.stem}: the device must hold small, got {second.name}: download it again"
    first.download()
    machine.reset()
    echoes(machine)


def test_pynq_knows_the_core(machine):
    core = machine.overlay.ip_dict["bitloom_0"]
    assert core["type"] == "bitloom:bitloom:training:0.1"
    assert machine.overlay.bitloom_0.register_map.GEOMETRY.SLAVES == 2
    assert machine.registers.field("GEOMETRY", "WORD_BITS") == SMALL.form.bits
    assert machine.registers.field("GEOMETRY", "CODE_BITS") == SMALL.code_bits
    assert machine.core is machine.overlay.bitloom_0
    assert machine.has_interrupt
    assert asyncio.iscoroutinefunction(machine.overlay.axi_dma_0.recvchannel.wait_async)


NAME = "training machine: name must be 1..64 of A-Z, a-z, 0-9, _, - and ., not beginning with - or ."
BROKEN = {
    "format": ("format", "x", "format must be bitloom-training-manifest, got 'x'"),
    "stream": ("stream_bits", 64, "stream_bits must be 32, got 64"),
    "vlnv": ("vlnv", "a:b", "vlnv must be vendor:library:name:version, got 'a:b'"),
    "digest": ("digest", "00", "digest must be 64 lower-case hex digits, got '00'"),
    "registers": ("registers", [], "registers must have at least 1 entries, got []"),
    "name": ("name", "../x", f"{NAME}, got '../x'"),
    "top": ("top", "std", "top must be training_top, got 'std'"),
    "no_top": ("top", None, "top must be training_top, got None"),
    "moved": ("registers.0.offset", 0x0FC, "register IDENT: offset must be 0x000, got '0x0FC'"),
    "access": ("registers.0.access", "RW", "register IDENT: access must be RO, got 'RW'"),
    "slaves": ("machine.slaves", 3, "machine: slaves must be a power of two, got 3"),
    "tables": ("machine.tables", "many", "machine: tables must be an integer >= 0, got 'many'"),
    "products": ("machine.products", 1, "machine: products must be multiplier or shifter or table, got 1"),
    "divider": ("machine.divider", "fast", "machine: divider must be none or codes or words, got 'fast'"),
    "root": ("machine.root", None, "machine: root must be none or table, got None"),
    "form": ("machine.form", {"bits": 2, "fraction": 0}, "word: bits must be 4..32, got 2"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_manifest_that_is_wrong(case, bit, tmp_path, monkeypatch):
    key, value, message = BROKEN[case]
    monkeypatch.chdir(tmp_path)
    shutil.copy(bit.with_suffix(".manifest.json"), "m.json")
    good = TrainingManifest.load("m.json")
    assert TrainingManifest.from_dict(good.to_dict()) == good
    data = good.to_dict()
    inner = data
    *path, last = key.split(".")
    for part in path:
        inner = inner[int(part) if part.isdigit() else part]
    inner[last] = value
    (tmp_path / "m.json").write_text(json.dumps(data))
    with value_error(f"m.json: {message}"):
        TrainingManifest.load("m.json")

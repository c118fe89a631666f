import pytest

from bitloom.driver.errors import Timeout
from bitloom.driver.registers import Counters, Registers
from tests.errors import value_error

from .design import STATE_NAMES, manifest


class Words:
    """Registers as a dictionary."""

    def __init__(self):
        self.words = {}

    def read(self, offset):
        return self.words.get(offset, 0)

    def write(self, offset, value):
        assert type(value) is int  # pynq takes nothing else
        self.words[offset] = value


@pytest.fixture
def core():
    return Words()


@pytest.fixture
def registers(core):
    return Registers(core, manifest())


def test_by_name(core, registers):
    core.words |= {0x24: 0b101, 0x120: 0x01050302}
    assert registers.read("STATUS") == 5
    assert registers.field("STATUS", "LOADED") == 1
    dump = registers.dump()
    assert len(dump) == len(manifest().registers)
    assert dump["STATUS"] == 5
    state = {"npu0.ARRAY_LAYER": 2, "npu0.POOL_LAYER": 3}
    state |= dict.fromkeys(("npu0.RUN", "npu0.WAITS_ROOM", "npu0.HOST_BLOCKED"), 1)
    assert registers.state(dump) == dict.fromkeys(STATE_NAMES, 0) | state
    with pytest.raises(KeyError, match="register must be one of IDENT, "):
        registers.read("X")


def test_set_leaves_other_fields(core, registers):
    registers.set("CONTROL", START=1)
    registers.set("CONTROL", SOFT_RESET=1)
    assert core.words[0x20] == 3
    registers.set("CONTROL", START=0)
    assert core.words[0x20] == 2


def test_read_only(core, registers):
    with value_error("register STATUS: access must be RW or RW1C to write it, got RO"):
        registers.write("STATUS", 1)
    registers.write("IRQ_STATUS", -1)
    assert core.words == {0x44: 0xFFFFFFFF}


def test_counters(core, registers):
    counters = Counters(registers)
    waits = ("npu0_wait_input", "npu0_wait_room", "npu0_wait_table")
    assert set(counters.totals) == {"cycles", "frames", "words_in", "words_out", "npu0_beats", *waits}
    core.words |= {0x50: 0xFFFFFFFF, 0x114: 7}
    assert not counters.update(), "cycles and waits are no progress"
    core.words |= {0x50: 4, 0x110: 9}
    assert counters.update()
    assert counters.totals["cycles"] == 0x100000004
    core.words |= {0x50: 100, 0x58: 1}
    assert counters.update(count=False)
    counters.rebase()
    core.words |= {0x50: 105}
    assert not counters.update()
    totals = {"cycles": 0x100000009, "npu0_beats": 9, "npu0_wait_input": 7}
    assert counters.totals == dict.fromkeys(counters.totals, 0) | totals
    counters.clear()
    assert set(counters.totals.values()) == {0}


def test_timeout_without_registers():
    error = Timeout("a: b, got c", {}, {})
    assert str(error) == "a: b, got c (no STATUS)"
    assert error.report() == str(error)

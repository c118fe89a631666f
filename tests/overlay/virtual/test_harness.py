"""The harness itself: counts, stalls, registers, protocol rules, watchdog, on a hand-written device."""

import os

import numpy as np
import pytest

from bitloom.overlay.virtual.sim import ProtocolError, Simulation, SimulationTimeout
from bitloom.overlay.virtual.sim.errors import RegisterError
from tests.overlay.conftest import loop_verilog

IDENT, CONTROL = 0x000, 0x020
CYCLES, WORDS_IN, WORDS_OUT, ADDEND = 0x050, 0x058, 0x05C, 0x100
REGISTERS = [{"name": "IDENT", "offset": IDENT}, {"name": "WORDS_OUT", "offset": WORDS_OUT}]


def numbers(count, seed=0):
    return np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32)


def test_every_word_comes_back_in_order_with_its_last(loop):
    simulation = loop()
    data = numbers(100)
    flags = np.arange(100) % 7 == 3
    simulation.send(data, flags)
    simulation.run(words=100)
    words, lasts = simulation.received()
    assert (words == data + np.uint32(1)).all()
    assert (lasts == flags).all()


@pytest.mark.parametrize(
    ("last", "flags"), [({}, [0, 0, 0]), ({"last": False}, [0, 0, 0]), ({"last": True}, [0, 0, 1])], ids=str
)
def test_a_transfer_ends_where_it_is_asked_to(loop, last, flags):
    simulation = loop()
    simulation.send(numbers(3), **last)
    simulation.run(words=3)
    assert simulation.received()[1].tolist() == flags


def test_one_word_a_cycle_and_two_cycles_of_latency(loop):
    simulation = loop()
    before = simulation.cycles
    simulation.send(numbers(1000))
    simulation.run(words=1000)
    assert simulation.cycles - before == 1001
    state = simulation.state()
    assert (state["words_taken"], state["words_given"], state["sink_queued"]) == (1000, 1000, 1000)


def test_the_hardware_counts_the_same_cycles_and_words(loop):
    simulation = loop()
    simulation.stall(source=0.3, sink=0.6, seed=5)
    first = simulation.read_register(CYCLES)
    at_first = simulation.cycles
    simulation.send(numbers(300))
    simulation.receive(300)
    second = simulation.read_register(CYCLES)
    at_second = simulation.cycles
    assert second - first == at_second - at_first
    assert simulation.read_register(WORDS_IN) == simulation.read_register(WORDS_OUT) == 300


def test_64_bit_stream_takes_no_half_word(loop):
    simulation = loop(stream_bits=64)
    with pytest.raises(
        ValueError, match=r"^send: the number of words must be a multiple of 2 on a 64-bit stream, got 3$"
    ):
        simulation.send([1, 2, 3])


@pytest.mark.parametrize("kind", ["none", "combinational_ready"])
@pytest.mark.parametrize(("source", "sink"), [(0.5, 0.0), (0.0, 0.5), (0.4, 0.7), (0.95, 0.95)])
def test_same_data_with_every_stall(loop, kind, source, sink):
    data = numbers(200, seed=1)
    flags = numbers(200, seed=2) % 5 == 0
    for seed in range(5):
        simulation = loop(kind)
        simulation.stall(source=source, sink=sink, seed=seed)
        simulation.send(data, flags)
        simulation.run(words=200)
        words, lasts = simulation.received()
        assert (words == data + np.uint32(1)).all()
        assert (lasts == flags).all()


def test_the_sink_takes_no_more_than_its_credit(loop):
    simulation = loop()
    simulation.open_sink(10)
    simulation.send(numbers(30), numbers(30) * 0 + (np.arange(30) == 14))
    assert simulation.run(None, "sink_closed") == "sink_closed"
    simulation.run(50)
    assert simulation.received()[0].size == 10
    simulation.open_sink(100, close_on_last=True)
    simulation.run(None, "sink_closed")
    words, lasts = simulation.received()
    assert words.size == 5
    assert lasts.tolist() == [False] * 4 + [True]


def test_registers(loop):
    simulation = loop()
    assert simulation.read_register(IDENT) == 0x424C4D31
    simulation.write_register(ADDEND, 7)
    assert simulation.read_register(ADDEND, response_delay=5) == 7
    simulation.send([1, 2, 3])
    assert simulation.receive(3).tolist() == [8, 9, 10]


def test_a_partial_write_is_refused(loop):
    simulation = loop()
    assert simulation.try_write(ADDEND, 5, strobes=1) == "SLVERR"
    assert simulation.read_register(ADDEND) == 1
    with pytest.raises(RegisterError, match=r"^write of register 0x100: answered SLVERR$"):
        simulation.write_register(ADDEND, 5, strobes=3)


def test_a_register_offset_has_12_bits(loop):
    with pytest.raises(ValueError, match=r"^register: offset must be 0\.\.0xFFF \(12 address bits\), got 0x1000$"):
        loop().read_register(0x1000)


def test_reset_starts_anew(loop):
    simulation = loop()
    simulation.open_sink(0)
    simulation.send(numbers(5))
    simulation.run(20)
    simulation.write_register(ADDEND, 3)
    simulation.reset()
    simulation.open_sink()
    assert simulation.read_register(ADDEND) == 1
    assert simulation.run(20) == "cycles"
    assert simulation.received()[0].size == 0


STREAM_FAULTS = {
    "drops_valid": r"^m_axis: tvalid must stay high until tready, it fell \(cycle \d+\)$",
    "changes_data": r"^m_axis: tdata must not change while it waits for tready, it went from 0x4 to 0x5 ",
    "changes_last": r"^m_axis: tlast must not change while it waits for tready, it went from 0 to 1 ",
    "fatal": r"^(\$stop|Verilog \$stop) at .*bitloom_top\.v:\d+ \(cycle \d+\)$",
}


@pytest.mark.parametrize("fault", sorted(STREAM_FAULTS))
def test_a_stream_fault_is_caught(loop, fault):
    simulation = loop(fault)
    simulation.stall(sink=0.5, seed=1)
    simulation.send(np.arange(50))
    with pytest.raises(ProtocolError, match=STREAM_FAULTS[fault]):
        simulation.receive(50)
    with pytest.raises(ProtocolError):  # and the simulation stays over
        simulation.run(1)


def test_valid_that_waits_for_ready_is_caught_by_the_probe(loop):
    simulation = loop("depends_on_ready")
    simulation.check(probe_ready=True)
    simulation.send(np.arange(5))
    with pytest.raises(ProtocolError, match=r"^m_axis: tvalid must not depend on tready of the same cycle "):
        simulation.receive(5)


def test_the_probe_changes_nothing_on_a_sound_design(loop):
    simulation = loop()
    simulation.check(probe_ready=True)
    simulation.stall(source=0.3, sink=0.5)
    simulation.send(np.arange(50))
    assert (simulation.receive(50) == np.arange(50) + 1).all()


def test_register_answers_are_checked(loop):
    simulation = loop("read_data_changes")
    assert simulation.read_register(IDENT) == 0x424C4D31
    with pytest.raises(ProtocolError, match=r"^s_axi: rdata must not change while it waits for rready"):
        simulation.read_register(IDENT, response_delay=3)
    simulation = loop("bvalid_falls")
    with pytest.raises(ProtocolError, match=r"^s_axi: bvalid must stay high until bready, it fell"):
        simulation.write_register(ADDEND, 1, response_delay=3)


def test_a_register_that_never_answers_times_out(loop):
    with pytest.raises(SimulationTimeout, match=r"^read of register 0x000: no answer for 10000 cycles"):
        loop("no_read_answer", registers=REGISTERS).read_register(IDENT)


def test_a_soft_reset_may_take_back_what_is_offered(loop):
    simulation = loop()
    simulation.open_sink(0)
    simulation.send(numbers(1))
    simulation.run(10)
    assert simulation.state()["m_axis_tvalid"] == 1
    simulation.write_register(CONTROL, 2)
    assert simulation.state()["m_axis_tvalid"] == 0


def test_timeout_names_registers_and_streams(loop):
    simulation = loop("hangs", registers=REGISTERS, timeout_cycles=1000)
    simulation.send(numbers(20))
    with pytest.raises(SimulationTimeout, match=r"^words: no progress for 1000 cycles") as caught:
        simulation.receive(20)
    text = str(caught.value)
    assert "IDENT                  0x424C4D31" in text
    assert "WORDS_OUT              0x00000005" in text
    state = caught.value.state
    assert state["registers"]["WORDS_OUT"] == 5
    assert state["words_given"] == 5
    assert state["m_axis_tvalid"] == 0
    assert state["source_queued"] == 20 - state["words_taken"] > 0
    assert state["cycle"] - state["progress_cycle"] >= 1000


def test_a_limit_in_cycles(loop):
    simulation = loop()
    simulation.stall(sink=1.0)
    simulation.send(numbers(3))
    with pytest.raises(SimulationTimeout, match=r"^words: not reached for 77 cycles"):
        simulation.receive(3, max_cycles=77)


def test_a_device_that_offers_words_during_reset_is_caught():
    line = "assign m_axis_tvalid = valid &"
    assert line in loop_verilog()
    with pytest.raises(ProtocolError, match=r"^m_axis: tvalid must be low during reset \(cycle 8\)$"):
        Simulation.build(loop_verilog().replace(line, "assign m_axis_tvalid = rst | valid &"))


def test_waveform(loop, tmp_path):
    simulation = loop(trace=True)
    path = tmp_path / "Gr\udcfc\udcdfe.vcd"  # of a locale without UTF-8
    simulation.open_waveform(path)
    simulation.send(np.arange(10))
    simulation.receive(10)
    simulation.close_waveform()
    text = path.read_text()
    assert "m_axis_tdata" in text
    assert text.count("\n#") > 20
    with pytest.raises(RuntimeError, match=r"must be built with trace=True"):
        loop().open_waveform(tmp_path / "no.vcd")


@pytest.mark.parametrize("value", [-0.1, 1.5])
def test_a_stall_is_a_probability(loop, value):
    with pytest.raises(ValueError, match=rf"^stall: sink must be a probability 0\.\.1, got {value}$"):
        loop().stall(sink=value)


FULL = r"^waveform: must be writable, got: VerilatedVcd::bufferFlush: No space left on device( at :0)? \(cycle \d+\)$"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
def test_a_waveform_on_a_full_disk(loop):
    """Python goes on: where the file's buffer overflows, and where the rest is written in the end."""
    long, short = (loop(trace=True) for _ in range(2))
    for simulation in (long, short):
        simulation.open_waveform("/dev/full")
    with pytest.raises(ProtocolError, match=FULL):
        long.run(100_000)
    long.close()
    short.run(10)
    with pytest.raises(ProtocolError, match=FULL):
        short.close()
    assert loop(trace=True).run(10) == "cycles"

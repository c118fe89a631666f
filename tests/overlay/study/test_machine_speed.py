"""Waits of the training machine's instructions, and the change that queues would make: counted by hand."""

import json

import numpy as np
import pytest

from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.interpreter import Interpreter, Work
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.units import needs
from bitloom.overlay.study.machine_speed import CONTROLLER, SAME_UNIT, waits, with_queues
from bitloom.overlay.virtual.training_machine import hardware_work
from tests.commands import call

MACHINE = MachineParameters(slaves=2, neuron_words=256, weight_words=64, column_words=8)
PROGRAM = assemble("""
COMPUTE FORWARD a=0 w=0 d=100 rows=8 columns=4
COMPUTE ADD a=100 b=0 d=100 rows=4
COMPUTE RELU a=100 d=120 rows=4
IO LOAD_NEURONS d=200 rows=5
CONFIG RATE a=3
IO STORE_NEURONS a=200 rows=5 last=1
NOP END
""")
DATA = np.arange(5)


def begins(work: list[Work]) -> list[tuple[int, int]]:
    return [(item.begin, item.end) for item in work]


@pytest.fixture(scope="module")
def interpreted() -> list[Work]:
    interpreter = Interpreter(MACHINE, PROGRAM)
    interpreter.run(DATA)
    return interpreter.work


def test_waits(interpreted):
    """ADD waits for sums of the slaves from cycle 1 to 16, RELU for ADD before it, CONFIG for all, that is the load;
    STORE begins at once, and NOP waits for it."""
    assert begins(interpreted) == [(0, 16), (16, 20), (20, 24), (21, 26), (26, 27), (27, 32), (32, 33)]
    assert waits(interpreted, MACHINE, 0, len(interpreted)) == {
        ("vector", "array"): 15,
        ("vector", SAME_UNIT): 3,
        (CONTROLLER, "io"): 4 + 4,
    }
    assert waits(interpreted, MACHINE, 2, 4) == {("vector", SAME_UNIT): 3}


def test_queues(interpreted):
    """The load begins in the fourth cycle, beside the slaves; CONFIG still waits until RELU is finished."""
    wanted = [(0, 16), (16, 20), (20, 24), (3, 8), (24, 25), (25, 30), (30, 31)]
    assert begins(with_queues(interpreted, MACHINE)) == wanted


@pytest.mark.slow
def test_work_of_hardware(interpreted):
    """The same instructions, each as long as the interpreter's at least, and later; what conflicts is not at work at
    the same time, and a queue makes nothing later."""
    work = hardware_work(MACHINE, PROGRAM, DATA)

    def done(items):
        return [(item.place, item.instruction, item.units) for item in items]

    assert done(work) == done(interpreted)
    for item, least in zip(work, interpreted):
        assert item.end - item.begin >= least.end - least.begin
        assert least.begin <= item.ready <= item.begin
    forward, add, relu, load, config, store, end = begins(work)
    assert forward[1] <= add[0] < add[1] <= relu[0] < load[0] < load[1] <= config[0] < store[0] < store[1] <= end[0]
    waited = waits(work, MACHINE, 0, len(work))
    assert waited["vector", "array"] == work[1].begin - work[1].ready > 0
    queued = with_queues(work, MACHINE)
    assert queued[3].begin < load[0]
    assert all(early.begin <= item.begin for early, item in zip(queued, work))


def test_queues_keep_the_order_of_what_conflicts(interpreted):
    queued = with_queues(interpreted, MACHINE)
    for number, later in enumerate(queued):
        for earlier in queued[:number]:
            if set(earlier.units) & set(later.units):
                assert earlier.end <= later.begin
    assert [needs(item.instruction, MACHINE).units for item in queued] == [item.units for item in queued]


@pytest.mark.slow
def test_the_command():
    """More slaves are faster, and never faster than the ideal."""
    small = ["--slaves", "1", "--slaves", "2", "--hidden", "4", "--batch", "2"]
    result = call("bench", "training", *small, "--json")
    assert result.exit_code == 0, result.output
    one, two = json.loads(result.stdout)
    assert (one["slaves"], two["slaves"]) == (1, 2)
    assert one["ideal"] == 2 * two["ideal"] == 2 * 64 * 4 + 3 * 4 * 10
    for speed in (one, two):
        assert speed["ideal"] < speed["interpreter"] < speed["hardware"]
        assert speed["ideal"] < speed["queued"] <= speed["hardware"]
    assert two["hardware"] < one["hardware"]
    shown = call("bench", "training", *small)
    assert f"{one['hardware']:,.0f}" in shown.stdout
    assert "own arithmetic" in shown.stdout

"""Shared builds: loop.v is compiled once a session for each width (and found in the cache afterwards)."""

from pathlib import Path

import pytest

from overlay.sim import BuildError, Simulation, find_verilator
from overlay.sim.verilator import find_compiler

LOOP = Path(__file__).with_name("loop.v")


FAULT = 0x104
FAULTS = {
    name: number
    for number, name in enumerate(
        "none drops_valid changes_data changes_last depends_on_ready hangs read_data_changes bvalid_falls"
        " no_read_answer fatal combinational_ready".split()
    )
}


def loop_verilog(stream_bits: int = 32) -> str:
    """loop.v for a stream width."""
    return f"`define STREAM_BITS {stream_bits}\n" + LOOP.read_text()


@pytest.fixture(scope="session", autouse=True)
def _tools():
    """No Verilator or no compiler: skip with the line that says what to do."""
    try:
        find_verilator()
        find_compiler()
    except BuildError as error:
        pytest.skip(str(error))


@pytest.fixture
def loop():
    """loop(fault, ...) -> a running Simulation; all of them are closed after the test."""
    running = []

    def start(fault="none", *, stream_bits=32, **options):
        simulation = Simulation.build(loop_verilog(stream_bits), stream_bits=stream_bits, **options)
        running.append(simulation)
        if fault != "none":
            simulation.write_register(FAULT, FAULTS[fault])
        return simulation

    yield start
    for simulation in running:
        simulation.close()

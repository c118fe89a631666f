"""Shared builds: every variant of loop.v is compiled once a session (and found in the cache afterwards)."""

from pathlib import Path

import pytest

from overlay.sim import BuildError, Simulation, find_verilator
from overlay.sim.verilator import build_model, find_compiler

LOOP = Path(__file__).with_name("loop.v")


def loop_verilog(*macros: str, stream_bits: int = 32) -> str:
    """loop.v with macros such as "FAULT_HANG 5" defined."""
    defines = [f"STREAM_BITS {stream_bits}", *macros]
    return "".join(f"`define {macro}\n" for macro in defines) + LOOP.read_text()


@pytest.fixture(scope="session", autouse=True)
def _tools():
    """No Verilator or no compiler: skip with the line that says what to do."""
    try:
        find_verilator()
        find_compiler()
    except BuildError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def loop_library():
    """loop_library(*macros, stream_bits=32, trace=False) -> path of the built model."""

    def library(*macros, stream_bits=32, trace=False):
        verilog = loop_verilog(*macros, stream_bits=stream_bits)
        return build_model(verilog, stream_bits=stream_bits, trace=trace)

    return library


@pytest.fixture
def loop(loop_library):
    """loop(*macros, ...) -> a running Simulation; all of them are closed after the test."""
    running = []

    def start(*macros, stream_bits=32, trace=False, **options):
        library = loop_library(*macros, stream_bits=stream_bits, trace=trace)
        running.append(Simulation(library, stream_bits=stream_bits, **options))
        return running[-1]

    yield start
    for simulation in running:
        simulation.close()

"""A training machine in Verilator: the generated hardware with the interface of the interpreter."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from bitloom.golden.discrete.machine.faults import FAULTS, MachineFault
from bitloom.golden.discrete.machine.instruction import Instruction, shown_instruction
from bitloom.golden.discrete.machine.interpreter import Work
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.units import UNITS, needs
from bitloom.golden.encoding import Array
from bitloom.hls_gen.design.training import TOP
from bitloom.hls_gen.design.training_packets import program_packet, run_packet
from bitloom.hls_gen.design.training_registers import training_register
from bitloom.hls_gen.rtl.training.generate import training_verilog
from bitloom.overlay.virtual.sim import vcd

from .sim import Simulation

OUTPUT_CYCLES = 2000
"""Cycles after a program's end in which its last words leave, also where the sink often stalls."""


def _bit(register: str, field: str) -> int:
    """Value of a register with one field 1 and all others 0."""
    return training_register(register).field(field).at(1)


class SimulatedMachine:
    """Generated hardware with a loaded program, in Verilator. To be closed, or used in a ``with`` block.

    Parameters
    ----------
    machine : MachineParameters
    program : sequence of Instruction
        Loaded from address 0 on.
    trace : bool
        Whether waveforms may be written; the simulation is slower then.

    Attributes
    ----------
    simulation : Simulation
    cycles : int
        How long the last run took, from its header to END.
    """

    def __init__(self, machine: MachineParameters, program: Sequence[Instruction], *, trace: bool = False) -> None:
        text = "\n".join(training_verilog(machine).values())
        self.machine = machine
        self.program = list(program)
        self.cycles = 0
        self.simulation = Simulation.build(text, top=TOP, trace=trace)
        self.write("IRQ_ENABLE", _bit("IRQ_ENABLE", "ERROR") | _bit("IRQ_ENABLE", "END"))
        self.load(program)

    def __enter__(self) -> "SimulatedMachine":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the simulation."""
        self.simulation.close()

    def load(self, program: Sequence[Instruction]) -> None:
        """Put a program into the instruction cache, from address 0 on."""
        self.program = list(program)
        self.simulation.send(program_packet(self.program), last=True)

    def reset(self) -> None:
        """Make the machine forget a fault, and whatever is under way, and load the program again."""
        self.simulation.clear_source()
        self.write("CONTROL", _bit("CONTROL", "SOFT_RESET"))
        self.simulation.run(max_cycles=20)
        self.simulation.received()
        self.write("IRQ_STATUS", self.read("IRQ_STATUS"))
        self.load(self.program)

    def read(self, name: str) -> int:
        """The value of a register."""
        return int(self.simulation.read_register(training_register(name).offset))

    def write(self, name: str, value: int) -> None:
        """Write a register."""
        self.simulation.write_register(training_register(name).offset, value)

    def run(self, data: Array | Iterable[int] = ()) -> list[Array]:
        """Run the program to END, as `Interpreter.run`; after a fault the machine is reset, and the program loaded
        again."""
        self.write("CONTROL", _bit("CONTROL", "CLEAR_COUNTERS"))
        self.simulation.send(run_packet(np.asarray(data, np.int64)), last=True)
        self.simulation.run(None, "interrupt")
        status = self.read("IRQ_STATUS")
        self.write("IRQ_STATUS", status)
        if status & _bit("IRQ_STATUS", "ERROR"):
            raise self._fault()
        self.cycles = self.read("CYCLES")
        # The program ends when its last words are in the output FIFO.
        self.simulation.run(max_cycles=OUTPUT_CYCLES)
        words, lasts = self.simulation.received()
        return [part for part in np.split(words, np.flatnonzero(lasts) + 1) if part.size]

    def _fault(self) -> MachineFault:
        """The fault that stopped the machine; resets the machine and loads the program again."""
        code = self.read("ERROR_CODE")
        place = self.read("ERROR_PLACE")
        self.reset()
        fault = next(rule for rule in FAULTS if rule.code == code)
        return MachineFault(fault, place, shown_instruction(self.program, place))


SIGNALS = ("in_issue", "place", *(f"{unit}_busy" for unit in UNITS))
"""Signals of the controller that say what is issued when, and when units are done."""


def hardware_work(machine: MachineParameters, program: Sequence[Instruction], data: Array) -> list[Work]:
    """Work of the hardware's units in a run, in the form of `Interpreter.work`, read from a waveform.

    Parameters
    ----------
    machine : MachineParameters
    program : sequence of Instruction
        The whole program: no instruction loads others.
    data : (n,) integers
        32-bit words that IO takes.
    """
    with SimulatedMachine(machine, program, trace=True) as hardware, TemporaryDirectory() as folder:
        path = Path(folder) / "work.vcd"
        hardware.simulation.open_waveform(path)
        begin = hardware.simulation.cycles
        hardware.run(data)
        hardware.simulation.close_waveform()
        traces = vcd.read(path, [f"{TOP}.controller.{name}" for name in SIGNALS])
        at_hand, place, *busy = (trace.in_cycles(0, hardware.simulation.cycles - begin) for trace in traces.values())
    free = {unit: np.flatnonzero(cycles == 0) for unit, cycles in zip(UNITS, busy)}
    edges = np.diff(at_hand, prepend=0, append=0)
    work = []
    for ready, after in zip(np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)):
        issued = int(after) - 1
        instruction = program[place[issued]]
        units = needs(instruction, machine).units
        # a unit is busy from the cycle after the issue on
        ends = [int(free[unit][np.searchsorted(free[unit], after)]) for unit in units]
        work.append(Work(int(place[issued]), instruction, units, int(ready), issued, max([*ends, int(after)])))
    return work

"""The master: neuron cache, its own arithmetic, converter with generator; it leads the slaves (C14, C21)."""

from collections.abc import Callable

import numpy as np

from bitloom.golden.discrete.activation import activate
from bitloom.golden.discrete.arithmetic import word_of
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.operand import Operand
from bitloom.golden.encoding import Array

from . import instruction as isa
from .configuration import Configuration
from .draws import matrix_draws
from .instruction import Instruction
from .parameters import MachineParameters
from .slave import Slave, SlaveCaches


class Master:
    """Master and slaves with their caches; executes what concerns data, one instruction at a time.

    Parameters
    ----------
    machine : MachineParameters

    Attributes
    ----------
    configuration : Configuration
    generator : Lfsr
        Its state is 1 until CONFIG SEED.
    neurons : (neuron_words,) int64
        Neuron cache. A cell is the bits of a word, or a code.
    array : Slave
        All slaves at once.
    slaves : list of Slave
        Each by itself, as hardware has them: what they keep and give is that of ``array``, which is faster.
    """

    def __init__(self, machine: MachineParameters) -> None:
        self.machine = machine
        self.configuration = Configuration(machine.form)
        self.generator = Lfsr(1)
        self.neurons = np.zeros(machine.neuron_words, np.int64)
        caches = SlaveCaches.of(machine)
        self.array = Slave(machine, caches, self.configuration)
        self.slaves = [Slave(machine, caches, self.configuration, number) for number in range(machine.slaves)]

    def move(self, i: Instruction) -> None:
        """MOVE: neurons to neurons, or to the slaves."""
        if i.function == isa.COPY:
            self.neurons[i.d : i.d + i.rows] = self.neurons[i.a : i.a + i.rows].copy()
            return
        self.array.scatter(self.neurons[i.a : i.a + i.columns])

    def compute(self, i: Instruction) -> None:
        """COMPUTE."""
        if i.function == isa.FORWARD:
            self._forward(i)
        elif i.function == isa.BACKWARD:
            self._backward(i)
        elif i.function in isa.ON_SLAVES:
            self._learn(i)
        else:
            self.neurons[i.d : i.d + i.rows] = self._by_element(i)

    def _x(self, i: Instruction) -> Operand:
        """Operand a."""
        return self.configuration.operand(i.kind_a, self.neurons[i.a : i.a + i.rows])

    def _forward(self, i: Instruction) -> None:
        """Each slave gives the sums of its columns in turn, saturated at the root of the tree."""
        form = self.machine.form
        self.neurons[i.d : i.d + i.columns] = form.pack(form.saturate(self.array.forward(i, self._x(i))))

    def _backward(self, i: Instruction) -> None:
        """The partial vectors of all slaves are added exactly, so that their order doesn't matter, and saturated at the
        root of the tree."""
        form = self.machine.form
        self.neurons[i.d : i.d + i.rows] = form.pack(form.saturate(self.array.backward(i)))

    def _learn(self, i: Instruction) -> None:
        """UPDATE, ACCUMULATE, APPLY: all slaves change their columns, with the same draws."""
        drawn_d, drawn_w = matrix_draws(self.generator, i)
        if i.function == isa.UPDATE:
            self.array.update(i, self._x(i), drawn_d, drawn_w)
        elif i.function == isa.ACCUMULATE:
            self.array.accumulate(i, self._x(i), drawn_d)
        else:
            self.array.apply(i, drawn_w)

    def _by_element(self, i: Instruction) -> Array:
        """Cells of the results of the other functions, (rows,)."""
        s = self.configuration
        form = self.machine.form
        x = self._x(i)
        a = word_of(form, x)
        if i.function == isa.CONVERT:
            return s.convert(i.kind_d, a, self.generator if i.chance_d else None, i.pair_d).codes
        if i.function not in isa.TWO_OPERANDS:
            return form.pack(self._function(i.function, a))
        y = s.operand(i.kind_b, self.neurons[i.b : i.b + i.rows])
        b = word_of(form, y)
        functions: dict[int, Callable[[], Array]] = {
            isa.ADD: lambda: form.add(a, b),
            isa.SUBTRACT: lambda: form.subtract(a, b),
            isa.MULTIPLY: lambda: s.product(x, y),
            isa.DIVIDE: lambda: s.quotient(x, y),
            isa.MOMENTUM: lambda: s.with_momentum(a, b),
            isa.DESCEND: lambda: s.descended(a, b),
            isa.GATE: lambda: np.where(b != 0, a, 0),
        }
        return form.pack(functions[i.function]())

    def _function(self, function: int, a: Array) -> Array:
        """Words of an inverse root; of an activation, or of its slope: 1.0 or 0."""
        if function == isa.INVERSE_ROOT:
            return self.machine.form.inverse_root(a)
        name = "relu" if function in (isa.RELU, isa.RELU_SLOPE) else "clip"
        value, slope = activate(name, a, self.machine.form.one)
        return value if function in (isa.RELU, isa.CLIP) else slope

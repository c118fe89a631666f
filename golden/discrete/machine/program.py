"""Programs that train a multi-layer perceptron, sample by sample (C25): backwards layer by layer, update after use.

golden/discrete/machine/words.py makes the words that IO takes, and reads those that it gives.

Where things stand in the master's neuron cache is decided by `NeuronMap`, in the slaves' caches layer after layer.
"""

from collections.abc import Iterator

from . import instruction as isa
from .instruction import Instruction
from .parameters import MachineParameters
from .table_words import config_table
from .training import ACTIVATIONS, DenseLayer, Kind, Training


def _jump(address: int, rows: int = isa.ALWAYS, counter: int = isa.COUNTERS - 1) -> Instruction:
    """A jump to ``address``, taken each time but the ``rows``-th; by default it is always taken, and sets its counter
    to 0."""
    return Instruction(operation=isa.JUMP, a=counter, d=address, rows=rows)


class NeuronMap:
    """Addresses of vectors in the master's neuron cache, one after another.

    Parameters
    ----------
    machine : MachineParameters
    training : Training

    Attributes
    ----------
    inputs : list of int
        Address of each layer's inputs, and then of the last layer's results.
    biases, last_biases, slopes, errors : list of int
        Of each layer: biases, the last gradients of the biases, slopes of the activation, input gradients.
    target, sums : int
        Of the wanted outputs, and of sums on their way to the activation.
    ahead : int or None
        Of the inputs of the sample after this one; None where the cache has no room for them.

    Raises
    ------
    ValueError
        If the caches are too small.
    """

    def __init__(self, machine: MachineParameters, training: Training) -> None:
        self._next = 0
        layers = training.layers
        outputs = [layer.outputs for layer in layers]
        self.inputs = [self._place(layers[0].inputs), *(self._place(n) for n in outputs)]
        self.target = self._place(outputs[-1])
        self.biases, self.last_biases, self.slopes, self.errors = ([self._place(n) for n in outputs] for _ in range(4))
        self.sums = self._place(max(outputs + [layer.inputs for layer in layers]))
        if self._next > machine.neuron_words:
            raise ValueError(f"training: needs a neuron cache of {self._next} words, got {machine.neuron_words}")
        room = self._next + layers[0].inputs <= machine.neuron_words
        self.ahead = self._place(layers[0].inputs) if room else None
        self.weights = []
        row = 0
        for layer in layers:
            columns = machine.columns_each(layer.outputs)
            if columns > machine.column_words:
                raise ValueError(
                    f"training: needs {columns} words of a slave's neuron cache, got {machine.column_words}"
                )
            self.weights.append(row)
            row += layer.inputs * columns
        if row > machine.weight_words:
            raise ValueError(f"training: needs {row} rows of a slave's weight cache, got {machine.weight_words}")

    def _place(self, count: int) -> int:
        """The next ``count`` words."""
        self._next += count
        return self._next - count


class ProgramWriter:
    """Writes the instructions of a training.

    Where caches have room for it, samples stand in turn in two places: while one is trained with, the next one is
    loaded.

    Parameters
    ----------
    machine : MachineParameters
    training : Training
    """

    def __init__(self, machine: MachineParameters, training: Training) -> None:
        self.machine, self.training, self.map = machine, training, NeuronMap(machine, training)

    def program(self, samples: int) -> list[Instruction]:
        """Load everything, train with so many samples (1 to 65,535), and give weights and biases.

        Raises
        ------
        ValueError
            If there are too many samples, or the instruction cache is too small.
        """
        if not 1 <= samples < 1 << 16:
            raise ValueError(f"training: samples must be 1..65535, got {samples}")
        first = [*self._first()]
        last = [*self._results(), Instruction(operation=isa.NOP, function=isa.END)]
        most = self.machine.instructions
        if self.map.ahead is not None:
            instructions = [*first, *self._in_turn(samples, len(first), (self.map.inputs[0], self.map.ahead)), *last]
            if len(instructions) <= most:
                return instructions
        x = self.map.inputs[0]
        body = [self._load(x, self.training.layers[0].inputs), *self._sample(x, [self._load_target()])]
        instructions = [*first, *body, _jump(len(first), samples, counter=0), *last]
        if len(instructions) > most:
            raise ValueError(
                f"training: the machine must have instructions >= {len(instructions)}, what the program needs, "
                f"got {most}"
            )
        return instructions

    def _in_turn(self, samples: int, start: int, places: tuple[int, int]) -> list[Instruction]:
        """All samples, from address ``start`` on: those of even numbers in one place, the others in the other one.

        Two copies of a sample's instructions follow each other. The one that has the last sample runs ``turns`` times;
        it loads no sample in its last turn, and leaves the loop.
        """
        odd = samples % 2
        turns = (samples + 1) // 2
        begin = start + 1
        inputs = self.training.layers[0].inputs

        def copy(number: int, at: int) -> list[Instruction]:
            load = self._load(places[1 - number], inputs)
            # FORWARD is at ``at``, and the load of the target after it
            skip = [_jump(at + 4, turns, counter=0), _jump(at + 5)] if odd != number else []
            return [*self._sample(places[number], [self._load_target(), *skip, load])]

        even = copy(0, begin)
        second = begin + len(even) + 2 * odd
        other = copy(1, second)
        if odd:
            even += [_jump(second, turns, counter=1), _jump(second + len(other) + 1)]
        other.append(_jump(begin) if odd else _jump(begin, turns, counter=1))
        return [self._load(places[0], inputs), *even, *other]

    @staticmethod
    def _load(address: int, rows: int) -> Instruction:
        """IO of a vector from outside."""
        return Instruction(operation=isa.IO, function=isa.LOAD_NEURONS, d=address, rows=rows)

    def _load_target(self) -> Instruction:
        """IO of the wanted outputs."""
        return self._load(self.map.target, self.training.layers[-1].outputs)

    def _first(self) -> Iterator[Instruction]:
        """Tables, constants, weights and biases."""
        t = self.training
        for number, (table, zone) in t.tables.items():
            yield config_table(number, table, zone)
        mu = {} if t.mu_places is None else {"kind_b": 1, "b": t.mu_places}
        yield Instruction(operation=isa.CONFIG, function=isa.RATE, a=t.rate_places, **mu)
        yield Instruction(operation=isa.CONFIG, function=isa.SEED, a=t.seed & 0xFFFF, b=t.seed >> 16)
        for n, layer in enumerate(t.layers):
            for function in self._caches(layer):
                yield self._io(isa.LOAD_NEURONS + function, n)
            yield Instruction(operation=isa.IO, function=isa.LOAD_GRADIENTS, **self._block(n))
            for address in (self.map.biases[n], self.map.last_biases[n]):
                yield self._load(address, layer.outputs)

    @staticmethod
    def _caches(layer: DenseLayer) -> list[int]:
        """What a layer keeps of its weights: 1 words, 2 codes."""
        return [1] * layer.continuous + [2] * (layer.weights.table != 0)

    def _block(self, n: int) -> dict[str, int]:
        """Where the weights of layer ``n`` are."""
        layer = self.training.layers[n]
        return {"w": self.map.weights[n], "rows": layer.inputs, "columns": layer.outputs}

    def _io(self, function: int, n: int) -> Instruction:
        """IO of a layer's weights."""
        return Instruction(operation=isa.IO, function=function, **self._block(n))

    def _sample(self, x: int, loads: list[Instruction]) -> Iterator[Instruction]:
        """One sample, whose inputs are at ``x``: forward, backward and update; ``loads`` come after the first
        instruction."""
        t = self.training
        m = self.map
        last = len(t.layers) - 1
        beside = loads
        for n in range(last + 1):
            yield from self._forward(n, m.inputs[n] if n else x, beside)
            beside = self._slopes(n)
        size = t.layers[last].outputs
        yield self._vector(
            isa.SUBTRACT,
            a=m.inputs[last + 1],
            kind_a=t.layers[last].results.table,
            b=m.target,
            d=m.errors[last],
            rows=size,
        )
        for n in range(last, -1, -1):
            yield from self._backward(n, m.inputs[n] if n else x)

    @staticmethod
    def _vector(function: int, **fields: int) -> Instruction:
        """COMPUTE of the master."""
        return Instruction(operation=isa.COMPUTE, function=function, **fields)

    def _forward(self, n: int, x: int, beside: list[Instruction]) -> Iterator[Instruction]:
        """Layer ``n`` forward, up to its activation; instructions ``beside`` are for other units while the slaves are
        at work. What goes into the activation is kept where its slopes will be."""
        t = self.training
        m = self.map
        layer = self.training.layers[n]
        size = layer.outputs
        a = m.inputs[n + 1]
        yield Instruction(
            operation=isa.COMPUTE,
            function=isa.FORWARD,
            a=x,
            kind_a=t.kind_of_inputs(n),
            kind_w=layer.weights.table,
            d=m.sums,
            **self._block(n),
        )
        yield from beside
        functions = ACTIVATIONS[layer.activation]
        y = m.slopes[n] if functions else a
        yield self._vector(isa.ADD, a=m.sums, b=m.biases[n], d=y, rows=size)
        if functions:
            yield self._vector(functions[0], a=y, d=a, rows=size)
        if layer.results.table:
            yield self._convert(layer.results, a, size)

    def _slopes(self, n: int) -> list[Instruction]:
        """Slopes of the activation of layer ``n``, in the place of what went into it."""
        layer = self.training.layers[n]
        y = self.map.slopes[n]
        functions = ACTIVATIONS[layer.activation]
        return [self._vector(functions[1], a=y, d=y, rows=layer.outputs)] if functions else []

    def _convert(self, kind: Kind, address: int, size: int) -> Instruction:
        """Conversion in place."""
        return self._vector(isa.CONVERT, a=address, d=address, rows=size, kind_d=kind.table, chance_d=int(kind.chance))

    def _backward(self, n: int, x: int) -> Iterator[Instruction]:
        """Layer ``n`` backward: its output gradients, its update, and beside it the input gradients of the layer
        before."""
        t = self.training
        m = self.map
        layer = self.training.layers[n]
        size = layer.outputs
        g = m.errors[n]
        if layer.errors.table:
            yield self._convert(layer.errors, g, size)
        g_kind = layer.errors.table
        yield Instruction(operation=isa.MOVE, function=isa.SCATTER, a=g, columns=size)
        if n:
            yield Instruction(
                operation=isa.COMPUTE,
                function=isa.BACKWARD,
                kind_b=g_kind,
                kind_w=layer.weights.table,
                d=m.sums,
                **self._block(n),
            )
        yield Instruction(
            operation=isa.COMPUTE,
            function=isa.UPDATE,
            a=x,
            kind_a=t.kind_of_inputs(n),
            kind_b=g_kind,
            kind_w=layer.weights.table,
            kind_d=layer.gradients.table,
            chance_d=int(layer.gradients.chance),
            chance_w=int(layer.weights.chance),
            master=int(layer.master),
            **self._block(n),
        )
        if n:
            before = t.layers[n - 1]
            if ACTIVATIONS[before.activation]:
                yield self._vector(isa.GATE, a=m.sums, b=m.slopes[n - 1], d=m.errors[n - 1], rows=layer.inputs)
            else:
                yield Instruction(operation=isa.MOVE, function=isa.COPY, a=m.sums, d=m.errors[n - 1], rows=layer.inputs)
        yield from self._bias(n, g, g_kind)

    def _bias(self, n: int, g: int, g_kind: int) -> Iterator[Instruction]:
        """Update of the biases, by the rule of the weights."""
        m = self.map
        size = self.training.layers[n].outputs
        b = m.biases[n]
        before = m.last_biases[n]
        if self.training.mu_places is None:
            yield self._vector(isa.DESCEND, a=b, b=g, kind_b=g_kind, d=b, rows=size)
            return
        yield self._vector(isa.MOMENTUM, a=g, kind_a=g_kind, b=before, d=m.sums, rows=size)
        yield self._vector(isa.DESCEND, a=b, b=m.sums, d=b, rows=size)
        # dw' <- dw, as words: what is let pass by itself is unchanged
        yield self._vector(isa.GATE, a=g, kind_a=g_kind, b=g, kind_b=g_kind, d=before, rows=size)

    def _results(self) -> Iterator[Instruction]:
        """Weights and biases, to outside."""
        layers = self.training.layers
        for n, layer in enumerate(layers):
            for function in self._caches(layer):
                yield self._io(isa.STORE_NEURONS + function, n)
            last = n == len(layers) - 1
            yield Instruction(
                operation=isa.IO, function=isa.STORE_NEURONS, a=self.map.biases[n], rows=layer.outputs, last=int(last)
            )

"""Programs that train a multi-layer perceptron (C25): samples one after another, each backwards layer by layer.

golden/discrete/fixed.py says what is computed; golden/discrete/machine/words.py makes the words that IO takes, and
reads those that it gives.

Where things stand in the master's neuron cache is decided by `NeuronMap`, in the slaves' caches layer after layer.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bitloom.golden.discrete.converter import PAIRS
from bitloom.golden.encoding import Array

from . import instruction as isa
from .instruction import Instruction, encode
from .parameters import MachineParameters
from .table_words import config_table
from .training import ACTIVATIONS, MEAN_PLACES, MOMENT_PLACES, SourceRule, TensorKind, Training
from .words import MATRICES, LayerState, first_words, kept, sample_words

TURNS, SAMPLES, ROUNDS, FREE = range(isa.COUNTERS)
"""Counters: turns in which a next sample is loaded; samples of a batch; rounds of the loop; one that stays 0."""

LEAST_PAGED = 3
"""Instructions of a cache for pages at least: one that loads a page, a page of one, and the jump back."""


class Label:
    """A place in a program, between instructions."""


@dataclass(frozen=True)
class Jump:
    """A jump to a label, taken each time but the ``rows``-th; by default it is always taken."""

    label: Label
    rows: int = isa.ALWAYS
    counter: int = FREE


ProgramLine = Instruction | Label | Jump


def _placed(lines: Iterable[ProgramLine], start: int) -> list[Instruction]:
    """The instructions of lines that begin at address ``start``."""
    lines = list(lines)
    addresses: dict[Label, int] = {}
    count = 0
    for line in lines:
        if isinstance(line, Label):
            addresses[line] = start + count
        else:
            count += 1
    instructions = []
    for line in lines:
        if isinstance(line, Jump):
            target = addresses[line.label]
            instructions.append(Instruction(operation=isa.JUMP, a=line.counter, d=target, rows=line.rows))
        elif isinstance(line, Instruction):
            instructions.append(line)
    return instructions


def _taken(instruction: Instruction) -> int:
    """Words from outside that an instruction takes."""
    i = instruction
    if i.operation != isa.IO or i.function >= isa.STORE_NEURONS:
        return 0
    return i.rows if i.function == isa.LOAD_NEURONS else i.rows * i.columns


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
    biases, bias_gradients, means, slopes, errors : list of int
        Of each layer: biases; their last gradients, or sums of gradients; means of the results, which only centred
        layers use; slopes of the activation; input gradients.
    target, sums : int
        Of the wanted outputs, and of sums on their way to the activation.
    windows : list of int
        Of each layer that sees windows: all of them, one behind the other.
    hats, gains, gain_gradients, moments, running, roots : list
        Of each normalised layer: sums less their mean, over their deviation; gains and their gradients; mean and
        variance of the batch and the running ones, a pair of addresses each; inverse roots of variances.
    words : int
        Of the cache that are used.
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
        samples = training.side_by_side  # vectors of samples stand one behind the other
        results = [samples * layer.vector_outputs for layer in layers]
        first = layers[0].vector_inputs
        self.inputs = [self._place(samples * first), *(self._place(n) for n in results)]
        self.target = self._place(results[-1])
        self.biases, self.bias_gradients = ([self._place(n) for n in outputs] for _ in range(2))
        self.slopes, self.errors = ([self._place(n) for n in results] for _ in range(2))
        seen = [layer.views * layer.inputs * (layer.windows is not None) for layer in layers]
        self.windows = [self._place(samples * n) for n in seen]
        normal = [layer.outputs * layer.normalised for layer in layers]
        self.hats = [self._place(samples * n) for n in normal]
        self.gains, self.gain_gradients, self.roots = ([self._place(n) for n in normal] for _ in range(3))
        self.moments, self.running = ([(self._place(n), self._place(n)) for n in normal] for _ in range(2))
        self.means = [self._place(layer.outputs * layer.centred) for layer in layers]
        self.sums = self._place(max(outputs + [layer.inputs for layer in layers]))
        if self._next > machine.neuron_words:
            raise ValueError(f"training: needs a neuron cache of {self._next} words, got {machine.neuron_words}")
        room = not training.stepwise and self._next + first <= machine.neuron_words
        self.ahead = self._place(first) if room else None
        self.words = self._next
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

    Where a layer is normalised over the batch, each step is made for all samples of a batch, whose vectors stand one
    behind the other; where a layer sees windows, for all windows of a sample, which are copied out of the image. Else
    samples go through all layers one after the other.

    Where caches have room for it, such samples stand in turn in two places: while one is trained with, the next one is
    loaded. Within a batch weights stay, and so the first layer accumulates the gradients of a sample while the master
    works on the results of the next one.

    Parameters
    ----------
    machine : MachineParameters
    training : Training
    """

    def __init__(self, machine: MachineParameters, training: Training) -> None:
        self.machine = machine
        self.training = training
        self.map = NeuronMap(machine, training)

    def run(self, states: Sequence[LayerState], inputs: Array, targets: Array) -> tuple[list[Instruction], Array]:
        """A program that trains, and all words that it takes.

        Where the instruction cache doesn't hold the program, the words bring it along, a page at a time: the cache has
        an instruction that loads a page behind it, and a page ends with a jump back to this instruction.

        Parameters
        ----------
        states : sequence of LayerState
            Before the training.
        inputs : (N, inputs) words, or codes if the inputs are discrete
        targets : (N, outputs) words
            N is 1 to 65,535, a multiple of the batch.

        Returns
        -------
        list of Instruction
        (n,) uint32

        Raises
        ------
        ValueError
            If N is wrong, or if the machine has fewer than 3 instructions.
        """
        form = self.machine.form
        before = first_words(self.training, form, states)
        samples = sample_words(self.training, form, inputs, targets)
        program = self._whole(len(inputs))
        if program is not None:
            return program, np.concatenate([before, samples])
        if self.machine.instructions < LEAST_PAGED:
            raise ValueError(
                f"training: the machine must have instructions >= {LEAST_PAGED}, got {self.machine.instructions}"
            )
        batches = self.training.batches(len(inputs))
        passes = len(inputs) // self.training.side_by_side
        of_samples = self._paged(_placed(self._samples(), 0), samples.reshape(passes, -1)).reshape(batches, -1)
        of_ends = self._paged([*self._batch_end()], np.zeros((batches, 0), np.uint32))
        parts = [
            self._paged([*self._first()], before[None]),
            np.concatenate([of_samples, of_ends], axis=1),
            self._paged(self._last(), np.zeros((1, 0), np.uint32)),
        ]
        page = self.machine.instructions - 1
        load = Instruction(operation=isa.IO, function=isa.LOAD_PROGRAM, d=1, rows=page)
        return [load], np.concatenate([part.reshape(-1) for part in parts])

    def _paged(self, instructions: list[Instruction], data: Array) -> Array:
        """Pages of straight instructions, each page followed by the words that its instructions take.

        Parameters
        ----------
        instructions : list of Instruction
        data : (N, words) uint32
            Words that the instructions take, each of N times.

        Returns
        -------
        (N, words) uint32
        """
        room = self.machine.instructions - 2  # besides the instruction that loads the page, and the jump to it
        back = Instruction(operation=isa.JUMP, a=FREE)
        parts = [data[:, :0]]
        taken = 0
        for begin in range(0, len(instructions), room):
            page = instructions[begin : begin + room]
            count = sum(_taken(instruction) for instruction in page)
            words = encode([*page, back, *[Instruction(operation=isa.NOP)] * (room - len(page))])
            parts += [np.broadcast_to(words, (len(data), len(words))), data[:, taken : taken + count]]
            taken += count
        return np.concatenate(parts, axis=1)

    def program(self, samples: int) -> list[Instruction]:
        """Load the states of all layers, train with so many samples (1 to 65,535), and give the states.

        Raises
        ------
        ValueError
            If there are too many samples, if the last batch is not whole, or if the instruction cache is too small.
        """
        instructions = self._whole(samples)
        if instructions is None:
            need = len(self._one_after_another(samples))
            raise ValueError(
                f"training: the machine must have instructions >= {need}, what the program needs, "
                f"got {self.machine.instructions}"
            )
        return instructions

    def _whole(self, samples: int) -> list[Instruction] | None:
        """The fastest program that the instruction cache holds, None if there is none."""
        if not 1 <= samples < 1 << 16:
            raise ValueError(f"training: samples must be 1..65535, got {samples}")
        self.training.batches(samples)
        first = [*self._first()]
        most = self.machine.instructions
        if self.map.ahead is not None:
            loop = _placed(self._in_turn(samples, (self.map.inputs[0], self.map.ahead)), len(first))
            instructions = [*first, *loop, *self._last()]
            if len(instructions) <= most:
                return instructions
        instructions = self._one_after_another(samples)
        return instructions if len(instructions) <= most else None

    def _one_after_another(self, samples: int) -> list[Instruction]:
        """A program in which all samples stand in the same place."""
        first = [*self._first()]
        return [*first, *_placed(self._one_by_one(samples), len(first)), *self._last()]

    def _one_by_one(self, samples: int) -> Iterator[ProgramLine]:
        """All samples, one after another in the same place, or batch after batch."""
        begin = Label()
        after = Label()
        each = self.training.side_by_side
        yield begin
        yield from self._samples()
        if self.training.batch > each:
            yield Jump(after, self.training.batch, SAMPLES)
        yield from self._batch_end()
        yield after
        yield Jump(begin, samples // each, ROUNDS)

    def _samples(self) -> Iterator[ProgramLine]:
        """A sample, or samples and windows side by side."""
        return self._side_by_side() if self.training.stepwise else self._sample()

    def _sample(self) -> Iterator[ProgramLine]:
        """A sample that stands where the first layer's inputs are."""
        x = self.map.inputs[0]
        yield self._load(x, self.training.layers[0].inputs)
        yield from self._head(x)
        yield from self._forwards()
        yield from self._backwards(x)
        yield from self._accumulate_first(x)

    def _in_turn(self, samples: int, places: tuple[int, int]) -> Iterator[ProgramLine]:
        """All samples, those of even numbers in one place, the others in the other one.

        For each place there is a copy of a sample's instructions, which loads the next sample into the other place, but
        for the last sample: that is in the second copy, with which an odd number of samples begins.
        """
        batch = self.training.batch
        learns_late = batch > 1  # the next sample's instructions accumulate
        even = batch % 2 == 0
        ends = (not even, True)  # whether a batch can end in a copy
        passes = batch // 2 if even else batch
        rounds = -(-samples // batch // (1 if even else 2))
        begins = [Label(), Label()]
        goes_on = [Label(), Label()]
        odd = samples % 2
        yield self._load(places[odd], self.training.layers[0].inputs)
        if odd:
            yield Jump(begins[1])
        for number, (x, other) in enumerate(zip(places, places[::-1])):
            rest = Label()
            if ends[1 - number]:
                yield begins[number]
                yield from self._head(x)
                if learns_late:
                    yield Jump(rest)
            if learns_late:
                yield goes_on[number]
                yield from self._head(x)
                yield from self._accumulate_first(other)
                yield rest
            yield from self._forwards(self._load_next(other, -(-samples // 2) if number else None))
            yield from self._backwards(x)
            if learns_late and ends[number]:
                yield Jump(goes_on[1 - number], passes, SAMPLES)
            if ends[number]:
                yield from self._accumulate_first(x)
                yield from self._batch_end()
        yield Jump(begins[0], rounds, ROUNDS)

    def _side_by_side(self) -> Iterator[ProgramLine]:
        """A sample or a batch, each step for all samples and windows (golden/discrete/fixed.py)."""
        t = self.training
        m = self.map
        last = t.layers[-1]
        size = t.layers[0].vector_inputs
        for s in range(t.side_by_side):
            yield self._load(m.inputs[0] + s * size, size)
            yield self._load(m.target + s * last.vector_outputs, last.vector_outputs)
        for n in range(len(t.layers)):
            yield from self._batch_forward(n)
        end = len(t.layers) - 1
        yield self._compute(
            isa.SUBTRACT,
            a=m.inputs[end + 1],
            kind_a=last.results.table,
            b=m.target,
            d=m.errors[end],
            rows=t.side_by_side * last.vector_outputs,
        )
        for n in range(end, -1, -1):
            yield from self._batch_backward(n)

    def _count(self, n: int) -> int:
        """How often the neurons of layer ``n`` see inputs in a step: for each sample and each window."""
        return self.training.side_by_side * self.training.layers[n].views

    def _vector_by_vector(self, function: int, n: int, *, a: int, d: int, b: int) -> Iterator[Instruction]:
        """COMPUTE of vectors of layer ``n`` at ``a`` and ``d``, one a sample and window, with one operand b for all."""
        size = self.training.layers[n].outputs
        for k in range(self._count(n)):
            yield self._compute(function, a=a + k * size, b=b, d=d + k * size, rows=size)

    def _sum_of(self, function: int, n: int, vectors: int, d: int) -> Iterator[Instruction]:
        """ADD or MOMENTUM of vectors of layer ``n``, one a sample and window, to zeros at ``d``."""
        size = self.training.layers[n].outputs
        yield self._zeros(d, size)
        for k in range(self._count(n)):
            yield self._compute(function, a=d, b=vectors + k * size, d=d, rows=size)

    def _runs(self, n: int, images: int) -> Iterator[int]:
        """Where the runs of all windows of layer ``n`` are in the images at ``images``."""
        windows = self.training.layers[n].windows
        if windows is not None:
            for s in range(self.training.side_by_side):
                for begins in windows.runs:
                    yield from (images + s * windows.pixels + begin for begin in begins)

    def _copied_windows(self, n: int) -> Iterator[Instruction]:
        """The windows of layer ``n``, run after run out of the images."""
        windows = self.training.layers[n].windows
        for number, image in enumerate(self._runs(n, self.map.inputs[n])):
            assert windows is not None
            d = self.map.windows[n] + number * windows.run
            yield Instruction(operation=isa.MOVE, function=isa.COPY, a=image, d=d, rows=windows.run)

    def _seen(self, n: int, k: int) -> int:
        """Where the ``k``-th inputs of the neurons of layer ``n`` are."""
        layer = self.training.layers[n]
        return (self.map.inputs[n] if layer.windows is None else self.map.windows[n]) + k * layer.inputs

    def _zeros(self, d: int, size: int) -> Instruction:
        """Zeros."""
        return self._compute(isa.SUBTRACT, a=d, b=d, d=d, rows=size)

    def _batch_forward(self, n: int) -> Iterator[Instruction]:
        """Layer ``n`` forwards: from inputs to results, which become codes where they are discrete, and slopes."""
        t = self.training
        m = self.map
        layer = t.layers[n]
        size = layer.outputs
        count = self._count(n)
        rows = count * size
        y = m.slopes[n]
        sums = m.hats[n] if layer.normalised else y
        yield from self._copied_windows(n)
        for k in range(count):
            yield self._forward(n, self._seen(n, k), sums + k * size)
        if layer.normalised:
            mean, variance = m.moments[n]
            yield from self._sum_of(isa.MOMENTUM, n, sums, mean)
            yield from self._vector_by_vector(isa.SUBTRACT, n, a=sums, b=mean, d=sums)
            yield self._compute(isa.MULTIPLY, a=sums, b=sums, d=y, rows=rows)
            yield from self._sum_of(isa.MOMENTUM, n, y, variance)
            yield self._compute(isa.INVERSE_ROOT, a=variance, d=m.roots[n], rows=size)
            yield from self._vector_by_vector(isa.MULTIPLY, n, a=sums, b=m.roots[n], d=sums)
            yield from self._vector_by_vector(isa.MULTIPLY, n, a=sums, b=m.gains[n], d=y)
        yield from self._vector_by_vector(isa.ADD, n, a=y, b=m.biases[n], d=y)
        functions = ACTIVATIONS[layer.activation]
        words = self._result_words(n)
        if functions:
            yield self._compute(functions[0], a=y, d=words, rows=rows)
        else:
            yield Instruction(operation=isa.MOVE, function=isa.COPY, a=y, d=words, rows=rows)
        if layer.centred:
            constants = [self._rate(self.training.batch_places, MEAN_PLACES)] if t.normalised else []
            yield from constants
            for k in range(count):
                at = words + k * size
                yield self._compute(isa.SUBTRACT, a=at, b=m.means[n], d=at, rows=size)
                yield self._compute(isa.MOMENTUM, a=m.means[n], b=at, d=m.means[n], rows=size)
            yield from [self._before_sample()] * len(constants)
        if layer.results.table:
            yield self._convert(layer.results, words, m.inputs[n + 1], rows)
        if n < len(t.layers) - 1:
            yield from self._slopes(n)

    def _batch_backward(self, n: int) -> Iterator[Instruction]:
        """Layer ``n`` backwards, from errors of what goes into its activation to those of the layer before."""
        t = self.training
        m = self.map
        layer = t.layers[n]
        size = layer.outputs
        count = self._count(n)
        rows = count * size
        g = m.errors[n]
        if layer.normalised:
            products = m.slopes[n]
            for k in range(count):
                yield self._add_to_bias(n, g + k * size)
            yield self._compute(isa.MULTIPLY, a=g, b=m.hats[n], d=products, rows=rows)
            yield from self._sum_of(isa.ADD, n, products, m.gain_gradients[n])
            yield self._zeros(m.sums, size)
            yield self._compute(isa.MOMENTUM, a=m.sums, b=m.gain_gradients[n], d=m.sums, rows=size)
            yield from self._vector_by_vector(isa.DESCEND, n, a=g, b=m.bias_gradients[n], d=g)
            yield from self._vector_by_vector(isa.MULTIPLY, n, a=m.hats[n], b=m.sums, d=m.hats[n])
            yield self._compute(isa.SUBTRACT, a=g, b=m.hats[n], d=g, rows=rows)
            yield self._compute(isa.MULTIPLY, a=m.roots[n], b=m.gains[n], d=m.roots[n], rows=size)
            yield from self._vector_by_vector(isa.MULTIPLY, n, a=g, b=m.roots[n], d=g)
        kind = layer.errors.table
        if kind:
            yield self._convert(layer.errors, g, g, rows)
        windows = layer.windows
        images = [*self._runs(n, m.errors[n - 1])]
        if n and windows is not None:
            yield self._zeros(m.errors[n - 1], t.side_by_side * windows.pixels)
        for k in range(count):
            at = g + k * size
            yield Instruction(operation=isa.MOVE, function=isa.SCATTER, a=at, columns=size)
            if n and windows is None:
                yield self._backward_sums(n, kind, m.errors[n - 1] + k * layer.inputs)
            elif n and windows is not None:
                yield self._backward_sums(n, kind, m.sums)
                for number, image in enumerate(images[k * windows.size : (k + 1) * windows.size]):
                    b = m.sums + number * windows.run
                    yield self._compute(isa.ADD, a=image, b=b, d=image, rows=windows.run)
            yield self._learn(n, self._seen(n, k))
            if not layer.normalised:
                yield self._add_to_bias(n, at, kind)
        if n and ACTIVATIONS[t.layers[n - 1].activation]:
            yield self._gate(n - 1, m.errors[n - 1])

    def _load_next(self, place: int, turns: int | None) -> Iterator[ProgramLine]:
        """IO of the inputs of the next sample, but for the ``turns``-th time."""
        load = Label()
        after = Label()
        if turns is not None:
            yield Jump(load, turns, TURNS)
            yield Jump(after)
        yield load
        yield self._load(place, self.training.layers[0].inputs)
        yield after

    def _accumulate_first(self, x: int) -> Iterator[Instruction]:
        """The rest of the first layer's backward pass, whose input gradients are in the slaves: velocities of the
        layer's weights, with inputs at ``x``; nothing by a `SourceRule`."""
        if not isinstance(self.training.rule, SourceRule):
            yield self._learn(0, x)

    @staticmethod
    def _load(address: int, rows: int) -> Instruction:
        """IO of a vector from outside."""
        return Instruction(operation=isa.IO, function=isa.LOAD_NEURONS, d=address, rows=rows)

    def _load_target(self) -> Instruction:
        """IO of the wanted outputs."""
        return self._load(self.map.target, self.training.layers[-1].outputs)

    def _first(self) -> Iterator[Instruction]:
        """Tables, constants, states of the layers."""
        t = self.training
        for number, (table, zone) in t.tables.items():
            yield config_table(number, table, zone)
        yield self._before_sample()
        yield Instruction(operation=isa.CONFIG, function=isa.SEED, a=t.seed & 0xFFFF, b=t.seed >> 16)
        yield from self._states(isa.LOAD_NEURONS)

    @staticmethod
    def _rate(rate_places: int, mu_places: int | None) -> Instruction:
        """CONFIG of the constants."""
        mu = {} if mu_places is None else {"kind_b": 1, "b": mu_places}
        return Instruction(operation=isa.CONFIG, function=isa.RATE, a=rate_places, **mu)

    def _before_sample(self) -> Instruction:
        """CONFIG of the constants with which samples go forward, mu that of means, and biases move at a batch's end;
        where a layer is normalised over a batch of 2^k samples, k for both."""
        rule = self.training.rule
        if self.training.normalised:
            return self._rate(self.training.batch_places, self.training.batch_places)
        if isinstance(rule, SourceRule):
            return self._rate(rule.rate_places, MEAN_PLACES if self._centred else rule.mu_places)
        return self._rate(rule.bias_places, MEAN_PLACES)

    @property
    def _centred(self) -> bool:
        """Whether there are running means."""
        return any(layer.centred for layer in self.training.layers)

    def _last(self) -> list[Instruction]:
        """The states, to outside, and the end."""
        return [*self._states(isa.STORE_NEURONS), Instruction(operation=isa.NOP, function=isa.END)]

    def _states(self, direction: int) -> Iterator[Instruction]:
        """IO of the states of all layers: LOAD_NEURONS or STORE_NEURONS says in which direction."""
        layers = self.training.layers
        m = self.map
        vectors = {
            "biases": m.biases,
            "bias_gradients": m.bias_gradients,
            "means": m.means,
            "gains": m.gains,
            "sum_means": [mean for mean, _ in m.running],
            "sum_variances": [variance for _, variance in m.running],
        }
        for n, layer in enumerate(layers):
            names = kept(self.training, layer)
            for name in names:
                if name in MATRICES:
                    function = direction + 1 + MATRICES.index(name)
                    fields = self._block(n)
                else:
                    function = direction
                    fields = {"d" if direction == isa.LOAD_NEURONS else "a": vectors[name][n], "rows": layer.outputs}
                last = direction == isa.STORE_NEURONS and n == len(layers) - 1 and name == names[-1]
                yield Instruction(operation=isa.IO, function=function, last=int(last), **fields)

    def _block(self, n: int) -> dict[str, int]:
        """Where the weights of layer ``n`` are."""
        layer = self.training.layers[n]
        return {"w": self.map.weights[n], "rows": layer.inputs, "columns": layer.outputs}

    def _head(self, x: int) -> list[Instruction]:
        """The beginning of a sample, whose inputs are at ``x``."""
        return [self._forward(0, x), self._load_target()]

    def _forwards(self, beside: Iterable[ProgramLine] = ()) -> Iterator[ProgramLine]:
        """A sample after `_head`, up to the last layer's results; ``beside`` comes while its slaves are at work."""
        m = self.map
        last = len(self.training.layers) - 1
        for n in range(last + 1):
            if n:
                yield self._forward(n, m.inputs[n])
                yield from self._after_results(n - 1)
                yield from self._slopes(n - 1)
            if n == last:
                yield from beside
            yield from self._results(n)
        yield from self._after_results(last)

    def _backwards(self, x: int) -> Iterator[Instruction]:
        """The rest of a sample whose inputs are at ``x``, but for `_accumulate_first`."""
        t = self.training
        m = self.map
        last = len(t.layers) - 1
        size = t.layers[last].outputs
        yield self._compute(
            isa.SUBTRACT,
            a=m.inputs[last + 1],
            kind_a=t.layers[last].results.table,
            b=m.target,
            d=m.errors[last],
            rows=size,
        )
        constants = []
        if isinstance(t.rule, SourceRule) and self._centred:  # the update's mu is not that of the running means
            constants = [self._rate(t.rule.rate_places, t.rule.mu_places)]
        yield from constants
        for n in range(last, -1, -1):
            yield from self._backward(n, m.inputs[n] if n else x)
        yield from [self._before_sample()] * len(constants)

    @staticmethod
    def _compute(function: int, **fields: int) -> Instruction:
        """COMPUTE."""
        return Instruction(operation=isa.COMPUTE, function=function, **fields)

    def _forward(self, n: int, x: int, d: int | None = None) -> Instruction:
        """Sums of layer ``n``."""
        layer = self.training.layers[n]
        return self._compute(
            isa.FORWARD,
            a=x,
            kind_a=self.training.kind_of_inputs(n),
            kind_w=layer.forward_table or layer.weights.table,
            d=self.map.sums if d is None else d,
            **self._block(n),
        )

    def _backward_sums(self, n: int, g_kind: int, d: int) -> Instruction:
        """Output gradients of the layer before layer ``n``, whose input gradients are in the slaves."""
        kind_w = self.training.layers[n].backward_table or self.training.layers[n].weights.table
        return self._compute(isa.BACKWARD, kind_b=g_kind, kind_w=kind_w, d=d, **self._block(n))

    def _results(self, n: int) -> Iterator[Instruction]:
        """From sums to results of layer ``n``. What goes into the activation is kept where its slopes will be."""
        m = self.map
        layer = self.training.layers[n]
        size = layer.outputs
        functions = ACTIVATIONS[layer.activation]
        words = self._result_words(n)
        y = m.slopes[n] if functions else words
        yield self._compute(isa.ADD, a=m.sums, b=m.biases[n], d=y, rows=size)
        if functions:
            yield self._compute(functions[0], a=y, d=words, rows=size)
        if layer.centred:
            yield self._compute(isa.SUBTRACT, a=words, b=m.means[n], d=words, rows=size)
        if layer.results.table:
            yield self._convert(layer.results, words, m.inputs[n + 1], size)

    def _result_words(self, n: int) -> int:
        """Where results of layer ``n`` are words: where means still need them after they have become codes, that is the
        place of errors, which come later."""
        layer = self.training.layers[n]
        return self.map.errors[n] if layer.centred and layer.results.table else self.map.inputs[n + 1]

    def _after_results(self, n: int) -> list[Instruction]:
        """The running means of layer ``n``, which nothing waits for in this sample."""
        layer = self.training.layers[n]
        means = self.map.means[n]
        update = self._compute(isa.MOMENTUM, a=means, b=self._result_words(n), d=means, rows=layer.outputs)
        return [update] if layer.centred else []

    def _slopes(self, n: int) -> list[Instruction]:
        """Slopes of the activation of layer ``n``, in the place of what went into it."""
        layer = self.training.layers[n]
        y = self.map.slopes[n]
        rows = self.training.side_by_side * layer.vector_outputs
        functions = ACTIVATIONS[layer.activation]
        if functions is None:
            return []
        slopes = [self._compute(functions[1], a=y, d=y, rows=rows)]
        return [*slopes, self._convert(layer.slopes, y, y, rows)] if layer.slopes.table else slopes

    def _convert(self, kind: TensorKind, a: int, d: int, size: int) -> Instruction:
        """Conversion."""
        return self._compute(isa.CONVERT, a=a, d=d, rows=size, **_fields_of("d", kind))

    def _backward(self, n: int, x: int) -> Iterator[Instruction]:
        """Layer ``n`` backward: its output gradients, its update, and beside it the input gradients of the layer
        before."""
        t = self.training
        m = self.map
        layer = t.layers[n]
        size = layer.outputs
        g = m.errors[n]
        if layer.errors.table:
            yield self._convert(layer.errors, g, g, size)
        g_kind = layer.errors.table
        yield Instruction(operation=isa.MOVE, function=isa.SCATTER, a=g, columns=size)
        if n:
            yield self._backward_sums(n, g_kind, m.sums)
        if n or isinstance(t.rule, SourceRule):
            yield self._learn(n, x)
        if n:
            yield self._gate(n - 1, m.sums)
        yield from self._bias(n, g, g_kind)

    def _learn(self, n: int, x: int) -> Instruction:
        """Weights of layer ``n``, or their velocities: its inputs at ``x``, its input gradients in the slaves."""
        layer = self.training.layers[n]
        fields = {
            "a": x,
            "kind_a": self.training.kind_of_inputs(n),
            "kind_b": layer.errors.table,
            **_fields_of("d", layer.weight_gradients),
            **self._block(n),
        }
        if isinstance(self.training.rule, SourceRule):
            return self._compute(isa.UPDATE, **fields, **self._kinds_of_weights(n))
        return self._compute(isa.ACCUMULATE, **fields)

    def _kinds_of_weights(self, n: int) -> dict[str, int]:
        """How weights of layer ``n`` are kept."""
        layer = self.training.layers[n]
        return {**_fields_of("w", layer.weights), "master": int(layer.master)}

    def _gate(self, n: int, outputs: int) -> Instruction:
        """Input gradients of layer ``n``: its output gradients times the slopes of its activation."""
        m = self.map
        layer = self.training.layers[n]
        size = self.training.side_by_side * layer.vector_outputs
        g = m.errors[n]
        if ACTIVATIONS[layer.activation] is None:
            return Instruction(operation=isa.MOVE, function=isa.COPY, a=outputs, d=g, rows=size)
        kind = layer.slopes.table
        return self._compute(isa.MULTIPLY if kind else isa.GATE, a=outputs, b=m.slopes[n], kind_b=kind, d=g, rows=size)

    def _bias(self, n: int, g: int, g_kind: int) -> Iterator[Instruction]:
        """Instructions that update the biases of layer ``n``, by the rule of the weights; ``g``: address of their
        gradients, of kind ``g_kind``."""
        m = self.map
        size = self.training.layers[n].outputs
        b = m.biases[n]
        before = m.bias_gradients[n]
        rule = self.training.rule
        if not isinstance(rule, SourceRule):
            yield self._add_to_bias(n, g, g_kind)
            return
        if rule.mu_places is None:
            yield self._compute(isa.DESCEND, a=b, b=g, kind_b=g_kind, d=b, rows=size)
            return
        yield self._compute(isa.MOMENTUM, a=g, kind_a=g_kind, b=before, d=m.sums, rows=size)
        yield self._compute(isa.DESCEND, a=b, b=m.sums, d=b, rows=size)
        # dw' <- dw, as words: what is let pass by itself is unchanged
        yield self._compute(isa.GATE, a=g, kind_a=g_kind, b=g, kind_b=g_kind, d=before, rows=size)

    def _add_to_bias(self, n: int, g: int, g_kind: int = 0) -> Instruction:
        """Gradients of the biases of layer ``n``: those of a sample more."""
        sums = self.map.bias_gradients[n]
        return self._compute(isa.ADD, a=sums, b=g, kind_b=g_kind, d=sums, rows=self.training.layers[n].outputs)

    def _batch_end(self) -> Iterator[Instruction]:
        """Biases move by their sums of gradients, weights by their velocities; nothing by the source's rule."""
        rule = self.training.rule
        if isinstance(rule, SourceRule):
            return
        m = self.map
        if self.training.normalised:
            yield self._rate(rule.bias_places, MOMENT_PLACES)
        for n, layer in enumerate(self.training.layers):
            sums = m.bias_gradients[n]
            size = layer.outputs
            yield self._compute(isa.DESCEND, a=m.biases[n], b=sums, d=m.biases[n], rows=size)
            yield self._zeros(sums, size)
            if layer.normalised:
                yield self._compute(isa.DESCEND, a=m.gains[n], b=m.gain_gradients[n], d=m.gains[n], rows=size)
                for moment, running in zip(m.moments[n], m.running[n]):
                    yield self._compute(isa.SUBTRACT, a=moment, b=running, d=moment, rows=size)
                    yield self._compute(isa.MOMENTUM, a=running, b=moment, d=running, rows=size)
        yield self._rate(rule.rate_places, rule.decay_places)
        for n in range(len(self.training.layers)):
            yield self._compute(isa.APPLY, **self._kinds_of_weights(n), **self._block(n))
        yield self._before_sample()


def _fields_of(tensor: str, kind: TensorKind) -> dict[str, int]:
    """Fields of an instruction that say how it converts: ``tensor`` is "w", weights, or "d", results."""
    values = {"kind": kind.table, "chance": int(kind.chance), "pair": PAIRS.index(kind.pair)}
    return {f"{name}_{tensor}": value for name, value in values.items()}

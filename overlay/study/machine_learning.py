"""A perceptron that learns on the training machine, interpreted or in Verilator, an epoch a run of its program.

The states of all layers go in before an epoch and come out after it, so that a run can be interrupted and go on.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from math import isqrt, log2
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.data import LearnData
from bitloom.golden.discrete.fixed import FixedTrainer, first_state
from bitloom.golden.discrete.learn import CURVE, check_hidden, saved_curve
from bitloom.golden.discrete.lfsr import STATE_BITS, Lfsr
from bitloom.golden.discrete.machine.instruction import COMPUTE, FORWARD, Instruction
from bitloom.golden.discrete.machine.interpreter import Interpreter, Work
from bitloom.golden.discrete.machine.parameters import ADDRESS_BITS, MOST_INSTRUCTIONS, MachineParameters
from bitloom.golden.discrete.machine.program import NeuronMap, ProgramWriter
from bitloom.golden.discrete.machine.training import MOST_PLACES, Training, VelocityRule, Windows
from bitloom.golden.discrete.machine.units import UNITS
from bitloom.golden.discrete.machine.words import LayerState, first_words, read_states
from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.encoding import Array
from bitloom.golden.integers import make_fields_plain
from bitloom.golden.names import shown
from bitloom.golden.reading.archive import listed
from bitloom.golden.training.checkpoint import LARGEST, Checkpoint
from bitloom.golden.training.reproducible import random_order, random_signs
from bitloom.overlay.picture import picture
from bitloom.overlay.virtual.training_machine import SimulatedMachine

from .learning import Seen
from .machine_setting import MACHINE_SETTINGS, MachineSetting, fall, fallen

ORDER = 2_000_000
"""Purpose in the keys of random streams that order the images."""
STATES = "words"
"""Name of the states in a checkpoint."""
RUNNERS = (WORDS, INTERPRETER, VERILATOR) = ("words", "interpreter", "verilator")
"""RUNNERS: the trainers. WORDS: golden/discrete/fixed.py, a batch at a time and without a clock; INTERPRETER: the
interpreter; VERILATOR: the hardware."""
EPOCH_SEEDS = 1 << 16
"""From one seed's first state of the generator to that of the next seed."""
SLOWER_GAINS = 2
"""Binary places by which gains and biases move more slowly where layers are normalised: else gains grow, and weights
stop learning."""
TIMELINE_SAMPLES = 4
"""Samples of the run whose work a timeline shows."""
UNIT_NAMES = {"io": "data access", "array": "slaves", "vector": "own arithmetic"}
"""Names of the units in a timeline and in tables."""
MOST_SEED = (1 << STATE_BITS) // EPOCH_SEEDS - 2
"""Seeds up to here have a state of the generator for each epoch."""


@dataclass(frozen=True, kw_only=True)
class MachinePlan:
    """A run of training: the setting, the data, and the machine."""

    hidden: tuple[int, ...] = (128,)
    """Neurons of each hidden layer."""
    epochs: int = 30
    seed: int = 0
    """Of weights at the start, of the images' order and of the generator, 0 to MOST_SEED."""
    slaves: int = 8
    runner: str = "interpreter"
    """One of `RUNNERS`; the weights are the same."""
    setting: str = "words"
    """Which tensors are codes, a name of `MACHINE_SETTINGS`."""
    rate_places: int | None = None
    """k of the learning rate 2^-k of weights at the start; that of biases moves with it. By default the setting's."""
    mu_places: int | None = None
    """k of mu 2^-k of the source's rule, by default the setting's."""
    decay_places: int | None = None
    """k of the share 2^-k that a velocity loses with each batch, by default the setting's."""
    batch: int | None = None
    """Samples of a batch, by default those of the setting; a velocity remembers as many samples as with those.

    mu_places, decay_places, batch: only where the setting's rule has this constant."""
    windows: tuple[int, int] | None = None
    """Rows, and so columns, of windows, and from one to the next: the first hidden layer is a convolution then."""
    normalised: bool = False
    """Whether sums of hidden layers are normalised over the batch."""
    held_out: bool = False
    """Whether a fifth of the training images, at random by the seed, is held out and takes the place of the test
    images, so that a rate can be chosen without them."""

    figure = "cycles"

    def __post_init__(self) -> None:
        make_fields_plain(self)
        check_hidden(self.hidden)
        if not 0 <= self.seed <= MOST_SEED:
            raise ValueError(f"learning on the machine: seed must be 0..{MOST_SEED}, got {shown(self.seed)}")
        for name in ("mu_places", "decay_places", "batch"):
            value = getattr(self, name)
            if value is not None and not hasattr(MACHINE_SETTINGS[self.setting].rule, name):
                raise ValueError(
                    f"learning on the machine: {name} must be left out where the rule has none, got {value} for "
                    f"{self.setting}"
                )
        if self.normalised and not MACHINE_SETTINGS[self.setting].multiplier:
            raise ValueError(
                f"learning on the machine: normalised must be left out where words are not multiplied, as with "
                f"{self.setting}"
            )

    @property
    def kinds(self) -> MachineSetting:
        """The setting of that name, with the plan's constants."""
        setting = replace(MACHINE_SETTINGS[self.setting], normalised=self.normalised)
        rule = setting.rule
        if self.rate_places is not None:
            rule = fallen(rule, self.rate_places - rule.rate_places)
        changes = {"mu_places": self.mu_places, "decay_places": self.decay_places, "batch": self.batch}
        if self.batch is not None and self.decay_places is None and isinstance(rule, VelocityRule):
            decay = rule.decay_places
            changes["decay_places"] = decay and max(0, decay + round(log2(rule.batch / self.batch)))
        if self.normalised and isinstance(rule, VelocityRule):
            changes["bias_places"] = min(MOST_PLACES, rule.bias_places + SLOWER_GAINS)
        given = {name: value for name, value in changes.items() if value is not None}
        return replace(setting, rule=replace(rule, **given))

    def facts(self) -> dict[str, Any]:
        """Plan and setting."""
        return {"plan": asdict(self), "setting": asdict(self.kinds)}

    def learn(self, data: LearnData, seen: Seen, checkpoint: Path) -> None:
        """Learn on the machine."""
        seen(learn_on_machine(self, data, checkpoint, seen).points)

    def training(self, data: LearnData, epoch: int = 0) -> Training:
        """The training in an epoch with these images: rates fall, and each epoch has random numbers of its own."""
        sizes = (data.train.shape[1], *self.hidden, int(data.train_labels.max()) + 1)
        state = Lfsr.seeded(EPOCH_SEEDS * self.seed + epoch).state
        windows = None
        if self.windows is not None:
            rows = isqrt(sizes[0])  # images are squares
            size, stride = self.windows
            windows = Windows(height=rows, width=rows, size=size, stride=stride)
        return self.kinds.training(sizes, state, fall(epoch, self.epochs), windows)

    def machine(self, training: Training, samples: int) -> MachineParameters:
        """A machine with caches and tables that hold the training and its program for so many samples; without a
        multiplier where codes need none."""
        layers = training.layers
        columns = [-(-layer.outputs // self.slaves) for layer in layers]
        rows = sum(layer.inputs * each for layer, each in zip(layers, columns))
        roomy = MachineParameters(
            slaves=self.slaves,
            instructions=MOST_INSTRUCTIONS,
            neuron_words=1 << ADDRESS_BITS,
            weight_words=_power(rows),
            column_words=_power(max(columns)),
            tables=max(3, len(training.tables)),
            products="multiplier" if self.kinds.multiplier else "shifter",
            root="table" if training.normalised else "none",
        )
        writer = ProgramWriter(roomy, training)
        instructions = max(MachineParameters.instructions, _power(len(writer.program(samples))))
        return replace(roomy, instructions=instructions, neuron_words=_power(writer.map.words))


@dataclass(frozen=True)
class MachineLearned:
    """The figures of a run of training on the machine."""

    points: list[tuple[float, float]]
    """Share of right test images after each epoch, and cycles a sample; the interpreter's are those of words alone, and
    arithmetic without a machine has 0."""
    states: list[LayerState]

    @property
    def curve(self) -> list[float]:
        """Share of right test images after each epoch."""
        return [right for right, _ in self.points]

    @property
    def cycles(self) -> list[float]:
        """Cycles a sample of each epoch."""
        return [cycles for _, cycles in self.points]


class MachineRunner:
    """A context that trains: the machine in Verilator, its interpreter, or its arithmetic alone.

    Parameters
    ----------
    name : str
        One of `RUNNERS`.
    machine : MachineParameters
    """

    def __init__(self, name: str, machine: MachineParameters) -> None:
        self._name = name
        self._machine = machine
        self._open = ExitStack()
        self._runner: Any = None

    def __enter__(self) -> "MachineRunner":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def train(
        self, training: Training, states: Sequence[LayerState], inputs: Array, targets: Array
    ) -> tuple[list[LayerState], float]:
        """States after training with samples, as golden/discrete/machine/words.py has them, and cycles a sample."""
        form = self._machine.form
        if self._name == WORDS:
            trainer = FixedTrainer(form, training, states)
            trainer.learn(inputs, targets)
            return trainer.states, 0.0
        program, data = ProgramWriter(self._machine, training).run(states, inputs, targets)
        if self._runner is not None:
            self._runner.load(program)
        elif self._name == VERILATOR:
            self._runner = self._open.enter_context(SimulatedMachine(self._machine, program))
        else:
            self._runner = Interpreter(self._machine, program)
        (words,) = self._runner.run(data)
        return read_states(training, form, words), self._runner.cycles / len(inputs)


def _power(count: int) -> int:
    """The smallest power of two, at least 2, that is not below ``count``."""
    return max(2, 1 << (count - 1).bit_length())


def first_states(plan: MachinePlan, training: Training, form: WordFormat) -> list[LayerState]:
    """Weights spread over the whole zone, words less by He's rule; their codes where they are discrete; all else 0."""
    states = []
    for n, layer in enumerate(training.layers):
        weights = random_signs((layer.outputs, layer.inputs), plan.seed, n)
        if not layer.weights.table:
            weights *= (6 / layer.inputs) ** 0.5  # keeps the variance of sums after ReLU
        states.append(first_state(form, training, layer, weights))
    return states


@dataclass(frozen=True)
class MachineData:
    """Images as the machine learns from them: less the mean of the training images."""

    train: Array
    test: Array
    """train, test: (N, inputs) words, or codes if the inputs are discrete."""
    targets: Array
    """(N, outputs) words: 1 for the class of a training image, else -1."""
    test_labels: Array

    @classmethod
    def of(cls, training: Training, form: WordFormat, data: LearnData) -> "MachineData":
        """Images and labels for a training."""
        mean = data.real(data.train).mean(axis=0)
        train, test = (form.words(data.real(images) - mean) for images in (data.train, data.test))
        if training.inputs.table:
            table, zone = training.tables[training.inputs.table]
            converter = Converter(table=table, zone=zone)
            train, test = (converter.word_codes(form, words) for words in (train, test))
        of_class = data.train_labels[:, None] == np.arange(training.layers[-1].outputs)
        return cls(train, test, np.where(of_class, form.one, -form.one), data.test_labels)

    def share_right(self, training: Training, form: WordFormat, states: list[LayerState]) -> float:
        """Share of the test images that the states classify rightly, in the machine's words and codes."""
        scores = FixedTrainer(form, training, states).scores(self.test)
        return float((scores.argmax(axis=1) == self.test_labels).mean())


def learn_on_machine(
    plan: MachinePlan,
    data: LearnData,
    checkpoint: Path | None = None,
    seen: Seen | None = None,
) -> MachineLearned:
    """Train a perceptron.

    Parameters
    ----------
    plan : MachinePlan
    data : LearnData
    checkpoint : Path, optional
        Written after each epoch; an interrupted run goes on from it.
    seen : callable, optional
        Called after each epoch with the curve so far.

    Raises
    ------
    ValueError
        If there are fewer images than a batch has.
    CheckpointError
        If the file is no checkpoint of this run.
    """
    data = data.held_out(plan.seed) if plan.held_out else data
    training = plan.training(data)
    samples = len(data.train) - len(data.train) % training.batch
    if not samples:
        raise ValueError(f"learning: images must be at least a batch, {training.batch}, got {len(data.train)}")
    machine = plan.machine(training, samples)
    form = machine.form
    states = first_states(plan, training, form)
    points: list[tuple[float, float]] = []
    store = None
    if checkpoint is not None:
        store = Checkpoint(checkpoint, [plan.facts()], data.train, data.train_labels)
        if saved := store.read():
            with store.checking():
                points = [(right, cycles) for right, cycles in saved_curve(saved, plan.epochs, (1, LARGEST))]
                states = _saved_states(training, form, saved)
    images = MachineData.of(training, form, data)
    with MachineRunner(plan.runner, machine) as runner:
        while len(points) < plan.epochs:
            training = plan.training(data, len(points))
            order = random_order(len(data.train), ORDER, plan.seed, len(points))[:samples]
            states, cycles = runner.train(training, states, images.train[order], images.targets[order])
            points.append((images.share_right(training, form, states), cycles))
            if store:
                store.write({CURVE: np.array(points), STATES: first_words(training, form, states)})
            if seen:
                seen(points)
    return MachineLearned(points, states)


def _saved_states(training: Training, form: WordFormat, saved: Mapping[str, Array]) -> list[LayerState]:
    """States of a checkpoint; ValueError if it has none, or others."""
    if more := [name for name in saved if name not in (CURVE, STATES)]:
        raise ValueError(f"state: names must be those of the run, got also {listed(more)}")
    words = saved.get(STATES, np.zeros(0))
    if words.dtype != np.uint32 or words.ndim != 1:
        got = f"{words.dtype} of shape {words.shape}" if STATES in saved else "none"
        raise ValueError(f"state: {STATES} must be uint32 in one row, got {got}")
    return read_states(training, form, words)


def first_run(plan: MachinePlan, data: LearnData, samples: int) -> tuple[MachineParameters, list[Instruction], Array]:
    """A machine, the program that trains it with the first ``samples`` images, and the words that the program takes."""
    training = plan.training(data)
    machine = plan.machine(training, samples)
    images = MachineData.of(training, machine.form, data)
    states = first_states(plan, training, machine.form)
    return machine, *ProgramWriter(machine, training).run(states, images.train[:samples], images.targets[:samples])


def sample_begins(work: Sequence[Work], machine: MachineParameters, training: Training) -> list[int]:
    """Where in ``work`` each sample begins, or each batch of samples side by side: the first layer goes forward, for
    the first of its windows."""
    places = NeuronMap(machine, training)
    inputs = (places.inputs if training.layers[0].windows is None else places.windows)[0]
    return [
        n
        for n, item in enumerate(work)
        if item.instruction.key == (COMPUTE, FORWARD)
        and item.instruction.w == 0
        and item.instruction.a in (inputs, places.ahead)
    ]


def work_of_a_sample(plan: MachinePlan, data: LearnData) -> list[Work]:
    """Work of the interpreter's units for a sample among others, or for a batch of samples side by side, up to the
    first instruction of the next one."""
    training = plan.training(data)
    machine, program, words = first_run(plan, data, max(TIMELINE_SAMPLES * training.side_by_side, training.batch))
    interpreter = Interpreter(machine, program)
    interpreter.run(words)
    _, begin, end, *_ = sample_begins(interpreter.work, machine, training)
    return interpreter.work[begin:end]


def plot_timeline(path: Path, title: str, work: Sequence[Work]) -> None:
    """Write a picture of which unit of the machine works when, as PNG or SVG by the file's ending.

    Its folder is made if it isn't there.

    Parameters
    ----------
    path : Path
    title : str
    work : sequence of Work
        One or more, in order of issue.

    Raises
    ------
    ValueError, ImportError
        As `bitloom.overlay.picture.check_plot`.
    """
    with picture(path, (11, 3.2)) as axes:
        first = min(item.begin for item in work)
        for item in work:
            for unit in item.units:
                begin = item.begin - first
                length = item.end - item.begin
                row = UNITS.index(unit)
                axes.barh(row, length, left=begin, height=0.7, edgecolor="white", color=f"C{row}")
                name = str(item.instruction).split()[1]
                axes.text(begin + length / 2, row, name, ha="center", va="center", fontsize=6, rotation=90)
        axes.set(title=title, xlabel="cycles", yticks=range(len(UNITS)))
        axes.set_yticklabels([UNIT_NAMES[unit] for unit in UNITS])
        axes.invert_yaxis()

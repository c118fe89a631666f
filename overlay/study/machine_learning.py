"""A perceptron that learns on the training machine, interpreted or in Verilator, an epoch a run of its program.

Weights and biases go in before an epoch and come out after it, so that a run can be interrupted and go on. The last
gradients dw' begin each epoch at 0, which matters only with momentum.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.discrete.activation import activate
from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.data import LearnData
from bitloom.golden.discrete.dot import dot
from bitloom.golden.discrete.learn import CURVE, check_hidden, saved_curve
from bitloom.golden.discrete.lfsr import STATE_BITS
from bitloom.golden.discrete.machine.instruction import COMPUTE, FORWARD
from bitloom.golden.discrete.machine.interpreter import Interpreter, Work
from bitloom.golden.discrete.machine.parameters import MOST_INSTRUCTIONS, MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.training import Kind, Training
from bitloom.golden.discrete.machine.units import UNITS
from bitloom.golden.discrete.machine.words import LayerState, first_words, read_weights, sample_words
from bitloom.golden.discrete.operand import Continuous, Discrete, Operand
from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.encoding import Array
from bitloom.golden.names import shown
from bitloom.golden.reading.archive import listed
from bitloom.golden.training.checkpoint import LARGEST, Checkpoint
from bitloom.golden.training.reproducible import random_order
from bitloom.overlay.picture import picture
from bitloom.overlay.virtual.training_machine import SimulatedMachine

from .machine_setting import MACHINE_SETTINGS, MachineSetting

ORDER = 2_000_000
"""Purpose in the keys of random streams that order the images."""
WORDS = "words"
"""Name of the parameters in a checkpoint."""
EPOCH_SEEDS = 1 << 16
"""From one seed's first state of the generator to that of the next seed."""
TIMELINE_SAMPLES = 4
"""Samples of the run whose work a timeline shows."""
ROWS = {"io": "data access", "array": "slaves", "vector": "own arithmetic"}
"""What a timeline calls the units."""
MOST_SEED = (1 << STATE_BITS) // EPOCH_SEEDS - 2
"""Seeds up to here have a state of the generator for each epoch."""


@dataclass(frozen=True, kw_only=True)
class MachinePlan:
    """What is trained, and on which machine."""

    hidden: tuple[int, ...] = (32,)
    """Neurons of each hidden layer."""
    epochs: int = 5
    seed: int = 0
    """Of weights at the start, of the images' order and of the generator, 0 to MOST_SEED."""
    slaves: int = 8
    hardware: bool = False
    """In Verilator, not interpreted; the weights are the same."""
    setting: str = "words"
    """Which tensors are codes, a name of `MACHINE_SETTINGS`."""
    rate_places: int | None = None
    """k of the learning rate 2^-k, by default that of the setting."""
    held_out: bool = False
    """Whether a fifth of the training images, at random by the seed, is held out and takes the place of the test
    images, so that a rate can be chosen without them."""

    def __post_init__(self) -> None:
        check_hidden(self.hidden)
        if not 0 <= self.seed <= MOST_SEED:
            raise ValueError(f"learning on the machine: seed must be 0..{MOST_SEED}, got {shown(self.seed)}")

    @property
    def kinds(self) -> MachineSetting:
        """The setting of that name, with the plan's rate."""
        setting = MACHINE_SETTINGS[self.setting]
        return setting if self.rate_places is None else replace(setting, rate_places=self.rate_places)

    def training(self, data: LearnData, epoch: int = 0) -> Training:
        """The training with these images; each epoch has random numbers of its own."""
        sizes = (data.train.shape[1], *self.hidden, int(data.train_labels.max()) + 1)
        return self.kinds.training(sizes, seed=1 + EPOCH_SEEDS * self.seed + epoch)

    def machine(self, training: Training, samples: int) -> MachineParameters:
        """A machine with caches and tables that hold the training and its program for so many samples; without a
        multiplier where codes need none."""
        layers = training.layers
        neurons = 8 * sum(layer.inputs + layer.outputs for layer in layers)
        columns = [-(-layer.outputs // self.slaves) for layer in layers]
        rows = sum(layer.inputs * each for layer, each in zip(layers, columns))
        roomy = MachineParameters(
            slaves=self.slaves,
            instructions=MOST_INSTRUCTIONS,
            neuron_words=_power(neurons),
            weight_words=_power(rows),
            column_words=_power(max(columns)),
            tables=max(3, len(training.tables)),
            multiplier=self.kinds.multiplier,
        )
        program = ProgramWriter(roomy, training).program(samples)
        return replace(roomy, instructions=max(MachineParameters.instructions, _power(len(program))))


@dataclass(frozen=True)
class MachineLearned:
    """What learning on the machine gave."""

    curve: list[float]
    """Share of right test images after each epoch."""
    cycles: list[float]
    """Cycles a sample of each epoch; the interpreter's are those of words alone."""
    ideal: float
    """Multiplications of a sample by slaves."""
    states: list[LayerState]


def _power(count: int) -> int:
    """The smallest power of two, at least 2, that is not below ``count``."""
    return max(2, 1 << (count - 1).bit_length())


def first_states(plan: MachinePlan, training: Training, form: WordFormat) -> list[LayerState]:
    """Random weights, their nearest codes where they are discrete, and biases of 0."""
    rng = np.random.default_rng(plan.seed)
    states = []
    for layer in training.layers:
        words = form.words(rng.normal(0, (2 / layer.inputs) ** 0.5, (layer.outputs, layer.inputs)))
        coded = _nearest(training, form, layer.weights, words)
        codes = coded.codes if isinstance(coded, Discrete) else None
        states.append(LayerState(words if layer.continuous else None, codes, np.zeros(layer.outputs, np.int64)))
    return states


def _nearest(training: Training, form: WordFormat, kind: Kind, words: Array) -> Operand:
    """Words, or their nearest codes where that kind of tensor is discrete."""
    if not kind.table:
        return Continuous(words)
    table, zone = training.tables[kind.table]
    return Discrete(Converter(table=table, zone=zone).word_codes(form, words), table)


def share_right(training: Training, form: WordFormat, states: list[LayerState], data: LearnData) -> float:
    """Share of the test images that the states classify rightly, in the machine's words and codes."""
    x = form.words(data.real(data.test))
    kind = training.inputs
    for layer, state in zip(training.layers, states):
        if layer.weights.table:
            assert state.codes is not None
            rows: Operand = Discrete(state.codes, training.tables[layer.weights.table][0])
        else:
            assert state.weights is not None
            rows = Continuous(state.weights)
        x = form.add(dot(form, rows, _nearest(training, form, kind, x)), state.biases)
        if layer.activation != "none":
            x, _ = activate({"clip": "hard_tanh"}.get(layer.activation, layer.activation), x, form.one)
        kind = layer.results
    return float((x.argmax(axis=1) == data.test_labels).mean())


def _samples(training: Training, form: WordFormat, data: LearnData) -> tuple[Array, Array]:
    """Inputs, as words or codes, and wanted outputs."""
    x = _nearest(training, form, training.inputs, form.words(data.real(data.train)))
    wanted = form.words(np.eye(training.layers[-1].outputs)[data.train_labels])
    return (x.codes if isinstance(x, Discrete) else x.words), wanted


def learn_on_machine(
    plan: MachinePlan,
    data: LearnData,
    checkpoint: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MachineLearned:
    """Train a perceptron.

    Parameters
    ----------
    plan : MachinePlan
    data : LearnData
    checkpoint : Path, optional
        Written after each epoch; an interrupted run goes on from it.
    progress : callable, optional
        Called with epochs done and epochs in all.

    Raises
    ------
    CheckpointError
        If the file is no checkpoint of this run.
    """
    data = data.held_out(plan.seed) if plan.held_out else data
    training = plan.training(data)
    machine = plan.machine(training, len(data.train))
    form = machine.form
    states = first_states(plan, training, form)
    curve: list[tuple[float, float]] = []
    store = None
    if checkpoint is not None:
        store = Checkpoint(checkpoint, [asdict(plan)], data.train, data.train_labels)
        if saved := store.read():
            with store.checking():
                curve = [(right, cycles) for right, cycles in saved_curve(saved, plan.epochs, (1, LARGEST))]
                states = _saved_states(training, form, saved)
    x, targets = _samples(training, form, data)
    with ExitStack() as open_machines:
        runner: Any = None
        while len(curve) < plan.epochs:
            program = ProgramWriter(machine, plan.training(data, len(curve))).program(len(x))
            if runner is not None:
                runner.load(program)
            else:
                runner = SimulatedMachine(machine, program) if plan.hardware else Interpreter(machine, program)
                if plan.hardware:
                    open_machines.enter_context(runner)
            order = random_order(len(x), ORDER, plan.seed, len(curve))
            parts = [first_words(training, form, states), sample_words(training, form, x[order], targets[order])]
            (words,) = runner.run(np.concatenate(parts))
            states = read_weights(training, form, words)
            curve.append((share_right(training, form, states, data), runner.cycles / len(x)))
            if store:
                store.write({CURVE: np.array(curve), WORDS: words})
            if progress:
                progress(len(curve), plan.epochs)
    ideal = training.multiplications / plan.slaves
    return MachineLearned([right for right, _ in curve], [cycles for _, cycles in curve], ideal, states)


def _saved_states(training: Training, form: WordFormat, saved: Mapping[str, Array]) -> list[LayerState]:
    """Weights and biases of a checkpoint; ValueError if it has none, or others."""
    if more := [name for name in saved if name not in (CURVE, WORDS)]:
        raise ValueError(f"state: names must be those of the run, got also {listed(more)}")
    words = saved.get(WORDS, np.zeros(0))
    if words.dtype != np.uint32 or words.ndim != 1:
        got = f"{words.dtype} of shape {words.shape}" if WORDS in saved else "none"
        raise ValueError(f"state: {WORDS} must be uint32 in one row, got {got}")
    return read_weights(training, form, words)


def work_of_a_sample(plan: MachinePlan, data: LearnData) -> list[Work]:
    """What the units of the interpreter do for a sample among others, up to the first instruction of the next one."""
    training = plan.training(data)
    machine = plan.machine(training, TIMELINE_SAMPLES)
    form = machine.form
    x, targets = _samples(training, form, data)
    parts = [
        first_words(training, form, first_states(plan, training, form)),
        sample_words(training, form, x[:TIMELINE_SAMPLES], targets[:TIMELINE_SAMPLES]),
    ]
    interpreter = Interpreter(machine, ProgramWriter(machine, training).program(TIMELINE_SAMPLES))
    interpreter.run(np.concatenate(parts))
    first = [
        n
        for n, work in enumerate(interpreter.work)
        if work.instruction.key == (COMPUTE, FORWARD) and work.instruction.w == 0
    ]
    return interpreter.work[first[1] : first[2]]


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
    ValueError
        If the file's name has another ending.
    ImportError
        If matplotlib is missing.
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
        axes.set_yticklabels([ROWS[unit] for unit in UNITS])
        axes.invert_yaxis()

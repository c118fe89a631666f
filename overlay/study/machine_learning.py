"""A perceptron that learns on the training machine, interpreted or in Verilator, an epoch a run of its program.

Weights and biases go in before an epoch and come out after it, so that a run can be interrupted and go on. The last
gradients dw' begin each epoch at 0, which matters only with momentum.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bitloom.golden.discrete.data import LearnData
from bitloom.golden.discrete.learn import CURVE, saved_curve
from bitloom.golden.discrete.machine.instruction import JUMP
from bitloom.golden.discrete.machine.interpreter import Interpreter, Work
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.training import DenseLayer, Training
from bitloom.golden.discrete.machine.words import LayerState, first_words, read_weights, sample_words
from bitloom.golden.discrete.word import WordFormat
from bitloom.golden.encoding import Array
from bitloom.golden.reading.archive import listed
from bitloom.golden.training.checkpoint import LARGEST, Checkpoint
from bitloom.golden.training.reproducible import random_order
from bitloom.overlay.virtual.training_machine import SimulatedMachine

ORDER = 2_000_000
"""What the random streams of the images' order are for."""
WORDS = "words"
"""Name of the parameters in a checkpoint."""


@dataclass(frozen=True, kw_only=True)
class MachinePlan:
    """What is trained, and on which machine.

    Attributes
    ----------
    hidden : tuple of int
        Neurons of each hidden layer.
    epochs : int
    seed : int
    slaves : int
    hardware : bool
        In Verilator, not interpreted; the weights are the same.
    rate_places : int
        k of the learning rate 2^-k.
    """

    hidden: tuple[int, ...] = (32,)
    epochs: int = 5
    seed: int = 0
    slaves: int = 8
    hardware: bool = False
    rate_places: int = 5

    def training(self, inputs: int, outputs: int) -> Training:
        """The layers; all but the last have ReLU."""
        sizes = (inputs, *self.hidden, outputs)
        layers = [DenseLayer(inputs=before, outputs=after) for before, after in pairwise(sizes)]
        layers[-1] = replace(layers[-1], activation="none")
        return Training(layers=tuple(layers), rate_places=self.rate_places, seed=self.seed + 1)

    def machine(self, training: Training) -> MachineParameters:
        """A machine with caches that hold the training."""
        layers = training.layers
        neurons = 8 * sum(layer.inputs + layer.outputs for layer in layers)
        own = [-(-layer.outputs // self.slaves) for layer in layers]
        rows = sum(layer.inputs * each for layer, each in zip(layers, own))
        return MachineParameters(slaves=self.slaves, neuron_words=_power(neurons), weight_words=_power(rows),
                                 column_words=_power(max(own)))  # fmt: skip


@dataclass(frozen=True)
class MachineLearned:
    """What came of it.

    Attributes
    ----------
    curve : list of float
        Share of right test images after each epoch.
    cycles : list of float
        Cycles a sample of each epoch; the interpreter's are those of words alone.
    ideal : float
        Multiplications of a sample by slaves.
    states : list of LayerState
    """

    curve: list[float]
    cycles: list[float]
    ideal: float
    states: list[LayerState]


def _power(count: int) -> int:
    """The power of two, at least 2, that is not below."""
    return max(2, 1 << (count - 1).bit_length())


def first_states(plan: MachinePlan, training: Training, machine: MachineParameters) -> list[LayerState]:
    """Random weights and biases of 0."""
    rng, form, states = np.random.default_rng(plan.seed), machine.form, []
    for layer in training.layers:
        words = form.words(rng.normal(0, (2 / layer.inputs) ** 0.5, (layer.outputs, layer.inputs)))
        states.append(LayerState(words, None, np.zeros(layer.outputs, np.int64)))
    return states


def share_right(plan: MachinePlan, states: list[LayerState], data: LearnData) -> float:
    """Share of the test images that the states classify rightly, in the machine's words."""
    training = plan.training(data.test.shape[1], int(data.train_labels.max()) + 1)
    form = plan.machine(training).form
    x = form.words(data.real(data.test))
    for layer, state in zip(training.layers, states):
        assert state.weights is not None  # they are continuous
        x = form.add(form.dot(state.weights, x), state.biases)
        x = np.maximum(x, 0) if layer.activation == "relu" else x
    return float((x.argmax(axis=1) == data.test_labels).mean())


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
    training = plan.training(data.train.shape[1], int(data.train_labels.max()) + 1)
    machine = plan.machine(training)
    form, states = machine.form, first_states(plan, training, machine)
    curve: list[tuple[float, float]] = []
    store = None
    if checkpoint is not None:
        store = Checkpoint(checkpoint, [asdict(plan)], data.train, data.train_labels)
        if saved := store.read():
            with store.checking():
                curve = [(right, cycles) for right, cycles in saved_curve(saved, plan.epochs, (1, LARGEST))]
                states = _saved_states(training, form, saved)
    program = ProgramWriter(machine, training).program(len(data.train))
    x, targets = form.words(data.real(data.train)), form.words(np.eye(training.layers[-1].outputs)[data.train_labels])
    with ExitStack() as open_machines:
        runner: Any = None
        while len(curve) < plan.epochs:
            if runner is None:
                runner = SimulatedMachine(machine, program) if plan.hardware else Interpreter(machine, program)
                if plan.hardware:
                    open_machines.enter_context(runner)
            order = random_order(len(x), ORDER, plan.seed, len(curve))
            parts = [first_words(training, form, states), sample_words(training, form, x[order], targets[order])]
            (words,) = runner.run(np.concatenate(parts))
            states = read_weights(training, form, words)
            curve.append((share_right(plan, states, data), runner.cycles / len(x)))
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
    """What the units of the interpreter do for the second of two samples."""
    training = plan.training(data.train.shape[1], int(data.train_labels.max()) + 1)
    machine = plan.machine(training)
    form = machine.form
    targets = form.words(np.eye(training.layers[-1].outputs)[data.train_labels[:2]])
    parts = [first_words(training, form, first_states(plan, training, machine)),
             sample_words(training, form, form.words(data.real(data.train[:2])), targets)]  # fmt: skip
    interpreter = Interpreter(machine, ProgramWriter(machine, training).program(2))
    interpreter.run(np.concatenate(parts))
    jumps = [n for n, work in enumerate(interpreter.work) if not work.units and work.instruction.operation == JUMP]
    return interpreter.work[jumps[0] + 1 : jumps[1]]

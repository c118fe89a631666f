from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.discrete.data import LearnData
from bitloom.golden.discrete.machine.parameters import MOST_INSTRUCTIONS, MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.training import SourceRule, VelocityRule
from bitloom.golden.training.reproducible import random_order
from bitloom.overlay.study.machine_learning import (
    ORDER,
    MachineData,
    MachinePlan,
    MachineRunner,
    first_states,
    learn_on_machine,
    work_of_a_sample,
)
from bitloom.overlay.study.machine_setting import MACHINE_SETTINGS
from tests.errors import value_error

PLAN = MachinePlan(hidden=(3,), epochs=3, slaves=2, batch=4)
WORDS = 2 * (4 * 3 + 3) + 3 + 2 * (3 * 2 + 2)
"""Weights and biases with their gradients, and means of the hidden layer."""


@pytest.fixture(scope="module")
def tiny() -> LearnData:
    """Two classes of four grey values."""
    images = np.random.default_rng(0).integers(0, 17, (24, 4))
    labels = (images[:, 0] > 8).astype(np.int64)
    return LearnData("tiny", images[:16], labels[:16], images[16:], labels[16:], 8.0)


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(tiny, tmp_path):
    whole = learn_on_machine(PLAN, tiny)
    path = tmp_path / "run.npz"

    def interrupt(points: list) -> None:
        if len(points) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_on_machine(PLAN, tiny, path, interrupt)
    seen: list[int] = []
    again = learn_on_machine(PLAN, tiny, path, lambda points: seen.append(len(points)))
    assert seen == [3]
    assert again.points == whole.points
    for got, expected in zip(again.states, whole.states):
        np.testing.assert_array_equal(got.weights, expected.weights)
        np.testing.assert_array_equal(got.biases, expected.biases)


QUICK = ("words", "nearest-1", "stochastic-2", "codes-3", "discrete-2")
"""Settings of the default tier: one of each kind, all widths of codes."""


def learned(plan, data, folder):
    """A run, which is the same again from its checkpoint, and in words."""
    path = folder / "run.npz"
    whole = learn_on_machine(plan, data, path)
    assert learn_on_machine(plan, data, path).points == whole.points
    words = learn_on_machine(replace(plan, runner="words"), data)
    assert words.curve == whole.curve
    for state, expected in zip(words.states, whole.states):
        for name, array in vars(state).items():
            np.testing.assert_array_equal(array, getattr(expected, name))
    return whole


LATER = [pytest.param(name, marks=pytest.mark.slow) for name in MACHINE_SETTINGS if name not in QUICK]


@pytest.mark.parametrize("setting", [*QUICK, *LATER])
def test_settings(tiny, tmp_path, setting):
    """Each trains on a machine with what it needs alone, and is there again from its checkpoint."""
    batch = None if setting.startswith("source") else 4
    plan = replace(PLAN, setting=setting, epochs=2, batch=batch)
    whole = learned(plan, tiny, tmp_path)
    kinds = MACHINE_SETTINGS[setting]
    training = plan.training(tiny)
    assert plan.machine(training, len(tiny.train)).multiplier == (not setting.startswith("discrete"))
    for layer, state in zip(training.layers, whole.states):
        assert (state.codes is None) == (kinds.bits == 0)
        assert (state.weights is None) == (kinds.bits > 0 and not kinds.master)
        assert kinds.bits == 0 or state.codes.max() < 1 << kinds.bits
        assert layer.weight_gradients.chance == (kinds.others > 0)


def test_normalised(tiny, tmp_path):
    """Of hidden layers, by a machine with roots and room for a batch; from a checkpoint, and in words."""
    plan = replace(PLAN, setting="nearest-2", epochs=2, normalised=True)
    training = plan.training(tiny)
    assert [(layer.normalised, layer.centred) for layer in training.layers] == [(True, False), (False, False)]
    assert training.rule == VelocityRule(rate_places=4, bias_places=6, batch=4)
    machine = plan.machine(training, len(tiny.train))
    assert machine.root == "table"
    whole = learned(plan, tiny, tmp_path)
    assert (whole.states[0].gains != machine.form.one).any()
    with value_error(
        "learning on the machine: normalised must be left out where words are not multiplied, as with discrete-1"
    ):
        replace(plan, setting="discrete-1")


def test_a_convolution(tiny, tmp_path):
    """The first hidden layer sees windows of 1 of the 2 x 2 pixels; in words and by the interpreter."""
    plan = replace(PLAN, setting="nearest-1", hidden=(3, 4), epochs=2, windows=(1, 1))
    training = plan.training(tiny)
    assert [(layer.inputs, layer.views, layer.outputs) for layer in training.layers] == [
        (1, 4, 3),
        (12, 1, 4),
        (4, 1, 2),
    ]
    learned(plan, tiny, tmp_path)


def test_a_rate_of_its_own_and_held_out_images(tiny):
    """As if the images had been split before, and the setting had the rate."""
    plan = replace(PLAN, epochs=2, seed=3, rate_places=2, held_out=True)
    assert plan.training(tiny).rule.rate_places == plan.kinds.rule.rate_places == 2 != PLAN.kinds.rule.rate_places
    learned = learn_on_machine(plan, tiny)
    split = learn_on_machine(replace(plan, held_out=False), tiny.held_out(3))
    assert learned.curve == split.curve
    np.testing.assert_array_equal(learned.states[0].weights, split.states[0].weights)
    other = learn_on_machine(replace(plan, rate_places=3), tiny)
    assert not np.array_equal(learned.states[0].weights, other.states[0].weights)


def test_tables():
    """Codes span the zone where weights are converted; where they are multiplied with, about the root of 64 and of 16
    inputs divides them. All tables that are equal are one."""
    training = MACHINE_SETTINGS["codes-1"].training((64, 64, 16, 10), seed=1)
    tables = [table.values for table, zone in training.tables.values() if zone == 1]
    assert tables == [(1, -1), (1 / 8, -1 / 8), (1 / 4, -1 / 4)]
    numbers = [(layer.weights.table, layer.forward_table, layer.backward_table) for layer in training.layers]
    assert numbers == [(1, 2, 2), (1, 2, 2), (1, 3, 3)]
    last = MACHINE_SETTINGS["nearest-3"].training((64, 64, 10), seed=1).layers
    assert [training.tables[2][0].span, *(layer.forward_table for layer in last)] == [1 / 8, 2, 3]
    discrete = MACHINE_SETTINGS["discrete-2"].training((64, 16, 10), seed=1)
    assert [table.span for table, _ in discrete.tables.values()] == [1, 1, 1 / 4, 1 / 2]
    assert [(layer.forward_table, layer.backward_table) for layer in discrete.layers] == [(3, 1), (4, 1)]


def test_constants_of_the_plan():
    """A velocity remembers as many samples with other batches; the biases' rate moves with that of the weights."""

    def rule(**changes) -> VelocityRule | SourceRule:
        return replace(PLAN, **{"batch": None, **changes}).kinds.rule

    assert rule(setting="codes-1") == VelocityRule(rate_places=0, bias_places=5, decay_places=5, batch=32)
    (changed,) = [replace(PLAN, setting="codes-1", batch=4, rate_places=2).kinds.rule]
    assert changed == VelocityRule(rate_places=2, bias_places=7, decay_places=8, batch=4)
    assert rule(setting="codes-1", decay_places=3).decay_places == 3
    assert rule(setting="codes-1", decay_places=3, batch=4).decay_places == 3
    assert rule(setting="nearest-1", batch=4) == VelocityRule(rate_places=3, bias_places=3, batch=4)
    assert rule(setting="source-codes", mu_places=3) == SourceRule(rate_places=5, mu_places=3)
    left_out = "learning on the machine: {} must be left out where the rule has none, got 4 for {}"
    for name, setting in (("batch", "source-codes"), ("decay_places", "source-nearest"), ("mu_places", "codes-1")):
        with value_error(left_out.format(name, setting)):
            replace(PLAN, setting=setting, **{"batch": None, name: 4})


def test_images_are_centred(tiny):
    """Less the training images' mean, as words or codes; wanted is 1 or -1."""
    form = MachineParameters().form
    images = MachineData.of(PLAN.training(tiny), form, tiny)
    mean = tiny.train.mean(axis=0) / 8 - 1
    np.testing.assert_array_equal(images.test, form.words(tiny.test / 8 - 1 - mean))
    np.testing.assert_array_equal(images.targets[:, 1], np.where(tiny.train_labels, form.one, -form.one))
    codes = MachineData.of(replace(PLAN, setting="discrete-1").training(tiny), form, tiny)
    assert codes.train.max() <= 7
    assert codes.train.min() >= 0


def test_images_that_are_no_batch(tiny):
    with value_error("learning: images must be at least a batch, 32, got 16"):
        learn_on_machine(replace(PLAN, batch=None), tiny)


@pytest.mark.sample(1)
@pytest.mark.parametrize("runner", ["interpreter", pytest.param("verilator", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("count", "batch"), [(15, 5), (16, 4)])
def test_the_instruction_cache_holds_the_program_of_many_layers(tiny, runner, count, batch):
    """Samples are in turn there, as in a network of one hidden layer: an even and an odd number of them. A cache of 128
    instructions gets the program in pages."""
    plan = replace(PLAN, hidden=(2,) * 16, epochs=1, runner=runner, batch=batch)
    data = tiny._replace(train=tiny.train[:count], train_labels=tiny.train_labels[:count])
    training = plan.training(data)
    machine = plan.machine(training, count)
    assert machine.instructions == 1024
    roomy = replace(machine, instructions=MOST_INSTRUCTIONS)
    assert ProgramWriter(machine, training).program(count) == ProgramWriter(roomy, training).program(count)
    learned = learn_on_machine(plan, data)
    assert len(learned.states) == 17
    small = replace(machine, instructions=128)
    images = MachineData.of(training, small.form, data)
    order = random_order(count, ORDER, plan.seed, 0)
    with MachineRunner(plan.runner, small) as paged:
        states, cycles = paged.train(
            training, first_states(plan, training, small.form), images.train[order], images.targets[order]
        )
    assert cycles > learned.cycles[0]
    for state, expected in zip(states, learned.states):
        np.testing.assert_array_equal(state.weights, expected.weights)


def test_a_program_that_the_instruction_cache_does_not_hold(tiny):
    training = replace(PLAN, hidden=(2,) * 16).training(tiny)
    with value_error("training: the machine must have instructions >= 411, what the program needs, got 128"):
        ProgramWriter(MachineParameters(slaves=2), training).program(16)


def test_a_timeline_is_that_of_one_sample(tiny):
    work = work_of_a_sample(PLAN, tiny)
    names = [str(item.instruction).split()[1] for item in work if item.units]
    assert names.count("FORWARD") == names.count("ACCUMULATE") == 2
    assert names.count("LOAD_NEURONS") == 2
    assert all(item.begin <= item.end for item in work)


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"normalised": True}, {"FORWARD": 8, "BACKWARD": 4, "ACCUMULATE": 8, "APPLY": 2, "INVERSE_ROOT": 1}),
        ({"windows": (1, 1)}, {"FORWARD": 5, "BACKWARD": 1, "ACCUMULATE": 5, "COPY": 4}),
    ],
)
def test_a_timeline_of_what_is_side_by_side(tiny, changes, counts):
    """A batch of four samples that are normalised; a sample of four windows."""
    work = work_of_a_sample(replace(PLAN, **changes), tiny)
    names = [str(item.instruction).split()[1] for item in work if item.units]
    assert {name: names.count(name) for name in counts} == counts


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("curve", None, "state: curve must be float64 of shape (1..3, 2), got none"),
        ("curve", np.array([[1.5, 1.0]]), "state: curve must be 0..1, got 1.5"),
        ("words", None, "state: words must be uint32 in one row, got none"),
        ("words", np.zeros(WORDS), "state: words must be uint32 in one row, got float64 of shape (49,)"),
        ("words", np.zeros((1, 49), "u4"), "state: words must be uint32 in one row, got uint32 of shape (1, 49)"),
        ("words", np.zeros(48, "u4"), "training: results must be 49 words, got 48"),
        ("more", np.zeros(1), "state: names must be those of the run, got also more"),
    ],
)
def test_checkpoints_of_a_stranger(tiny, tmp_path, name, value, rule):
    path = tmp_path / "run.npz"
    learn_on_machine(PLAN, tiny, path)
    with np.load(path) as saved:
        arrays = {**saved, name: value}
    np.savez(path, **{key: array for key, array in arrays.items() if array is not None})
    with value_error(f"{path}: must be a checkpoint of training, got: {rule}; delete it to start anew"):
        learn_on_machine(PLAN, tiny, path)

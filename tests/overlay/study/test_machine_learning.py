from dataclasses import replace

import numpy as np
import pytest

from bitloom.golden.discrete.data import LearnData
from bitloom.golden.discrete.machine.parameters import MOST_INSTRUCTIONS, MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.overlay.study.machine_learning import MachinePlan, learn_on_machine, work_of_a_sample
from bitloom.overlay.study.machine_setting import MACHINE_SETTINGS
from tests.errors import value_error

PLAN = MachinePlan(hidden=(3,), epochs=3, slaves=2)
PARAMETERS = 4 * 3 + 3 + 3 * 2 + 2


@pytest.fixture(scope="module")
def tiny() -> LearnData:
    """Two classes of four grey values."""
    images = np.random.default_rng(0).integers(0, 17, (24, 4))
    labels = (images[:, 0] > 8).astype(np.int64)
    return LearnData("tiny", images[:16], labels[:16], images[16:], labels[16:], 8.0)


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(tiny, tmp_path):
    whole, path = learn_on_machine(PLAN, tiny), tmp_path / "run.npz"

    def interrupt(done: int, epochs: int) -> None:
        assert epochs == 3
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_on_machine(PLAN, tiny, path, interrupt)
    seen: list[int] = []
    again = learn_on_machine(PLAN, tiny, path, lambda done, _: seen.append(done))
    assert seen == [3]
    assert (again.curve, again.cycles) == (whole.curve, whole.cycles)
    for got, expected in zip(again.states, whole.states):
        np.testing.assert_array_equal(got.weights, expected.weights)
        np.testing.assert_array_equal(got.biases, expected.biases)


QUICK = ("words", "nearest-1", "stochastic-2", "codes-3", "discrete-2")
"""Settings of the default tier: one of each kind, all widths of codes."""


@pytest.mark.parametrize("setting", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow)
                                               for name in MACHINE_SETTINGS if name not in QUICK)])  # fmt: skip
def test_settings(tiny, tmp_path, setting):
    """Each trains on a machine with what it needs alone, and is there again from its checkpoint."""
    plan = replace(PLAN, setting=setting, epochs=2)
    path = tmp_path / "run.npz"
    whole = learn_on_machine(plan, tiny, path)
    again = learn_on_machine(plan, tiny, path)
    assert (again.curve, again.cycles) == (whole.curve, whole.cycles)
    kinds, training = MACHINE_SETTINGS[setting], plan.training(tiny)
    assert plan.machine(training, len(tiny.train)).multiplier == (not setting.startswith("discrete"))
    for layer, state in zip(training.layers, whole.states):
        assert (state.codes is None) == (kinds.bits == 0)
        assert (state.weights is None) == (kinds.bits > 0 and not kinds.master)
        assert kinds.bits == 0 or state.codes.max() < 1 << kinds.bits
        assert layer.gradients.chance == (kinds.others > 0)


def test_a_rate_of_its_own_and_held_out_images(tiny):
    """As if the images had been split before, and the setting had the rate."""
    plan = replace(PLAN, epochs=2, seed=3, rate_places=2, held_out=True)
    assert plan.training(tiny).rate_places == plan.kinds.rate_places == 2 != PLAN.kinds.rate_places
    learned = learn_on_machine(plan, tiny)
    split = learn_on_machine(replace(plan, held_out=False), tiny.held_out(3))
    assert learned.curve == split.curve
    np.testing.assert_array_equal(learned.states[0].weights, split.states[0].weights)
    other = learn_on_machine(replace(plan, rate_places=3), tiny)
    assert not np.array_equal(learned.states[0].weights, other.states[0].weights)


def test_codes_of_the_last_layer_are_smaller():
    """About the root of 64 and of 16 inputs, and four times as small in the last layer, whose sums are to be 0 or 1."""
    training = MACHINE_SETTINGS["codes-1"].training((64, 16, 10), seed=1)
    assert [training.tables[layer.weights.table][0].values for layer in training.layers] == [
        (1 / 8, -1 / 8), (1 / 16, -1 / 16)]  # fmt: skip


def test_each_epoch_has_random_numbers_of_its_own(tiny):
    plan = replace(PLAN, setting="codes-2")
    assert len({plan.training(tiny, epoch).seed for epoch in range(3)}) == 3


@pytest.mark.parametrize("hardware", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("count", [15, 16])
def test_the_instruction_cache_holds_the_program_of_many_layers(tiny, hardware, count):
    """Samples are in turn there, as in a network of one hidden layer: an even and an odd number of them."""
    plan = replace(PLAN, hidden=(2,) * 16, epochs=1, hardware=hardware)
    data = tiny._replace(train=tiny.train[:count], train_labels=tiny.train_labels[:count])
    training = plan.training(data)
    machine = plan.machine(training, count)
    assert machine.instructions == 512
    roomy = replace(machine, instructions=MOST_INSTRUCTIONS)
    assert ProgramWriter(machine, training).program(count) == ProgramWriter(roomy, training).program(count)
    learned = learn_on_machine(plan, data)
    assert len(learned.states) == 17


def test_few_layers_have_the_default_instruction_cache(tiny):
    assert PLAN.machine(PLAN.training(tiny), 16).instructions == MachineParameters().instructions == 128


def test_a_program_that_the_instruction_cache_does_not_hold(tiny):
    training = replace(PLAN, hidden=(2,) * 16).training(tiny)
    with value_error("training: the machine must have instructions >= 258, what the program needs, got 128"):
        ProgramWriter(MachineParameters(slaves=2), training).program(16)


def test_a_timeline_is_that_of_one_sample(tiny):
    work = work_of_a_sample(PLAN, tiny)
    names = [str(item.instruction).split()[1] for item in work if item.units]
    assert names.count("FORWARD") == names.count("UPDATE") == 2
    assert names.count("LOAD_NEURONS") == 2
    assert all(item.begin <= item.end for item in work)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("curve", None, "state: curve must be float64 of shape (1..3, 2), got none"),
        ("curve", np.array([[1.5, 1.0]]), "state: curve must be 0..1, got 1.5"),
        ("words", None, "state: words must be uint32 in one row, got none"),
        ("words", np.zeros(PARAMETERS), "state: words must be uint32 in one row, got float64 of shape (23,)"),
        ("words", np.zeros((1, 23), "u4"), "state: words must be uint32 in one row, got uint32 of shape (1, 23)"),
        ("words", np.zeros(22, "u4"), "training: results must be 23 words, got 22"),
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

"""The machine and training in words are one thing: the same bits for all numbers of slaves."""

import numpy as np
import pytest

from bitloom.golden.discrete.fixed import FixedTrainer
from bitloom.golden.discrete.machine import instruction as isa
from bitloom.golden.discrete.machine.instruction import decode, encode
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.program import ProgramWriter
from bitloom.golden.discrete.machine.training import Training
from bitloom.golden.discrete.machine.words import kept, read_states
from bitloom.golden.discrete.word import WordFormat
from tests.errors import value_error

from .cases import BATCH_CASES, CASES, NORMAL_CASES, PAIR_CASES, WINDOW_CASES, samples, start

FORM = WordFormat(18, 12)
WIDE, NARROW = WordFormat(32, 20), WordFormat(12, 7)
ALL = {**CASES, **BATCH_CASES, **PAIR_CASES, **NORMAL_CASES, **WINDOW_CASES}
VECTORS = ("biases", "bias_gradients", "means", "gains", "sum_means", "sum_variances")
COUNT = 12


def interpreted(t: Training, form: WordFormat, count: int, **sizes: int) -> tuple[list, Interpreter]:
    """States after a training on the machine, and the machine."""
    machine = MachineParameters(
        form=form, tables=max(3, len(t.tables)), converter="multiplying", root="table", **{"instructions": 512, **sizes}
    )
    program, data = ProgramWriter(machine, t).run(start(t, form), *samples(t, form, count))
    interpreter = Interpreter(machine, decode(encode(program)))
    (words,) = interpreter.run(data)
    return read_states(t, form, words), interpreter


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("case", "form"), [*((case, FORM) for case in ALL), ("all", WIDE), ("continuous", NARROW), ("batch, all", WIDE)]
)
def test_the_machine_equals_training_in_words(case, form):
    t = ALL[case]
    trainer = FixedTrainer(form, t, start(t, form))
    trainer.learn(*samples(t, form, COUNT))
    for slaves in (1, 2, 4, 8):
        states, interpreter = interpreted(t, form, COUNT, slaves=slaves)
        assert interpreter.master.generator.state == trainer.generator.state
        for layer, state, expected, before in zip(t.layers, states, trainer.states, start(t, form)):
            for name in ("weights", "codes", "weight_gradients", *VECTORS):
                assert (getattr(state, name) is None) == (name not in kept(t, layer))
                if name in kept(t, layer):
                    np.testing.assert_array_equal(getattr(state, name), getattr(expected, name))
            assert np.any(state.biases != before.biases)


@pytest.mark.sample(10)
@pytest.mark.parametrize("case", ["gradients", "batch, by chance", "batch, continuous", "batch, codes alone"])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 12])
def test_samples_in_turn_or_one_after_another(case, count):
    """Caches without room for the next sample's inputs or instructions give the same results, later."""
    t = ALL[case]
    if count % getattr(t.rule, "batch", 1):
        pytest.skip("no whole batches")
    roomy, in_turn = interpreted(t, FORM, count, slaves=2)
    words = in_turn.machine.neuron_words
    lengths = {len(in_turn.program)}
    for sizes in (
        {"instructions": len(in_turn.program) - 1},
        {"neuron_words": ProgramWriter(in_turn.machine, t).map.ahead},
    ):
        states, interpreter = interpreted(t, FORM, count, slaves=2, **sizes)
        for state, expected in zip(states, roomy):
            for name, array in vars(state).items():
                np.testing.assert_array_equal(array, getattr(expected, name))
        lengths.add(len(interpreter.program))
        assert interpreter.cycles > in_turn.cycles or count == 1
    assert len(lengths) == 2
    assert words == 1024


@pytest.mark.sample(2)
@pytest.mark.parametrize("case", ALL)
@pytest.mark.parametrize("instructions", [3, 16])
def test_programs_in_pages(case, instructions):
    """Caches that don't hold the program get it page by page, of one instruction or some, with the same results."""
    whole, _ = interpreted(ALL[case], FORM, COUNT, slaves=2)
    states, interpreter = interpreted(ALL[case], FORM, COUNT, slaves=2, instructions=instructions)
    assert len(interpreter.program) == instructions
    for state, expected in zip(states, whole):
        for name, array in vars(state).items():
            np.testing.assert_array_equal(array, getattr(expected, name))


def test_a_cache_without_room_for_pages():
    t = CASES["one layer"]
    with value_error("training: the machine must have instructions >= 3, got 2"):
        ProgramWriter(MachineParameters(instructions=2), t).run(start(t, FORM), *samples(t, FORM, 3))


def test_slaves_side_by_side_are_each_slave_by_itself():
    """Sums of columns, one slave after the other; partial vectors, added up the tree; what each keeps."""
    t = ALL["three layers"]
    _, interpreter = interpreted(t, FORM, COUNT, slaves=4)
    master = interpreter.master
    forward, backward = (
        next(i for i in interpreter.program if i.key == (isa.COMPUTE, function) and i.columns == 4)
        for function in (isa.FORWARD, isa.BACKWARD)
    )
    x = master.configuration.operand(forward.kind_a, master.neurons[forward.a : forward.a + forward.rows])
    sums = np.zeros(4, np.int64)
    for slave in master.slaves:
        sums[slave.column_numbers(4)] = slave.forward(forward, x)
        assert slave.weights.any()
    assert sums.tolist() == master.array.forward(forward, x).tolist()
    partial = [slave.backward(backward) for slave in master.slaves]
    assert np.sum(partial, axis=0).tolist() == master.array.backward(backward).tolist()

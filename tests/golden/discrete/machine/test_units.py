"""Units that a machine may have or lack: the divider, the inverse root, the converter of the two nearest codes."""

import numpy as np
import pytest

from bitloom.golden.discrete.arithmetic import operate
from bitloom.golden.discrete.converter import Converter
from bitloom.golden.discrete.lfsr import Lfsr
from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.faults import MachineFault
from bitloom.golden.discrete.machine.interpreter import Interpreter
from bitloom.golden.discrete.machine.parameters import MachineParameters
from bitloom.golden.discrete.machine.table_words import config_table
from bitloom.golden.discrete.operand import Continuous, Discrete
from bitloom.golden.discrete.word import WordFormat
from tests.errors import value_error

from .cases import TABLES

FORM = WordFormat(18, 12)
EVERY = {"divider": "words", "converter": "multiplying", "root": "table"}
ALL = MachineParameters(slaves=2, neuron_words=512, **EVERY)
CONFIG = [config_table(number, table, zone) for number, (table, zone) in TABLES.items()]


def run(text: str, data=(), machine: MachineParameters = ALL) -> Interpreter:
    interpreter = Interpreter(machine, [*CONFIG, *assemble(f"{text}\nNOP END")])
    interpreter.results = interpreter.run(np.asarray(data, np.int64))
    return interpreter


def words(count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    numbers = rng.integers(-FORM.largest, FORM.largest + 1, count) >> rng.integers(0, FORM.bits, count)
    numbers[:6] = 0, FORM.largest, -FORM.largest, 1, -1, FORM.one
    return numbers


@pytest.mark.parametrize("kind_a", [0, *TABLES])
@pytest.mark.parametrize("kind_b", [0, *TABLES])
def test_divide(kind_a, kind_b):
    """Word or code by word or code: the quotients of golden's arithmetic."""
    cells = [FORM.pack(words(200, 3)), FORM.pack(np.random.default_rng(5).permutation(words(200, 4)))]

    def operand(kind, cell):
        return Discrete(cell % len(TABLES[kind][0].values), TABLES[kind][0]) if kind else Continuous(FORM.unpack(cell))

    x, y = (operand(kind, cell) for kind, cell in zip((kind_a, kind_b), cells))
    text = f"COMPUTE DIVIDE a=0 b=200 d=0 rows=200 kind_a={kind_a} kind_b={kind_b}"
    program = f"IO LOAD_NEURONS d=0 rows=400\n{text}\nIO STORE_NEURONS a=0 rows=200 last=1"
    (results,) = run(program, np.concatenate(cells)).results
    if kind_a and kind_b:  # where all are words, this is golden's look-up table, which refuses others
        expected = FORM.words(x.table.real[x.codes] / y.table.real[y.codes])
    else:
        expected = operate(FORM, "/", x, y)
    assert results.tolist() == FORM.pack(expected).tolist()


@pytest.mark.parametrize("pair", ["bracket", "nearest"])
@pytest.mark.parametrize("kind", TABLES)
def test_convert_by_either_pair(kind, pair):
    table, zone = TABLES[kind]
    x = words(400, 7)
    text = f"COMPUTE CONVERT a=0 d=0 rows=400 kind_d={kind} chance_d=1 pair_d={int(pair == 'nearest')}"
    program = f"CONFIG SEED a=77\nIO LOAD_NEURONS d=0 rows=400\n{text}\nIO STORE_NEURONS a=0 rows=400 last=1"
    (codes,) = run(program, FORM.pack(x)).results
    golden = Converter(table=table, zone=zone, rounding="stochastic", pair=pair)
    assert codes.tolist() == golden.word_codes(FORM, x, Lfsr(77)).tolist()


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"divider": "none"}, "COMPUTE DIVIDE rows=2 kind_b=1"),
        ({"divider": "codes"}, "COMPUTE DIVIDE rows=2 kind_a=1"),
        ({"root": "none"}, "COMPUTE INVERSE_ROOT rows=2"),
        ({"converter": "shifting"}, "COMPUTE CONVERT rows=2 kind_d=1 chance_d=1 pair_d=1"),
        ({"converter": "shifting"}, "COMPUTE APPLY rows=2 columns=2 kind_w=1 chance_w=1 pair_w=1"),
    ],
)
def test_a_unit_that_a_machine_lacks(fields, text):
    lacking = MachineParameters(**{"slaves": 2, **EVERY, **fields})
    with pytest.raises(MachineFault, match=r"^instruction 3: NO_UNIT: "):
        run(text, machine=lacking)
    run(text)


def test_codes_divide_by_shifts():
    """Words by codes, as well in a machine whose divider knows codes alone."""
    table = TABLES[3][0]
    cells = np.concatenate([FORM.pack(words(8, 3)), np.arange(8) % len(table.values)])
    text = "IO LOAD_NEURONS d=0 rows=16\nCOMPUTE DIVIDE a=0 b=8 d=0 rows=8 kind_b=3\nIO STORE_NEURONS a=0 rows=8 last=1"
    (results,) = run(text, cells, MachineParameters(slaves=2, divider="codes")).results
    expected = operate(FORM, "/", Continuous(words(8, 3)), Discrete(cells[8:], table))
    assert results.tolist() == FORM.pack(expected).tolist()


@pytest.mark.parametrize("kind_a", [0, *TABLES])
def test_inverse_roots(kind_a):
    """Of words or of codes' values, whose signs don't count."""
    cells = FORM.pack(words(200, 6))
    text = f"COMPUTE INVERSE_ROOT a=0 d=200 rows=200 kind_a={kind_a}"
    (results,) = run(f"IO LOAD_NEURONS d=0 rows=200\n{text}\nIO STORE_NEURONS a=200 rows=200 last=1", cells).results
    x = FORM.unpack(cells)
    if kind_a:
        x = FORM.words(TABLES[kind_a][0].real)[cells % len(TABLES[kind_a][0].values)]
    assert results.tolist() == FORM.inverse_root(np.abs(x)).tolist()


def test_names_of_units():
    with value_error("machine: divider must be one of none, codes, words, got 'fast'"):
        MachineParameters(divider="fast")
    with value_error("machine: converter must be one of shifting, multiplying, got True"):
        MachineParameters(converter=True)

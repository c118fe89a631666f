from fractions import Fraction

import numpy as np
import pytest

from bitloom.golden.discrete.arithmetic import look_up_table, operate
from bitloom.golden.discrete.dot import bit_serial_dot, dot
from bitloom.golden.discrete.operand import Continuous, Discrete, Operand, constants
from bitloom.golden.discrete.table import ONE_BIT, THREE_BITS, TWO_BITS, CodeTable
from bitloom.golden.discrete.word import WordFormat
from tests.errors import value_error
from tests.golden.discrete.test_word import expected

FORM = WordFormat(18, 10)
WORDS = np.array([0, 1, -1, 3, -7, 1024, -1024, 90000, -FORM.largest, FORM.largest])
TABLES = [ONE_BIT, TWO_BITS, THREE_BITS, CodeTable((0.5, -2)), CodeTable((2, -0.5, 0.25, -0.0625))]


def codes(table: CodeTable, count: int) -> Discrete:
    return Discrete(np.arange(count) % len(table.values), table)


def test_worked_examples_of_the_source():
    """16 * -1/2 and 16 / -2 are -8, in 8 bits of sign and magnitude: 00010000 becomes 10001000."""
    form = WordFormat(8, 0)
    table = CodeTable((1, -0.5, -2, 2))  # -1/2 has code 01 and -2 has code 10
    sixteen = Continuous(form.unpack(np.array([0b00010000])))
    for name, code in (("*", 0b01), ("/", 0b10)):
        result = operate(form, name, sixteen, Discrete(np.array([code]), table))
        assert form.pack(result).tolist() == [0b10001000]
        assert result.tolist() == [-8]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.values))
@pytest.mark.parametrize("name", list("+-*/"))
def test_mixed_operands_are_words_with_the_codes_value(name, table):
    a = Continuous(WORDS[:, None])
    b = codes(table, len(table.values))
    values = constants(table, FORM).tolist()
    right = [[expected(FORM, name, word, value) for value in values] for word in WORDS.tolist()]
    assert operate(FORM, name, a, b).tolist() == right
    left = [[expected(FORM, name, value, word) for value in values] for word in WORDS.tolist()]
    assert operate(FORM, name, b, a).tolist() == left


@pytest.mark.parametrize("b", TABLES, ids=lambda table: str(table.values))
@pytest.mark.parametrize("a", TABLES, ids=lambda table: str(table.values))
@pytest.mark.parametrize("name", list("+-*/"))
def test_two_discrete_operands_are_looked_up_and_exact(name, a, b):
    table = look_up_table(name, a, b, FORM)
    for i, x in enumerate(a.values):
        for j, y in enumerate(b.values):
            p, q = Fraction(x), Fraction(y)
            exact = {"+": p + q, "-": p - q, "*": p * q, "/": p / q}[name]
            assert Fraction(int(table[i, j]), FORM.one) == exact
    left, right = codes(a, 24), codes(b, 24)
    assert operate(FORM, name, left, right).tolist() == table[left.codes, right.codes].tolist()


@pytest.mark.parametrize("x", ["words", *TABLES], ids=str)
@pytest.mark.parametrize("rows", ["words", *TABLES], ids=str)
def test_dot_is_the_saturated_sum_of_products(rows, x):
    rng = np.random.default_rng(1)

    def operand(of: str | CodeTable, shape: tuple[int, ...]) -> Operand:
        if isinstance(of, str):
            return Continuous(rng.integers(-FORM.largest, FORM.largest + 1, shape))
        return Discrete(rng.integers(0, len(of.values), shape), of)

    def part(of: Operand, index: object) -> Operand:
        return Continuous(of.words[index]) if isinstance(of, Continuous) else Discrete(of.codes[index], of.table)

    matrix, vectors = operand(rows, (5, 9)), operand(x, (4, 9))
    rows = [[operate(FORM, "*", part(matrix, i), part(vectors, n)) for i in range(5)] for n in range(4)]
    sums = [[int(products.sum()) for products in row] for row in rows]
    right = [[max(-FORM.largest, min(FORM.largest, total)) for total in row] for row in sums]
    assert dot(FORM, matrix, vectors).tolist() == right
    assert dot(FORM, matrix, part(vectors, 2)).tolist() == right[2]


@pytest.mark.parametrize("bits", [1, 2, 5, 8, 16])
def test_bit_serial_dot_is_the_sum_of_products(bits):
    rng = np.random.default_rng(bits)
    x = rng.integers(-(1 << (bits - 1)), 1 << (bits - 1), (6, 33))
    x[0], x[1] = -(1 << (bits - 1)), (1 << (bits - 1)) - 1  # the ends
    weights = rng.integers(0, 2, (6, 33))
    assert bit_serial_dot(x, weights, bits).tolist() == (x * (1 - 2 * weights)).sum(axis=1).tolist()


@pytest.mark.parametrize(
    ("x", "weights", "bits", "message"),
    [
        ([1, 2], [0, 2], 8, "weights must be 0..1, got 2"),
        ([1, 2], [0, -1], 8, "weights must be 0..1, got -1"),
        ([127, 128], [0, 1], 8, "x must be -128..127, got 128"),
        ([-2, 0], [0, 1], 1, "x must be -1..0, got -2"),
        ([0, 0], [0, 1], 0, "bits must be 1..62, got 0"),
        ([0, 0], [0, 1], 63, "bits must be 1..62, got 63"),
    ],
)
def test_wrong_bits(x, weights, bits, message):
    with value_error(f"bit-serial dot: {message}"):
        bit_serial_dot(np.array(x), np.array(weights), bits)


def test_what_a_format_cannot_hold():
    narrow = WordFormat(8, 2)
    word = Continuous(np.array([1]))
    with value_error("table: values must be words of 8 bits, 2 of them fraction, got -0.125"):
        operate(narrow, "+", word, Discrete(np.array([0]), TWO_BITS))
    message = "look-up table of *: values must be words of 8 bits, 2 of them fraction, got 0.125"
    with value_error(message):
        look_up_table("*", CodeTable((0.25, 1)), CodeTable((0.5, 1)), narrow)
    with value_error(message):
        dot(narrow, Discrete(np.array([[0]]), CodeTable((0.25, 1))), Discrete(np.array([0]), CodeTable((0.5, 1))))
    with value_error("look-up table of /: values must be words of 8 bits, 6 of them fraction, got 2"):
        look_up_table("/", ONE_BIT, CodeTable((0.5, 1)), WordFormat(8, 6))


def test_wrong_operations_and_codes():
    word = Continuous(np.array([1]))
    code = Discrete(np.array([0]), ONE_BIT)
    for a, b in ((word, word), (word, code), (code, word), (code, code)):
        with value_error("arithmetic: operation must be one of + - * /, got '^'"):
            operate(FORM, "^", a, b)
    with value_error("operand: codes must be 0..1, got 2"):
        Discrete(np.array([2]), ONE_BIT)

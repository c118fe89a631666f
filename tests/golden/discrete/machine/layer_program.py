"""The source's program for one layer (C25), and what it must give in plain Python integers."""

import random
from dataclasses import dataclass

import numpy as np

from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.instruction import Instruction
from bitloom.golden.discrete.machine.table_words import config_table
from bitloom.golden.discrete.word import WordFormat

from .cases import TABLES

ROWS, COLUMNS = 5, 7
"""Inputs and neurons of the layer."""
TEXT = """
CONFIG RATE a=2 b=1 kind_b=1
IO LOAD_NEURONS d=0 rows=5                                   # x
IO LOAD_NEURONS d=10 rows=5                                  # f'
IO LOAD_NEURONS d=20 rows=7                                  # the input gradient
IO {load} w=3 rows=5 columns=7
IO LOAD_GRADIENTS w=3 rows=5 columns=7                       # dw'
MOVE SCATTER a=20 columns=7
COMPUTE BACKWARD w=3 d=30 rows=5 columns=7 kind_b={g} kind_w={w}
COMPUTE UPDATE a=0 w=3 rows=5 columns=7 kind_a={x} kind_b={g} kind_w={w}
COMPUTE MULTIPLY a=30 b=10 d=40 rows=5 kind_b={f}
IO STORE_NEURONS a=40 rows=5 last=1                          # the output gradient
IO {store} w=3 rows=5 columns=7
IO STORE_GRADIENTS w=3 rows=5 columns=7 last=1
NOP END
"""
KINDS = {
    "words": {},
    "derivatives": {"f": 3},
    "weights": {"w": 2},
    "gradients": {"g": 1},
    "inputs and derivatives": {"x": 3, "f": 2},
    "all": {"x": 2, "f": 1, "g": 3, "w": 2},
}
"""Which tensors are codes, of which table."""


@dataclass
class LayerProgram:
    """The program with its data, and what it gives.

    Attributes
    ----------
    program : list of Instruction
    data : list of int
    expected : list of list of int
        The output gradient; weights and their gradients.
    """

    program: list[Instruction]
    data: list[int]
    expected: list[list[int]]


def layer_program(name: str, form: WordFormat, seed: int = 0) -> LayerProgram:
    """Random numbers for a layer of that kind."""
    kinds = {tensor: KINDS[name].get(tensor, 0) for tensor in "xfgw"}
    rng = random.Random(seed)
    cells, words = {}, {}
    for tensor, count in (("x", ROWS), ("f", ROWS), ("g", COLUMNS), ("w", ROWS * COLUMNS), ("before", ROWS * COLUMNS)):
        cells[tensor], words[tensor] = _tensor(form, kinds.get(tensor, 0), count, rng)
    text = TEXT.format(load="LOAD_CODES" if kinds["w"] else "LOAD_WEIGHTS",
                       store="STORE_CODES" if kinds["w"] else "STORE_WEIGHTS", **kinds)  # fmt: skip
    program = [config_table(number, *table) for number, table in TABLES.items()] + assemble(text)
    gradient, weights, slopes = _computed(form, words)
    if kinds["w"]:
        weights = [_nearest(form, kinds["w"], word) for word in weights]
    else:
        weights = form.pack(np.array(weights)).tolist()
    pack = lambda values: form.pack(np.array(values)).tolist()  # noqa: E731
    data = [cell for tensor in ("x", "f", "g", "w", "before") for cell in cells[tensor]]
    return LayerProgram(program, data, [pack(gradient), weights + pack(slopes)])


def _tensor(form: WordFormat, kind: int, count: int, rng: random.Random) -> tuple[list[int], list[int]]:
    """Cells, and the words that they stand for."""
    if not kind:
        words = [rng.randint(-2 * form.one, 2 * form.one) for _ in range(count)]
        return form.pack(np.array(words)).tolist(), words
    values = TABLES[kind][0].values
    codes = [rng.randrange(len(values)) for _ in range(count)]
    return codes, [int(values[code] * form.one) for code in codes]


def _nearest(form: WordFormat, kind: int, word: int) -> int:
    """The code of the nearest value, of two equally near ones the larger."""
    values = TABLES[kind][0].values
    return min(range(len(values)), key=lambda code: (abs(values[code] * form.one - word), -values[code]))


def _computed(form: WordFormat, t: dict[str, list[int]]) -> tuple[list[int], list[int], list[int]]:
    """Output gradient, new weights and their gradients; weight (input j, neuron i) has number 7 j + i."""

    def saturated(word: int) -> int:
        return max(-form.largest, min(form.largest, word))

    def shifted(word: int, places: int) -> int:
        return (abs(word) >> places) * (1 if word > 0 else -1)

    def product(a: int, b: int) -> int:
        return saturated(shifted(a * b, form.fraction))

    gradient, weights, slopes = [], [], []
    for j in range(ROWS):
        total = saturated(sum(product(t["g"][i], t["w"][COLUMNS * j + i]) for i in range(COLUMNS)))
        gradient.append(product(total, t["f"][j]))
        for i in range(COLUMNS):
            dw = product(t["x"][j], t["g"][i])
            slope = saturated(dw + shifted(t["before"][COLUMNS * j + i], 1))
            weights.append(saturated(t["w"][COLUMNS * j + i] - shifted(slope, 2)))
            slopes.append(dw)
    return gradient, weights, slopes

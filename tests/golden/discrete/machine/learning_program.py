"""Programs of UPDATE, ACCUMULATE and APPLY with random fields, and what they must give in plain Python integers."""

import random
from dataclasses import dataclass, replace

import numpy as np

from bitloom.golden.discrete.machine.assembler import assemble
from bitloom.golden.discrete.machine.instruction import Instruction
from bitloom.golden.discrete.machine.table_words import config_table
from bitloom.golden.discrete.word import WordFormat

from .cases import TABLES

ROWS, COLUMNS = 5, 7
"""Inputs and neurons of the layer."""
FIRST = """
CONFIG SEED a=4711
IO LOAD_NEURONS d=0 rows=5
IO LOAD_NEURONS d=20 rows=7
MOVE SCATTER a=20 columns=7
IO LOAD_WEIGHTS w=3 rows=5 columns=7
IO LOAD_CODES w=3 rows=5 columns=7
IO LOAD_GRADIENTS w=3 rows=5 columns=7
"""
LAST = """
IO STORE_WEIGHTS w=3 rows=5 columns=7
IO STORE_CODES w=3 rows=5 columns=7
IO STORE_GRADIENTS w=3 rows=5 columns=7 last=1
NOP END
"""


@dataclass
class LearningProgram:
    """The program with its data, and what it gives: weights, codes, gradients.

    Attributes
    ----------
    program : list of Instruction
    data, expected : list of int
    """

    program: list[Instruction]
    data: list[int]
    expected: list[int]


@dataclass
class PlainLayer:
    """Weights, codes and gradients by (input j, neuron i), in lists of integers."""

    form: WordFormat
    x: list[int]
    g: list[int]
    """x, g: cells of the inputs, and of the input gradients."""
    weights: list[list[int]]
    codes: list[list[int]]
    gradients: list[list[int]]
    state: int = 4711
    """Of the generator."""
    rate: int = 0
    mu: int | None = None

    def saturated(self, word: int) -> int:
        return max(-self.form.largest, min(self.form.largest, word))

    def word(self, kind: int, cell: int) -> int:
        """Of a cell: a code, or a sign with a magnitude."""
        if kind:
            values = TABLES[kind][0].values
            return int(values[cell % len(values)] * self.form.one)
        magnitude = cell & self.form.largest
        return magnitude if magnitude == cell else -magnitude

    def draw(self) -> int:
        for _ in range(16):
            bit = (self.state >> 31 ^ self.state >> 29 ^ self.state >> 25 ^ self.state >> 24) & 1
            self.state = (self.state << 1 | bit) & 0xFFFFFFFF
        return self.state & 0xFFFF

    def code(self, kind: int, word: int, number: int | None, pair: int = 0) -> int:
        """The code of table ``kind`` that a word becomes, by chance with a number of the generator."""
        words = {int(value * self.form.one): code for code, value in enumerate(TABLES[kind][0].values)}
        y = max(min(words), min(max(words), word))
        if number is None:
            return words[min(words, key=lambda value: (abs(value - y), -value))]
        if pair:
            zone = TABLES[kind][1] * self.form.one
            y = max(-zone, min(zone, word))
            a, b = sorted(words, key=lambda value: (abs(value - y), -value))[:2]
            return words[a if (2 * number + 1) * (abs(a - y) + abs(b - y)) < abs(b - y) * 2**17 else b]
        low = max(value for value in words if value <= y)
        high = min(value for value in words if value >= y)
        return words[high if (y - low) * 2**17 > (2 * number + 1) * (high - low) else low]

    def learn(self, function: str, kinds: dict[str, int]) -> None:
        """An instruction, weight after weight."""
        applies = function != "ACCUMULATE"
        multiplies = function != "APPLY"
        draws_d = multiplies and kinds["kind_d"] and kinds["chance_d"]
        draws_w = applies and kinds["kind_w"] and kinds["chance_w"]
        for j in range(ROWS):
            number_d = self.draw() if draws_d else None
            number_w = self.draw() if draws_w else None
            for i in range(COLUMNS):
                turned = int(f"{i:016b}"[::-1], 2)
                drawn = [None if number is None else number ^ turned for number in (number_d, number_w)]
                v = self.gradients[j][i]
                if multiplies:
                    dw = self.gradient(kinds, j, i, drawn[0])
                slope = v
                if function == "UPDATE":
                    slope = dw if self.mu is None else self.saturated(dw + shifted(v, self.mu))
                    v = dw
                elif function == "ACCUMULATE":
                    v = self.saturated(v + dw)
                else:
                    v = 0 if self.mu is None else v - shifted(v, self.mu)
                self.gradients[j][i] = v
                if applies:
                    self.descend(kinds, j, i, slope, drawn[1])

    def gradient(self, kinds: dict[str, int], j: int, i: int, number: int | None) -> int:
        """dw."""
        product = self.word(kinds["kind_a"], self.x[j]) * self.word(kinds["kind_b"], self.g[i])
        dw = self.saturated(shifted(product, self.form.fraction))
        if not kinds["kind_d"]:
            return dw
        return self.word(kinds["kind_d"], self.code(kinds["kind_d"], dw, number, kinds.get("pair_d", 0)))

    def descend(self, kinds: dict[str, int], j: int, i: int, slope: int, number: int | None) -> None:
        """A new weight."""
        kind = kinds["kind_w"]
        alone = kind and not kinds["master"]
        before = self.word(kind, self.codes[j][i]) if alone else self.weights[j][i]
        new = self.saturated(before - shifted(slope, self.rate))
        if kind:
            zone = TABLES[kind][1] * self.form.one
            new = max(-zone, min(zone, new))
            self.codes[j][i] = self.code(kind, new, number, kinds.get("pair_w", 0))
        if not alone:
            self.weights[j][i] = new


def shifted(word: int, places: int) -> int:
    """To the right, towards 0."""
    return (abs(word) >> places) * (1 if word > 0 else -1)


def learning_program(form: WordFormat, seed: int, *, pairs: bool = False, words: bool = True) -> LearningProgram:
    """Twelve instructions with random kinds, and constants that change.

    ``pairs``: with conversions of either pair. ``words``: factors may be words.
    """
    rng = random.Random(seed)

    def cells(number: int) -> list[int]:
        most = 3 * form.one
        return form.pack(np.array([rng.randint(-most, most) for _ in range(number)])).tolist()

    size = ROWS * COLUMNS
    x, g, weights, gradients = cells(ROWS), cells(COLUMNS), cells(size), cells(size)
    codes = [rng.randrange(8) for _ in range(size)]

    def matrix(values: list[int]) -> list[list[int]]:
        return [values[COLUMNS * j : COLUMNS * (j + 1)] for j in range(ROWS)]

    def plain(given: list[int]) -> list[list[int]]:
        return matrix(form.unpack(np.array(given)).tolist())

    layer = PlainLayer(form, x, g, plain(weights), matrix(codes), plain(gradients))
    program = [config_table(number, *table) for number, table in TABLES.items()] + assemble(FIRST)
    for _ in range(12):
        if rng.random() < 0.4:
            layer.rate = rng.randrange(9)
            layer.mu = rng.choice([None, rng.randrange(9)])
            program += assemble(f"CONFIG RATE a={layer.rate}" + ("" if layer.mu is None else f" b={layer.mu} kind_b=1"))
        function = rng.choice(["UPDATE", "ACCUMULATE", "APPLY"])
        kinds = {name: rng.choice([0, rng.randrange(1, 4)]) for name in ("kind_a", "kind_b", "kind_w", "kind_d")}
        kinds |= {name: rng.randrange(2) for name in ("chance_d", "chance_w", "master")}
        if not words:
            kinds |= {name: rng.randrange(1, 4) for name in ("kind_a", "kind_b")}
        if pairs:
            kinds |= {name: rng.randrange(2) for name in ("pair_d", "pair_w")}
        # fields that a function doesn't use are without effect, too
        (instruction,) = assemble(f"COMPUTE {function} w=3 rows=5 columns=7")
        program.append(replace(instruction, **kinds))
        layer.learn(function, kinds)
    data = [*x, *g, *weights, *codes, *gradients]
    caches = form.pack(np.array(layer.weights)), np.array(layer.codes), form.pack(np.array(layer.gradients))
    return LearningProgram(program + assemble(LAST), data, np.concatenate(caches).reshape(-1).tolist())

"""Instructions of the machine and their encoding (C24).

An instruction has 128 bits, which travel as four 32-bit words. All instructions have the same fields:

====  ======  ==========  ===========================================================================
word  bits    field       meaning
====  ======  ==========  ===========================================================================
0     3..0    operation   `OPERATIONS`; 0 is none, so that memory that was never written is a fault
0     8..4    function    what the operation does, `FUNCTIONS`
0     11..9   kind_a      operand a: 0 continuous, 1 to 7 codes of that table
0     14..12  kind_b      operand b
0     17..15  kind_w      weights
0     20..18  kind_d      what is written: results, or weight gradients
0     21      chance_d    results are converted by chance, not to the nearest
0     22      chance_w    weights are converted by chance
0     23      master      discrete weights have continuous master weights
0     24      last        IO: the last word ends the transfer (tlast)
0     25      pair_d      results converted by chance become one of the two nearest codes, not of those around them
0     26      pair_w      the same of weights
0     31..27  unused      0
1     15..0   a           address of operand a in the master's neuron cache
1     31..16  b           address of operand b there
2     15..0   d           address there of what is written
2     31..16  w           address in the slaves' caches
3     15..0   columns     neurons of the layer, the slaves' columns
3     31..16  rows        inputs of the layer; elements of a vector
====  ======  ==========  ===========================================================================

`USED` says which fields an instruction looks at. CONFIG TABLE has other contents in words 1 to 3, twelve bits a code
(golden/discrete/machine/table_words.py). CONFIG SEED has the generator's state in word 1.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from bitloom.golden.encoding import Array

WORDS = 4
"""32-bit words of an instruction."""
FIELDS = {
    "operation": (0, 4),
    "function": (4, 5),
    "kind_a": (9, 3),
    "kind_b": (12, 3),
    "kind_w": (15, 3),
    "kind_d": (18, 3),
    "chance_d": (21, 1),
    "chance_w": (22, 1),
    "master": (23, 1),
    "last": (24, 1),
    "pair_d": (25, 1),
    "pair_w": (26, 1),
    "unused": (27, 5),
    "a": (32, 16),
    "b": (48, 16),
    "d": (64, 16),
    "w": (80, 16),
    "columns": (96, 16),
    "rows": (112, 16),
}
"""Lowest bit and width of each field."""

NOP, CONFIG, COMPUTE, IO, MOVE, JUMP = range(1, 7)
OPERATIONS = {"NOP": NOP, "CONFIG": CONFIG, "COMPUTE": COMPUTE, "IO": IO, "MOVE": MOVE, "JUMP": JUMP}

WAIT, END = range(2)
TABLE, RATE, SEED = range(3)
FORWARD, BACKWARD, UPDATE, ACCUMULATE, APPLY = range(5)
ADD, SUBTRACT, MULTIPLY, DIVIDE, MOMENTUM, DESCEND, RELU, RELU_SLOPE, CLIP, CLIP_SLOPE, GATE, CONVERT = range(8, 20)
INVERSE_ROOT = 20
LOAD_NEURONS, LOAD_WEIGHTS, LOAD_CODES, LOAD_GRADIENTS = range(4)
STORE_NEURONS, STORE_WEIGHTS, STORE_CODES, STORE_GRADIENTS = range(8, 12)
LOAD_PROGRAM = 16
CACHE_BITS, STORE_BIT = 2, 3
"""In a function of IO: the number of low bits that name the cache, and the bit that is 1 if words are stored."""
COPY, SCATTER = range(2)
ALWAYS = 0
COUNTERS = 4
"""Loop counters, numbers 0 to 3."""

FUNCTIONS = {
    NOP: {"WAIT": WAIT, "END": END},
    CONFIG: {"TABLE": TABLE, "RATE": RATE, "SEED": SEED},
    COMPUTE: {
        "FORWARD": FORWARD,
        "BACKWARD": BACKWARD,
        "UPDATE": UPDATE,
        "ACCUMULATE": ACCUMULATE,
        "APPLY": APPLY,
        "ADD": ADD,
        "SUBTRACT": SUBTRACT,
        "MULTIPLY": MULTIPLY,
        "DIVIDE": DIVIDE,
        "MOMENTUM": MOMENTUM,
        "DESCEND": DESCEND,
        "RELU": RELU,
        "RELU_SLOPE": RELU_SLOPE,
        "CLIP": CLIP,
        "CLIP_SLOPE": CLIP_SLOPE,
        "GATE": GATE,
        "CONVERT": CONVERT,
        "INVERSE_ROOT": INVERSE_ROOT,
    },
    IO: {
        "LOAD_NEURONS": LOAD_NEURONS,
        "LOAD_WEIGHTS": LOAD_WEIGHTS,
        "LOAD_CODES": LOAD_CODES,
        "LOAD_GRADIENTS": LOAD_GRADIENTS,
        "STORE_NEURONS": STORE_NEURONS,
        "STORE_WEIGHTS": STORE_WEIGHTS,
        "STORE_CODES": STORE_CODES,
        "STORE_GRADIENTS": STORE_GRADIENTS,
        "LOAD_PROGRAM": LOAD_PROGRAM,
    },
    MOVE: {"COPY": COPY, "SCATTER": SCATTER},
    JUMP: {"LOOP": 0},
}
"""Functions of each operation, by name."""

ON_SLAVES = (FORWARD, BACKWARD, UPDATE, ACCUMULATE, APPLY)
"""Functions of COMPUTE for the slaves; the others are the master's, element by element."""
TWO_OPERANDS = (ADD, SUBTRACT, MULTIPLY, DIVIDE, MOMENTUM, DESCEND, GATE)
"""Functions of COMPUTE for the master that read operand b, too."""

_CACHE = ("a", "d", "rows")
USED = {
    (NOP, WAIT): (),
    (NOP, END): (),
    (CONFIG, TABLE): ("kind_a", "kind_b", "kind_w", "a", "b", "d", "w", "columns", "rows"),
    (CONFIG, RATE): ("kind_b", "a", "b"),
    (CONFIG, SEED): ("a", "b"),
    (COMPUTE, FORWARD): ("kind_a", "kind_w", "a", "d", "w", "columns", "rows"),
    (COMPUTE, BACKWARD): ("kind_b", "kind_w", "d", "w", "columns", "rows"),
    (COMPUTE, UPDATE): (
        *("kind_a", "kind_b", "kind_w", "kind_d", "chance_d", "chance_w", "master", "pair_d", "pair_w"),
        *("a", "w", "columns", "rows"),
    ),
    (COMPUTE, ACCUMULATE): ("kind_a", "kind_b", "kind_d", "chance_d", "pair_d", "a", "w", "columns", "rows"),
    (COMPUTE, APPLY): ("kind_w", "chance_w", "master", "pair_w", "w", "columns", "rows"),
    **{(COMPUTE, f): ("kind_a", "kind_b", "a", "b", "d", "rows") for f in TWO_OPERANDS},
    **{(COMPUTE, f): ("kind_a", *_CACHE) for f in (RELU, RELU_SLOPE, CLIP, CLIP_SLOPE, INVERSE_ROOT)},
    (COMPUTE, CONVERT): ("kind_a", "kind_d", "chance_d", "pair_d", *_CACHE),
    (IO, LOAD_NEURONS): ("d", "rows"),
    (IO, STORE_NEURONS): ("last", "a", "rows"),
    (IO, LOAD_PROGRAM): ("d", "rows"),
    **{(IO, f): ("w", "columns", "rows") for f in (LOAD_WEIGHTS, LOAD_CODES, LOAD_GRADIENTS)},
    **{(IO, f): ("last", "w", "columns", "rows") for f in (STORE_WEIGHTS, STORE_CODES, STORE_GRADIENTS)},
    (MOVE, COPY): _CACHE,
    (MOVE, SCATTER): ("a", "columns"),
    (JUMP, 0): ("a", "d", "rows"),
}
"""Fields that each (operation, function) uses; the others are 0. JUMP: a is the counter, d the target, rows how often
the loop's body runs in all (0: always). RATE: a and b are k of the rate and of mu, kind_b is 1 where mu isn't 0.
LOAD_PROGRAM: ``rows`` instructions go to the instruction cache, from address d on."""


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One instruction: its fields, as in the table above, which nobody has checked."""

    operation: int
    function: int = 0
    kind_a: int = 0
    kind_b: int = 0
    kind_w: int = 0
    kind_d: int = 0
    chance_d: int = 0
    chance_w: int = 0
    master: int = 0
    last: int = 0
    pair_d: int = 0
    pair_w: int = 0
    unused: int = 0
    a: int = 0
    b: int = 0
    d: int = 0
    w: int = 0
    columns: int = 0
    rows: int = 0
    """a, b, d, w, columns, rows: numbers of as many bits as `FIELDS` says."""

    def __post_init__(self) -> None:
        for name, (_, width) in FIELDS.items():
            value = getattr(self, name)
            if not 0 <= value < 1 << width:
                raise ValueError(f"instruction: {name} must be 0..{(1 << width) - 1}, got {value}")

    @property
    def key(self) -> tuple[int, int]:
        """(operation, function)."""
        return self.operation, self.function

    def __str__(self) -> str:
        """As the assembler writes it, also where it is no instruction of the machine."""
        operation = next((name for name, number in OPERATIONS.items() if number == self.operation), None)
        functions = FUNCTIONS.get(self.operation, {})
        function = next((name for name, number in functions.items() if number == self.function), None)
        fields = [f"{name}={value}" for name, value in asdict(self).items() if value and name in _ARGUMENTS]
        return " ".join([operation or f"operation {self.operation}", function or f"function {self.function}", *fields])


_ARGUMENTS = tuple(FIELDS)[2:]


def shown_instruction(program: Sequence[Instruction], place: int) -> str:
    """The instruction at an address of a program that a machine ran, for a message."""
    text = str(program[place]) if place < len(program) else "none of the program"
    loads = any(i.key == (IO, LOAD_PROGRAM) for i in program)
    return f"{text}, unless LOAD_PROGRAM put another one there" if loads else text


def encode(program: Sequence[Instruction]) -> Array:
    """The words of instructions, (4 * len(program),) uint32."""
    words = []
    for instruction in program:
        whole = sum(getattr(instruction, name) << low for name, (low, _) in FIELDS.items())
        words += [whole >> 32 * k & 0xFFFFFFFF for k in range(WORDS)]
    return np.array(words, np.uint32)


def decode(words: Array) -> list[Instruction]:
    """The instructions of `encode`'s words; ValueError unless they are whole."""
    if len(words) % WORDS:
        raise ValueError(f"instruction: words must be a multiple of {WORDS}, got {len(words)}")
    instructions = []
    for row in np.asarray(words).reshape(-1, WORDS).tolist():
        whole = sum(word << 32 * k for k, word in enumerate(row))
        instructions.append(Instruction(**{n: whole >> low & ((1 << width) - 1) for n, (low, width) in FIELDS.items()}))
    return instructions

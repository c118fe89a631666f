"""Programs as text: an instruction a line, ``OPERATION FUNCTION field=number ...``.

    IO LOAD_NEURONS d=0 rows=64
    sample: COMPUTE FORWARD a=0 w=0 d=128 rows=64 columns=32 kind_w=1
    JUMP LOOP d=sample rows=1437
    NOP END

A label in front of an instruction stands for its address in ``d`` of a JUMP. Fields that aren't named are 0. What
follows ``#`` is a comment.
"""

from collections.abc import Sequence

from .instruction import FIELDS, FUNCTIONS, JUMP, OPERATIONS, USED, Instruction


def assemble(text: str) -> list[Instruction]:
    """Instructions of a program.

    Parameters
    ----------
    text : str
        Empty lines and comments are left out.

    Raises
    ------
    ValueError
        A line is no instruction; the message names it by its number, from 1 on.
    """
    lines: list[tuple[int, list[str]]] = []
    labels: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        while words and words[0].endswith(":"):
            label = words.pop(0)[:-1]
            if label in labels or not label.isidentifier():
                raise ValueError(f"line {number}: a label must be a new name, got {label!r}")
            labels[label] = len(lines)
        if words:
            lines.append((number, words))
    return [_instruction(f"line {number}", words, labels) for number, words in lines]


def _instruction(where: str, words: list[str], labels: dict[str, int]) -> Instruction:
    """The instruction of one line."""
    if words[0] not in OPERATIONS:
        raise ValueError(f"{where}: operation must be one of {', '.join(OPERATIONS)}, got {words[0]!r}")
    operation = OPERATIONS[words[0]]
    functions = FUNCTIONS[operation]
    function = words[1] if len(words) > 1 else ""
    if function not in functions:
        raise ValueError(f"{where}: function of {words[0]} must be one of {', '.join(functions)}, got {function!r}")
    fields: dict[str, int] = {}
    used = USED[operation, functions[function]]
    for word in words[2:]:
        name, _, value = word.partition("=")
        if name not in used or name in fields:
            raise ValueError(f"{where}: fields of {function} are {', '.join(used) or 'none'}, once each, got {word!r}")
        if operation == JUMP and name == "d" and value in labels:
            value = str(labels[value])
        most = (1 << FIELDS[name][1]) - 1
        if not (value.isascii() and value.isdigit()) or int(value) > most:
            raise ValueError(f"{where}: {name} must be a number 0..{most}, got {value!r}")
        fields[name] = int(value)
    return Instruction(operation=operation, function=functions[function], **fields)


def disassemble(program: Sequence[Instruction]) -> str:
    """The text of a program, an instruction a line; `assemble` is its inverse if all its instructions exist."""
    return "".join(f"{instruction}\n" for instruction in program)

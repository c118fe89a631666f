"""The schema of what a file of foldings may say of an NPU, made of what the fields of the parts declare.

python -m bitloom.overlay.explore.foldings_schema    # writes it into foldings.schema.json
"""

import json
from itertools import combinations
from typing import Any

from bitloom.golden.atomic import write_text
from bitloom.hls_gen.design import flat
from bitloom.hls_gen.design.parts import Choices, Number

from .candidate import CAPACITIES, DEFAULTS, NPU_KEYS, SCHEMA

MOST_WORDS = 1 << 24
"""Words of a memory, at most."""
AT_LEAST = "More are taken where the network needs them."


def _value(name: str) -> dict[str, Any]:
    """The schema of a value."""
    default = DEFAULTS[name]
    rule = flat.CHOICES.get(name) or flat.NUMBERS.get(name)
    if name == "engine":
        kind: dict[str, Any] = {"enum": list(flat.ENGINES)}
    elif isinstance(rule, Choices):
        kind = {"enum": _words(rule)}
    elif isinstance(rule, Number):
        kind = _number(rule, default)
    else:
        kind = {"type": "boolean"}
    means = f"{flat.MEANS[name]} {AT_LEAST}" if name in CAPACITIES else flat.MEANS[name]
    return {**kind, "default": list(default) if isinstance(default, tuple) else default, "description": means}


def _words(rule: Choices) -> list[Any]:
    """The values that a choice takes."""
    if not rule.several:
        return list(rule.words)
    counts = range(0 if rule.empty else 1, len(rule.words) + 1)
    return [list(words) for count in counts for words in combinations(rule.words, count)]


def _number(rule: Number, default: int) -> dict[str, Any]:
    """The schema of a number; its default may be below what the part takes: then there is no such part."""
    if rule.power:
        powers = (1 << bits for bits in range(MOST_WORDS.bit_length()))
        return {"enum": [power for power in powers if rule.least <= power <= (rule.most or MOST_WORDS)]}
    least = 0 if rule.or_zero else min(rule.least, default)
    kind: dict[str, Any] = {"type": "integer", "minimum": least}
    if rule.most is not None:
        kind["maximum"] = rule.most
    if least == 0 and rule.least == 2:
        kind["not"] = {"const": 1}
    return kind


def whole_schema() -> str:
    """The text of foldings.schema.json: as it is, with the schema of an NPU as the parts declare it."""
    begin, _, _ = SCHEMA.read_text(encoding="utf-8").partition('   "properties": {\n    "engine"')
    entries = (f"    {json.dumps(name)}: {json.dumps(_value(name))}" for name in NPU_KEYS)
    return begin + '   "properties": {\n' + ",\n".join(entries) + "\n   }\n  }\n }\n}\n"


if __name__ == "__main__":
    write_text(SCHEMA, whole_schema())

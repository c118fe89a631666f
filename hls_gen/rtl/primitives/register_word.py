"""Fields of a register in the hardware: taken from a word, and put together to one."""

from collections.abc import Mapping, Sequence

from bitloom.hls_gen.design.fields import Field
from bitloom.hls_gen.rtl.primitives.block import Signal, bits, const, side_by_side


def field_of(word: Signal, field: Field) -> Signal:
    """The bits of ``word`` that are ``field``."""
    return bits(word, field.lsb, field.width)


def word_of(fields: Sequence[Field], values: Mapping[str, Signal]) -> Signal:
    """Fields side by side, in as many bits as they take.

    Parameters
    ----------
    fields : sequence of Field
        The register's fields, low bits first.
    values : mapping of str to Signal
        Value of each field, in the field's width. Fields that are not named, and bits between fields, are 0; the word
        ends with the last field that is named.

    Returns
    -------
    Signal
        The word.
    """
    parts: list[Signal] = []
    used = 0
    for field in fields:
        if field.name not in values:
            continue
        if field.lsb > used:
            parts.append(const(0, field.lsb - used))
        parts.append(values[field.name])
        used = field.lsb + field.width
    return side_by_side(parts)

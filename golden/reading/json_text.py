"""JSON from outside, as RFC 8259 has it: no NaN, no key twice, no endless depth, no numbers that don't fit."""

import json
import os
import re
from typing import Any, NoReturn

from bitloom.golden.limits import check_read
from bitloom.golden.names import shown

from .file import naming, read_file, reason

DEEPEST = 64
"""Lists and objects inside each other at most; what bitloom writes has less than ten."""
LONGEST_INTEGER = 20
"""Characters of an integer at most, which is more than 64 bits need."""
TIMES = 40
"""Bytes that Python takes for a byte of JSON at most: 36 were measured, for a list of objects with one entry each."""

_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|([\[{])|([\]}])', re.DOTALL)
"""A string (also one without an end), or a bracket outside of strings."""


def parse_json(text: bytes, what: str) -> Any:
    """Read JSON.

    Parameters
    ----------
    text : bytes
        UTF-8.
    what : str
        Name of the text, for messages.

    Returns
    -------
    object
        Dicts, lists, strings, integers, finite floats, booleans and None.

    Raises
    ------
    ValueError
        If it isn't JSON, takes too much memory (`bitloom.golden.limits`), is deeper than DEEPEST, has a key twice in
        one object, or a number or half a character that can't be written again. One line that begins with ``what``.
    """
    check_read(what, TIMES * len(text), len(text))
    try:
        decoded = text.decode()
        _check_depth(decoded)
        data = json.loads(
            decoded, object_pairs_hook=_object, parse_constant=_refuse, parse_int=_integer, parse_float=_float
        )
        if "\\u" in decoded:  # only so can half a character come in
            json.dumps(data, ensure_ascii=False).encode()
    except ValueError as e:
        raise ValueError(f"{what} must be JSON, got: {reason(e)}") from None
    return data


def read_json(path: str | os.PathLike[str], what: str) -> Any:
    """Read a file of JSON.

    Parameters
    ----------
    path : path
    what : str
        Thing that the file must be, for messages: ``a manifest``.

    Raises
    ------
    OSError
        If there is no file.
    ValueError
        As `parse_json`, with the path in front.
    """
    text = read_file(path)
    with naming(os.fspath(path)):
        return parse_json(text, what)


def _check_depth(text: str) -> None:
    """ValueError if lists and objects lie deeper in each other than DEEPEST; too many ends are json's to tell."""
    depth = 0
    for bracket in _BRACKETS.finditer(text):
        depth += (bracket[1] is not None) - (bracket[2] is not None)
        if depth > DEEPEST:
            raise ValueError(f"more than {DEEPEST} lists and objects inside each other")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these entries; ValueError if a key comes twice."""
    entries = dict(pairs)
    if len(entries) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"key {shown(twice)} twice in one object")
    return entries


def _refuse(name: str) -> NoReturn:
    """NaN and Infinity, which Python's reader takes though JSON has neither."""
    raise ValueError(f"the number {name}")


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_INTEGER:
        raise ValueError(f"an integer of {len(digits)} characters, {digits[:10]}...")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"the number {shown(digits)}, which is too large")
    return value

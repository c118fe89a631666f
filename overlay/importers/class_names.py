"""Names of classes that a file brings along: entries of ONNX's metadata, and the texts packed behind a TFLite file.

They come from a stranger, may have any form, and are not needed. So names that don't fit the network are left out, with
a message.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from bitloom.golden.names import check_classes, shown
from bitloom.golden.reading.archive import Archive
from bitloom.golden.reading.file import foreign_reason
from bitloom.golden.reading.json_text import parse_json

from .source import MOST_CHANNELS, Labels

KEYS = ("names", "classes", "class_names", "labels")
"""Entries of ONNX's metadata that may hold names, capital letters or not."""
MOST_BYTES = 1 << 20
"""Bytes of a text with names at most."""
MOST_TEXTS = 16
"""Texts of a file that are read at most."""
END_OF_ZIP = b"PK\x05\x06"
ZIP_TAIL = 22 + (1 << 16)
"""Bytes at a file's end in which a zip archive's last record begins, if it has one."""

_QUOTED = r"'[^'\\]*'|\"[^\"\\]*\""
_ENTRY = rf"(?:(\d{{1,6}})\s*:\s*)?({_QUOTED})"
_PYTHON = re.compile(rf"[\[({{]\s*{_ENTRY}(?:\s*,\s*{_ENTRY})*\s*(?:,\s*)?[\])}}]", re.ASCII)
"""Text that Python's repr writes for a list, tuple or mapping of strings without a backslash."""


def lines_of(data: bytes) -> list[str]:
    """The lines of a text, without blanks at their ends.

    Raises
    ------
    ValueError
        If there are more than MOST_BYTES, or they are no text.
    """
    if len(data) > MOST_BYTES:
        raise ValueError(f"must have at most {MOST_BYTES:,} bytes, got {len(data):,}")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ValueError("must be text in UTF-8, got other bytes") from None
    return [line.strip() for line in text.rstrip().splitlines()]


def labels_of_metadata(entries: Iterable[tuple[Any, Any]]) -> tuple[Labels, ...]:
    """Names in the metadata of an ONNX file.

    Parameters
    ----------
    entries : iterable of (key, value)
        As the file has them. A value may be a list or a mapping, as JSON or as Python writes it, with numbers on either
        side; or text with a line a name, or with commas between them.

    Returns
    -------
    tuple of Labels
        At most one a key of KEYS, in their order.
    """
    values_by_key: dict[str, str] = {}
    for key, value in entries:
        if isinstance(key, str) and isinstance(value, str) and key.lower() in KEYS and len(value) <= MOST_BYTES:
            values_by_key.setdefault(key.lower(), value)
    candidates = (Labels(f"metadata {key}", _names_in(values_by_key[key])) for key in KEYS if key in values_by_key)
    return tuple(labels for labels in candidates if labels.names)


def _names_in(text: str) -> tuple[str, ...]:
    """Names in a text; none if the text has no known form."""
    if text.lstrip()[:1] not in ("[", "{", "("):
        parts = text.strip().split("\n" if "\n" in text.strip() else ",")
        return tuple(part.strip() for part in parts) if text.strip() else ()
    try:
        data = parse_json(text.encode(), "names")
    except ValueError:
        data = _python_in(text)
    if isinstance(data, Mapping):
        data = _ordered(data)
    names = isinstance(data, list) and len(data) <= MOST_CHANNELS and all(isinstance(name, str) for name in data)
    return tuple(data) if names else ()


def _python_in(text: str) -> Any:
    """The list or mapping of strings that Python's repr has written; else None. Nothing is evaluated."""
    if not _PYTHON.fullmatch(text.strip()):
        return None
    entries = [(match[1], match[2][1:-1]) for match in re.finditer(_ENTRY, text, re.ASCII)]
    if all(number is None for number, _ in entries):
        return [name for _, name in entries]
    return {str(number): name for number, name in entries}


def _ordered(data: Mapping[str, Any]) -> list[Any] | None:
    """The names of {number: name} or {name: number}, by numbers 0, 1, ...; else None."""
    pairs = [(int(key), value) for key, value in data.items() if re.fullmatch(r"\d{1,6}", key, re.ASCII)]
    if len(pairs) < len(data):
        pairs = [(value, key) for key, value in data.items() if type(value) is int]
    named = dict(pairs)
    return [named[k] for k in range(len(data))] if set(named) == set(range(len(data))) else None


def labels_of_texts(data: bytes) -> tuple[Labels, ...]:
    """Names in the texts that a TFLite file with metadata has packed behind it, as a zip archive.

    Parameters
    ----------
    data : bytes
        The whole file.

    Returns
    -------
    tuple of Labels
        One for each text of the archive, in its order; nothing where there is no archive, or a damaged one.
    """
    if END_OF_ZIP not in data[-ZIP_TAIL:]:
        return ()
    texts = []
    try:
        archive = Archive(data)
        for name in [name for name in archive.names if name.lower().endswith(".txt")][:MOST_TEXTS]:
            texts.append(Labels(f"packed {shown(name)}", tuple(lines_of(archive.read(name)))))
    except ValueError as e:
        texts.append(Labels(f"packed texts ({foreign_reason(e)})", ()))
    return tuple(texts)


def fitting(labels: Iterable[Labels], scores: int) -> tuple[tuple[str, ...], str]:
    """The first names that fit a network, and one line that says where they are from, or why there are none.

    Parameters
    ----------
    labels : iterable of Labels
    scores : int
        How many classes there are.

    Returns
    -------
    tuple of str
        A name for each score, or nothing.
    str
        ``""`` where the file has no names at all.
    """
    refused = []
    for candidate in labels:
        try:
            if len(candidate.names) != scores:
                raise ValueError(f"must have {scores} names, got {len(candidate.names)}")
            check_classes(candidate.where, candidate.names, scores)
        except ValueError as e:
            refused.append(f"left out {candidate.where}: {foreign_reason(e).removeprefix(f'{candidate.where}: ')}")
        else:
            return candidate.names, f"names of {candidate.where}"
    return (), "; ".join(refused[:1])

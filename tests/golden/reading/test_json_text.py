"""JSON from outside: what Python's own reader takes and we don't."""

import json

import pytest

from bitloom.golden.reading.json_text import parse_json, read_json
from tests.errors import value_error


@pytest.mark.parametrize(
    "data",
    [None, True, [1, -2.5, "é\u2028\U0001f600", {"a": [], "b": {}}], {"": "[" * 100 + '"'}, 10**19, "\\ud800"],
)
def test_what_was_written_is_read(data):
    for ascii_only in (False, True):
        assert parse_json(json.dumps(data, ensure_ascii=ascii_only).encode(), "a manifest") == data


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (b"", "Expecting value: line 1 column 1 (char 0)"),
        (b"1 2", "Extra data: line 1 column 3 (char 2)"),
        (b"\xff", "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        (b"[" * 100_000, "more than 64 lists and objects inside each other"),
        (b'{"a":' * 65, "more than 64 lists and objects inside each other"),
        (b'["\\"[[' + b"[" * 100, "Unterminated string starting at: line 1 column 2 (char 1)"),
        (b'{"a": 1, "b": {"c": 2, "c": 2}}', "key 'c' twice in one object"),
        (b"[NaN]", "the number NaN"),
        (b"[-Infinity]", "the number -Infinity"),
        (b"1e999", "the number '1e999', which is too large"),
        (b"9" * 5000, "an integer of 5000 characters, 9999999999..."),
        (b"-" + b"9" * 20, "an integer of 21 characters, -999999999..."),
        (b'["\\ud800"]', "'utf-8' codec can't encode character '\\ud800' in position 2: surrogates not allowed"),
    ],
)
def test_what_is_refused(text, got, tmp_path):
    with value_error(f"a manifest must be JSON, got: {got}"):
        parse_json(text, "a manifest")
    (tmp_path / "a.json").write_bytes(text)
    with value_error(f"{tmp_path / 'a.json'}: a manifest must be JSON, got: {got}"):
        read_json(tmp_path / "a.json", "a manifest")


def test_more_text_than_memory_is_for(monkeypatch):
    monkeypatch.setenv("BITLOOM_MAX_READ_MB", "1")
    text = b"[" + b"{}," * 20_000 + b"{}]"
    with value_error(
        "a manifest: MB of memory to read it must be <= 1 "
        "(environment variable BITLOOM_MAX_READ_MB sets another limit), got 2"
    ):
        parse_json(text, "a manifest")
    monkeypatch.setenv("BITLOOM_MAX_READ_MB", "3")
    assert len(parse_json(text, "a manifest")) == 20_001


def test_an_integer_as_long_as_may_be():
    assert parse_json(b"[-" + b"9" * 19 + b"]", "a manifest") == [1 - 10**19]

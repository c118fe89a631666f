"""The shipped JSON schema of foldings files says what their reader takes, no more and no less."""

import json
from pathlib import Path
from typing import Any

import pytest

from bitloom.hls_gen.compiler.choices import CompileChoices
from bitloom.hls_gen.design.flat import PLACES
from bitloom.hls_gen.design.npu import Npu
from bitloom.overlay.explore.candidate import NPU_KEYS, SCHEMA, Candidate
from bitloom.overlay.explore.foldings_schema import whole_schema

jsonschema = pytest.importorskip("jsonschema")
WHOLE = json.loads(Path(SCHEMA).read_text())
NPU = WHOLE["$defs"]["npu"]["properties"]
FILE = Candidate("digits-cnn", (Npu.of(),), (0, 0, 0, 0)).to_dict()
WORDS = ["binary", "integer", "popcount", "or", "both", "or_words", "auto", "block", "distributed"]
PORTS = [["host"], ["ring"], ["loop"], ["host", "loop"], ["loop", "host"], ["ring", "host"], ["host", "ring"]]
PORTS += [["ring", "loop", "host"], ["host", "host"], ["host", "ring", "loop"], ["no"]]
NUMBERS = [*range(-1, 24), 31, 32, 33, 64, 255, 256, 257, 512, 1 << 20, 1.5]
PROBES = [*NUMBERS, True, False, None, "x", "", {}, [], *WORDS, *PORTS]
INTEGER = {"engine": "integer", "shift_bits": 0}
SURROUNDINGS: list[dict[str, Any]] = [
    {"kfp": 16, "kgp": 1 << 20, "shift_bits": 0},
    {"kfp": 1, "shift_bits": 0},
    {**INTEGER, "feature_bits": 8, "weight_bits": 8},
    {**INTEGER, "feature_bits": 2, "weight_bits": 2, "kgp": 8},
    {"inlets": ["host"], "outlets": ["host"], "kfp": 16},
    {"kfp": 1, "word_lanes": 1, "shift_bits": 0},
    {**INTEGER, "feature_bits": 8, "weight_bits": 8, "depthwise": True},
]
"""Values that need others beside them: the schema says what a key may have, not what goes together."""


def reads(data: dict[str, Any]) -> bool:
    """Whether the reader takes a file with these data."""
    try:
        Candidate.from_dict(data)
    except ValueError:
        return False
    return True


def fits(data: Any, schema: dict[str, Any] = WHOLE) -> bool:
    """Whether the data are of the schema."""
    return jsonschema.Draft202012Validator(schema).is_valid(data)


def test_it_is_a_schema_of_every_key() -> None:
    jsonschema.Draft202012Validator.check_schema(WHOLE)
    message = "python -m bitloom.overlay.explore.foldings_schema writes it"
    assert SCHEMA.read_text(encoding="utf-8") == whole_schema(), message
    assert set(NPU) == set(NPU_KEYS)
    assert all(value["description"] for value in NPU.values())


@pytest.mark.sample(4)
@pytest.mark.parametrize("key", [name for name in PLACES if name in NPU_KEYS])
def test_what_a_key_of_an_npu_may_have(key: str) -> None:
    for value in PROBES:
        taken = any(reads(FILE | {"npus": [around | {key: value}]}) for around in SURROUNDINGS)
        if key in ("word_lanes", "line_taps"):
            taken = taken or reads(FILE | {"npus": [{"kfp": value, key: value}]})
        if key in ("inlets", "outlets") and isinstance(value, list) and "loop" in value:
            other = {"inlets": ["ring", "loop"], "outlets": ["loop", "host"]} | {key: value}
            taken = reads(FILE | {"npus": [other]})
        assert fits(value, NPU[key]) == taken, value


@pytest.mark.parametrize("key", WHOLE["properties"])
def test_what_a_key_of_the_file_may_have(key: str) -> None:
    dataflows = ["input_stationary", *(f"input_stationary:{number}" for number in (0, 1, 2, 16))]
    maps = [{"conv_1": "auto"}, {"conv_1": "x"}, {"a": 1}, {"conv_1": "input_stationary:9"}]
    values = [*PROBES, 32, 64, 33, "pull", "raster", "last", "bitloom-foldings", [0], [0, 0], *dataflows, *maps]
    for value in values:
        if key in ("network", "mapping") and (value in ("", []) or key == "network"):
            continue  # names and lengths are compared with the network's, when it is known
        data = FILE | {key: value}
        assert fits(data) == reads(data), value
    without = {name: value for name, value in FILE.items() if name != key}
    assert fits(without) == reads(without) == (key not in WHOLE["required"])
    assert not fits(FILE | {"npu": 1})
    assert not fits(FILE | {"npus": [{"kernel_rows": 8}]})


@pytest.mark.parametrize("dataflow", ["input_stationary:4", {"conv_1": "input_stationary:4", "conv_2": "auto"}])
def test_how_networks_are_compiled_is_as_the_file_says(dataflow: Any) -> None:
    said = {"dataflow": dataflow, "shortcuts": "last", "copy_depthwise": True, "chunk": "rows:2"}
    candidate = Candidate.from_dict(FILE | said)
    assert candidate.choices == CompileChoices(map_order="pull", **said)
    assert candidate.to_dict() == FILE | said
    assert candidate.key != Candidate.from_dict(FILE | said | {"shortcuts": "first"}).key

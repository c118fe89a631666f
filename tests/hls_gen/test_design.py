"""Parameters of a design: every rule has a message, and what follows from the parameters is stated here once more."""

import json

import pytest

from hls_gen.design import Design, Npu
from tests.errors import value_error

BAD = {
    "kind": ("ternary", "npu: kind must be binary or integer, got 'ternary'"),
    "feature_bits": (2, "npu: feature_bits must be 1..1 for kind binary, got 2"),
    "weight_bits": (0, "npu: weight_bits must be 1..1 for kind binary, got 0"),
    "kfp": (0, "npu: kfp must be an integer >= 1, got 0"),
    "kgp": (-3, "npu: kgp must be an integer >= 1, got -3"),
    "pfp": ("8", "npu: pfp must be an integer >= 1, got '8'"),
    "ol": (9, "npu: ol must be <= kgp = 8, got 9"),
    "accumulate": ("and", "npu: accumulate must be popcount, or or both, got 'and'"),
    "collect": (-8, "npu: collect must be an integer >= 0, got -8"),
    "acc_bits": (33, "npu: acc_bits must be 4..32, got 33"),
    "planes": (9, "npu: planes must be 0 or 2..8 and below kfp = 8, got 9"),
    "shift_bits": (4, "npu: shift_bits must be 0..3, got 4"),
    "accumulators": (3, "npu: accumulators must be a power of two <= 256, got 3"),
    "binariser_bits": (10, "npu: binariser_bits must be 0, or 2..9 for kind binary, got 10"),
    "binariser_rows": (1, "npu: binariser_rows must be >= 2, got 1"),
    "layers": (257, "npu: layers must be <= 256, got 257"),
    "tuple_words": (24, "npu: tuple_words must be a power of two >= 2, got 24"),
    "pool_words": (1, "npu: pool_words must be a power of two >= 2, got 1"),
    "taps": (1, "npu: taps must be >= 2, got 1"),
    "olds": (1, "npu: olds must be >= 2, got 1"),
    "jumps": (1, "npu: jumps must be >= 2, got 1"),
    "pool_taps": (1, "npu: pool_taps must be >= 2, got 1"),
    "pool_olds": (1, "npu: pool_olds must be >= 2, got 1"),
    "kernel_rows": (1, "npu: kernel_rows must be >= 2, got 1"),
    "threshold_rows": (1, "npu: threshold_rows must be >= 2, got 1"),
    "map_words": (1, "npu: map_words must be >= 2, got 1"),
    "raster": (1, "npu: raster must be True or False, got 1"),
    "stream_weights": (1, "npu: stream_weights must be True or False, got 1"),
}
"""One bad value of every parameter."""

INTEGER = {"kind": "integer", "feature_bits": 8, "weight_bits": 5, "shift_bits": 0, "acc_bits": 20}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value(name):
    value, message = BAD[name]
    with value_error(message):
        Npu(**{name: value})


def test_every_parameter_has_a_bad_value():
    assert set(BAD) == set(Npu.__dataclass_fields__)


@pytest.mark.parametrize(("parameters", "message"), [
    ({"kfp": 8.0}, "npu: kfp must be an integer >= 1, got 8.0"),
    ({"planes": -1}, "npu: planes must be an integer >= 0, got -1"),
    ({"planes": 1}, "npu: planes must be 0 or 2..8 and below kfp = 8, got 1"),
    ({"planes": 8}, "npu: planes must be 0 or 2..8 and below kfp = 8, got 8"),
    ({"planes": 2, "kfp": 2}, "npu: planes must be 0 or 2..8 and below kfp = 2, got 2"),
    ({"shift_bits": -1}, "npu: shift_bits must be an integer >= 0, got -1"),
    ({"acc_bits": 3}, "npu: acc_bits must be 4..32, got 3"),
    ({"acc_bits": 7, "kfp": 64}, "npu: acc_bits must be >= 8 for kfp = 64, got 7"),
    ({**INTEGER, "feature_bits": 9}, "npu: feature_bits must be 2..8 for kind integer, got 9"),
    ({**INTEGER, "weight_bits": 1}, "npu: weight_bits must be 2..8 for kind integer, got 1"),
    ({**INTEGER, "planes": 2}, "npu: planes and shift_bits must be 0 for kind integer, got 2 and 0"),
    ({**INTEGER, "shift_bits": 3}, "npu: planes and shift_bits must be 0 for kind integer, got 0 and 3"),
    ({**INTEGER, "acc_bits": 15, "kfp": 5}, "npu: acc_bits must be >= 16 for kfp = 5, got 15"),
    ({"tuple_words": 1}, "npu: tuple_words must be a power of two >= 2, got 1"),
    ({"layers": 1}, "npu: layers must be >= 2, got 1"),
    ({"ol": 2, "kgp": 1}, "npu: ol must be <= kgp = 1, got 2"),
])  # fmt: skip
def test_rules_between_parameters(parameters, message):
    with value_error(message):
        Npu(**parameters)


@pytest.mark.parametrize("parameters", [
    {"kfp": 1, "kgp": 1, "pfp": 1, "acc_bits": 4}, {"kfp": 9, "planes": 8}, {"kfp": 3, "planes": 2},
    {"acc_bits": 8, "kfp": 64},
    {"ol": 8, "kgp": 8}, {"layers": 256}, {"layers": 2}, {"tuple_words": 2}, {"shift_bits": 0}, {"acc_bits": 32},
    INTEGER, {**INTEGER, "feature_bits": 2, "weight_bits": 2, "kfp": 1, "acc_bits": 5},
    {**INTEGER, "acc_bits": 16, "kfp": 5},
], ids=str)  # fmt: skip
def test_the_ends_of_each_range_are_legal(parameters):
    Npu(**parameters)


@pytest.mark.parametrize("stream_bits", [0, 16, 31, 128, "32"])
def test_stream_bits(stream_bits):
    with value_error(f"d: stream_bits must be 32 or 64, got {stream_bits!r}"):
        Design(name="d", stream_bits=stream_bits)


@pytest.mark.parametrize("count", [0, 2])
def test_number_of_npus(count):
    with value_error(f"d: a design must have 1 NPU, got {count}"):
        Design(name="d", npus=(Npu(),) * count)


@pytest.mark.parametrize("design", [
    Design(name="small"), Design(name="large", stream_bits=64, npus=(Npu(kfp=70, kgp=3, ol=2, planes=8,
    acc_bits=19, taps=5),)),
], ids=lambda d: d.name)  # fmt: skip
def test_to_dict_and_back(design):
    data = design.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert Design.from_dict(data) == design
    assert Design.from_dict(json.loads(json.dumps(data))) == design


def test_from_dict_refuses_what_is_unknown():
    data = Design(name="d").to_dict()
    data["npus"][0]["kfb"] = 3
    with pytest.raises(TypeError, match="unexpected keyword argument 'kfb'"):
        Design.from_dict(data)


@pytest.mark.parametrize(("parameters", "units", "code_bits", "plane_lanes"), [
    ({"kgp": 7, "ol": 3}, 3, 4, 8), ({"kgp": 6, "ol": 3, "shift_bits": 0}, 2, 0, 8), ({"kgp": 5, "ol": 5,
    "shift_bits": 1}, 1, 2, 8),
    ({"kfp": 29, "planes": 8}, 8, 1, 3), ({"kfp": 9, "planes": 8, "shift_bits": 0}, 8, 1, 1),
])  # fmt: skip
def test_what_follows(parameters, units, code_bits, plane_lanes):
    npu = Npu(**parameters)
    assert (npu.units, npu.code_bits, npu.plane_lanes) == (units, code_bits, plane_lanes)


@pytest.mark.parametrize(
    "npu", [Npu(), Npu(kfp=70, kgp=3, ol=2, shift_bits=0, acc_bits=9, tuple_words=2, pool_words=4, taps=5)]
)
def test_memories(npu):
    """Ids count up, names differ, fields fill a row without a gap, and depths are the parameters."""
    made = npu.memories()
    assert [m.id for m in made] == list(range(len(made)))
    assert len({m.name for m in made}) == len(made)
    assert all(m.width == sum(w for _, w in m.fields) and len(dict(m.fields)) == len(m.fields) for m in made)
    depths = {"network": 1, "inputs": npu.layers, "layers": npu.layers, "flags": npu.taps, "olds": npu.olds,
              "jumps": npu.jumps,
              "kernels": npu.kernel_rows, "results": npu.layers, "thresholds": npu.threshold_rows, "pool_inputs":
              npu.layers,
              "pool_layers": npu.layers, "pool_flags": npu.pool_taps, "pool_olds": npu.pool_olds}  # fmt: skip
    assert {m.name: m.depth for m in made} == depths
    assert npu.memory("kernels").width == npu.kgp * npu.kfp + npu.code_bits
    assert npu.memory("thresholds").width == npu.ol * npu.acc_bits
